// A word on which the kernel wakes one sleeper when a thread dies.
//
//     RobustWakeGuard guard{word};   // if this thread is killed from here on, one sleeper is woken
//
// This uses the kernel's support for robust locks (get_robust_list(2); kernel documentation,
// locking/robust-futex-ABI). Each thread has a list of the locks that it holds; the one that it is
// taking or releasing is "pending". When a thread dies and the word of its pending lock is 0, the
// kernel wakes one sleeper on that word, because the lock may have been released without a wake-up.
// Our word is always 0 and is no lock at all.
//
// The C library uses the same pending entry while it locks or unlocks a robust mutex. The guard
// therefore restores the previous value, so it may be used in a signal handler that interrupted
// such a call, or another guard. There is only one entry per thread: the interrupted guard has no
// effect until the handler returns, and none at all if the handler uses a robust mutex.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace leat::inline v0::detail {

#ifdef LEAT_MODEL
inline constexpr bool kHasRobustWake =
    false;  // In the model, threads die only at model operations.
#else
inline constexpr bool kHasRobustWake = true;
#endif

// The calling thread's robust list head, as registered with the kernel. If there is none, a dummy
// that nobody reads.
inline robust_list_head& robust_list_of_thread() noexcept {
  static thread_local robust_list_head unknown{};
  static thread_local robust_list_head* head = nullptr;
  if (head == nullptr) [[unlikely]] {
    std::size_t size = 0;
    if (::syscall(SYS_get_robust_list, 0, &head, &size) != 0 || head == nullptr ||
        size != sizeof(*head)) {
      head = &unknown;
    }
  }
  return *head;
}

class RobustWakeGuard {
 public:
  [[gnu::always_inline]] explicit RobustWakeGuard(const std::uint32_t& word) noexcept {
    if constexpr (kHasRobustWake) {
      head_ = &robust_list_of_thread();
      before_ = pending();
      // The kernel adds futex_offset to the entry to find the word.
      const auto entry = reinterpret_cast<std::intptr_t>(&word) - head_->futex_offset;
      pending() = reinterpret_cast<robust_list*>(entry);
    }
  }
  [[gnu::always_inline]] ~RobustWakeGuard() {
    if constexpr (kHasRobustWake) pending() = before_;
  }
  RobustWakeGuard(const RobustWakeGuard&) = delete;
  RobustWakeGuard& operator=(const RobustWakeGuard&) = delete;

 private:
  // volatile: the kernel reads it when the thread is killed, at any instruction.
  robust_list* volatile& pending() const noexcept { return head_->list_op_pending; }

  robust_list_head* head_ = nullptr;
  robust_list* before_ = nullptr;  // Previous pending entry, usually null.
};

}  // namespace leat::inline v0::detail
