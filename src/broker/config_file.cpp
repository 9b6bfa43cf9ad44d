#include "broker/config_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "leat/os/directory.hpp"

namespace leat::broker {
namespace {

constexpr std::size_t kMaxFile = 1 << 20;

// In one line, whatever the file contains.
Problem at_line(const std::string& file, toml::source_index line, std::string sentence) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
  std::replace_if(sentence.begin(), sentence.end(), is_control, ' ');
  return {Errc::invalid_argument, fmt::format("{}:{}: {}", file, line, sentence)};
}

bool is_section(const std::string& name) {
  const auto& keys = config_keys();
  return std::any_of(keys.begin(), keys.end(),
                     [&](const ConfigKey& key) { return key.name.starts_with(name + "."); });
}

// A value as it would be written in a variable. None for what no key takes: dates, fractions, tables.
std::optional<std::string> text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  const auto* list = node.as_array();
  if (list == nullptr || list->empty()) return std::nullopt;
  std::string texts;
  for (const toml::node& element : *list) {
    const auto* text = element.as_string();
    if (text == nullptr) return std::nullopt;
    texts += (texts.empty() ? "" : ",") + text->get();
  }
  return texts;
}

Outcome<void> read_table(const toml::table& table, const std::string& section,
                         const std::string& file, Config& config) {
  for (auto&& [key, node] : table) {
    const std::string name = section + std::string{key.str()};
    if (const toml::table* const inner = node.as_table(); inner != nullptr && is_section(name)) {
      if (auto read = read_table(*inner, name + ".", file, config); !read) return read.problem();
      continue;
    }
    // An unknown key must be told as such, whatever its value is; no key takes a null character.
    const std::string text = text_of(node).value_or(std::string{'\0'});
    if (const auto set = set_key(config, name, text); !set) {
      std::string sentence = set.problem().sentence;
      if (set.problem().code == Errc::invalid_argument && text == std::string{'\0'}) {
        const auto known = std::find_if(config_keys().begin(), config_keys().end(),
                                        [&](const ConfigKey& other) { return other.name == name; });
        sentence = fmt::format("{} has a wrong kind of value: write {}", name, known->wants);
      }
      return at_line(file, key.source().begin.line, sentence);
    }
  }
  return {};
}

Outcome<std::string> content_of(const std::string& file) {
  const auto fail = [&] {
    const Error error = last_system_error();
    return Problem{error.code,
                   fmt::format("cannot read '{}': {}", file, std::strerror(error.system_error))};
  };
  const leat::detail::Fd opened{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (!opened) return fail();
  std::string text;
  char buffer[4096];
  while (true) {
    const ::ssize_t count = ::read(opened.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail();
    if (count == 0) return text;
    text.append(buffer, static_cast<std::size_t>(count));
    if (text.size() > kMaxFile)
      return Problem{Errc::invalid_argument, fmt::format("'{}' is larger than 1 MiB", file)};
  }
}

}  // namespace

Outcome<void> read_config_text(std::string_view text, const std::string& name, Config& config) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    return at_line(name, parsed.error().source().begin.line,
                   std::string{parsed.error().description()});
  }
  return read_table(parsed.table(), "", name, config);
}

Outcome<Config> read_config(const ConfigSources& sources) {
  Config config;
  if (!sources.file.empty()) {
    const auto text = content_of(sources.file);
    if (!text) return text.problem();
    if (const auto read = read_config_text(*text, sources.file, config); !read)
      return read.problem();
  }
  for (const ConfigKey& key : config_keys()) {
    const char* const text =
        sources.environment ? sources.environment(key.variable().c_str()) : nullptr;
    if (text == nullptr || *text == '\0' || key.set(config, text)) continue;
    return Problem{Errc::invalid_argument,
                   fmt::format("{}='{}' is wrong: write {}", key.variable(), text, key.wants)};
  }
  for (const auto& [name, text] : sources.flags) {
    if (const auto set = set_key(config, name, text); !set)
      return Problem{Errc::invalid_argument, set.problem().sentence};
  }
  if (const auto right = check_config(config); !right) return right.problem();
  return config;
}

}  // namespace leat::broker
