// Every byte of a consumer group's file: docs/format.md draws it, docs/internals/groups.md says who
// may write what and why it is safe.
//
//   | GroupHeader | GroupCursor[partitions] | GroupSeat[seats] |
//   | GroupHold[seats][holds] | GroupHold[16 * holds], spare | key slots, if the group goes by key |
//
// A group is a cursor per partition: what lies before it was claimed by some member. A claimed record
// has a *hold*, in the row of the seat whose member claimed it or in a spare row, from before the
// cursor passes the record until it is acknowledged; only the hold's state changes hands.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "leat/format/layout.hpp"

namespace leat::inline v0::detail {

inline constexpr std::uint64_t kGroupMagic = 0x0032'5052'4754'4145ULL;  // "EATGRP2\0"
inline constexpr char kGroupPrefix[] = "group-";  // + 16 hexadecimal digits of its number
inline constexpr std::size_t kMaxGroupName = 200;

enum GroupFlags : std::uint32_t { kAtMostOnce = 1, kByKey = 2, kAllGroupFlags = 3 };

// In GroupHeader::closed. A deletion that was announced and not decided is called off by whoever
// takes the topic's group lock next. A deleted group holds no room but that of records which members
// have in hand that do not know of it yet; without such members it is taken out of the topic.
enum GroupClosing : std::uint64_t { kGroupOpen = 0, kGroupClosing = 1, kGroupClosed = 2 };

struct GroupHeader {
  // Written before the group is entered in the topic's header; constant afterwards.
  std::uint64_t magic;
  std::uint64_t topic_key;  // of the topic that it belongs to
  std::uint64_t number;
  std::uint32_t partition_count;
  std::uint32_t flags;           // GroupFlags
  std::uint32_t seat_count;      // members at a time
  std::uint32_t hold_count;      // of each seat
  std::uint32_t max_deliveries;  // 0 = no limit
  std::uint32_t name_size;
  std::int64_t lease_ns;    // 0 = never
  std::int64_t created_ms;  // wall clock
  char name[kMaxGroupName];
  std::byte unused[3 * kLine - 64 - kMaxGroupName];

  alignas(kLine) std::uint64_t closed;  // GroupClosing; [group]
  // Rises whenever a record may have become free for others to take.
  alignas(kLine) std::uint64_t returned;  // [hold]
  std::uint64_t redelivered;              // deliveries beyond the first
  std::uint64_t dead_letters;             // records handed out too often, and put aside
  std::uint32_t seat_high;                // seats ever used: scans stop here; only grows
  std::uint32_t spare_high;               // spare holds ever used; the same
};
static_assert(sizeof(GroupHeader) == 5 * kLine && std::is_trivially_copyable_v<GroupHeader>);

// Where the next claim begins; swapped as a whole. [group-cursor]
//
//   place:   | position of a record, in granules over the life of the partition (56) | claimer (8) |
//   record:  | records before it in its segment (28) | of its batch (26) | claim number (10) |
//
// The claimer is the seat (counted from 1) whose claim ended here; 0: nobody's, the group was made or
// moved. The claim number is the low part of that seat's own count.
struct GroupCursor {
  alignas(kLine) std::uint64_t place;
  std::uint64_t record;
};
static_assert(sizeof(GroupCursor) == kLine);

inline constexpr unsigned kSeatBits = 8;
inline constexpr std::uint64_t kSeatMask = (1ULL << kSeatBits) - 1;
inline constexpr std::uint32_t kMaxSeats = kSeatMask;
inline constexpr unsigned kClaimNumberBits = 10;
inline constexpr std::uint64_t kClaimNumberMask = (1ULL << kClaimNumberBits) - 1;
inline constexpr unsigned kBatchIndexBits = 26;
inline constexpr std::uint64_t kBatchIndexMask = (1ULL << kBatchIndexBits) - 1;
inline constexpr std::uint32_t kMaxHolds = 65536;
// Spare holds, for whoever finds its own row full of records that came back: so many times hold_count.
inline constexpr std::uint32_t kSpareRows = 16;
inline constexpr std::uint64_t kMaxKeySlots = 1 << 20;

struct CursorValue {
  std::uint64_t place = 0;
  std::uint64_t record = 0;

  static constexpr CursorValue make(std::uint64_t position, std::uint64_t claimer,
                                    std::uint64_t records_before, std::uint64_t batch_index,
                                    std::uint64_t claim_number) noexcept {
    return {position << kSeatBits | claimer,
            records_before << (kBatchIndexBits + kClaimNumberBits) |
                batch_index << kClaimNumberBits | (claim_number & kClaimNumberMask)};
  }
  constexpr std::uint64_t position() const noexcept { return place >> kSeatBits; }
  constexpr std::uint64_t claimer() const noexcept { return place & kSeatMask; }
  constexpr std::uint64_t records_before() const noexcept {
    return record >> (kBatchIndexBits + kClaimNumberBits);
  }
  constexpr std::uint64_t batch_index() const noexcept {
    return record >> kClaimNumberBits & kBatchIndexMask;
  }
  constexpr std::uint64_t claim_number() const noexcept { return record & kClaimNumberMask; }
  bool operator==(const CursorValue&) const noexcept = default;
};

// One member. Its life is that of the participant whose identity it has (participants.hpp).
struct alignas(kLine) GroupSeat {
  std::uint64_t identity;  // 0 = vacant; [hold]
  // Number of the claim it makes or made last, and of the last one that is known to be made.
  // Stays with the seat when its member goes. [group-cursor]
  std::uint64_t claiming;
  std::uint64_t noted;
  std::uint64_t handed;     // how many records it handed to its user: whether it moves
  std::uint32_t in_flight;  // records it has claimed and not settled
  std::uint32_t hold_high;  // holds ever used: scans stop here; only grows
  std::uint32_t pid;        // for people, as the name
  std::uint32_t name_size;
  char name[64];
  std::uint32_t participant;  // its slot in the topic, while `identity` has that
};
static_assert(sizeof(GroupSeat) == kLine);

// A claimed record that is not acknowledged.
//
//   state: | generation 36 | retaken 1 | delayed 1 | deliveries 16 | owner 8 | phase 2 |
//
enum class HoldPhase : std::uint64_t {
  free = 0,      // no record; or one that somebody else acknowledged, and its home has not noticed
  ready = 1,     // claimed by `owner`, not handed out yet
  held = 2,      // handed out by `owner`
  returned = 3,  // for whoever takes it
};
struct alignas(64) GroupHold {
  std::uint64_t state;     // HoldState; [hold]
  std::uint64_t position;  // of the record, or of its batch, in granules
  std::uint64_t offset;
  std::uint64_t where;          // physical segment (16) | partition (16) | of its batch (32)
  std::uint64_t key;            // hash of its key, if the group goes by key; 0 = none
  std::int64_t visible_at_ns;   // monotonic; if delayed: nobody takes it before
  std::int64_t lease_until_ns;  // monotonic; if held and the group has a lease
  std::uint64_t unused;
};
static_assert(sizeof(GroupHold) == 64);

// The state of a hold in one word.
struct HoldState {
  HoldPhase phase = HoldPhase::free;
  std::uint32_t owner = 0;       // seat from 1; 0 unless ready or held
  std::uint32_t deliveries = 0;  // handed out so often; stands still at kMaxDeliveries
  bool delayed = false;          // visible_at_ns counts; if ready, see reserved()
  bool retaken = false;          // not by the claim that made the hold
  std::uint64_t generation = 0;  // of the claim (its number); one more with each time it is retaken

  static constexpr std::uint32_t kMaxDeliveries = 0xffff;
  static constexpr std::uint64_t kGenerationMask = (1ULL << 36) - 1;

  constexpr std::uint64_t pack() const noexcept {
    return static_cast<std::uint64_t>(phase) | std::uint64_t{owner} << 2 |
           std::uint64_t{deliveries} << 10 | std::uint64_t{delayed} << 26 |
           std::uint64_t{retaken} << 27 | (generation & kGenerationMask) << 28;
  }
  static constexpr HoldState unpack(std::uint64_t word) noexcept {
    return {static_cast<HoldPhase>(word & 3),
            static_cast<std::uint32_t>(word >> 2 & kSeatMask),
            static_cast<std::uint32_t>(word >> 10 & kMaxDeliveries),
            (word >> 26 & 1) != 0,
            (word >> 27 & 1) != 0,
            word >> 28};
  }
  // Of a word: whether nobody had the record in hands, and what it becomes when somebody first has.
  static constexpr bool is_undelivered(std::uint64_t word) noexcept {
    return (word >> 10 & kMaxDeliveries) == 0;
  }
  static constexpr std::uint64_t hand_over(std::uint64_t ready) noexcept {
    return ready + (1ULL << 10) + 1;
  }
  // A spare hold that is somebody's, and says nothing yet: its facts are of the record before.
  constexpr HoldState reserved() const noexcept {
    HoldState state = *this;
    state.phase = HoldPhase::ready;
    state.deliveries = 0;
    state.delayed = true;
    return state;
  }
  static constexpr bool is_reserved(std::uint64_t word) noexcept {
    return (word & (1ULL << 26 | 3)) == (1ULL << 26 | static_cast<std::uint64_t>(HoldPhase::ready));
  }
  // What it becomes when its owner lets go: free or returned, and nobody's.
  static constexpr std::uint64_t let_go(std::uint64_t word, HoldPhase to) noexcept {
    return (word & ~((std::uint64_t{kSeatMask} << 2) | 3)) | static_cast<std::uint64_t>(to);
  }
};
inline constexpr HoldPhase phase_of(std::uint64_t state) noexcept {
  return static_cast<HoldPhase>(state & 3);
}
inline constexpr std::uint32_t owner_of(std::uint64_t state) noexcept {
  return static_cast<std::uint32_t>(state >> 2 & kSeatMask);
}

inline constexpr bool is_retaken(std::uint64_t state) noexcept { return (state >> 27 & 1) != 0; }

struct HoldPlace {
  std::uint32_t physical = 0;
  std::uint32_t partition = 0;
  std::uint32_t batch_index = 0;

  constexpr std::uint64_t pack() const noexcept {
    return physical | std::uint64_t{partition} << 16 | std::uint64_t{batch_index} << 32;
  }
  static constexpr HoldPlace unpack(std::uint64_t word) noexcept {
    return {static_cast<std::uint32_t>(word & 0xffff),
            static_cast<std::uint32_t>(word >> 16 & 0xffff),
            static_cast<std::uint32_t>(word >> 32)};
  }
};

// A group's constants, copied out of its file and checked once.
struct GroupGeometry {
  std::uint64_t topic_key = 0;
  std::uint64_t number = 0;
  std::uint32_t partition_count = 0;
  std::uint32_t flags = 0;
  std::uint32_t seat_count = 0;
  std::uint32_t hold_count = 0;
  std::uint32_t max_deliveries = 0;
  std::int64_t lease_ns = 0;

  bool is_valid() const noexcept {
    return number != 0 && partition_count >= 1 && partition_count <= Geometry::kMaxPartitions &&
           (flags & ~std::uint32_t{kAllGroupFlags}) == 0 && seat_count >= 1 &&
           seat_count <= kMaxSeats && hold_count >= 1 && hold_count <= kMaxHolds && lease_ns >= 0 &&
           max_deliveries < HoldState::kMaxDeliveries;
  }
  std::uint64_t seats_at() const noexcept {
    return sizeof(GroupHeader) + partition_count * sizeof(GroupCursor);
  }
  std::uint64_t holds_at() const noexcept { return seats_at() + seat_count * sizeof(GroupSeat); }
  std::uint32_t spare_count() const noexcept { return kSpareRows * hold_count; }
  std::uint64_t all_holds() const noexcept {
    return std::uint64_t{seat_count} * hold_count + spare_count();
  }
  std::uint64_t slots_at() const noexcept { return holds_at() + all_holds() * sizeof(GroupHold); }
  // Many more than records are claimed at a time, so that other keys seldom share a slot.
  std::uint64_t slot_count() const noexcept {
    if (!by_key()) return 0;
    return std::min(std::bit_ceil(4 * all_holds()), kMaxKeySlots);
  }
  std::uint64_t file_size() const noexcept {
    return Geometry::round_up(slots_at() + slot_count() * sizeof(std::uint64_t), kPage);
  }
  bool at_most_once() const noexcept { return (flags & kAtMostOnce) != 0; }
  bool by_key() const noexcept { return (flags & kByKey) != 0; }
};

}  // namespace leat::inline v0::detail
