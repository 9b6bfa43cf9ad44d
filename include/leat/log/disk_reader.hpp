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
  //   deleted   the path belongs to another topic by now
  static Result<std::unique_ptr<DiskReader>> open(const DurableWindow& window,
                                                  std::uint32_t partition) {
    auto reader = open_later(window, partition, 0);
    if (auto opened = reader->open_files(); !opened) return opened.error();
    return reader;
  }
  // The next next() opens the files, and begins at this offset: with a gap if no file has it any more.
  static std::unique_ptr<DiskReader> open_later(const DurableWindow& window,
                                                std::uint32_t partition, std::uint64_t offset) {
    auto reader = std::make_unique<DiskReader>();
    reader->window_ = &window;
    reader->partition_ = partition;
    reader->offset_ = offset;
    return reader;
  }

  // Goes to an offset, or to the oldest record if that is later. Returns where it is.
  Result<std::uint64_t> seek(std::uint64_t offset) {
    if (!directory_) {
      if (auto opened = open_files(); !opened) return opened.error();
    }
    for (int attempt = 1;; ++attempt) {
      auto found = try_to_seek(offset);
      // Retention has just deleted the file, or another archiver has set `written` back.
      const bool is_gone = !found && found.error() == Errc::not_found;
      const bool is_old = found && listed_epoch_ != window_->epoch();
      if ((is_gone || is_old) && attempt != kTries) continue;
      if (!found) listed_epoch_ = kNone;  // The next next() begins with this.
      return found;
    }
  }

  // Goes on, from the oldest record, near the first one with this timestamp or a later one.
  Result<std::uint64_t> seek_time(std::int64_t time_ms) {
    if (auto found = seek(offset_); !found) return found;
    // If a file is gone or cannot be read, everything is read: next() tells about it.
    if (auto found = records_->seek_time(time_ms); !found) return seek(offset_);
    offset_ = std::max(offset_, records_->offset());
    return offset_;
  }

  // Offset of the next entry.
  std::uint64_t offset() const noexcept { return offset_; }

  // The next record or gap before `until`, which is not above what `written` was. False if there is
  // nothing more: then offset() is `until`, or `written` was set back, or misses_records(). A record's
  // views are valid until the next call.
  Result<bool> next(StoredEntry& entry, std::uint64_t until) {
    until_ = until;
    misses_records_ = false;
    // A list of files is valid for what was written when it was made. Behind that, an archiver that was
    // superseded meanwhile may complete frames that do not count.
    bool must_list = listed_epoch_ != window_->epoch();
    std::uint64_t oldest_at_damage = kNone;
    std::uint64_t epoch_at_end = kNone;
    for (int lists = 0;;) {
      if (std::exchange(must_list, false)) {
        const std::uint64_t from = offset_;
        if (auto listed = seek(from); !listed) return listed.error();
        if (offset_ > from) return gap(entry, from, offset_, GapReason::overwritten);
        ++lists;
      }
      const bool is_fresh = lists != 0;
      const std::uint64_t end = std::min(until, listed_until_);
      if (offset_ < end) {
        auto more = records_->next(entry);
        if (!more && (more.error() != Errc::not_found || lists == kTries)) return more.error();
        const std::uint64_t first = entry.is_record ? entry.record.offset : entry.gap.first;
        const bool is_damage = more && *more && first < end && !entry.is_record &&
                               entry.gap.reason == GapReason::damaged;
        // Retention has deleted the file, or lets it be used again: then it is damage only if no file has
        // gone since it was listed.
        if (!more || (is_damage && oldest_at_damage != oldest_ && lists != kTries)) {
          oldest_at_damage = oldest_;
          must_list = true;
          continue;
        }
        if (*more && first < end) {
          if (!entry.is_record) cut_gap(entry.gap, end);
          pass(entry);
          return true;
        }
        // No file has these offsets. A successor may be writing them again, if `written` was read just before
        // the successor set it back. So this lists the files a second time.
        if (is_fresh && listed_epoch_ == window_->epoch()) {
          misses_records_ = epoch_at_end == listed_epoch_;
          epoch_at_end = listed_epoch_;
          must_list = !misses_records_ && lists != kTries;
          if (must_list) continue;
        }
      }
      if (offset_ >= until || is_fresh) return false;
      must_list = true;
    }
  }

  // Whether next() found nothing because the files have lost what was written.
  bool misses_records() const noexcept { return misses_records_; }
  // Then: goes on at a later offset, or at `until` of the last call. Returns the gap.
  Event pass_missing(std::uint64_t end) noexcept {
    StoredEntry entry;
    gap(entry, offset_, std::min(end, until_), GapReason::damaged);
    listed_epoch_ = kNone;
    return entry.gap;
  }

  // The next next() begins at this offset, which lies before: with a gap again if no file has it any more.
  void go_back(std::uint64_t offset) noexcept {
    offset_ = offset;
    records_.reset();
    listed_epoch_ = kNone;
  }

  // As next() for the rest of a frame that lies before `until` of the last call. False at its end.
  bool next_in_frame(StoredEntry& entry) noexcept {
    if (!records_ || records_->frame_end() > until_ || !records_->next_in_frame(entry))
      return false;
    pass(entry);
    return true;
  }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  static constexpr int kTries = 10;  // of listing files while some are being deleted

  Result<void> open_files() {
    auto directory = open_directory_path(window_->data_path(), false, false);
    if (!directory) return directory.error();
    auto manifest = load_manifest(Disk::system(), directory->get());
    if (!manifest) return manifest.error();
    if (manifest->window.key != load_relaxed<Why::constant>(window_->header().key))
      return Errc::deleted;
    directory_ = std::move(*directory);
    topic_ = manifest->topic;
    return {};
  }

  Result<std::uint64_t> try_to_seek(std::uint64_t offset) {
    // In this order: the list may lack what a later archiver writes, or the same archiver in later files.
    listed_epoch_ = window_->epoch();
    listed_until_ = window_->written(partition_);
    auto lists = list_segments(directory_.get(), topic_.partition_count);
    if (!lists) return lists.error();
    const SegmentList& files = (*lists)[partition_];
    const auto frames_end = load_relaxed<Why::constant>(window_->partition(partition_).frames_end);
    // Retention leaves the last file. Without any, nothing was ever written, or all is lost.
    const bool is_new = frames_end == 0 && listed_until_ == window_->begin_offset(partition_);
    const std::uint64_t without_files = is_new ? listed_until_ : 0;
    const std::uint64_t start = files.live.empty() ? without_files : files.live.front().base_offset;
    oldest_ = start;
    StoredFrames frames{Disk::system(), directory_.get(), topic_.salt, partition_,
                        std::move((*lists)[partition_])};
    // The archiver may be making the window's first file, or begin it later. Until that file has a header, only
    // the window says what is damaged before its first record, and what is lost.
    frames.expect_lost(frames_end, window_->begin_offset(partition_));
    frames.expect_end(frames_end, window_->begin_offset(partition_));
    records_.emplace(std::move(frames));
    if (auto found = records_->seek(std::max(offset, start)); !found) return found.error();
    offset_ = std::max(offset, start);
    return offset_;
  }

  bool gap(StoredEntry& entry, std::uint64_t first, std::uint64_t end, GapReason reason) noexcept {
    offset_ = end;
    entry.is_record = false;
    entry.gap = {first, end - first, reason, partition_};
    return true;
  }

  // What lies behind is for later: then this goes there again.
  void cut_gap(Event& gap, std::uint64_t end) noexcept {
    if (gap.count <= end - gap.first) return;
    gap.count = end - gap.first;
    listed_epoch_ = kNone;
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
  std::uint64_t until_ = 0;             // Everything before could be read when next() was called.
  bool misses_records_ = false;         // the last next()
  std::uint64_t listed_until_ = 0;      // The list of files is valid for offsets before this one.
  std::uint64_t oldest_ = 0;            // Where the oldest file of the list begins.
  std::uint64_t listed_epoch_ = kNone;  // The list is valid during this epoch.
};

}  // namespace leat::inline v0::detail
