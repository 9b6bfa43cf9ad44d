// Moving on to the next segment: finding room, and opening it.
//
// No step holds a lock. Whoever comes to the end of a segment takes every step that is not taken
// yet; each is a compare-and-swap on a word that only grows, so a helper that was stopped for a week
// changes nothing when it goes on. docs/internals/log.md, "Rolling".
#pragma once

#include "leat/log/repair.hpp"
#include "leat/log/supply.hpp"

namespace leat::detail {

// Where the bytes of a segment are, and which offset it begins with.
struct SegmentPlace {
  std::uint64_t number = 0;
  std::uint64_t physical = 0;
  std::uint64_t base_offset = 0;
};

// The entry of a segment that is live (between start and current) while this is called. `corrupt`
// also when it is not.
inline Result<SegmentPlace> find_segment(const SharedTopic& topic, const PartitionView& view,
                                         std::uint64_t number) noexcept {
  const Geometry& geometry = topic.geometry();
  const SegmentEntry& entry = view.entries[number & (geometry.entry_count - 1)];
  // [segment-map] acquire: the base was stored before the map.
  const std::uint64_t map = load_acquire<Edge::segment_map>(entry.map);
  const SegmentPlace place{map >> kPhysicalBits, map & kPhysicalMask,
                           load_relaxed(entry.base_offset)};
  if (place.number != number || place.physical >= geometry.segment_count) return Errc::corrupt;
  return place;
}

// More changes under one's hands than living participants make: the words are scribbled on.
inline constexpr std::uint32_t kManyMoves = 100'000;

// Why there was no room.
struct Shortage {
  bool by_readers = false;   // some gating subscriber holds the oldest segment
  bool by_others = false;    // not only subscribers of the calling thread
  bool by_unpolled = false;  // one that this thread made, and that nobody has polled yet
};

enum class RollState {
  moved,  // the claim word has changed: look at it again
  full,   // the next segment can't be had now; see Shortage
};

class Roller {
 public:
  Roller(SharedTopic& topic, std::uint32_t partition, std::uint32_t self) noexcept
      : topic_{topic}, view_{topic.partition(partition)}, partition_{partition}, self_{self} {}

  // Opens the segment after the one that the claim word is in, if there is room for it.
  Result<RollState> roll(Shortage& shortage) {
    const ClaimLayout& layout = geometry().claim_layout;
    const ChoiceEnds choice_ends{view_.slots[self_]};
    // [claim] acquire, then [segment-open] acquire.
    std::uint64_t claim = load_acquire<Edge::claim>(view_.control->claim);
    const std::uint64_t current = load_acquire<Edge::segment_open>(view_.control->current);
    if (layout.truncate_segment(current) != layout.segment(claim)) return RollState::moved;

    const std::uint64_t next = current + 1;
    SegmentEntry& entry = view_.entries[next & (geometry().entry_count - 1)];
    std::uint64_t old_map = load_acquire<Edge::segment_map>(entry.map);
    std::uint64_t old_base = load_relaxed(entry.base_offset);  // relaxed: the swap checks it
    std::uint64_t physical = 0;
    if (old_map >> kPhysicalBits < next) {
      auto found =
          geometry().grows() ? choose_room(current, shortage) : find_room(current, shortage);
      if (!found) return found.error();
      if (group_error_.code != Errc::ok) return group_error_;
      if (*found == kNoRoom) {
        // [segment-open] acquire. Nothing was free for the segment after `current`; if others have
        // opened that meanwhile, it says nothing about now.
        const bool stale = load_acquire<Edge::segment_open>(view_.control->current) != current;
        return stale ? RollState::moved : RollState::full;
      }
      physical = *found;
    }

    if (!ClaimLayout::is_closed(claim)) {
      // No claim fits behind this one any more, whoever makes it: the segment's count is final.
      if (!compare_exchange<Edge::claim>(view_.control->claim, claim,
                                         claim | ClaimLayout::kClosed)) {
        return RollState::moved;
      }
      claim |= ClaimLayout::kClosed;
      LEAT_STEP("roll:closed");
    }
    const SegmentEntry& here = view_.entries[current & (geometry().entry_count - 1)];
    const std::uint64_t base =
        load_acquire<Edge::segment_map>(here.base_offset) + layout.records(claim);
    // All of the above is of one moment if the segment is still the current one.
    if (load_acquire<Edge::segment_open>(view_.control->current) != current)
      return RollState::moved;

    if (old_map >> kPhysicalBits < next) {
      // [segment-map] the base before the map.
      if (old_base != base) compare_exchange<Edge::segment_map>(entry.base_offset, old_base, base);
      LEAT_STEP("roll:base");
      compare_exchange<Edge::segment_map>(entry.map, old_map, next << kPhysicalBits | physical);
      LEAT_STEP("roll:mapped");
    }
    // Whoever won: its choice counts.
    const std::uint64_t map = load_acquire<Edge::segment_map>(entry.map);
    if (map >> kPhysicalBits != next) return RollState::moved;
    if ((map & kPhysicalMask) >= geometry().segment_count) return Errc::corrupt;
    raise(view_.physical[map & kPhysicalMask].last_segment, next);
    LEAT_STEP("roll:recorded");

    // [segment-open] seq_cst, 128 bits: only the very segment that was prepared is opened.
    compare_exchange_pair<Edge::segment_open>(&view_.control->claim, {claim, current},
                                              {layout.pack(next, 0, 0), next});
    LEAT_STEP("roll:opened");
    return RollState::moved;
  }

  // Turns the gating subscribers that hold the oldest segment into lossy ones.
  void evict_blockers() noexcept {
    const std::uint64_t start = load_seq_cst<Edge::retire>(view_.control->start);
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
  enum class Hold { none, by_reader, by_pin };

  const Geometry& geometry() const noexcept { return topic_.geometry(); }

  // A mark goes: whoever set it leaves the memory of a segment that is prepared alone.
  static void raise(std::uint64_t& word, std::uint64_t to) noexcept {
    std::uint64_t seen = load_relaxed(word);  // relaxed: the swap checks it
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
      // relaxed: own word. [supply] release: the segment's entry before.
      if (load_relaxed(choice_) != 0) store_release<Edge::supply>(choice_, 0);
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
      // [supply] seq_cst: named before the mark is looked at; whoever marks looks at choices then.
      (void)exchange<Edge::supply>(view_.slots[self_].choice, *found + 1);
      LEAT_STEP("grow:chosen");
      if ((load_seq_cst<Edge::supply>(view_.physical[*found].last_segment) & kNoMemory) == 0)
        return found;
    }
    return Errc::corrupt;
  }

  // Given what find_room() found: adds a segment if there is none, or few are left.
  std::uint64_t grow(std::uint64_t current, std::uint64_t found) {
    Supply supply{topic_, partition_};
    if (found != kNoRoom && !is_low(current, supply.count())) return found;
    const std::uint64_t added = supply.add();
    return found != kNoRoom ? found : added;
  }

  // Whether, of so many segments with memory, at most grow_below are free: not needed by a gating
  // subscriber, and not the current one.
  bool is_low(std::uint64_t current, std::uint64_t count) {
    // Segments from `oldest` to `current` are needed, so count - (current + 1 - oldest) are free.
    const std::uint64_t full = current + 1 + geometry().grow_below;
    if (full < count) return false;
    const std::uint64_t oldest = full - count;
    // [retire] seq_cst: no cursor is below start.
    if (oldest < load_seq_cst<Edge::retire>(view_.control->start)) return false;
    Shortage unused;
    return is_held(oldest, true, unused);
  }

  // A physical segment that nobody needs, retiring the oldest if it must.
  Result<std::uint64_t> find_room(std::uint64_t current, Shortage& shortage) {
    for (std::uint32_t round = 0; round <= geometry().segment_count; ++round) {
      // [retire] seq_cst: start was moved before the slots are looked at, here or by who moved it.
      std::uint64_t start = load_seq_cst<Edge::retire>(view_.control->start);
      for (std::uint64_t i = 0; i < geometry().segment_count; ++i) {
        const std::uint64_t last = load_acquire<Edge::segment_open>(view_.physical[i].last_segment);
        if (last < start && (last == 0 || !is_held(last, false, shortage))) return i;
      }
      if ((geometry().flags & kRetainAll) != 0 || start >= current) return kNoRoom;
      if (is_held(start, true, shortage)) return kNoRoom;
      // [retire] seq_cst. Readers who come now begin behind it; see is_held for who came before.
      compare_exchange<Edge::retire>(view_.control->start, start, start + 1);
      LEAT_STEP("roll:retired");
    }
    return kNoRoom;
  }

  // Whether a living participant needs `segment`. With `only_cursors`: whether it may not even be
  // retired; pins and claims do not prevent that, they only keep the memory from being reused.
  bool is_held(std::uint64_t segment, bool only_cursors, Shortage& shortage) {
    bool held = false;
    for (std::uint32_t i = 0; i < topic_.participant_high(); ++i) {
      ParticipantSlot& participant = topic_.participant(i);
      // [slot] seq_cst: a joiner names its segment, takes the slot, then looks at start.
      const std::uint64_t state = load_seq_cst<Edge::slot>(participant.state);
      if (state == 0) continue;
      const Hold hold = hold_of(i, state, segment, only_cursors);
      if (hold == Hold::none) continue;
      if (i != self_ && is_dead(topic_, state) &&
          Repair{topic_, partition_, self_}.reap(i, state)) {
        continue;
      }
      held = true;
      if (hold == Hold::by_reader) {
        shortage.by_readers = true;
        // relaxed: who owns a slot does not change while it is taken.
        const std::uint64_t thread = load_relaxed(participant.thread);
        if (load_relaxed(participant.process) == process_token() &&
            (thread & ~kNotPolledYet) == thread_token()) {
          if ((thread & kNotPolledYet) != 0) shortage.by_unpolled = true;
          continue;
        }
      }
      shortage.by_others = true;
    }
    // After the participants: who makes or moves a group holds the room as a subscriber until the
    // group holds it. [group]
    if (group_needs(segment, only_cursors)) {
      held = true;
      shortage.by_others = true;
    }
    return held;
  }

  // Whether a consumer group needs `segment`: it has not claimed all of it, or a member still holds a
  // record there. The cursor is looked at first: what it has passed has its holds.
  bool group_needs(std::uint64_t segment, bool only_cursors) {
    for (std::uint32_t slot = 0; slot < kMaxGroups; ++slot) {
      if (topic_.group_number(slot) == 0) continue;
      auto group = topic_.group(slot);
      if (!group) {
        group_error_ = group.error();
        return true;
      }
      if (*group == nullptr) continue;
      if ((*group)->is_before(partition_, segment)) return true;
      if (!only_cursors && (*group)->has_hold_in(partition_, segment)) return true;
    }
    return false;
  }

  Hold hold_of(std::uint32_t index, std::uint64_t state, std::uint64_t segment,
               bool only_cursors) const noexcept {
    const PartitionSlot& slot = view_.slots[index];
    if (role_of(state) == ParticipantRole::subscriber) {
      // [cursor], [retire] seq_cst: what the subscriber read before it moved its cursor is read.
      const std::uint64_t mode = load_seq_cst<Edge::retire>(slot.reader_mode);
      const std::uint64_t cursor = load_seq_cst<Edge::cursor>(slot.cursor_segment);
      if (mode == static_cast<std::uint64_t>(ReaderMode::gating) && cursor <= segment) {
        return Hold::by_reader;
      }
      if (only_cursors) return Hold::none;
      if (mode == static_cast<std::uint64_t>(ReaderMode::evicted) && cursor == segment) {
        return Hold::by_pin;
      }
    }
    if (only_cursors) return Hold::none;
    if (load_seq_cst<Edge::retire>(slot.pin) == segment) return Hold::by_pin;
    if (load_seq_cst<Edge::retire>(slot.repair_pin) == segment) return Hold::by_pin;
    if (is_publisher(state) && index != self_) {
      // [intent] acquire: a claim in a segment was announced before the segment could be closed.
      const ClaimLayout& layout = geometry().claim_layout;
      if ((load_acquire<Edge::intent>(slot.phase) & kPhaseMask) != kIdle &&
          layout.segment(load_acquire<Edge::intent>(slot.claim_word)) ==
              layout.truncate_segment(segment)) {
        return Hold::by_pin;
      }
    }
    return Hold::none;
  }

  SharedTopic& topic_;
  PartitionView view_;
  std::uint32_t partition_;
  std::uint32_t self_;
  Error group_error_;  // Some group's file can't be used.
};

}  // namespace leat::detail
