// What every executable does, from main() to its exit code.
//
//     int main(int argc, char** argv) {
//       leat::tool::open_missing_streams();
//       CLI::App app{"What it is for", "leat"};
//       leat::tool::add_common_options(app);
//       add_commands(app);  // Each does its work in a callback, and throws on errors.
//       return leat::tool::run(app, argc, argv);
//     }
#pragma once

#include <string>

#include "man_page.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace leat::tool {

// Opens /dev/null for each standard stream that the process was started without. Otherwise the next
// file to be opened would get the stream's number, and the stream's output would go into that file.
// Reading from such a 0 and writing to such a 1 fail; what is written to such a 2 is lost.
void open_missing_streams();
// If other processes share standard output and have made it non-blocking, gives this process an open file of its own, which
// waits. Otherwise output that stdio cannot write at once is lost. Only for pipes and terminals: files need no waiting, and
// sockets cannot be opened again.
void open_blocking_output();

// Adds --help, --version, --dir and --data-dir, and requires exactly one command. Called before the commands
// are added.
void add_common_options(CLI::App& app);
// --dir or --data-dir, if one was given, before this command or behind it; else null. For commands that use no
// topics of this machine.
const CLI::Option* given_directory(const CLI::App& command);

// Parses the arguments, which runs the chosen command. Prints errors as one line on stderr. Returns
// the exit code; see failure.hpp. `manual`: for the manual page.
int run(CLI::App& app, int argc, char** argv, const Manual& manual = {});

// Where this executable lies, with a slash at the end; its companions lie beside it.
std::string directory_of_executable();

// Becomes the program `name`: the file beside this executable, else the first one in $PATH. `arguments` begin with its
// name and end with a null pointer. Returns only if it cannot: the errno, ENOENT if there is none.
int become_companion(const std::string& name, char* const* arguments);

// At the end of a command: the exit code, which is not 0 if what it printed could not be written.
int finish_output();

}  // namespace leat::tool
