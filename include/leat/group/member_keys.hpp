// How members of a group that goes by key keep equal keys together, and in order. Included by
// member.hpp only. docs/internals/groups.md, "By key".
#pragma once

#include "leat/group/member_retake.hpp"

namespace leat {

// Of the record's key; 0: it has none. The segment is pinned, or held.
inline std::uint64_t Member::key_hash(const detail::WalkedRecord& walked) const noexcept {
  Record record;
  const Bytes payload{walked.payload, walked.detail & detail::kDetailLength};
  if (!detail::read_payload(walked.detail, payload, record) || !record.has_key) return 0;
  return detail::murmur2(record.key) | 1ULL << 63;
}

// Whether this member may have a record that came back: nobody else has one with its key, and none that
// came back is before it.
inline bool Member::key_is_free(const detail::GroupHold& candidate) const noexcept {
  using namespace detail;
  const std::uint64_t key = load_relaxed(candidate.key);
  if (key == 0) return true;
  bool is_free = true;
  group_->each_hold([&](std::uint32_t, std::uint32_t, const GroupHold& hold, std::uint64_t word) {
    if (&hold == &candidate || load_relaxed(hold.key) != key) return;
    if (phase_of(word) != HoldPhase::returned) {
      is_free = is_free && owner_of(word) == seat_ + 1;
    } else if (load_relaxed(hold.offset) < load_relaxed(candidate.offset)) {
      is_free = false;
    }
  });
  return is_free;
}

// Puts a record that was just claimed among those that came back, if its key is somebody else's.
inline void Member::park(std::uint32_t index) noexcept {
  using namespace detail;
  GroupHold& hold = group_->hold(seat_, index);
  bool is_free = true;
  const std::uint64_t key = load_relaxed(hold.key);
  if (key != 0) {
    group_->each_hold([&](std::uint32_t, std::uint32_t, const GroupHold& other,
                          std::uint64_t word) {
      // What was claimed before it: of the same claim, or earlier.
      if (&other == &hold || load_relaxed(other.key) != key) return;
      const bool is_others = phase_of(word) == HoldPhase::returned || owner_of(word) != seat_ + 1;
      if (is_others && load_relaxed(other.offset) < load_relaxed(hold.offset)) is_free = false;
    });
  }
  if (is_free) return;
  HoldState state = HoldState::unpack(own_[index].state);
  state.phase = HoldPhase::returned;
  state.owner = 0;
  state.deliveries = 0;
  // [hold] Fails if others have taken it away with its lease: then it is theirs.
  std::uint64_t word = own_[index].state;
  if (compare_exchange<Edge::hold>(hold.state, word, state.pack()))
    announce_returned(shared(), *group_);
  forget(seat_, index, HoldPhase::returned);
}

}  // namespace leat
