// If this failed, `leat doctor` would call memory free that a container's limit does not leave, and `leat topic create`
// would be killed without a word.
#include "cli/doctor/cgroup.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/process.hpp"

namespace leat::cli {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

class Cgroup : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = directory_.path() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream{file} << text;
  }
  void expect(std::optional<std::uint64_t> limit, std::uint64_t free = 0) const {
    const auto found = memory_limit(directory_.path());
    ASSERT_EQ(found.has_value(), limit.has_value());
    if (!found) return;
    EXPECT_EQ(found->bytes, *limit * kMiB);
    EXPECT_EQ(found->free_bytes, free * kMiB);
  }
  static std::string mib(std::uint64_t count) { return std::to_string(count * kMiB) + "\n"; }

  const testing::TemporaryDirectory directory_;
};

TEST_F(Cgroup, NoneIsNoLimit) { expect(std::nullopt); }

TEST_F(Cgroup, TheTightestOfVersion2AndThoseAboveItCounts) {
  write("/proc/self/cgroup", "0::/a/b\n");
  write("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 c rw\n");
  write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  write("/sys/fs/cgroup/a/b/memory.current", mib(10));
  expect(std::nullopt);
  write("/sys/fs/cgroup/a/memory.max", mib(24));
  write("/sys/fs/cgroup/a/memory.current", mib(14));
  expect(24, 10);
  write("/sys/fs/cgroup/a/memory.stat", "anon 0\ninactive_file " + mib(4) + "active_file 5\n");
  expect(24, 14);
  write("/sys/fs/cgroup/a/b/memory.max", mib(22));
  expect(22, 12);
  write("/sys/fs/cgroup/a/memory.current", mib(30));  // Lowered meanwhile.
  expect(24, 0);
}

TEST_F(Cgroup, SwapCountsAsFarAsItMayBeUsed) {
  const auto swap = [&] { return memory_limit(directory_.path())->free_swap_bytes; };
  write("/proc/self/cgroup", "0::/a/b\n");
  write("/proc/self/mountinfo", "30 23 0:26 / /two rw - cgroup2 c rw\n");
  write("/two/a/b/memory.max", mib(24));
  write("/two/a/b/memory.current", mib(14));
  EXPECT_EQ(swap(), UINT64_MAX);  // There are no files without swap in the kernel.
  write("/two/a/b/memory.swap.max", "max\n");
  write("/two/a/b/memory.swap.current", mib(2));
  EXPECT_EQ(swap(), UINT64_MAX);
  write("/two/a/memory.swap.max", mib(8));
  write("/two/a/memory.swap.current", mib(3));
  EXPECT_EQ(swap(), 5 * kMiB);
  write("/two/a/b/memory.swap.max", "0\n");
  EXPECT_EQ(swap(), 0U);
  // Version 1 has a limit of both together.
  write("/proc/self/cgroup", "4:memory:/\n");
  write("/proc/self/mountinfo", "33 31 0:30 / /one ro - cgroup cgroup rw,memory\n");
  write("/one/memory.limit_in_bytes", mib(24));
  write("/one/memory.usage_in_bytes", mib(14));
  write("/one/memory.memsw.limit_in_bytes", mib(40));
  write("/one/memory.memsw.usage_in_bytes", mib(18));
  EXPECT_EQ(swap(), 12 * kMiB);
  write("/one/memory.memsw.limit_in_bytes", mib(24));
  EXPECT_EQ(swap(), 0U);
}

TEST_F(Cgroup, Version1IsFoundAmongItsControllers) {
  write("/proc/self/cgroup", "9:cpu:/x\n4:hugetlb,memory:/jobs/one\n0::/\n");
  write("/proc/self/mountinfo",
        "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
        "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
        "33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,hugetlb,memory\n");
  const std::string memory = "/sys/fs/cgroup/memory";
  write(memory + "/memory.limit_in_bytes", "9223372036854771712\n");
  write(memory + "/memory.usage_in_bytes", mib(500));
  write(memory + "/jobs/one/memory.limit_in_bytes", mib(24));
  write(memory + "/jobs/one/memory.usage_in_bytes", mib(4));
  write(memory + "/jobs/one/memory.stat", "inactive_file 1\ntotal_inactive_file " + mib(1));
  expect(24, 21);
}

// A container sees only its own part, mounted as the whole.
TEST_F(Cgroup, APartOfTheHierarchyIsEnough) {
  write("/proc/self/cgroup", "4:memory:/docker/abc/in\n");
  write("/proc/self/mountinfo", "33 31 0:30 /docker/abc /mem ro - cgroup cgroup rw,memory\n");
  write("/mem/memory.limit_in_bytes", mib(24));
  write("/mem/memory.usage_in_bytes", mib(4));
  expect(24, 20);
  write("/mem/in/memory.limit_in_bytes", mib(8));
  write("/mem/in/memory.usage_in_bytes", mib(1));
  expect(8, 7);
  write("/proc/self/cgroup", "4:memory:/../other\n");  // Outside of what it sees.
  expect(24, 20);
}

TEST_F(Cgroup, NonsenseIsNoLimit) {
  write("/proc/self/cgroup", "x\n:\n0::\n4:memory\n");
  write("/proc/self/mountinfo", "-\n1 2 3 - cgroup2\n1 2 3 / /cg rw - cgroup2 c rw\n");
  write("/cg/memory.max", "-\n");
  write("/cg/memory.current", "7\n");
  expect(std::nullopt);
}

}  // namespace
}  // namespace leat::cli
