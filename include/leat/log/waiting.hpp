// How a subscriber or a member of a group waits: spin for a while, then sleep on the topic's words.
//
// docs/internals/log.md, "Waiting", has the argument why no record is slept through.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <stop_token>

#include "leat/log/participants.hpp"
#include "leat/os/processor.hpp"

namespace leat::detail {

inline constexpr std::size_t kMaxWaiters = kMaxFutexWaits / 2;  // Two words for each.

// Caught up with a stream of records, somebody who looks again at once takes each cache line from the
// publisher while it is being written, and slows both down 3 to 5 times. So it looks away for a
// moment, once it had kStream records without a pause; single messages are not delayed.
class Patience {
 public:
  static constexpr std::uint64_t kStream = 64;

  void set(std::int64_t ns) noexcept { ns_ = ns; }
  void note(std::uint64_t records) noexcept { streak_ += records; }
  // Called when there was nothing. With `yields` other threads may have the processor meanwhile.
  void look_away(bool yields) noexcept {
    if (streak_ >= kStream && ns_ != 0) {
      const std::int64_t until = now_ns() + ns_;
      do {
        for (int i = 0; i < 16; ++i) spin_pause();
        if (yields) yield_processor();
      } while (now_ns() < until);
    }
    streak_ = 0;
  }

 private:
  std::int64_t ns_ = 0;
  std::uint64_t streak_ = 0;  // Records since there was nothing.
};

// The private side of those who wait. Each has `participant_`, `spin_ns_`, and
//   is_ready()           whether there is something to do now
//   waits_are_stopped()  whether its owner ended its waits
//   kSharesWork          whether others do the same work: then whoever finds nothing lets them run
//   look_around()        before it sleeps: does what nobody else may do (repairs); returns after how
//                        many ns at the latest it must look again, 0 for never; an error is left to
//                        whoever polls
struct Waiting {
  // Waits until one of them is ready, or its topic deleted; returns its index.
  //   timeout, stopped, forked, invalid_argument
  template <class Waiter>
  static Result<std::size_t> any(std::span<Waiter* const> waiters, const Deadline& deadline,
                                 const std::stop_token& stop) {
    constexpr std::int64_t kCapped = 1'000'000;  // ns; where the kernel has no membarrier
    if (waiters.empty() || waiters.size() > kMaxWaiters) return Errc::invalid_argument;
    std::int64_t spin_ns = 0;
    for (const Waiter* waiter : waiters) {
      if (waiter->participant_.forked()) return Errc::forked;
      spin_ns = std::max(spin_ns, waiter->spin_ns_);
    }
    const auto first_ready = [&]() -> std::optional<std::size_t> {
      for (std::size_t i = 0; i < waiters.size(); ++i) {
        const std::uint32_t wake = load_relaxed(topic_of(*waiters[i]).header().data_wake);
        if (waiters[i]->is_ready() || (wake & kDeleted) != 0) return i;
      }
      return std::nullopt;
    };
    const auto is_stopped = [&] {
      if (stop.stop_requested()) return true;
      return std::any_of(waiters.begin(), waiters.end(),
                         [](const Waiter* waiter) { return waiter->waits_are_stopped(); });
    };
    if (auto ready = first_ready()) return *ready;
    if (deadline.is_immediate()) return Errc::timeout;
    if (is_stopped()) return Errc::stopped;

    if (spin_ns > 0) {
      const std::int64_t until = now_ns() + spin_ns;
      do {
        for (int i = 0; i < 32; ++i) {
          spin_pause();
          if (auto ready = first_ready()) return *ready;
        }
        if (Waiter::kSharesWork) yield_processor();
      } while (now_ns() < until);
    }

    const auto wake = [&] {
      for (Waiter* waiter : waiters) topic_of(*waiter).wake_everybody();
    };
    std::optional<std::stop_callback<decltype(wake)>> on_stop;
    if (stop.stop_possible()) on_stop.emplace(stop, wake);
    std::array<SharedTopic::Sleep, kMaxWaiters> sleeps;
    while (true) {
      std::int64_t limit_ns = 0;  // 0: none
      const auto at_most = [&](std::int64_t ns) {
        if (ns != 0) limit_ns = limit_ns == 0 ? ns : std::min(limit_ns, ns);
      };
      for (std::size_t i = 0; i < waiters.size(); ++i) {
        bool capped = false;
        SharedTopic& topic = topic_of(*waiters[i]);
        sleeps[i] = {&topic, topic.announce_sleep(&capped)};
        if (capped) at_most(kCapped);
      }
      if (auto ready = first_ready()) return *ready;
      for (std::size_t i = 0; i < waiters.size(); ++i) {
        const auto looked = waiters[i]->look_around();
        if (!looked) return i;  // poll() will say what is wrong.
        at_most(*looked);
      }
      // What was found there may be something to do.
      if (auto ready = first_ready()) return *ready;
      if (is_stopped()) return Errc::stopped;
      if (deadline.passed()) return Errc::timeout;
      const Deadline until = limit_ns != 0 ? deadline.at_most_ns(limit_ns) : deadline;
      SharedTopic::sleep_for_data({sleeps.data(), waiters.size()}, until);
      if (auto ready = first_ready()) {
        topic_of(*waiters[*ready]).wake_the_others(sleeps[*ready].expected);
        return *ready;
      }
    }
  }

  template <class Waiter>
  static Result<void> one(Waiter& waiter, const Deadline& deadline, const std::stop_token& stop) {
    Waiter* const self = &waiter;
    auto ready = any(std::span<Waiter* const>{&self, 1}, deadline, stop);
    if (!ready) return ready.error();
    return {};
  }

 private:
  template <class Waiter>
  static SharedTopic& topic_of(const Waiter& waiter) noexcept {
    return waiter.participant_.topic();
  }
};

}  // namespace leat::detail
