// Pins segments that a member reads without holding them: while it scans from a cursor, and while
// it reads a record whose lease may run out meanwhile. docs/internals/groups.md, "Room".
#pragma once

#include "leat/group/member_place.hpp"

namespace leat::inline v0::detail {

// Pins only where it is not enough to discard what was read: by key, because keys are in payloads;
// and under policy `grow`, because memory that was freed must not be touched.
class SegmentPins {
 public:
  explicit SegmentPins(const MemberPlace& place) noexcept : place_{place} {}

  // Pins the cursor's segment. False if it may be reused already, because the cursor has moved or
  // the group was deleted.
  bool pin(std::uint32_t partition, const CursorValue& cursor) noexcept {
    if (!place_.must_pin) return true;
    const std::uint64_t segment = cursor.position() / place_.topic.geometry().segment_granules;
    store_pin(partition, segment);
    // [retire] seq_cst: stores the pin, then reads oldest_segment. A segment that was retired while
    // the group was created or moved is kept by the cursor itself.
    const std::uint64_t oldest = load_seq_cst<Edge::retire>(*words_of(partition).oldest_segment);
    return oldest <= segment ||
           (place_.group.load_cursor(partition) == cursor && !place_.group.is_closed());
  }
  // Pins the segment of an entry's record. The pin was in time if the entry's state, read afterwards,
  // has not changed. Returns the partition to unpin.
  std::uint32_t pin(const InFlightEntry& entry) noexcept {
    if (!place_.must_pin) return 0;
    // relaxed, both: stored before the state. If the state has changed by now, nothing is read.
    const InFlightPlace where = InFlightPlace::unpack(load_relaxed<Why::rechecked>(entry.where));
    const std::uint64_t position = load_relaxed<Why::rechecked>(entry.position);
    const std::uint32_t partition =
        where.partition < place_.geometry().partition_count ? where.partition : 0;
    store_pin(partition, position / place_.topic.geometry().segment_granules);
    return partition;
  }
  void unpin(std::uint32_t partition) noexcept {
    if (!place_.must_pin) return;
    // [cursor] release: the reads are complete.
    store_release<Edge::cursor>(*words_of(partition).pin, 0);
  }

 private:
  void store_pin(std::uint32_t partition, std::uint64_t segment) noexcept {
    // [retire] seq_cst: before oldest_segment, or the entry's state, is read.
    (void)exchange<Edge::retire>(*words_of(partition).pin, segment);
  }

  // Where a partition's words are. Kept for the last partition, because finding them takes longer than using them.
  struct Words {
    const std::uint64_t* oldest_segment = nullptr;
    std::uint64_t* pin = nullptr;
  };
  const Words& words_of(std::uint32_t partition) noexcept {
    if (words_.pin == nullptr || partition != partition_) {
      partition_ = partition;
      words_ = {&place_.topic.partition(partition).control->oldest_segment,
                &place_.participant.partition_slot(partition).pin};
    }
    return words_;
  }

  const MemberPlace& place_;
  std::uint32_t partition_ = 0;  // Whose words_ are, unless they are null.
  Words words_;
};

// Protects the reading of a record that this member holds. In a group with a lease, the lease may
// run out meanwhile; others may then settle the record, so that its memory can be reused or freed.
// What was read from reused memory is discarded. Memory that was freed must not be touched, so the
// pin keeps it from being freed.
class InFlightRead {
 public:
  InFlightRead(SegmentPins& pins, const InFlightEntry& entry, std::uint64_t state) noexcept
      : pins_{pins}, entry_{entry}, state_{state}, partition_{pins.pin(entry)} {
    is_own_ = load_seq_cst<Edge::in_flight>(entry.state) == state;
  }
  InFlightRead(const InFlightRead&) = delete;
  InFlightRead& operator=(const InFlightRead&) = delete;
  ~InFlightRead() { pins_.unpin(partition_); }

  // Whether the record may be read.
  bool is_own() const noexcept { return is_own_; }
  // Whether all that was read so far was the record.
  bool is_still_own() const noexcept {
    fence_acquire<Edge::in_flight>();
    return is_own_ && load_acquire<Edge::in_flight>(entry_.state) == state_;
  }

 private:
  SegmentPins& pins_;
  const InFlightEntry& entry_;
  std::uint64_t state_;
  std::uint32_t partition_;
  bool is_own_;
};

}  // namespace leat::inline v0::detail
