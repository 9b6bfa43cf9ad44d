#include "demo_processes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <utility>

#include "cli/cli.hpp"

namespace leat::cli {
namespace {

constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGHUP};
constexpr int kTickMs = 50;

volatile std::sig_atomic_t stop_signal = 0;

std::pair<os::Fd, os::Fd> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw system_failure("cannot make a pipe", errno);
  return {os::Fd{ends[0]}, os::Fd{ends[1]}};
}

void write_sentence(WorkerReport& report, int exit_code, const char* sentence) noexcept {
  report.exit_code = exit_code;
  std::strncpy(report.sentence, sentence, sizeof(report.sentence) - 1);
}

// Until each worker is ready (or, `until_end`, has ended).
void wait_for(Workers workers, bool until_end, std::chrono::steady_clock::time_point deadline,
              const std::function<void()>& tick) {
  while (true) {
    std::vector<pollfd> waiting;
    for (const auto& worker : workers) {
      if (until_end ? !worker->has_ended() : !worker->is_ready())
        waiting.push_back({worker->ready_fd(), POLLIN, 0});
    }
    if (waiting.empty()) return;
    check_stop_signals();
    if (std::chrono::steady_clock::now() > deadline) {
      throw Failure{kExitFailed, "the processes did not finish in time; is the machine very busy?"};
    }
    ::poll(waiting.data(), waiting.size(), kTickMs);
    for (const pollfd& entry : waiting) {
      if (entry.revents == 0) continue;
      for (const auto& worker : workers) {
        if (worker->ready_fd() == entry.fd) worker->take_ready();
      }
    }
    tick();
  }
}

}  // namespace

void Start::wait() const {
  char byte = 1;
  ssize_t got = -1;
  if (::write(ready_, &byte, 1) == 1) {
    while ((got = ::read(go_, &byte, 1)) < 0 && errno == EINTR) {
    }
  }
  if (got != 1) ::_exit(kExitFailed);  // The parent has gone.
}

Worker::Worker(std::string name, const std::function<void(WorkerReport&, const Start&)>& work)
    : name_{std::move(name)} {
  void* memory = ::mmap(nullptr, sizeof(WorkerReport), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw system_failure("cannot map memory", errno);
  report_ = new (memory) WorkerReport{};
  auto [ready_read, ready_write] = make_pipe();
  auto [go_read, go_write] = make_pipe();
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw system_failure("cannot start a process", errno);
  if (pid_ == 0) run_child(parent, work, Start{ready_write.get(), go_read.get()});
  ready_ = std::move(ready_read);
  go_ = std::move(go_write);
}

void Worker::run_child(pid_t parent, const std::function<void(WorkerReport&, const Start&)>& work,
                       const Start& start) noexcept {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kExitFailed);  // It died before that.
  for (const int signal : kStopSignals) std::signal(signal, SIG_DFL);
  try {
    work(*report_, start);
  } catch (const Failure& failure) {
    write_sentence(*report_, failure.exit_code(), failure.what());
  } catch (const std::exception& error) {
    write_sentence(*report_, kExitFailed, error.what());
  }
  ::_exit(report_->exit_code);
}

Worker::~Worker() {
  if (pid_ > 0 && !ended_) {
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  ::munmap(report_, sizeof(WorkerReport));
}

bool Worker::take_ready() {
  char byte = 0;
  const ssize_t got = ::read(ready_.get(), &byte, 1);
  if (got == 1) ready_seen_ = true;
  if (got == 0) collect();
  return ready_seen_;
}

// The pipe is closed: the worker has ended or is just ending.
void Worker::collect() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  ended_ = true;
  if (report_->exit_code != 0) {
    throw Failure{report_->exit_code, fmt::format("{}: {}", name_, report_->sentence)};
  }
  if (WIFSIGNALED(status)) {
    throw Failure{kExitFailed, fmt::format("{} was killed by signal {} ({})", name_,
                                           WTERMSIG(status), ::strsignal(WTERMSIG(status)))};
  }
  if (WEXITSTATUS(status) != 0 || !ready_seen_) throw Failure{kExitFailed, name_ + " ended early"};
}

void Worker::go() {
  const char byte = 1;
  if (::write(go_.get(), &byte, 1) != 1) throw system_failure("cannot start " + name_, errno);
}

void wait_until_ready(Workers workers, std::chrono::steady_clock::time_point deadline) {
  wait_for(workers, false, deadline, [] {});
}

void wait_until_done(Workers workers, std::chrono::steady_clock::time_point deadline,
                     const std::function<void()>& tick) {
  wait_for(workers, true, deadline, tick);
}

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = [](int signal) { stop_signal = signal; };
  for (const int signal : kStopSignals) {
    struct sigaction current {};
    ::sigaction(signal, nullptr, &current);
    if (current.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
  }
  std::signal(SIGPIPE, SIG_IGN);  // A worker that died is noticed otherwise.
}

void check_stop_signals() {
  if (stop_signal != 0)
    throw Failure{kExitFailed, "stopped on request before everything was verified"};
}

}  // namespace leat::cli
