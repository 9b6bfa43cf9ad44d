// Copies a topic's data directory: a backup of a topic that is in use, or a topic from a backup.
//
//     const CopyOptions options{.may_link = true, .is_open = true};
//     auto copied = copy_store(disk, directory, manifest, options, backups, "orders");
//
// docs/internals/store.md, "Backups", says why the copy is what the topic was at some moment, although
// others go on writing to it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "leat/store/data_lock.hpp"
#include "leat/store/store.hpp"

namespace leat::inline v0::detail {

struct CopyOptions {
  bool may_link = false;  // Full files get a second name instead of a copy, where that is possible.
  bool is_open = false;   // The topic is in use: it was recovered, and others may write to it.
  std::stop_token stop{};  // Looked at before each file.
  TopicId id{};            // The copy's; not known: it is not a topic yet.
};

struct CopiedStore {
  std::uint64_t files = 0;  // segment files
  std::uint64_t linked = 0;
  std::uint64_t bytes = 0;
  std::uint64_t offsets = 0;  // that are not lost
  std::uint64_t damaged = 0;  // of those that recovery looked at
};

// Fills a new directory with a copy. Used once.
class StoreCopy {
 public:
  // `manifest` is that of both directories.
  StoreCopy(Disk& disk, int from, int to, const Manifest& manifest, CopyOptions options) noexcept
      : disk_{disk}, from_{from}, to_{to}, manifest_{manifest}, options_{std::move(options)} {}

  Result<CopiedStore> run() {
    auto path = path_if_open();
    if (!path) return path.error();
    if (is_being_deleted(*path)) return Errc::deleted;
    // The checkpoint and the groups' places come first: of what they tell about, more may be there, not less.
    auto checkpoint = load_checkpoint();
    if (!checkpoint) return checkpoint.error();
    if (auto copied = copy_groups(); !copied) return copied.error();
    for (std::uint32_t i = 0; i < manifest_.topic.partition_count; ++i) {
      auto copied = copy_partition(i, checkpoint->value().partitions[i]);
      if (!copied) return copied.error();
    }
    // Whoever deletes the topic renames its directory first.
    auto path_now = path_if_open();
    if (!path_now || *path_now != *path) return Errc::deleted;
    if (auto stored = store_manifest_and_checkpoint(*checkpoint); !stored) return stored.error();
    if (auto copied = copy_what_recovery_changes(); !copied) return copied.error();
    auto recovered = recover_and_close(disk_, to_, manifest_);
    if (!recovered) return recovered.error();
    if (auto moved = move_groups_back(*recovered); !moved) return moved.error();
    return report(*recovered);
  }

 private:
  static constexpr int kAttempts = 100;  // Each fails only if a file was deleted in the meantime.
  static constexpr char kHeld[] = "held";
  enum class Taken { yes, is_gone, is_unwritten };

  // Changes when the topic is deleted.
  Result<std::string> path_if_open() const {
    return options_.is_open ? path_of(from_) : Result<std::string>{std::string{}};
  }

  // Of two copies one may be just being written; both only if they are replaced while they are read.
  Result<CheckpointFile> load_checkpoint() {
    for (int attempt = 1;; ++attempt) {
      auto file = CheckpointFile::load(disk_, from_, manifest_);
      if (!file || file->is_known() || attempt == kAttempts) return file;
    }
  }

  // Files of groups are replaced in place: one that was being written is copied again. So are all if one is gone
  // that was listed: a new archiver has saved the group in other files.
  Result<void> copy_groups() {
    for (int attempt = 1;; ++attempt) {
      std::vector<std::string> copies;
      bool is_gone = false;
      auto names = names_in(from_);
      if (!names) return names.error();
      for (std::string& name : *names) {
        if (!SavedGroupFile::parse(name)) continue;
        auto file = disk_.open(from_, name.c_str(), O_RDONLY, 0);
        if (!file && file.error() == Errc::not_found) {
          is_gone = true;
          break;
        }
        // One that cannot be opened is damaged, and so is its copy.
        if (!file && !is_unreadable(file.error())) return file.error();
        auto copied = copy_bytes(file ? file->get() : -1, file ? ~std::uint64_t{0} : 0, name);
        if (!copied) return copied;
        copies.push_back(std::move(name));
      }
      auto is_whole = has_whole_groups(to_);
      if (!is_whole) return is_whole.error();
      auto was_whole = has_whole_groups(from_);
      if (!was_whole) return was_whole.error();
      if (!is_gone && (*is_whole || !*was_whole || attempt == kAttempts)) return {};
      if (attempt == kAttempts) return Errc::busy;
      for (const std::string& name : copies) (void)disk_.delete_file(to_, name.c_str());
    }
  }

  // A position that was saved ahead of the records (group_saver.hpp) may lie behind the end of the copy: the group
  // would pass over what is published there.
  Result<void> move_groups_back(const Recovered& recovered) {
    auto groups = load_groups(disk_, to_, manifest_.topic);
    if (!groups) return groups.error();
    for (StoredGroup& group : *groups) {
      if (!group.saved) continue;
      bool is_ahead = false;
      for (std::size_t i = 0; i < recovered.partitions.size(); ++i) {
        const std::uint64_t end = recovered.partitions[i].next_offset;
        is_ahead = is_ahead || group.saved->offsets[i] > end;
        group.saved->offsets[i] = std::min(group.saved->offsets[i], end);
      }
      if (!is_ahead) continue;
      std::erase_if(group.saved->in_flight, [&](const SavedInFlight& one) {
        return one.offset >= group.saved->offsets[one.partition];
      });
      auto written = saved_groups::write_anew(disk_, to_, manifest_, group);
      if (!written) return written;
    }
    return {};
  }

  Result<bool> has_whole_groups(int directory) {
    auto groups = load_groups(disk_, directory, manifest_.topic);
    if (!groups) return groups.error();
    return std::all_of(groups->begin(), groups->end(),
                       [](const StoredGroup& one) { return one.damaged.empty(); });
  }

  Result<void> copy_partition(std::uint32_t partition, const CheckpointPartition& checkpoint) {
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      auto files = files_of(from_, partition);
      if (!files) return files.error();
      auto copied = copy_files(*files, checkpoint);
      if (!copied) return copied.error();
      // An archiver that was superseded meanwhile may have written frames that do not count: then there
      // is a file of a later one.
      auto now = files_of(from_, partition);
      if (!now) return now.error();
      const bool is_superseded = !files->live.empty() && !now->live.empty() &&
                                 now->live.back().generation > files->live.back().generation;
      if (*copied && !is_superseded) return {};
      for (const SegmentName& name : files->live) {
        (void)disk_.delete_file(to_, name.text().c_str());
        linked_.erase(name.text());
      }
    }
    return Errc::busy;
  }
  // The last one first: retention deletes the oldest first, so what is there then is without a hole.
  // False if not even the last one is there any more.
  Result<bool> copy_files(const SegmentList& files, const CheckpointPartition& checkpoint) {
    const auto& live = files.live;
    auto begin = link_all(live);
    if (!begin) return begin.error();
    bool has_last = false;
    for (std::size_t i = live.size(); i-- > *begin;) {
      if (options_.stop.stop_requested()) return Errc::stopped;
      // The last one must be the copy's own.
      const bool is_linked = linked_.contains(live[i].text());
      if (is_linked && has_last && is_ended(live[i], live[i + 1])) {
        if (auto synced = sync_linked(live[i]); !synced) return synced.error();
        continue;
      }
      linked_.erase(live[i].text());
      auto taken = copy_file(live[i], files.limit(i), checkpoint, !has_last, is_linked);
      if (!taken) return taken.error();
      if (*taken == Taken::is_gone) return has_last;
      has_last = has_last || *taken == Taken::yes;
    }
    return has_last || *begin == 0;
  }

  // The archiver may not have synced it yet.
  Result<void> sync_linked(const SegmentName& name) {
    auto file = disk_.open(to_, name.text().c_str(), O_RDONLY, 0);
    if (!file) return file.error();
    return disk_.sync(file->get());
  }

  // Gives files a second name, also those that are copied later: so they are not used again, however
  // long that takes. Returns which is the oldest that was not deleted yet.
  Result<std::size_t> link_all(const std::vector<SegmentName>& live) {
    for (std::size_t i = options_.may_link ? live.size() : 0; i-- > 0;) {
      const std::string text = live[i].text();
      if (auto linked = disk_.link(from_, text.c_str(), to_, text.c_str())) {
        LEAT_CRASH_POINT("copy:file_linked");
        auto is_there = has_old_name(text);
        if (!is_there && is_unreadable(is_there.error())) {
          // Copied later, as far as it can be read: not over the topic's own file.
          if (auto gone = disk_.delete_file(to_, text.c_str()); !gone) return gone.error();
          continue;
        }
        if (!is_there) return is_there.error();
        if (!*is_there) return i + 1;
        linked_.insert(text);
      } else if (linked.error() == Errc::not_found) {
        return i + 1;
      }
    }
    return 0;
  }
  // Whether a file that was linked still has its old name. If so, an archiver that renames it from now on sees
  // two names. If not, it may be in use again, and the link is deleted: link(2) looks the old name up before it
  // makes the new one, and retention may have counted the names in between.
  Result<bool> has_old_name(const std::string& name) {
    auto linked = disk_.open(to_, name.c_str(), O_RDONLY, 0);
    if (!linked) return linked.error();
    auto is_there = is_still_there(name, linked->get());
    if (is_there && !*is_there) {
      if (auto gone = disk_.delete_file(to_, name.c_str()); !gone) return gone.error();
    }
    return is_there;
  }

  // Whether nobody writes to a file any more: the archiver that made the next file has ended it, or no
  // archiver is alive that may have used it before that one.
  bool is_ended(const SegmentName& name, const SegmentName& next) {
    if (name.generation == next.generation) return true;
    auto lock = disk_.open(from_, kDataLock, O_RDONLY, 0);
    const auto first = static_cast<std::int64_t>(name.generation);
    const auto count = static_cast<std::int64_t>(next.generation - name.generation);
    return lock && !range_is_locked(lock->get(), kArchiverLock + first, count);
  }

  // Copies a file up to the end of its last whole frame that counts. `is_linked`: it has a second name,
  // in the place of the copy.
  Result<Taken> copy_file(const SegmentName& name, std::uint64_t limit,
                          const CheckpointPartition& checkpoint, bool is_last, bool is_linked) {
    const std::string text = name.text();
    auto reader = SegmentReader::open(disk_, is_linked ? to_ : from_, name, manifest_.topic.salt);
    if (!reader && reader.error() == Errc::not_found) return Taken::is_gone;
    if (!reader) return reader.error();
    auto header = reader->header();
    if (!header) return header.error();
    if (reader->file() < 0) return Taken::yes;  // All of it is damaged.
    if (is_linked) {
      if (auto moved = disk_.rename(to_, text.c_str(), kHeld); !moved) return moved.error();
    }
    auto end = end_of_frames(*reader, limit, checkpoint);
    const bool is_unwritten = end && *end == 0 && is_last && !*header;
    auto done = end ? Result<void>{} : Result<void>{end.error()};
    if (done && !is_unwritten)
      done = copy_bytes(reader->file(), std::max<std::uint64_t>(*end, sizeof(SegmentHeader)), text);
    if (is_linked) {
      if (auto gone = disk_.delete_file(to_, kHeld); !gone) return gone.error();
    } else {
      auto is_there = is_still_there(text, reader->file());
      if (!is_there) return is_there.error();
      if (!*is_there) {
        (void)disk_.delete_file(to_, text.c_str());
        return Taken::is_gone;
      }
    }
    if (!done) return done.error();
    LEAT_CRASH_POINT("copy:file_copied");
    return is_unwritten ? Taken::is_unwritten : Taken::yes;
  }
  Result<bool> is_still_there(const std::string& name, int file) {
    auto now = disk_.open(from_, name.c_str(), O_RDONLY, 0);
    if (!now && now.error() != Errc::not_found) return now.error();
    return now ? is_same_file(now->get(), file) : false;
  }

  // Where the last whole frame before offset `limit` ends, or what the checkpoint knows to have been
  // written; 0 if nothing was.
  Result<std::uint64_t> end_of_frames(SegmentReader& reader, std::uint64_t limit,
                                      const CheckpointPartition& checkpoint) {
    auto size = reader.size();
    if (!size) return size.error();
    const bool is_known = checkpoint.file_generation == reader.name().generation &&
                          checkpoint.file_base == reader.name().base_offset;
    std::uint64_t end = is_known ? std::min(checkpoint.file_bytes, *size) : 0;
    for (;;) {
      auto frame = reader.find(std::max<std::uint64_t>(end, sizeof(SegmentHeader)));
      if (!frame) return frame.error();
      if (!*frame || end_offset((*frame)->header) > limit) return end;
      end = (*frame)->end();
    }
  }

  // Copies the bytes before `end` to a new file, for good.
  Result<void> copy_bytes(int from, std::uint64_t end, const std::string& name) {
    auto file = make_file(disk_, to_, name.c_str(), O_TRUNC, manifest_.access());
    if (!file) return file.error();
    if (auto copied = disk_.copy(from, 0, end, file->get()); !copied) return copied;
    return disk_.sync(file->get());
  }

  Result<void> store_manifest_and_checkpoint(const CheckpointFile& source) {
    if (auto stored = store_manifest(disk_, to_, manifest_); !stored) return stored;
    if (!source.is_known()) return {};  // Nor is the copy's: recovery reads everything.
    Checkpoint value = source.value();
    const bool is_end_known = options_.is_open || value.state.is_clean == 1;
    value.state.is_clean = 0;
    for (CheckpointPartition& one : value.partitions) {
      // Numbers go on behind the copy's records. What was reserved behind them was for others.
      if (is_end_known) one.reserved_offset = std::max(one.durable_offset, one.frames_end);
    }
    auto file = CheckpointFile::load(disk_, to_, manifest_);
    if (!file) return file.error();
    return file->store(disk_, to_, std::move(value));
  }

  // Recovery cuts the file in which a partition ends. If frames before the last file are damaged, that
  // may be one that has a second name.
  Result<void> copy_what_recovery_changes() {
    auto file = CheckpointFile::load(disk_, to_, manifest_);
    if (!file) return file.error();
    auto ends = find_ends(disk_, to_, manifest_, *file);
    if (!ends) return ends.error();
    for (std::uint32_t i = 0; i < manifest_.topic.partition_count; ++i) {
      const PartitionEnd& end = ends->partitions[i];
      auto files = files_of(to_, i);
      if (!files) return files.error();
      if (!end.has_file) continue;
      const std::string name = files->live[end.place.file].text();
      if (linked_.erase(name) == 0) continue;
      auto linked = disk_.open(to_, name.c_str(), O_RDONLY, 0);
      if (!linked) return linked.error();
      if (auto gone = disk_.delete_file(to_, name.c_str()); !gone) return gone;
      if (auto copied = copy_bytes(linked->get(), ~std::uint64_t{0}, name); !copied) return copied;
    }
    return {};
  }

  Result<SegmentList> files_of(int directory, std::uint32_t partition) const {
    auto lists = list_segments(directory, manifest_.topic.partition_count);
    if (!lists) return lists.error();
    return std::move((*lists)[partition]);
  }

  Result<CopiedStore> report(const Recovered& recovered) {
    CopiedStore copied;
    copied.damaged = recovered.damaged();
    for (std::uint32_t i = 0; i < manifest_.topic.partition_count; ++i) {
      auto files = files_of(to_, i);
      if (!files) return files.error();
      const std::uint64_t end = recovered.partitions[i].frames_end;
      if (!files->live.empty())
        copied.offsets += end - std::min(end, files->live.front().base_offset);
      for (const SegmentName& name : files->live) {
        auto reader = SegmentReader::open(disk_, to_, name, manifest_.topic.salt);
        if (!reader) return reader.error();
        auto header = reader->header();
        if (!header) return header.error();
        auto size = reader->size();
        if (!size) return size.error();
        if (*header && name != files->live.front())
          copied.offsets -= name.base_offset - (*header)->previous_end;
        ++copied.files;
        copied.linked += linked_.contains(name.text()) ? 1 : 0;
        copied.bytes += *size;
      }
    }
    return copied;
  }

  Disk& disk_;
  int from_;
  int to_;
  const Manifest& manifest_;
  CopyOptions options_;
  std::set<std::string> linked_;  // files that have their content in common with the topic's
};

// Makes a copy of the topic in the directory `from`, in the directory `parent`. A full file is linked or
// copied as it is; damage stays.
//   exists   the name is taken
//   deleted  the topic was deleted meanwhile
//   busy     files are deleted faster than they can be copied
//   stopped  as options.stop requested
inline Result<CopiedStore> copy_store(Disk& disk, int from, Manifest manifest,
                                      const CopyOptions& options, int parent,
                                      const std::string& name) {
  manifest.id = options.id;
  manifest.window = {};  // Nobody has the copy open.
  manifest.window_directory.clear();
  CopiedStore copied;
  const auto fill = [&](int to) -> Result<void> {
    auto done = StoreCopy{disk, from, to, manifest, options}.run();
    if (!done) return done.error();
    copied = *done;
    return {};
  };
  if (auto made = make_store(disk, parent, name, manifest.access(), fill); !made)
    return made.error();
  return copied;
}

}  // namespace leat::inline v0::detail
