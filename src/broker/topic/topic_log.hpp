// The log of a topic, for clients of any protocol: opened while somebody uses it.
//
//     log.open(user, TopicUse::publish(), [&](Outcome<void> opened) {        // `user` counts from now on
//       if (!opened) return refuse(opened.problem());
//       log.publish_buffer().add_unit(records, [](Outcome<std::uint64_t> first) { … });
//     });
//     log.open(user, TopicUse::consume("workers"), …);     then log.dispatcher("workers").add(consumer);
//     log.open(user, TopicUse::subscribe(encoding), …);    then log.broadcaster(encoding).add(sink);
//     log.close(user);
//
// The log is opened, or made, when it is first needed, and again if a reboot took it; it is closed when nobody has used it
// for a while. If it fails, each user is told. A connection may use many topics, with a user for each.
//
// What may block is done by a worker's thread: opening, making, joining, closing, shrinking and deleting, and reading disk. What
// is asked for meanwhile waits for its turn. Answers come on the loop, never before the call has returned; none comes to
// a user that has left or was told that the log is closed, nor once the log object is gone. Belongs to the thread of its event loop.
#pragma once

#include <deque>
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

// How a topic's records are written for clients. Constant; two with the same address are the same.
struct Encoding {
  void (*for_consumer)(std::string& out, const Record& record);
  void (*for_subscriber)(std::string& out, const std::string& topic, const Record& record);
};

// One that uses a topic.
class TopicUser {
 public:
  virtual ~TopicUser() = default;
  // The log, or the group that it consumes as, has failed or was deleted. The user is removed first. It must drop every
  // reference to a buffer, dispatcher or broadcaster before it returns, and may open the log again.
  virtual void on_log_closed(const std::string& why) = 0;
};

// What somebody wants to do with a topic.
struct TopicUse {
  enum class Kind { look, publish, consume, subscribe };

  static TopicUse look() { return {}; }
  // To one partition; none: as the library chooses.
  static TopicUse publish(std::optional<std::uint32_t> partition = {}) {
    return {.kind = Kind::publish, .partition = partition};
  }
  // As a member of this consumer group, which is made at the topic's end if there is none.
  static TopicUse consume(std::string group) {
    return {.kind = Kind::consume, .group = std::move(group)};
  }
  // As a member of the topic's own consumer group (StoredTopic::group). A topic that has none gets `group`. While only
  // subscribers have come to a transient topic, it has none, so that nobody waits for consumers; that is stored.
  static TopicUse consume_own(std::string group = {}) {
    return {.kind = Kind::consume, .group = std::move(group), .is_own_group = true};
  }
  static TopicUse subscribe(const Encoding& encoding) {
    return {.kind = Kind::subscribe, .encoding = &encoding};
  }
  // To be ready for subscribers of whatever encoding; for prepare() only.
  static TopicUse expect_subscriber() { return {.kind = Kind::subscribe}; }

  Kind kind = Kind::look;
  std::optional<std::uint32_t> partition = {};
  std::string group = {};
  bool is_own_group = false;
  const Encoding* encoding = nullptr;
};

struct TopicCounts {
  std::uint64_t received = 0;  // messages
  std::uint64_t waiting = 0;   // of these, how many nobody of the topic's own group has taken
};

// What the topics of a broker share. All of it lives longer than they do.
struct TopicsShare {
  boost::asio::io_context& loop;
  BlockingWorker& reads;   // Records from disk.
  BlockingWorker& disk;    // For all else of durable topics.
  BlockingWorker& memory;  // For the other topics, which do not wait for a disk.
  const Config& config;
  TopicStore& store;
  Backlog& backlog;
  LargeMessages& unsent;            // For the consumers of all topics.
  std::function<void()> on_closed;  // A topic has closed its log, because nobody used it.
};

// Deletes the files of a topic, whoever uses it. May block.
//   not_found   there are none
Outcome<void> delete_files_of(const std::string& name, const std::string& directory,
                              const std::string& data_directory);

class TopicLog : public std::enable_shared_from_this<TopicLog> {
 public:
  using Done = std::function<void(Outcome<void>)>;

  TopicLog(const TopicsShare& share, std::shared_ptr<StoredTopic> stored)
      : share_{share},
        stored_{std::move(stored)},
        throttle_{share.loop, [this] { return reached(); }},
        idle_{share.loop} {}
  TopicLog(const TopicLog&) = delete;
  TopicLog& operator=(const TopicLog&) = delete;

  // --- Users ---

  // Opens what the use needs. `user` counts from now on, also after an error, until close().
  //   not_found           the topic was deleted
  //   invalid_argument    the group's name
  //   and the errors of Topic::open(), create(), group(), publisher() and subscriber()
  void open(TopicUser& user, const TopicUse& use, Done done);
  void close(TopicUser& user);
  // The same for one that is going to open it soon.
  void prepare(const TopicUse& use, Done done);

  // What open() has opened, as long as its user counts.
  PublishBuffer& publish_buffer(std::optional<std::uint32_t> partition = {});
  GroupDispatcher& dispatcher(const std::string& group);
  GroupDispatcher& own_dispatcher() { return dispatcher(stored_->group); }
  Broadcaster& broadcaster(const Encoding& encoding);

  // Of the subscribers of all topics.
  Backlog& backlog() noexcept { return share_.backlog; }
  // Of producers.
  PublisherThrottle& throttle() noexcept { return throttle_; }

  // --- Administration ---

  // Moves the topic's own consumer group, which is made first if there is none, as by consume_own().
  //   invalid_argument   there is no such place
  void seek(const std::string& group, const From& to, Done done);
  // All zero if it cannot be opened.
  void count(std::function<void(TopicCounts)> done);
  // Messages that clients sent, and for which there was no room so far.
  std::size_t unpublished() const;
  // The configuration has changed.
  void take_config();
  // Closes the log if somebody has removed its files, which nobody is told: local processes could not open it, and clients
  // that come again find it made anew.
  void close_if_deleted();
  // Closes the log and deletes it, with everything in it; from now on nothing can be opened. After an error it is as before.
  void delete_files(Done done);
  bool is_deleted() const noexcept { return is_deleted_; }
  // At the end of the broker: lets go of everything at once. Nobody is told or answered any more.
  void shut_down();

 private:
  // The next call begins when the last copy is destroyed.
  using Turn = std::shared_ptr<void>;
  struct Call {
    const TopicUser* user;  // Null: of nobody who may leave.
    std::function<void(const Turn&)> begin;
  };
  struct Membership {
    std::uint64_t number;  // Another one each time, since another user may get the same address.
    std::set<std::string> groups;
  };
  struct Files;

  void in_turn(const TopicUser* user, std::function<void(const Turn&)> begin);
  void next_turn();
  void drop_calls_of(const TopicUser& user);
  bool is_user(TopicUser* user, std::uint64_t number) const;
  // Calls `then` with the worker's result, if this object still exists.
  template <class Work, class Then>
  void on_worker(Work work, Then then);
  // The same with a call on the open log. If that was closed meanwhile, `failed` gets `closed`.
  template <class Work, class Then>
  void on_log(Work work, const Done& failed, Then then);
  BlockingWorker& worker() const {
    return stored_->is_durable || is_durable_ ? share_.disk : share_.memory;
  }

  enum class Attempt { first, last };
  // Opens what the use needs; once more if a local process has deleted the topic or its group.
  void perform(const TopicUse& use, bool opens_part, const Done& done,
               Attempt attempt = Attempt::first);
  void recover(const TopicUse& use, bool opens_part, const Done& done, const Problem& problem);
  void attach(const Done& then);
  void settle_group(const TopicUse& use, const Done& then);
  void make_group(const std::string& name, bool from_beginning, const Done& then);
  void delete_unused_group(const Done& then);
  Outcome<void> remember(Consumers consumers, const std::string& group);
  void open_part(const TopicUse& use, const Done& then);
  void open_publish_buffer(std::optional<std::uint32_t> partition, const Done& then);
  void open_dispatcher(const std::string& group, const Done& then);
  void open_broadcaster(const Encoding& encoding, const Done& then);
  const std::string& group_of(const TopicUse& use) const {
    return use.is_own_group ? stored_->group : use.group;
  }
  std::shared_ptr<Group> own_group() const;

  bool in_use() const {
    return !publish_buffers_.empty() || !dispatchers_.empty() || !broadcasters_.empty();
  }
  std::optional<std::uint64_t> reached() const;
  bool is_reading() const;
  void on_published(std::uint64_t begin, std::uint64_t end, std::size_t bytes);
  std::function<void(Error)> on_failure();
  std::function<void(Error)> on_failure_of(const std::string& group);
  void fail(const std::string& why);
  void fail_group(const std::string& group, const std::string& why);
  // Tells those for whom it is true.
  void close_users(const std::string& why,
                   const std::function<bool(const Membership&)>& applies = {});
  void close_files(
      bool shrinks = false, std::function<void()> done = [] {});
  void close_when_idle();

  const TopicsShare share_;
  const std::shared_ptr<StoredTopic> stored_;
  PublisherThrottle throttle_;
  Timer idle_;
  std::map<TopicUser*, Membership> users_;
  std::uint64_t last_user_ = 0;
  std::deque<Call> calls_;  // That wait for their turn.
  bool is_turn_taken_ = false;
  bool is_shut_down_ = false;
  std::shared_ptr<Topic> log_;                            // Null while it is closed.
  std::uint64_t opened_ = 0;                              // How often it was opened or closed.
  std::map<std::string, std::shared_ptr<Group>> groups_;  // That are open, by name.
  std::map<std::optional<std::uint32_t>, std::unique_ptr<PublishBuffer>> publish_buffers_;
  std::map<std::string, std::unique_ptr<GroupDispatcher>> dispatchers_;
  std::map<const Encoding*, std::unique_ptr<Broadcaster>> broadcasters_;
  std::uint64_t published_ = 0;  // The offset behind what it published last.
  // Of the log, which a local process may have made.
  bool is_durable_ = false;
  bool has_one_partition_ = true;
  bool has_failed_ = false;
  bool is_deleted_ = false;
};

}  // namespace leat::broker
