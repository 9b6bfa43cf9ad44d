// Moving on to the next segment: finding room, and opening it.
//
// No step holds a lock. Whoever comes to the end of a segment takes every step that is not taken
// yet; each is a compare-and-swap on a word that only grows, so a helper that was stopped for a week
// changes nothing when it goes on. docs/internals/log.md, "Rolling".
#pragma once

#include "leat/log/current_segment.hpp"
#include "leat/log/group_room.hpp"
#include "leat/log/repair.hpp"
#include "leat/log/segment_memory.hpp"

namespace leat::inline v0::detail {

// The entry of a segment that is live (between oldest_segment and current) while this is called. `corrupt`
// also when it is not.
inline Result<SegmentPlace> find_segment(const SharedTopic& topic, const PartitionView& view,
                                         std::uint64_t number) noexcept {
  const Geometry& geometry = topic.geometry();
  const SegmentEntry& entry = view.entry(number);
  // [segment-map] acquire: the base was stored before the map.
  const std::uint64_t map = load_acquire<Edge::segment_map>(entry.map);
  const SegmentPlace place{map >> kPhysicalBits, map & kPhysicalMask,
                           load_relaxed<Why::stored_before>(entry.base_offset)};
  if (place.number != number || place.physical >= geometry.segment_count) return Errc::corrupt;
  return place;
}

// Why there was no room.
struct Shortage {
  bool by_readers = false;   // some gating subscriber holds the oldest segment
  bool by_groups = false;    // some group needs room that it has, or did not give back
  bool by_members = false;   // of these, members of the calling thread
  bool by_others = false;    // not only subscribers and members of the calling thread
  bool by_unpolled = false;  // one that this thread made, and that nobody has polled yet
};

enum class RollState {
  moved,  // the claim word has changed: look at it again
  full,   // the next segment can't be had now; see Shortage
};

class Roller {
 public:
  Roller(SharedTopic& topic, std::uint32_t partition, std::uint32_t own_slot) noexcept
      : topic_{topic},
        view_{topic.partition(partition)},
        partition_{partition},
        own_slot_{own_slot} {}

  // Opens the segment after the one that the claim word is in, if there is room for it and so many
  // granules do not fit any more.
  Result<RollState> roll(std::uint64_t granules, Shortage& shortage) {
    const ClaimLayout& layout = geometry().claim_layout;
    const ChoiceEnds choice_ends{view_.slots[own_slot_]};
    LEAT_CRASH_POINT("roll:begun");
    const std::optional<ClaimPoint> point = load_claim_point(*view_.control, layout);
    if (!point) return Errc::corrupt;
    std::uint64_t claim = point->word;
    const std::uint64_t current = point->segment;
    if (!ClaimLayout::is_closed(claim) &&
        layout.granules(claim) + granules <= geometry().segment_granules) {
      return RollState::moved;
    }

    const std::uint64_t next = current + 1;
    const FoundEntry found = look_at_entry(next);
    std::uint64_t physical = kNoRoom;
    if (!found.is_mapped) {
      auto room = room_behind(current, shortage);
      if (!room) return room.error();
      if (*room == kNoRoom) return why_no_room(current, shortage);
      physical = *room;
    }
    if (!close(claim)) return RollState::moved;
    // [segment-map] acquire
    const std::uint64_t base =
        load_acquire<Edge::segment_map>(view_.entry(current).base_offset) + layout.records(claim);
    // All of the above is of one moment if the segment is still the current one.
    if (load_acquire<Edge::segment_open>(view_.control->current) != current)
      return RollState::moved;
    if (!found.is_mapped) prepare(found, next, base, claim, physical);
    return open({claim, current}, next);
  }

  // Turns the gating subscribers that hold the oldest segment into lossy ones.
  void evict_blockers() noexcept {
    const std::uint64_t start = load_seq_cst<Edge::retire>(view_.control->oldest_segment);
    for (std::uint32_t i = 0; i < topic_.participant_high(); ++i) {
      if (role_of(load_seq_cst<Edge::slot>(topic_.participant(i).state)) !=
          ParticipantRole::subscriber) {
        continue;
      }
      PartitionSlot& slot = view_.slots[i];
      if (load_seq_cst<Edge::retire>(slot.cursor_segment) > start) continue;
      // [retire] seq_cst: after this only the segment that the cursor names is held; the subscriber
      // names a segment first and then looks at its mode.
      std::uint64_t mode = static_cast<std::uint64_t>(ReaderMode::gating);
      compare_exchange<Edge::retire>(slot.reader_mode, mode,
                                     static_cast<std::uint64_t>(ReaderMode::evicted));
    }
    topic_.wake_everybody();
  }

 private:
  friend class Shrinker;
  static constexpr std::uint64_t kNoRoom = kNoSegment;
  enum class Hold { none, by_reader, by_pin, by_announcement };

  const Geometry& geometry() const noexcept { return topic_.geometry(); }

  // The entry of the next segment, as it was before room was looked for.
  struct FoundEntry {
    std::uint64_t base = 0;
    std::uint64_t end = 0;
    std::uint64_t map = 0;
    bool is_mapped = false;  // It is the next segment's: somebody has prepared it.
  };
  FoundEntry look_at_entry(std::uint64_t next) const noexcept {
    const SegmentEntry& entry = view_.entry(next);
    FoundEntry found;
    // [segment-map] acquire
    found.map = load_acquire<Edge::segment_map>(entry.map);

    found.base = load_relaxed<Why::swap_checks>(entry.base_offset);
    found.end = load_relaxed<Why::swap_checks>(entry.previous_end);
    found.is_mapped = found.map >> kPhysicalBits >= next;
    return found;
  }

  // A physical segment for the one after `current`, or kNoRoom.
  Result<std::uint64_t> room_behind(std::uint64_t current, Shortage& shortage) {
    auto found = geometry().grows() ? choose_room(current, shortage) : find_room(current, shortage);
    if (found && group_error_.code != Errc::ok) return group_error_;
    return found;
  }
  RollState why_no_room(std::uint64_t current, Shortage& shortage) {
    // [segment-open] acquire. Nothing was free for the segment after `current`; if others have
    // opened that meanwhile, it says nothing about now.
    if (load_acquire<Edge::segment_open>(view_.control->current) != current)
      return RollState::moved;
    if (shortage.by_groups && !shortage.by_others) name_holders(shortage);
    return RollState::full;
  }

  // No claim fits behind this one any more, whoever makes it: the segment's count is final. False if
  // somebody claimed meanwhile.
  bool close(std::uint64_t& claim) noexcept {
    if (ClaimLayout::is_closed(claim)) return true;
    std::uint64_t expected = claim;
    if (!compare_exchange<Edge::claim>(view_.control->claim, expected,
                                       claim | ClaimLayout::kClosed)) {
      return false;
    }
    claim |= ClaimLayout::kClosed;
    LEAT_CRASH_POINT("roll:closed");
    return true;
  }

  // Says in the entry where the next segment lies, and with which offset it begins.
  void prepare(const FoundEntry& found, std::uint64_t next, std::uint64_t base, std::uint64_t end,
               std::uint64_t physical) noexcept {
    SegmentEntry& entry = view_.entry(next);
    // [segment-map] 128 bits, before the map. A base never comes back, so this takes effect once.
    if (found.base != base || found.end != end) {
      compare_exchange_pair<Edge::segment_map>(&entry.base_offset, {found.base, found.end},
                                               {base, end});
    }
    LEAT_CRASH_POINT("roll:base");
    std::uint64_t map = found.map;
    compare_exchange<Edge::segment_map>(entry.map, map, next << kPhysicalBits | physical);
    LEAT_CRASH_POINT("roll:mapped");
  }

  // Lets publishers claim in the next segment, which somebody has prepared. `closed`: where the claims
  // of the last one end.
  Result<RollState> open(const ClaimPoint& closed, std::uint64_t next) noexcept {
    // [segment-map] acquire. Whoever won: its choice counts.
    const std::uint64_t map = load_acquire<Edge::segment_map>(view_.entry(next).map);
    if (map >> kPhysicalBits != next) return RollState::moved;
    if ((map & kPhysicalMask) >= geometry().segment_count) return Errc::corrupt;
    raise(view_.physical[map & kPhysicalMask].last_segment, next);
    LEAT_CRASH_POINT("roll:recorded");
    // [segment-open] seq_cst, 128 bits: only the very segment that was prepared is opened.
    compare_exchange_pair<Edge::segment_open>(&view_.control->claim, {closed.word, closed.segment},
                                              {geometry().claim_layout.pack(next, 0, 0), next});
    LEAT_CRASH_POINT("roll:opened");
    return RollState::moved;
  }

  // Also clears kNoMemory; whoever set it will see the segment being prepared and keep its memory.
  static void raise(std::uint64_t& word, std::uint64_t to) noexcept {
    std::uint64_t seen = load_relaxed<Why::swap_checks>(word);
    while ((seen & ~kNoMemory) < to && !compare_exchange<Edge::segment_open>(word, seen, to)) {
    }
  }

  // From when a publisher has chosen a physical segment until its roll() ends.
  class ChoiceEnds {
   public:
    explicit ChoiceEnds(PartitionSlot& slot) noexcept : choice_{slot.choice} {}
    ChoiceEnds(const ChoiceEnds&) = delete;
    ChoiceEnds& operator=(const ChoiceEnds&) = delete;
    ~ChoiceEnds() {
      // relaxed: own word. [segment_memory] release: the segment's entry before.
      if (load_relaxed<Why::own>(choice_) != 0) store_release<Edge::segment_memory>(choice_, 0);
    }

   private:
    std::uint64_t& choice_;
  };

  // Policy grow: finds room or adds some; what is found keeps its memory until roll() ends.
  Result<std::uint64_t> choose_room(std::uint64_t current, Shortage& shortage) {
    for (std::uint32_t i = 0; i < kManyMoves; ++i) {
      auto found = find_room(current, shortage);
      if (found) *found = grow(current, *found);
      if (!found || *found == kNoRoom) return found;
      // [segment_memory] seq_cst: named before the mark is looked at; whoever marks looks at choices then.
      (void)exchange<Edge::segment_memory>(view_.slots[own_slot_].choice, *found + 1);
      LEAT_CRASH_POINT("grow:chosen");
      if ((load_seq_cst<Edge::segment_memory>(view_.physical[*found].last_segment) & kNoMemory) ==
          0)
        return found;
    }
    return Errc::corrupt;
  }

  // Given what find_room() found: adds a segment if there is none, or few are left.
  std::uint64_t grow(std::uint64_t current, std::uint64_t found) {
    SegmentMemory memory{topic_, partition_};
    if (found != kNoRoom && !is_low(current, memory.count())) return found;
    const std::uint64_t added = memory.add();
    return found != kNoRoom ? found : added;
  }

  // Whether, of so many segments with memory, at most grow_below are free: not needed by a gating
  // subscriber, and not the current one.
  bool is_low(std::uint64_t current, std::uint64_t count) {
    // Segments from `oldest` to `current` are needed, so count - (current + 1 - oldest) are free.
    const std::uint64_t full = current + 1 + geometry().grow_below;
    if (full < count) return false;
    const std::uint64_t oldest = full - count;
    // [retire] seq_cst: no cursor is below oldest_segment.
    if (oldest < load_seq_cst<Edge::retire>(view_.control->oldest_segment)) return false;
    Shortage unused;
    return is_held(oldest, true, unused);
  }

  // A physical segment that nobody needs, retiring the oldest if it must.
  Result<std::uint64_t> find_room(std::uint64_t current, Shortage& shortage) {
    for (std::uint32_t round = 0; round <= geometry().segment_count; ++round) {
      // [retire] seq_cst: oldest_segment was moved before the slots are looked at, here or by who moved it.
      std::uint64_t start = load_seq_cst<Edge::retire>(view_.control->oldest_segment);
      for (std::uint64_t i = 0; i < geometry().segment_count; ++i) {
        const std::uint64_t last = load_acquire<Edge::segment_open>(view_.physical[i].last_segment);
        if (last < start && (last == 0 || !is_held(last, false, shortage))) return i;
      }
      if ((geometry().flags & kRetainAll) != 0 || start >= current) return kNoRoom;
      if (is_held(start, true, shortage)) return kNoRoom;
      // [retire] seq_cst. Readers who come now begin behind it; see is_held for who came before.
      compare_exchange<Edge::retire>(view_.control->oldest_segment, start, start + 1);
      LEAT_CRASH_POINT("roll:retired");
    }
    return kNoRoom;
  }

  // Whether a living participant needs `segment`. With `only_cursors`: whether it may not even be
  // retired; pins and claims do not prevent that, they only keep the memory from being reused.
  bool is_held(std::uint64_t segment, bool only_cursors, Shortage& shortage) {
    bool held = false;
    bool is_announced = false;  // By somebody who may have claimed nothing.
    for (std::uint32_t i = 0; i < topic_.participant_high(); ++i) {
      ParticipantSlot& participant = topic_.participant(i);
      // [slot] seq_cst: a joiner names its segment, takes the slot, then looks at oldest_segment.
      const std::uint64_t state = load_seq_cst<Edge::slot>(participant.state);
      if (state == 0) continue;
      const Hold hold = hold_of(i, state, segment, only_cursors);
      if (hold == Hold::none) continue;
      if (hold == Hold::by_announcement) {
        is_announced = true;
        continue;
      }
      if (i != own_slot_ && is_dead(topic_, state) &&
          Repair{topic_, partition_, own_slot_}.reap(i, state)) {
        continue;
      }
      held = true;
      if (hold == Hold::by_reader) {
        shortage.by_readers = true;
        // relaxed: who owns a slot does not change while it is taken.
        const std::uint64_t thread = load_relaxed<Why::stored_before>(participant.thread);
        if (load_relaxed<Why::stored_before>(participant.process) == process_token() &&
            (thread & ~kNotPolledYet) == thread_token()) {
          if ((thread & kNotPolledYet) != 0) shortage.by_unpolled = true;
          continue;
        }
      }
      shortage.by_others = true;
    }
    // After the participants: who makes or moves a group holds the room as a subscriber until the
    // group holds it. [group]
    auto needed = GroupRoom{topic_, partition_}.is_needed(segment, only_cursors);
    if (!needed) group_error_ = needed.error();
    if (!needed || *needed) held = shortage.by_groups = true;
    if (held || only_cursors) return held;
    // Pins once more: whoever pinned a segment that is retired has seen somebody who still reads it, and
    // who may have left since.
    if (is_pinned(segment) || (is_announced && !withdraw_claims(segment))) {
      shortage.by_others = true;
      return true;
    }
    return false;
  }

  bool is_pinned(std::uint64_t segment) const noexcept {
    for (std::uint32_t i = 0; i < topic_.participant_high(); ++i) {
      const PartitionSlot& slot = view_.slots[i];
      // [retire] seq_cst
      if (load_seq_cst<Edge::retire>(slot.pin) != segment &&
          load_seq_cst<Edge::retire>(slot.repair_pin) != segment) {
        continue;
      }
      const std::uint64_t state = load_seq_cst<Edge::slot>(topic_.participant(i).state);
      if (state != 0 && !is_dead(topic_, state)) return true;
    }
    return false;
  }

  // Withdraws what was announced in a retired segment and is not marked as claimed, so that whoever
  // stopped there holds nothing. False if some claim is marked meanwhile, or can't be withdrawn.
  bool withdraw_claims(std::uint64_t segment) {
    for (std::uint32_t i = 0; i < topic_.participant_high(); ++i) {
      const std::uint64_t state = load_seq_cst<Edge::slot>(topic_.participant(i).state);
      if (!withdraw_claim(i, state, segment)) return false;
    }
    return true;
  }
  bool withdraw_claim(std::uint32_t index, std::uint64_t state, std::uint64_t segment) {
    for (int attempt = 0; attempt < 100; ++attempt) {
      const Hold hold = hold_of(index, state, segment, false);
      if (hold != Hold::by_announcement) return hold == Hold::none;
      const std::optional<ClaimFacts> facts = read_claim(view_.slots[index]);
      if (!facts || facts->claim_phase() != kClaiming) continue;  // It has gone on: look again.
      const Withdrawal withdrawal = withdraw(view_.slots[index], *facts);
      return withdrawal == Withdrawal::done || withdrawal == Withdrawal::is_over;
    }
    return false;
  }

  // Asks who of the groups could make room; only when nobody else stands in the way.
  void name_holders(Shortage& shortage) {
    const GroupRoom::Holders holders = GroupRoom{topic_, partition_}.holders();
    shortage.by_members = holders.mine;
    shortage.by_others = holders.others || !holders.mine;
    shortage.by_unpolled = shortage.by_unpolled || holders.unpolled;
  }

  Hold hold_of(std::uint32_t index, std::uint64_t state, std::uint64_t segment,
               bool only_cursors) const noexcept {
    const PartitionSlot& slot = view_.slots[index];
    if (is_gated_by(slot, state, segment)) return Hold::by_reader;
    if (only_cursors) return Hold::none;
    // [cursor], [retire] seq_cst: what the subscriber read before it moved its cursor is read.
    if (role_of(state) == ParticipantRole::subscriber &&
        load_seq_cst<Edge::retire>(slot.reader_mode) ==
            static_cast<std::uint64_t>(ReaderMode::evicted) &&
        load_seq_cst<Edge::cursor>(slot.cursor_segment) == segment) {
      return Hold::by_pin;
    }
    if (load_seq_cst<Edge::retire>(slot.pin) == segment) return Hold::by_pin;
    if (load_seq_cst<Edge::retire>(slot.repair_pin) == segment) return Hold::by_pin;
    if (is_publisher(state) && index != own_slot_) return hold_of_claim(slot, state, segment);
    return Hold::none;
  }

  // A marked claim holds its segment until it is committed. A claim that is only announced may be made
  // or not; it was announced before the segment could be closed.
  Hold hold_of_claim(const PartitionSlot& slot, std::uint64_t state,
                     std::uint64_t segment) const noexcept {
    // [intent] acquire
    const auto phase = static_cast<ClaimPhase>(load_acquire<Edge::intent>(slot.phase) & kPhaseMask);
    if (phase == kIdle) return Hold::none;
    // An exclusive publisher does not mark its claims: nobody else makes any.
    if (phase == kClaimed || role_of(state) == ParticipantRole::exclusive_publisher) {
      return load_acquire<Edge::intent>(slot.claim_segment) == segment ? Hold::by_pin : Hold::none;
    }
    const ClaimLayout& layout = geometry().claim_layout;
    return layout.segment(load_acquire<Edge::intent>(slot.claim_word)) ==
                   layout.truncate_segment(segment)
               ? Hold::by_announcement
               : Hold::none;
  }

  SharedTopic& topic_;
  PartitionView view_;
  std::uint32_t partition_;
  std::uint32_t own_slot_;
  Error group_error_;  // Some group's file can't be used.
};

}  // namespace leat::inline v0::detail
