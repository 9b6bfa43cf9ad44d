// What the parts of a member share: its place in the group, and how they pass records to each other.
//
// A member (member_core.hpp) is made of parts with one job each; each part may use those above it:
//
//   key_order.hpp      by key: whose records it may have now
//   hold_table.hpp     which holds are this member's
//   lease.hpp          when others may take its records, and copies of these
//   ready_records.hpp  what it has claimed or taken back, and not handed out yet
//   redelivery.hpp     takes records that came back
//   claimer.hpp        claims new records
//   other_members.hpp  settles the dead, and takes from those that stand still
#pragma once

#include <cstdint>
#include <tuple>

#include "leat/group/walker.hpp"
#include "leat/log/group_view.hpp"
#include "leat/log/participant.hpp"

namespace leat::inline v0::detail {

// Limits of one step of a member.
inline constexpr std::size_t kAtOnce =
    256;                                   // Records claimed, or looked at of those that came back.
inline constexpr std::size_t kAhead = 64;  // Records claimed for later calls of receive().
// Recheck interval, in ns, while others have records: one of them may die or stop silently.
inline constexpr std::int64_t kOthersDie = 4'000'000;

// What a look for records came to. Not a Result: this is on the way of records.
enum class Found : std::uint8_t { some, none, closed, corrupt };

struct MemberPlace {
  SharedTopic& topic;
  GroupView& group;
  Participant& participant;
  const std::byte* records = nullptr;  // The topic's records in memory, mapped for reading.
  std::uint32_t seat = 0;              // Constant once it is taken.
  bool by_key = group.geometry().by_key();
  // Whether walked memory must be pinned: see SegmentPins.
  bool must_pin = by_key || topic.geometry().grows();

  const GroupGeometry& geometry() const noexcept { return group.geometry(); }
  GroupSeat& own_seat() const noexcept { return group.seat(seat); }
  // This member in the states of holds, and in key slots.
  std::uint32_t owner() const noexcept { return seat + 1; }
};

// Which hold of the group: its row, and its index there. One word, so that it is stored and loaded whole.
class HoldRef {
 public:
  constexpr HoldRef() noexcept = default;
  constexpr HoldRef(std::uint32_t row, std::uint32_t index) noexcept
      : word_{std::uint64_t{row} << 32 | index} {}
  static constexpr HoldRef of(std::uint64_t word) noexcept {
    return {static_cast<std::uint32_t>(word >> 32), static_cast<std::uint32_t>(word)};
  }

  constexpr std::uint32_t row() const noexcept { return static_cast<std::uint32_t>(word_ >> 32); }
  constexpr std::uint32_t index() const noexcept { return static_cast<std::uint32_t>(word_); }
  constexpr std::uint64_t word() const noexcept { return word_; }
  bool operator==(const HoldRef&) const noexcept = default;

 private:
  std::uint64_t word_ = 0;
};

inline GroupHold& hold_at(const GroupView& group, HoldRef ref) noexcept {
  return group.hold(ref.row(), ref.index());
}

// A record that this member has claimed, or taken of those that came back, and not handed out.
struct ReadyRecord {
  WalkedRecord record;  // Of one that came back only the position: the rest is found by its hold.
  HoldRef ref;
  std::uint64_t state;
};

// A record that came back, as a look at its hold found it.
struct ReturnedRecord {
  std::uint64_t offset, key, state;
  HoldRef ref;

  bool operator<(const ReturnedRecord& other) const noexcept {
    return std::tuple{offset, ref.word()} < std::tuple{other.offset, other.ref.word()};
  }
  // The sum of the prints tells two sets of records apart.
  std::uint64_t print() const noexcept {
    return (state ^ ref.word() * 0x9e37'79b9'7f4a'7c15ULL) * 0xff51'afd7'ed55'8ccdULL;
  }
};

// What a member remembers of a record that is its own: claimed or taken back, and not settled.
struct OwnRecord {
  std::uint64_t state = 0;  // Of its hold.
  std::uint64_t order = 0;  // When it was handed out; 0: it is not in the user's hands.
  std::uint64_t key = 0;    // As in the hold.
};

}  // namespace leat::inline v0::detail
