#include "program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "failure.hpp"
#include "help_formatter.hpp"
#include "hidden_commands.hpp"
#include "leat_version.hpp"
#include "topic_directory.hpp"
#include "usage_error.hpp"

namespace leat::tool {
namespace {

int complain(int exit_code, std::string sentence) {
  tell(std::move(sentence));
  return exit_code;
}

// CLI11 treats it as the end of a command's arguments, and would drop it.
void refuse_lone_plus_signs(int argc, char** argv) {
  for (int i = 1; i < argc && std::string_view{argv[i]} != "--"; ++i) {
    if (std::string_view{argv[i]} == "++") throw Failure{kExitUsage, "write -- before '++'"};
  }
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

int run(CLI::App& app, int argc, char** argv) {
  if (const auto exit_code = run_hidden_command(app, argc, argv)) return *exit_code;
  try {
    refuse_lone_plus_signs(argc, argv);
    app.parse(argc, argv);
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
  ::execv((directory_of_executable() + name).c_str(), arguments);
  if (errno == ENOENT) ::execvp(name.c_str(), arguments);
  return errno;
}

int finish_output() {
  // Some commands flush earlier. What they could not write then is gone, but ferror() still tells.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return complain(errno == ENOSPC ? kExitFull : kExitFailed, "cannot write to standard output");
  }
  return 0;
}

}  // namespace leat::tool
