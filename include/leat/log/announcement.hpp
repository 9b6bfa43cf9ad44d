// Reading claims from a partition's words: how far they go, and which publisher
// announced which claim.
//
// A publisher announces a claim in its slot before it makes it, and marks it as made afterwards, so
// that a hole can be matched with its owner. docs/internals/log.md, "The claim word" and "Repair".
#pragma once

#include <optional>

#include "leat/log/claim_point.hpp"
#include "leat/log/participants.hpp"
#include "leat/os/membarrier.hpp"

namespace leat::inline v0::detail {

// How far the claims in a segment go.
struct ClaimsEnd {
  bool is_open = false;  // If not: nothing was ever claimed in it, or nobody can read it any more.
  std::uint64_t records = 0;
  std::uint64_t granules = 0;
};

// Reads how far the claims in `segment` go.
//   corrupt   the words contradict each other, or go beyond the segment
inline Result<ClaimsEnd> find_claims_end(const Geometry& geometry, const PartitionView& view,
                                         std::uint64_t segment) noexcept {
  const ClaimLayout& layout = geometry.claim_layout;
  const std::optional<ClaimPoint> point = load_claim_point(*view.control, layout);
  if (!point) return Errc::corrupt;
  if (point->segment < segment) return ClaimsEnd{};
  std::uint64_t word = point->word;
  if (point->segment != segment) {
    // The next segment's entry has the claim word with which this one was closed.
    const SegmentEntry& next = view.entry(segment + 1);
    // [segment-map] acquire, both. The segment may be kept (by a pin, or a claim) when its entry, and
    // the next one's, are used again.
    if (load_acquire<Edge::segment_map>(next.map) >> kPhysicalBits != segment + 1)
      return ClaimsEnd{};
    word = load_acquire<Edge::segment_map>(next.previous_end);
    if (!has_own_entry(geometry, view, segment + 1)) return ClaimsEnd{};
    if (!ClaimLayout::is_closed(word) || layout.segment(word) != layout.truncate_segment(segment))
      return Errc::corrupt;
  }
  if (layout.granules(word) > geometry.segment_granules) return Errc::corrupt;
  return ClaimsEnd{true, layout.records(word), layout.granules(word)};
}

// The room and the number of offsets that a claim takes.
struct ClaimSize {
  std::uint64_t records = 0;
  std::uint64_t granules = 0;
  bool operator==(const ClaimSize&) const noexcept = default;
};

// A publisher's last announcement.
struct ClaimFacts {
  std::uint64_t phase = kIdle;  // Includes the claim's number.
  std::uint64_t word = 0;
  std::uint64_t increment = 0;
  std::uint64_t segment = 0;  // Where the claim word was `word` when it was read.

  ClaimPhase claim_phase() const noexcept { return static_cast<ClaimPhase>(phase & kPhaseMask); }
  bool is_open() const noexcept { return claim_phase() != kIdle; }
};

// Reads an announcement consistently: `phase` did not change meanwhile. (An exclusive publisher's
// phase never changes; a mixture with its next claim does no harm, because its last claim is
// committed.) Nothing if the publisher changes it too often to be read: it is then alive, and the
// caller retries later.
inline std::optional<ClaimFacts> read_claim(const PartitionSlot& slot) noexcept {
  for (int attempt = 0; attempt < 100; ++attempt) {
    ClaimFacts facts;
    // [intent] acquire: the facts of this phase, or newer ones, in which case the
    // phase has changed.
    facts.phase = load_acquire<Edge::intent>(slot.phase);
    facts.word = load_acquire<Edge::intent>(slot.claim_word);
    facts.increment = load_acquire<Edge::intent>(slot.claim_increment);
    facts.segment = load_acquire<Edge::intent>(slot.claim_segment);
    LEAT_CRASH_POINT("announcement:read");
    if (load_acquire<Edge::intent>(slot.phase) == facts.phase) return facts;
  }
  return std::nullopt;
}

enum class Withdrawal {
  done,      // the claim has no effect: its owner, if it made it, gives it up and claims again
  is_owner,  // too late: the claim is marked
  is_over,   // the publisher has moved on to another claim, or none
  refused,   // the kernel has no membarrier(2)
};

// Withdraws a claim that a living publisher announced and has not marked. Whether the claim was
// made is unknown, and must not matter while the publisher does not run.
inline Withdrawal withdraw(PartitionSlot& slot, const ClaimFacts& facts) noexcept {
  const std::uint64_t number = facts.phase & ~kPhaseMask;
  // [withdraw] seq_cst. The word only grows, so a repairer that was stopped here cannot undo a
  // later withdrawal.
  std::uint64_t seen = load_acquire<Edge::withdraw>(slot.withdrawn);
  while (seen < number && !compare_exchange<Edge::withdraw>(slot.withdrawn, seen, number)) {
  }
  // The publisher marks its claim and then reads `withdrawn`, without a fence. After this barrier,
  // either its mark is visible here, or it will see the withdrawal.
  if (!membarrier_all()) return Withdrawal::refused;
  LEAT_CRASH_POINT("withdraw:barrier");
  const std::uint64_t phase = load_acquire<Edge::withdraw>(slot.phase);
  if (phase == facts.phase) return Withdrawal::done;
  return phase == (number | kClaimed) ? Withdrawal::is_owner : Withdrawal::is_over;
}

}  // namespace leat::inline v0::detail
