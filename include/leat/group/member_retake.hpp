// How a Member takes records that came back: given back, left by the dead, taken away with a lease.
// Included by member.hpp only. docs/internals/groups.md, "Redelivery".
#pragma once

#include "leat/group/dead_letters.hpp"
#include "leat/group/member_take.hpp"

namespace leat {

// Takes one of the records that came back, if some are there that may be taken now.
inline Member::Got Member::retake(Delivery& delivery) {
  using namespace detail;
  // [hold] acquire: raised after the states of what was returned.
  const std::uint64_t returned = load_acquire<Edge::hold>(group_->header().returned);
  if (returned == seen_returned_ && (next_visible_ns_ == 0 || now_ns() < next_visible_ns_))
      [[likely]]
    return Got::none;
  return retake_now(returned, delivery);
}

// Looks at all holds. `returned` is what the group's word was before.
[[gnu::noinline]] inline Member::Got Member::retake_now(std::uint64_t returned,
                                                        Delivery& delivery) {
  using namespace detail;
  std::int64_t next_visible = 0;
  const std::int64_t now = now_ns();
  for (std::uint32_t seat = 0; seat < group_->seat_high(); ++seat) {
    for (std::uint32_t index = 0; index < group_->hold_high(seat); ++index) {
      GroupHold& hold = group_->hold(seat, index);
      const std::uint64_t word = load_acquire<Edge::hold>(hold.state);
      if (phase_of(word) != HoldPhase::returned) continue;
      if (HoldState::unpack(word).delayed) {
        // relaxed: stored before the state
        const std::int64_t visible_at = load_relaxed(hold.visible_at_ns);
        if (visible_at > now) {
          if (next_visible == 0 || visible_at < next_visible) next_visible = visible_at;
          continue;
        }
      }
      const Got got = retake_hold(seat, index, hold, word, delivery);
      if (got != Got::none) return got;
    }
  }
  seen_returned_ = returned;
  next_visible_ns_ = next_visible;
  return Got::none;
}

inline Member::Got Member::retake_hold(std::uint32_t seat, std::uint32_t index,
                                       detail::GroupHold& hold, std::uint64_t word,
                                       Delivery& delivery) {
  using namespace detail;
  if (geometry().by_key() && !key_is_free(hold)) return Got::none;
  HoldState state = HoldState::unpack(word);
  const bool is_dead_letter =
      geometry().max_deliveries != 0 && state.deliveries >= geometry().max_deliveries;
  const bool is_first = state.deliveries == 0;
  state.phase = HoldPhase::held;
  state.owner = seat_ + 1;
  state.delayed = false;
  state.retaken = true;
  ++state.generation;
  if (!is_dead_letter && state.deliveries < HoldState::kMaxDeliveries) ++state.deliveries;
  ++in_flight_;
  note_in_flight();
  extend_lease(hold);
  if (!compare_exchange<Edge::hold>(hold.state, word, state.pack())) {
    --in_flight_;
    note_in_flight();
    return Got::none;
  }
  LEAT_STEP("retake:taken");
  // Returned records of a deleted group have no memory that is kept.
  if (is_closed()) [[unlikely]]
    return fail(know_of_closing());
  // It may be one that this member lost with its lease, and has not noticed: then it counts already.
  bool was_mine = false;
  if (seat == seat_) {
    if (own_[index].whose == Own::lost) --lost_;
    if (own_[index].whose == Own::mine) {
      was_mine = true;
      note_lost_lease(seat, index, own_[index].state);
    }
    own_[index] = {state.pack(), ++order_, Own::mine};
  } else {
    was_mine = std::erase_if(foreign_, [&](const ForeignHold& one) {
                 if (one.seat != seat || one.hold != index) return false;
                 note_lost_lease(seat, index, one.state);
                 return true;
               }) != 0;
    foreign_.push_back({seat, index, state.pack(), ++order_});
  }
  if (was_mine) {
    --in_flight_;
    note_in_flight();
  }
  store_relaxed(this->seat().handed, ++handed_);  // relaxed: only whether it changes
  std::optional<WalkedRecord> found;
  {
    const LeasedRead read{*this, hold, state.pack()};
    if (read.is_mine()) found = find_held(shared(), records_, hold);
    if (!found && read.is_still_mine()) return fail(Errc::corrupt);
  }
  if (!found) {
    forget(seat, index, HoldPhase::returned);
    return Got::none;
  }
  const Got got = deliver(*found, state.pack(), seat, index, delivery);
  if (got != Got::one) return got;
  if (!is_dead_letter) {
    if (!is_first) fetch_add<Edge::hold>(group_->header().redelivered, 1);
    return got;
  }
  if (bury(delivery)) {
    fetch_add<Edge::hold>(group_->header().dead_letters, 1);
    (void)settle(delivery, HoldPhase::free);
  } else {
    (void)give_back(delivery, std::chrono::seconds{1});  // Nothing is lost: tried again later.
  }
  return Got::none;
}

// Publishes a record that was handed out too often to the group's topic for such.
inline Result<void> Member::bury(const Delivery& delivery) {
  if (!graveyard_) {
    auto topic = Topic::open_or_create(detail::dead_letter_topic_name(topic_.name(), group_->name()),
                                       detail::dead_letter_topic_options(topic_));
    if (!topic) return topic.error();
    auto publisher = topic->publisher();
    if (!publisher) return publisher.error();
    graveyard_.emplace(std::move(*publisher));
  }
  const detail::DeadLetter letter{delivery.record, topic_.name(), group_->name(),
                                  delivery.deliveries};
  auto published = graveyard_->publish(letter.letter(), Deadline::immediate());
  if (!published) return published.error();
  return {};
}

}  // namespace leat
