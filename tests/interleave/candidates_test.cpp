// Several deaths in one execution: more than one of the dead may have claimed the hole, with other
// sizes, other numbers of records, single or as a batch; and the living may have wanted the same place.
#include <gtest/gtest.h>

#include "mortals.hpp"

namespace leat {
namespace {

TEST(Candidates, TwoDeadPublishersLeaveExactGaps) {
  int seen = 0;
  EXPECT_TRUE(survives("each", {}, 12'000, &seen));
  EXPECT_GT(seen, 100);
}

TEST(Candidates, AGroupThatDiesAtOnceLeavesExactGaps) {
  int seen = 0;
  EXPECT_TRUE(survives("together", {.mortal = 3, .together = true}, 12'000, &seen));
  EXPECT_GT(seen, 100);
}

TEST(Candidates, OnlyAReaderIsLeft) {
  EXPECT_TRUE(survives("each", {.mortal = 3, .survivors = 0}, 6000));
  EXPECT_TRUE(survives("together", {.mortal = 3, .together = true, .survivors = 0}, 6000));
}

// All claims are alike in size, or nearly, and segments are not left: nothing behind tells them apart
// but other announcements.
TEST(Candidates, SmallClaimsOnly) {
  EXPECT_TRUE(survives("small", {.mortal = 3, .items = 3, .large_one_in = 0}, 12'000));
}

// Nobody may say of a living publisher that it is dead, however long it stands, whoever else is dead.
TEST(Candidates, TheStoppedAreNotRevoked) {
  EXPECT_TRUE(survives("one", {.mortal = 1, .stopping = 1}, 12'000));
  EXPECT_TRUE(survives("two", {.mortal = 1, .stopping = 2}, 6000));
  EXPECT_TRUE(survives("together", {.together = true, .stopping = 1}, 12'000));
}

// The hole is the last claim of a closed segment: a short one of a dead loser must not pass for it.
TEST(Candidates, TheStoppedAreNotRevokedWhereASegmentEnds) {
  EXPECT_TRUE(survives(
      "end", {.mortal = 1, .stopping = 1, .items = 3, .large_one_in = 2, .within = 80}, 12'000));
}

// Where nothing can be withdrawn, others wait for the stopped one; nothing else changes.
TEST(Candidates, WithoutMembarrierTheStoppedAreWaitedFor) {
  EXPECT_TRUE(survives("dead", {.has_membarrier = false}, 6000));
  EXPECT_TRUE(survives("one", {.mortal = 1, .stopping = 1, .has_membarrier = false}, 12'000));
  EXPECT_TRUE(survives("two", {.mortal = 1, .stopping = 2, .has_membarrier = false}, 6000));
}

TEST(Candidates, TwoStoppedPublishersAreRevokedExactly) {
  EXPECT_TRUE(survives("stopped", {.mortal = 0, .stopping = 2, .revoke_after = 4ms}, 12'000));
  EXPECT_TRUE(survives("dead, too", {.mortal = 1, .stopping = 2, .revoke_after = 4ms}, 12'000));
}

}  // namespace
}  // namespace leat
