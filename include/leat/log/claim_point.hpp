// How far a partition is claimed at one moment.
#pragma once

#include <optional>

#include "leat/format/layout.hpp"

namespace leat::inline v0::detail {

// Bound for retry loops: so many interfering changes do not come from living participants, so the
// words were corrupted.
inline constexpr std::uint32_t kManyMoves = 100'000;

// The claim word and its segment, as of one moment.
struct ClaimPoint {
  std::uint64_t word = 0;
  std::uint64_t segment = 0;  // Full number.
};

// Nothing if the two words contradict each other, which only corruption causes.
[[gnu::always_inline]] inline std::optional<ClaimPoint> load_claim_point(
    const PartitionControl& control, const ClaimLayout& layout) noexcept {
  for (std::uint32_t attempt = 0; attempt < 1000; ++attempt) {
    // [segment-open] acquire, [claim] acquire. Opening a segment changes both words together, so a
    // claim word that is read between two equal segment numbers belongs to that segment.
    const std::uint64_t segment = load_acquire<Edge::segment_open>(control.current);
    const std::uint64_t word = load_acquire<Edge::claim>(control.claim);
    if (load_acquire<Edge::segment_open>(control.current) == segment) [[likely]] {
      if (layout.segment(word) != layout.truncate_segment(segment)) [[unlikely]]
        break;
      return ClaimPoint{word, segment};
    }
  }
  return std::nullopt;
}

// Whether a segment's entry is still its own, so that everything that was read of the entry before is of
// this segment. The segment that gets the entry next stores its base there, and then its map. Both happen
// while the one before that is the current one, or later.
inline bool has_own_entry(const Geometry& geometry, const PartitionView& view,
                          std::uint64_t segment) noexcept {
  // [segment-open] acquire. If a word of the next owner was read before, this is not older.
  const std::uint64_t current = load_acquire<Edge::segment_open>(view.control->current);
  // A segment is prepared, and may be read, before it is the current one.
  return current + 1 - segment < geometry.entry_count;
}

// To be called before a claim in a segment becomes a gap, so that Topic::info() looks for gaps there.
inline void note_gap(const PartitionView& view, std::uint64_t segment) noexcept {
  std::uint64_t& word = view.entry(segment).has_gaps;
  // relaxed, both: if a thread that was stopped stores an older segment, gaps are counted as records.
  if (load_relaxed<Why::hint>(word) < segment) store_relaxed<Why::hint>(word, segment);
}

}  // namespace leat::inline v0::detail
