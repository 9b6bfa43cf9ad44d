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

namespace {

std::string without_digits(std::string_view text) {
  std::string rest;
  for (const char c : text) {
    if (c < '0' || c > '9') rest += c;
  }
  return rest;
}

// How many letters of a name may be wrong. Of two letters, none, but they may be swapped.
std::size_t most_wrong(std::string_view typed, std::string_view name) {
  constexpr std::size_t kForOne = 3;
  constexpr std::size_t kForTwo = 8;
  if (std::min(typed.size(), name.size() + 1) >= kForTwo && typed[0] == name[0]) return 2;
  const bool is_swapped =
      typed.size() == 2 && name.size() == 2 && typed[0] == name[1] && typed[1] == name[0];
  return typed.size() >= kForOne || is_swapped ? 1 : 0;
}

}  // namespace

std::string closest(std::string_view typed, const std::vector<std::string>& known) {
  constexpr std::size_t kShortestBeginning = 3;
  std::size_t best = std::numeric_limits<std::size_t>::max();
  std::string found;
  for (const std::string& name : known) {
    // Names that differ in a number are names of different things.
    if (typed != name && without_digits(typed) == without_digits(name)) continue;
    const bool is_beginning = typed.size() >= kShortestBeginning && name.starts_with(typed);
    const std::size_t most = most_wrong(typed, name);
    std::size_t distance = edit_distance(typed, name);
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
