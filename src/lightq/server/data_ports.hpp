// The ports at which LightQ's clients send and get messages: up to four for each topic.
//
//     DataPorts ports{loop, config, topics, logins, tokens, connections};
//     ports.open_stored();                                     // those of before the restart
//     auto port = ports.open(topic, DataPort::producers);
//
// Belongs to the thread of its event loop.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "broker/auth/tokens.hpp"
#include "broker/net/acceptor.hpp"
#include "broker/net/connections.hpp"
#include "broker/topic/topics.hpp"
#include "data_streams.hpp"
#include "raw_stream.hpp"

namespace leat::broker::lightq {

// What its clients do; `raw`: any of it, with raw framing.
enum class DataPort { producers, pullers, subscribers, raw };

class DataPorts {
 public:
  DataPorts(boost::asio::io_context& loop, const Config& config, Topics& topics, Logins& logins,
            const Tokens& tokens, Connections& connections)
      : loop_{loop},
        config_{config},
        topics_{topics},
        logins_{logins},
        tokens_{tokens},
        connections_{connections} {}

  // So that clients that reconnect find them. A port that another program has by now is logged.
  void open_stored();
  void open_stored(const TopicPtr& topic);
  // Opens a port of the topic, if it is not open; the topic gets one if it has none.
  Outcome<std::uint16_t> open(const TopicPtr& topic, DataPort which);
  // Closes the topic's ports.
  void close(const BrokerTopic& topic);
  // How the topic's data ports are protected.
  DataAuth auth_of(const BrokerTopic& topic) const;
  // Takes no more connections.
  void close() {
    is_closed_ = true;
    acceptors_.clear();
  }

 private:
  Outcome<void> listen(const TopicPtr& topic, DataPort which, std::uint16_t port);
  void on_socket(const TopicPtr& topic, DataPort which, Accepted accepted);
  // As in Authenticator and RawAuthenticator.
  std::optional<Principal> authorize_address(const BrokerTopic& topic,
                                             const Stream::Address& address, Access access) const;
  std::optional<Principal> principal_of(const BrokerTopic& topic, const std::string& token,
                                        Access access) const;
  Authenticator authenticator_of(const TopicPtr& topic, Access access);
  RawAuthenticator raw_authenticator_of(const TopicPtr& topic);

  boost::asio::io_context& loop_;
  const Config& config_;
  Topics& topics_;
  Logins& logins_;
  const Tokens& tokens_;
  Connections& connections_;
  std::map<std::pair<const BrokerTopic*, DataPort>, std::unique_ptr<Acceptor>> acceptors_;
  bool is_closed_ = false;
};

}  // namespace leat::broker::lightq
