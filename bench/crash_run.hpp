// One participant of a topic is killed; how soon do the others go on?
//
//     Recovery recovery = measure_kill({.survivor = Survivor::asleep}, {0, 1});
//
// The kernel lets go of a dead process's lock when it has freed its memory; from then on others can
// know that it is dead. So there are two times: from the kill to that, which nobody can shorten, and
// from that to the survivor's progress, which is ours.
#pragma once

#include <cstdint>
#include <vector>

namespace leat::bench {

enum class Survivor {
  asleep,            // A subscriber that sleeps behind the hole of a killed publisher.
  polling,           // One that looks all the time.
  beside_publisher,  // One that polls while another publisher goes on behind the hole.
  publisher,         // A publisher that waits for room held by a killed subscriber.
};

struct KillOptions {
  Survivor survivor = Survivor::asleep;
  std::uint64_t resident_bytes = 0;  // Memory in use by the victim, over what it needs anyway.
  std::uint64_t delay_us = 5000;     // Between the survivor's going to wait and the kill.
};

struct Recovery {
  double kill_to_release_us = 0;
  double release_to_progress_us = 0;
};

// A killed publisher has claimed a record and not committed it. Progress is the gap's event in its
// place (beside_publisher: the first record behind it), or the return of publish(). Throws Failure
// if there is none within 10 s, or if the gap is not reported as it should be.
Recovery measure_kill(const KillOptions& options, const std::vector<int>& cpus);

}  // namespace leat::bench
