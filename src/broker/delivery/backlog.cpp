#include "backlog.hpp"

#include <algorithm>
#include <vector>

namespace leat::broker {

void Backlog::count(Chunk& chunk) {
  chunk.number = ++last_number_;
  chunk.total = total_;
  chunk.counted = chunk.bytes.capacity();
  *total_ += chunk.counted;
}

// Trims to less than the bound, so that not every later chunk costs a check of all subscribers.
void Backlog::trim() {
  if (bytes() <= limit_) return;
  const std::size_t target = most_ - most_ / 8;
  std::vector<std::pair<std::uint64_t, Backlogged*>> by_age;
  by_age.reserve(waiting_.size());
  for (Backlogged* const one : waiting_) by_age.emplace_back(one->oldest(), one);
  std::sort(by_age.begin(), by_age.end());
  std::size_t later = 0;
  for (const auto& [oldest, one] : by_age) {
    if (bytes() <= target + later) break;
    later += one->give_up();
  }
  limit_ = std::max(most_, bytes() + most_ / 16);
  if (bytes() <= target) limit_ = most_;
}

}  // namespace leat::broker
