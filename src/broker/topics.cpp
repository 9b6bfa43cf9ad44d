#include "broker/topics.hpp"

#include <fmt/format.h>

namespace leat::broker {

Topics::Topics(boost::asio::io_context& loop, const Config& config, TopicStore& store)
    : loop_{loop},
      config_{config},
      store_{store},
      places_{config.dir, config.data_dir},
      ports_{config.data_ports().first, config.data_ports().last} {}

Outcome<void> Topics::load() {
  auto next = store_.next_port();
  if (!next) return next.problem();
  const PortRange range = config_.data_ports();
  ports_ = Ports{range.first, range.last, *next};
  auto stored = store_.topics();
  if (!stored) return stored.problem();
  for (StoredTopic& topic : *stored) insert(std::move(topic));
  return {};
}

BrokerTopic& Topics::insert(StoredTopic stored) {
  for (const std::uint16_t port :
       {stored.ports.pull, stored.ports.push, stored.ports.pub, stored.ports.raw}) {
    if (port != 0) ports_.take(port);
  }
  const std::string name = stored.name;
  auto topic = std::make_unique<BrokerTopic>(loop_, places_, store_, std::move(stored));
  return *(topics_[name] = std::move(topic));
}

BrokerTopic* Topics::find(std::string_view name) const {
  const auto found = topics_.find(name);
  return found == topics_.end() ? nullptr : found->second.get();
}

Outcome<BrokerTopic*> Topics::add(const NewTopic& topic) {
  if (topics_.size() >= config_.max_topics)
    return Problem{Errc::too_many,
                   fmt::format("there are {} topics already, the limit", topics_.size())};
  auto stored = store_.add(topic);
  if (!stored) return stored.problem();
  return &insert(std::move(*stored));
}

Outcome<std::uint16_t> Topics::give_port(BrokerTopic& topic, std::uint16_t TopicPorts::*which,
                                         const std::function<bool(std::uint16_t)>& is_usable) {
  const auto port = ports_.next(is_usable);
  if (!port) return Problem{Errc::no_space, "no free port in " + ports_.range()};
  TopicPorts all = topic.stored().ports;
  all.*which = *port;
  if (auto set = store_.set_ports(topic.stored().id, all, ports_.position()); !set) {
    ports_.give_back(*port);
    return set.problem();
  }
  topic.set_ports(all);
  return *port;
}

Outcome<void> Topics::set_verifier(BrokerTopic& topic, const Verifier& verifier) {
  auto version = store_.change_password(topic.stored().id, verifier);
  if (!version) return version.problem();
  topic.set_verifier(verifier, *version);
  return {};
}

}  // namespace leat::broker
