// What clients at a steady rate notice of a crowd: of connections that only wait, and of wrong logins.
//
//     const CrowdCost cost = measure_crowd(places, {.idle = 10'000, .seconds = 2}, signals);
//     const double times_alone = cost.beside_idle.p99 / cost.alone.p99;
//
// The clients have raw framing: 50 producers and 50 pullers, on 10 topics.
#pragma once

#include <cstdint>

#include "bench/statistics.hpp"
#include "served_broker.hpp"

namespace leat::bench::broker {

inline constexpr std::uint32_t kCrowdPairs = 50;   // A producer and a puller each.
inline constexpr std::uint64_t kCrowdRate = 5000;  // Messages per second of all of them.
inline constexpr double kWrongLoginRate = 1000;    // Per second.

struct CrowdLoad {
  std::uint32_t idle = 10'000;  // Connections that have joined one of 100 topics, and wait.
  // How long the clients send for each figure, in five turns of a second or more.
  double seconds = 5;
};

struct CrowdCost {
  Latency alone;
  Latency beside_wrong_logins;
  Latency beside_idle;
  double wrong_logins_per_second = 0;  // That were answered.
  std::uint32_t idle_connections = 0;  // As many as the limit of descriptors allows.
  ServedBroker::Memory idle_memory;    // Before the clients come back.
  ServedBroker::Memory memory;         // After them.
};

// All with one broker; alone and beside wrong logins in turns. Each latency is that of the turn with the median p99, from
// when a message was due until its puller had it.
CrowdCost measure_crowd(const Places& places, const CrowdLoad& load, const SignalScope& signals);

}  // namespace leat::bench::broker
