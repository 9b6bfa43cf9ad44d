// Keeps a process from mistaking its own standstill for the lateness of another process.
//
//     OwnPause pause;
//     pause.check(now);                                      // at each check, even if nobody is being waited for
//     if (pause.is_late(now, unmoved_since, limit)) act();  // instead of: now - unmoved_since >= limit
//     pause.sleep_for(ns);                                  // before a long sleep that the caller chose
//
// After SIGSTOP, `docker pause` or a frozen virtual machine, all processes have stood still. The clock then shows that
// every limit has passed, although nobody had the time to move. So after a gap of more than 100 ms between two looks,
// is_late() also waits until the caller itself has run for min(limit, 100 ms). docs/internals/log.md, "Standstills".
//
// Belongs to one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace leat::inline v0::detail {

class OwnPause {
 public:
  static constexpr std::int64_t kLong = 100'000'000;  // ns

  // Starts over: the caller now waits for another process, or for another move of the same one.
  void begin(std::int64_t now_ns) noexcept {
    *this = {};
    checked_ns_ = due_ns_ = now_ns;
  }

  void check(std::int64_t now_ns) noexcept {
    const bool was_paused = due_ns_ != kNever && now_ns - due_ns_ > kLong;
    const std::int64_t step = now_ns - checked_ns_;
    checked_ns_ = due_ns_ = now_ns;
    if (was_paused) {
      note_pause();
      return;
    }
    ran_ns_ = std::min(ran_ns_ + std::min(step, kMostPerCheck), kLong);
    checks_ = std::min(checks_ + 1, kFewestChecks);
  }
  // 0: until the caller is woken.
  void sleep_for(std::int64_t ns) noexcept {
    due_ns_ = ns == 0 || ns >= kNever - due_ns_ ? kNever : due_ns_ + ns;
  }

  // True if a process that last moved at `since_ns` has exceeded its limit, and had the time to move.
  bool is_late(std::int64_t now_ns, std::int64_t since_ns, std::int64_t limit_ns) const noexcept {
    return now_ns - since_ns >= limit_ns && check_again_in_ns(limit_ns) == 0;
  }
  // How long to wait for the next look if a pause holds is_late() back; 0 if none does.
  std::int64_t check_again_in_ns(std::int64_t limit_ns) const noexcept {
    const std::int64_t missing_ns = std::min(limit_ns, kLong) - ran_ns_;
    if (missing_ns <= 0 && checks_ == kFewestChecks) return 0;
    return std::clamp(missing_ns, kLeastWait, kMostPerCheck);
  }

 private:
  static constexpr std::int64_t kNever = INT64_MAX;  // In due_ns_: no look is expected.
  // ns; the rest of a longer step may be a short standstill.
  static constexpr std::int64_t kMostPerCheck = kLong / 4;
  static constexpr std::int64_t kLeastWait = kLong / 100;  // ns
  static constexpr int kFewestChecks = 2;                  // After the look that found a pause.
  static constexpr int kMostPauses = 3;                    // The last of them holds nothing back.

  // Later pauses keep ran_ns_, and the third one ends the wait. Otherwise a caller that looks seldom, or in bursts,
  // would never act.
  void note_pause() noexcept {
    if (ran_ns_ == kLong && checks_ == kFewestChecks) {
      ran_ns_ = 0;
      pauses_ = 0;
    }
    checks_ = 0;
    if (++pauses_ < kMostPauses) return;
    ran_ns_ = kLong;
    checks_ = kFewestChecks;
  }

  std::int64_t checked_ns_ = 0;  // Time of the last look.
  // Time of the last look, or of the end of the sleep that follows it.
  std::int64_t due_ns_ = kNever;
  std::int64_t ran_ns_ = kLong;  // Running time since the first pause. kLong: enough, or no pause.
  int checks_ = kFewestChecks;   // Looks after the last pause, up to kFewestChecks.
  int pauses_ = 0;               // Pauses that were found since ran_ns_ was set to 0.
};

}  // namespace leat::inline v0::detail
