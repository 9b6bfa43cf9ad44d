// The hole that a reader waits at, and since when.
#pragma once

#include <cstdint>

#include "leat/base/own_pause.hpp"
#include "leat/result.hpp"

namespace leat::inline v0::detail {

class MappedTopic;

// A place in a segment: its number, and the records and granules before the place.
struct RecordPlace {
  std::uint64_t segment;
  std::uint64_t records;
  std::uint64_t granules;
  bool operator==(const RecordPlace&) const noexcept = default;
};

// Measures how long a reader has waited at a hole, and repairs the hole when that is allowed.
class HoleWatch {
 public:
  void clear() noexcept { since_ns_ = kNowhere; }

  // Repairs the hole at `place` if its owner is dead, or if the wait has exceeded revoke_after. The
  // caller keeps the segment from being reused.
  //   corrupt   nobody owns the hole
  Result<void> check(MappedTopic& topic, std::uint32_t partition, std::uint32_t own_slot,
                     const RecordPlace& place);

 private:
  RecordPlace place_{};
  static constexpr std::int64_t kNowhere = -1;  // Not at a hole.
  std::int64_t since_ns_ = kNowhere;
  OwnPause pause_;
};

}  // namespace leat::inline v0::detail
