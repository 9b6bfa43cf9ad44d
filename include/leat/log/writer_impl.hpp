// What a publisher does once per segment, when there is no room, or when its claim was withdrawn.
#pragma once

#include "leat/base/config.hpp"
#include "leat/log/segments.hpp"
#include "leat/log/wait_fd.hpp"
#include "leat/topic.hpp"

namespace leat::inline v0::detail {

LEAT_INLINE const Geometry& PartitionWriter::geometry() const noexcept {
  return topic_->geometry();
}

LEAT_INLINE PartitionWriter::PartitionWriter(MappedTopic& topic, std::uint32_t partition,
                                             std::uint32_t own_slot, std::byte* records,
                                             bool exclusive) noexcept
    : topic_{&topic},
      view_{topic.partition(partition)},
      slot_{&view_.slots[own_slot]},
      records_{records + view_.records_offset},
      data_wake_{&topic.header().data_wake},
      robust_wake_{&topic.header().robust_wake},
      layout_{topic.geometry().claim_layout},
      key_{topic.geometry().key},
      segment_granules_{topic.geometry().segment_granules},
      granules_or_closed_{layout_.granules(~0ULL) | ClaimLayout::kClosed},
      segment_mask_{layout_.pack(~0ULL, 0, 0) | ClaimLayout::kClosed},
      // relaxed: own word. Continues the numbers of the slot's last owner.
      claim_number_{load_relaxed<Why::own>(slot_->phase) & ~kPhaseMask},
      partition_{partition},
      own_slot_{own_slot},
      exclusive_{exclusive},
      checks_first_{topic.durable() != nullptr ? kIsDurable : std::uint8_t{0}},
      durable_{topic.durable() != nullptr ? &topic.durable()->header() : nullptr} {
  if (exclusive) announce_exclusive();
}

LEAT_INLINE void PartitionWriter::announce_exclusive() noexcept {
  store_release<Edge::intent>(slot_->claim_word, load_acquire<Edge::claim>(view_.control->claim));
  store_release<Edge::intent>(slot_->claim_segment, 0);  // It holds none yet.
  store_release<Edge::intent>(slot_->phase, claim_number_ | kClaiming);
}

[[gnu::noinline]] LEAT_INLINE Error PartitionWriter::give_up(const ClaimPoint& from) {
  return Repair{*topic_, partition_, own_slot_}.give_up_own(from).error();
}

// While a claim is open, nothing else is claimed, so its segment is the one that was entered last.
[[gnu::noinline]] LEAT_INLINE void PartitionWriter::note_gap() const noexcept {
  detail::note_gap(view_, segment_.number);
}

[[gnu::noinline]] LEAT_INLINE void PartitionWriter::note_pace() noexcept {
  const std::int64_t now = now_ns();
  is_stream_ = now - paced_ns_ < kPace * kStreamPause;
  paced_ns_ = now;
  until_pace_ = kPace;
}

[[gnu::noinline]] LEAT_INLINE Result<void> PartitionWriter::enter(std::uint64_t number) noexcept {
  auto segment = find_segment(*topic_, view_, number);
  if (!segment) return segment.error();
  // [intent] release: before an exclusive publisher's claims in it. Shared publishers announce it.
  if (exclusive_) store_release<Edge::intent>(slot_->claim_segment, number);
  segment_.enter(*segment, records_, geometry());
  segment_word_ = layout_.pack(number, 0, 0);
  touched_ = 0;
  return {};
}

[[gnu::noinline]] LEAT_INLINE Result<void> PartitionWriter::next_segment(
    std::uint64_t granules, const Deadline& deadline, const std::stop_token* stop) {
  if (borrower_ != nullptr) {
    if (!borrower_->move_out()) return Error{Errc::no_memory};
    return {};  // The room is there again: the caller looks at it.
  }
  const std::int64_t started_ns = now_ns();
  // Every move is progress by some publisher; corrupted words could fake progress indefinitely.
  for (std::uint32_t moves = 0; moves < kManyMoves;) {
    const std::optional<ClaimPoint> point = load_claim_point(*view_.control, layout_);
    if (!point) return Errc::corrupt;
    if ((point->word & granules_or_closed_) + granules <= segment_granules_) {
      if (!exclusive_) return {};
      // Only then: a claim in a segment that was not entered would lie at any address.
      auto entered = enter(point->segment);
      if (entered) claim_ = point->word;
      return entered;
    }
    Shortage shortage;
    Roller roller{*topic_, partition_, own_slot_};
    const auto state = roller.roll(granules, shortage);
    if (!state) return state.error();
    if (*state == RollState::moved) {
      ++moves;
      continue;
    }
    moves = 0;

    // Full.
    const std::int64_t now = now_ns();
    pause_.check(now);
    if (shortage.by_readers && !topic_->is_deleted() && evict_if_late(roller, now)) continue;
    const Error refusal = why_not_wait(&shortage, now, started_ns, deadline, stop);
    const auto is_there = [&]() -> Result<bool> {
      auto again = roller.roll(granules, shortage);
      if (!again) return again.error();
      return *again == RollState::moved;
    };
    if (auto waited = wait_or_refuse(refusal, deadline, is_there); !waited) return waited.error();
  }
  return Errc::corrupt;
}

[[gnu::noinline]] LEAT_INLINE Error
PartitionWriter::why_not_wait(const Shortage* shortage, std::int64_t now, std::int64_t started_ns,
                              const Deadline& deadline, const std::stop_token* stop) const {
  if (topic_->is_deleted()) return {Errc::deleted};
  if (const DurableWindow* durable = topic_->durable(); shortage != nullptr && durable != nullptr) {
    if (const Errc trouble = durable->trouble(); trouble != Errc::ok)
      return {trouble, durable->reason()};
  }
  if (!waits_for_room() || deadline.is_immediate()) return {Errc::full};
  if (shortage != nullptr) {
    if ((geometry().flags & kRetainAll) != 0) return {Errc::full};
    const bool is_by_own = shortage->by_readers || shortage->by_own_pins || shortage->by_members;
    if (is_by_own && !shortage->by_others &&
        (!shortage->by_unpolled || pause_.is_late(now, started_ns, kHandedOver))) {
      return {Errc::would_deadlock};
    }
  }
  if (wait_end_->came(stop)) return {Errc::stopped};
  if (deadline.passed()) return {Errc::timeout};
  return {};
}

// Sets the sleeping bit on the word that readers wake, checks once more, then sleeps, or leaves that to
// the descriptor's helper. docs/internals/log.md, "Waiting".
template <class IsThere>
Result<void> PartitionWriter::wait_or_refuse(const Error& refusal, const Deadline& deadline,
                                             IsThere&& is_there) {
  const bool is_refused = refusal.code != Errc::ok;
  if (is_refused && room_fd_ == nullptr) return refusal;
  if (is_refused) room_fd_->drain();
  std::uint32_t& space_wake = topic_->header().space_wake;
  const std::uint32_t sleeping = MappedTopic::announce_sleep(space_wake);
  LEAT_CRASH_POINT("space:sleeping");
  Result<bool> there = is_there();
  if (!there) return there.error();
  if (*there) return {};
  // Both look again soon: a process that holds the room may die silently.
  if (!is_refused) {
    if (futex_wait(space_wake, sleeping, deadline.at_most_ns(kCheckAgain)) &&
        wait_end_->interruptible)
      return Errc::interrupted;
    return {};
  }
  room_fd_->arm(sleeping, (geometry().flags & kRetainAll) == 0);  // Else there is never room.
  return refusal;
}

[[gnu::noinline]] LEAT_INLINE PartitionWriter::LimitState PartitionWriter::ask_limit(
    const ClaimPoint& from, std::uint64_t records) {
  std::uint64_t base = segment_.base_offset;
  if (segment_.number != from.segment) {
    // [segment-map] acquire
    base = load_acquire<Edge::segment_map>(view_.entry(from.segment).base_offset);
  }
  const std::uint64_t end = base + layout_.records(from.word) + records;
  // [sleeping] acquire: space_wake changes after the limit does.
  const std::uint32_t moved = load_acquire<Edge::sleeping>(topic_->header().space_wake);
  if (end > below_ || moved != limit_asked_at_) {
    limit_asked_at_ = moved;
    // A claim is under way, so the callback cannot claim here. It may throw.
    struct Asking {
      ~Asking() { checks_first = static_cast<std::uint8_t>(checks_first & ~kAsksLimit); }
      std::uint8_t& checks_first;
    } const asking{checks_first_};
    checks_first_ |= kAsksLimit;
    const std::uint32_t generation = fork_generation();
    below_ = (*limit_)();
    if (generation != fork_generation()) return LimitState::forked;
  }
  return end <= below_ ? LimitState::below : LimitState::reached;
}

[[gnu::noinline]] LEAT_INLINE Error PartitionWriter::wait_for_limit(ClaimPoint from,
                                                                    std::uint64_t records,
                                                                    const Deadline& deadline,
                                                                    const std::stop_token* stop) {
  const auto is_there = [&]() -> Result<bool> {
    const LimitState state = ask_limit(from, records);
    if (state == LimitState::forked) return Errc::forked;
    return state == LimitState::below;
  };
  for (;;) {
    const Result<bool> is_below = is_there();
    if (!is_below) return is_below.error();
    if (*is_below) return {};
    const Error refusal = why_not_wait(nullptr, 0, 0, deadline, stop);
    if (auto waited = wait_or_refuse(refusal, deadline, is_there); !waited) return waited.error();
    if (exclusive_) continue;
    const std::optional<ClaimPoint> now = load_claim_point(*view_.control, layout_);
    if (!now) return {Errc::corrupt};
    from = *now;
  }
}

LEAT_INLINE std::span<std::byte> PartitionWriter::lend(Batch& batch) noexcept {
  if (!exclusive_ || borrower_ != nullptr || (claim_ & ClaimLayout::kClosed) != 0) return {};
  if ((checks_first_ & kAsksLimit) != 0) return {};  // The room is about to be claimed.
  constexpr std::size_t kHeaders = sizeof(RecordHeader) + sizeof(BatchHeader);
  const std::uint64_t granule = layout_.granules(claim_);
  const std::uint64_t bytes = (segment_granules_ - granule) * kGranule;
  if (bytes < kLeastLoan) return {};
  // [overwrite] release: as in place(), before the first byte is written.
  fence_release<Edge::overwrite>();
  resume_loan(batch);
  return {reinterpret_cast<std::byte*>(&segment_.header(granule)) + kHeaders, bytes - kHeaders};
}

LEAT_INLINE void PartitionWriter::open_loan() noexcept {
  segment_granules_ = geometry().segment_granules;
}

LEAT_INLINE void PartitionWriter::end_loan() noexcept {
  open_loan();
  borrower_ = nullptr;
}

LEAT_INLINE void PartitionWriter::resume_loan(Batch& batch) noexcept {
  borrower_ = &batch;
  segment_granules_ = 0;
}

LEAT_INLINE bool PartitionWriter::waits_for_room() const noexcept {
  return geometry().policy == static_cast<std::uint32_t>(Policy::block) || geometry().grows();
}

LEAT_INLINE bool PartitionWriter::evict_if_late(Roller& roller, std::int64_t now) noexcept {
  if (geometry().evict_after_ns == 0) return false;
  // [retire] seq_cst
  const std::uint64_t oldest = load_seq_cst<Edge::retire>(view_.control->oldest_segment);
  if (blocked_by_ != oldest) {
    blocked_by_ = oldest;
    blocked_since_ns_ = now;
    pause_.begin(now);
  }
  if (!pause_.is_late(now, blocked_since_ns_, geometry().evict_after_ns)) return false;
  blocked_by_ = 0;
  roller.evict_blockers();
  return true;
}

[[gnu::noinline]] LEAT_INLINE Error PartitionWriter::after_commit(std::uint32_t wake) noexcept {
  MappedTopic::wake(topic_->header().data_wake);
  if ((wake & kDeleted) != 0) return {Errc::deleted};
  return {};
}

}  // namespace leat::inline v0::detail
