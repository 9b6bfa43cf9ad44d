// If these failed, a slow client would stop others, fast producers would fill the memory, or an unused topic would keep
// its own.
#include <atomic>
#include <set>

#include "running_broker.hpp"

namespace leat::broker {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

class BrokerFlow : public RunningBroker {
 protected:
  void open_log(const std::string& name) {
    auto topic = Topic::open(name, Deadline::immediate(), config_.dir, {}, config_.data_dir);
    ASSERT_TRUE(topic) << describe(topic.error());
    log_ = std::move(*topic);
  }
  std::uint64_t capacity() const { return log_->info().partitions[0].capacity_bytes; }
  // Until it is so.
  template <class Condition>
  static void expect_soon(const char* what, const Condition& condition) {
    for (const Deadline deadline{std::chrono::milliseconds{kPatienceMs}}; !condition();) {
      if (deadline.passed()) FAIL() << what;
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
  }

  // Waits until it gets what is published, as the last of so many consumers.
  void subscribe(Client& subscriber, const std::string& topic, std::uint64_t consumers) {
    subscriber.set(ZMQ_SUBSCRIBE, topic);
    connect(subscriber, topic, "sub");
    await(topic, "subscribers_count", consumers);
    std::this_thread::sleep_for(std::chrono::milliseconds{200});  // Its subscription is on its way.
  }

  // Sends so many messages, in a thread of its own, as fast as the broker takes them.
  std::jthread produce(const std::string& topic, int count, const std::string& text) {
    return std::jthread{[=, this] {
      Client producer{ZMQ_PUSH};
      producer.set(ZMQ_LINGER, kPatienceMs);
      producer.set(ZMQ_SNDHWM, 1);
      connect(producer, topic, "pub");
      for (; sent_ < count; ++sent_) EXPECT_TRUE(producer.send(std::to_string(sent_) + text));
    }};
  }

  std::optional<Topic> log_;
  std::atomic<int> sent_ = 0;
};

TEST_F(BrokerFlow, AFastProducerKeepsThePaceOfAPullerThatGoesOn) {
  start();
  ASSERT_EQ(create("work")["status"], "ok");
  Client puller{ZMQ_PULL};
  puller.set(ZMQ_RCVHWM, 4);
  connect(puller, "work", "pull");
  open_log("work");
  const std::string large(64 << 10, 'x');
  constexpr int kMessages = 1600;  // 100 MiB
  const std::jthread sender = produce("work", kMessages, large);
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_TRUE(puller.receive()) << i;
    if (i % 4 == 0) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  EXPECT_LE(capacity(), 40 * kMiB);
}

TEST_F(BrokerFlow, ATopicTakesABurstThatNobodyPulls) {
  start();
  ASSERT_EQ(create("work")["status"], "ok");
  Client puller{ZMQ_PULL};
  puller.set(ZMQ_RCVHWM, 1);
  connect(puller, "work", "pull");
  await("work", "subscribers_count", 1);
  open_log("work");
  Client producer{ZMQ_PUSH};
  connect(producer, "work", "pub");
  const std::string large(1 << 20, 'x');
  constexpr int kMessages = 100;
  for (int i = 0; i < kMessages; ++i) ASSERT_TRUE(producer.send(large));
  await("work", "messages_received", kMessages);
  EXPECT_GT(capacity(), 64 * kMiB);
  for (int i = 0; i < kMessages; ++i) ASSERT_TRUE(puller.receive()) << i;
}

TEST_F(BrokerFlow, WhatLocalProcessesPublishInBetweenArrivesAsWell) {
  start();
  ASSERT_EQ(create("work")["status"], "ok");
  Client puller{ZMQ_PULL};
  connect(puller, "work", "pull");
  Client listener{ZMQ_SUB};
  subscribe(listener, "work", 2);
  open_log("work");
  auto local = log_->publisher();
  ASSERT_TRUE(local);
  Client producer{ZMQ_PUSH};
  connect(producer, "work", "pub");
  const auto expect_next = [&](const std::string& text) {
    EXPECT_EQ(puller.receive(), text);
    EXPECT_EQ(listener.receive(), "work");
    EXPECT_EQ(listener.receive(), text);
  };
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(producer.send("remote"));
    expect_next("remote");
    if (i % 3 == 0) continue;
    if (i % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds{3});
    ASSERT_TRUE(local->publish("local"));
    expect_next("local");
  }
}

TEST_F(BrokerFlow, ProducersWaitForASubscriberIfTheTopicSaysSo) {
  start();
  ASSERT_EQ(create("news", "queue", {{"slow_subscribers", "wait"}})["status"], "ok");
  Client subscriber{ZMQ_SUB};
  subscriber.set(ZMQ_RCVHWM, 1);
  subscribe(subscriber, "news", 1);
  const std::string large((1 << 20) - 16, 'x');
  constexpr int kMessages = 260;  // A segment of the topic holds three, and all of them 192.
  const std::jthread sender = produce("news", kMessages, large);
  expect_soon("the topic is full", [&] { return sent_ > 192; });
  std::this_thread::sleep_for(std::chrono::milliseconds{300});
  EXPECT_LT(sent_, kMessages);
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_EQ(subscriber.receive(), "news");
    const auto text = subscriber.receive();
    ASSERT_TRUE(text);
    EXPECT_EQ(*text, std::to_string(i) + large);
  }
}

TEST_F(BrokerFlow, StatsTellWhatEachConnectionDoes) {
  start();
  ASSERT_EQ(create("news")["status"], "ok");
  Client puller{ZMQ_PULL};
  connect(puller, "news", "pull");
  Client subscriber{ZMQ_SUB};
  subscribe(subscriber, "news", 2);
  Client producer{ZMQ_PUSH};
  connect(producer, "news", "pub");
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(producer.send("0123456789"));
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(puller.receive());
    ASSERT_TRUE(subscriber.receive() && subscriber.receive());
  }
  await("news", "queue_size", 0);
  const Json stats = this->stats("news");
  EXPECT_EQ(stats["total_bytes_written"], 100);
  EXPECT_EQ(stats["total_bytes_read"], 200);
  std::set<std::string> roles;
  for (const Json& one : stats["connections"]) {
    roles.insert(one["role"]);
    EXPECT_EQ(one["messages"], 10) << one;
    EXPECT_EQ(one["bytes"], 100) << one;
    EXPECT_EQ(one["lag"], 0) << one;
    EXPECT_EQ(one["lost"], 0) << one;
    EXPECT_EQ(one["slow"], false) << one;
    EXPECT_EQ(one["user_id"], "user") << one;
    EXPECT_TRUE(one["address"].get<std::string>().starts_with("127.0.0.1:")) << one;
  }
  EXPECT_EQ(roles, (std::set<std::string>{"pub", "pull", "sub"}));
  EXPECT_FALSE(ask_as("user", "secret", "stats", "news").contains("connections"))
      << "LightQ's clients get LightQ's reply";
}

TEST_F(BrokerFlow, ATopicThatNoClientUsesIsClosed) {
  config_.topic_idle_time = std::chrono::milliseconds{100};
  start();
  ASSERT_EQ(create("news")["status"], "ok");
  {
    Client producer{ZMQ_PUSH};
    connect(producer, "news", "pub");
    ASSERT_TRUE(producer.send("first"));
    await("news", "messages_received", 1);
    open_log("news");
    EXPECT_FALSE(log_->info().participants.empty());
  }
  expect_soon("the log is closed", [&] { return log_->info().participants.empty(); });
  Client producer{ZMQ_PUSH};
  connect(producer, "news", "pub");
  ASSERT_TRUE(producer.send("second"));
  Client puller{ZMQ_PULL};
  connect(puller, "news", "pull");
  EXPECT_EQ(puller.receive(), "first");
  EXPECT_EQ(puller.receive(), "second");
  // One that is connected keeps it open, however silent it is.
  std::this_thread::sleep_for(std::chrono::milliseconds{300});
  EXPECT_FALSE(log_->info().participants.empty());
}

}  // namespace
}  // namespace leat::broker
