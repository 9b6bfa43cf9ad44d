// One participant of a topic is killed; how soon do the others go on?
//
//     Recovery recovery = measure_kill({.survivor = Survivor::asleep}, {0, 1});
//
// The kernel releases a dead process's lock once it has freed its memory; from then on others can tell
// that it is dead. So there are two times: from the kill to the release, which nobody can shorten, and
// from the release to the survivor's progress, which is up to Leat.
#pragma once

#include <cstdint>
#include <vector>

namespace leat::bench {

enum class Survivor {
  asleep,            // A subscriber that sleeps behind the hole of a killed publisher.
  polling,           // A subscriber that polls all the time.
  beside_publisher,  // The same, while another publisher goes on behind the hole.
  publisher,         // A publisher that waits for room held by a killed subscriber.
};

struct KillOptions {
  Survivor survivor = Survivor::asleep;
  std::uint64_t resident_bytes = 0;  // Extra memory in use by the victim.
  std::uint64_t delay_us = 5000;     // From when the survivor starts to wait until the kill.
};

struct Recovery {
  double kill_to_release_us = 0;
  double release_to_progress_us = 0;
};

// A killed publisher has claimed a record and not committed it. Progress is the event that reports the
// gap in its place (beside_publisher: the first record behind it), or the return of publish(). Throws
// Failure if there is none within 10 s, or if the gap is not reported as it should be.
Recovery measure_kill(const KillOptions& options, const std::vector<int>& cpus);

}  // namespace leat::bench
