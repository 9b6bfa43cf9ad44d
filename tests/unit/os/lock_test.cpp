// If this failed, living processes could count as dead, or dead ones as alive.
#include "leat/os/lock.hpp"

#include "leat/format/layout.hpp"
#include "testing.hpp"

namespace leat::detail {
namespace {

TEST(Lock, BelongsToTheFileDescription) {
  const TestDirectory directory;
  const Fd mine = directory.open_file("f");
  const Fd other = directory.open_file("f");
  constexpr std::int64_t kByte = kLockBase + 5;
  EXPECT_TRUE(must(try_lock_byte(mine.get(), kByte)));
  EXPECT_TRUE(byte_is_locked(other.get(), kByte));
  EXPECT_FALSE(must(try_lock_byte(other.get(), kByte)));
  EXPECT_FALSE(byte_is_locked(other.get(), kByte + 1));
  EXPECT_TRUE(must(try_lock_byte(other.get(), kByte + 1)));
}

TEST(Lock, OfADescriptionEndsWithIt) {
  const TestDirectory directory;
  const Fd other = directory.open_file("f");
  {
    const Fd mine = directory.open_file("f");
    EXPECT_TRUE(must(try_lock_byte(mine.get(), 7)));
    { const Fd third = directory.open_file("f"); }  // Closing another description has no effect.
    EXPECT_TRUE(byte_is_locked(other.get(), 7));
  }
  EXPECT_FALSE(byte_is_locked(other.get(), 7));
}

TEST(Lock, OfAProcessEndsWithIt) {
  const TestDirectory directory;
  const Fd mine = directory.open_file("f");
  Child child{[&] {
    const Fd own = directory.open_file("f");
    if (!must(try_lock_byte(own.get(), 7))) return 1;
    ::raise(SIGSTOP);
    return 0;
  }};
  int status = 0;
  ::waitpid(child.pid(), &status, WUNTRACED);
  EXPECT_TRUE(byte_is_locked(mine.get(), 7));
  EXPECT_EQ(child.kill(SIGKILL), -SIGKILL);
  EXPECT_FALSE(byte_is_locked(mine.get(), 7));
}

TEST(Lock, WhatTheKernelDoesNotSayCountsAsLocked) { EXPECT_TRUE(byte_is_locked(-1, 7)); }

}  // namespace
}  // namespace leat::detail
