// Which holds of the group are this member's, and what it remembers of their records.
//
//     HoldTable::Reservation claim;
//     if (holds.reserve(claim, state)) hold_at(group, holds.use(claim)) …
//     holds.commit(claim);                       // the claim was made
//     holds.keep(ref, {state, 0, key});          // now the record is this member's
//     holds.forget(ref, HoldPhase::free);        // and now it is not
//
// A member's own row has as many holds as it may have records in flight. A record that it lets others
// have stays in its hold, so the row can run short; then a claim uses spare holds, which the members of
// the group share. Nothing here allocates once the table is made. docs/internals/groups.md, "Claiming".
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "leat/group/fixed_map.hpp"
#include "leat/group/key_order.hpp"

namespace leat::inline v0::detail {

class HoldTable {
 public:
  HoldTable(const MemberPlace& place, KeyOrder& keys) noexcept
      : place_{place}, group_{place.group}, keys_{keys} {}

  // Called when the seat is taken: finds out which holds of its row are free. Throws bad_alloc.
  void make();

  // Numbers of claims only rise in each hold, so that no state of a hold ever comes again.
  std::uint64_t claim_number() const noexcept { return claim_number_; }
  void raise_claim_number(std::uint64_t number) noexcept {
    claim_number_ = std::max(claim_number_, number);
  }

  // Holds for one claim that may yet fail: those of the own row first, then spare ones.
  struct Reservation {
    std::size_t from_own = 0;  // From the end of free_.
    std::uint32_t spare = 0;   // Spare holds that were looked at.
    bool has_spare = false;    // The one at `spare` is reserved, and not used.
  };
  // Makes sure that there is one more for a claim whose holds get this state. False: there is none.
  bool reserve(Reservation& claim, std::uint64_t state) noexcept {
    if (claim.from_own != free_.size() || claim.has_spare) return true;
    return claim.has_spare = reserve_spare(claim, state);
  }
  // The hold that was reserved last.
  HoldRef use(Reservation& claim) noexcept {
    if (claim.from_own != free_.size())
      return {place_.seat, free_[free_.size() - ++claim.from_own]};
    claim.has_spare = false;
    return {group_.geometry().seat_count, claim.spare++};
  }
  // Lets go of a hold that was reserved and not used.
  void release_unused(Reservation& claim, std::uint64_t state) noexcept;
  // The claim was made. Each of its records is kept, or forgotten, next.
  void commit(const Reservation& claim) noexcept { free_.resize(free_.size() - claim.from_own); }
  // Neither the own row nor the spare ones had another hold.
  bool was_short(const Reservation& claim) const noexcept {
    return claim.from_own == free_.size() && claim.spare == group_.geometry().spare_count();
  }
  std::size_t free_own() const noexcept { return free_.size(); }
  // Finds holds of the own row that others have settled meanwhile.
  void find_settled() noexcept;

  // Records that are claimed or taken back, and not settled.
  std::size_t in_flight() const noexcept { return in_flight_; }
  bool is_full() const noexcept { return in_flight_ >= group_.geometry().hold_count; }
  std::size_t room() const noexcept {
    return is_full() ? 0 : group_.geometry().hold_count - in_flight_;
  }
  // Tells others so many, and `more` that are about to be. Before the hold, or the cursor, that they
  // find: whoever is about to sleep looks here whether somebody may die over records.
  [[gnu::always_inline]] void show_in_flight(std::size_t more = 0) noexcept {
    // [hold] release
    store_release<Edge::hold>(place_.own_seat().in_flight,
                              static_cast<std::uint32_t>(in_flight_ + more));
  }
  void raise_in_flight(std::size_t count) noexcept {
    in_flight_ += count;
    show_in_flight();
  }
  void lower_in_flight(std::size_t count) noexcept {
    in_flight_ -= count;
    show_in_flight();
  }

  // What this member remembers of a hold; null if the hold is not its own.
  OwnRecord* find(HoldRef ref) noexcept;
  // The same of a hold that is its own for sure.
  OwnRecord& at(HoldRef ref) noexcept {
    return ref.row() == place_.seat ? row_[ref.index()].record : *others_.find(ref.word());
  }
  // Calls visit(ref, record) for all of its own. It may forget that one.
  template <class Visit>
  void each(Visit&& visit) noexcept;

  // The hold is this member's from now on. It is counted as in flight already.
  void keep(HoldRef ref, const OwnRecord& record) noexcept;
  // The hold is no longer this member's; `now` is what it is instead.
  void forget(HoldRef ref, HoldPhase now) noexcept;
  // The record was parked: it waits for a member that may have its key. Not counted as in flight.
  void park(HoldRef ref) noexcept;
  // The record came back without this member's doing.
  void lose(HoldRef ref) noexcept;
  // Whether that happened since the flag was cleared.
  bool has_lost() const noexcept { return has_lost_; }
  void clear_lost() noexcept { has_lost_ = false; }

  // Returns a record that nobody got to the group, if it is still in this state. `is_counted`: it was
  // counted as handed out, and was not.
  void put_back(HoldRef ref, std::uint64_t state, bool is_counted) noexcept;

 private:
  enum class Whose : std::uint8_t {
    free,  // in free_
    own,   // this member has a record there
    lost,  // others have it, or had it
  };
  struct RowHold {
    OwnRecord record;
    Whose whose = Whose::free;
  };

  bool reserve_spare(Reservation& claim, std::uint64_t state) noexcept;
  void mark_lost(std::uint32_t index) noexcept {
    row_[index].whose = Whose::lost;
    ++lost_;
  }
  void forget_slowly(HoldRef ref, HoldPhase now) noexcept;

  const MemberPlace& place_;
  GroupView& group_;
  KeyOrder& keys_;
  std::vector<RowHold> row_;       // The own row.
  FixedList<std::uint32_t> free_;  // Its free holds; the next one last.
  std::size_t lost_ = 0;           // How many of row_ are.
  FixedMap<OwnRecord> others_;     // In rows of others and spare ones.
  std::size_t in_flight_ = 0;
  std::uint64_t claim_number_ = 0;  // Of the last claim made, or larger.
  bool has_lost_ = false;
};

inline void HoldTable::make() {
  const std::uint32_t count = group_.geometry().hold_count;
  row_.resize(count);
  free_.reserve(count);
  for (std::uint32_t index = count; index-- > 0;) {
    // [hold] acquire: whoever had the record is done with it.
    const std::uint64_t state = load_acquire<Edge::hold>(group_.hold(place_.seat, index).state);
    if (phase_of(state) == HoldPhase::free) {
      free_.push_back(index);
      raise_claim_number(HoldState::unpack(state).generation);
    } else {
      mark_lost(index);
    }
  }
  others_.reserve(count);
}

// Reserves the first spare hold that is free, from claim.spare on.
[[gnu::noinline]] inline bool HoldTable::reserve_spare(Reservation& claim,
                                                       std::uint64_t state) noexcept {
  const std::uint32_t spare_row = group_.geometry().seat_count;
  for (; claim.spare < group_.geometry().spare_count(); ++claim.spare) {
    GroupHold& hold = group_.hold(spare_row, claim.spare);
    std::uint64_t word = load_acquire<Edge::hold>(hold.state);
    if (phase_of(word) != HoldPhase::free) continue;
    // Others used it, too, perhaps with larger numbers.
    if (const std::uint64_t last = HoldState::unpack(word).generation;
        last >= HoldState::unpack(state).generation) {
      raise_claim_number(last);
      continue;
    }
    std::uint32_t high = load_relaxed<Why::swap_checks>(group_.header().spare_high);
    while (high <= claim.spare &&
           !compare_exchange<Edge::hold>(group_.header().spare_high, high, claim.spare + 1)) {
    }
    // [hold] seq_cst: only one gets it. Its facts follow, before the cursor passes the record.
    if (compare_exchange<Edge::hold>(hold.state, word,
                                     HoldState::unpack(state).reserved().pack())) {
      LEAT_CRASH_POINT("take:spare");
      return true;
    }
  }
  return false;
}

inline void HoldTable::release_unused(Reservation& claim, std::uint64_t state) noexcept {
  if (!claim.has_spare) return;
  claim.has_spare = false;
  // [hold] release
  store_release<Edge::hold>(group_.hold(group_.geometry().seat_count, claim.spare).state,
                            HoldState::let_go(state, HoldPhase::free));
}

inline void HoldTable::find_settled() noexcept {
  for (std::uint32_t index = 0; index < row_.size() && lost_ != 0; ++index) {
    if (row_[index].whose != Whose::lost) continue;
    // [hold] acquire: whoever had the record is done with it.
    const std::uint64_t state = load_acquire<Edge::hold>(group_.hold(place_.seat, index).state);
    if (phase_of(state) != HoldPhase::free) continue;
    raise_claim_number(
        HoldState::unpack(state).generation);  // Others raised it with each retaking.
    row_[index] = {};
    --lost_;
    free_.push_back(index);
  }
}

inline OwnRecord* HoldTable::find(HoldRef ref) noexcept {
  if (ref.row() != place_.seat) return others_.find(ref.word());
  if (ref.index() >= row_.size() || row_[ref.index()].whose != Whose::own) return nullptr;
  return &row_[ref.index()].record;
}

template <class Visit>
void HoldTable::each(Visit&& visit) noexcept {
  const std::uint32_t high = group_.hold_high(place_.seat);
  for (std::uint32_t index = 0; index < high; ++index) {
    if (row_[index].whose == Whose::own)
      visit(HoldRef{place_.seat, index}, OwnRecord{row_[index].record});
  }
  others_.each([&](std::uint64_t ref, const OwnRecord& record) {
    visit(HoldRef::of(ref), OwnRecord{record});
  });
}

inline void HoldTable::keep(HoldRef ref, const OwnRecord& record) noexcept {
  if (ref.row() != place_.seat) [[unlikely]] {
    *others_.insert(ref.word()) = record;
    return;
  }
  if (row_[ref.index()].whose == Whose::lost) --lost_;
  row_[ref.index()] = {record, Whose::own};
}

inline void HoldTable::park(HoldRef ref) noexcept {
  if (ref.row() == place_.seat) mark_lost(ref.index());
}

[[gnu::always_inline]] inline void HoldTable::forget(HoldRef ref, HoldPhase now) noexcept {
  RowHold* const own = ref.row() == place_.seat ? &row_[ref.index()] : nullptr;
  if (own == nullptr || now != HoldPhase::free || place_.by_key || is_retaken(own->record.state))
      [[unlikely]] {
    forget_slowly(ref, now);
  } else {
    own->whose = Whose::free;
    free_.push_back(ref.index());
  }
  lower_in_flight(1);
}

[[gnu::noinline]] inline void HoldTable::forget_slowly(HoldRef ref, HoldPhase now) noexcept {
  if (place_.by_key) {
    // Before in_flight falls: until then others look after this member, should it die here.
    if (const OwnRecord* record = find(ref); record != nullptr) keys_.drop(record->key);
  }
  if (ref.row() != place_.seat) {
    others_.erase(ref.word());
    return;
  }
  if (now != HoldPhase::free) {
    mark_lost(ref.index());
    return;
  }
  RowHold& own = row_[ref.index()];
  // Whoever retook it raised the number in its state.
  if (is_retaken(own.record.state))
    raise_claim_number(HoldState::unpack(own.record.state).generation);
  own.whose = Whose::free;
  free_.push_back(ref.index());
}

[[gnu::noinline]] inline void HoldTable::lose(HoldRef ref) noexcept {
  forget(ref, HoldPhase::returned);
  has_lost_ = true;
}

inline void HoldTable::put_back(HoldRef ref, std::uint64_t word, bool is_counted) noexcept {
  GroupHold& hold = hold_at(group_, ref);
  HoldState state = HoldState::unpack(word);
  if (is_counted) --state.deliveries;
  state.phase = HoldPhase::returned;
  state.owner = 0;
  // Before it is returned: what is claimed now must not come before it.
  if (place_.by_key) mark_key(group_, load_relaxed<Why::stored_before>(hold.key));
  compare_exchange<Edge::hold>(hold.state, word, state.pack());
}

}  // namespace leat::inline v0::detail
