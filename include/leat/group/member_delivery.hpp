// How a member hands out records. Included by member_session.hpp only.
// docs/internals/groups.md, "Handing out".
#pragma once

#include <algorithm>
#include <cstring>
#include <new>

#include "leat/group/member_core.hpp"

namespace leat::inline v0::detail {

// ---- One record ---------------------------------------------------------------------------------

// Hands out the next record of ready_.
[[gnu::always_inline]] inline Got MemberCore::hand_out(Delivery& delivery) {
  while (!ready_.empty()) {
    if (place_.by_key && is_overtaking()) [[unlikely]] {
      ready_.give_back();
      break;
    }
    const ReadyRecord& next = ready_.take();
    std::uint64_t state = next.state;
    bool is_dead_letter = false;
    if (phase_of(state) == HoldPhase::ready && !hand_over(next.ref, state, is_dead_letter))
        [[unlikely]]
      continue;
    OwnRecord& own = holds_.at(next.ref);
    own.state = state;
    own.order = ++order_;
    holds_.show_step();
    const Got got = next.record.payload != nullptr
                        ? deliver(next.record, state, next.ref, delivery, false)
                    : shared().durable() != nullptr
                        ? deliver_stored(next, state, is_dead_letter, delivery)
                        : deliver_returned(state, next.ref, is_dead_letter, delivery);
    if (got != Got::none) return got;
  }
  return Got::none;
}

// Changes a record's state from ready to held. False if another member took the record away,
// because this one made no progress.
[[gnu::always_inline]] inline bool MemberCore::hand_over(HoldRef ref, std::uint64_t& state,
                                                         bool& is_dead_letter) noexcept {
  GroupHold& hold = hold_at(group(), ref);
  lease_.extend(hold);
  const bool is_first = HoldState::is_undelivered(state);
  std::uint64_t held = HoldState::hand_over(state);
  if (!is_first) [[unlikely]]
    held = hand_over_again(state, is_dead_letter);
  // [hold] seq_cst: the record is either handed out or taken away.
  if (!compare_exchange<Edge::hold>(hold.state, state, held)) [[unlikely]] {
    holds_.lose(ref);
    return false;
  }
  LEAT_CRASH_POINT("take:handed");
  if (!is_first && !is_dead_letter) [[unlikely]]
    fetch_add<Edge::hold>(group().header().redelivered, 1);
  state = held;
  return true;
}

// Returns the new state of a record that was handed out before.
[[gnu::noinline]] inline std::uint64_t MemberCore::hand_over_again(
    std::uint64_t ready, bool& is_dead_letter) const noexcept {
  HoldState state = HoldState::unpack(ready);
  is_dead_letter = geometry().max_deliveries != 0 && state.deliveries >= geometry().max_deliveries;
  state.phase = HoldPhase::held;
  if (!is_dead_letter && state.deliveries < HoldState::kMaxDeliveries) ++state.deliveries;
  return state.pack();
}

// By key: whether a record was taken away that must be delivered before those in ready_.
inline bool MemberCore::is_overtaking() noexcept {
  if (lease_.may_be_over()) forget_lost_leases();
  return holds_.has_lost();
}

// Builds the Delivery of a record that this member holds. `none` if the lease ran out meanwhile.
[[gnu::always_inline]] inline Got MemberCore::deliver(const WalkedRecord& found,
                                                      std::uint64_t state, HoldRef ref,
                                                      Delivery& delivery, bool is_dead_letter) {
  delivery.state_ = state;
  delivery.position_ = found.position;
  delivery.hold_ = place_.mark_of(ref);
  delivery.deliveries = HoldState::unpack(state).deliveries;
  Record& record = delivery.record;
  record = {};
  record.offset = found.offset;
  record.partition = found.where.partition;
  Bytes payload{found.payload, found.detail & kDetailLength};
  if (lease_.is_set()) [[unlikely]] {
    const Got got = copy_payload(ref, state, payload, is_dead_letter);
    if (got != Got::one) return got;
  }
  if (!read_payload(found.detail, payload, record)) [[unlikely]]
    return fail(Errc::corrupt);
  return Got::one;
}

// Replaces `payload` by a copy, which the user gets if the group has a lease. If there is no memory
// for it, the record goes back to the group.
[[gnu::noinline]] inline Got MemberCore::copy_payload(HoldRef ref, std::uint64_t state,
                                                      Bytes& payload,
                                                      bool is_dead_letter) noexcept {
  const HeldRead read{pins_, hold_at(group(), ref), state};
  std::vector<std::byte>* const copy = lease_.new_copy(payload.size());
  if (copy == nullptr) return put_back(ref, state, !is_dead_letter, kNoMemory);
  for (std::size_t i = 0; read.is_own() && i < payload.size(); ++i) {
    // relaxed: if the payload is overwritten meanwhile, the hold was lost before: checked next.
    (*copy)[i] = static_cast<std::byte>(
        load_relaxed<Why::rechecked>(reinterpret_cast<const std::uint8_t&>(payload[i])));
  }
  if (!read.is_still_own()) {
    holds_.lose(ref);
    return Got::none;
  }
  payload = Bytes{*copy};
  return Got::one;
}

// Delivers a retaken record. Its hold says where it is.
[[gnu::noinline]] inline Got MemberCore::deliver_returned(std::uint64_t state, HoldRef ref,
                                                          bool is_dead_letter, Delivery& delivery) {
  const GroupHold& hold = hold_at(group(), ref);
  std::optional<WalkedRecord> found;
  {
    const HeldRead read{pins_, hold, state};
    if (read.is_own()) found = find_held(shared(), place_.records, hold, found_in_batch_);
    if (!found && read.is_still_own()) return fail(Errc::corrupt);
  }
  if (!found) {
    holds_.lose(ref);
    return Got::none;
  }
  const Got got = deliver(*found, state, ref, delivery, is_dead_letter);
  return got == Got::one && is_dead_letter ? bury(delivery) : got;
}

// Returns to the group a record that could not be handed out.
inline Got MemberCore::put_back(HoldRef ref, std::uint64_t state, bool is_counted) noexcept {
  holds_.put_back(ref, state, is_counted);
  announce_returned(shared(), group());
  holds_.lose(ref);
  return Got::none;
}
inline Got MemberCore::put_back(HoldRef ref, std::uint64_t state, bool is_counted,
                                Error error) noexcept {
  (void)put_back(ref, state, is_counted);
  return fail(error);
}

// Delivers a record of a durable topic: a copy of what is in memory or in the files.
[[gnu::noinline]] inline Got MemberCore::deliver_stored(const ReadyRecord& next,
                                                        std::uint64_t state, bool is_dead_letter,
                                                        Delivery& delivery) {
  const HoldRef ref = next.ref;
  const GroupHold& hold = hold_at(group(), ref);
  const std::uint64_t offset = load_relaxed<Why::rechecked>(hold.offset);
  const std::uint32_t partition =
      HoldPlace::unpack(load_relaxed<Why::rechecked>(hold.where)).partition;
  fence_acquire<Edge::hold>();
  if (load_acquire<Edge::hold>(hold.state) != state) {  // The lease has run out.
    holds_.lose(ref);
    return Got::none;
  }
  if (partition >= geometry().partition_count) return fail(Errc::corrupt);
  // The topic is just being closed: what is saved then may say that nobody had this record.
  if (!place_.may_hand_out(partition, offset)) [[unlikely]]
    return put_back(ref, state, !is_dead_letter);
  delivery.state_ = state;
  delivery.position_ = offset;
  delivery.hold_ = place_.mark_of(ref);
  delivery.deliveries = HoldState::unpack(state).deliveries;
  delivery.record = {};
  delivery.record.offset = offset;
  delivery.record.partition = partition;
  GapReason reason{};
  auto is_there = stored_.read(partition, offset, reason, [&](const Record& record) {
    delivery.record = copy_of(record, stored_.copy(ref));
  });
  if (!is_there) return put_back(ref, state, !is_dead_letter, is_there.error());
  if (!*is_there) return not_stored(reason, delivery);
  return is_dead_letter ? bury(delivery) : Got::one;
}

// A record that was claimed, and cannot be read any more: it is done.
inline Got MemberCore::not_stored(GapReason reason, const Delivery& delivery) {
  const Record& record = delivery.record;
  (void)settle(delivery, HoldPhase::free);
  if (on_event_) on_event_({record.offset, 1, reason, record.partition});
  return Got::none;
}

// Tells the user of the gaps that this member's claims have passed.
inline void MemberCore::tell_events() {
  FixedList<Event>& events = claimer_.events();
  if (events.empty()) [[likely]]
    return;
  // The callback may use this member.
  const std::vector<Event> told(events.begin(), events.end());
  events.clear();
  for (const Event& one : told) {
    if (on_event_) on_event_(one);
  }
}

// Moves a record that was handed out too often to the dead-letter topic.
inline Got MemberCore::bury(const Delivery& delivery) {
  if (dead_letters_.publish(delivery.record, delivery.deliveries)) {
    fetch_add<Edge::hold>(group().header().dead_letters, 1);
    (void)settle(delivery, HoldPhase::free);
  } else {
    (void)give_back(delivery, std::chrono::seconds{1});  // Tried again later.
  }
  return Got::none;
}

// ---- Getting records to hand out ----------------------------------------------------------------

// Called when nothing is ready: retakes returned records, or claims new ones. As many of the latter as were
// retaken last are claimed first, if there are any: otherwise records that are given back at once, each time,
// would keep all others away.
[[gnu::noinline]] inline Got MemberCore::get_ready(std::size_t want, HoldPhase phase) noexcept {
  if (holds_.is_full() && lease_.is_set()) forget_lost_leases();
  const bool new_first = new_due_ != 0 && !holds_.is_full();
  Found found = new_first ? claim_new(want, phase) : retake(want);
  if (found == Found::none && new_first) {
    found = retake(want);
  } else if (found == Found::none) {
    if (holds_.is_full()) return fail(Errc::in_flight_full);
    found = claim_new(want, phase);
  }
  switch (found) {
    case Found::some: return Got::one;
    case Found::none: return Got::none;
    case Found::closed: return fail(Errc::closed);
    case Found::corrupt: break;
  }
  return fail(claimer_.error().code != Errc::ok ? claimer_.error() : Error{Errc::corrupt});
}

inline Found MemberCore::retake(std::size_t want) noexcept {
  const Found found = redelivery_.take(want, claimer_.members());
  if (found == Found::some) {
    claimer_.resume();
    new_due_ = ready_.size();
  }
  return found;
}

inline Found MemberCore::claim_new(std::size_t want, HoldPhase phase) noexcept {
  const Found found = claimer_.claim(want, phase);
  new_due_ -= found == Found::some ? std::min(new_due_, ready_.size()) : new_due_;
  return found;
}

// Called when there was nothing to hand out.
[[gnu::noinline]] inline Got MemberCore::nothing_now() {
  wake_publishers();
  if (auto noted = note_nothing(); !noted) return fail(noted.error());
  return Got::none;
}

// The error of a call that handed out nothing. If the group was closed during the call, the seat is
// vacated only here: until then, records in the user's hands stay readable.
inline Error MemberCore::what_failed() noexcept {
  if (error_.code == Errc::closed) (void)know_of_closing();
  return error_;
}

// ---- The calls ----------------------------------------------------------------------------------

// Hands out one record: one that is ready, else a returned one, else a new one.
inline Got MemberCore::take_now(Delivery& delivery) {
  if (const Errc wrong = check(); wrong != Errc::ok) [[unlikely]]
    return fail(wrong);
  if ((++takes_ & 7) == 0) {
    if (const Error wrong = look_now_and_then(); wrong.code != Errc::ok) [[unlikely]]
      return fail(wrong);
  }
  lease_.clear_copies();
  while (true) {
    Got got = hand_out(delivery);
    if (got != Got::none) return got;
    // By key, nothing is claimed ahead: that would keep the records' keys from other members.
    got = place_.by_key ? get_ready(1, HoldPhase::held) : get_ready(kAhead, HoldPhase::ready);
    tell_events();
    if (got != Got::one) return got == Got::failed ? got : nothing_now();
    patience_.note(ready_.size());
  }
}

inline Result<std::size_t> MemberCore::take_some(std::vector<Delivery>& into, std::size_t limit) {
  if (const Errc wrong = check(); wrong != Errc::ok) return wrong;
  if (const Error wrong = look_now_and_then(); wrong.code != Errc::ok) return wrong;
  lease_.clear_copies();
  std::size_t count = 0;
  Got got = Got::none;
  while (count < limit) {
    if (into.size() == into.capacity() && !make_room(into)) {
      got = fail(kNoMemory);
      break;
    }
    // Filled in place. A copy of an empty one, because to make one takes longer (rep stos).
    static constexpr Delivery kEmpty{};
    into.push_back(kEmpty);
    got = hand_out(into.back());
    if (got == Got::one) {
      ++count;
      continue;
    }
    into.pop_back();
    if (got == Got::failed || (count != 0 && claimer_.members() > 1))
      break;  // Leaves the rest to other members.
    got = get_ready(limit - count, HoldPhase::held);
    tell_events();
    if (got != Got::one) break;
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
    if (OwnRecord* own = find_own(*taken); own != nullptr) {
      own->order = 0;
      ready_.untake(own->state);
    }
    return Error{Errc::buffer_too_small, static_cast<std::int32_t>(value.size())};
  }
  if (!value.empty()) std::memcpy(buffer.data(), value.data(), value.size());
  const std::size_t size = value.size();
  if (auto done = acknowledge(*taken); !done) return done.error();
  return size;
}

// While poll() runs. Its callback may destroy the Member.
class MemberCore::InPoll {
 public:
  explicit InPoll(MemberCore& member) noexcept : member_{member} { ++member_.polls_; }
  InPoll(const InPoll&) = delete;
  InPoll& operator=(const InPoll&) = delete;
  ~InPoll() {
    member_.lease_.keep_one(false);
    if (--member_.polls_ == 0 && member_.is_destroyed_) delete &member_;
  }

 private:
  MemberCore& member_;
};

// While poll()'s callback has a record: if it throws, the record is returned to the group, and so are
// those claimed with it.
class MemberCore::InCallback {
 public:
  InCallback(MemberCore& member, const Delivery& delivery) noexcept
      : member_{member}, delivery_{delivery} {}
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;
  ~InCallback() {
    if (has_returned || !member_.is_seated_) return;
    (void)member_.give_back(delivery_, std::chrono::nanoseconds{0});
    member_.ready_.give_back();
  }
  bool has_returned = false;

 private:
  MemberCore& member_;
  const Delivery& delivery_;
};

// The callbacks may take long. So records that are claimed for them stay ready until their turn: others
// can take them if this member makes no progress, their leases have not begun, and they do not count as
// delivered.
inline Result<std::size_t> MemberCore::poll(std::size_t limit, void* context,
                                            void (*on_delivery)(void*, const Delivery&)) {
  if (const Errc wrong = check(); wrong != Errc::ok) [[unlikely]]
    return wrong;
  const InPoll in_poll{*this};
  if (const Error wrong = look_now_and_then(); wrong.code != Errc::ok) return wrong;
  lease_.clear_copies();
  lease_.keep_one(true);
  std::size_t count = 0;
  Got got = Got::none;
  Delivery delivery;
  while (count < limit) {
    got = hand_out(delivery);
    if (got == Got::none) {
      if (count != 0 && claimer_.members() > 1) break;  // The rest is the share of the others.
      if (const Error wrong = look_now_and_then(); wrong.code != Errc::ok) {
        got = fail(wrong);
        break;
      }
      got = get_ready(std::min(limit - count, place_.by_key ? kAhead : kAtOnce), HoldPhase::ready);
      tell_events();
      if (got != Got::one) break;
      continue;
    }
    if (got == Got::failed) break;
    InCallback in_callback{*this, delivery};
    on_delivery(context, delivery);
    in_callback.has_returned = true;
    if (participant_.forked()) return Errc::forked;  // In a child of the callback.
    ++count;
    // The callback destroyed the Member, or called it and was told `closed`: nothing keeps its
    // records now.
    if (!is_seated_) [[unlikely]]
      break;
    // Unless the callback acknowledged it. If the lease has run out, others have it.
    if (is_in_hand(delivery)) (void)settle(delivery, HoldPhase::free);
  }
  patience_.note(count);
  if (count != 0) return count;
  if (got == Got::none) got = nothing_now();
  if (got == Got::failed) return what_failed();
  return count;
}

}  // namespace leat::inline v0::detail
