#include "broker/connections.hpp"

#include <spdlog/spdlog.h>

namespace leat::broker {

void Connections::start(std::shared_ptr<Stream> stream) {
  Stream* const raw = stream.get();
  if (streams_.size() >= limits_.in_all) {
    spdlog::warn("{} is refused: there are {} connections, the limit", raw->peer_name(),
                 limits_.in_all);
    return raw->close("too many connections");
  }
  std::size_t& of_address = by_address_[raw->address()];
  if (of_address >= limits_.per_address) {
    spdlog::warn("{} is refused: its address has {} connections, the limit", raw->peer_name(),
                 limits_.per_address);
    return raw->close("too many connections from this address");
  }
  ++of_address;
  streams_[raw] = std::move(stream);
  raw->on_end([this, raw] { remove(raw); });
  raw->begin();
}

void Connections::remove(Stream* stream) {
  const auto of_address = by_address_.find(stream->address());
  if (--of_address->second == 0) by_address_.erase(of_address);
  streams_.erase(stream);
}

void Connections::close_all(const std::string& why) {
  while (!streams_.empty()) streams_.begin()->second->close(why);
}

}  // namespace leat::broker
