// `leat help COMMAND…` and `leat version` print what --help and --version print.
#include "help.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "cli.hpp"
#include "external_command.hpp"

namespace leat::cli {
namespace {

// The index of the command `help`; 0 if that is not the command.
int help_index(int argc, char** argv) {
  const int at = command_index(argc, argv);
  const bool is_about_itself = at + 1 < argc && *argv[at + 1] == '-';  // `leat help --help`
  return at != 0 && std::string_view{argv[at]} == "help" && !is_about_itself ? at : 0;
}

}  // namespace

std::optional<std::string> explain_help(const CLI::App& app, int argc, char** argv) {
  const int at = help_index(argc, argv);
  if (at == 0 || at + 1 >= argc || is_external_command(argv[at + 1])) return std::nullopt;
  const CLI::App* command = &app;
  for (int i = at + 1; i < argc && *argv[i] != '-'; ++i) {
    const auto known = command->get_subcommands([](const CLI::App*) { return true; });
    if (known.empty())
      return fmt::format("'{}' is one argument too many; see `leat help --help`", argv[i]);
    const auto next = std::find_if(known.begin(), known.end(),
                                   [&](const CLI::App* one) { return one->check_name(argv[i]); });
    if (next == known.end()) return std::nullopt;  // The parser's error lists them.
    command = *next;
  }
  return std::nullopt;
}

std::vector<char*> with_help_as_option(int argc, char** argv) {
  static char option[] = "--help";
  std::vector<char*> arguments{argv, argv + argc};
  if (const int at = help_index(argc, argv); at != 0) {
    arguments.erase(arguments.begin() + at);
    arguments.push_back(option);
  }
  // `leat complete help topic cr`: the words behind it are those of a command.
  if (argc > 3 && std::string_view{argv[1]} == "complete" && std::string_view{argv[2]} == "help")
    arguments.erase(arguments.begin() + 2);
  return arguments;
}

void add_help_command(CLI::App& app) {
  // Only for its own help: with_help_as_option() has replaced it when arguments are parsed.
  CLI::App* command = app.add_subcommand("help", "What a command does, and its options");
  command->add_option_function<std::vector<std::string>>(
      "COMMAND", [](const std::vector<std::string>&) {}, "Such as topic create; without any, leat");
  command->footer("Example:\n  leat help topic create");
}

void add_version_command(CLI::App& app) {
  app.add_subcommand("version", "Print version and commit")
      ->footer("Example:\n  leat version")
      ->callback([&app] { fmt::print("{}\n", app.version()); });
}

}  // namespace leat::cli
