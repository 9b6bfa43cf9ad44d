// Publishing to a topic.
//
//     auto publisher = topic->publisher();
//     auto offset = publisher->publish("hello");
//     auto claim = publisher->try_claim(size);          // write in place
//     fill(claim->payload()); claim->commit();
//
// A Publisher belongs to one thread at a time; any number of publishers, in any number of
// processes, publish at once. How a claim is made, and why nothing is lost: docs/internals/log.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/assert.hpp"
#include "leat/base/callback.hpp"
#include "leat/format/wire.hpp"
#include "leat/log/participant.hpp"
#include "leat/log/partitioner.hpp"
#include "leat/log/waiter.hpp"
#include "leat/log/writer.hpp"
#include "leat/record.hpp"

namespace leat::inline v0 {

// Options of Topic::publisher().
struct PublisherOptions {
  bool exclusive = false;  // the topic's only publisher; cheaper per record
  // Partition of records that have no key; by default, publishers are assigned to
  // partitions in turn.
  std::optional<std::uint32_t> partition = {};
  // Durable topics: how far a record has come when publish() returns. Default: durable if the topic's
  // durability is fsync, else committed. Claim::commit() never waits: call flush() after it.
  std::optional<Stage> acknowledge = {};
  // Only offsets below the returned value are published. Called by the publishing thread when
  // that value is reached, and after Topic::recheck_offset_limits(). At the limit the
  // publisher acts as if the topic were full. The limit is exact for any number of
  // publishers, if all of them have it. A call that publishes or claims through this publisher gets
  // `busy` for the partition that is being claimed. It must not move or destroy the publisher.
  Callback<std::uint64_t()> offset_limit = {};
  // As SubscriberOptions::interruptible. A wait for the disk then ends with `not_durable` and EINTR.
  bool interruptible = false;
};

// Somebody who keeps a full partition from taking another record; see Publisher::waiting_for().
struct RoomHolder {
  //   subscriber   has yet to read the oldest records, or reads them in place
  //   group        has yet to take the oldest records, or its members to acknowledge them
  //   publisher    has claimed a record among the oldest, and not committed it
  //   archiver     has yet to write the oldest records to disk
  enum class Kind : std::uint32_t { subscriber = 1, group = 2, publisher = 3, archiver = 4 };

  Kind kind = Kind::subscriber;
  std::uint32_t partition = 0;
  // In their own PID namespaces. Of a group: its members, none if nobody reads as one. Otherwise one.
  std::vector<std::uint32_t> pids = {};
  std::string group = {};  // its name
};

class Publisher;

// Room for one record, to be written in place. commit() publishes it, abort() gives it up. Dropping
// a claim aborts it, so that an exception cannot leave readers waiting. Until the claim is
// finished, subscribers wait at it, and the publisher returns `busy` for that partition.
//
// Belongs to the publisher's thread. The publisher must outlive its claims.
class [[nodiscard]] Claim {
 public:
  Claim(Claim&& other) noexcept
      : writer_{std::exchange(other.writer_, nullptr)},
        room_{other.room_},
        flags_{other.flags_},
        extension_{other.extension_},
        size_{other.size_},
        fork_generation_{other.fork_generation_} {}
  Claim& operator=(Claim&&) = delete;
  ~Claim() {
    if (writer_ != nullptr) (void)abort();
  }

  // Where to write the value; uninitialised.
  std::span<std::byte> payload() const noexcept {
    return {reinterpret_cast<std::byte*>(room_.header + 1) + extension_, size_};
  }
  // The record's offset.
  std::uint64_t offset() const noexcept { return room_.offset; }

  // Publishes the whole payload, or its first `size` bytes. Returns the record's
  // offset. Never waits.
  //   revoked            not delivered: this thread did not run for longer than revoke_after
  //   deleted            the topic was deleted; subscribers still attached may get the record
  //   forked             the claim belongs to the parent process, and stays open there
  //   invalid_argument   `size` is larger than what was claimed; the claim stays open
  Result<std::uint64_t> commit() noexcept { return commit(size_); }
  Result<std::uint64_t> commit(std::size_t size) noexcept {
    LEAT_ASSERT(writer_ != nullptr);  // Published twice.
    if (size > size_) return Errc::invalid_argument;
    if (fork_generation_ == detail::fork_generation()) [[likely]]
      detail::store_relaxed<detail::Why::published_later>(
          room_.header->detail, static_cast<std::uint32_t>(extension_ + size) | flags_);
    return finish(detail::RecordKind::data);
  }
  // Gives the room up: subscribers see a gap (`aborted`). Errors as commit().
  Result<std::uint64_t> abort() noexcept {
    LEAT_ASSERT(writer_ != nullptr);
    if (fork_generation_ == detail::fork_generation()) writer_->note_gap();
    return finish(detail::RecordKind::aborted);
  }

 private:
  friend class Publisher;
  Claim(detail::PartitionWriter& writer, const detail::ClaimedRoom& room, std::uint32_t flags,
        std::size_t extension, std::size_t size) noexcept
      : writer_{&writer}, room_{room}, flags_{flags}, extension_{extension}, size_{size} {
    writer.set_claim_open(true);
  }

  Result<std::uint64_t> finish(detail::RecordKind kind) noexcept {
    if (fork_generation_ != detail::fork_generation()) {
      writer_ = nullptr;
      return Errc::forked;
    }
    writer_->set_claim_open(false);
    const Error error = std::exchange(writer_, nullptr)->commit(room_, kind);
    if (error.code != Errc::ok) return error;
    return room_.offset;
  }

  detail::PartitionWriter* writer_;  // Null once finished or moved from.
  detail::ClaimedRoom room_;
  std::uint32_t flags_;
  std::size_t extension_;
  std::size_t size_;
  std::uint32_t fork_generation_ = detail::fork_generation();
};

namespace detail {

// Where a publisher is, for its batches: it may be moved. Belongs to the publisher's thread.
struct PublisherPlace {
  Publisher* publisher;     // Null once it is destroyed.
  std::uint32_t users = 1;  // The publisher and its batches.

  void drop() noexcept {
    if (--users == 0) delete this;
  }
};
struct LeavePlace {
  void operator()(PublisherPlace* place) const noexcept {
    place->publisher = nullptr;
    place->drop();
  }
};

}  // namespace detail

// Records that become visible together, with consecutive offsets, in one partition. commit() claims
// the room and publishes them; until then nobody sees them. Dropping a batch drops its records.
//
// They are collected in memory of this process and copied into the log by commit(). A batch of an
// exclusive publisher collects them in the log itself, in the room that it will claim. If the publisher
// claims that room for something else first, or if the room is too small, the batch moves to memory.
//
// Belongs to the publisher's thread. A batch whose publisher is destroyed can only be dropped.
class Batch {
 public:
  Batch(Batch&& other) noexcept;
  Batch& operator=(Batch&&) = delete;
  ~Batch();

  // Adds a record. Neither waits nor claims; the bytes are copied. The batch's partition is used,
  // whatever the record's key is.
  //   too_large          the batch would exceed half a segment; it stays as it was
  //   invalid_argument   the record names another partition
  Result<void> add(Bytes value);
  Result<void> add(const NewRecord& record);

  // Number of records in the batch.
  std::size_t count() const noexcept { return count_; }

  // Publishes all records and empties the batch. Returns the offset of the first. Waits for room, and for
  // stable storage, as Publisher::publish().
  //   invalid_argument   the batch is empty
  // Otherwise errors as Publisher::publish(). After not_durable, and after an io_error of the disk, the records
  // are published, and the batch is empty. After others none was published, and unless it is `revoked` or `deleted`
  // the batch keeps them, to be committed again.
  Result<std::uint64_t> commit(const Deadline& deadline = Deadline::never(),
                               const std::stop_token& stop = {});

 private:
  friend class Publisher;
  friend class detail::PartitionWriter;
  Batch(Publisher& publisher, std::uint32_t partition) noexcept;

  // Room for one more frame; null if the batch would be too large.
  std::byte* append(std::uint64_t payload, std::uint32_t flags);
  void make_room(std::uint64_t at_least);
  // From the log to memory. False if there is none.
  bool move_out() noexcept;
  void use_memory() noexcept;
  Publisher& publisher() const noexcept {
    LEAT_ASSERT(place_->publisher != nullptr);  // The batch outlived it.
    return *place_->publisher;
  }

  detail::PublisherPlace* place_;    // Null once moved from.
  detail::PartitionWriter* writer_;  // Stays where it is when the publisher is moved.
  std::byte* frames_ = nullptr;      // In memory_, or in the log.
  std::uint64_t capacity_ = 0;       // Bytes at frames_.
  std::uint64_t size_ = 0;           // Bytes of frames.
  std::unique_ptr<std::byte[]> memory_;
  std::uint64_t memory_capacity_;
  std::uint32_t partition_;
  std::uint32_t count_ = 0;
  std::uint32_t fork_generation_ = detail::fork_generation();
  bool is_in_log_ = false;
  bool timestamps_;  // A copy of the publisher's.
};

namespace detail {

// What a publisher consists of; Publisher adds that its batches find it after a move.
struct PublisherParts {
  Participant participant_;
  std::vector<PartitionWriter> writers_;  // Indexed by partition.
  std::unique_ptr<const Callback<std::uint64_t()>> offset_limit_;
  std::unique_ptr<WaitEnd> wait_end_;  // Its address stays when the publisher is moved.
  // Buffer of the last batch, so that the next one need not allocate.
  std::unique_ptr<std::byte[]> spare_memory_;
  std::uint64_t spare_capacity_ = 0;
  std::uint64_t max_payload_ = 0;
  std::uint32_t home_partition_ = 0;
  std::optional<std::uint64_t> last_offset_;
  WaitHandle durable_fd_;
  bool exclusive_ = false;
  bool timestamps_ = false;
  bool waits_for_disk_ = false;                        // acknowledge = durable
  std::unique_ptr<PublisherPlace, LeavePlace> place_;  // Null once moved from.
};

}  // namespace detail

// A participant of the topic that appends records. Destroying it leaves the topic.
class Publisher : private detail::PublisherParts {
 public:
  Publisher(Publisher&&) noexcept;
  Publisher& operator=(Publisher&&) noexcept;
  ~Publisher();

  // Appends one record and returns its offset. If the topic is full, waits until the deadline
  // (policies block and grow; others return `full` at once). With acknowledge = durable it then waits,
  // until the same deadline, for the record to be on stable storage.
  //   busy             a claim in this partition is still open, or offset_limit runs within one
  //   full, timeout, stopped, interrupted, would_deadlock, too_large, forked
  //                    nothing was published
  //   revoked          not delivered: this thread did not run for longer than revoke_after
  //   deleted          the topic was deleted; subscribers still attached may get the record
  //   corrupt          a check on shared memory failed; whether it was published is unknown
  //   io_error, no_memory, permission
  //                    the file of a consumer group that is new to this process could not be mapped, mostly
  //                    for lack of descriptors (EMFILE, ENFILE) or memory. Nothing was published
  //   no_memory        also, exclusive: no memory to move an open batch out of the log first
  //   no_space         durable topics: full, because the archiver cannot write: the disk is full, or the archiver lacks
  //                    memory, a descriptor or a permission (its errno). Nothing was published
  //   read_only        durable topics: writing to disk has failed. Nothing was published
  // acknowledge = durable; last_offset() names the record, which subscribers may get:
  //   not_durable      the deadline, a stop or a signal (EINTR) ended the wait, or the archiver cannot write (with
  //                    its errno). The record stays, and durable_offset() says when it is durable
  //   io_error         writing or syncing failed: whether the record survives is unknown. If last_offset() is
  //                    that of an earlier record, it is the io_error above
  [[gnu::always_inline]] Result<std::uint64_t> publish(Bytes value,
                                                       const Deadline& deadline = Deadline::never(),
                                                       const std::stop_token& stop = {}) {
    if (timestamps_) [[unlikely]]
      return publish(NewRecord{.value = value}, deadline, stop);
    if (auto ok = check(value.size()); !ok) [[unlikely]]
      return ok.error();
    return append(writers_[home_partition_], detail::RecordKind::data, 1, value.size(), 0, deadline,
                  &stop, [&](std::byte* at) { detail::copy_in(at, value.data(), value.size()); });
  }

  // Publishes a record with a key, headers, or a partition of the caller's choice.
  // Errors as above, and
  //   invalid_argument   no such partition
  Result<std::uint64_t> publish(const NewRecord& record,
                                const Deadline& deadline = Deadline::never(),
                                const std::stop_token& stop = {}) {
    const detail::ExtensionSizes sizes = detail::extension_sizes(record, timestamps_);
    const std::uint64_t payload = sizes.with_value(record.value.size());
    if (auto ok = check(payload); !ok) return ok.error();
    auto partition = partition_for(record);
    if (!partition) return partition.error();
    return append(writers_[*partition], detail::RecordKind::data, 1, payload, sizes.flags, deadline,
                  &stop, [&](std::byte* at) {
                    at = detail::write_extension(at, record, sizes);
                    detail::copy_in(at, record.value.data(), record.value.size());
                  });
  }

  // Claims room for a value of `size` bytes without waiting.
  //   full                      no room now
  //   busy                      the last claim in this partition is still open
  //   io_error, no_memory, permission   a consumer group could not be mapped; see publish()
  //   too_large, deleted, forked, corrupt
  Result<Claim> try_claim(std::size_t size) { return claim(size, Deadline::immediate()); }
  // Claims room for a value of `size` bytes. If the topic is full, waits like publish().
  //   full, timeout, stopped, interrupted, would_deadlock, busy, too_large, deleted, forked, corrupt,
  //   io_error, no_memory, permission
  Result<Claim> claim(std::size_t size, const Deadline& deadline = Deadline::never(),
                      const std::stop_token& stop = {}) {
    const NewRecord record{};
    const detail::ExtensionSizes sizes = detail::extension_sizes(record, timestamps_);
    const std::uint64_t payload = sizes.with_value(size);
    if (auto ok = check(payload); !ok) return ok.error();
    detail::PartitionWriter& writer = writers_[home_partition_];
    detail::ClaimedRoom room;
    if (const Error error = writer.claim(room, 1, detail::granules_for(payload), deadline, &stop);
        error.code != Errc::ok)
      return error;
    detail::write_extension(reinterpret_cast<std::byte*>(room.header + 1), record, sizes);
    return Claim{writer, room, sizes.flags, sizes.total, size};
  }

  // An empty batch, for this publisher's partition or the given one.
  //   invalid_argument   no such partition
  Result<Batch> batch(std::optional<std::uint32_t> partition = {}) {
    if (partition && *partition >= writers_.size()) return Errc::invalid_argument;
    return Batch{*this, partition.value_or(home_partition_)};
  }

  // Durable topics: waits until everything that this publisher has published is on stable storage, at any
  // durability. In the archiver's process, a call without a deadline and a stop token syncs in this thread.
  //   not_durable, io_error   as publish()
  //   busy                    a claim of this publisher is still open
  //   needs_durable           the topic is not durable
  //   deleted, forked
  Result<void> flush(const Deadline& deadline = Deadline::never(),
                     const std::stop_token& stop = {}) noexcept;
  // Asks for the same, and does not wait; see durable_offset(). Errors: needs_durable, forked
  Result<void> request_sync() noexcept;
  // Durable topics: everything before this offset of a partition (by default, of partition()) is on stable
  // storage. 0 for other topics, or if there is no such partition.
  std::uint64_t durable_offset(std::optional<std::uint32_t> partition = {}) noexcept;
  // Durable topics: a descriptor that becomes readable when a durable_offset() may have moved, or the
  // topic was deleted. Calling durable_offset() makes it unreadable until then. Owned by the publisher.
  // A helper thread of this process serves it, and others.
  //   needs_durable, forked, io_error
  Result<int> durable_fd();
  // A descriptor that becomes readable when there may be room in a full partition (by default,
  // partition()), with any policy, or the topic was deleted. It is readable at first. Each publish(),
  // claim() or commit() there that fails for lack of room makes it unreadable until then: wait for it
  // after `full`, then try again. A success leaves it as it is. Whether the participant that keeps the
  // room is dead, or due to be evicted, shows only when a publisher checks. So it becomes readable after
  // 2 ms in any case, unless the topic retains everything, and thus stays full. Owned by the publisher,
  // whose thread calls this.
  //   invalid_argument   no such partition
  //   forked, io_error
  Result<int> room_fd(std::optional<std::uint32_t> partition = {});
  // Who has to make room in a full partition (by default, partition()): for a message to people when
  // publish() has waited long, or after `full`. None if there is room for any record by now, and where nobody can
  // make it (retain_all, offset_limit). A snapshot, which takes no lock; it costs a system call for each holder. Any
  // thread, also while another waits in a call of this publisher, but not while one moves or destroys it.
  //   invalid_argument   no such partition
  //   forked
  Result<std::vector<RoomHolder>> waiting_for(std::optional<std::uint32_t> partition = {}) const;
  // stop_waits() makes waits of this publisher end with `stopped` (those for the disk with `not_durable`),
  // now and later, until resume_waits(). What needs no wait is still published. May be called by any thread.
  void stop_waits() noexcept;
  void resume_waits() noexcept { wait_end_->stopped = false; }
  bool waits_are_stopped() const noexcept { return wait_end_->stopped; }

  // Offset of the record, or of the last one of the batch, whose publish() or commit() returned last,
  // with or without a disk error. Only with acknowledge = durable.
  std::optional<std::uint64_t> last_offset() const noexcept { return last_offset_; }

  // Largest record in bytes: key, headers, timestamp and value together, encoded.
  std::size_t max_record_size() const noexcept { return max_payload_; }
  bool is_exclusive() const noexcept { return exclusive_; }
  // The partition of records that have no key.
  std::uint32_t partition() const noexcept { return home_partition_; }

 private:
  friend class Topic;
  friend class Batch;
  friend struct PublisherTesting;
  Publisher() noexcept;

  // Claims room for `records` records in `payload` bytes, lets write(std::byte*) fill it, and
  // commits. Returns the first offset.
  template <class Write>
  [[gnu::always_inline]] Result<std::uint64_t> append(detail::PartitionWriter& writer,
                                                      detail::RecordKind kind,
                                                      std::uint32_t records, std::uint64_t payload,
                                                      std::uint32_t flags, const Deadline& deadline,
                                                      const std::stop_token* stop, Write&& write) {
    detail::ClaimedRoom room;
    if (const Error error =
            writer.claim(room, records, detail::granules_for(payload), deadline, stop);
        error.code != Errc::ok)
      return error;
    detail::store_relaxed<detail::Why::published_later>(
        room.header->detail, static_cast<std::uint32_t>(payload) | flags);
    write(reinterpret_cast<std::byte*>(room.header + 1));
    if (const Error error = writer.commit(room, kind); error.code != Errc::ok) return error;
    if (waits_for_disk_) [[unlikely]]
      return wait_for_disk(writer, room.offset, deadline, stop);
    return room.offset;
  }

  // Waits until the last claim of a writer, which began at `first`, is on stable storage.
  Result<std::uint64_t> wait_for_disk(const detail::PartitionWriter& writer, std::uint64_t first,
                                      const Deadline& deadline,
                                      const std::stop_token* stop) noexcept;

  Error too_large() const noexcept { return {Errc::too_large, static_cast<int>(max_payload_)}; }

  [[gnu::always_inline]] Result<void> check(std::uint64_t payload) const noexcept {
    if (payload > max_payload_) [[unlikely]]
      return too_large();
    if (participant_.forked()) [[unlikely]]
      return Errc::forked;
    return {};
  }

  Result<std::uint32_t> partition_for(const NewRecord& record) const noexcept {
    const auto count = static_cast<std::uint32_t>(writers_.size());
    if (record.partition) {
      if (*record.partition >= count) return Errc::invalid_argument;
      return *record.partition;
    }
    return record.key ? detail::partition_for_key(*record.key, count) : home_partition_;
  }
};

inline void Batch::use_memory() noexcept {
  is_in_log_ = false;
  frames_ = memory_.get();
  capacity_ = memory_capacity_;
}

inline std::byte* Batch::append(std::uint64_t payload, std::uint32_t flags) {
  const std::uint64_t end = detail::Geometry::round_up(size_ + sizeof(detail::BatchFrame) + payload,
                                                       detail::kBatchAlignment);
  // A payload so large that the sum wraps does not fit, either.
  if (end > capacity_ || payload > capacity_ ||
      (is_in_log_ && fork_generation_ != detail::fork_generation())) [[unlikely]] {
    const std::uint64_t most = publisher().max_payload_;
    if (payload > most || sizeof(detail::BatchHeader) + end > most) return nullptr;
    make_room(end);
  }
  std::byte* at = frames_ + size_;
  const detail::BatchFrame frame{static_cast<std::uint32_t>(payload) | flags};
  detail::copy_in(at, &frame, sizeof(frame));
  size_ = end;
  ++count_;
  return at + sizeof(frame);
}

inline Result<void> Batch::add(Bytes value) {
  if (timestamps_) [[unlikely]]
    return add(NewRecord{.value = value});
  std::byte* at = append(value.size(), 0);
  if (at == nullptr) [[unlikely]]
    return publisher().too_large();
  detail::copy_in(at, value.data(), value.size());
  return {};
}

inline Result<void> Batch::add(const NewRecord& record) {
  if (record.partition && *record.partition != partition_) return Errc::invalid_argument;
  const detail::ExtensionSizes sizes = detail::extension_sizes(record, timestamps_);
  std::byte* at = append(sizes.with_value(record.value.size()), sizes.flags);
  if (at == nullptr) return publisher().too_large();
  at = detail::write_extension(at, record, sizes);
  detail::copy_in(at, record.value.data(), record.value.size());
  return {};
}

inline Result<std::uint64_t> Batch::commit(const Deadline& deadline, const std::stop_token& stop) {
  if (count_ == 0) return Errc::invalid_argument;
  const std::uint64_t payload = sizeof(detail::BatchHeader) + size_;
  if (auto ok = publisher().check(payload); !ok) return ok.error();
  bool is_written = false;
  // If the claim fails, or offset_limit throws, the batch stays where it is.
  struct Loan {
    ~Loan() {
      if (!is_written && batch.is_in_log_) batch.writer_->resume_loan(batch);
    }
    Batch& batch;
    const bool& is_written;
  } const loan{*this, is_written};
  if (is_in_log_) writer_->open_loan();
  auto first = publisher().append(
      *writer_, detail::RecordKind::batch, count_, payload, 0, deadline, &stop, [&](std::byte* at) {
        auto& header = *reinterpret_cast<detail::BatchHeader*>(at);
        detail::store_relaxed<detail::Why::published_later>(header.count, count_);
        detail::store_relaxed<detail::Why::published_later>(header.flags, 0U);
        at += sizeof(detail::BatchHeader);
        LEAT_ASSERT(!is_in_log_ || at == frames_);
        if (!is_in_log_) detail::copy_in(at, frames_, size_);
        is_written = true;
      });
  if (is_written) {  // Also if the claim was revoked.
    if (is_in_log_) writer_->end_loan();
    count_ = 0;
    use_memory();
    size_ = 0;
    if (publisher().exclusive_) capacity_ = 0;  // The next record borrows room in the log again.
  }
  return first;
}

}  // namespace leat::inline v0

#ifndef LEAT_COMPILED
#include "leat/topic.hpp"
#endif
