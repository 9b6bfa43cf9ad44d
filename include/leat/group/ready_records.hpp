// The records that a member has taken or retaken and not handed out yet, oldest first.
#pragma once

#include <vector>

#include "leat/group/in_flight_table.hpp"

namespace leat::inline v0::detail {

class ReadyRecords {
 public:
  ReadyRecords(const MemberPlace& place, InFlightTable& entries) noexcept
      : place_{place}, entries_{entries} {}

  void reserve() { records_.reserve(kAtOnce); }  // Throws bad_alloc.

  bool empty() const noexcept { return next_ == records_.size(); }
  std::size_t size() const noexcept { return records_.size() - next_; }
  // Removes the next record, to be handed out.
  const ReadyRecord& take() noexcept { return records_[next_++]; }
  // Undoes the last take(). The record's entry is in state `delivered` by now.
  void untake(std::uint64_t delivered) noexcept { records_[--next_].state = delivered; }

  // Empties the list. The caller then adds new records to records().
  void begin() noexcept {
    records_.clear();
    next_ = 0;
    entries_.clear_lost();
  }
  FixedList<ReadyRecord>& records() noexcept { return records_; }

  // Returns to the group what was not handed out.
  void requeue() noexcept {
    if (empty() || place_.participant.forked()) return;
    for (std::size_t i = next_; i != records_.size(); ++i) {
      const ReadyRecord& one = records_[i];
      entries_.put_back(one.ref, one.state, phase_of(one.state) == InFlightPhase::delivered);
      LEAT_CRASH_POINT("ready:returned");
    }
    announce_returned(place_.topic, place_.group);
    for (; next_ != records_.size(); ++next_)
      entries_.forget(records_[next_].ref, InFlightPhase::returned);
  }

 private:
  const MemberPlace& place_;
  InFlightTable& entries_;
  FixedList<ReadyRecord> records_;
  std::size_t next_ = 0;
};

}  // namespace leat::inline v0::detail
