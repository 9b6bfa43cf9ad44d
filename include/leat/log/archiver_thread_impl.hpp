// What a topic's archiver thread does; see log/archiver_thread.hpp.
#pragma once

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>
#include <vector>

#include "leat/base/config.hpp"
#include "leat/base/own_pause.hpp"
#include "leat/log/archiver_thread.hpp"
#include "leat/log/directory.hpp"
#include "leat/os/fork_state.hpp"
#include "leat/os/signals.hpp"

namespace leat::inline v0::detail {

// The archiver threads of this process, which its exit closes. Never destroyed: exit handlers may run at any
// time. A forked child begins with an empty list, and never touches its parent's mutex.
struct ArchiverThreads {
  std::mutex mutex;
  std::vector<std::weak_ptr<ArchiverThread>> threads;
  std::uint32_t fork_generation = detail::fork_generation();
  // What a child inherits and cannot use: only kept, so that it is not a leak.
  ArchiverThreads* of_parent = nullptr;
  std::vector<std::unique_ptr<std::thread>> threads_of_parent;
};
inline ArchiverThreads& archiver_threads_of_process() {
  const ForkHeld held;  // Two threads may open their first topics at once.
  static ArchiverThreads* list = nullptr;
  if (list == nullptr || list->fork_generation != fork_generation()) {
    auto* const of_parent = list;
    list = new ArchiverThreads;
    list->of_parent = of_parent;
  }
  return *list;
}
// What may pass while everybody goes on.
inline bool is_short_of_room(Error error) noexcept {
  return error == Errc::no_space || error == Errc::no_memory;
}
// Whether this process lacks what another one may have: a free descriptor, or the right to make a file, or one that is
// large enough. Never true for the error of a sync (os/disk.hpp).
inline bool is_own_fault(Error error) noexcept {
  return error.system_error == EMFILE || error.system_error == ENFILE ||
         (error == Errc::permission && error.system_error != EROFS) ||
         (error == Errc::no_space && error.system_error == EFBIG);
}
inline void close_archivers_at_exit() {
  std::vector<std::shared_ptr<ArchiverThread>> open;
  {
    ArchiverThreads& list = archiver_threads_of_process();
    const std::lock_guard guard{list.mutex};
    for (auto& one : list.threads)
      if (auto archiver = one.lock()) open.push_back(std::move(archiver));
  }
  for (auto& archiver : open) archiver->close_at_exit();
}

LEAT_INLINE ArchiverThread::ArchiverThread(std::shared_ptr<MappedTopic> topic, Place place) noexcept
    : topic_{std::move(topic)},
      place_{std::move(place)},
      archiver_{topic_, *place_.disk, place_.directory.get(), place_.manifest},
      groups_{*topic_, *place_.disk, place_.directory.get(), place_.manifest} {}

LEAT_INLINE Result<std::shared_ptr<ArchiverThread>> ArchiverThread::start(
    std::shared_ptr<MappedTopic> topic, Place place) {
  std::shared_ptr<ArchiverThread> archiver{new ArchiverThread{std::move(topic), std::move(place)}};
  if (auto opened = archiver->archiver_.open_probe(); !opened) return opened.error();
  {
    static const bool registered = std::atexit(close_archivers_at_exit) == 0;
    (void)registered;
    ArchiverThreads& list = archiver_threads_of_process();
    const std::lock_guard guard{list.mutex};
    std::erase_if(list.threads, [](const auto& one) { return one.expired(); });
    list.threads.push_back(archiver);
  }
  const SignalsBlocked blocked;
  archiver->thread_ = std::make_unique<std::thread>([raw = archiver.get()] { raw->run(); });
  return archiver;
}

LEAT_INLINE ArchiverThread::~ArchiverThread() { close(); }

LEAT_INLINE void ArchiverThread::run() noexcept {
  while (!is_stopping()) {
    if (topic_->is_deleted()) {
      {
        const std::lock_guard guard{work_};
        archiver_.leave();
        is_archiver_ = false;
      }
      back_off(1'000'000'000);
    } else if (archiver_.is_active()) {
      serve();
    } else {
      stand_by();
    }
  }
}

// As the archiver: writes what is there, then sleeps. Pieces are collected for a moment, so that the
// publishers need not wake this thread for each record.
LEAT_INLINE void ArchiverThread::serve() noexcept {
  constexpr std::int64_t kCollect = 2'000'000;  // ns
  constexpr std::int64_t kRepairHoles = 10'000'000;
  std::unique_lock lock{work_};
  archiver_.beat();
  const auto save_if_due = [this]() -> Result<void> {
    auto done = groups_.next_ns() <= now_ns() ? save_groups(false) : Result<void>{};
    if (done && archiver_.next_gaps_ns() <= now_ns()) done = store_gaps();
    return done;
  };
  Result<void> saved;
  // Once before anything that takes long, so that archivers that die one after the other have each saved the groups.
  const bool is_first = std::exchange(is_new_archiver_, false);
  if (is_first) saved = save_if_due();
  // Records do not wait until groups can be saved.
  auto written = write();
  if (written && !is_first) saved = save_if_due();
  if (!written || !saved) {
    handle(written ? saved.error() : written.error());
    return;
  }
  announce(DiskState::ok, 0);
  own_fault_backoff_ns_ = kTryAgain;
  const DurableWindow& window = *topic_->durable();
  // Also while another partition is busy.
  if (*written == 0 || now_ns() >= holes_due_ns_) {
    archiver_.repair_holes();
    holes_due_ns_ = ns_from_now(kRepairHoles);
  }
  if (*written != 0 || std::exchange(was_helped_, false)) {
    if (auto expired = archiver_.expire_while_busy(); !expired) return handle(expired.error());
    // Not while publishers might fill the window meanwhile.
    if (*written >= topic_->geometry().partition_size() / 8) return;
    const std::int64_t until = std::min(ns_from_now(kCollect), next_due_ns());
    lock.unlock();
    MappedTopic::sleep(window.header().archiver_wake,
                       Deadline::never().at_most_ns(until - now_ns()),
                       [&] { return is_stopping() || window.is_any_wanted() || is_due(); });
    return;
  }
  if (auto there = archiver_.check_names(); !there) return handle(there.error());
  if (auto expired = archiver_.expire_if_due(); !expired) return handle(expired.error());
  lock.unlock();
  sleep_for_news();
}

LEAT_INLINE void ArchiverThread::stand_by() noexcept {
  const DurableWindow& window = *topic_->durable();
  if (window.state() == DiskState::read_only) {
    back_off(kStalled);  // Until somebody repairs it.
    return;
  }
  if (!is_safe()) {
    watch_archiver(false);
    return;
  }
  own_fault_backoff_ns_ = kTryAgain;
  const std::uint32_t beats = load_relaxed<Why::hint>(window.header().beats);
  sleep_for_news();
  // Files get too old also while nobody publishes.
  if (archiver_.next_expiry_ns() <= now_ns()) {
    archiver_.put_expiry_off();
    if (const std::uint64_t word = archiver_.word(); !archiver_.is_alive(word))
      (void)try_to_take_over(word);
  } else if (is_unsettled() && (!archiver_.is_alive(archiver_.word()) ||
                                beats == load_relaxed<Why::hint>(window.header().beats))) {
    watch_archiver(true);
  }
}

// Returns when the archiver moves, when there is no more reason to watch it, or when this process has tried to take
// over. `is_calm`: the archiver only waits for acknowledgements, for which it wakes once a second.
LEAT_INLINE void ArchiverThread::watch_archiver(bool is_calm) noexcept {
  constexpr std::int64_t kCheck = 5'000'000;       // ns; whether the archiver is alive
  constexpr std::int64_t kFullDisk = 300'000'000;  // without a move while it waits for room
  const DurableWindow& window = *topic_->durable();
  const auto moves = [this, &window] {
    std::uint64_t sum = load_relaxed<Why::hint>(window.header().beats);
    for (std::uint32_t i = 0; i < topic_->geometry().partition_count; ++i)
      sum += window.written(i) + window.durable(i);
    return sum;
  };
  const std::uint64_t seen = archiver_.word();
  const std::uint64_t before = moves();
  const std::int64_t since = now_ns();
  OwnPause pause;
  while (!is_stopping() && (is_calm ? is_unsettled() : !is_safe()) && archiver_.word() == seen &&
         moves() == before) {
    const std::int64_t now = now_ns();
    pause.check(now);
    // What is written may wait for the next sync, and a group until it is saved.
    const std::int64_t interval = has_unwritten() || window.is_any_wanted() ? 0
                                  : is_calm ? 2 * GroupSaver::kSaveEvery
                                  : has_group_news()
                                      ? std::max(window.sync_interval_ns(), 2 * kShowsLife)
                                      : window.sync_interval_ns();
    const bool is_syncing =
        load_relaxed<Why::hint>(window.header().syncing) == static_cast<std::uint32_t>(seen >> 1);
    const bool is_full = window.state() == DiskState::no_space;
    const std::int64_t patience = interval + (is_syncing ? slow_disk_ns()
                                              : is_full  ? kFullDisk
                                                         : kStalled);
    // An archiver that has just counted the epoch up gets a moment to lock its byte.
    const bool is_gone =
        (seen & 1) != 0 || (!archiver_.is_alive(seen) && pause.is_late(now, since, kCheck));
    const bool is_stalled = pause.is_late(now, since, patience);
    if (window.state() == DiskState::read_only) return;
    if (is_gone || is_stalled) {
      // On such a slow disk the next archiver gets more time: else no archiver would ever finish a sync.
      if (std::uint32_t& count = window.header().slow_syncs; !is_gone && is_syncing)
        store_relaxed<Why::hint>(count, std::min(load_relaxed<Why::hint>(count) + 1, 1000U));
      (void)try_to_take_over(seen);
      return;
    }
    const std::int64_t time = std::clamp(interval / 8, kCheck, kStalled);
    LEAT_CRASH_POINT("archiver:watched");
    pause.sleep_for(time);
    back_off(time);
  }
}

// How long others wait for an archiver that waits for the disk: a second, and twice as long after each archiver that
// was superseded for that.
LEAT_INLINE std::int64_t ArchiverThread::slow_disk_ns() const noexcept {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const auto count = load_relaxed<Why::hint>(topic_->durable()->header().slow_syncs);
  return count < 5 ? kSecond << count : 30 * kSecond;
}

// What failed in another thread comes first: a sync that failed is not tried again.
LEAT_INLINE Result<std::uint64_t> ArchiverThread::write() noexcept {
  if (failed_here_.code != Errc::ok) return std::exchange(failed_here_, {});
  return archiver_.write();
}

LEAT_INLINE void ArchiverThread::sync_here() noexcept {
  if (!is_archiver()) return;
  const std::unique_lock lock{work_, std::try_to_lock};
  if (lock && archiver_.is_active() && !topic_->is_deleted() && failed_here_.code == Errc::ok) {
    if (auto written = archiver_.write(); !written) failed_here_ = written.error();
    was_helped_ = true;
  }
}

LEAT_INLINE bool ArchiverThread::try_to_take_over(std::uint64_t seen) noexcept {
  const std::lock_guard guard{work_};
  failed_here_ = {};
  auto taken = archiver_.take_over(seen);
  if (!taken) {
    handle(taken.error());
    archiver_.leave();  // Another process may have more luck.
    return false;
  }
  is_archiver_ = *taken;
  if (*taken) groups_.begin(archiver_.epoch());
  is_new_archiver_ = *taken;
  return *taken;
}

// Without room on the disk they are saved later.
LEAT_INLINE Result<void> ArchiverThread::save_groups(bool is_closing) noexcept {
  try {
    auto saved = archiver_.wait_for_disk([&] { return groups_.save(is_closing); });
    if (is_closing || !is_short_of_room(saved.error())) return saved;
  } catch (const std::bad_alloc&) {  // Likewise.
    if (is_closing) return Error{Errc::no_memory};
  }
  return {};
}

// Only numbers need them: without room, or what this process lacks, they are stored later.
LEAT_INLINE Result<void> ArchiverThread::store_gaps() noexcept {
  try {
    auto stored = archiver_.store_gaps();
    if (!is_short_of_room(stored.error()) && !is_own_fault(stored.error())) return stored;
  } catch (const std::bad_alloc&) {  // Likewise.
  }
  return {};
}

// Whether something is claimed that cannot be read from disk yet.
LEAT_INLINE bool ArchiverThread::has_unwritten() const noexcept {
  for (std::uint32_t i = 0; i < topic_->geometry().partition_count; ++i) {
    if (end_of_claims(*topic_, i) > topic_->durable()->written(i)) return true;
  }
  return false;
}

// Whether everything that was claimed is where it cannot be lost, and nobody wants more.
LEAT_INLINE bool ArchiverThread::is_safe() const noexcept {
  const DurableWindow& window = *topic_->durable();
  for (std::uint32_t i = 0; i < topic_->geometry().partition_count; ++i) {
    if (end_of_claims(*topic_, i) > window.kept_from(i) || window.is_wanted(i)) return false;
  }
  return !has_group_news();
}

LEAT_INLINE bool ArchiverThread::has_group_news() const noexcept {
  // [sync] seq_cst: read after the sleep is announced.
  return group_news(load_seq_cst<Edge::sync>(topic_->durable()->header().groups)) !=
         GroupNews::none;
}

// Whether nothing tells of a group, but something may be acknowledged.
LEAT_INLINE bool ArchiverThread::is_unsettled() const noexcept {
  return load_relaxed<Why::hint>(topic_->durable()->header().groups) == kGroupsUnsettled;
}

LEAT_INLINE std::int64_t ArchiverThread::next_due_ns() const noexcept {
  return std::min({archiver_.next_sync_ns(), archiver_.next_gaps_ns(), groups_.next_ns()});
}

LEAT_INLINE bool ArchiverThread::is_due() noexcept {
  const std::lock_guard guard{work_};
  return next_due_ns() <= now_ns();
}

// Sleeps until a publisher commits something, or a sync is due; for 10 ms while a full file is being synced,
// or a claim is open, whose owner may be dead.
LEAT_INLINE void ArchiverThread::sleep_for_news() noexcept {
  bool capped = false;
  const MappedTopic::Sleep sleep{topic_.get(), topic_->announce_sleep(&capped)};
  if (is_stopping()) return;
  std::int64_t next = Archiver::kNever;
  bool polls_often = false;
  bool is_unsaved = false;
  bool is_watching = false;
  {
    const std::lock_guard guard{work_};
    polls_often = archiver_.is_finishing();
    is_unsaved = archiver_.is_active() && has_group_news();
    is_watching = !archiver_.is_active() && is_unsettled();
    if (archiver_.is_active() ? archiver_.has_work() || groups_.next_ns() <= now_ns() : !is_safe())
      return;
    next = std::min(archiver_.is_active() ? next_due_ns() : Archiver::kNever,
                    archiver_.next_expiry_ns());
  }
  polls_often = polls_often || has_unwritten();
  Deadline deadline = capped        ? Deadline{std::chrono::milliseconds{1}}
                      : polls_often ? Deadline{std::chrono::milliseconds{10}}
                      : is_unsaved  ? Deadline{std::chrono::nanoseconds{kShowsLife}}
                      : is_watching ? Deadline{std::chrono::nanoseconds{kCheckCalmArchiver}}
                                    : Deadline::never();
  if (next != Archiver::kNever) deadline = deadline.at_most_ns(next - now_ns());
  MappedTopic::sleep_for_data({&sleep, 1}, deadline);
}

LEAT_INLINE void ArchiverThread::back_off(std::int64_t ns) noexcept {
  futex_wait(stopping_, 0, Deadline{std::chrono::nanoseconds{ns}});
}

// Called when a call of `archiver_` has failed. It is tried again if the disk is full, which may pass, or if this
// process lacks something that another one may have. Other errors are final, because what is on stable storage is
// unknown.
LEAT_INLINE void ArchiverThread::handle(Error error) noexcept {
  // A superseded archiver reads memory that is being reused, and one of a deleted topic finds no files:
  // their errors mean nothing.
  if (error == Errc::not_in_flight || !archiver_.is_own() || topic_->is_deleted()) {
    archiver_.leave();
  } else if (is_own_fault(error)) {
    announce(DiskState::no_space, error.system_error);
    archiver_.leave();  // Another process may take over.
    back_off(own_fault_backoff_ns_);
    // Each attempt is a new epoch, and may leave a file behind.
    own_fault_backoff_ns_ = std::min(2 * own_fault_backoff_ns_, 32 * kTryAgain);
  } else if (is_short_of_room(error)) {
    announce(DiskState::no_space, error.system_error);
    auto expired = archiver_.is_active() ? archiver_.expire_if_due() : Result<void>{};
    if (!expired && !is_short_of_room(expired.error())) return handle(expired.error());
    back_off(kTryAgain);
  } else {
    // No handover: what this one has written counts only if it was synced.
    announce(DiskState::read_only, error.system_error);
    archiver_.leave();
  }
  is_archiver_ = archiver_.is_active();
}

// Tells publishers that wait, and `info`.
LEAT_INLINE void ArchiverThread::announce(DiskState state, std::int32_t reason) noexcept {
  const DurableWindow& window = *topic_->durable();
  if (window.state() == state && (state == DiskState::ok || window.reason() == reason)) return;
  archiver_.publish_state(state, reason);
  topic_->wake_everybody();
}

LEAT_INLINE void ArchiverThread::close() noexcept {
  if (fork_generation_ != fork_generation()) {
    if (thread_) archiver_threads_of_process().threads_of_parent.push_back(std::move(thread_));
    return;
  }
  if (std::exchange(is_closed_, true)) return;
  store_relaxed<Why::hint>(stopping_, 1U);
  futex_wake_all(stopping_);
  MappedTopic::wake(topic_->durable()->header().archiver_wake);
  topic_->wake_everybody();
  if (thread_) thread_->join();
  drain();
  is_archiver_ = false;
}

// Other threads may still use the process's publishers and members, and be waited for: then this goes on until the
// process ends, which is like a kill. What is there by now is written.
LEAT_INLINE void ArchiverThread::close_at_exit() noexcept {
  if (!has_users()) return close();
  const std::lock_guard guard{work_};
  for (const Deadline deadline{std::chrono::seconds{1}};
       archiver_.is_active() && !deadline.passed();) {
    auto written = write();
    if (!written) return handle(written.error());
    if (*written == 0) return;
  }
}

// The last to leave writes what is left. One after the other, so that one of two that leave at once
// sees that it is the last.
LEAT_INLINE void ArchiverThread::drain() noexcept {
  LockFile leaving;
  if (auto opened = open_data_lock(place_.directory.get())) leaving = std::move(*opened);
  const bool alone = leaving.get() >= 0 && lock_until(leaving, kLeavingLock, LockKind::exclusive,
                                                      Deadline{std::chrono::seconds{1}});
  LEAT_CRASH_POINT("archiver:leaving");
  auto last =
      alone ? place_.attached.try_lock(kAttachLock, LockKind::exclusive) : Result<bool>{false};
  bool is_last = last && *last;
  // Of a read-only topic nobody takes it: memory may have the only copy, and stays.
  if (is_last && !archiver_.is_active() && !topic_->is_deleted())
    (void)try_to_take_over(archiver_.word());
  const std::lock_guard guard{work_};  // Other threads may still publish while a process exits.
  const Deadline deadline{std::chrono::seconds{1}};
  while (archiver_.is_active()) {
    auto written = write();
    if (!written) {
      handle(written.error());
      break;
    }
    // Others may publish for ever: the end of a frame is a good moment for a handover.
    if (*written != 0 && (is_last || !deadline.passed())) continue;
    // So that the next archiver need not rely on a sync that this one did not do.
    auto synced = topic_->durable()->durability() == StoredDurability::os
                      ? archiver_.finish_full_files()
                      : archiver_.sync_all();
    if (synced && !is_last && archiver_.has_unstored_gaps()) synced = store_gaps();
    if (!synced) {
      handle(synced.error());
      break;
    }
    // That may have taken long, and others did not wait for it to leave.
    if (alone && !is_last) {
      auto now = place_.attached.try_lock(kAttachLock, LockKind::exclusive);
      if (is_last = now && *now; is_last) continue;
    }
    // The last one may fill all holes; others leave what follows an open claim to the next archiver.
    if (!is_last || !has_unwritten() || deadline.passed()) break;
    archiver_.repair_holes();
  }
  // Processes that have the topic open for a moment only would leave more and more.
  while (is_last && archiver_.is_active() && archiver_.has_more_to_expire() && !deadline.passed()) {
    if (auto expired = archiver_.expire_if_due(); !expired) {
      handle(expired.error());
      break;
    }
  }
  if (is_last && archiver_.is_active() && !topic_->is_deleted() && !has_unwritten()) {
    auto closed = save_groups(true);
    if (closed) closed = archiver_.close_files();
    if (closed) {
      LEAT_CRASH_POINT("archiver:closed");
      if (delete_window()) {
        archiver_.leave();
      } else if (auto open = archiver_.reopen(); !open) {
        handle(open.error());
      }
    } else {
      handle(closed.error());
    }
  }
  archiver_.hand_over();
  place_.attached.close();
}

// The records are on disk: what is in memory is no longer needed. False if a thread joins while the process exits, or
// if this process may not delete names there: then the window stays, and the next process that opens the topic uses it.
LEAT_INLINE bool ArchiverThread::delete_window() noexcept {
  auto directory = open_directory_at(topic_->directory_fd(), "..");
  const Error refused =
      directory ? may_finish_deletion(*directory, place_.name).error() : directory.error();
  // Other errors, as too few descriptors, are not everybody's: the next process finishes the deletion.
  if (refused == Errc::permission) return false;
  std::uint64_t attempt = topic_->announce_attempt();
  if (attempt != kDeletionDecided) {
    const bool in_use = has_users();
    // Fails if a thread joined meanwhile.
    if (!compare_exchange<Edge::topic_state>(topic_->header().deleting, attempt,
                                             in_use ? 0 : kDeletionDecided) ||
        in_use)
      return false;
  }
  topic_->announce_deletion();
  if (directory) (void)finish_deletion(*directory, place_.name);
  return true;
}

// Whether this process has publishers or members.
LEAT_INLINE bool ArchiverThread::has_users() const noexcept {
  for (std::uint32_t i = 0; i < topic_->participant_high(); ++i) {
    const ParticipantSlot& slot = topic_->participant(i);
    // [topic-state] seq_cst: a participant that this check misses sees the attempt.
    const std::uint64_t state = load_seq_cst<Edge::topic_state>(slot.state);
    const bool is_own = load_relaxed<Why::stored_before>(slot.process) == process_token();
    if (is_own && (is_publisher(state) || role_of(state) == ParticipantRole::member)) return true;
  }
  return false;
}

}  // namespace leat::inline v0::detail
