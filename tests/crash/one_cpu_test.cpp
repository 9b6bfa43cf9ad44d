// If this failed, a subscriber that may use one CPU of several would spin while the publisher waits for that CPU.
#include <sched.h>

#include <atomic>
#include <thread>

#include "scenarios.hpp"

namespace leat::testing {
namespace {

std::atomic<int> yields = 0;
void count_yields(const char* name) {
  if (std::string_view{name} == "wait:yields") ++yields;
}

// Whether a thread that may use these CPUs yields while it spins.
bool does_yield(const Topic& topic, const ::cpu_set_t& cpus) {
  yields = 0;
  detail::crash_point_hook = count_yields;
  std::thread{[&] {
    ASSERT_EQ(::sched_setaffinity(0, sizeof(cpus), &cpus), 0);
    auto subscriber = topic.subscriber({.spin = 1ms});
    ASSERT_TRUE(subscriber);
    EXPECT_EQ(subscriber->wait(5ms).error().code, Errc::timeout);
  }}.join();
  detail::crash_point_hook = nullptr;
  return yields != 0;
}

TEST(OneCpu, ASpinningSubscriberLetsOthersRun) {
  ::cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(all), &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "this test may use one CPU only";
  ::cpu_set_t one;
  CPU_ZERO(&one);
  for (std::size_t i = 0; CPU_COUNT(&one) == 0; ++i)
    if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
  const TemporaryDirectory directory;
  const auto topic = Topic::create("topic", {.directory = directory.path()});
  ASSERT_TRUE(topic);
  EXPECT_TRUE(does_yield(*topic, one));
  EXPECT_FALSE(does_yield(*topic, all));
}

}  // namespace
}  // namespace leat::testing
