// Looking after the other members of a group: settles dead ones, and takes records away from
// members that took them and make no progress, or whose lease ran out.
// docs/internals/groups.md, "Deaths".
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "leat/base/own_pause.hpp"
#include "leat/group/redelivery.hpp"
#include "leat/log/participants.hpp"

namespace leat::inline v0::detail {

class OtherMembers {
 public:
  OtherMembers(const MemberPlace& place, InFlightTable& entries, KeyOrder& keys,
               Redelivery& redelivery) noexcept
      : place_{place}, entries_{entries}, keys_{keys}, redelivery_{redelivery} {}

  void reserve() {  // Throws bad_alloc.
    progress_.resize(place_.geometry().seat_count);
    checked_ns_ = now_ns();
  }

  // Returns the time in ns after which it must be called again; 0 if nobody else has records.
  std::int64_t check() noexcept;
  // Takes away records whose lease had run out at the last check(). Returns when the next lease will; 0 if there
  // is none.
  std::int64_t end_leases() noexcept;

 private:
  // Longest time between two scans for entries of a member that makes no progress and has nothing to take away.
  static constexpr std::int64_t kMostPause = 1024 * kOthersDie;

  // Another member's `handed`, and since when it has not changed, or when its entries were last scanned.
  struct Progress {
    std::uint64_t handed = 0;
    std::uint64_t taking = 0;  // Its last take.
    std::int64_t since_ns = 0;
    std::int64_t pause_ns = kOthersDie;  // Until the next scan.
  };

  void note_progress(std::uint32_t seat, Progress& progress, std::int64_t now) noexcept;
  bool take_ready_of(std::uint32_t seat) noexcept;
  void take_away(InFlightEntry& entry, InFlightState state) noexcept;
  void announce_taken() noexcept;

  const MemberPlace& place_;
  InFlightTable& entries_;
  KeyOrder& keys_;
  Redelivery& redelivery_;
  std::vector<Progress> progress_;  // By seat.
  // When the next lease ends, as of the last look; 0: there was none.
  std::int64_t next_lease_ns_ = 0;
  std::int64_t check_leases_ns_ = 0;  // No lease ends before this time.
  bool is_taking_ = false;            // take_away() was called since the last announce_taken().
  std::int64_t checked_ns_ = 0;       // Time of the last check(), or of joining.
  bool was_alone_ = true;             // The last check() found that nobody else had records.
  OwnPause pause_;
};

inline std::int64_t OtherMembers::check() noexcept {
  bool any = false;
  const std::int64_t now = now_ns();
  // While no other member has records, this one may sleep for as long as it likes. The next check cannot tell that from
  // a standstill, so it takes any long gap for one: members that have records by then got them since.
  if (was_alone_) pause_.begin(checked_ns_);
  pause_.check(now);
  checked_ns_ = now;
  for (std::uint32_t index = 0; index < place_.group.seat_high(); ++index) {
    if (index == place_.seat) continue;
    const GroupSeat& other = place_.group.seat(index);
    const std::uint64_t identity = load_acquire<Edge::in_flight>(other.identity);
    // [in-flight] acquire: in_flight was raised before the records that it counts were taken.
    if (identity == 0 || load_acquire<Edge::in_flight>(other.in_flight) == 0) continue;
    if (!byte_is_locked(place_.topic.control_fd(), lock_offset(identity))) {
      settle_dead_member(place_.topic, place_.group, index, identity);
      continue;
    }
    any = true;
    note_progress(index, progress_[index], now);
  }
  if (keys_.free_idle_slots(now)) redelivery_.make_due();
  was_alone_ = !any;
  return any || keys_.others_have_slots() ? kOthersDie : 0;
}

// Takes away the records that a member has not handed out, if it makes no progress. A member that works on one record
// for long has none, and a scan visits all entries of the group: so the pause before the next scan grows, unless the
// member has done something that may have made a record ready or returned.
inline void OtherMembers::note_progress(std::uint32_t seat, Progress& progress,
                                        std::int64_t now) noexcept {
  const GroupSeat& other = place_.group.seat(seat);
  // relaxed: changes before such a step. If it is seen late, the look comes later.
  const std::uint64_t handed = load_relaxed<Why::hint>(other.handed);
  const std::uint64_t taking = load_relaxed<Why::hint>(other.taking);
  if (handed != progress.handed || progress.since_ns == 0) {
    progress = {handed, taking, now, kOthersDie};
    return;
  }
  if (taking != progress.taking) {
    progress.taking = taking;
    progress.pause_ns = kOthersDie;
  }
  if (!pause_.is_late(now, progress.since_ns, progress.pause_ns)) return;
  progress.since_ns = now;
  progress.pause_ns =
      take_ready_of(seat) ? kOthersDie : std::min(2 * progress.pause_ns, kMostPause);
}

// Takes away what another member has taken and not handed out. False if there is nothing of that kind.
inline bool OtherMembers::take_ready_of(std::uint32_t seat) noexcept {
  LEAT_CRASH_POINT("others:looking");
  bool any = false;
  place_.group.each_entry(
      [&](std::uint32_t, std::uint32_t, InFlightEntry& entry, std::uint64_t word) {
        const InFlightState state = InFlightState::unpack(word);
        // That member may have returned records, and stopped before it announced them.
        if (state.phase == InFlightPhase::returned) redelivery_.make_due();
        if (state.phase != InFlightPhase::ready || state.owner != seat + 1) return;
        any = true;
        take_away(entry, state);
        LEAT_CRASH_POINT("take:over");
      });
  announce_taken();
  return any;
}

inline std::int64_t OtherMembers::end_leases() noexcept {
  const std::int64_t lease = place_.geometry().lease_ns;
  if (lease == 0) return 0;
  const std::int64_t now = checked_ns_;  // Not later: this process may have stood still since.
  // A lease that begins after a look ends no sooner than this long after it.
  if (now < check_leases_ns_) return next_lease_ns_;
  std::int64_t next = 0;
  const std::int64_t held_back_ns = pause_.check_again_in_ns(lease);
  place_.group.each_entry(
      [&](std::uint32_t, std::uint32_t, InFlightEntry& entry, std::uint64_t word) {
        const InFlightState state = InFlightState::unpack(word);
        if (state.phase != InFlightPhase::delivered || state.owner == place_.owner()) return;
        const std::int64_t until =
            std::max(load_relaxed<Why::stored_before>(entry.lease_until_ns), now + held_back_ns);
        if (until > now) {
          next = next == 0 ? until : std::min(next, until);
          return;
        }
        take_away(entry, state);
        LEAT_CRASH_POINT("lease:over");
      });
  announce_taken();
  next_lease_ns_ = next;
  check_leases_ns_ = now + (next != 0 ? std::min(next - now, lease) : lease);
  return next;
}

// Returns another member's record to the group. If this member dies before announce_taken(), others
// find that it had records in flight, and announce it.
inline void OtherMembers::take_away(InFlightEntry& entry, InFlightState state) noexcept {
  // Records of a take that may still fail cannot be taken away.
  if (may_be_unmade(place_.group, state)) return;
  if (!std::exchange(is_taking_, true)) entries_.raise_in_flight(1);
  std::uint64_t word = state.pack();
  // At most once: a record that was handed out is done.
  const bool is_done = state.phase == InFlightPhase::delivered && place_.geometry().at_most_once();
  if (place_.by_key) {
    keys_.suspect_others();  // The owner may never release the slot.
    if (!is_done) mark_key(place_.group, load_relaxed<Why::stored_before>(entry.key));
  }
  state.phase = is_done ? InFlightPhase::free : InFlightPhase::returned;
  state.owner = 0;
  state.delayed = false;
  // Fails if the owner has changed the state meanwhile.
  compare_exchange<Edge::in_flight>(entry.state, word, state.pack());
}
inline void OtherMembers::announce_taken() noexcept {
  if (!std::exchange(is_taking_, false)) return;
  announce_returned(place_.topic, place_.group);
  entries_.lower_in_flight(1);
}

}  // namespace leat::inline v0::detail
