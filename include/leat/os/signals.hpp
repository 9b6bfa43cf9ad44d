// Blocking signals where a handler would do harm.
#pragma once

#include <signal.h>
#include <time.h>

#include <cerrno>

namespace leat::inline v0::detail {

// Blocks all signals in the calling thread while it exists. Threads started meanwhile inherit the
// mask, so the library's own threads never run the program's signal handlers.
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

// Whether a blocked signal is pending, for the calling thread or the process.
inline bool is_pending(int signal) noexcept {
  sigset_t pending;
  return ::sigpending(&pending) == 0 && ::sigismember(&pending, signal) == 1;
}
// Consumes a pending signal without running its handler. It must be blocked.
inline void take_pending(int signal) noexcept {
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, signal);
  const timespec now{};
  while (::sigtimedwait(&only, nullptr, &now) < 0 && errno == EINTR) {
  }
}

}  // namespace leat::inline v0::detail
