// Appends one partition's frames to its segment files. Used by one thread at a time, the archiver's.
//
//     SegmentWriter writer{disk, directory, manifest.topic, partition};
//     writer.begin(generation, base_offset, previous_end, is_first);
//     writer.append({.window_key = …, .first_offset = …}, log_bytes);
//     writer.sync();                                // now durable_offset() == end_offset()
//
// After an error nothing of the call counts, and a later call writes over it. Only after a failed
// sync, also of a file that was full, nothing can be appended any more: what is on stable storage is unknown.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "leat/base/assert.hpp"
#include "leat/base/clock.hpp"
#include "leat/base/crash_point.hpp"
#include "leat/os/disk.hpp"
#include "leat/store/file_names.hpp"
#include "leat/store/frame.hpp"
#include "leat/store/sections.hpp"

namespace leat::inline v0::detail {

// What the writer cannot know of the log bytes that become a frame.
struct FrameFacts {
  std::uint64_t window_key = 0;
  std::uint64_t position = 0;
  std::uint64_t first_offset = 0;
  std::uint32_t offsets = 0;
  std::uint32_t records = 0;
  std::int64_t newest_ms = kNoTimestamp;
};

class SegmentWriter {
 public:
  SegmentWriter(Disk& disk, int directory, const ManifestTopic& topic,
                std::uint32_t partition) noexcept
      : disk_{&disk},
        directory_{directory},
        salt_{topic.salt},
        file_bytes_{topic.file_bytes},
        access_{topic.mode, topic.file_group},
        partition_{partition} {}

  // Begins a generation. Its first file is made with its first frame. Everything before
  // `base_offset` must be on stable storage, up to `previous_end`, or be lost. `is_first`: the
  // partition has no other file.
  void begin(std::uint64_t generation, std::uint64_t base_offset, std::uint64_t previous_end,
             bool is_first) noexcept {
    file_ = {};
    name_ = {};
    synced_ = {};
    failed_ = {};
    unsynced_files_ = 0;
    generation_ = generation;
    end_offset_ = durable_offset_ = base_offset;
    previous_end_ = previous_end;
    is_first_ = is_first;
  }

  // Continues the file of an archiver that handed over, behind its last frame. `durable_offset` is
  // what that archiver had synced, and `newest_ms` what its last frame said. Files that follow get
  // this `generation`.
  Result<void> resume(const SegmentName& name, std::uint64_t generation, std::uint64_t file_bytes,
                      std::uint64_t end_offset, std::uint64_t durable_offset,
                      std::int64_t newest_ms) {
    auto file = disk_->open(directory_, name.text().c_str(), O_RDWR, 0);
    if (!file) return file.error();
    auto reserved = disk_->size(file->get());
    if (!reserved) return reserved.error();
    file_ = std::move(*file);
    name_ = name;
    generation_ = generation;
    reserved_ = *reserved;
    at_ = started_ = file_bytes;
    end_offset_ = end_offset;
    durable_offset_ = durable_offset;
    newest_ms_ = newest_ms;
    has_new_name_ = true;  // It may not have been synced.
    return {};
  }

  // Appends one frame, which continues at end_offset(): `bytes` is a multiple of 16, at most
  // kMaxFrame.
  //   no_space  the disk is full; the same frame can be tried again
  //   corrupt   it does not continue there
  Result<void> append(const FrameFacts& facts, std::span<const std::byte> bytes) {
    if (facts.first_offset != end_offset_ || bytes.size() % kGranule != 0) return Errc::corrupt;
    const std::uint64_t size = padded_frame(bytes.size());
    if (failed_.code != Errc::ok) return failed_;
    if (ends_file(bytes.size())) {
      if (auto done = finish_file(); !done) return done;
    }
    if (!file_) {
      if (auto made = make_segment(facts.first_offset, size); !made) return made;
    }
    // Some file systems (NFS, FUSE) would else accept the frame, and find out at the sync that the disk is full.
    if (at_ + size > reserved_) {
      const std::uint64_t wanted = std::min(at_ + size + kFirstFile, file_bytes_);
      auto reserved = reserve(file_, {std::max(wanted, at_ + size), at_ + size});
      if (!reserved) return reserved;
    }
    FrameHeader header{};
    header.magic = kFrameMagic;
    header.payload_crc = payload_checksum(bytes);
    header.bytes = static_cast<std::uint32_t>(bytes.size());
    header.window_key = facts.window_key;
    header.position = facts.position;
    header.first_offset = facts.first_offset;
    header.durable_offset = durable_offset_;
    header.offsets = facts.offsets;
    header.records = facts.records;
    header.newest_ms = std::max(newest_ms_, facts.newest_ms);
    header.header_crc = FramesOf{salt_, name_}.header_checksum(header, at_);
    if (auto written = write_frame(header, bytes); !written) return written;
    LEAT_CRASH_POINT("store:frame_written");
    at_ += size;
    end_offset_ = facts.first_offset + facts.offsets;
    newest_ms_ = header.newest_ms;
    if (writes_early_ && at_ - started_ >= kStartWriting) {
      disk_->start_writing(file_.get(), started_, at_ - started_);
      started_ = at_;
    }
    return {};
  }

  // Whether a frame of so many log bytes ends the file. Then append() waits for the disk, unless end_file()
  // is called before.
  bool ends_file(std::uint64_t bytes) const noexcept {
    return file_ && at_ > sizeof(SegmentHeader) && at_ + padded_frame(bytes) > file_bytes_;
  }

  // The place up to which everything is on stable storage, for the checkpoint. Generation 0: unknown.
  struct Synced {
    SegmentName file;
    std::uint64_t bytes = 0;
    std::uint64_t end_offset = 0;
    std::int64_t newest_ms = kNoTimestamp;
  };
  const Synced& synced() const noexcept { return synced_; }

  // Returns once everything appended is on stable storage. What end_file() returned is finished before.
  //   io_error   whatever failed, also ENOENT: somebody deleted the file. Then nothing may be appended any more,
  //              and this returns it again
  Result<void> sync() {
    if (failed_.code != Errc::ok) return failed_;
    LEAT_ASSERT(unsynced_files_ == 0);
    if (!file_ || (durable_offset_ == end_offset_ && !has_new_name_)) return {};
    if (auto synced = disk_->sync(file_.get()); !synced) return failed_ = synced.error();
    LEAT_CRASH_POINT("store:file_synced");
    if (auto there = check_name(file_, name_); !there) return there;
    return note_synced(place(), std::exchange(has_new_name_, false));
  }

  // Ends the file: cuts off what was allocated and not used, and syncs. Before a clean close; and
  // when a file is full. The next frame begins a new file.
  Result<void> finish_file() {
    if (failed_.code != Errc::ok) return failed_;
    if (!file_) return {};
    LEAT_ASSERT(unsynced_files_ == 0);
    if (auto cut = cut_to(file_, at_); !cut) return cut;
    const Ended ended = end_file();
    return note_end(ended, disk_->sync(ended.file.get()));
  }

  // A full file that is not on stable storage yet.
  struct Ended {
    Fd file;
    Synced place;  // of its end
  };
  // Ends the file, but leaves the rest of finish_file() to the caller: cut() and a sync, after which it calls
  // note_end(). If several files wait for that, the first one comes first.
  Ended end_file() noexcept {
    LEAT_ASSERT(file_);
    previous_end_ = end_offset_;
    is_first_ = false;
    ++unsynced_files_;
    return {std::exchange(file_, {}), place()};
  }
  Result<void> cut(const Ended& ended) { return cut_to(ended.file, ended.place.bytes); }
  // Syncs the file's name, too. Errors as for sync().
  Result<void> note_end(const Ended& ended, const Result<void>& synced) {
    if (failed_.code != Errc::ok) return failed_;
    if (!synced) return failed_ = synced.error();
    LEAT_CRASH_POINT("store:file_synced");
    if (auto there = check_name(ended.file, ended.place.file); !there) return there;
    --unsynced_files_;
    return note_synced(ended.place, true);
  }

  // Fails as sync() does if somebody deleted the file: nobody will read what is in it.
  Result<void> check_name() { return file_ ? check_name(file_, name_) : Result<void>{}; }

  // Whether the disk begins with frames before a sync, which then takes less time; this costs CPU time.
  void write_early(bool on) noexcept { writes_early_ = on; }

  // Lets the next file be made of one that is not needed any more, and has this name now. Nobody else may
  // write to it. The name has the epoch, because a superseded archiver may still have a spare of its own.
  std::string spare_name() const {
    return std::string{kSparePrefix} + std::to_string(generation_) + '-' +
           std::to_string(partition_);
  }
  void take_spare() noexcept {
    has_spare_ = true;
    is_spare_synced_ = false;
  }
  bool has_spare() const noexcept { return has_spare_; }

  bool has_file() const noexcept { return static_cast<bool>(file_); }
  // Whether the file has any.
  bool has_frames() const noexcept { return has_file() && at_ > sizeof(SegmentHeader); }
  std::uint64_t generation() const noexcept { return generation_; }
  std::uint64_t end_offset() const noexcept { return end_offset_; }
  std::uint64_t durable_offset() const noexcept { return durable_offset_; }
  // Where the file before the next one ends, for its header.
  std::uint64_t previous_end() const noexcept { return previous_end_; }
  std::int64_t newest_ms() const noexcept { return newest_ms_; }
  const SegmentName& file_name() const noexcept { return name_; }
  std::uint64_t file_position() const noexcept { return at_; }

 private:
  Synced place() const noexcept { return {name_, at_, end_offset_, newest_ms_}; }

  Result<void> cut_to(const Fd& file, std::uint64_t size) {
    if (auto cut = disk_->truncate(file.get(), size); !cut) return cut;
    LEAT_CRASH_POINT("store:file_cut");
    return {};
  }

  // Some file systems do not count links: then the name decides.
  Result<void> check_name(const Fd& file, const SegmentName& name) {
    if (link_count(file.get()) != 0 || has_name(directory_, name.text().c_str())) return {};
    return failed_ = Error{Errc::io_error, ENOENT};
  }

  Result<void> note_synced(const Synced& now, bool has_new_name) {
    if (has_new_name) {
      if (auto synced = sync_names(); !synced) return synced;
    }
    synced_ = now;
    durable_offset_ = now.end_offset;
    return {};
  }

  Result<void> sync_names() {
    if (auto synced = disk_->sync_directory(directory_); !synced) return failed_ = synced.error();
    is_spare_synced_ = true;
    return {};
  }

  static constexpr std::uint64_t kFirstFile = std::uint64_t{1} << 20;
  // The disk is kept busy in pieces of this size, so that the next sync waits for little.
  static constexpr std::uint64_t kStartWriting = std::uint64_t{2} << 20;

  Result<void> make_segment(std::uint64_t base_offset, std::uint64_t frame_size) {
    const SegmentName name{partition_, base_offset, generation_};
    const std::string text = name.text();
    const std::uint64_t wanted = is_first_ ? std::min(kFirstFile, file_bytes_) : file_bytes_;
    SegmentHeader header{};
    header.magic = kSegmentMagic;
    header.version = kStoreVersion;
    header.salt = salt_;
    header.generation = generation_;
    header.base_offset = base_offset;
    header.previous_end = previous_end_;
    header.created_ms = wall_clock_ms();
    header.partition = partition_;
    header.flags = has_spare() ? static_cast<std::uint32_t>(kRecycled) : 0U;
    header.crc = crc32c(0, &header, sizeof(header));
    const std::uint64_t least = sizeof(header) + frame_size;
    const Room room{std::max(wanted, least), least};
    // Else a failure of the machine could bring back its old name with new content.
    if (has_spare() && !is_spare_synced_) {
      if (auto synced = sync_names(); !synced) return synced;
    }
    auto file = has_spare() ? recycle(text, header, room) : make_anew(text, header, room);
    // The spare is gone, because a later archiver or a person has deleted it; or it has a second name.
    if (!file && file.error() == Errc::not_found) file = make_anew(text, header, room);
    if (!file) return file.error();
    LEAT_CRASH_POINT("store:file_begun");
    file_ = std::move(*file);
    name_ = name;
    at_ = sizeof(header);
    started_ = 0;
    newest_ms_ = kNoTimestamp;
    has_new_name_ = true;
    return {};
  }

  // Bytes that a file reserves: for frames that are to come, or at least for the next one.
  struct Room {
    std::uint64_t wanted;
    std::uint64_t least;
  };
  Result<void> reserve(const Fd& file, const Room& room) {
    auto had = disk_->size(file.get());
    if (!had) return had.error();
    auto done = disk_->allocate(file.get(), room.wanted);
    std::uint64_t reserved = room.wanted;
    if (!done && done.error() == Errc::no_space && done.error().system_error != EFBIG) {
      // Some file systems keep what they have reserved before they fail.
      if (auto cut = disk_->truncate(file.get(), *had); !cut) return cut;
      reserved = std::max(room.least, *had);
      done = disk_->allocate(file.get(), reserved);
    }
    if (done) reserved_ = reserved;
    return done;
  }

  Result<Fd> make_anew(const std::string& name, const SegmentHeader& header, const Room& room) {
    // A file that this archiver began and could not finish is made anew.
    auto file = make_file(*disk_, directory_, name.c_str(), O_TRUNC, access_);
    if (!file) return file;
    LEAT_CRASH_POINT("store:file_made");
    auto done = reserve(*file, room);
    if (done) done = disk_->write(file->get(), bytes_of(header), 0);
    if (done) return file;
    (void)disk_->delete_file(directory_, name.c_str());
    return done.error();
  }

  // If the power fails before the header is on stable storage, its name and the old header say what it is.
  Result<Fd> recycle(const std::string& name, const SegmentHeader& header, const Room& room) {
    has_spare_ = false;
    const std::string spare = spare_name();
    auto file = disk_->open(directory_, spare.c_str(), O_RDWR, 0);
    if (!file) return file;
    // A process may have linked it just when it was put aside, without checking whether the link came in time.
    if (link_count(file->get()) != 1) {
      (void)disk_->delete_file(directory_, spare.c_str());
      return Errc::not_found;
    }
    auto done = reserve(*file, room);
    if (done) done = disk_->write(file->get(), bytes_of(header), 0);
    LEAT_CRASH_POINT("store:file_recycled");
    if (done) done = disk_->rename(directory_, spare.c_str(), name.c_str());
    if (done) return file;
    (void)disk_->delete_file(directory_, spare.c_str());
    return done.error();
  }

  Result<void> write_frame(const FrameHeader& header, std::span<const std::byte> bytes) {
    static constexpr std::byte kZeros[kFrameAlignment]{};
    const std::size_t padding = padded_frame(bytes.size()) - sizeof(header) - bytes.size();
    const Disk::Part parts[] = {bytes_of(header), bytes, {kZeros, padding}};
    return disk_->write(file_.get(), parts, at_);
  }

  Disk* disk_;
  int directory_;
  std::uint64_t salt_;
  std::uint64_t file_bytes_;
  FileAccess access_;
  std::uint32_t partition_;

  std::uint64_t generation_ = 0;
  std::uint64_t end_offset_ = 0;      // of all frames
  std::uint64_t durable_offset_ = 0;  // of those that are on stable storage
  std::uint64_t previous_end_ = 0;    // for the header of the next file
  bool is_first_ = false;

  Fd file_;  // The last file; none if the next frame begins one.
  SegmentName name_;
  std::uint64_t at_ = 0;        // where the next frame goes
  std::uint64_t reserved_ = 0;  // Blocks are reserved up to here.
  std::uint64_t started_ = 0;   // the kernel was asked to write everything before
  std::int64_t newest_ms_ = kNoTimestamp;
  Synced synced_;
  bool has_new_name_ = false;         // The file's name is not on stable storage yet.
  std::uint32_t unsynced_files_ = 0;  // of end_file()
  Error failed_;                      // of a sync
  bool has_spare_ = false;            // for the next file
  bool is_spare_synced_ = false;      // under its new name
  bool writes_early_ = true;
};

}  // namespace leat::inline v0::detail
