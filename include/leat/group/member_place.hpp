// What the parts of a member share: its place in the group, and the types in which they pass
// records.
//
// A member (member_core.hpp) consists of parts with one job each; each part may use those above it:
//
//   key_order.hpp        by key: which records it may have now
//   in_flight_table.hpp  the entries that it owns
//   lease.hpp            when others may take its records; copies of these for the user
//   ready_records.hpp    records that it has taken or retaken and not handed out yet
//   redelivery.hpp       retakes returned records
//   record_taker.hpp     takes new records
//   other_members.hpp    settles dead members, takes records from those that make no progress
#pragma once

#include <atomic>
#include <cstdint>
#include <tuple>

#include "leat/group/record_scanner.hpp"
#include "leat/log/group_view.hpp"
#include "leat/log/participant.hpp"

namespace leat::inline v0::detail {

// Limits of one step of a member.
inline constexpr std::size_t kAtOnce = 256;  // Records taken, or considered for retaking.
inline constexpr std::size_t kAhead = 64;  // Records taken in advance for later calls of receive().
// Recheck interval, in ns, while others have records: one of them may die or stop silently.
inline constexpr std::int64_t kOthersDie = 4'000'000;

// What a look for records came to. Not a Result: every record passes it.
enum class Found : std::uint8_t { some, none, closed, corrupt };

// Identifies an entry of the group: row and index, in one word that is stored and loaded whole.
class InFlightRef {
 public:
  constexpr InFlightRef() noexcept = default;
  constexpr InFlightRef(std::uint32_t row, std::uint32_t index) noexcept
      : word_{std::uint64_t{row} << 32 | index} {}
  static constexpr InFlightRef of(std::uint64_t word) noexcept {
    return {static_cast<std::uint32_t>(word >> 32), static_cast<std::uint32_t>(word)};
  }

  constexpr std::uint32_t row() const noexcept { return static_cast<std::uint32_t>(word_ >> 32); }
  constexpr std::uint32_t index() const noexcept { return static_cast<std::uint32_t>(word_); }
  constexpr std::uint64_t word() const noexcept { return word_; }
  bool operator==(const InFlightRef&) const noexcept = default;

 private:
  std::uint64_t word_ = 0;
};

struct MemberPlace {
  MappedTopic& topic;
  GroupView& group;
  Participant& participant;
  const std::byte* records = nullptr;  // The topic's records, mapped for reading.
  std::uint32_t seat = 0;              // Constant after the seat is taken.
  std::uint64_t number = next_number();
  bool by_key = group.geometry().by_key();
  // Whether scanned memory must be pinned; see SegmentPins.
  bool must_pin = (by_key || topic.geometry().grows()) && topic.durable() == nullptr;

  // Durable topic, at most once: nothing is handed out before the archiver has saved a position behind it.
  bool waits_for_saves = group.geometry().at_most_once() && topic.durable() != nullptr;

  // Identifies an entry in a Delivery: row and index, and in the upper bits which member of this process owns it.
  // Entries of different groups may have the same numbers and states.
  std::uint64_t mark_of(InFlightRef ref) const noexcept {
    return number << 28 | std::uint64_t{ref.row()} << 20 | ref.index();
  }
  bool is_mark(std::uint64_t mark) const noexcept { return mark >> 28 == number; }
  static InFlightRef ref_of(std::uint64_t mark) noexcept {
    return {static_cast<std::uint32_t>(mark >> 20 & 0xff),
            static_cast<std::uint32_t>(mark & 0xfffff)};
  }
  // The row of spare entries follows those of the seats, and is the longest.
  static_assert(kMaxSeats <= 0xff && kSpareRows * kMaxInFlight <= 1U << 20);

  // Whether this record may be handed out.
  bool may_hand_out(std::uint32_t partition, std::uint64_t offset) const noexcept {
    if (!waits_for_saves) return true;
    if (partition >= geometry().partition_count) return false;
    // [archiver] The saved group begins there. [sync] seq_cst: read after the record is this member's.
    return offset < load_seq_cst<Edge::sync>(group.cursor(partition).limit.value);
  }

  const GroupGeometry& geometry() const noexcept { return group.geometry(); }
  GroupSeat& own_seat() const noexcept { return group.seat(seat); }
  // Where its readers of a durable topic's partition belong.
  StoredPlace stored_place(std::uint32_t partition) const noexcept {
    return {&topic, records, partition, participant.index()};
  }
  static std::uint64_t next_number() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }
  // How the states of entries and the key slots name this member.
  std::uint32_t owner() const noexcept { return seat + 1; }
};

inline InFlightEntry& entry_at(const GroupView& group, InFlightRef ref) noexcept {
  return group.entry(ref.row(), ref.index());
}

// A record that this member has taken or retaken, and not handed out. Other members may take the
// record away at any time and use its entry for another one, so what this member must know is copied here.
struct ReadyRecord {
  ScannedRecord record;  // If retaken, only its key: its entry has the rest.
  InFlightRef ref;
  std::uint64_t state;
};

// A returned record, as read from its entry.
struct ReturnedRecord {
  std::uint64_t offset, key, state;
  InFlightRef ref;

  bool operator<(const ReturnedRecord& other) const noexcept {
    return std::tuple{offset, ref.word()} < std::tuple{other.offset, other.ref.word()};
  }
  // A hash, to tell sets of records apart by the sums of their hashes.
  std::uint64_t print() const noexcept {
    return (state ^ ref.word() * 0x9e37'79b9'7f4a'7c15ULL) * 0xff51'afd7'ed55'8ccdULL;
  }
};

// What a member remembers of a record that is its own: taken or retaken, and not settled.
struct OwnRecord {
  std::uint64_t state = 0;  // State of its entry.
  std::uint64_t order = 0;  // Increases with each record handed out; 0: not handed out.
  std::uint64_t key = 0;    // Hash of its key, if the group goes by key; 0 = none.
};

}  // namespace leat::inline v0::detail
