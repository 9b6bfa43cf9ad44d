// What a victim does when it dies or stops, and at which labelled steps: the table that the sweeps
// go through. steps_test.cpp checks that no label of the sources is missing from it.
#pragma once

#include <ostream>
#include <string_view>
#include <vector>

#include "world.hpp"

namespace leat::testing {

// Who has to wait for a victim that is stopped, not dead.
enum class Waits {
  nobody,
  readers,     // it holds a claim: readers wait at its hole
  publishers,  // it is a gating subscriber: its room is not reused
};

struct Scenario {
  const char* name;
  WorldOptions options;
  void (*prepare)(World&);  // before the victim; may be null
  int (*victim)(World&);    // in a child
  std::vector<const char*> steps;
  Waits (*waits)(std::string_view step);
  int died_before = 0;  // gaps `died` that prepare() leaves behind
};

inline std::ostream& operator<<(std::ostream& out, const Scenario& scenario) {
  return out << scenario.name;
}

const std::vector<Scenario>& scenarios();

// Swept by topic_steps_test.cpp, where a whole topic comes and goes.
inline constexpr const char* kCreateSteps[] = {"create:filled"};
inline constexpr const char* kDeleteSteps[] = {"delete:attempted", "delete:decided",
                                               "delete:announced", "delete:renamed"};
// By unused_steps_test.cpp, beside those of a deletion.
inline constexpr const char* kUnusedSteps[] = {"unused:let_go", "unused:decided"};
// By death_bell_test.cpp.
inline constexpr const char* kBellStep = "sleep:rung";

// Whether a publisher at this step has a claim that is not visible yet.
inline bool is_open_claim(std::string_view step) {
  return step == "claim:won" || step == "claim:marked" || step == "commit:before";
}

}  // namespace leat::testing
