// All topics of a broker, and the ports that they have.
//
//     Topics topics{loop, config, store};
//     if (auto loaded = topics.load(); !loaded) return loaded;
//     BrokerTopic* topic = topics.find("news");                          // null: there is none
//     auto added = topics.add({.name = "news", .user = "alice", .verifier = *verifier});
//     auto port = topics.give_port(**added, &TopicPorts::push, [](std::uint16_t port) { return can_bind(port); });
//
// What changes is stored before a call returns. Belongs to the thread of its event loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "broker/broker_topic.hpp"
#include "broker/config.hpp"
#include "broker/ports.hpp"
#include "broker/topic_store.hpp"

namespace leat::broker {

class Topics {
 public:
  Topics(boost::asio::io_context& loop, const Config& config, TopicStore& store);

  // Reads what is stored.
  Outcome<void> load();
  BrokerTopic* find(std::string_view name) const;
  //   exists, invalid_argument, too_many
  Outcome<BrokerTopic*> add(const NewTopic& topic);
  // For a topic that has none yet: the next free port that `is_usable`, which opens it.
  //   no_space   none is free
  Outcome<std::uint16_t> give_port(BrokerTopic& topic, std::uint16_t TopicPorts::*which,
                                   const std::function<bool(std::uint16_t)>& is_usable);

  // Tokens and passwords of before end; connections stay.
  Outcome<void> set_verifier(BrokerTopic& topic, const Verifier& verifier);

  template <class Call>
  void for_each(const Call& call) const {
    for (const auto& [name, topic] : topics_) call(*topic);
  }

 private:
  BrokerTopic& insert(StoredTopic stored);

  boost::asio::io_context& loop_;
  const Config& config_;
  TopicStore& store_;
  Places places_;
  Ports ports_;
  std::map<std::string, std::unique_ptr<BrokerTopic>, std::less<>> topics_;
};

}  // namespace leat::broker
