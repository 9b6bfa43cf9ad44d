// How a Member gets records: claims them, hands them out, takes those that came back. Included by
// member.hpp only. docs/internals/groups.md.
#pragma once

#include <algorithm>
#include <cstring>

#include "leat/group/member.hpp"

namespace leat {

// ---- Claiming ------------------------------------------------------------------------------------

inline void Member::note_in_flight() noexcept {
  // [hold] release: before the hold, or the cursor, that others find. Whoever sleeps looks here
  // whether somebody may die over records.
  detail::store_release<detail::Edge::hold>(seat().in_flight,
                                            static_cast<std::uint32_t>(in_flight_));
}

inline void Member::write_hold(std::uint32_t index, const detail::WalkedRecord& record,
                               std::uint64_t state) noexcept {
  using namespace detail;
  GroupHold& hold = group_->hold(seat_, index);
  if (load_relaxed(seat().hold_high) <= index)  // relaxed: own word
    store_release<Edge::hold>(seat().hold_high, index + 1);
  // relaxed, all: stored before the state. [hold-place] release, two: the reads of this hold's last
  // record are done.
  store_release<Edge::hold_place>(hold.position, record.position);
  store_relaxed(hold.offset, record.offset);
  store_release<Edge::hold_place>(hold.where, record.where.pack());
  if (geometry().by_key()) store_relaxed(hold.key, key_hash(record));
  if (geometry().lease_ns != 0) store_relaxed(hold.lease_until_ns, now_ns() + geometry().lease_ns);
  // [hold] release
  store_release<Edge::hold>(hold.state, state);
}

// Before the record is this member's, and so perhaps another's by now: never shortens a lease.
inline void Member::extend_lease(detail::GroupHold& hold) noexcept {
  using namespace detail;
  if (geometry().lease_ns == 0) return;
  const std::int64_t until = now_ns() + geometry().lease_ns;
  std::int64_t seen = load_relaxed(hold.lease_until_ns);  // relaxed: the swap checks it
  while (seen < until && !compare_exchange<Edge::hold>(hold.lease_until_ns, seen, until)) {
  }
}

// Not more than half of its share of what is there, if there are other members.
inline std::size_t Member::fair_share(Lane& lane, std::size_t want) noexcept {
  using namespace detail;
  if (want <= 1) return want;
  if (claims_until_count_ == 0) {
    claims_until_count_ = 64;
    members_ = 0;
    for (std::uint32_t i = 0; i < group_->seat_high(); ++i) {
      // relaxed: a guess
      if (load_relaxed(group_->seat(i).identity) != 0) ++members_;
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
inline bool Member::pin(Lane& lane, const detail::CursorValue& cursor) noexcept {
  using namespace detail;
  const std::uint32_t partition = lane.walker.partition();
  const std::uint64_t segment = cursor.position() / shared().geometry().segment_granules;
  // [retire] seq_cst: pin first, then look at start. The cursor itself may keep a segment that was retired
  // while the group was made or moved.
  (void)exchange<Edge::retire>(participant_.partition_slot(partition).pin, segment);
  return load_seq_cst<Edge::retire>(shared().partition(partition).control->start) <= segment ||
         (group_->load_cursor(partition) == cursor && !is_closed());
}
inline void Member::unpin(std::uint32_t partition) noexcept {
  if (!must_pin_) return;
  // [cursor] release: the reads are done.
  detail::store_release<detail::Edge::cursor>(participant_.partition_slot(partition).pin, 0);
}

inline Member::LeasedRead::LeasedRead(Member& member, const detail::GroupHold& hold,
                                      std::uint64_t state) noexcept
    : member_{member}, hold_{hold}, state_{state} {
  using namespace detail;
  if (member.must_pin_) {
    // relaxed, both: stored before the state; if that is another one by now, nothing is read.
    const std::uint32_t partition = HoldPlace::unpack(load_relaxed(hold.where)).partition;
    const std::uint64_t position = load_relaxed(hold.position);
    partition_ = partition < member.lanes_.size() ? partition : 0;
    // [retire] seq_cst: pin first, then look at the hold.
    (void)exchange<Edge::retire>(member.participant_.partition_slot(partition_).pin,
                                 position / member.shared().geometry().segment_granules);
  }
  is_mine_ = load_seq_cst<Edge::hold>(hold.state) == state;
}
inline bool Member::LeasedRead::is_still_mine() const noexcept {
  detail::fence_acquire<detail::Edge::hold>();
  return is_mine_ && detail::load_acquire<detail::Edge::hold>(hold_.state) == state_;
}

// Claims up to `want` records of a partition; they are in ready_ then.
inline std::size_t Member::claim(Lane& lane, std::size_t want, detail::HoldPhase phase) {
  using namespace detail;
  Walker& walker = lane.walker;
  const std::uint32_t partition = walker.partition();
  const bool by_key = geometry().by_key();
  ready_.clear();  // All of them are handed out.
  ready_at_ = 0;
  for (std::uint32_t attempt = 0; attempt < kManyMoves; ++attempt) {
    const CursorValue from = group_->load_cursor(partition);
    if (must_pin_ && !pin(lane, from)) {
      unpin(partition);
      if (is_closed()) break;
      continue;  // Others have moved it.
    }
    Walk walk = walker.go_to(from);
    if (walk == Walk::nothing) {
      unpin(partition);
      return 0;
    }
    const std::uint64_t first_segment = walker.segment();
    // A number that the cursor does not show for this seat now, so that it tells this claim.
    std::uint64_t number = claim_number_ + 1;
    if (names_claim(from, seat_, {number, 0})) ++number;
    const ClaimName name{number, partition};
    // [group-cursor] release: before the claim's holds.
    store_release<Edge::group_cursor>(seat().claiming, name.pack());
    const HoldState state{phase, seat_ + 1, phase == HoldPhase::held ? 1U : 0U,
                          false, false,     number};

    const std::size_t share = std::min({fair_share(lane, want), free_.size(), kAtOnce});
    std::size_t count = 0;
    bool moved = false;
    while (walk != Walk::corrupt && count < share) {
      WalkedRecord record;
      walk = walker.next(record);
      if (walk == Walk::skipped) {
        moved = true;
        if (must_pin_ && walker.segment() != first_segment) break;
        continue;
      }
      if (walk != Walk::record) break;
      const std::uint32_t index = free_[free_.size() - 1 - count];
      if (count == 0) {
        ++in_flight_;
        note_in_flight();
        --in_flight_;
      }
      write_hold(index, record, state.pack());
      ready_.push_back({record, index, state.pack()});
      ++count;
    }
    LEAT_STEP("take:held");
    bool claimed = false;
    if (walk != Walk::corrupt && (count != 0 || moved)) {
      note_claim(*group_, partition, from);
      LEAT_STEP("take:noting");
      claimed = group_->swap_cursor(partition, from, walker.cursor(seat_ + 1, number));
    }
    if (claimed) {
      LEAT_STEP("take:claimed");
      // Deleted meanwhile: then nothing may have kept what was walked. If not, the holds will.
      if (is_closed()) [[unlikely]] {
        ready_.clear();
        unpin(partition);
        break;
      }
      // [group-cursor] release
      store_release<Edge::group_cursor>(seat().noted, name.pack());
      LEAT_STEP("take:noted");
      claim_number_ = number;
      free_.resize(free_.size() - count);
      in_flight_ += count;
      note_in_flight();
      for (std::size_t i = 0; i < ready_.size(); ++i)
        own_[ready_[i].hold] = {state.pack(), 0, Own::mine};
      if (walker.segment() != first_segment) SharedTopic::wake(shared().header().space_wake);
      if (by_key) {
        for (std::size_t i = 0; i < ready_.size(); ++i) park(ready_[i].hold);
        std::erase_if(ready_, [&](const Ready& one) { return own_[one.hold].whose != Own::mine; });
        count = ready_.size();
      }
      unpin(partition);
      if (count != 0 || (!moved && !by_key)) return count;
      continue;  // Only gaps so far, or keys that others have.
    }
    for (std::size_t i = 0; i < ready_.size(); ++i) {
      HoldState none = state;
      none.phase = HoldPhase::free;
      store_release<Edge::hold>(group_->hold(seat_, ready_[i].hold).state, none.pack());
    }
    ready_.clear();
    unpin(partition);
    if (count != 0) {
      // Others may have seen its keys taken. Before in_flight falls: see settle().
      if (by_key) announce_returned(shared(), *group_);
      note_in_flight();
    }
    if (walk != Walk::corrupt && count == 0 && !moved) return 0;
    // Nonsense, unless it was overwritten meanwhile: then the cursor has moved.
    if (walk == Walk::corrupt && group_->load_cursor(partition) == from) break;
    spin_pause();
  }
  (void)fail(is_closed() ? know_of_closing() : Errc::corrupt);
  return 0;
}

// The same in the next partition that has some. 0 may be an error.
inline std::size_t Member::claim_anywhere(std::size_t want, detail::HoldPhase phase) {
  if (free_.empty() && geometry().lease_ns != 0) forget_lost_leases();
  if (free_.size() < want && lost_ != 0) find_lost_holds();
  if (free_.empty()) {
    if (lost_ == 0) (void)fail(Errc::in_flight_full);
    return 0;
  }
  for (std::size_t turn = 0; turn < lanes_.size(); ++turn) {
    Lane& lane = lanes_[next_lane_];
    if (++next_lane_ == lanes_.size()) next_lane_ = 0;
    const std::size_t claimed = claim(lane, want, phase);
    if (claimed != 0 || error_.code != Errc::ok) return claimed;
  }
  return 0;
}

// Own holds that were taken away with their lease, and whose deliveries nobody has asked about since.
inline void Member::forget_lost_leases() {
  for (std::uint32_t index = 0; index < own_.size(); ++index) {
    const OwnHold own = own_[index];
    if (own.whose != Own::mine ||
        detail::load_acquire<detail::Edge::hold>(group_->hold(seat_, index).state) == own.state) {
      continue;
    }
    note_lost_lease(seat_, index, own.state);
    forget(seat_, index, detail::HoldPhase::returned);
  }
}

// Own holds that others have settled meanwhile can be used again.
inline void Member::find_lost_holds() noexcept {
  for (std::uint32_t index = 0; index < own_.size() && lost_ != 0; ++index) {
    if (own_[index].whose != Own::lost) continue;
    // [hold] acquire: whoever had the record is done with it.
    const std::uint64_t state =
        detail::load_acquire<detail::Edge::hold>(group_->hold(seat_, index).state);
    if (detail::phase_of(state) != detail::HoldPhase::free) continue;
    own_[index] = {};
    --lost_;
    free_.push_back(index);
  }
}

// ---- Handing out ---------------------------------------------------------------------------------

// Builds what the user gets of a record whose hold is this member's. None: the lease ran out while it
// was copied.
[[gnu::always_inline]] inline Member::Got Member::deliver(const detail::WalkedRecord& found,
                                                          std::uint64_t state, std::uint32_t seat,
                                                          std::uint32_t hold, Delivery& delivery) {
  using namespace detail;
  delivery.state_ = state;
  delivery.position_ = found.position;
  delivery.seat_ = seat;
  delivery.hold_ = hold;
  delivery.deliveries = HoldState::unpack(state).deliveries;
  Record& record = delivery.record;
  record = {};
  record.offset = found.offset;
  record.partition = found.where.partition;
  Bytes payload{found.payload, found.detail & kDetailLength};
  if (geometry().lease_ns != 0) [[unlikely]] {
    const LeasedRead read{*this, group_->hold(seat, hold), state};
    std::vector<std::byte>& copy = copies_.emplace_back(payload.size());
    for (std::size_t i = 0; read.is_mine() && i < payload.size(); ++i) {
      // relaxed: if it is overwritten meanwhile, the hold was lost before, and that is looked at next.
      copy[i] =
          static_cast<std::byte>(load_relaxed(reinterpret_cast<const std::uint8_t&>(payload[i])));
    }
    if (!read.is_still_mine()) {
      forget(seat, hold, HoldPhase::returned);
      return Got::none;
    }
    payload = Bytes{copy};
  }
  if (!read_payload(found.detail, payload, record)) [[unlikely]]
    return fail(Errc::corrupt);
  return Got::one;
}

// The next of those claimed for later.
[[gnu::always_inline]] inline Member::Got Member::hand_out(Delivery& delivery) {
  using namespace detail;
  if (kept_) [[unlikely]] {
    delivery = *std::exchange(kept_, std::nullopt);
    if (std::uint64_t* order = order_word(delivery); order != nullptr) {
      *order = ++order_;
      return Got::one;
    }
  }
  while (ready_at_ != ready_.size()) {
    const Ready& next = ready_[ready_at_++];
    const std::uint32_t index = next.hold;
    std::uint64_t word = next.state;
    if (phase_of(word) == HoldPhase::ready) {
      HoldState state = HoldState::unpack(word);
      state.phase = HoldPhase::held;
      state.deliveries = 1;
      GroupHold& hold = group_->hold(seat_, index);
      extend_lease(hold);
      // [hold] Fails if others took it, because this member did not move.
      if (!compare_exchange<Edge::hold>(hold.state, word, state.pack())) [[unlikely]] {
        forget(seat_, index, HoldPhase::returned);
        continue;
      }
      LEAT_STEP("take:handed");
      word = state.pack();
    }
    own_[index].state = word;
    own_[index].order = ++order_;
    store_relaxed(seat().handed, ++handed_);  // relaxed: only whether it changes
    const Got got = deliver(next.record, word, seat_, index, delivery);
    if (got != Got::none) return got;
  }
  return Got::none;
}

// One record, whichever is next for this member.
inline Member::Got Member::take_now(Delivery& delivery) {
  if (const Errc wrong = check(); wrong != Errc::ok) [[unlikely]]
    return fail(wrong);
  if ((++takes_ & 7) == 0) look_now_and_then();
  if (!copies_.empty() && !kept_) [[unlikely]]
    copies_.clear();
  while (true) {
    Got got = hand_out(delivery);
    if (got == Got::none) got = retake(delivery);
    if (got != Got::none) return got;
    // By key nothing is claimed ahead: a record that comes back holds back those with its key.
    const std::size_t claimed = geometry().by_key()
                                    ? claim_anywhere(1, detail::HoldPhase::held)
                                    : claim_anywhere(kAhead, detail::HoldPhase::ready);
    if (claimed == 0) return error_.code != Errc::ok ? Got::failed : nothing_now();
    patience_.note(claimed);
  }
}

inline Result<std::size_t> Member::take_some(std::vector<Delivery>& into, std::size_t limit) {
  if (const Errc wrong = check(); wrong != Errc::ok) return wrong;
  look_now_and_then();
  if (!kept_) copies_.clear();
  std::size_t count = 0;
  Got got = Got::one;
  while (count < limit) {
    Delivery delivery;
    got = hand_out(delivery);
    if (got == Got::none) got = retake(delivery);
    if (got == Got::one) {
      into.push_back(delivery);
      ++count;
      continue;
    }
    if (got == Got::failed || (count != 0 && members_ > 1))
      break;  // The rest is the others' share.
    if (claim_anywhere(limit - count, detail::HoldPhase::held) != 0) continue;
    if (error_.code != Errc::ok) got = Got::failed;
    break;
  }
  patience_.note(count);
  if (count == 0 && got == Got::none) got = nothing_now();
  if (count == 0 && got == Got::failed) return error_;
  return count;
}

inline Result<Delivery> Member::take(const Deadline& deadline, const std::stop_token& stop) {
  Result<Delivery> taken{Delivery{}};  // Filled in place.
  while (true) {
    const Got got = take_now(*taken);
    if (got == Got::one) [[likely]]
      return taken;
    if (got == Got::failed) return error_;
    if (auto ready = wait(deadline, stop); !ready) return ready.error();
  }
}

inline Result<std::size_t> Member::take(std::vector<Delivery>& into, std::size_t limit,
                                        const Deadline& deadline, const std::stop_token& stop) {
  while (limit != 0) {
    auto count = take_some(into, limit);
    if (!count || *count != 0) return count;
    if (auto ready = wait(deadline, stop); !ready) return ready.error();
  }
  return std::size_t{0};
}

inline Result<std::size_t> Member::take_copy(std::span<std::byte> buffer, const Deadline& deadline,
                                             const std::stop_token& stop) {
  auto taken = take(deadline, stop);
  if (!taken) return taken.error();
  const Bytes value = taken->record.value;
  if (value.size() > buffer.size()) {
    if (std::uint64_t* order = order_word(*taken); order != nullptr) {
      *order = 0;
      kept_ = *taken;
    }
    return Error{Errc::buffer_too_small, static_cast<std::int32_t>(value.size())};
  }
  if (!value.empty()) std::memcpy(buffer.data(), value.data(), value.size());
  const std::size_t size = value.size();
  if (auto done = acknowledge(*taken); !done) return done.error();
  return size;
}

template <class OnDelivery>
Result<std::size_t> Member::poll(std::size_t limit, OnDelivery&& on_delivery) {
  if (const Errc wrong = check(); wrong != Errc::ok) [[unlikely]]
    return wrong;
  look_now_and_then();
  if (!kept_) copies_.clear();
  std::size_t count = 0;
  Delivery delivery;
  // If the callback throws, the record in hand goes back, and those claimed with it.
  struct Settle {
    Member& member;
    const Delivery& delivery;
    bool done = false;
    ~Settle() {
      if (done) return;
      (void)member.give_back(delivery);
      member.give_back_ready();
    }
  };
  const auto hand_over = [&] {
    Settle settle{*this, delivery};
    on_delivery(std::as_const(delivery));
    settle.done = true;
    // Unless the callback did; and a lost lease is others' by now.
    if (order_of(delivery) != 0) (void)this->settle(delivery, detail::HoldPhase::free);
    ++count;
  };
  // The callbacks may take long: no lease runs, and nothing counts as delivered, before its turn. By key
  // nothing is claimed ahead.
  const bool waits_its_turn = geometry().lease_ns != 0 && !geometry().by_key();
  const auto phase = waits_its_turn ? detail::HoldPhase::ready : detail::HoldPhase::held;
  Got got = Got::none;
  while (count < limit) {
    got = hand_out(delivery);
    if (got == Got::none) got = retake(delivery);
    if (got == Got::one) {
      hand_over();
      continue;
    }
    if (got == Got::failed || (count != 0 && members_ > 1))
      break;  // The rest is the others' share.
    if (claim_anywhere(std::min(limit - count, kAtOnce), phase) != 0) continue;
    if (error_.code != Errc::ok) got = Got::failed;
    break;
  }
  patience_.note(count);
  if (count == 0 && got == Got::none) got = nothing_now();
  if (count == 0 && got == Got::failed) return error_;
  return count;
}

// While there is always something to take: at each tick of the kernel's cheap clock.
inline void Member::look_now_and_then() noexcept {
  const std::int64_t tick = detail::tick_ns();
  if (tick == looked_tick_ns_) return;
  looked_tick_ns_ = tick;
  look_after_others();
  look_after_holds();
}

// Called when a take found nothing.
[[gnu::noinline]] inline Member::Got Member::nothing_now() {
  using namespace detail;
  patience_.look_away(kSharesWork);
  wake_publishers();
  if (const std::int64_t tick = tick_ns(); tick != looked_tick_ns_ || wait_fd_ != nullptr) {
    looked_tick_ns_ = tick;
    if (auto looked = look_around(); !looked) return fail(looked.error());
  }
  if (wait_fd_ != nullptr) arm_wait_fd();
  // relaxed: set for good; seen late, it costs one more empty call.
  if ((load_relaxed(shared().header().data_wake) & kDeleted) != 0 && !is_ready())
    return fail(Errc::deleted);
  return Got::none;
}

}  // namespace leat
