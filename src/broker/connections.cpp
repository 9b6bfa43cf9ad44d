#include "broker/connections.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace leat::broker {

void Connections::start(std::shared_ptr<Stream> stream, Kind kind) {
  constexpr std::size_t kForCommands = 100;
  const std::size_t more = kind == Kind::commands ? kForCommands : 0;
  Stream* const raw = stream.get();
  if (streams_.size() >= limits_.in_all + more && !close_abandoned(nullptr)) {
    warn_of_client(fmt::format("{} is refused: there are {} connections, the limit",
                               raw->peer_name(), limits_.in_all));
    return refuse(std::move(stream), "too many connections");
  }
  const Origin origin{raw->peer()};
  if (by_origin_[origin] >= limits_.per_address + more && !close_abandoned(&origin)) {
    warn_of_client(fmt::format("{} is refused: its address has {} connections, the limit",
                               raw->peer_name(), limits_.per_address));
    return refuse(std::move(stream), "too many connections from this address");
  }
  ++by_origin_[origin];
  streams_[raw] = std::move(stream);
  raw->on_end([this, raw] { remove(raw); });
  raw->begin();
}

bool Connections::close_abandoned(const Origin* of_origin) {
  for (const auto& [raw, stream] : streams_) {
    if (of_origin != nullptr && Origin{raw->peer()} != *of_origin) continue;
    if (!raw->is_abandoned()) continue;
    spdlog::warn("{} has gone; what it sent last to a full topic is lost: others need its place",
                 raw->peer_name());
    const auto kept = stream;  // Closing it takes it out of the list.
    kept->close("its client has gone");
    return true;
  }
  return false;
}

void Connections::remove(Stream* stream) {
  const auto of_origin = by_origin_.find(Origin{stream->peer()});
  if (--of_origin->second == 0) by_origin_.erase(of_origin);
  streams_.erase(stream);
}

void Connections::refuse(std::shared_ptr<Stream> stream, const char* why) {
  constexpr std::size_t kMost = 64;  // The others are only closed.
  Stream* const raw = stream.get();
  if (refused_.size() >= kMost) return raw->close(why);
  refused_[raw] = std::move(stream);
  raw->on_end([this, raw] { refused_.erase(raw); });
  raw->begin_refused(why);
}

void Connections::close_all(const std::string& why) {
  for (auto* streams : {&streams_, &refused_})
    while (!streams->empty()) streams->begin()->second->close(why);
}

}  // namespace leat::broker
