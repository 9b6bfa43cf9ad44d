// How numbers, sizes, durations and times are written on the command line.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <ctime>
#include <limits>
#include <utility>

#include "cli.hpp"
#include "leat/subscriber.hpp"

namespace leat::cli {
namespace {

// Removes the digits at the start of `text` and returns their value. Nothing if there are none, or if the
// number is too large.
std::optional<std::uint64_t> take_number(std::string_view& text) noexcept {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// The same with exactly `digits` digits.
bool take_digits(std::string_view& text, std::size_t digits, int& number) noexcept {
  if (text.size() < digits) return false;
  number = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return false;
    number = number * 10 + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return true;
}

bool take_char(std::string_view& text, char wanted) noexcept {
  if (text.empty() || text[0] != wanted) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<std::uint64_t> multiply(std::uint64_t number, std::uint64_t unit) noexcept {
  if (unit != 0 && number > std::numeric_limits<std::uint64_t>::max() / unit) return std::nullopt;
  return number * unit;
}

struct ClockTime {
  int hour = 0;
  int minute = 0;
  int second = 0;
  int millisecond = 0;
};

bool starts_with_digit(std::string_view text) noexcept {
  return !text.empty() && text[0] >= '0' && text[0] <= '9';
}

// "2024-05-01", "20240501"
bool take_date(std::string_view& text, int& year, int& month, int& day) noexcept {
  if (!take_digits(text, 4, year)) return false;
  const bool with_dashes = take_char(text, '-');
  return take_digits(text, 2, month) && (!with_dashes || take_char(text, '-')) &&
         take_digits(text, 2, day);
}

// "12:00", "12:00:05", "12:00:05.25"; "1200", "120005", "120005.25"
bool take_clock(std::string_view& text, ClockTime& clock) noexcept {
  if (!take_digits(text, 2, clock.hour)) return false;
  const bool with_colons = take_char(text, ':');
  if (!take_digits(text, 2, clock.minute)) return false;
  if (with_colons ? take_char(text, ':') : starts_with_digit(text)) {
    if (!take_digits(text, 2, clock.second)) return false;
    if (take_char(text, '.') || take_char(text, ',')) {
      int digit = 0;
      if (!take_digits(text, 1, digit)) return false;
      for (int scale = 100;; scale /= 10) {
        clock.millisecond += digit * scale;
        if (!take_digits(text, 1, digit)) break;
      }
    }
  }
  return clock.hour <= 23 && clock.minute <= 59 && clock.second <= 60;
}

// "Z", "+02:00", "-0530", "+02": minutes east of Greenwich.
bool take_zone(std::string_view& text, int& minutes) noexcept {
  minutes = 0;
  if (take_char(text, 'Z') || take_char(text, 'z')) return true;
  const int sign = take_char(text, '-') ? -1 : 1;
  if (sign == 1 && !take_char(text, '+')) return false;
  int hours = 0;
  if (!take_digits(text, 2, hours)) return false;
  const bool more = take_char(text, ':') || !text.empty();
  if (more && !take_digits(text, 2, minutes)) return false;
  if (hours > 23 || minutes > 59) return false;
  minutes = sign * (hours * 60 + minutes);
  return true;
}

// An option that is parsed by `parse`; where that fails, the error says what is `right`.
template <class Parse>
CLI::Option* add_parsed(CLI::App& app, const std::string& name, const std::string& type,
                        Parse parse, const std::string& right, const std::string& description) {
  const std::string long_name =
      name.substr(name.find(',') + 1);  // All of it, if there is no short one.
  return app
      .add_option_function<std::string>(
          name,
          [long_name, parse, right](const std::string& text) {
            if (!parse(text))
              throw CLI::ValidationError(long_name, fmt::format("'{}' is not {}", text, right));
          },
          description)
      ->type_name(type);
}

// Names a range in an error message.
std::string numbers_text(std::uint64_t least, std::uint64_t most) {
  return most == std::numeric_limits<std::uint64_t>::max()
             ? fmt::format("a whole number from {} up", least)
             : fmt::format("a whole number from {} to {}", least, most);
}
constexpr const char* kSizes = "a size: write bytes, or for example 512KiB, 8MiB, 1GiB";

}  // namespace

std::optional<std::uint64_t> parse_number(std::string_view text) noexcept {
  const auto number = take_number(text);
  return text.empty() ? number : std::nullopt;
}

std::optional<std::uint64_t> parse_size(std::string_view text) noexcept {
  const auto number = take_number(text);
  if (!number) return std::nullopt;
  std::string unit;
  for (const char c : text) unit += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (unit.empty() || unit == "b") return number;
  constexpr std::string_view kPrefixes = "kmgt";
  const std::size_t prefix = kPrefixes.find(unit[0]);
  if (prefix == std::string_view::npos) return std::nullopt;
  const std::string rest = unit.substr(1);
  if (!rest.empty() && rest != "b" && rest != "ib") return std::nullopt;
  std::uint64_t factor = 1;
  for (std::size_t i = 0; i <= prefix; ++i) factor *= rest == "b" ? 1000 : 1024;
  return multiply(*number, factor);
}

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) noexcept {
  constexpr std::pair<std::string_view, std::uint64_t> kUnits[] = {{"ns", 1},
                                                                   {"us", 1'000},
                                                                   {"ms", 1'000'000},
                                                                   {"s", 1'000'000'000},
                                                                   {"m", 60'000'000'000},
                                                                   {"h", 3'600'000'000'000}};
  const auto number = take_number(text);
  if (!number) return std::nullopt;
  for (const auto& [name, factor] : kUnits) {
    if (text != name) continue;
    const auto total = multiply(*number, factor);
    if (!total || *total > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return std::nullopt;
    return std::chrono::nanoseconds{static_cast<std::int64_t>(*total)};
  }
  return std::nullopt;
}

std::optional<std::int64_t> parse_time_ms(std::string_view text) {
  if (const auto number = parse_number(text)) {
    if (*number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return std::nullopt;
    return static_cast<std::int64_t>(*number);
  }
  int year = 0;
  int month = 0;
  int day = 0;
  ClockTime clock;
  if (!take_date(text, year, month, day)) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{year},
                                         std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  if (!date.ok()) return std::nullopt;
  if ((take_char(text, 'T') || take_char(text, 't') || take_char(text, ' ')) &&
      !take_clock(text, clock)) {
    return std::nullopt;
  }
  std::int64_t seconds = 0;
  if (text.empty()) {
    std::tm local{};
    local.tm_year = year - 1900;
    local.tm_mon = month - 1;
    local.tm_mday = day;
    local.tm_hour = clock.hour;
    local.tm_min = clock.minute;
    local.tm_sec = clock.second;
    local.tm_isdst = -1;  // Whatever the zone says for that day.
    seconds = std::mktime(&local);
  } else {
    int east_minutes = 0;
    if (!take_zone(text, east_minutes) || !text.empty()) return std::nullopt;
    const std::int64_t days = std::chrono::sys_days{date}.time_since_epoch().count();
    seconds =
        days * 86'400 + clock.hour * 3'600 + clock.minute * 60 + clock.second - east_minutes * 60;
  }
  const std::int64_t time_ms = seconds * 1000 + clock.millisecond;
  if (time_ms < 0) return std::nullopt;
  return time_ms;
}

bool is_end(std::string_view place) noexcept { return place == "end" || place == "latest"; }
bool is_beginning(std::string_view place) noexcept {
  return place == "beginning" || place == "earliest";
}

From parse_place(const std::string& what, const std::string& text) {
  if (is_end(text)) return From::end;
  if (is_beginning(text)) return From::beginning;
  if (text.starts_with('@')) {
    if (const auto time_ms = parse_time_ms(std::string_view{text}.substr(1)))
      return From::time_ms(*time_ms);
    throw Failure{kExitUsage,
                  fmt::format("{}: '{}' is not a time: write for example @1700000000000 "
                              "(milliseconds since 1970) or @2024-05-01T12:00:00Z",
                              what, text)};
  }
  if (const auto offset = parse_number(text)) return From::offset(*offset);
  if (text.starts_with('-')) {
    if (const auto count = parse_number(std::string_view{text}.substr(1)))
      return From::last(*count);
  }
  if (const auto age = parse_duration(text)) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return From::time_ms(std::chrono::duration_cast<std::chrono::milliseconds>(now - *age).count());
  }
  throw Failure{
      kExitUsage,
      fmt::format("{}: '{}' is no place in a topic: write beginning or earliest, end or latest, an "
                  "offset like 42, -10 for the last ten, 1h for the last hour, or a time like "
                  "@2024-05-01T12:00:00Z",
                  what, text)};
}

CLI::Option* add_number(CLI::App& app, const std::string& name, std::uint64_t& target,
                        std::uint64_t least, std::uint64_t most, const std::string& description) {
  const auto parse = [&target, least, most](const std::string& text) {
    const auto number = parse_number(text);
    if (!number || *number < least || *number > most) return false;
    target = *number;
    return true;
  };
  return add_parsed(app, name, "N", parse, numbers_text(least, most), description);
}

CLI::Option* add_number(CLI::App& app, const std::string& name,
                        std::optional<std::uint64_t>& target, std::uint64_t least,
                        std::uint64_t most, const std::string& description) {
  const auto parse = [&target, least, most](const std::string& text) {
    target = parse_number(text);
    return target && *target >= least && *target <= most;
  };
  return add_parsed(app, name, "N", parse, numbers_text(least, most), description);
}

CLI::Option* add_size(CLI::App& app, const std::string& name, std::uint64_t& target,
                      const std::string& description) {
  const auto parse = [&target](const std::string& text) {
    const auto size = parse_size(text);
    if (size) target = *size;
    return size.has_value();
  };
  return add_parsed(app, name, "SIZE", parse, kSizes, description);
}

CLI::Option* add_size(CLI::App& app, const std::string& name, std::optional<std::uint64_t>& target,
                      const std::string& description) {
  const auto parse = [&target](const std::string& text) {
    target = parse_size(text);
    return target.has_value();
  };
  return add_parsed(app, name, "SIZE", parse, kSizes, description);
}

CLI::Option* add_duration(CLI::App& app, const std::string& name, std::chrono::nanoseconds& target,
                          const std::string& description) {
  const auto parse = [&target](const std::string& text) {
    const auto duration = parse_duration(text);
    if (!duration || duration->count() == 0) return false;
    target = *duration;
    return true;
  };
  return add_parsed(app, name, "DURATION", parse,
                    "a duration above 0: write for example 500ms, 2s, 1m", description);
}

CLI::Option* add_words(CLI::App& app, const std::string& name, std::vector<std::string>& target,
                       const std::string& description) {
  const auto take = [&target](const CLI::results_t& words) {
    target = words;
    return true;
  };
  // Not an option of type vector: CLI11 would split "[a,b]" and drop "{}". It collects words, also those
  // after --, until it has the minimum number of them; so the minimum is out of reach.
  constexpr int kAny = CLI::detail::expected_max_vector_size;
  return app.add_option(name, CLI::callback_t{take}, description)
      ->expected(kAny, kAny)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace leat::cli
