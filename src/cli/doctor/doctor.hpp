// What `leat doctor` looks at: what limits this machine, and what dead processes left behind.
//
//     for (const Finding& finding : examine_machine(directory)) print(finding);
//
// Looks, and changes nothing.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "leat/os/os.hpp"

namespace leat::cli {

inline constexpr std::uint64_t kMiB = 1 << 20;

enum class Severity {
  ok,
  note,     // good to know
  warning,  // works, but worse than it could
  problem,  // needs action
};

struct Finding {
  std::string name = {};  // of the check: "directory"
  Severity severity = Severity::ok;
  std::string found = {};
  std::string advice = {};  // Empty if there is nothing to do.
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();
};

// File system, memory, processors, kernel and systemd; doctor_machine.cpp.
std::vector<Finding> examine_machine(const std::string& directory);

// Topics and leftovers in the directory; doctor_topics.cpp.
std::vector<Finding> examine_topics(const std::string& directory);

// Files of durable topics; doctor_data.cpp.
std::vector<Finding> examine_data(const std::string& directory);
// The directories that have them: the one that new topics use, and those of topics that are open.
std::vector<std::string> data_directories(const std::string& directory);

// What is in the directory and belongs to nobody any more.
struct Leftover {
  std::string name = {};
  std::string what = {};
  bool is_locked_by_owner = false;  // As long as its owner lives; see lock_left_over().
  std::uint64_t bytes = 0;
};
std::vector<Leftover> find_leftovers(const std::string& directory);
// Locks what a killed process has left. Whoever removes it keeps the lock meanwhile. Empty if its owner lives.
os::Fd lock_left_over(const std::string& path);
Finding leftovers_finding(const std::string& directory);

// A file system.
struct Kind {
  std::string name;
  bool is_memory = false;
  bool is_shared_with_machines = false;  // This kernel does not see all locks and mappings.
  bool moves_writes = false;  // Needs room to change what is there; btrfs does not in our files.
};
Kind kind_of(const std::string& path);

// Room that everything below a path takes.
std::uint64_t bytes_of(const std::string& path);
// Names that topics can have, of what is in a directory; in order. None if it cannot be read.
std::vector<std::string> topic_names_in(const std::string& directory);
// "a, b, c and 4 more"
std::string names_text(const std::vector<std::string>& names);

}  // namespace leat::cli
