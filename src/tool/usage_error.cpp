#include "usage_error.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <vector>

#include "did_you_mean.hpp"
#include "help_formatter.hpp"

namespace leat::tool {
namespace {

std::string lower_first(std::string text) {
  if (text.size() > 1 && text[0] >= 'A' && text[0] <= 'Z' && (text[1] < 'A' || text[1] > 'Z')) {
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  }
  return text;
}

// The innermost command that was given, and its full name: "leat topic create".
const CLI::App& chosen_command(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : chosen_command(*chosen.front());
}
std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(one->get_name());
  return names;
}

// Arguments that no command took; with fallthrough() the outermost one has them.
std::vector<std::string> unexpected(const CLI::App& app) {
  std::vector<std::string> words = app.remaining(true);
  std::erase(words, "--");
  return words;
}

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  const auto found =
      app.get_subcommands([&](const CLI::App* one) { return one->check_name(name); });
  return found.empty() ? nullptr : found.front();
}

// What other programs call our commands.
std::string own_word_for(std::string_view word) {
  constexpr std::pair<std::string_view, const char*> kWords[] = {
      {"publish", "pub"}, {"send", "pub"},     {"produce", "pub"},  {"subscribe", "sub"},
      {"consume", "sub"}, {"receive", "sub"},  {"listen", "sub"},   {"remove", "rm"},
      {"destroy", "rm"},  {"broker", "serve"}, {"server", "serve"}, {"describe", "info"},
      {"show", "info"}};
  for (const auto& [theirs, ours] : kWords) {
    if (theirs == word) return ours;
  }
  return {};
}

// What was meant by `words.front()`, which `command` does not have: "`leat topic list`", or several commands with "or"
// between them. Empty if no command is called so, here or one word further down.
std::string commands_meant(const CLI::App& command, const std::vector<std::string>& words) {
  const std::string& word = words.front();
  const std::string own = own_word_for(word);
  if (!own.empty() && find_command(command, own) != nullptr)
    return fmt::format("`{} {}`", full_name(command), own);
  std::vector<std::string> meant;
  for (const CLI::App* above : command.get_subcommands([](const CLI::App*) { return true; })) {
    const CLI::App* below = find_command(*above, word);
    if (below == nullptr && !own.empty()) below = find_command(*above, own);
    if (below == nullptr) continue;
    const std::string name = fmt::format("`{}`", full_name(*below));
    if (words.size() > 1 && !closest(words[1], {above->get_name()}).empty())
      return name;  // `leat list topics`
    meant.push_back(name);
  }
  return fmt::format("{}", fmt::join(meant, " or "));
}

// No argument behind such a command is one too many.
bool takes_any_number(const CLI::App& command) {
  const auto options = command.get_options();
  return std::any_of(options.begin(), options.end(), [](const CLI::Option* one) {
    return one->get_positional() &&
           one->get_expected_max() >= CLI::detail::expected_max_vector_size;
  });
}

bool is_option(std::string_view word) { return word.size() > 1 && word[0] == '-'; }

// "--count=5" -> "count"
std::string_view bare_name(std::string_view option) {
  option.remove_prefix(std::min(option.find_first_not_of('-'), option.size()));
  return option.substr(0, option.find('='));
}

std::string explain_unknown_option(const CLI::App& command, const std::string& option) {
  std::vector<std::string> names;
  bool takes_text = false;
  for (const CLI::App* one = &command; one != nullptr; one = one->get_parent()) {
    for (const CLI::Option* known : one->get_options()) {
      if (known->get_group().empty()) continue;  // Hidden.
      for (const std::string& name : known->get_lnames()) names.push_back(name);
      takes_text = takes_text || known->check_name("MESSAGE");
    }
  }
  if (option.starts_with("-="))  // What is left of "-J=x".
    return fmt::format("'{}' stands behind an option that takes no value; see `{} --help`",
                       option.substr(1), full_name(command));
  std::string sentence = fmt::format("`{}` has no option '{}'", full_name(command), option);
  const std::string meant = closest(bare_name(option), names);
  if (meant == bare_name(option))  // It stands in front of the command.
    return fmt::format("write '{}' behind `{}`; see `{} --help`", option, full_name(command),
                       full_name(command));
  if (!meant.empty()) sentence += fmt::format(" (did you mean '--{}'?)", meant);
  if (takes_text) sentence += "; write -- before a message that begins with a dash";
  return sentence + fmt::format("; see `{} --help`", full_name(command));
}

bool is_flag(const CLI::App& command, const std::string& name) {
  const CLI::Option* option = command.get_option_no_throw(name);
  return option != nullptr && !takes_value(*option);
}

// An option that was given too few values, or too many.
std::optional<std::string> explain_values(const CLI::App& app, const CLI::ParseError& error) {
  const std::string words = error.what();
  const std::string kind = error.get_name();
  if (kind != "ArgumentMismatch" && kind != "ConversionError") return std::nullopt;
  // CLI11 says "--count: 1 required N missing", "--from: At Most 1 required but received 2", and of a flag
  // "Could not convert: --json = x".
  constexpr std::string_view kFlag = "Could not convert: ";
  std::string sentence;
  if (const std::size_t at = words.find(": 1 required "); at != std::string::npos)
    sentence = words.substr(0, at) + " needs a value";
  else if (const std::size_t most = words.find(": At Most 1 required "); most != std::string::npos)
    sentence = words.substr(0, most) + " may be given only once";
  else if (const std::size_t equals = words.find(" = ");
           words.starts_with(kFlag) && equals != std::string::npos)
    if (const std::string name = words.substr(kFlag.size(), equals - kFlag.size());
        is_flag(chosen_command(app), name))
      sentence = name + " takes no value";
  if (sentence.empty()) return std::nullopt;
  return fmt::format("{}; see `{} --help`", sentence, full_name(chosen_command(app)));
}

}  // namespace

std::optional<std::string> explain_unknown_command(const CLI::App& app) {
  const CLI::App& command = chosen_command(app);
  const std::vector<std::string> known = command_names(command);
  const std::vector<std::string> words = unexpected(app);
  if (known.empty() || words.empty() || is_option(words.front())) return std::nullopt;
  const std::string& word = words.front();
  if (find_command(command, word) != nullptr)  // `leat create topic`: the words are swapped.
    return fmt::format("write `{} {}`, not '{} {}'", full_name(command), word, word,
                       command.get_name());
  std::string meant = did_you_mean(word, known);
  if (meant.empty()) {
    const std::string commands = commands_meant(command, words);
    if (!commands.empty()) meant = fmt::format(" (did you mean {}?)", commands);
  }
  return fmt::format("`{}` has no command '{}'{}; there are: {}", full_name(command), word, meant,
                     fmt::join(known, ", "));
}

std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  if (const auto sentence = explain_values(app, error)) return *sentence;
  if (const auto sentence = explain_unknown_command(app)) return *sentence;
  const CLI::App& command = chosen_command(app);
  const std::vector<std::string> words = unexpected(app);
  const auto option = std::find_if(words.begin(), words.end(), is_option);
  if (option != words.end()) return explain_unknown_option(command, *option);
  const std::string name = full_name(command);
  // `leat news pub`, `leat news pub hello`
  if (!words.empty() && (error.get_name() == "RequiredError" || takes_any_number(command)))
    return fmt::format("write '{}' behind `{}`; see `{} --help`", words.front(), name, name);
  if (!words.empty())
    return fmt::format("'{}' is one argument too many; see `{} --help`", words.front(), name);
  if (const auto known = command_names(command); !known.empty())
    return fmt::format("`{}` needs a command: {}", name, fmt::join(known, ", "));
  return fmt::format("{}; see `{} --help`", lower_first(error.what()), name);
}

}  // namespace leat::tool
