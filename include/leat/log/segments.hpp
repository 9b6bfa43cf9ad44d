// Rolling to the next segment: finding room, and opening it.
//
// No step takes a lock. A publisher that comes to the end of a segment performs all steps that are
// not done yet. Each is a compare-and-swap on a word that only grows, so a publisher that was
// stopped in between, for however long, changes nothing when it continues.
// docs/internals/log.md, "Rolling".
#pragma once

#include "leat/log/current_segment.hpp"
#include "leat/log/group_room.hpp"
#include "leat/log/repair.hpp"
#include "leat/log/segment_memory.hpp"

namespace leat::inline v0::detail {

// Reads the entry of a segment, for a caller that checks afterwards that the segment is still live (between
// oldest_segment and current), or prepared. `corrupt` also if it is not.
inline Result<SegmentPlace> read_entry(const MappedTopic& topic, const PartitionView& view,
                                       std::uint64_t number) noexcept {
  const SegmentEntry& entry = view.entry(number);
  // [segment-map] acquire, both: the base was stored before the map, and both are read before it is
  // checked whose they are.
  const std::uint64_t map = load_acquire<Edge::segment_map>(entry.map);
  const SegmentPlace place{map >> kPhysicalBits, map & kPhysicalMask,
                           load_acquire<Edge::segment_map>(entry.base_offset)};
  if (number == 0 || place.number != number || place.physical >= topic.geometry().segment_count)
    return Errc::corrupt;
  return place;
}

// The same, with the check. It reads the cache line of the claim word, which slows publishers down.
inline Result<SegmentPlace> find_segment(const MappedTopic& topic, const PartitionView& view,
                                         std::uint64_t number) noexcept {
  auto place = read_entry(topic, view, number);
  if (place && !has_own_entry(topic.geometry(), view, number)) return Errc::corrupt;
  return place;
}

// Why there was no room.
struct Shortage {
  bool by_readers = false;   // a gating subscriber holds the oldest segment
  bool by_own_pins = false;  // a subscriber of the calling thread uses a segment in place
  bool by_groups = false;    // a group holds a segment
  bool by_members = false;   // the groups' holders include members of the calling thread
  bool by_others = false;    // also somebody other than the calling thread
  bool by_unpolled = false;  // a reader that this thread made and nobody has polled yet
};

enum class RollState {
  moved,  // the claim word has changed: read it again
  full,   // there is no room for the next segment now; see Shortage
};

class Roller {
 public:
  Roller(MappedTopic& topic, std::uint32_t partition, std::uint32_t own_slot) noexcept
      : topic_{topic},
        view_{topic.partition(partition)},
        partition_{partition},
        own_slot_{own_slot} {}

  // If `granules` no longer fit in the claim word's segment, opens the next one, if there is room.
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
    const FoundEntry found = read_entry(next);
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
    // Everything read above is of one moment if this segment is still the current one.
    if (load_acquire<Edge::segment_open>(view_.control->current) != current)
      return RollState::moved;
    if (!found.is_mapped) prepare(found, next, base, claim, physical);
    return open({claim, current}, next);
  }

  // Makes the gating subscribers that hold the oldest segment lossy.
  void evict_blockers() noexcept {
    const std::uint64_t oldest = load_seq_cst<Edge::retire>(view_.control->oldest_segment);
    for (std::uint32_t i = 0; i < topic_.participant_high(); ++i) {
      if (role_of(load_seq_cst<Edge::slot>(topic_.participant(i).state)) !=
          ParticipantRole::subscriber) {
        continue;
      }
      PartitionSlot& slot = view_.slots[i];
      if (load_seq_cst<Edge::retire>(slot.cursor_segment) > oldest) continue;
      // [retire] seq_cst: from here on the subscriber holds only the segment that its cursor names;
      // it stores its cursor first and then reads its mode.
      std::uint64_t mode = static_cast<std::uint64_t>(ReaderMode::gating);
      compare_exchange<Edge::retire>(slot.reader_mode, mode,
                                     static_cast<std::uint64_t>(ReaderMode::evicted));
    }
    topic_.wake_everybody();
  }

 private:
  friend class Shrinker;
  friend class RoomHolders;
  static constexpr std::uint64_t kNoRoom = kNoSegment;
  enum class Holder { none, reader, pin, claim, repair, announcement };

  const Geometry& geometry() const noexcept { return topic_.geometry(); }

  // The next segment's entry, as it was before room was searched.
  struct FoundEntry {
    std::uint64_t base = 0;
    std::uint64_t end = 0;
    std::uint64_t map = 0;
    bool is_mapped = false;  // Somebody has already prepared the next segment.
  };
  FoundEntry read_entry(std::uint64_t next) const noexcept {
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
    // [segment-open] acquire. If others have opened the next segment since, the search result says
    // nothing about now.
    if (load_acquire<Edge::segment_open>(view_.control->current) != current)
      return RollState::moved;
    if (shortage.by_groups && !shortage.by_others) name_holders(shortage);
    return RollState::full;
  }

  // Closes the segment: no more claims, so its record count is final. False if somebody
  // claimed meanwhile.
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

  // Stores the next segment's first offset and physical segment in its entry.
  void prepare(const FoundEntry& found, std::uint64_t next, std::uint64_t base, std::uint64_t end,
               std::uint64_t physical) noexcept {
    SegmentEntry& entry = view_.entry(next);
    // [segment-map] seq_cst, 128 bits, before the map. A base never repeats, so this takes
    // effect at most once.
    if (found.base != base || found.end != end) {
      compare_exchange_pair<Edge::segment_map>(&entry.base_offset, {found.base, found.end},
                                               {base, end});
    }
    LEAT_CRASH_POINT("roll:base");
    std::uint64_t map = found.map;
    compare_exchange<Edge::segment_map>(entry.map, map, next << kPhysicalBits | physical);
    LEAT_CRASH_POINT("roll:mapped");
  }

  // Opens the next segment, which somebody has prepared. `closed` is the end of the previous one.
  Result<RollState> open(const ClaimPoint& closed, std::uint64_t next) noexcept {
    // [segment-map] acquire. Use the choice of the publisher that prepared it.
    const std::uint64_t map = load_acquire<Edge::segment_map>(view_.entry(next).map);
    if (map >> kPhysicalBits != next) return RollState::moved;
    if ((map & kPhysicalMask) >= geometry().segment_count) return Errc::corrupt;
    raise(view_.physical[map & kPhysicalMask].last_segment, next);
    LEAT_CRASH_POINT("roll:recorded");
    // [segment-open] seq_cst, 128 bits: opens exactly the segment that was prepared.
    compare_exchange_pair<Edge::segment_open>(&view_.control->claim, {closed.word, closed.segment},
                                              {geometry().claim_layout.pack(next, 0, 0), next});
    LEAT_CRASH_POINT("roll:opened");
    return RollState::moved;
  }

  // Also clears kNoMemory; the process that set it will see the segment being prepared and keep its memory.
  static void raise(std::uint64_t& word, std::uint64_t to) noexcept {
    std::uint64_t seen = load_relaxed<Why::swap_checks>(word);
    while ((seen & ~kNoMemory) < to && !compare_exchange<Edge::segment_open>(word, seen, to)) {
    }
  }

  // Ends this publisher's choice of a physical segment when roll() returns.
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

  // Policy grow: finds room, or adds memory. The segment found keeps its memory until roll() ends.
  Result<std::uint64_t> choose_room(std::uint64_t current, Shortage& shortage) {
    for (std::uint32_t i = 0; i < kManyMoves; ++i) {
      auto found = find_room(current, shortage);
      if (found) *found = grow(current, *found);
      if (!found || *found == kNoRoom) return found;
      // [segment_memory] seq_cst: stores the choice, then reads the mark; Shrinker marks, then
      // reads choices.
      (void)exchange<Edge::segment_memory>(view_.slots[own_slot_].choice, *found + 1);
      LEAT_CRASH_POINT("grow:chosen");
      if ((load_seq_cst<Edge::segment_memory>(view_.physical[*found].last_segment) & kNoMemory) ==
          0)
        return found;
    }
    return Errc::corrupt;
  }

  // Adds a segment if find_room() found none, or if few are left.
  std::uint64_t grow(std::uint64_t current, std::uint64_t found) {
    SegmentMemory memory{topic_, partition_};
    if (found != kNoRoom && !is_low(current, memory.count())) return found;
    const std::uint64_t added = memory.add();
    return found != kNoRoom ? found : added;
  }

  // Whether at most grow_below of `count` segments with memory are free, that is neither needed by
  // a gating subscriber or group, nor current.
  bool is_low(std::uint64_t current, std::uint64_t count) {
    // If `oldest` is needed, so is everything up to `current`, and at most count - (current + 1 -
    // oldest) = grow_below segments are free.
    const std::uint64_t full = current + 1 + geometry().grow_below;
    if (full < count) return false;
    const std::uint64_t oldest = full - count;
    // [retire] seq_cst: no cursor is below oldest_segment.
    if (oldest < load_seq_cst<Edge::retire>(view_.control->oldest_segment)) return false;
    Shortage unused;
    return is_held(oldest, true, unused);
  }

  // Finds a physical segment that nobody needs; retires the oldest segment if necessary.
  Result<std::uint64_t> find_room(std::uint64_t current, Shortage& shortage) {
    for (std::uint32_t round = 0; round <= geometry().segment_count; ++round) {
      // [retire] seq_cst: oldest_segment was moved, here or by another publisher, before
      // slots are read.
      std::uint64_t oldest = load_seq_cst<Edge::retire>(view_.control->oldest_segment);
      for (std::uint64_t i = 0; i < geometry().segment_count; ++i) {
        const std::uint64_t last = load_acquire<Edge::segment_open>(view_.physical[i].last_segment);
        if (last < oldest && (last == 0 || !is_held(last, false, shortage))) return i;
      }
      if ((geometry().flags & kRetainAll) != 0 || oldest >= current) return kNoRoom;
      if (is_held(oldest, true, shortage)) return kNoRoom;
      // [retire] seq_cst. Readers that join from now on begin behind it; see is_held
      // for earlier ones.
      compare_exchange<Edge::retire>(view_.control->oldest_segment, oldest, oldest + 1);
      LEAT_CRASH_POINT("roll:retired");
    }
    return kNoRoom;
  }

  // Whether a living participant or a group needs `segment`. With `only_cursors`: whether it
  // may not even be retired. Pins and claims do not prevent that; they only keep the memory
  // from being reused.
  bool is_held(std::uint64_t segment, bool only_cursors, Shortage& shortage) {
    if (!is_on_disk(segment)) {
      shortage.by_others = true;
      return true;
    }
    bool held = false;
    bool is_announced = false;  // By a publisher that may not have claimed.
    for (std::uint32_t i = 0; i < topic_.participant_high(); ++i) {
      ParticipantSlot& participant = topic_.participant(i);
      // [slot] seq_cst: a joiner stores its cursor, takes the slot, then reads oldest_segment.
      const std::uint64_t state = load_seq_cst<Edge::slot>(participant.state);
      if (state == 0) continue;
      const Holder holder = holder_of(i, state, segment, only_cursors);
      if (holder == Holder::none) continue;
      if (holder == Holder::announcement) {
        is_announced = true;
        continue;
      }
      if (i != own_slot_ && is_dead(topic_, state) &&
          Repair{topic_, partition_, own_slot_}.reap(i, state)) {
        continue;
      }
      held = true;
      if (holder == Holder::reader) shortage.by_readers = true;
      if ((holder != Holder::reader && holder != Holder::pin) ||
          !is_of_this_thread(participant, shortage)) {
        // It decides. To ask about all the others, too, takes a system call for each.
        shortage.by_others = true;
        return true;
      }
      if (holder == Holder::pin) shortage.by_own_pins = true;
    }
    // [group] After the participants: a process that creates or moves a group holds the room as a
    // subscriber until the group holds it.
    auto needed = GroupRoom{topic_, partition_}.is_needed(segment, only_cursors);
    if (!needed) group_error_ = needed.error();
    if (!needed || *needed) held = shortage.by_groups = true;
    if (held || only_cursors) return held;
    // Check pins last: a repairer pins a retired segment only if it sees a reader there, and that
    // reader may have left before the checks above.
    if (is_pinned(segment) || (is_announced && !withdraw_claims(segment))) {
      shortage.by_others = true;
      return true;
    }
    return false;
  }

  // Whether the calling thread polled a subscriber last, or made it and nobody has polled it yet.
  static bool is_of_this_thread(const ParticipantSlot& subscriber, Shortage& shortage) noexcept {
    // relaxed: a slot's owner does not change while it is taken.
    const std::uint64_t thread = load_relaxed<Why::stored_before>(subscriber.thread);
    if (load_relaxed<Why::stored_before>(subscriber.process) != process_token() ||
        (thread & ~kNotPolledYet) != thread_token()) {
      return false;
    }
    if ((thread & kNotPolledYet) != 0) shortage.by_unpolled = true;
    return true;
  }

  // Durable topics: whether a segment that is not the current one is as safe on disk as it has to be.
  bool is_on_disk(std::uint64_t segment) const noexcept {
    const DurableWindow* const durable = topic_.durable();
    if (durable == nullptr) return true;
    const SegmentEntry& next = view_.entry(segment + 1);
    // [segment-map] acquire
    if (load_acquire<Edge::segment_map>(next.map) >> kPhysicalBits != segment + 1) {
      // Its entry describes a later one: it was retired, and so was on disk.
      return load_acquire<Edge::segment_map>(next.map) >> kPhysicalBits > segment + 1;
    }
    return load_relaxed<Why::stored_before>(next.base_offset) <= durable->kept_from(partition_);
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

  // Withdraws all claims that are announced in a retired segment and not marked, so that a
  // stopped publisher does not hold the segment. False if a claim was marked meanwhile, or
  // cannot be withdrawn.
  bool withdraw_claims(std::uint64_t segment) {
    for (std::uint32_t i = 0; i < topic_.participant_high(); ++i) {
      const std::uint64_t state = load_seq_cst<Edge::slot>(topic_.participant(i).state);
      if (!withdraw_claim(i, state, segment)) return false;
    }
    return true;
  }
  bool withdraw_claim(std::uint32_t index, std::uint64_t state, std::uint64_t segment) {
    for (int attempt = 0; attempt < 100; ++attempt) {
      const Holder holder = holder_of(index, state, segment, false);
      if (holder != Holder::announcement) return holder == Holder::none;
      const std::optional<ClaimFacts> facts = read_claim(view_.slots[index]);
      if (!facts || facts->claim_phase() != kClaiming) continue;  // It has changed: read it again.
      const Withdrawal withdrawal = withdraw(view_.slots[index], *facts);
      return withdrawal == Withdrawal::done || withdrawal == Withdrawal::is_over;
    }
    return false;
  }

  // Finds out which members could make room. Only needed if only groups stand in the way.
  void name_holders(Shortage& shortage) {
    const GroupRoom::Holders holders = GroupRoom{topic_, partition_}.holders();
    shortage.by_members = holders.mine;
    shortage.by_others = holders.others || !holders.mine;
    shortage.by_unpolled = shortage.by_unpolled || holders.unpolled;
  }

  Holder holder_of(std::uint32_t index, std::uint64_t state, std::uint64_t segment,
                   bool only_cursors) const noexcept {
    const PartitionSlot& slot = view_.slots[index];
    if (is_gated_by(slot, state, segment)) return Holder::reader;
    if (only_cursors) return Holder::none;
    // [cursor], [retire] seq_cst: reads before the cursor moved are complete.
    if (role_of(state) == ParticipantRole::subscriber &&
        load_seq_cst<Edge::retire>(slot.reader_mode) ==
            static_cast<std::uint64_t>(ReaderMode::evicted) &&
        load_seq_cst<Edge::cursor>(slot.cursor_segment) == segment) {
      return Holder::pin;
    }
    if (load_seq_cst<Edge::retire>(slot.pin) == segment) return Holder::pin;
    if (load_seq_cst<Edge::retire>(slot.repair_pin) == segment) return Holder::repair;
    if (is_publisher(state) && index != own_slot_) return holder_of_claim(slot, state, segment);
    return Holder::none;
  }

  // A marked claim holds its segment until it is committed. A claim that is only announced may not
  // have been made; it was announced before the segment could be closed.
  Holder holder_of_claim(const PartitionSlot& slot, std::uint64_t state,
                         std::uint64_t segment) const noexcept {
    // [intent] acquire
    const auto phase = static_cast<ClaimPhase>(load_acquire<Edge::intent>(slot.phase) & kPhaseMask);
    if (phase == kIdle) return Holder::none;
    // An exclusive publisher does not mark its claims, because nobody else makes any.
    if (phase == kClaimed || role_of(state) == ParticipantRole::exclusive_publisher) {
      return load_acquire<Edge::intent>(slot.claim_segment) == segment ? Holder::claim
                                                                       : Holder::none;
    }
    const ClaimLayout& layout = geometry().claim_layout;
    return layout.segment(load_acquire<Edge::intent>(slot.claim_word)) ==
                   layout.truncate_segment(segment)
               ? Holder::announcement
               : Holder::none;
  }

  MappedTopic& topic_;
  PartitionView view_;
  std::uint32_t partition_;
  std::uint32_t own_slot_;
  Error group_error_;  // A group's file cannot be used.
};

}  // namespace leat::inline v0::detail
