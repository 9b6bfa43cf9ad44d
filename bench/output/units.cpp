#include "units.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace leat::bench {
namespace {

// "1.23", "12.3", "123"; no trailing zeros.
std::string three_digits(double value) {
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (decimals == 0) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

template <std::size_t N>
std::string with_unit(double value, const std::array<const char*, N>& units) {
  std::size_t unit = 0;
  // From 999.5 on it would be rounded to 1000.
  while (value >= 999.5 && unit + 1 < N) {
    value /= 1000;
    ++unit;
  }
  return three_digits(value) + units[unit];
}

}  // namespace

std::string time_text(double ns) { return with_unit(ns, std::array{" ns", " µs", " ms", " s"}); }

std::string rate_text(double per_second) {
  return with_unit(per_second, std::array{"/s", " k/s", " M/s", " G/s"});
}

std::string bytes_rate_text(double bytes_per_second) {
  return with_unit(bytes_per_second, std::array{" B/s", " kB/s", " MB/s", " GB/s", " TB/s"});
}

std::string percent_text(double part) { return fmt::format("{:.0f} %", part * 100); }

std::string size_text(std::uint64_t bytes) {
  constexpr std::uint64_t kKi = 1024;
  if (bytes >= kKi * kKi && bytes % (kKi * kKi) == 0)
    return fmt::format("{} MiB", bytes / kKi / kKi);
  if (bytes >= kKi && bytes % kKi == 0) return fmt::format("{} KiB", bytes / kKi);
  return fmt::format("{} B", bytes);
}

}  // namespace leat::bench
