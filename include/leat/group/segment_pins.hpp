// Keeps memory that a member reads and does not hold: while it walks from a cursor, and while it reads a
// record whose lease may run out meanwhile. docs/internals/groups.md, "Room".
#pragma once

#include "leat/group/member_place.hpp"

namespace leat::inline v0::detail {

// Only where atomic reads that are dropped later are not enough: by key, since keys lie in payloads; and
// under policy `grow`, since memory that was given back must not be touched at all.
class SegmentPins {
 public:
  explicit SegmentPins(const MemberPlace& place) noexcept : place_{place} {}

  // Keeps the cursor's segment. False: it may be reused already; then the cursor has moved on.
  bool pin(std::uint32_t partition, const CursorValue& cursor) noexcept {
    if (!place_.must_pin) return true;
    const std::uint64_t segment = cursor.position() / place_.topic.geometry().segment_granules;
    store_pin(partition, segment);
    // [retire] seq_cst: pinned first. The cursor itself may keep a segment that was retired while the
    // group was made or moved.
    const std::uint64_t oldest =
        load_seq_cst<Edge::retire>(place_.topic.partition(partition).control->oldest_segment);
    return oldest <= segment ||
           (place_.group.load_cursor(partition) == cursor && !place_.group.is_closed());
  }
  // Keeps the segment of a hold's record. Whether it was in time tells the hold's state, read after this.
  // Returns the partition to unpin.
  std::uint32_t pin(const GroupHold& hold) noexcept {
    if (!place_.must_pin) return 0;
    // relaxed, both: stored before the state; if that is another one by now, nothing is read.
    const HoldPlace where = HoldPlace::unpack(load_relaxed<Why::rechecked>(hold.where));
    const std::uint64_t position = load_relaxed<Why::rechecked>(hold.position);
    const std::uint32_t partition =
        where.partition < place_.geometry().partition_count ? where.partition : 0;
    store_pin(partition, position / place_.topic.geometry().segment_granules);
    return partition;
  }
  void unpin(std::uint32_t partition) noexcept {
    if (!place_.must_pin) return;
    // [cursor] release: the reads are done.
    store_release<Edge::cursor>(place_.participant.partition_slot(partition).pin, 0);
  }

 private:
  void store_pin(std::uint32_t partition, std::uint64_t segment) noexcept {
    // [retire] seq_cst: before oldest_segment, or the hold's state, is looked at.
    (void)exchange<Edge::retire>(place_.participant.partition_slot(partition).pin, segment);
  }

  const MemberPlace& place_;
};

// Reads a record that this member holds in a group with a lease, which may run out meanwhile. Then others
// are done with the record, and its memory is reused or given back. What was read of reused memory is
// dropped; given back, it must not be touched, which the pin prevents.
class HeldRead {
 public:
  HeldRead(SegmentPins& pins, const GroupHold& hold, std::uint64_t state) noexcept
      : pins_{pins}, hold_{hold}, state_{state}, partition_{pins.pin(hold)} {
    is_own_ = load_seq_cst<Edge::hold>(hold.state) == state;
  }
  HeldRead(const HeldRead&) = delete;
  HeldRead& operator=(const HeldRead&) = delete;
  ~HeldRead() { pins_.unpin(partition_); }

  // It may be read.
  bool is_own() const noexcept { return is_own_; }
  // What was read so far is the record.
  bool is_still_own() const noexcept {
    fence_acquire<Edge::hold>();
    return is_own_ && load_acquire<Edge::hold>(hold_.state) == state_;
  }

 private:
  SegmentPins& pins_;
  const GroupHold& hold_;
  std::uint64_t state_;
  std::uint32_t partition_;
  bool is_own_;
};

}  // namespace leat::inline v0::detail
