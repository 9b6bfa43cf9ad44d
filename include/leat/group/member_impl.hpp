// The longer functions of Member; included by member.hpp only.
#pragma once

#include <poll.h>

#include <algorithm>
#include <cstring>

#include "leat/group/member.hpp"

namespace leat {

// ---- Coming and going ----------------------------------------------------------------------------

inline Member::Member(Member&& other) noexcept = default;
inline Member& Member::operator=(Member&& other) noexcept {
  if (this != &other) {
    this->~Member();
    ::new (static_cast<void*>(this)) Member(std::move(other));
  }
  return *this;
}
inline Member::~Member() { leave(); }

// Takes a vacant seat, or a dead member's.
inline Result<void> Member::take_seat(const MemberOptions& options) {
  using namespace detail;
  const std::uint64_t identity = identity_of(participant_.state());
  const auto try_seat = [&](std::uint32_t index) {
    std::uint32_t high = load_relaxed(group_->header().seat_high);  // relaxed: the swap checks it
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
  LEAT_STEP("seat:taken");
  GroupSeat& mine = seat();
  store_relaxed(mine.pid,
                static_cast<std::uint32_t>(::getpid()));  // relaxed: for people, as the name
  const std::size_t size = std::min(options.name.size(), sizeof(mine.name) - 1);
  for (std::size_t i = 0; i < size; ++i)
    store_relaxed(reinterpret_cast<std::uint8_t&>(mine.name[i]),
                  static_cast<std::uint8_t>(options.name[i]));
  store_relaxed(mine.name_size, static_cast<std::uint32_t>(size));
  store_relaxed(mine.in_flight, 0);
  handed_ = load_relaxed(mine.handed);
  claim_number_ = ClaimName::unpack(load_acquire<Edge::group_cursor>(mine.claiming)).number;

  own_.resize(geometry().hold_count);
  free_.reserve(geometry().hold_count);
  for (std::uint32_t index = geometry().hold_count; index-- > 0;) {
    // [hold] acquire: whoever had the record is done with it.
    if (phase_of(load_acquire<Edge::hold>(group_->hold(seat_, index).state)) == HoldPhase::free) {
      free_.push_back(index);
    } else {
      own_[index].whose = Own::lost;
      ++lost_;
    }
  }
  progress_.resize(geometry().seat_count);
  return {};
}

// What is not acknowledged goes back; the seat becomes vacant.
inline void Member::leave() noexcept {
  using namespace detail;
  if (!seated_ || !participant_) return;
  seated_ = false;
  if (participant_.forked()) return;
  bool any = false;
  const auto let_go = [&](std::uint32_t seat, std::uint32_t index, std::uint64_t word) {
    HoldState state = HoldState::unpack(word);
    const bool is_done = state.phase == HoldPhase::held && geometry().at_most_once();
    state.phase = is_done ? HoldPhase::free : HoldPhase::returned;
    state.owner = 0;
    state.delayed = false;
    any = compare_exchange<Edge::hold>(group_->hold(seat, index).state, word, state.pack()) || any;
    LEAT_STEP("leave:returned");
  };
  for (std::uint32_t index = 0; index < own_.size(); ++index) {
    if (own_[index].whose == Own::mine) let_go(seat_, index, own_[index].state);
  }
  for (const ForeignHold& hold : foreign_) let_go(hold.seat, hold.hold, hold.state);
  store_relaxed(seat().in_flight, 0);
  std::uint64_t identity = identity_of(participant_.state());
  compare_exchange<Edge::hold>(seat().identity, identity, 0);
  LEAT_STEP("leave:vacated");
  if (any) announce_returned(shared(), *group_);
  SharedTopic::wake(shared().header().space_wake);
}

inline bool Member::is_closed() const noexcept {
  // [group] acquire: set before the group is taken out of the topic.
  return detail::load_acquire<detail::Edge::group>(group_->header().closed) == detail::kGroupClosed;
}

inline Result<void> Member::check() const noexcept {
  if (participant_.forked()) [[unlikely]]
    return Errc::forked;
  if (is_closed()) [[unlikely]]
    return Errc::closed;
  return {};
}

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
  // relaxed, all: stored before the state.
  store_relaxed(hold.position, record.position);
  store_relaxed(hold.offset, record.offset);
  store_relaxed(hold.where, record.where.pack());
  if (geometry().by_key()) store_relaxed(hold.key, key_hash(record));
  if (geometry().lease_ns != 0) store_relaxed(hold.lease_until_ns, now_ns() + geometry().lease_ns);
  // [hold] release
  store_release<Edge::hold>(hold.state, state);
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

// Claims up to `want` records of a partition; they are in ready_ then.
inline Result<std::size_t> Member::claim(Lane& lane, std::size_t want, detail::HoldPhase phase) {
  using namespace detail;
  Walker& walker = lane.walker;
  const std::uint32_t partition = walker.partition();
  const bool by_key = geometry().by_key();
  for (std::uint32_t attempt = 0; attempt < kManyMoves; ++attempt) {
    const CursorValue from = group_->load_cursor(partition);
    Walk walk = walker.go_to(from);
    if (walk == Walk::nothing) return std::size_t{0};
    const std::uint64_t first_segment = walker.segment();
    // Keys lie in the payload, which is not read by checked words: the segment is pinned for that.
    if (walk == Walk::skipped && by_key && !pin(lane, first_segment)) continue;
    // A number that the cursor does not show for this seat now, so that it tells this claim.
    std::uint64_t number = claim_number_ + 1;
    if (names_claim(from, seat_, {number, 0})) ++number;
    const ClaimName name{number, partition};
    // [group-cursor] release: before the claim's holds.
    store_release<Edge::group_cursor>(seat().claiming, name.pack());
    const HoldState state{phase, seat_ + 1, phase == HoldPhase::held ? 1U : 0U,
                          false, false,     number};

    const std::size_t before = ready_.size();
    const std::size_t share = std::min({fair_share(lane, want), free_.size(), kAtOnce});
    std::size_t count = 0;
    bool moved = false;
    while (walk != Walk::corrupt && count < share) {
      WalkedRecord record;
      walk = walker.next(record);
      if (walk == Walk::skipped) {
        moved = true;
        if (by_key && walker.segment() != first_segment) break;
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
      // [group-cursor] release
      store_release<Edge::group_cursor>(seat().noted, name.pack());
      LEAT_STEP("take:noted");
      claim_number_ = number;
      free_.resize(free_.size() - count);
      in_flight_ += count;
      note_in_flight();
      for (std::size_t i = before; i < ready_.size(); ++i)
        own_[ready_[i].hold] = {state.pack(), 0, Own::mine};
      if (walker.segment() != first_segment) SharedTopic::wake(shared().header().space_wake);
      if (by_key) {
        for (std::size_t i = before; i < ready_.size(); ++i) park(ready_[i].hold);
        std::erase_if(ready_, [&](const Ready& one) { return own_[one.hold].whose != Own::mine; });
        count = ready_.size() - before;
        unpin(lane);
      }
      if (count != 0 || !moved) return count;
      continue;  // Only gaps so far.
    }
    for (std::size_t i = before; i < ready_.size(); ++i) {
      HoldState none = state;
      none.phase = HoldPhase::free;
      store_release<Edge::hold>(group_->hold(seat_, ready_[i].hold).state, none.pack());
    }
    ready_.resize(before);
    if (count != 0) note_in_flight();
    if (by_key) {
      unpin(lane);
      // Others may have seen its keys taken.
      if (count != 0) announce_returned(shared(), *group_);
    }
    if (walk != Walk::corrupt && count == 0 && !moved) return std::size_t{0};
    // Nonsense, unless it was overwritten meanwhile: then the cursor has moved.
    if (walk == Walk::corrupt && group_->load_cursor(partition) == from) return Errc::corrupt;
    spin_pause();
  }
  return Errc::corrupt;
}

inline Result<std::size_t> Member::claim_anywhere(std::size_t want, detail::HoldPhase phase) {
  if (free_.size() < want && lost_ != 0) find_lost_holds();
  if (free_.empty())
    return lost_ < own_.size() ? Result<std::size_t>{Errc::in_flight_full} : std::size_t{0};
  for (std::size_t turn = 0; turn < lanes_.size(); ++turn) {
    Lane& lane = lanes_[next_lane_];
    if (++next_lane_ == lanes_.size()) next_lane_ = 0;
    auto claimed = claim(lane, want, phase);
    if (!claimed || *claimed != 0) return claimed;
  }
  return std::size_t{0};
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

// Builds what the user gets of a record whose hold is this member's. False: the lease ran out while it
// was copied.
inline Result<bool> Member::deliver(const detail::WalkedRecord& found, std::uint64_t state,
                                    std::uint32_t seat, std::uint32_t hold, Delivery& delivery) {
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
    std::vector<std::byte>& copy = copies_.emplace_back(payload.size());
    for (std::size_t i = 0; i < payload.size(); ++i) {
      // relaxed: if it is overwritten meanwhile, the hold was lost before, and that is looked at next.
      copy[i] =
          static_cast<std::byte>(load_relaxed(reinterpret_cast<const std::uint8_t&>(payload[i])));
    }
    fence_acquire<Edge::hold>();
    if (load_acquire<Edge::hold>(group_->hold(seat, hold).state) != state) {
      forget(seat, hold, HoldPhase::returned);
      return false;
    }
    payload = Bytes{copy};
  }
  if (!read_payload(found.detail, payload, record)) return Errc::corrupt;
  return true;
}

// The next of those claimed for later. False: there is none.
inline Result<bool> Member::hand_out(Delivery& delivery) {
  using namespace detail;
  while (ready_at_ != ready_.size()) {
    const Ready next = ready_[ready_at_++];
    if (ready_at_ == ready_.size()) {
      ready_.clear();
      ready_at_ = 0;
    }
    HoldState state = HoldState::unpack(next.state);
    std::uint64_t word = next.state;
    GroupHold& hold = group_->hold(seat_, next.hold);
    if (state.phase == HoldPhase::ready) {
      state.phase = HoldPhase::held;
      state.deliveries = 1;
      if (geometry().lease_ns != 0)
        store_relaxed(hold.lease_until_ns, now_ns() + geometry().lease_ns);
      // [hold] Fails if others took it, because this member did not move.
      if (!compare_exchange<Edge::hold>(hold.state, word, state.pack())) {
        forget(seat_, next.hold, HoldPhase::returned);
        continue;
      }
      LEAT_STEP("take:handed");
    }
    own_[next.hold].state = state.pack();
    own_[next.hold].order = ++order_;
    store_relaxed(seat().handed, ++handed_);  // relaxed: only whether it changes
    auto delivered = deliver(next.record, state.pack(), seat_, next.hold, delivery);
    if (!delivered || *delivered) return delivered;
  }
  return false;
}

inline Result<bool> Member::take_now(Delivery& delivery) {
  if (auto ok = check(); !ok) return ok.error();
  if ((++takes_ & 7) == 0) look_now_and_then();
  copies_.clear();
  while (true) {
    auto handed = hand_out(delivery);
    if (!handed || *handed) return handed;
    auto retaken = retake(delivery);
    if (!retaken || *retaken) return retaken;
    // By key nothing is claimed ahead: a record that comes back holds back those with its key.
    auto claimed = geometry().by_key() ? claim_anywhere(1, detail::HoldPhase::held)
                                       : claim_anywhere(kAhead, detail::HoldPhase::ready);
    if (!claimed) return claimed.error();
    if (*claimed == 0) {
      auto nothing = nothing_now();
      if (!nothing) return nothing.error();
      return false;
    }
    patience_.note(*claimed);
  }
}

inline Result<std::size_t> Member::take_some(std::vector<Delivery>& into, std::size_t limit) {
  if (auto ok = check(); !ok) return ok.error();
  look_now_and_then();
  copies_.clear();
  std::size_t count = 0;
  const auto add = [&](Result<bool> got, const Delivery& delivery) -> Result<bool> {
    if (got && *got) {
      into.push_back(delivery);
      ++count;
    }
    return got;
  };
  while (count < limit) {
    Delivery delivery;
    auto got = add(hand_out(delivery), delivery);
    if (got && !*got) got = add(retake(delivery), delivery);
    if (!got) return count != 0 ? Result<std::size_t>{count} : got.error();
    if (*got) continue;
    if (count != 0 && members_ > 1) break;  // The others' share.
    auto claimed = claim_anywhere(limit - count, detail::HoldPhase::held);
    if (!claimed) return count != 0 ? Result<std::size_t>{count} : claimed.error();
    if (*claimed == 0) break;
  }
  patience_.note(count);
  return count != 0 ? Result<std::size_t>{count} : nothing_now();
}

// `attempt` until it finds something or fails, waiting between.
template <class Attempt>
auto Member::take_or_wait(Attempt&& attempt, const Deadline& deadline, const std::stop_token& stop)
    -> decltype(attempt()) {
  while (true) {
    auto got = attempt();
    if (!got || *got) return got;
    if (auto ready = wait(deadline, stop); !ready) return ready.error();
  }
}

inline Result<Delivery> Member::take(const Deadline& deadline, const std::stop_token& stop) {
  Delivery delivery;
  auto got = take_or_wait([&] { return take_now(delivery); }, deadline, stop);
  if (!got) return got.error();
  return delivery;
}

inline Result<std::size_t> Member::take(std::vector<Delivery>& into, std::size_t limit,
                                        const Deadline& deadline, const std::stop_token& stop) {
  if (limit == 0) return std::size_t{0};
  return take_or_wait([&] { return take_some(into, limit); }, deadline, stop);
}

inline Result<std::size_t> Member::take_copy(std::span<std::byte> buffer, const Deadline& deadline,
                                             const std::stop_token& stop) {
  auto taken = take(deadline, stop);
  if (!taken) return taken.error();
  const Bytes value = taken->record.value;
  if (value.size() > buffer.size()) {
    if (auto returned = give_back(*taken); !returned) return returned.error();
    return Error{Errc::buffer_too_small, static_cast<std::int32_t>(value.size())};
  }
  if (!value.empty()) std::memcpy(buffer.data(), value.data(), value.size());
  const std::size_t size = value.size();
  if (auto done = acknowledge(*taken); !done) return done.error();
  return size;
}

template <class OnDelivery>
Result<std::size_t> Member::poll(std::size_t limit, OnDelivery&& on_delivery) {
  using namespace detail;
  if (auto ok = check(); !ok) [[unlikely]]
    return ok.error();
  look_now_and_then();
  copies_.clear();
  std::size_t count = 0;
  Delivery delivery;
  // Settles the record in hand also when the callback throws.
  struct Settle {
    Member& member;
    const Delivery& delivery;
    bool done = false;
    ~Settle() { (void)(done ? member.acknowledge(delivery) : member.give_back(delivery)); }
  };
  const auto hand_over = [&] {
    Settle settle{*this, delivery};
    on_delivery(std::as_const(delivery));
    settle.done = true;
    ++count;
  };
  while (count < limit) {
    if (ready_at_ == ready_.size()) {
      auto retaken = retake(delivery);
      if (!retaken) return count != 0 ? Result<std::size_t>{count} : retaken.error();
      if (*retaken) {
        hand_over();
        continue;
      }
      if (count != 0 && members_ > 1) break;
      auto claimed = claim_anywhere(limit - count, HoldPhase::held);
      if (!claimed) return count != 0 ? Result<std::size_t>{count} : claimed.error();
      if (*claimed == 0) break;
    }
    auto got = hand_out(delivery);
    if (!got) return count != 0 ? Result<std::size_t>{count} : got.error();
    if (*got) hand_over();
  }
  if (count == 0) return nothing_now();
  patience_.note(count);
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
inline Result<std::size_t> Member::nothing_now() {
  using namespace detail;
  patience_.look_away();
  wake_publishers();
  if (const std::int64_t tick = tick_ns(); tick != looked_tick_ns_ || wait_fd_ != nullptr) {
    looked_tick_ns_ = tick;
    if (auto looked = look_around(); !looked) return looked.error();
  }
  if (wait_fd_ != nullptr) arm_wait_fd();
  // relaxed: set for good; seen late, it costs one more empty call.
  if ((load_relaxed(shared().header().data_wake) & kDeleted) != 0 && !is_ready())
    return Errc::deleted;
  return std::size_t{0};
}

// ---- Letting go ----------------------------------------------------------------------------------

// The member's own note of a hold: the state it has it in, or null.
inline std::uint64_t* Member::held_state(std::uint32_t seat, std::uint32_t index,
                                         std::uint64_t** order) noexcept {
  if (seat == seat_) {
    if (index >= own_.size() || own_[index].whose != Own::mine) return nullptr;
    *order = &own_[index].order;
    return &own_[index].state;
  }
  for (ForeignHold& one : foreign_) {
    if (one.seat != seat || one.hold != index) continue;
    *order = &one.order;
    return &one.state;
  }
  return nullptr;
}

// The hold is no longer this member's; `to` is what it is now.
inline void Member::forget(std::uint32_t seat, std::uint32_t index, detail::HoldPhase to) noexcept {
  if (seat == seat_) {
    if (to == detail::HoldPhase::free) {
      own_[index] = {};
      free_.push_back(index);
    } else {
      own_[index].whose = Own::lost;
      ++lost_;
    }
  } else {
    std::erase_if(foreign_,
                  [&](const ForeignHold& one) { return one.seat == seat && one.hold == index; });
  }
  --in_flight_;
  note_in_flight();
}

// Moves a hold of this member on: to free, or returned.
inline Result<void> Member::settle(std::uint32_t seat, std::uint32_t index, std::uint64_t word,
                                   detail::HoldPhase to, std::uint32_t partition,
                                   std::uint64_t position) noexcept {
  using namespace detail;
  HoldState state = HoldState::unpack(word);
  state.phase = to;
  state.owner = 0;
  GroupHold& hold = group_->hold(seat, index);
  LEAT_STEP("settle:before");
  if (geometry().lease_ns == 0) [[likely]] {
    // [hold] release: all reads of the record are done. No swap: nobody takes a record away from
    // somebody alive.
    store_release<Edge::hold>(hold.state, state.pack());
  } else if (!compare_exchange<Edge::hold>(hold.state, word, state.pack())) {
    forget(seat, index, HoldPhase::returned);
    return Errc::lease_lost;
  }
  LEAT_STEP("settle:done");
  forget(seat, index, to);
  const std::uint64_t segment = lanes_[partition].walker.segment();
  const bool is_behind = position < segment * shared().geometry().segment_granules;
  if (to == HoldPhase::returned || geometry().by_key()) {
    announce_returned(shared(), *group_);
  } else if (is_behind || ++acknowledged_ % kWakeEvery == 0) {
    wake_publishers();
  }
  return {};
}

inline void Member::wake_publishers() noexcept {
  detail::SharedTopic::wake(shared().header().space_wake);
}

inline Result<void> Member::acknowledge(const Delivery& delivery) {
  if (auto ok = check(); !ok) [[unlikely]]
    return ok.error();
  std::uint64_t* order = nullptr;
  const std::uint64_t* held = held_state(delivery.seat_, delivery.hold_, &order);
  if (held == nullptr || *held != delivery.state_) return Errc::not_held;
  return settle(delivery.seat_, delivery.hold_, delivery.state_, detail::HoldPhase::free,
                delivery.record.partition, delivery.position_);
}

template <class Wanted>
Result<std::size_t> Member::acknowledge_those(Wanted&& wanted) {
  if (auto ok = check(); !ok) return ok.error();
  std::size_t count = 0;
  std::size_t lost = 0;
  const auto one = [&](std::uint32_t seat, std::uint32_t index, std::uint64_t state,
                       std::uint64_t order) {
    if (order == 0 || !wanted(order)) return;
    // relaxed: what this member wrote, or found
    const detail::GroupHold& hold = group_->hold(seat, index);
    const auto place = detail::HoldPlace::unpack(detail::load_relaxed(hold.where));
    if (place.partition >= lanes_.size()) return;
    const std::uint64_t position = detail::load_relaxed(hold.position);
    ++(settle(seat, index, state, detail::HoldPhase::free, place.partition, position) ? count
                                                                                      : lost);
  };
  const std::uint32_t high = group_->hold_high(seat_);
  for (std::uint32_t index = 0; index < high; ++index) {
    if (own_[index].whose == Own::mine) one(seat_, index, own_[index].state, own_[index].order);
  }
  for (const ForeignHold& hold : std::vector<ForeignHold>{foreign_})
    one(hold.seat, hold.hold, hold.state, hold.order);
  if (count == 0 && lost != 0) return Errc::lease_lost;
  return count;
}

inline Result<std::size_t> Member::acknowledge_up_to(const Delivery& delivery) {
  std::uint64_t* order = nullptr;
  const std::uint64_t* held = held_state(delivery.seat_, delivery.hold_, &order);
  if (participant_.forked()) return Errc::forked;
  if (held == nullptr || *held != delivery.state_) return Errc::not_held;
  return acknowledge_those([last = *order](std::uint64_t taken) { return taken <= last; });
}

inline Result<std::size_t> Member::acknowledge_all() {
  return acknowledge_those([](std::uint64_t) { return true; });
}

inline Result<void> Member::give_back(const Delivery& delivery, std::chrono::nanoseconds delay) {
  using namespace detail;
  if (auto ok = check(); !ok) return ok.error();
  std::uint64_t* order = nullptr;
  const std::uint64_t* held = held_state(delivery.seat_, delivery.hold_, &order);
  if (held == nullptr || *held != delivery.state_) return Errc::not_held;
  std::uint64_t word = delivery.state_;
  if (delay.count() > 0) {
    // relaxed: stored before the state, which says that it counts.
    store_relaxed(group_->hold(delivery.seat_, delivery.hold_).visible_at_ns,
                  now_ns() + delay.count());
    // Marked while it is still held: who takes it away with the lease clears the mark.
    HoldState state = HoldState::unpack(word);
    state.delayed = true;
    const std::uint64_t marked = state.pack();
    if (geometry().lease_ns != 0 &&
        !compare_exchange<Edge::hold>(group_->hold(delivery.seat_, delivery.hold_).state, word,
                                      marked)) {
      forget(delivery.seat_, delivery.hold_, HoldPhase::returned);
      return Errc::lease_lost;
    }
    word = marked;
  }
  return settle(delivery.seat_, delivery.hold_, word, HoldPhase::returned,
                delivery.record.partition, delivery.position_);
}

// ---- Redelivery ----------------------------------------------------------------------------------

// Takes one of the records that came back, if some are there that may be taken now.
inline Result<bool> Member::retake(Delivery& delivery) {
  using namespace detail;
  // [hold] acquire: raised after the states of what was returned.
  const std::uint64_t returned = load_acquire<Edge::hold>(group_->header().returned);
  if (returned == seen_returned_ && (next_visible_ns_ == 0 || now_ns() < next_visible_ns_))
      [[likely]]
    return false;
  std::int64_t next_visible = 0;
  const std::int64_t now = now_ns();
  for (std::uint32_t seat = 0; seat < group_->seat_high(); ++seat) {
    for (std::uint32_t index = 0; index < group_->hold_high(seat); ++index) {
      GroupHold& hold = group_->hold(seat, index);
      const std::uint64_t word = load_acquire<Edge::hold>(hold.state);
      if (phase_of(word) != HoldPhase::returned) continue;
      if (HoldState::unpack(word).delayed) {
        // relaxed: stored before the state
        const std::int64_t visible_at = load_relaxed(hold.visible_at_ns);
        if (visible_at > now) {
          if (next_visible == 0 || visible_at < next_visible) next_visible = visible_at;
          continue;
        }
      }
      auto taken = retake_hold(seat, index, hold, word, delivery);
      if (!taken || *taken) return taken;
    }
  }
  seen_returned_ = returned;
  next_visible_ns_ = next_visible;
  return false;
}

inline Result<bool> Member::retake_hold(std::uint32_t seat, std::uint32_t index,
                                        detail::GroupHold& hold, std::uint64_t word,
                                        Delivery& delivery) {
  using namespace detail;
  if (geometry().by_key() && !key_is_free(load_relaxed(hold.key), &hold)) return false;
  HoldState state = HoldState::unpack(word);
  const bool is_dead_letter =
      geometry().max_deliveries != 0 && state.deliveries >= geometry().max_deliveries;
  const bool is_first = state.deliveries == 0;
  state.phase = HoldPhase::held;
  state.owner = seat_ + 1;
  state.delayed = false;
  state.retaken = true;
  ++state.generation;
  if (!is_dead_letter && state.deliveries < HoldState::kMaxDeliveries) ++state.deliveries;
  ++in_flight_;
  note_in_flight();
  // relaxed: whoever loses the swap below stored much the same
  if (geometry().lease_ns != 0) store_relaxed(hold.lease_until_ns, now_ns() + geometry().lease_ns);
  if (!compare_exchange<Edge::hold>(hold.state, word, state.pack())) {
    --in_flight_;
    note_in_flight();
    return false;
  }
  LEAT_STEP("retake:taken");
  if (!is_first && !is_dead_letter) fetch_add<Edge::hold>(group_->header().redelivered, 1);
  if (seat == seat_) {
    if (own_[index].whose == Own::lost) --lost_;
    own_[index] = {state.pack(), ++order_, Own::mine};
  } else {
    foreign_.push_back({seat, index, state.pack(), ++order_});
  }
  store_relaxed(this->seat().handed, ++handed_);  // relaxed: only whether it changes
  const auto found = find_held(shared(), records_, hold);
  if (!found) return Errc::corrupt;
  auto delivered = deliver(*found, state.pack(), seat, index, delivery);
  if (!delivered || !*delivered || !is_dead_letter) return delivered;
  if (auto buried = bury(delivery); !buried) {
    // Nothing is lost: it stays, and is tried again.
    if (auto later = give_back(delivery, std::chrono::seconds{1}); !later) return later.error();
    return false;
  }
  if (auto done = acknowledge(delivery); !done) return done.error();
  return false;
}

// Publishes a record that was handed out too often to the group's topic for such.
inline Result<void> Member::bury(const Delivery& delivery) {
  using namespace detail;
  const Geometry& geometry = shared().geometry();
  if (!graveyard_) {
    TopicOptions options;
    // Larger segments, so that every record fits with what is added to it.
    options.capacity_bytes = std::max(geometry.partition_size(), 4 * geometry.segment_size);
    options.segment_bytes = std::min(2 * geometry.segment_size, Geometry::kMaxSegmentSize);
    options.policy = Policy::overwrite;
    options.directory = topic_.directory();
    auto topic = Topic::open_or_create(topic_.name() + "." + group_->name() + ".dead", options);
    if (!topic) return topic.error();
    auto publisher = topic->publisher();
    if (!publisher) return publisher.error();
    graveyard_.emplace(std::move(*publisher));
  }
  const Record& record = delivery.record;
  const std::string group = group_->name();
  const std::string partition = std::to_string(record.partition);
  const std::string offset = std::to_string(record.offset);
  const std::string deliveries = std::to_string(delivery.deliveries);
  std::vector<Header> headers{{"leat-reason", "max-deliveries"},
                              {"leat-topic", topic_.name()},
                              {"leat-group", group},
                              {"leat-partition", partition},
                              {"leat-offset", offset},
                              {"leat-deliveries", deliveries}};
  for (const Header header : record.headers) headers.push_back(header);
  NewRecord letter{.headers = headers, .value = record.value};
  if (record.has_key) letter.key = record.key;
  auto published = graveyard_->publish(letter, Deadline::immediate());
  if (!published) return published.error();
  return {};
}

// ---- By key --------------------------------------------------------------------------------------

// Of the record's key; 0: it has none. The segment is pinned, or held.
inline std::uint64_t Member::key_hash(const detail::WalkedRecord& walked) const noexcept {
  Record record;
  const Bytes payload{walked.payload, walked.detail & detail::kDetailLength};
  if (!detail::read_payload(walked.detail, payload, record) || !record.has_key) return 0;
  return detail::murmur2(record.key) | 1ULL << 63;
}

// Whether this member may have a record with this key: nobody else has one, and none that came back,
// or waits, is before the candidate (null: none at all is).
inline bool Member::key_is_free(std::uint64_t key,
                                const detail::GroupHold* candidate) const noexcept {
  using namespace detail;
  if (key == 0) return true;
  bool is_free = true;
  group_->each_hold([&](std::uint32_t, std::uint32_t, const GroupHold& hold, std::uint64_t word) {
    if (&hold == candidate || load_relaxed(hold.key) != key) return;
    if (phase_of(word) != HoldPhase::returned) {
      is_free = is_free && owner_of(word) == seat_ + 1;
    } else if (candidate == nullptr ||
               load_relaxed(hold.offset) < load_relaxed(candidate->offset)) {
      is_free = false;
    }
  });
  return is_free;
}

// Puts a record that was just claimed among those that came back, if its key is somebody else's.
inline void Member::park(std::uint32_t index) noexcept {
  using namespace detail;
  GroupHold& hold = group_->hold(seat_, index);
  bool is_free = true;
  const std::uint64_t key = load_relaxed(hold.key);
  if (key != 0) {
    group_->each_hold([&](std::uint32_t, std::uint32_t, const GroupHold& other,
                          std::uint64_t word) {
      // What was claimed before it: of the same claim, or earlier.
      if (&other == &hold || load_relaxed(other.key) != key) return;
      const bool is_others = phase_of(word) == HoldPhase::returned || owner_of(word) != seat_ + 1;
      if (is_others && load_relaxed(other.offset) < load_relaxed(hold.offset)) is_free = false;
    });
  }
  if (is_free) return;
  HoldState state = HoldState::unpack(own_[index].state);
  state.phase = HoldPhase::returned;
  state.owner = 0;
  state.deliveries = 0;
  store_release<Edge::hold>(hold.state, state.pack());
  forget(seat_, index, HoldPhase::returned);
  announce_returned(shared(), *group_);
}

// Keeps a segment's memory while keys are read there. False if it may be reused already: then the
// cursor has moved on.
inline bool Member::pin(Lane& lane, std::uint64_t segment) noexcept {
  using namespace detail;
  // [retire] seq_cst: pin first, then look at start.
  (void)exchange<Edge::retire>(participant_.partition_slot(lane.walker.partition()).pin, segment);
  return load_seq_cst<Edge::retire>(shared().partition(lane.walker.partition()).control->start) <=
         segment;
}
inline void Member::unpin(Lane& lane) noexcept {
  // [cursor] release: the reads are done.
  detail::store_release<detail::Edge::cursor>(
      participant_.partition_slot(lane.walker.partition()).pin, 0);
}

// ---- Waiting, and looking after the others --------------------------------------------------------

inline bool Member::is_ready() noexcept {
  using namespace detail;
  if (ready_at_ != ready_.size() || is_closed()) return true;
  if (load_acquire<Edge::hold>(group_->header().returned) != seen_returned_) return true;
  if (next_visible_ns_ != 0 && now_ns() >= next_visible_ns_) return true;
  for (Lane& lane : lanes_) {
    if (lane.walker.is_ready_at(group_->load_cursor(lane.walker.partition()))) return true;
  }
  return false;
}

// Repairs what the dead left: records not committed, and records not acknowledged. Returns how long
// a sleep may last, 0 for ever.
inline Result<std::int64_t> Member::look_around() {
  using namespace detail;
  std::int64_t limit_ns = 0;
  const auto at_most = [&](std::int64_t ns) {
    if (ns != 0) limit_ns = limit_ns == 0 ? ns : std::min(limit_ns, ns);
  };
  wake_publishers();
  for (Lane& lane : lanes_) {
    const std::uint32_t partition = lane.walker.partition();
    const CursorValue cursor = group_->load_cursor(partition);
    // In this order: see PartitionReader::look_after_hole().
    if (lane.walker.go_to(cursor) != Walk::skipped || !lane.walker.has_hole() ||
        lane.walker.is_ready_at(cursor)) {
      lane.hole.clear();
      continue;
    }
    PartitionSlot& line = participant_.partition_slot(partition);
    const std::uint64_t segment = lane.walker.segment();
    // [retire] seq_cst: pin first, then look at start.
    (void)exchange<Edge::retire>(line.repair_pin, segment);
    Result<void> looked;
    if (load_seq_cst<Edge::retire>(shared().partition(partition).control->start) <= segment)
      looked = lane.hole.look(shared(), partition, participant_.index(), lane.walker.hole());
    store_release<Edge::cursor>(line.repair_pin, 0);
    if (!looked && group_->load_cursor(partition) == cursor) return looked.error();
    at_most(kLookAgain);
  }
  at_most(look_after_others());
  at_most(look_after_holds());
  return limit_ns;
}

// Settles dead members, and takes records from those who claimed them and do not move. Returns when
// to look again, 0 if nobody else has records.
inline std::int64_t Member::look_after_others() noexcept {
  using namespace detail;
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
    const std::uint64_t handed = load_relaxed(other.handed);  // relaxed: whether it changes
    if (handed != progress.handed || progress.since_ns == 0) {
      progress = {handed, now};
    } else if (now - progress.since_ns >= kOthersDie) {
      bool taken = false;
      group_->each_hold_of(
          index, [&](std::uint32_t, std::uint32_t, GroupHold& hold, std::uint64_t word) {
            HoldState state = HoldState::unpack(word);
            if (state.phase != HoldPhase::ready || state.owner != index + 1) return;
            // Only of a claim that is known to be made.
            const std::uint64_t claiming = load_acquire<Edge::group_cursor>(other.claiming);
            if (load_acquire<Edge::group_cursor>(other.noted) != claiming) return;
            state.phase = HoldPhase::returned;
            state.owner = 0;
            taken = compare_exchange<Edge::hold>(hold.state, word, state.pack()) || taken;
            LEAT_STEP("take:over");
          });
      if (taken) announce_returned(shared(), *group_);
      progress.since_ns = now;
    }
  }
  return any ? kOthersDie : 0;
}

// Leases that ran out, and when the next will; when the next delayed record becomes visible.
inline std::int64_t Member::look_after_holds() noexcept {
  using namespace detail;
  const std::int64_t now = now_ns();
  std::int64_t next = 0;
  const auto at_most = [&](std::int64_t at_ns) {
    const std::int64_t ns = std::max<std::int64_t>(at_ns - now, 1000);
    next = next == 0 ? ns : std::min(next, ns);
  };
  if (next_visible_ns_ != 0) at_most(next_visible_ns_);
  if (geometry().lease_ns == 0) return next;
  bool any = false;
  group_->each_hold([&](std::uint32_t, std::uint32_t, GroupHold& hold, std::uint64_t word) {
    HoldState state = HoldState::unpack(word);
    if (state.phase != HoldPhase::held || state.owner == seat_ + 1) return;
    // relaxed: stored before the state
    const std::int64_t until = load_relaxed(hold.lease_until_ns);
    if (until > now) return at_most(until);
    state.phase = HoldPhase::returned;
    state.owner = 0;
    state.delayed = false;
    // Fails if its owner acknowledges it just now.
    any = compare_exchange<Edge::hold>(hold.state, word, state.pack()) || any;
    LEAT_STEP("lease:over");
  });
  if (any) announce_returned(shared(), *group_);
  return next;
}

inline Result<void> Member::wait(const Deadline& deadline, const std::stop_token& stop) {
  return detail::Waiting::one(*this, deadline, stop);
}

inline Result<void> Member::wait(const Deadline& deadline, int stop_fd) {
  using namespace detail;
  auto fd = wait_fd();
  if (!fd) return fd.error();
  while (true) {
    if (waits_are_stopped()) return Errc::stopped;
    pollfd entries[2] = {{stop_fd, POLLIN, 0}, {*fd, POLLIN, 0}};
    if (is_ready()) return {};
    const int ready = ::poll(entries, 2, poll_timeout_ms(deadline));
    if (ready > 0 && entries[0].revents != 0) return Errc::stopped;
    if (is_ready()) return {};
    if (deadline.passed()) return Errc::timeout;
    if (auto looked = look_around(); !looked) return looked.error();
    arm_wait_fd();
  }
}

inline Result<int> Member::wait_fd() {
  if (participant_.forked()) return Errc::forked;
  if (wait_fd_ == nullptr) {
    auto made = detail::WaitFd::start(participant_.shared_topic());
    if (!made) return made.error();
    wait_fd_ = std::move(*made);
    arm_wait_fd();
  }
  return wait_fd_->fd();
}

inline void Member::arm_wait_fd() {
  wait_fd_->drain();
  bool capped = false;
  const std::uint32_t value = shared().announce_sleep(&capped);
  const auto limit = look_around();
  wait_fd_->arm(value, is_ready() || !limit, capped || *limit != 0);
}

inline void Member::stop_waits() noexcept {
  waits_stopped_->store(true);
  if (participant_ && !participant_.forked()) shared().wake_everybody();
}

}  // namespace leat
