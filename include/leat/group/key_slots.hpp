// Key slots: which member may have the records of a key. One word each, in the group's file.
//
//     if (gain_key(group, key, seat)) …   // an entry with this key was stored before
//     if (release_key(group, key, seat)) announce_returned(topic, group);
//
// A slot has at most one owner, the only member that may hand out its records. A slot is marked
// when records of it were parked or returned, so that records taken later must queue behind them.
// Keys that share a slot wait for each other. Every change is a swap that increments the word's
// version; any member may free the slots of a dead one. docs/internals/groups.md, "By key", has the
// proof.
#pragma once

#include "leat/log/group_view.hpp"

namespace leat::inline v0::detail {

// | version 54 | asked 1 | marked 1 | owner 8 |
struct KeySlot {
  std::uint32_t owner = 0;  // seat, counted from 1; 0 = none
  bool marked = false;
  bool asked = false;  // a member checks whether the owner still has records in it
  std::uint64_t version = 0;

  constexpr std::uint64_t pack() const noexcept {
    return owner | std::uint64_t{marked} << 8 | std::uint64_t{asked} << 9 | version << 10;
  }
  static constexpr KeySlot unpack(std::uint64_t word) noexcept {
    return {static_cast<std::uint32_t>(word & kSeatMask), (word >> 8 & 1) != 0,
            (word >> 9 & 1) != 0, word >> 10};
  }
};

// Applies `change`, which may refuse by returning false. True if the word was changed.
template <class Change>
bool change_slot(std::uint64_t& word, Change&& change) noexcept {
  // [key-slot] acquire: sees what others did before they changed the word.
  std::uint64_t seen = load_acquire<Edge::key_slot>(word);
  while (true) {
    KeySlot slot = KeySlot::unpack(seen);
    if (!change(slot)) return false;
    ++slot.version;
    // [key-slot] seq_cst: after the entry concerned is stored, before entries are read next.
    if (compare_exchange<Edge::key_slot>(word, seen, slot.pack())) return true;
  }
}

// Called after an entry with this key was stored. True if this seat may hand out its record. False if
// the record must be returned; the slot is marked already.
inline bool gain_key(const GroupView& group, std::uint64_t key, std::uint32_t seat) noexcept {
  bool gained = false;
  change_slot(group.key_slot(key), [&](KeySlot& slot) {
    gained = !slot.marked && (slot.owner == 0 || slot.owner == seat + 1);
    if (gained) {
      slot.owner = seat + 1;
      slot.asked = false;
    } else {
      slot.marked = true;
    }
    return true;
  });
  return gained;
}

// Called before a record with this key is returned.
inline void mark_key(const GroupView& group, std::uint64_t key) noexcept {
  if (key == 0) return;  // The record has no key.
  change_slot(group.key_slot(key), [](KeySlot& slot) { return slot.marked = true; });
}

// Called when this seat has no more records of the slot. True if others may now retake some.
inline bool release_key(const GroupView& group, std::uint64_t key, std::uint32_t seat) noexcept {
  bool marked = false;
  return change_slot(group.key_slot(key),
                     [&](KeySlot& slot) {
                       if (slot.owner != seat + 1) return false;  // Another member freed it.
                       slot.owner = 0;
                       slot.asked = false;
                       marked = slot.marked;
                       return true;
                     }) &&
         marked;
}

// Makes this seat the owner of a slot, to retake returned records of it. Returns the new word, or 0
// if another seat owns the slot. `was_mine`: this seat owned it before.
inline std::uint64_t take_slot(const GroupView& group, std::uint64_t key, std::uint32_t seat,
                               bool& was_mine) noexcept {
  std::uint64_t taken = 0;
  const bool changed = change_slot(group.key_slot(key), [&](KeySlot& slot) {
    if (slot.owner != 0 && slot.owner != seat + 1) return false;
    was_mine = slot.owner != 0;
    slot.owner = seat + 1;
    KeySlot next = slot;
    ++next.version;
    taken = next.pack();
    return true;
  });
  return changed ? taken : 0;
}

// Called after records of a taken slot were retaken. True if this seat still owns the slot. Clears
// the mark if they were `all` returned records of the slot and the word is still `taken`.
inline bool confirm_slot(const GroupView& group, std::uint64_t key, std::uint32_t seat,
                         std::uint64_t taken, bool all) noexcept {
  return change_slot(group.key_slot(key), [&](KeySlot& slot) {
    if (slot.owner != seat + 1) return false;
    if (all && slot.pack() == taken) slot.marked = false;
    slot.asked = false;
    return true;
  });
}

// Frees the slots of a seat whose member, with this identity, leaves or is dead. False if none.
inline bool free_slots_of(const GroupView& group, std::uint32_t seat,
                          std::uint64_t identity) noexcept {
  bool any = false;
  for (std::uint64_t index = 0; index < group.geometry().slot_count(); ++index) {
    any |= change_slot(group.key_slot(index), [&](KeySlot& slot) {
      if (slot.owner != seat + 1) return false;
      // [in-flight] acquire: if the seat has a new member by now, the slot may be the new member's.
      if (load_acquire<Edge::in_flight>(group.seat(seat).identity) != identity) return false;
      slot.owner = 0;
      slot.asked = false;
      return true;
    });
  }
  return any;
}

}  // namespace leat::inline v0::detail
