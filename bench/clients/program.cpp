#include "program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <sstream>

#include "leat/os/fd.hpp"

namespace leat::bench::clients {
namespace {

constexpr std::size_t kMostOutput = 64 << 10;  // What is beyond is not looked at.

// What a program writes goes here: unlike a pipe, it need not be emptied meanwhile.
detail::Fd memory_file() {
  detail::Fd file{::memfd_create("output", MFD_CLOEXEC)};
  if (!file) throw system_failure("cannot make a file in memory");
  return file;
}

std::string text_in(const detail::Fd& file) {
  std::string text(kMostOutput, '\0');
  const ssize_t size = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  return text;
}

// The last line that is not empty, behind a colon; or nothing.
std::string last_words(const std::string& text) {
  std::istringstream lines{text};
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  }
  return last.empty() ? last : ": " + last;
}

[[noreturn]] void become(const Program& program, int out, int err) {
  ::setpgid(0, 0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
  ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  ::setenv("LEAT_DIR", program.topic_directory.c_str(), 1);
  std::vector<char*> arguments{const_cast<char*>(program.path.c_str())};
  for (const std::string& argument : program.arguments) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  ::execv(program.path.c_str(), arguments.data());
  throw system_failure(fmt::format("cannot run {}", program.path));
}

// Ends what is left of a program when it is given up: also by Ctrl-C.
class GroupKiller {
 public:
  explicit GroupKiller(Child& child) : child_{child} {}
  ~GroupKiller() {
    if (!child_.has_ended()) ::kill(-child_.pid(), SIGKILL);
  }
  GroupKiller(const GroupKiller&) = delete;
  GroupKiller& operator=(const GroupKiller&) = delete;

 private:
  Child& child_;
};

}  // namespace

std::string output_of(const SignalScope& signals, const Program& program) {
  const detail::Fd out = memory_file();
  const detail::Fd err = memory_file();
  Child child{program.name, program.cpu, [&] { become(program, out.get(), err.get()); }};
  const GroupKiller killer{child};
  const std::string late =
      fmt::format("the {} was not done after {} s", program.name, program.time_limit.count());
  wait_until(signals, program.time_limit, late.c_str(), [&] { return child.has_ended(); });
  try {
    child.check_end();
  } catch (const Failure& failure) {
    throw Failure(failure.what() + last_words(text_in(err)));
  }
  return text_in(out);
}

}  // namespace leat::bench::clients
