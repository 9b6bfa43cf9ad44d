// Finds out whether a member's take was made. docs/internals/groups.md, "Deaths", has the proof.
#pragma once

#include "leat/log/group_view.hpp"

namespace leat::inline v0::detail {

// Names a take of a seat, in GroupSeat::taking and GroupSeat::noted.
struct TakeName {
  std::uint64_t number = 0;  // counts the seat's takes; some numbers are skipped
  std::uint32_t partition = 0;

  constexpr std::uint64_t pack() const noexcept { return number << 16 | partition; }
  static constexpr TakeName unpack(std::uint64_t word) noexcept {
    return {word >> 16, static_cast<std::uint32_t>(word & 0xffff)};
  }
};

// Whether the cursor names this take of `seat` as the last one made.
inline bool names_take(const CursorValue& cursor, std::uint32_t seat,
                       const TakeName& take) noexcept {
  return cursor.taker() == seat + 1 && cursor.take_number() == (take.number & kTakeNumberMask);
}

// Called before the cursor is moved away from `cursor`. Notes in the seat that `cursor` names that
// its take was made, because the moved cursor will not show it. The taker also notes it itself.
inline void note_take(const GroupView& group, std::uint32_t partition,
                      const CursorValue& cursor) noexcept {
  if (cursor.taker() == 0 || cursor.taker() > group.geometry().seat_count) return;
  const auto index = static_cast<std::uint32_t>(cursor.taker() - 1);
  GroupSeat& seat = group.seat(index);
  // [group-cursor] acquire. A member that has begun another take noted this one before.
  std::uint64_t noted = load_acquire<Edge::group_cursor>(seat.noted);
  const std::uint64_t taking = load_acquire<Edge::group_cursor>(seat.taking);
  const TakeName take = TakeName::unpack(taking);
  if (noted == taking || take.partition != partition || !names_take(cursor, index, take)) return;
  // If the cursor is unchanged, it names this take, and not one 1024 numbers earlier.
  if (group.load_cursor(partition) != cursor) return;
  compare_exchange<Edge::group_cursor>(seat.noted, noted, taking);
}

// Whether the last take that a member began was made. The member may be alive or dead; if it is
// alive, the take may still be made later.
inline bool take_was_made(const GroupView& group, std::uint32_t index) noexcept {
  GroupSeat& seat = group.seat(index);
  const std::uint64_t taking = load_acquire<Edge::group_cursor>(seat.taking);
  const TakeName take = TakeName::unpack(taking);
  if (take.partition >= group.geometry().partition_count) return false;
  // [group-cursor] acquire: the cursor is read first. A member that has moved it on noted the take before.
  const CursorValue cursor = group.load_cursor(take.partition);
  std::uint64_t noted = load_acquire<Edge::group_cursor>(seat.noted);
  if (noted == taking) return true;
  if (!names_take(cursor, index, take)) return false;
  compare_exchange<Edge::group_cursor>(seat.noted, noted, taking);
  return true;
}

// Whether an entry belongs to a take of its owner that is not made yet, and may still fail. The
// owner may be alive or dead. `state` was read before the call.
inline bool may_be_unmade(const GroupView& group, const InFlightState& state) noexcept {
  if (state.owner == 0 || state.owner > group.geometry().seat_count || state.retaken) return false;
  const std::uint32_t owner = state.owner - 1;
  const TakeName take =
      TakeName::unpack(load_acquire<Edge::group_cursor>(group.seat(owner).taking));
  return state.generation == (take.number & InFlightState::kGenerationMask) &&
         !take_was_made(group, owner);
}

}  // namespace leat::inline v0::detail
