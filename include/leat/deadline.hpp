// Deadlines: when a wait gives up. Measured on the monotonic clock, never the wall clock.
//
//     subscriber->receive(100ms);                       // a duration from now
//     subscriber->receive(leat::Deadline::never());     // waits for as long as it takes
//     subscriber->receive(leat::Deadline::immediate()); // does not wait
#pragma once

#include <chrono>
#include <cstdint>

#include "leat/base/clock.hpp"

namespace leat::inline v0 {

class Deadline {
 public:
  static constexpr Deadline never() noexcept { return Deadline{kNever}; }
  static constexpr Deadline immediate() noexcept { return Deadline{kImmediate}; }

  // `from_now` from now. A zero or negative duration does not wait.
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
  // Nanoseconds on CLOCK_MONOTONIC. Only for deadlines that are neither never() nor immediate().
  std::int64_t at_ns() const noexcept { return at_ns_; }

  // The earlier of this deadline and `delay_ns` nanoseconds from now.
  Deadline at_most_ns(std::int64_t delay_ns) const noexcept {
    if (is_immediate()) return *this;
    const std::int64_t capped = detail::ns_from_now(delay_ns);
    return Deadline{capped < at_ns_ ? capped : at_ns_};
  }

 private:
  static constexpr std::int64_t kNever = INT64_MAX;
  static constexpr std::int64_t kImmediate = INT64_MIN;
  constexpr explicit Deadline(std::int64_t at_ns) noexcept : at_ns_{at_ns} {}

  std::int64_t at_ns_;
};

}  // namespace leat::inline v0
