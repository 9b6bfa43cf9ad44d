// The keys of a configuration: one table, to which each protocol adds its own.
//
//     ConfigKeys keys;                                              // the broker's
//     keys.add({number_key("lines.port", &Settings::port, 0, 65535, "port of the line protocol")}, check_settings);
//     auto set = keys.set(config, "lines.port", "5600");            // or what a file, a variable or a flag says
//     if (set) set = keys.check(config);                            // what only makes sense together
//     for (const ConfigKey& key : keys.all()) add_flag(key.flag(), key.help, key.default_text());
//
// A key's name, range and help stand in one place, broker_keys.cpp for the broker's; the names of its variable and of its flag
// follow from its name. Constant once all protocols have added theirs; then any thread may use it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "config.hpp"
#include "outcome/outcome.hpp"

namespace leat::broker {

struct ConfigKey {
  std::string name;         // As in the file: "lines.port" is `port` in the section `[lines]`.
  std::string placeholder;  // What stands for a value: "N", "FILE", "false|true".
  std::string wants;        // What a value is: "a whole number from 0 to 65535".
  std::string help;
  // False for a wrong value; then nothing changed.
  std::function<bool(Config&, std::string_view)> set;
  std::function<std::string(const Config&)> print;
  bool is_live = false;  // A broker that runs can change it.

  std::string variable() const;  // LEAT_LINES_PORT
  std::string flag() const;      // --lines-port
  std::string default_text() const { return print(Config{}); }
};

struct PortRange {
  std::uint16_t first = 0;  // Both 0: not set.
  std::uint16_t last = 0;
  friend bool operator==(const PortRange&, const PortRange&) = default;
};

// Where a value is in a Config: a member of it, or of a protocol's settings.
template <class Value>
class Setting {
 public:
  template <class Owner>
  Setting(Value Owner::*member)
      : get_{[member](const Config& config) -> const Value& { return config.of<Owner>().*member; }},
        set_{[member](Config& config, Value value) {
          config.of<Owner>().*member = std::move(value);
        }} {}
  const Value& in(const Config& config) const { return get_(config); }
  void set(Config& config, Value value) const { set_(config, std::move(value)); }

 private:
  std::function<const Value&(const Config&)> get_;
  std::function<void(Config&, Value)> set_;
};

// Kinds of keys. Of numbers, sizes and durations the help ends with the limits.
ConfigKey text_key(const char* name, Setting<std::string> setting, const char* placeholder,
                   const char* wants, const char* help);
ConfigKey number_key(const char* name, Setting<std::uint64_t> setting, std::uint64_t least,
                     std::uint64_t most, const char* help);
// Of bytes, with KiB, MiB or GiB.
ConfigKey size_key(const char* name, Setting<std::uint64_t> setting, std::uint64_t least,
                   std::uint64_t most, const char* help);
ConfigKey duration_key(const char* name, Setting<std::chrono::milliseconds> setting,
                       std::uint64_t least_ms, const char* help);
ConfigKey addresses_key(const char* name, Setting<std::vector<std::string>> setting,
                        const char* help);
ConfigKey ports_key(const char* name, Setting<PortRange> setting, const char* help);
// One of some words; `values` are in the order of the words.
template <class Value>
ConfigKey choice_key(const char* name, Setting<Value> setting, std::vector<std::string> words,
                     std::vector<Value> values, const char* help);

// For checks of protocols. Each sentence begins with the key's name.
//   invalid_argument   there is none, one is not numeric, or others can reach it and `config` does not say `insecure`
Outcome<void> check_addresses(const char* key, const std::vector<std::string>& addresses,
                              const Config& config);
//   invalid_argument   too long
Outcome<void> check_socket_path(const char* key, const std::string& path);

class ConfigKeys {
 public:
  using Check = std::function<Outcome<void>(const Config&)>;

  // Those of the broker itself.
  ConfigKeys();
  // Those of a protocol, and what has to be right about its settings: `invalid_argument` otherwise. Null: nothing.
  void add(std::vector<ConfigKey> keys, Check check);

  const std::vector<ConfigKey>& all() const noexcept { return keys_; }

  //   not_found          there is no such key; the sentence names the nearest one
  //   invalid_argument   not such a value; the sentence says what would be
  Outcome<void> set(Config& config, std::string_view name, std::string_view text) const;
  //   invalid_argument   what the checks return; or a path that cannot be that of a log
  Outcome<void> check(const Config& config) const;

  // Whether a name is a key that is misspelt by one or two letters. Too short ones are not told from other words.
  bool is_nearly_a_key(std::string_view name) const;
  // Whether there are keys in a section of that name.
  bool is_section(const std::string& name) const;

  // Takes those changes from `before` to `after` into `running` that count for a broker that runs. Returns the names of
  // the others, which count from its next start.
  std::vector<std::string> take_changes(Config& running, const Config& before,
                                        const Config& after) const;

 private:
  // Also of a name that stands in the wrong section, or in none.
  std::string nearest(std::string_view name) const;

  std::vector<ConfigKey> keys_;
  std::vector<Check> checks_;
};

// --- What follows is only compiled -------------------------------------------------------------------

// The key for a choice, by the places of words.
ConfigKey word_key(const char* name, const std::vector<std::string>& words, const char* help,
                   std::function<void(Config&, std::size_t)> set,
                   std::function<std::size_t(const Config&)> get);

template <class Value>
ConfigKey choice_key(const char* name, Setting<Value> setting, std::vector<std::string> words,
                     std::vector<Value> values, const char* help) {
  return word_key(
      name, words, help,
      [=](Config& config, std::size_t place) { setting.set(config, values[place]); },
      [=](const Config& config) {
        std::size_t place = 0;
        while (place + 1 < values.size() && values[place] != setting.in(config)) ++place;
        return place;
      });
}

}  // namespace leat::broker
