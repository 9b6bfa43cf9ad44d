// Claims new records of the topic for a member.
//
//     if (claimer.claim(64, HoldPhase::ready) == Found::some) …  // they are in `ready`
//
// A claim walks from the group's cursor, stores a hold for each record, and swaps the cursor to the end
// of its walk; if the swap fails, all of it is undone. docs/internals/groups.md, "Claiming", has the
// proof.
#pragma once

#include <algorithm>
#include <vector>

#include "leat/group/redelivery.hpp"
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

  // Claims up to `want` records of one partition, the next one that has some; they are in `ready` then.
  Found claim(std::size_t want, HoldPhase phase) noexcept;
  // Something came back and was taken: so there is no reason to wait with the next claim.
  void resume() noexcept;

  // Whether there is a record to claim, or a step to the next segment.
  bool has_more() noexcept;
  bool is_pausing() const noexcept { return claim_again_ns_ != 0 && now_ns() < claim_again_ns_; }
  // When a pause ends that has something to wait for; 0: there is none.
  std::int64_t pause_ends_ns(std::int64_t now) noexcept {
    return claim_again_ns_ > now || (claim_again_ns_ != 0 && has_more()) ? claim_again_ns_ : 0;
  }
  // Repairs what a dead publisher left in the way. Returns how long a sleep may last, 0 for ever.
  Result<std::int64_t> look_after_holes();

  // Members of the group, as last counted.
  std::size_t members() const noexcept { return members_; }
  // Publishers gain nothing by reusing what lies before this position.
  bool is_behind(std::uint32_t partition, std::uint64_t position) const noexcept {
    return position < lanes_[partition].walker.segment_position();
  }

 private:
  static constexpr std::size_t kMaxParkRun = 1024;
  static constexpr std::size_t kEnoughWaiting = 256;

  // One partition.
  struct Lane {
    Lane(SharedTopic& topic, std::uint32_t partition, const std::byte* records) noexcept
        : walker{topic, partition, records} {}
    std::uint32_t partition() const noexcept { return walker.partition(); }
    Walker walker;
    HoleWatch hole;
  };
  // One attempt to claim.
  struct Attempt {
    CursorValue from;                 // Where the cursor was,
    ClaimName name;                   // and what the claim is called.
    std::uint64_t state = 0;          // Of its holds.
    Walk walk = Walk::nothing;        // How the walk ended.
    std::uint64_t first_segment = 0;  // Where it began.
    std::size_t share = 0;            // Records, at most.
    HoldTable::Reservation holds = {};
    bool has_moved = false;  // Gaps were passed, or the end of a segment.
    bool is_late = false;    // By key: another member was faster.
  };
  enum class End : std::uint8_t { some, none, again, failed };

  Found claim_of(Lane& lane, std::size_t want, HoldPhase phase) noexcept;
  void name_claim(Attempt& claim, std::uint32_t partition, HoldPhase phase) noexcept;
  void hold_records(Attempt& claim, Lane& lane, std::size_t want) noexcept;
  void write_hold(HoldRef ref, const WalkedRecord& record, std::uint64_t state) noexcept;
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
  FixedList<ReadyRecord> parked_;    // By the claim that is just made.
  std::size_t may_park_ = kAhead;    // Before a pause,
  std::size_t park_run_ = kAhead;    // of so many.
  std::int64_t claim_again_ns_ = 0;  // Nothing is claimed before; 0: at once.
  bool has_gained_ = false;          // By the last claim.
  std::uint32_t members_ = 1;
  std::uint32_t claims_until_count_ = 0;
};

inline void Claimer::reserve() {
  for (std::uint32_t i = 0; i < place_.geometry().partition_count; ++i)
    lanes_.emplace_back(place_.topic, i, place_.records);
  parked_.reserve(kAtOnce);
}

// ---- Which partition, and when -------------------------------------------------------------------

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
  // By key: enough waits for everybody; what is claimed now is parked, too.
  if (claim_again_ns_ == 0 && redelivery_.waiting() >= kEnoughWaiting && !has_gained_) [[unlikely]]
    pause();
  if (claim_again_ns_ == 0) return false;
  if (now_ns() < claim_again_ns_) return true;
  claim_again_ns_ = 0;
  return false;
}

inline void Claimer::resume() noexcept {
  park_run_ = may_park_ = kAhead;
  claim_again_ns_ = 0;
}

// If there are other members: not more than half of a member's share of what is there.
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

// ---- The steps of a claim ------------------------------------------------------------------------

inline Found Claimer::claim_of(Lane& lane, std::size_t want, HoldPhase phase) noexcept {
  const std::uint32_t partition = lane.partition();
  ready_.begin();
  for (std::uint32_t attempt = 0; attempt < kManyMoves; ++attempt) {
    Attempt claim;
    claim.from = place_.group.load_cursor(partition);
    if (!pins_.pin(partition, claim.from)) {
      pins_.unpin(partition);
      if (place_.group.is_closed()) return Found::closed;
      continue;  // Others have moved it.
    }
    claim.walk = lane.walker.go_to(claim.from);
    if (claim.walk == Walk::nothing) {
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

// First step: a number that the cursor does not show for this seat now, so that it tells this claim.
[[gnu::always_inline]] inline void Claimer::name_claim(Attempt& claim, std::uint32_t partition,
                                                       HoldPhase phase) noexcept {
  std::uint64_t number = holds_.claim_number() + 1;
  if (names_claim(claim.from, place_.seat, {number, 0})) ++number;
  claim.name = {number, partition};
  // [group-cursor] release: before the claim's holds.
  store_release<Edge::group_cursor>(place_.own_seat().claiming, claim.name.pack());
  claim.state = HoldState{.phase = phase,
                          .owner = place_.owner(),
                          .deliveries = phase == HoldPhase::held ? 1U : 0U,
                          .generation = number & HoldState::kGenerationMask}
                    .pack();
}

// Second step: walks from the cursor on, and stores a hold for each record.
[[gnu::always_inline]] inline void Claimer::hold_records(Attempt& claim, Lane& lane,
                                                         std::size_t want) noexcept {
  Walker& walker = lane.walker;
  FixedList<ReadyRecord>& claimed = ready_.records();
  claim.first_segment = walker.segment();
  claim.share = std::min({fair_share(lane, want), holds_.room(), kAtOnce});
  if (claim.share != 0) holds_.show_in_flight(1);
  while (claim.walk != Walk::corrupt && claimed.size() < claim.share &&
         holds_.reserve(claim.holds, claim.state)) {
    ReadyRecord& one = claimed.spare();  // Filled in place.
    claim.walk = walker.next(one.record);
    if (claim.walk == Walk::skipped) {
      claim.has_moved = true;
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

[[gnu::always_inline]] inline void Claimer::write_hold(HoldRef ref, const WalkedRecord& record,
                                                       std::uint64_t state) noexcept {
  GroupHold& hold = hold_at(place_.group, ref);
  GroupSeat& seat = place_.own_seat();
  if (ref.row() == place_.seat && load_relaxed<Why::own>(seat.hold_high) <= ref.index())
    store_release<Edge::hold>(seat.hold_high, ref.index() + 1);
  // [hold-place] release, two: the reads of this hold's last record are done.
  store_release<Edge::hold_place>(hold.position, record.position);
  store_relaxed<Why::published_later>(hold.offset, record.offset);
  store_release<Edge::hold_place>(hold.where, record.where.pack());
  if (place_.by_key) store_relaxed<Why::published_later>(hold.key, keys_.hash(record));
  lease_.begin(hold);
  // [hold] release
  store_release<Edge::hold>(hold.state, state);
}

// Third step, by key: parks what has somebody else's key.
[[gnu::always_inline]] inline void Claimer::gain_keys(Attempt& claim,
                                                      std::uint32_t partition) noexcept {
  if (!place_.by_key) return;
  // Who walks the same records at the same time must not find their keys taken for nothing.
  claim.is_late = place_.group.load_cursor(partition) != claim.from;
  if (claim.is_late) {
    parked_.swap(ready_.records());  // No key was gained.
  } else {
    keys_.gain(ready_.records(), parked_);
  }
}

// Fourth step: the claim is made if the cursor is still where the walk began.
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

// Last step: the claim was made. What is ready is this member's; what is parked, everybody's.
[[gnu::always_inline]] inline Claimer::End Claimer::keep_claimed(const Attempt& claim,
                                                                 const Walker& walker) noexcept {
  // Deleted meanwhile: then nothing may have kept what was walked. If not, the holds will.
  if (place_.group.is_closed()) [[unlikely]] {
    ready_.begin();
    parked_.clear();
    pins_.unpin(walker.partition());
    return End::failed;
  }
  // [group-cursor] release
  store_release<Edge::group_cursor>(place_.own_seat().noted, claim.name.pack());
  LEAT_CRASH_POINT("take:noted");
  holds_.raise_claim_number(claim.name.number);
  const bool any = !ready_.empty() || !parked_.empty();
  keep_holds(claim);
  if (walker.segment() != claim.first_segment) SharedTopic::wake(place_.topic.header().space_wake);
  pins_.unpin(walker.partition());
  if (!ready_.empty()) return End::some;
  if (claim_again_ns_ != 0) return End::none;
  // Only gaps so far, or keys that others have.
  return claim.has_moved || any ? End::again : End::none;
}
[[gnu::always_inline]] inline void Claimer::keep_holds(const Attempt& claim) noexcept {
  holds_.commit(claim.holds);
  holds_.raise_in_flight(ready_.size() + parked_.size());
  for (const ReadyRecord& one : ready_.records()) {
    const std::uint64_t key =
        place_.by_key ? load_relaxed<Why::own>(hold_at(place_.group, one.ref).key) : 0;
    holds_.keep(one.ref, {one.state, 0, key});
  }
  if (!parked_.empty()) park();
}

// Puts what was just claimed and has somebody else's key among the records that came back.
[[gnu::noinline]] inline void Claimer::park() noexcept {
  bool announces = false;
  for (const ReadyRecord& one : parked_) {
    GroupHold& hold = hold_at(place_.group, one.ref);
    const std::uint64_t key = load_relaxed<Why::own>(hold.key);
    std::uint64_t word = one.state;
    // [hold] Fails if others have taken it away with its lease: then they returned it.
    compare_exchange<Edge::hold>(hold.state, word,
                                 HoldState::let_go(one.state, HoldPhase::returned));
    LEAT_CRASH_POINT("park:returned");
    holds_.park(one.ref);
    // [key_slot] seq_cst: after the state. Whoever lets go of the slot later, sees its mark.
    const auto slot = KeySlot::unpack(load_seq_cst<Edge::key_slot>(place_.group.key_slot(key)));
    announces = announces || slot.owner == 0 || slot.owner == place_.owner();
  }
  if (announces) announce_returned(place_.topic, place_.group);
  redelivery_.note_parked(parked_.size());
  holds_.lower_in_flight(parked_.size());
  // The more of others' keys there are, the less is gained by going on; but in the end it passes them.
  may_park_ -= std::min(may_park_, parked_.size());
  if (may_park_ == 0) {
    park_run_ = std::min(2 * park_run_, kMaxParkRun);
    may_park_ = park_run_;
    if (ready_.empty()) pause();
  }
  parked_.clear();
}

// Or: it was not made, and never will be.
inline Claimer::End Claimer::drop_claimed(const Attempt& claim, std::uint32_t partition) noexcept {
  const bool any = !ready_.empty() || !parked_.empty();
  if (any) drop_holds(claim.state);
  pins_.unpin(partition);
  holds_.show_in_flight();
  if (claim.walk != Walk::corrupt && !any && !claim.has_moved) {
    // There are spare holds, for larger numbers.
    if (holds_.claim_number() >= claim.name.number) return End::again;
    if (claim.share != 0 && holds_.was_short(claim.holds)) pause();
    return End::none;
  }
  // Nonsense, unless it was overwritten meanwhile: then the cursor has moved.
  if (claim.walk == Walk::corrupt && place_.group.load_cursor(partition) == claim.from)
    return End::failed;
  spin_pause();
  return End::again;
}
inline void Claimer::drop_holds(std::uint64_t word) noexcept {
  const std::uint64_t dropped = HoldState::let_go(word, HoldPhase::free);
  for (const ReadyRecord& one : ready_.records()) {
    GroupHold& hold = hold_at(place_.group, one.ref);
    const std::uint64_t key = place_.by_key ? load_relaxed<Why::own>(hold.key) : 0;
    // [hold] seq_cst: before the slot is looked at.
    (void)exchange<Edge::hold>(hold.state, dropped);
    keys_.drop(key);
  }
  bool announces = false;
  for (const ReadyRecord& one : parked_) {
    GroupHold& hold = hold_at(place_.group, one.ref);
    const std::uint64_t key = load_relaxed<Why::own>(hold.key);
    (void)exchange<Edge::hold>(hold.state, dropped);
    if (key == 0) continue;
    // Who looked for what came back of this key found the hold in its way.
    const std::uint64_t slot = load_seq_cst<Edge::key_slot>(place_.group.key_slot(key));
    announces = announces || KeySlot::unpack(slot).marked;
  }
  if (announces) announce_returned(place_.topic, place_.group);
  ready_.begin();
  parked_.clear();
}

// ---- Waiting -------------------------------------------------------------------------------------

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
    const CursorValue cursor = place_.group.load_cursor(partition);
    // The hole first, then once more what comes: see PartitionReader::look_after_hole(). There is no
    // hole where the walker has not come to the cursor: its segment is not there yet, or the cursor has
    // moved on.
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
    // Nonsense, unless others went on, or nothing kept it: as in claim_of().
    if (!looked && place_.group.load_cursor(partition) == cursor && !place_.group.is_closed())
      return looked.error();
    limit_ns = kLookAgain;
  }
  return limit_ns;
}

}  // namespace leat::inline v0::detail
