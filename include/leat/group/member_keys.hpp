// How members of a group that goes by key keep equal keys together, and in order. Included by
// member.hpp only. docs/internals/groups.md, "By key".
#pragma once

#include "leat/group/member_hand.hpp"

namespace leat {

// Of the record's key; 0: it has none. The segment is pinned, or held.
inline std::uint64_t Member::key_hash(const detail::WalkedRecord& walked) const noexcept {
  Record record;
  const Bytes payload{walked.payload, walked.detail & detail::kDetailLength};
  if (!detail::read_payload(walked.detail, payload, record) || !record.has_key) return 0;
  const std::uint64_t key = detail::murmur2(record.key) | 1ULL << 63;
  __builtin_prefetch(&group_->key_slot(key), 1);  // Looked at soon, with those of other records.
  return key;
}

// What is about to be claimed and has somebody else's key goes from ready_ to parked_. The holds are
// there already.
inline void Member::gain_keys() noexcept {
  std::size_t kept = 0;
  for (const Ready& one : ready_) {
    // relaxed: what this member wrote
    const std::uint64_t key = detail::load_relaxed(group_->hold(one.row, one.hold).key);
    if (key != 0 && !detail::gain_key(*group_, key, seat_)) {
      parked_.push_back(one);
      continue;
    }
    if (key != 0) ++*of_slot_.insert(group_->slot_of(key));
    ready_[kept++] = one;
  }
  ready_.resize(kept);
}

// Puts what was just claimed and has somebody else's key among the records that came back.
inline void Member::park(std::uint64_t claimed) noexcept {
  using namespace detail;
  if (parked_.empty()) return;
  HoldState state = HoldState::unpack(claimed);
  state.phase = HoldPhase::returned;
  state.owner = 0;
  state.deliveries = 0;
  bool announces = false;
  for (const Ready& one : parked_) {
    GroupHold& hold = group_->hold(one.row, one.hold);
    const std::uint64_t key = load_relaxed(hold.key);  // relaxed: what this member wrote
    std::uint64_t word = one.state;
    // [hold] Fails if others have taken it away with its lease: then they returned it.
    compare_exchange<Edge::hold>(hold.state, word, state.pack());
    LEAT_STEP("park:returned");
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
inline void Member::drop_key(std::uint64_t key) noexcept {
  if (key == 0) return;
  const std::uint64_t slot = group_->slot_of(key);
  std::uint32_t* const count = of_slot_.find(slot);
  if (count == nullptr || --*count != 0) return;
  of_slot_.erase(slot);
  if (detail::release_key(*group_, key, seat_)) detail::announce_returned(shared(), *group_);
}

// Whether it is worth trying to take a record that came back.
inline bool Member::may_have_slot(const Returned& one) noexcept {
  using namespace detail;
  if (blocked_.find(group_->slot_of(one.key)) != nullptr) return false;
  // [key_slot] acquire: what is looked at next is at least as new.
  const auto slot = KeySlot::unpack(load_acquire<Edge::key_slot>(group_->key_slot(one.key)));
  if (slot.owner == 0 || slot.owner == seat_ + 1) return true;
  others_have_keys_ = true;
  return false;
}

// Makes the slots of found_ this member's, and finds out how far each may be taken.
inline void Member::take_slots() noexcept {
  using namespace detail;
  looks_.clear();
  is_found_.clear();
  in_the_way_.clear();
  for (const Returned& one : found_) {
    if (one.key == 0) continue;
    *is_found_.insert(place_of(one.row, one.hold)) = 1;
    const std::uint64_t slot = group_->slot_of(one.key);
    if (looks_.find(slot) != nullptr) continue;
    SlotLook& look = *looks_.insert(slot);
    look.key = one.key;
    look.taken_word = take_slot(*group_, one.key, seat_, look.was_mine);
    look.was_mine = look.was_mine && of_slot_.find(slot) != nullptr;
    look.is_blocked = look.taken_word == 0;
  }
  LEAT_STEP("retake:slots");
  // Whatever was claimed before these has its hold by now; what others still have, or was found to be
  // earlier, comes first.
  group_->each_hold(
      [&](std::uint32_t row, std::uint32_t index, const GroupHold& hold, std::uint64_t word) {
        const std::uint64_t key = load_relaxed(hold.key);  // relaxed: stored before the state
        if (key == 0) return;
        SlotLook* const look = looks_.find(group_->slot_of(key));
        if (look == nullptr || look->taken_word == 0) return;
        const bool is_returned = phase_of(word) == HoldPhase::returned;
        if (!is_returned && owner_of(word) == seat_ + 1) return;
        if (is_returned && is_found_.find(place_of(row, index)) != nullptr) return;
        look->is_all = false;
        if (is_returned) {
          look->up_to = std::min(look->up_to, load_relaxed(hold.offset));
          return;
        }
        look->is_blocked = true;
        if (in_the_way_.size() < kMaxFound) in_the_way_.push_back({0, key, word, row, index});
      });
}

// Keeps the slots of what was taken, and lets go of the others.
inline void Member::settle_slots() noexcept {
  using namespace detail;
  LEAT_STEP("retake:settling");
  bool announces = in_the_way_.size() == kMaxFound;
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
  // What was in the way and was returned before the slot was free again: nobody has said so.
  for (const Returned& one : in_the_way_) {
    // [hold] seq_cst: after the slots are free.
    announces =
        announces || load_seq_cst<Edge::hold>(group_->hold(one.row, one.hold).state) != one.state;
  }
  if (announces) announce_returned(shared(), *group_);
}

// Nothing could be taken of the slots just looked at.
inline void Member::exclude_slots() noexcept {
  looks_.each([&](std::uint64_t slot, const SlotLook&) { (void)blocked_.insert(slot); });
}

// Slots whose owner has nothing left of them, because it was taken away: it may never come to say so.
// The question is asked first, then its holds are looked at; an owner that gets another record of the
// slot, stores the hold first, then takes the question back.
inline void Member::free_idle_slots() noexcept {
  using namespace detail;
  others_have_keys_ = false;
  looks_.clear();
  group_->each_hold([&](std::uint32_t, std::uint32_t, const GroupHold& hold, std::uint64_t word) {
    const std::uint64_t key = load_relaxed(hold.key);  // relaxed: stored before the state
    if (key == 0 || phase_of(word) != HoldPhase::returned) return;
    const std::uint64_t slot = group_->slot_of(key);
    if (looks_.find(slot) != nullptr) return;
    const auto seen = KeySlot::unpack(load_acquire<Edge::key_slot>(group_->key_slot(key)));
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
  LEAT_STEP("keys:asked");
  group_->each_hold([&](std::uint32_t, std::uint32_t, const GroupHold& hold, std::uint64_t word) {
    const std::uint64_t key = load_relaxed(hold.key);  // relaxed: stored before the state
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
    // Fails if it has been anybody's in between.
    any = compare_exchange<Edge::key_slot>(group_->key_slot(slot), word, free.pack()) || any;
    LEAT_STEP("keys:freed");
  });
  if (any) announce_returned(shared(), *group_);
}

}  // namespace leat
