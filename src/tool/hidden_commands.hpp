// What an executable of ours tells about itself, to shells and to the build: `leat completion SHELL`,
// `leat complete WORD…`, `leat man`. None of them is in the help.
#pragma once

#include <optional>

namespace CLI {
class App;
}  // namespace CLI

namespace leat::tool {

// Does it, and returns the exit code, if the arguments ask for one of them.
std::optional<int> run_hidden_command(const CLI::App& app, int argc, char** argv);

}  // namespace leat::tool
