// If these failed, a fast producer would fill all the memory that its topic may take, or wait for consumers that are gone.
#include "broker/publish/publisher_throttle.hpp"

#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <thread>
#include <vector>

namespace leat::broker {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMiB = 1u << 20;

class PublisherThrottleTest : public ::testing::Test {
 protected:
  // Publishes 17 messages of 1 MiB, at the offsets 0 to 16.
  void get_ahead() {
    for (std::uint64_t end = 1; end <= 17; ++end) throttle_.add(end, kMiB);
  }
  void wait() {
    places_.push_back(throttle_.call_when_level([this] { ++calls_; }));
  }
  void run_for(std::chrono::milliseconds time) {
    loop_.restart();
    loop_.run_for(time);
  }
  // Until the wait has ended.
  void run() {
    loop_.restart();
    while (calls_ == 0 && loop_.run_one_for(10s) != 0) {
    }
  }

  boost::asio::io_context loop_;
  std::optional<std::uint64_t> reached_ = 0;
  int calls_ = 0;
  std::vector<WaitingCalls::Place> places_;
  PublisherThrottle throttle_{loop_, [this] { return reached_; }};
};

TEST_F(PublisherThrottleTest, ProducersMayBeSomeWayAhead) {
  for (std::uint64_t end = 1; end <= 16; ++end) throttle_.add(end, kMiB);
  EXPECT_FALSE(throttle_.is_ahead());
  throttle_.add(17, 1);
  EXPECT_TRUE(throttle_.is_ahead());
}

TEST_F(PublisherThrottleTest, TheyGoOnWhenConsumersHaveCaughtUp) {
  get_ahead();
  ASSERT_TRUE(throttle_.is_ahead());
  wait();
  reached_ = 4;  // 13 MiB ahead.
  throttle_.on_progress();
  run_for(1ms);
  EXPECT_EQ(calls_, 0);
  reached_ = 5;
  throttle_.on_progress();
  EXPECT_EQ(calls_, 0) << "not within the call";
  run();
  EXPECT_EQ(calls_, 1);
  EXPECT_FALSE(throttle_.is_ahead());
}

// The dispatcher reports progress again and again, while the loop is busy with other things.
TEST_F(PublisherThrottleTest, TheyGoOnHoweverOftenConsumersSaySo) {
  get_ahead();
  ASSERT_TRUE(throttle_.is_ahead());
  wait();
  reached_ = 10;
  for (int i = 0; i < 1000 && calls_ == 0; ++i) {
    throttle_.on_progress();
    boost::asio::post(loop_, [] {});
    loop_.restart();
    loop_.poll_one();
  }
  EXPECT_EQ(calls_, 1);
}

TEST_F(PublisherThrottleTest, ItSeesWhatLocalProcessesTake) {
  get_ahead();
  ASSERT_TRUE(throttle_.is_ahead());
  wait();
  reached_ = 10;
  run();
  EXPECT_EQ(calls_, 1);
}

TEST_F(PublisherThrottleTest, NobodyWaitsForConsumersThatStandStill) {
  get_ahead();
  ASSERT_TRUE(throttle_.is_ahead());
  wait();
  run();
  EXPECT_EQ(calls_, 1);
  throttle_.add(18, kMiB);
  EXPECT_FALSE(throttle_.is_ahead());
  reached_ = 1;  // They go on.
  for (std::uint64_t end = 19; end <= 35; ++end) throttle_.add(end, kMiB);
  EXPECT_TRUE(throttle_.is_ahead());
}

TEST_F(PublisherThrottleTest, NobodyWaitsForConsumersThatAreGone) {
  get_ahead();
  ASSERT_TRUE(throttle_.is_ahead());
  wait();
  reached_.reset();
  run();
  EXPECT_EQ(calls_, 1);
  EXPECT_FALSE(throttle_.is_ahead());
  reached_ = 0;
  EXPECT_FALSE(throttle_.is_ahead()) << "who comes later is not blamed for what was before";
}

TEST_F(PublisherThrottleTest, ManySmallBatchesCountAsTheLargeOnes) {
  for (std::uint64_t end = 1; end <= 17 * 1024; ++end) throttle_.add(end, 1024);
  EXPECT_TRUE(throttle_.is_ahead());
  reached_ = 17 * 1024;
  wait();
  throttle_.on_progress();
  run();
  EXPECT_EQ(calls_, 1);
  EXPECT_FALSE(throttle_.is_ahead());
}

TEST_F(PublisherThrottleTest, ItMayEndWhileSomebodyWaits) {
  {
    PublisherThrottle throttle{loop_, [this] { return reached_; }};
    throttle.add(1, 17 * kMiB);
    ASSERT_TRUE(throttle.is_ahead());
    places_.push_back(throttle.call_when_level([this] { ++calls_; }));
    std::this_thread::sleep_for(20ms);  // Its timer has run out.
  }
  run_for(30ms);
  EXPECT_EQ(calls_, 0);
}

// A client that has gone waits no longer; on a topic that stays full, those that come and go would fill the memory.
TEST(WaitingCallsTest, WhoLeavesIsNotCalledAndTakesNoRoom) {
  std::string called;
  WaitingCalls waiting;
  WaitingCalls::Place second;
  WaitingCalls::Place last;
  const WaitingCalls::Place first = waiting.add([&] {
    called += '1';
    second = {};
    last = waiting.add([&] { called += '4'; });  // For the next time.
  });
  second = waiting.add([&] { called += '2'; });
  const WaitingCalls::Place third = waiting.add([&] { called += '3'; });
  for (int i = 0; i < 1000; ++i) (void)waiting.add([&] { called += 'x'; });
  EXPECT_EQ(waiting.size(), 3U);
  waiting.call_all();
  EXPECT_EQ(called, "13");
  waiting.call_all();
  EXPECT_EQ(called, "134");
  EXPECT_TRUE(waiting.empty());
}

TEST(WaitingCallsTest, PlacesMayOutliveTheirLine) {
  WaitingCalls::Place place;
  {
    WaitingCalls waiting;
    place = waiting.add([] {});
  }
  WaitingCalls other;
  place = other.add([] {});
  EXPECT_FALSE(other.empty());
  place = {};
  EXPECT_TRUE(other.empty());
}

}  // namespace
}  // namespace leat::broker
