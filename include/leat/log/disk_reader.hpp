// A subscriber's way through one partition's files, while it is behind the window.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "leat/log/durable_window.hpp"
#include "leat/store/manifest.hpp"
#include "leat/store/stored_records.hpp"

namespace leat::inline v0::detail {

class DiskReader {
 public:
  static Result<std::unique_ptr<DiskReader>> open(const DurableWindow& window,
                                                  std::uint32_t partition) {
    auto directory = open_directory_path(window.data_path(), false, false);
    if (!directory) return directory.error();
    auto manifest = load_manifest(Disk::system(), directory->get());
    if (!manifest) return manifest.error();
    auto reader = std::make_unique<DiskReader>();
    reader->window_ = &window;
    reader->directory_ = std::move(*directory);
    reader->topic_ = manifest->topic;
    reader->partition_ = partition;
    return reader;
  }

  // Goes to an offset, or to the oldest record if that is later. Returns where it is.
  Result<std::uint64_t> seek(std::uint64_t offset) {
    // In this order: what a later keeper writes, or this one in later files, the list may not have.
    listed_office_ = window_->office();
    listed_until_ = window_->written(partition_);
    auto lists = list_segments(directory_.get(), topic_.partition_count);
    if (!lists) return lists.error();
    const SegmentList& files = (*lists)[partition_];
    const std::uint64_t start = files.live.empty() ? listed_until_ : files.live.front().base_offset;
    offset_ = std::max(offset, start);
    records_.emplace(StoredFrames{Disk::system(), directory_.get(), topic_.salt, partition_,
                                  std::move((*lists)[partition_])});
    if (auto found = records_->seek(offset_); !found) return found.error();
    return offset_;
  }

  // Offset of the next entry.
  std::uint64_t offset() const noexcept { return offset_; }

  // The next record or gap before `until`, which is not above what `written` was. False if there is
  // nothing more: then offset() is `until`, or `written` was set back. A record's views are valid until
  // the next call.
  Result<bool> next(StoredEntry& entry, std::uint64_t until) {
    until_ = until;
    bool is_fresh = false;
    // A list of files holds for what was written when it was made. Behind that, a keeper that was
    // followed meanwhile may complete frames that do not count.
    if (listed_office_ != window_->office()) {
      if (auto again = seek(offset_); !again) return again.error();
      is_fresh = true;
    }
    for (;; is_fresh = true) {
      const std::uint64_t end = std::min(until, listed_until_);
      if (offset_ < end) {
        auto more = records_->next(entry);
        if (!more) return more.error();
        const std::uint64_t first = entry.is_record ? entry.record.offset : entry.gap.first;
        if (*more && first < end) {
          if (!entry.is_record) entry.gap.count = std::min(entry.gap.count, end - first);
          pass(entry);
          return true;
        }
        if (is_fresh) return lost(entry, end);
      }
      if (offset_ >= until || is_fresh) return false;
      if (auto again = seek(offset_); !again) return again.error();
    }
  }

  // The same for the rest of a frame that lies before `until` of the last call. False at its end.
  bool next_in_frame(StoredEntry& entry) noexcept {
    if (!records_ || records_->frame_end() > until_ || !records_->next_in_frame(entry))
      return false;
    pass(entry);
    return true;
  }

 private:
  // No file has these offsets: the window begins behind lost ones.
  bool lost(StoredEntry& entry, std::uint64_t end) noexcept {
    const std::uint64_t first = std::exchange(offset_, end);
    entry.is_record = false;
    entry.gap = {first, end - first, GapReason::lost, partition_};
    return true;
  }

  void pass(const StoredEntry& entry) noexcept {
    offset_ = entry.is_record ? entry.record.offset + 1 : entry.gap.first + entry.gap.count;
  }

  const DurableWindow* window_ = nullptr;
  Fd directory_;
  ManifestTopic topic_{};
  std::uint32_t partition_ = 0;
  std::optional<StoredRecords> records_;
  std::uint64_t offset_ = 0;
  std::uint64_t until_ = 0;          // Everything before could be read when next() was called.
  std::uint64_t listed_until_ = 0;   // The list of files holds for offsets before,
  std::uint64_t listed_office_ = 0;  // and while this keeper is in office.
};

}  // namespace leat::inline v0::detail
