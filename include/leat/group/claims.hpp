// What members of a group do for each other: settle whose claim moved the cursor, and give what a
// dead member left to the others. docs/internals/groups.md, "Deaths", has the proof.
//
// Anybody may do this, several at once: every step is a compare-and-swap.
#pragma once

#include "leat/group/key_slots.hpp"
#include "leat/log/participants.hpp"

namespace leat::inline v0::detail {

// In GroupSeat::claiming and noted: which claim, and in which partition.
struct ClaimName {
  std::uint64_t number = 0;  // counts the claims of a seat; some numbers are left out
  std::uint32_t partition = 0;

  constexpr std::uint64_t pack() const noexcept { return number << 16 | partition; }
  static constexpr ClaimName unpack(std::uint64_t word) noexcept {
    return {word >> 16, static_cast<std::uint32_t>(word & 0xffff)};
  }
};

// Whether the cursor says that this claim of `seat` was made last.
inline bool names_claim(const CursorValue& cursor, std::uint32_t seat,
                        const ClaimName& claim) noexcept {
  return cursor.claimer() == seat + 1 && cursor.claim_number() == (claim.number & kClaimNumberMask);
}

// Called before the cursor is moved on from this value: notes in the seat it names that that seat's
// claim was made, for the cursor will not tell any more. The claimer itself does so, too.
inline void note_claim(const GroupView& group, std::uint32_t partition,
                       const CursorValue& cursor) noexcept {
  if (cursor.claimer() == 0 || cursor.claimer() > group.geometry().seat_count) return;
  const auto index = static_cast<std::uint32_t>(cursor.claimer() - 1);
  GroupSeat& seat = group.seat(index);
  // [group-cursor] acquire. If it has gone on to another claim, it noted this one before.
  std::uint64_t noted = load_acquire<Edge::group_cursor>(seat.noted);
  const std::uint64_t claiming = load_acquire<Edge::group_cursor>(seat.claiming);
  const ClaimName claim = ClaimName::unpack(claiming);
  if (noted == claiming || claim.partition != partition || !names_claim(cursor, index, claim))
    return;
  // Unchanged: then it is this claim that the cursor names, not one of 1024 claims ago.
  if (group.load_cursor(partition) != cursor) return;
  compare_exchange<Edge::group_cursor>(seat.noted, noted, claiming);
}

// Whether the claim that a member, alive or dead, was making was made; while it lives, by now.
inline bool claim_was_made(const GroupView& group, std::uint32_t index) noexcept {
  GroupSeat& seat = group.seat(index);
  const std::uint64_t claiming = load_acquire<Edge::group_cursor>(seat.claiming);
  const ClaimName claim = ClaimName::unpack(claiming);
  if (claim.partition >= group.geometry().partition_count) return false;
  // [group-cursor] The cursor first: whoever moved it on has noted the claim before.
  const CursorValue cursor = group.load_cursor(claim.partition);
  std::uint64_t noted = load_acquire<Edge::group_cursor>(seat.noted);
  if (noted == claiming) return true;
  if (!names_claim(cursor, index, claim)) return false;
  compare_exchange<Edge::group_cursor>(seat.noted, noted, claiming);
  return true;
}

// Whether a hold belongs to the claim that its owner, alive or dead, is just making, and that may yet
// fail. The state was read before.
inline bool may_be_unmade(const GroupView& group, const HoldState& state) noexcept {
  if (state.owner == 0 || state.owner > group.geometry().seat_count || state.retaken) return false;
  const std::uint32_t owner = state.owner - 1;
  const ClaimName claim =
      ClaimName::unpack(load_acquire<Edge::group_cursor>(group.seat(owner).claiming));
  return state.generation == (claim.number & HoldState::kGenerationMask) &&
         !claim_was_made(group, owner);
}

// Tells members that a record may be free for them.
inline void announce_returned(SharedTopic& topic, GroupView& group) noexcept {
  // [hold] seq_cst: after the state of what was returned, before the sleeping bit is looked at.
  fetch_add<Edge::hold>(group.header().returned, 1);
  SharedTopic::wake(topic.header().data_wake);
}

// Gives everything that the dead member of a seat owned to the others, and vacates the seat.
inline void settle_dead_member(SharedTopic& topic, GroupView& group, std::uint32_t dead,
                               std::uint64_t identity) noexcept {
  const bool was_made = claim_was_made(group, dead);
  const ClaimName last =
      ClaimName::unpack(load_acquire<Edge::group_cursor>(group.seat(dead).claiming));
  LEAT_CRASH_POINT("settle:begun");
  const bool by_key = group.geometry().by_key();
  group.each_used_hold([&](std::uint32_t, std::uint32_t, GroupHold& hold, std::uint64_t word) {
    HoldState state = HoldState::unpack(word);
    if (state.owner != dead + 1 || state.phase == HoldPhase::returned) return;
    // [hold] acquire: if others are done with this already, and a new member has the seat, then what
    // was just read may be that one's.
    if (load_acquire<Edge::hold>(group.seat(dead).identity) != identity) return;
    const bool is_of_last =
        !state.retaken && state.generation == (last.number & HoldState::kGenerationMask);
    const bool is_done = state.phase == HoldPhase::held && group.geometry().at_most_once();
    state.owner = 0;
    state.delayed = false;
    state.phase = is_done || (is_of_last && !was_made) ? HoldPhase::free : HoldPhase::returned;
    if (by_key && state.phase == HoldPhase::returned)
      mark_key(group, load_relaxed<Why::stored_before>(hold.key));
    // Fails only if another one was faster at the same.
    compare_exchange<Edge::hold>(hold.state, word, state.pack());
    LEAT_CRASH_POINT("settle:returned");
  });
  if (by_key) {
    free_slots_of(group, dead, identity);
    LEAT_CRASH_POINT("settle:freed");
  }
  // Always, and before the seat is vacated: what is there may have been returned by somebody who died,
  // here or in that seat, before it could say so.
  announce_returned(topic, group);
  // Vacated last: until then a new member can't be taken for the dead one.
  compare_exchange<Edge::hold>(group.seat(dead).identity, identity, 0);
  LEAT_CRASH_POINT("settle:vacated");
  SharedTopic::wake(topic.header().space_wake);
}

}  // namespace leat::inline v0::detail
