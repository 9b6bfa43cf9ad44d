// Repair: finishing what a dead participant (or, with revoke_after, a stopped one) left open.
//
// A hole is a record that was claimed and not committed. Its owner announced in its slot from which
// claim word it was going to claim, and how much. Several publishers may have tried from there;
// where the next claim begins tells how much was taken. Any process may repair, several at once:
// every step is a compare-and-swap, or stores what all others would store.
// docs/internals/log.md, "Repair", has the proof.
#pragma once

#include <algorithm>
#include <optional>

#include "leat/format/found_record.hpp"
#include "leat/log/announcement.hpp"
#include "leat/log/hole_watch.hpp"
#include "leat/os/processor.hpp"

namespace leat::inline v0::detail {

enum class HoleState {
  none,     // nothing is claimed there
  filled,   // the record is committed, or was given up: go on
  owned,    // its owner is alive
  busy,     // undecidable while others change it: retry
  unknown,  // no participant owns it: only corrupted memory causes that
  found,    // within Repair: the search succeeded
};

// Whether a participant is a gating subscriber that keeps `segment`, and all after it,
// from being reused.
inline bool is_gated_by(const PartitionSlot& slot, std::uint64_t state,
                        std::uint64_t segment) noexcept {
  // [cursor], [retire] seq_cst: reads before the cursor moved are complete.
  return role_of(state) == ParticipantRole::subscriber &&
         load_seq_cst<Edge::retire>(slot.reader_mode) ==
             static_cast<std::uint64_t>(ReaderMode::gating) &&
         load_seq_cst<Edge::cursor>(slot.cursor_segment) <= segment;
}

// Whether something is claimed at a reader's place, or the words are corrupt (Repair then says so).
inline bool has_hole_at(const Geometry& geometry, const PartitionView& view,
                        const RecordPlace& place) noexcept {
  auto end = find_claims_end(geometry, view, place.segment);
  return !end ||
         (end->is_open && (end->granules != place.granules || end->records != place.records));
}

class Repair {
 public:
  // `own_slot` is the repairing participant's slot. What protects the segment may be another slot.
  Repair(MappedTopic& topic, std::uint32_t partition, std::uint32_t own_slot) noexcept
      : topic_{topic},
        view_{topic.partition(partition)},
        partition_{partition},
        own_slot_{own_slot} {}

  // Fills the hole at `place` if its owner is dead, or, with `revoke`, even if it is alive. The
  // caller keeps the segment from being reused (cursor, pin).
  Result<HoleState> fill_hole(const RecordPlace& place, bool revoke) {
    return fill_hole(place, revoke, kNobody, true);
  }

  // Frees a dead participant's slot after filling its hole, if it left one. True if the slot is now
  // free; false if the hole may belong to a living publisher.
  bool reap(std::uint32_t index, std::uint64_t state) {
    if (is_publisher(state)) {
      for (std::uint32_t i = 0; i < topic_.geometry().partition_count; ++i) {
        Repair in_partition{topic_, i, own_slot_};
        if (!in_partition.settle_claim_of(index)) return false;
      }
    }
    std::uint64_t expected = state;
    compare_exchange<Edge::slot>(topic_.participant(index).state, expected, 0);
    LEAT_CRASH_POINT("reap:freed");
    MappedTopic::wake(topic_.header().space_wake);
    return true;
  }

  // For the publisher in the own slot: gives up a claim that must not take effect, because it was
  // withdrawn, or the truncated segment number has wrapped around since `from` was read. If it was
  // made, its record becomes a gap.
  Result<void> give_up_own(const ClaimPoint& from) {
    for (std::uint32_t i = 0; i < kManyChecks; ++i) {
      if (i != 0) yield_processor();
      auto state = settle(from.word, live_segment(from.word), from.segment, own_slot_);
      if (!state) return state.error();
      if (*state != HoleState::busy) return {};
    }
    return Errc::corrupt;
  }

  // Pins a segment in the own slot, so that its memory is not reused. False if it may already be
  // reused: then nobody needs it any more.
  bool pin(std::uint64_t segment) {
    // [retire] seq_cst: stores the pin, then reads oldest_segment and the readers. A publisher that
    // reuses the segment moves oldest_segment, then reads readers, then pins.
    (void)exchange<Edge::retire>(view_.slots[own_slot_].repair_pin, segment);
    LEAT_CRASH_POINT("repair:pinned");
    if (load_seq_cst<Edge::retire>(view_.control->oldest_segment) <= segment ||
        is_still_read(segment))
      return true;
    unpin();
    return false;
  }
  void unpin() noexcept { store_release<Edge::cursor>(view_.slots[own_slot_].repair_pin, 0); }

 private:
  static constexpr std::uint32_t kNobody = ~0U;
  static constexpr std::uint32_t kManyChecks = 100'000;

  // Which announcements count. An unmarked one may no longer belong to the segment that it names:
  // it may be a lap old (`any`).
  enum class Laps { this_one, any };

  // What find_claim() found out about a hole.
  struct HoleClaim {
    HoleState state = HoleState::unknown;  // `found`, or why not
    ClaimSize size;
    bool is_marked = false;  // By its owner, `index`. If not, several may have made it.
    std::uint32_t index = 0;
    std::uint64_t participant = 0;  // State of the owner's slot.
  };

  const Geometry& geometry() const noexcept { return topic_.geometry(); }
  const ClaimLayout& layout() const noexcept { return topic_.geometry().claim_layout; }

  // The claims of slot `gone` count as those of a dead publisher. `is_place`: the claim word is
  // known to have been at `place`; otherwise that is checked.
  Result<HoleState> fill_hole(const RecordPlace& place, bool revoke, std::uint32_t gone,
                              bool is_place) {
    auto end = find_claims_end(geometry(), view_, place.segment);
    if (!end) return end.error();
    if (!end->is_open) return HoleState::none;
    if (end->granules == place.granules && end->records == place.records) return HoleState::none;
    auto records = topic_.records_for_writing();
    if (!records) return records.error();
    auto header = find_header(*records, place);
    if (!header) return header.error();
    if (is_committed(**header, tag_at(place))) return HoleState::filled;
    if (!is_place) {
      if (const HoleState reached = reach(*records, place, *end); reached != HoleState::found)
        return reached;
    }

    const HoleClaim claim = find_claim(*records, place, *end);
    if (is_committed(**header, tag_at(place))) return HoleState::filled;
    if (claim.state != HoleState::found) return claim.state;
    RecordKind kind = RecordKind::died;
    const HoleState state = may_give_up(place, claim, revoke, gone, kind);
    if (state == HoleState::filled) give_up(**header, place, claim.size, kind);
    return state;
  }

  std::uint64_t tag_at(const RecordPlace& place) const noexcept {
    return position_tag(place.segment * geometry().segment_granules + place.granules,
                        geometry().key);
  }
  // [record-ready] acquire: a thread that sees the tag sees the header.
  static bool is_committed(const RecordHeader& header, std::uint64_t tag) noexcept {
    return is_record_kind(load_acquire<Edge::record_ready>(header.commit) ^ tag);
  }

  Result<RecordHeader*> find_header(std::byte* records, const RecordPlace& place) const noexcept {
    const SegmentEntry& entry = view_.entry(place.segment);
    // [segment-map] acquire. The segment is protected, so its entry does not change.
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

  // Calls visit(index, state, facts) for every publisher that has announced a claim, until it
  // returns false. False if some announcement could not be read.
  template <class Visit>
  bool each_announced(Visit&& visit) const {
    for (std::uint32_t i = 0; i < topic_.participant_high(); ++i) {
      // [slot] acquire: the lines of the slot's owner.
      const std::uint64_t state = load_acquire<Edge::slot>(topic_.participant(i).state);
      if (!is_publisher(state)) continue;
      const std::optional<ClaimFacts> facts = read_claim(view_.slots[i]);
      if (!facts) return false;
      if (facts->is_open() && !visit(i, state, *facts)) return true;
    }
    return true;
  }

  // Whether a publisher announced a claim from `place`. An unmarked claim may have been made a
  // lap of the truncated segment number after it was announced, so its full segment number
  // does not count.
  bool is_announced_at(const RecordPlace& place, const ClaimFacts& facts) const noexcept {
    return facts.word == layout().pack(place.segment, place.records, place.granules) &&
           (facts.claim_phase() == kClaiming || facts.segment == place.segment);
  }
  // Several records are a batch, whose number of records is in the second granule.
  static bool is_possible(const ClaimSize& size) noexcept {
    return size.records == 1 ||
           (size.granules >= 2 && size.records != 0 && size.records <= 2 * size.granules);
  }
  std::optional<ClaimSize> size_of(const RecordPlace& place, const ClaimsEnd& end,
                                   const ClaimFacts& facts) const noexcept {
    const ClaimSize size{layout().records(facts.increment), layout().granules(facts.increment)};
    if (layout().increment(size.records, size.granules) != facts.increment || size.granules == 0 ||
        size.granules > end.granules - place.granules || !is_possible(size)) {
      return std::nullopt;
    }
    return size;
  }

  // Finds out how much the hole's claim took and, if it is marked, who owns it. Of several
  // publishers that announced a claim from there one made it, and the next claim begins where it
  // ends. So of their ends, the nearest one where the claim word has been is the right one: the
  // claim word was never inside a claim.
  HoleClaim find_claim(std::byte* records, const RecordPlace& place, const ClaimsEnd& end) const {
    HoleClaim found;
    if (end.granules <= place.granules) return found;
    found = find_claim(records, place, end, Laps::this_one);
    // The publisher that claimed behind the hole may have announced that a lap ago and died
    // before it noticed.
    return found.state == HoleState::unknown ? find_claim(records, place, end, Laps::any) : found;
  }
  HoleClaim find_claim(std::byte* records, const RecordPlace& place, const ClaimsEnd& end,
                       Laps laps) const {
    HoleClaim found;
    bool is_busy = false;
    const bool all_read =
        each_announced([&](std::uint32_t index, std::uint64_t state, const ClaimFacts& facts) {
          if (!is_announced_at(place, facts)) return true;
          const std::optional<ClaimSize> size = size_of(place, end, facts);
          if (!size) return true;
          if (facts.claim_phase() == kClaimed) {
            found = {HoleState::found, *size, true, index, state};
            return false;
          }
          if (found.size.granules != 0 && size->granules >= found.size.granules) return true;
          const std::optional<bool> stood =
              stood_at(records, {place.segment, 0, place.granules + size->granules}, end, laps);
          if (!stood) is_busy = true;
          if (stood.value_or(false)) found.size.granules = size->granules;
          return true;
        });
    if (found.is_marked) return found;
    if (!all_read || is_busy) found.state = HoleState::busy;
    if (found.state == HoleState::busy || found.size.granules == 0) return found;
    std::uint64_t behind = 0;
    found.state = count_before(records, {place.segment, 0, place.granules + found.size.granules},
                               end, laps, behind);
    if (found.state != HoleState::found) return found;
    found.size.records = behind - place.records;
    if (!is_possible(found.size)) found.state = HoleState::busy;
    return found;
  }

  // The number of records before `place`, if some publisher announced a claim from there. Nothing
  // if none is found; `*is_busy` if some announcement could not be read.
  std::optional<std::uint64_t> announced_at(const RecordPlace& place, Laps laps,
                                            bool* is_busy) const {
    std::optional<std::uint64_t> found;
    *is_busy = !each_announced([&](std::uint32_t, std::uint64_t, const ClaimFacts& facts) {
      const bool is_of_segment =
          facts.segment == place.segment || (laps == Laps::any && facts.claim_phase() == kClaiming);
      if (!is_of_segment || layout().granules(facts.word) != place.granules ||
          layout().segment(facts.word) != layout().truncate_segment(place.segment)) {
        return true;
      }
      found = layout().records(facts.word);
      return false;
    });
    return found;
  }

  // Whether the claim word has been at a granule behind a hole. The order of the checks
  // matters: a claim from there was announced before `end` was read, and stays announced until
  // it is committed.
  std::optional<bool> stood_at(std::byte* records, const RecordPlace& place, const ClaimsEnd& end,
                               Laps laps) const {
    if (place.granules == end.granules) return true;
    bool is_busy = false;
    if (announced_at(place, laps, &is_busy)) return true;
    if (is_busy) return std::nullopt;
    auto header = find_header(records, place);
    return header && is_committed(**header, tag_at(place));
  }

  // The number of records before `place`, where the claim word has been. Counts committed records
  // from there on, up to a place whose number is known. `found`; `busy`: retry; `unknown`: where
  // the committed records end, nobody whose announcement counts has claimed.
  HoleState count_before(std::byte* records, RecordPlace place, const ClaimsEnd& end, Laps laps,
                         std::uint64_t& count) const {
    std::uint64_t counted = 0;
    std::uint64_t announced_records = end.records;
    while (place.granules < end.granules) {
      std::optional<ClaimSize> size = committed_at(records, place, end);
      if (!size) {
        bool is_busy = false;
        const std::optional<std::uint64_t> announced = announced_at(place, laps, &is_busy);
        if (announced) {
          announced_records = *announced;
          break;
        }
        if (is_busy) return HoleState::busy;
        size = committed_at(records, place, end);  // Committed meanwhile?
        if (!size) return HoleState::unknown;
      }
      counted += size->records;
      place.granules += size->granules;
    }
    if (announced_records < counted) return HoleState::busy;
    count = announced_records - counted;
    return HoleState::found;
  }

  // The size of the record that is committed at `place`. Nothing if there is none.
  std::optional<ClaimSize> committed_at(std::byte* records, const RecordPlace& place,
                                        const ClaimsEnd& end) const {
    auto header = find_header(records, place);
    if (!header) return std::nullopt;
    FoundRecord record;
    // [record-ready] acquire
    record.kind = load_acquire<Edge::record_ready>((*header)->commit) ^ tag_at(place);
    if (!is_record_kind(record.kind) ||
        !examine_record(**header, end.granules - place.granules, record))
      return std::nullopt;
    return ClaimSize{record.records, record.granules};
  }

  // Whether the claim word has been at `place`: follows records and holes from the start of the
  // segment, which they tile. `found` if so, `none` if not.
  HoleState reach(std::byte* records, const RecordPlace& place, const ClaimsEnd& end) const {
    RecordPlace at{place.segment, 0, 0};
    while (at.granules < place.granules && at.granules < end.granules) {
      std::optional<ClaimSize> size = committed_at(records, at, end);
      if (!size) {
        const HoleClaim claim = find_claim(records, at, end);
        if (claim.state != HoleState::found) return HoleState::busy;
        size = claim.size;
      }
      at.records += size->records;
      at.granules += size->granules;
    }
    return at == place ? HoleState::found : HoleState::none;
  }

  // Decides whether the hole may become a gap (`filled`), and of which kind. A marked claim
  // belongs to the publisher that marked it. Of an unmarked claim it is unknown which of the
  // publishers that announced it made it; if one of them is dead, the living ones are withdrawn
  // and claim again.
  HoleState may_give_up(const RecordPlace& place, const HoleClaim& claim, bool revoke,
                        std::uint32_t gone, RecordKind& kind) {
    if (claim.is_marked) {
      if (claim.index == gone) kind = RecordKind::aborted;
      if (claim.index == gone || is_dead(topic_, claim.participant)) return HoleState::filled;
      if (!revoke || role_of(claim.participant) == ParticipantRole::exclusive_publisher)
        return HoleState::owned;
      kind = RecordKind::revoked;
      return HoleState::filled;
    }
    const std::uint64_t increment = layout().increment(claim.size.records, claim.size.granules);
    const auto is_candidate = [&](const ClaimFacts& facts) {
      return is_announced_at(place, facts) && facts.increment == increment;
    };
    bool is_any = false;
    kind = RecordKind::revoked;
    bool all_read =
        each_announced([&](std::uint32_t index, std::uint64_t state, const ClaimFacts& facts) {
          if (!is_candidate(facts) || facts.claim_phase() == kClaimed) return true;
          is_any = true;
          if (index == gone) kind = RecordKind::aborted;
          if (index != gone && is_dead(topic_, state)) kind = RecordKind::died;
          return true;
        });
    if (!all_read || !is_any) return HoleState::busy;
    if (kind == RecordKind::revoked && !revoke) return HoleState::owned;
    HoleState state = HoleState::filled;
    all_read = each_announced(
        [&](std::uint32_t index, std::uint64_t participant, const ClaimFacts& facts) {
          if (!is_candidate(facts)) return true;
          if (facts.claim_phase() == kClaimed) {
            state = HoleState::busy;  // Marked meanwhile.
          } else if (index != gone && !is_dead(topic_, participant)) {
            state = withdraw_candidate(index, participant, facts);
          }
          return state == HoleState::filled;
        });
    return all_read ? state : HoleState::busy;
  }

  // `filled` if the claim is withdrawn.
  HoleState withdraw_candidate(std::uint32_t index, std::uint64_t participant,
                               const ClaimFacts& facts) noexcept {
    if (role_of(participant) == ParticipantRole::exclusive_publisher) return HoleState::owned;
    switch (withdraw(view_.slots[index], facts)) {
      case Withdrawal::done: return HoleState::filled;
      case Withdrawal::refused: return HoleState::owned;
      default: return HoleState::busy;
    }
  }

  // Turns the hole into a gap. If the owner is alive after all (it was stopped), exactly one of the
  // two compare-and-swaps succeeds, and both store the same header before.
  void give_up(RecordHeader& header, const RecordPlace& place, const ClaimSize& size,
               RecordKind kind) noexcept {
    const std::uint64_t tag = tag_at(place);
    std::uint64_t old = load_relaxed<Why::swap_checks>(header.commit);
    if (is_record_kind(old ^ tag)) return;
    const auto granules = static_cast<std::uint32_t>(size.granules);
    store_relaxed<Why::published_later>(header.claim,
                                        granules | (size.records != 1 ? kBatchClaim : 0));
    if (size.records != 1) {
      auto& batch = *reinterpret_cast<BatchHeader*>(&header + 1);
      store_relaxed<Why::published_later>(batch.count, static_cast<std::uint32_t>(size.records));
    }
    note_gap(view_, place.segment);
    LEAT_CRASH_POINT("repair:header");
    // [record-ready] seq_cst: the gap's size before its commit word.
    compare_exchange<Edge::record_ready>(header.commit, old,
                                         tag | static_cast<std::uint64_t>(kind));
    LEAT_CRASH_POINT("repair:filled");
    MappedTopic::wake(topic_.header().data_wake);
  }

  // For a dead publisher: fills its hole. True once no hole of this partition can be its own.
  bool settle_claim_of(std::uint32_t index) {
    const std::optional<ClaimFacts> facts = read_claim(view_.slots[index]);
    if (!facts) return false;
    if (!facts->is_open()) return true;
    const std::optional<std::uint64_t> segment =
        facts->claim_phase() == kClaimed ? facts->segment : live_segment(facts->word);
    auto state = settle(facts->word, segment, facts->segment, kNobody);
    // Nobody can fill a corrupt place; it must not hold the slot indefinitely.
    return !state || (*state != HoleState::owned && *state != HoleState::busy);
  }

  // Fills the hole of a claim from `word` in `segment`, if that can still be read. The claim was
  // announced in segment `announced`.
  Result<HoleState> settle(std::uint64_t word, std::optional<std::uint64_t> segment,
                           std::uint64_t announced, std::uint32_t gone) {
    if (!segment || !pin(*segment)) return HoleState::none;
    auto state = fill_hole({*segment, layout().records(word), layout().granules(word)}, false, gone,
                           *segment == announced);
    unpin();
    // The pin keeps its memory, but not its entry.
    if (!state && !has_own_entry(geometry(), view_, *segment)) return HoleState::none;
    return state;
  }

  // The only readable segment with the truncated number of a claim word. There is at most one,
  // because there are more truncated numbers than twice the segments.
  std::optional<std::uint64_t> live_segment(std::uint64_t word) const noexcept {
    // [segment-open] acquire
    const std::uint64_t current = load_acquire<Edge::segment_open>(view_.control->current);
    const std::uint64_t behind = layout().truncate_segment(current - layout().segment(word));
    if (behind > 2 * std::uint64_t{geometry().segment_count} || behind > current)
      return std::nullopt;
    return current - behind;
  }

  // Whether a gating subscriber or a group still reads a retired segment. One that joined during
  // the retirement may have been missed then, but not when the memory is about to be reused.
  bool is_still_read(std::uint64_t segment) {
    for (std::uint32_t i = 0; i < topic_.participant_high(); ++i) {
      // [slot] seq_cst: as in Roller::is_held().
      const std::uint64_t state = load_seq_cst<Edge::slot>(topic_.participant(i).state);
      // [retire] acquire: its cursor was stored before the segment was retired.
      if (load_acquire<Edge::retire>(view_.slots[i].settled) != 0 &&
          is_gated_by(view_.slots[i], state, segment) && !is_dead(topic_, state)) {
        return true;
      }
    }
    for (std::uint32_t slot = 0; slot < kMaxGroups; ++slot) {
      if (topic_.group_number(slot) == 0) continue;
      auto group = topic_.group(slot);
      if (group && *group != nullptr && (*group)->is_there() &&
          (*group)->is_before(partition_, segment)) {
        return true;
      }
    }
    return false;
  }

  MappedTopic& topic_;
  PartitionView view_;
  std::uint32_t partition_;
  std::uint32_t own_slot_;
};

}  // namespace leat::inline v0::detail
