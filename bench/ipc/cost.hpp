// What one run of a method costs: the figures of `leat bench ipc`.
#pragma once

#include "bench/harness/measure.hpp"

namespace leat::bench::ipc {

struct Cost {
  Latency latency;  // Of the round trip, or one way from when a message was due; none with oneway.
  double elapsed_ns = 0;
  double messages_per_second = 0;  // With pingpong: round trips.
  double sender_cpu_ns = 0;        // Per message, of all threads of the process.
  double receiver_cpu_ns = 0;
  double context_switches = 0;  // Per message, of both sides; at a rate, of the receiver.
};

Cost cost_of(const Measured& measured, const Load& load);

}  // namespace leat::bench::ipc
