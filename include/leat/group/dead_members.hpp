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
inline void announce_returned(MappedTopic& topic, GroupView& group) noexcept {
  // [in-flight] seq_cst: after the state of the returned record, before the sleeping bit is read.
  fetch_add<Edge::in_flight>(group.header().returned, 1);
  MappedTopic::wake(topic.header().data_wake);
}

// Returns everything that a seat's dead member owned to the group, and vacates the seat.
inline void settle_dead_member(MappedTopic& topic, GroupView& group, std::uint32_t dead,
                               std::uint64_t identity) noexcept {
  const bool was_made = take_was_made(group, dead);
  const TakeName last = TakeName::unpack(load_acquire<Edge::group_cursor>(group.seat(dead).taking));
  LEAT_CRASH_POINT("settle:begun");
  const bool by_key = group.geometry().by_key();
  group.each_used_entry([&](std::uint32_t, std::uint32_t, InFlightEntry& entry,
                            std::uint64_t word) {
    InFlightState state = InFlightState::unpack(word);
    if (state.owner != dead + 1 || state.phase == InFlightPhase::returned) return;
    // [in-flight] acquire: if others have settled the dead member already and a new member has the seat,
    // the state just read may be the new member's.
    if (load_acquire<Edge::in_flight>(group.seat(dead).identity) != identity) return;
    const bool is_of_last =
        !state.retaken && state.generation == (last.number & InFlightState::kGenerationMask);
    const bool is_done = state.phase == InFlightPhase::delivered && group.geometry().at_most_once();
    state.owner = 0;
    state.delayed = false;
    state.phase =
        is_done || (is_of_last && !was_made) ? InFlightPhase::free : InFlightPhase::returned;
    if (by_key && state.phase == InFlightPhase::returned)
      mark_key(group, load_relaxed<Why::stored_before>(entry.key));
    // Fails only if another member did the same first.
    compare_exchange<Edge::in_flight>(entry.state, word, state.pack());
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
  compare_exchange<Edge::in_flight>(group.seat(dead).identity, identity, 0);
  LEAT_CRASH_POINT("settle:vacated");
  MappedTopic::wake(topic.header().space_wake);
}

}  // namespace leat::inline v0::detail
