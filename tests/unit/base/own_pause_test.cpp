// If this failed, a process would take its own standstill for the lateness of others, or would never act.
// The clock is virtual: each time is a number.
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
    pause.check(now);
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

// All processes are stopped for 5 s, run for one look, and are stopped again.
TEST(OwnPause, TwoStandstillsInARowAreForgiven) {
  for (const std::int64_t limit : {2 * kMs, 20 * kMs, kLimit, 4000 * kMs}) {
    OwnPause pause;
    pause.begin(0);
    for (const std::int64_t now : {5000 * kMs, 10'000 * kMs, 10'002 * kMs}) {
      pause.check(now);
      EXPECT_FALSE(pause.is_late(now, 0, limit)) << limit << ' ' << now;
    }
  }
}

// The second standstill begins just before the wait after the first one ends.
TEST(OwnPause, ALaterPauseDoesNotRestartTheWait) {
  OwnPause pause;
  pause.begin(0);
  EXPECT_EQ(first_late(pause, 2000 * kMs, 2098 * kMs, 0, kLimit), -1);
  EXPECT_EQ(first_late(pause, 4000 * kMs, 5000 * kMs, 0, kLimit), 4004 * kMs);
}

// What was noted for one standstill does not count for one that comes after the wait.
TEST(OwnPause, EachStandstillHasAWaitOfItsOwn) {
  OwnPause pause;
  pause.begin(0);
  for (std::int64_t start = 2000 * kMs; start < 60'000 * kMs; start += 2000 * kMs)
    EXPECT_EQ(first_late(pause, start, start + 150 * kMs, 0, kLimit), start + 100 * kMs);
}

// Two or more looks that are 1 ms apart, again and again.
TEST(OwnPause, EveryRhythmOfChecksActsInTheEnd) {
  for (const std::int64_t limit : {20 * kMs, kLimit, 1000 * kMs}) {
    for (const std::int64_t gap : {50 * kMs, 99 * kMs, 101 * kMs, 200 * kMs, 1000 * kMs}) {
      for (const std::int64_t checks : {1, 2, 3, 5, 60, 99, 101}) {
        OwnPause pause;
        pause.begin(0);
        std::int64_t late = -1;
        std::int64_t ran = 0;  // Since the limit, without the gaps.
        std::int64_t gaps = 0;
        for (std::int64_t now = gap; late < 0 && gaps < 100; now += gap) {
          if (now >= limit) ++gaps;
          for (std::int64_t i = 0; late < 0 && i < checks; ++i, now += kMs) {
            pause.check(now);
            if (pause.is_late(now, 0, limit)) late = now;
            if (now >= limit) ran += kMs;
          }
        }
        EXPECT_GE(late, limit) << gap << ' ' << checks;
        EXPECT_LE(gaps, 4) << limit << ' ' << gap << ' ' << checks;
        EXPECT_LE(ran, 105 * kMs) << limit << ' ' << gap << ' ' << checks;
      }
    }
  }
}

// check_again_in_ns() says when, also if each sleep ends late.
TEST(OwnPause, SleepsAsLongAsToldEndTheWait) {
  for (const std::int64_t delay : {0 * kMs, 90 * kMs, 150 * kMs}) {
    OwnPause pause;
    pause.begin(0);
    std::int64_t now = 5000 * kMs;
    int checks = 1;
    for (pause.check(now); !pause.is_late(now, 0, kLimit) && checks < 100; ++checks) {
      const std::int64_t ns = pause.check_again_in_ns(kLimit);
      pause.sleep_for(ns);
      pause.check(now += ns + delay);
    }
    EXPECT_LE(checks, 5) << delay;
  }
}

TEST(OwnPause, AShortPauseIsNone) {
  OwnPause pause;
  pause.begin(0);
  EXPECT_EQ(first_late(pause, 0, 450 * kMs, 0, kLimit), -1);
  EXPECT_EQ(first_late(pause, 549 * kMs, 600 * kMs, 0, kLimit), 549 * kMs);
}

// A program that polls once a second.
TEST(OwnPause, WhoChecksSeldomActsAllTheSame) {
  OwnPause pause;
  pause.begin(0);
  EXPECT_EQ(first_late(pause, 1000 * kMs, 5000 * kMs, 0, kLimit, 1000 * kMs), 3000 * kMs);
}

TEST(OwnPause, ASleepOfItsOwnChoiceIsNone) {
  OwnPause pause;
  pause.check(0);
  pause.sleep_for(3000 * kMs);
  pause.check(3000 * kMs);
  EXPECT_TRUE(pause.is_late(3000 * kMs, 0, kLimit));
  // Longer than it chose.
  pause.sleep_for(3000 * kMs);
  pause.check(8000 * kMs);
  EXPECT_FALSE(pause.is_late(8000 * kMs, 3000 * kMs, kLimit));
  // Without an end.
  pause.begin(8000 * kMs);
  pause.sleep_for(0);
  pause.check(60'000 * kMs);
  EXPECT_TRUE(pause.is_late(60'000 * kMs, 8000 * kMs, kLimit));
}

TEST(OwnPause, WhatWasBeforeTheOtherCameDoesNotMatter) {
  OwnPause pause;
  pause.check(0);
  pause.check(5000 * kMs);
  pause.begin(5000 * kMs);
  EXPECT_TRUE(pause.is_late(5010 * kMs, 5000 * kMs, 10 * kMs));
}

}  // namespace
}  // namespace leat::testing
