// What `leat group` and `leat sub --group` have in common: the options of a group, and what is said
// when one can't be had.
//
//     const Group group = open_or_create_group(topic, "workers", arguments);
//     if (group.was_created()) …
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "cli.hpp"
#include "leat/fwd.hpp"

namespace leat::cli {

// They count for whoever creates the group.
struct GroupArguments {
  std::string from = "end";
  bool at_most_once = false;
  bool by_key = false;
  std::uint64_t max_deliveries = 0;
  std::chrono::nanoseconds lease{0};
  std::uint64_t in_flight = 1024;
  std::uint64_t members = 64;
};

// All of the above but --from.
std::vector<CLI::Option*> add_group_options(CLI::App& app, GroupArguments& arguments);

Group open_or_create_group(const Topic& topic, const std::string& name,
                           const GroupArguments& arguments);

// Ends the command because of what the library said about a group.
[[noreturn]] void fail_group(Error error, const std::string& topic, const std::string& group);

}  // namespace leat::cli
