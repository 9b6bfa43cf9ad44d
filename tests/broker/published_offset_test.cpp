// If these tests failed, a busy topic would wake threads for each message that the broker knows of anyway, or what local
// processes publish to it would arrive late.
#include "broker/delivery/published_offset.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace leat::broker {
namespace {

class PublishedOffsetTest : public ::testing::Test {
 protected:
  // Lets a millisecond pass; however late it is called, that is one.
  void tick(int times = 1) {
    for (int i = 0; i < times; ++i) {
      loop_.restart();
      loop_.run_one();
    }
  }

  boost::asio::io_context loop_;
  std::uint64_t end_ = 0;
  int polls_ = 0;
  PublishedOffset published_offset_{loop_, [this] { return end_; }, [this] { ++polls_; }};
};

TEST_F(PublishedOffsetTest, DoesNotPollWhileTheBrokerPublishes) {
  for (int i = 0; i < 10; ++i) {
    published_offset_.advance(++end_);
    tick(7);
    EXPECT_TRUE(published_offset_.is_reached(end_));
    EXPECT_FALSE(published_offset_.is_reached(end_ - 1));
    EXPECT_EQ(polls_, 0);
  }
}

TEST_F(PublishedOffsetTest, PollsOnceWhenTheBrokerHasPublishedNothingForAWhile) {
  published_offset_.advance(++end_);
  tick(8);
  EXPECT_EQ(polls_, 1);
  EXPECT_FALSE(published_offset_.is_reached(end_));  // From then on the descriptor tells.
  loop_.restart();
  EXPECT_EQ(loop_.run_for(std::chrono::milliseconds{20}), 0u);
}

TEST_F(PublishedOffsetTest, PollsWithinATickWhenOthersHavePublished) {
  published_offset_.advance(++end_);
  tick(3);
  ++end_;
  tick();
  EXPECT_EQ(polls_, 1);
  EXPECT_FALSE(published_offset_.is_reached(end_));
  published_offset_.advance(++end_);
  EXPECT_TRUE(published_offset_.is_reached(end_));
}

// Its ticks judge nobody.
TEST_F(PublishedOffsetTest, PollsAtOnceAfterAStandstill) {
  published_offset_.advance(++end_);
  ++end_;
  std::this_thread::sleep_for(std::chrono::milliseconds{200});
  loop_.poll();
  EXPECT_EQ(polls_, 1);
}

TEST_F(PublishedOffsetTest, NobodyIsCalledOnceItIsForgotten) {
  published_offset_.advance(++end_);
  published_offset_.forget();
  EXPECT_FALSE(published_offset_.is_reached(end_));
  loop_.restart();
  loop_.run_for(std::chrono::milliseconds{20});
  EXPECT_EQ(polls_, 0);
}

}  // namespace
}  // namespace leat::broker
