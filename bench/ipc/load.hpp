// What is asked of a way to talk, and what came of it: the vocabulary of `leat bench ipc`.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/failure.hpp"
#include "bench/pattern.hpp"
#include "bench/processes.hpp"
#include "bench/statistics.hpp"

namespace leat::bench::ipc {

struct Load {
  std::size_t size = 1000;
  std::uint64_t count = 1000;
  std::uint64_t warm_up = 101;  // Messages before the time starts.
  Pattern pattern = Pattern::pingpong;
  Variant variant = Variant::blocking;
  std::uint32_t batch = 1;               // oneway: messages handed over at a time.
  std::uint64_t rate = 0;                // rate: messages per second.
  std::chrono::seconds time_limit{120};  // For all of it.
};

// Nanoseconds. Percentiles by nearest rank.
struct Latency {
  double p50 = 0, p90 = 0, p99 = 0, p999 = 0, p9999 = 0;
  double min = 0, max = 0, mean = 0, stddev = 0;
};

// Sorts the samples.
inline Latency latency_of(std::vector<std::uint64_t>& samples_ns) {
  if (samples_ns.empty()) return {};
  std::sort(samples_ns.begin(), samples_ns.end());
  const auto count = static_cast<double>(samples_ns.size());
  const auto at = [&](double part) { return nearest_rank(samples_ns, part); };
  // In two passes: the squares of differences from the mean neither overflow nor cancel.
  double sum = 0;
  for (const std::uint64_t sample : samples_ns) sum += static_cast<double>(sample);
  const double mean = sum / count;
  double squares = 0;
  for (const std::uint64_t sample : samples_ns) {
    const double difference = static_cast<double>(sample) - mean;
    squares += difference * difference;
  }
  return {at(0.5),   at(0.9),    at(0.99),
          at(0.999), at(0.9999), at(0),
          at(1),     mean,       std::sqrt(squares / count)};
}

struct Cost {
  Latency latency;  // Of the round trip, or one way from when it was due; none with oneway.
  double elapsed_ns = 0;
  double messages_per_second = 0;  // With pingpong: round trips.
  double sender_cpu_ns = 0;        // Per message, of all threads of the process.
  double receiver_cpu_ns = 0;
  double context_switches = 0;  // Per message, of both sides; at a rate of the receiver.
};

// The machine, or the method itself, can't do this load; the sentence says why.
class NotSupported : public Failure {
 public:
  using Failure::Failure;
};

}  // namespace leat::bench::ipc
