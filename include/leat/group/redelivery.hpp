// Retakes returned records: those that were requeued, parked, left by a dead member, or taken
// away from a member that made no progress or whose lease ran out.
//
//     if (redelivery.take(64, members) == Found::some) …  // they are in `ready`
//
// Returned records stay in their entries, in any row, so a scan visits all entries. It is made only
// when the group's counter `returned` shows something new. docs/internals/groups.md, "Redelivery".
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "leat/group/lease.hpp"
#include "leat/group/ready_records.hpp"
#include "leat/log/durable_wait.hpp"

namespace leat::inline v0::detail {

class Redelivery {
 public:
  Redelivery(const MemberPlace& place, InFlightTable& entries, KeyOrder& keys, Lease& lease,
             ReadyRecords& ready) noexcept
      : place_{place}, entries_{entries}, keys_{keys}, lease_{lease}, ready_{ready} {}

  void reserve() { found_.reserve(kAtOnce); }  // Throws bad_alloc.

  // Retakes about `want` of the records that may be taken now. If there are some, they are in
  // `ready`.
  Found take(std::size_t want, std::size_t members) noexcept {
    // [in-flight] acquire: raised after the states of the returned records were stored.
    const std::uint64_t returned = load_acquire<Edge::in_flight>(place_.group.header().returned);
    if (!must_scan_ && returned == seen_returned_ &&
        (next_visible_ns_ == 0 || now_ns() < next_visible_ns_)) [[likely]]
      return Found::none;
    return scan(returned, want, members);
  }

  // Whether a scan may find something.
  bool is_due() const noexcept {
    return must_scan_ ||
           load_acquire<Edge::in_flight>(place_.group.header().returned) != seen_returned_ ||
           (next_visible_ns_ != 0 && now_ns() >= next_visible_ns_);
  }
  // Makes the next take() scan, even if nobody has announced a returned record.
  void make_due() noexcept { must_scan_ = true; }
  // When the next delayed record becomes visible; 0: none is known.
  std::int64_t next_visible_ns() const noexcept { return next_visible_ns_; }

  // By key: number of returned records in the last scan, plus those parked since.
  std::size_t waiting() const noexcept { return waiting_; }
  void note_parked(std::size_t count) noexcept { waiting_ += count; }

 private:
  static constexpr int kManyScans = 1000;

  Found scan(std::uint64_t returned, std::size_t want, std::size_t members) noexcept;
  void find_and_take(std::size_t want, std::size_t room, std::size_t members) noexcept;
  std::int64_t find(const std::optional<ReturnedRecord>& after) noexcept;
  void note_found(const ReturnedRecord& one) noexcept;
  void take_found(std::size_t count) noexcept;
  bool take_one(const ReturnedRecord& one) noexcept;

  const MemberPlace& place_;
  InFlightTable& entries_;
  KeyOrder& keys_;
  Lease& lease_;
  ReadyRecords& ready_;
  std::vector<ReturnedRecord> found_;  // Those with the lowest offsets that may be taken.
  std::size_t found_count_ = 0;        // How many there are; found_ has room for kAtOnce.
  std::uint64_t seen_returned_ = 0;    // `returned` before the last scan that took nothing.
  bool must_scan_ = true;              // There was none yet, or make_due() was called since.
  std::int64_t next_visible_ns_ = 0;
  std::size_t waiting_ = 0;
};

// `returned` is the group's counter, read before the scan.
[[gnu::noinline]] inline Found Redelivery::scan(std::uint64_t returned, std::size_t want,
                                                std::size_t members) noexcept {
  const std::size_t room = entries_.room();
  want = std::min(want, room);
  if (want == 0) return Found::none;
  ready_.begin();
  // Before anything is taken: others must settle this member if it dies with records or slots.
  entries_.raise_in_flight(1);
  entries_.show_step();
  find_and_take(want, room, std::max<std::size_t>(members, 1));
  entries_.lower_in_flight(1);
  if (ready_.empty()) {
    seen_returned_ = returned;
    must_scan_ = false;
    // Others return records faster than they can be tried here: scan again soon.
    if (!found_.empty()) next_visible_ns_ = now_ns() + kOthersDie;
    return Found::none;
  }
  // If the group is deleted, nothing keeps the memory of returned records.
  if (place_.group.is_closed()) [[unlikely]] {
    ready_.begin();
    return Found::closed;
  }
  return Found::some;
}

inline void Redelivery::find_and_take(std::size_t want, std::size_t room,
                                      std::size_t members) noexcept {
  std::int64_t next_visible = 0;
  std::optional<ReturnedRecord> after;  // No record up to this one can be taken.
  for (int attempt = 0; attempt < kManyScans; ++attempt) {
    const std::int64_t visible = find(after);
    if (next_visible == 0) next_visible = visible;
    if (found_.empty()) break;
    // A scan costs the same however many records it finds. Of many, some are taken for later calls.
    const std::size_t ahead = std::min(found_count_ / (4 * members), room);
    const std::size_t share = (found_count_ + members - 1) / members;
    const std::size_t count = std::min({found_.size(), std::max(want, ahead), share});
    // Nearly always the first ones can be taken. If not, all are tried.
    const std::size_t tried = attempt == 0 ? count : found_.size();
    std::partial_sort(found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(tried),
                      found_.end());
    found_.resize(tried);
    take_found(count);
    if (!ready_.empty()) return;
    after = found_.back();
  }
  next_visible_ns_ = next_visible;
}

// Fills found_ with the records after `after` that may be taken, those with the lowest offsets.
// Returns when the next delayed record becomes visible; 0 if there is none.
inline std::int64_t Redelivery::find(const std::optional<ReturnedRecord>& after) noexcept {
  std::int64_t next_visible = 0;
  bool waits = false;  // At most once: a record must wait for the archiver.
  const std::int64_t now = now_ns();
  found_.clear();
  waiting_ = found_count_ = 0;
  place_.group.each_entry(
      [&](std::uint32_t row, std::uint32_t index, const InFlightEntry& entry, std::uint64_t word) {
        if (phase_of(word) != InFlightPhase::returned || entries_.is_unused({row, index})) return;
        if (place_.by_key) ++waiting_;
        // relaxed, all: stored before the state.
        if (InFlightState::unpack(word).delayed) {
          const std::int64_t visible_at = load_relaxed<Why::stored_before>(entry.visible_at_ns);
          if (visible_at > now) {
            if (next_visible == 0 || visible_at < next_visible) next_visible = visible_at;
            return;
          }
        }
        const std::uint64_t offset = load_relaxed<Why::stored_before>(entry.offset);
        if (place_.waits_for_saves) [[unlikely]] {
          const std::uint64_t where = load_relaxed<Why::stored_before>(entry.where);
          if (!place_.may_hand_out(InFlightPlace::unpack(where).partition, offset)) {
            waits = true;
            return;
          }
        }
        const std::uint64_t key = place_.by_key ? load_relaxed<Why::stored_before>(entry.key) : 0;
        const ReturnedRecord one{offset, key, word, {row, index}};
        if (after && !(*after < one)) return;
        if (keys_.may_take(one)) note_found(one);
      });
  if (waits) [[unlikely]] {
    announce_group_moved(place_.topic, GroupNews::urgent);
    const std::int64_t again = now + kOthersDie;
    next_visible = next_visible == 0 ? again : std::min(next_visible, again);
  }
  return next_visible;
}

// Adds to found_, a heap with the highest offset on top, which is replaced when there is no room.
inline void Redelivery::note_found(const ReturnedRecord& one) noexcept {
  ++found_count_;
  if (found_.size() == kAtOnce) {
    if (!(one < found_.front())) return;
    std::pop_heap(found_.begin(), found_.end());
    found_.back() = one;
  } else {
    found_.push_back(one);
  }
  std::push_heap(found_.begin(), found_.end());
  LEAT_CRASH_POINT("retake:found");
}

// Takes the first `count` records of found_ that can be taken.
inline void Redelivery::take_found(std::size_t count) noexcept {
  if (place_.by_key) keys_.take_slots(found_);
  for (const ReturnedRecord& one : found_) {
    if (ready_.size() == count) {
      keys_.left(one);
    } else if (take_one(one)) {
      LEAT_CRASH_POINT("retake:taken");
    }
  }
  if (!place_.by_key || keys_.settle_slots()) return;
  ready_.requeue();
  ready_.begin();
}

// False if the record must not be taken now, or another member took it first.
inline bool Redelivery::take_one(const ReturnedRecord& one) noexcept {
  if (!keys_.can_take(one)) return false;
  InFlightEntry& entry = entry_at(place_.group, one.ref);
  InFlightState state = InFlightState::unpack(one.state);
  state.phase = InFlightPhase::ready;
  state.owner = place_.owner();
  state.delayed = false;
  state.retaken = true;
  ++state.generation;
  std::uint64_t word = one.state;
  if (!compare_exchange<Edge::in_flight>(entry.state, word, state.pack())) {
    keys_.missed(one);
    return false;
  }
  entries_.raise_in_flight(1);
  keys_.taken(one);
  // This member may have lost the same entry when a lease ran out, and not noticed yet.
  if (const OwnRecord* old = entries_.find(one.ref); old != nullptr) {
    lease_.note_lost(one.ref, old->state);
    entries_.forget(one.ref, InFlightPhase::returned);
  }
  entries_.keep(one.ref, {state.pack(), 0, one.key});
  ScannedRecord record;
  record.key = one.key;
  ready_.records().push_back({record, one.ref, state.pack()});
  return true;
}

}  // namespace leat::inline v0::detail
