// A member of a consumer group: receives records that no other member has, and acknowledges them.
//
//     auto member = topic->group("workers")->join();
//     while (auto delivery = member->receive()) {
//       work(delivery->record.value);
//       member->acknowledge(*delivery);
//     }
//
// A Member belongs to one thread at a time; any number of members, in any number of processes,
// share the records of a group. Records that a member received and did not acknowledge before it
// leaves or dies go to other members. How to use groups: docs/guide/groups.md; why nothing is lost:
// docs/internals/groups.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "leat/topic.hpp"

namespace leat::inline v0 {

namespace detail {
class MemberCore;
struct DeliveryParts;
struct LeaveGroup {
  void operator()(MemberCore* core) const noexcept;
};
}  // namespace detail

// Options of Group::join().
struct MemberOptions {
  std::string name = {};                                              // informational; max 63 bytes
  std::chrono::nanoseconds spin = std::chrono::microseconds{20};      // before a wait sleeps
  std::chrono::nanoseconds patience = std::chrono::microseconds{20};  // as in SubscriberOptions
  bool any_thread = false;                                            // the same
  bool interruptible = false;                                         // the same
};

// A record that a member holds. `record` is read in place, and stays valid until the record is
// acknowledged or requeued. On a durable topic, it is a private copy that stays valid just as long. In
// a group with a lease, it is a private copy that stays valid until the member's next receive or poll.
struct Delivery {
  Record record;
  std::uint32_t deliveries = 1;  // 1: the first delivery. Saturates at 65,535.

 private:
  friend class detail::MemberCore;
  friend struct detail::DeliveryParts;
  std::uint64_t state_ = 0;  // State of the entry when it was delivered.
  std::uint64_t position_ = 0;
  std::uint64_t entry_ = 0;  // Which member of this process has it, and in which entry.
};

namespace detail {
// A Delivery as plain numbers, which is all that settling it needs: for the interface of other languages.
// Numbers that no delivery had are `not_in_flight`.
struct DeliveryParts {
  std::uint64_t state = 0;
  std::uint64_t position = 0;
  std::uint64_t entry = 0;
  std::uint32_t partition = 0;

  static DeliveryParts of(const Delivery& delivery) noexcept {
    return {delivery.state_, delivery.position_, delivery.entry_, delivery.record.partition};
  }
  Delivery delivery() const noexcept {
    Delivery made;
    made.record.partition = partition;
    made.state_ = state;
    made.position_ = position;
    made.entry_ = entry;
    return made;
  }
};
}  // namespace detail

// A participant of the topic that shares the records of one group with its other members.
class Member {
 public:
  Member(Member&&) noexcept;
  Member& operator=(Member&& other) noexcept;
  // Leaves the group. Records that were not acknowledged go to other members (at most once: only
  // those that the member had taken in advance and not received).
  ~Member();

  // Returns the next record; waits for it until the deadline. The member holds the record until it
  // is acknowledged or requeued.
  //   in_flight_full   it holds as many records as the group allows
  //   no_memory        no memory for a copy (groups with a lease, and of durable topics)
  //   expired          durable topics: retention deleted the next record, and on_expired is `stop`
  //   timeout, stopped, interrupted, closed, deleted, corrupt, forked
  Result<Delivery> receive(const Deadline& deadline = Deadline::never(),
                           const std::stop_token& stop = {});

  // Appends up to `limit` available records to `into` and returns how many; waits for the first
  // until the deadline. Errors as receive().
  Result<std::size_t> receive(std::vector<Delivery>& into, std::size_t limit,
                              const Deadline& deadline = Deadline::never(),
                              const std::stop_token& stop = {});

  // Copies the value of the next record into `buffer`, acknowledges the record, and
  // returns its size.
  //   buffer_too_small   not consumed: the next call returns the same record
  //   lease_lost         the lease ran out meanwhile: another member also gets the record
  // Otherwise errors as receive().
  Result<std::size_t> receive_copy(std::span<std::byte> buffer,
                                   const Deadline& deadline = Deadline::never(),
                                   const std::stop_token& stop = {});

  // Calls on_delivery(const Delivery&) for up to `limit` available records, and acknowledges each
  // when its call returns. Returns how many. Never sleeps. If a call throws, its record and those
  // after it are requeued. A call may use this member, move it, or destroy it, which ends the poll.
  // Errors as receive(), except timeout, stopped and interrupted.
  template <class OnDelivery>
  Result<std::size_t> poll(std::size_t limit, OnDelivery&& on_delivery) {
    // In a lambda, because on_delivery may be a function, whose address is no void*.
    auto call = [&](const Delivery& delivery) { (void)on_delivery(delivery); };
    return poll(limit, &call, [](void* context, const Delivery& delivery) {
      (*static_cast<decltype(call)*>(context))(delivery);
    });
  }

  // Tells the group that the record is done: it is never delivered again.
  //   not_in_flight  acknowledged or requeued already, or another member's
  //   lease_lost   held for longer than the group's lease: another member has it, or will
  //   closed, forked
  Result<void> acknowledge(const Delivery& delivery);
  // Acknowledges those of these records that the member holds, in any order, and returns how many. The
  // others change nothing. It is an error only if records were given and none of them was acknowledged.
  // Like repeated acknowledge(), but publishers that wait for room are woken once.
  //   lease_lost   the lease of at least one was lost
  //   not_in_flight  each was acknowledged or requeued already, or is another member's
  //   closed, forked
  Result<std::size_t> acknowledge(std::span<const Delivery> deliveries);
  // Acknowledges the record and all that this member received before it (acknowledge_all: all
  // that it holds). Returns how many. `lease_lost` only if none was acknowledged; otherwise
  // errors as above.
  Result<std::size_t> acknowledge_up_to(const Delivery& delivery);
  Result<std::size_t> acknowledge_all();

  // Makes the record available for redelivery, to any member, after the delay. Errors as
  // acknowledge().
  Result<void> requeue(const Delivery& delivery,
                       std::chrono::nanoseconds delay = std::chrono::nanoseconds{0});

  // Waits until receive() or poll() may have something to do.
  //   timeout, stopped, interrupted, forked; other errors are reported by receive() and poll()
  Result<void> wait(const Deadline& deadline = Deadline::never(), const std::stop_token& stop = {});
  // As above; `stopped` when the descriptor (an eventfd, say) is readable.
  Result<void> wait(const Deadline& deadline, int stop_fd);
  // As Subscriber::wait_fd().
  Result<int> wait_fd(const std::stop_token& stop = {});

  // stop_waits() makes waits of this member return `stopped`, now and later, until resume_waits().
  // receive() and poll() still deliver what is available. May be called by any thread.
  void stop_waits() noexcept;
  void resume_waits() noexcept;
  bool waits_are_stopped() const noexcept;

  // Durable topics: sets the callback for gaps. receive() and poll() call it for offsets that this member
  // came across and that no member will get. It may use this member, but not move or destroy it.
  void on_event(Callback<void(const Event&)> on_event);

  // Durable topics: whether receive() and poll() read memory only, for a thread that must not wait for the disk
  // (an event loop, say); initially not. They then open and read no file. Where the next record is only on disk,
  // new or returned, they return at once, receive() with `timeout` unless it has records from before it, and
  // next_is_on_disk() is true. Then let another thread call read_memory_only(false) and receive() or poll(); it
  // may return the member as soon as it has called. Until then waits return at once, and the descriptor of
  // wait_fd is readable. A dead letter may still have to make its topic.
  void read_memory_only(bool is_on) noexcept;
  // Whether the last receive or poll left out a record that is only on disk: of any partition.
  bool next_is_on_disk() const noexcept;

  // Number of records that it holds or has taken in advance for its next calls.
  std::size_t in_flight() const noexcept;
  // How long waits spin before they sleep.
  void set_spin(std::chrono::nanoseconds spin) noexcept;

 private:
  friend class Group;
  Result<std::size_t> poll(std::size_t limit, void* context,
                           void (*on_delivery)(void* context, const Delivery&));
  using Core = std::unique_ptr<detail::MemberCore, detail::LeaveGroup>;
  explicit Member(Core core) noexcept;

  Core core_;
};

}  // namespace leat::inline v0

#ifndef LEAT_COMPILED
#include "leat/group.hpp"
#endif
