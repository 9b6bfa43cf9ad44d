// `leat help COMMAND…` and `leat version` print what --help and --version print.
#include "help.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <string_view>

#include "cli.hpp"
#include "external_command.hpp"

namespace leat::cli {

std::vector<char*> with_help_as_option(int argc, char** argv) {
  static char option[] = "--help";
  std::vector<char*> arguments{argv, argv + argc};
  const int at = command_index(argc, argv);
  const auto is_help = [&](int i) { return i < argc && std::string_view{argv[i]} == "help"; };
  const bool is_about_itself = at + 1 < argc && *argv[at + 1] == '-';  // `leat help --help`
  if (at != 0 && is_help(at) && !is_about_itself) {
    arguments.erase(arguments.begin() + at);
    arguments.push_back(option);
  }
  // `leat complete help topic cr`: the words behind it are those of a command.
  if (argc > 3 && std::string_view{argv[1]} == "complete" && is_help(2))
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
