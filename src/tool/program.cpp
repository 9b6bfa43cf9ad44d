#include "program.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "failure.hpp"
#include "help_formatter.hpp"
#include "hidden_commands.hpp"
#include "leat_version.hpp"

namespace leat::tool {
namespace {

int complain(int exit_code, std::string sentence) {
  tell(std::move(sentence));
  return exit_code;
}

std::string lower_first(std::string text) {
  if (text.size() > 1 && text[0] >= 'A' && text[0] <= 'Z' && (text[1] < 'A' || text[1] > 'Z')) {
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  }
  return text;
}

// The innermost command on the command line; below, its full name, such as "leat topic create".
const CLI::App& chosen_command(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : chosen_command(*chosen.front());
}
std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

// Lists the commands if one is missing or unknown; otherwise says what CLI11 says.
std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = chosen_command(app);
  const auto commands = command.get_subcommands(std::function<bool(const CLI::App*)>{});
  if (commands.empty())
    return fmt::format("{}; see `{} --help`", lower_first(error.what()), full_name(command));
  std::string known;
  for (const CLI::App* one : commands) known += (known.empty() ? "" : ", ") + one->get_name();
  const auto rest = app.remaining(true);  // With fallthrough(), the outermost one has them.
  if (rest.empty()) return fmt::format("`{}` needs a command: {}", full_name(command), known);
  return fmt::format("`{}` does not know '{}'; there are: {}", full_name(command), rest.front(),
                     known);
}

}  // namespace

void open_missing_streams() {
  constexpr int kModes[] = {O_WRONLY, O_RDONLY, O_WRONLY};
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    if (::open("/dev/null", kModes[fd]) != fd) std::_Exit(kExitFailed);
  }
}

void add_common_options(CLI::App& app) {
  app.set_version_flag("--version",
                       fmt::format("{} {} (commit {})", app.get_name(), kVersion, kCommit),
                       "Print version and commit");
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "Print this help");
  app.require_subcommand(1);
  app.fallthrough();  // --dir may also follow the command.
  app.add_option_function<std::string>(
         "--dir",
         [](const std::string& path) {
           if (path.empty())
             throw CLI::ValidationError("--dir", "the name of a directory is needed");
           ::setenv("LEAT_DIR", path.c_str(), 1);  // The library reads the environment.
         },
         "Where topics live; else $LEAT_DIR, else /dev/shm/leat-<uid>")
      ->type_name("DIRECTORY");
}

int run(CLI::App& app, int argc, char** argv) {
  if (const auto exit_code = run_hidden_command(app, argc, argv)) return *exit_code;
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return complain(kExitUsage, explain(app, error));
  } catch (const Failure& failure) {
    return complain(failure.exit_code(), failure.what());
  } catch (const std::exception& error) {  // Out of memory, or a bug.
    return complain(kExitFailed, error.what());
  }
  return finish_output();
}

int finish_output() {
  // Some commands flush earlier. What they could not write then is gone, but ferror() still tells.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return complain(errno == ENOSPC ? kExitFull : kExitFailed, "cannot write to standard output");
  }
  return 0;
}

}  // namespace leat::tool
