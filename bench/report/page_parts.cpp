#include "page_parts.hpp"

#include <fmt/format.h>

#include "bench/output/units.hpp"
#include "runs.hpp"

namespace leat::bench {

std::string or_none(const std::optional<double>& value, const InWords& in_words) {
  return value ? in_words(*value) : kNone;
}

std::string range_text(const Measurement& result, Figure figure, const InWords& in_words) {
  const auto range = range_of_runs(result, figure);
  if (!range) return {};
  return fmt::format("{} to {}", in_words(range->low), in_words(range->high));
}

InWords rank_words(const Measurement& result) {
  return result.key.pattern == Pattern::oneway ? rate_text : time_text;
}

}  // namespace leat::bench
