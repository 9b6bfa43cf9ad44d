// What a member of a group does when it dies or stops, and at which labelled steps: the table that
// group_steps_test.cpp goes through.
#pragma once

#include <ostream>
#include <vector>

#include "group_world.hpp"

namespace leat::testing {

struct GroupScenario {
  const char* name;
  GroupWorldOptions options;
  void (*prepare)(GroupWorld&);  // before the victim; may be null
  int (*victim)(GroupWorld&);    // in a child
  std::vector<const char*> steps;
  // How many records its last call may have been handed, in the eyes of the others, that it did not
  // come to note.
  std::uint32_t in_call = 1;
  // How many more it may keep from the others while it is stopped: those with keys that it holds.
  std::uint32_t keeps = 0;
};

inline std::ostream& operator<<(std::ostream& out, const GroupScenario& scenario) {
  return out << scenario.name;
}

const std::vector<GroupScenario>& group_scenarios();

// Swept by group_life_test.cpp, where a whole group comes and goes.
inline constexpr const char* kCreateGroupSteps[] = {"group:filled", "group:entered"};
inline constexpr const char* kDeleteGroupSteps[] = {"group:closing", "group:closed", "group:out",
                                                    "group:unlocked"};

}  // namespace leat::testing
