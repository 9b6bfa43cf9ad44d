// If this failed, every median and percentile that the benchmarks print would be wrong.
#include "bench/statistics.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace leat::bench {
namespace {

TEST(Median, IsTheMiddleOrTheMeanOfTheTwoMiddleOnes) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({9, 1, 5}), 5);
  EXPECT_EQ(median({9, 1, 5, 2}), 3.5);
}

TEST(Percentile, IsTheNearestRank) {
  std::vector<double> values(20);
  std::iota(values.rbegin(), values.rend(), 1.0);  // 20, 19, … 1
  EXPECT_EQ(percentile(values, 0.9), 18);
  EXPECT_EQ(percentile(values, 0.5), 10);
  EXPECT_EQ(percentile(values, 1), 20);
  EXPECT_EQ(percentile(values, 0), 1);
  EXPECT_EQ(percentile({}, 0.9), 0);
}

TEST(LatencyOf, TakesNearestRanks) {
  std::vector<std::uint64_t> samples;
  for (std::uint64_t i = 10'000; i != 0; --i) samples.push_back(i);
  const Latency latency = latency_of(samples);
  EXPECT_EQ(latency.min, 1);
  EXPECT_EQ(latency.p50, 5000);
  EXPECT_EQ(latency.p90, 9000);
  EXPECT_EQ(latency.p99, 9900);
  EXPECT_EQ(latency.p999, 9990);
  EXPECT_EQ(latency.p9999, 9999);
  EXPECT_EQ(latency.max, 10'000);
  EXPECT_DOUBLE_EQ(latency.mean, 5000.5);
  EXPECT_NEAR(latency.stddev, 2886.75, 0.01);
}

TEST(LatencyOf, OneSampleIsAllOfThem) {
  std::vector<std::uint64_t> samples{7};
  const Latency latency = latency_of(samples);
  EXPECT_EQ(latency.p50, 7);
  EXPECT_EQ(latency.p9999, 7);
  EXPECT_EQ(latency.stddev, 0);
}

// A difference of two large sums would come out below zero, and its root as no number.
TEST(LatencyOf, LargeAndEqualSamplesHaveNoDeviation) {
  constexpr std::uint64_t kMinute = 60'000'000'000;  // As behind a rate that is too high.
  std::vector<std::uint64_t> samples(100'003, kMinute);
  const Latency latency = latency_of(samples);
  EXPECT_EQ(latency.mean, 60e9);
  EXPECT_EQ(latency.stddev, 0);
}

TEST(LatencyOf, NoSamplesAreNoLatency) {
  std::vector<std::uint64_t> samples;
  EXPECT_EQ(latency_of(samples).p50, 0);
}

TEST(SamplesNeeded, AreSoManyThatOneLiesBeyond) {
  EXPECT_EQ(samples_needed(0.9), 10u);
  EXPECT_EQ(samples_needed(0.99), 100u);
  EXPECT_EQ(samples_needed(0.999), 1000u);
  EXPECT_EQ(samples_needed(0.9999), 10'000u);
}

}  // namespace
}  // namespace leat::bench
