#include "broker_process.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "leat/deadline.hpp"
#include "leat/os/os.hpp"
#include "lightq/client/password.hpp"

namespace leat::lightq_api {
namespace {

using namespace std::chrono_literals;

constexpr char kExecutable[] = "leat-serve";
constexpr auto kStartTime = 20s;
constexpr auto kEndTime = 10s;  // It takes up to 2 s to publish what it has received.
constexpr int kCannotRun = 127;

// With a slash at the end; empty if there is none.
std::string directory_of(std::string_view path) {
  return std::string{path.substr(0, path.rfind('/') + 1)};
}

// Where it may be, in this order: beside the library, where it is installed beside it, beside the program, in $PATH.
std::vector<std::string> places() {
  std::vector<std::string> all;
  Dl_info library{};
  if (::dladdr(reinterpret_cast<const void*>(&directory_of), &library) != 0 &&
      library.dli_fname != nullptr) {
    const std::string directory = directory_of(library.dli_fname);
    for (const char* there : {"", "../bin/", "../../bin/"}) all.push_back(directory + there);
  }
  char program[4096];
  const ::ssize_t size = ::readlink("/proc/self/exe", program, sizeof program);
  if (size > 0) all.push_back(directory_of({program, static_cast<std::size_t>(size)}));
  const char* const path = std::getenv("PATH");
  for (std::string_view rest = path == nullptr ? "" : path; !rest.empty();) {
    const std::size_t colon = rest.find(':');
    if (colon != 0) all.push_back(std::string{rest.substr(0, colon)} + "/");
    rest.remove_prefix(colon == rest.npos ? rest.size() : colon + 1);
  }
  return all;
}

Outcome<std::string> find_executable() {
  for (const std::string& directory : places()) {
    std::string path = directory + kExecutable;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return Problem{Errc::not_found,
                 "leat-serve is neither beside the library, nor beside the program, nor in $PATH"};
}

// In the child: nothing here may allocate, or take a lock.
[[noreturn]] void become(const char* executable, char* const* arguments, int password, int told,
                         ::pid_t parent) noexcept {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(kCannotRun);  // It died before.
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int inherited : {password, told}) ::fcntl(inherited, F_SETFD, 0);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(null, STDIN_FILENO);
  ::execv(executable, arguments);
  ::_exit(kCannotRun);
}

std::string end_text(int status) {
  if (WIFSIGNALED(status)) return "was ended by signal " + std::to_string(WTERMSIG(status));
  const int code = WEXITSTATUS(status);
  if (code == kCannotRun) return "could not be run";
  return "ended with exit code " + std::to_string(code) + "; its last line on stderr says why";
}

}  // namespace

Outcome<std::unique_ptr<BrokerProcess>> BrokerProcess::start(const BrokerOptions& options) {
  const bool is_any = options.bind_ip == "*";
  const auto password = lightq::password_pipe(options.admin_password);
  if (!password) return password.problem();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return Problem{Errc::io_error, std::string{"cannot make a pipe: "} + std::strerror(errno)};
  const os::Fd ready{ends[0]};
  os::Fd told{ends[1]};
  std::vector<std::string> arguments{kExecutable,
                                     "--lightq-port",
                                     std::to_string(options.port),
                                     "--admin-password-file",
                                     "/dev/fd/" + std::to_string(password->get()),
                                     "--ready-fd",
                                     std::to_string(told.get())};
  if (!is_any) arguments.insert(arguments.end(), {"--lightq-addresses", options.bind_ip});
  const auto executable = find_executable();
  if (!executable) return executable.problem();
  std::unique_ptr<BrokerProcess> broker{new BrokerProcess};
  broker->thread_ = std::thread{[self = broker.get(), executable = *executable, arguments,
                                 fd = password->get(), told = std::move(told)]() mutable {
    self->run(executable, arguments, fd, std::move(told));
  }};
  if (auto said = broker->wait_until_it_says_so(ready.get()); !said) return said.problem();
  return broker;
}

BrokerProcess::~BrokerProcess() { end(); }

// The thread that starts it.
void BrokerProcess::run(const std::string& executable, const std::vector<std::string>& arguments,
                        int password, os::Fd told) noexcept {
  std::vector<char*> pointers;
  for (const std::string& one : arguments) pointers.push_back(const_cast<char*>(one.c_str()));
  pointers.push_back(nullptr);
  const ::pid_t parent = ::getpid();
  std::unique_lock lock{mutex_};
  pid_ = ::fork();
  if (pid_ == 0) become(executable.c_str(), pointers.data(), password, told.get(), parent);
  told = {};  // It ends with the child's.
  const ::pid_t child = pid_;
  changed_.notify_all();
  lock.unlock();
  siginfo_t info{};
  // Without taking its status, so that its number stays its own until has_ended_ is set.
  while (child > 0 && ::waitid(P_PID, static_cast<::id_t>(child), &info, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  lock.lock();
  if (child <= 0 || ::waitpid(child, &status_, 0) != child) status_ = kCannotRun << 8;
  has_ended_ = true;
  changed_.notify_all();
}

// Another broker may have the port, so it does not help to ask there.
Outcome<void> BrokerProcess::wait_until_it_says_so(int ready) {
  pollfd item{.fd = ready, .events = POLLIN, .revents = 0};
  int count = 0;
  for (const Deadline deadline{kStartTime}; count <= 0 && !deadline.passed();)
    count = ::poll(&item, 1, 100);
  if (count <= 0) return Problem{Errc::timeout, "leat-serve is not ready in time"};
  char byte;
  if (::read(ready, &byte, 1) == 1) return {};
  std::unique_lock lock{mutex_};
  changed_.wait_for(lock, kEndTime, [this] { return has_ended_; });
  return Problem{Errc::closed, "leat-serve " + end_text(status_)};
}

bool BrokerProcess::wait() {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [this] { return has_ended_; });
  return status_ == 0;
}

bool BrokerProcess::is_running() {
  const std::lock_guard lock{mutex_};
  return pid_ > 0 && !has_ended_;
}

void BrokerProcess::end() noexcept {
  if (!thread_.joinable()) return;  // It could not be started.
  {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [this] { return pid_ != 0 || has_ended_; });
    for (const int signal : {SIGTERM, SIGKILL}) {
      if (pid_ <= 0 || has_ended_) break;
      ::kill(pid_, signal);
      changed_.wait_for(lock, kEndTime, [this] { return has_ended_; });
    }
  }
  thread_.join();
}

}  // namespace leat::lightq_api
