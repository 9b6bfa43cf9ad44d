// Deletes segment files that a topic does not keep any longer, or keeps one to be used again.
//
//     Retention retention{disk, directory, manifest.topic};
//     if (retention.begin()) retention.expire(files, writer, false);
//
// Used by one thread at a time, the keeper's. docs/internals/durable.md, "Retention", says in which order files go.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "leat/base/clock.hpp"
#include "leat/base/crash_point.hpp"
#include "leat/os/disk.hpp"
#include "leat/store/segment_reader.hpp"
#include "leat/store/segment_writer.hpp"
#include "leat/store/store.hpp"

namespace leat::inline v0::detail {

class Retention {
 public:
  static constexpr std::int64_t kNever = INT64_MAX;

  Retention(Disk& disk, int directory, const ManifestTopic& topic) noexcept
      : disk_{disk}, directory_{directory}, topic_{topic} {}

  // When files are to be looked at again, in ns on the monotonic clock; kNever if nothing gets too old.
  std::int64_t next_ns() const noexcept {
    constexpr std::int64_t kMinute = 60'000'000'000;
    constexpr std::int64_t kShortest = 10'000'000;
    const std::int64_t ms = topic_.retention_ms;
    if (ms == 0) return kNever;
    const std::int64_t pause = ms < kMinute / 250'000 ? ms * 250'000 : kMinute;  // a quarter
    return looked_ns_ + std::max(pause, kShortest);
  }
  void put_off() noexcept { looked_ns_ = now_ns(); }

  // Whether anything may be deleted. Puts the next look off.
  bool begin() noexcept {
    put_off();
    return topic_.retention_bytes != 0 || topic_.retention_ms != 0;
  }

  // Deletes what a partition does not keep: the oldest first, each for good before the next, because a hole
  // between files would look like damage. The last one is for good before this is called again with `was_full`,
  // which says that the directory was synced since the last call. What is not synced yet stays. One file
  // becomes a spare, and `writer` makes its next one of it.
  Result<void> expire(const SegmentList& files, SegmentWriter& writer, bool was_full) {
    std::size_t count = files.live.size();
    // Before the first file of a follower is made, those that it will replace seem to count.
    while (!writer.has_file() && count != 0 &&
           files.live[count - 1].base_offset >= writer.end_offset())
      --count;
    // Of the file in use only what is written: its blocks are there before.
    std::uint64_t bytes = writer.has_file() ? writer.file_position() : 0;
    for (std::size_t i = 0; i + (writer.has_file() ? 1 : 0) < count; ++i)
      bytes += disk_bytes_at(directory_, files.live[i].text().c_str());
    for (std::size_t i = 0; i + 1 < count; ++i) {
      if (files.limit(i) > writer.durable_offset()) break;
      const std::string name = files.live[i].text();
      const std::uint64_t size = disk_bytes_at(directory_, name.c_str());
      auto is_too_old = is_full_for_too_long(files.live[i + 1]);
      if (!is_too_old) return is_too_old.error();
      const std::uint64_t most = topic_.retention_bytes;
      if (!*is_too_old && (most == 0 || bytes - size < most)) break;
      // First those in which nothing counts: with what they lose to gone, they would count again.
      bool has_deleted = false;
      for (const SegmentName& one : files.abandoned) {
        if (one.base_offset >= files.live[i + 1].base_offset) continue;
        has_deleted = disk_.delete_file(directory_, one.text().c_str()) || has_deleted;
      }
      if (i != 0 || !was_full || has_deleted) {
        if (auto synced = disk_.sync_directory(directory_); !synced) return synced;
      }
      // Only a file of this keeper: one that was followed may still write to its last, and cut the others.
      const bool is_own = files.live[i].generation == writer.generation();
      if (!is_own || !put_aside(name, writer)) {
        if (auto deleted = disk_.delete_file(directory_, name.c_str()); !deleted) return deleted;
      }
      LEAT_CRASH_POINT("keeper:expired");
      bytes -= size;
    }
    return {};
  }

 private:
  // Keeps a file for the next one that is made: its blocks are there. False if there is one already. A file
  // with other names (a backup's) only loses this one. Its names are counted after it was renamed. A link that
  // was begun before may be made later, and is not counted: whoever links a file must look afterwards whether
  // it still has its old name (StoreCopy::has_old_name).
  bool put_aside(const std::string& name, SegmentWriter& writer) {
    if (writer.has_spare()) return false;
    const std::string spare = writer.spare_name();
    if (!disk_.rename(directory_, name.c_str(), spare.c_str())) return false;
    LEAT_CRASH_POINT("keeper:put_aside");
    auto file = disk_.open(directory_, spare.c_str(), O_RDONLY, 0);
    if (file && link_count(file->get()) == 1) {
      writer.take_spare();
    } else {
      (void)disk_.delete_file(directory_, spare.c_str());
    }
    return true;
  }

  // A file was full when the next one was made.
  Result<bool> is_full_for_too_long(const SegmentName& next) {
    const std::int64_t most_ms = topic_.retention_ms;
    if (most_ms == 0) return false;
    auto reader = SegmentReader::open(disk_, directory_, next, topic_.salt);
    if (!reader) return reader.error();
    auto header = reader->header();
    if (!header) return header.error();
    return *header && wall_clock_ms() - (*header)->created_ms > most_ms;
  }

  Disk& disk_;
  int directory_;
  const ManifestTopic& topic_;
  std::int64_t looked_ns_ = now_ns();
};

}  // namespace leat::inline v0::detail
