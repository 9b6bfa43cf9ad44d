// A word that the kernel rings when a thread dies: it wakes one of those who sleep on it.
//
//     DeathBellGuard guard{bell};   // if this thread is killed from here on, somebody is woken
//
// This is the kernel's help for robust locks (get_robust_list(2); the kernel's documentation,
// locking/robust-futex-ABI): each thread has a list of the locks it holds, and the one that it is
// just taking or releasing is "pending". When a thread dies, the kernel looks at the pending lock, and
// if its word is 0 it wakes one sleeper, for the lock may have been given back and nobody told. Our
// word is always 0 and nobody's lock.
//
// The C library uses the same pending entry while it locks or unlocks a robust mutex. So the guard puts
// back what was there before: it may be used in a signal handler that interrupted such a call, or another
// guard. There is only one entry, so the bell of the interrupted one is silent meanwhile; and a handler
// that uses a robust mutex silences the bell of what it interrupted.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace leat::inline v0::detail {

#ifdef LEAT_MODEL
inline constexpr bool kHasDeathBell = false;  // Nobody dies in the model but at a step.
#else
inline constexpr bool kHasDeathBell = true;
#endif

// What the kernel knows of this thread, or, where it knows nothing, memory that nobody looks at.
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

class DeathBellGuard {
 public:
  [[gnu::always_inline]] explicit DeathBellGuard(const std::uint32_t& bell) noexcept {
    if constexpr (kHasDeathBell) {
      head_ = &robust_list_of_thread();
      before_ = pending();
      // The kernel adds futex_offset and finds the word.
      const auto entry = reinterpret_cast<std::intptr_t>(&bell) - head_->futex_offset;
      pending() = reinterpret_cast<robust_list*>(entry);
    }
  }
  [[gnu::always_inline]] ~DeathBellGuard() {
    if constexpr (kHasDeathBell) pending() = before_;
  }
  DeathBellGuard(const DeathBellGuard&) = delete;
  DeathBellGuard& operator=(const DeathBellGuard&) = delete;

 private:
  // volatile: the kernel reads it, whenever the thread is killed.
  robust_list* volatile& pending() const noexcept { return head_->list_op_pending; }

  robust_list_head* head_ = nullptr;
  robust_list* before_ = nullptr;  // Most often null.
};

}  // namespace leat::inline v0::detail
