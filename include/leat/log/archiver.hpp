// The archiver: copies a durable topic's committed records to disk, one process at a time.
//
//     Archiver archiver{topic, disk, directory, manifest};
//     if (archiver.take_over(seen)) while (archiver.write()) …
//     archiver.hand_over();
//
// Used by one thread at a time. The epoch is a number that each new archiver increments. All words in which an
// archiver publishes something carry its number. So an archiver that was superseded while it was stopped changes
// nothing: docs/internals/durable.md, "Epochs".
#pragma once

#include <algorithm>
#include <cerrno>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "leat/log/archiver_epoch.hpp"
#include "leat/log/committed_prefix.hpp"
#include "leat/log/participant.hpp"
#include "leat/log/unstored_gaps.hpp"
#include "leat/os/disk.hpp"
#include "leat/store/recovery.hpp"
#include "leat/store/retention.hpp"
#include "leat/store/segment_writer.hpp"

namespace leat::inline v0::detail {

class Archiver {
 public:
  // `directory` is the topic's data directory. All must outlive it.
  Archiver(std::shared_ptr<MappedTopic> topic, Disk& disk, int directory,
           const Manifest& manifest) noexcept
      : shared_{std::move(topic)},
        topic_{*shared_},
        window_{*topic_.durable()},
        epoch_{window_},
        disk_{disk},
        directory_{directory},
        manifest_{manifest},
        retention_{disk, directory, manifest.topic} {}

  // The word that take_over() needs, and whether the archiver that it names is alive; see ArchiverEpoch.
  std::uint64_t word() const noexcept { return epoch_.word(); }
  bool is_alive(std::uint64_t word) const noexcept { return epoch_.is_alive(word); }
  bool is_active() const noexcept { return is_active_; }
  std::uint64_t epoch() const noexcept { return epoch_.number(); }
  // Whether no process has become the archiver after this one's last attempt.
  bool is_own() const noexcept { return epoch_.is_own(); }
  void publish_state(DiskState state, std::int32_t reason) noexcept {
    epoch_.publish_state(state, reason);
  }
  void beat() noexcept { epoch_.beat(); }
  Result<void> open_probe() { return epoch_.open_probe(directory_); }
  template <class Work>
  std::invoke_result_t<Work> wait_for_disk(const Work& work) {
    return epoch_.wait_for_disk(work);
  }

  // Takes over from the archiver that `seen` names, which handed over, is dead, or has not moved.
  // False if another process does.
  // After an error, leave() releases the lock.
  //   no_space   the disk is full; try again later
  //   permission, io_error with EMFILE or ENFILE, no_space with EFBIG: the same; another process may succeed
  //   others     writing or syncing failed for good
  Result<bool> take_over(std::uint64_t seen) {
    auto counted = epoch_.take(directory_, seen, manifest_.topic.partition_count);
    if (!counted || !*counted) return counted;
    LEAT_CRASH_POINT("archiver:fenced");
    // If the last archiver has just published this state, nobody writes any more.
    if (window_.state() == DiskState::read_only) {
      epoch_.release();
      return false;
    }
    auto records = topic_.records_for_reading();
    if (!records) return records.error();
    records_ = *records;
    checkpoint_.reset();
    retention_.begin_epoch();
    auto begun = wait_for_disk([&]() -> Result<void> {
      delete_spares(disk_, directory_);  // of earlier archivers
      auto ready = (seen & 1) != 0 ? continue_files() : begin_new_files();
      if (ready) ready = begin_reading();
      if (ready) ready = store_checkpoint(false);
      // Archivers that died may never have filled a file, and each has made one: so this deletes several.
      for (int i = 0; ready && i < 4 && (i == 0 || retention_.has_more()); ++i)
        ready = expire(retention_.next_partition(), false);
      return ready;
    });
    if (!begun) return begun.error();
    // Without a slot, subscribers fill the holes that dead publishers left.
    if (auto me = Participant::join(shared_, ParticipantRole::repairer, [](std::uint32_t) {}))
      repairer_ = std::move(*me);
    LEAT_CRASH_POINT("archiver:took_over");
    is_active_ = true;
    store_relaxed<Why::hint>(window_.header().archiver_pid, static_cast<std::uint32_t>(::getpid()));
    return true;
  }

  // Writes what is committed, and syncs what is due. Returns how many bytes it wrote.
  //   not_in_flight  this archiver was superseded
  //   others         as for take_over()
  Result<std::uint64_t> write() {
    // A superseded archiver may find nothing to write, and would then not notice.
    if (!is_own()) return Errc::not_in_flight;
    for (bool is_over = true; is_over && is_finishing();) {
      auto finished = finish_first(false);
      if (!finished) return finished.error();
      is_over = *finished;
    }
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
    if (auto finished = finish_full_files(); !finished) return finished;
    for (std::uint32_t i = 0; i < parts_.size(); ++i) {
      if (!is_unsynced(i)) continue;
      const std::int64_t began_ns = now_ns();
      if (auto synced = wait_for_disk([&] { return parts_[i].writer.sync(); }); !synced)
        return synced;
      epoch_.note_sync(began_ns);
      LEAT_CRASH_POINT("archiver:synced");
      if (auto announced = announce_durable(i); !announced) return announced;
    }
    return {};
  }

  // Whether full files are being synced in the background. write() checks whether that has finished.
  bool is_finishing() const noexcept { return !ended_.empty(); }
  // Waits until it has finished. Errors as for write().
  Result<void> finish_full_files() {
    while (is_finishing()) {
      if (auto finished = finish_first(true); !finished) return finished.error();
    }
    return {};
  }

  // When a sync is due, in ns on the monotonic clock; kNever as long as nobody waits for one.
  static constexpr std::int64_t kNever = Retention::kNever;
  std::int64_t next_sync_ns() const noexcept {
    std::int64_t next = kNever;
    for (std::uint32_t i = 0; i < parts_.size(); ++i) next = std::min(next, next_sync_ns(i));
    return next;
  }

  // Stores the gaps that were written since the last checkpoint, so that numbers of records leave them out when memory
  // no longer has them. Errors as for write(). Those that may pass change nothing: it is due again a second later.
  Result<void> store_gaps() {
    gaps_.put_off();
    return wait_for_disk([&] { return store_checkpoint(false); });
  }
  bool has_unstored_gaps() const noexcept { return !gaps_.is_empty(); }
  // When that is due, in ns on the monotonic clock; kNever if there is none.
  std::int64_t next_gaps_ns() const noexcept { return gaps_.due_ns(); }

  // Fills holes that dead publishers left where the committed prefix ends.
  void repair_holes() {
    for (std::uint32_t i = 0; repairer_ && i < parts_.size(); ++i) {
      Part& part = parts_[i];
      if (part.prefix.has_more()) continue;
      // Pinned, because a superseded archiver no longer keeps the segment from being reused.
      Repair pin{topic_, i, repairer_.index()};
      if (pin.pin(part.prefix.segment()))
        (void)part.hole.check(topic_, i, repairer_.index(), part.prefix.place());
      pin.unpin();
    }
  }

  // Deletes what retention does not keep, one file at a time: now and then, and when a file is full. A file that
  // cannot be read or deleted is tried again. Errors as for write(): of a sync, or of the checkpoint.
  Result<void> expire_if_due() {
    if (now_ns() < next_expiry_ns()) return {};
    return expire(retention_.next_partition(), false);
  }
  // The same if there is more to delete, seldom enough for what is to be written.
  Result<void> expire_while_busy() {
    constexpr std::int64_t kPause = 50'000'000;
    if (!retention_.has_more() || now_ns() < retention_.checked_ns() + kPause) return {};
    return expire_if_due();
  }
  bool has_more_to_expire() const noexcept { return retention_.has_more(); }
  // Postpones this as if it had been done, because another archiver does it.
  void put_expiry_off() noexcept { retention_.put_off(); }
  // In ns on the monotonic clock; kNever if nothing gets too old.
  std::int64_t next_expiry_ns() const noexcept { return retention_.next_ns(); }

  // `os` has no syncs that would notice that somebody deleted the files. Errors as for write().
  Result<void> check_names() {
    for (std::size_t i = 0; is_lazy() && i < parts_.size(); ++i)
      if (auto there = parts_[i].writer.check_name(); !there) return there;
    return {};
  }

  bool has_work() const noexcept {
    for (const Part& part : parts_)
      if (part.prefix.has_more()) return true;
    return next_sync_ns() <= now_ns();
  }

  // Lets another process continue in the same file. No write may be in progress. If full files are not
  // synced yet, the other process begins new ones, as after a death.
  void hand_over() noexcept {
    if (!is_active_) return;
    bool is_own = !is_finishing();
    for (std::uint32_t i = 0; i < parts_.size() && is_own; ++i) {
      const SegmentWriter& writer = parts_[i].writer;
      DurablePartition& to = window_.partition(i);
      const std::uint64_t generation = writer.has_file() ? writer.file_name().generation : 0;
      is_own = set(to.file_generation, generation) &&
               set(to.file_base, writer.file_name().base_offset) &&
               set(to.file_bytes, writer.file_position()) &&
               set(to.newest_ms, static_cast<std::uint64_t>(writer.newest_ms()));
    }
    LEAT_CRASH_POINT("archiver:handover_stored");
    if (is_own) epoch_.hand_over();
    LEAT_CRASH_POINT("archiver:handed_over");
    leave();
  }

  // Ends all files, and stores that the topic is closed. Only for the last process, which has written everything.
  Result<void> close_files() {
    delete_spares(disk_, directory_);
    if (auto finished = finish_full_files(); !finished) return finished;
    bool has_all_files = true;
    for (Part& part : parts_) {
      if (auto done = part.writer.finish_file(); !done) return done;
      has_all_files = has_all_files && part.writer.synced().file.generation != 0;
    }
    LEAT_CRASH_POINT("archiver:files_ended");
    if (!has_all_files) {  // A last file is as an archiver that died left it.
      auto ended = recover(disk_, directory_, manifest_);
      if (!ended) return ended.error();
      checkpoint_ = std::move(ended->checkpoint);
    }
    return store_checkpoint(true);
  }
  // If the topic stays open after that. Both copies say so: whichever is damaged later.
  Result<void> reopen() {
    auto stored = store_checkpoint(false);
    return stored ? store_checkpoint(false) : stored;
  }

  // Forgets everything, and releases the lock.
  void leave() noexcept {
    take_last_result();
    is_active_ = false;
    ended_.clear();
    background_ = {};
    is_first_started_ = false;
    parts_.clear();
    repairer_ = {};
    epoch_.release();
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

  struct FullFile {
    std::uint32_t partition;
    SegmentWriter::Ended file;
  };

  bool set(OwnedWord& word, std::uint64_t to) noexcept { return epoch_.set(word, to); }

  // After an orderly handover: goes on in the same files.
  Result<void> continue_files() {
    for (std::uint32_t i = 0; i < manifest_.topic.partition_count; ++i) {
      const DurablePartition& from = window_.partition(i);
      const std::uint64_t written = window_.written(i);
      const std::uint64_t generation = read_owned(from.file_generation).value;
      Part& part = add_part(i);
      if (generation == 0) {
        part.writer.begin(epoch(), written, window_.end_before(i, written), written == 0);
        continue;
      }
      const SegmentName name{i, read_owned(from.file_base).value, generation};
      auto resumed = part.writer.resume(
          name, epoch(), read_owned(from.file_bytes).value, written, window_.durable(i),
          static_cast<std::int64_t>(read_owned(from.newest_ms).value));
      if (!resumed) return resumed;
    }
    return {};
  }

  // After an archiver that died or was stopped: begins new files. What earlier archivers have written or will
  // write behind their begin does not count, because the new files are of a later generation.
  //   os        They begin at `written`, because nothing before is kept in memory. What the last archiver
  //             did not sync is synced first.
  //   others    They begin at `durable`, and what follows is written again: if a sync of the last archiver
  //             failed, a second one might wrongly succeed.
  Result<void> begin_new_files() {
    auto lists = list_segments(directory_, manifest_.topic.partition_count);
    if (!lists) return lists.error();
    for (std::uint32_t i = 0; i < manifest_.topic.partition_count; ++i) {
      const std::uint64_t from = window_.kept_from(i);
      cut_reserved(disk_, directory_, manifest_.topic.salt, (*lists)[i], i, from);
      if (is_lazy()) {
        auto synced = sync_files(disk_, directory_, (*lists)[i], window_.durable(i), from);
        if (!synced) return synced;
      } else if (!set(window_.partition(i).written, from)) {
        return Errc::not_in_flight;
      }
      LEAT_CRASH_POINT("archiver:set_back");
      add_part(i).writer.begin(epoch(), from, window_.end_before(i, from), from == 0);
      gaps_.note_memory(i, from);
    }
    if (auto synced = disk_.sync_directory(directory_); !synced) return synced;
    for (std::uint32_t i = 0; i < parts_.size(); ++i)
      if (auto announced = announce_durable(i); !announced) return announced;
    return {};
  }

  // Begins with partition `first`. `was_full`: the directory was synced since the last call.
  Result<void> expire(std::uint32_t first, bool was_full) {
    if (!retention_.begin()) return {};
    return wait_for_disk([&]() -> Result<void> {
      const auto count = static_cast<std::uint32_t>(parts_.size());
      for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t partition = (first + i) % count;
        auto more = retention_.expire(partition, parts_[partition].writer, was_full);
        if (retention_.has_failed_to_sync()) return more.error();
        if (more && *more) retention_.go_on_with(partition);
        if (!more || *more) break;
      }
      return retention_.has_unstored_ages() ? store_checkpoint(false) : Result<void>{};
    });
  }

  bool is_unsynced(std::uint32_t index) const noexcept {
    return window_.durable(index) < parts_[index].writer.end_offset();
  }

  // When requested. Otherwise, fsync: a moment after something was written, so that one sync covers many
  // records. interval: one interval after the last sync began. Both: before the window is full.
  std::int64_t next_sync_ns(std::uint32_t index) const noexcept {
    constexpr std::int64_t kMoment = 1'000'000;  // ns
    if (!is_unsynced(index)) return kNever;
    if (window_.is_wanted(index)) return 0;
    if (window_.durability() == StoredDurability::os) return kNever;
    const Part& part = parts_[index];
    if (part.unsynced >= topic_.geometry().partition_size() / 4) return 0;
    return window_.durability() == StoredDurability::fsync
               ? part.unsynced_since_ns + kMoment
               : synced_ns_ + window_.sync_interval_ns();
  }

  // Publishes how much is on stable storage, and wakes the threads that wait for it.
  Result<void> announce_durable(std::uint32_t index) noexcept {
    Part& part = parts_[index];
    const std::uint64_t durable = part.writer.durable_offset();
    if (window_.durable(index) >= durable) return {};
    // If this thread is killed before it has woken all, the kernel wakes a sleeper, which does that.
    const RobustWakeGuard guard{topic_.header().robust_wake};
    // [sync] seq_cst: before the sleepers' bits are read.
    if (!epoch_.move(window_.partition(index).durable, durable)) return Errc::not_in_flight;
    LEAT_CRASH_POINT("archiver:durable_announced");
    part.unsynced = 0;
    MappedTopic::wake(window_.header().durable_wake);
    MappedTopic::wake(topic_.header().data_wake);
    MappedTopic::wake(topic_.header().space_wake);
    return {};
  }

  Part& add_part(std::uint32_t partition) {
    if (partition == 0) parts_.clear();
    Part& part =
        parts_.emplace_back(Part{SegmentWriter{disk_, directory_, manifest_.topic, partition},
                                 CommittedPrefix{topic_, partition, records_},
                                 {},
                                 {},
                                 0,
                                 0});
    part.writer.write_early(!is_lazy());
    return part;
  }

  // Where the files go on: others may write to `written`, so it is not read again.
  Result<void> begin_reading() {
    for (Part& part : parts_) {
      if (auto found = part.prefix.go_to(part.writer.end_offset()); !found) return found;
    }
    return {};
  }

  Result<std::uint64_t> write_partition(std::uint32_t index) {
    // A superseded archiver may read what is being overwritten. Its files do not count.
    const RacingReads scope;
    Part& part = parts_[index];
    std::uint64_t bytes = 0;
    while (bytes < kTurn) {  // Then other partitions have their turn.
      auto piece = part.prefix.next();
      if (!piece) return piece.error();
      if (piece->bytes.empty()) break;
      const auto append = [&] { return part.writer.append(piece->facts, piece->bytes); };
      const bool ends_file = part.writer.ends_file(piece->bytes.size());
      const bool begins_file = ends_file || !part.writer.has_frames();
      if (begins_file && !is_own()) return Errc::not_in_flight;
      Result<void> appended;
      if (ends_file && is_lazy()) appended = end_file(index);
      // During a sync everything may take long.
      const bool may_wait = begins_file || is_finishing();
      if (appended) appended = may_wait ? wait_for_disk(append) : append();
      if (!appended) {
        part.prefix.take_back(*piece);
        return appended.error();
      }
      if (begins_file) retention_.note_made(part.writer.file_name());
      // Before the memory is reused.
      const std::vector<CheckpointGap> gaps = gaps_of(*piece, index);
      LEAT_CRASH_POINT("archiver:written");
      if (!epoch_.move(window_.partition(index).written, part.prefix.offset())) {
        // If the successor has deleted its own first files meanwhile, this file would seem to count.
        if (begins_file)
          (void)disk_.delete_file(directory_, part.writer.file_name().text().c_str());
        return Errc::not_in_flight;
      }
      LEAT_CRASH_POINT("archiver:announced");
      // Only now: a superseded archiver may have copied anything.
      gaps_.note(gaps);
      if (window_.durability() == StoredDurability::os)
        MappedTopic::wake(topic_.header().space_wake);
      bytes += piece->bytes.size();
      if (part.unsynced == 0) part.unsynced_since_ns = now_ns();
      part.unsynced += piece->bytes.size();
      if (auto noted = note_progress(index); !noted) return noted.error();
    }
    return bytes;
  }

  // `os`: nobody waits for the disk, so a full file is synced while the archiver goes on.
  bool is_lazy() const noexcept { return window_.durability() == StoredDurability::os; }

  // Only files that are synced are deleted, so with --retention-bytes they are at most a quarter more.
  std::size_t most_unsynced_files() const noexcept {
    constexpr std::uint64_t kMost = 4;
    const ManifestTopic& topic = manifest_.topic;
    if (topic.retention_bytes == 0) return kMost;
    return std::clamp<std::uint64_t>(topic.retention_bytes / topic.file_bytes / 4, 1, kMost);
  }

  // Ends a partition's file. Waits only if the disk is far behind. The next write() starts the sync, because
  // making a file takes long during a sync.
  Result<void> end_file(std::uint32_t index) {
    while (ended_.size() >= most_unsynced_files()) {
      if (auto finished = finish_first(true); !finished) return finished.error();
    }
    SegmentWriter& writer = parts_[index].writer;
    ended_.push_back({index, writer.end_file()});
    writer.write_early(ended_.size() >= most_unsynced_files());
    return {};
  }

  // If the sync in progress fails, a sync of the next archiver might wrongly succeed. Does not wait if this archiver
  // was superseded: no process would learn the result.
  void take_last_result() noexcept {
    if (!is_active_ || !is_first_started_ || !is_own()) return;
    const int file = ended_.front().file.file.get();
    const auto synced = wait_for_disk([&] { return disk_.end_sync(background_, file, true); });
    if (!synced || *synced) return;
    publish_state(DiskState::read_only, synced->error().system_error);
    topic_.wake_everybody();
  }

  // Continues with the first of the full files. False if its sync has not finished; with `waits`, waits for
  // a sync that was started. During a sync cutting takes long, too, so only the first file is cut.
  Result<bool> finish_first(bool waits) {
    const FullFile& first = ended_.front();
    SegmentWriter& writer = parts_[first.partition].writer;
    const int file = first.file.file.get();
    std::optional<Result<void>> synced;
    if (is_first_started_) {
      synced = waits ? wait_for_disk([&] { return disk_.end_sync(background_, file, true); })
                     : disk_.end_sync(background_, file, false);
    } else {
      if (auto cut = wait_for_disk([&] { return writer.cut(first.file); }); !cut)
        return cut.error();
      first_began_ns_ = now_ns();
      is_first_started_ = disk_.start_sync(background_, file);
      if (!is_first_started_) synced = wait_for_disk([&] { return disk_.sync(file); });
    }
    if (!synced) return false;
    is_first_started_ = false;
    if (*synced) epoch_.note_sync(first_began_ns_);
    auto noted = wait_for_disk([&] { return writer.note_end(first.file, *synced); });
    if (!noted) return noted.error();
    const std::uint32_t index = first.partition;
    ended_.pop_front();
    if (noted = note_progress(index); !noted) return noted.error();
    return true;
  }

  // Stores a checkpoint when a file was ended, or before reserved offsets run out.
  Result<void> note_progress(std::uint32_t index) {
    Part& part = parts_[index];
    const SegmentWriter::Synced& synced = part.writer.synced();
    if (auto announced = announce_durable(index); !announced) return announced;
    const std::uint64_t reserved = checkpoint_->value().partitions[index].reserved_offset;
    const bool is_new_file = synced.file.generation != 0 && synced.file != part.checkpointed;
    if (!is_new_file && part.writer.end_offset() + 2 * window_offsets(manifest_.topic) < reserved)
      return {};
    auto stored = wait_for_disk([&] { return store_checkpoint(false); });
    return stored && is_new_file ? expire(index, true) : stored;
  }

  Result<void> store_checkpoint(bool is_closed) {
    // If another archiver has stored one since, this archiver was superseded.
    auto loaded = CheckpointFile::load(disk_, directory_, manifest_);
    if (!loaded) return loaded.error();
    if (!is_closed && loaded->value().state.generation > epoch()) return Errc::not_in_flight;
    // A copy that the disk does not return now may be the newest, and the next checkpoint needs a higher sequence number.
    // No copy is newer than what this archiver loaded or stored last.
    const bool is_newest = loaded->is_known() && !loaded->has_hidden();
    if (!checkpoint_ && !loaded->is_known() && loaded->has_hidden())
      return Error{Errc::io_error, EIO};
    if (!checkpoint_ || is_newest) checkpoint_ = std::move(*loaded);
    Checkpoint next = checkpoint_->value();
    retention_.share_ages(next.misdated);
    gaps_.add_to(next.gaps);
    next.state = {epoch(), 0, is_closed ? 1U : 0U, 0};
    for (std::uint32_t i = 0; i < parts_.size(); ++i) {
      Part& part = parts_[i];
      CheckpointPartition& entry = next.partitions[i];
      const SegmentWriter::Synced& synced = part.writer.synced();
      if (synced.file.generation != 0) {
        entry = {synced.end_offset,      entry.reserved_offset, synced.file.base_offset,
                 synced.file.generation, synced.bytes,          synced.end_offset,
                 synced.newest_ms};
      }
      // Without a file of this epoch nothing was written since, but offsets may be lost.
      if (is_closed) entry.durable_offset = part.writer.end_offset();
      entry.reserved_offset = std::max(
          entry.reserved_offset, part.writer.end_offset() + reserved_at_once(manifest_.topic));
    }
    auto stored = checkpoint_->store(disk_, directory_, std::move(next));
    if (stored) gaps_.note_stored();
    for (Part& part : parts_)
      if (stored) part.checkpointed = part.writer.synced().file;
    return stored;
  }

  static constexpr std::uint64_t kTurn = std::uint64_t{4} << 20;

  std::shared_ptr<MappedTopic> shared_;
  MappedTopic& topic_;
  DurableWindow& window_;
  ArchiverEpoch epoch_;
  Disk& disk_;
  int directory_;
  const Manifest& manifest_;
  const std::byte* records_ = nullptr;
  bool is_active_ = false;
  std::int64_t synced_ns_ = -kMaxSyncInterval;  // When the last sync began; the first is due now.
  Retention retention_;
  UnstoredGaps gaps_{topic_};
  std::vector<Part> parts_;
  std::deque<FullFile> ended_;       // Not on stable storage yet.
  BackgroundSync background_;        // of the first one,
  bool is_first_started_ = false;    // if it was started,
  std::int64_t first_began_ns_ = 0;  // and when
  Participant repairer_;
  std::optional<CheckpointFile> checkpoint_;
};

}  // namespace leat::inline v0::detail
