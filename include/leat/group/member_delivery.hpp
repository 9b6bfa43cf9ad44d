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
      ready_.requeue();
      break;
    }
    const ReadyRecord& next = ready_.take();
    std::uint64_t state = next.state;
    bool is_dead_letter = false;
    if (phase_of(state) == InFlightPhase::ready && !hand_over(next.ref, state, is_dead_letter))
        [[unlikely]]
      continue;
    OwnRecord& own = entries_.at(next.ref);
    own.state = state;
    own.order = ++order_;
    entries_.show_step();
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
[[gnu::always_inline]] inline bool MemberCore::hand_over(InFlightRef ref, std::uint64_t& state,
                                                         bool& is_dead_letter) noexcept {
  InFlightEntry& entry = entry_at(group(), ref);
  lease_.extend(entry);
  const bool is_first = InFlightState::is_undelivered(state);
  std::uint64_t delivered = InFlightState::hand_over(state);
  if (!is_first) [[unlikely]]
    delivered = hand_over_again(state, is_dead_letter);
  // [in-flight] seq_cst: the record is either handed out or taken away.
  if (!compare_exchange<Edge::in_flight>(entry.state, state, delivered)) [[unlikely]] {
    entries_.lose(ref);
    return false;
  }
  LEAT_CRASH_POINT("take:handed");
  if (!is_first && !is_dead_letter) [[unlikely]]
    fetch_add<Edge::in_flight>(group().header().redelivered, 1);
  state = delivered;
  return true;
}

// Returns the new state of a record that was handed out before.
[[gnu::noinline]] inline std::uint64_t MemberCore::hand_over_again(
    std::uint64_t ready, bool& is_dead_letter) const noexcept {
  InFlightState state = InFlightState::unpack(ready);
  is_dead_letter = geometry().max_deliveries != 0 && state.deliveries >= geometry().max_deliveries;
  state.phase = InFlightPhase::delivered;
  if (!is_dead_letter && state.deliveries < InFlightState::kMaxDeliveries) ++state.deliveries;
  return state.pack();
}

// By key: whether a record was taken away that must be delivered before those in ready_.
inline bool MemberCore::is_overtaking() noexcept {
  if (lease_.may_be_over()) forget_lost_leases();
  return entries_.has_lost();
}

// Builds the Delivery of a record that this member holds. `none` if the lease ran out meanwhile.
[[gnu::always_inline]] inline Got MemberCore::deliver(const ScannedRecord& found,
                                                      std::uint64_t state, InFlightRef ref,
                                                      Delivery& delivery, bool is_dead_letter) {
  delivery.state_ = state;
  delivery.position_ = found.position;
  delivery.entry_ = place_.mark_of(ref);
  delivery.deliveries = InFlightState::unpack(state).deliveries;
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
[[gnu::noinline]] inline Got MemberCore::copy_payload(InFlightRef ref, std::uint64_t state,
                                                      Bytes& payload,
                                                      bool is_dead_letter) noexcept {
  const InFlightRead read{pins_, entry_at(group(), ref), state};
  std::vector<std::byte>* const copy = lease_.new_copy(payload.size());
  if (copy == nullptr) return put_back(ref, state, !is_dead_letter, kNoMemory);
  for (std::size_t i = 0; read.is_own() && i < payload.size(); ++i) {
    // relaxed: if the payload is overwritten meanwhile, the entry was lost before that, which is checked next.
    (*copy)[i] = static_cast<std::byte>(
        load_relaxed<Why::rechecked>(reinterpret_cast<const std::uint8_t&>(payload[i])));
  }
  if (!read.is_still_own()) {
    entries_.lose(ref);
    return Got::none;
  }
  payload = Bytes{*copy};
  return Got::one;
}

// Delivers a retaken record. Its entry says where it is.
[[gnu::noinline]] inline Got MemberCore::deliver_returned(std::uint64_t state, InFlightRef ref,
                                                          bool is_dead_letter, Delivery& delivery) {
  const InFlightEntry& entry = entry_at(group(), ref);
  std::optional<ScannedRecord> found;
  {
    const InFlightRead read{pins_, entry, state};
    if (read.is_own()) found = find_in_flight(shared(), place_.records, entry, found_in_batch_);
    if (!found && read.is_still_own()) return fail(Errc::corrupt);
  }
  if (!found) {
    entries_.lose(ref);
    return Got::none;
  }
  const Got got = deliver(*found, state, ref, delivery, is_dead_letter);
  return got == Got::one && is_dead_letter ? dead_letter(delivery) : got;
}

// Returns to the group a record that could not be handed out.
inline Got MemberCore::put_back(InFlightRef ref, std::uint64_t state, bool is_counted) noexcept {
  entries_.put_back(ref, state, is_counted);
  announce_returned(shared(), group());
  entries_.lose(ref);
  return Got::none;
}
inline Got MemberCore::put_back(InFlightRef ref, std::uint64_t state, bool is_counted,
                                Error error) noexcept {
  (void)put_back(ref, state, is_counted);
  return fail(error);
}

// Delivers a record of a durable topic: a copy of what is in memory or in the files.
[[gnu::noinline]] inline Got MemberCore::deliver_stored(const ReadyRecord& next,
                                                        std::uint64_t state, bool is_dead_letter,
                                                        Delivery& delivery) {
  const InFlightRef ref = next.ref;
  const InFlightEntry& entry = entry_at(group(), ref);
  const std::uint64_t offset = load_relaxed<Why::rechecked>(entry.offset);
  const std::uint32_t partition =
      InFlightPlace::unpack(load_relaxed<Why::rechecked>(entry.where)).partition;
  fence_acquire<Edge::in_flight>();
  if (load_acquire<Edge::in_flight>(entry.state) != state) {  // The lease has run out.
    entries_.lose(ref);
    return Got::none;
  }
  if (partition >= geometry().partition_count) return fail(Errc::corrupt);
  // The topic is just being closed: what is saved then may say that nobody had this record.
  if (!place_.may_hand_out(partition, offset)) [[unlikely]]
    return put_back(ref, state, !is_dead_letter);
  delivery.state_ = state;
  delivery.position_ = offset;
  delivery.entry_ = place_.mark_of(ref);
  delivery.deliveries = InFlightState::unpack(state).deliveries;
  delivery.record = {};
  delivery.record.offset = offset;
  delivery.record.partition = partition;
  GapReason reason{};
  auto is_there = stored_.read(partition, offset, reason, [&](const Record& record) {
    delivery.record = copy_of(record, stored_.copy(ref));
  });
  if (!is_there) return put_back(ref, state, !is_dead_letter, is_there.error());
  if (*is_there == StoredFetch::Found::on_disk) return leave_on_disk(ref, state, is_dead_letter);
  if (*is_there == StoredFetch::Found::gone) return not_stored(reason, delivery);
  return is_dead_letter ? dead_letter(delivery) : Got::one;
}

// For a record that was taken and cannot be read any more: it is done.
inline Got MemberCore::not_stored(GapReason reason, const Delivery& delivery) {
  const Record& record = delivery.record;
  (void)settle(delivery, InFlightPhase::free);
  if (on_event_) on_event_({record.offset, 1, reason, record.partition});
  return Got::none;
}

// The next call begins with this record. A dead letter goes back to the group instead: the next call would not
// know that it is one.
inline Got MemberCore::leave_on_disk(InFlightRef ref, std::uint64_t state,
                                     bool is_dead_letter) noexcept {
  if (is_dead_letter) {
    (void)put_back(ref, state, false);
  } else {
    entries_.at(ref).order = 0;
    ready_.untake(state);
  }
  return Got::on_disk;
}

// Tells the user of the gaps that this member's takes have passed.
inline void MemberCore::report_events() {
  FixedList<Event>& events = taker_.events();
  if (events.empty()) [[likely]]
    return;
  // The callback may use this member.
  const std::vector<Event> reported(events.begin(), events.end());
  events.clear();
  for (const Event& one : reported) {
    if (on_event_) on_event_(one);
  }
}

// Moves a record that was handed out too often to the dead-letter topic.
inline Got MemberCore::dead_letter(const Delivery& delivery) {
  if (dead_letters_.publish(delivery.record, delivery.deliveries)) {
    fetch_add<Edge::in_flight>(group().header().dead_letters, 1);
    (void)settle(delivery, InFlightPhase::free);
  } else {
    (void)requeue(delivery, std::chrono::seconds{1});  // Tried again later.
  }
  return Got::none;
}

// ---- Getting records to hand out ----------------------------------------------------------------

// Called when nothing is ready: retakes returned records, or takes new ones. After n records were retaken, up to n new
// ones are taken before more are retaken. Otherwise records that are requeued at once, each time, would keep all
// others away.
[[gnu::noinline]] inline Got MemberCore::get_ready(std::size_t want, InFlightPhase phase) noexcept {
  if (entries_.is_full() && lease_.is_set()) forget_lost_leases();
  const bool new_first = new_due_ != 0 && !entries_.is_full();
  Found found = new_first ? take_new(want, phase) : retake(want);
  if (found == Found::none && new_first) {
    found = retake(want);
  } else if (found == Found::none) {
    if (entries_.is_full()) return fail(Errc::in_flight_full);
    found = take_new(want, phase);
  }
  switch (found) {
    case Found::some: return Got::one;
    case Found::none: return Got::none;
    case Found::closed: return fail(Errc::closed);
    case Found::corrupt: break;
  }
  return fail(taker_.error().code != Errc::ok ? taker_.error() : Error{Errc::corrupt});
}

inline Found MemberCore::retake(std::size_t want) noexcept {
  const Found found = redelivery_.take(want, taker_.members());
  if (found == Found::some) {
    taker_.resume();
    new_due_ = ready_.size();
  }
  return found;
}

inline Found MemberCore::take_new(std::size_t want, InFlightPhase phase) noexcept {
  const Found found = taker_.take(want, phase);
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
    if (const Error wrong = housekeep_if_due(); wrong.code != Errc::ok) [[unlikely]]
      return fail(wrong);
  }
  lease_.clear_copies();
  while (true) {
    Got got = hand_out(delivery);
    if (got != Got::none) return got;
    // By key, nothing is taken in advance: that would keep the records' keys from other members.
    got = place_.by_key ? get_ready(1, InFlightPhase::delivered)
                        : get_ready(kAhead, InFlightPhase::ready);
    report_events();
    if (got != Got::one) return got == Got::failed ? got : nothing_now();
    patience_.note(ready_.size());
  }
}

inline Result<std::size_t> MemberCore::take_some(std::vector<Delivery>& into, std::size_t limit) {
  if (const Errc wrong = check(); wrong != Errc::ok) return wrong;
  if (const Error wrong = housekeep_if_due(); wrong.code != Errc::ok) return wrong;
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
    if (got != Got::none || (count != 0 && taker_.members() > 1))
      break;  // Leaves the rest to other members.
    got = get_ready(limit - count, InFlightPhase::delivered);
    report_events();
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
    if (next_is_on_disk() || deadline.passed()) return Errc::timeout;
    if (auto ready = wait(deadline, stop); !ready) return ready.error();
  }
}

inline Result<std::size_t> MemberCore::receive(std::vector<Delivery>& into, std::size_t limit,
                                               const Deadline& deadline,
                                               const std::stop_token& stop) {
  while (limit != 0) {
    auto count = take_some(into, limit);
    if (!count || *count != 0) return count;
    if (next_is_on_disk() || deadline.passed()) return Errc::timeout;
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
// those taken with it.
class MemberCore::InCallback {
 public:
  InCallback(MemberCore& member, const Delivery& delivery) noexcept
      : member_{member}, delivery_{delivery} {}
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;
  ~InCallback() {
    if (has_returned || !member_.is_seated_) return;
    (void)member_.requeue(delivery_, std::chrono::nanoseconds{0});
    member_.ready_.requeue();
  }
  bool has_returned = false;

 private:
  MemberCore& member_;
  const Delivery& delivery_;
};

// The callbacks may take long. So records that are taken for them stay ready until their turn: others
// can take them if this member makes no progress, their leases have not begun, and they do not count as
// delivered.
inline Result<std::size_t> MemberCore::poll(std::size_t limit, void* context,
                                            void (*on_delivery)(void*, const Delivery&)) {
  if (const Errc wrong = check(); wrong != Errc::ok) [[unlikely]]
    return wrong;
  const InPoll in_poll{*this};
  if (const Error wrong = housekeep_if_due(); wrong.code != Errc::ok) return wrong;
  lease_.clear_copies();
  lease_.keep_one(true);
  std::size_t count = 0;
  Got got = Got::none;
  Delivery delivery;
  while (count < limit) {
    got = hand_out(delivery);
    if (got == Got::none) {
      if (count != 0 && taker_.members() > 1) break;  // The rest is the share of the others.
      if (const Error wrong = housekeep_if_due(); wrong.code != Errc::ok) {
        got = fail(wrong);
        break;
      }
      got = get_ready(std::min(limit - count, place_.by_key ? kAhead : kAtOnce),
                      InFlightPhase::ready);
      report_events();
      if (got != Got::one) break;
      continue;
    }
    if (got != Got::one) break;
    InCallback in_callback{*this, delivery};
    on_delivery(context, delivery);
    in_callback.has_returned = true;
    if (participant_.forked()) return Errc::forked;  // In a child of the callback.
    ++count;
    // The callback destroyed the Member, or called it and got `closed`: nothing keeps its records
    // now.
    if (!is_seated_) [[unlikely]]
      break;
    // Unless the callback acknowledged it. If the lease has run out, others have it.
    if (is_in_hand(delivery)) (void)settle(delivery, InFlightPhase::free);
  }
  patience_.note(count);
  if (count != 0) return count;
  if (got == Got::none) got = nothing_now();
  if (got == Got::failed) return what_failed();
  return count;
}

}  // namespace leat::inline v0::detail
