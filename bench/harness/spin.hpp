// Waiting for another process without sleeping.
#pragma once

#include <sched.h>

#include <cstdint>

namespace leat::bench {

inline void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Call once() after each unsuccessful look at a word that another role will change.
class Spin {
 public:
  void once() noexcept {
    relax();
    once_without_pause();
  }
  // For a look that takes as long as a pause by itself.
  void once_without_pause() noexcept {
    if (++count_ % polls_per_yield_ == 0) ::sched_yield();
  }

  // In this process, yield after each look: roles share CPUs, so the one waited for may need this CPU.
  static void expect_crowd() noexcept { polls_per_yield_ = 1; }

 private:
  // Yielding this rarely costs nothing, and helps if something else runs on the CPU.
  static inline std::uint32_t polls_per_yield_ = 4096;
  std::uint32_t count_ = 0;
};

}  // namespace leat::bench
