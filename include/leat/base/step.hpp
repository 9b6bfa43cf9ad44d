// LEAT_STEP("name"): a place where a test may stop or kill this process. Nothing in normal builds.
// tests/crash sweeps every name; grep LEAT_STEP lists them.
#pragma once

#ifdef LEAT_TEST_STEPS
namespace leat::inline v0::detail {
inline void (*step_hook)(const char* name) = nullptr;
}
#define LEAT_STEP(name)                                                        \
  do {                                                                         \
    if (::leat::detail::step_hook != nullptr) ::leat::detail::step_hook(name); \
  } while (false)
#else
#define LEAT_STEP(name) static_cast<void>(0)
#endif
