// Every byte that processes share: docs/format.md draws it, docs/internals/log.md says who may
// write what and why it is safe. Groups have files of their own: group_layout.hpp.
//
// A topic is a directory with two files. `control` is mapped writable by every participant:
//
//   | TopicHeader | ParticipantSlot[participant_capacity] | Partition 0 | Partition 1 | … |
//
//   Partition: | PartitionControl | PhysicalSegment[segments] | SegmentEntry[entries] |
//              | PartitionSlot[participant_capacity] |
//
// `records` holds the segments, partition after partition, and nothing else. Subscribers map it
// read-only. In a topic that grows, segments that have no memory yet are holes in the file.
//
// All words are plain integers, reached only through base/atomic.hpp. Nothing here is a pointer, a
// divisor or a loop bound without a check against the private copy of the geometry.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "leat/base/atomic.hpp"

namespace leat::inline v0::detail {

inline constexpr std::uint64_t kMagic = 0x0031'474f'4c54'4145ULL;  // "EATLOG1\0" in memory order.
inline constexpr std::uint32_t kFormatVersion = 3;

// Two cache lines: processors fetch lines in pairs. Part of the format.
inline constexpr std::size_t kLine = 128;
inline constexpr std::size_t kPage = 4096;

// ---- Records -----------------------------------------------------------------------------------

// Records lie on 16-byte granules. The payload follows the header directly.
//
//   0                8       12       16            16+n     next multiple of 16
//   | commit         | claim | detail | payload[n]  | unused |
//
struct RecordHeader {
  std::uint64_t commit;  // tag of the record's position (56 bits) | RecordKind; [record-ready]
  std::uint32_t claim;  // granules claimed, header included | kBatchClaim; the same from any writer
  std::uint32_t detail;  // payload bytes | kHas… flags; meaningful for RecordKind::data only
};
inline constexpr std::uint64_t kGranule = 16;
inline constexpr std::uint64_t kRecordHeaderSize = sizeof(RecordHeader);
static_assert(sizeof(RecordHeader) == 16 && std::is_trivially_copyable_v<RecordHeader>);

enum class RecordKind : std::uint8_t {
  data = 1,     // one record
  batch = 2,    // several, published at once: BatchHeader and BatchFrames in the payload
  aborted = 3,  // the publisher gave the claim up
  died = 4,     // the publisher died before it committed
  revoked = 5,  // the publisher was alive, but did not run for longer than revoke_after
};

// In `claim`: it took more than one offset, and a BatchHeader says how many.
inline constexpr std::uint32_t kBatchClaim = 1U << 31;
inline constexpr std::uint32_t kClaimGranules = kBatchClaim - 1;

inline constexpr std::uint32_t kHasKey = 1U << 29;
inline constexpr std::uint32_t kHasHeaders = 1U << 30;
inline constexpr std::uint32_t kHasTimestamp = 1U << 31;
inline constexpr std::uint32_t kHasExtension = kHasKey | kHasHeaders | kHasTimestamp;
inline constexpr std::uint32_t kDetailLength = kHasKey - 1;

// Starts the payload of a batch. `count` is known before the claim and the same from any writer.
struct BatchHeader {
  std::uint32_t count;
  std::uint32_t unused;
};
// Before each record of a batch; the next frame starts at the next multiple of 8.
struct BatchFrame {
  std::uint32_t detail;
};
inline constexpr std::uint64_t kBatchAlignment = 8;

// ---- The claim word ----------------------------------------------------------------------------

// How far a partition is claimed, in one 64-bit word:
//
//   63       62 … … … … … … … …                                   0
//   | closed | segment number (low bits) | records | granules |
//
// `granules` are used in the current segment, `records` are the offsets taken in it. The widths
// follow from the segment size. The segment number wraps. Whoever swaps the word after a whole lap of
// it finds that out, and gives up what it may have claimed: docs/internals/log.md, "The claim word".
struct ClaimLayout {
  unsigned granule_bits = 0;
  unsigned record_bits = 0;
  unsigned segment_bits = 0;

  static constexpr std::uint64_t kClosed = 1ULL << 63;

  static constexpr ClaimLayout for_segment(std::uint64_t segment_granules) noexcept {
    const auto granule_bits = static_cast<unsigned>(std::bit_width(segment_granules));
    return {granule_bits, granule_bits + 1, 63 - granule_bits - (granule_bits + 1)};
  }

  constexpr std::uint64_t pack(std::uint64_t segment, std::uint64_t records,
                               std::uint64_t granules) const noexcept {
    return (truncate_segment(segment) << (granule_bits + record_bits)) | (records << granule_bits) |
           granules;
  }
  constexpr std::uint64_t granules(std::uint64_t word) const noexcept {
    return word & mask(granule_bits);
  }
  constexpr std::uint64_t records(std::uint64_t word) const noexcept {
    return (word >> granule_bits) & mask(record_bits);
  }
  constexpr std::uint64_t segment(std::uint64_t word) const noexcept {
    return (word >> (granule_bits + record_bits)) & mask(segment_bits);
  }
  constexpr std::uint64_t truncate_segment(std::uint64_t segment) const noexcept {
    return segment & mask(segment_bits);
  }
  // Whether a lap of the truncated segment number lies between two full ones.
  constexpr bool is_a_lap_apart(std::uint64_t earlier, std::uint64_t later) const noexcept {
    return (later - earlier) >> segment_bits != 0;
  }
  // What a claim adds to the word.
  constexpr std::uint64_t increment(std::uint64_t records, std::uint64_t granules) const noexcept {
    return (records << granule_bits) | granules;
  }
  static constexpr bool is_closed(std::uint64_t word) noexcept { return (word & kClosed) != 0; }

 private:
  static constexpr std::uint64_t mask(unsigned bits) noexcept { return (1ULL << bits) - 1; }
};

// ---- Topic -------------------------------------------------------------------------------------

enum TopicFlags : std::uint32_t {
  kRetainAll = 1,
  kSingleWriter = 2,
  kTimestamps = 4,
  kDeleteWhenUnused = 8,
  kAllTopicFlags = 15,
};

// Wake words: bit 0 says that somebody sleeps on the word, bit 1 that the topic is deleted,
// bit 2 that somebody is about to wake the sleepers (and may have died over it). Each
// wake adds kWakeStep. After 2^29 wakes within one sleeper's last look a wake could be missed.
inline constexpr std::uint32_t kSleeping = 1;
inline constexpr std::uint32_t kDeleted = 2;
inline constexpr std::uint32_t kWaking = 4;
inline constexpr std::uint32_t kWakeStep = 8;

// In TopicHeader::deleting: nobody may join any more.
inline constexpr std::uint64_t kDeletionDecided = ~0ULL;

inline constexpr std::uint32_t kMaxGroups = 64;

struct TopicHeader {
  // Written before the topic gets its name; constant afterwards.
  std::uint64_t magic;
  std::uint32_t format_version;
  std::uint32_t flags;          // TopicFlags
  std::uint64_t key;            // random; part of every record's tag
  std::uint64_t segment_size;   // bytes, a multiple of kPage
  std::uint32_t segment_count;  // per partition
  std::uint32_t partition_count;
  std::uint32_t participant_capacity;
  std::uint32_t policy;          // leat::Policy
  std::int64_t revoke_after_ns;  // 0 = never
  std::int64_t evict_after_ns;   // 0 = never
  std::int64_t created_ms;       // wall clock
  std::uint32_t first_segments;  // policy grow: how many have memory from the start, per partition
  std::uint32_t grow_below;      // policy grow: one is added when so many or fewer are free
  std::byte unused_0[kLine - 80];

  alignas(kLine) std::uint32_t data_wake;  // subscribers sleep here; [sleeping]
  std::uint32_t death_bell;  // and here: always 0; rung by the kernel, see os/death_bell.hpp
  alignas(kLine) std::uint32_t space_wake;  // publishers that wait for room; [sleeping]
  alignas(
      kLine) std::uint64_t exclusive;  // identity of the exclusive publisher, 0 = none; [exclusive]
  std::uint64_t deleting;       // who tries to delete: 0, a number, kDeletionDecided; [topic-state]
  std::uint64_t next_identity;  // counts identities given out
  std::uint32_t participant_high;  // slots ever used: all scans stop here; only grows
  std::uint32_t next_partition;    // hands out partitions to publishers without keys
  std::uint32_t max_segments;  // policy grow: as many may have memory, per partition; [sleeping]
  // Numbers of the consumer groups, 0 = free; the file of group n is kGroupPrefix + n in hexadecimal.
  alignas(kLine) std::uint64_t groups[kMaxGroups];  // [group]
};
static_assert(sizeof(TopicHeader) == 8 * kLine && std::is_trivially_copyable_v<TopicHeader>);
static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free);

// One participant: a publisher, a subscriber, or somebody who repairs or deletes.
//
// `state` is identity << 8 | ParticipantRole; 0 = free. An identity is a number that no other
// participant of the topic ever had; its owner locks byte lock_offset(identity) of the control file
// before it takes a slot. Nobody else ever locks that byte, so "its byte is free" means that the
// owner is dead, for ever. [slot]
enum class ParticipantRole : std::uint8_t {
  free = 0,
  reserved = 1,  // taken; its owner is filling in the rest
  publisher = 2,
  exclusive_publisher = 3,
  subscriber = 4,
  repairer = 5,  // looks after the dead, and reads facts
  member = 6,    // of a consumer group
};
struct alignas(kLine) ParticipantSlot {
  std::uint64_t state;
  std::uint64_t process;  // random per process: tells own slots from others' across PID namespaces
  std::uint64_t thread;   // of that process: who polls this subscriber | kNotPolledYet
  std::uint32_t pid;      // as the participant sees itself; for people
  std::uint32_t unused;
};
static_assert(sizeof(ParticipantSlot) == kLine);
inline std::uint64_t make_state(std::uint64_t identity, ParticipantRole role) noexcept {
  return identity << 8 | static_cast<std::uint64_t>(role);
}
inline ParticipantRole role_of(std::uint64_t state) noexcept {
  return static_cast<ParticipantRole>(state & 0xff);
}
inline std::uint64_t identity_of(std::uint64_t state) noexcept { return state >> 8; }
inline bool is_publisher(std::uint64_t state) noexcept {
  return role_of(state) == ParticipantRole::publisher ||
         role_of(state) == ParticipantRole::exclusive_publisher;
}

// With `thread`: who made the subscriber, and may give it to another thread to poll.
inline constexpr std::uint64_t kNotPolledYet = 1ULL << 63;

inline constexpr std::uint32_t kMaxParticipants = 4096;
inline constexpr std::uint32_t kSpareSlots = 2;  // Beyond those: kept free for repairers.

// Identities use 55 bits: at a join per microsecond they last 1100 years.
inline constexpr std::int64_t kLockBase = std::int64_t{1} << 56;  // Beyond any control file's size.
inline constexpr std::int64_t lock_offset(std::uint64_t identity) noexcept {
  return kLockBase + static_cast<std::int64_t>(identity & ((1ULL << 55) - 1));
}
// Whoever makes or deletes a consumer group of the topic locks this byte. [group]
inline constexpr std::int64_t kGroupLock = kLockBase - 1;
// Nobody has identity 0. A topic that is deleted when unused has this byte locked, shared, by every
// process that has it open.
inline constexpr std::uint64_t kOpenLock = 0;

// ---- Partitions --------------------------------------------------------------------------------

struct PartitionControl {
  // The claim word and the full number of the segment it is in. Claims swap the first; opening a
  // segment swaps both at once, so that no lap of the truncated number can be mistaken there.
  alignas(kLine) std::uint64_t claim;  // [claim]
  std::uint64_t current;               // only grows
  alignas(kLine) std::uint64_t
      oldest_segment;  // that can be read; only grows; [retire], [overwrite]
};
static_assert(sizeof(PartitionControl) == 2 * kLine);

// Per physical segment: the last segment number that lived in it (0 = none yet), which only grows;
// | kNoMemory while it is a hole in the file. docs/internals/log.md, "Growing".
struct PhysicalSegment {
  std::uint64_t last_segment;
};
inline constexpr std::uint64_t kNoMemory = 1ULL << 63;

// Per segment number, at index number % entries. The first two are swapped together; base_offset and
// map only grow.
struct alignas(16) SegmentEntry {
  std::uint64_t base_offset;   // offset of the first record of the segment
  std::uint64_t previous_end;  // the claim word with which the segment before it was closed
  std::uint64_t map;           // segment number << 16 | physical segment; [segment-map]
  std::uint64_t unused;
};
static_assert(sizeof(SegmentEntry) == 32);
inline constexpr unsigned kPhysicalBits = 16;
inline constexpr std::uint64_t kPhysicalMask = (1ULL << kPhysicalBits) - 1;
inline constexpr std::uint32_t kMaxSegments = 1024;

enum ClaimPhase : std::uint64_t { kIdle = 0, kClaiming = 1, kClaimed = 2 };
inline constexpr std::uint64_t kPhaseMask = 3;

enum class ReaderMode : std::uint64_t {
  none = 0,
  gating = 1,   // holds every segment from its cursor on
  evicted = 2,  // was gating; holds only the segment it reads in until it notices
  lossy = 3,    // holds its pin only
};

// What one participant tells the others about one partition. Written by its owner, but for
// reader_mode (gating -> evicted by a publisher) and withdrawn.
struct alignas(kLine) PartitionSlot {
  // Publisher: the claim it is about to make or has made. [intent]
  std::uint64_t phase;  // claim number << 2 | ClaimPhase; the number goes on with the next owner
  std::uint64_t claim_word;       // value of the claim word before the claim
  std::uint64_t claim_increment;  // ClaimLayout::increment(records, granules) of the claim
  std::uint64_t claim_segment;    // the segment that claim_word was read in; full number
  // Subscriber. [cursor], [retire]
  std::uint64_t reader_mode;     // ReaderMode
  std::uint64_t cursor_segment;  // the segment it reads next from
  std::uint64_t cursor_offset;   // the offset it reads next; for people
  // Segments that must not be reused though no cursor holds them; 0 = none. [retire]
  std::uint64_t pin;         // a lossy subscriber reads it in place, or a member walks it
  std::uint64_t repair_pin;  // its owner repairs a record in it
  // Publisher, policy grow: physical segment + 1 that it is about to open, which therefore keeps its
  // memory; 0 = none. What a dead one left stands until the slot's next publisher opens a segment.
  // [segment_memory]
  std::uint64_t choice;
  // Number << 2 of the last claim that others withdrew because it was announced and not marked. Only
  // grows. [withdraw]
  std::uint64_t withdrawn;
  std::uint64_t settled;  // Subscriber: 1 once its cursor is known to hold its segment. [retire]
};
static_assert(sizeof(PartitionSlot) == kLine);

// ---- Geometry ----------------------------------------------------------------------------------

inline constexpr std::uint32_t kGrowPolicy = 3;  // leat::Policy::grow, for layers that lack it.

// The topic's constants, copied out of the header and checked once at attach. Never read again from
// shared memory.
struct Geometry {
  std::uint64_t key = 0;
  std::uint64_t segment_size = 0;  // bytes
  std::uint64_t segment_granules = 0;
  std::uint32_t segment_count = 0;
  std::uint32_t entry_count = 0;  // a power of two, at least twice segment_count
  std::uint32_t partition_count = 0;
  std::uint32_t participant_capacity = 0;
  std::uint32_t flags = 0;
  std::uint32_t policy = 0;
  std::int64_t revoke_after_ns = 0;
  std::int64_t evict_after_ns = 0;
  std::uint32_t first_segments = 0;  // This and the next: policy grow only.
  std::uint32_t grow_below = 0;
  ClaimLayout claim_layout;

  static constexpr std::uint64_t kMinSegmentSize = kPage;
  static constexpr std::uint64_t kMaxSegmentSize = 1ULL << 30;
  static constexpr std::uint32_t kMaxPartitions = 1024;

  // Whether the fields read from a header (or asked for by a user) make a topic at all.
  bool is_valid() const noexcept {
    return segment_size >= kMinSegmentSize && segment_size <= kMaxSegmentSize &&
           segment_size % kPage == 0 && segment_count >= 2 && segment_count <= kMaxSegments &&
           partition_count >= 1 && partition_count <= kMaxPartitions &&
           participant_capacity > kSpareSlots &&
           participant_capacity <= kMaxParticipants + kSpareSlots &&
           (flags & ~std::uint32_t{kAllTopicFlags}) == 0 && policy <= kGrowPolicy &&
           revoke_after_ns >= 0 && evict_after_ns >= 0 &&
           (!grows() || (first_segments >= 2 && first_segments <= segment_count &&
                         (flags & kRetainAll) == 0)) &&
           // Entries are found by the truncated segment number.
           entries_for(segment_count) <=
               (1ULL << ClaimLayout::for_segment(segment_size / kGranule).segment_bits);
  }
  // Whether segments get their memory as they are needed.
  bool grows() const noexcept { return policy == kGrowPolicy; }
  static constexpr std::uint32_t entries_for(std::uint32_t segments) noexcept {
    return std::bit_ceil(segments < 4 ? 8 : 2 * segments);
  }

  void derive() noexcept {
    segment_granules = segment_size / kGranule;
    entry_count = entries_for(segment_count);
    claim_layout = ClaimLayout::for_segment(segment_granules);
  }
  // Half a segment, so that a closed segment always holds at least one record.
  std::uint64_t max_claim_granules() const noexcept { return segment_granules / 2; }
  std::uint64_t max_payload() const noexcept {
    return max_claim_granules() * kGranule - kRecordHeaderSize;
  }
  std::uint64_t partition_control_size() const noexcept {
    const std::uint64_t physical = round_up(segment_count * sizeof(PhysicalSegment), kLine);
    return sizeof(PartitionControl) + physical + entry_count * sizeof(SegmentEntry) +
           participant_capacity * sizeof(PartitionSlot);
  }
  std::uint64_t control_size() const noexcept {
    return round_up(sizeof(TopicHeader) + participant_capacity * sizeof(ParticipantSlot) +
                        partition_count * partition_control_size(),
                    kPage);
  }
  std::uint64_t partition_size() const noexcept { return segment_size * segment_count; }
  std::uint64_t records_size() const noexcept { return partition_size() * partition_count; }

  static constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t to) noexcept {
    return (value + to - 1) / to * to;
  }
};

// The words of one partition, and where its segments begin in `records`.
struct PartitionView {
  PartitionControl* control;
  PhysicalSegment* physical;
  SegmentEntry* entries;
  PartitionSlot* slots;
  std::uint64_t records_offset;
  std::uint64_t entry_mask;

  // Of a segment, by its full number: it may be another one's by now.
  SegmentEntry& entry(std::uint64_t segment) const noexcept {
    return entries[segment & entry_mask];
  }
};

inline PartitionView view_partition(std::byte* control, const Geometry& geometry,
                                    std::uint32_t index) noexcept {
  std::byte* at = control + sizeof(TopicHeader) +
                  geometry.participant_capacity * sizeof(ParticipantSlot) +
                  index * geometry.partition_control_size();
  PartitionView view{};
  view.control = reinterpret_cast<PartitionControl*>(at);
  at += sizeof(PartitionControl);
  view.physical = reinterpret_cast<PhysicalSegment*>(at);
  at += Geometry::round_up(geometry.segment_count * sizeof(PhysicalSegment), kLine);
  view.entries = reinterpret_cast<SegmentEntry*>(at);
  at += geometry.entry_count * sizeof(SegmentEntry);
  view.slots = reinterpret_cast<PartitionSlot*>(at);
  view.records_offset = index * geometry.partition_size();
  view.entry_mask = geometry.entry_count - 1;
  return view;
}

inline constexpr std::uint64_t granules_for(std::uint64_t payload_bytes) noexcept {
  return (kRecordHeaderSize + payload_bytes + kGranule - 1) / kGranule;
}

// The high 56 bits of a record's commit word. For one key this is a bijection of the position, so a
// header that an older lap left elsewhere never matches, and old payload bytes match with
// probability 2^-56 per look: memory need not be zeroed. `position` counts granules over the life of
// the partition, segment number * segment_granules + granule; it wraps after 2^56 granules (1 EiB).
inline std::uint64_t position_tag(std::uint64_t position, std::uint64_t key) noexcept {
  constexpr std::uint64_t kOdd = 0x9e37'79b9'7f4a'7c15ULL;
  return ((position * kOdd) ^ key) << 8;
}

// Of a commit word without the tag of its position (commit ^ tag): whether a record of this position is
// committed. Then it is the RecordKind.
inline constexpr bool is_record_kind(std::uint64_t kind) noexcept { return kind < 256; }

}  // namespace leat::inline v0::detail
