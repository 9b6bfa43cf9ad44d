#include "data_ports.hpp"

#include <spdlog/spdlog.h>

#include "broker/topic/topic_login.hpp"

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
  services_.topics.for_each([this](const TopicPtr& topic) { open_stored(topic); });
}

void DataPorts::open_stored(const TopicPtr& topic) {
  for (const DataPort which : kAll) {
    if (states_.of(*topic)->ports.*port_of(which) == 0) continue;
    if (auto opened = open(topic, which); !opened)
      spdlog::error("topic {}: {}", topic->name(), opened.problem().sentence);
  }
}

Outcome<std::uint16_t> DataPorts::open(const TopicPtr& topic, DataPort which) {
  if (is_closed_) return Problem{Errc::closed, "the broker stops"};
  if (topic->is_deleted()) return Problem{Errc::not_found, "the topic was deleted"};
  const std::uint16_t stored = states_.of(*topic)->ports.*port_of(which);
  if (acceptors_.contains({topic.get(), which})) return stored;
  if (stored != 0) {
    if (auto opened = listen(topic, which, stored); !opened) return opened.problem();
    return stored;
  }
  auto given = states_.give_port(*topic, port_of(which), [&](std::uint16_t port) {
    return listen(topic, which, port).has_value();
  });
  if (!given) acceptors_.erase({topic.get(), which});
  return given;
}

void DataPorts::on_deleting(BrokerTopic& topic) {
  for (const DataPort which : kAll) acceptors_.erase({&topic, which});
}

void DataPorts::on_kept(BrokerTopic& before, const TopicPtr& now) {
  if (&before != now.get()) states_.on_remade(*now);
  open_stored(now);
}

Outcome<void> DataPorts::listen(const TopicPtr& topic, DataPort which, std::uint16_t port) {
  auto acceptor = Acceptor::listen(
      services_.loop, settings_.addresses, port,
      [this, topic, which](Accepted accepted) { on_socket(topic, which, std::move(accepted)); });
  if (!acceptor) return acceptor.problem();
  acceptors_[{topic.get(), which}] = std::move(*acceptor);
  return {};
}

void DataPorts::on_socket(const TopicPtr& topic, DataPort which, Accepted accepted) {
  if (which == DataPort::raw) {
    services_.connections.start(
        make_raw_stream(std::move(accepted), topic, raw_authenticator_of(topic)),
        Connections::Kind::data);
    return;
  }
  const DataLimits limits{.message_bytes = services_.config.max_message_bytes};
  const Access access = which == DataPort::producers ? Access::write : Access::read;
  services_.connections.start(make_data_stream(role_of(which), std::move(accepted), topic,
                                               authenticator_of(topic, access), limits),
                              Connections::Kind::data);
}

DataAuth DataPorts::auth_of(const BrokerTopic& topic) const {
  const DataAuth own = topic.stored().data_auth;
  return own == DataAuth::unset ? services_.config.data_auth : own;
}

std::optional<Principal> DataPorts::authorize_address(const BrokerTopic& topic,
                                                      const Stream::Address& address,
                                                      Access access) const {
  const DataAuth auth = auth_of(topic);
  if (auth == DataAuth::open) return Principal{};
  if (auth == DataAuth::password) return std::nullopt;
  const StoredTopic& stored = topic.stored();
  const TopicState& state = *states_.of(topic);
  const auto has_joined = [&](std::int64_t version) {
    return state.joined.contains({version, address});
  };
  if (has_joined(stored.verifier_version)) return Principal{stored.user, stored.verifier_version};
  for (const Right& right : stored.rights) {
    const bool may = access == Access::read ? right.may_read : right.may_write;
    if (may && has_joined(right.verifier_version))
      return Principal{right.user, right.verifier_version};
  }
  return std::nullopt;
}

std::optional<Principal> DataPorts::principal_of(const BrokerTopic& topic, const std::string& token,
                                                 Access access) const {
  if (auth_of(topic) == DataAuth::open) return Principal{};  // As without a token.
  const auto claim = services_.tokens.read(token);
  if (!claim || claim->topic_id != topic.stored().id || claim->role != access) return std::nullopt;
  const auto credential = credential_of(topic.stored(), claim->user);
  if (!credential || credential->version != claim->verifier_version || !credential->may(access))
    return std::nullopt;
  return Principal{claim->user, credential->version};
}

RawAuthenticator DataPorts::raw_authenticator_of(const TopicPtr& topic) {
  return {
      .authorize_address =
          [this, topic](const Stream::Address& address, Access access) {
            return authorize_address(*topic, address, access);
          },
      .may_be_silent =
          [this, topic](const Stream::Address& address) {
            const TopicState& state = *states_.of(*topic);
            return state.silent.contains(address) || !state.greeting.contains(address);
          },
      .principal_of = [this, topic](const std::string& token,
                                    Access access) { return principal_of(*topic, token, access); },
      .handshake_time = services_.config.handshake_time,
      .max_message_bytes = services_.config.max_message_bytes};
}

Authenticator DataPorts::authenticator_of(const TopicPtr& topic, Access access) {
  Authenticator authenticator;
  authenticator.allows_null = auth_of(*topic) != DataAuth::password;
  authenticator.handshake_time = services_.config.handshake_time;
  authenticator.authorize_address = [this, topic, access](const Stream::Address& address) {
    return authorize_address(*topic, address, access);
  };
  authenticator.version_of = [this, topic,
                              access](const std::string& user) -> std::optional<std::int64_t> {
    if (auth_of(*topic) == DataAuth::open) return 0;
    const auto credential = credential_of(topic->stored(), user);
    if (!credential || !credential->may(access)) return std::nullopt;
    return credential->version;
  };
  authenticator.check = [this, topic, access](const Logins::Asker& asker, const std::string& user,
                                              Secret password, Logins::Done done) {
    if (auth_of(*topic) == DataAuth::open) return done(Logins::Verdict::right);
    const auto credential = credential_of(topic->stored(), user);
    const bool may_come = credential && credential->may(access);
    services_.logins.check({asker, user, scope_of_topic(topic->name()),
                            may_come ? credential->verifier : std::optional<Verifier>{}},
                           std::move(password), std::move(done));
  };
  return authenticator;
}

}  // namespace leat::broker::lightq
