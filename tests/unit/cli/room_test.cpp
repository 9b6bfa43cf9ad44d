// If this failed, a user who lacks room in one directory would be told to look for it in another one.
#include "cli/topic/room.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "support/process.hpp"

namespace leat::cli {
namespace {

class Room : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kMiB = 1 << 20;

  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
  // For a child process, whose failures show no texts.
  static bool is(const std::string& found, const std::string& beginning) {
    if (found.starts_with(beginning)) return true;
    std::fprintf(stderr, "child: %s\n", found.c_str());
    return false;
  }
};

// Free room does not show quotas and limits.
TEST_F(Room, AQuotaOrALimitIsThatOfEitherDirectory) {
  const testing::TemporaryDirectory data;
  const testing::TemporaryDirectory memory;
  for (const int reason : {EDQUOT, EFBIG}) {
    const std::string found = what_is_missing_in_one(reason, data.path(), memory.path(), kMiB);
    EXPECT_TRUE(has(found, data.path() + " or " + memory.path())) << found;
    const std::string one = what_is_missing_in_one(reason, data.path(), data.path(), kMiB);
    EXPECT_TRUE(has(one, data.path()) && !has(one, data.path() + " or ")) << one;
  }
}

TEST_F(Room, OnlyAFileSystemThatLacksItIsCalledFull) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting needs root";
  const testing::TemporaryDirectory four_mib;
  const testing::TemporaryDirectory two_gib;
  const std::string& small = four_mib.path();
  const std::string& large = two_gib.path();
  testing::Child child{[&]() -> int {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", small.c_str(), "tmpfs", 0, "size=4m") != 0 ||
        ::mount("none", large.c_str(), "tmpfs", 0, "size=2g") != 0)
      return 1;
    if (!is(what_is_missing_in_one(ENOSPC, large, small, 8 * kMiB),
            "8 MiB and a little more needed in " + small + ", 4 MiB free"))
      return 2;
    // Some MiB may be too few for a record, but the memory has what it needs.
    if (!is(what_is_missing_in_one(ENOSPC, small, large, kMiB),
            "the file system of " + small + " (4 MiB free) or of " + large +
                " (2 GiB free) refused room: more was needed at once, a project quota"))
      return 3;
    for (const std::uint64_t needed : {std::uint64_t{0}, kMiB}) {
      if (!is(what_is_missing(ENOSPC, large, needed),
              "the file system of " + large + " refused room although 2 GiB are free: more was"))
        return 4;
    }
    return 0;
  }};
  child.wait(std::chrono::seconds{20});
  EXPECT_TRUE(child.succeeded());
}

}  // namespace
}  // namespace leat::cli
