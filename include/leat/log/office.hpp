// The keeper's office: copies a durable topic's committed records to disk, one process at a time.
//
//     Office office{topic, disk, directory, manifest};
//     if (office.take(seen)) while (office.write()) …
//     office.hand_over();
//
// Used by one thread at a time. An office has a number, and whoever takes it counts it up. Everything
// that a keeper tells others goes through words that carry its number, so one that was followed while it
// was stopped changes nothing: docs/internals/durable.md, "Offices".
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leat/log/committed_prefix.hpp"
#include "leat/log/participant.hpp"
#include "leat/os/disk.hpp"
#include "leat/store/data_lock.hpp"
#include "leat/store/recovery.hpp"
#include "leat/store/segment_writer.hpp"

namespace leat::inline v0::detail {

class Office {
 public:
  // `directory` is the topic's data directory. All must outlive it.
  Office(std::shared_ptr<SharedTopic> topic, Disk& disk, int directory,
         const Manifest& manifest) noexcept
      : shared_{std::move(topic)},
        topic_{*shared_},
        window_{*topic_.durable()},
        disk_{disk},
        directory_{directory},
        manifest_{manifest} {}

  // The word that take() needs. Bit 0: the office is vacant; its last keeper handed over in order.
  std::uint64_t word() const noexcept {
    // [keeper] acquire: the facts of a handover were stored before.
    return load_acquire<Edge::keeper>(window_.header().office);
  }
  // Whether the keeper that the word names is alive. Takes a system call.
  bool is_held(std::uint64_t word) const noexcept {
    return lock_.get() >= 0 ? true : byte_is_locked(probe_.get(), kKeeperLock + number_of(word));
  }
  bool is_taken() const noexcept { return is_taken_; }
  std::uint64_t number() const noexcept { return number_; }
  // Whether no other process has followed the one that tried last to take it.
  bool is_own() const noexcept { return word() == number_ << 1; }
  // Tells everybody what the disk is like, unless this process was followed.
  void tell(DiskState state, std::int32_t reason) noexcept {
    (void)set(window_.header().trouble,
              static_cast<std::uint64_t>(state) | std::uint64_t{static_cast<std::uint32_t>(reason)}
                                                      << 32);
  }

  // Opens the file whose locks tell who is in office.
  Result<void> open_probe() {
    auto file = open_data_lock(directory_);
    if (!file) return file.error();
    probe_ = std::move(*file);
    return {};
  }

  // Takes the office from the keeper that `seen` names, which handed over, is dead, or has not moved.
  // False if another process takes it.
  //   no_space   the disk is full; try again later
  //   permission, io_error with EMFILE or ENFILE, no_space with EFBIG: likewise; another process may have more luck
  //   others     writing or syncing failed for good
  Result<bool> take(std::uint64_t seen) {
    number_ = (seen >> 1) + 1;
    if (number_ > kMaxGeneration) return Errc::corrupt;
    std::uint64_t expected = seen;
    if (!compare_exchange<Edge::keeper>(window_.header().office, expected, number_ << 1))
      return false;
    LEAT_CRASH_POINT("keeper:counted");
    auto lock = open_data_lock(directory_);
    if (!lock) return lock.error();
    auto locked = lock->try_lock(kKeeperLock + static_cast<std::int64_t>(number_));
    if (!locked) return locked.error();
    // Others may have found the byte unlocked and counted on.
    if (!*locked || word() != number_ << 1) return false;
    LEAT_CRASH_POINT("keeper:locked");
    if (!take_words()) return false;
    LEAT_CRASH_POINT("keeper:fenced");
    // Told just before by the last keeper: nobody writes any more.
    if (window_.state() == DiskState::read_only) return false;
    auto records = topic_.records_for_reading();
    if (!records) return records.error();
    records_ = *records;
    checkpoint_.reset();
    auto begun = wait_for_disk([&]() -> Result<void> {
      delete_spares(disk_, directory_);  // of earlier keepers
      auto ready = (seen & 1) != 0 ? continue_files() : follow();
      if (ready) ready = begin_reading();
      return ready ? store_checkpoint(false) : ready;
    });
    if (!begun) return begun.error();
    // Without a slot, subscribers fill the holes that dead publishers left.
    if (auto me = Participant::join(shared_, ParticipantRole::repairer, [](std::uint32_t) {}))
      repairer_ = std::move(*me);
    LEAT_CRASH_POINT("keeper:in_office");
    lock_ = std::move(*lock);
    is_taken_ = true;
    store_relaxed<Why::hint>(window_.header().keeper_pid, static_cast<std::uint32_t>(::getpid()));
    return true;
  }

  // Tells those who stand by that this keeper is not stopped.
  void beat() noexcept {
    std::uint32_t& beats = window_.header().beats;
    store_relaxed<Why::hint>(beats, load_relaxed<Why::hint>(beats) + 1);
  }

  // Writes what is committed, and syncs what is due. Returns how many bytes it wrote.
  //   not_held   another process has followed this one: the office is gone
  //   others     as for take()
  Result<std::uint64_t> write() {
    // Where this one reads, there may be nothing to write any more, which would tell it.
    if (!is_own()) return Errc::not_held;
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < parts_.size(); ++i) {
      auto written = write_partition(i);
      if (!written) return written.error();
      bytes += *written;
    }
    if (next_sync_ns() <= now_ns()) {
      if (auto synced = sync_all(); !synced) return synced.error();
    }
    return bytes;
  }

  // Syncs everything that was written. Errors as for write().
  Result<void> sync_all() {
    synced_ns_ = now_ns();
    for (std::uint32_t i = 0; i < parts_.size(); ++i) {
      if (!is_unsynced(i)) continue;
      if (auto synced = wait_for_disk([&] { return parts_[i].writer.sync(); }); !synced)
        return synced;
      LEAT_CRASH_POINT("keeper:synced");
      if (auto told = tell_durable(i); !told) return told;
    }
    return {};
  }

  // When a sync is due, in ns on the monotonic clock; kNever as long as nobody waits for one.
  static constexpr std::int64_t kNever = INT64_MAX;
  std::int64_t next_sync_ns() const noexcept {
    std::int64_t next = kNever;
    for (std::uint32_t i = 0; i < parts_.size(); ++i) next = std::min(next, next_sync_ns(i));
    return next;
  }

  // Fills holes that dead publishers left where the committed prefix ends.
  void look_after_holes() {
    for (std::uint32_t i = 0; repairer_ && i < parts_.size(); ++i) {
      Part& part = parts_[i];
      if (part.prefix.has_more()) continue;
      // Pinned, because a keeper that was followed no longer keeps the segment from being reused.
      Repair pin{topic_, i, repairer_.index()};
      if (pin.pin(part.prefix.segment()))
        (void)part.hole.look(topic_, i, repairer_.index(), part.prefix.place());
      pin.unpin();
    }
  }

  // Deletes the files that retention does not keep; now and then, and when a file is full. What fails is
  // tried again the next time.
  void expire_if_due() {
    if (now_ns() >= next_expiry_ns()) expire(false);
  }
  // Does as if that were done: another keeper does it.
  void put_expiry_off() noexcept { expired_ns_ = now_ns(); }
  // In ns on the monotonic clock; kNever if nothing gets too old.
  std::int64_t next_expiry_ns() const noexcept {
    constexpr std::int64_t kMinute = 60'000'000'000;
    constexpr std::int64_t kShortest = 10'000'000;
    const std::int64_t ms = manifest_.topic.retention_ms;
    if (ms == 0) return kNever;
    const std::int64_t pause = ms < kMinute / 250'000 ? ms * 250'000 : kMinute;  // a quarter
    return expired_ns_ + std::max(pause, kShortest);
  }

  // Calls `work`, which waits for the disk, and tells others that this may take long.
  template <class Work>
  Result<void> wait_for_disk(const Work& work) {
    std::uint32_t& syncing = window_.header().syncing;
    const auto own = static_cast<std::uint32_t>(number_);
    store_relaxed<Why::hint>(syncing, own);
    auto done = work();
    // Not if another one waits by now.
    if (load_relaxed<Why::hint>(syncing) == own) store_relaxed<Why::hint>(syncing, 0U);
    return done;
  }

  bool has_work() const noexcept {
    for (const Part& part : parts_)
      if (part.prefix.has_more()) return true;
    return next_sync_ns() <= now_ns();
  }

  // Lets another process go on in the same file. Nothing must be in the middle of being written.
  void hand_over() noexcept {
    if (!is_taken_) return;
    bool is_own = true;
    for (std::uint32_t i = 0; i < parts_.size() && is_own; ++i) {
      const SegmentWriter& writer = parts_[i].writer;
      DurablePartition& to = window_.partition(i);
      const std::uint64_t generation = writer.has_file() ? writer.file_name().generation : 0;
      is_own = set(to.file_generation, generation) &&
               set(to.file_base, writer.file_name().base_offset) &&
               set(to.file_bytes, writer.file_position()) &&
               set(to.newest_ms, static_cast<std::uint64_t>(writer.newest_ms()));
    }
    LEAT_CRASH_POINT("keeper:facts_stored");
    // [keeper] release: behind the facts. Fails if this process was followed.
    std::uint64_t own = number_ << 1;
    if (is_own) compare_exchange<Edge::keeper>(window_.header().office, own, own | 1);
    LEAT_CRASH_POINT("keeper:handed_over");
    leave();
  }

  // Ends all files, and stores that the topic is closed. Only for the last process, which has
  // written everything.
  Result<void> close_files() {
    delete_spares(disk_, directory_);
    bool has_all_files = true;
    for (Part& part : parts_) {
      if (auto done = part.writer.finish_file(); !done) return done;
      has_all_files = has_all_files && part.writer.synced().file.generation != 0;
    }
    LEAT_CRASH_POINT("keeper:files_ended");
    if (!has_all_files) {  // A keeper that died has left the last file as it was.
      if (auto ended = recover(disk_, directory_, manifest_); !ended) return ended.error();
      checkpoint_.reset();
    }
    return store_checkpoint(true);
  }

  // Forgets everything, and lets the lock go.
  void leave() noexcept {
    is_taken_ = false;
    parts_.clear();
    repairer_ = {};
    lock_ = {};
  }

 private:
  struct Part {
    SegmentWriter writer;
    CommittedPrefix prefix;
    HoleWatch hole;
    SegmentName checkpointed;            // The file that the checkpoint names.
    std::uint64_t unsynced = 0;          // bytes written since the last sync, or more,
    std::int64_t unsynced_since_ns = 0;  // and since when
  };

  static std::int64_t number_of(std::uint64_t word) noexcept {
    return static_cast<std::int64_t>(word >> 1);
  }

  // Puts this office's number on all words. False if a later keeper has done so already.
  bool take_words() noexcept {
    if (!take_owned(window_.header().trouble, number_)) return false;
    for (std::uint32_t i = 0; i < manifest_.topic.partition_count; ++i) {
      DurablePartition& part = window_.partition(i);
      for (OwnedWord* word : {&part.written, &part.durable, &part.file_base, &part.file_generation,
                              &part.file_bytes, &part.newest_ms}) {
        if (!take_owned(*word, number_)) return false;
      }
    }
    return true;
  }

  static OwnedWord read(const OwnedWord& word) noexcept { return read_owned(word); }
  bool set(OwnedWord& word, std::uint64_t to) noexcept { return set_owned(word, number_, to); }
  // For an offset that only grows.
  bool move(OwnedWord& word, std::uint64_t to) noexcept {
    const OwnedWord seen = read_owned(word);
    return seen.office == number_ && (seen.value >= to || set(word, to));
  }

  // After an orderly handover: goes on in the same files.
  Result<void> continue_files() {
    for (std::uint32_t i = 0; i < manifest_.topic.partition_count; ++i) {
      const DurablePartition& facts = window_.partition(i);
      const std::uint64_t written = window_.written(i);
      const std::uint64_t generation = read(facts.file_generation).value;
      Part& part = add_part(i);
      if (generation == 0) {
        part.writer.begin(number_, written, end_before(i, written), written == 0);
        continue;
      }
      const SegmentName name{i, read(facts.file_base).value, generation};
      auto resumed = part.writer.resume(name, number_, read(facts.file_bytes).value, written,
                                        window_.durable(i),
                                        static_cast<std::int64_t>(read(facts.newest_ms).value));
      if (!resumed) return resumed;
    }
    return {};
  }

  // After a keeper that died, or was stopped: begins new files. Whatever the others have written or will
  // write from there on does not count, because these files are later ones.
  //   os        They begin at `written`, because nothing before is kept in memory. What the last keeper
  //             did not sync is synced first.
  //   others    They begin at `durable`, and what follows is written again: if a sync of the last keeper
  //             failed, another one might wrongly succeed.
  Result<void> follow() {
    auto lists = list_segments(directory_, manifest_.topic.partition_count);
    if (!lists) return lists.error();
    const bool is_os = window_.durability() == StoredDurability::os;
    for (std::uint32_t i = 0; i < manifest_.topic.partition_count; ++i) {
      const std::uint64_t from = window_.kept_from(i);
      if (is_os) {
        auto synced = sync_before(from, window_.durable(i), (*lists)[i]);
        if (!synced) return synced;
      } else if (!set(window_.partition(i).written, from)) {
        return Errc::not_held;
      }
      LEAT_CRASH_POINT("keeper:set_back");
      add_part(i).writer.begin(number_, from, end_before(i, from), from == 0);
    }
    if (auto synced = disk_.sync_directory(directory_); !synced) return synced;
    for (std::uint32_t i = 0; i < parts_.size(); ++i)
      if (auto told = tell_durable(i); !told) return told;
    return {};
  }

  // Where the frames before `written` end: there, unless the window began behind lost offsets and
  // nothing was written since.
  std::uint64_t end_before(std::uint32_t partition, std::uint64_t written) const noexcept {
    const DurablePartition& part = window_.partition(partition);
    return written == load_relaxed<Why::constant>(part.begin_offset)
               ? load_relaxed<Why::constant>(part.frames_end)
               : written;
  }

  // The last keeper may not have synced what it wrote; this one's frames say that it is durable.
  Result<void> sync_before(std::uint64_t written, std::uint64_t durable, const SegmentList& files) {
    for (std::size_t i = 0; i < files.live.size(); ++i) {
      if (files.limit(i) <= durable || files.live[i].base_offset >= written) continue;
      auto file = disk_.open(directory_, files.live[i].text().c_str(), O_RDONLY, 0);
      if (!file) return file.error();
      if (auto synced = disk_.sync(file->get()); !synced) return synced;
    }
    return {};
  }

  // `was_full`: the directory was synced since the last call.
  void expire(bool was_full) {
    const ManifestTopic& topic = manifest_.topic;
    expired_ns_ = now_ns();
    if (topic.retention_bytes == 0 && topic.retention_ms == 0) return;
    auto lists = list_segments(directory_, topic.partition_count);
    if (!lists) return;
    for (std::uint32_t i = 0; i < parts_.size(); ++i) {
      if (!expire(i, (*lists)[i], was_full)) return;
    }
  }
  // The oldest first, each for good before the next: a hole between files would look like damage. The
  // last one is for good before this is called again for a file that is full: ending that syncs the
  // directory.
  Result<void> expire(std::uint32_t index, const SegmentList& files, bool was_full) {
    // Of the file in use only what is written: its blocks are there before.
    const SegmentWriter& writer = parts_[index].writer;
    std::uint64_t bytes = writer.has_file() ? writer.file_position() : 0;
    for (std::size_t i = 0; i + 1 < files.live.size(); ++i)
      bytes += disk_bytes_at(directory_, files.live[i].text().c_str());
    for (std::size_t i = 0; i + 1 < files.live.size(); ++i) {
      const std::string name = files.live[i].text();
      const std::uint64_t size = disk_bytes_at(directory_, name.c_str());
      auto is_too_old = is_full_for_too_long(files.live[i + 1]);
      if (!is_too_old) return is_too_old.error();
      const std::uint64_t most = manifest_.topic.retention_bytes;
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
      // Only a file that the same keeper has ended: one that was followed may still write to its last.
      const bool is_ended = files.live[i].generation == files.live[i + 1].generation;
      if (!is_ended || !put_aside(index, name)) {
        if (auto deleted = disk_.delete_file(directory_, name.c_str()); !deleted) return deleted;
      }
      LEAT_CRASH_POINT("keeper:expired");
      bytes -= size;
    }
    return {};
  }
  // Keeps a file for the next one that is made: its blocks are there. Its name says whose it is, because a
  // keeper that was followed may still have one. False if there is one already. A file with other names
  // (a backup's) only loses this one. Its links are counted under its new name: whoever adds one by the
  // old name has done so before, or fails.
  bool put_aside(std::uint32_t index, const std::string& name) {
    SegmentWriter& writer = parts_[index].writer;
    if (writer.has_spare()) return false;
    std::string spare =
        std::string{kSparePrefix} + std::to_string(number_) + '-' + std::to_string(index);
    if (!disk_.rename(directory_, name.c_str(), spare.c_str())) return false;
    LEAT_CRASH_POINT("keeper:put_aside");
    auto file = disk_.open(directory_, spare.c_str(), O_RDONLY, 0);
    if (file && link_count(file->get()) == 1) {
      writer.take_spare(std::move(spare));
    } else {
      (void)disk_.delete_file(directory_, spare.c_str());
    }
    return true;
  }

  // A file was full when the next one was made.
  Result<bool> is_full_for_too_long(const SegmentName& next) {
    const std::int64_t most_ms = manifest_.topic.retention_ms;
    if (most_ms == 0) return false;
    auto reader = SegmentReader::open(disk_, directory_, next, manifest_.topic.salt);
    if (!reader) return reader.error();
    auto header = reader->header();
    if (!header) return header.error();
    return *header && wall_clock_ms() - (*header)->created_ms > most_ms;
  }

  bool is_unsynced(std::uint32_t index) const noexcept {
    return window_.durable(index) < parts_[index].writer.end_offset();
  }

  // When somebody wants it. Else, fsync: a moment after something was written, so that one sync is for
  // many records. interval: as long after the last sync began. Both: before the window is full.
  std::int64_t next_sync_ns(std::uint32_t index) const noexcept {
    constexpr std::int64_t kNow = 0;
    constexpr std::int64_t kMoment = 1'000'000;  // ns
    if (!is_unsynced(index)) return kNever;
    if (window_.is_wanted(index)) return kNow;
    if (window_.durability() == StoredDurability::os) return kNever;
    const Part& part = parts_[index];
    if (part.unsynced >= topic_.geometry().partition_size() / 4) return kNow;
    return window_.durability() == StoredDurability::fsync
               ? part.unsynced_since_ns + kMoment
               : synced_ns_ + window_.sync_interval_ns();
  }

  // Tells those who wait how much is on the medium.
  Result<void> tell_durable(std::uint32_t index) noexcept {
    Part& part = parts_[index];
    const std::uint64_t durable = part.writer.durable_offset();
    if (window_.durable(index) >= durable) return {};
    // If this thread is killed before it has woken all, the kernel wakes a sleeper, which does that.
    const DeathBellGuard guard{topic_.header().death_bell};
    // [sync] seq_cst: before the sleepers' bits are read.
    if (!move(window_.partition(index).durable, durable)) return Errc::not_held;
    LEAT_CRASH_POINT("keeper:told_durable");
    part.unsynced = 0;
    SharedTopic::wake(window_.header().durable_wake);
    SharedTopic::wake(topic_.header().data_wake);
    SharedTopic::wake(topic_.header().space_wake);
    return {};
  }

  Part& add_part(std::uint32_t partition) {
    if (partition == 0) parts_.clear();
    return parts_.emplace_back(Part{SegmentWriter{disk_, directory_, manifest_.topic, partition},
                                    CommittedPrefix{topic_, partition, records_},
                                    {},
                                    {},
                                    0,
                                    0});
  }

  Result<void> begin_reading() {
    for (std::uint32_t i = 0; i < parts_.size(); ++i) {
      if (auto found = parts_[i].prefix.go_to(window_.written(i)); !found) return found;
    }
    return {};
  }

  Result<std::uint64_t> write_partition(std::uint32_t index) {
    // A keeper that was followed may read what is being overwritten. Its files do not count.
    const RacingReads scope;
    Part& part = parts_[index];
    std::uint64_t bytes = 0;
    while (bytes < kTurn) {  // Then other partitions have their turn.
      auto piece = part.prefix.next();
      if (!piece) return piece.error();
      if (piece->bytes.empty()) break;
      const auto append = [&] { return part.writer.append(piece->facts, piece->bytes); };
      auto appended = part.writer.ends_file(piece->bytes.size()) ? wait_for_disk(append) : append();
      if (!appended) {
        part.prefix.take_back(*piece);
        return appended.error();
      }
      LEAT_CRASH_POINT("keeper:written");
      if (!move(window_.partition(index).written, part.prefix.offset())) return Errc::not_held;
      LEAT_CRASH_POINT("keeper:told");
      if (window_.durability() == StoredDurability::os)
        SharedTopic::wake(topic_.header().space_wake);
      bytes += piece->bytes.size();
      if (part.unsynced == 0) part.unsynced_since_ns = now_ns();
      part.unsynced += piece->bytes.size();
      if (auto noted = note_progress(index); !noted) return noted.error();
    }
    return bytes;
  }

  // Stores a checkpoint when a file was ended, or before reserved offsets run out.
  Result<void> note_progress(std::uint32_t index) {
    Part& part = parts_[index];
    const SegmentWriter::Synced& synced = part.writer.synced();
    if (auto told = tell_durable(index); !told) return told;
    const std::uint64_t reserved = checkpoint_->value().partitions[index].reserved_offset;
    const bool is_new_file = synced.file.generation != 0 && synced.file != part.checkpointed;
    if (!is_new_file && part.writer.end_offset() + 2 * window_offsets() < reserved) return {};
    auto stored = wait_for_disk([&] { return store_checkpoint(false); });
    if (stored && is_new_file) expire(true);
    return stored;
  }

  Result<void> store_checkpoint(bool is_closed) {
    // Another keeper may have stored one since: then this one was followed.
    auto loaded = CheckpointFile::load(disk_, directory_, manifest_);
    if (!loaded) return loaded.error();
    if (!is_closed && loaded->value().state.generation > number_) return Errc::not_held;
    checkpoint_ = std::move(*loaded);
    Checkpoint next = checkpoint_->value();
    next.state = {number_, 0, is_closed ? 1U : 0U, 0};
    for (std::uint32_t i = 0; i < parts_.size(); ++i) {
      Part& part = parts_[i];
      CheckpointPartition& entry = next.partitions[i];
      const SegmentWriter::Synced& synced = part.writer.synced();
      if (synced.file.generation != 0) {
        entry = {synced.end_offset,      entry.reserved_offset, synced.file.base_offset,
                 synced.file.generation, synced.bytes,          synced.end_offset,
                 synced.newest_ms};
        part.checkpointed = synced.file;
      }
      // Without a file of this office nothing was written since, but offsets may be lost.
      if (is_closed) entry.durable_offset = part.writer.end_offset();
      const std::uint64_t reserve = std::max(kReservedOffsets, 4 * window_offsets());
      entry.reserved_offset = std::max(entry.reserved_offset, part.writer.end_offset() + reserve);
    }
    return checkpoint_->store(disk_, directory_, std::move(next));
  }

  static constexpr std::uint64_t kTurn = std::uint64_t{4} << 20;

  // Offsets that publishers can take before the keeper moves `written` again.
  std::uint64_t window_offsets() const noexcept {
    const Geometry& geometry = topic_.geometry();
    return 2 * geometry.segment_granules * geometry.segment_count;
  }

  std::shared_ptr<SharedTopic> shared_;
  SharedTopic& topic_;
  DurableWindow& window_;
  Disk& disk_;
  int directory_;
  const Manifest& manifest_;
  const std::byte* records_ = nullptr;
  LockFile probe_;
  LockFile lock_;  // The keeper's byte, while in office.
  std::uint64_t number_ = 0;
  bool is_taken_ = false;
  std::int64_t synced_ns_ =
      -kMaxSyncInterval;                // When the last sync began; the first is due at once.
  std::int64_t expired_ns_ = now_ns();  // When files were looked at last.
  std::vector<Part> parts_;
  Participant repairer_;
  std::optional<CheckpointFile> checkpoint_;
};

}  // namespace leat::inline v0::detail
