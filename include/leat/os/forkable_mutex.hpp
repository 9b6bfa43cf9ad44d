// A mutex that a forked child finds unlocked, whatever the threads of its parent were doing.
//
//     ForkableMutex mutex;
//     const std::lock_guard guard{mutex};
//
// Only for state that a child can use, or repair, if another thread was just changing it during the fork.
#pragma once

#include <atomic>
#include <cstdint>

#include "leat/os/fork.hpp"

namespace leat::inline v0::detail {

class ForkableMutex {
 public:
  void lock() noexcept {
    const std::uint32_t mine = fork_generation();
    std::uint32_t seen = 0;
    // acquire; pairs with unlock(). What a thread of the parent had locked is taken over.
    while (!holder_.compare_exchange_weak(seen, mine, std::memory_order_acquire)) {
      if (seen != mine) continue;
      holder_.wait(mine, std::memory_order_relaxed);  // relaxed: the swap decides.
      seen = 0;
    }
  }
  void unlock() noexcept {
    holder_.store(0, std::memory_order_release);  // pairs with lock()
    holder_.notify_one();
  }

 private:
  std::atomic<std::uint32_t> holder_ = 0;  // fork_generation() of who has it locked, or 0
};

}  // namespace leat::inline v0::detail
