#include "program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "failure.hpp"
#include "help_formatter.hpp"
#include "hidden_commands.hpp"
#include "leat_version.hpp"
#include "topic_directory.hpp"
#include "usage_error.hpp"

namespace leat::tool {
namespace {

// Whether an option that takes a value has this name, in any command.
bool has_valued_option(const CLI::App& app, const std::string& name) {
  const CLI::Option* option = app.get_option_no_throw(name);
  if (option != nullptr && takes_value(*option)) return true;
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  return std::any_of(commands.begin(), commands.end(),
                     [&](const CLI::App* command) { return has_valued_option(*command, name); });
}

// "--dir=" becomes "--dir" and "": CLI11 would take the next word for the value.
std::vector<char*> with_empty_values(const CLI::App& app, int argc, char** argv) {
  static char nothing[] = "";
  std::vector<char*> arguments{argv, argv + argc};
  for (std::size_t i = 1; i < arguments.size() && std::string_view{arguments[i]} != "--"; ++i) {
    const std::string_view word = arguments[i];
    if (!word.starts_with("--") || word.find('=') != word.size() - 1) continue;
    if (!has_valued_option(app, std::string{word.substr(0, word.size() - 1)})) continue;
    arguments[i][word.size() - 1] = '\0';
    arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(++i), nothing);
  }
  return arguments;
}

int complain(int exit_code, std::string sentence) {
  print_notice(std::move(sentence));
  return exit_code;
}

// CLI11 treats it as the end of a command's arguments, and would drop it.
void refuse_lone_plus_signs(int argc, char** argv) {
  for (int i = 1; i < argc && std::string_view{argv[i]} != "--"; ++i) {
    if (std::string_view{argv[i]} == "++") throw Failure{kExitUsage, "write -- before '++'"};
  }
}

// Whether a write to it may fail with EAGAIN, and its path opens the same thing again. Not so a regular file, which would
// be overwritten from its start, nor the master of a pseudoterminal, whose path opens another one.
bool may_be_opened_again(int fd) {
  struct stat status {};
  unsigned pseudoterminal = 0;
  return ::fstat(fd, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) &&
         ::ioctl(fd, TIOCGPTN, &pseudoterminal) != 0;
}

}  // namespace

void open_missing_streams() {
  constexpr int kModes[] = {O_WRONLY, O_RDONLY, O_WRONLY};
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    if (::open("/dev/null", kModes[fd]) != fd) std::_Exit(kExitFailed);
  }
}

void open_blocking_output() {
  const int flags = ::fcntl(STDOUT_FILENO, F_GETFL);
  if (flags < 0 || (flags & O_NONBLOCK) == 0 || !may_be_opened_again(STDOUT_FILENO)) return;
  // Opened without waiting, because the reader of a FIFO may be gone.
  const int own = ::open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (own < 0) return;
  if (::fcntl(own, F_SETFL, flags & ~O_NONBLOCK) == 0) ::dup2(own, STDOUT_FILENO);
  ::close(own);
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
  app.add_option_function<std::string>(
         "--data-dir",
         [](const std::string& path) {
           if (path.empty())
             throw CLI::ValidationError("--data-dir", "the name of a directory is needed");
           ::setenv("LEAT_DATA_DIR", path.c_str(), 1);
           note_named_data_directory();
         },
         "Where files of durable topics live; else $LEAT_DATA_DIR, else ~/.local/share/leat")
      ->type_name("DIRECTORY");
}

const CLI::Option* given_directory(const CLI::App& command) {
  const CLI::App* app = &command;
  while (app->get_parent() != nullptr) app = app->get_parent();
  for (const char* name : {"--dir", "--data-dir"}) {
    if (app->count(name) != 0) return app->get_option(name);
  }
  return nullptr;
}

int run(CLI::App& app, int argc, char** argv, const Manual& manual) {
  if (const auto exit_code = run_hidden_command(app, argc, argv, manual)) return *exit_code;
  try {
    refuse_lone_plus_signs(argc, argv);
    std::vector<char*> arguments = with_empty_values(app, argc, argv);
    app.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::Success& asked) {  // --help, --version
    if (const auto sentence = explain_unknown_command(app)) return complain(kExitUsage, *sentence);
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

std::string directory_of_executable() {
  std::array<char, 4096> path{};
  const ::ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  const std::string_view whole{path.data(), length < 0 ? 0 : static_cast<std::size_t>(length)};
  return std::string{whole.substr(0, whole.rfind('/') + 1)};
}

int become_companion(const std::string& name, char* const* arguments) {
  // Not execvp(): a directory in $PATH that may not be searched says nothing about the program.
  const char* const variable = std::getenv("PATH");
  std::string_view path = variable == nullptr ? "" : variable;
  std::string candidate = directory_of_executable() + name;
  while (true) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(candidate, ignored)) {
      ::execv(candidate.c_str(), arguments);
      return errno;
    }
    if (path.empty()) return ENOENT;
    const std::string_view directory = path.substr(0, path.find(':'));
    candidate = fmt::format("{}/{}", directory.empty() ? "." : directory, name);
    path.remove_prefix(std::min(directory.size() + 1, path.size()));
  }
}

int finish_output() {
  // Some commands flush earlier. What they could not write then is gone, but ferror() still tells.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return complain(errno == ENOSPC ? kExitFull : kExitFailed, "cannot write to standard output");
  }
  return 0;
}

}  // namespace leat::tool
