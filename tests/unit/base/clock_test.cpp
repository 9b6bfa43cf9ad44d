// If this failed, a wait with a long deadline could end at once, or a wait with a short one never.
#include "leat/base/clock.hpp"

#include "testing.hpp"

namespace leat {
namespace {

TEST(Deadline, NeverNeverPasses) {
  EXPECT_TRUE(Deadline::never().is_never());
  EXPECT_FALSE(Deadline::never().passed());
}

TEST(Deadline, ImmediateHasPassed) {
  EXPECT_TRUE(Deadline::immediate().is_immediate());
  EXPECT_TRUE(Deadline::immediate().passed());
}

TEST(Deadline, NothingAndLessIsImmediate) {
  EXPECT_TRUE(Deadline{0s}.is_immediate());
  EXPECT_TRUE(Deadline{-1ns}.is_immediate());
  EXPECT_TRUE(Deadline{std::chrono::hours::min()}.is_immediate());
  EXPECT_TRUE(Deadline{std::chrono::nanoseconds::min()}.is_immediate());
}

TEST(Deadline, LongerThanTheClockLastsIsNever) {
  EXPECT_TRUE(Deadline{std::chrono::hours::max()}.is_never());
  EXPECT_TRUE(Deadline{std::chrono::nanoseconds::max()}.is_never());
  EXPECT_TRUE(Deadline{std::chrono::duration<double>{1e300}}.is_never());
  EXPECT_FALSE(Deadline{24h * 365 * 100}.is_never());
}

TEST(Deadline, FractionsCount) {
  const std::int64_t before = detail::now_ns();
  const Deadline deadline{std::chrono::duration<double>{0.5}};
  EXPECT_GE(deadline.at_ns(), before + 500'000'000);
  EXPECT_LE(deadline.at_ns(), detail::now_ns() + 500'000'000);
}

TEST(Deadline, PassesInTime) {
  const Deadline deadline{5ms};
  EXPECT_FALSE(deadline.passed());
  std::this_thread::sleep_for(6ms);
  EXPECT_TRUE(deadline.passed());
}

TEST(Deadline, AtMostTakesTheEarlier) {
  EXPECT_TRUE(Deadline::immediate().at_most_ns(1'000'000).is_immediate());
  EXPECT_FALSE(Deadline::never().at_most_ns(1'000'000).is_never());
  const std::int64_t capped = Deadline{1h}.at_most_ns(1'000'000).at_ns();
  EXPECT_LE(capped, detail::now_ns() + 1'000'000);
  const Deadline soon{1us};
  EXPECT_EQ(soon.at_most_ns(3'600'000'000'000).at_ns(), soon.at_ns());
}

TEST(Clock, WallClockCountsFrom1970) {
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  EXPECT_NEAR(static_cast<double>(detail::wall_clock_ms()), static_cast<double>(now), 1000);
}

}  // namespace
}  // namespace leat
