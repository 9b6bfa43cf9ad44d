// Settling dead members: their records go to the others. docs/internals/groups.md, "Deaths", has the
// proof.
//
// Any member may do this, several at once: every step is a compare-and-swap.
#pragma once

#include "leat/group/key_slots.hpp"
#include "leat/log/group_takes.hpp"
#include "leat/log/participants.hpp"

namespace leat::inline v0::detail {

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
