// How a Member comes and goes, lets records go, waits, and looks after the others. Included by
// group/impl.hpp only. docs/internals/groups.md.
#pragma once

#include <algorithm>

#include "leat/group/closing.hpp"
#include "leat/group/member_retake.hpp"

namespace leat::inline v0::detail {

// ---- Coming and going ----------------------------------------------------------------------------

// Takes a vacant seat, or a dead member's.
inline Result<void> MemberCore::take_seat(const MemberOptions& options, const std::byte* records) {
  if (options.name.size() >= sizeof(GroupSeat::name)) return Errc::invalid_argument;
  records_ = records;
  for (std::uint32_t i = 0; i < shared().geometry().partition_count; ++i)
    lanes_.emplace_back(shared(), i, records);
  const std::uint64_t identity = identity_of(participant_.state());
  const auto try_seat = [&](std::uint32_t index) {
    std::uint32_t high = load_relaxed<Why::swap_checks>(group_->header().seat_high);
    while (high <= index &&
           !compare_exchange<Edge::hold>(group_->header().seat_high, high, index + 1)) {
    }
    std::uint64_t vacant = 0;
    // [hold] seq_cst: only one gets it; whatever its last member left was settled before. [group]:
    // taken before `closed` is looked at.
    if (!compare_exchange<Edge::hold>(group_->seat(index).identity, vacant, identity)) return false;
    seat_ = index;
    return true;
  };
  for (const bool of_the_dead : {false, true}) {
    for (std::uint32_t index = 0; index < geometry().seat_count && !seated_; ++index) {
      const std::uint64_t holder = load_acquire<Edge::hold>(group_->seat(index).identity);
      if (holder != 0) {
        if (!of_the_dead || byte_is_locked(shared().control_fd(), lock_offset(holder))) continue;
        settle_dead_member(shared(), *group_, index, holder);
      }
      seated_ = try_seat(index);
    }
  }
  if (!seated_) return Errc::too_many;
  LEAT_CRASH_POINT("seat:taken");
  GroupSeat& mine = seat();
  store_relaxed<Why::hint>(
      mine.pid,
      static_cast<std::uint32_t>(::getpid()));  // relaxed: for people, as the name
  const std::size_t size = options.name.size();
  for (std::size_t i = 0; i < size; ++i)
    store_relaxed<Why::hint>(reinterpret_cast<std::uint8_t&>(mine.name[i]),
                             static_cast<std::uint8_t>(options.name[i]));
  store_relaxed<Why::hint>(mine.name_size, static_cast<std::uint32_t>(size));
  store_relaxed<Why::hint>(mine.participant, participant_.index());
  store_relaxed<Why::published_later>(mine.in_flight, 0);
  handed_ = load_relaxed<Why::own>(mine.handed);
  claim_number_ = ClaimName::unpack(load_acquire<Edge::group_cursor>(mine.claiming)).number;

  make_tables();
  return {};
}

// Everything that the way of a record needs; may throw bad_alloc, before there is anything to lose.
inline void MemberCore::make_tables() {
  by_key_ = geometry().by_key();
  const std::uint32_t holds = geometry().hold_count;
  own_.resize(holds);
  free_.reserve(holds);
  for (std::uint32_t index = holds; index-- > 0;) {
    // [hold] acquire: whoever had the record is done with it.
    const std::uint64_t state = load_acquire<Edge::hold>(group_->hold(seat_, index).state);
    if (phase_of(state) == HoldPhase::free) {
      free_.push_back(index);
      claim_number_ = std::max(claim_number_, HoldState::unpack(state).generation);
    } else {
      own_[index].whose = Own::lost;
      ++lost_;
    }
  }
  others_.reserve(holds);
  lost_leases_.resize(geometry().lease_ns != 0 ? holds : 0);
  ready_.reserve(kAtOnce);
  parked_.reserve(kAtOnce);
  found_.reserve(kMaxFound);
  if (by_key_) {
    of_slot_.reserve(holds);
    looks_.reserve(kAtOnce);
    found_state_.reserve(kAtOnce);
  }
  progress_.resize(geometry().seat_count);
  must_pin_ = by_key_ || shared().geometry().grows();
}

// What is not acknowledged goes back; the seat becomes vacant.
inline void MemberCore::leave() noexcept {
  if (!seated_ || !participant_) return;
  seated_ = false;
  if (participant_.forked()) return;
  bool any = false;
  const auto let_go = [&](std::uint32_t row, std::uint32_t index, const Mine& mine) {
    std::uint64_t word = mine.state;
    HoldState state = HoldState::unpack(word);
    const bool is_done = mine.order != 0 && geometry().at_most_once();
    if (mine.order == 0 && state.phase == HoldPhase::held) --state.deliveries;  // It was not.
    state.phase = is_done ? HoldPhase::free : HoldPhase::returned;
    state.owner = 0;
    state.delayed = false;
    if (by_key_) mark_key(*group_, mine.key);
    any = compare_exchange<Edge::hold>(group_->hold(row, index).state, word, state.pack()) || any;
    LEAT_CRASH_POINT("leave:returned");
  };
  for (std::uint32_t index = 0; index < own_.size(); ++index) {
    if (own_[index].whose == Own::mine) let_go(seat_, index, own_[index].mine);
  }
  others_.each(
      [&](std::uint64_t place, const Mine& mine) { let_go(row_of(place), index_of(place), mine); });
  std::uint64_t identity = identity_of(participant_.state());
  // Others wait for the slots, though they have taken away all that was in them.
  if (by_key_) any = free_slots_of(*group_, seat_, identity) || any;
  LEAT_CRASH_POINT("leave:freed");
  // Before others can't see any more that somebody may have died over it.
  if (any) announce_returned(shared(), *group_);
  vacate();
}

inline void MemberCore::vacate() noexcept {
  store_relaxed<Why::published_later>(seat().in_flight, 0);
  std::uint64_t identity = identity_of(participant_.state());
  // [hold] seq_cst: what this member read is read.
  compare_exchange<Edge::hold>(seat().identity, identity, 0);
  LEAT_CRASH_POINT("leave:vacated");
  SharedTopic::wake(shared().header().space_wake);
  if (is_closed()) finish_closing(shared());
}

inline bool MemberCore::is_closed() const noexcept { return group_->is_closed(); }

inline Errc MemberCore::check() noexcept {
  error_ = {};
  if (participant_.forked()) [[unlikely]]
    return Errc::forked;
  if (thread_ != thread_token()) [[unlikely]]
    note_thread();
  return is_closed() ? know_of_closing() : Errc::ok;
}

// From here on publishers may reuse the memory of what this member had in hand.
[[gnu::cold]] inline Errc MemberCore::know_of_closing() noexcept {
  if (std::exchange(seated_, false)) vacate();
  return Errc::closed;
}

inline void MemberCore::note_thread() noexcept {
  thread_ = thread_token();
  // relaxed: publishers use it only to name a deadlock.
  store_relaxed<Why::hint>(participant_.slot().thread, thread_);
}

[[gnu::cold]] inline Got MemberCore::fail(Error error) noexcept {
  error_ = error;
  return Got::failed;
}

// ---- Letting go ----------------------------------------------------------------------------------

// What this member remembers of a hold; null if it is not its own.
inline MemberCore::Mine* MemberCore::find_mine(std::uint32_t row, std::uint32_t index) noexcept {
  if (row != seat_) return others_.find(place_of(row, index));
  if (index >= own_.size() || own_[index].whose != Own::mine) return nullptr;
  return &own_[index].mine;
}

// A hold of those that came back is this member's.
inline void MemberCore::keep(std::uint32_t row, std::uint32_t index, const Mine& mine) noexcept {
  if (row != seat_) {
    *others_.insert(place_of(row, index)) = mine;
    return;
  }
  if (own_[index].whose == Own::lost) --lost_;
  own_[index] = {mine, Own::mine};
}

// The hold is no longer this member's; `to` is what it is now.
[[gnu::always_inline]] inline void MemberCore::forget(std::uint32_t row, std::uint32_t index,
                                                      HoldPhase to) noexcept {
  OwnHold* const own = row == seat_ ? &own_[index] : nullptr;
  if (own == nullptr || to != HoldPhase::free || by_key_ || is_retaken(own->mine.state))
      [[unlikely]] {
    forget_slowly(row, index, to);
  } else {
    own->whose = Own::free;
    push_reserved(free_, index);
  }
  --in_flight_;
  note_in_flight();
}

[[gnu::noinline]] inline void MemberCore::forget_slowly(std::uint32_t row, std::uint32_t index,
                                                        HoldPhase to) noexcept {
  if (by_key_) {
    // Before in_flight falls: until then others look after this member, should it die here.
    if (const Mine* mine = find_mine(row, index); mine != nullptr) drop_key(mine->key);
  }
  if (row != seat_) {
    others_.erase(place_of(row, index));
    return;
  }
  OwnHold& own = own_[index];
  if (to != HoldPhase::free) {
    own.whose = Own::lost;
    ++lost_;
    return;
  }
  // Whoever had it meanwhile counted on: see take_spare().
  if (is_retaken(own.mine.state))
    claim_number_ = std::max(claim_number_, HoldState::unpack(own.mine.state).generation);
  own.whose = Own::free;
  free_.push_back(index);
}

// The record came back without this member's doing.
[[gnu::noinline]] inline void MemberCore::lose(std::uint32_t row, std::uint32_t index) noexcept {
  forget(row, index, HoldPhase::returned);
  has_lost_ = true;
}

// Moves a hold of this member on: to free, or returned.
[[gnu::always_inline]] inline Errc MemberCore::settle(const Delivery& delivery,
                                                      HoldPhase to) noexcept {
  const std::uint64_t settled = HoldState::let_go(delivery.state_, to);
  GroupHold& hold = group_->hold(delivery.row_, delivery.hold_);
  LEAT_CRASH_POINT("settle:before");
  // Before it is returned: what is claimed now must not come before it.
  if (to == HoldPhase::returned && by_key_)
    mark_key(*group_, load_relaxed<Why::stored_before>(hold.key));
  if (geometry().lease_ns == 0) [[likely]] {
    // [hold] release: all reads of the record are done. No swap: nobody takes a record away from
    // somebody alive.
    store_release<Edge::hold>(hold.state, settled);
  } else if (std::uint64_t word = delivery.state_;
             !compare_exchange<Edge::hold>(hold.state, word, settled)) {
    lose(delivery.row_, delivery.hold_);
    return Errc::lease_lost;
  }
  LEAT_CRASH_POINT("settle:done");
  // Before in_flight falls: until then others look after this member, should it die here.
  if (to == HoldPhase::returned) [[unlikely]]
    announce_returned(shared(), *group_);
  forget(delivery.row_, delivery.hold_, to);
  const bool is_behind =
      delivery.position_ < lanes_[delivery.record.partition].walker.segment_position();
  if (is_behind || ++acknowledged_ % kWakeEvery == 0) [[unlikely]]
    wake_publishers();
  return Errc::ok;
}

inline void MemberCore::wake_publishers() noexcept {
  SharedTopic::wake(shared().header().space_wake);
}

// Where it is noted when this delivery was handed out; null if it is not this member's.
inline std::uint64_t* MemberCore::order_word(const Delivery& delivery) noexcept {
  Mine* const mine = find_mine(delivery.row_, delivery.hold_);
  return mine != nullptr && mine->state == delivery.state_ ? &mine->order : nullptr;
}
// When it was handed out; 0 if it is not in the user's hands.
inline std::uint64_t MemberCore::order_of(const Delivery& delivery) noexcept {
  const std::uint64_t* order = order_word(delivery);
  return order != nullptr ? *order : 0;
}

// Remembers for a while that a delivery was taken away, for whoever still asks about it.
inline void MemberCore::note_lost_lease(std::uint32_t row, std::uint32_t hold,
                                        std::uint64_t state) noexcept {
  if (lost_leases_.empty()) return;
  lost_leases_[next_lost_lease_] = {row, hold, state};
  if (++next_lost_lease_ == lost_leases_.size()) next_lost_lease_ = 0;
}
inline Errc MemberCore::why_not_held(const Delivery& delivery) noexcept {
  for (LostLease& one : lost_leases_) {
    if (one.state == 0 || one.row != delivery.row_ || one.hold != delivery.hold_ ||
        one.state != delivery.state_)
      continue;
    one.state = 0;
    return Errc::lease_lost;
  }
  return Errc::not_held;
}

inline Result<void> MemberCore::acknowledge(const Delivery& delivery) {
  if (const Errc wrong = check(); wrong != Errc::ok) [[unlikely]]
    return wrong;
  if (order_of(delivery) == 0) [[unlikely]]
    return why_not_held(delivery);
  return settle(delivery, HoldPhase::free);
}

inline Result<std::size_t> MemberCore::acknowledge_until(std::uint64_t last) {
  if (const Errc wrong = check(); wrong != Errc::ok) return wrong;
  std::size_t count = 0;
  std::size_t lost = 0;
  const auto one = [&](std::uint32_t row, std::uint32_t index, const Mine& mine) {
    if (mine.order == 0 || mine.order > last) return;
    const GroupHold& hold = group_->hold(row, index);
    Delivery delivery;
    delivery.row_ = row;
    delivery.hold_ = index;
    delivery.state_ = mine.state;
    // relaxed, both: what this member wrote, or found
    delivery.position_ = load_relaxed<Why::own>(hold.position);
    delivery.record.partition = HoldPlace::unpack(load_relaxed<Why::own>(hold.where)).partition;
    if (delivery.record.partition >= lanes_.size()) return;
    ++(settle(delivery, HoldPhase::free) == Errc::ok ? count : lost);
  };
  const std::uint32_t high = group_->hold_high(seat_);
  for (std::uint32_t index = 0; index < high; ++index) {
    if (own_[index].whose == Own::mine) one(seat_, index, own_[index].mine);
  }
  others_.each([&](std::uint64_t place, const Mine& mine) {
    one(row_of(place), index_of(place), Mine{mine});
  });
  if (count == 0 && lost != 0) return Errc::lease_lost;
  return count;
}

inline Result<std::size_t> MemberCore::acknowledge_up_to(const Delivery& delivery) {
  if (const Errc wrong = check(); wrong != Errc::ok) return wrong;
  const std::uint64_t order = order_of(delivery);
  if (order == 0) return why_not_held(delivery);
  return acknowledge_until(order);
}

inline Result<std::size_t> MemberCore::acknowledge_all() { return acknowledge_until(~0ULL); }

inline Result<void> MemberCore::give_back(const Delivery& delivery,
                                          std::chrono::nanoseconds delay) {
  if (const Errc wrong = check(); wrong != Errc::ok) return wrong;
  if (order_of(delivery) == 0) return why_not_held(delivery);
  // What is not handed out yet and has the same key must not come before it.
  if (by_key_) give_back_ready();
  Delivery mine = delivery;
  if (delay.count() > 0) {
    GroupHold& hold = group_->hold(mine.row_, mine.hold_);
    const auto is_lost = [&] {
      lose(mine.row_, mine.hold_);
      return Errc::lease_lost;
    };
    // Before the state, which says that it counts. Swapped from what it was while the record was this
    // member's: it may be another's by now, with a delay of its own.
    const std::int64_t visible_at = ns_from_now(delay.count());
    for (std::int64_t seen = load_acquire<Edge::hold>(hold.visible_at_ns);;) {
      if (load_acquire<Edge::hold>(hold.state) != mine.state_) return is_lost();
      if (compare_exchange<Edge::hold>(hold.visible_at_ns, seen, visible_at)) break;
    }
    // Marked while it is still held: who takes it away with the lease clears the mark.
    HoldState state = HoldState::unpack(mine.state_);
    state.delayed = true;
    if (!compare_exchange<Edge::hold>(hold.state, mine.state_, state.pack())) return is_lost();
    mine.state_ = state.pack();
  }
  return settle(mine, HoldPhase::returned);
}

// ---- Waiting, and looking after the others --------------------------------------------------------

inline bool MemberCore::is_ready() noexcept {
  if (kept_ || ready_at_ != ready_.size() || is_closed()) return true;
  if (load_acquire<Edge::hold>(group_->header().returned) != seen_returned_) return true;
  if (next_visible_ns_ != 0 && now_ns() >= next_visible_ns_) return true;
  if (in_flight_ >= geometry().hold_count) return true;  // receive() says so.
  if (claim_again_ns_ != 0 && now_ns() < claim_again_ns_) return false;
  for (Lane& lane : lanes_) {
    if (has_next(lane)) return true;
  }
  return false;
}

// Whether there is a record to claim, or a step to the next segment.
inline bool MemberCore::has_next(Lane& lane) noexcept {
  const CursorValue cursor = group_->load_cursor(lane.walker.partition());
  const bool has = (must_pin_ && !pin(lane, cursor)) || lane.walker.is_ready_at(cursor);
  unpin(lane.walker.partition());
  return has;
}

// Repairs what the dead left: records not committed, and records not acknowledged. Returns how long
// a sleep may last, 0 for ever.
inline Result<std::int64_t> MemberCore::look_around() {
  std::int64_t limit_ns = 0;
  const auto at_most = [&](std::int64_t ns) {
    if (ns != 0) limit_ns = limit_ns == 0 ? ns : std::min(limit_ns, ns);
  };
  wake_publishers();
  for (Lane& lane : lanes_) {
    const std::uint32_t partition = lane.walker.partition();
    const CursorValue cursor = group_->load_cursor(partition);
    // The hole first, then once more what comes: see PartitionReader::look_after_hole(). No hole is
    // where the walker has not come to the cursor: its segment is not there yet, or it has moved on.
    if (has_next(lane) || !lane.walker.has_hole() || has_next(lane) || !lane.walker.is_at(cursor)) {
      lane.hole.clear();
      continue;
    }
    Repair repair{shared(), partition, participant_.index()};
    Result<void> looked;
    if (repair.pin(lane.walker.segment())) {
      looked = lane.hole.look(shared(), partition, participant_.index(), lane.walker.hole());
      repair.unpin();
    }
    // Nonsense, unless others went on, or nothing kept it: as in claim().
    if (!looked && group_->load_cursor(partition) == cursor && !is_closed()) return looked.error();
    at_most(kLookAgain);
  }
  at_most(look_after_others());
  at_most(look_after_holds());
  return limit_ns;
}

// Makes somebody else's hold one for everybody. If this member dies before announce_taken(), others
// find that it had records, and announce them.
inline void MemberCore::take_away(GroupHold& hold, HoldState state) noexcept {
  // Of a claim that may yet fail there is nothing to take.
  if (may_be_unmade(*group_, state)) return;
  if (!taking_away_) {
    taking_away_ = true;
    ++in_flight_;
    note_in_flight();
  }
  std::uint64_t word = state.pack();
  // At most once, taken means done.
  const bool is_done = state.phase == HoldPhase::held && geometry().at_most_once();
  if (by_key_) {
    // Its owner may be somebody who will not say that its slot is free. "By key".
    others_have_keys_ = true;
    if (!is_done) mark_key(*group_, load_relaxed<Why::stored_before>(hold.key));
  }
  state.phase = is_done ? HoldPhase::free : HoldPhase::returned;
  state.owner = 0;
  state.delayed = false;
  // Fails if its owner goes on just now.
  compare_exchange<Edge::hold>(hold.state, word, state.pack());
}
inline void MemberCore::announce_taken() noexcept {
  if (!std::exchange(taking_away_, false)) return;
  announce_returned(shared(), *group_);
  --in_flight_;
  note_in_flight();
}

// Settles dead members, and takes records from those who claimed them and do not move. Returns when
// to look again, 0 if nobody else has records.
inline std::int64_t MemberCore::look_after_others() noexcept {
  bool any = false;
  const std::int64_t now = now_ns();
  for (std::uint32_t index = 0; index < group_->seat_high(); ++index) {
    if (index == seat_) continue;
    GroupSeat& other = group_->seat(index);
    const std::uint64_t identity = load_acquire<Edge::hold>(other.identity);
    // [hold] acquire: raised before the records it counts were claimed.
    if (identity == 0 || load_acquire<Edge::hold>(other.in_flight) == 0) continue;
    if (!byte_is_locked(shared().control_fd(), lock_offset(identity))) {
      settle_dead_member(shared(), *group_, index, identity);
      continue;
    }
    any = true;
    Progress& progress = progress_[index];
    const std::uint64_t handed = load_relaxed<Why::hint>(other.handed);
    if (handed != progress.handed || progress.since_ns == 0) {
      progress = {handed, now};
    } else if (now - progress.since_ns >= kOthersDie) {
      group_->each_hold([&](std::uint32_t, std::uint32_t, GroupHold& hold, std::uint64_t word) {
        const HoldState state = HoldState::unpack(word);
        if (state.phase != HoldPhase::ready || state.owner != index + 1) return;
        take_away(hold, state);
        LEAT_CRASH_POINT("take:over");
      });
      announce_taken();
      // It may have returned records and not come to say so.
      group_->each_hold([&](std::uint32_t, std::uint32_t, const GroupHold&, std::uint64_t word) {
        if (phase_of(word) == HoldPhase::returned) seen_returned_ = ~0ULL;
      });
      progress.since_ns = now;
    }
  }
  if (others_have_keys_ && now - looked_at_keys_ns_ >= kOthersDie) {
    looked_at_keys_ns_ = now;
    free_idle_slots();
  }
  return any || others_have_keys_ ? kOthersDie : 0;
}

// Leases that ran out, and when the next will; when the next delayed record becomes visible.
inline std::int64_t MemberCore::look_after_holds() noexcept {
  const std::int64_t now = now_ns();
  std::int64_t next = 0;
  const auto at_most = [&](std::int64_t at_ns) {
    const std::int64_t ns = std::max<std::int64_t>(at_ns - now, 1000);
    next = next == 0 ? ns : std::min(next, ns);
  };
  if (next_visible_ns_ != 0) at_most(next_visible_ns_);
  const auto has_more = [&] {
    return std::any_of(lanes_.begin(), lanes_.end(), [&](Lane& lane) { return has_next(lane); });
  };
  if (claim_again_ns_ > now || (claim_again_ns_ != 0 && has_more())) at_most(claim_again_ns_);
  if (geometry().lease_ns == 0) return next;
  group_->each_hold([&](std::uint32_t, std::uint32_t, GroupHold& hold, std::uint64_t word) {
    const HoldState state = HoldState::unpack(word);
    if (state.phase != HoldPhase::held || state.owner == seat_ + 1) return;

    const std::int64_t until = load_relaxed<Why::stored_before>(hold.lease_until_ns);
    if (until > now) return at_most(until);
    take_away(hold, state);
    LEAT_CRASH_POINT("lease:over");
  });
  announce_taken();
  return next;
}

}  // namespace leat::inline v0::detail
