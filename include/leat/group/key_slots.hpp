// Who may have the records of a key: one word per slot of keys in the group's file.
//
//     if (gain_key(group, key, seat)) …   // a hold with this key was stored before
//     if (release_key(group, key, seat)) announce_returned(topic, group);
//
// A slot has at most one owner, the only member that may hand out its records, and a mark: records
// of it were parked or came back, so what is claimed now must queue behind them. Keys that share a
// slot wait for each other. Every change is a swap that raises the word's version; anybody may free
// the slots of the dead. docs/internals/groups.md, "By key", has the proof.
#pragma once

#include "leat/log/group_view.hpp"

namespace leat::inline v0::detail {

// | version 54 | asked 1 | marked 1 | owner 8 |
struct KeySlot {
  std::uint32_t owner = 0;  // seat from 1
  bool marked = false;
  bool asked = false;  // somebody is finding out whether the owner has any of it left
  std::uint64_t version = 0;

  constexpr std::uint64_t pack() const noexcept {
    return owner | std::uint64_t{marked} << 8 | std::uint64_t{asked} << 9 | version << 10;
  }
  static constexpr KeySlot unpack(std::uint64_t word) noexcept {
    return {static_cast<std::uint32_t>(word & kSeatMask), (word >> 8 & 1) != 0,
            (word >> 9 & 1) != 0, word >> 10};
  }
};

// Changes the word by `change`, which gets the value and may refuse; true if it was changed.
template <class Change>
bool change_slot(std::uint64_t& word, Change&& change) noexcept {
  // [key_slot] acquire: what others did before they changed it.
  std::uint64_t seen = load_acquire<Edge::key_slot>(word);
  while (true) {
    KeySlot slot = KeySlot::unpack(seen);
    if (!change(slot)) return false;
    ++slot.version;
    // [key_slot] seq_cst: after the hold that it is about, before the holds that are looked at next.
    if (compare_exchange<Edge::key_slot>(word, seen, slot.pack())) return true;
  }
}

// Called when a hold with this key is there. True: its record is this seat's to hand out. False: it
// must be returned, and the slot says so already.
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
  if (key == 0) return;  // It has none.
  change_slot(group.key_slot(key), [](KeySlot& slot) { return slot.marked = true; });
}

// Called when this seat has no more records of the slot. True: others may have some to take now.
inline bool release_key(const GroupView& group, std::uint64_t key, std::uint32_t seat) noexcept {
  bool marked = false;
  return change_slot(group.key_slot(key),
                     [&](KeySlot& slot) {
                       if (slot.owner != seat + 1) return false;  // Somebody freed it.
                       slot.owner = 0;
                       slot.asked = false;
                       marked = slot.marked;
                       return true;
                     }) &&
         marked;
}

// Makes a slot that is nobody's this seat's, to look at what came back of it. 0: it is somebody else's.
// Else the word then; `was_mine`: it was this seat's already.
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

// Called when records of a slot that was taken became this seat's: true if the slot still is. If they
// are `all` that there were while the word was `taken`, the mark goes.
inline bool confirm_slot(const GroupView& group, std::uint64_t key, std::uint32_t seat,
                         std::uint64_t taken, bool all) noexcept {
  return change_slot(group.key_slot(key), [&](KeySlot& slot) {
    if (slot.owner != seat + 1) return false;
    if (all && slot.pack() == taken) slot.marked = false;
    slot.asked = false;
    return true;
  });
}

// Frees all slots of a seat whose member leaves, or is dead and had this identity. False: there are none.
inline bool free_slots_of(const GroupView& group, std::uint32_t seat,
                          std::uint64_t identity) noexcept {
  bool any = false;
  for (std::uint64_t index = 0; index < group.geometry().slot_count(); ++index) {
    any |= change_slot(group.key_slot(index), [&](KeySlot& slot) {
      if (slot.owner != seat + 1) return false;
      // [hold] acquire: if the seat is another's by now, so may be what was just read.
      if (load_acquire<Edge::hold>(group.seat(seat).identity) != identity) return false;
      slot.owner = 0;
      slot.asked = false;
      return true;
    });
  }
  return any;
}

}  // namespace leat::inline v0::detail
