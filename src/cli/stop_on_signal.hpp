// SIGINT, SIGTERM and SIGHUP as a stop token, for commands that run until they are told to end.
//
//     const StopOnSignal signals;
//     subscriber->wait(leat::Deadline::never(), signals.token());
//     if (read(fd, …) < 0 && errno == EINTR && signals.stopped()) return;
//
// One per process, made by the main thread before other threads. The second signal ends the process
// at once, should it not come to look at the token.
#pragma once

#include <pthread.h>

#include <atomic>
#include <csignal>
#include <stop_token>
#include <thread>

namespace leat::cli {

class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  std::stop_token token() const { return stop_.get_token(); }
  bool stopped() const noexcept { return stop_.stop_requested(); }

 private:
  void watch();

  std::stop_source stop_;
  pthread_t owner_;
  sigset_t watched_{};
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace leat::cli
