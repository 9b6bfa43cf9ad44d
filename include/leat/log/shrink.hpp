// Giving idle memory of a topic with policy grow back to the system.
//
//     auto lock = RecordsLock::take(topic, LockKind::exclusive);
//     Shrinker{topic, partition, own_slot, lock->fd()}.shrink();
//
// Others continue to work. Memory that was freed must not be touched any more, not even by a
// reader that would discard what it read: on a full file system that would be a SIGBUS.
// docs/internals/log.md, "Growing".
#pragma once

#include <optional>

#include "leat/log/segments.hpp"

namespace leat::inline v0::detail {

class Shrinker {
 public:
  // `own_slot` is the caller's slot; `records` the records file, locked exclusively.
  Shrinker(MappedTopic& topic, std::uint32_t partition, std::uint32_t own_slot,
           int records) noexcept
      : topic_{topic},
        view_{topic.partition(partition)},
        roller_{topic, partition, own_slot},
        memory_{topic, partition},
        records_{records} {}

  // Finishes what a process left that died between the mark and the hole. Needed only if the file has
  // more memory than its segments: a hole for each of them takes a millisecond or more.
  Result<void> finish() {
    for (std::uint64_t i = 0; i < geometry().segment_count; ++i) {
      const std::uint64_t word = load_acquire<Edge::segment_open>(view_.physical[i].last_segment);
      if ((word & kNoMemory) == 0 || is_needed(i, word)) continue;
      if (auto done = punch(i); !done) return done.error();
    }
    return {};
  }

  // Frees idle memory: beyond the segments that the topic began with, read by all gating
  // subscribers and groups, and more than publishers would add again at once.
  Result<void> shrink() {
    // No other process adds or frees memory while the records file is locked.
    count_ = memory_.count();
    // From the highest down, because publishers add the lowest first.
    for (std::uint64_t i = geometry().segment_count; i-- != 0 && has_surplus();) {
      if (auto done = take(i); !done) return done.error();
    }
    // There are no more rounds than segments unless the words are corrupted.
    for (std::uint32_t round = 0; round <= geometry().segment_count && has_surplus(); ++round) {
      const auto retired = retire_oldest();
      if (!retired) return {};
      if (auto done = take(*retired); !done) return done.error();
    }
    return {};
  }

 private:
  const Geometry& geometry() const noexcept { return topic_.geometry(); }
  std::uint64_t current() const noexcept {
    return load_acquire<Edge::segment_open>(view_.control->current);
  }

  bool has_surplus() {
    return count_ > geometry().first_segments &&
           (count_ > memory_.maximum() || !roller_.is_low(current(), count_ - 1));
  }

  // Gives one segment's memory back, if nobody needs it.
  Result<void> take(std::uint64_t physical) {
    std::uint64_t& word = view_.physical[physical].last_segment;
    std::uint64_t last = load_acquire<Edge::segment_open>(word);
    if ((last & kNoMemory) != 0 || is_needed(physical, last)) return {};
    std::uint64_t marked = last | kNoMemory;
    // [segment_memory] seq_cst: marked before choices are read; a publisher that chooses it from
    // here on sees the mark.
    if (!compare_exchange<Edge::segment_memory>(word, last, marked)) return {};
    LEAT_CRASH_POINT("shrink:marked");
    if (!is_needed(physical, marked)) {
      --count_;
      return punch(physical);
    }
    compare_exchange<Edge::segment_memory>(word, marked, last);
    return {};
  }

  Result<void> punch(std::uint64_t physical) {
    auto done = make_hole(records_, view_.records_offset + physical * geometry().segment_size,
                          geometry().segment_size);
    LEAT_CRASH_POINT("shrink:punched");
    return done;
  }

  // Whether somebody may still touch the memory, or opens a segment in it. `word` is
  // its last_segment.
  bool is_needed(std::uint64_t physical, std::uint64_t word) {
    // [retire] seq_cst: oldest_segment has left the segment before slots are read.
    const std::uint64_t last = word & ~kNoMemory;
    if (last >= load_seq_cst<Edge::retire>(view_.control->oldest_segment)) return true;
    // The order matters: a choice ends only after the entry names this memory, and the entry names
    // it until the segment is opened, which changes the word.
    if (is_chosen(physical)) return true;
    const std::uint64_t next = current() + 1;
    const SegmentEntry& prepared = view_.entry(next);
    // [segment-map] acquire
    if (load_acquire<Edge::segment_map>(prepared.map) == (next << kPhysicalBits | physical))
      return true;
    // [segment-open] acquire
    if (load_acquire<Edge::segment_open>(view_.physical[physical].last_segment) != word)
      return true;
    if (last == 0) return false;
    Shortage unused;
    return roller_.is_held(last, false, unused) || is_read(physical);
  }

  bool is_chosen(std::uint64_t physical) {
    for (std::uint32_t i = 0; i < topic_.participant_high(); ++i) {
      const std::uint64_t state = load_seq_cst<Edge::slot>(topic_.participant(i).state);
      // [segment_memory] seq_cst
      if (is_publisher(state) &&
          load_seq_cst<Edge::segment_memory>(view_.slots[i].choice) == physical + 1 &&
          !is_dead(topic_, state)) {
        return true;
      }
    }
    return false;
  }

  // Whether a lossy subscriber may be reading there, or a member that has lost its lease. They hold
  // nothing, so the memory may have been reused any number of times; but they read only where the
  // segment that they name was while it could be read.
  bool is_read(std::uint64_t physical) {
    for (std::uint32_t i = 0; i < topic_.participant_high(); ++i) {
      const std::uint64_t state = load_seq_cst<Edge::slot>(topic_.participant(i).state);
      if (state == 0) continue;
      // [retire], [cursor] seq_cst: the reader names a segment, then reads oldest_segment (or its
      // entry's state), and only then the records.
      const PartitionSlot& slot = view_.slots[i];
      std::uint64_t named = 0;
      if (role_of(state) == ParticipantRole::subscriber) {
        const std::uint64_t mode = load_seq_cst<Edge::retire>(slot.reader_mode);
        if (mode == static_cast<std::uint64_t>(ReaderMode::none)) continue;
        named = load_seq_cst<Edge::cursor>(slot.cursor_segment);
      } else {
        named = load_seq_cst<Edge::retire>(slot.pin);
        if (named == 0) continue;
      }
      const std::uint64_t map = load_acquire<Edge::segment_map>(view_.entry(named).map);
      // If its entry has been reused since, the reader may be anywhere.
      const bool known = map >> kPhysicalBits == named;
      if ((!known || (map & kPhysicalMask) == physical) && !is_dead(topic_, state)) return true;
    }
    return false;
  }

  // Retires the oldest segment if all gating subscribers and groups have read it. Returns the
  // physical segment that it was in.
  std::optional<std::uint64_t> retire_oldest() {
    std::uint64_t oldest = load_seq_cst<Edge::retire>(view_.control->oldest_segment);
    Shortage unused;
    if (oldest >= current() || roller_.is_held(oldest, true, unused)) return {};
    // [segment-map] acquire
    const std::uint64_t physical =
        load_acquire<Edge::segment_map>(view_.entry(oldest).map) & kPhysicalMask;
    if (physical >= geometry().segment_count) return {};  // Corrupted.
    // [retire] seq_cst, as in Roller::find_room().
    compare_exchange<Edge::retire>(view_.control->oldest_segment, oldest, oldest + 1);
    LEAT_CRASH_POINT("shrink:retired");
    return physical;
  }

  MappedTopic& topic_;
  PartitionView view_;
  Roller roller_;
  SegmentMemory memory_;
  int records_;
  std::uint64_t count_ = 0;  // of segments that have memory
};

}  // namespace leat::inline v0::detail
