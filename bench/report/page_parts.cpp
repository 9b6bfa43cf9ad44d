#include "page_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/output/units.hpp"
#include "runs.hpp"
#include "svg.hpp"

namespace leat::bench {

std::string or_none(const std::optional<double>& value, const InWords& in_words) {
  return value ? in_words(*value) : kNone;
}

std::string unbroken(std::string figure) {
  const std::size_t space = figure.find(' ');
  return space == std::string::npos ? figure : figure.replace(space, 1, "&nbsp;");
}

std::string range_text(const Measurement& result, Figure figure, const InWords& in_words) {
  const auto range = range_of_runs(result, figure);
  if (!range) return {};
  return fmt::format("{} to {}", in_words(range->low), in_words(range->high));
}

InWords rank_words(const Measurement& result) {
  return result.key.pattern == Pattern::oneway ? rate_text : time_text;
}

std::string with_whole_words(std::string_view text) {
  std::string html;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, length);
    const bool may_be_broken = word.find('-') != word.npos;
    html += may_be_broken ? "<span class=\"whole\">" + escaped(word) + "</span>" : escaped(word);
    text.remove_prefix(length);
    if (text.empty()) break;
    html += ' ';
    text.remove_prefix(1);
  }
  return html;
}

}  // namespace leat::bench
