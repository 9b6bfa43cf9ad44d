#include "did_you_mean.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace leat::tool {

std::size_t edit_distance(std::string_view one, std::string_view other) {
  // Row i holds the distances of the first i letters of `one` from each prefix of `other`.
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last;
  std::vector<std::size_t> row(other.size() + 1);
  for (std::size_t k = 0; k <= other.size(); ++k) row[k] = k;
  for (std::size_t i = 1; i <= one.size(); ++i) {
    before_last = last;
    last = row;
    row[0] = i;
    for (std::size_t k = 1; k <= other.size(); ++k) {
      const std::size_t replaced = last[k - 1] + (one[i - 1] == other[k - 1] ? 0 : 1);
      row[k] = std::min({last[k] + 1, row[k - 1] + 1, replaced});
      if (i > 1 && k > 1 && one[i - 1] == other[k - 2] && one[i - 2] == other[k - 1])
        row[k] = std::min(row[k], before_last[k - 2] + 1);
    }
  }
  return row[other.size()];
}

std::string closest(std::string_view typed, const std::vector<std::string>& known) {
  constexpr std::size_t kShortestBeginning = 3;
  const std::size_t most = std::min<std::size_t>(2, typed.size() / 2);
  std::size_t best = std::numeric_limits<std::size_t>::max();
  std::string found;
  for (const std::string& name : known) {
    std::size_t distance = edit_distance(typed, name);
    const bool is_beginning = typed.size() >= kShortestBeginning && name.starts_with(typed);
    if (is_beginning) distance = std::min(distance, most);
    if (distance > most || distance >= best) continue;
    best = distance;
    found = name;
  }
  return found;
}

std::string did_you_mean(std::string_view typed, const std::vector<std::string>& known) {
  const std::string name = closest(typed, known);
  return name.empty() ? name : fmt::format(" (did you mean '{}'?)", name);
}

}  // namespace leat::tool
