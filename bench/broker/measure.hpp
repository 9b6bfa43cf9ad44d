// Measurements of a route: producers and consumers in processes of their own, as fast as possible or at a rate.
//
//     RouteCost cost = measure_route(route, {.size = 100, .messages = 500'000}, cpus);
//     RouteTimes times = measure_route_times(route, {.size = 100, .messages = 10'000'000}, cpus);
//     Latency latency = measure_route_latency(route, {.size = 100, .messages = 100'000, .rate = 100'000}, cpus);
//
// Every message is verified, and that exactly one consumer got it; throws Failure if not.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/harness/one_way.hpp"
#include "route.hpp"

namespace leat::bench::broker {

struct RouteLoad {
  std::size_t size = 100;
  std::uint64_t messages = 500'000;  // Of all producers together.
  std::uint32_t producers = 1;
  std::uint32_t consumers = 1;
  std::uint64_t rate = 0;  // Messages per second; 0: as fast as possible.
};

struct RouteCost {
  MessageCost clients;
  double middle_cpu_ns = 0;  // Per message, of the process in the middle.
};

// Without CPUs, the system places all processes.
RouteCost measure_route(Route& route, const RouteLoad& load, const std::vector<int>& cpus);

// What LightQ's tools print: each side's own time, and how long the first message is under way.
struct RouteTimes {
  double producer_seconds = 0;  // From before the first message until the last was handed over.
  double consumer_seconds = 0;  // From when it had the first message until it had verified the last.
  double first_message_ms = 0;
};

// Both are connected before, and nothing has moved for a moment. One producer, one consumer, at least two messages.
RouteTimes measure_route_times(Route& route, const RouteLoad& load, const std::vector<int>& cpus);

// From when a message was due until the consumer had it. One producer, one consumer.
Latency measure_route_latency(Route& route, const RouteLoad& load, const std::vector<int>& cpus);

}  // namespace leat::bench::broker
