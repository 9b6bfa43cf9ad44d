// `leat NAME …` runs the executable leat-NAME, as git does: the one beside `leat` itself, or else one in
// $PATH. This keeps what few people need, and the libraries for it, out of `leat`.
#pragma once

#include <optional>
#include <string_view>

namespace CLI {
class App;
}  // namespace CLI

namespace leat::cli {

// Whether `name` is an external command of Leat: bench, lightq, serve.
bool is_external_command(std::string_view name);

// Lists our own external commands in the help.
void add_external_commands(CLI::App& app);

// The index of the command among the arguments, 0 if there is none. Only --dir may come before it.
int command_index(int argc, char** argv);

// Replaces this process by leat-NAME if the arguments name a command that is not part of `leat`. Returns if
// they do not; returns an exit code if the command is one of ours and not installed.
std::optional<int> run_external_command(const CLI::App& app, int argc, char** argv);

}  // namespace leat::cli
