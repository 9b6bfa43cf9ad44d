// If these failed, one topic's disk would hold up all clients of the broker, or a client would wait for ever on a topic that is
// gone.
#include "broker/topic/topic_log.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include "broker/fake_consumer.hpp"
#include "leat/deadline.hpp"
#include "support/process.hpp"
#include "support/switch_disk.hpp"

namespace leat::broker {
namespace {

using namespace std::chrono_literals;

constexpr Encoding kPlain{
    .for_consumer = [](std::string& out, const Record& record) { out.append(record.text()); },
    .for_subscriber = [](std::string& out, const std::string&,
                         const Record& record) { out.append(record.text()); }};

class Client final : public TopicUser {
 public:
  void on_log_closed(const std::string& why) override {
    told.push_back(why);
    if (when_closed) when_closed();
  }
  std::vector<std::string> told;
  std::function<void()> when_closed;
};

class TopicLogTest : public ::testing::Test {
 protected:
  TopicLogTest() {
    for (const std::string& one : {config_.dir, config_.data_dir})
      std::filesystem::create_directories(one);
    config_.topic_idle_time = 1h;
  }
  static Config config_in(const std::string& directory) {
    Config config;
    config.dir = directory + "/dir";
    config.data_dir = directory + "/data";
    return config;
  }
  std::shared_ptr<TopicLog> log_of(const std::string& name, bool is_durable = false) {
    const auto stored = store_->add({.name = name, .is_durable = is_durable, .group = "own"});
    EXPECT_TRUE(stored) << stored.problem().sentence;
    return std::make_shared<TopicLog>(share_, std::make_shared<StoredTopic>(*stored));
  }
  template <class Condition>
  void run_until(const Condition& condition) {
    for (const Deadline deadline{20s}; !condition();) {
      ASSERT_FALSE(deadline.passed()) << "it did not happen";
      loop_.restart();
      loop_.run_one_for(10ms);
    }
  }
  void turn() {
    loop_.restart();
    loop_.run_for(20ms);
  }
  // What the call answers.
  template <class Call>
  Outcome<void> answer(const Call& call) {
    std::optional<Outcome<void>> answered;
    call([&](Outcome<void> outcome) { answered = std::move(outcome); });
    EXPECT_FALSE(answered) << "before the call returned";
    run_until([&] { return answered.has_value(); });
    return answered ? *answered : Problem{Errc::timeout, "no answer"};
  }
  Outcome<void> open(TopicLog& log, TopicUser& user, const TopicUse& use) {
    return answer([&](TopicLog::Done done) { log.open(user, use, std::move(done)); });
  }
  TopicCounts counts(TopicLog& log) {
    std::optional<TopicCounts> counted;
    log.count([&](TopicCounts found) { counted = found; });
    run_until([&] { return counted.has_value(); });
    return counted.value_or(TopicCounts{});
  }
  Topic local(const std::string& name) {
    auto topic = Topic::open(name, Deadline::immediate(), config_.dir, {}, config_.data_dir);
    EXPECT_TRUE(topic) << describe(topic.error());
    return std::move(*topic);
  }
  void delete_local(const std::string& name) {
    const auto deleted = Topic::delete_topic(
        name, {.force = true, .directory = config_.dir, .data_directory = config_.data_dir});
    ASSERT_TRUE(deleted) << describe(deleted.error());
  }

  testing::TemporaryDirectory temp_;
  testing::SwitchDisk switch_disk_;
  Config config_ = config_in(temp_.path());
  boost::asio::io_context loop_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      loop_.get_executor()};
  Outcome<TopicStore> store_ = TopicStore::open(temp_.path() + "/state");
  Backlog backlog_;
  LargeMessages unsent_{loop_};
  BlockingWorker reads_{loop_};
  BlockingWorker disk_{loop_};
  BlockingWorker memory_{loop_};
  int idle_ = 0;
  TopicsShare share_{
      loop_, reads_, disk_, memory_, config_, *store_, backlog_, unsent_, [this] { ++idle_; }};
};

// Keeps a worker busy until it is destroyed.
class Busy {
 public:
  explicit Busy(BlockingWorker& worker) {
    std::promise<void> begun;
    auto is_busy = begun.get_future();
    worker.add(
        [&begun, end = end_.get_future().share()] {
          begun.set_value();
          end.wait();
        },
        [] {});
    is_busy.wait();
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  ~Busy() { end_.set_value(); }

 private:
  std::promise<void> end_;
};

TEST_F(TopicLogTest, IsMadeWhenItIsFirstNeeded) {
  const auto log = log_of("news");
  Client client;
  EXPECT_FALSE(Topic::open("news", Deadline::immediate(), config_.dir));
  ASSERT_TRUE(open(*log, client, TopicUse::publish()));
  PublishBuffer& buffer = log->publish_buffer();
  EXPECT_EQ(buffer.add(Bytes{"one"}), PublishBuffer::Added::yes);
  EXPECT_EQ(buffer.publish(), PublishBuffer::Added::yes);
  EXPECT_EQ(local("news").end_offset(0), 1u);
  EXPECT_EQ(counts(*log).received, 1u);
  EXPECT_EQ(counts(*log).waiting, 1u) << "for the first consumer of the topic's own group";
  log->close(client);
}

// A disk that hangs holds up the topics that are on it, and nobody else.
TEST_F(TopicLogTest, TheLoopAndTopicsInMemoryGoOnWhileTheDiskHangs) {
  const auto durable = log_of("durable", true);
  const auto transient = log_of("transient");
  Client client;
  bool is_open = false;
  {
    const Busy busy{disk_};
    durable->open(client, TopicUse::publish(), [&](const Outcome<void>& opened) {
      EXPECT_TRUE(opened) << opened.problem().sentence;
      is_open = true;
    });
    EXPECT_TRUE(open(*transient, client, TopicUse::publish()));
    turn();
    EXPECT_FALSE(is_open);
  }
  run_until([&] { return is_open; });
  EXPECT_TRUE(local("durable").info().durable);
}

TEST_F(TopicLogTest, CallsOfATopicTakeTurns) {
  const auto log = log_of("news");
  Client client;
  std::string order;
  {
    const Busy busy{memory_};
    log->open(client, TopicUse::publish(), [&](const Outcome<void>& opened) {
      EXPECT_TRUE(opened);
      order += "open ";
    });
    log->seek("own", From::beginning, [&](const Outcome<void>& moved) {
      EXPECT_TRUE(moved);
      order += "seek ";
    });
    log->count([&](TopicCounts) { order += "count "; });
    log->prepare(TopicUse::consume_own(), [&](const Outcome<void>& prepared) {
      EXPECT_TRUE(prepared);
      order += "prepare";
    });
    turn();
    EXPECT_EQ(order, "");
  }
  run_until([&] { return order.ends_with("prepare"); });
  EXPECT_EQ(order, "open seek count prepare");
}

// What has begun before it ends first.
TEST_F(TopicLogTest, OnceItIsBeingDeletedNothingIsOpened) {
  const auto log = log_of("news");
  Client client, late;
  std::string order;
  {
    const Busy busy{memory_};
    log->open(client, TopicUse::publish(), [](const Outcome<void>&) { FAIL() << "it was told"; });
    turn();  // The worker is asked to make it.
    log->delete_files([&](const Outcome<void>& deleted) {
      EXPECT_TRUE(deleted);
      order += "delete ";
    });
    log->open(late, TopicUse::publish(), [&](const Outcome<void>& opened) {
      EXPECT_EQ(opened.problem().code, Errc::not_found);
      order += "refused";
    });
    turn();
    EXPECT_EQ(order, "");
  }
  run_until([&] { return order.ends_with("refused"); });
  EXPECT_EQ(order, "delete refused");
  EXPECT_EQ(client.told, std::vector<std::string>{"the topic was deleted"});
  EXPECT_FALSE(Topic::open("news", Deadline::immediate(), config_.dir));
}

TEST_F(TopicLogTest, WhoLeavesBeforeItsTurnGetsNothing) {
  const auto log = log_of("news");
  Client client;
  auto owned = std::make_shared<int>();
  const std::weak_ptr<int> watched = owned;
  bool is_ready = false;
  {
    const Busy busy{memory_};
    log->open(client, TopicUse::publish(), [](const Outcome<void>&) { FAIL(); });
    turn();  // The worker is asked.
    log->open(client, TopicUse::publish(), [owned](const Outcome<void>&) { FAIL(); });
    owned.reset();
    log->close(client);
    EXPECT_TRUE(watched.expired()) << "clients that come and go would fill the memory";
    // Another one may get the same address.
    log->open(client, TopicUse::publish(), [&](const Outcome<void>& opened) {
      EXPECT_TRUE(opened);
      is_ready = true;
    });
  }
  run_until([&] { return is_ready; });
}

// A publisher fails while the worker deletes the group for a subscriber.
TEST_F(TopicLogTest, ALogThatFailsMeanwhileIsOpenedAgain) {
  const auto log = log_of("news");
  Client publisher, subscriber;
  ASSERT_TRUE(open(*log, publisher, TopicUse::publish()));
  bool is_open = false;
  {
    const Busy busy{memory_};
    log->open(subscriber, TopicUse::subscribe(kPlain), [&](const Outcome<void>&) { FAIL(); });
    turn();
    delete_local("news");
    log->close_if_deleted();
    EXPECT_EQ(publisher.told.size(), 1u);
    EXPECT_EQ(subscriber.told.size(), 1u);
    log->open(subscriber, TopicUse::subscribe(kPlain), [&](const Outcome<void>& opened) {
      EXPECT_TRUE(opened) << opened.problem().sentence;
      is_open = true;
    });
  }
  run_until([&] { return is_open; });
  log->close(subscriber);
}

TEST_F(TopicLogTest, NothingIsAnsweredOnceItIsGone) {
  auto log = log_of("news");
  Client client;
  {
    const Busy busy{memory_};
    log->open(client, TopicUse::publish(), [](const Outcome<void>&) { FAIL(); });
    turn();
    log.reset();
  }
  turn();
}

// Those who wait share its ownership, as commands of clients do.
TEST_F(TopicLogTest, AtTheEndOfTheBrokerNothingIsLeft) {
  auto log = log_of("news");
  const std::weak_ptr<TopicLog> watched = log;
  Client client;
  ASSERT_TRUE(open(*log, client, TopicUse::consume_own()));
  {
    const Busy busy{memory_};
    log->prepare(TopicUse::consume("others"), [log](const Outcome<void>&) { FAIL(); });
    turn();
    log->count([log](TopicCounts) { FAIL(); });
    log->shut_down();
    log.reset();
  }
  EXPECT_TRUE(client.told.empty());
  run_until([&] { return watched.expired(); });
}

TEST_F(TopicLogTest, EachUserIsToldOnceThatItFailed) {
  const auto log = log_of("news");
  Client one, other, left;
  for (Client* const client : {&one, &other, &left})
    ASSERT_TRUE(open(*log, *client, TopicUse::publish()));
  log->close(left);
  delete_local("news");
  bool is_open_again = false;
  one.when_closed = [&] {
    log->open(one, TopicUse::publish(), [&](const Outcome<void>& opened) {
      EXPECT_TRUE(opened) << opened.problem().sentence;
      is_open_again = true;
    });
  };
  (void)log->publish_buffer().add(Bytes{"lost"});
  EXPECT_EQ(log->publish_buffer().publish(), PublishBuffer::Added::failed);
  run_until([&] { return is_open_again; });
  EXPECT_EQ(one.told, std::vector<std::string>{"the topic has failed"});
  EXPECT_EQ(other.told, one.told);
  EXPECT_TRUE(left.told.empty());
  EXPECT_EQ(local("news").end_offset(0), 0u) << "it was made anew";
}

// One that is closed by what another one does is not touched any more.
TEST_F(TopicLogTest, AUserMayTakeAnotherOneAlong) {
  const auto log = log_of("news");
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<Client>());
    ASSERT_TRUE(open(*log, *clients.back(), TopicUse::look()));
  }
  int told = 0;
  for (auto& client : clients) {
    client->when_closed = [&] {
      ++told;
      for (auto& other : clients) {
        if (other == nullptr || !other->told.empty()) continue;
        log->close(*other);
        other.reset();
      }
    };
  }
  delete_local("news");
  log->close_if_deleted();
  EXPECT_EQ(told, 1);
}

TEST_F(TopicLogTest, UsersAreToldAtOnceOfADeletion) {
  const auto log = log_of("news", true);
  Client client;
  ASSERT_TRUE(open(*log, client, TopicUse::publish()));
  // A name that cannot be synced might be there again after a failure of the machine.
  switch_disk_.fail_syncs_of_names(EIO);
  const auto failed = answer([&](TopicLog::Done done) {
    log->delete_files(std::move(done));
    EXPECT_EQ(client.told, std::vector<std::string>{"the topic was deleted"});
    EXPECT_TRUE(log->is_deleted());
  });
  EXPECT_EQ(failed.problem().code, Errc::io_error) << failed.problem().sentence;
  switch_disk_.mend();
  EXPECT_FALSE(log->is_deleted());
  ASSERT_TRUE(open(*log, client, TopicUse::publish())) << "as before";
  EXPECT_TRUE(answer([&](TopicLog::Done done) { log->delete_files(std::move(done)); }));
  EXPECT_TRUE(log->is_deleted());
  EXPECT_TRUE(std::filesystem::is_empty(config_.data_dir));
}

TEST_F(TopicLogTest, TheWorkerClosesWhatNobodyUses) {
  config_.topic_idle_time = 1ms;
  const auto log = log_of("news");
  Client client;
  ASSERT_TRUE(open(*log, client, TopicUse::publish()));
  turn();
  EXPECT_EQ(idle_, 0) << "it is used";
  {
    const Busy busy{memory_};
    log->close(client);
    turn();
    EXPECT_EQ(idle_, 0) << "it is closed by the worker";
  }
  run_until([&] { return idle_ == 1; });
  ASSERT_TRUE(
      answer([&](TopicLog::Done done) { log->prepare(TopicUse::look(), std::move(done)); }));
  run_until([&] { return idle_ == 2; });
}

TEST_F(TopicLogTest, IsMadeAnewIfLocalProcessesHaveDeletedWhatNobodyUses) {
  const auto log = log_of("news");
  const auto prepare = [&](const TopicUse& use) {
    return answer([&](TopicLog::Done done) { log->prepare(use, std::move(done)); });
  };
  ASSERT_TRUE(prepare(TopicUse::consume_own()));
  delete_local("news");
  ASSERT_TRUE(prepare(TopicUse::consume_own()));
  EXPECT_TRUE(local("news").find_group("own"));
  ASSERT_TRUE(local("news").delete_group("own", true));
  Client client;
  const auto opened = open(*log, client, TopicUse::consume_own());
  ASSERT_TRUE(opened) << opened.problem().sentence;
  EXPECT_TRUE(local("news").find_group("own"));
  log->close(client);
}

TEST_F(TopicLogTest, HasADispatcherForEachGroup) {
  const auto log = log_of("news");
  Client client;
  ASSERT_TRUE(open(*log, client, TopicUse::consume("others")));
  ASSERT_TRUE(open(*log, client, TopicUse::consume_own()));
  EXPECT_EQ(&log->own_dispatcher(), &log->dispatcher("own"));
  EXPECT_NE(&log->own_dispatcher(), &log->dispatcher("others"));
  EXPECT_EQ(open(*log, client, TopicUse::consume("no name!")).problem().code,
            Errc::invalid_argument);
  log->close(client);
}

TEST_F(TopicLogTest, OnlyThoseOfAGroupAreToldThatItIsGone) {
  const auto log = log_of("news");
  Client publisher, own, other;
  ASSERT_TRUE(open(*log, publisher, TopicUse::publish()));
  ASSERT_TRUE(open(*log, own, TopicUse::consume_own()));
  ASSERT_TRUE(open(*log, other, TopicUse::consume("others")));
  GroupDispatcher* dispatcher = &log->dispatcher("others");
  FakeConsumer consumer{*dispatcher};
  other.when_closed = [&] { dispatcher->remove(consumer); };
  dispatcher->add(consumer);
  ASSERT_TRUE(local("news").delete_group("others", true));
  dispatcher->poll();
  run_until([&] { return !other.told.empty(); });
  EXPECT_EQ(other.told, std::vector<std::string>{"its consumer group was deleted"});
  ASSERT_TRUE(open(*log, other, TopicUse::consume("others")));
  EXPECT_TRUE(local("news").find_group("others"));
  other.when_closed = nullptr;
  EXPECT_TRUE(publisher.told.empty());
  EXPECT_TRUE(own.told.empty());
  for (Client* const one : {&publisher, &own, &other}) log->close(*one);
}

// Producers would wait for consumers that never come.
TEST_F(TopicLogTest, ASubscriberEndsAGroupThatNobodyHasUsed) {
  const auto log = log_of("news");
  Client client;
  ASSERT_TRUE(open(*log, client, TopicUse::publish()));
  EXPECT_TRUE(local("news").find_group("own"));
  ASSERT_TRUE(open(*log, client, TopicUse::subscribe(kPlain)));
  EXPECT_EQ(local("news").find_group("own").error(), Errc::not_found);
  EXPECT_EQ(store_->topic("news")->consumers, Consumers::absent);
  ASSERT_TRUE(open(*log, client, TopicUse::consume_own()));
  EXPECT_TRUE(local("news").find_group("own"));
  log->close(client);
}

TEST_F(TopicLogTest, PublishesToThePartitionThatAProtocolNames) {
  ASSERT_TRUE(Topic::create("news", {.partitions = 2, .directory = config_.dir}));
  const auto log = log_of("news");
  Client client;
  for (const std::uint32_t partition : {1u, 0u}) {
    ASSERT_TRUE(open(*log, client, TopicUse::publish(partition)));
    std::vector<NewRecord> records(partition + 1);
    std::optional<std::uint64_t> first;
    log->publish_buffer(partition).add_unit(records, [&](const Outcome<std::uint64_t>& offset) {
      ASSERT_TRUE(offset) << offset.problem().sentence;
      first = *offset;
    });
    run_until([&] { return first.has_value(); });
    EXPECT_EQ(first, 0u);
    EXPECT_EQ(local("news").end_offset(partition), partition + 1);
  }
  EXPECT_EQ(open(*log, client, TopicUse::publish(2)).problem().code, Errc::invalid_argument);
  EXPECT_EQ(counts(*log).received, 3u);
  log->close(client);
}

}  // namespace
}  // namespace leat::broker
