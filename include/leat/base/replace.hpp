// Move assignment of whatever owns something.
//
//     Fd& operator=(Fd&& other) noexcept { return replace(*this, other); }
//
// There is one rule for all handles: what the left side was is gone when the assignment returns, as if it had been
// destroyed, and the right side is empty. A swap would leave the old one with the right side, for as long as that
// lives: a subscriber that keeps room, say, or a lock.
#pragma once

#include <memory>
#include <utility>

#include "leat/base/config.hpp"

namespace leat::inline v0::detail {

template <class T>
T& replace(T& to, T& from) noexcept {
  if (&to == &from) return to;
  std::destroy_at(&to);
  return *std::construct_at(&to, std::move(from));
}

}  // namespace leat::inline v0::detail
