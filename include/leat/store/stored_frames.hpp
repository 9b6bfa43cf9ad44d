// The frames of one partition, in order, through all its files, and what is missing between them.
//
//     StoredFrames frames{disk, directory, salt, partition, sort_segments(names)};
//     frames.seek(1000);
//     for (;;) {
//       auto step = frames.next();            // a frame, a gap, or the end
//       if (!step || step->kind == FrameStep::end) break;
//     }
//
// Frames find themselves: a checksum says where one begins. So a file needs no index, damage is
// left at the next whole frame, and an offset is found by halving.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "leat/record.hpp"
#include "leat/store/segment_reader.hpp"

namespace leat::inline v0::detail {

// A place between two frames.
struct FramePlace {
  std::size_t file = 0;                      // index into SegmentList::live
  std::uint64_t at = sizeof(SegmentHeader);  // in that file
  std::uint64_t offset = 0;                  // of the first record behind
};

struct FrameStep {
  enum Kind { frame, gap, end } kind = end;
  FramePlace place;  // Where the frame or the gap begins, or where all frames end.
  Frame found;       // Kind frame.
  // Kind gap: offsets from place.offset on, `damaged` or `lost`. In a file without a successor,
  // `damaged` may as well be a tail that was never written whole: the caller knows.
  std::uint64_t count = 0;
  GapReason reason = GapReason::damaged;
};

class StoredFrames {
 public:
  StoredFrames(Disk& disk, int directory, std::uint64_t salt, std::uint32_t partition,
               SegmentList files)
      : disk_{&disk},
        directory_{directory},
        salt_{salt},
        partition_{partition},
        files_{std::move(files)} {
    if (!files_.live.empty()) place_.offset = files_.live.front().base_offset;
  }

  const SegmentList& files() const noexcept { return files_; }
  std::uint32_t partition() const noexcept { return partition_; }
  const FramePlace& place() const noexcept { return place_; }

  // Continues at a place that is known, for example from a checkpoint.
  void go_to(const FramePlace& place) noexcept {
    if (place.file != place_.file) {
      has_hidden_ = has_hidden();
      reader_ = {};
    }
    place_ = place;
  }

  // Goes to the frame that contains an offset, or to one before it. Below the oldest record: to that.
  Result<void> seek(std::uint64_t offset) {
    FramePlace place;
    while (place.file + 1 < files_.live.size() && files_.limit(place.file) <= offset) ++place.file;
    if (files_.live.empty()) return {};
    place.offset = files_.live[place.file].base_offset;
    go_to(place);
    return seek_in_file(
        [offset](const FrameHeader& header) { return header.first_offset <= offset; });
  }

  // Goes to a place that is not behind the first record with this timestamp or a later one, and near it,
  // whatever order the timestamps are in. A frame knows the latest of its file so far.
  Result<void> seek_time(std::int64_t time_ms) {
    for (std::size_t file = 0; file < files_.live.size(); ++file) {
      go_to({file, sizeof(SegmentHeader), files_.live[file].base_offset});
      if (file + 1 < files_.live.size()) {
        auto newest = newest_in_file();
        if (!newest) return newest.error();
        if (*newest < time_ms) continue;
      }
      return seek_in_file(
          [time_ms](const FrameHeader& header) { return header.newest_ms < time_ms; });
    }
    return {};
  }

  // Where the frames must end, and the offset of the next record: from the checkpoint, if known. Then
  // what is missing at the end is a gap as well.
  void expect_end(std::uint64_t frames_end, std::uint64_t next_offset) noexcept {
    frames_end_ = frames_end;
    next_offset_ = next_offset;
  }

  // Offsets that a checkpoint knows to be lost. The file behind them says so as well, but perhaps its
  // header was not on stable storage yet when the power failed.
  void expect_lost(std::uint64_t begin, std::uint64_t end) noexcept {
    lost_begin_ = begin;
    lost_end_ = end;
  }

  // Steps to the next frame, over the next gap, or to the end.
  Result<FrameStep> next() {
    while (place_.file < files_.live.size()) {
      if (auto opened = open_file(); !opened) return opened.error();
      auto frame = next_frame();
      if (!frame) return frame.error();
      if (*frame) {
        if ((*frame)->header.first_offset == place_.offset) return take(**frame);
        const FrameStep step = missing((*frame)->header.first_offset, GapReason::damaged);
        place_.at = (*frame)->at;
        return step;
      }
      // Nothing more in this file.
      if (place_.file + 1 == files_.live.size()) break;
      auto begin = begin_of_next();
      if (!begin) return begin.error();
      if (place_.offset < begin->previous_end)
        return missing(begin->previous_end, GapReason::damaged);
      if (place_.offset < begin->base_offset) return missing(begin->base_offset, GapReason::lost);
      go_to({place_.file + 1, sizeof(SegmentHeader), begin->base_offset});
    }
    if (place_.offset < frames_end_) return missing(frames_end_, GapReason::damaged);
    if (place_.offset < next_offset_) return missing(next_offset_, GapReason::lost);
    FrameStep step;
    step.place = place_;
    return step;
  }

  // The open file's header; nothing if it is damaged.
  Result<std::optional<SegmentHeader>> file_header() {
    if (auto opened = open_file(); !opened) return opened.error();
    return reader_.header();
  }
  // Whether one of the files that were looked at may have frames that cannot be read (SegmentReader::has_hidden).
  bool has_hidden() const noexcept { return has_hidden_ || reader_.has_hidden(); }
  // The reader of the file at place().
  Result<SegmentReader*> file_reader() {
    if (auto opened = open_file(); !opened) return opened.error();
    return &reader_;
  }

 private:
  Result<void> open_file() {
    if (reader_.is_open()) return {};
    auto reader = SegmentReader::open(*disk_, directory_, files_.live[place_.file], salt_);
    if (!reader) return reader.error();
    // Damaged or not: only a file of another version is not read.
    if (auto header = reader->header(); !header) return header.error();
    reader_ = std::move(*reader);
    return {};
  }

  bool counts(const FrameHeader& header) const noexcept {
    return header.first_offset >= place_.offset &&
           end_offset(header) > header.first_offset &&  // No overflow.
           end_offset(header) <= files_.limit(place_.file);
  }

  // The first frame at the current place or behind it in this file that counts.
  Result<std::optional<Frame>> next_frame() {
    if (place_.offset >= files_.limit(place_.file)) return std::optional<Frame>{};
    std::uint64_t at = place_.at;
    for (;;) {
      auto frame = reader_.read(at);
      if (!frame) return frame;
      if (!*frame) {  // Perhaps it was written after its place was read ahead.
        reader_.forget();
        frame = reader_.read(at);
        if (!frame) return frame;
      }
      if (!*frame) frame = reader_.find(at + kFrameAlignment);
      if (!frame || !*frame || counts((*frame)->header)) return frame;
      at = (*frame)->end();
    }
  }

  FrameStep take(const Frame& frame) noexcept {
    FrameStep step;
    step.kind = FrameStep::frame;
    step.place = {place_.file, frame.at, place_.offset};
    step.found = frame;
    place_.at = frame.end();
    place_.offset = end_offset(frame.header);
    return step;
  }
  FrameStep missing(std::uint64_t until, GapReason reason) noexcept {
    FrameStep step;
    step.kind = FrameStep::gap;
    step.place = place_;
    step.count = until - place_.offset;
    step.reason = reason;
    place_.offset = until;
    return step;
  }

  struct Begin {
    std::uint64_t previous_end;
    std::uint64_t base_offset;
  };
  // What the file behind the current one says about its begin.
  Result<Begin> begin_of_next() {
    const SegmentName& name = files_.live[place_.file + 1];
    Begin begin{name.base_offset, name.base_offset};
    if (place_.offset >= name.base_offset) return begin;
    auto reader = SegmentReader::open(*disk_, directory_, name, salt_);
    if (!reader) return reader.error();
    auto header = reader->header();
    if (!header) return header.error();
    has_hidden_ = has_hidden_ || reader->has_hidden();
    if (*header) {
      begin.previous_end = (*header)->previous_end;
    } else if (name.base_offset == lost_end_) {
      begin.previous_end = lost_begin_;
    }
    return begin;
  }

  // The latest timestamp in the current file: what its last frame says. Frames that do not count make it
  // later, never earlier.
  Result<std::int64_t> newest_in_file() {
    if (auto opened = open_file(); !opened) return opened.error();
    auto size = reader_.size();
    if (!size) return size.error();
    // The last frame begins in the last piece, unless it is larger.
    for (std::uint64_t piece = kProbe / 2;; piece *= 2) {
      const std::uint64_t from =
          *size > sizeof(SegmentHeader) + piece ? *size - piece : sizeof(SegmentHeader);
      std::optional<std::int64_t> newest;
      for (std::uint64_t at = from;;) {
        auto found = reader_.find_header(at, *size);
        if (!found) return found.error();
        if (!*found) break;
        newest = (*found)->header.newest_ms;
        at = (*found)->end();
      }
      if (newest || from == sizeof(SegmentHeader)) return newest.value_or(kNoTimestamp);
    }
  }

  // Goes to the last frame of the current file whose header `is_before`, or to the start of the
  // file. The frames for which it holds come before the others.
  template <class IsBefore>
  Result<void> seek_in_file(IsBefore&& is_before) {
    if (auto opened = open_file(); !opened) return opened;
    auto size = reader_.size();
    if (!size) return size.error();
    std::uint64_t high = *size;
    // A frame that is larger than kProbe may be overlooked: then more is read from `low` on.
    while (high > place_.at + kProbe) {
      const std::uint64_t middle = place_.at + (high - place_.at) / 2;
      auto found = reader_.find_header(middle, std::min(high, middle + kProbe));
      if (!found) return found.error();
      if (*found && is_before((*found)->header) && counts((*found)->header)) {
        place_.at = (*found)->at;
        place_.offset = (*found)->header.first_offset;
      } else {
        high = middle;
      }
    }
    return {};
  }

  static constexpr std::uint64_t kProbe = std::uint64_t{1} << 20;

  Disk* disk_;
  int directory_;
  std::uint64_t salt_;
  std::uint32_t partition_;
  SegmentList files_;
  FramePlace place_;
  std::uint64_t frames_end_ = 0;
  std::uint64_t next_offset_ = 0;
  std::uint64_t lost_begin_ = 0;
  std::uint64_t lost_end_ = 0;
  bool has_hidden_ = false;  // a file before
  SegmentReader reader_;     // Of the file at place_, once it was needed.
};

}  // namespace leat::inline v0::detail
