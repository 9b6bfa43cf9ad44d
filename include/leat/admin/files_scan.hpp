// What a FilesReader does: reads the records of a topic's files, one partition after another.
//
//     auto scan = FilesScan::open(directory);
//     scan->seek(0, 1000);
//     StoredEntry entry;
//     while (auto more = scan->next(entry)) if (!*more) break;
//
// If the topic is in use, retention may delete files meanwhile, or let them be used again. Then the files are listed again,
// and what they had is a gap `overwritten`.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "leat/os/directory.hpp"
#include "leat/store/recovery.hpp"
#include "leat/store/stored_records.hpp"

namespace leat::inline v0::detail {

class FilesScan {
 public:
  static Result<std::unique_ptr<FilesScan>> open(int directory) {
    auto scan = std::make_unique<FilesScan>();
    auto own = open_directory_at(directory, ".");
    if (!own) return own.error();
    scan->directory_ = std::move(*own);
    auto manifest = load_manifest(scan->disk_, scan->fd());
    if (!manifest) return manifest.error();
    scan->topic_ = manifest->topic;
    if (auto found = scan->find_ends_of(*manifest); !found) return found.error();
    auto lists = list_segments(scan->fd(), scan->topic_.partition_count);
    if (!lists) return lists.error();
    scan->known_ = std::move(*lists);
    return scan;
  }

  //   invalid_argument   no such partition
  Result<void> seek(std::uint32_t partition, std::uint64_t offset) {
    if (partition >= topic_.partition_count) return Errc::invalid_argument;
    partition_ = partition;
    const SegmentList& known = known_[partition];
    last_known_ = known.live.empty() ? std::nullopt : std::optional{known.live.back()};
    if (auto listed = list(offset); !listed) return listed;
    offset_ = std::max(offset, oldest_);
    return {};
  }

  // False at the end. A record's views are valid until the next call.
  Result<bool> next(StoredEntry& entry) {
    if (!records_) return false;  // Nothing was sought.
    bool is_confirmed = false;
    for (int lists = 0;; ++lists) {
      auto more = records_->next(entry);
      if (!more && (more.error() != Errc::not_found || lists == kTries)) return more;
      const bool is_damage =
          more && *more && !entry.is_record && entry.gap.reason == GapReason::damaged;
      if (more && (!is_damage || is_confirmed || lists == kTries)) return *more && pass(entry);
      const std::uint64_t oldest = oldest_;
      if (auto listed = list(offset_); !listed) return listed.error();
      if (oldest_ > offset_) {
        entry.is_record = false;
        entry.gap = {offset_, oldest_ - offset_, GapReason::overwritten, partition_};
        return pass(entry);
      }
      is_confirmed = oldest_ == oldest;  // No file has gone.
    }
  }

 private:
  static constexpr int kTries = 10;  // of listing or reading files while some are being deleted

  int fd() const noexcept { return directory_.get(); }

  Result<void> find_ends_of(const Manifest& manifest) {
    for (int attempt = 1;; ++attempt) {
      auto checkpoint = CheckpointFile::load(disk_, fd(), manifest);
      if (!checkpoint) return checkpoint.error();
      auto ends = find_ends(disk_, fd(), manifest, *checkpoint);
      if (ends) {
        ends_ = std::move(ends->partitions);
        return {};
      }
      if (ends.error() != Errc::not_found || attempt == kTries) return ends.error();
    }
  }

  Result<void> list(std::uint64_t offset) {
    for (int attempt = 1;; ++attempt) {
      auto listed = try_to_list(offset);
      if (listed || listed.error() != Errc::not_found || attempt == kTries) return listed;
    }
  }

  Result<void> try_to_list(std::uint64_t offset) {
    auto lists = list_segments(fd(), topic_.partition_count);
    if (!lists) return lists.error();
    SegmentList& segments = (*lists)[partition_];
    if (segments.live.empty() && last_known_) return Errc::not_found;  // The topic is deleted.
    oldest_ = segments.live.empty() ? 0 : segments.live.front().base_offset;
    has_new_files_ = last_known_ && segments.live.back() != *last_known_;
    StoredFrames frames{disk_, fd(), topic_.salt, partition_, std::move(segments)};
    const PartitionEnd& end = ends_[partition_];
    frames.expect_end(end.frames_end, end.is_clean ? end.next_offset : 0);
    records_.emplace(std::move(frames));
    return records_->seek(std::max(offset, oldest_));
  }

  // False for what was published in later files: the end would move on and on.
  bool pass(const StoredEntry& entry) noexcept {
    const std::uint64_t first = entry.is_record ? entry.record.offset : entry.gap.first;
    offset_ = entry.is_record ? first + 1 : first + entry.gap.count;
    return !has_new_files_ || first < ends_[partition_].frames_end;
  }

  Disk& disk_ = Disk::system();
  Fd directory_;
  ManifestTopic topic_{};
  std::vector<PartitionEnd> ends_;  // This and the next: as they were at first.
  std::vector<SegmentList> known_;
  std::uint32_t partition_ = 0;
  std::optional<SegmentName> last_known_;
  std::optional<StoredRecords> records_;  // Nothing before the first seek().
  std::uint64_t offset_ = 0;              // of the next entry
  std::uint64_t oldest_ = 0;              // Where the oldest listed file begins.
  bool has_new_files_ = false;
};

}  // namespace leat::inline v0::detail
