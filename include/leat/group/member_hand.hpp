// How a Member hands records out: takes, polls, copies. Included by group/impl.hpp only.
// docs/internals/groups.md, "Handing out".
#pragma once

#include <algorithm>
#include <cstring>
#include <new>

#include "leat/group/member_take.hpp"

namespace leat::inline v0::detail {

// Builds what the user gets of a record whose hold is this member's. None: the lease ran out while it
// was copied.
[[gnu::always_inline]] inline Got MemberCore::deliver(const WalkedRecord& found,
                                                      std::uint64_t state, std::uint32_t row,
                                                      std::uint32_t hold, Delivery& delivery,
                                                      bool is_dead_letter) {
  delivery.state_ = state;
  delivery.position_ = found.position;
  delivery.row_ = row;
  delivery.hold_ = hold;
  delivery.deliveries = HoldState::unpack(state).deliveries;
  Record& record = delivery.record;
  record = {};
  record.offset = found.offset;
  record.partition = found.where.partition;
  Bytes payload{found.payload, found.detail & kDetailLength};
  if (geometry().lease_ns != 0) [[unlikely]] {
    const LeasedRead read{*this, group_->hold(row, hold), state};
    if (!add_copy(payload.size())) return undeliver(delivery, is_dead_letter);
    std::vector<std::byte>& copy = copies_.back();
    for (std::size_t i = 0; read.is_mine() && i < payload.size(); ++i) {
      // relaxed: if it is overwritten meanwhile, the hold was lost before, and that is looked at next.
      copy[i] = static_cast<std::byte>(
          load_relaxed<Why::rechecked>(reinterpret_cast<const std::uint8_t&>(payload[i])));
    }
    if (!read.is_still_mine()) {
      lose(row, hold);
      return Got::none;
    }
    payload = Bytes{copy};
  }
  if (!read_payload(found.detail, payload, record)) [[unlikely]]
    return fail(Errc::corrupt);
  return Got::one;
}

// Memory for a copy. False: there is none.
inline bool MemberCore::add_copy(std::size_t size) noexcept {
  try {
    copies_.emplace_back(size);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// What could not be handed out after all goes back, as if it had not been.
inline Got MemberCore::undeliver(Delivery& delivery, bool is_dead_letter) noexcept {
  put_back(delivery.row_, delivery.hold_, delivery.state_, !is_dead_letter);
  announce_returned(shared(), *group_);
  lose(delivery.row_, delivery.hold_);
  return fail(kNoMemory);
}

// A record that came back: where it is stands in its hold.
[[gnu::noinline]] inline Got MemberCore::deliver_returned(std::uint64_t state, std::uint32_t row,
                                                          std::uint32_t index, bool is_dead_letter,
                                                          Delivery& delivery) {
  GroupHold& hold = group_->hold(row, index);
  std::optional<WalkedRecord> found;
  {
    const LeasedRead read{*this, hold, state};
    if (read.is_mine()) found = find_held(shared(), records_, hold);
    if (!found && read.is_still_mine()) return fail(Errc::corrupt);
  }
  if (!found) {
    lose(row, index);
    return Got::none;
  }
  const Got got = deliver(*found, state, row, index, delivery, is_dead_letter);
  if (got != Got::one) return got;
  if (!is_dead_letter) {
    if (delivery.deliveries > 1) fetch_add<Edge::hold>(group_->header().redelivered, 1);
    return got;
  }
  if (bury_or_fail(delivery)) {
    fetch_add<Edge::hold>(group_->header().dead_letters, 1);
    (void)settle(delivery, HoldPhase::free);
  } else {
    (void)give_back(delivery, std::chrono::seconds{1});  // Nothing is lost: tried again later.
  }
  return Got::none;
}

inline bool MemberCore::bury_or_fail(const Delivery& delivery) noexcept {
  try {
    return bury(delivery).has_value();
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// The state of a record that was delivered before.
[[gnu::noinline]] inline std::uint64_t MemberCore::hand_over_again(
    std::uint64_t ready, bool& is_dead_letter) const noexcept {
  HoldState state = HoldState::unpack(ready);
  is_dead_letter = geometry().max_deliveries != 0 && state.deliveries >= geometry().max_deliveries;
  state.phase = HoldPhase::held;
  if (!is_dead_letter && state.deliveries < HoldState::kMaxDeliveries) ++state.deliveries;
  return state.pack();
}

// By key: whether a record came back that what is ready must not come before.
inline bool MemberCore::is_overtaking() noexcept {
  if (geometry().lease_ns != 0 && now_ns() >= lease_ends_ns_) forget_lost_leases();
  return has_lost_;
}

// The next of those claimed, or taken back, for later.
[[gnu::always_inline]] inline Got MemberCore::hand_out(Delivery& delivery) {
  if (kept_) [[unlikely]] {
    delivery = *std::exchange(kept_, std::nullopt);
    if (std::uint64_t* order = order_word(delivery); order != nullptr) {
      *order = ++order_;
      return Got::one;
    }
  }
  while (ready_at_ != ready_.size()) {
    if (by_key_ && is_overtaking()) [[unlikely]] {
      give_back_ready();
      break;
    }
    const Ready& next = ready_[ready_at_++];
    std::uint64_t word = next.state;
    bool is_dead_letter = false;
    if (phase_of(word) == HoldPhase::ready) {
      GroupHold& hold = group_->hold(next.row, next.hold);
      extend_lease(hold);
      std::uint64_t held = HoldState::hand_over(word);
      const bool is_first = HoldState::is_undelivered(word);
      if (!is_first) [[unlikely]]
        held = hand_over_again(word, is_dead_letter);
      // [hold] Fails if others took it, because this member did not move.
      if (!compare_exchange<Edge::hold>(hold.state, word, held)) [[unlikely]] {
        lose(next.row, next.hold);
        continue;
      }
      LEAT_CRASH_POINT("take:handed");
      word = held;
    }
    Mine& mine =
        next.row == seat_ ? own_[next.hold].mine : *others_.find(place_of(next.row, next.hold));
    mine.state = word;
    mine.order = ++order_;
    store_relaxed<Why::hint>(seat().handed, ++handed_);
    const Got got = next.record.payload != nullptr
                        ? deliver(next.record, word, next.row, next.hold, delivery, false)
                        : deliver_returned(word, next.row, next.hold, is_dead_letter, delivery);
    if (got != Got::none) return got;
  }
  return Got::none;
}

// Gets some more to hand out. False may be an error.
[[gnu::noinline]] inline bool MemberCore::get_ready(std::size_t want, HoldPhase phase) {
  if (retake(want)) return true;
  return error_.code == Errc::ok && claim_anywhere(want, phase);
}

// Of a call that hands nothing out. What others of its records are in hand, stay until then.
inline Error MemberCore::what_failed() noexcept {
  if (error_.code == Errc::closed) (void)know_of_closing();
  return error_;
}

// One record, whichever is next for this member.
inline Got MemberCore::take_now(Delivery& delivery) {
  if (const Errc wrong = check(); wrong != Errc::ok) [[unlikely]]
    return fail(wrong);
  if ((++takes_ & 7) == 0) look_now_and_then();
  if (!copies_.empty() && !kept_) [[unlikely]]
    copies_.clear();
  while (true) {
    const Got got = hand_out(delivery);
    if (got != Got::none) return got;
    // By key nothing is taken ahead: it would hold back the others' share of its keys.
    const bool got_some =
        by_key_ ? get_ready(1, HoldPhase::held) : get_ready(kAhead, HoldPhase::ready);
    if (!got_some) return error_.code != Errc::ok ? Got::failed : nothing_now();
    patience_.note(ready_.size());
  }
}

inline Result<std::size_t> MemberCore::take_some(std::vector<Delivery>& into, std::size_t limit) {
  if (const Errc wrong = check(); wrong != Errc::ok) return wrong;
  look_now_and_then();
  if (!kept_) copies_.clear();
  std::size_t count = 0;
  Got got = Got::none;
  while (count < limit) {
    if (into.size() == into.capacity() && !make_room(into)) {
      got = fail(kNoMemory);
      break;
    }
    Delivery delivery;
    got = hand_out(delivery);
    if (got == Got::one) {
      into.push_back(delivery);
      ++count;
      continue;
    }
    if (got == Got::failed || (count != 0 && members_ > 1))
      break;  // The rest is the others' share.
    if (get_ready(limit - count, HoldPhase::held)) continue;
    if (error_.code != Errc::ok) got = Got::failed;
    break;
  }
  patience_.note(count);
  if (count == 0 && got == Got::none) got = nothing_now();
  if (count == 0 && got == Got::failed) return what_failed();
  return count;
}

inline bool MemberCore::make_room(std::vector<Delivery>& into) noexcept {
  try {
    into.reserve(std::max<std::size_t>(16, 2 * into.size()));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

inline Result<Delivery> MemberCore::receive(const Deadline& deadline, const std::stop_token& stop) {
  Result<Delivery> taken{Delivery{}};  // Filled in place.
  while (true) {
    const Got got = take_now(*taken);
    if (got == Got::one) [[likely]]
      return taken;
    if (got == Got::failed) return what_failed();
    if (deadline.passed()) return Errc::timeout;
    if (auto ready = wait(deadline, stop); !ready) return ready.error();
  }
}

inline Result<std::size_t> MemberCore::receive(std::vector<Delivery>& into, std::size_t limit,
                                               const Deadline& deadline,
                                               const std::stop_token& stop) {
  while (limit != 0) {
    auto count = take_some(into, limit);
    if (!count || *count != 0) return count;
    if (deadline.passed()) return Errc::timeout;
    if (auto ready = wait(deadline, stop); !ready) return ready.error();
  }
  return std::size_t{0};
}

inline Result<std::size_t> MemberCore::receive_copy(std::span<std::byte> buffer,
                                                    const Deadline& deadline,
                                                    const std::stop_token& stop) {
  auto taken = receive(deadline, stop);
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

// The callbacks of poll() may take long: what is not in one's hands yet is ready for others if this one
// stands still, no lease runs for it, and it does not count as delivered.
inline Errc MemberCore::begin_poll() {
  if (const Errc wrong = check(); wrong != Errc::ok) [[unlikely]]
    return wrong;
  look_now_and_then();
  if (!kept_) copies_.clear();
  return Errc::ok;
}

// `count` have been handed out, of at most `limit`.
inline Got MemberCore::poll_next(Delivery& delivery, std::size_t count, std::size_t limit) {
  while (true) {
    const Got got = hand_out(delivery);
    if (got != Got::none) return got;
    if (count != 0 && members_ > 1) return got;  // The rest is the others' share.
    if (get_ready(std::min(limit - count, by_key_ ? kAhead : kAtOnce), HoldPhase::ready)) continue;
    return error_.code != Errc::ok ? Got::failed : Got::none;
  }
}

inline bool MemberCore::settle_polled(const Delivery& delivery) noexcept {
  if (participant_.forked()) return false;
  // Unless the callback did; and a lost lease is others' by now.
  if (order_of(delivery) != 0) (void)settle(delivery, HoldPhase::free);
  return true;
}

inline void MemberCore::give_back_polled(const Delivery& delivery) noexcept {
  (void)give_back(delivery, std::chrono::nanoseconds{0});
  give_back_ready();
}

// After the last one: `count` were handed out.
inline Error MemberCore::end_poll(std::size_t count, Got last) {
  patience_.note(count);
  if (count != 0) return {};
  if (last == Got::none) last = nothing_now();
  return last == Got::failed ? what_failed() : Error{};
}

// While there is always something to take: at each tick of the kernel's cheap clock.
inline void MemberCore::look_now_and_then() noexcept {
  const std::int64_t tick = tick_ns();
  if (tick == looked_tick_ns_) return;
  looked_tick_ns_ = tick;
  look_after_others();
  look_after_holds();
}

// Called when there was nothing to hand out.
[[gnu::noinline]] inline Got MemberCore::nothing_now() {
  wake_publishers();
  if (auto noted = note_nothing(); !noted) return fail(noted.error());
  return Got::none;
}

}  // namespace leat::inline v0::detail
