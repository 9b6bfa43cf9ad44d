#include "large_messages.hpp"

#include <algorithm>
#include <utility>

#include "leat/base/assert.hpp"

namespace leat::broker {
namespace {

constexpr int kChecks = 4;                   // until patience is at its end
constexpr std::uint64_t kMoves = 64 * 1024;  // bytes in that time
constexpr std::uint64_t kMovesOfHeld = 16;   // or this part of what is held

}  // namespace

bool LargeMessages::take(Waiter& waiter, Holder& holder, std::size_t bytes) {
  const bool has_turn = turn_ == &waiter;
  if (has_turn) turn_ = nullptr;
  if (waiter.waits()) return false;
  if ((has_turn || next_line() == nullptr) && has_room_for(bytes)) {
    hold(holder, bytes);
    return true;
  }
  line_up(waiter, bytes);
  return false;
}

void LargeMessages::hold(Holder& holder, std::size_t bytes) {
  LEAT_ASSERT(holder.number_ == 0);
  holder.number_ = ++last_number_;
  holding_.emplace(holder.number_, Held{&holder, bytes, holder.moved_bytes()});
  bytes_ += bytes;
}

void LargeMessages::release(Holder& holder) {
  if (holder.number_ == 0) return;
  const auto held = holding_.find(std::exchange(holder.number_, 0));
  bytes_ -= held->second.bytes;
  holding_.erase(held);
  wake_soon();
}

// --- The line ------------------------------------------------------------------------------------

void LargeMessages::line_up(Waiter& waiter, std::size_t bytes) {
  const auto [line, is_new] = lines_.try_emplace(waiter.origin());
  if (is_new) turns_.push_back(line->first);
  waiter.number_ = ++last_number_;
  line->second.emplace(waiter.number_, Waiting{&waiter, bytes});
  waiting_bytes_ += bytes;
  if (std::exchange(is_checking_, true)) return;
  for (auto& [number, held] : holding_) {
    held.moved = held.holder->moved_bytes();
    held.still_checks = 0;
  }
  check_regularly();
}

void LargeMessages::leave(Waiter& waiter) {
  if (!waiter.waits()) return;
  remove(lines_.find(waiter.origin())->second, waiter.number_);
  wake_soon();
}

void LargeMessages::remove(Line& line, std::uint64_t number) {
  const auto place = line.find(number);
  place->second.waiter->number_ = 0;
  waiting_bytes_ -= place->second.bytes;
  line.erase(place);
}

LargeMessages::Line* LargeMessages::next_line() {
  for (; !turns_.empty(); turns_.pop_front()) {
    const auto line = lines_.find(turns_.front());
    if (!line->second.empty()) return &line->second;
    lines_.erase(line);
  }
  return nullptr;
}

bool LargeMessages::has_room_for_next() {
  const Line* const line = next_line();
  return line != nullptr && has_room_for(line->begin()->second.bytes);
}

// Later: the caller is in the middle of its work.
void LargeMessages::wake_soon() {
  if (has_room_for_next() && !wake_.is_running())
    wake_.start(std::chrono::milliseconds{0}, [this] { wake(); });
}

// Other work of the loop comes before a second turn of the same waiter.
void LargeMessages::wake() {
  const std::uint64_t last = last_number_;
  while (has_room_for_next()) {
    Line& line = *next_line();
    const auto [number, next] = *line.begin();
    if (number > last) break;
    remove(line, number);
    turns_.push_back(turns_.front());
    turns_.pop_front();
    turn_ = next.waiter;
    next.waiter->on_room();
    turn_ = nullptr;
  }
  wake_soon();
}

// --- Clients that stopped ------------------------------------------------------------------------

void LargeMessages::check_regularly() {
  check_timer_.start(patience_ / kChecks, [this] {
    is_checking_ = next_line() != nullptr;
    if (!is_checking_) return;
    for (auto& [number, held] : holding_) check(held);
    cut_off_stopped();
    check_regularly();
  });
}

void LargeMessages::check(Held& held) {
  const std::uint64_t moved = held.holder->moved_bytes();
  const std::uint64_t wanted = std::max(kMoves, held.bytes / kMovesOfHeld);
  if (moved - held.moved >= wanted || !held.holder->waits_for_client()) {
    held.moved = moved;
    held.still_checks = 0;
  } else {
    ++held.still_checks;
  }
}

void LargeMessages::cut_off_stopped() {
  std::size_t wanted = bytes_ + waiting_bytes_;
  for (const auto& [number, held] : holding_)
    if (held.is_closing) wanted -= held.bytes;
  for (auto& [number, held] : holding_) {
    if (wanted <= most_) return;
    if (held.still_checks < kChecks || held.is_closing) continue;
    held.is_closing = true;
    wanted -= held.bytes;
    held.holder->cut_off();
  }
}

}  // namespace leat::broker
