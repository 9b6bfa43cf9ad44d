// One topic of a broker: what is stored of it, its log while clients use it, and who they are.
//
//     BrokerTopic topic{loop, places, stored};
//     if (auto ready = topic.attach(); !ready) return ready.problem();
//     topic.intake()->add(message);
//
// The log is made when it is first needed, again if a reboot took it, and closed when nobody uses it. Belongs to the
// thread of its event loop.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "broker/dealer.hpp"
#include "broker/feed.hpp"
#include "broker/intake.hpp"
#include "broker/stored_topic.hpp"
#include "broker/stream.hpp"

namespace leat::broker {

// Where logs are; empty: the library's defaults.
struct Places {
  std::string directory;
  std::string data_directory;
};

struct TopicCounts {
  std::uint64_t received = 0;  // messages
  std::uint64_t waiting = 0;   // of them, those that no puller has taken
};

class BrokerTopic {
 public:
  BrokerTopic(boost::asio::io_context& loop, const Places& places, StoredTopic stored)
      : loop_{loop}, places_{places}, stored_{std::move(stored)} {}
  BrokerTopic(const BrokerTopic&) = delete;
  BrokerTopic& operator=(const BrokerTopic&) = delete;

  const StoredTopic& stored() const noexcept { return stored_; }
  void set_ports(const TopicPorts& ports) { stored_.ports = ports; }
  const std::string& name() const noexcept { return stored_.name; }

  // Opens the log, or makes it, with the group of the pullers at its beginning.
  Outcome<void> attach();
  // A consumer will come. As long as only listeners came to a transient topic, it has no group of pullers, because nobody
  // is to wait for them.
  Outcome<void> expect_puller();
  Outcome<void> expect_listener();

  // These open what is needed.
  Outcome<Intake*> intake();
  Outcome<Dealer*> dealer();
  Outcome<Feed*> feed(const Feed::Encode& encode);

  TopicCounts counts();

  // Of connections, for stats.
  std::uint64_t publishers = 0;
  std::uint64_t subscribers = 0;
  // Addresses whose admin connections have joined; once for each connection.
  std::multiset<boost::asio::ip::address> joined;
  // Closed if the log fails. Each removes itself when it is closed.
  std::set<Stream*> connections;

 private:
  template <class Part, class Open>
  Outcome<Part*> open(std::unique_ptr<Part>& part, const Open& open);
  TopicOptions options() const;
  bool is_durable() const noexcept {
    return stored_.type == TopicType::file || stored_.type == TopicType::queue_file;
  }
  std::function<void(Error)> on_failure();
  void close_log(const std::string& why);

  boost::asio::io_context& loop_;
  const Places& places_;
  StoredTopic stored_;
  std::optional<Topic> log_;
  std::optional<Group> pullers_;  // The group, if there is one.
  bool was_pulled_ = false;       // A puller came, now or before a restart.
  std::unique_ptr<Intake> intake_;
  std::unique_ptr<Dealer> dealer_;
  std::unique_ptr<Feed> feed_;
  bool has_failed_ = false;
};

}  // namespace leat::broker
