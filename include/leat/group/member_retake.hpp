// How a Member takes records that came back (given back, left by the dead, taken away, parked), and puts
// its own there. Included by group/impl.hpp only. docs/internals/groups.md, "Redelivery".
#pragma once

#include "leat/group/dead_letters.hpp"
#include "leat/group/member_keys.hpp"

namespace leat::inline v0::detail {

// Takes up to `want` of the records that came back and may be taken now; they are in ready_ then.
inline bool MemberCore::retake(std::size_t want) noexcept {
  // [hold] acquire: raised after the states of what was returned.
  const std::uint64_t returned = load_acquire<Edge::hold>(group_->header().returned);
  if (returned == seen_returned_ && (next_visible_ns_ == 0 || now_ns() < next_visible_ns_))
      [[likely]]
    return false;
  return retake_now(returned, want);
}

// Looks at all holds. `returned` is what the group's word was before.
[[gnu::noinline]] inline bool MemberCore::retake_now(std::uint64_t returned,
                                                     std::size_t want) noexcept {
  if (in_flight_ >= geometry().hold_count && geometry().lease_ns != 0) forget_lost_leases();
  const std::size_t limit = geometry().hold_count;
  const std::size_t room = limit - std::min(in_flight_, limit);
  want = std::min(want, room);
  if (want == 0) return false;
  begin_ready();
  // Others see that this member may die over what it takes, or over slots.
  ++in_flight_;
  note_in_flight();
  std::int64_t next_visible = 0;
  std::optional<Returned> after;  // Nothing up to this one can be taken.
  for (int attempt = 0; attempt < kManyLooks; ++attempt) {
    const std::int64_t visible = find_returned(after);
    if (next_visible == 0) next_visible = visible;
    if (found_.empty()) break;
    // Each look costs the same, however many it finds: of many, some are taken for later calls.
    const std::size_t members = std::max(members_, 1U);
    const std::size_t ahead = std::min(found_count_ / (4 * members), room);
    const std::size_t share = (found_count_ + members - 1) / members;
    const std::size_t count = std::min({found_.size(), std::max(want, ahead), share});
    // The first ones can be taken, nearly always; else all of them are looked at.
    const std::size_t looks = attempt == 0 ? count : found_.size();
    std::partial_sort(found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(looks),
                      found_.end());
    found_.resize(looks);
    if (by_key_) take_slots();
    for (const Returned& one : found_) {
      if (ready_.size() == count) {
        leave_behind(one);
      } else if (take_back(one)) {
        LEAT_CRASH_POINT("retake:taken");
      }
    }
    if (by_key_) settle_slots();
    if (!ready_.empty()) break;
    after = found_.back();
  }
  --in_flight_;
  note_in_flight();
  if (ready_.empty()) {
    seen_returned_ = returned;
    next_visible_ns_ = next_visible;
    // Others put them there faster than they can be looked at: once more soon.
    if (!found_.empty()) next_visible_ns_ = now_ns() + kOthersDie;
  }
  if (ready_.empty()) return false;
  // Records of a deleted group that came back have no memory that is kept.
  if (is_closed()) [[unlikely]] {
    ready_.clear();
    (void)fail(Errc::closed);
    return false;
  }
  park_run_ = may_park_ = kAhead;
  claim_again_ns_ = 0;
  return true;
}

// Fills found_ with records that came back, those of the lowest offsets `after` one. Returns when the
// next of the delayed ones becomes visible, 0 if there is none.
inline std::int64_t MemberCore::find_returned(const std::optional<Returned>& after) noexcept {
  std::int64_t next_visible = 0;
  const std::int64_t now = now_ns();
  found_.clear();
  returned_count_ = found_count_ = 0;
  group_->each_hold([&](std::uint32_t row, std::uint32_t index, const GroupHold& hold,
                        std::uint64_t word) {
    if (phase_of(word) != HoldPhase::returned) return;
    if (by_key_) ++returned_count_;
    // relaxed, all: stored before the state
    if (HoldState::unpack(word).delayed) {
      const std::int64_t visible_at = load_relaxed<Why::stored_before>(hold.visible_at_ns);
      if (visible_at > now) {
        if (next_visible == 0 || visible_at < next_visible) next_visible = visible_at;
        return;
      }
    }
    const Returned one{load_relaxed<Why::stored_before>(hold.offset),
                       by_key_ ? load_relaxed<Why::stored_before>(hold.key) : 0, word, row, index};
    if (after && !(*after < one)) return;
    if (one.key != 0 && !may_have_slot(one)) return;
    ++found_count_;
    if (found_.size() == kMaxFound) {
      if (!(one < found_.front())) return;
      std::pop_heap(found_.begin(), found_.end());
      found_.back() = one;
    } else {
      found_.push_back(one);
    }
    std::push_heap(found_.begin(), found_.end());
    LEAT_CRASH_POINT("retake:found");
  });
  return next_visible;
}

// It was found, and stays where it is.
inline void MemberCore::leave_behind(const Returned& one) noexcept {
  SlotLook* const look = one.key != 0 ? looks_.find(group_->slot_of(one.key)) : nullptr;
  if (look != nullptr) look->is_all = false;
}

// False: it must not be taken now, or somebody else was faster.
inline bool MemberCore::take_back(const Returned& one) noexcept {
  SlotLook* const look = one.key != 0 ? looks_.find(group_->slot_of(one.key)) : nullptr;
  if (one.key != 0 && (look == nullptr || look->is_blocked || one.offset > look->up_to))
    return false;
  HoldState state = HoldState::unpack(one.state);
  state.phase = HoldPhase::ready;
  state.owner = seat_ + 1;
  state.delayed = false;
  state.retaken = true;
  ++state.generation;
  std::uint64_t word = one.state;
  if (!compare_exchange<Edge::hold>(group_->hold(one.row, one.hold).state, word, state.pack())) {
    if (look != nullptr) look->is_blocked = true;
    return false;
  }
  ++in_flight_;
  if (look != nullptr) {
    ++look->taken;
    ++*of_slot_.insert(group_->slot_of(one.key));
  }
  // It may be one that this member lost with its lease, and has not noticed.
  if (const Mine* old = find_mine(one.row, one.hold); old != nullptr) {
    note_lost_lease(one.row, one.hold, old->state);
    forget(one.row, one.hold, HoldPhase::returned);
  }
  keep(one.row, one.hold, {state.pack(), 0, one.key});
  WalkedRecord record;
  record.position = load_relaxed<Why::own>(group_->hold(one.row, one.hold).position);
  ready_.push_back({record, one.row, one.hold, state.pack()});
  return true;
}

// A record that nobody got goes back. `is_counted`: as handed out, which it was not in the end.
inline void MemberCore::put_back(std::uint32_t row, std::uint32_t index, std::uint64_t word,
                                 bool is_counted) noexcept {
  GroupHold& hold = group_->hold(row, index);
  HoldState state = HoldState::unpack(word);
  if (is_counted) --state.deliveries;
  state.phase = HoldPhase::returned;
  state.owner = 0;
  // Before it is returned: what is claimed now must not come before it.
  if (by_key_) mark_key(*group_, load_relaxed<Why::stored_before>(hold.key));
  compare_exchange<Edge::hold>(hold.state, word, state.pack());
}

// What was claimed and not handed out goes back, and so does what did not fit into a buffer.
inline void MemberCore::give_back_ready() noexcept {
  if ((ready_at_ == ready_.size() && !kept_) || participant_.forked()) return;
  const auto give_back_one = [&](std::uint32_t row, std::uint32_t index, std::uint64_t word) {
    put_back(row, index, word, phase_of(word) == HoldPhase::held);
    LEAT_CRASH_POINT("ready:returned");
  };
  for (std::size_t i = ready_at_; i != ready_.size(); ++i)
    give_back_one(ready_[i].row, ready_[i].hold, ready_[i].state);
  if (kept_) give_back_one(kept_->row_, kept_->hold_, kept_->state_);
  announce_returned(shared(), *group_);
  for (; ready_at_ != ready_.size(); ++ready_at_)
    forget(ready_[ready_at_].row, ready_[ready_at_].hold, HoldPhase::returned);
  if (const auto kept = std::exchange(kept_, std::nullopt); kept && order_word(*kept) != nullptr)
    forget(kept->row_, kept->hold_, HoldPhase::returned);
}

// Publishes a record that was handed out too often to the group's topic for such.
inline Result<void> MemberCore::bury(const Delivery& delivery) {
  if (!graveyard_) {
    auto topic = Topic::open_or_create(dead_letter_topic_name(topic_.name(), group_->name()),
                                       dead_letter_topic_options(topic_));
    if (!topic) return topic.error();
    auto publisher = topic->publisher();
    if (!publisher) return publisher.error();
    graveyard_.emplace(std::move(*publisher));
  }
  const DeadLetter letter{delivery.record, topic_.name(), group_->name(), delivery.deliveries};
  auto published = graveyard_->publish(letter.letter(), Deadline::immediate());
  if (!published) return published.error();
  return {};
}

}  // namespace leat::inline v0::detail
