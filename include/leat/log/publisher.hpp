// Publishing to a topic.
//
//     auto publisher = topic->publisher();
//     auto offset = publisher->publish("hello");
//     auto claim = publisher->try_claim(size);          // write in place
//     fill(claim->payload()); claim->commit();
//
// A Publisher belongs to one thread at a time; any number of publishers, in any number of processes,
// publish at once. How a claim is made and why nothing is lost: docs/internals/log.md.
#pragma once

#include <optional>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include "leat/log/partitioner.hpp"
#include "leat/log/record.hpp"
#include "leat/log/segments.hpp"
#include "leat/os/membarrier.hpp"

namespace leat {

enum class Policy : std::uint32_t { block = 0, fail = 1, overwrite = 2 };

struct PublisherOptions {
  bool exclusive = false;                       // the topic's only publisher; cheaper per record
  std::optional<std::uint32_t> partition = {};  // for records without a key; else chosen at open
};

namespace detail {

// Room for a record that is won and not yet visible.
struct ClaimedRoom {
  RecordHeader* header = nullptr;
  std::uint64_t tag = 0;
  std::uint64_t old_commit = 0;  // what the commit word held before, for the swap
  std::uint64_t offset = 0;
};

// One publisher's side of one partition.
class PartitionWriter {
 public:
  PartitionWriter(SharedTopic& topic, std::uint32_t partition, std::uint32_t self,
                  std::byte* records, bool exclusive) noexcept
      : topic_{&topic},
        view_{topic.partition(partition)},
        slot_{&view_.slots[self]},
        records_{records + view_.records_offset},
        data_wake_{&topic.header().data_wake},
        layout_{topic.geometry().claim_layout},
        key_{topic.geometry().key},
        segment_granules_{topic.geometry().segment_granules},
        granules_or_closed_{layout_.granules(~0ULL) | ClaimLayout::kClosed},
        entry_count_{topic.geometry().entry_count},
        partition_{partition},
        self_{self},
        exclusive_{exclusive} {}

  // Takes `records` offsets and `granules` of room in one step. Waits for room until the deadline if
  // the policy is block. The header's claim field is written.
  //   full, timeout, stopped, deleted, would_deadlock   nothing was claimed
  [[gnu::always_inline]] Error claim(ClaimedRoom& room, std::uint64_t records,
                                     std::uint64_t granules, bool is_batch,
                                     const Deadline& deadline, const std::stop_token* stop) {
    if (claim_is_open_) [[unlikely]]
      return {Errc::busy};
    return exclusive_ ? claim_exclusive(room, records, granules, is_batch, deadline, stop)
                      : claim_shared(room, records, granules, is_batch, deadline, stop);
  }

  // Makes the claimed room visible as `kind`. `revoked` if others gave it up meanwhile.
  [[gnu::always_inline]] Error commit(const ClaimedRoom& room, RecordKind kind) noexcept {
    const std::uint64_t word = room.tag | static_cast<std::uint64_t>(kind);
    LEAT_STEP("commit:before");
    if (exclusive_) {
      // [record-ready] release; header and payload before the word. No fence before the sleeping bit
      // is read: whoever sleeps on an exclusive publisher runs a membarrier. [sleeping]
      if (fences_) [[unlikely]] {
        (void)exchange<Edge::record_ready>(room.header->commit, word);
      } else {
        store_release<Edge::record_ready>(room.header->commit, word);
      }
    } else {
      std::uint64_t expected = room.old_commit;
      // [record-ready] Header and payload before the word. Fails if the claim was revoked.
      const bool committed =
          compare_exchange<Edge::record_ready>(room.header->commit, expected, word);
      LEAT_STEP("commit:swapped");
      // [intent] release: the record is settled before the slot says so.
      store_release<Edge::intent>(slot_->phase, claim_number_ | kIdle);
      if (!committed) return {Errc::revoked};
    }
    LEAT_STEP("commit:done");
    const std::uint32_t wake = load_seq_cst<Edge::sleeping>(*data_wake_);
    if ((wake & (kSleeping | kWaking | kDeleted)) != 0) [[unlikely]]
      return after_commit(wake);
    return {};
  }

  void set_claim_open(bool open) noexcept { claim_is_open_ = open; }

  // Without membarrier(2) the exclusive path pays for a fence of its own.
  void use_fences() noexcept { fences_ = true; }

 private:
  const Geometry& geometry() const noexcept { return topic_->geometry(); }

  [[gnu::always_inline]] Error claim_exclusive(ClaimedRoom& room, std::uint64_t records,
                                               std::uint64_t granules, bool is_batch,
                                               const Deadline& deadline,
                                               const std::stop_token* stop) {
    // A closed word has more granules than any segment, so one comparison covers both.
    while ((claim_ & granules_or_closed_) + granules > segment_granules_) [[unlikely]] {
      if (auto moved = next_segment(granules, deadline, stop); !moved) return moved.error();
    }
    const std::uint64_t step = layout_.step(records, granules) | (is_batch ? kBatchStep : 0);
    // [intent] release, both: what is claimed, before the claim word says that it is.
    if (step != announced_step_) [[unlikely]] {
      store_release<Edge::intent>(slot_->claim_step, step);
      announced_step_ = step;
    }
    store_release<Edge::intent>(slot_->claim_word, claim_);
    LEAT_STEP("claim:announced");
    const std::uint64_t word = claim_;
    claim_ += step & ~kBatchStep;
    // [claim] release. Alone, so no swap: see Edge::exclusive.
    store_release<Edge::claim>(view_.control->claim, claim_);
    LEAT_STEP("claim:won");
    place(room, word, granules, is_batch);
    return {};
  }

  Error claim_shared(ClaimedRoom& room, std::uint64_t records, std::uint64_t granules,
                     bool is_batch, const Deadline& deadline, const std::stop_token* stop) {
    const std::uint64_t step = layout_.step(records, granules);
    // [intent] release, all: a slot's facts are of the phase that was stored after them.
    store_release<Edge::intent>(slot_->claim_step, step | (is_batch ? kBatchStep : 0));
    // [claim] acquire; the swap below checks it.
    std::uint64_t word = load_acquire<Edge::claim>(view_.control->claim);
    claim_number_ += kPhaseMask + 1;
    while (true) {
      if ((word & granules_or_closed_) + granules > segment_granules_) [[unlikely]] {
        store_release<Edge::intent>(slot_->phase, claim_number_ | kIdle);
        if (auto moved = next_segment(granules, deadline, stop); !moved) return moved.error();
        word = load_acquire<Edge::claim>(view_.control->claim);
        continue;
      }
      store_release<Edge::intent>(slot_->claim_word, word);
      store_release<Edge::intent>(slot_->phase, claim_number_ | kClaiming);
      LEAT_STEP("claim:announced");
      // [claim] seq_cst: the announcement is visible to whoever sees the claim.
      if (compare_exchange<Edge::claim>(view_.control->claim, word, word + step)) break;
      spin_pause();
    }
    LEAT_STEP("claim:won");
    // Everything about the segment is read after the swap: until this claim is settled, the segment
    // stays. docs/internals/log.md, "The claim word".
    const std::uint64_t truncated = layout_.segment(word);
    // [segment-map] acquire.
    const std::uint64_t map =
        load_acquire<Edge::segment_map>(view_.entries[truncated & (entry_count_ - 1)].map);
    if (map != segment_map_ || segment_data_ == nullptr) [[unlikely]] {
      if (const Error error = enter_claimed(truncated); error.code != Errc::ok) return error;
    }
    store_release<Edge::intent>(slot_->claim_segment, segment_map_ >> kPhysicalBits);
    store_release<Edge::intent>(slot_->phase, claim_number_ | kClaimed);
    LEAT_STEP("claim:marked");
    place(room, word, granules, is_batch);
    return {};
  }

  // The room that a claim from `word` took, in the segment that is entered.
  [[gnu::always_inline]] void place(ClaimedRoom& room, std::uint64_t word, std::uint64_t granules,
                                    bool is_batch) noexcept {
    const std::uint64_t granule = layout_.granules(word);
    room.header = reinterpret_cast<RecordHeader*>(segment_data_ + granule * kGranule);
    // The lines of the records to come belong to whoever read them last: fetch them early.
    __builtin_prefetch(reinterpret_cast<const std::byte*>(room.header) + kPrefetchDistance, 1);
    room.tag = position_tag(segment_position_ + granule, key_);
    room.offset = base_offset_ + layout_.records(word);
    // relaxed: the swap of the commit word checks it, and stores what follows with it.
    if (!exclusive_) {
      room.old_commit = load_relaxed(room.header->commit);
      // Revoked already, while this thread did not run: then the swap must fail, so it gets a value
      // that the word does not hold.
      if ((room.old_commit ^ room.tag) < 256) [[unlikely]]
        room.old_commit = ~room.old_commit;
    }
    // [overwrite] release: start was moved on before this segment was opened; a lossy reader that
    // sees bytes written from here on also sees that.
    fence_release<Edge::overwrite>();
    store_relaxed(room.header->claim,
                  static_cast<std::uint32_t>(granules) | (is_batch ? kBatchClaim : 0));
  }

  // Enters the segment of a claim that was just won. `revoked` if it is retired already: then others
  // gave the claim up, or overwrite what nobody gates, while this thread did not run.
  [[gnu::noinline]] Error enter_claimed(std::uint64_t truncated) noexcept {
    // [segment-open] acquire; at most one lap of the truncated number behind.
    const std::uint64_t current = load_acquire<Edge::segment_open>(view_.control->current);
    const std::uint64_t number = current - layout_.truncate_segment(current - truncated);
    auto entered = enter(number);
    // [retire] seq_cst: looked at after the entry was read. The entry of a segment that is not
    // retired is its own.
    if (load_seq_cst<Edge::retire>(view_.control->start) > number) {
      segment_map_ = 0;
      store_release<Edge::intent>(slot_->phase, claim_number_ | kIdle);
      return {Errc::revoked};
    }
    return entered.error();
  }

  // Keeps where the segment is. It holds an open claim, or nobody else can move on.
  Result<void> enter(std::uint64_t number) noexcept {
    auto segment = find_segment(*topic_, view_, number);
    if (!segment) return segment.error();
    segment_map_ = number << kPhysicalBits | segment->physical;
    segment_data_ = records_ + segment->physical * geometry().segment_size;
    segment_position_ = number * geometry().segment_granules;
    base_offset_ = segment->base_offset;
    return {};
  }

  // Called when `granules` do not fit behind the claim word.
  [[gnu::noinline]] Result<void> next_segment(std::uint64_t granules, const Deadline& deadline,
                                              const std::stop_token* stop) {
    const ClaimLayout& layout = geometry().claim_layout;
    std::optional<std::int64_t> blocked_since;
    // Each move is somebody's progress; scribbled words could pretend that for ever.
    for (std::uint32_t moves = 0; moves < kManyMoves;) {
      const std::uint64_t word = load_acquire<Edge::claim>(view_.control->claim);
      if (!ClaimLayout::is_closed(word) &&
          layout.granules(word) + granules <= geometry().segment_granules) {
        claim_ = word;
        if (!exclusive_) return {};
        return enter(load_acquire<Edge::segment_open>(view_.control->current));
      }
      Shortage shortage;
      Roller roller{*topic_, partition_, self_};
      auto state = roller.roll(shortage);
      if (!state) return state.error();
      if (*state == RollState::moved) {
        ++moves;
        continue;
      }
      moves = 0;

      // Full. Say so on the word that readers wake, look once more, then sleep.
      if (topic_->is_deleted()) return Errc::deleted;
      if (geometry().policy != static_cast<std::uint32_t>(Policy::block)) return Errc::full;
      if ((geometry().flags & kRetainAll) != 0) return Errc::full;
      if (deadline.is_immediate()) return Errc::full;
      if (shortage.by_readers && !shortage.by_others) return Errc::would_deadlock;
      if (stop != nullptr && stop->stop_requested()) return Errc::stopped;
      if (deadline.passed()) return Errc::timeout;
      if (geometry().evict_after_ns != 0 && shortage.by_readers) {
        const std::int64_t now = now_ns();
        if (!blocked_since) blocked_since = now;
        if (now - *blocked_since >= geometry().evict_after_ns) roller.evict_blockers();
      }
      std::uint32_t& space_wake = topic_->header().space_wake;
      // [sleeping] seq_cst: the bit is set before the last look.
      const std::uint32_t sleeping = fetch_or<Edge::sleeping>(space_wake, kSleeping) | kSleeping;
      LEAT_STEP("space:sleeping");
      state = roller.roll(shortage);
      if (!state) return state.error();
      // Who holds the room may die without a word: look again soon.
      if (*state == RollState::full)
        futex_wait(space_wake, sleeping, deadline.at_most_ns(kLookAgain));
    }
    return Errc::corrupt;
  }

  [[gnu::noinline]] Error after_commit(std::uint32_t wake) noexcept {
    SharedTopic::wake(topic_->header().data_wake);
    if ((wake & kDeleted) != 0) return {Errc::deleted};
    return {};
  }

  static constexpr std::int64_t kLookAgain = 2'000'000;  // ns
  static constexpr std::size_t kPrefetchDistance = 512;  // bytes; 256 to 2048 measured, no matter

  SharedTopic* topic_;
  PartitionView view_;
  PartitionSlot* slot_;             // Own line in view_.slots.
  std::byte* records_;              // First segment of this partition.
  const std::uint32_t* data_wake_;  // In the topic's header.
  ClaimLayout layout_;              // This and the next four: copies of the geometry.
  std::uint64_t key_;
  std::uint64_t segment_granules_;
  std::uint64_t granules_or_closed_;  // Mask of the claim word's granules and kClosed.
  std::uint64_t entry_count_;
  std::byte* segment_data_ = nullptr;  // The segment last claimed in; null until the first.
  std::uint64_t segment_map_ = 0;      // Its map word.
  std::uint64_t segment_position_ = 0;
  std::uint64_t base_offset_ = 0;
  std::uint64_t claim_ = ClaimLayout::kClosed;  // Exclusive only: what the claim word holds.
  std::uint64_t announced_step_ = 0;            // Exclusive only: what the slot's claim_step holds.
  std::uint64_t claim_number_ = 0;              // << 2; changes with every claim.
  std::uint32_t partition_;
  std::uint32_t self_;
  bool exclusive_;
  bool claim_is_open_ = false;  // A Claim of this partition is not finished.
  bool fences_ = false;
};

}  // namespace detail

class Publisher;

// Room for one record, to be written in place. commit() publishes it, abort() gives it up; dropping
// it aborts it, so that an exception cannot leave readers waiting. One open claim per publisher and
// partition: until it is finished the publisher returns `busy`.
// The publisher outlives its claim.
class [[nodiscard]] Claim {
 public:
  Claim(Claim&& other) noexcept
      : writer_{std::exchange(other.writer_, nullptr)},
        room_{other.room_},
        flags_{other.flags_},
        extension_{other.extension_},
        size_{other.size_} {}
  Claim& operator=(Claim&&) = delete;
  ~Claim() {
    if (writer_ != nullptr) (void)abort();
  }

  // Where to write; uninitialised.
  std::span<std::byte> payload() const noexcept {
    return {reinterpret_cast<std::byte*>(room_.header + 1) + extension_, size_};
  }
  std::uint64_t offset() const noexcept { return room_.offset; }

  // Publishes the whole payload, or its first `size` bytes.
  //   revoked, deleted   the record is not delivered
  //   invalid_argument   larger than what was claimed; the claim stays open
  Result<std::uint64_t> commit() noexcept { return commit(size_); }
  Result<std::uint64_t> commit(std::size_t size) noexcept {
    LEAT_ASSERT(writer_ != nullptr);  // Published twice.
    if (size > size_) return Errc::invalid_argument;
    detail::store_relaxed(room_.header->detail,
                          static_cast<std::uint32_t>(extension_ + size) | flags_);
    return finish(detail::RecordKind::data);
  }
  // Gives the room up: readers see a gap.
  Result<std::uint64_t> abort() noexcept {
    LEAT_ASSERT(writer_ != nullptr);
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
};

// Records that become visible all at once, with offsets in a row. Collected in memory of this
// process: nothing is claimed before commit(). The publisher outlives it; one at a time.
class Batch {
 public:
  Batch(Batch&&) noexcept = default;

  // `too_large` once the whole would not fit in half a segment; what was added before stays.
  Result<void> add(Bytes value);
  Result<void> add(const NewRecord& record);

  std::size_t count() const noexcept { return count_; }

  // Publishes all of them and empties the batch. Returns the offset of the first.
  //   invalid_argument   the batch is empty
  //   otherwise as Publisher::publish; nothing of the batch is visible then
  Result<std::uint64_t> commit(Deadline deadline = Deadline::never());

 private:
  friend class Publisher;
  Batch(Publisher& publisher, std::uint32_t partition) noexcept
      : publisher_{&publisher}, partition_{partition} {}

  // Room for one more frame; null if it would be too much.
  std::byte* append(std::uint64_t payload, std::uint32_t flags) noexcept;

  Publisher* publisher_;
  std::uint64_t size_ = 0;  // Bytes of frames in the publisher's buffer.
  std::uint32_t partition_;
  std::uint32_t count_ = 0;
};

class Publisher {
 public:
  Publisher(Publisher&&) noexcept = default;
  Publisher& operator=(Publisher&&) noexcept = default;

  // Appends one record and returns its offset. When the topic is full: waits until the deadline
  // (policy block), or returns at once.
  //   too_large, full, timeout, stopped, would_deadlock, deleted, forked   nothing was published
  //   revoked   this thread did not run for longer than the topic's revoke_after; not delivered
  //   corrupt   a check on shared memory failed
  [[gnu::always_inline]] Result<std::uint64_t> publish(Bytes value,
                                                       const Deadline& deadline = Deadline::never(),
                                                       const std::stop_token& stop = {}) {
    if (timestamps_) [[unlikely]]
      return publish(NewRecord{.value = value}, deadline, stop);
    if (auto ok = check(value.size()); !ok) [[unlikely]]
      return ok.error();
    detail::PartitionWriter& writer = writers_[home_partition_];
    detail::ClaimedRoom room;
    if (const Error error =
            writer.claim(room, 1, detail::granules_for(value.size()), false, deadline, &stop);
        error.code != Errc::ok)
      return error;
    detail::store_relaxed(room.header->detail, static_cast<std::uint32_t>(value.size()));
    detail::copy_in(reinterpret_cast<std::byte*>(room.header + 1), value.data(), value.size());
    if (const Error error = writer.commit(room, detail::RecordKind::data); error.code != Errc::ok)
      return error;
    return room.offset;
  }

  // The same with key, headers, or a partition of the caller's choice.
  Result<std::uint64_t> publish(const NewRecord& record,
                                const Deadline& deadline = Deadline::never(),
                                const std::stop_token& stop = {}) {
    const detail::ExtensionSizes sizes = detail::extension_sizes(record, timestamps_);
    const std::uint64_t payload = sizes.total + record.value.size();
    if (auto ok = check(payload); !ok) return ok.error();
    auto partition = partition_for(record);
    if (!partition) return partition.error();
    detail::PartitionWriter& writer = writers_[*partition];
    detail::ClaimedRoom room;
    if (const Error error =
            writer.claim(room, 1, detail::granules_for(payload), false, deadline, &stop);
        error.code != Errc::ok)
      return error;
    detail::store_relaxed(room.header->detail, static_cast<std::uint32_t>(payload) | sizes.flags);
    std::byte* at =
        detail::write_extension(reinterpret_cast<std::byte*>(room.header + 1), record, sizes);
    detail::copy_in(at, record.value.data(), record.value.size());
    if (const Error error = writer.commit(room, detail::RecordKind::data); error.code != Errc::ok)
      return error;
    return room.offset;
  }

  // Claims room for `size` bytes without waiting. `busy`: the last claim is still open.
  Result<Claim> try_claim(std::size_t size) {
    const NewRecord record{};
    const detail::ExtensionSizes sizes = detail::extension_sizes(record, timestamps_);
    if (auto ok = check(sizes.total + size); !ok) return ok.error();
    detail::PartitionWriter& writer = writers_[home_partition_];
    detail::ClaimedRoom room;
    if (const Error error = writer.claim(room, 1, detail::granules_for(sizes.total + size), false,
                                         Deadline::immediate(), nullptr);
        error.code != Errc::ok)
      return error;
    detail::write_extension(reinterpret_cast<std::byte*>(room.header + 1), record, sizes);
    return Claim{writer, room, sizes.flags, sizes.total, size};
  }

  // An empty batch for this publisher's partition, or for the one named.
  Result<Batch> batch(std::optional<std::uint32_t> partition = {}) {
    if (partition && *partition >= writers_.size()) return Errc::invalid_argument;
    return Batch{*this, partition.value_or(home_partition_)};
  }

  // Bytes of key, headers, timestamp and value together.
  std::size_t max_record_size() const noexcept { return max_payload_; }
  bool is_exclusive() const noexcept { return exclusive_; }
  std::uint32_t partition() const noexcept { return home_partition_; }

 private:
  friend class Topic;
  friend class Batch;
  Publisher() = default;

  [[gnu::always_inline]] Result<void> check(std::uint64_t payload) const noexcept {
    if (payload > max_payload_) [[unlikely]]
      return Errc::too_large;
    if (participant_.forked()) [[unlikely]]
      return Errc::forked;
    return {};
  }

  void grow_batch(std::uint64_t at_least, std::uint64_t keep) {
    const std::uint64_t capacity = std::min(std::max<std::uint64_t>(4096, 2 * at_least),
                                            max_payload_ - sizeof(detail::BatchHeader));
    std::unique_ptr<std::byte[]> larger{new std::byte[capacity]};
    if (keep != 0) std::memcpy(larger.get(), batch_frames_.get(), keep);
    batch_frames_ = std::move(larger);
    batch_capacity_ = capacity;
  }

  Result<std::uint32_t> partition_for(const NewRecord& record) const noexcept {
    const auto count = static_cast<std::uint32_t>(writers_.size());
    if (record.partition) {
      if (*record.partition >= count) return Errc::invalid_argument;
      return *record.partition;
    }
    return record.key ? detail::partition_for_key(*record.key, count) : home_partition_;
  }

  detail::Participant participant_;
  std::vector<detail::PartitionWriter> writers_;  // By partition.
  std::unique_ptr<std::byte[]>
      batch_frames_;  // Kept between batches, so that they do not allocate.
  std::uint64_t batch_capacity_ = 0;
  std::uint64_t max_payload_ = 0;
  std::uint32_t home_partition_ = 0;
  bool exclusive_ = false;
  bool timestamps_ = false;
};

inline std::byte* Batch::append(std::uint64_t payload, std::uint32_t flags) noexcept {
  const std::uint64_t end = detail::Geometry::round_up(size_ + sizeof(detail::BatchFrame) + payload,
                                                       detail::kBatchAlignment);
  if (end > publisher_->batch_capacity_) [[unlikely]] {
    if (sizeof(detail::BatchHeader) + end > publisher_->max_payload_) return nullptr;
    publisher_->grow_batch(end, size_);
  }
  std::byte* at = publisher_->batch_frames_.get() + size_;
  const detail::BatchFrame frame{static_cast<std::uint32_t>(payload) | flags};
  std::memcpy(at, &frame, sizeof(frame));
  size_ = end;
  ++count_;
  return at + sizeof(frame);
}

inline Result<void> Batch::add(Bytes value) {
  if (publisher_->timestamps_) [[unlikely]]
    return add(NewRecord{.value = value});
  std::byte* at = append(value.size(), 0);
  if (at == nullptr) [[unlikely]]
    return Errc::too_large;
  detail::copy_in(at, value.data(), value.size());
  return {};
}

inline Result<void> Batch::add(const NewRecord& record) {
  const detail::ExtensionSizes sizes = detail::extension_sizes(record, publisher_->timestamps_);
  std::byte* at = append(sizes.total + record.value.size(), sizes.flags);
  if (at == nullptr) return Errc::too_large;
  at = detail::write_extension(at, record, sizes);
  detail::copy_in(at, record.value.data(), record.value.size());
  return {};
}

inline Result<std::uint64_t> Batch::commit(Deadline deadline) {
  if (count_ == 0) return Errc::invalid_argument;
  const std::uint64_t payload = sizeof(detail::BatchHeader) + size_;
  if (auto ok = publisher_->check(payload); !ok) return ok.error();
  detail::PartitionWriter& writer = publisher_->writers_[partition_];
  detail::ClaimedRoom room;
  if (const Error error =
          writer.claim(room, count_, detail::granules_for(payload), true, deadline, nullptr);
      error.code != Errc::ok) {
    return error;
  }
  detail::store_relaxed(room.header->detail, static_cast<std::uint32_t>(payload));
  auto* header = reinterpret_cast<detail::BatchHeader*>(room.header + 1);
  detail::store_relaxed(header->count, count_);
  detail::copy_in(reinterpret_cast<std::byte*>(header + 1), publisher_->batch_frames_.get(), size_);
  count_ = 0;
  size_ = 0;
  if (const Error error = writer.commit(room, detail::RecordKind::batch); error.code != Errc::ok) {
    return error;
  }
  return room.offset;
}

}  // namespace leat
