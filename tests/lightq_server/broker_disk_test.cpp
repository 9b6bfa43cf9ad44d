// A broker whose disk takes its time. If these failed, one topic's disk would stop all topics and all commands.
#include "running_broker.hpp"
#include "support/switch_disk.hpp"

namespace leat::broker {
namespace {

constexpr int kStored = 400;  // More than the window has.

class BrokerDisk : public RunningBroker {
 protected:
  ~BrokerDisk() override {
    disk_.hold_reads(false);
    stop();
  }
  static std::string text(int number) {
    std::string made = std::to_string(number) + ' ';
    made.resize(500, 'x');
    return made;
  }
  // A topic whose first records are only on disk, with a small window.
  void store(const std::string& name) {
    ASSERT_EQ(create(name, "file")["status"], "ok");
    auto topic = Topic::create(name, {.capacity_bytes = 64 << 10,
                                      .segment_bytes = 8 << 10,
                                      .directory = config_.dir,
                                      .durable = Durability::os,
                                      .data_directory = config_.data_dir});
    ASSERT_TRUE(topic) << describe(topic.error());
    auto publisher = topic->publisher();
    for (int i = 0; i < kStored; ++i)
      ASSERT_TRUE(publisher->publish(text(i), std::chrono::milliseconds{kPatienceMs}));
    ASSERT_TRUE(publisher->flush(std::chrono::milliseconds{kPatienceMs}));
  }
  // Until the broker waits for the disk. The first join of a topic reads its files.
  void pull_and_hold(Client& puller, const std::string& topic) {
    const Json joined = join(topic, "pull");
    ASSERT_EQ(joined["status"], "ok") << joined;
    disk_.hold_reads(true);
    puller.log_in("user", "secret");
    puller.connect(joined["bind_uri"]);
    wait_until_held();
  }
  std::jthread mend_soon() {
    return std::jthread{[this] {
      std::this_thread::sleep_for(std::chrono::milliseconds{200});
      disk_.hold_reads(false);
    }};
  }
  void wait_until_held() {
    for (const Deadline deadline{std::chrono::milliseconds{kPatienceMs}}; !disk_.is_holding();) {
      ASSERT_FALSE(deadline.passed());
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }

  testing::SwitchDisk disk_;
};

TEST_F(BrokerDisk, OtherTopicsGoOnWhileOneWaitsForIt) {
  start();
  store("stored");
  ASSERT_EQ(create("fast")["status"], "ok");
  Client producer{ZMQ_PUSH};
  connect(producer, "fast", "pub");
  Client puller{ZMQ_PULL};
  connect(puller, "fast", "pull");
  Client waits{ZMQ_PULL};
  pull_and_hold(waits, "stored");
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(producer.send(std::to_string(i)));
    ASSERT_EQ(puller.receive(), std::to_string(i));
  }
  EXPECT_EQ(create("another")["status"], "ok");
  Client sends{ZMQ_PUSH};
  connect(sends, "stored", "pub");
  ASSERT_TRUE(sends.send("later"));
  EXPECT_TRUE(disk_.is_holding());
  disk_.hold_reads(false);
  for (int i = 0; i < kStored; ++i) ASSERT_EQ(waits.receive(), text(i));
  EXPECT_EQ(waits.receive(), "later");
}

// The deletion itself waits for the disk.
TEST_F(BrokerDisk, ATopicThatWaitsForItCanBeDeleted) {
  start();
  store("stored");
  Client waits{ZMQ_PULL};
  pull_and_hold(waits, "stored");
  {
    const std::jthread mends = mend_soon();
    EXPECT_EQ(ask_as_admin("delete_topic", "stored")["status"], "ok");
  }
  store("stored");  // A new one.
  Client puller{ZMQ_PULL};
  connect(puller, "stored", "pull");
  for (int i = 0; i < kStored; ++i) ASSERT_EQ(puller.receive(), text(i));
}

TEST_F(BrokerDisk, TheBrokerEndsWhenTheReadHasEnded) {
  start();
  store("stored");
  store("waits-in-line");
  Client one{ZMQ_PULL};
  Client other{ZMQ_PULL};
  const Json joined = join("waits-in-line", "pull");
  pull_and_hold(one, "stored");
  other.log_in("user", "secret");
  other.connect(joined["bind_uri"]);
  const std::jthread mends = mend_soon();
  stop();
}

}  // namespace
}  // namespace leat::broker
