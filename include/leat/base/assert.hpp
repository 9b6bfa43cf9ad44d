// LEAT_ASSERT(condition) aborts the process on a bug in Leat or its caller, in every build. Data
// written by another process is never asserted on: it is validated and reported as Errc::corrupt.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "leat/base/config.hpp"

namespace leat::inline v0::detail {

[[noreturn]] inline void assertion_failed(const char* expression, const char* file,
                                          int line) noexcept {
  std::fprintf(stderr, "leat: bug: %s at %s:%d\n", expression, file, line);
  std::abort();
}

}  // namespace leat::inline v0::detail

#define LEAT_ASSERT(expression)                       \
  (__builtin_expect(static_cast<bool>(expression), 1) \
       ? static_cast<void>(0)                         \
       : ::leat::detail::assertion_failed(#expression, __FILE__, __LINE__))
