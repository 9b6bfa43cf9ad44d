// Explains, in one line, arguments that were not understood: what is wrong, and what would be right.
//
//     catch (const CLI::ParseError& error) { print_notice(explain(app, error)); }
#pragma once

#include <optional>
#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace leat::tool {

std::string explain(const CLI::App& app, const CLI::ParseError& error);

// The same, only for an unknown command: it is an error even with --help.
std::optional<std::string> explain_unknown_command(const CLI::App& app);

}  // namespace leat::tool
