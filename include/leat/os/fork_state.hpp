// Per-process state for fork(): the descriptors that a child must close, those that it gets anew, and a
// random process token.
//
// A child must not keep its parent's locks alive. It closes its copies of their descriptors when it
// first runs (os/lock_file.hpp); from then on it has another fork_generation().
#pragma once

#include <pthread.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstdint>
#include <mutex>
#include <vector>

#include "leat/base/clock.hpp"
#include "leat/os/fork.hpp"
#include "leat/os/signals.hpp"
#include "leat/topic_id.hpp"

namespace leat::inline v0::detail {

// Something of which a child gets one of its own; called while the mutex of ForkState is held.
class Heritable {
 public:
  virtual void before_fork() noexcept = 0;
  virtual void in_parent() noexcept = 0;
  virtual void in_child() noexcept = 0;

 protected:
  ~Heritable() = default;
};

struct ForkState {
  std::mutex mutex;        // Held across fork(), so that the child sees the lists whole.
  std::vector<int> locks;  // Descriptor of every LockFile; -1 while it is being opened.
  std::vector<Heritable*> heritables;
  std::uint64_t process_token = 0;  // Random; a child gets a new one.
};

inline ForkState& fork_state() noexcept {
  static ForkState& state = *new ForkState;  // Never destroyed: fork handlers may run at any time.
  return state;
}

// A random number, unique to a process on this machine, across PID namespaces. Never 0.
inline std::uint64_t make_random() noexcept {
  std::uint64_t value = 0;
  if (::getrandom(&value, sizeof(value), 0) != sizeof(value)) {
    value = static_cast<std::uint64_t>(now_ns()) * 0x9e37'79b9'7f4a'7c15ULL ^
            static_cast<std::uint64_t>(::getpid());
  }
  return value | 1;
}

// A new topic's identity.
inline TopicId make_topic_id() noexcept {
  const std::array random{make_random(), make_random()};
  TopicId id{std::bit_cast<std::array<std::byte, 16>>(random)};
  id.bytes[6] = (id.bytes[6] & std::byte{0x0f}) | std::byte{0x40};  // version 4
  id.bytes[8] = (id.bytes[8] & std::byte{0x3f}) | std::byte{0x80};  // the variant of RFC 9562
  return id;
}

inline bool register_fork_handlers() noexcept {
  fork_state().process_token = make_random();
  return ::pthread_atfork(
             [] {
               ForkState& state = fork_state();
               state.mutex.lock();
               for (Heritable* const one : state.heritables) one->before_fork();
             },
             [] {
               ForkState& state = fork_state();
               for (Heritable* const one : state.heritables) one->in_parent();
               state.mutex.unlock();
             },
             [] {
               ForkState& state = fork_state();
               for (const int fd : state.locks) ::close(fd);
               state.locks.clear();
               for (Heritable* const one : state.heritables) one->in_child();
               ++fork_generation_value;
               state.process_token = make_random();
               state.mutex.unlock();
             }) == 0;
}
inline const bool fork_handlers_registered = register_fork_handlers();

inline std::uint64_t process_token() noexcept { return fork_state().process_token; }

// While it exists, this process does not fork: fork() in other threads waits, and signal handlers,
// which might fork, are blocked in this thread.
class ForkHeld {
 public:
  ForkHeld() : guard_{fork_state().mutex} {}

 private:
  const SignalsBlocked signals_;  // First: signals are blocked before the mutex is taken.
  const std::lock_guard<std::mutex> guard_;
};

}  // namespace leat::inline v0::detail
