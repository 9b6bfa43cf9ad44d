// What a member has claimed or taken back, and not handed out yet: oldest first.
#pragma once

#include <vector>

#include "leat/group/hold_table.hpp"

namespace leat::inline v0::detail {

class ReadyRecords {
 public:
  ReadyRecords(const MemberPlace& place, HoldTable& holds) noexcept
      : place_{place}, holds_{holds} {}

  void reserve() { records_.reserve(kAtOnce); }  // Throws bad_alloc.

  bool empty() const noexcept { return next_ == records_.size(); }
  std::size_t size() const noexcept { return records_.size() - next_; }
  // The next one; it is handed out.
  const ReadyRecord& take() noexcept { return records_[next_++]; }
  // The one that was taken last is the next one again; it is in the state `held` already.
  void untake(std::uint64_t held) noexcept { records_[--next_].state = held; }

  // All were handed out: others follow, which the caller puts into records().
  void begin() noexcept {
    records_.clear();
    next_ = 0;
    holds_.clear_lost();
  }
  FixedList<ReadyRecord>& records() noexcept { return records_; }

  // Returns what was not handed out to the group.
  void give_back() noexcept {
    if (empty() || place_.participant.forked()) return;
    for (std::size_t i = next_; i != records_.size(); ++i) {
      const ReadyRecord& one = records_[i];
      holds_.put_back(one.ref, one.state, phase_of(one.state) == HoldPhase::held);
      LEAT_CRASH_POINT("ready:returned");
    }
    announce_returned(place_.topic, place_.group);
    for (; next_ != records_.size(); ++next_)
      holds_.forget(records_[next_].ref, HoldPhase::returned);
  }

 private:
  const MemberPlace& place_;
  HoldTable& holds_;
  FixedList<ReadyRecord> records_;
  std::size_t next_ = 0;
};

}  // namespace leat::inline v0::detail
