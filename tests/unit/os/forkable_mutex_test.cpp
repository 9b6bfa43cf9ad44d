// If this failed, a forked child could wait for ever for a thread that only its parent has.
#include "leat/os/forkable_mutex.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

#include "testing.hpp"

namespace leat {
namespace {

using detail::ForkableMutex;

TEST(ForkableMutex, LetsOneThreadInAtATime) {
  ForkableMutex mutex;
  int count = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int j = 0; j < 5000; ++j) {
          const std::lock_guard guard{mutex};
          ++count;
        }
      });
    }
  }
  EXPECT_EQ(count, 20'000);
}

TEST(ForkableMutex, IsUnlockedInAChild) {
  ForkableMutex mutex;
  const std::lock_guard guard{mutex};
  Child child{[&] {
    for (int i = 0; i < 2; ++i) {
      const std::lock_guard again{mutex};
    }
    return 0;
  }};
  EXPECT_EQ(child.join(), 0);
}

}  // namespace
}  // namespace leat
