// If this failed, comparing two benchmark reports would call noise a change, or a change noise.
#include "bench/report/ratio.hpp"

#include <gtest/gtest.h>

#include <random>

namespace leat::bench {
namespace {

// The distribution of U by brute force, over all orders of m values of one side and n of the other.
std::vector<double> distribution_by_counting(std::size_t m, std::size_t n) {
  std::vector<bool> is_first(m + n, false);
  std::fill(is_first.begin() + static_cast<std::ptrdiff_t>(n), is_first.end(), true);
  std::vector<double> counts(m * n + 1, 0);
  double orders = 0;
  do {
    std::size_t u = 0, seconds_below = 0;
    for (const bool first : is_first) {
      if (first) {
        u += seconds_below;
      } else {
        ++seconds_below;
      }
    }
    ++counts[u];
    ++orders;
  } while (std::next_permutation(is_first.begin(), is_first.end()));
  double sum = 0;
  for (double& count : counts) count = (sum += count) / orders;
  return counts;
}

TEST(MannWhitney, AgreesWithCountingEveryOrder) {
  for (std::size_t m = 1; m <= 6; ++m) {
    for (std::size_t n = 1; n <= 6; ++n) {
      const auto expected = distribution_by_counting(m, n);
      const auto actual = mann_whitney_distribution(m, n);
      ASSERT_EQ(actual.size(), expected.size());
      for (std::size_t u = 0; u < expected.size(); ++u) {
        EXPECT_NEAR(actual[u], expected[u], 1e-12) << m << " and " << n << ", u " << u;
      }
    }
  }
}

TEST(RatioInterval, HasTheRanksOfTheTables) {
  // The published tables of U for two-sided 5 %: 2 for 5 and 5 values, 0 for
  // 4 and 4, 8 for 7 and 7, 23 for 10 and 10.
  EXPECT_EQ(ranks_outside(5, 5)->count, 2u);
  EXPECT_EQ(ranks_outside(4, 4)->count, 0u);
  EXPECT_EQ(ranks_outside(7, 7)->count, 8u);
  EXPECT_EQ(ranks_outside(10, 10)->count, 23u);
  EXPECT_NEAR(ranks_outside(5, 5)->confidence, 1 - 2 * 4.0 / 252, 1e-12);
}

TEST(RatioInterval, NeedsEnoughRuns) {
  EXPECT_FALSE(ranks_outside(1, 1));
  EXPECT_FALSE(ranks_outside(3, 3));
  EXPECT_FALSE(ranks_outside(1, 30));
  EXPECT_FALSE(ranks_outside(0, 5));
  EXPECT_TRUE(ranks_outside(3, 5));
  EXPECT_TRUE(ranks_outside(4, 4));
}

TEST(RatioInterval, OfManyRunsIsNearTheExactOne) {
  const auto exact = ranks_outside(50, 50);
  const auto normal = ranks_outside(51, 50);
  ASSERT_TRUE(exact && normal);
  EXPECT_NEAR(static_cast<double>(exact->count) / 2500, static_cast<double>(normal->count) / 2550,
              0.01);
}

TEST(Ratio, IsTheMedianOfAllPairs) {
  const Ratio ratio = ratio_of({10, 20, 40}, {20, 40});
  // 20/40, 20/20, 40/40, 20/10, 40/20, 40/10
  EXPECT_DOUBLE_EQ(ratio.ratio, 1.5);
  EXPECT_FALSE(ratio.interval);
}

TEST(Ratio, OfFiveRunsLeavesTwoPairsOutAtEachEnd) {
  const Ratio ratio = ratio_of({1, 1, 1, 1, 1}, {1, 2, 3, 4, 5});
  ASSERT_TRUE(ratio.interval);
  // The ratios are 1 to 5, five times each; the interval begins with the third from either end.
  EXPECT_DOUBLE_EQ(ratio.interval->low, 1);
  EXPECT_DOUBLE_EQ(ratio.interval->high, 5);
  EXPECT_DOUBLE_EQ(ratio.ratio, 3);
}

TEST(Ratio, TurnsRoundWithItsSides) {
  const std::vector<double> a = {90, 100, 104, 110, 95}, b = {120, 118, 131, 125, 140};
  const Ratio there = ratio_of(a, b), back = ratio_of(b, a);
  EXPECT_NEAR(there.ratio, 1 / back.ratio, 1e-12);
  EXPECT_NEAR(there.interval->low, 1 / back.interval->high, 1e-12);
  EXPECT_NEAR(there.interval->high, 1 / back.interval->low, 1e-12);
  EXPECT_GT(there.interval->low, 1);
}

// Checks the 95 % interval by simulation: of many comparisons without a change, few report one.
TEST(Ratio, FindsAChangeWhereThereIsNoneAboutAsOftenAsItSays) {
  std::mt19937 random(12345);
  std::lognormal_distribution<double> runs(0, 0.1);
  constexpr int kTrials = 4000;
  int wrong = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> a(5), b(5);
    for (double& value : a) value = runs(random);
    for (double& value : b) value = runs(random);
    const Ratio ratio = ratio_of(a, b);
    if (ratio.interval->low > 1 || ratio.interval->high < 1) ++wrong;
  }
  // 3.2 % for 5 and 5 values; the tolerance is four standard deviations.
  EXPECT_NEAR(static_cast<double>(wrong) / kTrials, 2 * 4.0 / 252, 0.012);
}

}  // namespace
}  // namespace leat::bench
