// Keeping the program's signals out of places where they would do harm.
#pragma once

#include <signal.h>
#include <time.h>

#include <cerrno>

namespace leat::inline v0::detail {

// Blocks all signals of the calling thread while it lives. Threads that are started meanwhile never handle
// any: those of the library's own leave the program's signals to the program's threads.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

// Of the calling thread or of its whole process; blocked, else it would have been handled.
inline bool is_pending(int signal) noexcept {
  sigset_t pending;
  return ::sigpending(&pending) == 0 && ::sigismember(&pending, signal) == 1;
}
// Takes a pending signal off, so that nobody ever handles it. It must be blocked.
inline void take_pending(int signal) noexcept {
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, signal);
  const timespec now{};
  while (::sigtimedwait(&only, nullptr, &now) < 0 && errno == EINTR) {
  }
}

}  // namespace leat::inline v0::detail
