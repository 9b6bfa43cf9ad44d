// `leat help topic create` is `leat topic create --help`.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace leat::cli {

// What is wrong with the words behind `help`, if one too many follows the command.
std::optional<std::string> explain_help(const CLI::App& app, int argc, char** argv);

// The arguments, with the command `help` replaced by the option.
std::vector<char*> with_help_as_option(int argc, char** argv);

}  // namespace leat::cli
