// One topic of a broker: what is stored of it, its log, and the clients that were let in.
//
//     auto topic = std::make_shared<BrokerTopic>(share, stored);
//     topic->log().open(user, TopicUse::publish(), [=](Outcome<void> opened) { … });
//
// Whoever may come back to a topic later shares its ownership: it may be deleted meanwhile.
// Belongs to the thread of its event loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "topic_log.hpp"

namespace leat::broker {

class TopicClient;

class BrokerTopic {
 public:
  BrokerTopic(const TopicsShare& share, StoredTopic stored)
      : config_{share.config},
        stored_{std::make_shared<StoredTopic>(std::move(stored))},
        log_{std::make_shared<TopicLog>(share, stored_)} {}
  BrokerTopic(const BrokerTopic&) = delete;
  BrokerTopic& operator=(const BrokerTopic&) = delete;

  TopicLog& log() const noexcept { return *log_; }
  bool is_deleted() const noexcept { return log_->is_deleted(); }

  const StoredTopic& stored() const noexcept { return *stored_; }
  const std::string& name() const noexcept { return stored_->name; }
  SlowSubscriber slow_subscriber() const noexcept {
    return stored_->slow_subscriber == SlowSubscriber::unset ? config_.slow_subscriber
                                                             : stored_->slow_subscriber;
  }
  // What was stored of it has changed.
  void set_verifier(const Verifier& verifier, std::int64_t version) {
    stored_->verifier = verifier;
    stored_->verifier_version = version;
  }
  void set_right(const Right& right) {
    drop_right(right.user);
    stored_->rights.push_back(right);
  }
  void drop_right(const std::string& user) {
    std::erase_if(stored_->rights, [&](const Right& right) { return right.user == user; });
  }

  // Of connections, for stats.
  std::uint64_t publishers = 0;
  std::uint64_t subscribers = 0;
  // Of messages' bytes, by clients of this broker since it began.
  std::uint64_t bytes_written = 0;
  std::uint64_t bytes_read = 0;

  // Those who were let in.
  void add(TopicClient& client) { clients_.insert(&client); }
  void remove(TopicClient& client) { clients_.erase(&client); }
  const std::set<TopicClient*>& clients() const noexcept { return clients_; }

  // Closes the connections of a user who may not do any more what they do. `version` is that of the user's password until now.
  void close_refused(const std::string& user, std::int64_t version);
  // A password was changed: connections that it opened go on, and are still this user's.
  void note_replaced(std::int64_t version, const std::string& user);

 private:
  const Config& config_;
  const std::shared_ptr<StoredTopic> stored_;
  const std::shared_ptr<TopicLog> log_;
  std::set<TopicClient*> clients_;
  std::map<std::int64_t, std::string> replaced_;  // Versions of passwords that opened one of them.
};

using TopicPtr = std::shared_ptr<BrokerTopic>;

}  // namespace leat::broker
