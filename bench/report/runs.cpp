#include "runs.hpp"

#include <algorithm>
#include <vector>

namespace leat::bench {

Figure rank_figure(Pattern pattern) {
  return pattern == Pattern::oneway ? &Figures::messages_per_second : &Figures::p50_ns;
}

std::optional<Range> range_of_runs(const Measurement& result, Figure figure) {
  if (result.runs.size() < 2) return std::nullopt;
  std::vector<double> values;
  for (const Figures& run : result.runs) {
    if (!(run.*figure)) return std::nullopt;
    values.push_back(*(run.*figure));
  }
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return Range{*low, *high};
}

bool tied(const Measurement& a, const Measurement& b, Figure figure) {
  const auto range_a = range_of_runs(a, figure);
  const auto range_b = range_of_runs(b, figure);
  if (!range_a || !range_b) return false;
  const auto [smaller, larger] = std::minmax(*(*a.median.*figure), *(*b.median.*figure));
  return larger <= kTieRatio * smaller && range_a->low <= range_b->high &&
         range_b->low <= range_a->high;
}

std::optional<double> spread_of(const Measurement& result) {
  const auto range = range_of_runs(result, rank_figure(result.key.pattern));
  if (!range || range->high <= 0) return std::nullopt;
  return (range->high - range->low) / range->high;
}

}  // namespace leat::bench
