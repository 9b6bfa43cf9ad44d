// Finding out whether a member's claim was made, and settling dead members: their records go to the
// others. docs/internals/groups.md, "Deaths", has the proof.
//
// Any member may do this, several at once: every step is a compare-and-swap.
#pragma once

#include "leat/group/key_slots.hpp"
#include "leat/log/participants.hpp"

namespace leat::inline v0::detail {

// Names a claim of a seat, in GroupSeat::claiming and GroupSeat::noted.
struct ClaimName {
  std::uint64_t number = 0;  // counts the seat's claims; some numbers are skipped
  std::uint32_t partition = 0;

  constexpr std::uint64_t pack() const noexcept { return number << 16 | partition; }
  static constexpr ClaimName unpack(std::uint64_t word) noexcept {
    return {word >> 16, static_cast<std::uint32_t>(word & 0xffff)};
  }
};

// Whether the cursor names this claim of `seat` as the last one made.
inline bool names_claim(const CursorValue& cursor, std::uint32_t seat,
                        const ClaimName& claim) noexcept {
  return cursor.claimer() == seat + 1 && cursor.claim_number() == (claim.number & kClaimNumberMask);
}

// Called before the cursor is moved away from `cursor`. Notes in the seat that `cursor` names that
// its claim was made, because the moved cursor will not show it. The claimer also notes it itself.
inline void note_claim(const GroupView& group, std::uint32_t partition,
                       const CursorValue& cursor) noexcept {
  if (cursor.claimer() == 0 || cursor.claimer() > group.geometry().seat_count) return;
  const auto index = static_cast<std::uint32_t>(cursor.claimer() - 1);
  GroupSeat& seat = group.seat(index);
  // [group-cursor] acquire. A member that has begun another claim noted this one before.
  std::uint64_t noted = load_acquire<Edge::group_cursor>(seat.noted);
  const std::uint64_t claiming = load_acquire<Edge::group_cursor>(seat.claiming);
  const ClaimName claim = ClaimName::unpack(claiming);
  if (noted == claiming || claim.partition != partition || !names_claim(cursor, index, claim))
    return;
  // If the cursor is unchanged, it names this claim, not the one 1024 numbers before it.
  if (group.load_cursor(partition) != cursor) return;
  compare_exchange<Edge::group_cursor>(seat.noted, noted, claiming);
}

// Whether the last claim that a member began was made. The member may be alive or dead; if it is
// alive, the claim may still be made later.
inline bool claim_was_made(const GroupView& group, std::uint32_t index) noexcept {
  GroupSeat& seat = group.seat(index);
  const std::uint64_t claiming = load_acquire<Edge::group_cursor>(seat.claiming);
  const ClaimName claim = ClaimName::unpack(claiming);
  if (claim.partition >= group.geometry().partition_count) return false;
  // [group-cursor] acquire: first the cursor. A member that has moved it on noted the claim before.
  const CursorValue cursor = group.load_cursor(claim.partition);
  std::uint64_t noted = load_acquire<Edge::group_cursor>(seat.noted);
  if (noted == claiming) return true;
  if (!names_claim(cursor, index, claim)) return false;
  compare_exchange<Edge::group_cursor>(seat.noted, noted, claiming);
  return true;
}

// Whether a hold belongs to a claim of its owner that is not made yet, and may still fail. The
// owner may be alive or dead. `state` was read before the call.
inline bool may_be_unmade(const GroupView& group, const HoldState& state) noexcept {
  if (state.owner == 0 || state.owner > group.geometry().seat_count || state.retaken) return false;
  const std::uint32_t owner = state.owner - 1;
  const ClaimName claim =
      ClaimName::unpack(load_acquire<Edge::group_cursor>(group.seat(owner).claiming));
  return state.generation == (claim.number & HoldState::kGenerationMask) &&
         !claim_was_made(group, owner);
}

// Tells members that a record may have become available.
inline void announce_returned(SharedTopic& topic, GroupView& group) noexcept {
  // [hold] seq_cst: after the state of the returned record, before the sleeping bit is read.
  fetch_add<Edge::hold>(group.header().returned, 1);
  SharedTopic::wake(topic.header().data_wake);
}

// Returns everything that a seat's dead member owned to the group, and vacates the seat.
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
    // [hold] acquire: if others have settled the dead member already and a new member has the seat,
    // the state just read may be the new member's.
    if (load_acquire<Edge::hold>(group.seat(dead).identity) != identity) return;
    const bool is_of_last =
        !state.retaken && state.generation == (last.number & HoldState::kGenerationMask);
    const bool is_done = state.phase == HoldPhase::held && group.geometry().at_most_once();
    state.owner = 0;
    state.delayed = false;
    state.phase = is_done || (is_of_last && !was_made) ? HoldPhase::free : HoldPhase::returned;
    if (by_key && state.phase == HoldPhase::returned)
      mark_key(group, load_relaxed<Why::stored_before>(hold.key));
    // Fails only if another member did the same first.
    compare_exchange<Edge::hold>(hold.state, word, state.pack());
    LEAT_CRASH_POINT("settle:returned");
  });
  if (by_key) {
    free_slots_of(group, dead, identity);
    LEAT_CRASH_POINT("settle:freed");
  }
  // Always, and before the seat is vacated: the dead member, or another one that settled it, may
  // have returned records and died before it could announce them.
  announce_returned(topic, group);
  // Vacated last, so that a new member cannot be mistaken for the dead one.
  compare_exchange<Edge::hold>(group.seat(dead).identity, identity, 0);
  LEAT_CRASH_POINT("settle:vacated");
  SharedTopic::wake(topic.header().space_wake);
}

}  // namespace leat::inline v0::detail
