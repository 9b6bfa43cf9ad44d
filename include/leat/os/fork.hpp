// Knows when this process is a forked child, so that inherited handles can be refused.
//
// A handle keeps the fork_generation() of its making and compares before use: one load of a private
// global. A child must not go on with its parent's handles, for both would own the same participant.
// os/fork_state.hpp is what happens at a fork.
#pragma once

#include <cstdint>

namespace leat::inline v0::detail {

inline std::uint32_t fork_generation_value = 1;  // Written only in a new child, before it runs on.

inline std::uint32_t fork_generation() noexcept { return fork_generation_value; }

#ifdef LEAT_MODEL
namespace model {
std::uint64_t thread_token() noexcept;
}
#endif

// Of the calling thread, within its process.
inline std::uint64_t thread_token() noexcept {
#ifdef LEAT_MODEL
  return model::thread_token();
#else
  static thread_local char here;
  return reinterpret_cast<std::uintptr_t>(&here);
#endif
}

}  // namespace leat::inline v0::detail
