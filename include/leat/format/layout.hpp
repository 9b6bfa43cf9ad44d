// Every byte that processes share. docs/format.md shows the layout; docs/internals/log.md explains
// who may write what, and why that is safe. Consumer groups have files of their own
// (group_layout.hpp).
//
// A topic is a directory with two files. `control` is mapped writable by every participant:
//
//   | TopicHeader | ParticipantSlot[participant_capacity] | Partition 0 | Partition 1 | … |
//
//   Partition: | PartitionControl | PhysicalSegment[segments] | SegmentEntry[entries] |
//              | PartitionSlot[participant_capacity] |
//
// `records` contains the segments, partition after partition, and nothing else. Subscribers map it
// read-only. In a topic with policy grow, segments without memory are holes in the file.
//
// All words are plain integers, accessed only through base/atomic.hpp. No value from shared
// memory is used as a pointer, divisor or loop bound without a check against the private copy
// of the geometry.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "leat/base/atomic.hpp"

namespace leat::inline v0::detail {

inline constexpr std::uint64_t kMagic = 0x0031'474f'4c54'4145ULL;  // "EATLOG1\0" in memory order.
inline constexpr std::uint32_t kFormatVersion = 4;

// Two cache lines, because CPUs fetch lines in pairs. Part of the format.
inline constexpr std::size_t kLine = 128;
inline constexpr std::size_t kPage = 4096;

// ---- Records -----------------------------------------------------------------------------------

// Records are aligned to granules of 16 bytes. The payload follows the header directly.
//
//   0                8       12       16            16+n     next multiple of 16
//   | commit         | claim | detail | payload[n]  | unused |
struct RecordHeader {
  std::uint64_t commit;  // tag of the record's position (56 bits) | RecordKind; [record-ready]
  std::uint32_t claim;   // granules claimed, with header | kBatchClaim; the same from any writer
  std::uint32_t detail;  // payload bytes | kHas… flags; valid for RecordKind::data only
};
inline constexpr std::uint64_t kGranule = 16;
inline constexpr std::uint64_t kRecordHeaderSize = sizeof(RecordHeader);
static_assert(sizeof(RecordHeader) == 16 && std::is_trivially_copyable_v<RecordHeader>);

enum class RecordKind : std::uint8_t {
  data = 1,     // one record
  batch = 2,    // several records, published together: BatchHeader and BatchFrames in the payload
  aborted = 3,  // the publisher aborted the claim
  died = 4,     // the publisher died before it committed
  revoked = 5,  // the publisher lived, but did not run for longer than revoke_after
};

// In RecordHeader::claim: the claim took more than one offset, and a BatchHeader has the count.
inline constexpr std::uint32_t kBatchClaim = 1U << 31;
inline constexpr std::uint32_t kClaimGranules = kBatchClaim - 1;

inline constexpr std::uint32_t kHasKey = 1U << 29;
inline constexpr std::uint32_t kHasHeaders = 1U << 30;
inline constexpr std::uint32_t kHasTimestamp = 1U << 31;
inline constexpr std::uint32_t kHasExtension = kHasKey | kHasHeaders | kHasTimestamp;
inline constexpr std::uint32_t kDetailLength = kHasKey - 1;

// Starts the payload of a batch. `count` is fixed before the claim; any writer stores the same.
struct BatchHeader {
  std::uint32_t count;
  std::uint32_t flags;  // 0; a batch with others is `corrupt`
};
// Precedes each record of a batch; the next frame starts at the next multiple of 8.
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
// `granules` is the number of granules used in the current segment, `records` the number of offsets
// taken in it. The field widths follow from the segment size. The truncated segment number wraps
// around; a publisher whose swap comes a whole lap late detects that and gives up what it may have
// claimed: docs/internals/log.md, "The claim word".
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
  // Whether the truncated segment number wrapped around between two full segment numbers.
  constexpr bool is_a_lap_apart(std::uint64_t earlier, std::uint64_t later) const noexcept {
    return (later - earlier) >> segment_bits != 0;
  }
  // The value that a claim adds to the word.
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
  kDurable = 16,
  kAllTopicFlags = 31,
};

// Wake words. Bit 0: somebody sleeps on the word. Bit 1: the topic is deleted. Bit 2: somebody is
// about to wake the sleepers (and may have died before doing so). Each wake adds kWakeStep. A wake
// could be missed only after exactly 2^29 wakes during one sleeper's last check.
inline constexpr std::uint32_t kSleeping = 1;
inline constexpr std::uint32_t kDeleted = 2;
inline constexpr std::uint32_t kWaking = 4;
inline constexpr std::uint32_t kWakeStep = 8;

// TopicHeader::deleting is 0, the number of a deletion attempt, or this: the topic is deleted, and
// nobody may join any more.
inline constexpr std::uint64_t kDeletionDecided = ~0ULL;

inline constexpr std::uint32_t kMaxGroups = 64;

// A value, and the epoch that may change it. Both words are swapped at once, so that a superseded archiver cannot
// change the value any more. [archiver]
struct alignas(16) OwnedWord {
  std::uint64_t value;
  std::uint64_t epoch;
};

struct TopicHeader {
  // Written before the topic gets its name, constant afterwards.
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
  std::uint32_t first_segments;  // policy grow: segments with memory from the start, per partition
  std::uint32_t grow_below;      // policy grow: memory is added when so few segments are free
  std::uint64_t id[2];           // the bytes of leat::TopicId; 0: made by a version without ids
  std::byte unused_0[kLine - 96];

  alignas(kLine) std::uint32_t data_wake;  // subscribers and members sleep on it; [sleeping]
  std::uint32_t robust_wake;  // they also sleep on this; always 0; see os/robust_wake.hpp
  alignas(kLine) std::uint32_t space_wake;  // publishers waiting for room sleep on it; [sleeping]
  alignas(kLine) std::uint64_t exclusive;   // the exclusive publisher's identity, or 0; [exclusive]
  std::uint64_t deleting;                   // deletion attempt, or kDeletionDecided; [topic-state]
  std::uint64_t next_identity;              // number of identities given out
  std::uint32_t participant_high;           // slots ever used; all scans stop here; only grows
  std::uint32_t next_partition;             // round-robin counter of publishers
  std::uint32_t max_segments;               // policy grow: most segments with memory; [sleeping]
  // Numbers of the consumer groups, 0 = free. The file of group n is kGroupPrefix + n
  // in hexadecimal.
  alignas(kLine) std::uint64_t groups[kMaxGroups];  // [group]
};
static_assert(sizeof(TopicHeader) == 8 * kLine && std::is_trivially_copyable_v<TopicHeader>);
static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free);

// One participant: a publisher, a subscriber, a group member, or somebody who repairs or deletes.
//
// `state` is identity << 8 | ParticipantRole; 0 = free. An identity is a number that no other
// participant of the topic ever had. Its owner locks byte lock_offset(identity) of the control file
// before it takes a slot. Nobody else ever locks that byte, so an unlocked byte means that the
// owner is dead for good. [slot]
enum class ParticipantRole : std::uint8_t {
  free = 0,
  reserved = 1,  // taken; its owner is still filling in the slot
  publisher = 2,
  exclusive_publisher = 3,
  subscriber = 4,
  repairer = 5,  // repairs, shrinks, or reads information
  member = 6,    // of a consumer group
};
struct alignas(kLine) ParticipantSlot {
  std::uint64_t state;
  std::uint64_t process;  // random per process: recognizes own slots, across PID namespaces
  std::uint64_t thread;   // in that process: the polling thread's token | kNotPolledYet
  std::uint32_t pid;      // in the participant's PID namespace; informational
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

// Flag in ParticipantSlot::thread: the thread that created the participant, which may still hand it
// to another thread to poll.
inline constexpr std::uint64_t kNotPolledYet = 1ULL << 63;

inline constexpr std::uint32_t kMaxParticipants = 4096;
inline constexpr std::uint32_t kSpareSlots = 2;  // In addition to those; reserved for repairers.

// Identities use 55 bits: at one join per microsecond they last 1100 years.
inline constexpr std::int64_t kLockBase = std::int64_t{1} << 56;  // Beyond any control file's size.
inline constexpr std::int64_t lock_offset(std::uint64_t identity) noexcept {
  return kLockBase + static_cast<std::int64_t>(identity & ((1ULL << 55) - 1));
}
// Byte locked while a consumer group of the topic is created, opened or deleted. [group]
inline constexpr std::int64_t kGroupLock = kLockBase - 1;
// Identity 0 is never given out. Its byte is locked, shared, by every process that has a topic with
// delete_when_unused open.
inline constexpr std::uint64_t kOpenLock = 0;

// ---- Partitions --------------------------------------------------------------------------------

struct PartitionControl {
  // The claim word, and the full number of the segment that it refers to. Claims swap only the
  // first; opening a segment swaps both at once, so that a wrap-around of the truncated number
  // cannot be mistaken there.
  alignas(kLine) std::uint64_t claim;  // [claim]
  std::uint64_t current;               // only grows
  // Oldest segment that can be read; only grows; [retire], [overwrite]
  alignas(kLine) std::uint64_t oldest_segment;
};
static_assert(sizeof(PartitionControl) == 2 * kLine);

// Per physical segment: the last segment number that used it (0 = none yet), which only grows,
// combined with kNoMemory while it is a hole in the file. docs/internals/log.md, "Growing".
struct PhysicalSegment {
  std::uint64_t last_segment;
};
inline constexpr std::uint64_t kNoMemory = 1ULL << 63;

// Per segment number, at index number % entries. The first two words are swapped together;
// base_offset and map only grow.
struct alignas(16) SegmentEntry {
  std::uint64_t base_offset;   // offset of the segment's first record
  std::uint64_t previous_end;  // the claim word with which the previous segment was closed
  std::uint64_t map;           // segment number << 16 | physical segment; [segment-map]
  // The last segment at this index in which a claim became a gap, or was about to. Informational.
  std::uint64_t has_gaps;
};
static_assert(sizeof(SegmentEntry) == 32);
inline constexpr unsigned kPhysicalBits = 16;
inline constexpr std::uint64_t kPhysicalMask = (1ULL << kPhysicalBits) - 1;
inline constexpr std::uint32_t kMaxSegments = 1024;

enum ClaimPhase : std::uint64_t { kIdle = 0, kClaiming = 1, kClaimed = 2 };
inline constexpr std::uint64_t kPhaseMask = 3;

enum class ReaderMode : std::uint64_t {
  none = 0,
  gating = 1,   // holds all segments from its cursor on
  evicted = 2,  // was gating; holds only the segment that its cursor names, until it notices
  lossy = 3,    // holds only its pin
};

// One participant's state in one partition, as others see it. Written by its owner, except
// reader_mode (gating -> evicted, by a publisher) and withdrawn.
struct alignas(kLine) PartitionSlot {
  // Publisher: the claim that it is about to make or has made. [intent]
  std::uint64_t phase;            // number << 2 | ClaimPhase; the slot's next owner counts on
  std::uint64_t claim_word;       // the claim word before the claim
  std::uint64_t claim_increment;  // ClaimLayout::increment(records, granules) of the claim
  std::uint64_t claim_segment;    // the segment in which claim_word was read; full number
  // Subscriber. [cursor], [retire]
  std::uint64_t reader_mode;     // ReaderMode
  std::uint64_t cursor_segment;  // the segment that it reads next from
  std::uint64_t cursor_offset;   // the offset that it reads next; informational
  // Segments whose memory must not be reused although no cursor holds them; 0 = none. [retire]
  std::uint64_t pin;         // read in place by a lossy subscriber, or scanned by a member
  std::uint64_t repair_pin;  // being repaired by the slot's owner
  // Publisher, policy grow: physical segment + 1 that it is about to open and whose memory must not
  // be freed; 0 = none. A dead publisher's value stays until the slot's next publisher opens a
  // segment. [segment_memory]
  std::uint64_t choice;
  // Number << 2 of the last claim that others withdrew because it was announced and not marked.
  // Only grows. [withdraw]
  std::uint64_t withdrawn;
  std::uint64_t settled;  // subscriber: 1 once its cursor is known to hold its segment; [retire]
};
static_assert(sizeof(PartitionSlot) == kLine);

// ---- Geometry ----------------------------------------------------------------------------------

inline constexpr std::uint32_t kFailPolicy = 1;  // leat::Policy::fail, for lower layers.
inline constexpr std::uint32_t kGrowPolicy = 3;  // leat::Policy::grow

// The topic's constants, copied from the header and checked once at attach. Never read from
// shared memory again.
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

  // Whether the values, read from a header or requested by a user, describe a valid topic.
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
           // Entries are found by the truncated segment number, so it must cover all of them.
           entries_for(segment_count) <=
               (1ULL << ClaimLayout::for_segment(segment_size / kGranule).segment_bits);
  }
  // Whether segments get memory only when needed.
  bool grows() const noexcept { return policy == kGrowPolicy; }
  static constexpr std::uint32_t entries_for(std::uint32_t segments) noexcept {
    return std::bit_ceil(segments < 4 ? 8 : 2 * segments);
  }

  void derive() noexcept {
    segment_granules = segment_size / kGranule;
    entry_count = entries_for(segment_count);
    claim_layout = ClaimLayout::for_segment(segment_granules);
  }
  // Half a segment, so that a closed segment always contains at least one record.
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

// Pointers to the words of one partition, and the place of its segments in `records`.
struct PartitionView {
  PartitionControl* control;
  PhysicalSegment* physical;
  SegmentEntry* entries;
  PartitionSlot* slots;
  std::uint64_t records_offset;
  std::uint64_t entry_mask;

  // The entry that belongs to a segment's full number. May describe another segment by now.
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

// The high 56 bits of a record's commit word. For a given key this is a bijection of the position:
// a header left elsewhere by an earlier lap never matches, and old payload bytes match with
// probability 2^-56 per check, so memory need not be zeroed. `position` counts granules over the
// life of the partition (segment number * segment_granules + granule) and wraps around after 2^56
// granules (1 EiB).
inline std::uint64_t position_tag(std::uint64_t position, std::uint64_t key) noexcept {
  constexpr std::uint64_t kOdd = 0x9e37'79b9'7f4a'7c15ULL;
  return ((position * kOdd) ^ key) << 8;
}

// `kind` is a commit word ^ the tag of its position. Returns whether a record is committed at that
// position; if so, `kind` is its RecordKind.
inline constexpr bool is_record_kind(std::uint64_t kind) noexcept { return kind < 256; }

}  // namespace leat::inline v0::detail
