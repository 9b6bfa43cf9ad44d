#include "broker/login_limits.hpp"

#include <algorithm>

namespace leat::broker {

LoginLimits::Key LoginLimits::key_of(const Address& address) {
  namespace ip = boost::asio::ip;
  if (address.is_v4()) return {4, address.to_v4().to_uint()};
  const ip::address_v6 v6 = address.to_v6();
  if (v6.is_v4_mapped()) return {4, ip::make_address_v4(ip::v4_mapped, v6).to_uint()};
  std::uint64_t network = 0;
  const auto bytes = v6.to_bytes();
  for (std::size_t i = 0; i < 8; ++i) network = network << 8 | bytes[i];
  return {6, network};
}

bool LoginLimits::take(const Address& address, Time now) {
  const Key key = key_of(address);
  const std::lock_guard lock{mutex_};
  auto found = by_key_.find(key);
  if (found == by_key_.end()) {
    if (entries_.size() >= std::max<std::size_t>(settings_.addresses, 1)) {
      by_key_.erase(entries_.back().key);
      entries_.pop_back();
    }
    entries_.push_front({key, now});
    found = by_key_.emplace(key, entries_.begin()).first;
  }
  Entry& entry = *found->second;
  entries_.splice(entries_.begin(), entries_, found->second);
  const Time full_at = std::max(entry.full_at, now) + settings_.one_more_after;
  if (full_at - now > settings_.attempts * settings_.one_more_after) return false;
  entry.full_at = full_at;
  return true;
}

void LoginLimits::give_back(const Address& address) {
  const std::lock_guard lock{mutex_};
  const auto found = by_key_.find(key_of(address));
  if (found != by_key_.end()) found->second->full_at -= settings_.one_more_after;
}

std::size_t LoginLimits::size() const {
  const std::lock_guard lock{mutex_};
  return entries_.size();
}

}  // namespace leat::broker
