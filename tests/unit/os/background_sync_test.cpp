// A sync in the background: it ends, it says how, and nothing is left when its owner goes or forks. If this failed, a
// topic could call records durable that are not on stable storage.
#include "leat/os/background_sync.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "leat/os/file.hpp"
#include "support/process.hpp"

namespace leat::testing {
namespace {

class BackgroundSyncs : public ::testing::Test {
 protected:
  detail::Fd file() const {
    detail::Fd made{
        ::open((temp_.path() + "/file").c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
    const std::string bytes(1 << 20, 'x');
    EXPECT_EQ(::pwrite(made.get(), bytes.data(), bytes.size(), 0), 1 << 20);
    return made;
  }
  TemporaryDirectory temp_;
};

TEST_F(BackgroundSyncs, EndsOnceAndCanBeUsedAgain) {
  const detail::Fd one = file();
  detail::BackgroundSync sync;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(sync.start(one.get()));
    std::optional<Result<void>> result;
    while (!result) result = sync.result(i % 2 == 0);
    EXPECT_TRUE(*result) << describe(result->error());
  }
}

TEST_F(BackgroundSyncs, TheFileMayBeClosedMeanwhile) {
  detail::BackgroundSync sync;
  ASSERT_TRUE(sync.start(file().get()));
  const auto result = sync.result(true);
  ASSERT_TRUE(result);
  EXPECT_TRUE(*result) << describe(result->error());
}

TEST_F(BackgroundSyncs, WhatCannotBeSyncedIsNotStarted) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const detail::Fd from{ends[0]};
  const detail::Fd to{ends[1]};
  detail::BackgroundSync sync;
  EXPECT_FALSE(sync.start(to.get()));
  EXPECT_FALSE(sync.start(-1));
  // Nothing was started, so nothing can have succeeded.
  const auto result = sync.result(true);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->error(), Errc::io_error);
  EXPECT_TRUE(sync.start(file().get()));
}

TEST_F(BackgroundSyncs, AChildDoesNotTakeItsParentsAway) {
  detail::BackgroundSync sync;
  ASSERT_TRUE(sync.start(file().get()));
  Child child{[&]() -> int {
    detail::BackgroundSync{std::move(sync)};  // Ends here.
    detail::BackgroundSync own;
    return own.start(file().get()) && *own.result(true) ? 0 : 1;
  }};
  child.wait();
  EXPECT_TRUE(child.succeeded()) << child.describe();
  EXPECT_TRUE(*sync.result(true));
}

}  // namespace
}  // namespace leat::testing
