// If this failed, the death of several publishers could make subscribers
// hang, or skip or invent offsets.
//
// Several publishers die in one execution, so that more than one of them may own a hole: with
// claims of different sizes or numbers of records, single or in batches. Living publishers may have
// announced a claim at the same place.
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

// All claims have the same or nearly the same size and stay in one segment, so that only other
// announcements tell them apart.
TEST(Candidates, SmallClaimsOnly) {
  EXPECT_TRUE(survives("small", {.mortal = 3, .items = 3, .large_one_in = 0}, 12'000));
}

// A stopped publisher must never be taken for dead, however long it is
// stopped and whoever else is dead.
TEST(Candidates, TheStoppedAreNotRevoked) {
  EXPECT_TRUE(survives("one", {.mortal = 1, .stopping = 1}, 12'000));
  EXPECT_TRUE(survives("two", {.mortal = 1, .stopping = 2}, 6000));
  EXPECT_TRUE(survives("together", {.together = true, .stopping = 1}, 12'000));
}

// The hole is the last claim of a closed segment. It must not be taken for a shorter claim that a
// dead publisher announced but did not make.
TEST(Candidates, TheStoppedAreNotRevokedWhereASegmentEnds) {
  EXPECT_TRUE(survives(
      "end", {.mortal = 1, .stopping = 1, .items = 3, .large_one_in = 2, .within = 80}, 12'000));
}

// Without membarrier nothing can be withdrawn: others wait for the stopped
// publisher. Nothing else changes.
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
