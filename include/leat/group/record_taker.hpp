// Takes new records for a member.
//
//     if (taker.take(64, InFlightPhase::ready) == Found::some) …  // they are in `ready`
//
// A take scans the records from the group's cursor on, stores an entry for each, and swaps the
// cursor to the end of the scan. If the swap fails, all of it is undone.
// docs/internals/groups.md, "Taking", has the proof.
#pragma once

#include <algorithm>
#include <vector>

#include "leat/group/redelivery.hpp"
#include "leat/log/durable_wait.hpp"
#include "leat/log/hole_watch.hpp"
#include "leat/log/repair.hpp"

namespace leat::inline v0::detail {

class RecordTaker {
 public:
  RecordTaker(const MemberPlace& place, SegmentPins& pins, InFlightTable& entries, KeyOrder& keys,
              Lease& lease, ReadyRecords& ready, Redelivery& redelivery) noexcept
      : place_{place},
        pins_{pins},
        entries_{entries},
        keys_{keys},
        lease_{lease},
        ready_{ready},
        redelivery_{redelivery} {}

  void reserve();  // Throws bad_alloc.

  // Takes up to `want` records of one partition, the next one that has some. `phase` is the
  // initial phase of their entries. If there are some, they are in `ready`.
  Found take(std::size_t want, InFlightPhase phase) noexcept;
  // Ends a pause in taking. Called when returned records were retaken.
  void resume() noexcept;

  // Whether there is a record to take, a gap to pass, or a next segment to enter.
  bool has_more() noexcept;
  bool is_pausing() const noexcept { return take_again_ns_ != 0 && now_ns() < take_again_ns_; }
  // When the pause ends; 0 if there is none, or if it is over and there is nothing to take.
  std::int64_t pause_ends_ns(std::int64_t now) noexcept {
    return take_again_ns_ > now || (take_again_ns_ != 0 && has_more()) ? take_again_ns_ : 0;
  }
  // Repairs holes that dead publishers left at the cursors. Returns how long a sleep may last, in
  // ns; 0: no limit.
  Result<std::int64_t> repair_holes();

  // See Member::read_memory_only().
  void read_memory_only(bool is_on) noexcept {
    for (Lane& lane : lanes_) {
      if (StoredScanner* const stored = lane.scanner.stored()) stored->read_memory_only(is_on);
    }
  }
  bool next_is_on_disk() const noexcept {
    return std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) {
      const StoredScanner* const stored = lane.scanner.stored();
      return stored != nullptr && stored->next_is_on_disk();
    });
  }

  // Number of members of the group, as last counted.
  std::size_t members() const noexcept { return members_; }
  // Whether `position` is in a segment before the one being taken from, which publishers may be
  // able to reuse once the records there are settled.
  bool is_behind(std::uint32_t partition, std::uint64_t position) const noexcept {
    return partition < lanes_.size() && position < lanes_[partition].scanner.segment_position();
  }
  // Durable topics: the gaps that this member's takes have passed. The caller empties it.
  FixedList<Event>& events() noexcept { return events_; }
  // Durable topics: why the last take failed; ok if what it read was invalid.
  Error error() const noexcept { return error_; }

 private:
  static constexpr std::size_t kMaxParkRun = 1024;
  static constexpr std::size_t kEnoughWaiting = 256;

  // The state for one partition.
  struct Lane {
    Lane(MappedTopic& topic, std::uint32_t partition, const std::byte* records) noexcept
        : scanner{topic, partition, records} {}
    std::uint32_t partition() const noexcept { return scanner.partition(); }
    RecordScanner scanner;
    HoleWatch hole;
  };
  // One attempt to take.
  struct Attempt {
    CursorValue from;                 // The cursor where the scan begins.
    TakeName name;                    // The take's number and partition.
    std::uint64_t state = 0;          // Initial state of its entries.
    Scan scan = Scan::nothing;        // How the scan ended.
    std::uint64_t first_segment = 0;  // Segment where the scan began.
    std::size_t share = 0;            // Maximum number of records.
    InFlightTable::Reservation entries = {};
    std::size_t events = 0;  // Number of events before the scan.
    bool has_moved = false;  // The scan passed a gap or the end of a segment.
    bool is_late = false;    // By key: another member moved the cursor first.
  };
  enum class End : std::uint8_t { some, none, again, failed };

  Found take_from(Lane& lane, std::size_t want, InFlightPhase phase) noexcept;
  void name_take(Attempt& take, std::uint32_t partition, InFlightPhase phase) noexcept;
  void enter_records(Attempt& take, Lane& lane, std::size_t want) noexcept;
  bool note_gap(const RecordScanner& scanner) noexcept;
  bool has_room_for_events() const noexcept { return events_.size() < kAtOnce; }
  void write_entry(InFlightRef ref, ScannedRecord& record, std::uint64_t state) noexcept;
  void gain_keys(Attempt& take, std::uint32_t partition) noexcept;
  bool swap_cursor(const Attempt& take, const RecordScanner& scanner) noexcept;
  End keep_taken(const Attempt& take, const RecordScanner& scanner) noexcept;
  void keep_entries(const Attempt& take) noexcept;
  void park() noexcept;
  End drop_taken(const Attempt& take, std::uint32_t partition) noexcept;
  void drop_entries(std::uint64_t state) noexcept;
  std::size_t fair_share(const Lane& lane, std::size_t want) noexcept;
  bool must_pause() noexcept;
  void pause() noexcept { take_again_ns_ = now_ns() + kOthersDie; }
  bool has_next(Lane& lane) noexcept;

  const MemberPlace& place_;
  SegmentPins& pins_;
  InFlightTable& entries_;
  KeyOrder& keys_;
  Lease& lease_;
  ReadyRecords& ready_;
  Redelivery& redelivery_;
  std::vector<Lane> lanes_;
  std::size_t next_lane_ = 0;
  FixedList<ReadyRecord> parked_;  // Parked by the current take.
  FixedList<Event> events_;
  Error error_;
  std::size_t may_park_ = kAhead;   // Records to park before the next pause.
  std::size_t park_run_ = kAhead;   // Records to park between two pauses.
  std::int64_t take_again_ns_ = 0;  // No takes before this time; 0: no pause.
  bool has_gained_ = false;         // Whether the last take gained a record.
  std::uint32_t members_ = 1;
  std::uint32_t takes_until_count_ = 0;
};

inline void RecordTaker::reserve() {
  for (std::uint32_t i = 0; i < place_.geometry().partition_count; ++i) {
    lanes_.emplace_back(place_.topic, i, place_.records);
    if (place_.topic.durable() == nullptr) continue;
    lanes_.back().scanner.read_stored(std::make_unique<StoredScanner>(
        place_.stored_place(i), place_.geometry(), place_.group.cursor(i).limit));
  }
  parked_.reserve(kAtOnce);
  events_.reserve(kAtOnce);
}

// ---- Which partition, and when ------------------------------------------------------------------

inline Found RecordTaker::take(std::size_t want, InFlightPhase phase) noexcept {
  if (entries_.free_own() < want) entries_.find_settled();
  if (must_pause()) [[unlikely]]
    return Found::none;
  for (std::size_t turn = 0; turn < lanes_.size(); ++turn) {
    Lane& lane = lanes_[next_lane_];
    if (++next_lane_ == lanes_.size()) next_lane_ = 0;
    const Found found = take_from(lane, want, phase);
    has_gained_ = found == Found::some;
    if (has_gained_) park_run_ = may_park_ = kAhead;
    if (found != Found::none || take_again_ns_ != 0) return found;
  }
  return Found::none;
}

inline bool RecordTaker::must_pause() noexcept {
  // By key: many records are waiting and the last take gained none. More would be parked, too.
  if (take_again_ns_ == 0 && redelivery_.waiting() >= kEnoughWaiting && !has_gained_) [[unlikely]]
    pause();
  if (take_again_ns_ == 0) return false;
  if (now_ns() < take_again_ns_) return true;
  take_again_ns_ = 0;
  return false;
}

inline void RecordTaker::resume() noexcept {
  park_run_ = may_park_ = kAhead;
  // With many waiting, must_pause() would begin another pause at once, and no pause would ever end.
  if (redelivery_.waiting() < kEnoughWaiting) take_again_ns_ = 0;
}

// With other members: at most half of a member's equal share of the backlog.
[[gnu::always_inline]] inline std::size_t RecordTaker::fair_share(const Lane& lane,
                                                                  std::size_t want) noexcept {
  if (want <= 1) return want;
  if (takes_until_count_ == 0) {
    takes_until_count_ = 64;
    members_ = 0;
    for (std::uint32_t i = 0; i < place_.group.seat_high(); ++i) {
      if (load_relaxed<Why::hint>(place_.group.seat(i).identity) != 0) ++members_;
    }
  }
  --takes_until_count_;
  if (members_ <= 1) return want;
  const std::uint64_t backlog = lane.scanner.claimed_beyond();
  return std::min<std::size_t>(want, std::max<std::uint64_t>(1, backlog / (2 * members_)));
}

// ---- The steps of a take -----------------------------------------------------------------------

inline Found RecordTaker::take_from(Lane& lane, std::size_t want, InFlightPhase phase) noexcept {
  const std::uint32_t partition = lane.partition();
  ready_.begin();
  for (std::uint32_t attempt = 0; attempt < kManyMoves; ++attempt) {
    Attempt take;
    take.from = place_.group.load_cursor(partition);
    if (!pins_.pin(partition, take.from)) {
      pins_.unpin(partition);
      if (place_.group.is_closed()) return Found::closed;
      continue;  // The cursor was moved meanwhile.
    }
    take.scan = lane.scanner.go_to(take.from);
    if (take.scan == Scan::nothing || !has_room_for_events()) {
      pins_.unpin(partition);
      return Found::none;
    }
    name_take(take, partition, phase);
    enter_records(take, lane, want);
    gain_keys(take, partition);
    LEAT_CRASH_POINT("take:entered");
    const bool is_made = swap_cursor(take, lane.scanner);
    const End end = is_made ? keep_taken(take, lane.scanner) : drop_taken(take, partition);
    if (end == End::some) return Found::some;
    if (end == End::none) return Found::none;
    if (end != End::again) break;
  }
  return place_.group.is_closed() ? Found::closed : Found::corrupt;
}

// First step: picks a take number whose low bits the cursor does not show for this seat now. A
// cursor that shows them later then names this take.
[[gnu::always_inline]] inline void RecordTaker::name_take(Attempt& take, std::uint32_t partition,
                                                          InFlightPhase phase) noexcept {
  std::uint64_t number = entries_.take_number() + 1;
  if (names_take(take.from, place_.seat, {number, 0})) ++number;
  take.name = {number, partition};
  // [group-cursor] release: visible before the take's entries.
  store_release<Edge::group_cursor>(place_.own_seat().taking, take.name.pack());
  take.state = InFlightState{.phase = phase,
                             .owner = place_.owner(),
                             .deliveries = phase == InFlightPhase::delivered ? 1U : 0U,
                             .generation = number & InFlightState::kGenerationMask}
                   .pack();
}

// Second step: scans the records from the cursor on and stores an entry for each.
[[gnu::always_inline]] inline void RecordTaker::enter_records(Attempt& take, Lane& lane,
                                                              std::size_t want) noexcept {
  RecordScanner& scanner = lane.scanner;
  FixedList<ReadyRecord>& taken = ready_.records();
  take.first_segment = scanner.segment();
  take.events = events_.size();
  take.share = std::min({fair_share(lane, want), entries_.room(), kAtOnce});
  if (take.share != 0) entries_.show_in_flight(1);
  while (take.scan != Scan::corrupt && taken.size() < take.share &&
         entries_.reserve(take.entries, take.state)) {
    ReadyRecord& one = taken.spare();  // Filled in place.
    take.scan = scanner.next(one.record);
    if (take.scan == Scan::skipped) {
      take.has_moved = true;
      if (scanner.stored() != nullptr && !note_gap(scanner)) break;
      if (place_.must_pin && scanner.segment() != take.first_segment) break;
      continue;
    }
    if (take.scan != Scan::record) break;
    one.ref = entries_.use(take.entries);
    one.state = take.state;
    write_entry(one.ref, one.record, take.state);
    taken.push_spare();
  }
  entries_.release_unused(take.entries, take.state);
}

// False if there is no room for another one: the caller empties events() first.
[[gnu::noinline]] inline bool RecordTaker::note_gap(const RecordScanner& scanner) noexcept {
  const StoredScanner::Entry& gap = scanner.passed();
  events_.push_back({gap.first, gap.count, *gap.gap, scanner.partition()});
  return has_room_for_events();
}

[[gnu::always_inline]] inline void RecordTaker::write_entry(InFlightRef ref, ScannedRecord& record,
                                                            std::uint64_t state) noexcept {
  InFlightEntry& entry = entry_at(place_.group, ref);
  GroupSeat& seat = place_.own_seat();
  if (ref.row() == place_.seat && load_relaxed<Why::own>(seat.entry_high) <= ref.index())
    store_release<Edge::in_flight>(seat.entry_high, ref.index() + 1);
  // [in-flight-place] release, both: the reads of this entry's previous record are complete.
  store_release<Edge::in_flight_place>(entry.position, record.position);
  store_relaxed<Why::published_later>(entry.offset, record.offset);
  store_release<Edge::in_flight_place>(entry.where, record.where.pack());
  if (place_.by_key) {
    record.key = keys_.hash(record);
    store_relaxed<Why::published_later>(entry.key, record.key);
  }
  lease_.begin(entry);
  // [in-flight] release: after the fields above.
  store_release<Edge::in_flight>(entry.state, state);
}

// Third step, by key: moves records whose keys this member may not have now to parked_.
[[gnu::always_inline]] inline void RecordTaker::gain_keys(Attempt& take,
                                                          std::uint32_t partition) noexcept {
  if (!place_.by_key) return;
  // If the cursor has moved, this take will fail. So it gains no keys: a member that takes the
  // same records would find them taken, and park its records in vain.
  take.is_late = place_.group.load_cursor(partition) != take.from;
  if (take.is_late) {
    parked_.swap(ready_.records());  // They gained no keys.
  } else {
    keys_.gain(ready_.records(), parked_);
  }
}

// Fourth step: swaps the cursor. True if it was still where the scan began: the take is made.
[[gnu::always_inline]] inline bool RecordTaker::swap_cursor(const Attempt& take,
                                                            const RecordScanner& scanner) noexcept {
  const bool has_passed = take.has_moved || !ready_.empty() || !parked_.empty();
  if (take.is_late || take.scan == Scan::corrupt || !has_passed) return false;
  note_take(place_.group, scanner.partition(), take.from);
  LEAT_CRASH_POINT("take:noting");
  if (!place_.group.swap_cursor(scanner.partition(), take.from,
                                scanner.cursor(place_.owner(), take.name.number)))
    return false;
  LEAT_CRASH_POINT("take:moved");
  return true;
}

// Last step of a take that was made: records in ready_ become this member's, those in parked_
// become available to all members.
[[gnu::always_inline]] inline RecordTaker::End RecordTaker::keep_taken(
    const Attempt& take, const RecordScanner& scanner) noexcept {
  // If the group was deleted meanwhile, the scanned memory may have been reused. If not, the entries
  // keep it from now on.
  if (place_.group.is_closed()) [[unlikely]] {
    ready_.begin();
    parked_.clear();
    pins_.unpin(scanner.partition());
    return End::failed;
  }
  // [group-cursor] release: after the cursor was moved.
  store_release<Edge::group_cursor>(place_.own_seat().noted, take.name.pack());
  LEAT_CRASH_POINT("take:noted");
  entries_.raise_take_number(take.name.number);
  const bool any = !ready_.empty() || !parked_.empty();
  keep_entries(take);
  if (scanner.segment() != take.first_segment) MappedTopic::wake(place_.topic.header().space_wake);
  if (scanner.stored() != nullptr) announce_group_moved(place_.topic, GroupNews::moved);
  pins_.unpin(scanner.partition());
  if (!ready_.empty()) return End::some;
  if (take_again_ns_ != 0) return End::none;
  // Only gaps, or records with keys that others have: try again.
  return take.has_moved || any ? End::again : End::none;
}
[[gnu::always_inline]] inline void RecordTaker::keep_entries(const Attempt& take) noexcept {
  entries_.commit(take.entries);
  entries_.raise_in_flight(ready_.size() + parked_.size());
  for (const ReadyRecord& one : ready_.records()) {
    entries_.keep(one.ref, {one.state, 0, place_.by_key ? one.record.key : 0});
  }
  if (!parked_.empty()) park();
}

// Returns the records of this take whose keys it could not gain.
[[gnu::noinline]] inline void RecordTaker::park() noexcept {
  bool announces = false;
  for (const ReadyRecord& one : parked_) {
    InFlightEntry& entry = entry_at(place_.group, one.ref);
    std::uint64_t word = one.state;
    // [in-flight] seq_cst. Fails if another member has taken the record away, and thereby returned it.
    compare_exchange<Edge::in_flight>(entry.state, word,
                                      InFlightState::let_go(one.state, InFlightPhase::returned));
    LEAT_CRASH_POINT("park:returned");
    entries_.park(one.ref);
    // [key-slot] seq_cst: read after the state is stored. An owner that releases the slot later
    // sees its mark.
    const auto slot =
        KeySlot::unpack(load_seq_cst<Edge::key_slot>(place_.group.key_slot(one.record.key)));
    announces = announces || slot.owner == 0 || slot.owner == place_.owner();
  }
  if (announces) announce_returned(place_.topic, place_.group);
  redelivery_.note_parked(parked_.size());
  entries_.lower_in_flight(parked_.size());
  // Pauses after a run of parked records, because taking more helps little while others have the
  // keys. Each run is longer than the last, so that the takes get past these records in the end.
  may_park_ -= std::min(may_park_, parked_.size());
  if (may_park_ == 0) {
    park_run_ = std::min(2 * park_run_, kMaxParkRun);
    may_park_ = park_run_;
    if (ready_.empty()) pause();
  }
  parked_.clear();
}

// Last step of a take that was not made, and will not be: undoes it.
inline RecordTaker::End RecordTaker::drop_taken(const Attempt& take,
                                                std::uint32_t partition) noexcept {
  const bool any = !ready_.empty() || !parked_.empty();
  const StoredScanner* const stored = lanes_[partition].scanner.stored();
  if (any) drop_entries(take.state);
  events_.resize(take.events);
  pins_.unpin(partition);
  entries_.show_in_flight();
  if (take.scan != Scan::corrupt && !any && !take.has_moved) {
    if (stored != nullptr && stored->is_at_limit())
      announce_group_moved(place_.topic, GroupNews::urgent);
    // Spare entries may be usable with a larger take number: try again.
    if (entries_.take_number() >= take.name.number) return End::again;
    if (take.share != 0 && entries_.was_short(take.entries)) pause();
    return End::none;
  }
  // Corrupt, unless the cursor has moved: then the scanned memory may have been overwritten.
  if (take.scan == Scan::corrupt && place_.group.load_cursor(partition) == take.from) {
    error_ = stored != nullptr ? stored->error() : Error{};
    return End::failed;
  }
  spin_pause();
  return End::again;
}
inline void RecordTaker::drop_entries(std::uint64_t word) noexcept {
  const std::uint64_t dropped = InFlightState::let_go(word, InFlightPhase::free);
  for (const ReadyRecord& one : ready_.records()) {
    // [in-flight] seq_cst: stored before the slot is read.
    (void)exchange<Edge::in_flight>(entry_at(place_.group, one.ref).state, dropped);
    if (place_.by_key) keys_.drop(one.record.key);
  }
  bool announces = false;
  for (const ReadyRecord& one : parked_) {
    (void)exchange<Edge::in_flight>(entry_at(place_.group, one.ref).state, dropped);
    if (one.record.key == 0) continue;
    // The entry may have blocked a member that tried to retake returned records of this slot.
    const std::uint64_t slot = load_seq_cst<Edge::key_slot>(place_.group.key_slot(one.record.key));
    announces = announces || KeySlot::unpack(slot).marked;
  }
  if (announces) announce_returned(place_.topic, place_.group);
  ready_.begin();
  parked_.clear();
}

// ---- Waiting ------------------------------------------------------------------------------------

inline bool RecordTaker::has_more() noexcept {
  return std::any_of(lanes_.begin(), lanes_.end(), [&](Lane& lane) { return has_next(lane); });
}
inline bool RecordTaker::has_next(Lane& lane) noexcept {
  const CursorValue cursor = place_.group.load_cursor(lane.partition());
  const bool has = !pins_.pin(lane.partition(), cursor) || lane.scanner.is_ready_at(cursor);
  pins_.unpin(lane.partition());
  return has;
}

inline Result<std::int64_t> RecordTaker::repair_holes() {
  std::int64_t limit_ns = 0;
  const std::uint32_t own_slot = place_.participant.index();
  for (Lane& lane : lanes_) {
    const std::uint32_t partition = lane.partition();
    if (StoredScanner* const stored = lane.scanner.stored()) {
      if (stored->has_hole()) limit_ns = kCheckAgain;
      if (auto checked = stored->repair_hole(); !checked) return checked.error();
      continue;
    }
    const CursorValue cursor = place_.group.load_cursor(partition);
    // In this order: first what is claimed, then once more what is visible, as in
    // PartitionReader::repair_hole(). If the scanner is not at the cursor, there is no hole: the
    // segment is not mapped yet, or the cursor has moved.
    if (has_next(lane) || !lane.scanner.has_hole() || has_next(lane) ||
        !lane.scanner.is_at(cursor)) {
      lane.hole.clear();
      continue;
    }
    Repair repair{place_.topic, partition, own_slot};
    Result<void> checked;
    if (repair.pin(lane.scanner.segment())) {
      checked = lane.hole.check(place_.topic, partition, own_slot, lane.scanner.hole());
      repair.unpin();
    }
    // Corrupt, unless the cursor has moved or the group was deleted, as in take_from().
    if (!checked && place_.group.load_cursor(partition) == cursor && !place_.group.is_closed())
      return checked.error();
    limit_ns = kCheckAgain;
  }
  return limit_ns;
}

}  // namespace leat::inline v0::detail
