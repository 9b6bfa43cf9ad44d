// Sleeping on a word of shared memory until another process wakes it (futex(2), process-shared).
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <span>

#include "leat/deadline.hpp"

namespace leat::inline v0::detail {

#ifdef LEAT_MODEL
namespace model {
void futex_wait(const std::uint32_t* word, std::uint32_t expected, std::int64_t deadline_ns,
                bool never) noexcept;
void futex_wake(const std::uint32_t* word) noexcept;
}  // namespace model
#endif

inline timespec to_timespec(std::int64_t at_ns) noexcept {
  return {.tv_sec = at_ns / 1'000'000'000, .tv_nsec = at_ns % 1'000'000'000};
}

// Sleeps while `word` equals `expected`, until woken or the deadline. May return spuriously. True if a signal
// handler ran meanwhile; with SA_RESTART and no deadline the kernel goes on instead.
inline bool futex_wait(const std::uint32_t& word, std::uint32_t expected,
                       Deadline deadline) noexcept {
  if (deadline.is_immediate()) return false;
#ifdef LEAT_MODEL
  model::futex_wait(&word, expected, deadline.at_ns(), deadline.is_never());
  return false;
#else
  const timespec at = deadline.is_never() ? timespec{} : to_timespec(deadline.at_ns());
  return ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, expected,
                   deadline.is_never() ? nullptr : &at, nullptr, FUTEX_BITSET_MATCH_ANY) < 0 &&
         errno == EINTR;
#endif
}

// Wakes all sleepers on the word.
inline void futex_wake_all(const std::uint32_t& word) noexcept {
#ifdef LEAT_MODEL
  model::futex_wake(&word);
#else
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
#endif
}

// A word to sleep on, and its expected value.
struct FutexWait {
  const std::uint32_t* word;
  std::uint32_t expected;
};
inline constexpr std::size_t kMaxFutexWaits = 128;  // The kernel's own limit (FUTEX_WAITV_MAX).

#if defined(SYS_futex_waitv) && !defined(LEAT_MODEL)
// Asks the kernel whether it has futex_waitv, which refuses to wait for no words with EINVAL. Any other error is of a
// kernel without it (ENOSYS), or of a seccomp filter that does not know the call (ENOSYS, EPERM, or what it likes).
inline bool probe_futex_waitv() noexcept {
  return ::syscall(SYS_futex_waitv, nullptr, 0, 0, nullptr, 0) < 0 && errno == EINVAL;
}
// Cleared if the call is refused later: a process may install a filter at any time.
inline std::atomic<bool>& futex_waitv_works() noexcept {
  static std::atomic<bool> works{probe_futex_waitv()};
  return works;
}
#endif

// Whether this process can sleep on several words at once (Linux 5.16).
inline bool has_futex_waitv() noexcept {
#if defined(SYS_futex_waitv) && !defined(LEAT_MODEL)
  // relaxed: a flag of its own; a late look costs one more refused call.
  return futex_waitv_works().load(std::memory_order_relaxed);
#else
  return false;
#endif
}

inline constexpr long kInterrupted = -2;

// Sleeps until one of the words is woken or differs from its expected value. Returns the index of
// the last word that was woken, kInterrupted as futex_wait() does, or -1 if it is unknown. Without
// futex_waitv, sleeps on the first word for at most 1 ms, so that callers check the others in turn.
inline long futex_wait_any(std::span<const FutexWait> waits, Deadline deadline) noexcept {
  if (deadline.is_immediate() || waits.empty()) return -1;
#if defined(SYS_futex_waitv) && !defined(LEAT_MODEL)
  if (waits.size() <= kMaxFutexWaits && has_futex_waitv()) {
    futex_waitv entries[kMaxFutexWaits] = {};
    for (std::size_t i = 0; i < waits.size(); ++i) {
      entries[i].val = waits[i].expected;
      entries[i].uaddr = reinterpret_cast<std::uintptr_t>(waits[i].word);
      entries[i].flags = FUTEX_32;
    }
    const timespec at = deadline.is_never() ? timespec{} : to_timespec(deadline.at_ns());
    const long woken = ::syscall(SYS_futex_waitv, entries, waits.size(), 0,
                                 deadline.is_never() ? nullptr : &at, CLOCK_MONOTONIC);
    if (woken >= 0 || errno == EAGAIN || errno == ETIMEDOUT) return woken;
    if (errno == EINTR) return kInterrupted;
    // Returning without a sleep would make the caller spin.
    // relaxed: as in has_futex_waitv().
    if (!probe_futex_waitv()) futex_waitv_works().store(false, std::memory_order_relaxed);
  }
#endif
  return futex_wait(*waits[0].word, waits[0].expected, deadline.at_most_ns(1'000'000))
             ? kInterrupted
             : -1;
}

}  // namespace leat::inline v0::detail
