// Leases: how long a member may keep a record before others take it.
//
//     lease.begin(entry);                     // before the record is this member's
//     if (lease.may_be_over()) …             // check which records were taken away
//     if (lease.was_lost(ref, state)) …      // `lease_lost` instead of `not_in_flight`
//
// The user gets a copy, because the record may be overwritten after the lease has run out.
// docs/internals/groups.md, "Handing out".
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <new>
#include <vector>

#include "leat/base/clock.hpp"
#include "leat/group/segment_pins.hpp"

namespace leat::inline v0::detail {

class Lease {
 public:
  explicit Lease(const MemberPlace& place) noexcept : place_{place} {}

  // Allocates the memory for note_lost(). Throws bad_alloc.
  void reserve() { lost_.resize(is_set() ? place_.geometry().in_flight_limit : 0); }

  bool is_set() const noexcept { return place_.geometry().lease_ns != 0; }

  // Starts a lease. Called before the entry's state says that the record is this member's.
  void begin(InFlightEntry& entry) noexcept {
    if (!is_set()) return;
    store_relaxed<Why::published_later>(entry.lease_until_ns, begin_now());
  }
  // The same for an entry that may be another member's by now: never shortens its lease.
  void extend(InFlightEntry& entry) noexcept {
    if (!is_set()) return;
    const std::int64_t until = begin_now();
    std::int64_t seen = load_relaxed<Why::swap_checks>(entry.lease_until_ns);
    while (seen < until && !compare_exchange<Edge::in_flight>(entry.lease_until_ns, seen, until)) {
    }
  }

  // Whether one of this member's leases may have run out. If so, the caller checks all its entries:
  // begin_scan(), then still_runs() for each one that was not taken away, with the time that it read
  // before it read the state: later the time may be another member's.
  bool may_be_over() const noexcept { return is_set() && now_ns() >= ends_ns_; }
  void begin_scan() noexcept { ends_ns_ = std::numeric_limits<std::int64_t>::max(); }
  void still_runs(std::int64_t until_ns) noexcept { ends_ns_ = std::min(ends_ns_, until_ns); }

  // Remembers for a while that a delivery was taken away, for was_lost().
  void note_lost(InFlightRef ref, std::uint64_t state) noexcept {
    if (lost_.empty()) return;
    lost_[next_lost_] = {ref, state};
    if (++next_lost_ == lost_.size()) next_lost_ = 0;
  }
  // Whether this delivery was noted as lost. Forgets it.
  bool was_lost(InFlightRef ref, std::uint64_t state) noexcept {
    for (Lost& one : lost_) {
      if (one.state == 0 || one.ref != ref || one.state != state) continue;
      one.state = 0;
      return true;
    }
    return false;
  }

  // Memory for a copy of a record that is handed out, until clear_copies(). Null: out of memory.
  std::vector<std::byte>* new_copy(std::size_t size) noexcept {
    if (keeps_one_) copies_.clear();
    try {
      auto& copy = copies_.emplace_back();
      copy.reserve(std::max<std::size_t>(size, 1));  // An empty record has an address, too.
      copy.resize(size);
      return &copy;
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  void clear_copies() noexcept {
    if (copies_.empty()) [[likely]]
      return;
    copies_.clear();
    keeps_one_ = false;
  }
  // While poll() runs: a record is over when the next one is handed out, and so is its copy. Not once its
  // callback has received others, because those stay valid until the next call.
  void keep_one(bool one) noexcept { keeps_one_ = one; }

 private:
  struct Lost {
    InFlightRef ref;
    std::uint64_t state = 0;  // 0: unused.
  };

  std::int64_t begin_now() noexcept {
    const std::int64_t until = ns_from_now(place_.geometry().lease_ns);
    ends_ns_ = std::min(ends_ns_, until);
    return until;
  }

  const MemberPlace& place_;
  std::int64_t ends_ns_ = 0;  // No lease of this member ends before this time.
  std::vector<Lost> lost_;    // A ring buffer.
  std::size_t next_lost_ = 0;
  std::vector<std::vector<std::byte>> copies_;
  bool keeps_one_ = false;
};

}  // namespace leat::inline v0::detail
