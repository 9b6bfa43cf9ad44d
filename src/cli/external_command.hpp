// `leat NAME …` runs the executable leat-NAME, as git does: first the one beside `leat` itself, then
// one in $PATH. What few people need stays out of `leat` in this way, with the libraries it is linked to.
#pragma once

#include <optional>

namespace CLI {
class App;
}  // namespace CLI

namespace leat::cli {

// The commands of ours that are executables of their own, for the help.
void add_external_commands(CLI::App& app);

// Becomes leat-NAME if the arguments name a command that is not part of `leat`. Returns only if they do
// not, or, with the exit code, if it is one of ours and not installed.
std::optional<int> run_external_command(const CLI::App& app, int argc, char** argv);

}  // namespace leat::cli
