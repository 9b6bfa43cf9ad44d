#include "connections.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>

namespace leat::broker {

namespace {

constexpr std::size_t kForCommands = 100;
// So that those at TCP ports never keep out the broker's owner.
constexpr std::size_t kForUnix = 10;

std::size_t limit_of_descriptors() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

// For the broker's store, its topics and their ports, which open and close; and for clients that are told why they are
// refused.
std::size_t own_descriptors(std::size_t limit) {
  return std::clamp<std::size_t>(limit / 8, std::min<std::size_t>(128, limit / 2), 1024);
}
std::size_t descriptors_for_commands(std::size_t limit) {
  return std::min(kForCommands, limit / 4);
}
std::size_t descriptors_for_unix(std::size_t limit) { return std::min(kForUnix, limit / 16); }

}  // namespace

std::size_t Connections::most_by_descriptors() {
  const std::size_t limit = limit_of_descriptors();
  return limit - own_descriptors(limit) - descriptors_for_commands(limit) -
         descriptors_for_unix(limit);
}

// A new descriptor is the lowest that is free, so all below it are in use, whoever has them: also those that are reserved.
bool Connections::is_last(const Stream& stream, Kind kind) const {
  const std::size_t limit = limit_of_descriptors();
  std::size_t most = most_by_descriptors() + for_unix_;
  if (kind == Kind::commands) most += descriptors_for_commands(limit);
  if (stream.peer().is_unix) {
    if (unix_connections() < for_unix_) return false;
    // Strangers that are told why they are refused may have the next ones.
    most += own_descriptors(limit) / 2;
  }
  return static_cast<std::size_t>(stream.descriptor()) >= most;
}

// Topics take as many descriptors as they need, so a part of the limit that is only not given to others would not be left.
void Connections::reserve_for_unix() {
  for_unix_ = descriptors_for_unix(limit_of_descriptors());
  fill_reserve();
}

bool Connections::free_reserved() {
  if (reserved_.empty()) return false;
  reserved_.pop_back();
  return true;
}

void Connections::fill_reserve() {
  while (reserved_.size() + unix_connections() < for_unix_) {
    leat::os::Fd one{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
    if (!one) return;
    reserved_.push_back(std::move(one));
  }
}

std::size_t Connections::unix_connections() const {
  Peer owner;
  owner.is_unix = true;
  const auto found = by_origin_.find(Origin{owner});
  return found == by_origin_.end() ? 0 : found->second;
}

void Connections::start(std::shared_ptr<Stream> stream, Kind kind) {
  Stream* const raw = stream.get();
  const std::size_t more =
      kind == Kind::data ? 0 : kForCommands + (raw->peer().is_unix ? kForUnix : 0);
  if (is_last(*raw, kind) && !close_abandoned(nullptr)) {
    warn_of_client(
        fmt::format("{} is refused: the limit of open files, {}, leaves room for no more",
                    raw->peer_name(), limit_of_descriptors()));
    return refuse(std::move(stream), "too many connections");
  }
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
  most_ = std::max(most_, streams_.size());
  raw->on_end([this, raw] { remove(raw); });
  bound(*raw, kind);
  raw->begin();
}

void Connections::bound(Stream& stream, Kind kind) {
  if (kind == Kind::data && unfinished_.messages != nullptr) stream.bound(*unfinished_.messages);
  if (kind == Kind::commands && unfinished_.commands != nullptr && !stream.peer().is_unix)
    stream.bound(*unfinished_.commands, kSmallCommand);
}

void Connections::check_abandoned() {
  constexpr std::chrono::milliseconds kAgain{100};
  const auto now = std::chrono::steady_clock::now();
  if (now < next_check_) return;
  abandoned_.clear();
  for (const auto& [raw, stream] : streams_)
    if (raw->is_abandoned()) abandoned_.emplace(Origin{raw->peer()}, stream);
  next_check_ = std::chrono::steady_clock::now() + kAgain;
}

bool Connections::close_abandoned(const Origin* of_origin) {
  check_abandoned();
  while (!abandoned_.empty()) {
    const auto next = of_origin == nullptr ? abandoned_.begin() : abandoned_.find(*of_origin);
    if (next == abandoned_.end()) return false;
    const auto stream = next->second.lock();
    abandoned_.erase(next);
    // It may have been closed, or read, meanwhile.
    if (!stream || !stream->is_open() || !stream->is_abandoned()) continue;
    warn_of_client(
        fmt::format("{} has gone; what it sent last to a full topic is lost: others need its place",
                    stream->peer_name()));
    stream->close("its client has gone");
    return true;
  }
  return false;
}

void Connections::remove(Stream* stream) {
  const auto of_origin = by_origin_.find(Origin{stream->peer()});
  if (--of_origin->second == 0) by_origin_.erase(of_origin);
  streams_.erase(stream);
  fill_reserve();
  constexpr std::size_t kManyAtOnce = 256;
  if (most_ < kManyAtOnce || streams_.size() > most_ / 2) return;
  most_ = streams_.size();
  if (on_many_closed_) on_many_closed_();
}

void Connections::refuse(std::shared_ptr<Stream> stream, const char* why) {
  constexpr std::size_t kMost = 64;  // The others are only closed.
  Stream* const raw = stream.get();
  const std::size_t limit = limit_of_descriptors();
  const auto number = static_cast<std::size_t>(raw->descriptor());
  const bool is_short = number >= limit - own_descriptors(limit) / 2;  // Topics need the rest.
  if (refused_.size() >= kMost || is_short) return raw->close(why);
  refused_[raw] = std::move(stream);
  raw->on_end([this, raw] {
    refused_.erase(raw);
    fill_reserve();
  });
  raw->begin_refused(why);
}

void Connections::close_all(const std::string& why) {
  for (auto* streams : {&streams_, &refused_})
    while (!streams->empty()) streams->begin()->second->close(why);
}

}  // namespace leat::broker
