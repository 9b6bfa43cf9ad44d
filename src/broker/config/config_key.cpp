#include "config_key.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/un.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <charconv>
#include <limits>
#include <optional>
#include <span>

namespace leat::broker {
namespace {

using boost::asio::ip::address;

// The number at the beginning of a text, which is taken from it.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};
constexpr Unit kNumbers[] = {{"", 1}};
constexpr Unit kSizes[] = {{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}};
constexpr Unit kDurations[] = {{"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}};

std::optional<std::uint64_t> take_all(std::string_view text, std::span<const Unit> units) {
  const auto number = take_number(text);
  const auto unit = std::find_if(units.begin(), units.end(),
                                 [&](const Unit& known) { return known.name == text; });
  if (!number || unit == units.end()) return std::nullopt;
  if (*number > std::numeric_limits<std::uint64_t>::max() / unit->factor) return std::nullopt;
  return *number * unit->factor;
}

std::string print_with(std::uint64_t value, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (value % unit.factor == 0 && (value != 0 || unit.factor == 1))
      return fmt::format("{}{}", value / unit.factor, unit.name);
  }
  return fmt::format("{}", value);
}

// How many characters must be inserted, deleted or replaced to turn one text into the other.
std::size_t distance(std::string_view one, std::string_view other) {
  std::vector<std::size_t> row(other.size() + 1);
  for (std::size_t k = 0; k < row.size(); ++k) row[k] = k;
  for (std::size_t i = 0; i < one.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t k = 0; k < other.size(); ++k) {
      const std::size_t replaced = diagonal + (one[i] == other[k] ? 0 : 1);
      diagonal = row[k + 1];
      row[k + 1] = std::min({row[k] + 1, row[k + 1] + 1, replaced});
    }
  }
  return row.back();
}

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

std::string with_limits(const char* help, const std::string& least, const std::string& most) {
  return fmt::format("{} ({} to {})", help, least, most);
}

Problem wrong(std::string sentence) { return {Errc::invalid_argument, std::move(sentence)}; }

}  // namespace

// --- Kinds of keys --------------------------------------------------------------------------------------

ConfigKey text_key(const char* name, Setting<std::string> setting, const char* placeholder,
                   const char* wants, const char* help) {
  return {name,
          placeholder,
          wants,
          help,
          [=](Config& config, std::string_view text) {
            if (text.find('\0') != std::string_view::npos) return false;
            setting.set(config, std::string{text});
            return true;
          },
          [=](const Config& config) { return setting.in(config); }};
}

ConfigKey number_key(const char* name, Setting<std::uint64_t> setting, std::uint64_t least,
                     std::uint64_t most, const char* help) {
  return {name,
          "N",
          fmt::format("a whole number from {} to {}", least, most),
          with_limits(help, fmt::to_string(least), fmt::to_string(most)),
          [=](Config& config, std::string_view text) {
            const auto number = take_all(text, kNumbers);
            if (!number || *number < least || *number > most) return false;
            setting.set(config, *number);
            return true;
          },
          [=](const Config& config) { return print_with(setting.in(config), kNumbers); }};
}

ConfigKey size_key(const char* name, Setting<std::uint64_t> setting, std::uint64_t least,
                   std::uint64_t most, const char* help) {
  const std::string from = print_with(least, kSizes);
  const std::string to = print_with(most, kSizes);
  return {name,
          "SIZE",
          fmt::format("a size from {} to {}: bytes, or for example 512KiB, 8MiB", from, to),
          with_limits(help, from, to),
          [=](Config& config, std::string_view text) {
            const auto bytes = take_all(text, kSizes);
            if (!bytes || *bytes < least || *bytes > most) return false;
            setting.set(config, *bytes);
            return true;
          },
          [=](const Config& config) { return print_with(setting.in(config), kSizes); }};
}

ConfigKey duration_key(const char* name, Setting<std::chrono::milliseconds> setting,
                       std::uint64_t least_ms, const char* help) {
  constexpr std::uint64_t kMostMs = 24 * 3'600'000;
  const std::string from = print_with(least_ms, kDurations);
  return {name,
          "DURATION",
          fmt::format("a duration from {} to 24h, for example 500ms, 10s, 5m", from),
          with_limits(help, from, "24h"),
          [=](Config& config, std::string_view text) {
            const auto ms = take_all(text, kDurations);
            if (!ms || *ms < least_ms || *ms > kMostMs) return false;
            setting.set(config, std::chrono::milliseconds{*ms});
            return true;
          },
          [=](const Config& config) {
            return print_with(static_cast<std::uint64_t>(setting.in(config).count()), kDurations);
          }};
}

ConfigKey word_key(const char* name, const std::vector<std::string>& words, const char* help,
                   std::function<void(Config&, std::size_t)> set,
                   std::function<std::size_t(const Config&)> get) {
  return {name,
          fmt::format("{}", fmt::join(words, "|")),
          fmt::format("one of {}", fmt::join(words, ", ")),
          help,
          [words, set = std::move(set)](Config& config, std::string_view text) {
            const auto found = std::find(words.begin(), words.end(), text);
            if (found == words.end()) return false;
            set(config, static_cast<std::size_t>(found - words.begin()));
            return true;
          },
          [words, get = std::move(get)](const Config& config) { return words[get(config)]; }};
}

ConfigKey addresses_key(const char* name, Setting<std::vector<std::string>> setting,
                        const char* help) {
  return {
      name,
      "ADDRESS,...",
      "numeric addresses, such as 127.0.0.1 and ::1",
      help,
      [=](Config& config, std::string_view text) {
        std::vector<std::string> addresses;
        while (true) {
          const std::size_t comma = text.find(',');
          boost::system::error_code failed;
          const address one =
              boost::asio::ip::make_address(std::string{text.substr(0, comma)}, failed);
          if (failed) return false;
          addresses.push_back(one.to_string());
          if (comma == std::string_view::npos) break;
          text.remove_prefix(comma + 1);
        }
        setting.set(config, std::move(addresses));
        return true;
      },
      [=](const Config& config) { return fmt::format("{}", fmt::join(setting.in(config), ",")); }};
}

ConfigKey ports_key(const char* name, Setting<PortRange> setting, const char* help) {
  return {name,
          "PORT-PORT",
          "two port numbers, such as 5501-8999",
          help,
          [=](Config& config, std::string_view text) {
            const auto first = take_number(text);
            if (!first || !text.starts_with('-')) return false;
            text.remove_prefix(1);
            const auto last = take_number(text);
            if (!last || !text.empty() || *first < 1 || *first > *last || *last > UINT16_MAX)
              return false;
            setting.set(config,
                        {static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last)});
            return true;
          },
          [=](const Config& config) {
            const PortRange range = setting.in(config);
            return range == PortRange{} ? "" : fmt::format("{}-{}", range.first, range.last);
          }};
}

// --- Checks ---------------------------------------------------------------------------------------------

Outcome<void> check_addresses(const char* key, const std::vector<std::string>& addresses,
                              const Config& config) {
  for (const std::string& text : addresses) {
    boost::system::error_code failed;
    const address one = boost::asio::ip::make_address(text, failed);
    if (failed) return wrong(fmt::format("{}: '{}' is not a numeric address", key, text));
    if (one.is_loopback() || config.insecure) continue;
    return wrong(
        fmt::format("{}: other machines can reach {}, and without TLS everybody on the way reads "
                    "passwords and messages: set insecure = true if you trust the network",
                    key, text));
  }
  if (addresses.empty()) return wrong(fmt::format("{}: there is none", key));
  return {};
}

Outcome<void> check_socket_path(const char* key, const std::string& path) {
  constexpr std::size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  if (path.size() <= kLongest) return {};
  return wrong(fmt::format("{}: '{}' has {} bytes: choose a path of at most {}", key, path,
                           path.size(), kLongest));
}

// --- A key, and all of them -----------------------------------------------------------------------------

std::string ConfigKey::variable() const {
  std::string text = "LEAT_";
  for (const char c : name)
    text += c == '.' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return text;
}

std::string ConfigKey::flag() const {
  std::string text = "--" + name;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '.' || c == '_'; }, '-');
  return text;
}

void ConfigKeys::add(std::vector<ConfigKey> keys, Check check) {
  for (ConfigKey& key : keys) keys_.push_back(std::move(key));
  if (check) checks_.push_back(std::move(check));
}

bool ConfigKeys::is_nearly_a_key(std::string_view name) const {
  constexpr std::size_t kMost = 2;
  return std::any_of(keys_.begin(), keys_.end(), [&](const ConfigKey& key) {
    return key.name.size() > 2 * kMost && distance(name, key.name) <= kMost;
  });
}

bool ConfigKeys::is_section(const std::string& name) const {
  return std::any_of(keys_.begin(), keys_.end(),
                     [&](const ConfigKey& key) { return key.name.starts_with(name + "."); });
}

std::string ConfigKeys::nearest(std::string_view name) const {
  constexpr std::size_t kLongest = 64;  // Of a name that can be near to one of ours.
  std::string nearest;
  std::size_t least = std::min<std::size_t>(3, last_part(name).size() / 2) + 1;
  if (name.size() > kLongest) return nearest;
  for (const ConfigKey& key : keys_) {
    const std::size_t parts = distance(last_part(name), last_part(key.name));
    const std::size_t far = std::min(distance(name, key.name), parts);
    if (far >= least) continue;
    least = far;
    nearest = key.name;
  }
  for (const ConfigKey& key : keys_) {
    const std::string section = key.name.substr(0, key.name.rfind('.'));
    const std::size_t far = distance(name, section);
    if (section != key.name && far == 0) return {};  // It is one, and not a key.
    if (section == key.name || far >= least) continue;
    least = far;
    nearest = section;
  }
  return nearest;
}

Outcome<void> ConfigKeys::set(Config& config, std::string_view name, std::string_view text) const {
  for (const ConfigKey& key : keys_) {
    if (key.name != name) continue;
    if (key.set(config, text)) return {};
    return wrong(fmt::format("{} = '{}' is wrong: write {}", name, text, key.wants));
  }
  const std::string near = nearest(name);
  return Problem{Errc::not_found,
                 fmt::format("there is no key '{}'{}", name,
                             near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near))};
}

Outcome<void> ConfigKeys::check(const Config& config) const {
  for (const Check& check : checks_) {
    if (auto right = check(config); !right) return right;
  }
  return {};
}

std::vector<std::string> ConfigKeys::take_changes(Config& running, const Config& before,
                                                  const Config& after) const {
  std::vector<std::string> later;
  for (const ConfigKey& key : keys_) {
    const std::string wanted = key.print(after);
    if (wanted == key.print(before)) continue;
    if (!key.is_live || !key.set(running, wanted)) later.push_back(key.name);
  }
  return later;
}

}  // namespace leat::broker
