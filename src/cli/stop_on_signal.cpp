#include "stop_on_signal.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <ctime>

namespace leat::cli {
namespace {

// Makes a blocking system call of the owner return with EINTR; does nothing else.
constexpr int kInterrupt = SIGUSR1;
// Makes the watching thread check whether it is done.
constexpr int kDone = SIGUSR2;
constexpr long kInterruptEveryNs = 20'000'000;

using Clock = std::chrono::steady_clock;
// Signals that come sooner after the first are the same request.
constexpr std::chrono::milliseconds kOneRequest{500};

}  // namespace

void set_terminal(const termios& terminal) noexcept {
  const ::pid_t foreground = ::tcgetpgrp(STDIN_FILENO);  // -1: a terminal without jobs.
  if (foreground < 0 || foreground == ::getpgrp()) ::tcsetattr(STDIN_FILENO, TCSANOW, &terminal);
}

StopOnSignal::StopOnSignal() : owner_{::pthread_self()} {
  sigemptyset(&watched_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction current {};
    ::sigaction(signal, nullptr, &current);
    // Ignored by whoever started us (nohup, a shell's background job): leave it ignored.
    if (current.sa_handler != SIG_IGN) sigaddset(&watched_, signal);
  }
  sigaddset(&watched_, kDone);
  struct sigaction interrupt {};
  interrupt.sa_handler = [](int) {};
  ::sigaction(kInterrupt, &interrupt, nullptr);
  sigset_t interrupts;
  sigemptyset(&interrupts);
  sigaddset(&interrupts, kInterrupt);
  ::pthread_sigmask(SIG_UNBLOCK, &interrupts, nullptr);
  // Blocked in every thread; watch() takes them one at a time.
  ::pthread_sigmask(SIG_BLOCK, &watched_, nullptr);
  thread_ = std::thread{[this] { watch(); }};
}

StopOnSignal::~StopOnSignal() {
  done_ = true;
  ::pthread_kill(thread_.native_handle(), kDone);
  thread_.join();
}

tool::Failure StopOnSignal::failure(const std::string& what) const {
  const int signal = signal_;
  return tool::Failure{128 + signal,
                       fmt::format("stopped by SIG{}; {}", ::sigabbrev_np(signal), what)};
}

void StopOnSignal::watch() {
  Clock::time_point stopped_at;
  while (true) {
    const timespec interval{.tv_sec = 0, .tv_nsec = kInterruptEveryNs};
    const int signal = stopped() ? ::sigtimedwait(&watched_, nullptr, &interval)
                                 : ::sigwaitinfo(&watched_, nullptr);
    if (done_) return;
    if (signal > 0 && signal != kDone) {
      if (!stopped()) {
        stopped_at = Clock::now();
        signal_ = signal;
        stop_.request_stop();
      } else if (Clock::now() - stopped_at >= kOneRequest) {
        if (const termios* terminal = terminal_at_end_) set_terminal(*terminal);
        ::_exit(128 + signal);
      }
    }
    // Repeatedly: the owner may be about to enter a blocking call.
    if (stopped()) ::pthread_kill(owner_, kInterrupt);
  }
}

}  // namespace leat::cli
