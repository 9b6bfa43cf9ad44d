// How a member of a group that goes by key keeps equal keys together, and in order.
//
//     keys.gain(claimed, parked);  // moves what has somebody else's key to `parked`
//     keys.drop(key);              // a record with this key is not this member's any more
//
// It counts this member's records per key slot (key_slots.hpp): the slot is released with the last one.
// docs/internals/groups.md, "By key", has the proof.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "leat/format/wire.hpp"
#include "leat/group/claims.hpp"
#include "leat/group/fixed_map.hpp"
#include "leat/group/member_place.hpp"
#include "leat/log/partitioner.hpp"

namespace leat::inline v0::detail {

class KeyOrder {
 public:
  explicit KeyOrder(const MemberPlace& place) noexcept : place_{place} {}

  // Room for everything later, for so many holds. Throws bad_alloc.
  void reserve(std::size_t holds);

  // Hash of the record's key; 0: it has none. Its memory is pinned, or held.
  std::uint64_t hash(const WalkedRecord& walked) const noexcept;
  // Moves what has somebody else's key from `claimed` to `parked`. The holds are stored already.
  void gain(FixedList<ReadyRecord>& claimed, FixedList<ReadyRecord>& parked) noexcept;
  void drop(std::uint64_t key) noexcept;

  // Whether it is worth trying to take a record that came back.
  bool may_take(const ReturnedRecord& one) noexcept;

  // A look for records that came back: take_slots() of what was found; then for each record, in order,
  // can_take() and one of taken(), missed() and left(); then settle_slots().
  void take_slots(std::span<const ReturnedRecord> found) noexcept;
  bool can_take(const ReturnedRecord& one) noexcept;
  void taken(const ReturnedRecord& one) noexcept;
  void missed(const ReturnedRecord& one) noexcept;  // Somebody else was faster.
  void left(const ReturnedRecord& one) noexcept;    // It stays where it is.
  // False: a slot was freed meanwhile by somebody who thought that this member had nothing of it. All
  // that was taken must go back.
  bool settle_slots() noexcept;

  // Others may have slots and nothing left of them, because it was taken away: they may never say so.
  bool others_have_slots() const noexcept { return others_have_slots_; }
  void suspect_others() noexcept { others_have_slots_ = true; }
  // Frees such slots, at most every 4 ms. True: a record came back whose slot is free, which perhaps
  // nobody has announced.
  bool free_idle_slots(std::int64_t now) noexcept;

 private:
  // A slot of keys during a look for records that came back.
  struct SlotLook {
    std::uint64_t key = 0;
    std::uint64_t taken_word = 0;  // The slot's word when it was taken; 0: it is somebody else's.
    std::uint64_t up_to = ~0ULL;   // Nothing behind this offset can be taken,
    std::uint32_t taken = 0;
    bool is_blocked = false;  // or nothing at all.
    bool was_own = false;
    bool is_all = true;
  };

  SlotLook* look_of(std::uint64_t key) noexcept {
    return key != 0 ? looks_.find(place_.group.slot_of(key)) : nullptr;
  }
  template <class Visit>
  void each_in_taken_slots(Visit&& visit) noexcept;
  bool ask_owners() noexcept;
  void forget_busy_owners() noexcept;
  void free_asked() noexcept;

  const MemberPlace& place_;
  FixedMap<std::uint32_t> own_records_;  // How many this member has, by slot.
  FixedMap<SlotLook> looks_;
  FixedMap<std::uint64_t> found_state_;  // Of what was found, by its hold.
  std::uint64_t in_the_way_ = 0;         // Print of what others have of the slots just taken.
  bool others_have_slots_ = false;       // Something came back whose slot is somebody else's.
  std::int64_t freed_idle_ns_ = 0;       // When free_idle_slots() last looked.
};

inline void KeyOrder::reserve(std::size_t holds) {
  own_records_.reserve(holds);
  looks_.reserve(kAtOnce);
  found_state_.reserve(kAtOnce);
}

inline std::uint64_t KeyOrder::hash(const WalkedRecord& walked) const noexcept {
  Record record;
  const Bytes payload{walked.payload, walked.detail & kDetailLength};
  if (!read_payload(walked.detail, payload, record) || !record.has_key) return 0;
  const std::uint64_t key = murmur2(record.key) | 1ULL << 63;
  __builtin_prefetch(&place_.group.key_slot(key), 1);  // Used soon, with those of other records.
  return key;
}

inline void KeyOrder::gain(FixedList<ReadyRecord>& claimed,
                           FixedList<ReadyRecord>& parked) noexcept {
  std::size_t kept = 0;
  for (const ReadyRecord& one : claimed) {
    GroupHold& hold = hold_at(place_.group, one.ref);
    const std::uint64_t key = load_relaxed<Why::own>(hold.key);
    if (key != 0 && !gain_key(place_.group, key, place_.seat)) {
      // This claim hands it to nobody, whatever becomes of this member.
      HoldState state = HoldState::unpack(one.state);
      state.phase = HoldPhase::ready;
      state.deliveries = 0;
      parked.push_back({one.record, one.ref, state.pack()});
      // [hold] release: as when it was stored first.
      store_release<Edge::hold>(hold.state, state.pack());
      continue;
    }
    if (key != 0) ++*own_records_.insert(place_.group.slot_of(key));
    claimed[kept++] = one;
  }
  claimed.resize(kept);
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
  // [key_slot] acquire: what is looked at next is at least as new.
  const auto slot = KeySlot::unpack(load_acquire<Edge::key_slot>(place_.group.key_slot(one.key)));
  if (slot.owner == 0 || slot.owner == place_.owner()) return true;
  others_have_slots_ = true;
  return false;
}

// Makes the slots of what was found this member's, and finds out how far each may be taken.
inline void KeyOrder::take_slots(std::span<const ReturnedRecord> found) noexcept {
  looks_.clear();
  found_state_.clear();
  in_the_way_ = 0;
  for (const ReturnedRecord& one : found) {
    if (one.key == 0) continue;
    *found_state_.insert(one.ref.word()) = one.state;
    if (look_of(one.key) != nullptr) continue;
    const std::uint64_t slot = place_.group.slot_of(one.key);
    SlotLook& look = *looks_.insert(slot);
    look.key = one.key;
    look.taken_word = take_slot(place_.group, one.key, place_.seat, look.was_own);
    look.was_own = look.was_own && own_records_.find(slot) != nullptr;
    look.is_blocked = look.taken_word == 0;
  }
  LEAT_CRASH_POINT("retake:slots");
  // Whatever was claimed before these has its hold by now. What others still have comes first, and so
  // does what came back earlier.
  each_in_taken_slots([&](SlotLook& look, const ReturnedRecord& one) {
    const bool is_returned = phase_of(one.state) == HoldPhase::returned;
    // Known by its state: the hold may have got another record since, which came back, too.
    const std::uint64_t* const state = found_state_.find(one.ref.word());
    if (is_returned && state != nullptr && *state == one.state) return;
    look.is_all = false;
    if (is_returned) {
      look.up_to = std::min(look.up_to, one.offset);
      return;
    }
    look.is_blocked = true;
    in_the_way_ += one.print();
  });
}

// Calls visit(look, record) for every hold of the slots just taken, but for what this member has.
// [hold] seq_cst: after the slots were changed.
template <class Visit>
void KeyOrder::each_in_taken_slots(Visit&& visit) noexcept {
  place_.group.each_hold(
      [&](std::uint32_t row, std::uint32_t index, const GroupHold& hold, std::uint64_t word) {
        const std::uint64_t key = load_relaxed<Why::stored_before>(hold.key);
        SlotLook* const look = look_of(key);
        if (look == nullptr || look->taken_word == 0) return;
        if (phase_of(word) != HoldPhase::returned && owner_of(word) == place_.owner()) return;
        visit(*look, {load_relaxed<Why::stored_before>(hold.offset), key, word, {row, index}});
      });
}

inline bool KeyOrder::can_take(const ReturnedRecord& one) noexcept {
  if (one.key == 0) return true;
  const SlotLook* const look = look_of(one.key);
  return look != nullptr && !look->is_blocked && one.offset <= look->up_to;
}
inline void KeyOrder::taken(const ReturnedRecord& one) noexcept {
  SlotLook* const look = look_of(one.key);
  if (look == nullptr) return;
  ++look->taken;
  ++*own_records_.insert(place_.group.slot_of(one.key));
}
inline void KeyOrder::missed(const ReturnedRecord& one) noexcept {
  if (SlotLook* const look = look_of(one.key); look != nullptr) look->is_blocked = true;
}
inline void KeyOrder::left(const ReturnedRecord& one) noexcept {
  if (SlotLook* const look = look_of(one.key); look != nullptr) look->is_all = false;
}

inline bool KeyOrder::settle_slots() noexcept {
  LEAT_CRASH_POINT("retake:settling");
  bool kept_all = true;
  looks_.each([&](std::uint64_t slot, SlotLook& look) {
    if (look.taken_word == 0) return;
    if (look.taken == 0) {
      if (!look.was_own) (void)release_key(place_.group, slot, place_.seat);
      return;
    }
    const bool is_all = look.is_all && !look.is_blocked;
    if (!confirm_slot(place_.group, slot, place_.seat, look.taken_word, is_all)) kept_all = false;
  });
  if (in_the_way_ == 0) return kept_all;
  // What was in the way, and came back before the slot was free again: nobody has said so.
  std::uint64_t in_the_way = 0;
  each_in_taken_slots([&](const SlotLook&, const ReturnedRecord& one) {
    if (phase_of(one.state) != HoldPhase::returned) in_the_way += one.print();
  });
  if (in_the_way != in_the_way_) announce_returned(place_.topic, place_.group);
  return kept_all;
}

// The question is asked first, then the owner's holds are looked at. An owner that gets another record
// of the slot stores the hold first, then takes the question back.
inline bool KeyOrder::free_idle_slots(std::int64_t now) noexcept {
  if (!others_have_slots_ || now - freed_idle_ns_ < kOthersDie) return false;
  freed_idle_ns_ = now;
  others_have_slots_ = false;
  const bool is_any_free = ask_owners();
  if (looks_.size() == 0) return is_any_free;
  LEAT_CRASH_POINT("keys:asked");
  forget_busy_owners();
  free_asked();
  return is_any_free;
}

// Asks the owner of each slot of which a record came back. True: one of them has no owner. Whoever
// freed it may have died, or stopped, before it could say so.
inline bool KeyOrder::ask_owners() noexcept {
  bool is_any_free = false;
  looks_.clear();
  place_.group.each_hold(
      [&](std::uint32_t, std::uint32_t, const GroupHold& hold, std::uint64_t word) {
        const std::uint64_t key = load_relaxed<Why::stored_before>(hold.key);
        if (key == 0 || phase_of(word) != HoldPhase::returned || look_of(key) != nullptr) return;
        const auto seen = KeySlot::unpack(load_acquire<Edge::key_slot>(place_.group.key_slot(key)));
        if (seen.owner == 0) is_any_free = true;
        if (seen.owner == 0 || seen.owner == place_.owner()) return;
        SlotLook* const look = looks_.insert(place_.group.slot_of(key));
        if (look == nullptr) return;  // No room: the next time.
        look->key = key;
        change_slot(place_.group.key_slot(key), [&](KeySlot& now) {
          if (now.owner != seen.owner) return false;
          now.asked = true;
          KeySlot next = now;
          ++next.version;
          look->taken_word = next.pack();
          return true;
        });
      });
  return is_any_free;
}

inline void KeyOrder::forget_busy_owners() noexcept {
  place_.group.each_hold(
      [&](std::uint32_t, std::uint32_t, const GroupHold& hold, std::uint64_t word) {
        SlotLook* const look = look_of(load_relaxed<Why::stored_before>(hold.key));
        if (look != nullptr && owner_of(word) == KeySlot::unpack(look->taken_word).owner &&
            phase_of(word) != HoldPhase::returned)
          look->taken_word = 0;
      });
}

inline void KeyOrder::free_asked() noexcept {
  bool any = false;
  looks_.each([&](std::uint64_t slot, SlotLook& look) {
    if (look.taken_word == 0) return;
    KeySlot free = KeySlot::unpack(look.taken_word);
    free.owner = 0;
    free.asked = false;
    ++free.version;
    std::uint64_t word = look.taken_word;
    // Fails if it has been anybody's in between, or more came back: then it is asked again.
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
