// The ports at which LightQ's clients send and get messages: up to three for each topic, with ZeroMQ's framing.
//
//     DataPorts ports{loop, config, topics, logins, connections};
//     ports.open_stored();                                  // those of before the restart
//     auto port = ports.open(topic, zmtp::Role::pull);      // the producers'
//
// Belongs to the thread of its event loop.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "broker/acceptor.hpp"
#include "broker/connections.hpp"
#include "broker/lightq/data_streams.hpp"
#include "broker/topics.hpp"

namespace leat::broker::lightq {

class DataPorts {
 public:
  DataPorts(boost::asio::io_context& loop, const Config& config, Topics& topics, Logins& logins,
            Connections& connections)
      : loop_{loop}, config_{config}, topics_{topics}, logins_{logins}, connections_{connections} {}

  // So that clients that reconnect find them. A port that another program has by now is logged.
  void open_stored();
  // Opens the topic's port for a role, if it is not; the topic gets one if it has none.
  Outcome<std::uint16_t> open(BrokerTopic& topic, zmtp::Role role);
  // Takes no more connections.
  void close() { acceptors_.clear(); }

 private:
  Outcome<void> listen(BrokerTopic& topic, zmtp::Role role, std::uint16_t port);
  void on_socket(BrokerTopic& topic, zmtp::Role role, Stream::Socket socket);
  Gate gate_of(BrokerTopic& topic);

  boost::asio::io_context& loop_;
  const Config& config_;
  Topics& topics_;
  Logins& logins_;
  Connections& connections_;
  std::map<std::pair<const BrokerTopic*, zmtp::Role>, std::unique_ptr<Acceptor>> acceptors_;
};

}  // namespace leat::broker::lightq
