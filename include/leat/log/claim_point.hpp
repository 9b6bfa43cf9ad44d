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

}  // namespace leat::inline v0::detail
