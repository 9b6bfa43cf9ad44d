// Waiting until records are on stable storage: publishers with acknowledge = durable, and flush().
//
// Only the archiver's process syncs (log/archiver.hpp). A thread that waits in that process syncs at once. Threads of
// other processes request a sync, and sleep until `durable` has moved. One sync covers everything written before it
// began.
#pragma once

#include <cerrno>
#include <cstdint>
#include <stop_token>

#include "leat/log/archiver_thread.hpp"
#include "leat/log/mapped_topic.hpp"
#include "leat/log/wait_end.hpp"

namespace leat::inline v0::detail {

// The archiver sleeps on `archiver_wake` after it has written something, and on the data word otherwise.
inline void wake_archiver(MappedTopic& topic) noexcept {
  MappedTopic::wake(topic.durable()->header().archiver_wake);
  MappedTopic::wake(topic.header().data_wake);
}

// Requests that the archiver syncs everything before `until`, and does not wait.
inline void request_sync(MappedTopic& topic, std::uint32_t partition,
                         std::uint64_t until) noexcept {
  const DurableWindow& window = *topic.durable();
  if (window.durable(partition) >= until) return;
  window.want(partition, until);
  wake_archiver(topic);
}

// Syncs what is wanted, if this process is the archiver. Only for a wait without an end, which a slow disk
// would delay. (stop_waits() that comes meanwhile waits for that one sync.)
inline void sync_here(MappedTopic& topic, const Deadline& deadline, const std::stop_token* stop,
                      const WaitEnd& end) noexcept {
  ArchiverThread* const archiver = topic.durable()->archiver();
  const bool may_end = !deadline.is_never() || (stop != nullptr && stop->stop_possible()) ||
                       end.interruptible || end.stopped;
  if (archiver != nullptr && !may_end) archiver->sync_here();
}

// Lets the archiver know that a group has moved; see GroupNews. Returns at once.
inline void announce_group_moved(MappedTopic& topic, GroupNews news) noexcept {
  std::uint32_t& word = topic.durable()->header().groups;
  const auto wanted = static_cast<std::uint32_t>(news);
  // [sync] seq_cst, both: the word is read after the cursor was moved, so that an archiver that clears it later sees
  // the move; and it is changed before `archiver_wake` is woken.
  std::uint32_t seen = load_seq_cst<Edge::sync>(word);
  const auto is_less = [&] { return group_news(seen) < news; };
  while (is_less() &&
         !compare_exchange<Edge::sync>(word, seen, (seen & kGroupsUnsettled) | wanted)) {
  }
  if (is_less()) wake_archiver(topic);
}

// Waits until everything before `until` is on stable storage.
//   io_error      writing or syncing failed: what is on stable storage is unknown
//   not_durable   the deadline passed, or a stop was requested; with an errno, the disk is full, or a signal
//                 came (EINTR)
//   deleted
inline Error await_durable(MappedTopic& topic, std::uint32_t partition, std::uint64_t until,
                           const Deadline& deadline, const std::stop_token* stop,
                           const WaitEnd& end = {}) noexcept {
  // ns; notices a stop, and the death of an archiver that had not woken this thread.
  constexpr std::int64_t kCheck = 20'000'000;
  const DurableWindow& window = *topic.durable();
  const auto is_durable = [&] { return window.durable(partition) >= until; };
  while (!is_durable()) {
    switch (window.state()) {
      case DiskState::ok: break;
      case DiskState::no_space: return {Errc::not_durable, window.reason()};
      case DiskState::read_only: return {Errc::io_error, window.reason()};
    }
    if (topic.is_deleted()) return {Errc::deleted};
    if (deadline.passed() || end.came(stop)) return {Errc::not_durable};
    if (MappedTopic::sleep(window.header().durable_wake, deadline.at_most_ns(kCheck), is_durable) &&
        end.interruptible)
      return {Errc::not_durable, EINTR};
  }
  return {};
}

}  // namespace leat::inline v0::detail
