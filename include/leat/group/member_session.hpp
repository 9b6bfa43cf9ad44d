// How a member joins and leaves, settles records, and waits. docs/internals/groups.md.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "leat/group/closing.hpp"
#include "leat/group/member_delivery.hpp"

namespace leat::inline v0::detail {

// ---- Joining and leaving ------------------------------------------------------------------------

inline MemberCore::MemberCore(Topic topic, std::shared_ptr<GroupView> group,
                              Participant participant, const std::byte* records,
                              const MemberOptions& options)
    : Waiter{true},
      topic_{std::move(topic)},
      view_{std::move(group)},
      place_{participant.topic(), *view_, participant_, records} {
  begin(std::move(participant), {.spin_ns = options.spin.count(),
                                 .patience_ns = options.patience.count(),
                                 .any_thread = options.any_thread,
                                 .interruptible = options.interruptible});
}

inline Result<void> MemberCore::take_seat(const std::string& name) {
  if (name.size() >= sizeof(GroupSeat::name)) return Errc::invalid_argument;
  const std::uint64_t identity = identity_of(participant_.state());
  for (const bool of_the_dead : {false, true}) {
    for (std::uint32_t index = 0; index < geometry().seat_count && !is_seated_; ++index) {
      const std::uint64_t holder = load_acquire<Edge::in_flight>(group().seat(index).identity);
      if (holder != 0) {
        if (!of_the_dead || byte_is_locked(shared().control_fd(), lock_offset(holder))) continue;
        settle_dead_member(shared(), group(), index, holder);
      }
      is_seated_ = try_seat(index, identity);
    }
  }
  if (!is_seated_) return Errc::too_many;
  LEAT_CRASH_POINT("seat:taken");
  introduce(name);
  make_tables();
  return {};
}

inline bool MemberCore::try_seat(std::uint32_t index, std::uint64_t identity) noexcept {
  std::uint32_t high = load_relaxed<Why::swap_checks>(group().header().seat_high);
  while (high <= index &&
         !compare_exchange<Edge::in_flight>(group().header().seat_high, high, index + 1)) {
  }
  std::uint64_t vacant = 0;
  // [in-flight] seq_cst: only one member gets the seat; what its last member left was settled before.
  // [group] seq_cst: the seat is taken before `closed` is read.
  if (!compare_exchange<Edge::in_flight>(group().seat(index).identity, vacant, identity))
    return false;
  place_.seat = index;
  return true;
}

// Fills in the seat. All but in_flight is informational, or only helps to detect deadlocks.
inline void MemberCore::introduce(const std::string& name) noexcept {
  GroupSeat& seat = place_.own_seat();
  store_relaxed<Why::hint>(seat.pid, static_cast<std::uint32_t>(::getpid()));
  for (std::size_t i = 0; i < name.size(); ++i)
    store_relaxed<Why::hint>(reinterpret_cast<std::uint8_t&>(seat.name[i]),
                             static_cast<std::uint8_t>(name[i]));
  store_relaxed<Why::hint>(seat.name_size, static_cast<std::uint32_t>(name.size()));
  store_relaxed<Why::hint>(seat.participant, participant_.index());
  store_relaxed<Why::published_later>(seat.in_flight, 0);
  // Continues the numbers of the seat's last member.
  entries_.raise_take_number(
      TakeName::unpack(load_acquire<Edge::group_cursor>(seat.taking)).number);
}

// Allocates all memory that handing out and settling need. May throw bad_alloc, because there is
// nothing to lose yet.
inline void MemberCore::make_tables() {
  entries_.make();
  lease_.reserve();
  ready_.reserve();
  redelivery_.reserve();
  taker_.reserve();
  others_.reserve();
  if (place_.by_key) keys_.reserve(geometry().in_flight_limit);
  stored_.reserve();
}

// Returns all records that were not acknowledged, and vacates the seat.
inline void MemberCore::leave() noexcept {
  if (!std::exchange(is_seated_, false) || participant_.forked()) return;
  bool any = false;
  entries_.each([&](InFlightRef ref, const OwnRecord& own) {
    std::uint64_t word = own.state;
    InFlightState state = InFlightState::unpack(word);
    const bool is_done = own.order != 0 && geometry().at_most_once();
    // Its delivery was counted, but it was not handed out.
    if (own.order == 0 && state.phase == InFlightPhase::delivered) --state.deliveries;
    state.phase = is_done ? InFlightPhase::free : InFlightPhase::returned;
    state.owner = 0;
    state.delayed = false;
    if (place_.by_key) mark_key(group(), own.key);
    any =
        compare_exchange<Edge::in_flight>(entry_at(group(), ref).state, word, state.pack()) || any;
    LEAT_CRASH_POINT("leave:returned");
  });
  // Announced even if no record was returned: others may wait for slots that they have emptied.
  if (place_.by_key)
    any = free_slots_of(group(), place_.seat, identity_of(participant_.state())) || any;
  LEAT_CRASH_POINT("leave:freed");
  // Before the seat is vacated: until then, others settle this member if it dies here.
  if (any) announce_returned(shared(), group());
  vacate();
}

inline void MemberCore::destroy() noexcept {
  is_destroyed_ = true;
  if (polls_ != 0) return leave();  // In the callback of poll().
  delete this;
}

inline void MemberCore::vacate() noexcept {
  GroupSeat& seat = place_.own_seat();
  store_relaxed<Why::published_later>(seat.in_flight, 0);
  std::uint64_t identity = identity_of(participant_.state());
  // [in-flight] seq_cst: all reads of this member are complete.
  compare_exchange<Edge::in_flight>(seat.identity, identity, 0);
  LEAT_CRASH_POINT("leave:vacated");
  MappedTopic::wake(shared().header().space_wake);
  if (is_closed()) finish_closing(shared());
}

// Called at the beginning of each call.
inline Errc MemberCore::check() noexcept {
  error_ = {};
  if (participant_.forked()) [[unlikely]]
    return Errc::forked;
  if (thread_ != thread_token()) [[unlikely]]
    note_thread();
  return is_closed() ? know_of_closing() : Errc::ok;
}

// Called when the member has noticed that the group is closed. From here on, publishers may reuse
// the memory of the records that it had in its hands.
[[gnu::cold]] inline Errc MemberCore::know_of_closing() noexcept {
  if (std::exchange(is_seated_, false)) vacate();
  return Errc::closed;
}

[[gnu::cold]] inline Got MemberCore::fail(Error error) noexcept {
  error_ = error;
  return Got::failed;
}

// ---- Settling records ---------------------------------------------------------------------------

// What this member remembers of a delivery; null if it is not, or no longer, its own.
inline OwnRecord* MemberCore::find_own(const Delivery& delivery) noexcept {
  if (!place_.is_mark(delivery.entry_)) return nullptr;
  OwnRecord* const own = entries_.find(MemberPlace::ref_of(delivery.entry_));
  return own != nullptr && own->state == delivery.state_ ? own : nullptr;
}
inline bool MemberCore::is_in_hand(const Delivery& delivery) noexcept {
  const OwnRecord* const own = find_own(delivery);
  return own != nullptr && own->order != 0;
}
inline Errc MemberCore::why_not_in_flight(const Delivery& delivery) noexcept {
  const bool is_lost = place_.is_mark(delivery.entry_) &&
                       lease_.was_lost(MemberPlace::ref_of(delivery.entry_), delivery.state_);
  return is_lost ? Errc::lease_lost : Errc::not_in_flight;
}

// Frees or returns an entry of this member. The result says whether publishers must be woken because there may be
// room now.
[[gnu::always_inline]] inline Errc MemberCore::settle(const Delivery& delivery, InFlightPhase to,
                                                      bool& may_make_room) noexcept {
  const InFlightRef ref = MemberPlace::ref_of(delivery.entry_);
  const std::uint64_t settled = InFlightState::let_go(delivery.state_, to);
  InFlightEntry& entry = entry_at(group(), ref);
  LEAT_CRASH_POINT("settle:before");
  // Before it is returned, so that no record that is taken from now on overtakes it.
  if (to == InFlightPhase::returned) [[unlikely]]
    entries_.show_step();
  if (to == InFlightPhase::returned && place_.by_key) mark_key(group(), entries_.at(ref).key);
  if (!lease_.is_set()) [[likely]] {
    // [in-flight] release: all reads of the record are complete. No swap is needed: without a lease,
    // nobody takes a held record away from a living member.
    store_release<Edge::in_flight>(entry.state, settled);
  } else if (std::uint64_t word = delivery.state_;
             !compare_exchange<Edge::in_flight>(entry.state, word, settled)) {
    entries_.lose(ref);
    return Errc::lease_lost;
  }
  LEAT_CRASH_POINT("settle:done");
  // Before in_flight is lowered: until then, others settle this member if it dies here.
  if (to == InFlightPhase::returned) [[unlikely]]
    announce_returned(shared(), group());
  entries_.forget(ref, to);
  if (shared().durable() != nullptr) [[unlikely]]
    stored_.let_go(ref);
  if (taker_.is_behind(delivery.record.partition, delivery.position_) ||
      ++acknowledged_ % kWakeEvery == 0) [[unlikely]]
    may_make_room = true;
  return Errc::ok;
}
[[gnu::always_inline]] inline Errc MemberCore::settle(const Delivery& delivery,
                                                      InFlightPhase to) noexcept {
  bool may_make_room = false;
  const Errc settled = settle(delivery, to, may_make_room);
  if (may_make_room) [[unlikely]]
    wake_publishers();
  return settled;
}

inline Result<void> MemberCore::acknowledge(const Delivery& delivery) {
  if (const Errc wrong = check(); wrong != Errc::ok) [[unlikely]]
    return wrong;
  if (!is_in_hand(delivery)) [[unlikely]]
    return why_not_in_flight(delivery);
  return settle(delivery, InFlightPhase::free);
}

inline Result<std::size_t> MemberCore::acknowledge(std::span<const Delivery> deliveries) {
  if (const Errc wrong = check(); wrong != Errc::ok) return wrong;
  std::size_t count = 0;
  bool may_make_room = false;
  Errc failure = Errc::ok;
  for (const Delivery& delivery : deliveries) {
    const Errc settled = is_in_hand(delivery) ? settle(delivery, InFlightPhase::free, may_make_room)
                                              : why_not_in_flight(delivery);
    if (settled == Errc::ok) {
      ++count;
    } else if (failure != Errc::lease_lost) {
      failure = settled;
    }
  }
  if (may_make_room) wake_publishers();
  if (count == 0 && failure != Errc::ok) return failure;
  return count;
}

inline Result<std::size_t> MemberCore::acknowledge_up_to(const Delivery& delivery) {
  if (const Errc wrong = check(); wrong != Errc::ok) return wrong;
  if (!is_in_hand(delivery)) return why_not_in_flight(delivery);
  return acknowledge_until(find_own(delivery)->order);
}

inline Result<std::size_t> MemberCore::acknowledge_all() {
  if (const Errc wrong = check(); wrong != Errc::ok) return wrong;
  return acknowledge_until(~0ULL);
}

inline Result<std::size_t> MemberCore::acknowledge_until(std::uint64_t last) {
  std::size_t count = 0;
  std::size_t lost = 0;
  bool may_make_room = false;
  entries_.each([&](InFlightRef ref, const OwnRecord& own) {
    if (own.order == 0 || own.order > last) return;
    const InFlightEntry& entry = entry_at(group(), ref);
    Delivery delivery;
    delivery.entry_ = place_.mark_of(ref);
    delivery.state_ = own.state;
    // relaxed, both: the entry is this member's own.
    delivery.position_ = load_relaxed<Why::own>(entry.position);
    delivery.record.partition =
        InFlightPlace::unpack(load_relaxed<Why::own>(entry.where)).partition;
    if (delivery.record.partition >= geometry().partition_count) return;
    ++(settle(delivery, InFlightPhase::free, may_make_room) == Errc::ok ? count : lost);
  });
  if (may_make_room) wake_publishers();
  if (count == 0 && lost != 0) return Errc::lease_lost;
  return count;
}

inline Result<void> MemberCore::requeue(const Delivery& delivery, std::chrono::nanoseconds delay) {
  if (const Errc wrong = check(); wrong != Errc::ok) return wrong;
  if (!is_in_hand(delivery)) return why_not_in_flight(delivery);
  // Records that are not handed out yet and have the same key must not overtake it.
  if (place_.by_key) ready_.requeue();
  Delivery returned = delivery;
  if (delay.count() > 0 && !delay_entry(returned, delay)) {
    entries_.lose(MemberPlace::ref_of(delivery.entry_));
    return Errc::lease_lost;
  }
  return settle(returned, InFlightPhase::returned);
}

// Stores in the entry until when nobody may retake the record. False if others have the record, because its
// lease ran out.
inline bool MemberCore::delay_entry(Delivery& delivery, std::chrono::nanoseconds delay) noexcept {
  InFlightEntry& entry = entry_at(group(), MemberPlace::ref_of(delivery.entry_));
  // Stored before the state, which makes it valid. By a swap from the value that it had while the
  // record was this member's, because the record may be another's by now, with a delay of its own.
  const std::int64_t visible_at = ns_from_now(delay.count());
  for (std::int64_t seen = load_acquire<Edge::in_flight>(entry.visible_at_ns);;) {
    if (load_acquire<Edge::in_flight>(entry.state) != delivery.state_) return false;
    if (compare_exchange<Edge::in_flight>(entry.visible_at_ns, seen, visible_at)) break;
  }
  // `delayed` is set while the record is held. A member that takes it away by its lease clears it.
  InFlightState state = InFlightState::unpack(delivery.state_);
  state.delayed = true;
  if (!compare_exchange<Edge::in_flight>(entry.state, delivery.state_, state.pack())) return false;
  delivery.state_ = state.pack();
  return true;
}

// Forgets records that were taken away because their lease had run out. Records that are not handed
// out yet are checked when they are.
inline void MemberCore::forget_lost_leases() noexcept {
  lease_.begin_scan();
  entries_.each([&](InFlightRef ref, const OwnRecord& own) {
    if (!ready_.empty() && own.order == 0) return;
    const InFlightEntry& entry = entry_at(group(), ref);
    // [in-flight] acquire, both: the time is read before the state.
    const std::int64_t until = load_acquire<Edge::in_flight>(entry.lease_until_ns);
    if (load_acquire<Edge::in_flight>(entry.state) == own.state) {
      lease_.still_runs(until);
      return;
    }
    lease_.note_lost(ref, own.state);
    entries_.lose(ref);
  });
}

// ---- Waiting, and looking after other members ---------------------------------------------------

inline bool MemberCore::is_ready() noexcept {
  if (!ready_.empty() || is_closed() || redelivery_.is_due()) return true;
  if (entries_.is_full()) return true;  // receive() returns in_flight_full.
  return !taker_.is_pausing() && taker_.has_more();
}

// Repairs what dead publishers and members left: uncommitted and unacknowledged records. Returns
// how long a sleep may last, in ns; 0: no limit.
inline Result<std::int64_t> MemberCore::housekeep() {
  wake_publishers();
  const auto holes = taker_.repair_holes();
  if (!holes) return holes.error();
  std::int64_t limit_ns = 0;
  for (const std::int64_t ns : {*holes, others_.check(), next_event()}) {
    if (ns != 0) limit_ns = limit_ns == 0 ? ns : std::min(limit_ns, ns);
  }
  return limit_ns;
}

// Looks after the other members, and after holes of dead publishers in partitions where nothing comes, while
// this member always finds records: once per tick of the kernel's coarse clock.
[[gnu::noinline]] inline Error MemberCore::housekeep_if_due() {
  const std::int64_t tick = tick_ns();
  if (tick == housekept_tick_ns_) return {};
  housekept_tick_ns_ = tick;
  others_.check();
  (void)next_event();
  return taker_.repair_holes().error();
}

// Takes away records whose lease has run out. Returns the time in ns until the next timed event: a
// delayed record becomes visible, or a pause or a lease ends. 0: there is none.
inline std::int64_t MemberCore::next_event() noexcept {
  const std::int64_t now = now_ns();
  std::int64_t next = 0;
  for (const std::int64_t at :
       {redelivery_.next_visible_ns(), taker_.pause_ends_ns(now), others_.end_leases()}) {
    if (at == 0) continue;
    const std::int64_t ns = std::max<std::int64_t>(at - now, 1000);
    next = next == 0 ? ns : std::min(next, ns);
  }
  return next;
}

}  // namespace leat::inline v0::detail
