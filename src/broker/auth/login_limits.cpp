#include "login_limits.hpp"

#include <algorithm>

namespace leat::broker {

bool LoginLimits::take(const Origin& origin, Time now) {
  const std::lock_guard lock{mutex_};
  auto found = by_origin_.find(origin);
  if (found == by_origin_.end()) {
    if (entries_.size() >= std::max<std::size_t>(settings_.origins, 1)) {
      by_origin_.erase(entries_.back().origin);
      entries_.pop_back();
    }
    entries_.push_front({origin, now});
    found = by_origin_.emplace(origin, entries_.begin()).first;
  }
  Entry& entry = *found->second;
  entries_.splice(entries_.begin(), entries_, found->second);
  const Time full_at = std::max(entry.full_at, now) + settings_.one_more_after;
  if (full_at - now > settings_.attempts * settings_.one_more_after) return false;
  entry.full_at = full_at;
  return true;
}

LoginLimits::Time LoginLimits::next_at(const Origin& origin) const {
  const std::lock_guard lock{mutex_};
  const auto found = by_origin_.find(origin);
  if (found == by_origin_.end()) return Time::min();
  return found->second->full_at - (settings_.attempts - 1) * settings_.one_more_after;
}

void LoginLimits::return_attempt(const Origin& origin) {
  const std::lock_guard lock{mutex_};
  const auto found = by_origin_.find(origin);
  if (found != by_origin_.end()) found->second->full_at -= settings_.one_more_after;
}

std::size_t LoginLimits::size() const {
  const std::lock_guard lock{mutex_};
  return entries_.size();
}

}  // namespace leat::broker
