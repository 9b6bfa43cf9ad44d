// Every byte of a data directory. docs/format.md, "Data directories", shows it in tables;
// docs/internals/store.md explains why what it promises survives a crash.
//
// A durable topic is a directory with its name:
//
//   lock             locked by every process that has the topic open; empty
//   manifest-0, -1   what the topic is: two copies
//   checkpoint-0, -1 how far it is on disk: the older one is overwritten
//   segment-…        the records of one partition from one offset on: frames
//   cut-…            what recovery cut off the end of a segment file
//
// Numbers are little endian. Nothing read from here is used as a size, a count or an offset before
// its checksum and its limits were checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "leat/base/config.hpp"

namespace leat::inline v0::detail {

inline constexpr std::uint32_t kStoreVersion = 1;

// ---- Segment files -----------------------------------------------------------------------------
//
//   0                128
//   | SegmentHeader | FrameHeader | log bytes | zeros to 64 | FrameHeader | …
//
// The name is "segment-<partition>-<base offset>-<generation>": 4, 20 and 10 decimal digits. A
// generation is one archiver's epoch. A file ends where the first file of a later
// generation begins: nobody reads what a stopped archiver still writes behind that place.

inline constexpr std::uint64_t kSegmentMagic = 0x0031'4745'5354'4145ULL;  // "EATSEG1\0"
inline constexpr std::uint64_t kFrameAlignment = 64;
inline constexpr std::uint64_t kTargetFrame = std::uint64_t{256}
                                              << 10;                // log bytes of a full frame
inline constexpr std::uint64_t kMaxFrame = std::uint64_t{1} << 29;  // half of the largest segment
inline constexpr std::uint64_t kMinFileSize = std::uint64_t{64} << 10;
inline constexpr std::uint64_t kMaxFileSize = std::uint64_t{1} << 40;
// A file with a greater offset is damaged: groups have 56 bits for one, and what is reserved must not wrap. At 10^8
// records a second it is reached after 11 years.
inline constexpr std::uint64_t kMaxStoredOffset = std::uint64_t{1} << 55;

// It repeats what the name says. Frames can be read without it.
struct SegmentHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t crc;  // CRC32C of all 128 bytes, with 0 here
  std::uint64_t salt;
  std::uint64_t generation;
  std::uint64_t base_offset;   // offset of the first record
  std::uint64_t previous_end;  // offset at which the file before ends; less: that much was lost
  std::int64_t created_ms;     // wall clock; the file before was full by then
  std::uint32_t partition;
  std::uint32_t flags;   // SegmentFlags
  std::byte unused[64];  // zero
};
static_assert(sizeof(SegmentHeader) == 128 && std::is_trivially_copyable_v<SegmentHeader>);

enum SegmentFlags : std::uint32_t {
  kRecycled = 1,  // It was an older file: behind the frames there may be bytes of that one.
};

inline constexpr std::uint32_t kFrameMagic = 0x4d52'464c;  // "LFRM"

// Frames begin at multiples of kFrameAlignment. `header_crc` covers salt, generation, base offset
// and the frame's place in the file, then this header with 0 there: a frame is whole nowhere else,
// neither in a recycled file nor inside a payload. So the next frame can be found behind damage,
// and in the middle of a file.
struct FrameHeader {
  std::uint32_t magic;
  std::uint32_t header_crc;
  std::uint32_t payload_crc;  // CRC32C of the log bytes and the zeros behind
  std::uint32_t bytes;        // log bytes, a multiple of 16
  std::uint64_t window_key;   // TopicHeader::key of the log that they were copied from
  std::uint64_t position;     // in that log, in granules: record tags follow from both
  std::uint64_t first_offset;
  std::uint64_t durable_offset;  // everything before was on stable storage when this was written
  std::uint32_t offsets;         // that the frame takes
  std::uint32_t records;         // of these, records; the others are gaps
  std::int64_t newest_ms;        // latest timestamp in this file up to and with this frame
};
static_assert(sizeof(FrameHeader) == 64 && std::is_trivially_copyable_v<FrameHeader>);
inline constexpr std::int64_t kNoTimestamp = INT64_MIN;  // In FrameHeader::newest_ms.

inline constexpr std::uint64_t padded_frame(std::uint64_t bytes) noexcept {
  return sizeof(FrameHeader) + (bytes + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
}

// ---- Manifest and checkpoint: named sections ---------------------------------------------------
//
//   | SectionsHeader | SectionName | data | zeros to 8 | SectionName | data | …
//
// Section "salt", the last one of a checkpoint and of a saved group, has ManifestTopic::salt: u64.

inline constexpr std::uint64_t kManifestMagic = 0x0031'4e41'4d54'4145ULL;    // "EATMAN1\0"
inline constexpr std::uint64_t kCheckpointMagic = 0x0031'4b48'4354'4145ULL;  // "EATCHK1\0"
inline constexpr std::uint64_t kSavedGroupMagic = 0x0031'5652'4754'4145ULL;  // "EATGRV1\0"

struct SectionsHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t crc;       // CRC32C of the whole file, with 0 here
  std::uint64_t sequence;  // of two whole files, the one with the higher number counts
  std::uint32_t size;      // of the file, bytes
  std::uint32_t count;     // of sections
};
static_assert(sizeof(SectionsHeader) == 32);
struct SectionName {
  char name[12];  // filled up with zeros
  std::uint32_t size;
};
static_assert(sizeof(SectionName) == 16);
inline constexpr std::uint32_t kMaxSections = 256;
// More than the in-flight entries of the largest group need.
inline constexpr std::uint64_t kMaxSectionsFile = std::uint64_t{1} << 30;

// Section "topic" of the manifest. Constant.
struct ManifestTopic {
  std::uint64_t salt;  // random; goes into every frame's checksum
  std::int64_t created_ms;
  std::uint32_t flags;  // TopicFlags
  std::uint32_t partition_count;
  std::uint64_t segment_size;     // of the log in memory, as in TopicHeader
  std::uint32_t window_segments;  // per partition, likewise
  std::uint32_t participants;
  std::uint32_t policy;      // leat::Policy
  std::uint32_t durability;  // StoredDurability
  std::int64_t sync_interval_ns;
  std::int64_t revoke_after_ns;
  std::uint64_t file_bytes;       // size of a segment file
  std::uint64_t retention_bytes;  // per partition; 0 is no limit
  std::int64_t retention_ms;      // 0 is no limit
  std::uint32_t mode;             // access bits of all files
  std::int32_t file_group;        // Unix group of all files; -1: the creator's
};
static_assert(sizeof(ManifestTopic) == 96 && std::is_trivially_copyable_v<ManifestTopic>);

enum class StoredDurability : std::uint32_t { os = 1, interval = 2, fsync = 3 };
inline constexpr std::int64_t kMinSyncInterval = 1'000'000;  // ns, with interval
inline constexpr std::int64_t kMaxSyncInterval = 3'600'000'000'000;
// Whether a topic can have this durability, with this interval between syncs.
inline constexpr bool is_durability(StoredDurability durability, std::int64_t ns) noexcept {
  if (durability == StoredDurability::interval)
    return ns >= kMinSyncInterval && ns <= kMaxSyncInterval;
  return (durability == StoredDurability::os || durability == StoredDurability::fsync) && ns == 0;
}

// Section "id" of the manifest: the 16 bytes of leat::TopicId. A backup has no id, and a topic of an earlier
// version has none until it is opened.

// Section "window" of the manifest: the log in memory that belongs to it. The path of its
// directory follows. A missing section means that no process has opened the topic yet.
struct ManifestWindow {
  std::uint64_t key;   // TopicHeader::key
  std::byte boot[16];  // of the system
};
static_assert(sizeof(ManifestWindow) == 24);

// Section "state" of a checkpoint.
struct CheckpointState {
  std::uint64_t generation;  // of the archiver that wrote it
  std::int64_t written_ms;
  std::uint32_t is_clean;  // 1: the topic was closed, and nothing follows `durable_offset`
  std::uint32_t zero;
};
static_assert(sizeof(CheckpointState) == 24);

// Section "partitions" of a checkpoint: one for each.
struct CheckpointPartition {
  std::uint64_t durable_offset;   // everything before is on stable storage, or known to be lost
  std::uint64_t reserved_offset;  // nothing from here on was ever given out
  // Where the durable frames end: in which file (generation 0: there is none yet), at which byte,
  // and at which offset. What lies between that offset and durable_offset is lost.
  std::uint64_t file_base;
  std::uint64_t file_generation;
  std::uint64_t file_bytes;
  std::uint64_t frames_end;
  std::int64_t newest_ms;  // FrameHeader::newest_ms of the last of them
};
static_assert(sizeof(CheckpointPartition) == 56);

// Section "ahead" of a checkpoint, if there is one: files with an impossible date, as an archiver found.
struct CheckpointMisdated {
  std::uint32_t partition;
  std::uint32_t zero;
  std::uint64_t last_base;  // Base offset of the last file that was there.
  // Those up to it whose date cannot be right count as made then.
  std::int64_t seen_ms;
};
static_assert(sizeof(CheckpointMisdated) == 24);
inline constexpr std::size_t kMostMisdated = 16;  // for each partition

// Section "gaps" of a checkpoint, if there is one: offsets that have no record because their claims were given up.
struct CheckpointGap {
  std::uint32_t partition;
  std::uint32_t zero;
  std::uint64_t begin;
  std::uint64_t end;  // behind the last one
};
static_assert(sizeof(CheckpointGap) == 24);
inline constexpr std::size_t kMostGaps = 16384;  // in all partitions

// Section "group" of a saved group. Sections "name" and "offsets" follow (u64 for each partition: of the
// next record to be taken), then "holds".
struct SavedGroupFacts {
  std::uint64_t id;     // random; in the names of its files
  std::uint64_t epoch;  // of the archiver that saved it; 0: the process that made the group did
  std::int64_t created_ms;
  std::uint32_t flags;  // GroupFlags
  std::uint32_t seat_count;
  std::uint32_t in_flight_limit;
  std::uint32_t max_deliveries;
  std::int64_t lease_ns;
  std::uint64_t redelivered;
  std::uint64_t dead_letters;
};
static_assert(sizeof(SavedGroupFacts) == 64);

// Section "holds" of a saved group: records before its offset that are not acknowledged.
struct SavedInFlight {
  std::uint64_t offset;
  std::uint64_t key;      // as in InFlightEntry
  std::int64_t delay_ns;  // not to be delivered before that time has passed
  std::uint32_t partition;
  std::uint32_t deliveries;
};
static_assert(sizeof(SavedInFlight) == 32);

}  // namespace leat::inline v0::detail
