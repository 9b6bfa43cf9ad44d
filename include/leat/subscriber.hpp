// Reading a topic.
//
//     auto subscriber = topic->subscriber({.from = leat::From::beginning});
//     subscriber->poll(100, [](const leat::Record& record) { use(record.value); });
//     auto record = subscriber->receive(1s);
//
// A Subscriber belongs to one thread at a time; there may be any number of them, and publishers do
// not notice how many. A gating subscriber (the default) holds room until it has passed it and loses
// nothing; a lossy one holds nothing, reads validated copies, and is told exactly what it lost.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "leat/base/callback.hpp"
#include "leat/log/reader.hpp"
#include "leat/log/waiter.hpp"

namespace leat::inline v0 {

// Where a subscriber begins.
class From {
 public:
  static const From beginning;  // the oldest record still there
  static const From end;        // only what is claimed from now on
  // In every partition that is read. Below the oldest record: begins there and reports the gap.
  static From offset(std::uint64_t offset) noexcept {
    return {detail::StartAt::offset, offset, -1};
  }
  // The first record that is not older; needs a topic with timestamps.
  static From time_ms(std::int64_t epoch_ms) noexcept {
    return {detail::StartAt::beginning, 0, epoch_ms < 0 ? 0 : epoch_ms};
  }

 private:
  friend class Subscriber;
  friend class Topic;
  friend class Group;
  constexpr From(detail::StartAt at, std::uint64_t offset, std::int64_t time_ms) noexcept
      : at_{at}, offset_{offset}, time_ms_{time_ms} {}
  detail::StartAt at_;
  std::uint64_t offset_;
  std::int64_t time_ms_;
};
inline constexpr From From::beginning{detail::StartAt::beginning, 0, -1};
inline constexpr From From::end{detail::StartAt::end, 0, -1};

struct SubscriberOptions {
  From from = From::end;
  bool gating = true;
  bool in_place = false;  // lossy only: pin segments instead of copying records
  std::optional<std::uint32_t> partition = {};                    // else all of them
  std::chrono::nanoseconds spin = std::chrono::microseconds{20};  // before sleeping; 0 on one core
  std::chrono::nanoseconds patience = std::chrono::microseconds{20};  // see Patience; 0 = none
};

class Subscriber final : private detail::Waiter {
 public:
  Subscriber(Subscriber&&) noexcept;
  Subscriber& operator=(Subscriber&&) noexcept;
  ~Subscriber();

  // Calls on_record(const Record&) for up to `limit` records that are there, oldest first within a
  // partition, and returns how many. Never waits. The record is valid during the call.
  //   deleted   the topic was deleted, and everything before that was delivered
  //   corrupt   a check on shared memory failed; this partition delivers nothing more
  //   forked    this handle was inherited
  template <class OnRecord>
  Result<std::size_t> poll(std::size_t limit, OnRecord&& on_record) {
    auto count = poll_and_keep(limit, on_record);
    let_go();
    return count;
  }

  // The next record; waits for it until the deadline. Valid until the next call on this subscriber.
  //   timeout, stopped, deleted, corrupt, forked
  Result<Record> receive(const Deadline& deadline = Deadline::never(),
                         const std::stop_token& stop = {}) {
    let_go();
    Record received;
    while (true) {
      auto count = poll_and_keep(1, [&](const Record& record) { received = record; });
      if (!count) return count.error();
      if (*count == 1) return received;
      if (had_event_) continue;
      if (auto ready = wait(deadline, stop); !ready) return ready.error();
    }
  }

  // Waits until poll() has something to do. Spins for `spin`, then sleeps without using the processor.
  // With a descriptor instead of a stop token it ends with `stopped` when that is readable (an eventfd).
  // See wait_any for several subscribers, wait_fd for epoll.
  //   timeout, stopped, forked; deleted and corrupt are left to poll()
  using Waiter::wait;

  // Ends the waits of this subscriber with `stopped`, now and later, until resume_waits(); its calls still
  // get what is there. Any thread.
  using Waiter::resume_waits;
  using Waiter::stop_waits;
  using Waiter::waits_are_stopped;

  // Called from poll() for offsets that will not be delivered.
  void on_event(Callback<void(const Event&)> on_event) { on_event_ = std::move(on_event); }

  // A descriptor that is readable when poll() may have something to do; poll until it returns 0.
  // The first call starts a helper thread in this process (docs/guarantees.md has its cost).
  //   forked   this handle was inherited
  using Waiter::wait_fd;

  // Offset of the next record of a partition (0 if it is not among those read).
  std::uint64_t offset(std::uint32_t partition = 0) const noexcept;
  // True once it may be overtaken: opened so, or evicted.
  bool is_lossy() const noexcept;

 private:
  friend class Topic;
  friend class Group;
  friend Result<std::size_t> wait_any(std::span<Subscriber* const> subscribers,
                                      const Deadline& deadline, const std::stop_token& stop);
  Subscriber();

  // poll(), but what was delivered in place stays until let_go().
  template <class OnRecord>
  Result<std::size_t> poll_and_keep(std::size_t limit, OnRecord&& on_record) {
    if (participant_.forked()) [[unlikely]]
      return Errc::forked;
    if (thread_ != detail::thread_token()) [[unlikely]]
      note_thread();
    const auto on_event = [this](const Event& event) {
      had_event_ = true;
      if (on_event_) on_event_(event);
    };
    had_event_ = false;
    std::size_t count = 0;
    const std::size_t readers = readers_.size();
    for (std::size_t turn = 0; turn < readers && count < limit; ++turn) {
      detail::PartitionReader& reader = readers_[next_reader_];
      if (++next_reader_ == readers) next_reader_ = 0;  // Also when full or failed: all get a turn.
      auto polled = reader.poll(limit - count, on_record, on_event);
      if (!polled) [[unlikely]] {
        if (count == 0) return polled.error();
        return count;
      }
      count += *polled;
    }
    if (count != 0 || had_event_) {
      patience_.note(count);
      return count;
    }
    return after_empty_poll();
  }

  void let_go() noexcept {
    if (!in_place_) [[likely]]
      return;
    for (auto& reader : readers_) reader.unpin();
  }

  void note_thread() noexcept;
  Result<std::size_t> after_empty_poll();

  bool is_ready() noexcept override;
  Result<std::int64_t> look_around() override;

  std::vector<detail::PartitionReader> readers_;
  std::size_t next_reader_ = 0;
  Callback<void(const Event&)> on_event_;
  std::uint64_t thread_ = 0;
  bool in_place_ = false;  // Lossy, with pins instead of copies.
  bool had_event_ = false;
};

inline constexpr std::size_t kMaxWaitAny = detail::kMaxWaiters;

// Waits until one of the subscribers has something to poll; returns its index. At most 64 of them.
//   timeout, stopped, forked; deleted and corrupt are left to poll()
Result<std::size_t> wait_any(std::span<Subscriber* const> subscribers,
                             const Deadline& deadline = Deadline::never(),
                             const std::stop_token& stop = {});

inline Result<std::size_t> wait_any(std::initializer_list<Subscriber*> subscribers,
                                    const Deadline& deadline = Deadline::never(),
                                    const std::stop_token& stop = {}) {
  return wait_any(std::span{subscribers.begin(), subscribers.size()}, deadline, stop);
}

}  // namespace leat::inline v0

#ifndef LEAT_COMPILED
#include "leat/topic.hpp"
#endif
