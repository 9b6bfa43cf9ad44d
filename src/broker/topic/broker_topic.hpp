// One topic of a broker: what is stored of it, its log while clients use it, and who they are.
//
//     auto topic = std::make_shared<BrokerTopic>(loop, disk, config, store, backlog, unsent, stored, on_idle);
//     if (auto ready = topic->attach(); !ready) return ready.problem();
//     topic->publish_buffer()->add(message);
//
// The log is made when it is first needed, and again if a reboot took it; it is closed when no client has used it for
// a while. Whoever may come back to a topic later shares its ownership: it may be deleted meanwhile.
// Belongs to the thread of its event loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "broker/config/config.hpp"
#include "broker/delivery/backlog.hpp"
#include "broker/delivery/broadcaster.hpp"
#include "broker/delivery/group_dispatcher.hpp"
#include "broker/net/large_messages.hpp"
#include "broker/publish/publish_buffer.hpp"
#include "broker/publish/publisher_throttle.hpp"
#include "broker/store/topic_store.hpp"

namespace leat::broker {

class TopicClient;

// How a topic's records are written for clients. Constant; two with the same address are the same.
struct Encoding {
  void (*for_consumer)(std::string& out, const Record& record);
  void (*for_subscriber)(std::string& out, const std::string& topic, const Record& record);
};

struct TopicCounts {
  std::uint64_t received = 0;  // messages
  std::uint64_t waiting = 0;   // of these, how many no consumer has taken
};

// Deletes the files of a topic, whoever uses it.
//   not_found   there are none
Outcome<void> delete_log_of(const std::string& name, const Config& config);

class BrokerTopic : public std::enable_shared_from_this<BrokerTopic> {
 public:
  // `on_idle`: it has closed its log, because nobody used it.
  BrokerTopic(boost::asio::io_context& loop, DiskWorker& disk, const Config& config,
              TopicStore& store, Backlog& backlog, LargeMessages& unsent, StoredTopic stored,
              std::function<void()> on_idle)
      : loop_{loop},
        disk_{disk},
        config_{config},
        store_{store},
        backlog_{backlog},
        unsent_{unsent},
        stored_{std::move(stored)},
        on_idle_{std::move(on_idle)},
        throttle_{loop, [this] { return reached(); }},
        idle_{loop} {}
  BrokerTopic(const BrokerTopic&) = delete;
  BrokerTopic& operator=(const BrokerTopic&) = delete;

  const StoredTopic& stored() const noexcept { return stored_; }
  const std::string& name() const noexcept { return stored_.name; }
  SlowSubscriber slow_subscriber() const noexcept {
    return stored_.slow_subscriber == SlowSubscriber::unset ? config_.slow_subscriber
                                                            : stored_.slow_subscriber;
  }
  // What was stored of it has changed.
  void set_verifier(const Verifier& verifier, std::int64_t version) {
    stored_.verifier = verifier;
    stored_.verifier_version = version;
  }
  void set_right(const Right& right) {
    drop_right(right.user);
    stored_.rights.push_back(right);
  }
  void drop_right(const std::string& user) {
    std::erase_if(stored_.rights, [&](const Right& right) { return right.user == user; });
  }

  // Opens the log, or makes it, with its consumer group.
  Outcome<void> attach();
  // To be called before a consumer comes. A topic without a consumer group gets `group`. While only subscribers have come to a
  // transient topic, it has none, so that nobody waits for consumers. Stored, so that it is the same after a restart.
  //   invalid_argument   the group's name
  Outcome<void> expect_group_consumer(const std::string& group);
  Outcome<void> expect_subscriber();

  // These open what is needed.
  Outcome<PublishBuffer*> publish_buffer();
  Outcome<GroupDispatcher*> dispatcher();
  Outcome<Broadcaster*> broadcaster(const Encoding& encoding);

  // Of the subscribers of all topics.
  Backlog& backlog() noexcept { return backlog_; }
  // Of producers.
  PublisherThrottle& throttle() noexcept { return throttle_; }

  // The configuration has changed.
  void take_config();
  // Moves the consumer group, which is made first if there is none, as by expect_group_consumer().
  Outcome<void> seek(const std::string& group, const From& to);

  TopicCounts counts();
  // Messages that clients sent, and for which there was no room so far.
  std::size_t unpublished() const { return publish_buffer_ ? publish_buffer_->waiting() : 0; }

  // Of connections, for stats.
  std::uint64_t publishers = 0;
  std::uint64_t subscribers = 0;
  // Of messages' bytes, by clients of this broker since it began.
  std::uint64_t bytes_written = 0;
  std::uint64_t bytes_read = 0;

  // Those who were let in; they are closed if the log fails.
  void add(TopicClient& client);
  void remove(TopicClient& client);
  const std::set<TopicClient*>& clients() const noexcept { return clients_; }
  // Closes the connections of those for whom it is true.
  void close_clients(const std::string& why,
                     const std::function<bool(const TopicClient&)>& applies);

  // Closes the connections of a user who may not do any more what they do. `version` is that of the user's password until now.
  void close_refused(const std::string& user, std::int64_t version);
  // A password was changed: connections that it opened go on, and are still this user's.
  void note_replaced(std::int64_t version, const std::string& user);

  // Closes the log and its connections if somebody has removed its files, which nobody is told: local processes could
  // not open it, and clients that come again find it made anew.
  void close_if_deleted();
  // Deletes the log, with everything in it; then nothing can be opened any more. After an error the topic is as before.
  Outcome<void> delete_log();
  bool is_deleted() const noexcept { return is_deleted_; }

 private:
  template <class Part, class Open>
  Outcome<Part*> open(std::unique_ptr<Part>& part, const Open& open);
  TopicOptions options() const;
  Outcome<void> open_group(bool is_new_log);
  Problem problem_of_open(Error error) const;
  bool in_use() const { return publish_buffer_ || dispatcher_ || !broadcasters_.empty(); }
  // What step() returns; once more with a new log, if a local process has deleted the topic or its group, and nothing
  // uses the log that is open.
  template <class Step>
  auto on_living_log(const Step& step) -> decltype(step());
  Outcome<void> find_or_make_group(const std::string& group);
  Outcome<void> delete_unused_group();
  Outcome<void> remember(Consumers consumers, const std::string& group);
  std::optional<std::uint64_t> reached() const;
  bool is_reading() const;
  void on_published(std::uint64_t begin, std::uint64_t end, std::size_t bytes);
  std::function<void(Error)> on_failure();
  void fail(const std::string& why);
  void close_log();
  void close_when_idle();

  boost::asio::io_context& loop_;
  DiskWorker& disk_;
  const Config& config_;
  TopicStore& store_;
  Backlog& backlog_;
  LargeMessages& unsent_;  // For the consumers of all topics.
  StoredTopic stored_;
  std::function<void()> on_idle_;
  PublisherThrottle throttle_;
  Timer idle_;
  std::set<TopicClient*> clients_;
  std::map<std::int64_t, std::string> replaced_;  // Versions of passwords that opened one of them.
  std::optional<Topic> log_;
  std::optional<Group> group_;  // The group, if there is one.
  std::unique_ptr<PublishBuffer> publish_buffer_;
  std::unique_ptr<GroupDispatcher> dispatcher_;
  std::map<const Encoding*, std::unique_ptr<Broadcaster>> broadcasters_;
  std::uint64_t published_ = 0;  // The offset behind what it published last.
  // Of the log, which a local process may have made.
  bool is_durable_ = false;
  bool has_one_partition_ = true;
  bool has_failed_ = false;
  bool is_deleted_ = false;
};

using TopicPtr = std::shared_ptr<BrokerTopic>;

}  // namespace leat::broker
