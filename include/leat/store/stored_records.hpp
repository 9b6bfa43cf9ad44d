// The records of one partition on disk, from an offset on, and the gaps between them.
//
//     StoredRecords records{std::move(frames)};
//     records.seek(1000);
//     StoredEntry entry;
//     while (auto more = records.next(entry)) if (!*more) break;
#pragma once

#include <utility>

#include "leat/store/frame_records.hpp"
#include "leat/store/stored_frames.hpp"

namespace leat::inline v0::detail {

class StoredRecords {
 public:
  explicit StoredRecords(StoredFrames frames) noexcept : frames_{std::move(frames)} {}

  // Goes on with the first entry whose offset is not below this one.
  Result<void> seek(std::uint64_t offset) {
    records_ = {};
    from_ = offset;
    return frames_.seek(offset);
  }

  // Goes on with the frame that has the first record with this timestamp or a later one, or one before it.
  Result<void> seek_time(std::int64_t time_ms) {
    records_ = {};
    from_ = 0;
    return frames_.seek_time(time_ms);
  }

  // The next record or gap; false at the end. The record's views are valid until the next call.
  Result<bool> next(StoredEntry& entry) {
    for (;;) {
      if (next_in_frame(entry)) return true;
      if (records_.is_nonsense()) {
        // Whoever wrote the log wrote nonsense, and the checksum says that this is what it was.
        set_gap(entry, records_.offset(), frames_.place().offset - records_.offset(),
                GapReason::damaged);
        records_ = {};
        if (is_wanted(entry)) return true;
      }
      auto step = frames_.next();
      if (!step) return step.error();
      if (step->kind == FrameStep::end) return false;
      if (step->kind == FrameStep::frame) {
        records_ = {step->found.header, step->found.payload, frames_.partition()};
        continue;
      }
      set_gap(entry, step->place.offset, step->count, step->reason);
      if (is_wanted(entry)) return true;
    }
  }

  // The same up to the end of the frame that was begun. Much faster than a Result for each record.
  bool next_in_frame(StoredEntry& entry) noexcept {
    while (records_.next(entry)) {
      if (is_wanted(entry)) return true;
    }
    return false;
  }
  // Offset behind that frame; 0 if there is none.
  std::uint64_t frame_end() const noexcept { return records_.end(); }

  // Offset of the next entry.
  std::uint64_t offset() const noexcept {
    return records_.is_done() ? frames_.place().offset : records_.offset();
  }

 private:
  void set_gap(StoredEntry& entry, std::uint64_t first, std::uint64_t count,
               GapReason reason) const noexcept {
    entry.is_record = false;
    entry.gap = {first, count, reason, frames_.partition()};
  }
  // Whether the entry reaches offset `from_`. Cuts what lies before off a gap.
  bool is_wanted(StoredEntry& entry) const noexcept {
    if (entry.is_record) return entry.record.offset >= from_;
    const std::uint64_t end = entry.gap.first + entry.gap.count;
    if (end <= from_) return false;
    entry.gap.first = std::max(entry.gap.first, from_);
    entry.gap.count = end - entry.gap.first;
    return true;
  }

  StoredFrames frames_;
  FrameRecords records_;
  std::uint64_t from_ = 0;
};

}  // namespace leat::inline v0::detail
