// Finishing what a dead (or, if the topic says so, a stopped) participant left open.
//
// A hole is a record that was claimed and not committed. Its owner told, in its slot, which value of
// the claim word it was going to claim from and how much; so a hole is matched with its owner
// exactly, and padded exactly. Anybody may repair, several at once: every step is a compare-and-swap
// or stores what the owner would have stored. docs/internals/log.md, "Repair", has the proof.
#pragma once

#include <algorithm>
#include <optional>

#include "leat/log/participants.hpp"

namespace leat::detail {

// Where a record would lie: segment number, and records and granules before it in the segment.
struct RecordPlace {
  std::uint64_t segment;
  std::uint64_t records;
  std::uint64_t granules;
  bool operator==(const RecordPlace&) const noexcept = default;
};

struct ClaimFacts {
  std::uint64_t phase = kIdle;
  std::uint64_t word = 0;
  std::uint64_t step = 0;
  bool is_batch = false;
  std::uint64_t segment = 0;

  ClaimPhase claim_phase() const noexcept { return static_cast<ClaimPhase>(phase & kPhaseMask); }
};

// A publisher's claim, consistent: `phase` did not change while the rest was read. Nothing if its
// owner is too busy to be read: then it is alive, and the caller looks again later.
inline std::optional<ClaimFacts> read_claim(const PartitionSlot& slot) noexcept {
  for (int attempt = 0; attempt < 100; ++attempt) {
    ClaimFacts facts;
    // [intent] acquire: the facts of this phase, or newer ones, in which case the phase differs.
    facts.phase = load_acquire<Edge::intent>(slot.phase);
    facts.word = load_acquire<Edge::intent>(slot.claim_word);
    const std::uint64_t step = load_acquire<Edge::intent>(slot.claim_step);
    facts.step = step & ~kBatchStep;
    facts.is_batch = (step & kBatchStep) != 0;
    facts.segment = load_acquire<Edge::intent>(slot.claim_segment);
    if (load_acquire<Edge::intent>(slot.phase) == facts.phase) return facts;
  }
  return std::nullopt;
}

enum class HoleState {
  filled,   // the record is there, or was given up: go on
  waiting,  // its owner lives (or nobody can tell yet)
  unknown,  // no participant owns it: only scribbled memory does that
};

class Repair {
 public:
  // `self` is the slot of whoever repairs; it need not be the one that protects the segment.
  Repair(SharedTopic& topic, std::uint32_t partition, std::uint32_t self) noexcept
      : topic_{topic}, view_{topic.partition(partition)}, self_{self} {}

  // Fills the hole at `place` if its owner is dead, or, with `revoke`, also if it is alive. The
  // caller keeps the segment from being reused (cursor, pin).
  Result<HoleState> fill_hole(RecordPlace place, bool revoke) {
    auto records = topic_.records_for_writing();
    if (!records) return records.error();
    auto header = find_header(*records, place);
    if (!header) return header.error();
    const std::uint64_t tag = tag_at(place);
    if (is_committed(**header, tag)) return HoleState::filled;

    Owner owner;
    const HoleState state = find_owner(*records, place, owner);
    if (is_committed(**header, tag)) return HoleState::filled;
    if (state != HoleState::waiting) return HoleState::unknown;
    if (!owner.is_certain) return HoleState::waiting;
    if (owner.alive && !(revoke && owner.revocable)) return HoleState::waiting;
    give_up(**header, tag, owner);
    return HoleState::filled;
  }

  // Frees the slot of a dead participant after filling its hole, if it left one.
  // True if the slot is free now; false if the hole may belong to somebody alive.
  bool reap(std::uint32_t index, std::uint64_t state) {
    if (is_publisher(state)) {
      for (std::uint32_t i = 0; i < topic_.geometry().partition_count; ++i) {
        Repair in_partition{topic_, i, self_};
        if (!in_partition.settle_claim_of(index)) return false;
      }
    }
    std::uint64_t expected = state;
    compare_exchange<Edge::slot>(topic_.participant(index).state, expected, 0);
    LEAT_STEP("reap:freed");
    SharedTopic::wake(topic_.header().space_wake);
    return true;
  }

 private:
  struct Owner {
    std::uint64_t step = 0;
    bool is_batch = false;
    bool alive = false;
    bool revocable = false;
    bool is_certain = false;  // False: some publisher could not be read; look again later.
  };

  const Geometry& geometry() const noexcept { return topic_.geometry(); }
  const ClaimLayout& layout() const noexcept { return topic_.geometry().claim_layout; }

  std::uint64_t tag_at(RecordPlace place) const noexcept {
    return position_tag(place.segment * geometry().segment_granules + place.granules,
                        geometry().key);
  }
  // [record-ready] acquire: whoever sees the tag sees the header.
  static bool is_committed(const RecordHeader& header, std::uint64_t tag) noexcept {
    return (load_acquire<Edge::record_ready>(header.commit) ^ tag) < 256;
  }

  Result<RecordHeader*> find_header(std::byte* records, RecordPlace place) const noexcept {
    const SegmentEntry& entry = view_.entries[place.segment & (geometry().entry_count - 1)];
    // [segment-map] acquire; the segment is protected, so its entry stands.
    const std::uint64_t map = load_acquire<Edge::segment_map>(entry.map);
    if (map >> kPhysicalBits != place.segment ||
        (map & kPhysicalMask) >= geometry().segment_count ||
        place.granules >= geometry().segment_granules) {
      return Errc::corrupt;
    }
    return reinterpret_cast<RecordHeader*>(records + view_.records_offset +
                                           (map & kPhysicalMask) * geometry().segment_size +
                                           place.granules * kGranule);
  }

  // The participant whose claim the hole is. Several may have tried from the same claim word; the
  // one that won is marked as claimed, or else ends where the next claim begins. `waiting`: found.
  HoleState find_owner(std::byte* records, RecordPlace place, Owner& best) const {
    const std::uint64_t word = layout().pack(place.segment, place.records, place.granules);
    bool found = false;
    for (std::uint32_t i = 0; i < topic_.participant_high(); ++i) {
      // [slot] acquire: the lines of whoever holds the slot.
      const std::uint64_t state = load_acquire<Edge::slot>(topic_.participant(i).state);
      if (!is_publisher(state)) continue;
      const std::optional<ClaimFacts> facts = read_claim(view_.slots[i]);
      if (!facts) {
        best = Owner{};
        return HoleState::waiting;
      }
      if (facts->claim_phase() == kIdle || facts->word != word) continue;
      if (!is_sane(place, facts->step)) continue;
      const bool claimed = facts->claim_phase() == kClaimed;
      if (claimed && facts->segment != place.segment) continue;
      if (!claimed && !ends_at_a_claim(records, place, facts->step)) continue;
      const Owner candidate{facts->step, facts->is_batch, !is_dead(topic_, state),
                            role_of(state) != ParticipantRole::exclusive_publisher, true};
      if (claimed) {
        best = candidate;
        return HoleState::waiting;
      }
      // Among claims that end at a real boundary the nearest is the true one: there is none between.
      // Of two equal ones either may have won, so the living one decides.
      const std::uint64_t length = layout().granules(candidate.step);
      const std::uint64_t best_length = layout().granules(best.step);
      if (!found || length < best_length || (length == best_length && candidate.alive)) {
        best = candidate;
        found = true;
      }
    }
    return found ? HoleState::waiting : HoleState::unknown;
  }

  bool is_sane(RecordPlace place, std::uint64_t step) const noexcept {
    const std::uint64_t granules = layout().granules(step);
    const std::uint64_t records = layout().records(step);
    return granules >= 1 && granules <= geometry().segment_granules - place.granules &&
           records >= 1 && records <= 2 * granules && step >> 32 >> 31 == 0;
  }

  // Whether the place `step` further on is one where the claim word once stood, given that the word
  // has left `place`. The order of the looks matters: whoever claimed from there was announced before
  // the claim word moved on, and stays announced until its record is committed.
  bool ends_at_a_claim(std::byte* records, RecordPlace place, std::uint64_t step) const {
    const RecordPlace end{place.segment, place.records + layout().records(step),
                          place.granules + layout().granules(step)};
    const std::uint64_t word = layout().pack(end.segment, end.records, end.granules);
    // [claim] acquire: claims up to this one were announced before.
    const std::uint64_t claim = load_acquire<Edge::claim>(view_.control->claim);
    if ((claim & ~ClaimLayout::kClosed) == word) return true;

    const SegmentEntry& entry = view_.entries[place.segment & (geometry().entry_count - 1)];
    const SegmentEntry& next = view_.entries[(place.segment + 1) & (geometry().entry_count - 1)];
    // [segment-map] acquire: the base of a mapped segment; then this segment holds the difference.
    if (load_acquire<Edge::segment_map>(next.map) >> kPhysicalBits == place.segment + 1 &&
        load_relaxed(next.base_offset) - load_relaxed(entry.base_offset) == end.records) {
      return true;
    }
    for (std::uint32_t i = 0; i < topic_.participant_high(); ++i) {
      if (!is_publisher(load_acquire<Edge::slot>(topic_.participant(i).state))) continue;
      // [intent] acquire. A word that changes meanwhile is one where the claim word stood, too.
      const PartitionSlot& slot = view_.slots[i];
      if ((load_acquire<Edge::intent>(slot.phase) & kPhaseMask) != kIdle &&
          load_acquire<Edge::intent>(slot.claim_word) == word) {
        return true;
      }
    }
    if (end.granules >= geometry().segment_granules) return false;
    auto header = find_header(records, end);
    return header && is_committed(**header, tag_at(end));
  }

  // Makes the hole a gap. If the owner lives after all (it was stopped), exactly one of the two
  // compare-and-swaps succeeds, and what both store before is the same.
  void give_up(RecordHeader& header, std::uint64_t tag, const Owner& owner) noexcept {
    std::uint64_t old = load_relaxed(header.commit);  // relaxed: the swap checks it
    if ((old ^ tag) < 256) return;
    const auto granules = static_cast<std::uint32_t>(layout().granules(owner.step));
    store_relaxed(header.claim, granules | (owner.is_batch ? kBatchClaim : 0));
    if (owner.is_batch) {
      auto& batch = *reinterpret_cast<BatchHeader*>(&header + 1);
      store_relaxed(batch.count, static_cast<std::uint32_t>(layout().records(owner.step)));
    }
    LEAT_STEP("repair:header");
    const RecordKind kind = owner.alive ? RecordKind::revoked : RecordKind::died;
    // [record-ready] the gap's size before its commit word.
    compare_exchange<Edge::record_ready>(header.commit, old,
                                         tag | static_cast<std::uint64_t>(kind));
    LEAT_STEP("repair:filled");
    SharedTopic::wake(topic_.header().data_wake);
  }

  // For a dead publisher: true once no hole of this partition can be its own any more.
  bool settle_claim_of(std::uint32_t index) {
    const std::optional<ClaimFacts> facts = read_claim(view_.slots[index]);
    if (!facts) return false;
    if (facts->claim_phase() == kIdle) return true;
    // [claim] acquire. Not moved: the dead one announced a claim and never made it.
    if (load_acquire<Edge::claim>(view_.control->claim) == facts->word) return true;

    const std::uint64_t segment =
        facts->claim_phase() == kClaimed ? facts->segment : full_segment(facts->word);
    PartitionSlot& mine = view_.slots[self_];
    // [retire] seq_cst: the pin is set before start is looked at; whoever reuses the segment moves
    // start on and then looks at pins. So either the pin holds, or the segment is done with.
    (void)exchange<Edge::retire>(mine.repair_pin, segment);
    LEAT_STEP("repair:pinned");
    bool settled = true;
    if (load_seq_cst<Edge::retire>(view_.control->start) <= segment) {
      auto state = fill_hole(
          {segment, layout().records(facts->word), layout().granules(facts->word)}, false);
      // A corrupt place can't be filled by anybody; it must not hold the slot for ever.
      settled = !state || *state != HoleState::waiting;
    }
    store_release<Edge::cursor>(mine.repair_pin, 0);
    return settled;
  }

  // The segment number that a claim word meant, given that it is at most one lap old.
  std::uint64_t full_segment(std::uint64_t word) const noexcept {
    // [segment-open] acquire
    const std::uint64_t current = load_acquire<Edge::segment_open>(view_.control->current);
    const std::uint64_t behind = layout().truncate_segment(current - layout().segment(word));
    return current - behind;
  }

  SharedTopic& topic_;
  PartitionView view_;
  std::uint32_t self_;
};

// Whoever waits at a hole: since when, and whether it is time to do something.
class HoleWatch {
 public:
  void clear() noexcept { since_ns_ = kNowhere; }

  // Looks after the hole at `place`, which the caller keeps from being reused. `corrupt` if nobody
  // owns it for a whole second.
  Result<void> look(SharedTopic& topic, std::uint32_t partition, std::uint32_t self,
                    const RecordPlace& place) {
    const std::int64_t now = now_ns();
    if (since_ns_ == kNowhere || place != place_) {
      place_ = place;
      since_ns_ = now;
      unknown_since_ns_ = 0;
    }
    const std::int64_t revoke_after_ns = topic.geometry().revoke_after_ns;
    const bool revoke = revoke_after_ns != 0 && now - since_ns_ >= revoke_after_ns;
    auto state = Repair{topic, partition, self}.fill_hole(place, revoke);
    if (!state) return state.error();
    if (*state != HoleState::unknown) {
      unknown_since_ns_ = 0;
      return {};
    }
    if (unknown_since_ns_ == 0) unknown_since_ns_ = now;
    if (now - unknown_since_ns_ <= 1'000'000'000) return {};
    return Errc::corrupt;
  }

 private:
  RecordPlace place_{};
  static constexpr std::int64_t kNowhere = -1;  // At no hole.
  std::int64_t since_ns_ = kNowhere;
  std::int64_t unknown_since_ns_ = 0;
};

}  // namespace leat::detail
