// How members of a group that goes by key keep equal keys together, and in order. Included by
// group/impl.hpp only. docs/internals/groups.md, "By key".
#pragma once

#include "leat/group/member_hand.hpp"

namespace leat::inline v0::detail {

// Of the record's key; 0: it has none. The segment is pinned, or held.
inline std::uint64_t MemberCore::key_hash(const WalkedRecord& walked) const noexcept {
  Record record;
  const Bytes payload{walked.payload, walked.detail & kDetailLength};
  if (!read_payload(walked.detail, payload, record) || !record.has_key) return 0;
  const std::uint64_t key = murmur2(record.key) | 1ULL << 63;
  __builtin_prefetch(&group_->key_slot(key), 1);  // Looked at soon, with those of other records.
  return key;
}

// What is about to be claimed and has somebody else's key goes from ready_ to parked_. The holds are
// there already.
inline void MemberCore::gain_keys() noexcept {
  std::size_t kept = 0;
  for (const Ready& one : ready_) {
    const std::uint64_t key = load_relaxed<Why::own>(group_->hold(one.row, one.hold).key);
    if (key != 0 && !gain_key(*group_, key, seat_)) {
      // Nobody gets it in hands by this claim, whatever becomes of this member.
      HoldState state = HoldState::unpack(one.state);
      state.phase = HoldPhase::ready;
      state.deliveries = 0;
      push_reserved(parked_, {one.record, one.row, one.hold, state.pack()});
      // [hold] release: as in write_hold().
      store_release<Edge::hold>(group_->hold(one.row, one.hold).state, state.pack());
      continue;
    }
    if (key != 0) ++*of_slot_.insert(group_->slot_of(key));
    ready_[kept++] = one;
  }
  ready_.resize(kept);
}

// Puts what was just claimed and has somebody else's key among the records that came back.
inline void MemberCore::park() noexcept {
  if (parked_.empty()) return;
  bool announces = false;
  for (const Ready& one : parked_) {
    GroupHold& hold = group_->hold(one.row, one.hold);
    const std::uint64_t key = load_relaxed<Why::own>(hold.key);
    std::uint64_t word = one.state;
    // [hold] Fails if others have taken it away with its lease: then they returned it.
    compare_exchange<Edge::hold>(hold.state, word,
                                 HoldState::let_go(one.state, HoldPhase::returned));
    LEAT_CRASH_POINT("park:returned");
    if (one.row == seat_) {
      own_[one.hold].whose = Own::lost;
      ++lost_;
    }
    // [key_slot] seq_cst: after the state. Whoever lets go of the slot later, sees its mark.
    const auto slot = KeySlot::unpack(load_seq_cst<Edge::key_slot>(group_->key_slot(key)));
    announces = announces || slot.owner == 0 || slot.owner == seat_ + 1;
  }
  if (announces) announce_returned(shared(), *group_);
  returned_count_ += parked_.size();
  in_flight_ -= parked_.size();
  note_in_flight();
  // The more of others' keys there are, the less is to be had by going on; but in the end it is passed.
  may_park_ -= std::min(may_park_, parked_.size());
  if (may_park_ == 0) {
    park_run_ = std::min(2 * park_run_, kMaxParkRun);
    may_park_ = park_run_;
    if (ready_.empty()) claim_again_ns_ = now_ns() + kOthersDie;
  }
  parked_.clear();
}

// A record with this key is not this member's any more.
inline void MemberCore::drop_key(std::uint64_t key) noexcept {
  if (key == 0) return;
  const std::uint64_t slot = group_->slot_of(key);
  std::uint32_t* const count = of_slot_.find(slot);
  if (count == nullptr || --*count != 0) return;
  of_slot_.erase(slot);
  if (release_key(*group_, key, seat_)) announce_returned(shared(), *group_);
}

// Whether it is worth trying to take a record that came back.
inline bool MemberCore::may_have_slot(const Returned& one) noexcept {
  // [key_slot] acquire: what is looked at next is at least as new.
  const auto slot = KeySlot::unpack(load_acquire<Edge::key_slot>(group_->key_slot(one.key)));
  if (slot.owner == 0 || slot.owner == seat_ + 1) return true;
  others_have_keys_ = true;
  return false;
}

// Makes the slots of found_ this member's, and finds out how far each may be taken.
inline void MemberCore::take_slots() noexcept {
  looks_.clear();
  found_state_.clear();
  in_the_way_ = 0;
  for (const Returned& one : found_) {
    if (one.key == 0) continue;
    *found_state_.insert(place_of(one.row, one.hold)) = one.state;
    const std::uint64_t slot = group_->slot_of(one.key);
    if (looks_.find(slot) != nullptr) continue;
    SlotLook& look = *looks_.insert(slot);
    look.key = one.key;
    look.taken_word = take_slot(*group_, one.key, seat_, look.was_mine);
    look.was_mine = look.was_mine && of_slot_.find(slot) != nullptr;
    look.is_blocked = look.taken_word == 0;
  }
  LEAT_CRASH_POINT("retake:slots");
  // Whatever was claimed before these has its hold by now; what others still have, or was found to be
  // earlier, comes first.
  each_of_slots([&](SlotLook& look, const Returned& one) {
    const bool is_returned = phase_of(one.state) == HoldPhase::returned;
    // By its state: since it was found its hold may have got another record, which came back, too.
    const std::uint64_t* const found = found_state_.find(place_of(one.row, one.hold));
    if (is_returned && found != nullptr && *found == one.state) return;
    look.is_all = false;
    if (is_returned) {
      look.up_to = std::min(look.up_to, one.offset);
      return;
    }
    look.is_blocked = true;
    in_the_way_ += one.print();
  });
}

// Calls visit(look, hold) for every hold of the slots just taken, but for what this member has. [hold]
// seq_cst: after the slots were changed.
template <class Visit>
void MemberCore::each_of_slots(Visit&& visit) noexcept {
  group_->each_hold(
      [&](std::uint32_t row, std::uint32_t index, const GroupHold& hold, std::uint64_t word) {
        const std::uint64_t key = load_relaxed<Why::stored_before>(hold.key);
        if (key == 0) return;
        SlotLook* const look = looks_.find(group_->slot_of(key));
        if (look == nullptr || look->taken_word == 0) return;
        if (phase_of(word) != HoldPhase::returned && owner_of(word) == seat_ + 1) return;
        visit(*look, {load_relaxed<Why::stored_before>(hold.offset), key, word, row, index});
      });
}

// Keeps the slots of what was taken, and lets go of the others.
inline void MemberCore::settle_slots() noexcept {
  LEAT_CRASH_POINT("retake:settling");
  std::size_t lost = 0;
  looks_.each([&](std::uint64_t slot, SlotLook& look) {
    if (look.taken_word == 0) return;
    if (look.taken == 0) {
      if (!look.was_mine) (void)release_key(*group_, slot, seat_);
      return;
    }
    const bool is_all = look.is_all && !look.is_blocked;
    if (!confirm_slot(*group_, slot, seat_, look.taken_word, is_all)) ++lost;
  });
  // Somebody thought that this member had no record of it, and has freed a slot: all goes back.
  if (lost != 0) {
    give_back_ready();
    ready_.clear();
    ready_at_ = 0;
  }
  if (in_the_way_ == 0) return;
  // What was in the way and was returned before the slot was free again: nobody has said so.
  std::uint64_t in_the_way = 0;
  each_of_slots([&](const SlotLook&, const Returned& one) {
    if (phase_of(one.state) != HoldPhase::returned) in_the_way += one.print();
  });
  if (in_the_way != in_the_way_) announce_returned(shared(), *group_);
}

// Slots whose owner has nothing left of them, because it was taken away: it may never come to say so.
// The question is asked first, then its holds are looked at; an owner that gets another record of the
// slot, stores the hold first, then takes the question back.
inline void MemberCore::free_idle_slots() noexcept {
  others_have_keys_ = false;
  looks_.clear();
  group_->each_hold([&](std::uint32_t, std::uint32_t, const GroupHold& hold, std::uint64_t word) {
    const std::uint64_t key = load_relaxed<Why::stored_before>(hold.key);
    if (key == 0 || phase_of(word) != HoldPhase::returned) return;
    const std::uint64_t slot = group_->slot_of(key);
    if (looks_.find(slot) != nullptr) return;
    const auto seen = KeySlot::unpack(load_acquire<Edge::key_slot>(group_->key_slot(key)));
    // Whoever freed it may have died, or stopped, before it could say so.
    if (seen.owner == 0) seen_returned_ = ~0ULL;
    if (seen.owner == 0 || seen.owner == seat_ + 1) return;
    SlotLook* const look = looks_.insert(slot);
    if (look == nullptr) return;  // The next time.
    look->key = key;
    change_slot(group_->key_slot(key), [&](KeySlot& now) {
      if (now.owner != seen.owner) return false;
      now.asked = true;
      KeySlot next = now;
      ++next.version;
      look->taken_word = next.pack();
      return true;
    });
  });
  if (looks_.size() == 0) return;
  LEAT_CRASH_POINT("keys:asked");
  group_->each_hold([&](std::uint32_t, std::uint32_t, const GroupHold& hold, std::uint64_t word) {
    const std::uint64_t key = load_relaxed<Why::stored_before>(hold.key);
    SlotLook* const look = key != 0 ? looks_.find(group_->slot_of(key)) : nullptr;
    if (look != nullptr && owner_of(word) == KeySlot::unpack(look->taken_word).owner &&
        phase_of(word) != HoldPhase::returned)
      look->taken_word = 0;
  });
  bool any = false;
  looks_.each([&](std::uint64_t slot, SlotLook& look) {
    if (look.taken_word == 0) return;
    KeySlot free = KeySlot::unpack(look.taken_word);
    free.owner = 0;
    free.asked = false;
    ++free.version;
    std::uint64_t word = look.taken_word;
    // Fails if it has been anybody's in between, or more came back: then it is asked again.
    const bool freed = compare_exchange<Edge::key_slot>(group_->key_slot(slot), word, free.pack());
    if (freed) {
      any = true;
    } else {
      others_have_keys_ = true;
    }
    LEAT_CRASH_POINT("keys:freed");
  });
  if (any) announce_returned(shared(), *group_);
}

}  // namespace leat::inline v0::detail
