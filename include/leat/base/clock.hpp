// Clocks: monotonic nanoseconds for waits, wall-clock milliseconds for records.
#pragma once

#include <cstdint>
#include <ctime>

#include "leat/base/config.hpp"

namespace leat::inline v0::detail {

#ifdef LEAT_MODEL
namespace model {
std::int64_t now_ns() noexcept;  // The scheduler's own clock.
}
#endif

inline std::int64_t read_clock_ns(::clockid_t clock) noexcept {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Nanoseconds of CLOCK_MONOTONIC, the clock that futexes wait on.
inline std::int64_t now_ns() noexcept {
#ifdef LEAT_MODEL
  return model::now_ns();
#else
  return read_clock_ns(CLOCK_MONOTONIC);
#endif
}

// `ns` nanoseconds from now, saturating at INT64_MAX.
inline std::int64_t ns_from_now(std::int64_t ns) noexcept {
  const std::int64_t now = now_ns();
  const std::int64_t last = INT64_MAX;
  return ns < last - now ? now + ns : last;
}

// now_ns() as of the kernel's last tick (1 to 10 ms ago), at a fraction of the cost.
inline std::int64_t tick_ns() noexcept {
#ifdef LEAT_MODEL
  return model::now_ns();
#else
  return read_clock_ns(CLOCK_MONOTONIC_COARSE);
#endif
}

// Milliseconds since the system began, the time during which it slept included: what a wrong wall clock is checked with.
inline std::int64_t boot_clock_ms() noexcept { return read_clock_ns(CLOCK_BOOTTIME) / 1'000'000; }

// Milliseconds since the epoch (1970), for record timestamps.
inline std::int64_t wall_clock_ms() noexcept { return read_clock_ns(CLOCK_REALTIME) / 1'000'000; }

}  // namespace leat::inline v0::detail
