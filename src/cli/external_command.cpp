#include "external_command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli.hpp"
#include "tool/program.hpp"

namespace leat::cli {
namespace {

struct External {
  const char* name;
  const char* description;
  const char* how_to_get;
};
constexpr std::array kExternals{
    External{"bench", "Measure this machine and the log on it (leat-bench)",
             "`make bench-build` in Leat's sources builds it, `make install` installs it"},
    External{"lightq", "LightQ's command-line tools, for `leat serve` (leat-lightq)",
             "`make serve` in Leat's sources builds it"},
    External{"serve", "Serve topics to clients over TCP (leat-serve)",
             "`make serve` in Leat's sources builds it"},
};

const External* find_external(std::string_view name) {
  const auto* found = std::find_if(kExternals.begin(), kExternals.end(),
                                   [&](const External& one) { return name == one.name; });
  return found == kExternals.end() ? nullptr : found;
}

bool is_command_name(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

}  // namespace

bool is_external_command(std::string_view name) { return find_external(name) != nullptr; }

int command_index(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--dir" || word == "--data-dir") {
      ++i;
    } else if (!word.starts_with("--dir=") && !word.starts_with("--data-dir=")) {
      return word.starts_with("-") ? 0 : i;
    }
  }
  return 0;
}

void add_external_commands(CLI::App& app) {
  for (const External& one : kExternals) {
    app.add_subcommand(one.name, one.description)
        ->footer(fmt::format("Example:\n  leat {} --help", one.name));
  }
}

std::optional<int> run_external_command(const CLI::App& app, int argc, char** argv) {
  // `leat complete bench …`: only leat-bench knows what it understands.
  if (argc > 3 && std::string_view{argv[1]} == "complete" && find_external(argv[2]) != nullptr)
    std::swap(argv[1], argv[2]);
  const int at = command_index(argc, argv);
  if (at == 0 || !is_command_name(argv[at])) return std::nullopt;
  const std::string name = argv[at];
  const External* ours = find_external(name);
  const auto is_named = [&](const CLI::App* command) { return command->check_name(name); };
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  if (ours == nullptr && std::any_of(commands.begin(), commands.end(), is_named))
    return std::nullopt;

  // Arguments before the command are passed on, too.
  const std::string executable = "leat-" + name;
  std::vector<char*> arguments{const_cast<char*>(executable.c_str())};
  for (int i = 1; i < argc; ++i) {
    if (i != at) arguments.push_back(argv[i]);
  }
  arguments.push_back(nullptr);
  const int error = tool::become_companion(executable, arguments.data());
  if (error != ENOENT) {
    print_notice(fmt::format("cannot run {}: {}", executable, std::strerror(error)));
    return kExitPermission;
  }
  if (ours == nullptr) return std::nullopt;  // Unknown: the parser's error lists the commands.
  print_notice(fmt::format("`leat {}` needs {}, which is neither beside leat nor in $PATH: {}",
                           name, executable, ours->how_to_get));
  return kExitNotThere;
}

}  // namespace leat::cli
