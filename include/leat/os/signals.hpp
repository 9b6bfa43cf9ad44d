// Threads of the library's own leave the program's signals to the program's threads.
#pragma once

#include <signal.h>

namespace leat::detail {

// Blocks all signals of the calling thread while it lives; threads that are started meanwhile never
// handle any.
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

}  // namespace leat::detail
