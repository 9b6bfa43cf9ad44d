// If these failed, a few stalled pullers would leave nothing for all others, or messages would go to two pullers or to
// none.
#include "broker/delivery/group_dispatcher.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "broker/fake_consumer.hpp"
#include "support/process.hpp"

namespace leat::broker {
namespace {

using testing::TemporaryDirectory;

constexpr std::size_t kBound = 1 << 20;

// Connections of other topics, which want memory for large records, most often all.
class Others final : public LargeMessages::Holder, public LargeMessages::Waiter {
 public:
  explicit Others(LargeMessages& unsent, std::size_t bytes = kBound)
      : unsent_{unsent}, bytes_{bytes} {
    on_room();
  }
  ~Others() override {
    unsent_.release(*this);
    unsent_.leave(*this);
  }
  void on_room() override { have_it = unsent_.take(*this, *this, bytes_); }
  std::uint64_t moved_bytes() const override { return 0; }
  bool waits_for_client() override { return false; }
  void cut_off() override {}

  bool have_it = false;

 private:
  LargeMessages& unsent_;
  std::size_t bytes_;
};

class GroupDispatcherTest : public ::testing::Test {
 protected:
  void open(std::uint32_t in_flight, std::chrono::nanoseconds lease = {}) {
    auto topic = Topic::create("work", {.directory = temp_.path()});
    ASSERT_TRUE(topic) << describe(topic.error());
    topic_ = std::move(*topic);
    auto publisher = topic_->publisher();
    ASSERT_TRUE(publisher);
    publisher_.emplace(std::move(*publisher));
    auto group = topic_->group("work", {.members = 8, .in_flight = in_flight, .lease = lease});
    ASSERT_TRUE(group) << describe(group.error());
    group_ = std::move(*group);
    auto reader = GroupReader::open(*group_);
    ASSERT_TRUE(reader) << reader.problem().sentence;
    dispatcher_ = std::make_unique<GroupDispatcher>(
        loop_, disk_, *topic_, std::move(*reader), unsent_,
        [this](Error error) {
          ++failures_;
          failure_ = error.code;
        },
        [this] { ++progress_; });
  }
  void publish(int first, int count) {
    for (int i = first; i < first + count; ++i) ASSERT_TRUE(publisher_->publish(std::to_string(i)));
    dispatcher_->poll();
    turn();
  }
  // A dispatcher that has dealt a lot lets others have their turn.
  void turn() {
    loop_.restart();
    while (loop_.run_one_for(std::chrono::milliseconds{200}) != 0) {
    }
  }
  template <class Condition>
  void wait_until(const Condition& condition) {
    for (const Deadline deadline{std::chrono::seconds{20}}; !condition();) {
      if (deadline.passed()) FAIL() << "it did not happen";
      loop_.restart();
      loop_.run_one_for(std::chrono::milliseconds{50});
    }
  }
  static std::map<std::string, int> lines(const std::string& text) {
    std::map<std::string, int> found;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = text.find('\n', begin);
      ++found[text.substr(begin, end - begin)];
      begin = end == std::string::npos ? text.size() : end + 1;
    }
    return found;
  }

  TemporaryDirectory temp_;
  boost::asio::io_context loop_;
  BlockingWorker disk_{loop_};
  LargeMessages unsent_{loop_, kBound};
  std::optional<Topic> topic_;
  std::optional<Publisher> publisher_;
  std::optional<Group> group_;
  std::unique_ptr<GroupDispatcher> dispatcher_;
  int failures_ = 0;
  int progress_ = 0;
  Errc failure_ = Errc::ok;
};

TEST_F(GroupDispatcherTest, ManyStalledConsumersLeaveSomeForOthers) {
  open(1024);
  std::vector<std::unique_ptr<FakeConsumer>> stalled;
  for (int i = 0; i < 45; ++i) {
    stalled.push_back(std::make_unique<FakeConsumer>(*dispatcher_));
    dispatcher_->add(*stalled.back());
  }
  publish(0, 1000);
  std::size_t held = 0;
  for (const auto& consumer : stalled) held += static_cast<std::size_t>(consumer->appended_records);
  EXPECT_LE(held, 512U);
  FakeConsumer working{*dispatcher_, true};
  dispatcher_->add(working);
  publish(1000, 5000);
  EXPECT_EQ(lines(working.received).size(), 6000 - held);
  for (const auto& consumer : stalled) dispatcher_->remove(*consumer);
  turn();
  EXPECT_EQ(lines(working.received).size(), 6000U);
  dispatcher_->remove(working);
  EXPECT_EQ(group_->info().in_flight, 0U);
}

TEST_F(GroupDispatcherTest, GroupWithALeaseGetsEveryMessageAsItIs) {
  open(1024, std::chrono::minutes{1});
  FakeConsumer one{*dispatcher_, true};
  FakeConsumer other{*dispatcher_, true};
  dispatcher_->add(one);
  dispatcher_->add(other);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(publisher_->publish("message " + std::to_string(i)));
  dispatcher_->poll();
  wait_until([&] { return lines(one.received + other.received).size() == 1000; });
  auto found = lines(one.received + other.received);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(found["message " + std::to_string(i)], 1) << i;
}

TEST_F(GroupDispatcherTest, DealsWhatTheBrokerPublishedAtOnceAndSoonWhatOthersDid) {
  open(1024);
  FakeConsumer consumer{*dispatcher_, true};
  dispatcher_->add(consumer);
  for (std::size_t i = 0; i < 300; i += 3) {
    auto own = publisher_->publish("own");
    ASSERT_TRUE(own);
    dispatcher_->poll_until(*own + 1);
    EXPECT_EQ(lines(consumer.received)["own"], static_cast<int>(i / 3 + 1));
    // Behind what the dispatcher knows of; the second one perhaps while its descriptor is armed.
    ASSERT_TRUE(publisher_->publish("local"));
    if (i % 2 == 0)
      wait_until(
          [&] { return lines(consumer.received)["local"] == static_cast<int>(i / 3 * 2 + 1); });
    ASSERT_TRUE(publisher_->publish("local"));
    wait_until(
        [&] { return lines(consumer.received)["local"] == static_cast<int>(i / 3 * 2 + 2); });
  }
}

TEST_F(GroupDispatcherTest, WhatAStuckConsumerDidNotSendGoesToOthersAfterAWhile) {
  open(64);
  FakeConsumer stuck{*dispatcher_};
  FakeConsumer slow{*dispatcher_, false, true};
  dispatcher_->add(stuck);
  dispatcher_->add(slow);
  publish(100, 8);
  ASSERT_GT(stuck.appended_records, 1);
  ASSERT_GT(slow.appended_records, 1);
  stuck.take(5);  // It is in the middle of its second one.
  // Heartbeats of ZeroMQ are answered behind the messages.
  slow.answer("PONG");
  stuck.get_stuck();
  slow.get_stuck();
  FakeConsumer working{*dispatcher_, true};
  dispatcher_->add(working);
  publish(108, 100);
  ASSERT_LT(lines(working.received).size(), 108U);
  wait_until([&] { return lines(working.received).size() == 106; });
  EXPECT_EQ(slow.left(), "PONG");
  stuck.take(stuck.left().size());
  dispatcher_->remove(stuck);
  turn();
  auto found = lines(working.received + stuck.received);
  for (int i = 100; i < 208; ++i) EXPECT_EQ(found[std::to_string(i)], 1) << i;
  EXPECT_EQ(failures_, 0);
}

TEST_F(GroupDispatcherTest, LocalMembersGetWhatStuckConsumersCannotTake) {
  open(1024);
  FakeConsumer stuck{*dispatcher_};
  dispatcher_->add(stuck);
  publish(0, 500);
  stuck.get_stuck();
  auto local = group_->join();
  ASSERT_TRUE(local);
  int count = 0;
  wait_until([&] {
    while (auto delivery = local->receive(Deadline::immediate())) {
      EXPECT_TRUE(local->acknowledge(*delivery));
      ++count;
    }
    return count == 500;
  });
}

TEST_F(GroupDispatcherTest, TakesNoMoreConsumersThanCanEachHoldOne) {
  open(8);
  std::vector<std::unique_ptr<FakeConsumer>> silent;
  while (dispatcher_->has_room()) {
    silent.push_back(std::make_unique<FakeConsumer>(*dispatcher_, true, true));
    dispatcher_->add(*silent.back());
  }
  EXPECT_EQ(silent.size(), 4U);
  publish(0, 100);
  EXPECT_LE(silent[0]->appended_records, 1);
  dispatcher_->remove(*silent[0]);
  FakeConsumer working{*dispatcher_, true};
  dispatcher_->add(working);
  turn();
  EXPECT_EQ(lines(working.received).size(), 97U) << "silent ones leave something to the others";
}

// Records of durable topics are copies.
TEST_F(GroupDispatcherTest, ReceivesFewLargeRecords) {
  open(1024);
  FakeConsumer stuck{*dispatcher_};
  dispatcher_->add(stuck);
  const std::string large(200'000, 'x');
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(publisher_->publish(large));
  dispatcher_->poll();
  turn();
  EXPECT_LE(group_->info().in_flight, 4U);
}

TEST_F(GroupDispatcherTest, WaitsForMemoryInOnePlaceWhicheverPullerIsReady) {
  open(64);
  FakeConsumer first{*dispatcher_};
  dispatcher_->add(first);
  publish(0, 1);
  FakeConsumer second{*dispatcher_};
  dispatcher_->add(second);
  Others others{unsent_};
  ASSERT_TRUE(others.have_it);
  ASSERT_TRUE(publisher_->publish(std::string(200'000, 'x')));
  dispatcher_->poll();
  Others late{unsent_};
  first.take(first.left().size());
  dispatcher_->on_sent(second);  // The kernel has taken a PONG.
  unsent_.release(others);
  wait_until([&] { return first.appended_records + second.appended_records == 2; });
  EXPECT_FALSE(late.have_it);
  dispatcher_->remove(first);
  dispatcher_->remove(second);
  wait_until([&] { return late.have_it; });
}

// Else it would be a dead letter after a few seconds, if the group has them.
TEST_F(GroupDispatcherTest, ARecordThatWaitsForMemoryIsNotDeliveredAgain) {
  open(64);
  FakeConsumer consumer{*dispatcher_, true};
  dispatcher_->add(consumer);
  Others others{unsent_};
  ASSERT_TRUE(publisher_->publish(std::string(200'000, 'x')));
  dispatcher_->poll();
  loop_.restart();
  loop_.run_for(std::chrono::milliseconds{1300});
  unsent_.release(others);
  wait_until([&] { return consumer.received.size() == 200'001; });
  EXPECT_EQ(group_->info().redelivered, 0U);
}

TEST_F(GroupDispatcherTest, LocalMembersGetWhatWaitsForMemoryWhenNoPullerIsReady) {
  open(64);
  FakeConsumer consumer{*dispatcher_};
  dispatcher_->add(consumer);
  Others others{unsent_, kBound - 100'000};
  ASSERT_TRUE(publisher_->publish(std::string(200'000, 'x')));
  dispatcher_->poll();
  Others late{unsent_, 100'000};
  consumer.answer("PONG");  // Stays in the socket.
  auto local = group_->join();
  ASSERT_TRUE(local);
  std::size_t bytes = 0;
  wait_until([&] {
    auto delivery = local->receive(Deadline::immediate());
    if (delivery) bytes = delivery->record.value.size();
    return bytes != 0;
  });
  EXPECT_EQ(bytes, 200'000U);
  // The topic is in nobody's way any more.
  wait_until([&] { return late.have_it; });
}

TEST_F(GroupDispatcherTest, AcknowledgesWhatTheConsumerSaysAndNoMoreThanItGot) {
  open(64);
  FakeConsumer consumer{*dispatcher_, true, true};
  dispatcher_->add(consumer);
  publish(0, 3);
  const auto got = static_cast<std::uint64_t>(consumer.appended_records);
  ASSERT_GT(got, 0U);
  EXPECT_FALSE(dispatcher_->on_done(consumer, got + 1));
  EXPECT_FALSE(dispatcher_->on_done(consumer, 0));
  EXPECT_TRUE(dispatcher_->on_done(consumer, got));
  dispatcher_->remove(consumer);
  FakeConsumer other{*dispatcher_, true};
  dispatcher_->add(other);
  EXPECT_EQ(lines(consumer.received + other.received).size(), 3U);
}

TEST_F(GroupDispatcherTest, OneThatAcknowledgesInLotsGetsMoreMeanwhile) {
  open(1024);
  FakeConsumer consumer{*dispatcher_, true, true};
  dispatcher_->add(consumer);
  publish(0, 10'000);
  std::uint64_t done = 0;
  while (done + 100 <= 10'000) {
    wait_until([&] { return static_cast<std::uint64_t>(consumer.appended_records) >= done + 100; });
    ASSERT_TRUE(dispatcher_->on_done(consumer, 100));
    done += 100;
  }
  FakeConsumer blind{*dispatcher_, true, true};
  dispatcher_->add(blind);
  dispatcher_->remove(consumer);
  publish(0, 10'000);
  EXPECT_LE(blind.appended_records, 512) << "one that says nothing gets no more for ever";
}

TEST_F(GroupDispatcherTest, AGroupThatIsDeletedEndsIt) {
  open(64);
  FakeConsumer consumer{*dispatcher_};
  dispatcher_->add(consumer);
  publish(0, 3);
  ASSERT_GT(consumer.appended_records, 0);
  ASSERT_TRUE(topic_->delete_group("work", true));
  const int before = consumer.appended_records;
  consumer.take(consumer.left().size());
  publish(3, 10);
  EXPECT_EQ(failures_, 1);
  EXPECT_EQ(failure_, Errc::closed);
  EXPECT_EQ(consumer.appended_records, before) << "their memory may hold other records by now";
}

TEST_F(GroupDispatcherTest, SaysHowFarConsumersAre) {
  open(64);
  EXPECT_FALSE(dispatcher_->has_consumers());
  publish(0, 10);
  EXPECT_EQ(dispatcher_->reached(), 0U);
  FakeConsumer consumer{*dispatcher_, true};
  dispatcher_->add(consumer);
  EXPECT_TRUE(dispatcher_->has_consumers());
  EXPECT_EQ(dispatcher_->reached(), 10U);
  EXPECT_GT(progress_, 0);
}

}  // namespace
}  // namespace leat::broker
