// Not taking one's own standstill for somebody else's lateness.
//
//     OwnPause pause;                                       // of one that judges others again and again
//     pause.look(now);                                      // each time, also if there is nothing to judge
//     if (pause.is_late(now, unmoved_since, limit)) act();  // instead of: now - unmoved_since >= limit
//     pause.sleep_for(ns);                                  // before it sleeps for long of its own choice
//
// After SIGSTOP, `docker pause` or a frozen virtual machine everybody has stood still, perhaps also who judges. So who
// finds that it was itself away for longer than 100 ms acts only once the other has stayed unmoved for another 100 ms,
// or for its limit if that is shorter. docs/internals/log.md, "Standstills".
#pragma once

#include <algorithm>
#include <cstdint>

namespace leat::inline v0::detail {

class OwnPause {
 public:
  static constexpr std::int64_t kLong = 100'000'000;  // ns

  // Forgets what was, because there is somebody else to judge.
  void begin(std::int64_t now_ns) noexcept {
    due_ns_ = now_ns;
    is_again_ = false;
    ended_ns_ = INT64_MIN;
  }

  // Two pauses without a look in between are not a standstill: it looks that seldom of its own choice, and would
  // otherwise never act.
  void look(std::int64_t now_ns) noexcept {
    const bool was_away = due_ns_ != kNever && now_ns - due_ns_ > kLong;
    if (was_away && !is_again_) ended_ns_ = now_ns;
    is_again_ = was_away;
    due_ns_ = now_ns;
  }
  // 0: for as long as nobody wakes it.
  void sleep_for(std::int64_t ns) noexcept {
    due_ns_ = ns == 0 || ns >= kNever - due_ns_ ? kNever : due_ns_ + ns;
  }

  // Whether who has not moved since `since_ns` is late: limit_ns have passed, and some of it since the last pause.
  bool is_late(std::int64_t now_ns, std::int64_t since_ns, std::int64_t limit_ns) const noexcept {
    return now_ns - since_ns >= limit_ns && now_ns >= judges_again_ns(limit_ns);
  }
  // From when on is_late() may say so.
  std::int64_t judges_again_ns(std::int64_t limit_ns) const noexcept {
    return ended_ns_ == INT64_MIN ? INT64_MIN : ended_ns_ + std::min(limit_ns, kLong);
  }

 private:
  static constexpr std::int64_t kNever = INT64_MAX;  // In due_ns_: nobody knows when it looks.

  std::int64_t due_ns_ = kNever;       // When it last looked, or is to look next.
  std::int64_t ended_ns_ = INT64_MIN;  // When it noticed the last pause.
  bool is_again_ = false;              // The last look noticed one.
};

}  // namespace leat::inline v0::detail
