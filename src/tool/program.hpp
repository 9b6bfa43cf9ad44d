// An executable of ours from main() to its exit code.
//
//     int main(int argc, char** argv) {
//       leat::tool::open_missing_streams();
//       CLI::App app{"What it is for", "leat"};
//       leat::tool::add_common_options(app);
//       add_commands(app);  // Each does its work in a callback, and throws what ends it early.
//       return leat::tool::run(app, argc, argv);
//     }
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace leat::tool {

// Started without one of the standard streams, the next file opened would take its number, and what
// is meant for the stream would be written into that file. A stream that fails takes its place: 0
// can't be read, 1 can't be written; what is said on 2 is lost.
void open_missing_streams();

// --help, --version and --dir; exactly one command is required.
void add_common_options(CLI::App& app);

// Parses the arguments, which runs the chosen command. Whatever goes wrong becomes one line on stderr.
// Returns the exit code: failure.hpp.
int run(CLI::App& app, int argc, char** argv);

}  // namespace leat::tool
