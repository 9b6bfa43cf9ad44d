// Making a publisher, and the memory of batches.
#pragma once

#include <algorithm>
#include <cstring>
#include <new>
#include <span>

#include "leat/base/config.hpp"
#include "leat/base/replace.hpp"
#include "leat/log/durable_wait.hpp"
#include "leat/log/participants.hpp"
#include "leat/log/room_holders.hpp"
#include "leat/log/wait_fd.hpp"
#include "leat/topic.hpp"

namespace leat::inline v0 {

LEAT_INLINE Result<Publisher> Topic::publisher(const PublisherOptions& options) const {
  const detail::Geometry& geometry = topic_->geometry();
  if (options.partition && *options.partition >= geometry.partition_count)
    return Errc::invalid_argument;
  const detail::DurableWindow* const window = topic_->durable();
  if (options.acknowledge == Stage::durable && window == nullptr) return Errc::needs_durable;
  const bool exclusive = options.exclusive || (geometry.flags & detail::kSingleWriter) != 0;
  auto records = topic_->records_for_writing();
  if (!records) return records.error();

  auto joined = join(
      exclusive ? detail::ParticipantRole::exclusive_publisher : detail::ParticipantRole::publisher,
      [](std::uint32_t) {});
  if (!joined) return joined.error();
  if (exclusive) {
    if (auto alone = become_exclusive(*joined); !alone) return alone.error();
  } else {
    // [exclusive] seq_cst: the slot is visible before the word is read.
    std::uint64_t holder =
        detail::load_seq_cst<detail::Edge::exclusive>(topic_->header().exclusive);
    while (holder != 0) {
      if (detail::byte_is_locked(topic_->control_fd(), detail::lock_offset(holder)))
        return Errc::busy;
      // It is dead: readers repair what it left open, as for any publisher.
      detail::compare_exchange<detail::Edge::exclusive>(topic_->header().exclusive, holder, 0);
      holder = detail::load_seq_cst<detail::Edge::exclusive>(topic_->header().exclusive);
    }
  }

  Publisher publisher;
  publisher.place_.reset(new detail::PublisherPlace{&publisher});
  const std::uint32_t index = joined->index();
  publisher.participant_ = std::move(*joined);
  publisher.max_payload_ = geometry.max_payload();
  publisher.exclusive_ = exclusive;
  publisher.timestamps_ = (geometry.flags & detail::kTimestamps) != 0;
  publisher.waits_for_disk_ = window != nullptr && options.acknowledge.value_or(
                                                       detail::stage_of(*window)) == Stage::durable;
  publisher.home_partition_ =
      options.partition ? *options.partition
      : geometry.partition_count == 1
          ? 0
          : detail::fetch_add<detail::Edge::slot>(topic_->header().next_partition, 1) %
                geometry.partition_count;
  const bool has_membarrier = detail::membarrier_register();
  if (options.offset_limit)
    publisher.offset_limit_ =
        std::make_unique<const Callback<std::uint64_t()>>(options.offset_limit);
  publisher.wait_end_ = std::make_unique<detail::WaitEnd>();
  publisher.wait_end_->interruptible = options.interruptible;
  for (std::uint32_t i = 0; i < geometry.partition_count; ++i) {
    publisher.writers_.emplace_back(*topic_, i, index, *records, exclusive);
    publisher.writers_.back().set_wait_end(publisher.wait_end_.get());
    publisher.writers_.back().set_limit(publisher.offset_limit_.get());
    if (!has_membarrier) publisher.writers_.back().use_fences();
  }
  return publisher;
}

LEAT_INLINE Publisher::Publisher() noexcept = default;
LEAT_INLINE Publisher::Publisher(Publisher&& other) noexcept : PublisherParts{std::move(other)} {
  if (place_ != nullptr) place_->publisher = this;
}
LEAT_INLINE Publisher& Publisher::operator=(Publisher&& other) noexcept {
  return detail::replace(*this, other);
}
LEAT_INLINE Publisher::~Publisher() = default;

[[gnu::noinline]] LEAT_INLINE Result<std::uint64_t> Publisher::wait_for_disk(
    const detail::PartitionWriter& writer, std::uint64_t first, const Deadline& deadline,
    const std::stop_token* stop) noexcept {
  detail::MappedTopic& topic = participant_.topic();
  const std::uint64_t until = writer.claimed_until();
  last_offset_ = until - 1;
  topic.durable()->want(writer.partition(), until);
  detail::sync_here(topic, deadline, stop, *wait_end_);
  detail::request_sync(topic, writer.partition(), until);
  const Error error =
      detail::await_durable(topic, writer.partition(), until, deadline, stop, *wait_end_);
  if (error.code != Errc::ok) return error;
  return first;
}

LEAT_INLINE void Publisher::stop_waits() noexcept {
  wait_end_->stopped = true;
  if (participant_ && !participant_.forked()) participant_.topic().wake_everybody();
}

LEAT_INLINE Result<void> Publisher::request_sync() noexcept {
  if (participant_.forked()) return Errc::forked;
  detail::MappedTopic& topic = participant_.topic();
  if (topic.durable() == nullptr) return Errc::needs_durable;
  for (const detail::PartitionWriter& writer : writers_)
    detail::request_sync(topic, writer.partition(), writer.claimed_until());
  return {};
}

LEAT_INLINE Result<void> Publisher::flush(const Deadline& deadline,
                                          const std::stop_token& stop) noexcept {
  if (participant_.forked()) return Errc::forked;
  detail::MappedTopic& topic = participant_.topic();
  if (topic.durable() == nullptr) return Errc::needs_durable;
  for (const detail::PartitionWriter& writer : writers_)
    if (writer.is_claim_open()) return Errc::busy;
  for (const detail::PartitionWriter& writer : writers_)
    topic.durable()->want(writer.partition(), writer.claimed_until());
  detail::sync_here(topic, deadline, &stop, *wait_end_);
  if (auto requested = request_sync(); !requested) return requested;
  for (const detail::PartitionWriter& writer : writers_) {
    const Error error = detail::await_durable(topic, writer.partition(), writer.claimed_until(),
                                              deadline, &stop, *wait_end_);
    if (error.code != Errc::ok) return error;
  }
  return {};
}

LEAT_INLINE std::uint64_t Publisher::durable_offset(
    std::optional<std::uint32_t> partition) noexcept {
  const std::uint32_t which = partition.value_or(home_partition_);
  if (participant_.forked() || which >= writers_.size()) return 0;
  const detail::MappedTopic& topic = participant_.topic();
  if (topic.durable() == nullptr) return 0;
  if (durable_fd_ != nullptr) durable_fd_->arm_again();
  return topic.durable()->durable(which);
}

LEAT_INLINE Result<int> Publisher::durable_fd() {
  if (participant_.forked()) return Errc::forked;
  if (participant_.topic().durable() == nullptr) return Errc::needs_durable;
  if (durable_fd_ == nullptr) {
    auto made = detail::WaitFd::start(participant_.mapped_topic(),
                                      &participant_.topic().durable()->header().durable_wake);
    if (!made) return made.error();
    durable_fd_ = std::move(*made);
    durable_fd_->arm_again();
  }
  return durable_fd_->fd();
}

LEAT_INLINE Result<int> Publisher::room_fd(std::optional<std::uint32_t> partition) {
  if (participant_.forked()) return Errc::forked;
  const std::uint32_t which = partition.value_or(home_partition_);
  if (which >= writers_.size()) return Errc::invalid_argument;
  detail::PartitionWriter& writer = writers_[which];
  if (writer.room_fd() == nullptr) {
    auto made = detail::WaitFd::start(participant_.mapped_topic(),
                                      &participant_.topic().header().space_wake);
    if (!made) return made.error();
    (*made)->signal();  // The caller may have been refused before.
    writer.set_room_fd(std::move(*made));
  }
  return writer.room_fd()->fd();
}

LEAT_INLINE Result<std::vector<RoomHolder>> Publisher::waiting_for(
    std::optional<std::uint32_t> partition) const {
  if (participant_.forked()) return Errc::forked;
  const std::uint32_t which = partition.value_or(home_partition_);
  if (which >= writers_.size()) return Errc::invalid_argument;
  return detail::RoomHolders{participant_.topic(), which}.find();
}

LEAT_INLINE Batch::Batch(Publisher& publisher, std::uint32_t partition) noexcept
    : place_{publisher.place_.get()},
      writer_{publisher.writers_.data() + partition},
      memory_{std::move(publisher.spare_memory_)},
      memory_capacity_{std::exchange(publisher.spare_capacity_, 0)},
      partition_{partition},
      timestamps_{publisher.timestamps_} {
  ++place_->users;
  if (!publisher.exclusive_) use_memory();
}

LEAT_INLINE Batch::Batch(Batch&& other) noexcept
    : place_{std::exchange(other.place_, nullptr)},
      writer_{other.writer_},
      frames_{other.frames_},
      capacity_{other.capacity_},
      size_{other.size_},
      memory_{std::move(other.memory_)},
      memory_capacity_{other.memory_capacity_},
      partition_{other.partition_},
      count_{other.count_},
      fork_generation_{other.fork_generation_},
      is_in_log_{other.is_in_log_},
      timestamps_{other.timestamps_} {
  if (place_ != nullptr && place_->publisher != nullptr && is_in_log_) writer_->resume_loan(*this);
}

LEAT_INLINE Batch::~Batch() {
  if (place_ == nullptr) return;
  if (Publisher* const publisher = place_->publisher; publisher != nullptr) {
    if (is_in_log_) writer_->end_loan();
    if (memory_capacity_ > publisher->spare_capacity_) {
      publisher->spare_memory_ = std::move(memory_);
      publisher->spare_capacity_ = memory_capacity_;
    }
  }
  place_->drop();
}

// Room for `at_least` bytes of frames in all.
LEAT_INLINE void Batch::make_room(std::uint64_t at_least) {
  const std::uint64_t most = publisher().max_payload_ - sizeof(detail::BatchHeader);
  if (size_ == 0 && !is_in_log_ && !publisher().participant_.forked()) {
    const std::span<std::byte> room = writer_->lend(*this);
    if (room.size() >= at_least) {
      frames_ = room.data();
      capacity_ = std::min<std::uint64_t>(room.size(), most);
      is_in_log_ = true;
      return;
    }
    if (!room.empty()) writer_->end_loan();
    use_memory();
    if (capacity_ >= at_least) return;
  }
  const std::uint64_t capacity = std::min(std::max<std::uint64_t>(4096, 2 * at_least), most);
  std::unique_ptr<std::byte[]> larger;
  if (memory_capacity_ < at_least) larger.reset(new std::byte[capacity]);
  std::byte* const to = larger != nullptr ? larger.get() : memory_.get();
  // A child process cannot commit, and does not touch the log: its memory may be freed by now.
  const detail::Participant& participant = publisher().participant_;
  const bool is_inherited = is_in_log_ && participant && participant.forked();
  if (size_ != 0 && !is_inherited) std::memcpy(to, frames_, size_);
  if (larger != nullptr) {
    memory_ = std::move(larger);
    memory_capacity_ = capacity;
  }
  if (is_in_log_) writer_->end_loan();
  use_memory();
}

LEAT_INLINE bool Batch::move_out() noexcept {
  try {
    make_room(size_);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace leat::inline v0
