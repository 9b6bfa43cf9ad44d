// If this failed, a reader would flush lines that it has not read yet, or that are not its own, or it
// would flush although the publishers are near.
#include "leat/log/line_flusher.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace leat::detail {
namespace {

constexpr std::int64_t kNear = 30, kFar = 150;  // Nanoseconds.
constexpr std::uint64_t kPageGranules = 4096 / kGranule;

void enter(LineFlusher& flusher, std::initializer_list<std::int64_t> loads_ns) {
  for (const std::int64_t ns : loads_ns) {
    flusher.note(ns, false);
    flusher.enter_segment();
  }
}

bool is_on(const LineFlusher& flusher) { return flusher.due() != ~0ULL; }

TEST(LineFlusher, IsOffWhilePublishersAreNear) {
  LineFlusher flusher;
  EXPECT_FALSE(is_on(flusher));
  enter(flusher, {kNear, kNear, kNear, kNear});
  EXPECT_FALSE(is_on(flusher));
}

TEST(LineFlusher, OneSlowLoadIsNoDistance) {
  LineFlusher flusher;
  enter(flusher, {kFar * 1000, kNear, kNear, kFar, kNear});
  EXPECT_FALSE(is_on(flusher));
}

TEST(LineFlusher, FollowsCpusThatMove) {
  if (!can_flush_lines()) GTEST_SKIP() << "this CPU has no instruction to flush a line";
  LineFlusher flusher;
  enter(flusher, {kFar, kFar});
  EXPECT_FALSE(is_on(flusher));
  enter(flusher, {kNear, kFar});  // Some loads find the line in their own cache.
  EXPECT_TRUE(is_on(flusher));
  enter(flusher, {kNear, kNear, kNear, kNear, kNear, kNear});
  EXPECT_FALSE(is_on(flusher));
}

TEST(LineFlusher, IsOffWhileTheReaderHoldsPublishersUp) {
  if (!can_flush_lines()) GTEST_SKIP() << "this CPU has no instruction to flush a line";
  LineFlusher flusher;
  enter(flusher, {kFar, kFar, kFar});
  flusher.note(kFar, true);
  flusher.enter_segment();
  EXPECT_FALSE(is_on(flusher));
  enter(flusher, {kFar});
  EXPECT_TRUE(is_on(flusher));
}

TEST(LineFlusher, IsDueOnceAPageWasRead) {
  if (!can_flush_lines()) GTEST_SKIP() << "this CPU has no instruction to flush a line";
  const std::vector<std::byte> segment(4 * 4096);
  LineFlusher flusher;
  enter(flusher, {kFar, kFar, kFar});
  EXPECT_EQ(flusher.due(), kPageGranules);
  flusher.flush(segment.data(), kPageGranules + 1);
  EXPECT_EQ(flusher.due(), 2 * kPageGranules + 1);
  flusher.enter_segment();
  EXPECT_EQ(flusher.due(), kPageGranules);
}

// Readers map the log read-only, and a segment may be the last thing that is mapped.
TEST(FlushLines, TouchesOnlyWhatItWasGivenAndChangesNothing) {
  if (!can_flush_lines()) GTEST_SKIP() << "this CPU has no instruction to flush a line";
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const map =
      ::mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(map, MAP_FAILED);
  auto* const middle = static_cast<std::byte*>(map) + page;
  std::memset(middle, 7, page);
  ASSERT_EQ(::mprotect(map, page, PROT_NONE), 0);
  ASSERT_EQ(::mprotect(middle, page, PROT_READ), 0);
  ASSERT_EQ(::mprotect(middle + page, page, PROT_NONE), 0);
  for (const std::size_t from : {0u, 1u, 63u, 64u, 100u}) {
    for (const std::size_t missing : {0u, 1u, 63u, 64u, 4095u}) {
      flush_lines(middle + from, middle + page - missing);  // Another page would be a SIGSEGV.
    }
  }
  EXPECT_TRUE(std::all_of(middle, middle + page, [](std::byte b) { return b == std::byte{7}; }));
  EXPECT_EQ(::munmap(map, 3 * page), 0);
}

}  // namespace
}  // namespace leat::detail
