// A topic's data directory as a whole: making one, and checking one.
//
//     create_store(Disk::system(), data_directory, "orders", manifest);
//     auto report = check_store(Disk::system(), directory);      // what `leat fsck` prints
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "leat/os/being_made.hpp"
#include "leat/store/recovery.hpp"
#include "leat/store/saved_groups.hpp"
#include "leat/store/stored_records.hpp"

namespace leat::inline v0::detail {

// Makes the directory of a topic, with its lock, and lets `fill` make the other files in it. It gets its
// name when it is whole and on stable storage. If that fails, nothing of it is left.
//   exists   the name is taken
template <class Fill>
Result<void> make_store(Disk& disk, int data_directory, const std::string& name,
                        const FileAccess& access, const Fill& fill) {
  auto temporary = BeingMade::directory(
      data_directory, [&](const char* one) { return disk.make_directory(data_directory, one); });
  if (!temporary) return temporary.error();
  const int directory = temporary->fd();
  auto lock = make_file(disk, directory, kDataLock, O_EXCL, access);
  if (!lock) return lock.error();
  if (auto filled = fill(directory); !filled) return filled;
  if (access.mode != 0600 || access.group >= 0) {
    // Who may read the files may enter the directory.
    const ::mode_t enter = (access.mode & 0444) >> 2;
    auto set = set_access(directory, 0700 | access.mode | enter, access.group);
    if (!set) return set;
  }
  if (auto synced = disk.sync_directory(directory); !synced) return synced;
  LEAT_CRASH_POINT("store:made");
  if (auto named = disk.rename(data_directory, temporary->name(), name.c_str()); !named)
    return named;
  temporary->note_named();
  return disk.sync_directory(data_directory);
}

// Makes the directory of a topic without records.
//   exists            the name is taken
//   invalid_argument  the manifest's values do not describe a topic
inline Result<void> create_store(Disk& disk, int data_directory, const std::string& name,
                                 const Manifest& manifest) {
  if (!manifest.is_valid()) return Errc::invalid_argument;
  const auto fill = [&](int directory) -> Result<void> {
    if (auto stored = store_manifest(disk, directory, manifest); !stored) return stored;
    auto checkpoint = CheckpointFile::load(disk, directory, manifest);
    if (!checkpoint) return checkpoint.error();
    for (int copy = 0; copy < 2; ++copy) {
      Checkpoint empty = checkpoint->value();
      empty.state.is_clean = 1;
      auto stored = checkpoint->store(disk, directory, std::move(empty));
      if (!stored) return stored;
    }
    return {};
  };
  return make_store(disk, data_directory, name, manifest.access(), fill);
}

// What check_store found.
struct StoreFinding {
  std::string file;  // its name in the directory
  std::string text;  // one sentence, without a full stop
  bool is_damage = true;
};
struct StoreReport {
  std::vector<StoreFinding> findings;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;  // of all segment files
  std::uint64_t frames = 0;
  std::uint64_t records = 0;
  std::uint64_t damaged = 0;  // offsets whose records can't be read
  std::uint64_t lost = 0;     // offsets that a failure of the machine left without a record
  bool was_closed = false;    // in order: nothing waits for recovery

  bool is_damaged() const noexcept {
    return std::any_of(findings.begin(), findings.end(),
                       [](const StoreFinding& one) { return one.is_damage; });
  }
};

// Reads everything and reports what is wrong. Changes nothing. Meant for a topic that nobody writes
// to: otherwise the last frames may look cut off.
class StoreCheck {
 public:
  StoreCheck(Disk& disk, int directory) noexcept : disk_{disk}, directory_{directory} {}

  // Fails only if there is nothing to check: no manifest, one of another version, or two damaged
  // ones.
  Result<StoreReport> run() {
    auto manifest = load_manifest(disk_, directory_);
    if (!manifest) return manifest.error();
    manifest_ = std::move(*manifest);
    if (auto checked = check_copies(kManifest, kManifestMagic); !checked) return checked.error();
    auto checkpoint = CheckpointFile::load(disk_, directory_, manifest_);
    if (!checkpoint) return checkpoint.error();
    if (!checkpoint->is_known()) {
      damage(kCheckpoint, "neither copy can be read: recovery has to read all files");
    } else if (auto checked = check_copies(kCheckpoint, {kCheckpointMagic, manifest_.topic.salt});
               !checked) {
      return checked.error();
    }
    auto ends = find_ends(disk_, directory_, manifest_, *checkpoint);
    if (!ends) return ends.error();
    if (auto checked = check_names(); !checked) return checked.error();
    if (auto checked = check_groups(); !checked) return checked.error();
    auto lists = list_segments(directory_, manifest_.topic.partition_count);
    if (!lists) return lists.error();
    report_.was_closed = true;
    for (std::uint32_t i = 0; i < manifest_.topic.partition_count; ++i) {
      auto checked =
          check_partition(i, (*lists)[i], ends->partitions[i], checkpoint->value().partitions[i]);
      if (!checked) return checked.error();
    }
    return std::move(report_);
  }

 private:
  void damage(std::string file, std::string text) {
    report_.findings.push_back({std::move(file), std::move(text), true});
  }
  void note(std::string file, std::string text) {
    report_.findings.push_back({std::move(file), std::move(text), false});
  }

  Result<void> check_copies(const std::string& name, const SectionsKind& kind) {
    for (std::size_t i = 0; i < 2; ++i) {
      const std::string file = SectionsPair::file_name(name, i);
      auto loaded = SectionsFile::load(disk_, directory_, file.c_str(), kind);
      if (!loaded && !is_lost(loaded.error())) return loaded.error();
      if (!loaded)
        damage(file, loaded.error() == Errc::not_found ? "it is missing; the other copy is used"
                                                       : "it is damaged; the other copy is used");
    }
    return {};
  }

  Result<void> check_names() {
    auto names = names_in(directory_);
    if (!names) return names.error();
    std::sort(names->begin(), names->end());
    if (auto checked = check_lock(); !checked) return checked;
    for (const std::string& name : *names) {
      if (name.starts_with(kCutPrefix)) {
        note(name, "what recovery cut off; Leat never reads it, and you may delete it");
      } else if (name.starts_with(kSparePrefix)) {
        note(name, "an old file that is going to be used again; nothing in it counts");
      } else if (name.starts_with(kSegmentPrefix)) {
        const auto parsed = SegmentName::parse(name);
        if (!parsed || parsed->partition >= manifest_.topic.partition_count)
          damage(name, "no file of this topic has such a name");
      }
    }
    return {};
  }

  Result<void> check_lock() {
    const auto lock = disk_.open(directory_, kDataLock, O_RDONLY, 0);
    if (lock) return {};
    if (lock.error() == Errc::not_found)
      damage(kDataLock, "it is missing, and without it no process can open the topic");
    else if (lock.error() == Errc::wrong_format)
      damage(kDataLock, "it is not a regular file, and without one no process can open the topic");
    else if (is_unreadable(lock.error()))
      damage(kDataLock, "the disk does not let it be opened, and so no process can open the topic");
    else
      return lock.error();
    return {};
  }

  Result<void> check_groups() {
    auto groups = load_groups(disk_, directory_, manifest_.topic);
    if (!groups) return groups.error();
    for (const StoredGroup& one : *groups) {
      for (const std::string& file : one.damaged)
        damage(file, one.saved
                         ? "it is damaged; another file has the group '" + one.saved->name + "'"
                         : std::string{"it is damaged, and no other file has that group"});
    }
    return {};
  }

  Result<void> check_partition(std::uint32_t partition, const SegmentList& files,
                               const PartitionEnd& end, const CheckpointPartition& checkpoint) {
    for (const SegmentName& name : files.abandoned)
      note(name.text(), "a superseded archiver wrote it; nothing in it counts");
    report_.files += files.live.size();
    report_.was_closed = report_.was_closed && end.is_clean;
    if (!end.is_clean && end.has_file)
      note(files.live[end.place.file].text(),
           "it was not closed; the next process that opens the topic goes on behind offset " +
               std::to_string(end.frames_end) + ", byte " + std::to_string(end.place.at));
    StoredFrames frames{disk_, directory_, manifest_.topic.salt, partition, files};
    frames.expect_end(end.frames_end, end.next_offset);
    frames.expect_lost(checkpoint.frames_end, checkpoint.durable_offset);
    std::size_t checked_file = ~std::size_t{0};  // The last file whose header was checked.
    // What follows the end is cut off by recovery.
    while (end.is_clean || frames.place().offset < end.frames_end) {
      auto step = frames.next();
      if (!step) return step.error();
      const std::size_t file = step->place.file;
      if (file < files.live.size() && file != checked_file) {
        if (auto checked = check_file(partition, files.live[file]); !checked) return checked;
        checked_file = file;
      }
      const std::string name = file < files.live.size() ? files.live[file].text() : "segment";
      if (step->kind == FrameStep::frame) {
        check_frame(partition, *step, name);
      } else if (step->kind == FrameStep::gap) {
        if (step->place.offset >= end.frames_end && step->reason == GapReason::damaged) break;
        check_gap(*step, name);
      } else {
        break;
      }
    }
    return {};
  }

  Result<void> check_file(std::uint32_t, const SegmentName& name) {
    auto reader = SegmentReader::open(disk_, directory_, name, manifest_.topic.salt);
    if (!reader) return reader.error();
    auto header = reader->header();
    if (!header) return header.error();
    if (reader->is_of_other_partition())
      damage(name.text(), "its header says that it is of another partition; nothing in it is read");
    else if (reader->file() < 0)
      damage(name.text(), "the disk does not return enough of it to open it");
    else if (!*header)
      damage(name.text(), "its header is damaged; the frames behind it can be read");
    auto size = reader->size();
    if (!size) return size.error();
    report_.bytes += *size;
    return {};
  }

  void check_frame(std::uint32_t partition, const FrameStep& step, const std::string& name) {
    ++report_.frames;
    FrameRecords records{step.found.header, step.found.payload, partition};
    StoredEntry entry;
    std::uint64_t count = 0;
    while (records.next(entry)) count += entry.is_record ? 1 : 0;
    report_.records += count;
    if (records.is_nonsense()) {
      report_.damaged += end_offset(step.found.header) - records.offset();
      damage(name, "the records from offset " + std::to_string(records.offset()) +
                       " on make no sense, although their checksum is right");
    } else if (count != step.found.header.records) {
      damage(name, "the frame at byte " + std::to_string(step.place.at) + " has " +
                       std::to_string(count) + " records, its header says " +
                       std::to_string(step.found.header.records));
    }
  }

  void check_gap(const FrameStep& step, const std::string& name) {
    const std::string range = "offsets " + std::to_string(step.place.offset) + " to " +
                              std::to_string(step.place.offset + step.count - 1);
    if (step.reason == GapReason::lost) {
      report_.lost += step.count;
      note(name,
           range + " behind it have no records: numbering went on behind them after a failure");
      return;
    }
    report_.damaged += step.count;
    damage(name, "no whole frame at byte " + std::to_string(step.place.at) + ": " + range +
                     " can't be read");
  }

  Disk& disk_;
  int directory_;
  Manifest manifest_;
  StoreReport report_;
};

inline Result<StoreReport> check_store(Disk& disk, int directory) {
  return StoreCheck{disk, directory}.run();
}

}  // namespace leat::inline v0::detail
