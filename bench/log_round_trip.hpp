// A message and its answer through two topics, each with an exclusive publisher.
#pragma once

#include "round_trip.hpp"

namespace leat::bench {

enum class Waiting {
  polling,   // Both sides spin with poll().
  sleeping,  // Both sleep in receive() at once, without spinning first.
};

// The topics hold 8 MiB each. The peer publishes what it reads, straight from the log.
RoundTrip log_round_trip(const RoundTripOptions& options, Waiting waiting,
                         const Placement& placement);

}  // namespace leat::bench
