// If this failed, a login on a busy machine would never be answered, or an answer would be read while it is written.
#include "broker/loop/low_priority_worker.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <future>
#include <memory>

namespace leat::broker {
namespace {

using namespace std::chrono_literals;
constexpr auto kLong = 60'000ms;

TEST(LowPriorityWorker, RunsOneAfterTheOtherThere) {
  LowPriorityWorker worker;
  // Few: while the machine is busy, each turn may take seconds to come.
  for (int i = 0; i < 3; ++i) {
    auto answer = std::make_shared<int>();
    const std::weak_ptr<int> watched = answer;
    std::thread::id where;
    ASSERT_TRUE(worker.run([&where, answer, i] { *answer = i, where = std::this_thread::get_id(); },
                           kLong));
    EXPECT_EQ(*answer, i);
    EXPECT_NE(where, std::this_thread::get_id());
    answer = nullptr;
    EXPECT_TRUE(watched.expired()) << "it may hold a password";
  }
}

TEST(LowPriorityWorker, HasTheLowestPriority) {
  LowPriorityWorker worker;
  int policy = -1;
  ASSERT_TRUE(worker.run([&] { policy = ::sched_getscheduler(0); }, kLong));
  EXPECT_EQ(policy, SCHED_IDLE);
  EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
}

TEST(LowPriorityWorker, GoesOnAfterTheCallerLostPatience) {
  std::promise<void> may_end;
  auto held = std::make_shared<int>();
  const std::weak_ptr<int> watched = held;
  int runs = 0;
  LowPriorityWorker worker;
  EXPECT_FALSE(
      worker.run([&, held, end = may_end.get_future().share()] { end.wait(), ++runs; }, 0ms));
  held = nullptr;
  EXPECT_FALSE(worker.is_free());
  EXPECT_FALSE(worker.run([&] { runs += 100; }, kLong)) << "not even tried";
  EXPECT_FALSE(watched.expired());
  may_end.set_value();
  while (!worker.is_free()) std::this_thread::yield();
  EXPECT_TRUE(watched.expired());
  EXPECT_EQ(runs, 1);
  EXPECT_TRUE(worker.run([&] { ++runs; }, kLong));
  EXPECT_EQ(runs, 2);
}

TEST(LowPriorityWorker, DestructorDoesNotWaitForWhatRuns) {
  std::promise<void> begun;
  std::promise<void> may_end;
  const auto ended =
      std::make_shared<std::promise<void>>();  // Also its own: it may outlive this test.
  {
    LowPriorityWorker worker;
    EXPECT_FALSE(worker.run(
        [&begun, ended, end = may_end.get_future().share()] {
          begun.set_value();
          end.wait();
          ended->set_value();
        },
        1ms));
    begun.get_future().wait();
  }
  may_end.set_value();
  ended->get_future().wait();
}

}  // namespace
}  // namespace leat::broker
