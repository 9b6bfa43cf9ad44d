// What `leat group` and `leat sub --group` share: the options of a group, and error messages about groups.
//
//     const Group group = open_or_create_group(topic, "workers", arguments);
//     if (group.was_created()) …
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/cli.hpp"
#include "leat/fwd.hpp"

namespace leat::cli {

// Used only when the group is created.
struct GroupArguments {
  std::string from = "end";
  bool at_most_once = false;
  bool by_key = false;
  std::uint64_t max_deliveries = 0;
  std::chrono::nanoseconds lease{0};
  std::string on_expired = "start";
  std::uint64_t in_flight = 1024;
  std::uint64_t members = 64;
};

// All of the above but --from.
std::vector<CLI::Option*> add_group_options(CLI::App& app, GroupArguments& arguments);

// Fails if two of them have no effect together.
void check_group_options(const GroupArguments& arguments);

Group open_or_create_group(const Topic& topic, const std::string& name,
                           const GroupArguments& arguments);

// Ends the command with an error of the library about a group.
[[noreturn]] void fail_group(Error error, const std::string& topic, const std::string& group);

}  // namespace leat::cli
