// If these tests failed, a busy topic would wake threads for each message that the broker knows of anyway, or what local
// processes publish to it would arrive late.
#include "broker/topic/published_offset.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace leat::broker {
namespace {

class OwnEndTest : public ::testing::Test {
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
  int looks_ = 0;
  OwnEnd own_end_{loop_, [this] { return end_; }, [this] { ++looks_; }};
};

TEST_F(OwnEndTest, DoesNotLookWhileTheBrokerPublishes) {
  for (int i = 0; i < 10; ++i) {
    own_end_.tell(++end_);
    tick(7);
    EXPECT_TRUE(own_end_.is_reached(end_));
    EXPECT_FALSE(own_end_.is_reached(end_ - 1));
    EXPECT_EQ(looks_, 0);
  }
}

TEST_F(OwnEndTest, LooksOnceWhenTheBrokerHasPublishedNothingForAWhile) {
  own_end_.tell(++end_);
  tick(8);
  EXPECT_EQ(looks_, 1);
  EXPECT_FALSE(own_end_.is_reached(end_));  // From then on the descriptor tells.
  loop_.restart();
  EXPECT_EQ(loop_.run_for(std::chrono::milliseconds{20}), 0u);
}

TEST_F(OwnEndTest, LooksWithinATickWhenOthersHavePublished) {
  own_end_.tell(++end_);
  tick(3);
  ++end_;
  tick();
  EXPECT_EQ(looks_, 1);
  EXPECT_FALSE(own_end_.is_reached(end_));
  own_end_.tell(++end_);
  EXPECT_TRUE(own_end_.is_reached(end_));
}

// Its ticks judge nobody.
TEST_F(OwnEndTest, LooksAtOnceAfterAStandstill) {
  own_end_.tell(++end_);
  ++end_;
  std::this_thread::sleep_for(std::chrono::milliseconds{200});
  loop_.poll();
  EXPECT_EQ(looks_, 1);
}

TEST_F(OwnEndTest, NobodyIsCalledOnceItIsForgotten) {
  own_end_.tell(++end_);
  own_end_.forget();
  EXPECT_FALSE(own_end_.is_reached(end_));
  loop_.restart();
  loop_.run_for(std::chrono::milliseconds{20});
  EXPECT_EQ(looks_, 0);
}

}  // namespace
}  // namespace leat::broker
