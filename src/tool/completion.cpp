#include "completion.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "help_formatter.hpp"
#include "leat/leat.hpp"

namespace leat::tool {
namespace {

using Words = std::vector<std::string>;

// What the words before the last one come to.
struct Line {
  const CLI::App* command;               // the innermost one
  Words positionals = {};                // that it was given
  const CLI::Option* waiting = nullptr;  // for the value that comes next
};

// The option of that name ("--dir"), of the command or of one above it: those count behind it, too.
const CLI::Option* find_option(const CLI::App* command, const std::string& name) {
  for (; command != nullptr; command = command->get_parent()) {
    if (const CLI::Option* option = command->get_option_no_throw(name)) return option;
  }
  return nullptr;
}

const CLI::App* find_command(const CLI::App& command, const std::string& name) {
  const auto found =
      command.get_subcommands([&](const CLI::App* one) { return one->check_name(name); });
  return found.empty() ? nullptr : found.front();
}

void take_value(const CLI::Option& option, const std::string& value) {
  if (option.check_name("--dir")) ::setenv("LEAT_DIR", value.c_str(), 1);
  if (option.check_name("--data-dir")) ::setenv("LEAT_DATA_DIR", value.c_str(), 1);
}

Line read_line(const CLI::App& app, const Words& words) {
  Line line{&app};
  for (const std::string& word : words) {
    if (line.waiting != nullptr) {
      take_value(*std::exchange(line.waiting, nullptr), word);
    } else if (word.size() > 1 && word.starts_with('-')) {
      const std::size_t equals = word.find('=');
      const CLI::Option* option = find_option(line.command, word.substr(0, equals));
      if (option == nullptr || !takes_value(*option)) continue;
      if (equals == std::string::npos)
        line.waiting = option;
      else
        take_value(*option, word.substr(equals + 1));
    } else if (const CLI::App* command = find_command(*line.command, word);
               command != nullptr && line.positionals.empty()) {
      line.command = command;
    } else {
      line.positionals.push_back(word);
    }
  }
  return line;
}

std::vector<Candidate> topics() {
  std::vector<Candidate> all;
  if (auto names = Topic::list()) {
    for (const std::string& name : *names) all.push_back({name, "topic"});
  }
  return all;
}

std::vector<Candidate> groups(const std::string& topic_name) {
  std::vector<Candidate> all;
  const auto topic = Topic::open(topic_name);
  if (!topic) return all;
  if (auto names = topic->group_names()) {
    for (const std::string& name : *names) all.push_back({name, "group of " + topic_name});
  }
  return all;
}

// "block|fail|overwrite", but not the TIME of "os|interval:TIME|fsync": only the user knows that.
std::vector<Candidate> choices(std::string_view text) {
  const auto is_capital = [](char c) { return c >= 'A' && c <= 'Z'; };
  std::vector<Candidate> all;
  while (!text.empty()) {
    const std::string_view choice = text.substr(0, text.find('|'));
    if (std::none_of(choice.begin(), choice.end(), is_capital))
      all.push_back({std::string{choice}, {}});
    text.remove_prefix(std::min(choice.size() + 1, text.size()));
  }
  return all;
}

// The values of an option or positional, by what the help calls them: TOPIC, FILE, DIRECTORY, a|b|c. NAME
// is that of a group in `leat group` and behind --group, of nothing yet in `create`, elsewhere of a topic.
std::vector<Candidate> values(const CLI::Option& option, const Line& line) {
  const bool is_positional = option.get_positional();
  const std::string kind = is_positional ? option.get_name(true) : option.get_type_name();
  if (kind.find('|') != std::string::npos) return choices(kind);
  if (kind == "FILE") return {{kFiles, {}}};
  if (kind == "DIRECTORY") return {{kDirectories, {}}};
  if (kind == "TOPIC") return topics();
  if (kind == "PLACE") return choices("beginning|end");
  if (kind != "NAME" || line.command->get_name() == "create") return {};
  const CLI::App* parent = line.command->get_parent();
  const bool is_group = is_positional ? parent != nullptr && parent->get_name() == "group"
                                      : option.check_name("--group");
  if (is_group && !line.positionals.empty()) return groups(line.positionals.front());
  return is_positional && !is_group ? topics() : std::vector<Candidate>{};
}

std::vector<Candidate> option_names(const CLI::App* command) {
  std::vector<Candidate> all;
  for (; command != nullptr; command = command->get_parent()) {
    for (const CLI::Option* option : shown_options(*command, false)) {
      const std::string name = option->get_name();
      const auto is_same = [&](const Candidate& one) { return one.word == name; };
      if (std::none_of(all.begin(), all.end(), is_same))
        all.push_back({name, option->get_description()});
    }
  }
  return all;
}

// What is no option: commands, or the value of the next positional.
std::vector<Candidate> words_for(const Line& line) {
  std::vector<Candidate> all;
  if (line.positionals.empty()) {
    for (const CLI::App* one : shown_commands(*line.command))
      all.push_back({one->get_name(), one->get_description()});
  }
  const auto positionals = shown_options(*line.command, true);
  if (positionals.empty()) return all;
  const std::size_t next = std::min(line.positionals.size(), positionals.size() - 1);
  const bool is_one_too_many =
      line.positionals.size() > next && positionals[next]->get_expected_max() <= 1;
  if (is_one_too_many) return all;
  for (Candidate& one : values(*positionals[next], line)) all.push_back(std::move(one));
  return all;
}

std::vector<Candidate> candidates(const Line& line, const std::string& last) {
  if (line.waiting != nullptr) return values(*line.waiting, line);
  const std::size_t equals = last.find('=');
  if (last.starts_with("--") && equals != std::string::npos) {
    const CLI::Option* option = find_option(line.command, last.substr(0, equals));
    if (option == nullptr || !takes_value(*option)) return {};
    std::vector<Candidate> all = values(*option, line);
    for (Candidate& one : all) {
      if (!one.word.starts_with(':')) one.word.insert(0, last.substr(0, equals + 1));
    }
    return all;
  }
  return last.starts_with('-') ? option_names(line.command) : words_for(line);
}

// PROGRAM stands for the executable's name.
constexpr std::string_view kBash =
    R"(# bash completion for PROGRAM, made by `PROGRAM completion bash`.
_PROGRAM_complete() {
  local line current=${COMP_WORDS[COMP_CWORD]}
  local -a lines
  mapfile -t lines < <("${COMP_WORDS[0]}" complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  COMPREPLY=()
  for line in "${lines[@]}"; do
    case $line in
      :files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
      :directories) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done
}
complete -F _PROGRAM_complete PROGRAM
)";

constexpr std::string_view kZsh = R"(#compdef PROGRAM
# zsh completion for PROGRAM, made by `PROGRAM completion zsh`.
_PROGRAM() {
  local line word
  local -a lines candidates
  lines=("${(@f)$("${words[1]}" complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for line in $lines; do
    case $line in
      :files) compset -P 1 '--*='; _files; return ;;
      :directories) compset -P 1 '--*='; _files -/; return ;;
    esac
    word=${line%%$'\t'*}
    candidates+=("${word//:/\\:}:${line#*$'\t'}")
  done
  _describe PROGRAM candidates
}
if [ "$funcstack[1]" = _PROGRAM ]; then _PROGRAM "$@"; else compdef _PROGRAM PROGRAM; fi
)";

constexpr std::string_view kFish =
    R"(# fish completion for PROGRAM, made by `PROGRAM completion fish`.
function __PROGRAM_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in (command $words[1] complete $words[2..-1] 2>/dev/null)
        switch $line
            case ':files'
                set -l option (string match -r -- '^--[^=]*=' (commandline -ct))
                for file in (__fish_complete_path (string replace -r -- '^--[^=]*=' '' (commandline -ct)))
                    echo "$option$file"
                end
            case ':directories'
                __fish_complete_directories (commandline -ct)
            case '*'
                echo $line
        end
    end
end
complete -c PROGRAM -f -a '(__PROGRAM_complete)'
)";

}  // namespace

std::vector<Candidate> complete(const CLI::App& app, Words words) {
  // bash takes --policy=block apart, into three words.
  const bool is_value = words.size() > 1 && words.back() == "=";
  std::erase(words, "=");
  if (is_value || words.empty()) words.emplace_back();
  const std::string last = std::move(words.back());
  words.pop_back();
  const Line line = read_line(app, words);
  std::vector<Candidate> all = candidates(line, last);
  std::erase_if(all, [&](const Candidate& one) {
    return !one.word.starts_with(last) && one.word != kFiles && one.word != kDirectories;
  });
  return all;
}

std::optional<std::string> completion_script(std::string_view shell,
                                             const std::string& executable) {
  std::string_view model;
  if (shell == "bash") model = kBash;
  if (shell == "zsh") model = kZsh;
  if (shell == "fish") model = kFish;
  if (model.empty()) return std::nullopt;
  constexpr std::string_view kPlaceholder = "PROGRAM";
  std::string script{model};
  for (std::size_t at = 0; (at = script.find(kPlaceholder, at)) != std::string::npos;)
    script.replace(at, kPlaceholder.size(), executable);
  return script;
}

}  // namespace leat::tool
