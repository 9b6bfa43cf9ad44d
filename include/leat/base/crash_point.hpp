// LEAT_CRASH_POINT("name") marks a place where a test may stop or kill the process. Expands to
// nothing in normal builds. tests/crash covers every name; grep LEAT_CRASH_POINT to list them.
#pragma once

#ifdef LEAT_TEST_STEPS
#include <atomic>

namespace leat::inline v0::detail {
// Atomic: a test may set it while threads run.
inline std::atomic<void (*)(const char* name)> crash_point_hook = nullptr;
}  // namespace leat::inline v0::detail
#define LEAT_CRASH_POINT(name)                                                                 \
  do {                                                                                         \
    if (const auto at_step = ::leat::detail::crash_point_hook.load(std::memory_order_acquire)) \
      at_step(name);                                                                           \
  } while (false)
#else
#define LEAT_CRASH_POINT(name) static_cast<void>(0)
#endif
