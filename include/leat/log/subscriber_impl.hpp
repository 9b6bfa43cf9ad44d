// Making a subscriber, and what it does when there is nothing to deliver.
#pragma once

#include <algorithm>

#include "leat/base/config.hpp"
#include "leat/base/replace.hpp"
#include "leat/log/participants.hpp"
#include "leat/log/topic_info_impl.hpp"
#include "leat/os/processor.hpp"
#include "leat/topic.hpp"

namespace leat::inline v0 {

LEAT_INLINE Result<Subscriber> Topic::subscriber(const SubscriberOptions& options) const {
  const detail::Geometry& geometry = topic_->geometry();
  if (options.gating && policy() == Policy::overwrite) return Errc::not_with_overwrite;
  if (options.gating && options.in_place)
    return Errc::invalid_argument;  // A gating subscriber always reads in place.
  if (options.partition && *options.partition >= geometry.partition_count)
    return Errc::invalid_argument;
  const bool by_offset = options.from.at_ == detail::StartAt::offset;
  if (by_offset && !options.partition && geometry.partition_count > 1)
    return Errc::invalid_argument;
  const bool by_time = options.from.time_ms_ >= 0;
  if (by_time && (geometry.flags & detail::kTimestamps) == 0) return Errc::needs_timestamps;
  auto records = topic_->records_for_reading();
  if (!records) return records.error();

  // Subscribers of a durable topic never hold up publishers: what they miss they read from disk.
  const bool is_durable = topic_->durable() != nullptr;
  if (is_durable && options.in_place) return Errc::not_with_durable;
  if (!is_durable && options.read == Stage::durable) return Errc::needs_durable;
  const Stage read =
      is_durable ? options.read.value_or(detail::stage_of(*topic_->durable())) : Stage::committed;
  const auto mode =
      options.gating && !is_durable ? detail::ReaderMode::gating : detail::ReaderMode::lossy;
  const std::uint32_t first = options.partition.value_or(0);
  const std::uint32_t last = options.partition ? first : geometry.partition_count - 1;
  Subscriber subscriber;
  const auto prepare = [&](std::uint32_t index) {
    subscriber.readers_.clear();
    for (std::uint32_t i = first; i <= last; ++i) {
      subscriber.readers_.emplace_back(*topic_, i, index, *records, mode, options.in_place, read);
      subscriber.readers_.back().prepare(options.from.at_);
    }
  };
  auto joined = join(detail::ParticipantRole::subscriber, prepare);
  if (!joined) return joined.error();
  subscriber.begin(std::move(*joined), {.spin_ns = options.spin.count(),
                                        .patience_ns = options.patience.count(),
                                        .any_thread = options.any_thread,
                                        .interruptible = options.interruptible});
  subscriber.in_place_ = options.in_place;
  std::vector<PartitionInfo> extents;
  if (options.from.at_ == detail::StartAt::last) extents = detail::extents_of(*topic_);
  for (auto& reader : subscriber.readers_) {
    detail::StartAt at = options.from.at_;
    std::uint64_t offset = options.from.offset_;
    if (at == detail::StartAt::last) {
      at = detail::StartAt::offset;
      offset = extents[reader.partition()].offset_of_last(offset);
    }
    if (auto settled = reader.settle(at, offset); !settled) return settled.error();
    if (!by_time) continue;
    if (auto skipped = reader.skip_until_time(options.from.time_ms_); !skipped)
      return skipped.error();
  }
  return subscriber;
}

LEAT_INLINE Subscriber::Subscriber() : Waiter{false} {}
LEAT_INLINE Subscriber::Subscriber(Subscriber&&) noexcept = default;
LEAT_INLINE Subscriber& Subscriber::operator=(Subscriber&& other) noexcept {
  return detail::replace(*this, other);
}
LEAT_INLINE Subscriber::~Subscriber() = default;

LEAT_INLINE std::uint64_t Subscriber::offset(std::uint32_t partition) const noexcept {
  for (const auto& reader : readers_) {
    if (reader.partition() == partition) return reader.offset();
  }
  return 0;
}

LEAT_INLINE bool Subscriber::is_lossy() const noexcept {
  for (const auto& reader : readers_) {
    if (reader.is_lossy()) return true;
  }
  return false;
}

LEAT_INLINE void Subscriber::read_memory_only(bool is_on) noexcept {
  for (auto& reader : readers_) reader.read_memory_only(is_on);
}

LEAT_INLINE bool Subscriber::next_is_on_disk() const noexcept {
  for (const auto& reader : readers_) {
    if (reader.next_is_on_disk()) return true;
  }
  return false;
}

[[gnu::noinline]] LEAT_INLINE Result<std::size_t> Subscriber::after_gaps() {
  note_gaps();
  return std::size_t{0};
}

[[gnu::noinline]] LEAT_INLINE Result<std::size_t> Subscriber::after_empty_poll() {
  detail::finish_loads();  // The caller may poll again at once.
  if (auto noted = note_nothing(); !noted) return noted.error();
  return std::size_t{0};
}

LEAT_INLINE bool Subscriber::is_ready() noexcept {
  for (const auto& reader : readers_) {
    if (reader.is_ready()) return true;
  }
  return false;
}

LEAT_INLINE Result<std::int64_t> Subscriber::housekeep() {
  std::int64_t limit_ns = 0;
  for (auto& reader : readers_) {
    if (reader.has_hole()) limit_ns = detail::kCheckAgain;
    if (auto checked = reader.repair_hole(); !checked) return checked.error();
  }
  return limit_ns;
}

LEAT_INLINE Result<std::size_t> wait_any(std::span<Subscriber* const> subscribers,
                                         const Deadline& deadline, const std::stop_token& stop) {
  if (subscribers.size() > kMaxWaitAny) return Errc::invalid_argument;
  detail::Waiter* waiters[kMaxWaitAny];
  std::size_t count = 0;
  for (Subscriber* subscriber : subscribers) waiters[count++] = subscriber;
  return detail::Waiter::wait_any({waiters, count}, deadline, stop);
}

}  // namespace leat::inline v0
