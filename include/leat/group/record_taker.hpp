// Claims new records for a member.
//
//     if (claimer.claim(64, HoldPhase::ready) == Found::some) …  // they are in `ready`
//
// A claim walks the records from the group's cursor on, stores a hold for each, and swaps the
// cursor to the end of the walk. If the swap fails, all of it is undone.
// docs/internals/groups.md, "Claiming", has the proof.
#pragma once

#include <algorithm>
#include <vector>

#include "leat/group/redelivery.hpp"
#include "leat/log/durable_wait.hpp"
#include "leat/log/hole_watch.hpp"
#include "leat/log/repair.hpp"

namespace leat::inline v0::detail {

class Claimer {
 public:
  Claimer(const MemberPlace& place, SegmentPins& pins, HoldTable& holds, KeyOrder& keys,
          Lease& lease, ReadyRecords& ready, Redelivery& redelivery) noexcept
      : place_{place},
        pins_{pins},
        holds_{holds},
        keys_{keys},
        lease_{lease},
        ready_{ready},
        redelivery_{redelivery} {}

  void reserve();  // Throws bad_alloc.

  // Claims up to `want` records of one partition, the next one that has some. `phase` is the
  // initial phase of their holds. If there are some, they are in `ready`.
  Found claim(std::size_t want, HoldPhase phase) noexcept;
  // Ends a pause in claiming. Called when returned records were retaken.
  void resume() noexcept;

  // Whether there is a record to claim, a gap to pass, or a next segment to enter.
  bool has_more() noexcept;
  bool is_pausing() const noexcept { return claim_again_ns_ != 0 && now_ns() < claim_again_ns_; }
  // When the pause ends; 0 if there is none, or if it is over and there is nothing to claim.
  std::int64_t pause_ends_ns(std::int64_t now) noexcept {
    return claim_again_ns_ > now || (claim_again_ns_ != 0 && has_more()) ? claim_again_ns_ : 0;
  }
  // Repairs holes that dead publishers left at the cursors. Returns how long a sleep may last, in
  // ns; 0: no limit.
  Result<std::int64_t> look_after_holes();

  // Number of members of the group, as last counted.
  std::size_t members() const noexcept { return members_; }
  // Whether `position` is in a segment before the one being claimed from, which publishers may be
  // able to reuse once the records there are settled.
  bool is_behind(std::uint32_t partition, std::uint64_t position) const noexcept {
    return partition < lanes_.size() && position < lanes_[partition].walker.segment_position();
  }
  // Durable topics: the gaps that this member's claims have passed. The caller empties it.
  FixedList<Event>& events() noexcept { return events_; }
  // Durable topics: why the last claim failed; ok if what was read makes no sense.
  Error error() const noexcept { return error_; }

 private:
  static constexpr std::size_t kMaxParkRun = 1024;
  static constexpr std::size_t kEnoughWaiting = 256;

  // The state for one partition.
  struct Lane {
    Lane(SharedTopic& topic, std::uint32_t partition, const std::byte* records) noexcept
        : walker{topic, partition, records} {}
    std::uint32_t partition() const noexcept { return walker.partition(); }
    Walker walker;
    HoleWatch hole;
  };
  // One attempt to claim.
  struct Attempt {
    CursorValue from;                 // The cursor where the walk begins.
    ClaimName name;                   // The claim's number and partition.
    std::uint64_t state = 0;          // Initial state of its holds.
    Walk walk = Walk::nothing;        // How the walk ended.
    std::uint64_t first_segment = 0;  // Segment where the walk began.
    std::size_t share = 0;            // Maximum number of records.
    HoldTable::Reservation holds = {};
    std::size_t events = 0;  // Number of events before the walk.
    bool has_moved = false;  // The walk passed a gap or the end of a segment.
    bool is_late = false;    // By key: another member moved the cursor first.
  };
  enum class End : std::uint8_t { some, none, again, failed };

  Found claim_of(Lane& lane, std::size_t want, HoldPhase phase) noexcept;
  void name_claim(Attempt& claim, std::uint32_t partition, HoldPhase phase) noexcept;
  void hold_records(Attempt& claim, Lane& lane, std::size_t want) noexcept;
  bool note_gap(const Walker& walker) noexcept;
  bool has_room_for_events() const noexcept { return events_.size() < kAtOnce; }
  void write_hold(HoldRef ref, WalkedRecord& record, std::uint64_t state) noexcept;
  void gain_keys(Attempt& claim, std::uint32_t partition) noexcept;
  bool swap_cursor(const Attempt& claim, const Walker& walker) noexcept;
  End keep_claimed(const Attempt& claim, const Walker& walker) noexcept;
  void keep_holds(const Attempt& claim) noexcept;
  void park() noexcept;
  End drop_claimed(const Attempt& claim, std::uint32_t partition) noexcept;
  void drop_holds(std::uint64_t state) noexcept;
  std::size_t fair_share(const Lane& lane, std::size_t want) noexcept;
  bool must_pause() noexcept;
  void pause() noexcept { claim_again_ns_ = now_ns() + kOthersDie; }
  bool has_next(Lane& lane) noexcept;

  const MemberPlace& place_;
  SegmentPins& pins_;
  HoldTable& holds_;
  KeyOrder& keys_;
  Lease& lease_;
  ReadyRecords& ready_;
  Redelivery& redelivery_;
  std::vector<Lane> lanes_;
  std::size_t next_lane_ = 0;
  FixedList<ReadyRecord> parked_;  // Parked by the current claim.
  FixedList<Event> events_;
  Error error_;
  std::size_t may_park_ = kAhead;    // Records to park before the next pause.
  std::size_t park_run_ = kAhead;    // Records to park between two pauses.
  std::int64_t claim_again_ns_ = 0;  // No claims before this time; 0: no pause.
  bool has_gained_ = false;          // Whether the last claim gained a record.
  std::uint32_t members_ = 1;
  std::uint32_t claims_until_count_ = 0;
};

inline void Claimer::reserve() {
  for (std::uint32_t i = 0; i < place_.geometry().partition_count; ++i) {
    lanes_.emplace_back(place_.topic, i, place_.records);
    if (place_.topic.durable() == nullptr) continue;
    lanes_.back().walker.read_stored(std::make_unique<StoredWalk>(
        place_.stored_place(i), place_.geometry(), place_.group.cursor(i).limit));
  }
  parked_.reserve(kAtOnce);
  events_.reserve(kAtOnce);
}

// ---- Which partition, and when ------------------------------------------------------------------

inline Found Claimer::claim(std::size_t want, HoldPhase phase) noexcept {
  if (holds_.free_own() < want) holds_.find_settled();
  if (must_pause()) [[unlikely]]
    return Found::none;
  for (std::size_t turn = 0; turn < lanes_.size(); ++turn) {
    Lane& lane = lanes_[next_lane_];
    if (++next_lane_ == lanes_.size()) next_lane_ = 0;
    const Found found = claim_of(lane, want, phase);
    has_gained_ = found == Found::some;
    if (has_gained_) park_run_ = may_park_ = kAhead;
    if (found != Found::none || claim_again_ns_ != 0) return found;
  }
  return Found::none;
}

inline bool Claimer::must_pause() noexcept {
  // By key: many records are waiting and the last claim gained none. More would be parked, too.
  if (claim_again_ns_ == 0 && redelivery_.waiting() >= kEnoughWaiting && !has_gained_) [[unlikely]]
    pause();
  if (claim_again_ns_ == 0) return false;
  if (now_ns() < claim_again_ns_) return true;
  claim_again_ns_ = 0;
  return false;
}

inline void Claimer::resume() noexcept {
  park_run_ = may_park_ = kAhead;
  // With many waiting, must_pause() would begin another pause at once, and no pause would ever end.
  if (redelivery_.waiting() < kEnoughWaiting) claim_again_ns_ = 0;
}

// With other members: at most half of a member's equal share of the backlog.
[[gnu::always_inline]] inline std::size_t Claimer::fair_share(const Lane& lane,
                                                              std::size_t want) noexcept {
  if (want <= 1) return want;
  if (claims_until_count_ == 0) {
    claims_until_count_ = 64;
    members_ = 0;
    for (std::uint32_t i = 0; i < place_.group.seat_high(); ++i) {
      if (load_relaxed<Why::hint>(place_.group.seat(i).identity) != 0) ++members_;
    }
  }
  --claims_until_count_;
  if (members_ <= 1) return want;
  const std::uint64_t backlog = lane.walker.claimed_beyond();
  return std::min<std::size_t>(want, std::max<std::uint64_t>(1, backlog / (2 * members_)));
}

// ---- The steps of a claim -----------------------------------------------------------------------

inline Found Claimer::claim_of(Lane& lane, std::size_t want, HoldPhase phase) noexcept {
  const std::uint32_t partition = lane.partition();
  ready_.begin();
  for (std::uint32_t attempt = 0; attempt < kManyMoves; ++attempt) {
    Attempt claim;
    claim.from = place_.group.load_cursor(partition);
    if (!pins_.pin(partition, claim.from)) {
      pins_.unpin(partition);
      if (place_.group.is_closed()) return Found::closed;
      continue;  // The cursor was moved meanwhile.
    }
    claim.walk = lane.walker.go_to(claim.from);
    if (claim.walk == Walk::nothing || !has_room_for_events()) {
      pins_.unpin(partition);
      return Found::none;
    }
    name_claim(claim, partition, phase);
    hold_records(claim, lane, want);
    gain_keys(claim, partition);
    LEAT_CRASH_POINT("take:held");
    const bool is_made = swap_cursor(claim, lane.walker);
    const End end = is_made ? keep_claimed(claim, lane.walker) : drop_claimed(claim, partition);
    if (end == End::some) return Found::some;
    if (end == End::none) return Found::none;
    if (end != End::again) break;
  }
  return place_.group.is_closed() ? Found::closed : Found::corrupt;
}

// First step: picks a claim number whose low bits the cursor does not show for this seat now. A
// cursor that shows them later then names this claim.
[[gnu::always_inline]] inline void Claimer::name_claim(Attempt& claim, std::uint32_t partition,
                                                       HoldPhase phase) noexcept {
  std::uint64_t number = holds_.claim_number() + 1;
  if (names_claim(claim.from, place_.seat, {number, 0})) ++number;
  claim.name = {number, partition};
  // [group-cursor] release: visible before the claim's holds.
  store_release<Edge::group_cursor>(place_.own_seat().claiming, claim.name.pack());
  claim.state = HoldState{.phase = phase,
                          .owner = place_.owner(),
                          .deliveries = phase == HoldPhase::held ? 1U : 0U,
                          .generation = number & HoldState::kGenerationMask}
                    .pack();
}

// Second step: walks the records from the cursor on and stores a hold for each.
[[gnu::always_inline]] inline void Claimer::hold_records(Attempt& claim, Lane& lane,
                                                         std::size_t want) noexcept {
  Walker& walker = lane.walker;
  FixedList<ReadyRecord>& claimed = ready_.records();
  claim.first_segment = walker.segment();
  claim.events = events_.size();
  claim.share = std::min({fair_share(lane, want), holds_.room(), kAtOnce});
  if (claim.share != 0) holds_.show_in_flight(1);
  while (claim.walk != Walk::corrupt && claimed.size() < claim.share &&
         holds_.reserve(claim.holds, claim.state)) {
    ReadyRecord& one = claimed.spare();  // Filled in place.
    claim.walk = walker.next(one.record);
    if (claim.walk == Walk::skipped) {
      claim.has_moved = true;
      if (walker.stored() != nullptr && !note_gap(walker)) break;
      if (place_.must_pin && walker.segment() != claim.first_segment) break;
      continue;
    }
    if (claim.walk != Walk::record) break;
    one.ref = holds_.use(claim.holds);
    one.state = claim.state;
    write_hold(one.ref, one.record, claim.state);
    claimed.push_spare();
  }
  holds_.release_unused(claim.holds, claim.state);
}

// False if there is no room for another one: the caller empties events() first.
[[gnu::noinline]] inline bool Claimer::note_gap(const Walker& walker) noexcept {
  const StoredWalk::Entry& gap = walker.passed();
  events_.push_back({gap.first, gap.count, *gap.gap, walker.partition()});
  return has_room_for_events();
}

[[gnu::always_inline]] inline void Claimer::write_hold(HoldRef ref, WalkedRecord& record,
                                                       std::uint64_t state) noexcept {
  GroupHold& hold = hold_at(place_.group, ref);
  GroupSeat& seat = place_.own_seat();
  if (ref.row() == place_.seat && load_relaxed<Why::own>(seat.hold_high) <= ref.index())
    store_release<Edge::hold>(seat.hold_high, ref.index() + 1);
  // [hold-place] release, both: the reads of this hold's previous record are complete.
  store_release<Edge::hold_place>(hold.position, record.position);
  store_relaxed<Why::published_later>(hold.offset, record.offset);
  store_release<Edge::hold_place>(hold.where, record.where.pack());
  if (place_.by_key) {
    record.key = keys_.hash(record);
    store_relaxed<Why::published_later>(hold.key, record.key);
  }
  lease_.begin(hold);
  // [hold] release: after the facts above.
  store_release<Edge::hold>(hold.state, state);
}

// Third step, by key: moves records whose keys this member may not have now to parked_.
[[gnu::always_inline]] inline void Claimer::gain_keys(Attempt& claim,
                                                      std::uint32_t partition) noexcept {
  if (!place_.by_key) return;
  // If the cursor has moved, this claim will fail. It then gains no keys: a member that claims the
  // same records would find them taken, and park its records in vain.
  claim.is_late = place_.group.load_cursor(partition) != claim.from;
  if (claim.is_late) {
    parked_.swap(ready_.records());  // They gained no keys.
  } else {
    keys_.gain(ready_.records(), parked_);
  }
}

// Fourth step: swaps the cursor. True if it was still where the walk began: the claim is made.
[[gnu::always_inline]] inline bool Claimer::swap_cursor(const Attempt& claim,
                                                        const Walker& walker) noexcept {
  const bool has_passed = claim.has_moved || !ready_.empty() || !parked_.empty();
  if (claim.is_late || claim.walk == Walk::corrupt || !has_passed) return false;
  note_claim(place_.group, walker.partition(), claim.from);
  LEAT_CRASH_POINT("take:noting");
  if (!place_.group.swap_cursor(walker.partition(), claim.from,
                                walker.cursor(place_.owner(), claim.name.number)))
    return false;
  LEAT_CRASH_POINT("take:claimed");
  return true;
}

// Last step of a claim that was made: records in ready_ become this member's, those in parked_
// become available to all members.
[[gnu::always_inline]] inline Claimer::End Claimer::keep_claimed(const Attempt& claim,
                                                                 const Walker& walker) noexcept {
  // If the group was deleted meanwhile, the walked memory may have been reused. If not, the holds
  // keep it from now on.
  if (place_.group.is_closed()) [[unlikely]] {
    ready_.begin();
    parked_.clear();
    pins_.unpin(walker.partition());
    return End::failed;
  }
  // [group-cursor] release: after the cursor was moved.
  store_release<Edge::group_cursor>(place_.own_seat().noted, claim.name.pack());
  LEAT_CRASH_POINT("take:noted");
  holds_.raise_claim_number(claim.name.number);
  const bool any = !ready_.empty() || !parked_.empty();
  keep_holds(claim);
  if (walker.segment() != claim.first_segment) SharedTopic::wake(place_.topic.header().space_wake);
  if (walker.stored() != nullptr) tell_group_moved(place_.topic, GroupNews::moved);
  pins_.unpin(walker.partition());
  if (!ready_.empty()) return End::some;
  if (claim_again_ns_ != 0) return End::none;
  // Only gaps, or records with keys that others have: try again.
  return claim.has_moved || any ? End::again : End::none;
}
[[gnu::always_inline]] inline void Claimer::keep_holds(const Attempt& claim) noexcept {
  holds_.commit(claim.holds);
  holds_.raise_in_flight(ready_.size() + parked_.size());
  for (const ReadyRecord& one : ready_.records()) {
    holds_.keep(one.ref, {one.state, 0, place_.by_key ? one.record.key : 0});
  }
  if (!parked_.empty()) park();
}

// Returns the records of this claim whose keys it could not gain.
[[gnu::noinline]] inline void Claimer::park() noexcept {
  bool announces = false;
  for (const ReadyRecord& one : parked_) {
    GroupHold& hold = hold_at(place_.group, one.ref);
    std::uint64_t word = one.state;
    // [hold] seq_cst. Fails if another member has taken the record away, and thereby returned it.
    compare_exchange<Edge::hold>(hold.state, word,
                                 HoldState::let_go(one.state, HoldPhase::returned));
    LEAT_CRASH_POINT("park:returned");
    holds_.park(one.ref);
    // [key-slot] seq_cst: read after the state is stored. An owner that releases the slot later
    // sees its mark.
    const auto slot =
        KeySlot::unpack(load_seq_cst<Edge::key_slot>(place_.group.key_slot(one.record.key)));
    announces = announces || slot.owner == 0 || slot.owner == place_.owner();
  }
  if (announces) announce_returned(place_.topic, place_.group);
  redelivery_.note_parked(parked_.size());
  holds_.lower_in_flight(parked_.size());
  // Pauses after a run of parked records, because claiming more gains little while others have the
  // keys. Each run is longer than the last, so that the claims get past these records in the end.
  may_park_ -= std::min(may_park_, parked_.size());
  if (may_park_ == 0) {
    park_run_ = std::min(2 * park_run_, kMaxParkRun);
    may_park_ = park_run_;
    if (ready_.empty()) pause();
  }
  parked_.clear();
}

// Last step of a claim that was not made, and will not be: undoes it.
inline Claimer::End Claimer::drop_claimed(const Attempt& claim, std::uint32_t partition) noexcept {
  const bool any = !ready_.empty() || !parked_.empty();
  const StoredWalk* const stored = lanes_[partition].walker.stored();
  if (any) drop_holds(claim.state);
  events_.resize(claim.events);
  pins_.unpin(partition);
  holds_.show_in_flight();
  if (claim.walk != Walk::corrupt && !any && !claim.has_moved) {
    if (stored != nullptr && stored->is_at_limit())
      tell_group_moved(place_.topic, GroupNews::urgent);
    // Spare holds may be usable with a larger claim number: try again.
    if (holds_.claim_number() >= claim.name.number) return End::again;
    if (claim.share != 0 && holds_.was_short(claim.holds)) pause();
    return End::none;
  }
  // Corrupt, unless the cursor has moved: then the walked memory may have been overwritten.
  if (claim.walk == Walk::corrupt && place_.group.load_cursor(partition) == claim.from) {
    error_ = stored != nullptr ? stored->error() : Error{};
    return End::failed;
  }
  spin_pause();
  return End::again;
}
inline void Claimer::drop_holds(std::uint64_t word) noexcept {
  const std::uint64_t dropped = HoldState::let_go(word, HoldPhase::free);
  for (const ReadyRecord& one : ready_.records()) {
    // [hold] seq_cst: stored before the slot is read.
    (void)exchange<Edge::hold>(hold_at(place_.group, one.ref).state, dropped);
    if (place_.by_key) keys_.drop(one.record.key);
  }
  bool announces = false;
  for (const ReadyRecord& one : parked_) {
    (void)exchange<Edge::hold>(hold_at(place_.group, one.ref).state, dropped);
    if (one.record.key == 0) continue;
    // The hold may have blocked a member that tried to retake returned records of this slot.
    const std::uint64_t slot = load_seq_cst<Edge::key_slot>(place_.group.key_slot(one.record.key));
    announces = announces || KeySlot::unpack(slot).marked;
  }
  if (announces) announce_returned(place_.topic, place_.group);
  ready_.begin();
  parked_.clear();
}

// ---- Waiting ------------------------------------------------------------------------------------

inline bool Claimer::has_more() noexcept {
  return std::any_of(lanes_.begin(), lanes_.end(), [&](Lane& lane) { return has_next(lane); });
}
inline bool Claimer::has_next(Lane& lane) noexcept {
  const CursorValue cursor = place_.group.load_cursor(lane.partition());
  const bool has = !pins_.pin(lane.partition(), cursor) || lane.walker.is_ready_at(cursor);
  pins_.unpin(lane.partition());
  return has;
}

inline Result<std::int64_t> Claimer::look_after_holes() {
  std::int64_t limit_ns = 0;
  const std::uint32_t own_slot = place_.participant.index();
  for (Lane& lane : lanes_) {
    const std::uint32_t partition = lane.partition();
    if (StoredWalk* const stored = lane.walker.stored()) {
      if (stored->has_hole()) limit_ns = kLookAgain;
      if (auto looked = stored->look_after_hole(); !looked) return looked.error();
      continue;
    }
    const CursorValue cursor = place_.group.load_cursor(partition);
    // In this order: first what is claimed, then once more what is visible, as in
    // PartitionReader::look_after_hole(). If the walker is not at the cursor, there is no hole: the
    // segment is not mapped yet, or the cursor has moved.
    if (has_next(lane) || !lane.walker.has_hole() || has_next(lane) || !lane.walker.is_at(cursor)) {
      lane.hole.clear();
      continue;
    }
    Repair repair{place_.topic, partition, own_slot};
    Result<void> looked;
    if (repair.pin(lane.walker.segment())) {
      looked = lane.hole.look(place_.topic, partition, own_slot, lane.walker.hole());
      repair.unpin();
    }
    // Corrupt, unless the cursor has moved or the group was deleted, as in claim_of().
    if (!looked && place_.group.load_cursor(partition) == cursor && !place_.group.is_closed())
      return looked.error();
    limit_ns = kLookAgain;
  }
  return limit_ns;
}

}  // namespace leat::inline v0::detail
