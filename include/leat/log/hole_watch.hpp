// The hole that a reader waits at, and since when.
#pragma once

#include <cstdint>

#include "leat/result.hpp"

namespace leat::inline v0::detail {

class SharedTopic;

// Where a record would lie: segment number, and records and granules before it in the segment.
struct RecordPlace {
  std::uint64_t segment;
  std::uint64_t records;
  std::uint64_t granules;
  bool operator==(const RecordPlace&) const noexcept = default;
};

// Whoever waits at a hole: since when, and whether it is time to do something.
class HoleWatch {
 public:
  void clear() noexcept { since_ns_ = kNowhere; }

  // Looks after the hole at `place`, which the caller keeps from being reused.
  //   corrupt   nobody owns it
  Result<void> look(SharedTopic& topic, std::uint32_t partition, std::uint32_t own_slot,
                    const RecordPlace& place);

 private:
  RecordPlace place_{};
  static constexpr std::int64_t kNowhere = -1;  // At no hole.
  std::int64_t since_ns_ = kNowhere;
};

}  // namespace leat::inline v0::detail
