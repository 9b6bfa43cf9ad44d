#include "broker/large_messages.hpp"

#include <algorithm>
#include <utility>

#include "leat/base/assert.hpp"

namespace leat::broker {
namespace {

constexpr int kLooks = 4;  // until patience is at its end
constexpr std::uint64_t kMoves = 64 * 1024;  // bytes in that time

}  // namespace

bool LargeMessages::take(Holder& holder, std::size_t bytes) {
  const bool has_turn = std::exchange(has_turn_, false);
  if (waiting_.contains(holder.number_)) return false;
  LEAT_ASSERT(holder.number_ == 0);
  holder.number_ = ++last_number_;
  if ((waiting_.empty() || has_turn) && has_room_for(bytes)) {
    holding_.emplace(holder.number_, Held{&holder, bytes, holder.moved_bytes()});
    bytes_ += bytes;
    return true;
  }
  waiting_.emplace(holder.number_, Waiting{&holder, bytes});
  if (!std::exchange(is_looking_, true)) {
    for (auto& [number, held] : holding_) {
      held.moved = held.holder->moved_bytes();
      held.still_looks = 0;
    }
    look_for_stopped();
  }
  return false;
}

void LargeMessages::release(Holder& holder) {
  const std::uint64_t number = std::exchange(holder.number_, 0);
  if (number == 0) return;
  waiting_.erase(number);
  if (const auto at = holding_.find(number); at != holding_.end()) {
    bytes_ -= at->second.bytes;
    holding_.erase(at);
  }
  // Later: the caller is in the middle of its work.
  if (!waiting_.empty() && !wake_.is_running())
    wake_.start(std::chrono::milliseconds{0}, [this] { wake(); });
}

// Those that line up meanwhile have their turn at the next call.
void LargeMessages::wake() {
  const std::uint64_t last = last_number_;
  while (!waiting_.empty()) {
    const auto [number, next] = *waiting_.begin();
    if (number > last || !has_room_for(next.bytes)) return;
    waiting_.erase(number);
    next.holder->number_ = 0;
    has_turn_ = true;
    next.holder->on_room();
    has_turn_ = false;
  }
}

void LargeMessages::look_for_stopped() {
  look_.start(patience_ / kLooks, [this] {
    is_looking_ = !waiting_.empty();
    if (!is_looking_) return;
    for (auto& [number, held] : holding_) look_at(held);
    cut_off_stopped();
    look_for_stopped();
  });
}

void LargeMessages::look_at(Held& held) {
  const std::uint64_t moved = held.holder->moved_bytes();
  if (moved - held.moved >= kMoves || !held.holder->waits_for_client()) {
    held.moved = moved;
    held.still_looks = 0;
  } else {
    ++held.still_looks;
  }
}

void LargeMessages::cut_off_stopped() {
  std::size_t wanted = bytes_;
  for (const auto& [number, waiting] : waiting_) wanted += waiting.bytes;
  for (const auto& [number, held] : holding_)
    if (held.is_closing) wanted -= held.bytes;
  for (auto& [number, held] : holding_) {
    if (wanted <= most_) return;
    if (held.still_looks < kLooks || held.is_closing) continue;
    held.is_closing = true;
    wanted -= held.bytes;
    held.holder->cut_off();
  }
}

}  // namespace leat::broker
