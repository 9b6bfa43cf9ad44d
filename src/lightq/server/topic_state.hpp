// What LightQ has of each topic beside the broker's own: the word for its type, its data ports, and who has joined it.
//
//     TopicStates states{topics, store};
//     if (auto loaded = states.load(settings.all_data_ports()); !loaded) return loaded;
//     auto port = states.give_port(topic, &TopicPorts::push, [](std::uint16_t port) { return can_bind(port); });
//     states.of(topic)->joined.insert({version, address});
//
// Ports and type are values of the protocol `lightq` in the broker's store. Belongs to the thread of the event loop.
#pragma once

#include <array>
#include <boost/asio/ip/address.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "broker/config/config_key.hpp"
#include "broker/topic/topics.hpp"
#include "lightq_protocol.hpp"
#include "ports.hpp"

namespace leat::broker::lightq {

// 0: none yet. They stay until the topic is deleted.
struct TopicPorts {
  std::uint16_t pull = 0;  // Consumers receive from it.
  std::uint16_t push = 0;  // Producers send to it.
  std::uint16_t pub = 0;   // Subscribers get from it.
  std::uint16_t raw = 0;   // Raw framing, all roles.
  std::array<std::uint16_t, 4> all() const noexcept { return {pull, push, pub, raw}; }
};

// Shared with those who have joined: the topic may be deleted meanwhile.
struct TopicState {
  // "direct" or "queue_file", which the broker treats as "queue" and "file"; empty: it is one of these.
  std::string type;
  TopicPorts ports;
  // Addresses whose admin connections have joined, with the version of the password then; once for each connection.
  std::multiset<std::pair<std::int64_t, boost::asio::ip::address>> joined;
  // The same addresses: of clients that know that they are to say hello at a raw port, and of those that may say nothing.
  std::multiset<boost::asio::ip::address> greeting;
  std::multiset<boost::asio::ip::address> silent;
  bool is_deleted = false;
};

class TopicStates {
 public:
  TopicStates(Topics& topics, TopicStore& store) : topics_{topics}, store_{store} {}

  // Reads what is stored. The topics are loaded. New ports are from this range.
  //   corrupt
  Outcome<void> load(const PortRange& range);
  const std::shared_ptr<TopicState>& of(const BrokerTopic& topic);
  // Makes a topic of this type; other words than LightQ's four count as "queue".
  //   as Topics::add()
  Outcome<TopicPtr> add(NewTopic topic, const std::string& type);
  // LightQ's word for the topic's type.
  std::string_view type_of(const BrokerTopic& topic);
  // For a topic that has none yet: the next free port that `is_usable`, which opens it.
  //   no_space   none is free
  Outcome<std::uint16_t> give_port(const BrokerTopic& topic, std::uint16_t TopicPorts::*which,
                                   const std::function<bool(std::uint16_t)>& is_usable);
  // The topic is deleted: its ports are free for others.
  void on_deleted(const BrokerTopic& topic);
  // Its deletion failed halfway. It has its ports, but nobody has joined it.
  void on_remade(const BrokerTopic& topic);

 private:
  Outcome<void> take(const ProtocolValue& value);

  Topics& topics_;
  TopicStore& store_;
  Ports ports_{0, 0};
  std::map<std::int64_t, std::shared_ptr<TopicState>> states_;  // By the topic's id.
  const std::shared_ptr<TopicState> of_deleted_ = std::make_shared<TopicState>();
};

}  // namespace leat::broker::lightq
