// `leat bench`: what this machine can do, what the log does, and the ratio of the two.
// The only header of this folder that others include.
#pragma once

#include "private_directory.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace leat::bench {

// Registers `bench` and its subcommands. Whichever runs leaves the exit code of `leat` in
// `exit_code`, which must outlive the parsing.
void add_bench_command(CLI::App& app, int& exit_code);

}  // namespace leat::bench
