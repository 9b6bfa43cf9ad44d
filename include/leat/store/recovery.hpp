// Finds where each partition ends after a crash, and cuts off what was never written whole.
//
//     auto recovered = recover(disk, directory, manifest);   // with the data lock held exclusively
//     recovered->partitions[0].next_offset;
//
// docs/internals/store.md, "Cut or damage", says why this loses nothing that was durable.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/assert.hpp"
#include "leat/base/crash_point.hpp"
#include "leat/store/manifest.hpp"
#include "leat/store/stored_frames.hpp"
#include "leat/store/stored_gaps.hpp"

namespace leat::inline v0::detail {

// How far new offsets are reserved beyond those that were given out.
inline constexpr std::uint64_t kReservedOffsets = std::uint64_t{1} << 24;

// Offsets that publishers can take before the archiver moves `written` again.
inline std::uint64_t window_offsets(const ManifestTopic& topic) noexcept {
  return 2 * (topic.segment_size / kGranule) * topic.window_segments;
}
// What a checkpoint of a topic that is in use reserves.
inline std::uint64_t reserved_at_once(const ManifestTopic& topic) noexcept {
  return std::max(kReservedOffsets, 4 * window_offsets(topic));
}

// Where a partition ends.
struct PartitionEnd {
  std::uint64_t frames_end = 0;   // offset behind the last whole frame
  std::uint64_t next_offset = 0;  // of the next record; what lies between is lost
  FramePlace place;               // of the end: the frames after it are cut off
  bool has_file = false;
  SegmentName file;                       // that has the end, if there is one
  std::int64_t newest_ms = kNoTimestamp;  // of its last whole frame
  bool is_clean = false;                  // Closed in order, and nothing was changed since.
  // Files may have more than could be read (SegmentReader::has_hidden): nothing is cut, and the next record
  // begins a new file.
  bool is_kept = false;
  std::uint64_t damaged = 0;  // offsets in gaps `damaged`, of those looked at
  std::uint64_t cut_bytes = 0;
  std::uint64_t cut_records = 0;  // in whole frames that are cut off
};

struct Recovered {
  std::uint64_t generation = 0;  // greater than that of every file
  std::vector<PartitionEnd> partitions;
  CheckpointFile checkpoint{};  // as recover() has stored it
  // Before the ends: those that the checkpoint named, and those in frames behind it.
  std::vector<CheckpointGap> gaps{};

  std::uint64_t cut_bytes() const noexcept { return sum(&PartitionEnd::cut_bytes); }
  std::uint64_t cut_records() const noexcept { return sum(&PartitionEnd::cut_records); }
  std::uint64_t damaged() const noexcept { return sum(&PartitionEnd::damaged); }

 private:
  std::uint64_t sum(std::uint64_t PartitionEnd::*what) const noexcept {
    std::uint64_t total = 0;
    for (const PartitionEnd& one : partitions) total += one.*what;
    return total;
  }
};

// Reads what was written since the checkpoint, and finds where it ends. Changes nothing.
//
// Bytes that are not a whole frame are damage if they lie before something that is known to have been
// on stable storage: before the checkpoint, or before what a later frame calls durable. Otherwise they
// are the end, unless they are unknown, because the disk does not return them.
class TailScanner {
 public:
  // Adds the gaps that it finds to `gaps`, also those behind the end.
  TailScanner(StoredFrames& frames, const CheckpointFile& file, const ManifestTopic& topic,
              std::vector<CheckpointGap>& gaps) noexcept
      : frames_{frames},
        file_{file},
        checkpoint_{file.value().partitions[frames.partition()]},
        topic_{topic},
        gaps_{gaps} {
    frames_.expect_lost(checkpoint_.frames_end, checkpoint_.durable_offset);
  }

  Result<PartitionEnd> find() {
    PartitionEnd end;
    end.has_file = !frames_.files().live.empty();
    if (auto placed = go_to_checkpoint(end); !placed) return placed.error();
    if (!end.is_clean) {
      if (auto scanned = scan(end); !scanned) return scanned.error();
    }
    end.frames_end = end.place.offset;
    // Without a checkpoint nobody knows what was given out, but it was less than this.
    std::uint64_t next = checkpoint_.reserved_offset;
    // Where nobody knows what the files have, what was closed has no more than that.
    if (end.is_clean || (end.is_kept && is_closed())) next = checkpoint_.durable_offset;
    if (!file_.is_known()) next = end.frames_end + kReservedOffsets;
    // A newer checkpoint that cannot be read may have reserved once more.
    if (!is_closed() && file_.has_hidden()) next += reserved_at_once(topic_);
    end.next_offset = std::max(end.frames_end, next);
    return end;
  }

 private:
  // Everything before the checkpoint's place is on stable storage. Without that place: from the start.
  Result<void> go_to_checkpoint(PartitionEnd& end) {
    const auto& live = frames_.files().live;
    const SegmentName name{frames_.partition(), checkpoint_.file_base, checkpoint_.file_generation};
    const auto found = std::find(live.begin(), live.end(), name);
    if (checkpoint_.file_generation == 0 || found == live.end()) {
      end.is_clean = is_closed() && checkpoint_.file_generation == 0 && live.empty();
      end.place = frames_.place();
      if (end.is_clean) end.place.offset = checkpoint_.frames_end;
      return {};
    }
    const FramePlace place{static_cast<std::size_t>(found - live.begin()), checkpoint_.file_bytes,
                           checkpoint_.frames_end};
    frames_.go_to(place);
    auto reader = frames_.file_reader();
    if (!reader) return reader.error();
    auto size = (*reader)->size();
    if (!size) return size.error();
    if (*size >= place.at) {
      end.place = place;
      end.newest_ms = checkpoint_.newest_ms;
      end.is_clean = is_closed() && *size == place.at && place.file + 1 == live.size();
      end.is_kept = has_hidden();
      return {};
    }
    // Shorter than it was: damage. Looks at the whole file.
    frames_.go_to({place.file, sizeof(SegmentHeader), name.base_offset});
    end.place = frames_.place();
    return {};
  }

  Result<void> scan(PartitionEnd& end) {
    struct Bad {
      FramePlace place;
      std::uint64_t count;
      std::int64_t newest_ms;
    };
    std::vector<Bad> undecided;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> whole;  // offset behind a frame, records
    FramePlace behind = frames_.place();                         // the last whole frame
    const auto decide = [&](std::uint64_t durable) {
      while (!undecided.empty() && undecided.front().place.offset < durable) {
        end.damaged += undecided.front().count;
        undecided.erase(undecided.begin());
      }
      if (undecided.empty()) whole.clear();
    };
    for (;;) {
      auto step = frames_.next();
      if (!step) return step.error();
      if (step->kind == FrameStep::end) {
        end.place = step->place;
        break;
      }
      if (step->kind == FrameStep::frame) {
        end.newest_ms = step->found.header.newest_ms;
        add_gaps_of(step->found.header, step->found.payload, frames_.partition(), gaps_);
        if (undecided.empty()) behind = frames_.place();
        if (!undecided.empty())
          whole.emplace_back(step->place.offset + step->found.header.offsets,
                             step->found.header.records);
        decide(step->found.header.durable_offset);
      } else if (step->reason == GapReason::damaged) {
        undecided.push_back({step->place, step->count, end.newest_ms});
      }
    }
    end.is_kept = has_hidden();
    decide(end.is_kept ? kMaxStoredOffset : checkpoint_.frames_end);
    if (!undecided.empty()) {
      end.place = undecided.front().place;
      end.newest_ms = undecided.front().newest_ms;
      for (const auto& [until, records] : whole)
        if (until > end.place.offset) end.cut_records += records;
    }
    if (end.place.offset < checkpoint_.frames_end) {
      end.damaged += checkpoint_.frames_end - end.place.offset;
      end.place.offset = checkpoint_.frames_end;
    }
    return end.is_kept ? keep_files(end) : leave_unwritten_file(end, behind);
  }

  // The end is that of the last file, whatever is in it behind the last frame that can be read.
  Result<void> keep_files(PartitionEnd& end) {
    if (!end.has_file) return {};
    end.place.file = frames_.files().live.size() - 1;
    frames_.go_to(end.place);
    auto reader = frames_.file_reader();
    if (!reader) return reader.error();
    auto size = (*reader)->size();
    if (!size) return size.error();
    end.place.at = std::max<std::uint64_t>(*size, sizeof(SegmentHeader));
    return {};
  }

  // A last file whose header is not there, nor any frame that counts, was being made when the power
  // failed. Such a file is not the end: it is put aside, and what is before it is.
  Result<void> leave_unwritten_file(PartitionEnd& end, const FramePlace& behind) {
    if (!end.has_file || end.place.at != sizeof(SegmentHeader)) return {};
    const std::uint64_t base = frames_.files().live[end.place.file].base_offset;
    if (end.place.offset != base) return {};  // Its frames were on stable storage.
    frames_.go_to(end.place);
    auto header = frames_.file_header();
    if (!header) return header.error();
    if (*header) return {};
    if (end.place.file == 0) {
      end.has_file = false;
      end.place = {0, sizeof(SegmentHeader), std::min(base, checkpoint_.frames_end)};
      return {};
    }
    // Unless frames are missing before it: then it is not the last that was written.
    const bool is_next = behind.offset == base || (behind.offset == checkpoint_.frames_end &&
                                                   base == checkpoint_.durable_offset);
    if (behind.file + 1 == end.place.file && is_next) end.place = behind;
    return {};
  }

  bool is_closed() const noexcept { return file_.value().state.is_clean == 1; }
  bool has_hidden() const noexcept { return frames_.has_hidden() || file_.has_hidden(); }

  StoredFrames& frames_;
  const CheckpointFile& file_;
  const CheckpointPartition& checkpoint_;
  const ManifestTopic& topic_;
  std::vector<CheckpointGap>& gaps_;
};

// Moves what follows a partition's end into files cut-…
class TailTruncator {
 public:
  TailTruncator(Disk& disk, int directory, const Manifest& manifest, StoredFrames& frames) noexcept
      : disk_{disk}, directory_{directory}, manifest_{manifest}, frames_{frames} {}

  Result<void> cut(PartitionEnd& end) {
    const auto& live = frames_.files().live;
    const std::size_t kept = end.has_file ? end.place.file + 1 : 0;
    if (auto done = put_aside_abandoned(kept); !done) return done;
    // The last file first: if we die meanwhile, the next recovery finds the same end.
    for (std::size_t file = live.size(); file-- > kept;) {
      auto bytes = put_aside(live[file]);
      if (!bytes) return bytes.error();
      end.cut_bytes += *bytes;
      LEAT_CRASH_POINT("recovery:file_put_aside");
    }
    if (end.has_file) {
      if (auto done = cut_file(end); !done) return done;
    }
    return disk_.sync_directory(directory_);
  }

 private:
  // Files in which nothing counts would count again without the file that replaces them. They go before it.
  Result<void> put_aside_abandoned(std::size_t kept) {
    const SegmentList& files = frames_.files();
    if (kept == files.live.size()) return {};
    const SegmentName& first_removed = files.live[kept];
    for (std::size_t i = files.abandoned.size(); i-- > 0;) {
      if (files.abandoned[i].base_offset < first_removed.base_offset) continue;
      if (auto done = put_aside(files.abandoned[i]); !done) return done.error();
      LEAT_CRASH_POINT("recovery:abandoned_put_aside");
    }
    return {};
  }

  // Returns how many bytes are kept in a file cut-…
  Result<std::uint64_t> put_aside(const SegmentName& name) {
    const std::string from = name.text();
    auto reader = SegmentReader::open(disk_, directory_, name, manifest_.topic.salt);
    if (!reader) return reader.error();
    auto data_end = end_of_data(*reader, 0);
    if (!data_end) return data_end.error();
    // Nothing but zeros: only its blocks had been reserved.
    const bool is_empty = *data_end == 0 && !reader->has_hidden();
    auto done =
        is_empty ? disk_.delete_file(directory_, from.c_str())
                 : disk_.rename(directory_, from.c_str(), (std::string{kCutPrefix} + from).c_str());
    if (!done) return done.error();
    return *data_end;
  }

  // Where what was written to this file behind `from` ends.
  Result<std::uint64_t> end_of_data(SegmentReader& reader, std::uint64_t from) {
    auto is_recycled = reader.is_recycled();
    if (!is_recycled) return is_recycled.error();
    if (!*is_recycled) return reader.end_of_data(from);
    // Only its own frames: the rest is of an earlier file.
    std::uint64_t end = from;
    for (std::uint64_t at = std::max(from, std::uint64_t{sizeof(SegmentHeader)});;) {
      auto found = reader.find_header(at, ~std::uint64_t{0});
      if (!found) return found.error();
      if (!*found) return end;
      end = at = (*found)->end();
    }
  }

  // Copies the end of the last file into a file of its own, and cuts it off.
  Result<void> cut_file(PartitionEnd& end) {
    frames_.go_to(end.place);
    auto reader = frames_.file_reader();
    if (!reader) return reader.error();
    auto data_end = end_of_data(**reader, end.place.at);
    if (!data_end) return data_end.error();
    auto file = disk_.open(directory_, (*reader)->name().text().c_str(), O_RDWR, 0);
    if (!file) return file.error();
    if (*data_end > end.place.at) {
      auto copied = copy(file->get(), (*reader)->name(), end.place.at, *data_end);
      if (!copied) return copied;
      end.cut_bytes += *data_end - end.place.at;
    }
    LEAT_CRASH_POINT("recovery:tail_copied");
    // Not before the copy is on stable storage.
    auto size = disk_.size(file->get());
    if (!size) return size.error();
    if (*size > end.place.at) {
      if (auto cut = disk_.truncate(file->get(), end.place.at); !cut) return cut;
    }
    LEAT_CRASH_POINT("recovery:tail_cut");
    return disk_.sync(file->get());
  }

  Result<void> copy(int from, const SegmentName& name, std::uint64_t at, std::uint64_t end) {
    const std::string text = std::string{kCutPrefix} + name.text() + '-' + std::to_string(at);
    auto file = make_file(disk_, directory_, text.c_str(), O_TRUNC, manifest_.access());
    if (!file) return file.error();
    if (auto copied = disk_.copy(from, at, end, file->get()); !copied) return copied;
    if (auto synced = disk_.sync(file->get()); !synced) return synced;
    return disk_.sync_directory(directory_);
  }

  Disk& disk_;
  int directory_;
  const Manifest& manifest_;
  StoredFrames& frames_;
};

// Syncs the files that have offsets from `begin` to `end`: their archiver may not have done it, and
// its successor calls them durable.
inline Result<void> sync_files(Disk& disk, int directory, const SegmentList& files,
                               std::uint64_t begin, std::uint64_t end) {
  for (std::size_t i = 0; i < files.live.size(); ++i) {
    if (files.limit(i) <= begin || files.live[i].base_offset >= end) continue;
    auto file = disk.open(directory, files.live[i].text().c_str(), O_RDONLY, 0);
    if (!file && is_unreadable(file.error())) continue;  // It is damaged for everybody.
    if (!file) return file.error();
    if (auto synced = disk.sync(file->get()); !synced) return synced;
  }
  return {};
}

// Cuts off the room that an archiver that died had reserved behind its last frame. The records before `kept` must be
// there, and all of the file must be readable, else nothing is cut. Errors do not matter: nothing needs the room.
inline void cut_reserved(Disk& disk, int directory, std::uint64_t salt, const SegmentList& files,
                         std::uint32_t partition, std::uint64_t kept) {
  StoredFrames frames{disk, directory, salt, partition, files};
  if (frames.files().live.empty() || !frames.seek(kept - std::min<std::uint64_t>(kept, 1))) return;
  auto step = frames.next();
  while (step && step->kind != FrameStep::end) step = frames.next();
  if (!step) return;
  const FramePlace& end = step->place;
  if (end.file + 1 != frames.files().live.size() || end.offset < kept || frames.has_hidden())
    return;
  auto file = disk.open(directory, frames.files().live.back().text().c_str(), O_RDWR, 0);
  if (!file) return;
  const auto size = disk.size(file->get());
  if (size && *size > end.at) (void)disk.truncate(file->get(), end.at);
  LEAT_CRASH_POINT("archiver:room_freed");
}

// Deletes files that would have been used again. Errors do not matter: the next one tries again.
inline void delete_spares(Disk& disk, int directory) {
  auto names = names_in(directory);
  if (!names) return;
  for (const std::string& name : *names) {
    if (name.starts_with(kSparePrefix)) (void)disk.delete_file(directory, name.c_str());
  }
}

// The highest generation of any file in the directory, cut ones included, or the last epoch that saved a group, if
// that is higher: what a later epoch saves must count.
inline std::uint64_t last_generation(const std::vector<std::string>& names,
                                     const Checkpoint& checkpoint) {
  std::uint64_t last = checkpoint.state.generation;
  for (std::string_view text : names) {
    if (text.starts_with(kCutPrefix)) text = text.substr(kCutPrefix.size(), kSegmentNameSize);
    if (const auto name = SegmentName::parse(text)) last = std::max(last, name->generation);
    if (const auto group = SavedGroupFile::parse(text)) last = std::max(last, group->epoch);
  }
  return last;
}

// Finds the end of every partition without changing anything.
//   corrupt       the manifest or the checkpoint contradicts itself
//   io_error, …   a file can't be read
inline Result<Recovered> find_ends(Disk& disk, int directory, const Manifest& manifest,
                                   const CheckpointFile& file) {
  const Checkpoint& checkpoint = file.value();
  auto names = names_in(directory);
  if (!names) return names.error();
  auto lists = list_segments(directory, manifest.topic.partition_count);
  if (!lists) return lists.error();
  Recovered recovered;
  recovered.generation = last_generation(*names, checkpoint) + 1;
  if (recovered.generation > kMaxGeneration) return Errc::corrupt;
  recovered.gaps = checkpoint.gaps;
  for (std::uint32_t i = 0; i < manifest.topic.partition_count; ++i) {
    StoredFrames frames{disk, directory, manifest.topic.salt, i, std::move((*lists)[i])};
    auto end = TailScanner{frames, file, manifest.topic, recovered.gaps}.find();
    if (!end) return end.error();
    recovered.partitions.push_back(*end);
  }
  // Offsets behind the end may be given out again.
  for (CheckpointGap& gap : recovered.gaps)
    gap.end = std::min(gap.end, recovered.partitions[gap.partition].frames_end);
  std::erase_if(recovered.gaps, [](const CheckpointGap& one) { return one.begin >= one.end; });
  settle_gaps(recovered.gaps);
  return recovered;
}

// Makes a topic whole after any crash: cuts off what was never written whole, then stores a
// checkpoint. Nobody else may have the topic open. A topic that was closed in order only gets a new
// checkpoint.
inline Result<Recovered> recover(Disk& disk, int directory, const Manifest& manifest) {
  auto file = CheckpointFile::load(disk, directory, manifest);
  if (!file) return file.error();
  auto recovered = find_ends(disk, directory, manifest, *file);
  if (!recovered) return recovered;
  auto lists = list_segments(directory, manifest.topic.partition_count);
  if (!lists) return lists.error();
  delete_spares(disk, directory);
  Checkpoint checkpoint = file->value();
  checkpoint.state = {recovered->generation, 0, 0, 0};
  checkpoint.gaps = recovered->gaps;
  for (std::uint32_t i = 0; i < manifest.topic.partition_count; ++i) {
    PartitionEnd& end = recovered->partitions[i];
    StoredFrames frames{disk, directory, manifest.topic.salt, i, std::move((*lists)[i])};
    if (!end.is_clean && !frames.files().live.empty()) {
      // If the machine went on, what was read may be in the page cache only.
      auto done = sync_files(disk, directory, frames.files(), checkpoint.partitions[i].frames_end,
                             end.frames_end);
      if (done && !end.is_kept) done = TailTruncator{disk, directory, manifest, frames}.cut(end);
      if (!done) return done.error();
    }
    CheckpointPartition& part = checkpoint.partitions[i];
    part.durable_offset = end.next_offset;
    part.reserved_offset = end.next_offset + kReservedOffsets;
    part.frames_end = end.frames_end;
    if (!end.has_file) {
      part.file_base = part.file_generation = part.file_bytes = 0;
    } else {
      const SegmentName name = end.file = frames.files().live[end.place.file];
      part.newest_ms = end.newest_ms;
      part.file_base = name.base_offset;
      part.file_generation = name.generation;
      part.file_bytes = end.place.at;
    }
  }
  LEAT_CRASH_POINT("recovery:partitions_cut");
  // Into both copies: if one is damaged later, the other one reserves the same offsets.
  for (int copy = 0; copy < 2; ++copy) {
    if (auto stored = file->store(disk, directory, checkpoint); !stored) return stored.error();
  }
  recovered->checkpoint = std::move(*file);
  return recovered;
}

// Stores that a topic which was recovered, and not used since, was closed in order. Twice, so that both copies
// are whole. Does not load the checkpoint again: a load that fails finds no offsets, and these would be stored.
inline Result<void> store_closed(Disk& disk, int directory, Recovered& recovered) {
  CheckpointFile& checkpoint = recovered.checkpoint;
  LEAT_ASSERT(checkpoint.is_known());  // Not recovered.
  for (int copy = 0; copy < 2; ++copy) {
    Checkpoint closed = checkpoint.value();
    closed.state.is_clean = 1;
    auto stored = checkpoint.store(disk, directory, std::move(closed));
    if (!stored) return stored;
  }
  return {};
}

// The same as recover(), and closes the topic.
inline Result<Recovered> recover_and_close(Disk& disk, int directory, const Manifest& manifest) {
  auto recovered = recover(disk, directory, manifest);
  if (!recovered) return recovered;
  auto closed = store_closed(disk, directory, *recovered);
  if (!closed) return closed.error();
  return recovered;
}

}  // namespace leat::inline v0::detail
