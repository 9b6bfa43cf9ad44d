// Reading a topic.
//
//     auto subscriber = topic->subscriber({.from = leat::From::beginning});
//     subscriber->poll(100, [](const leat::Record& record) { use(record.value); });
//     auto record = subscriber->receive(1s);
//
// A Subscriber belongs to one thread at a time. There may be any number of subscribers; publishers
// do not notice how many. A gating subscriber (the default) keeps the room that it has not read
// from being reused, and loses nothing. A lossy one keeps nothing, reads validated copies, and is
// told exactly which offsets it lost.
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

// Where a subscriber or a group begins.
class From {
 public:
  static const From beginning;  // the oldest record that can be read
  static const From end;        // only records claimed from now on
  // The record with this offset. If it is no longer there, begins at the oldest one; a subscriber
  // reports the gap. If it does not exist yet, a subscriber waits for it and skips what is
  // published before.
  static From offset(std::uint64_t offset) noexcept {
    return {detail::StartAt::offset, offset, -1};
  }
  // The last `count` records of each partition that is read, or as many as there are.
  static From last(std::uint64_t count) noexcept { return {detail::StartAt::last, count, -1}; }
  // The first record with this timestamp or a later one, in milliseconds since 1970, or the first that is published after
  // this call, whatever its timestamp. Needs a topic with timestamps.
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

// Options of Topic::subscriber().
struct SubscriberOptions {
  From from = From::end;
  // If false, it is lossy: it never holds up publishers, and they may overtake it.
  bool gating = true;
  // Lossy only: pins the segment that it reads instead of copying records.
  bool in_place = false;
  std::optional<std::uint32_t> partition = {};  // default: all
  // Durable topics: how far a record must have come to be delivered. Default: durable if the topic's
  // durability is fsync, else committed. With another durability, records become durable when a file
  // is full, when somebody asks (Publisher::flush), or when the topic is closed.
  std::optional<Stage> read = {};
  // How long a wait spins before it sleeps. Ignored on a machine with one core.
  std::chrono::nanoseconds spin = std::chrono::microseconds{20};
  // After 64 or more records in a row, an empty poll() pauses for this long before it returns, so
  // as not to take cache lines from under the publisher. 0: never.
  std::chrono::nanoseconds patience = std::chrono::microseconds{20};
  // Different threads use it, one at a time (as goroutines do): publishers then cannot tell that
  // they wait for their own thread, and never return `would_deadlock` because of this subscriber.
  bool any_thread = false;
  // A wait ends with `interrupted` when a signal handler ran while it slept; a handler that was
  // installed with SA_RESTART need not end it. A signal that arrives just before goes unnoticed: to
  // miss none, wait for 50 ms at a time, and check in between.
  bool interruptible = false;
};

// A participant of the topic that reads records. Destroying it leaves the topic.
class Subscriber final : private detail::Waiter {
 public:
  Subscriber(Subscriber&&) noexcept;
  Subscriber& operator=(Subscriber&&) noexcept;
  ~Subscriber();

  // Calls on_record(const Record&) for up to `limit` available records, oldest first within a
  // partition, and returns how many. Never sleeps. The record is valid during the call, or until the
  // call polls or receives through this subscriber. A call must not move or destroy the subscriber.
  // Gaps are not counted: after some, it may return 0 although there are records behind them.
  //   deleted   the topic was deleted, and everything before that was delivered, except what a durable
  //             topic's subscriber would have had to read from disk, and what follows that
  //   corrupt   a check on shared memory failed; this partition delivers nothing more
  //   io_error, permission, not_found, wrong_format
  //             durable topics: a file cannot be read now. The next call tries it again
  //   forked    the handle was inherited through fork(), perhaps in a callback of this call
  template <class OnRecord>
  Result<std::size_t> poll(std::size_t limit, OnRecord&& on_record) {
    auto count = poll_and_keep<false>(limit, on_record, [this](const Event& e) { report(e); });
    let_go();
    return count;
  }

  // The same, except that gaps come in order with the records, through on_gap(const Event&), and count as
  // records do; and that everything delivered stays valid until the next poll or receive of this
  // subscriber, so that it can be collected in an array. May return fewer than there are, because it
  // does not go from one segment to the next in one call. Returns the number of records and gaps.
  template <class OnRecord, class OnGap>
  Result<std::size_t> poll_batch(std::size_t limit, OnRecord&& on_record, OnGap&& on_gap) {
    let_go();
    return poll_and_keep<true>(limit, on_record, on_gap);
  }

  // Returns the next record; waits for it until the deadline. The record is valid until the next
  // call on this subscriber.
  //   timeout, stopped, interrupted, deleted, corrupt, forked
  Result<Record> receive(const Deadline& deadline = Deadline::never(),
                         const std::stop_token& stop = {}) {
    let_go();
    Record received;
    bool had_chance = false;
    while (true) {
      auto count = poll_and_keep<false>(
          1, [&](const Record& record) { received = record; },
          [this](const Event& event) { report(event); });
      if (!count) return count.error();
      if (*count == 1) return received;
      if (next_is_on_disk()) return Errc::timeout;
      // It may be ready and get nothing, again and again: while publishers overtake a slow on_event(), or
      // while a durable topic's new archiver writes records again.
      if (had_chance && deadline.passed()) return Errc::timeout;
      if (had_chance && (stop.stop_requested() || waits_are_stopped())) return Errc::stopped;
      had_chance = true;
      if (had_event_) continue;
      if (auto ready = wait(deadline, stop); !ready) return ready.error();
    }
  }

  // Durable topics: whether poll() and receive() read memory only, for a thread that must not wait for the
  // disk (an event loop, say); initially not. They then open and read no file. Where the next record is only
  // on disk they return at once, poll() with the records before it, receive() with `timeout`, and
  // next_is_on_disk() is true. Then let another thread call read_memory_only(false) and poll(); it may
  // return the subscriber as soon as it has polled. Until then waits return at once, and the descriptor of
  // wait_fd is readable.
  void read_memory_only(bool is_on) noexcept;
  // Whether the last poll or receive left out a record that is only on disk: of any partition.
  bool next_is_on_disk() const noexcept;

  // wait(deadline, stop_token) waits until poll() has something to do: spins for `spin`, then
  // sleeps without using the CPU. wait(deadline, fd) ends with `stopped` when the descriptor (an
  // eventfd, say) is readable. See wait_any for several subscribers, wait_fd for epoll.
  //   timeout, stopped, interrupted, forked; deleted and corrupt are reported by poll()
  using Waiter::wait;

  // stop_waits() makes waits of this subscriber return `stopped`, now and later, until
  // resume_waits(). poll() and receive() still deliver what is available. May be called
  // by any thread.
  using Waiter::resume_waits;
  using Waiter::stop_waits;
  using Waiter::waits_are_stopped;

  // Sets the callback for gaps: poll() and receive() call it for offsets that will
  // not be delivered. What holds for poll()'s calls holds for it; it may also set another callback.
  void on_event(Callback<void(const Event&)> on_event) { on_event_ = std::move(on_event); }

  // A descriptor that becomes readable when poll() may have something to do; then poll until it
  // returns 0, or wait until the deadline: both make it unreadable. It is also readable once `stop`
  // is requested (of several calls, the last one's), and while waits are stopped. Owned by the
  // subscriber. A helper thread of this process serves it, and others (docs/guarantees.md has its
  // cost).
  //   forked    the handle was inherited through fork()
  //   io_error  no descriptor could be made
  using Waiter::wait_fd;

  // Offset of the next record in a partition; 0 if this subscriber does not read that partition.
  std::uint64_t offset(std::uint32_t partition = 0) const noexcept;
  // Whether it may be overtaken: it was made lossy, or was evicted (TopicOptions::evict_after).
  bool is_lossy() const noexcept;

 private:
  friend class Topic;
  friend class Group;
  friend Result<std::size_t> wait_any(std::span<Subscriber* const> subscribers,
                                      const Deadline& deadline, const std::stop_token& stop);
  Subscriber();

  void report(const Event& gap) {
    if (on_event_) on_event_(gap);
  }

  // poll(), but records delivered in place stay valid until let_go(). kKeeps: see PartitionReader::poll().
  template <bool kKeeps, class OnRecord, class OnGap>
  Result<std::size_t> poll_and_keep(std::size_t limit, OnRecord&& on_record, OnGap&& on_gap) {
    if (participant_.forked()) [[unlikely]]
      return Errc::forked;
    if (thread_ != detail::thread_token()) [[unlikely]]
      note_thread();
    const auto on_event = [&](const Event& event) {
      had_event_ = true;
      on_gap(event);
    };
    had_event_ = false;
    bool had_nothing = false;  // In some partition.
    std::size_t count = 0;
    const std::size_t readers = readers_.size();
    for (std::size_t turn = 0; turn < readers && count < limit; ++turn) {
      detail::PartitionReader& reader = readers_[next_reader_];
      if (++next_reader_ == readers) next_reader_ = 0;  // Even if full or failed: all get a turn.
      auto polled = reader.template poll<kKeeps>(limit - count, on_record, on_event);
      if (!polled) [[unlikely]] {
        if (count == 0 || polled.error() == Errc::forked) return polled.error();
        return count;
      }
      had_nothing |= *polled == 0;
      count += *polled;
    }
    if (count != 0) {
      if (had_nothing) [[unlikely]]
        note_some();
      patience_.note(count);
      return count;
    }
    return had_event_ ? after_gaps() : after_empty_poll();
  }

  void let_go() noexcept {
    if (!in_place_ || participant_.forked()) [[likely]]  // A child leaves its parent's pins alone.
      return;
    for (auto& reader : readers_) reader.unpin();
  }

  // Only gaps were there.
  Result<std::size_t> after_gaps();
  // Nothing was there: calls housekeep(), at each tick of the kernel's cheap clock.
  Result<std::size_t> after_empty_poll();

  bool is_ready() noexcept override;
  // Calls PartitionReader::repair_hole() of each reader.
  Result<std::int64_t> housekeep() override;

  std::vector<detail::PartitionReader> readers_;
  std::size_t next_reader_ = 0;
  Callback<void(const Event&)> on_event_;
  bool in_place_ = false;  // Lossy, with pins instead of copies.
  bool had_event_ = false;
};

// Most subscribers that wait_any() can wait for.
inline constexpr std::size_t kMaxWaitAny = detail::kMaxWaiters;

// Waits until one of the subscribers has something to poll; returns its index: the lowest one, if several have.
// So poll all of them then: if only that one is polled, and always has something, the others are never read.
//   invalid_argument   no subscribers, or more than kMaxWaitAny
//   timeout, stopped, interrupted, forked; deleted and corrupt are reported by poll()
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
