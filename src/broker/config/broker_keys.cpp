#include "config.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "config_key.hpp"
#include "leat/admin.hpp"

namespace leat::broker {
namespace {

constexpr std::uint64_t kMany = 1'000'000;
constexpr std::uint64_t kLargestMessage =
    2047 * 1024;  // A batch may take half of a segment of 4 MiB.

std::vector<ConfigKey> keys_for_next_start() {
  return {
      text_key("dir", &Config::dir, "DIRECTORY", "a directory", "directory of topics in memory"),
      text_key("data_dir", &Config::data_dir, "DIRECTORY", "a directory",
               "directory of durable topics"),
      text_key("state_dir", &Config::state_dir, "DIRECTORY", "a directory",
               "directory of what the broker remembers; default: +broker in the data directory"),
      choice_key<bool>("insecure", &Config::insecure, {"false", "true"}, {false, true},
                       "allow addresses that other machines can reach, without encryption"),
      text_key("admin_password_file", &Config::admin_password_file, "FILE", "a file",
               "file whose first line becomes the administrator's password; default: one is made "
               "at the first start"),
      text_key("log.file", &Config::log_file, "FILE", "a file",
               "where it is logged; default: stderr"),
  };
}

std::vector<ConfigKey> live_keys() {
  return {
      choice_key<DataAuth>("data_auth", &Config::data_auth, {"password", "joined", "open"},
                           {DataAuth::password, DataAuth::joined, DataAuth::open},
                           "who may use a topic's data ports: those with its password, also "
                           "addresses that joined it, or everybody"),
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
          "what is logged; event, alert and emerg are other names"),
  };
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
}

ConfigKeys::ConfigKeys() {
  std::vector<ConfigKey> live = live_keys();
  for (ConfigKey& key : live) key.is_live = true;
  add(keys_for_next_start(), [](const Config& config) -> Outcome<void> {
    const std::string problem = problem_of_log(config.log_file);
    if (problem.empty()) return {};
    return Problem{Errc::invalid_argument, problem};
  });
  keys_.insert(keys_.end(), live.begin(), live.end());
}

}  // namespace leat::broker
