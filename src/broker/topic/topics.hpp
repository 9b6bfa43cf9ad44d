// All topics of a broker.
//
//     Topics topics{loop, config, store};
//     if (auto loaded = topics.load(); !loaded) return loaded;
//     TopicPtr topic = topics.find("news");                              // null: there is none
//     auto added = topics.add({.name = "news", .user = "alice", .verifier = *verifier});
//
// What changes is stored before a call returns or answers. Calls that answer touch files: a worker's thread does that, and
// the answer comes on the loop, perhaps before the call returns, unless this is gone. Belongs to the thread of its event loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "broker/config/config.hpp"
#include "broker/store/topic_store.hpp"
#include "broker_topic.hpp"

namespace leat::broker {

// One that has something of its own for topics, such as ports.
class TopicObserver {
 public:
  virtual ~TopicObserver() = default;
  // The topic is about to be deleted: nobody may come to it any more.
  virtual void on_deleting(BrokerTopic& topic) = 0;
  virtual void on_deleted(BrokerTopic& topic) = 0;
  // It could not be deleted. `now` is the topic from now on: `before`, or another object if its log may be gone.
  virtual void on_kept(BrokerTopic& before, const TopicPtr& now) = 0;
};

class Topics {
 public:
  Topics(boost::asio::io_context& loop, const Config& config, TopicStore& store);
  ~Topics();
  // It must live as long as topics can be deleted.
  void add_observer(TopicObserver& observer) { observers_.push_back(&observer); }

  // Where the topics are, with the defaults put in.
  std::string directory() const;
  std::string data_directory() const;
  // The configuration has changed.
  void take_config();
  // Reads what is stored.
  Outcome<void> load();
  TopicPtr find(std::string_view name) const;
  // `values`: as in the store.
  //   exists, invalid_argument, too_many
  //   busy   a topic of that name is being deleted, or being adopted
  Outcome<TopicPtr> add(const NewTopic& topic, const std::vector<ProtocolValue>& values = {});
  // The topic of that name; one that local processes made becomes one of the broker, for the administrator only.
  // `group`: as in NewTopic.
  //   not_found, and as add()
  void find_or_adopt(const std::string& name, const std::string& group,
                     std::function<void(Outcome<TopicPtr>)> done);
  // With its log. Its clients are cut off at once.
  //   busy   it is being deleted already
  void delete_topic(const TopicPtr& topic, TopicLog::Done done);
  // A topic of local processes, which the broker does not have.
  //   not_found   the sentence is "topic not found"
  //   busy        as add()
  void delete_local(const std::string& name, TopicLog::Done done);
  // The names of topics that local processes made and that the broker does not have.
  void local_names(std::function<void(std::vector<std::string>)> done);
  // Whether the directories have a topic of that name already.
  void has_local(const std::string& name, std::function<void(bool)> done);
  // Of the topic's user, or of somebody with a right. Tokens and passwords of before end; connections stay.
  //   not_found   the user has no right any more
  Outcome<void> set_password(BrokerTopic& topic, const std::string& user, const Verifier& verifier);
  // As the store's. Connections of the user that the right no longer covers are closed.
  Outcome<void> grant(BrokerTopic& topic, const Right& right);
  // As the store's; the user's connections are closed. Also if it could not be stored, the user has no right any more, until
  // the next start.
  Outcome<void> revoke(BrokerTopic& topic, const std::string& user);

  // The C library's heap keeps the memory that connections and topics have freed. This returns it to the system, once
  // for all that were closed about now.
  void trim_heap_soon();

  template <class Call>
  void for_each(const Call& call) const {
    for (const auto& [name, topic] : topics_) call(topic);
  }

 private:
  const TopicPtr& insert(StoredTopic stored);

  const Config& config_;
  TopicStore& store_;
  std::vector<TopicObserver*> observers_;
  Timer trim_;
  Backlog backlog_;
  LargeMessages unsent_;  // The dispatcher of a durable topic has a copy of each.
  std::map<std::string, TopicPtr, std::less<>> topics_;
  // Topics of local processes that are being deleted, or being adopted.
  std::set<std::string, std::less<>> busy_;
  // Last: they end first, and what they drop may use the others.
  BlockingWorker reads_;
  BlockingWorker disk_;
  BlockingWorker memory_;
  const TopicsShare share_;
};

}  // namespace leat::broker
