// Detects whether this process is a forked child, so that inherited handles can be refused.
//
// A handle stores the fork_generation() of its creation and compares it before use: one load of a
// private global. A child must not use its parent's handles, because both processes would then own
// the same participant. What happens at a fork is in os/fork_state.hpp.
#pragma once

#include <atomic>
#include <cstdint>

namespace leat::inline v0::detail {

inline std::uint32_t fork_generation_value = 1;  // Written only in a new child, at the fork.

inline std::uint32_t fork_generation() noexcept { return fork_generation_value; }

#ifdef LEAT_MODEL
namespace model {
std::uint64_t thread_token() noexcept;
}
#endif

inline std::atomic<std::uint64_t> last_thread_token = 0;

// Identifies the calling thread within its process; never 0. No later thread gets the number of one that has ended, as it
// would get an address or a thread ID: a subscriber may be handed on by a thread that ends.
inline std::uint64_t thread_token() noexcept {
#ifdef LEAT_MODEL
  return model::thread_token();
#else
  static thread_local std::uint64_t token = 0;
  if (token == 0) [[unlikely]]
    token = last_thread_token.fetch_add(1, std::memory_order_relaxed) + 1;  // relaxed: only unique
  return token;
#endif
}

}  // namespace leat::inline v0::detail
