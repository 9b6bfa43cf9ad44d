// Keeps the records of a key with one member at a time, and in order, in a group that goes by key.
//
//     keys.gain(taken, parked);  // moves records whose keys others have to `parked`
//     keys.drop(key);              // a record with this key is no longer this member's
//
// Counts this member's records for each key slot (key_slots.hpp), and releases the slot with the
// last one. docs/internals/groups.md, "By key", has the proof.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "leat/format/wire.hpp"
#include "leat/group/dead_members.hpp"
#include "leat/group/fixed_map.hpp"
#include "leat/group/member_place.hpp"
#include "leat/log/partitioner.hpp"

namespace leat::inline v0::detail {

class KeyOrder {
 public:
  explicit KeyOrder(const MemberPlace& place) noexcept : place_{place} {}

  // Allocates all memory, for `entries` records of this member. Throws bad_alloc.
  void reserve(std::size_t entries);

  // Hash of the record's key; 0 if it has none. The caller has pinned or holds the record's memory.
  std::uint64_t hash(const ScannedRecord& scanned) const noexcept;
  // Gains the keys of the taken records. Moves records whose keys this member may not have now
  // from `taken` to `parked`. The entries were stored before.
  void gain(FixedList<ReadyRecord>& taken, FixedList<ReadyRecord>& parked) noexcept;
  void drop(std::uint64_t key) noexcept;

  // Whether a returned record's slot is free or this member's, so that retaking it may succeed.
  bool may_take(const ReturnedRecord& one) noexcept;

  // To retake returned records: take_slots() for those found; then for each of them, in order,
  // left(), or can_take() and, if that is true, taken() or missed(); then settle_slots().
  void take_slots(std::span<const ReturnedRecord> found) noexcept;
  bool can_take(const ReturnedRecord& one) noexcept;
  void taken(const ReturnedRecord& one) noexcept;
  void missed(const ReturnedRecord& one) noexcept;  // Another member took it first.
  void left(const ReturnedRecord& one) noexcept;    // It stays returned.
  // False if another member freed one of the slots meanwhile, because it found no records of this
  // member in it. The caller must then return all that it took.
  bool settle_slots() noexcept;

  // Whether other members own slots that returned records wait for. A member whose last record of a
  // slot was taken away may never release the slot.
  bool others_have_slots() const noexcept { return others_have_slots_; }
  void suspect_others() noexcept { others_have_slots_ = true; }
  // Frees slots whose owners have no records left in them; at most every 4 ms. True if the slot of
  // a returned record was free already, which perhaps nobody has announced.
  bool free_idle_slots(std::int64_t now) noexcept;

 private:
  // One slot, while returned records are retaken or idle slots are freed.
  struct SlotScan {
    std::uint64_t key = 0;
    std::uint64_t taken_word = 0;  // Its word after this member changed it; 0: another's.
    std::uint64_t up_to = ~0ULL;   // Records with larger offsets cannot be taken.
    std::uint32_t taken = 0;
    bool is_blocked = false;  // No record can be taken.
    bool was_own = false;     // This member had records in it before.
    bool is_all = true;       // No returned record stays behind.
  };

  SlotScan* scan_of(std::uint64_t key) noexcept {
    return key != 0 ? scans_.find(place_.group.slot_of(key)) : nullptr;
  }
  template <class Visit>
  void each_in_taken_slots(Visit&& visit) noexcept;
  bool ask_owners() noexcept;
  void forget_busy_owners() noexcept;
  void free_asked() noexcept;

  const MemberPlace& place_;
  FixedMap<std::uint32_t> own_records_;  // Number of this member's records, by slot.
  FixedMap<SlotScan> scans_;
  FixedMap<std::uint64_t> found_state_;  // States of the records found, by entry.
  std::uint64_t in_the_way_ = 0;         // Sum of print() of others' records in the slots taken.
  bool others_have_slots_ = false;       // See others_have_slots().
  std::int64_t freed_idle_ns_ = 0;       // When free_idle_slots() last checked.
};

inline void KeyOrder::reserve(std::size_t entries) {
  own_records_.reserve(entries);
  scans_.reserve(kAtOnce);
  found_state_.reserve(kAtOnce);
}

inline std::uint64_t KeyOrder::hash(const ScannedRecord& scanned) const noexcept {
  if (place_.topic.durable() != nullptr) return scanned.key;
  Record record;
  const Bytes payload{scanned.payload, scanned.detail & kDetailLength};
  if (!read_payload(scanned.detail, payload, record) || !record.has_key) return 0;
  const std::uint64_t key = key_hash(record);
  __builtin_prefetch(&place_.group.key_slot(key), 1);  // gain() needs it soon.
  return key;
}

inline void KeyOrder::gain(FixedList<ReadyRecord>& taken, FixedList<ReadyRecord>& parked) noexcept {
  std::size_t kept = 0;
  for (const ReadyRecord& one : taken) {
    const std::uint64_t key = one.record.key;
    if (key != 0 && !gain_key(place_.group, key, place_.seat)) {
      // Not handed out by this take: if this member dies, the record must not count as delivered.
      InFlightState state = InFlightState::unpack(one.state);
      state.phase = InFlightPhase::ready;
      state.deliveries = 0;
      parked.push_back({one.record, one.ref, state.pack()});
      // [in-flight] release: as in RecordTaker::write_entry().
      store_release<Edge::in_flight>(entry_at(place_.group, one.ref).state, state.pack());
      continue;
    }
    if (key != 0) ++*own_records_.insert(place_.group.slot_of(key));
    taken[kept++] = one;
  }
  taken.resize(kept);
}

inline void KeyOrder::drop(std::uint64_t key) noexcept {
  if (key == 0) return;
  const std::uint64_t slot = place_.group.slot_of(key);
  std::uint32_t* const count = own_records_.find(slot);
  if (count == nullptr || --*count != 0) return;
  own_records_.erase(slot);
  if (release_key(place_.group, key, place_.seat)) announce_returned(place_.topic, place_.group);
}

inline bool KeyOrder::may_take(const ReturnedRecord& one) noexcept {
  if (one.key == 0) return true;
  // [key-slot] acquire: what is read next is at least as new.
  const auto slot = KeySlot::unpack(load_acquire<Edge::key_slot>(place_.group.key_slot(one.key)));
  if (slot.owner == 0 || slot.owner == place_.owner()) return true;
  others_have_slots_ = true;
  return false;
}

// Takes the slots of the records found, and finds out which records of each slot may be taken.
inline void KeyOrder::take_slots(std::span<const ReturnedRecord> found) noexcept {
  scans_.clear();
  found_state_.clear();
  in_the_way_ = 0;
  for (const ReturnedRecord& one : found) {
    if (one.key == 0) continue;
    *found_state_.insert(one.ref.word()) = one.state;
    if (scan_of(one.key) != nullptr) continue;
    const std::uint64_t slot = place_.group.slot_of(one.key);
    SlotScan& scan = *scans_.insert(slot);
    scan.key = one.key;
    scan.taken_word = take_slot(place_.group, one.key, place_.seat, scan.was_own);
    scan.was_own = scan.was_own && own_records_.find(slot) != nullptr;
    scan.is_blocked = scan.taken_word == 0;
  }
  LEAT_CRASH_POINT("retake:slots");
  // All records that were taken before these have their entries by now. Records that others still
  // have come first, and so do earlier ones that were returned.
  each_in_taken_slots([&](SlotScan& scan, const ReturnedRecord& one) {
    const bool is_returned = phase_of(one.state) == InFlightPhase::returned;
    // Compared by state: the entry may hold another record by now, which was also returned.
    const std::uint64_t* const state = found_state_.find(one.ref.word());
    if (is_returned && state != nullptr && *state == one.state) return;
    scan.is_all = false;
    if (is_returned) {
      scan.up_to = std::min(scan.up_to, one.offset);
      return;
    }
    scan.is_blocked = true;
    in_the_way_ += one.print();
  });
}

// Calls visit(scan, record) for every entry in the slots taken, except those that this member owns.
// [in-flight] seq_cst: the states are read after the slots were changed.
template <class Visit>
void KeyOrder::each_in_taken_slots(Visit&& visit) noexcept {
  place_.group.each_entry(
      [&](std::uint32_t row, std::uint32_t index, const InFlightEntry& entry, std::uint64_t word) {
        const std::uint64_t key = load_relaxed<Why::stored_before>(entry.key);
        SlotScan* const scan = scan_of(key);
        if (scan == nullptr || scan->taken_word == 0) return;
        if (phase_of(word) != InFlightPhase::returned && owner_of(word) == place_.owner()) return;
        visit(*scan, {load_relaxed<Why::stored_before>(entry.offset), key, word, {row, index}});
      });
}

inline bool KeyOrder::can_take(const ReturnedRecord& one) noexcept {
  if (one.key == 0) return true;
  const SlotScan* const scan = scan_of(one.key);
  return scan != nullptr && !scan->is_blocked && one.offset <= scan->up_to;
}
inline void KeyOrder::taken(const ReturnedRecord& one) noexcept {
  SlotScan* const scan = scan_of(one.key);
  if (scan == nullptr) return;
  ++scan->taken;
  ++*own_records_.insert(place_.group.slot_of(one.key));
}
inline void KeyOrder::missed(const ReturnedRecord& one) noexcept {
  if (SlotScan* const scan = scan_of(one.key); scan != nullptr) scan->is_blocked = true;
}
inline void KeyOrder::left(const ReturnedRecord& one) noexcept {
  if (SlotScan* const scan = scan_of(one.key); scan != nullptr) scan->is_all = false;
}

inline bool KeyOrder::settle_slots() noexcept {
  LEAT_CRASH_POINT("retake:settling");
  bool kept_all = true;
  scans_.each([&](std::uint64_t slot, SlotScan& scan) {
    if (scan.taken_word == 0) return;
    if (scan.taken == 0) {
      if (!scan.was_own) (void)release_key(place_.group, slot, place_.seat);
      return;
    }
    const bool is_all = scan.is_all && !scan.is_blocked;
    if (!confirm_slot(place_.group, slot, place_.seat, scan.taken_word, is_all)) kept_all = false;
  });
  if (in_the_way_ == 0) return kept_all;
  // If the records in the way have changed, perhaps nobody has announced it: a member that returned
  // one meanwhile found the slot in use.
  std::uint64_t in_the_way = 0;
  each_in_taken_slots([&](const SlotScan&, const ReturnedRecord& one) {
    if (phase_of(one.state) != InFlightPhase::returned) in_the_way += one.print();
  });
  if (in_the_way != in_the_way_) announce_returned(place_.topic, place_.group);
  return kept_all;
}

// First sets `asked` in the slots, then reads the owners' entries. An owner that gains another record
// of the slot stores the entry first, then clears `asked`.
inline bool KeyOrder::free_idle_slots(std::int64_t now) noexcept {
  if (!others_have_slots_ || now - freed_idle_ns_ < kOthersDie) return false;
  freed_idle_ns_ = now;
  others_have_slots_ = false;
  const bool is_any_free = ask_owners();
  if (scans_.size() == 0) return is_any_free;
  LEAT_CRASH_POINT("keys:asked");
  forget_busy_owners();
  free_asked();
  return is_any_free;
}

// Sets `asked` in each slot that has a returned record and belongs to another member. True if some
// slot with a returned record has no owner: the member that freed it may have died or stopped
// before it announced that.
inline bool KeyOrder::ask_owners() noexcept {
  bool is_any_free = false;
  scans_.clear();
  place_.group.each_entry(
      [&](std::uint32_t, std::uint32_t, const InFlightEntry& entry, std::uint64_t word) {
        const std::uint64_t key = load_relaxed<Why::stored_before>(entry.key);
        if (key == 0 || phase_of(word) != InFlightPhase::returned || scan_of(key) != nullptr)
          return;
        const auto seen = KeySlot::unpack(load_acquire<Edge::key_slot>(place_.group.key_slot(key)));
        if (seen.owner == 0) is_any_free = true;
        if (seen.owner == 0 || seen.owner == place_.owner()) return;
        SlotScan* const scan = scans_.insert(place_.group.slot_of(key));
        if (scan == nullptr) return;  // No room: left to a later call.
        scan->key = key;
        change_slot(place_.group.key_slot(key), [&](KeySlot& now) {
          if (now.owner != seen.owner) return false;
          now.asked = true;
          KeySlot next = now;
          ++next.version;
          scan->taken_word = next.pack();
          return true;
        });
      });
  return is_any_free;
}

inline void KeyOrder::forget_busy_owners() noexcept {
  place_.group.each_entry(
      [&](std::uint32_t, std::uint32_t, const InFlightEntry& entry, std::uint64_t word) {
        SlotScan* const scan = scan_of(load_relaxed<Why::stored_before>(entry.key));
        if (scan != nullptr && owner_of(word) == KeySlot::unpack(scan->taken_word).owner &&
            phase_of(word) != InFlightPhase::returned)
          scan->taken_word = 0;
      });
}

inline void KeyOrder::free_asked() noexcept {
  bool any = false;
  scans_.each([&](std::uint64_t slot, SlotScan& scan) {
    if (scan.taken_word == 0) return;
    KeySlot free = KeySlot::unpack(scan.taken_word);
    free.owner = 0;
    free.asked = false;
    ++free.version;
    std::uint64_t word = scan.taken_word;
    // Fails if the slot was changed meanwhile: then its owner is asked again.
    if (compare_exchange<Edge::key_slot>(place_.group.key_slot(slot), word, free.pack())) {
      any = true;
    } else {
      others_have_slots_ = true;
    }
    LEAT_CRASH_POINT("keys:freed");
  });
  if (any) announce_returned(place_.topic, place_.group);
}

}  // namespace leat::inline v0::detail
