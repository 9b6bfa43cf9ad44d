#include "broker/lightq/data_ports.hpp"

#include <spdlog/spdlog.h>

namespace leat::broker::lightq {
namespace {

constexpr DataPort kAll[] = {DataPort::producers, DataPort::pullers, DataPort::subscribers,
                             DataPort::raw};

std::uint16_t TopicPorts::*port_of(DataPort which) {
  switch (which) {
    case DataPort::producers: return &TopicPorts::push;
    case DataPort::pullers: return &TopicPorts::pull;
    case DataPort::subscribers: return &TopicPorts::pub;
    case DataPort::raw: break;
  }
  return &TopicPorts::raw;
}

// What the broker's side of a ZeroMQ connection is.
zmtp::Role role_of(DataPort which) {
  switch (which) {
    case DataPort::producers: return zmtp::Role::pull;
    case DataPort::pullers: return zmtp::Role::push;
    default: return zmtp::Role::pub;
  }
}

}  // namespace

void DataPorts::open_stored() {
  topics_.for_each([this](BrokerTopic& topic) {
    for (const DataPort which : kAll) {
      if (topic.stored().ports.*port_of(which) == 0) continue;
      if (auto opened = open(topic, which); !opened)
        spdlog::error("topic {}: {}", topic.name(), opened.problem().sentence);
    }
  });
}

Outcome<std::uint16_t> DataPorts::open(BrokerTopic& topic, DataPort which) {
  if (is_closed_) return Problem{Errc::closed, "the broker stops"};
  const std::uint16_t stored = topic.stored().ports.*port_of(which);
  if (acceptors_.contains({&topic, which})) return stored;
  if (stored != 0) {
    if (auto opened = listen(topic, which, stored); !opened) return opened.problem();
    return stored;
  }
  auto given = topics_.give_port(topic, port_of(which), [&](std::uint16_t port) {
    return listen(topic, which, port).has_value();
  });
  if (!given) acceptors_.erase({&topic, which});
  return given;
}

Outcome<void> DataPorts::listen(BrokerTopic& topic, DataPort which, std::uint16_t port) {
  auto acceptor = Acceptor::listen(
      loop_, config_.lightq_addresses, port,
      [this, &topic, which](Stream::Socket socket) { on_socket(topic, which, std::move(socket)); });
  if (!acceptor) return acceptor.problem();
  acceptors_[{&topic, which}] = std::move(*acceptor);
  return {};
}

void DataPorts::on_socket(BrokerTopic& topic, DataPort which, Stream::Socket socket) {
  if (which == DataPort::raw) {
    connections_.start(make_raw_stream(std::move(socket), topic, raw_gate_of(topic)));
    return;
  }
  const DataLimits limits{.message_bytes = config_.max_message_bytes};
  connections_.start(
      make_data_stream(role_of(which), std::move(socket), topic, gate_of(topic), limits));
}

DataAuth DataPorts::auth_of(const BrokerTopic& topic) const {
  const DataAuth own = topic.stored().data_auth;
  return own == DataAuth::unset ? config_.data_auth : own;
}

bool DataPorts::is_welcome(const BrokerTopic& topic, const Stream::Address& address) const {
  const DataAuth auth = auth_of(topic);
  return auth == DataAuth::open || (auth == DataAuth::joined &&
          topic.joined.contains({topic.stored().verifier_version, address}));
}

bool DataPorts::is_right(const BrokerTopic& topic, const std::string& token, raw::Role role) const {
  const auto claim = tokens_.read(token);
  const TokenRole wanted = role == raw::Role::producer ? TokenRole::write : TokenRole::read;
  return claim && *claim == TokenClaim{topic.stored().id, topic.stored().user, wanted,
                                       topic.stored().verifier_version};
}

RawGate DataPorts::raw_gate_of(BrokerTopic& topic) {
  return {.is_welcome = [this, &topic](const Stream::Address& address) {
            return is_welcome(topic, address);
          },
          .is_right_token = [this, &topic](const std::string& token,
                                           raw::Role role) { return is_right(topic, token, role); },
          .handshake_time = config_.handshake_time,
          .max_message_bytes = config_.max_message_bytes};
}

Gate DataPorts::gate_of(BrokerTopic& topic) {
  Gate gate;
  gate.allows_null = auth_of(topic) != DataAuth::password;
  gate.handshake_time = config_.handshake_time;
  gate.is_welcome = [this, &topic](const Stream::Address& address) {
    return is_welcome(topic, address);
  };
  gate.check = [this, &topic](const Stream::Address& address, const std::string& user,
                              Secret password, Logins::Done done) {
    const StoredTopic& stored = topic.stored();
    const bool is_user = user == stored.user;
    logins_.check({address, user, "topic/" + stored.name,
                   is_user ? stored.verifier : std::optional<Verifier>{}},
                  std::move(password),
                  [done = std::move(done), &stored, version = stored.verifier_version](
                      Logins::Verdict verdict) {
                    const bool is_old = stored.verifier_version != version;  // Changed meanwhile.
                    done(is_old && verdict == Logins::Verdict::right ? Logins::Verdict::wrong
                                                                     : verdict);
                  });
  };
  return gate;
}

}  // namespace leat::broker::lightq
