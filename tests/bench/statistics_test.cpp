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

TEST(Percentiles, OfOneToAThousandAreTheirRanks) {
  std::vector<std::uint32_t> samples(1000);
  std::iota(samples.rbegin(), samples.rend(), 1u);
  const Percentiles result = percentiles(samples);
  EXPECT_EQ(result.p50_ns, 500);
  EXPECT_EQ(result.p90_ns, 900);
  EXPECT_EQ(result.p99_ns, 990);
  EXPECT_EQ(result.p999_ns, 999);
  EXPECT_EQ(result.max_ns, 1000);
}

TEST(Percentiles, OfOneSampleAreThatSample) {
  std::vector<std::uint32_t> samples{42};
  EXPECT_EQ(percentiles(samples).p50_ns, 42);
  EXPECT_EQ(percentiles(samples).max_ns, 42);
}

TEST(ClampSample, KeepsWhatFits) {
  EXPECT_EQ(clamp_sample_ns(5), 5u);
  EXPECT_EQ(clamp_sample_ns(std::uint64_t{1} << 40), UINT32_MAX);
}

TEST(SamplesNeeded, AreSoManyThatOneLiesBeyond) {
  EXPECT_EQ(samples_needed(0.9), 10u);
  EXPECT_EQ(samples_needed(0.99), 100u);
  EXPECT_EQ(samples_needed(0.999), 1000u);
  EXPECT_EQ(samples_needed(0.9999), 10'000u);
}

}  // namespace
}  // namespace leat::bench
