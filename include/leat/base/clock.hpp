// Deadlines: when a wait gives up. Monotonic time; never the wall clock.
//
//     subscriber->receive(100ms);                       // a duration from now
//     subscriber->receive(leat::Deadline::never());     // until something comes
//     subscriber->receive(leat::Deadline::immediate()); // does not wait
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <limits>

namespace leat {

namespace detail {

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

// That long from now; as late as can be, if that is later.
inline std::int64_t ns_from_now(std::int64_t ns) noexcept {
  const std::int64_t now = now_ns();
  const std::int64_t last = std::numeric_limits<std::int64_t>::max();
  return ns < last - now ? now + ns : last;
}

// The same as now_ns(), only as of the kernel's last tick (1 to 10 ms ago), and several times as cheap.
inline std::int64_t tick_ns() noexcept {
#ifdef LEAT_MODEL
  return model::now_ns();
#else
  return read_clock_ns(CLOCK_MONOTONIC_COARSE);
#endif
}

// Milliseconds since 1970, for record timestamps.
inline std::int64_t wall_clock_ms() noexcept { return read_clock_ns(CLOCK_REALTIME) / 1'000'000; }

}  // namespace detail

class Deadline {
 public:
  static constexpr Deadline never() noexcept { return Deadline{kNever}; }
  static constexpr Deadline immediate() noexcept { return Deadline{kImmediate}; }

  // That long from now; a negative or zero duration does not wait.
  template <class Rep, class Period>
  Deadline(std::chrono::duration<Rep, Period> from_now) noexcept : at_ns_{kImmediate} {
    const double wanted_ns = std::chrono::duration<double, std::nano>(from_now).count();
    if (wanted_ns <= 0) return;
    const std::int64_t now = detail::now_ns();
    at_ns_ = wanted_ns >= static_cast<double>(kNever - now)
                 ? kNever
                 : now + std::chrono::duration_cast<std::chrono::nanoseconds>(from_now).count();
  }

  bool is_never() const noexcept { return at_ns_ == kNever; }
  bool is_immediate() const noexcept { return at_ns_ == kImmediate; }
  bool passed() const noexcept {
    return at_ns_ == kImmediate || (at_ns_ != kNever && detail::now_ns() >= at_ns_);
  }
  // Monotonic nanoseconds; meaningless for never and immediate.
  std::int64_t at_ns() const noexcept { return at_ns_; }

  // The earlier of this deadline and `delay_ns` from now.
  Deadline at_most_ns(std::int64_t delay_ns) const noexcept {
    if (is_immediate()) return *this;
    const std::int64_t capped = detail::ns_from_now(delay_ns);
    return Deadline{capped < at_ns_ ? capped : at_ns_};
  }

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t kImmediate = std::numeric_limits<std::int64_t>::min();
  constexpr explicit Deadline(std::int64_t at_ns) noexcept : at_ns_{at_ns} {}

  std::int64_t at_ns_;
};

}  // namespace leat
