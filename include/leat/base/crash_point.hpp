// LEAT_CRASH_POINT("name") marks a place where a test may stop or kill the process. Expands to
// nothing in normal builds. tests/crash covers every name; grep LEAT_CRASH_POINT to list them.
#pragma once

#ifdef LEAT_TEST_STEPS
namespace leat::inline v0::detail {
inline void (*crash_point_hook)(const char* name) = nullptr;
}
#define LEAT_CRASH_POINT(name)                                                               \
  do {                                                                                       \
    if (::leat::detail::crash_point_hook != nullptr) ::leat::detail::crash_point_hook(name); \
  } while (false)
#else
#define LEAT_CRASH_POINT(name) static_cast<void>(0)
#endif
