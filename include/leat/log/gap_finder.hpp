// Finds the offsets of a partition that hold no record, because their claims were given up.
//
//     add_gaps(topic, info.partitions);
//
// A process that makes a gap first notes that in the segment's entry (note_gap), so segments without gaps are not read.
// A segment with gaps is read as a lossy subscriber reads it: what was overwritten meanwhile is dropped.
// docs/internals/log.md, "Counting records".
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "leat/format/found_record.hpp"
#include "leat/log/segments.hpp"
#include "leat/topic.hpp"

namespace leat::inline v0::detail {

class GapFinder {
 public:
  GapFinder(MappedTopic& topic, std::uint32_t partition) noexcept
      : topic_{topic}, view_{topic.partition(partition)} {}

  // Adds what is found, in any order. Corrupted words may make ranges overlap.
  void add_to(PartitionInfo& info) {
    // [segment-open] acquire
    std::uint64_t number = load_acquire<Edge::segment_open>(view_.control->current);
    std::optional<RecordsLock> has_memory;
    for (std::uint32_t i = 0; i < topic_.geometry().segment_count && examined_ < kEnough;
         ++i, --number) {
      if (!is_live(number)) break;
      if (load_relaxed<Why::hint>(view_.entry(number).has_gaps) != number) continue;
      if (!records_) {
        auto records = topic_.records_for_a_look(own_mapping_);
        if (!records) return;
        records_ = *records + view_.records_offset;
      }
      // While others cannot free memory, every live segment has memory.
      if (topic_.geometry().grows() && !has_memory) {
        auto lock = RecordsLock::take(topic_, LockKind::shared);
        if (!lock) return;
        has_memory.emplace(std::move(*lock));
        if (!is_live(number)) break;
      }
      const std::vector<OffsetRange> found = gaps_of(number);
      // [overwrite] acquire: a publisher that overwrote what was read moved oldest_segment before.
      fence_acquire<Edge::overwrite>();
      if (is_live(number)) info.gaps.insert(info.gaps.end(), found.begin(), found.end());
    }
  }

 private:
  // How many records and gaps are looked at. The default capacity holds no more records.
  static constexpr std::uint64_t kEnough = TopicOptions::kDefaultCapacity / (2 * kGranule);

  bool is_live(std::uint64_t segment) const noexcept {
    // [retire] seq_cst
    return load_seq_cst<Edge::retire>(view_.control->oldest_segment) <= segment;
  }

  // Up to the first claim that is still open, or the last record that is looked at.
  std::vector<OffsetRange> gaps_of(std::uint64_t number) {
    std::vector<OffsetRange> gaps;
    const Geometry& geometry = topic_.geometry();
    const auto place = find_segment(topic_, view_, number);
    const auto end = find_claims_end(geometry, view_, number);
    if (!place || !end) return gaps;
    CurrentSegment<const std::byte> segment;
    segment.enter(*place, *records_, geometry);
    std::uint64_t offset = place->base_offset;
    for (std::uint64_t granule = 0; granule < end->granules && examined_ < kEnough; ++examined_) {
      FoundRecord found;
      found.kind = segment.kind(granule, geometry.key);
      if (!is_record_kind(found.kind) ||
          !examine_record(segment.header(granule), end->granules - granule, found))
        break;
      if (!found.has_payload()) gaps.push_back({offset, offset + found.records});
      granule += found.granules;
      offset += found.records;
    }
    return gaps;
  }

  MappedTopic& topic_;
  PartitionView view_;
  Mapping own_mapping_;                      // Empty if the process has mapped the records.
  std::optional<const std::byte*> records_;  // The partition's first segment.
  std::uint64_t examined_ = 0;
};

// Sorts the gaps of a partition, joins those that touch, and leaves out what lies before its start or behind its end.
inline void settle_gaps(PartitionInfo& info) {
  std::ranges::sort(info.gaps, {}, &OffsetRange::begin);
  std::vector<OffsetRange> settled;
  for (OffsetRange one : info.gaps) {
    one = {std::max(one.begin, info.start), std::min(one.end, info.end)};
    if (one.begin >= one.end) continue;
    if (!settled.empty() && one.begin <= settled.back().end) {
      settled.back().end = std::max(settled.back().end, one.end);
    } else {
      settled.push_back(one);
    }
  }
  info.gaps = std::move(settled);
}

// Adds the gaps that memory shows to those that are known already.
inline void add_gaps(MappedTopic& topic, std::vector<PartitionInfo>& partitions) {
  for (std::uint32_t i = 0; i < partitions.size(); ++i) {
    GapFinder{topic, i}.add_to(partitions[i]);
    settle_gaps(partitions[i]);
  }
}

}  // namespace leat::inline v0::detail
