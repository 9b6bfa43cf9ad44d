// One process's mapping of one topic: checked once at attach, shared by all handles of the process.
//
// Everything that other processes may write is accessed through base/atomic.hpp; everything
// constant is in `geometry`, a private copy.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "leat/base/crash_point.hpp"
#include "leat/format/layout.hpp"
#include "leat/log/durable_window.hpp"
#include "leat/log/group_view.hpp"
#include "leat/log/known_groups.hpp"
#include "leat/log/mapped_once.hpp"
#include "leat/os/directory.hpp"
#include "leat/os/futex.hpp"
#include "leat/os/heritable_lock.hpp"
#include "leat/os/lock_file.hpp"
#include "leat/os/membarrier.hpp"
#include "leat/os/robust_wake.hpp"
#include "leat/result.hpp"

namespace leat::inline v0::detail {

inline constexpr char kControlFile[] = "control";
inline constexpr char kRecordsFile[] = "records";

// The thread sanitizer and the model identify memory by address, so under them readers also use the
// writable mapping.
#if LEAT_THREAD_SANITIZER || defined(LEAT_MODEL)
inline constexpr bool kOneMapping = true;
#else
inline constexpr bool kOneMapping = false;
#endif

// Recheck interval when waiting on a process that may die silently, in ns.
inline constexpr std::int64_t kCheckAgain = 2'000'000;

class MappedTopic {
 public:
  // Attaches to the topic in an open directory; takes ownership of the directory if that succeeds.
  //   not_found     the directory contains no topic
  //   wrong_format  magic, version, sizes or geometry are not what this library writes
  static Result<std::unique_ptr<MappedTopic>> attach(Fd& directory) {
    auto control_fd = open_file_at(directory.get(), kControlFile, O_RDWR);
    if (!control_fd) return control_fd.error();
    auto size = file_size(control_fd->get());
    if (!size) return size.error();
    // All that is checked is checked before the file is mapped, which may take as much memory as it says.
    TopicHeader header;
    if (auto read = read_beginning(control_fd->get(), &header, sizeof(header)); !read)
      return read.error();
    auto geometry = read_geometry(header, *size);
    if (!geometry) return geometry.error();
    auto populate = may_populate(control_fd->get(), *size);
    if (!populate) return populate.error();
    auto mapping = Mapping::map(control_fd->get(), *size, true, *populate);
    if (!mapping) return mapping.error();

    auto topic = std::make_unique<MappedTopic>();
    topic->header_ = reinterpret_cast<TopicHeader*>(mapping->data());
    topic->geometry_ = *geometry;
    topic->control_mapping_ = std::move(*mapping);
    topic->control_fd_ = std::move(*control_fd);
    if ((geometry->flags & kDurable) != 0) {
      auto durable = DurableWindow::attach(directory.get(), *geometry);
      if (!durable) return durable.error();
      topic->durable_ = std::move(*durable);
      // An archiver that takes over later maps it, even if the topic's directory was removed.
      auto records = open_file_at(directory.get(), kRecordsFile, O_RDWR);
      if (!records && records.error() != Errc::not_found) return records.error();
      if (records) topic->records_fd_ = std::move(*records);
    }
    topic->directory_ = std::move(directory);
    topic->participants_ =
        reinterpret_cast<ParticipantSlot*>(topic->control_mapping_.data() + sizeof(TopicHeader));
    return topic;
  }

  const Geometry& geometry() const noexcept { return geometry_; }
  TopicHeader& header() const noexcept { return *header_; }
  int control_fd() const noexcept { return control_fd_.get(); }
  int directory_fd() const noexcept { return directory_.get(); }

  ParticipantSlot& participant(std::uint32_t index) const noexcept { return participants_[index]; }
  // Number of slots that a scan must visit.
  std::uint32_t participant_high() const noexcept {
    // [slot] acquire: a counted slot was reserved before.
    const std::uint32_t high = load_acquire<Edge::slot>(header_->participant_high);
    return high < geometry_.participant_capacity ? high : geometry_.participant_capacity;
  }

  // How far a durable topic is on disk; null for other topics.
  DurableWindow* durable() const noexcept { return durable_.get(); }

  PartitionView partition(std::uint32_t index) const noexcept {
    return view_partition(control_mapping_.data(), geometry_, index);
  }

  // Number of the consumer group in a slot of the header; 0 = none.
  std::uint64_t group_number(std::uint32_t slot) const noexcept {
    // [group] seq_cst: read after the participants; see GroupRoom.
    return load_seq_cst<Edge::group>(header_->groups[slot]);
  }
  bool has_group(std::uint64_t number) const noexcept {
    for (std::uint32_t slot = 0; slot < kMaxGroups; ++slot)
      if (group_number(slot) == number) return true;
    return false;
  }
  KnownGroups& known_groups() noexcept { return known_groups_; }
  // The group in a slot, mapped on first use; null if there is none. Valid while `guard` exists. Any thread.
  Result<const std::shared_ptr<GroupView>*> known_group_at(std::uint32_t slot,
                                                           KnownGroups::LookupGuard& guard) {
    while (true) {
      const std::uint64_t number = group_number(slot);
      KnownGroups::Known* const known = known_groups_.at(slot, guard);
      if (number == 0) {
        if (known != nullptr) (void)known_groups_.replace(slot, known, nullptr, guard);
        return nullptr;
      }
      if (known != nullptr && known->view->geometry().number == number) return &known->view;
      auto attached = GroupView::attach(directory_.get(), number, geometry_);
      if (!attached && group_number(slot) != number) continue;  // Deleted meanwhile.
      if (!attached) {
        if (attached.error() != Errc::not_found) return attached.error();
        return are_files_deleted() ? Errc::deleted : Errc::corrupt;
      }
      KnownGroups::Known* const made =
          known_groups_.replace(slot, known, std::move(*attached), guard);
      if (made != nullptr) return &made->view;
    }
  }
  // The same, to be kept.
  Result<std::shared_ptr<GroupView>> group(std::uint32_t slot) {
    KnownGroups::LookupGuard guard{known_groups_};
    auto found = known_group_at(slot, guard);
    if (!found) return found.error();
    return *found != nullptr ? **found : nullptr;
  }

  // The records, mapped read-only on first use. Any thread.
  Result<const std::byte*> records_for_reading() {
    auto records = kOneMapping ? records_for_writing() : records_in(read_mapping_, Purpose::read);
    if (!records) return records.error();
    return static_cast<const std::byte*>(*records);
  }

  // The records, mapped writable on first use, for publishers and repairers. Any thread.
  Result<std::byte*> records_for_writing() { return records_in(write_mapping_, Purpose::write); }

  // The records, for reading few of them. If the process has not mapped them, `own` maps them, and memory is mapped when
  // it is touched. Any thread.
  Result<const std::byte*> records_for_a_look(Mapping& own) {
    if (kOneMapping) return records_for_reading();
    for (const MappedOnce* once : {&read_mapping_, &write_mapping_})
      if (const Mapping* made = once->get()) return made->data();
    auto mapped = map_records(Purpose::look);
    if (!mapped) return mapped.error();
    own = std::move(*mapped);
    return own.data();
  }

  // Opens the records file. `deleted` if the topic's files are gone. Always for writing, also if it is mapped read-only:
  // if it is in the lower layer of an overlay, only that copies it, and else readers would map another file than writers.
  Result<Fd> open_records() const noexcept {
    auto fd = open_file_at(directory_.get(), kRecordsFile, O_RDWR);
    if (!fd) return is_gone(fd.error());
    return fd;
  }
  // Opens the records file for locking. `deleted` if the topic's files are gone.
  Result<LockFile> open_records_to_lock() const {
    auto file = LockFile::open(directory_.get(), kRecordsFile, O_RDWR);
    if (!file) return is_gone(file.error());
    return file;
  }

  // Populates the page tables of records that just got memory, if they are mapped writable.
  void populate_for_writing(std::uint64_t offset, std::uint64_t size) noexcept {
    if (const Mapping* records = write_mapping_.get()) records->populate(offset, size, true);
  }

  // Policy grow: whether to ask the file system for memory: not for 100 ms after it had none.
  bool may_ask_for_memory() const noexcept {
    return now_ns() >= no_memory_until_ns_.load(std::memory_order_relaxed);  // relaxed: only a time
  }
  void note_no_memory() noexcept {
    constexpr std::int64_t kPause = 100'000'000;  // ns
    no_memory_until_ns_.store(now_ns() + kPause,
                              std::memory_order_relaxed);  // relaxed: only a time
  }

  // A new file description of the control file, for one participant's lock.
  Result<LockFile> open_control_to_lock() const {
    auto file = LockFile::open(directory_.get(), kControlFile, O_RDWR);
    if (!file) return is_gone(file.error());
    if (auto own = is_own_control(file->get()); !own) return own.error();
    return file;
  }
  // For a process that has the topic open, as long as the topic is mapped.
  Result<std::unique_ptr<HeritableLock>> lock_while_open() const {
    auto lock = HeritableLock::take(directory_.get(), kControlFile, lock_offset(kOpenLock));
    if (!lock) return is_gone(lock.error());
    if (auto own = is_own_control((*lock)->get()); !own) return own.error();
    return lock;
  }
  // A file description as above, whether or not the file still has its name. `deleted` if it has none, and its file system
  // opens no such file.
  Result<LockFile> open_control_again() const {
    auto file = LockFile::open_again(control_fd_.get());
    if (!file) return is_gone(file.error());
    return file;
  }

  // Whether this process participated in the topic, or created it and others have participated.
  // False if it only inspected the topic.
  bool was_used() const noexcept {
    return used_ || (made_ && load_relaxed<Why::hint>(header_->next_identity) != 0);
  }
  void note_use() noexcept { used_ = true; }
  void note_made() noexcept { made_ = true; }

  // Returns a unique number for a deletion attempt, to be stored in `deleting`.
  std::uint64_t new_deletion_attempt() noexcept {
    return 1 + fetch_add<Edge::slot>(header_->next_identity, 1);
  }

  // Stores the number of a new deletion attempt and returns it; or returns kDeletionDecided.
  std::uint64_t announce_attempt() noexcept {
    // A unique number, so that the final swap decides this attempt and no other.
    const std::uint64_t attempt = new_deletion_attempt();
    std::uint64_t other = load_relaxed<Why::swap_checks>(header_->deleting);
    // [topic-state] seq_cst: announced before slots are read.
    while (other != kDeletionDecided &&
           !compare_exchange<Edge::topic_state>(header_->deleting, other, attempt)) {
    }
    LEAT_CRASH_POINT("delete:attempted");
    return other == kDeletionDecided ? other : attempt;
  }

  // Whether the topic is deleted: nobody may join any more.
  bool is_deleted() const noexcept {
    // [topic-state] seq_cst: a joiner's slot is visible before it reads this word.
    return load_seq_cst<Edge::topic_state>(header_->deleting) == kDeletionDecided;
  }
  // Whether its files still exist: without them, no process can open it any more.
  bool has_files() const noexcept {
    struct stat file {};
    return ::fstat(control_fd_.get(), &file) != 0 || file.st_nlink != 0;
  }
  // Whether the topic is deleted, or its files are, or are just being deleted (rm -rf): one of them is gone already.
  // For a second after it has waited in vain, it does not wait again: a stranger may have written the numbers of many
  // groups that do not exist.
  bool are_files_deleted() const noexcept {
    constexpr int kChecks = 50;
    constexpr std::int64_t kAgain = 1'000'000'000;
    // relaxed: only a time.
    const bool waits = now_ns() >= no_deletion_until_ns_.load(std::memory_order_relaxed);
    for (int i = 0; i < kChecks; ++i) {
      if (is_deleted() || !has_files()) return true;
      if (!waits) return false;
      LEAT_CRASH_POINT("files:wait");
      sleep_a_millisecond();
    }
    // relaxed: only a time.
    no_deletion_until_ns_.store(now_ns() + kAgain, std::memory_order_relaxed);
    return false;
  }
  // Tells all participants about the deletion. Any process that finds a deleted topic
  // may repeat it.
  void announce_deletion() noexcept {
    fetch_or<Edge::sleeping>(header_->data_wake, kDeleted);
    wake_everybody();
  }

  // Wakes all sleepers on the word, if there are any.
  static void wake(std::uint32_t& word) noexcept {
    // [sleeping] seq_cst: what the sleepers wait for was stored before, by a read-modify-write or
    // with a membarrier on the sleeper's side.
    std::uint32_t value = load_seq_cst<Edge::sleeping>(word);
    while ((value & (kSleeping | kWaking)) != 0) {
      // kWaking stays set until the sleepers are woken: if this process dies or stops before, the
      // next waker wakes them in its place.
      std::uint32_t woken = ((value + kWakeStep) & ~kSleeping) | kWaking;
      if (compare_exchange<Edge::sleeping>(word, value, woken)) {
        futex_wake_all(word);
        // Fails if a sleep or a wake was announced meanwhile.
        compare_exchange<Edge::sleeping>(word, woken, woken & ~kWaking);
        return;
      }
    }
  }
  // Sets the sleeping bit of data_wake and returns the value to sleep on; the caller then checks
  // once more. Sets `*capped` if a publisher may miss the bit: the sleep must then be short.
  std::uint32_t announce_sleep(bool* capped) noexcept {
    // [sleeping] seq_cst: the bit is set before the last check.
    const std::uint32_t value = fetch_or<Edge::sleeping>(header_->data_wake, kSleeping) | kSleeping;
    // [exclusive] seq_cst: an exclusive publisher that is not seen here sees the bit.
    if (load_seq_cst<Edge::exclusive>(header_->exclusive) != 0 && !membarrier_all()) *capped = true;
    LEAT_CRASH_POINT("sleep:announced");
    return value;
  }
  // The same for a word that all who change it wake with wake().
  static std::uint32_t announce_sleep(std::uint32_t& word) noexcept {
    // [sleeping] seq_cst: the bit is set before the last check.
    return fetch_or<Edge::sleeping>(word, kSleeping) | kSleeping;
  }
  // Sleeps on such a word unless `is_over()`. True if a signal ended it.
  template <class IsOver>
  static bool sleep(std::uint32_t& word, const Deadline& deadline, const IsOver& is_over) noexcept {
    const std::uint32_t value = announce_sleep(word);
    return !is_over() && futex_wait(word, value, deadline);
  }
  // A topic to sleep on.
  struct Sleep {
    MappedTopic* topic;
    std::uint32_t expected;  // Value of its data_wake.
  };
  // Sleeps until data_wake of one of the topics differs from its expected value or is woken, a
  // publisher dies between commit and wake-up, or the deadline passes. Other words, if any, are slept
  // on as well. True if a signal ended it. docs/internals/log.md, "Waiting".
  static bool sleep_for_data(std::span<const Sleep> sleeps, const Deadline& deadline,
                             std::span<const FutexWait> others = {}) noexcept {
    std::array<FutexWait, kMaxFutexWaits> words{};
    std::ranges::copy(others, words.begin());
    const std::size_t count = others.size() + sleeps.size();
    for (std::size_t i = 0; i < sleeps.size(); ++i) {
      const TopicHeader& header = *sleeps[i].topic->header_;
      words[others.size() + i] = {&header.data_wake, sleeps[i].expected};
      // relaxed: 0, unless it was corrupted; then there is no robust wake, but no busy loop either.
      words[count + i] = {&header.robust_wake, load_relaxed<Why::hint>(header.robust_wake)};
    }
    if (!kHasRobustWake || !has_futex_waitv() || sleeps.empty()) {
      if (count == 1) return futex_wait(*words[0].word, words[0].expected, deadline);
      return futex_wait_any(std::span{words.data(), count}, deadline) == kInterrupted;
    }
    // After a death, the kernel wakes one sleeper. If that is this one, and it dies before it has woken
    // the others, the kernel wakes the next; with several topics, only for the first.
    const RobustWakeGuard guard{sleeps[0].topic->header_->robust_wake};
    const long last = futex_wait_any(std::span{words.data(), count + sleeps.size()}, deadline);
    // The kernel names only the last word that woke this thread; earlier ones may have been woken, too.
    for (long i = last - static_cast<long>(count); i >= 0; --i)
      sleeps[static_cast<std::size_t>(i)].topic->announce_death();
    return last == kInterrupted;
  }
  // To be called if there is something after a sleep although data_wake is still `expected`: the
  // publisher was stopped before it woke the sleepers.
  void wake_the_others(std::uint32_t expected) noexcept {
    if (load_seq_cst<Edge::sleeping>(header_->data_wake) == expected) wake(header_->data_wake);
  }
  // Makes all sleepers on the word check again, for whatever reason.
  static void raise(std::uint32_t& word) noexcept {
    fetch_add<Edge::sleeping>(word, kWakeStep);
    futex_wake_all(word);
  }
  void wake_everybody() noexcept {
    raise(header_->data_wake);
    raise(header_->space_wake);
    if (durable_) raise(durable_->header().durable_wake);
  }

 private:
  // Called by the sleeper that a robust wake woke, whether there is something for it or not: the dead
  // publisher's record may be for others. They wake because the data word changes, and pass nothing on.
  void announce_death() noexcept {
    const RobustWakeGuard guard{header_->robust_wake};
    LEAT_CRASH_POINT("sleep:rung");
    wake(header_->data_wake);
    if (durable_) wake(durable_->header().durable_wake);
  }

  // `deleted` if what now has the control file's name is another file.
  Result<void> is_own_control(int file) const noexcept {
    const Result<bool> is_same = is_same_file(control_fd_.get(), file);
    if (!is_same) return is_same.error();
    return *is_same ? Result<void>{} : Errc::deleted;
  }
  // A topic whose files are missing was deleted.
  static Error is_gone(Error error) noexcept {
    return error == Errc::not_found ? Error{Errc::deleted, 0} : error;
  }

  enum class Purpose { read, write, look };

  Result<std::byte*> records_in(MappedOnce& once, Purpose purpose) {
    if (const Mapping* made = once.get()) return made->data();
    auto mapped = map_records(purpose);
    if (!mapped) return mapped.error();
    return once.keep(std::move(*mapped)).data();
  }

  // Populates the page tables, except for a look.
  Result<Mapping> map_records(Purpose purpose) noexcept {
    Fd opened;
    if (!records_fd_) {
      auto fd = open_records();
      if (!fd) return fd.error();
      opened = std::move(*fd);
    }
    const int file = records_fd_ ? records_fd_.get() : opened.get();
    auto size = file_size(file);
    if (!size) return size.error();
    if (*size != geometry_.records_size()) return Errc::wrong_format;
    auto populate = geometry_.grows() ? Result<bool>{false} : may_populate(file, *size);
    if (!populate) return populate.error();
    if (purpose == Purpose::look) return Mapping::map(file, *size, false, false);
    const bool writable = purpose == Purpose::write;
    auto mapped = Mapping::map(file, *size, writable, *populate);
    if (mapped && geometry_.grows()) populate_segments_with_memory(*mapped, file, writable);
    return mapped;
  }

  std::uint64_t segments_with_memory() const noexcept {
    std::uint64_t count = 0;
    for (std::uint32_t i = 0; i < geometry_.partition_count; ++i) {
      const PartitionView view = partition(i);
      for (std::uint64_t at = 0; at < geometry_.segment_count; ++at) {
        // relaxed: an estimate, as below.
        if ((load_relaxed<Why::hint>(view.physical[at].last_segment) & kNoMemory) == 0) ++count;
      }
    }
    return count;
  }

  // This may allocate memory again that is being freed at the same time: harmless, and the next
  // shrink frees it.
  void populate_segments_with_memory(const Mapping& mapping, int file,
                                     bool writable) const noexcept {
    // If the file has less, memory was freed meanwhile, or somebody has written that segments have
    // memory which have none. Then pages are mapped when they are touched.
    const std::uint64_t needed = segments_with_memory() * geometry_.segment_size;
    auto memory = file_memory(file);
    if (!memory || *memory < needed) return;
    for (std::uint32_t i = 0; i < geometry_.partition_count; ++i) {
      const PartitionView view = partition(i);
      std::uint64_t first = 0;  // Of a run of segments with memory, which ends before `at`.
      for (std::uint64_t at = 0; at <= geometry_.segment_count; ++at) {
        // relaxed: populating never touches a page that the kernel does not have.
        if (at < geometry_.segment_count &&
            (load_relaxed<Why::hint>(view.physical[at].last_segment) & kNoMemory) == 0) {
          continue;
        }
        if (at != first) {
          mapping.populate(view.records_offset + first * geometry_.segment_size,
                           (at - first) * geometry_.segment_size, writable);
        }
        first = at + 1;
      }
    }
  }

  // `header` is a copy, made before the file is mapped: the only place where the geometry comes from.
  static Result<Geometry> read_geometry(const TopicHeader& header, std::size_t file_size) noexcept {
    if (header.magic != kMagic || header.format_version != kFormatVersion)
      return Errc::wrong_format;
    Geometry geometry;
    geometry.key = header.key;
    geometry.segment_size = header.segment_size;
    geometry.segment_count = header.segment_count;
    geometry.partition_count = header.partition_count;
    geometry.participant_capacity = header.participant_capacity;
    geometry.flags = header.flags;
    geometry.policy = header.policy;
    geometry.revoke_after_ns = header.revoke_after_ns;
    geometry.evict_after_ns = header.evict_after_ns;
    geometry.first_segments = header.first_segments;
    geometry.grow_below = header.grow_below;
    if (!geometry.is_valid()) return Errc::wrong_format;
    geometry.derive();
    if (file_size != geometry.control_size()) return Errc::wrong_format;
    return geometry;
  }

  Geometry geometry_;                        // Constant after attach.
  TopicHeader* header_ = nullptr;            // In control_mapping_.
  ParticipantSlot* participants_ = nullptr;  // In control_mapping_.
  Fd directory_;
  Fd control_fd_;
  Fd records_fd_;  // Durable topics only. Constant after attach.
  Mapping control_mapping_;
  std::unique_ptr<DurableWindow> durable_;  // Constant after attach.
  std::atomic<bool> used_ = false;
  bool made_ = false;
  std::atomic<std::int64_t> no_memory_until_ns_ = 0;
  mutable std::atomic<std::int64_t> no_deletion_until_ns_ = 0;
  KnownGroups known_groups_;
  MappedOnce read_mapping_;
  MappedOnce write_mapping_;
};

}  // namespace leat::inline v0::detail
