// How a Member claims records. Included by group/impl.hpp only. docs/internals/groups.md, "Claiming".
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>

#include "leat/group/member_core.hpp"

namespace leat::inline v0::detail {

// ---- Claiming ------------------------------------------------------------------------------------

inline void MemberCore::note_in_flight() noexcept {
  // [hold] release: before the hold, or the cursor, that others find. Whoever sleeps looks here
  // whether somebody may die over records.
  store_release<Edge::hold>(seat().in_flight, static_cast<std::uint32_t>(in_flight_));
}

[[gnu::always_inline]] inline void MemberCore::write_hold(std::uint32_t row, std::uint32_t index,
                                                          const WalkedRecord& record,
                                                          std::uint64_t key,
                                                          std::uint64_t state) noexcept {
  GroupHold& hold = group_->hold(row, index);

  if (row == seat_ && load_relaxed<Why::own>(seat().hold_high) <= index)
    store_release<Edge::hold>(seat().hold_high, index + 1);
  // relaxed, all: stored before the state. [hold-place] release, two: the reads of this hold's last
  // record are done.
  store_release<Edge::hold_place>(hold.position, record.position);
  store_relaxed<Why::published_later>(hold.offset, record.offset);
  store_release<Edge::hold_place>(hold.where, record.where.pack());
  if (by_key_) store_relaxed<Why::published_later>(hold.key, key);
  if (geometry().lease_ns != 0) {
    const std::int64_t until = ns_from_now(geometry().lease_ns);
    lease_ends_ns_ = std::min(lease_ends_ns_, until);
    store_relaxed<Why::published_later>(hold.lease_until_ns, until);
  }
  // [hold] release
  store_release<Edge::hold>(hold.state, state);
}

// Finds a spare hold that is free, from `at` on, and makes it this claim's; at the end there is none.
inline bool MemberCore::take_spare(const HoldState& state, std::uint32_t& at) noexcept {
  const std::uint32_t first = geometry().seat_count;
  for (; at < geometry().spare_count(); ++at) {
    GroupHold& hold = group_->hold(first, at);
    std::uint64_t word = load_acquire<Edge::hold>(hold.state);
    if (phase_of(word) != HoldPhase::free) continue;
    // Others used it, too: numbers only rise, so that no state of a hold comes again.
    const std::uint64_t last = HoldState::unpack(word).generation;
    if (last >= state.generation) {
      claim_number_ = std::max(claim_number_, last);
      continue;
    }
    std::uint32_t high = load_relaxed<Why::swap_checks>(group_->header().spare_high);
    while (high <= at && !compare_exchange<Edge::hold>(group_->header().spare_high, high, at + 1)) {
    }
    // [hold] seq_cst: only one gets it. Its facts follow, before the cursor passes the record.
    if (compare_exchange<Edge::hold>(hold.state, word, state.reserved().pack())) {
      LEAT_CRASH_POINT("take:spare");
      return true;
    }
  }
  return false;
}

// Before the record is this member's, and so perhaps another's by now: never shortens a lease.
inline void MemberCore::extend_lease(GroupHold& hold) noexcept {
  if (geometry().lease_ns == 0) return;
  const std::int64_t until = ns_from_now(geometry().lease_ns);
  lease_ends_ns_ = std::min(lease_ends_ns_, until);
  std::int64_t seen = load_relaxed<Why::swap_checks>(hold.lease_until_ns);
  while (seen < until && !compare_exchange<Edge::hold>(hold.lease_until_ns, seen, until)) {
  }
}

// Not more than half of its share of what is there, if there are other members.
inline std::size_t MemberCore::fair_share(Lane& lane, std::size_t want) noexcept {
  if (want <= 1) return want;
  if (claims_until_count_ == 0) {
    claims_until_count_ = 64;
    members_ = 0;
    for (std::uint32_t i = 0; i < group_->seat_high(); ++i) {
      if (load_relaxed<Why::hint>(group_->seat(i).identity) != 0) ++members_;
    }
  }
  --claims_until_count_;
  if (members_ <= 1) return want;
  const std::uint64_t backlog = lane.walker.claimed_beyond();
  return std::min<std::size_t>(want, std::max<std::uint64_t>(1, backlog / (2 * members_)));
}

// Keeps the cursor's segment while it is walked, where atomic looks that are dropped later are not
// enough: by key, since keys lie in payloads; under policy grow, since memory that was given back must
// not be touched at all. False if it may be reused already: then the cursor has moved on.
inline bool MemberCore::pin(Lane& lane, const CursorValue& cursor) noexcept {
  const std::uint32_t partition = lane.walker.partition();
  const std::uint64_t segment = cursor.position() / shared().geometry().segment_granules;
  // [retire] seq_cst: pin first, then look at oldest_segment. The cursor itself may keep a segment that was retired
  // while the group was made or moved.
  (void)exchange<Edge::retire>(participant_.partition_slot(partition).pin, segment);
  return load_seq_cst<Edge::retire>(shared().partition(partition).control->oldest_segment) <=
             segment ||
         (group_->load_cursor(partition) == cursor && !is_closed());
}
inline void MemberCore::unpin(std::uint32_t partition) noexcept {
  if (!must_pin_) return;
  // [cursor] release: the reads are done.
  store_release<Edge::cursor>(participant_.partition_slot(partition).pin, 0);
}

inline MemberCore::LeasedRead::LeasedRead(MemberCore& member, const GroupHold& hold,
                                          std::uint64_t state) noexcept
    : member_{member}, hold_{hold}, state_{state} {
  if (member.must_pin_) {
    // relaxed, both: stored before the state; if that is another one by now, nothing is read.
    const std::uint32_t partition =
        HoldPlace::unpack(load_relaxed<Why::rechecked>(hold.where)).partition;
    const std::uint64_t position = load_relaxed<Why::rechecked>(hold.position);
    partition_ = partition < member.lanes_.size() ? partition : 0;
    // [retire] seq_cst: pin first, then look at the hold.
    (void)exchange<Edge::retire>(member.participant_.partition_slot(partition_).pin,
                                 position / member.shared().geometry().segment_granules);
  }
  is_mine_ = load_seq_cst<Edge::hold>(hold.state) == state;
}
inline bool MemberCore::LeasedRead::is_still_mine() const noexcept {
  fence_acquire<Edge::hold>();
  return is_mine_ && load_acquire<Edge::hold>(hold_.state) == state_;
}

// All that was ready is handed out.
inline void MemberCore::begin_ready() noexcept {
  ready_.clear();
  ready_at_ = 0;
  has_lost_ = false;
}

// Claims up to `want` records of a partition; they are in ready_ then. False: none, or an error.
inline bool MemberCore::claim(Lane& lane, std::size_t want, HoldPhase phase) {
  const std::uint32_t partition = lane.walker.partition();
  begin_ready();
  for (std::uint32_t attempt = 0; attempt < kManyMoves; ++attempt) {
    ClaimAttempt claim;
    claim.from = group_->load_cursor(partition);
    if (must_pin_ && !pin(lane, claim.from)) {
      unpin(partition);
      if (is_closed()) break;
      continue;  // Others have moved it.
    }
    claim.walk = lane.walker.go_to(claim.from);
    if (claim.walk == Walk::nothing) {
      unpin(partition);
      return false;
    }
    name_claim(claim, partition, phase);
    hold_records(claim, lane, want);
    gain_claimed_keys(claim, partition);
    LEAT_CRASH_POINT("take:held");
    claim.is_won = swap_cursor(claim, lane.walker);
    const ClaimEnd end =
        claim.is_won ? keep_claimed(claim, lane.walker) : drop_claimed(claim, partition);
    if (end == ClaimEnd::one) return true;
    if (end == ClaimEnd::none) return false;
    if (end == ClaimEnd::failed) break;
  }
  (void)fail(is_closed() ? Errc::closed : Errc::corrupt);
  return false;
}

// First step: a number that the cursor does not show for this seat now, so that it tells this claim.
inline void MemberCore::name_claim(ClaimAttempt& claim, std::uint32_t partition,
                                   HoldPhase phase) noexcept {
  std::uint64_t number = claim_number_ + 1;
  if (names_claim(claim.from, seat_, {number, 0})) ++number;
  claim.name = {number, partition};
  // [group-cursor] release: before the claim's holds.
  store_release<Edge::group_cursor>(seat().claiming, claim.name.pack());
  claim.state = {phase, seat_ + 1, phase == HoldPhase::held ? 1U : 0U,
                 false, false,     number & HoldState::kGenerationMask};
}

// Second step: walks from the cursor on, and stores a hold for each record.
inline void MemberCore::hold_records(ClaimAttempt& claim, Lane& lane, std::size_t want) noexcept {
  Walker& walker = lane.walker;
  claim.first_segment = walker.segment();
  claim.share = std::min({fair_share(lane, want), geometry().hold_count - in_flight_, kAtOnce});
  const std::uint64_t word = claim.state.pack();
  bool has_spare = false;
  while (claim.walk != Walk::corrupt && ready_.size() < claim.share) {
    if (ready_.empty()) {
      ++in_flight_;
      note_in_flight();
      --in_flight_;
    }
    const bool is_own = claim.from_own != free_.size();
    if (!is_own && !has_spare && !(has_spare = take_spare(claim.state, claim.spare))) break;
    WalkedRecord record;
    claim.walk = walker.next(record);
    if (claim.walk == Walk::skipped) {
      claim.has_moved = true;
      if (must_pin_ && walker.segment() != claim.first_segment) break;
      continue;
    }
    if (claim.walk != Walk::record) break;
    const std::uint32_t row = is_own ? seat_ : geometry().seat_count;
    const std::uint32_t index = is_own ? free_[free_.size() - ++claim.from_own] : claim.spare++;
    if (!is_own) has_spare = false;
    write_hold(row, index, record, by_key_ ? key_hash(record) : 0, word);
    push_reserved(ready_, {record, row, index, word});
  }
  if (!has_spare) return;
  // [hold] release
  store_release<Edge::hold>(group_->hold(geometry().seat_count, claim.spare).state,
                            HoldState::let_go(word, HoldPhase::free));
}

// Third step, by key: what has somebody else's key goes from ready_ to parked_.
inline void MemberCore::gain_claimed_keys(ClaimAttempt& claim, std::uint32_t partition) noexcept {
  // Who walks the same records at the same time must not find their keys taken for nothing.
  claim.is_late = by_key_ && group_->load_cursor(partition) != claim.from;
  if (claim.is_late) {
    parked_.swap(ready_);  // No key was gained.
  } else if (by_key_) {
    gain_keys();
  }
}

// Fourth step: the claim is made if the cursor is still where the walk began.
inline bool MemberCore::swap_cursor(const ClaimAttempt& claim, const Walker& walker) noexcept {
  const bool has_passed = claim.has_moved || !ready_.empty() || !parked_.empty();
  if (claim.is_late || claim.walk == Walk::corrupt || !has_passed) return false;
  note_claim(*group_, walker.partition(), claim.from);
  LEAT_CRASH_POINT("take:noting");
  if (!group_->swap_cursor(walker.partition(), claim.from,
                           walker.cursor(seat_ + 1, claim.name.number)))
    return false;
  LEAT_CRASH_POINT("take:claimed");
  return true;
}

// Last step: the claim was made. What is ready is this member's; what is parked, everybody's.
inline MemberCore::ClaimEnd MemberCore::keep_claimed(const ClaimAttempt& claim,
                                                     const Walker& walker) noexcept {
  // Deleted meanwhile: then nothing may have kept what was walked. If not, the holds will.
  if (is_closed()) [[unlikely]] {
    begin_ready();
    parked_.clear();
    unpin(walker.partition());
    return ClaimEnd::failed;
  }
  // [group-cursor] release
  store_release<Edge::group_cursor>(seat().noted, claim.name.pack());
  LEAT_CRASH_POINT("take:noted");
  claim_number_ = std::max(claim_number_, claim.name.number);
  const bool any = !ready_.empty() || !parked_.empty();
  keep_holds(claim);
  if (walker.segment() != claim.first_segment) SharedTopic::wake(shared().header().space_wake);
  unpin(walker.partition());
  if (!ready_.empty()) return ClaimEnd::one;
  if (claim_again_ns_ != 0) return ClaimEnd::none;
  // Only gaps so far, or keys that others have.
  return claim.has_moved || any ? ClaimEnd::again : ClaimEnd::none;
}
inline void MemberCore::keep_holds(const ClaimAttempt& claim) noexcept {
  const std::uint64_t word = claim.state.pack();
  free_.resize(free_.size() - claim.from_own);
  in_flight_ += ready_.size() + parked_.size();
  note_in_flight();
  for (const Ready& one : ready_) {
    if (one.row == seat_) [[likely]] {
      own_[one.hold] = {{word, 0, 0}, Own::mine};
    } else {
      *others_.insert(place_of(one.row, one.hold)) = {word, 0, 0};
    }
  }
  if (!by_key_) return;
  for (const Ready& one : ready_) {
    find_mine(one.row, one.hold)->key = load_relaxed<Why::own>(group_->hold(one.row, one.hold).key);
  }
  park();
}

// Or: it was not made, and never will be.
inline MemberCore::ClaimEnd MemberCore::drop_claimed(const ClaimAttempt& claim,
                                                     std::uint32_t partition) noexcept {
  const bool any = !ready_.empty() || !parked_.empty();
  if (any) drop_holds(claim.state.pack());
  unpin(partition);
  note_in_flight();
  if (claim.walk != Walk::corrupt && !any && !claim.has_moved) {
    // There are spare holds, for larger numbers.
    if (claim_number_ >= claim.name.number) return ClaimEnd::again;
    is_room_full_ = claim.share != 0 && claim.from_own == free_.size() &&
                    claim.spare == geometry().spare_count();
    if (is_room_full_) claim_again_ns_ = now_ns() + kOthersDie;
    return ClaimEnd::none;
  }
  // Nonsense, unless it was overwritten meanwhile: then the cursor has moved.
  if (claim.walk == Walk::corrupt && group_->load_cursor(partition) == claim.from)
    return ClaimEnd::failed;
  spin_pause();
  return ClaimEnd::again;
}
inline void MemberCore::drop_holds(std::uint64_t word) noexcept {
  bool announces = false;
  for (const auto* claimed : {&ready_, &parked_}) {
    for (const Ready& one : *claimed) {
      GroupHold& hold = group_->hold(one.row, one.hold);
      const std::uint64_t key = by_key_ ? load_relaxed<Why::own>(hold.key) : 0;
      // [hold] seq_cst: before the slot is looked at.
      (void)exchange<Edge::hold>(hold.state, HoldState::let_go(word, HoldPhase::free));
      if (key == 0) continue;
      if (claimed == &ready_) {
        drop_key(key);
      } else {
        // Who looked for what came back of this key found the hold in its way.
        const std::uint64_t slot = load_seq_cst<Edge::key_slot>(group_->key_slot(key));
        announces = announces || KeySlot::unpack(slot).marked;
      }
    }
  }
  if (announces) announce_returned(shared(), *group_);
  ready_.clear();
  parked_.clear();
}

// The same in the next partition that has some. False may be an error.
inline bool MemberCore::claim_anywhere(std::size_t want, HoldPhase phase) {
  if (in_flight_ >= geometry().hold_count && geometry().lease_ns != 0) forget_lost_leases();
  if (free_.size() < want && lost_ != 0) find_lost_holds();
  if (in_flight_ >= geometry().hold_count) {
    (void)fail(Errc::in_flight_full);
    return false;
  }
  // By key: enough came back, or was parked, for everybody; what is claimed now is parked, too.
  if (claim_again_ns_ == 0 && returned_count_ >= kEnoughReturned && !has_gained_) [[unlikely]]
    claim_again_ns_ = now_ns() + kOthersDie;
  if (claim_again_ns_ != 0) [[unlikely]] {
    if (now_ns() < claim_again_ns_) return false;
    claim_again_ns_ = 0;
    is_room_full_ = false;
  }
  for (std::size_t turn = 0; turn < lanes_.size(); ++turn) {
    Lane& lane = lanes_[next_lane_];
    if (++next_lane_ == lanes_.size()) next_lane_ = 0;
    has_gained_ = claim(lane, want, phase);
    if (has_gained_) {
      park_run_ = may_park_ = kAhead;
      return true;
    }
    if (error_.code != Errc::ok || claim_again_ns_ != 0) return false;
  }
  return false;
}

// Own records that were taken away with their lease, and whose deliveries nobody has asked about since.
// Those that are not handed out yet are looked at when they are.
inline void MemberCore::forget_lost_leases() noexcept {
  const bool has_ready = ready_at_ != ready_.size();
  lease_ends_ns_ = std::numeric_limits<std::int64_t>::max();
  const auto look = [&](std::uint32_t row, std::uint32_t index, const Mine& mine) {
    if (has_ready && mine.order == 0) return;
    const GroupHold& hold = group_->hold(row, index);
    if (load_acquire<Edge::hold>(hold.state) == mine.state) {
      lease_ends_ns_ = std::min(lease_ends_ns_, load_relaxed<Why::own>(hold.lease_until_ns));
      return;
    }
    note_lost_lease(row, index, mine.state);
    lose(row, index);
  };
  for (std::uint32_t index = 0; index < own_.size(); ++index) {
    if (own_[index].whose == Own::mine) look(seat_, index, own_[index].mine);
  }
  others_.each([&](std::uint64_t place, const Mine& mine) {
    look(row_of(place), index_of(place), Mine{mine});
  });
}

// Own holds that others have settled meanwhile can be used again.
inline void MemberCore::find_lost_holds() noexcept {
  for (std::uint32_t index = 0; index < own_.size() && lost_ != 0; ++index) {
    if (own_[index].whose != Own::lost) continue;
    // [hold] acquire: whoever had the record is done with it.
    const std::uint64_t state = load_acquire<Edge::hold>(group_->hold(seat_, index).state);
    if (phase_of(state) != HoldPhase::free) continue;
    // Whoever had it counted on: see take_spare().
    claim_number_ = std::max(claim_number_, HoldState::unpack(state).generation);
    own_[index] = {};
    --lost_;
    free_.push_back(index);
  }
}

}  // namespace leat::inline v0::detail
