// The offsets without a record that a checkpoint names: lags, numbers of records and From::last leave them out although
// memory no longer has their claims.
//
//     std::vector<CheckpointGap> gaps = checkpoint.gaps;
//     add_gaps_of(header, payload, partition, gaps);      // of a frame
//     settle_gaps(gaps);
//     checkpoint.gaps = std::move(gaps);
//
// What is missing here counts as a record, so any of them may be forgotten. docs/internals/durable.md, "Gaps on disk".
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "leat/store/frame_records.hpp"

namespace leat::inline v0::detail {

// Sorts them, and joins those that touch. Of more than kMostGaps, each partition keeps its last ones.
inline void settle_gaps(std::vector<CheckpointGap>& gaps) {
  const auto place = [](const CheckpointGap& one) { return std::pair{one.partition, one.begin}; };
  std::ranges::sort(gaps, {}, place);
  std::vector<CheckpointGap> settled;
  std::size_t partitions = 0;
  for (const CheckpointGap& one : gaps) {
    const bool is_same = !settled.empty() && settled.back().partition == one.partition;
    if (is_same && one.begin <= settled.back().end) {
      settled.back().end = std::max(settled.back().end, one.end);
    } else {
      partitions += is_same ? 0 : 1;
      settled.push_back(one);
    }
  }
  gaps = std::move(settled);
  if (gaps.size() <= kMostGaps) return;
  // From the last one on.
  std::vector<CheckpointGap> kept;
  std::size_t count = 0;
  for (auto one = gaps.rbegin(); one != gaps.rend(); ++one) {
    if (!kept.empty() && kept.back().partition != one->partition) count = 0;
    if (count++ < kMostGaps / partitions) kept.push_back(*one);
  }
  gaps.assign(kept.rbegin(), kept.rend());
}

inline void add_gap(const CheckpointGap& gap, std::vector<CheckpointGap>& gaps) {
  if (!gaps.empty() && gaps.back().partition == gap.partition && gaps.back().end == gap.begin) {
    gaps.back().end = gap.end;
    return;
  }
  gaps.push_back(gap);
  if (gaps.size() == 2 * kMostGaps) settle_gaps(gaps);
}

// Adds the offsets of a frame that have no record. As for FrameRecords, `payload` is aligned to 16 bytes.
inline void add_gaps_of(const FrameHeader& header, const std::byte* payload,
                        std::uint32_t partition, std::vector<CheckpointGap>& gaps) {
  if (header.records == header.offsets) return;
  FrameRecords records{header, payload, partition};
  for (StoredEntry entry; records.next(entry);) {
    if (entry.is_record) continue;
    add_gap({partition, 0, entry.gap.first, entry.gap.first + entry.gap.count}, gaps);
  }
}

}  // namespace leat::inline v0::detail
