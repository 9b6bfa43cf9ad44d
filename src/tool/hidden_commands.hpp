// What an executable of ours tells about itself, to shells and to the build: `leat completion SHELL`,
// `leat complete WORD…`, `leat man`. In the help is only the first one, if add_completion_command() has put it there.
#pragma once

#include <optional>

#include "man_page.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace leat::tool {

// Makes `completion` a command like others, with help.
void add_completion_command(CLI::App& app);

// Does it, and returns the exit code, if the arguments ask for one of them.
std::optional<int> run_hidden_command(const CLI::App& app, int argc, char** argv,
                                      const Manual& manual);

}  // namespace leat::tool
