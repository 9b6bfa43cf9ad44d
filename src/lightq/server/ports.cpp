#include "ports.hpp"

#include <fmt/format.h>

namespace leat::broker::lightq {

Ports::Ports(std::uint16_t first, std::uint16_t last, std::uint16_t next)
    : first_{first}, last_{last}, next_{next >= first && next <= last ? next : first} {}

std::optional<std::uint16_t> Ports::next(const std::function<bool(std::uint16_t)>& is_usable) {
  for (int left = last_ - first_ + 1; left > 0; --left) {
    const std::uint16_t port = next_;
    next_ = port == last_ ? first_ : static_cast<std::uint16_t>(port + 1);
    if (used_.contains(port) || !is_usable(port)) continue;
    used_.insert(port);
    return port;
  }
  return std::nullopt;
}

std::string Ports::range() const { return fmt::format("{}-{}", first_, last_); }

}  // namespace leat::broker::lightq
