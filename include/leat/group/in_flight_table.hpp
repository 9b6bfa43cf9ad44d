// The entries that a member owns, and what it remembers of their records.
//
//     InFlightTable::Reservation take;
//     if (entries.reserve(take, state)) entry_at(group, entries.use(take)) …
//     entries.commit(take);                      // the take was made
//     entries.keep(ref, {state, 0, key});        // the record is now this member's
//     entries.forget(ref, InFlightPhase::free);  // and now it no longer is
//
// A member's own row has as many entries as it may have records in flight. A record that it returns
// stays in its entry, so the row can run short. Takes then use spare entries, which all members of
// the group share. Only make() allocates. docs/internals/groups.md, "Taking".
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "leat/group/fixed_map.hpp"
#include "leat/group/key_order.hpp"

namespace leat::inline v0::detail {

class InFlightTable {
 public:
  InFlightTable(const MemberPlace& place, KeyOrder& keys) noexcept
      : place_{place}, group_{place.group}, keys_{keys} {}

  // Called after the seat is taken: finds the free entries of its row. Throws bad_alloc.
  void make();

  // At least the number of the last take. Take numbers only increase in each entry, so that no
  // state of an entry ever recurs.
  std::uint64_t take_number() const noexcept { return take_number_; }
  void raise_take_number(std::uint64_t number) noexcept {
    take_number_ = std::max(take_number_, number);
  }

  // The entries of one take, which may still fail: first entries of the own row, then spare ones.
  struct Reservation {
    std::size_t from_own = 0;  // Number of entries used from the end of free_.
    std::uint32_t spare = 0;   // Number of spare entries examined.
    bool has_spare = false;    // The spare entry at `spare` is reserved and not used.
  };
  // Makes sure that the take can use() one more entry. Its entries will get `state`. False if there
  // is none left.
  bool reserve(Reservation& take, std::uint64_t state) noexcept {
    if (take.from_own != free_.size() || take.has_spare) return true;
    return take.has_spare = reserve_spare(take, state);
  }
  // Returns the entry that reserve() has found.
  InFlightRef use(Reservation& take) noexcept {
    if (take.from_own != free_.size()) return {place_.seat, free_[free_.size() - ++take.from_own]};
    take.has_spare = false;
    return {group_.geometry().seat_count, take.spare++};
  }
  // Frees a spare entry that was reserved and not used.
  void release_unused(Reservation& take, std::uint64_t state) noexcept;
  // Called once the take is made. keep() or park() follows for each of its entries.
  void commit(const Reservation& take) noexcept { free_.resize(free_.size() - take.from_own); }
  // Whether the take has used up the free entries of its own row and the spare ones.
  bool was_short(const Reservation& take) const noexcept {
    return take.from_own == free_.size() && take.spare == group_.geometry().spare_count();
  }
  std::size_t free_own() const noexcept { return free_.size(); }
  // Finds entries of the own row that others have freed meanwhile.
  void find_settled() noexcept;

  // Number of records that are taken or retaken, and not settled.
  std::size_t in_flight() const noexcept { return in_flight_; }
  bool is_full() const noexcept { return in_flight_ >= group_.geometry().in_flight_limit; }
  std::size_t room() const noexcept {
    return is_full() ? 0 : group_.geometry().in_flight_limit - in_flight_;
  }
  // Stores in the seat how many records are in flight, plus `more` that are about to be. Called
  // before the entry is stored or the cursor is moved: a member that is about to sleep reads the
  // seats to find out whether another member may die with records.
  [[gnu::always_inline]] void show_in_flight(std::size_t more = 0) noexcept {
    // [in-flight] release
    store_release<Edge::in_flight>(place_.own_seat().in_flight,
                                   static_cast<std::uint32_t>(in_flight_ + more));
  }
  // Called before a record is handed out, returned or retaken: others see that this member does something.
  [[gnu::always_inline]] void show_step() noexcept {
    store_relaxed<Why::hint>(place_.own_seat().handed, ++handed_);
  }
  void raise_in_flight(std::size_t count) noexcept {
    in_flight_ += count;
    show_in_flight();
  }
  [[gnu::always_inline]] void lower_in_flight(std::size_t count) noexcept {
    in_flight_ -= count;
    show_in_flight();
  }

  // Whether this member is about to use the entry for a take of its own: nobody can have returned it.
  bool is_unused(InFlightRef ref) const noexcept {
    return ref.row() == place_.seat && row_[ref.index()].whose == Whose::free;
  }
  // What this member remembers of an entry; null if the entry is not its own.
  OwnRecord* find(InFlightRef ref) noexcept;
  // The same for an entry that is known to be its own.
  OwnRecord& at(InFlightRef ref) noexcept {
    return ref.row() == place_.seat ? row_[ref.index()].record : *others_.find(ref.word());
  }
  // Calls visit(ref, record) for each entry of its own. visit may forget that entry.
  template <class Visit>
  void each(Visit&& visit) noexcept;

  // Makes the entry this member's own. The caller has counted it as in flight.
  void keep(InFlightRef ref, const OwnRecord& record) noexcept;
  // Called when the entry is no longer this member's but in phase `now`. Lowers in_flight().
  void forget(InFlightRef ref, InFlightPhase now) noexcept;
  // Called when the record was parked: it waits for a member that may have its key. The caller
  // corrects in_flight().
  void park(InFlightRef ref) noexcept;
  // Called when another member has taken the record away, or it could not be handed out.
  void lose(InFlightRef ref) noexcept;
  // Whether lose() was called since clear_lost().
  bool has_lost() const noexcept { return has_lost_; }
  void clear_lost() noexcept { has_lost_ = false; }

  // Returns to the group a record that was not handed out, if its entry is still in `state`.
  // `is_counted`: the state counts a delivery that did not happen, which is subtracted.
  void put_back(InFlightRef ref, std::uint64_t state, bool is_counted) noexcept;

 private:
  enum class Whose : std::uint8_t {
    free,  // in free_
    own,   // has a record of this member
    lost,  // has, or had, a record of others
  };
  struct RowEntry {
    OwnRecord record;
    Whose whose = Whose::free;
  };

  bool reserve_spare(Reservation& take, std::uint64_t state) noexcept;
  void mark_lost(std::uint32_t index) noexcept {
    row_[index].whose = Whose::lost;
    ++lost_;
  }
  void forget_slowly(InFlightRef ref, InFlightPhase now) noexcept;

  const MemberPlace& place_;
  GroupView& group_;
  KeyOrder& keys_;
  std::vector<RowEntry> row_;      // The entries of the own row.
  FixedList<std::uint32_t> free_;  // Free entries of the own row; the last one is used next.
  std::size_t lost_ = 0;           // Number of `lost` entries in row_.
  FixedMap<OwnRecord> others_;     // Own records in other rows and in spare entries.
  std::size_t in_flight_ = 0;
  std::uint64_t take_number_ = 0;  // At least that of this member's last take.
  std::uint64_t handed_ = 0;       // Copy of GroupSeat::handed.
  bool has_lost_ = false;
};

inline void InFlightTable::make() {
  const std::uint32_t count = group_.geometry().in_flight_limit;
  // Continues the number of the seat's last member.
  handed_ = load_relaxed<Why::own>(place_.own_seat().handed);
  row_.resize(count);
  free_.reserve(count);
  for (std::uint32_t index = count; index-- > 0;) {
    // [in-flight] acquire: the record's former owner is done with it.
    const std::uint64_t state =
        load_acquire<Edge::in_flight>(group_.entry(place_.seat, index).state);
    if (phase_of(state) == InFlightPhase::free) {
      free_.push_back(index);
      raise_take_number(InFlightState::unpack(state).generation);
    } else {
      mark_lost(index);
    }
  }
  others_.reserve(count);
}

// Reserves the first free spare entry from take.spare on.
[[gnu::noinline]] inline bool InFlightTable::reserve_spare(Reservation& take,
                                                           std::uint64_t state) noexcept {
  const std::uint32_t spare_row = group_.geometry().seat_count;
  for (; take.spare < group_.geometry().spare_count(); ++take.spare) {
    InFlightEntry& entry = group_.entry(spare_row, take.spare);
    std::uint64_t word = load_acquire<Edge::in_flight>(entry.state);
    if (phase_of(word) != InFlightPhase::free) continue;
    // Other members use spare entries, too, perhaps with larger take numbers.
    if (const std::uint64_t last = InFlightState::unpack(word).generation;
        last >= InFlightState::unpack(state).generation) {
      raise_take_number(last);
      continue;
    }
    std::uint32_t high = load_relaxed<Why::swap_checks>(group_.header().spare_high);
    while (high <= take.spare &&
           !compare_exchange<Edge::in_flight>(group_.header().spare_high, high, take.spare + 1)) {
    }
    // [in-flight] seq_cst: only one member gets it. Its fields are stored later, before the cursor passes
    // the record.
    if (compare_exchange<Edge::in_flight>(entry.state, word,
                                          InFlightState::unpack(state).reserved().pack())) {
      LEAT_CRASH_POINT("take:spare");
      return true;
    }
  }
  return false;
}

inline void InFlightTable::release_unused(Reservation& take, std::uint64_t state) noexcept {
  if (!take.has_spare) return;
  take.has_spare = false;
  // [in-flight] release
  store_release<Edge::in_flight>(group_.entry(group_.geometry().seat_count, take.spare).state,
                                 InFlightState::let_go(state, InFlightPhase::free));
}

inline void InFlightTable::find_settled() noexcept {
  for (std::uint32_t index = 0; index < row_.size() && lost_ != 0; ++index) {
    if (row_[index].whose != Whose::lost) continue;
    // [in-flight] acquire: the record's former owner is done with it.
    const std::uint64_t state =
        load_acquire<Edge::in_flight>(group_.entry(place_.seat, index).state);
    if (phase_of(state) != InFlightPhase::free) continue;
    // Each redelivery raised the generation.
    raise_take_number(InFlightState::unpack(state).generation);
    row_[index] = {};
    --lost_;
    free_.push_back(index);
  }
}

inline OwnRecord* InFlightTable::find(InFlightRef ref) noexcept {
  if (ref.row() != place_.seat) return others_.find(ref.word());
  if (ref.index() >= row_.size() || row_[ref.index()].whose != Whose::own) return nullptr;
  return &row_[ref.index()].record;
}

template <class Visit>
void InFlightTable::each(Visit&& visit) noexcept {
  // The row is empty if make() failed.
  const std::size_t high = std::min<std::size_t>(group_.entry_high(place_.seat), row_.size());
  for (std::uint32_t index = 0; index < high; ++index) {
    if (row_[index].whose == Whose::own)
      visit(InFlightRef{place_.seat, index}, OwnRecord{row_[index].record});
  }
  others_.each([&](std::uint64_t ref, const OwnRecord& record) {
    visit(InFlightRef::of(ref), OwnRecord{record});
  });
}

inline void InFlightTable::keep(InFlightRef ref, const OwnRecord& record) noexcept {
  if (ref.row() != place_.seat) [[unlikely]] {
    *others_.insert(ref.word()) = record;
    return;
  }
  if (row_[ref.index()].whose == Whose::lost) --lost_;
  row_[ref.index()] = {record, Whose::own};
}

inline void InFlightTable::park(InFlightRef ref) noexcept {
  if (ref.row() == place_.seat) mark_lost(ref.index());
}

[[gnu::always_inline]] inline void InFlightTable::forget(InFlightRef ref,
                                                         InFlightPhase now) noexcept {
  RowEntry* const own = ref.row() == place_.seat ? &row_[ref.index()] : nullptr;
  if (own == nullptr || now != InFlightPhase::free || place_.by_key ||
      is_retaken(own->record.state)) [[unlikely]] {
    forget_slowly(ref, now);
  } else {
    own->whose = Whose::free;
    free_.push_back(ref.index());
  }
  lower_in_flight(1);
}

[[gnu::noinline]] inline void InFlightTable::forget_slowly(InFlightRef ref,
                                                           InFlightPhase now) noexcept {
  if (place_.by_key) {
    // Before in_flight is lowered: until then, others settle this member if it dies here.
    if (const OwnRecord* record = find(ref); record != nullptr) keys_.drop(record->key);
  }
  if (ref.row() != place_.seat) {
    others_.erase(ref.word());
    return;
  }
  if (now != InFlightPhase::free) {
    mark_lost(ref.index());
    return;
  }
  RowEntry& own = row_[ref.index()];
  // Each redelivery raised the generation.
  if (is_retaken(own.record.state))
    raise_take_number(InFlightState::unpack(own.record.state).generation);
  own.whose = Whose::free;
  free_.push_back(ref.index());
}

[[gnu::noinline]] inline void InFlightTable::lose(InFlightRef ref) noexcept {
  forget(ref, InFlightPhase::returned);
  has_lost_ = true;
}

inline void InFlightTable::put_back(InFlightRef ref, std::uint64_t word, bool is_counted) noexcept {
  InFlightEntry& entry = entry_at(group_, ref);
  InFlightState state = InFlightState::unpack(word);
  if (is_counted) --state.deliveries;
  state.phase = InFlightPhase::returned;
  state.owner = 0;
  show_step();
  // Before it is returned, so that no record that is taken from now on overtakes it.
  if (place_.by_key) {
    if (const OwnRecord* own = find(ref); own != nullptr) mark_key(group_, own->key);
  }
  compare_exchange<Edge::in_flight>(entry.state, word, state.pack());
}

}  // namespace leat::inline v0::detail
