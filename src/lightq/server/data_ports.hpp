// The ports at which LightQ's clients send and get messages: up to four for each topic.
//
//     DataPorts ports{services, settings, states};
//     ports.open_stored();                                     // those of before the restart
//     auto port = ports.open(topic, DataPort::producers);
//
// Belongs to the thread of its event loop.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "broker/net/acceptor.hpp"
#include "broker/protocol.hpp"
#include "data_streams.hpp"
#include "raw_stream.hpp"
#include "settings.hpp"
#include "topic_state.hpp"

namespace leat::broker::lightq {

// What its clients do; `raw`: any of it, with raw framing.
enum class DataPort { producers, pullers, subscribers, raw };

class DataPorts final : public TopicObserver {
 public:
  DataPorts(const Services& services, const Settings& settings, TopicStates& states)
      : services_{services}, settings_{settings}, states_{states} {}

  // So that clients that reconnect find them. A port that another program has by now is logged.
  void open_stored();
  // Opens a port of the topic, if it is not open; the topic gets one if it has none.
  Outcome<std::uint16_t> open(const TopicPtr& topic, DataPort which);
  void on_deleting(BrokerTopic& topic) override;
  void on_deleted(BrokerTopic& topic) override { states_.on_deleted(topic); }
  void on_kept(BrokerTopic& before, const TopicPtr& now) override;
  // How the topic's data ports are protected.
  DataAuth auth_of(const BrokerTopic& topic) const;
  // Takes no more connections.
  void close() {
    is_closed_ = true;
    acceptors_.clear();
  }

 private:
  void open_stored(const TopicPtr& topic);
  Outcome<void> listen(const TopicPtr& topic, DataPort which, std::uint16_t port);
  void on_socket(const TopicPtr& topic, DataPort which, Accepted accepted);
  // As in Authenticator and RawAuthenticator.
  std::optional<Principal> authorize_address(const BrokerTopic& topic,
                                             const Stream::Address& address, Access access) const;
  std::optional<Principal> principal_of(const BrokerTopic& topic, const std::string& token,
                                        Access access) const;
  Authenticator authenticator_of(const TopicPtr& topic, Access access);
  RawAuthenticator raw_authenticator_of(const TopicPtr& topic);

  const Services services_;
  const Settings& settings_;
  TopicStates& states_;
  std::map<std::pair<const BrokerTopic*, DataPort>, std::unique_ptr<Acceptor>> acceptors_;
  bool is_closed_ = false;
};

}  // namespace leat::broker::lightq
