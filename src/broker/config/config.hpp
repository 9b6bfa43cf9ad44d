// Everything that can be configured in a broker.
//
//     Config config;                                   // the defaults
//     config.max_topics = 100;
//     config.of<lines::Settings>().port = 5600;       // of a protocol
//
// broker_keys.cpp has the keys that set it; those of a protocol are in its folder. config_file.hpp reads the sources. Constant
// once it is read, but for what is_live says.
#pragma once

#include <any>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <typeindex>

#include "broker/store/stored_topic.hpp"

namespace leat::broker {

struct Config {
  std::string dir;        // Empty: as leat::TopicOptions::directory.
  std::string data_dir;   // Empty: as the library's.
  std::string state_dir;  // Empty: `+broker` in the data directory.
  DataAuth data_auth = DataAuth::password;
  bool insecure = false;
  std::string admin_password_file;  // Empty: the password is made at the first start.

  std::uint64_t max_message_bytes = 1024 * 1024;
  std::uint64_t max_command_bytes = 64 * 1024;
  std::uint64_t max_connections = 20'000;
  std::uint64_t max_connections_per_address = 20'000;
  std::uint64_t max_topics = 10'000;
  std::chrono::milliseconds handshake_time{10'000};
  std::chrono::milliseconds idle_time{0};  // 0: as long as the client wants.
  std::chrono::milliseconds topic_idle_time{10'000};

  SlowSubscriber slow_subscriber = SlowSubscriber::overtaken;
  std::string log_level = "info";
  std::string log_file;  // Empty: stderr.

  // The settings of a protocol, which are a struct of its own. `Config` itself is the broker's.
  template <class Settings>
  Settings& of();
  template <class Settings>
  const Settings& of() const;

 private:
  std::map<std::type_index, std::any> of_protocols_;  // Those that were set or asked for.
};

// Writes down the directories that a broker has without being told.
void fill_in_paths(Config& config);

template <class Settings>
Settings& Config::of() {
  if constexpr (std::is_same_v<Settings, Config>) {
    return *this;
  } else {
    std::any& settings = of_protocols_[typeid(Settings)];
    if (!settings.has_value()) settings.emplace<Settings>();
    return *std::any_cast<Settings>(&settings);
  }
}

template <class Settings>
const Settings& Config::of() const {
  if constexpr (std::is_same_v<Settings, Config>) {
    return *this;
  } else {
    static const Settings defaults;
    const auto found = of_protocols_.find(typeid(Settings));
    return found == of_protocols_.end() ? defaults : *std::any_cast<Settings>(&found->second);
  }
}

}  // namespace leat::broker
