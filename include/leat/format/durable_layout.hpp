// The file `durable` of a durable topic's window: how far the log is on disk, and who copies it
// there. docs/format.md shows it; docs/internals/durable.md says who may write what.
//
//   | DurableHeader | DurablePartition 0 | DurablePartition 1 | …
//
// Like the control file it is mapped by every process that has the topic open. Words are plain
// integers, accessed only through base/atomic.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "leat/base/atomic.hpp"
#include "leat/format/layout.hpp"

namespace leat::inline v0::detail {

inline constexpr std::uint64_t kDurableMagic = 0x0031'5255'4454'4145ULL;  // "EATDUR1\0"
inline constexpr std::uint32_t kDurableVersion = 2;

enum class DiskState : std::uint32_t {
  ok = 0,
  no_space = 1,   // The disk is full. The archiver tries again.
  read_only = 2,  // Writing or syncing failed. Nothing is written any more.
};

struct DurableHeader {
  // Constant once the topic has its name.
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t partition_count;
  std::uint64_t key;              // TopicHeader::key
  char data_path[4096];           // of the topic's data directory, with a zero at its end
  std::int64_t sync_interval_ns;  // durability interval
  std::uint32_t durability;       // StoredDurability
  std::uint32_t unused_0;
  std::byte unused_1[kLine - 40];

  // Number of the archiver: epoch << 1 | is_vacant. The archiver locks byte
  // kArchiverLock + epoch of the data directory's lock file. Only grows. [archiver]
  alignas(kLine) std::uint64_t epoch;
  std::uint32_t archiver_pid;  // informational
  std::uint32_t unused_2;
  OwnedWord trouble;  // DiskState, and the errno of what failed x 2^32
  // What recovery found when this window was made; informational.
  std::uint64_t cut_bytes;
  std::uint64_t cut_records;
  std::uint64_t damaged;

  // Futexes, as TopicHeader::space_wake. The archiver sleeps on the first; a thread that wants a sync wakes it.
  // Threads that wait until something is on stable storage sleep on the second. [sync], [sleeping]
  alignas(kLine) std::uint32_t archiver_wake;
  std::uint32_t durable_wake;
  // Lower half of the epoch whose archiver waits for the disk; 0: none does.
  std::uint32_t syncing;
  // Counted up by the archiver in each round of its work: shows that it is not stopped.
  std::uint32_t beats;
  // Whether a consumer group has moved since the archiver saved all of them: GroupNews, and kGroupsUnsettled. [sync]
  std::uint32_t groups;
  // How often an archiver was superseded because it waited for the disk for too long, minus the quick syncs since.
  // A hint.
  std::uint32_t slow_syncs;
};
static_assert(offsetof(DurableHeader, epoch) % kLine == 0);

// What the disk is like, and the errno of what failed.
inline DiskState disk_state(const DurableHeader& header) noexcept {
  return DiskState{static_cast<std::uint32_t>(load_acquire<Edge::archiver>(header.trouble.value))};
}
inline std::int32_t disk_reason(const DurableHeader& header) noexcept {
  return static_cast<std::int32_t>(load_acquire<Edge::archiver>(header.trouble.value) >> 32);
}

enum class GroupNews : std::uint32_t {
  none = 0,
  moved = 1,   // To be saved within a second.
  urgent = 2,  // Members wait until it is saved.
};
// Records may be acknowledged, of which no word tells: the archiver has to check again, and if it dies, another process
// takes over.
inline constexpr std::uint32_t kGroupsUnsettled = 4;
inline GroupNews group_news(std::uint32_t word) noexcept {
  return GroupNews{word & ~kGroupsUnsettled};
}

struct DurablePartition {
  // `written` grows, but a successor may set it back to `durable`; see Archiver::begin_new_files().
  alignas(kLine) OwnedWord written;  // Everything before can be read from disk.
  OwnedWord durable;                 // Everything before is on stable storage. Only grows.
  // Where the last file ends, for the next archiver. Valid while the epoch is vacant.
  OwnedWord file_base;
  OwnedWord file_generation;  // 0: the next archiver begins a file
  OwnedWord file_bytes;
  OwnedWord newest_ms;  // FrameHeader::newest_ms of its last frame
  // Constant: offset of the window's first record, and of the end of the frames before it. What lies
  // between is lost.
  std::uint64_t begin_offset;
  std::uint64_t frames_end;
  // Somebody wants everything before to be on stable storage now. Only grows. [sync]
  std::uint64_t wanted;
};
static_assert(sizeof(DurablePartition) == kLine);

inline constexpr std::size_t durable_size(std::uint32_t partitions) noexcept {
  const std::size_t size = sizeof(DurableHeader) + partitions * sizeof(DurablePartition);
  return (size + kPage - 1) / kPage * kPage;
}

// Bytes of the data directory's lock file.
inline constexpr std::int64_t kAttachLock = 0;    // shared: has the topic open; exclusive: recovers
inline constexpr std::int64_t kLeavingLock = 1;   // exclusive: closes the topic
inline constexpr std::int64_t kArchiverLock = 2;  // + epoch, exclusive: is the archiver

}  // namespace leat::inline v0::detail
