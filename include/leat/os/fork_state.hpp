// What this process keeps for its forks: the descriptors that a child must close, and a token of its own.
//
// A child must not keep its parent's locks alive: it closes its copies of their descriptors at once
// (os/lock_file.hpp), and from then on has another fork_generation().
#pragma once

#include <pthread.h>
#include <sys/random.h>
#include <unistd.h>

#include <cstdint>
#include <mutex>
#include <vector>

#include "leat/base/clock.hpp"
#include "leat/os/fork.hpp"
#include "leat/os/signals.hpp"

namespace leat::inline v0::detail {

struct ForkState {
  std::mutex mutex;                 // Held by fork() itself, so that the child finds `locks` whole.
  std::vector<int> locks;           // Descriptors of every LockFile.
  std::uint64_t process_token = 0;  // Random; remade in a child.
};

inline ForkState& fork_state() noexcept {
  static ForkState& state = *new ForkState;  // Never destroyed: handlers may run at any time.
  return state;
}

// A number that no other process on the machine has, not even in another PID namespace.
inline std::uint64_t make_random() noexcept {
  std::uint64_t value = 0;
  if (::getrandom(&value, sizeof(value), 0) != sizeof(value)) {
    value = static_cast<std::uint64_t>(now_ns()) * 0x9e37'79b9'7f4a'7c15ULL ^
            static_cast<std::uint64_t>(::getpid());
  }
  return value | 1;
}

inline bool register_fork_handlers() noexcept {
  fork_state().process_token = make_random();
  return ::pthread_atfork([] { fork_state().mutex.lock(); }, [] { fork_state().mutex.unlock(); },
                          [] {
                            ForkState& state = fork_state();
                            for (const int fd : state.locks) ::close(fd);
                            state.locks.clear();
                            ++fork_generation_value;
                            state.process_token = make_random();
                            state.mutex.unlock();
                          }) == 0;
}
inline const bool fork_handlers_registered = register_fork_handlers();

inline std::uint64_t process_token() noexcept { return fork_state().process_token; }

// While it lives this process does not fork: other threads that want to wait, and this one runs no
// signal handler that might.
class ForkHeld {
 public:
  ForkHeld() : guard_{fork_state().mutex} {}

 private:
  const SignalsBlocked signals_;  // First: before the mutex is taken.
  const std::lock_guard<std::mutex> guard_;
};

}  // namespace leat::inline v0::detail
