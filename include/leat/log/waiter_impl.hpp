// How a subscriber or a member waits: see log/waiter.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <thread>
#include <utility>

#include "leat/base/config.hpp"
#include "leat/base/crash_point.hpp"
#include "leat/log/participants.hpp"
#include "leat/log/wait_fd.hpp"
#include "leat/log/waiter.hpp"
#include "leat/os/processor.hpp"

namespace leat::inline v0::detail {

static_assert(kMaxWaiters == kMaxFutexWaits / 2);

LEAT_INLINE void Patience::back_off(bool yields) noexcept {
  if (streak_ >= kStream && ns_ != 0) {
    const std::int64_t until = ns_from_now(ns_);
    do {
      for (int i = 0; i < 16; ++i) spin_pause();
      if (yields) yield_processor();
    } while (now_ns() < until);
  }
  streak_ = 0;
}

// A forked child has the object, but not its helper thread: it closes only the descriptor.
LEAT_INLINE void DeleteWaitFd::operator()(WaitFd* wait_fd) const noexcept {
  if (wait_fd->fork_generation_ == fork_generation()) {
    delete wait_fd;
  } else {
    const EventFd closes = std::move(wait_fd->fd_);
  }
}

LEAT_INLINE Waiter::Waiter(bool shares_work)
    : shares_work_{shares_work}, waits_stopped_{std::make_unique<std::atomic<bool>>(false)} {}
LEAT_INLINE Waiter::~Waiter() = default;

LEAT_INLINE void Waiter::begin(Participant participant, const WaitOptions& options) {
  participant_ = std::move(participant);
  const bool has_cores = std::thread::hardware_concurrency() > 1;
  // A thread that may use one CPU only (taskset, a container) may share it with the publisher that it waits for.
  yields_ = shares_work_ || usable_processors() == 1;
  spin_ns_ = has_cores ? options.spin_ns : 0;
  patience_.set(has_cores ? options.patience_ns : 0);
  interruptible_ = options.interruptible;
  any_thread_ = options.any_thread;
  if (any_thread_) note_thread();
}

LEAT_INLINE void Waiter::note_thread() noexcept {
  thread_ = thread_token();
  // relaxed: publishers use it only to detect a deadlock. 0 is nobody's token.
  store_relaxed<Why::hint>(participant_.slot().thread, any_thread_ ? 0 : thread_);
}

LEAT_INLINE std::optional<std::size_t> Waiter::first_ready(std::span<Waiter* const> waiters) {
  for (std::size_t i = 0; i < waiters.size(); ++i) {
    const std::uint32_t wake = load_relaxed<Why::hint>(waiters[i]->shared().header().data_wake);
    if (waiters[i]->is_ready() || (wake & kDeleted) != 0) return i;
  }
  return std::nullopt;
}

template <class IsStopped>
std::optional<std::size_t> Waiter::spin(std::span<Waiter* const> waiters, const Deadline& deadline,
                                        const IsStopped& is_stopped) {
  std::int64_t spin_ns = 0;
  for (const Waiter* waiter : waiters) spin_ns = std::max(spin_ns, waiter->spin_ns_);
  if (spin_ns == 0) return std::nullopt;
  const Deadline until = deadline.at_most_ns(spin_ns);
  do {
    for (int i = 0; i < 32; ++i) {
      spin_pause();
      if (auto ready = first_ready(waiters)) return ready;
    }
    if (waiters[0]->yields_) {
      LEAT_CRASH_POINT("wait:yields");
      yield_processor();
    }
  } while (!until.passed() && !is_stopped());
  return std::nullopt;
}

LEAT_INLINE Result<std::size_t> Waiter::wait_any(std::span<Waiter* const> waiters,
                                                 const Deadline& deadline,
                                                 const std::stop_token& stop) {
  constexpr std::int64_t kCapped = 1'000'000;  // ns; if the sleeper has no membarrier
  if (waiters.empty() || waiters.size() > kMaxWaiters) return Errc::invalid_argument;
  for (const Waiter* waiter : waiters)
    if (waiter->participant_.forked()) return Errc::forked;
  const auto is_stopped = [&] {
    if (stop.stop_requested()) return true;
    for (const Waiter* waiter : waiters) {
      if (waiter->waits_are_stopped()) return true;
    }
    return false;
  };
  if (auto ready = first_ready(waiters)) {
    // The others are not polled, and do not sleep, as long as this one always has something.
    for (std::size_t i = 0; i < waiters.size(); ++i) {
      if (i != *ready) waiters[i]->note_some();
    }
    return *ready;
  }
  if (deadline.is_immediate()) return Errc::timeout;
  if (is_stopped()) return Errc::stopped;
  if (auto ready = spin(waiters, deadline, is_stopped)) return *ready;

  const auto wake = [&] {
    for (Waiter* waiter : waiters) waiter->shared().wake_everybody();
  };
  std::optional<std::stop_callback<decltype(wake)>> on_stop;
  if (stop.stop_possible()) on_stop.emplace(stop, wake);
  std::array<MappedTopic::Sleep, kMaxWaiters> sleeps;
  while (true) {
    std::int64_t limit_ns = 0;  // 0: none
    const auto at_most = [&](std::int64_t ns) {
      if (ns != 0) limit_ns = limit_ns == 0 ? ns : std::min(limit_ns, ns);
    };
    for (std::size_t i = 0; i < waiters.size(); ++i) {
      bool capped = false;
      MappedTopic& topic = waiters[i]->shared();
      sleeps[i] = {&topic, topic.announce_sleep(&capped)};
      if (capped) at_most(kCapped);
    }
    if (auto ready = first_ready(waiters)) return *ready;
    for (std::size_t i = 0; i < waiters.size(); ++i) {
      const auto checked = waiters[i]->housekeep();
      if (!checked) return i;  // poll() reports what is wrong.
      at_most(*checked);
    }
    // housekeep() may have made something ready.
    if (auto ready = first_ready(waiters)) return *ready;
    if (is_stopped()) return Errc::stopped;
    if (deadline.passed()) return Errc::timeout;
    const Deadline until = limit_ns != 0 ? deadline.at_most_ns(limit_ns) : deadline;
    const bool is_interrupted = MappedTopic::sleep_for_data({sleeps.data(), waiters.size()}, until);
    if (auto ready = first_ready(waiters)) {
      waiters[*ready]->shared().wake_the_others(sleeps[*ready].expected);
      return *ready;
    }
    if (is_interrupted && std::ranges::any_of(waiters, &Waiter::interruptible_))
      return Errc::interrupted;
  }
}

LEAT_INLINE Result<void> Waiter::wait(const Deadline& deadline, const std::stop_token& stop) {
  Waiter* const self = this;
  auto ready = wait_any({&self, 1}, deadline, stop);
  if (ready) return {};
  // There is nothing, so the descriptor waits too: who only looks, and does not poll, may rely on it.
  if (ready.error() == Errc::timeout && wait_fd_ != nullptr) arm_wait_fd();
  return ready.error();
}

LEAT_INLINE Result<void> Waiter::wait(const Deadline& deadline, int stop_fd) {
  auto fd = wait_fd();
  if (!fd) return fd.error();
  while (true) {
    if (is_ready() || is_topic_deleted()) return {};
    if (is_stopped()) return Errc::stopped;
    const Readable readable = wait_readable(stop_fd, *fd, deadline);
    if (readable == Readable::first) return Errc::stopped;
    if (is_ready()) return {};
    if (readable == Readable::interrupted && interruptible_) return Errc::interrupted;
    if (deadline.passed()) {
      arm_wait_fd();
      return Errc::timeout;
    }
    if (auto checked = housekeep(); !checked) return checked.error();
    arm_wait_fd();
  }
}

LEAT_INLINE Result<int> Waiter::wait_fd(const std::stop_token& stop) {
  if (participant_.forked()) return Errc::forked;
  if (wait_fd_ == nullptr) {
    auto made = WaitFd::start(participant_.mapped_topic());
    if (!made) return made.error();
    wait_fd_ = std::move(*made);
    arm_wait_fd();
  }
  if (stop.stop_possible()) wait_fd_->stop_on(stop);
  return wait_fd_->fd();
}

LEAT_INLINE void Waiter::arm_wait_fd() {
  wait_fd_->drain();
  bool capped = false;
  const std::uint32_t value = shared().announce_sleep(&capped);
  const auto limit = housekeep();
  // A stop that comes after this look changes the word, or signals the descriptor itself.
  if (is_ready() || is_stopped() || is_topic_deleted() || !limit) return wait_fd_->signal();
  wait_fd_->arm(value, capped || *limit != 0);
}

[[gnu::noinline]] LEAT_INLINE void Waiter::note_some() {
  const std::int64_t tick = tick_ns();
  if (tick == housekept_tick_ns_) return;
  housekept_tick_ns_ = tick;
  (void)housekeep();
}

LEAT_INLINE Result<void> Waiter::note_nothing() {
  patience_.back_off(yields_);
  // A dead publisher's hole is found only by readers. Checking for one reads the claim word, which
  // slows publishers down, so this is done once per tick. With a wait_fd, every call counts,
  // because its helper thread wakes the caller every 2 ms for this purpose.
  if (const std::int64_t tick = tick_ns(); tick != housekept_tick_ns_ || wait_fd_ != nullptr) {
    housekept_tick_ns_ = tick;
    if (auto checked = housekeep(); !checked) return checked.error();
  }
  if (wait_fd_ != nullptr) arm_wait_fd();
  if (is_topic_deleted() && !is_ready()) return Errc::deleted;
  return {};
}

LEAT_INLINE bool Waiter::is_topic_deleted() const noexcept {
  // relaxed: set for good; if it is seen late, that costs one more empty poll.
  return (load_relaxed<Why::hint>(shared().header().data_wake) & kDeleted) != 0;
}

LEAT_INLINE bool Waiter::is_stopped() const noexcept {
  return waits_are_stopped() || (wait_fd_ != nullptr && wait_fd_->is_stop_requested());
}

LEAT_INLINE void Waiter::stop_waits() noexcept {
  waits_stopped_->store(true);
  if (participant_ && !participant_.forked()) shared().wake_everybody();
}

}  // namespace leat::inline v0::detail
