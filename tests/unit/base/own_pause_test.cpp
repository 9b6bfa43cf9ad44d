// Who stood still itself does not take that for the lateness of others. Virtual clocks: each time is a number.
#include "leat/base/own_pause.hpp"

#include <gtest/gtest.h>

namespace leat::testing {
namespace {

using detail::OwnPause;

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kLimit = 500 * kMs;

// Looks every 2 ms from one time to another. Returns when the other is late for the first time; -1: never.
std::int64_t first_late(OwnPause& pause, std::int64_t from, std::int64_t to, std::int64_t since,
                        std::int64_t limit, std::int64_t step = 2 * kMs) {
  for (std::int64_t now = from; now <= to; now += step) {
    pause.look(now);
    if (pause.is_late(now, since, limit)) return now;
  }
  return -1;
}

TEST(OwnPause, TimeCountsAsItIsForWhoRuns) {
  OwnPause pause;
  pause.begin(0);
  EXPECT_EQ(first_late(pause, 0, 1000 * kMs, 0, kLimit), kLimit);
}

TEST(OwnPause, AfterAPauseTheOtherGetsAnotherHundredMilliseconds) {
  OwnPause pause;
  pause.begin(0);
  EXPECT_EQ(first_late(pause, 0, 300 * kMs, 0, kLimit), -1);
  EXPECT_EQ(first_late(pause, 2300 * kMs, 3000 * kMs, 0, kLimit), 2400 * kMs);
}

TEST(OwnPause, AfterAPauseTheOtherGetsItsLimitIfThatIsShorter) {
  OwnPause pause;
  pause.begin(0);
  EXPECT_EQ(first_late(pause, 0, 10 * kMs, 0, 20 * kMs), -1);
  EXPECT_EQ(first_late(pause, 2000 * kMs, 3000 * kMs, 0, 20 * kMs), 2020 * kMs);
}

// Stopped for 2 s again and again, and let run for 50 ms in between: nobody else ran for longer.
TEST(OwnPause, EachPauseCounts) {
  OwnPause pause;
  pause.begin(0);
  for (std::int64_t i = 0; i < 100; ++i)
    EXPECT_EQ(first_late(pause, i * 2000 * kMs, (i * 2000 + 50) * kMs, 0, kLimit), -1) << i;
}

TEST(OwnPause, AShortPauseIsNone) {
  OwnPause pause;
  pause.begin(0);
  EXPECT_EQ(first_late(pause, 0, 450 * kMs, 0, kLimit), -1);
  EXPECT_EQ(first_late(pause, 549 * kMs, 600 * kMs, 0, kLimit), 549 * kMs);
}

// A program that polls once a second.
TEST(OwnPause, WhoLooksSeldomActsAllTheSame) {
  OwnPause pause;
  pause.begin(0);
  EXPECT_EQ(first_late(pause, 1000 * kMs, 5000 * kMs, 0, kLimit, 1000 * kMs), 2000 * kMs);
}

TEST(OwnPause, ASleepOfItsOwnChoiceIsNone) {
  OwnPause pause;
  pause.look(0);
  pause.sleep_for(3000 * kMs);
  pause.look(3000 * kMs);
  EXPECT_TRUE(pause.is_late(3000 * kMs, 0, kLimit));
  // Longer than it chose.
  pause.sleep_for(3000 * kMs);
  pause.look(8000 * kMs);
  EXPECT_FALSE(pause.is_late(8000 * kMs, 3000 * kMs, kLimit));
  // Without an end.
  pause.look(8200 * kMs - 1);
  pause.sleep_for(0);
  pause.look(60'000 * kMs);
  EXPECT_TRUE(pause.is_late(60'000 * kMs, 8000 * kMs, kLimit));
}

TEST(OwnPause, WhatWasBeforeTheOtherCameDoesNotMatter) {
  OwnPause pause;
  pause.look(0);
  pause.look(5000 * kMs);
  pause.begin(5000 * kMs);
  EXPECT_TRUE(pause.is_late(5010 * kMs, 5000 * kMs, 10 * kMs));
}

}  // namespace
}  // namespace leat::testing
