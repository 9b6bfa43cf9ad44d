// Every byte of a consumer group's file. docs/format.md shows the layout; docs/internals/groups.md
// explains who may write what, and why that is safe.
//
//   | GroupHeader | GroupCursor[partitions] | GroupSeat[seats] |
//   | InFlightEntry[seats][in_flight_limit] | InFlightEntry[16 * in_flight_limit], spare | key slots, if by key |
//
// A group has one cursor per partition: all records before it were taken by some member. A
// taken record has an *in-flight entry*, in the row of the seat whose member took it or among the spare
// entries. The record keeps that entry from before the cursor passes it until it is acknowledged; only
// the entry's state changes hands.
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
inline constexpr char kGroupPrefix[] = "group-";  // and the number in 16 hexadecimal digits
inline constexpr std::size_t kMaxGroupName = 200;

// The last two are for durable topics: what a group does if retention has deleted its next record. With
// neither of them it continues at the oldest record.
enum GroupFlags : std::uint32_t {
  kAtMostOnce = 1,
  kByKey = 2,
  kExpiredToEnd = 4,
  kExpiredStops = 8,
  kAllGroupFlags = 15
};

// In GroupHeader::closed. A deletion that was announced and not decided is called off by the next
// process that takes the topic's group lock. A deleted group holds no room, except for records in
// the hands of members that have not noticed the deletion yet. Once there are no such members, the
// group is taken out of the topic.
//
// A group that is being made is not there yet. A subscriber of its maker keeps the room for it. A
// publisher that needs its room nevertheless, because that subscriber was evicted, closes it.
enum GroupClosing : std::uint64_t {
  kGroupOpen = 0,
  kGroupClosing = 1,
  kGroupClosed = 2,
  kGroupMaking = 3
};

struct GroupHeader {
  // Written before the group is entered in the topic's header, constant afterwards.
  std::uint64_t magic;
  std::uint64_t topic_key;  // TopicHeader::key of its topic
  std::uint64_t number;
  std::uint32_t partition_count;
  std::uint32_t flags;            // GroupFlags
  std::uint32_t seat_count;       // maximum number of members
  std::uint32_t in_flight_limit;  // entries per seat
  std::uint32_t max_deliveries;   // 0 = no limit
  std::uint32_t name_size;
  std::int64_t lease_ns;    // 0 = never
  std::int64_t created_ms;  // wall clock
  char name[kMaxGroupName];
  std::uint64_t saved_id;  // durable topics: SavedGroupFacts::id; else 0
  std::byte unused[3 * kLine - 72 - kMaxGroupName];

  alignas(kLine) std::uint64_t closed;  // GroupClosing; [group]
  // Increases whenever a record may have become available for redelivery.
  alignas(kLine) std::uint64_t returned;  // [in-flight]
  std::uint64_t redelivered;              // deliveries after the first
  std::uint64_t dead_letters;             // records published to the dead-letter topic
  std::uint32_t seat_high;                // seats ever used; all scans stop here; only grows
  std::uint32_t spare_high;               // spare entries ever used; the same
};
static_assert(sizeof(GroupHeader) == 5 * kLine && std::is_trivially_copyable_v<GroupHeader>);

// Where the next take begins; both words are swapped at once. [group-cursor]
//
//   place:   | a record's position, in granules over the partition's life (56) | taker (8) |
//   record:  | records before it in its segment (28) | in its batch (26) | take number (10) |
//
// The taker is the seat (counted from 1) whose take ended here; 0 if the group was just created
// or moved. The take number is the low part of that seat's own counter. Without a taker it is 0, or the
// mark of a process that is about to move the group: a publisher that needs room sets it to 0.
//
// Durable topics: the position is the record's offset, and the two numbers of records are 0. No topic comes to offsets
// above kMaxPosition; files that say so are corrupt.
struct GroupCursor {
  alignas(kLine) std::uint64_t place;
  std::uint64_t record;
  // Durable topics, at most once: no record from here on may be taken, because the saved group begins
  // here.
  OwnedWord limit;
};
static_assert(sizeof(GroupCursor) == kLine);

inline constexpr unsigned kSeatBits = 8;
inline constexpr std::uint64_t kSeatMask = (1ULL << kSeatBits) - 1;
inline constexpr std::uint32_t kMaxSeats = kSeatMask;
inline constexpr std::uint64_t kMaxPosition = (1ULL << (64 - kSeatBits)) - 1;
inline constexpr unsigned kTakeNumberBits = 10;
inline constexpr std::uint64_t kTakeNumberMask = (1ULL << kTakeNumberBits) - 1;
inline constexpr unsigned kBatchIndexBits = 26;
inline constexpr std::uint64_t kBatchIndexMask = (1ULL << kBatchIndexBits) - 1;
inline constexpr std::uint32_t kMaxInFlight = 65536;
// Number of spare entries, in units of in_flight_limit. Members use them when their own row is full of
// returned records.
inline constexpr std::uint32_t kSpareRows = 16;
inline constexpr std::uint64_t kMaxKeySlots = 1 << 20;

struct CursorValue {
  std::uint64_t place = 0;
  std::uint64_t record = 0;

  static constexpr CursorValue make(std::uint64_t position, std::uint64_t taker,
                                    std::uint64_t records_before, std::uint64_t batch_index,
                                    std::uint64_t take_number) noexcept {
    return {position << kSeatBits | taker, records_before << (kBatchIndexBits + kTakeNumberBits) |
                                               batch_index << kTakeNumberBits |
                                               (take_number & kTakeNumberMask)};
  }
  constexpr std::uint64_t position() const noexcept { return place >> kSeatBits; }
  constexpr std::uint64_t taker() const noexcept { return place & kSeatMask; }
  constexpr std::uint64_t records_before() const noexcept {
    return record >> (kBatchIndexBits + kTakeNumberBits);
  }
  constexpr std::uint64_t batch_index() const noexcept {
    return record >> kTakeNumberBits & kBatchIndexMask;
  }
  constexpr std::uint64_t take_number() const noexcept { return record & kTakeNumberMask; }
  // The same place, with the mark of a mover. Movers at work have different identities.
  constexpr CursorValue marked(std::uint64_t identity) const noexcept {
    return {place & ~kSeatMask, (record & ~kTakeNumberMask) | (1 + identity % kTakeNumberMask)};
  }
  constexpr bool is_marked() const noexcept { return taker() == 0 && take_number() != 0; }
  constexpr CursorValue unmarked() const noexcept { return {place, record & ~kTakeNumberMask}; }
  bool operator==(const CursorValue&) const noexcept = default;
};

// One member's seat. The member is alive as long as the participant with its identity is.
struct alignas(kLine) GroupSeat {
  std::uint64_t identity;  // 0 = vacant; [in-flight]
  // Name of the take that it is making or made last, and of the last one that is known to have
  // succeeded. They stay in the seat when the member leaves. [group-cursor]
  std::uint64_t taking;
  std::uint64_t noted;
  // Raised with each record handed to its user, and before records become ready or returned other than by a
  // take; shows whether the member makes progress.
  std::uint64_t handed;
  std::uint32_t in_flight;   // records that it has taken and not settled
  std::uint32_t entry_high;  // entries ever used; all scans stop here; only grows
  std::uint32_t pid;         // informational, as is the name
  std::uint32_t name_size;
  char name[64];
  std::uint32_t participant;  // its slot in the topic, while that slot has this identity
};
static_assert(sizeof(GroupSeat) == kLine);

// The in-flight entry of a record that was taken and not acknowledged.
//
//   state: | generation 36 | retaken 1 | delayed 1 | deliveries 16 | owner 8 | phase 2 |
enum class InFlightPhase : std::uint64_t {
  free = 0,       // no record; or acknowledged by another member, unnoticed by its home seat
  ready = 1,      // taken by `owner`, not delivered yet
  delivered = 2,  // delivered by `owner`
  returned = 3,   // available to any member
};
struct alignas(64) InFlightEntry {
  std::uint64_t state;     // InFlightState; [in-flight]
  std::uint64_t position;  // of the record, or of its batch, in granules
  std::uint64_t offset;
  std::uint64_t where;          // physical segment (16) | partition (16) | index in its batch (32)
  std::uint64_t key;            // hash of its key, if the group goes by key; 0 = none
  std::int64_t visible_at_ns;   // monotonic clock; if delayed: not redelivered before
  std::int64_t lease_until_ns;  // monotonic clock; if held and the group has a lease
  std::uint64_t unused;
};
static_assert(sizeof(InFlightEntry) == 64);

// InFlightEntry::state, unpacked.
struct InFlightState {
  InFlightPhase phase = InFlightPhase::free;
  std::uint32_t owner = 0;       // seat, counted from 1; 0 unless ready or held
  std::uint32_t deliveries = 0;  // number of deliveries; saturates at kMaxDeliveries
  bool delayed = false;          // visible_at_ns is valid; if ready, see reserved()
  bool retaken = false;          // owned through redelivery, not by the take that made the entry
  std::uint64_t generation = 0;  // the take's number, plus one for each redelivery

  static constexpr std::uint32_t kMaxDeliveries = 0xffff;
  static constexpr std::uint64_t kGenerationMask = (1ULL << 36) - 1;

  constexpr std::uint64_t pack() const noexcept {
    return static_cast<std::uint64_t>(phase) | std::uint64_t{owner} << 2 |
           std::uint64_t{deliveries} << 10 | std::uint64_t{delayed} << 26 |
           std::uint64_t{retaken} << 27 | (generation & kGenerationMask) << 28;
  }
  static constexpr InFlightState unpack(std::uint64_t word) noexcept {
    return {static_cast<InFlightPhase>(word & 3),
            static_cast<std::uint32_t>(word >> 2 & kSeatMask),
            static_cast<std::uint32_t>(word >> 10 & kMaxDeliveries),
            (word >> 26 & 1) != 0,
            (word >> 27 & 1) != 0,
            word >> 28};
  }
  // Whether the record was never delivered; and what a ready state becomes at its first delivery.
  static constexpr bool is_undelivered(std::uint64_t word) noexcept {
    return (word >> 10 & kMaxDeliveries) == 0;
  }
  static constexpr std::uint64_t hand_over(std::uint64_t ready) noexcept {
    return ready + (1ULL << 10) + 1;
  }
  // A spare entry that is reserved but not filled in yet: its fields are those of its previous record.
  constexpr InFlightState reserved() const noexcept {
    InFlightState state = *this;
    state.phase = InFlightPhase::ready;
    state.deliveries = 0;
    state.delayed = true;
    return state;
  }
  static constexpr bool is_reserved(std::uint64_t word) noexcept {
    return (word & (1ULL << 26 | 3)) ==
           (1ULL << 26 | static_cast<std::uint64_t>(InFlightPhase::ready));
  }
  // The state after its owner lets go: free or returned, without an owner.
  static constexpr std::uint64_t let_go(std::uint64_t word, InFlightPhase to) noexcept {
    return (word & ~((std::uint64_t{kSeatMask} << 2) | 3)) | static_cast<std::uint64_t>(to);
  }
};
inline constexpr InFlightPhase phase_of(std::uint64_t state) noexcept {
  return static_cast<InFlightPhase>(state & 3);
}
inline constexpr std::uint32_t owner_of(std::uint64_t state) noexcept {
  return static_cast<std::uint32_t>(state >> 2 & kSeatMask);
}

inline constexpr bool is_retaken(std::uint64_t state) noexcept { return (state >> 27 & 1) != 0; }

struct InFlightPlace {
  std::uint32_t physical = 0;
  std::uint32_t partition = 0;
  std::uint32_t batch_index = 0;

  constexpr std::uint64_t pack() const noexcept {
    return physical | std::uint64_t{partition} << 16 | std::uint64_t{batch_index} << 32;
  }
  static constexpr InFlightPlace unpack(std::uint64_t word) noexcept {
    return {static_cast<std::uint32_t>(word & 0xffff),
            static_cast<std::uint32_t>(word >> 16 & 0xffff),
            static_cast<std::uint32_t>(word >> 32)};
  }
};

// A group's constants, copied from its file and checked once.
struct GroupGeometry {
  std::uint64_t topic_key = 0;
  std::uint64_t number = 0;
  std::uint32_t partition_count = 0;
  std::uint32_t flags = 0;
  std::uint32_t seat_count = 0;
  std::uint32_t in_flight_limit = 0;
  std::uint32_t max_deliveries = 0;
  std::int64_t lease_ns = 0;

  bool is_valid() const noexcept {
    return number != 0 && partition_count >= 1 && partition_count <= Geometry::kMaxPartitions &&
           (flags & ~std::uint32_t{kAllGroupFlags}) == 0 &&
           (flags & (kExpiredToEnd | kExpiredStops)) != (kExpiredToEnd | kExpiredStops) &&
           seat_count >= 1 && seat_count <= kMaxSeats && in_flight_limit >= 1 &&
           in_flight_limit <= kMaxInFlight && lease_ns >= 0 &&
           max_deliveries < InFlightState::kMaxDeliveries;
  }
  std::uint64_t seats_at() const noexcept {
    return sizeof(GroupHeader) + partition_count * sizeof(GroupCursor);
  }
  std::uint64_t entries_at() const noexcept { return seats_at() + seat_count * sizeof(GroupSeat); }
  std::uint32_t spare_count() const noexcept { return kSpareRows * in_flight_limit; }
  std::uint64_t all_entries() const noexcept {
    return std::uint64_t{seat_count} * in_flight_limit + spare_count();
  }
  std::uint64_t slots_at() const noexcept {
    return entries_at() + all_entries() * sizeof(InFlightEntry);
  }
  // Many more than records can be in flight, so that different keys seldom share a slot.
  std::uint64_t slot_count() const noexcept {
    if (!by_key()) return 0;
    return std::min(std::bit_ceil(4 * all_entries()), kMaxKeySlots);
  }
  std::uint64_t file_size() const noexcept {
    return Geometry::round_up(slots_at() + slot_count() * sizeof(std::uint64_t), kPage);
  }
  bool at_most_once() const noexcept { return (flags & kAtMostOnce) != 0; }
  bool by_key() const noexcept { return (flags & kByKey) != 0; }
  bool expires() const noexcept { return (flags & (kExpiredToEnd | kExpiredStops)) != 0; }
  bool expired_stops() const noexcept { return (flags & kExpiredStops) != 0; }
  bool expired_to_end() const noexcept { return (flags & kExpiredToEnd) != 0; }
};

}  // namespace leat::inline v0::detail
