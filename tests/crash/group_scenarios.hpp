// The table that group_steps_test.cpp goes through: what a member of a group does when it dies or
// stops, and at which labelled steps.
#pragma once

#include <ostream>
#include <vector>

#include "group_world.hpp"

namespace leat::testing {

struct GroupScenario {
  const char* name;
  GroupWorldOptions options;
  void (*prepare)(GroupWorld&);  // Runs before the victim starts; may be null.
  int (*victim)(GroupWorld&);    // Runs in a child.
  std::vector<const char*> steps;
  // How many records of its last call may count as handed out although the
  // victim could not note them.
  std::uint32_t in_call = 1;
  // How many more records the others may not get while it is stopped, because it holds their keys.
  std::uint32_t keeps = 0;
};

inline std::ostream& operator<<(std::ostream& out, const GroupScenario& scenario) {
  return out << scenario.name;
}

const std::vector<GroupScenario>& group_scenarios();

// Steps of creating and deleting a group; covered by group_life_test.cpp.
inline constexpr const char* kCreateGroupSteps[] = {"group:filled", "group:entered", "group:opened"};
inline constexpr const char* kDeleteGroupSteps[] = {"group:closing", "group:closed", "group:out",
                                                    "group:unlocked"};

// Of groups of durable topics; covered by durable_groups_test.cpp, with those above and others.
inline constexpr const char* kSavedGroupSteps[] = {
    "group:unsettled",   "group:all_saved",       "group:file_written",
    "group:file_made",   "group:restoring",       "group:saved",
    "group:limit_moved", "group:earlier_deleted", "group:file_deleted"};

}  // namespace leat::testing
