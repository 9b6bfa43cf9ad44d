// One publisher's side of one partition: claims room, and makes records visible.
//
// docs/internals/log.md, "The claim word", explains why nothing is lost on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <utility>

#include "leat/base/callback.hpp"
#include "leat/base/crash_point.hpp"
#include "leat/base/own_pause.hpp"
#include "leat/deadline.hpp"
#include "leat/format/durable_layout.hpp"
#include "leat/log/claim_point.hpp"
#include "leat/log/current_segment.hpp"
#include "leat/log/wait_end.hpp"
#include "leat/log/wait_handle.hpp"
#include "leat/os/robust_wake.hpp"
#include "leat/result.hpp"

namespace leat::inline v0 {
class Batch;
}

namespace leat::inline v0::detail {

class Roller;
class MappedTopic;
struct Shortage;

// Room for a record that was claimed and is not visible yet.
struct ClaimedRoom {
  RecordHeader* header = nullptr;
  std::uint64_t tag = 0;
  std::uint64_t old_commit = 0;  // value of the commit word before, for the swap
  std::uint64_t offset = 0;
};

// Not thread-safe: belongs to one publisher.
class PartitionWriter {
 public:
  PartitionWriter(MappedTopic& topic, std::uint32_t partition, std::uint32_t own_slot,
                  std::byte* records, bool exclusive) noexcept;

  // Claims `records` offsets and `granules` of room in one step, and writes the header's claim
  // field. If there is no room and the policy is block or grow, waits until the deadline.
  //   full, timeout, stopped, deleted, would_deadlock   nothing was claimed
  //   busy      a Claim of this partition is still open, or offset_limit runs within a claim
  //   read_only durable topics: writing to disk has failed
  //   corrupt   the partition's words contradict each other
  [[gnu::always_inline]] Error claim(ClaimedRoom& room, std::uint64_t records,
                                     std::uint64_t granules, const Deadline& deadline,
                                     const std::stop_token* stop) {
    if (checks_first_ != 0) [[unlikely]] {
      if (const Error error = check_first(); error.code != Errc::ok) return error;
    }
    if (exclusive_) return claim_exclusive(room, records, granules, deadline, stop);
    ClaimedRoom won;  // Not `room`, whose address must not escape: it stays in registers.
    const Error error = claim_shared(won, records, granules, deadline, stop);
    room = won;
    return error;
  }

  // Commits the claimed room as `kind`. `revoked` if others gave the claim up meanwhile; `deleted`
  // if the topic was deleted (the record is committed all the same).
  [[gnu::always_inline]] Error commit(const ClaimedRoom& room, RecordKind kind) noexcept {
    const std::uint64_t word = room.tag | static_cast<std::uint64_t>(kind);
    // If this thread is killed between the commit and the wake-up, the kernel wakes a sleeper,
    // which wakes the others.
    const RobustWakeGuard guard{*robust_wake_};
    LEAT_CRASH_POINT("commit:before");
    if (exclusive_) {
      // [record-ready] release: header and payload before the word. No fence before the sleeping
      // bit is read: a thread that sleeps while there is an exclusive publisher runs a
      // membarrier. [sleeping]
      if (fences_) [[unlikely]] {
        (void)exchange<Edge::record_ready>(room.header->commit, word);
      } else {
        store_release<Edge::record_ready>(room.header->commit, word);
      }
    } else {
      std::uint64_t expected = room.old_commit;
      // [record-ready] seq_cst: header and payload before the word. Fails if the claim was revoked.
      const bool committed =
          compare_exchange<Edge::record_ready>(room.header->commit, expected, word);
      LEAT_CRASH_POINT("commit:swapped");
      // [intent] release: the claim is settled before the slot says so.
      store_release<Edge::intent>(slot_->phase, claim_number_ | kIdle);
      if (!committed) return {Errc::revoked};
    }
    LEAT_CRASH_POINT("commit:done");
    const std::uint32_t wake = load_seq_cst<Edge::sleeping>(*data_wake_);
    if ((wake & (kSleeping | kWaking | kDeleted)) != 0) [[unlikely]]
      return after_commit(wake);
    if (exclusive_ && kind == RecordKind::data) {
      if (--until_pace_ == 0) [[unlikely]]
        note_pace();
      if (!is_stream_) touch_ahead(room);
    }
    return {};
  }

  // To be called before the open claim is committed as `aborted`.
  void note_gap() const noexcept;

  void set_claim_open(bool open) noexcept {
    checks_first_ = static_cast<std::uint8_t>(open ? checks_first_ | kClaimIsOpen
                                                   : checks_first_ & ~kClaimIsOpen);
  }
  bool is_claim_open() const noexcept { return (checks_first_ & kClaimIsOpen) != 0; }
  std::uint32_t partition() const noexcept { return partition_; }
  // Offset behind the last claim; 0 if there was none.
  std::uint64_t claimed_until() const noexcept { return claimed_until_; }

  // Lends the room behind the last claim to a batch of an exclusive publisher, which collects its
  // frames there. Returns the room for frames; empty if there is none to lend. Nothing is claimed:
  // nobody else can claim there, and readers ignore bytes without the tag of their position. Before
  // the room is claimed for anything else, the batch is told to move out.
  std::span<std::byte> lend(Batch& batch) noexcept;
  // The batch is about to claim its room: the next claim, if no larger than the room, gets it.
  // Nobody else can borrow it meanwhile, not even offset_limit.
  void open_loan() noexcept;
  // The batch returns the room.
  void end_loan() noexcept;
  // Called when that claim failed: the batch has the room again.
  void resume_loan(Batch& batch) noexcept;

  // Offsets at or above the returned value are not claimed. Called again when that value is
  // reached, and when space_wake has changed.
  void set_limit(const Callback<std::uint64_t()>* limit) noexcept { limit_ = limit; }

  // May end waits for room; must outlive the writer.
  void set_wait_end(const WaitEnd* end) noexcept { wait_end_ = end; }

  // A descriptor that is armed whenever a claim is refused because there is no room.
  void set_room_fd(WaitHandle room_fd) noexcept { room_fd_ = std::move(room_fd); }
  WaitFd* room_fd() const noexcept { return room_fd_.get(); }

  // Without membarrier(2), each record needs a fence of its own.
  void use_fences() noexcept { fences_ = true; }

 private:
  const Geometry& geometry() const noexcept;

  // Why nothing may be claimed. Not called unless checks_first_ says so, which costs other topics
  // nothing.
  [[gnu::always_inline]] Error check_first() const noexcept {
    if ((checks_first_ & (kClaimIsOpen | kAsksLimit)) != 0) return {Errc::busy};
    return disk_state(*durable_) == DiskState::read_only
               ? Error{Errc::read_only, disk_reason(*durable_)}
               : Error{};
  }

  // An exclusive publisher's phase stays kClaiming; which claim is open follows from the claim
  // word. docs/internals/log.md, "Repair".
  void announce_exclusive() noexcept;

  [[gnu::always_inline]] Error claim_exclusive(ClaimedRoom& room, std::uint64_t records,
                                               std::uint64_t granules, const Deadline& deadline,
                                               const std::stop_token* stop) {
    // Also before the first claim, and after others have closed the segment for this publisher.
    while ((claim_ & granules_or_closed_) + granules > segment_granules_) [[unlikely]] {
      if (auto moved = next_segment(granules, deadline, stop); !moved) return moved.error();
    }
    if (limit_ != nullptr) [[unlikely]] {
      const Error error = wait_for_limit({claim_, segment_.number}, records, deadline, stop);
      if (error.code != Errc::ok) return error;
    }
    const std::uint64_t increment = layout_.increment(records, granules);
    // [intent] release, both: the announcement before the claim word.
    if (increment != announced_increment_) [[unlikely]] {
      store_release<Edge::intent>(slot_->claim_increment, increment);
      announced_increment_ = increment;
    }
    store_release<Edge::intent>(slot_->claim_word, claim_);
    LEAT_CRASH_POINT("claim:announced");
    const std::uint64_t word = claim_;
    claim_ += increment;
    // [claim] release. No swap, because nobody else claims: see Edge::exclusive.
    store_release<Edge::claim>(view_.control->claim, claim_);
    LEAT_CRASH_POINT("claim:won");
    place(room, word, records, granules);
    return {};
  }

  Error claim_shared(ClaimedRoom& room, std::uint64_t records, std::uint64_t granules,
                     const Deadline& deadline, const std::stop_token* stop) {
    const std::uint64_t increment = layout_.increment(records, granules);
    // [intent] release, all: the facts are stored before the phase that they belong to.
    announce(slot_->claim_increment, increment);
    for (std::uint32_t given_up = 0; given_up < kManyMoves;) {
      // The phase is idle here. The swap below fails if the values read here are stale.
      const std::optional<ClaimPoint> from = claim_point();
      if (!from) [[unlikely]]
        break;
      if ((from->word & granules_or_closed_) + granules > segment_granules_) [[unlikely]] {
        if (auto moved = next_segment(granules, deadline, stop); !moved) return moved.error();
        continue;
      }
      if (limit_ != nullptr) [[unlikely]] {
        const LimitState state = ask_limit(*from, records);
        if (state == LimitState::forked) return {Errc::forked};
        if (state == LimitState::reached) {
          const Error error = wait_for_limit(*from, records, deadline, stop);
          if (error.code != Errc::ok) return error;
          continue;
        }
      }
      claim_number_ += kPhaseMask + 1;
      store_release<Edge::intent>(slot_->claim_word, from->word);
      announce(slot_->claim_segment, from->segment);
      store_release<Edge::intent>(slot_->phase, claim_number_ | kClaiming);
      LEAT_CRASH_POINT("claim:announced");
      std::uint64_t word = from->word;
      // [claim] seq_cst: a thread that sees the claim sees the announcement.
      if (!compare_exchange<Edge::claim>(view_.control->claim, word, word + increment)) {
        // Idle while the facts change, so that nobody takes a mixture for one announcement.
        store_release<Edge::intent>(slot_->phase, claim_number_ | kIdle);
        spin_pause();
        continue;
      }
      LEAT_CRASH_POINT("claim:won");
      Error error;
      if (mark(*from)) [[likely]] {
        // No segment has number 0, but memory that was corrupted may say so before one was entered.
        if ((from->segment == segment_.number && from->segment != 0) || enter(from->segment))
            [[likely]] {
          place(room, from->word, records, granules);
          return {};
        }
        // Corrupt, unless the segment was retired meanwhile and its entry reused: then
        // nobody reads it.
        if (load_seq_cst<Edge::retire>(view_.control->oldest_segment) <= from->segment)
          error = {Errc::corrupt};
      } else {
        error = give_up(*from);
      }
      store_release<Edge::intent>(slot_->phase, claim_number_ | kIdle);
      if (error.code != Errc::ok) return error;
      ++given_up;  // Try again.
    }
    return {Errc::corrupt};
  }

  // Stores a fact that seldom changes, if it has changed.
  [[gnu::always_inline]] static void announce(std::uint64_t& word, std::uint64_t fact) noexcept {
    if (load_relaxed<Why::own>(word) != fact) [[unlikely]]
      store_release<Edge::intent>(word, fact);
  }

  // Gives up a claim from `from` that must not take effect: it becomes a gap.
  Error give_up(const ClaimPoint& from);

  // The claim word and the full number of its segment. Nothing if the two contradict each other.
  [[gnu::always_inline]] std::optional<ClaimPoint> claim_point() const noexcept {
    // [claim] acquire, then [segment-open] acquire. If both name the segment that this publisher
    // has entered, that is the claim word's segment: not an earlier one, because the entered one
    // was opened before; not one a lap later, because the entered one is still current.
    const std::uint64_t word = load_acquire<Edge::claim>(view_.control->claim);
    if ((word & segment_mask_) == segment_word_ &&
        load_acquire<Edge::segment_open>(view_.control->current) == segment_.number) [[likely]] {
      return ClaimPoint{word, segment_.number};
    }
    return load_claim_point(*view_.control, layout_);
  }

  // Marks the claim that was just made from `from`. False if it must not take effect: others
  // withdrew it while this thread did not run, or the truncated segment number has wrapped around
  // since `from` was read, so that the claim's segment is unknown.
  [[gnu::always_inline]] bool mark(const ClaimPoint& from) noexcept {
    // [segment-open] acquire: the claim's segment is between that of `from` and this one.
    const std::uint64_t current = load_acquire<Edge::segment_open>(view_.control->current);
    if (layout_.is_a_lap_apart(from.segment, current)) [[unlikely]]
      return false;
    // [withdraw] release: marks, then reads `withdrawn` without a fence in between; see withdraw().
    if (fences_) [[unlikely]] {
      (void)exchange<Edge::withdraw>(slot_->phase, claim_number_ | kClaimed);
    } else {
      store_release<Edge::withdraw>(slot_->phase, claim_number_ | kClaimed);
    }
    LEAT_CRASH_POINT("claim:marked");
    return load_acquire<Edge::withdraw>(slot_->withdrawn) != claim_number_;
  }

  // Fills in `room` for a claim from `word` in the entered segment, and writes the
  // header's claim field.
  [[gnu::always_inline]] void place(ClaimedRoom& room, std::uint64_t word, std::uint64_t records,
                                    std::uint64_t granules) noexcept {
    const std::uint64_t granule = layout_.granules(word);
    room.header = &segment_.header(granule);
    // The cache lines of the next records are in the caches of their last readers:
    // fetch them early.
    __builtin_prefetch(reinterpret_cast<const std::byte*>(room.header) + kPrefetchDistance, 1);
    room.tag = segment_.tag(granule, key_);
    room.offset = segment_.base_offset + layout_.records(word);
    claimed_until_ = room.offset + records;
    // relaxed: the swap of the commit word fails if it is stale, and publishes what
    // is stored below.
    if (!exclusive_) {
      room.old_commit = load_relaxed<Why::swap_checks>(room.header->commit);
      // Revoked already, while this thread did not run. The swap must fail, so expect a value that
      // the word does not hold.
      if (is_record_kind(room.old_commit ^ room.tag)) [[unlikely]]
        room.old_commit = ~room.old_commit;
    }
    // [overwrite] release: oldest_segment was moved before this segment was opened, so a lossy
    // reader that sees bytes written from here on also sees that.
    fence_release<Edge::overwrite>();
    store_relaxed<Why::published_later>(room.header->claim, static_cast<std::uint32_t>(granules) |
                                                                (records != 1 ? kBatchClaim : 0));
  }

  // Enters a segment. It is not reused meanwhile: an open claim holds it, or no other
  // publisher can roll.
  Result<void> enter(std::uint64_t number) noexcept;

  // Moves to the next segment because `granules` do not fit behind the claim word; waits for
  // room if necessary.
  Result<void> next_segment(std::uint64_t granules, const Deadline& deadline,
                            const std::stop_token* stop);

  // Whether a claim from `from` stays below the limit. The offset is right if the claim's swap
  // succeeds: then the segment was the current one. Not a Result: CSimpleIPC asks for each block.
  enum class LimitState {
    below,
    reached,
    forked,  // in a child that offset_limit has forked: the slot is its parent's
  };
  LimitState ask_limit(const ClaimPoint& from, std::uint64_t records);

  Error wait_for_limit(ClaimPoint from, std::uint64_t records, const Deadline& deadline,
                       const std::stop_token* stop);

  bool waits_for_room() const noexcept;
  // Why a claim that found no room, or came to its limit, is not to wait; ok: it waits.
  Error why_not_wait(const Shortage* shortage, std::int64_t now, std::int64_t started_ns,
                     const Deadline& deadline, const std::stop_token* stop) const;
  // Sleeps for a while unless is_there(), which returns Result<bool>. If there is a `refusal`, returns
  // it instead, and arms the descriptor if there is one.
  template <class IsThere>
  Result<void> wait_or_refuse(const Error& refusal, const Deadline& deadline, IsThere&& is_there);

  // Evicts the subscribers that hold the oldest segment if they have done so for evict_after,
  // counted from when this publisher first found the topic full because of that segment.
  bool evict_if_late(Roller& roller, std::int64_t now) noexcept;

  // Writes to each cache line of the next two records of this size, so that publishing them need
  // not wait for other CPUs to give the lines up. Stores, because prefetching for writing gains
  // nothing: docs/decisions/0009-an-exclusive-publisher-touches-what-comes-next.md. Only touches
  // unclaimed room, in a segment where only this publisher claims, and no commit word.
  [[gnu::always_inline]] void touch_ahead(const ClaimedRoom& room) noexcept {
    const std::uint64_t claimed = layout_.granules(claim_) * kGranule;  // Bytes of the segment.
    const auto begin =
        static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(room.header) - segment_.data);
    const std::uint64_t ahead = 2 * (claimed - begin);
    std::uint64_t until = claimed + (ahead < kTouchAhead ? ahead : kTouchAhead);
    if (until > segment_granules_ * kGranule) until = segment_granules_ * kGranule;
    if (touched_ < claimed) touched_ = Geometry::round_up(claimed, kCacheLine);
    for (; touched_ < until; touched_ += kCacheLine) {
      auto& detail = *reinterpret_cast<std::uint32_t*>(segment_.data + touched_ +
                                                       offsetof(RecordHeader, detail));
      store_relaxed<Why::hint>(detail, 0U);
    }
  }

  // Whether records follow each other so fast that nobody waits for a single one: then touching them ahead only writes
  // each line twice. The clock is read once in kPace records.
  void note_pace() noexcept;

  Error after_commit(std::uint32_t wake) noexcept;

  // ns; how long a program may take to hand a new subscriber to the thread that polls it.
  static constexpr std::int64_t kHandedOver = 1'000'000'000;
  static constexpr std::size_t kCacheLine = 64;      // bytes
  static constexpr std::size_t kTouchAhead = 1024;   // bytes
  static constexpr std::uint32_t kPace = 64;         // records
  static constexpr std::int64_t kStreamPause = 100;  // ns between two records of a stream, at most
  static constexpr std::size_t kLeastLoan = 1024;    // bytes
  static constexpr std::size_t kPrefetchDistance = 512;  // bytes; 256 to 2048 measured the same

  MappedTopic* topic_;
  PartitionView view_;
  PartitionSlot* slot_;             // The owner's line in view_.slots.
  std::byte* records_;              // First segment of this partition.
  const std::uint32_t* data_wake_;  // In the topic's header, as is the next.
  const std::uint32_t* robust_wake_;
  ClaimLayout layout_;  // This and the next three: copies of the geometry.
  std::uint64_t key_;
  std::uint64_t segment_granules_;
  std::uint64_t granules_or_closed_;   // Mask of the claim word: granules and kClosed.
  std::uint64_t segment_mask_;         // Mask of the claim word: segment number and kClosed.
  CurrentSegment<std::byte> segment_;  // The segment last claimed in.
  std::uint64_t segment_word_ = ClaimLayout::kClosed;  // Its first claim word.
  std::uint64_t touched_ = 0;         // Exclusive only: how far touch_ahead() has come, in bytes.
  std::uint32_t until_pace_ = kPace;  // Exclusive only, as is_stream_.
  std::int64_t paced_ns_ = 0;         // When the clock was read last.
  std::uint64_t claim_ = ClaimLayout::kClosed;  // Exclusive only: the claim word's value.
  std::uint64_t announced_increment_ = 0;       // Exclusive only: the slot's claim_increment.
  std::uint64_t claim_number_;                  // << 2; changes with every announcement.
  const Callback<std::uint64_t()>* limit_ = nullptr;
  const WaitEnd* wait_end_ = nullptr;
  std::uint64_t below_ = 0;           // Last result of limit_,
  std::uint32_t limit_asked_at_ = 0;  // and the value of space_wake before that call.
  std::uint64_t blocked_by_ = 0;      // Oldest segment when first found full; 0: not full.
  std::int64_t blocked_since_ns_ = 0;
  std::uint32_t partition_;
  std::uint32_t own_slot_;
  // Exclusive only: the batch that has borrowed room. Then segment_granules_ is 0, so that every claim
  // goes through next_segment(), and touch_ahead() touches nothing.
  Batch* borrower_ = nullptr;
  bool exclusive_;
  bool is_stream_ = false;
  static constexpr std::uint8_t kClaimIsOpen = 1;  // A Claim of this partition is unfinished.
  static constexpr std::uint8_t kIsDurable = 2;
  static constexpr std::uint8_t kAsksLimit = 4;  // offset_limit runs, within a claim.
  std::uint8_t checks_first_ = 0;                // These bits.
  bool fences_ = false;
  const DurableHeader* durable_;  // Null unless the topic is durable.
  std::uint64_t claimed_until_ = 0;
  WaitHandle room_fd_;  // Null until somebody asks for it.
  OwnPause pause_;      // Looks while there is no room.
};

}  // namespace leat::inline v0::detail
