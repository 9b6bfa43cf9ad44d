// A member of a consumer group: takes records that no other member has, and acknowledges them.
//
//     auto member = topic->group("workers")->join();
//     while (auto delivery = member->receive()) {
//       work(delivery->record.value);
//       member->acknowledge(*delivery);
//     }
//
// A Member belongs to one thread at a time; any number of members, in any number of processes, share
// the records of a group. What a member has taken and not acknowledged when it goes, or dies, others
// get. docs/guide/groups.md shows the use, docs/internals/groups.md why nothing is lost.
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
}

struct MemberOptions {
  std::string name = {};                                          // for people; at most 63 bytes
  std::chrono::nanoseconds spin = std::chrono::microseconds{20};  // before sleeping
  std::chrono::nanoseconds patience = std::chrono::microseconds{20};  // as for subscribers
};

// A record that a member holds. What `record` points to is in place and stays until the record is
// acknowledged or given back; in a group with a lease it is a copy of the member's own, and stays
// until the next call that takes.
struct Delivery {
  Record record;
  std::uint32_t deliveries = 1;  // 1: for the first time. Stands still at 65,535.

 private:
  friend class detail::MemberCore;
  std::uint64_t state_ = 0;  // Of the hold: whether it is still this delivery's.
  std::uint64_t position_ = 0;
  std::uint32_t row_ = 0;  // Where the hold is.
  std::uint32_t hold_ = 0;
};

namespace detail {

// One Member::poll().
class Polling {
 public:
  Polling(MemberCore& member, std::size_t limit) noexcept : member_{member}, limit_{limit} {}
  Polling(const Polling&) = delete;
  Polling& operator=(const Polling&) = delete;
  // If the callback throws, the record in hand goes back, and those claimed with it.
  ~Polling() {
    if (is_in_hand_) abandon();
  }

  // Acknowledges the last record, and hands out another. Null: there is no more now.
  const Delivery* next();
  Result<std::size_t> end() const noexcept;

 private:
  void abandon() noexcept;

  MemberCore& member_;
  std::size_t limit_;
  std::size_t count_ = 0;
  Delivery delivery_;
  Error error_;
  bool has_begun_ = false;
  bool is_in_hand_ = false;
};

}  // namespace detail

class Member {
 public:
  Member(Member&&) noexcept;
  Member& operator=(Member&& other) noexcept;
  // Gives back what it has not acknowledged (at-most-once: what it was not handed), and leaves.
  ~Member();

  // The next record; waits for it until the deadline. The member holds it until it is acknowledged.
  //   timeout, stopped, closed, deleted, corrupt, forked
  //   in_flight_full   it holds as many as the group allows
  Result<Delivery> receive(const Deadline& deadline = Deadline::never(),
                           const std::stop_token& stop = {});

  // Appends up to `limit` records that are there, and returns how many; waits for the first until the
  // deadline. Errors as receive().
  Result<std::size_t> receive(std::vector<Delivery>& into, std::size_t limit,
                              const Deadline& deadline = Deadline::never(),
                              const std::stop_token& stop = {});

  // Copies the value of the next record into `buffer`, acknowledges it, and returns its size.
  //   buffer_too_small   it is the next one again
  //   lease_lost         its lease ran out meanwhile: another member has it, too
  //   otherwise as receive()
  Result<std::size_t> receive_copy(std::span<std::byte> buffer,
                                   const Deadline& deadline = Deadline::never(),
                                   const std::stop_token& stop = {});

  // Calls on_delivery(const Delivery&) for up to `limit` records that are there, and acknowledges each
  // when the call returns. Returns how many; never waits. If the call throws, that record and those
  // after it are given back.
  template <class OnDelivery>
  Result<std::size_t> poll(std::size_t limit, OnDelivery&& on_delivery) {
    detail::Polling polling{*core_, limit};
    while (const Delivery* delivery = polling.next()) on_delivery(*delivery);
    return polling.end();
  }

  //   not_held     acknowledged or given back already, or another member's
  //   lease_lost   held for longer than the group's lease: another member has it, or will
  //   closed, forked
  Result<void> acknowledge(const Delivery& delivery);
  // The same with everything that this member took before it. Returns how many that were.
  Result<std::size_t> acknowledge_up_to(const Delivery& delivery);
  Result<std::size_t> acknowledge_all();

  // Lets another member, or this one, have the record again, after the delay. Errors as acknowledge().
  Result<void> give_back(const Delivery& delivery,
                         std::chrono::nanoseconds delay = std::chrono::nanoseconds{0});

  // Waits until receive() or poll() may have something to do.
  //   timeout, stopped, forked
  Result<void> wait(const Deadline& deadline = Deadline::never(), const std::stop_token& stop = {});
  // The same, ending with `stopped` when a descriptor is readable (an eventfd).
  Result<void> wait(const Deadline& deadline, int stop_fd);
  // As Subscriber::wait_fd().
  Result<int> wait_fd();

  // Ends the waits of this member with `stopped`, now and later; its calls still take what is there.
  // Any thread.
  void stop_waits() noexcept;
  void resume_waits() noexcept;
  bool waits_are_stopped() const noexcept;

  // How many records it holds, and has claimed for its next calls.
  std::size_t in_flight() const noexcept;
  // How long waits look before they sleep.
  void set_spin(std::chrono::nanoseconds spin) noexcept;

 private:
  friend class Group;
  explicit Member(std::unique_ptr<detail::MemberCore> core) noexcept;

  std::unique_ptr<detail::MemberCore> core_;
};

}  // namespace leat::inline v0

#ifndef LEAT_COMPILED
#include "leat/group.hpp"
#endif
