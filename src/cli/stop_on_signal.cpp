#include "stop_on_signal.hpp"

#include <unistd.h>

#include <ctime>

namespace leat::cli {
namespace {

// Makes a blocking system call of the owner return with EINTR; does nothing else.
constexpr int kInterrupt = SIGUSR1;
// Makes the watching thread look whether it is done.
constexpr int kDone = SIGUSR2;
constexpr long kInterruptEveryNs = 20'000'000;

}  // namespace

StopOnSignal::StopOnSignal() : owner_{::pthread_self()} {
  sigemptyset(&watched_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction current {};
    ::sigaction(signal, nullptr, &current);
    // Who started us ignores it on purpose (nohup, a shell's background job): so do we.
    if (current.sa_handler != SIG_IGN) sigaddset(&watched_, signal);
  }
  sigaddset(&watched_, kDone);
  struct sigaction interrupt {};
  interrupt.sa_handler = [](int) {};
  ::sigaction(kInterrupt, &interrupt, nullptr);
  // Blocked in every thread; watch() takes them one by one.
  ::pthread_sigmask(SIG_BLOCK, &watched_, nullptr);
  thread_ = std::thread{[this] { watch(); }};
}

StopOnSignal::~StopOnSignal() {
  done_ = true;
  ::pthread_kill(thread_.native_handle(), kDone);
  thread_.join();
}

void StopOnSignal::watch() {
  while (true) {
    const timespec interval{.tv_sec = 0, .tv_nsec = kInterruptEveryNs};
    const int signal = stopped() ? ::sigtimedwait(&watched_, nullptr, &interval)
                                 : ::sigwaitinfo(&watched_, nullptr);
    if (done_) return;
    if (signal > 0 && signal != kDone) {
      if (stopped()) ::_exit(128 + signal);
      stop_.request_stop();
    }
    // Again and again, because the owner may be just about to block.
    if (stopped()) ::pthread_kill(owner_, kInterrupt);
  }
}

}  // namespace leat::cli
