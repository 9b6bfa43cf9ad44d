// Medians and percentiles of a handful of runs or of millions of samples.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace leat::bench {

// The middle value; the mean of the two middle ones if there are as many on both sides. 0 if empty.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Nearest rank: the smallest value that at least the given part of all does not exceed. There must
// be some, in order.
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

// A duration as a sample; one of more than 4 s counts as 4 s.
inline std::uint32_t clamp_sample_ns(std::uint64_t duration_ns) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(duration_ns, UINT32_MAX));
}

struct Percentiles {
  double p50_ns = 0, p90_ns = 0, p99_ns = 0, p999_ns = 0, max_ns = 0;
};

// Nearest rank, too. Reorders the samples.
inline Percentiles percentiles(std::vector<std::uint32_t>& samples_ns) {
  if (samples_ns.empty()) return {};
  std::sort(samples_ns.begin(), samples_ns.end());
  const auto at = [&](double part) { return nearest_rank(samples_ns, part); };
  return {at(0.5), at(0.9), at(0.99), at(0.999), at(1)};
}

}  // namespace leat::bench
