// Everything that can be configured in a broker: one struct, and one table of the keys that set it.
//
//     Config config;                                       // the defaults
//     auto set = set_key(config, "lightq.port", "5600");   // or what a file, a variable or a flag says
//     if (set) set = check_config(config);                 // what only makes sense together
//     for (const ConfigKey& key : config_keys()) add_flag(key.flag(), key.help, key.default_text());
//
// A key's name, range, help and default stand here once; the names of its variable and of its flag follow from its
// name. config_file.hpp reads the sources. Constant once it is read; the table may be used by any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/store/stored_topic.hpp"
#include "outcome/outcome.hpp"

namespace leat::broker {

struct PortRange {
  std::uint16_t first = 0;  // Both 0: after lightq_port.
  std::uint16_t last = 0;
  friend bool operator==(const PortRange&, const PortRange&) = default;
};

struct Config {
  std::string dir;        // Empty: as leat::TopicOptions::directory.
  std::string data_dir;   // Empty: as the library's.
  std::string state_dir;  // Empty: `+broker` in the data directory.
  DataAuth data_auth = DataAuth::password;
  bool insecure = false;
  std::string admin_password_file;  // Empty: the password is made at the first start.

  std::uint64_t lightq_port = 5500;
  std::vector<std::string> lightq_addresses{"127.0.0.1", "::1"};
  std::string lightq_socket;     // Empty: `lightq.sock` in the state directory.
  std::string lightq_advertise;  // Empty: the address that the client reached.
  PortRange lightq_data_ports;

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

  // The configured range, or the one that follows from the port.
  PortRange data_ports() const;
};

// Writes down the directories and the socket that a broker has without being told.
void fill_in_paths(Config& config);

struct ConfigKey {
  std::string name;   // As in the file: "lightq.port" is `port` in the section `[lightq]`.
  std::string wants;  // What a value is: "a whole number from 0 to 65535".
  std::string help;
  std::function<bool(Config&, std::string_view)>
      set;  // False for a wrong value; then nothing changed.
  std::function<std::string(const Config&)> print;

  std::string variable() const;  // LEAT_LIGHTQ_PORT
  std::string flag() const;      // --lightq-port
  std::string default_text() const { return print(Config{}); }
  // Whether a broker that runs can change it.
  bool is_live() const;
};

const std::vector<ConfigKey>& config_keys();

//   not_found          there is no such key; the sentence names the nearest one
//   invalid_argument   not such a value; the sentence says what would be
Outcome<void> set_key(Config& config, std::string_view name, std::string_view text);

// Whether a name is a key that is misspelt by one or two letters. Too short ones are not told from other words.
bool is_nearly_a_key(std::string_view name);

// Takes those changes from `before` to `after` into `running` that count for a broker that runs. Returns the names of the
// others, which count from its next start.
std::vector<std::string> take_changes(Config& running, const Config& before, const Config& after);

//   invalid_argument   an address that others can reach without `insecure`, a range of ports that is none, a path that
//                      cannot be that of a socket or of a log
Outcome<void> check_config(const Config& config);

}  // namespace leat::broker
