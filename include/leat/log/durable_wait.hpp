// Waiting until records are on the medium: publishers with acknowledge = durable, and flush().
//
// Only the keeper syncs (log/office.hpp). Who waits asks it, and sleeps until `durable` has moved: all
// that was written before a sync began is acknowledged by that one sync.
#pragma once

#include <cstdint>
#include <stop_token>

#include "leat/log/shared_topic.hpp"

namespace leat::inline v0::detail {

// Asks the keeper to sync everything before `until`, and does not wait.
inline void request_sync(SharedTopic& topic, std::uint32_t partition,
                         std::uint64_t until) noexcept {
  const DurableWindow& window = *topic.durable();
  if (window.durable(partition) >= until) return;
  window.want(partition, until);
  // It naps on its bell after it has written something, and sleeps on the data word otherwise.
  window.ring_bell();
  SharedTopic::wake(topic.header().data_wake);
}

// Waits until everything before `until` is on the medium.
//   io_error      writing or syncing failed: what the medium has is unknown
//   not_durable   the deadline passed, or a stop was requested, or the disk is full (then with the errno)
//   deleted
inline Error await_durable(SharedTopic& topic, std::uint32_t partition, std::uint64_t until,
                           const Deadline& deadline, const std::stop_token* stop) noexcept {
  constexpr std::int64_t kLookForStop = 20'000'000;  // ns
  const DurableWindow& window = *topic.durable();
  std::uint32_t& word = window.header().durable_wake;
  for (;;) {
    // [sync] seq_cst: the bit is set before the last check.
    const std::uint32_t value = fetch_or<Edge::sleeping>(word, kSleeping) | kSleeping;
    if (window.durable(partition) >= until) return {};
    if (const DiskState state = window.state(); state == DiskState::read_only) {
      return {Errc::io_error, window.reason()};
    } else if (state == DiskState::no_space) {
      return {Errc::not_durable, window.reason()};
    }
    if (topic.is_deleted()) return {Errc::deleted};
    if (deadline.passed() || (stop != nullptr && stop->stop_requested()))
      return {Errc::not_durable};
    const bool may_stop = stop != nullptr && stop->stop_possible();
    futex_wait(word, value, may_stop ? deadline.at_most_ns(kLookForStop) : deadline);
  }
}

}  // namespace leat::inline v0::detail
