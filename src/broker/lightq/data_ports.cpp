#include "broker/lightq/data_ports.hpp"

#include <spdlog/spdlog.h>

namespace leat::broker::lightq {
namespace {

// What the topic's ports are called: by what their clients do.
std::uint16_t TopicPorts::*port_of(zmtp::Role role) {
  switch (role) {
    case zmtp::Role::pull: return &TopicPorts::push;
    case zmtp::Role::push: return &TopicPorts::pull;
    default: return &TopicPorts::pub;
  }
}

}  // namespace

void DataPorts::open_stored() {
  topics_.for_each([this](BrokerTopic& topic) {
    for (const auto role : {zmtp::Role::pull, zmtp::Role::push, zmtp::Role::pub}) {
      if (topic.stored().ports.*port_of(role) == 0) continue;
      if (auto opened = open(topic, role); !opened)
        spdlog::error("topic {}: {}", topic.name(), opened.problem().sentence);
    }
  });
}

Outcome<std::uint16_t> DataPorts::open(BrokerTopic& topic, zmtp::Role role) {
  const std::uint16_t stored = topic.stored().ports.*port_of(role);
  if (acceptors_.contains({&topic, role})) return stored;
  if (stored != 0) {
    if (auto opened = listen(topic, role, stored); !opened) return opened.problem();
    return stored;
  }
  auto given = topics_.give_port(topic, port_of(role), [&](std::uint16_t port) {
    return listen(topic, role, port).has_value();
  });
  if (!given) acceptors_.erase({&topic, role});
  return given;
}

Outcome<void> DataPorts::listen(BrokerTopic& topic, zmtp::Role role, std::uint16_t port) {
  auto acceptor = Acceptor::listen(
      loop_, config_.lightq_addresses, port,
      [this, &topic, role](Stream::Socket socket) { on_socket(topic, role, std::move(socket)); });
  if (!acceptor) return acceptor.problem();
  acceptors_[{&topic, role}] = std::move(*acceptor);
  return {};
}

void DataPorts::on_socket(BrokerTopic& topic, zmtp::Role role, Stream::Socket socket) {
  const DataLimits limits{.message_bytes = config_.max_message_bytes};
  connections_.start(make_data_stream(role, std::move(socket), topic, gate_of(topic), limits));
}

Gate DataPorts::gate_of(BrokerTopic& topic) {
  const DataAuth own = topic.stored().data_auth;
  const DataAuth auth = own == DataAuth::unset ? config_.data_auth : own;
  Gate gate;
  gate.allows_null = auth != DataAuth::password;
  gate.handshake_time = config_.handshake_time;
  gate.is_welcome = [&topic, auth](const Stream::Address& address) {
    return auth == DataAuth::open || topic.joined.contains(address);
  };
  gate.check = [this, &topic](const Stream::Address& address, const std::string& user,
                              Secret password, Logins::Done done) {
    const StoredTopic& stored = topic.stored();
    const bool is_user = user == stored.user;
    logins_.check({address, user, "topic/" + stored.name,
                   is_user ? stored.verifier : std::optional<Verifier>{}},
                  std::move(password), std::move(done));
  };
  return gate;
}

}  // namespace leat::broker::lightq
