// SIGINT, SIGTERM and SIGHUP as a stop token, for commands that run until they are told to end.
//
//     const StopOnSignal signals;
//     subscriber->wait(leat::Deadline::never(), signals.token());
//     if (read(fd, …) < 0 && errno == EINTR && signals.stopped()) return;
//
// One per process, made by the main thread before other threads. A second signal ends the process at once, in case
// it does not look at the token; but not one that comes with the first: `timeout` sends two, for instance.
#pragma once

#include <pthread.h>
#include <termios.h>

#include <atomic>
#include <csignal>
#include <stop_token>
#include <string>
#include <thread>

#include "tool/failure.hpp"

namespace leat::cli {

// Sets stdin's terminal, unless another job of the shell has it: that would stop the process (SIGTTOU).
void set_terminal(const termios& terminal) noexcept;

class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  std::stop_token token() const { return stop_.get_token(); }
  bool stopped() const noexcept { return stop_.stop_requested(); }
  // Ends a command that a signal interrupted: "stopped by SIGTERM; <what>", with 128 + the signal's number as
  // exit code, as in shells. Only after stopped() was true.
  tool::Failure failure(const std::string& what) const;
  // What stdin's terminal is set to if a second signal ends the process. Must outlive this.
  void set_terminal_at_end(const termios& terminal) noexcept { terminal_at_end_ = &terminal; }

 private:
  void watch();

  std::stop_source stop_;
  std::atomic<int> signal_{0};  // The one that stopped it.
  std::atomic<const termios*> terminal_at_end_{nullptr};
  pthread_t owner_;
  sigset_t watched_{};
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace leat::cli
