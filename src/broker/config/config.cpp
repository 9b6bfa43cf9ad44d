#include "config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/un.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <limits>
#include <optional>

#include "leat/admin.hpp"

namespace leat::broker {
namespace {

using boost::asio::ip::address;

constexpr std::uint64_t kMany = 1'000'000;
constexpr std::uint64_t kLargestMessage =
    2047 * 1024;  // A batch may take half of a segment of 4 MiB.
constexpr std::uint16_t kDataPorts = 3499;

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

ConfigKey text_key(const char* name, std::string Config::*member, const char* wants,
                   const char* help) {
  return {name, wants, help,
          [member](Config& config, std::string_view text) {
            if (text.find('\0') != std::string_view::npos) return false;
            config.*member = text;
            return true;
          },
          [member](const Config& config) { return config.*member; }};
}

ConfigKey number_key(const char* name, std::uint64_t Config::*member, std::uint64_t least,
                     std::uint64_t most, const char* help) {
  return {name, fmt::format("a whole number from {} to {}", least, most), help,
          [=](Config& config, std::string_view text) {
            const auto number = take_all(text, kNumbers);
            if (!number || *number < least || *number > most) return false;
            config.*member = *number;
            return true;
          },
          [member](const Config& config) { return print_with(config.*member, kNumbers); }};
}

ConfigKey size_key(const char* name, std::uint64_t Config::*member, std::uint64_t least,
                   std::uint64_t most, const char* help) {
  return {name,
          fmt::format("a size from {} to {}: bytes, or for example 512KiB, 8MiB",
                      print_with(least, kSizes), print_with(most, kSizes)),
          help,
          [=](Config& config, std::string_view text) {
            const auto bytes = take_all(text, kSizes);
            if (!bytes || *bytes < least || *bytes > most) return false;
            config.*member = *bytes;
            return true;
          },
          [member](const Config& config) { return print_with(config.*member, kSizes); }};
}

ConfigKey duration_key(const char* name, std::chrono::milliseconds Config::*member,
                       std::uint64_t least_ms, const char* help) {
  constexpr std::uint64_t kMostMs = 24 * 3'600'000;
  return {name,
          fmt::format("a duration from {} to 24h, for example 500ms, 10s, 5m",
                      print_with(least_ms, kDurations)),
          help,
          [=](Config& config, std::string_view text) {
            const auto ms = take_all(text, kDurations);
            if (!ms || *ms < least_ms || *ms > kMostMs) return false;
            config.*member = std::chrono::milliseconds{*ms};
            return true;
          },
          [member](const Config& config) {
            return print_with(static_cast<std::uint64_t>((config.*member).count()), kDurations);
          }};
}

// One of some words; `values` are in the order of the words.
template <class Value>
ConfigKey choice_key(const char* name, Value Config::*member, std::vector<std::string> words,
                     std::vector<Value> values, const char* help) {
  const std::string wants = fmt::format("one of {}", fmt::join(words, ", "));
  return {name, wants, help,
          [=](Config& config, std::string_view text) {
            const auto found = std::find(words.begin(), words.end(), text);
            if (found == words.end()) return false;
            config.*member = values[static_cast<std::size_t>(found - words.begin())];
            return true;
          },
          [=](const Config& config) {
            const auto found = std::find(values.begin(), values.end(), config.*member);
            return words[static_cast<std::size_t>(found - values.begin())];
          }};
}

ConfigKey addresses_key(const char* name, std::vector<std::string> Config::*member,
                        const char* help) {
  return {
      name, "numeric addresses, such as 127.0.0.1 and ::1", help,
      [member](Config& config, std::string_view text) {
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
        config.*member = std::move(addresses);
        return true;
      },
      [member](const Config& config) { return fmt::format("{}", fmt::join(config.*member, ",")); }};
}

ConfigKey ports_key(const char* name, PortRange Config::*member, const char* help) {
  return {
      name, "two port numbers, such as 5501-8999", help,
      [member](Config& config, std::string_view text) {
        const auto first = take_number(text);
        if (!first || !text.starts_with('-')) return false;
        text.remove_prefix(1);
        const auto last = take_number(text);
        if (!last || !text.empty() || *first < 1 || *first > *last || *last > UINT16_MAX)
          return false;
        config.*member = {static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last)};
        return true;
      },
      [member](const Config& config) {
        const PortRange range = config.*member;
        return range == PortRange{} ? "" : fmt::format("{}-{}", range.first, range.last);
      }};
}

std::vector<ConfigKey> server_keys() {
  return {
      text_key("dir", &Config::dir, "a directory", "directory of topics in memory"),
      text_key("data_dir", &Config::data_dir, "a directory", "directory of durable topics"),
      text_key("state_dir", &Config::state_dir, "a directory",
               "directory of topics' passwords and ports; default: +broker in the data directory"),
      choice_key<DataAuth>("data_auth", &Config::data_auth, {"password", "joined", "open"},
                           {DataAuth::password, DataAuth::joined, DataAuth::open},
                           "who may use a topic's data ports: those with its password, also "
                           "addresses that joined it, or everybody"),
      choice_key<bool>("insecure", &Config::insecure, {"false", "true"}, {false, true},
                       "allow addresses that other machines can reach, without encryption"),
      text_key("admin_password_file", &Config::admin_password_file, "a file",
               "file whose first line becomes the administrator's password; default: one is made "
               "at the first start"),
      number_key("lightq.port", &Config::lightq_port, 0, UINT16_MAX,
                 "port of LightQ's administration; 0: any free one"),
      addresses_key("lightq.addresses", &Config::lightq_addresses, "addresses to listen on"),
      text_key(
          "lightq.socket", &Config::lightq_socket, "a path",
          "Unix socket of LightQ's administration; default: lightq.sock in the state directory"),
      text_key("lightq.advertise", &Config::lightq_advertise, "a host name or an address",
               "host that clients are told to connect to; default: the address they reached"),
      ports_key("lightq.data_ports", &Config::lightq_data_ports,
                "ports for topics; default: the 3,499 after lightq.port"),
  };
}

std::vector<ConfigKey> limit_keys() {
  return {
      size_key("limits.message_size", &Config::max_message_bytes, 1, kLargestMessage,
               "largest message"),
      size_key("limits.command_size", &Config::max_command_bytes, 1024, 1 << 20,
               "largest administration command"),
      number_key("limits.connections", &Config::max_connections, 1, kMany, "connections in all"),
      number_key("limits.connections_per_address", &Config::max_connections_per_address, 1, kMany,
                 "connections from one address"),
      number_key("limits.topics", &Config::max_topics, 1, kMany, "topics"),
      duration_key("limits.handshake_time", &Config::handshake_time, 100,
                   "how long a client may take to introduce itself"),
      duration_key("limits.idle_time", &Config::idle_time, 0,
                   "how long an administration connection may be silent; 0ms: for ever"),
      duration_key("limits.topic_idle_time", &Config::topic_idle_time, 1,
                   "how long a topic stays open that no client uses"),
      choice_key<SlowSubscriber>(
          "subscribers.slow", &Config::slow_subscriber, {"overtaken", "disconnect", "wait"},
          {SlowSubscriber::overtaken, SlowSubscriber::disconnect, SlowSubscriber::wait},
          "a subscriber that is too slow loses messages, its connection, or stops producers"),
      choice_key<std::string>(
          "log.level", &Config::log_level,
          {"trace", "debug", "info", "event", "warn", "error", "critical", "alert", "emerg", "off"},
          {"trace", "debug", "info", "info", "warn", "error", "critical", "critical", "critical",
           "off"},
          "what is logged; event, alert and emerg are LightQ's names"),
      text_key("log.file", &Config::log_file, "a file", "where it is logged; default: stderr"),
  };
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

// Also a name that stands in the wrong section, or in none.
std::string nearest_key(std::string_view name) {
  constexpr std::size_t kLongest = 64;  // Of a name that can be near to one of ours.
  std::string nearest;
  std::size_t least = std::min<std::size_t>(3, last_part(name).size() / 2) + 1;
  if (name.size() > kLongest) return nearest;
  for (const ConfigKey& key : config_keys()) {
    const std::size_t parts = distance(last_part(name), last_part(key.name));
    const std::size_t far = std::min(distance(name, key.name), parts);
    if (far >= least) continue;
    least = far;
    nearest = key.name;
  }
  for (const ConfigKey& key : config_keys()) {
    const std::string section = key.name.substr(0, key.name.rfind('.'));
    const std::size_t far = distance(name, section);
    if (section != key.name && far == 0) return {};  // It is one, and not a key.
    if (section == key.name || far >= least) continue;
    least = far;
    nearest = section;
  }
  return nearest;
}

// What is wrong with them; empty: nothing.
std::string problem_of_socket(Config config) {
  constexpr std::size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  fill_in_paths(config);
  const std::string& path = config.lightq_socket;
  if (path.size() <= kLongest) return {};
  return fmt::format("lightq.socket: '{}' has {} bytes: choose a path of at most {}", path,
                     path.size(), kLongest);
}

// A directory that is missing is made when the log is opened.
std::string problem_of_log(const std::string& file) {
  if (file.empty()) return {};
  std::error_code ignored;
  if (file.ends_with('/') || std::filesystem::is_directory(file, ignored))
    return fmt::format("log.file: '{}' is a directory: choose a file in it", file);
  std::filesystem::path above = std::filesystem::path{file}.parent_path();
  while (!above.empty() && !std::filesystem::exists(above, ignored)) above = above.parent_path();
  if (above.empty() || std::filesystem::is_directory(above, ignored)) return {};
  return fmt::format("log.file: '{}' is in {}, which is not a directory: choose another file", file,
                     above.string());
}

}  // namespace

void fill_in_paths(Config& config) {
  config.data_dir = leat::data_directory(config.data_dir);
  if (config.state_dir.empty()) config.state_dir = config.data_dir + "/+broker";
  if (config.lightq_socket.empty()) config.lightq_socket = config.state_dir + "/lightq.sock";
}

bool is_nearly_a_key(std::string_view name) {
  constexpr std::size_t kMost = 2;
  const auto& keys = config_keys();
  return std::any_of(keys.begin(), keys.end(), [&](const ConfigKey& key) {
    return key.name.size() > 2 * kMost && distance(name, key.name) <= kMost;
  });
}

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

const std::vector<ConfigKey>& config_keys() {
  static const std::vector<ConfigKey> keys = [] {
    std::vector<ConfigKey> all = server_keys();
    for (ConfigKey& key : limit_keys()) all.push_back(std::move(key));
    return all;
  }();
  return keys;
}

Outcome<void> set_key(Config& config, std::string_view name, std::string_view text) {
  for (const ConfigKey& key : config_keys()) {
    if (key.name != name) continue;
    if (key.set(config, text)) return {};
    return Problem{Errc::invalid_argument,
                   fmt::format("{} = '{}' is wrong: write {}", name, text, key.wants)};
  }
  const std::string nearest = nearest_key(name);
  return Problem{Errc::not_found,
                 fmt::format("there is no key '{}'{}", name,
                             nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest))};
}

PortRange Config::data_ports() const {
  if (lightq_data_ports != PortRange{}) return lightq_data_ports;
  const auto last = std::min<std::uint64_t>(lightq_port + kDataPorts, UINT16_MAX);
  return {static_cast<std::uint16_t>(std::min(lightq_port + 1, last)),
          static_cast<std::uint16_t>(last)};
}

bool ConfigKey::is_live() const {
  return name == "data_auth" || name == "log.level" || name.starts_with("limits.") ||
         name.starts_with("subscribers.");
}

std::vector<std::string> take_changes(Config& running, const Config& before, const Config& after) {
  std::vector<std::string> later;
  for (const ConfigKey& key : config_keys()) {
    const std::string wanted = key.print(after);
    if (wanted == key.print(before)) continue;
    if (!key.is_live() || !key.set(running, wanted)) later.push_back(key.name);
  }
  return later;
}

Outcome<void> check_config(const Config& config) {
  const auto wrong = [](std::string sentence) {
    return Problem{Errc::invalid_argument, std::move(sentence)};
  };
  const std::string& host = config.lightq_advertise;
  const auto is_of_host = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == ':' || c == '[' || c == ']';
  };
  if (!std::all_of(host.begin(), host.end(), is_of_host))
    return wrong(fmt::format("lightq.advertise: '{}' is no host name and no address", host));
  for (const std::string& text : config.lightq_addresses) {
    boost::system::error_code failed;
    const address one = boost::asio::ip::make_address(text, failed);
    if (failed) return wrong(fmt::format("lightq.addresses: '{}' is not a numeric address", text));
    if (one.is_loopback() || config.insecure) continue;
    return wrong(fmt::format(
        "lightq.addresses: other machines can reach {}, and without TLS everybody on the way reads "
        "passwords and messages: set insecure = true if you trust the network",
        text));
  }
  if (config.lightq_addresses.empty()) return wrong("lightq.addresses: there is none");
  const PortRange ports = config.data_ports();
  if (config.lightq_port >= ports.first && config.lightq_port <= ports.last)
    return wrong(fmt::format("lightq.data_ports: {}-{} contains lightq.port, {}", ports.first,
                             ports.last, config.lightq_port));
  for (const std::string& problem : {problem_of_socket(config), problem_of_log(config.log_file)})
    if (!problem.empty()) return wrong(problem);
  return {};
}

}  // namespace leat::broker
