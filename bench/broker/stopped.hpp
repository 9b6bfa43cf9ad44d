// One of eight consumers is stopped (SIGSTOP) at full load: what the others get before and meanwhile.
//
//     StoppedRates rates = measure_stopped(places, {.role = "sub", .slow = "disconnect"}, signals);
//     const double kept = rates.stopped / rates.before;
#pragma once

#include <cstdint>
#include <string>

#include "served_broker.hpp"

namespace leat::bench::broker {

struct StoppedLoad {
  std::string role = "pull";       // Of the consumers: pull or sub.
  std::string slow = "overtaken";  // What the topic does with slow subscribers.
  double seconds = 2;              // How long one is stopped.
};

// Messages per second of the seven others together.
struct StoppedRates {
  double before = 0;
  double stopped = 0;
  std::uint64_t lost = 0;  // By the others, if they are subscribers.
};

// ZeroMQ to ZeroMQ, 100 bytes each. Pullers hold the producer back by themselves. Subscribers do not: their producer
// is never more than 4096 messages ahead of the slowest of the seven.
StoppedRates measure_stopped(const Places& places, const StoppedLoad& load,
                             const SignalScope& signals);

}  // namespace leat::bench::broker
