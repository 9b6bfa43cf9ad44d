// Medians of a few runs, percentiles of millions of samples.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace leat::bench {

// The middle value, or the mean of the two middle ones. 0 if empty.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Nearest rank: the smallest value such that at least this part of all values is not larger.
// `sorted` must not be empty.
template <class Number>
double nearest_rank(const std::vector<Number>& sorted, double part) {
  const auto rank = static_cast<std::size_t>(std::ceil(part * static_cast<double>(sorted.size())));
  return static_cast<double>(sorted[std::max<std::size_t>(rank, 1) - 1]);
}

// The fewest samples of which a percentile says anything: with fewer it would be the largest of them.
// 100 for p99, 1000 for p99.9.
inline std::uint64_t samples_needed(double part) {
  return static_cast<std::uint64_t>(std::llround(1 / (1 - part)));
}

// The nearest rank of values in any order. 0 if empty.
inline double percentile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return nearest_rank(values, part);
}

// Nanoseconds. Percentiles by nearest rank.
struct Latency {
  double p50 = 0, p90 = 0, p99 = 0, p999 = 0, p9999 = 0;
  double min = 0, max = 0, mean = 0, stddev = 0;
};

// Sorts the samples. All zero if there are none.
inline Latency latency_of(std::vector<std::uint64_t>& samples_ns) {
  if (samples_ns.empty()) return {};
  std::sort(samples_ns.begin(), samples_ns.end());
  const auto count = static_cast<double>(samples_ns.size());
  const auto at = [&](double part) { return nearest_rank(samples_ns, part); };
  // Two passes: squared differences from the mean neither overflow nor cancel out.
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

}  // namespace leat::bench
