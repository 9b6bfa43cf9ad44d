// If this failed, people would see rates that nobody publishes with.
#include "cli/live/rate_meter.hpp"

#include "testing.hpp"

namespace leat::cli {
namespace {

const RateMeter::Time kStart{1000s};

TEST(RateMeter, IsTheRiseBetweenTwoLooks) {
  RateMeter meter;
  meter.sample(kStart);
  EXPECT_EQ(meter.rise("a", 100), std::nullopt);
  meter.sample(kStart + 2s);
  EXPECT_EQ(meter.rise("a", 150), 25.0);
  EXPECT_EQ(meter.rise("new", 7), std::nullopt);
  meter.sample(kStart + 2500ms);
  EXPECT_EQ(meter.rise("a", 151), 2.0);
  EXPECT_EQ(meter.rise("new", 7), 0.0);
}

TEST(RateMeter, CounterThatFellBeganAnew) {
  RateMeter meter;
  meter.sample(kStart);
  meter.rise("a", 100);
  meter.sample(kStart + 1s);
  EXPECT_EQ(meter.rise("a", 3), 0.0);
  meter.sample(kStart + 2s);
  EXPECT_EQ(meter.rise("a", 5), 2.0);
}

TEST(RateMeter, WhatWasAwayForALookIsNew) {
  RateMeter meter;
  meter.sample(kStart);
  meter.rise("a", 1);
  meter.sample(kStart + 1s);
  meter.sample(kStart + 2s);
  EXPECT_EQ(meter.rise("a", 2), std::nullopt);
}

}  // namespace
}  // namespace leat::cli
