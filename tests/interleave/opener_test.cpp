// If this failed, a publisher that dies or stops while it opens a segment could make subscribers
// return `corrupt`, or block all other publishers.
//
// Readers wait at that segment, or have already entered it. However long they wait, they get no
// error, and the next publisher continues.
#include <gtest/gtest.h>

#include "mortals.hpp"

namespace leat {
namespace {

TEST(Opener, ADeadOneLeavesNothingToWaitFor) {
  EXPECT_TRUE(survives("alone",
                       {.mortal = 1,
                        .survivors = 0,
                        .items = 5,
                        .large_one_in = 1,
                        .within = 200,
                        .reader_backs_off = 2000},
                       6000));
}

TEST(Opener, SeveralDieAtIt) {
  EXPECT_TRUE(survives("each",
                       {.mortal = 2,
                        .survivors = 0,
                        .items = 4,
                        .large_one_in = 1,
                        .within = 200,
                        .reader_backs_off = 2000},
                       6000));
  EXPECT_TRUE(survives("together",
                       {.mortal = 2,
                        .together = true,
                        .survivors = 0,
                        .items = 4,
                        .large_one_in = 1,
                        .within = 200,
                        .reader_backs_off = 2000},
                       6000));
}

TEST(Opener, AStoppedOneIsWaitedForOrHelped) {
  EXPECT_TRUE(survives("alone",
                       {.mortal = 0,
                        .stopping = 1,
                        .survivors = 0,
                        .items = 5,
                        .large_one_in = 1,
                        .within = 200,
                        .reader_backs_off = 2000},
                       6000));
  EXPECT_TRUE(survives("helped",
                       {.mortal = 0,
                        .stopping = 1,
                        .survivors = 1,
                        .items = 5,
                        .large_one_in = 1,
                        .within = 200,
                        .reader_backs_off = 2000},
                       4000));
}

// Many segments in few physical ones: the stopped publishers find that their segment was left,
// reused or opened by others long ago.
TEST(Opener, ManySegmentsGoByTheStopped) {
  EXPECT_TRUE(survives("many",
                       {.mortal = 0,
                        .stopping = 1,
                        .survivors = 2,
                        .items = 12,
                        .large_one_in = 1,
                        .segments = 3,
                        .within = 300},
                       2000));
  EXPECT_TRUE(survives("with the dead",
                       {.mortal = 1,
                        .stopping = 1,
                        .survivors = 1,
                        .items = 10,
                        .large_one_in = 1,
                        .segments = 3,
                        .within = 300},
                       2000));
}

}  // namespace
}  // namespace leat
