// How many times larger the runs of one measurement are than those of another, and how sure that is.
//
//     const Ratio ratio = ratio_of(before, after);  // each with the values of its runs
//     if (ratio.interval && ratio.interval->low > 1) …  // larger, beyond noise
//
// The ratio is the median of the ratios of all pairs of runs: the Hodges-Lehmann estimate, on
// logarithms. The ends of the interval are two of these ratios, at ranks taken from the distribution
// of Mann and Whitney's U (Hollander and Wolfe, Nonparametric Statistical Methods, "Moses"). Nothing
// is assumed about how the runs are distributed, only that they are independent and that the two sides
// differ by a factor.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "bench/statistics.hpp"

namespace leat::bench {

struct Interval {
  double low = 0, high = 0;
  double confidence = 0;  // At least kConfidence; not exactly, since ranks are whole numbers.
};

struct Ratio {
  double ratio = 0;
  std::optional<Interval> interval;  // None: too few runs for kConfidence.
};

// P(U <= u) for each u from 0 to m * n: the probability, if both sides are the same, that at most u of
// the pairs have a larger value on the first side than on the second.
inline std::vector<double> mann_whitney_distribution(std::size_t m, std::size_t n) {
  // With probability m / (m + n) the largest of all values is on the first side, and so above all n of
  // the second. Otherwise it is on the second side and adds nothing to U.
  std::vector<std::vector<double>> row(n + 1);  // P(U = u) for i of the first, by j of the second.
  for (std::size_t i = 0; i <= m; ++i) {
    for (std::size_t j = 0; j <= n; ++j) {
      std::vector<double> probability(i * j + 1, 0);
      if (i == 0 || j == 0) {
        probability[0] = 1;
      } else {
        const double first = static_cast<double>(i) / static_cast<double>(i + j);
        const std::vector<double>& one_less = row[j];  // Still of i - 1.
        for (std::size_t u = 0; u < one_less.size(); ++u) probability[u + j] += first * one_less[u];
        const std::vector<double>& other_less = row[j - 1];
        for (std::size_t u = 0; u < other_less.size(); ++u) {
          probability[u] += (1 - first) * other_less[u];
        }
      }
      row[j] = std::move(probability);
    }
  }
  std::vector<double> distribution = std::move(row[n]);
  for (std::size_t u = 1; u < distribution.size(); ++u) distribution[u] += distribution[u - 1];
  return distribution;
}

inline constexpr double kConfidence = 0.95;

// How many of the m * n ratios lie below an interval of at least kConfidence, and as many above it; and
// its exact confidence.
struct OutsideRanks {
  std::size_t count = 0;
  double confidence = 0;
};

// None if no interval has that confidence: with so few runs even the most extreme order is not rare.
inline std::optional<OutsideRanks> ranks_outside(std::size_t m, std::size_t n) {
  constexpr double kTail = (1 - kConfidence) / 2;
  // Above this the exact sums take long, and the normal distribution agrees to two digits, unless one
  // side has very few runs.
  constexpr std::size_t kExactPairs = 2500, kFew = 5;
  if (m * n > kExactPairs) {
    constexpr double kNormal975 = 1.959964;  // Belongs to kTail.
    static_assert(kConfidence == 0.95);
    if (std::min(m, n) < kFew) return std::nullopt;
    const auto pairs = static_cast<double>(m * n);
    const double deviation = std::sqrt(pairs * static_cast<double>(m + n + 1) / 12);
    const double rank = std::floor(pairs / 2 - kNormal975 * deviation);
    if (rank < 1) return std::nullopt;
    return OutsideRanks{static_cast<std::size_t>(rank) - 1, kConfidence};
  }
  const std::vector<double> distribution = mann_whitney_distribution(m, n);
  if (m == 0 || n == 0 || distribution[0] > kTail) return std::nullopt;
  std::size_t rank = 0;  // P(U < rank) is what lies beyond each end.
  while (distribution[rank] <= kTail) ++rank;
  return OutsideRanks{rank - 1, 1 - 2 * distribution[rank - 1]};
}

// The ratio of `after` to `before`. All values are above 0, and each side has at least one.
inline Ratio ratio_of(const std::vector<double>& before, const std::vector<double>& after) {
  std::vector<double> ratios;
  ratios.reserve(before.size() * after.size());
  for (const double a : after) {
    for (const double b : before) ratios.push_back(a / b);
  }
  std::sort(ratios.begin(), ratios.end());
  Ratio result;
  result.ratio = median(ratios);
  if (const auto outside = ranks_outside(before.size(), after.size())) {
    result.interval = {ratios[outside->count], ratios[ratios.size() - 1 - outside->count],
                       outside->confidence};
  }
  return result;
}

}  // namespace leat::bench
