// The epoch of a durable topic's archiver: a number, the lock that shows that its owner is alive, and the words that
// only the owner of the latest number can change.
//
//     ArchiverEpoch epoch{window};
//     if (*epoch.take(directory, epoch.word(), partition_count)) epoch.move(word, offset);
//     epoch.release();
//
// Used by one thread at a time. docs/internals/durable.md, "Epochs", says why a superseded archiver changes
// nothing.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "leat/base/clock.hpp"
#include "leat/base/crash_point.hpp"
#include "leat/log/durable_window.hpp"
#include "leat/store/data_lock.hpp"
#include "leat/store/file_names.hpp"

namespace leat::inline v0::detail {

class ArchiverEpoch {
 public:
  explicit ArchiverEpoch(DurableWindow& window) noexcept : window_{window} {}

  // Opens the file whose locks show whether an archiver is alive.
  Result<void> open_probe(int directory) {
    auto file = open_data_lock(directory);
    if (!file) return file.error();
    probe_ = std::move(*file);
    return {};
  }

  // The word that take() needs. Bit 0: the epoch is vacant, because its archiver handed over in order.
  std::uint64_t word() const noexcept {
    // [archiver] acquire: what a handover says of the files was stored before.
    return load_acquire<Edge::archiver>(window_.header().epoch);
  }
  // Whether the archiver that the word names is alive. Takes a system call.
  bool is_alive(std::uint64_t word) const noexcept {
    return lock_.get() >= 0 ? true : byte_is_locked(probe_.get(), lock_of(word >> 1));
  }
  std::uint64_t number() const noexcept { return number_; }
  // Whether no process has become the archiver after this one's last attempt.
  bool is_own() const noexcept { return word() == number_ << 1; }

  // Counts the word up from `seen`, locks the byte of the new number, and puts the number on all words. False if
  // another process does that.
  Result<bool> take(int directory, std::uint64_t seen, std::uint32_t partitions) {
    number_ = (seen >> 1) + 1;
    if (number_ > kMaxGeneration) return Errc::corrupt;
    std::uint64_t expected = seen;
    if (!compare_exchange<Edge::archiver>(window_.header().epoch, expected, number_ << 1))
      return false;
    LEAT_CRASH_POINT("archiver:counted");
    auto lock = open_data_lock(directory);
    if (!lock) return lock.error();
    auto locked = lock->try_lock(lock_of(number_));
    if (!locked) return locked.error();
    // Others may have found the byte unlocked and counted on.
    if (!*locked || !is_own()) return false;
    LEAT_CRASH_POINT("archiver:locked");
    if (!take_words(partitions)) return false;
    lock_ = std::move(*lock);
    return true;
  }
  // Marks the epoch as vacant. Does nothing if this process was superseded.
  void hand_over() noexcept {
    // [archiver] release: after what it says of the files.
    std::uint64_t own = number_ << 1;
    compare_exchange<Edge::archiver>(window_.header().epoch, own, own | 1);
  }
  void release() noexcept { lock_ = {}; }

  bool set(OwnedWord& word, std::uint64_t to) noexcept { return set_owned(word, number_, to); }
  // For an offset that only grows.
  bool move(OwnedWord& word, std::uint64_t to) noexcept {
    const OwnedWord seen = read_owned(word);
    return seen.epoch == number_ && (seen.value >= to || set(word, to));
  }

  // Publishes the state of the disk, unless this process was superseded.
  void publish_state(DiskState state, std::int32_t reason) noexcept {
    if (!take_owned(window_.header().trouble, number_)) return;  // take() may have failed before.
    (void)set(window_.header().trouble,
              static_cast<std::uint64_t>(state) | std::uint64_t{static_cast<std::uint32_t>(reason)}
                                                      << 32);
  }
  // Shows the processes that stand by that this archiver is not stopped.
  void beat() noexcept {
    std::uint32_t& beats = window_.header().beats;
    store_relaxed<Why::hint>(beats, load_relaxed<Why::hint>(beats) + 1);
  }
  // Calls `work`, which waits for the disk, and lets other processes know that this may take long.
  template <class Work>
  std::invoke_result_t<Work> wait_for_disk(const Work& work) {
    std::uint32_t& syncing = window_.header().syncing;
    const auto own = static_cast<std::uint32_t>(number_);
    // [archiver] Swapped, so that it never replaces the number of a later archiver.
    std::uint32_t seen = load_relaxed<Why::hint>(syncing);
    while (seen < own && !compare_exchange<Edge::archiver>(syncing, seen, own)) {
    }
    auto done = work();
    compare_exchange<Edge::archiver>(syncing, seen = own, 0U);
    return done;
  }
  // Called after a sync that began at `began_ns`. If it was quick, others have less patience with later ones.
  void note_sync(std::int64_t began_ns) noexcept {
    constexpr std::int64_t kQuick = 1'000'000'000;
    std::uint32_t& slow = window_.header().slow_syncs;
    const std::uint32_t count = load_relaxed<Why::hint>(slow);
    if (count != 0 && now_ns() - began_ns < kQuick && is_own())
      store_relaxed<Why::hint>(slow, count - 1);
  }

 private:
  static std::int64_t lock_of(std::uint64_t number) noexcept {
    return kArchiverLock + static_cast<std::int64_t>(number);
  }

  // Puts the number on all words. False if a later archiver's number is on one.
  bool take_words(std::uint32_t partitions) noexcept {
    if (!take_owned(window_.header().trouble, number_)) return false;
    for (std::uint32_t i = 0; i < partitions; ++i) {
      DurablePartition& part = window_.partition(i);
      for (OwnedWord* word : {&part.written, &part.durable, &part.file_base, &part.file_generation,
                              &part.file_bytes, &part.newest_ms}) {
        if (!take_owned(*word, number_)) return false;
      }
    }
    return true;
  }

  DurableWindow& window_;
  std::uint64_t number_ = 0;
  LockFile probe_;
  LockFile lock_;  // Locks the byte of the number while this process is the archiver.
};

}  // namespace leat::inline v0::detail
