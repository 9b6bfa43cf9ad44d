// What the dead leave behind is no affair of the group's members either: a segment that is prepared and
// not opened is no hole, and a hole in a segment that is retired while somebody begins there is one.
#include "unit/testing.hpp"
#include "world.hpp"

namespace leat {
namespace testing {
namespace {

// Longer than the second after which a member once took it for scribbled memory.
TEST(GroupHoles, ADeadOpenerLeavesNothingToWaitFor) {
  for (const char* step : {"roll:mapped", "roll:recorded"}) {
    SCOPED_TRACE(step);
    World world;
    auto group = world.topic().group("group", {.from = From::beginning});
    ASSERT_TRUE(group) << describe(group.error());
    auto member = group->join();
    ASSERT_TRUE(member) << describe(member.error());
    Child opener = world.start(
        [&]() -> int {
          Topic topic = world.open();
          auto publisher = topic.publisher();
          CHILD_CHECK_OK(publisher);
          for (;;) (void)world.publish(*publisher, kVictim, 1500);
        },
        {step, 1, SIGKILL});
    opener.wait();
    ASSERT_TRUE(opener.was_killed());
    for (auto one = member->receive(1200ms);; one = member->receive(1200ms)) {
      if (!one) {
        EXPECT_EQ(one.error().code, Errc::timeout) << describe(one.error());
        break;
      }
      EXPECT_TRUE(member->acknowledge(*one));
    }
    ASSERT_TRUE(world.publish(world.publisher(), kSurvivor, 50));
    auto one = member->receive(kPatience);
    ASSERT_TRUE(one) << describe(one.error());
    EXPECT_TRUE(member->acknowledge(*one));
    EXPECT_TRUE(world.read_to_end()) << world.stuck();
    EXPECT_EQ(world.gating_trail().complaints(), std::vector<std::string>{});
  }
}

// A publisher that looked at the groups and the cursors before somebody was there moves start on: here
// the test does it. A dead publisher's hole in that segment is filled all the same.
TEST(GroupHoles, InASegmentThatWasJustRetiredAreFilled) {
  for (const char* step : {"claim:won", "commit:before"}) {
    SCOPED_TRACE(step);
    World world{{.segments = 6}};
    ASSERT_TRUE(world.publish(world.publisher(), kSurvivor, 40));
    auto group = world.topic().group("group", {.from = From::beginning});
    ASSERT_TRUE(group) << describe(group.error());
    Child dead = world.start(
        [&]() -> int {
          Topic topic = world.open();
          auto publisher = topic.publisher();
          CHILD_CHECK_OK(publisher);
          (void)world.publish(*publisher, kVictim, 100);
          return 0;
        },
        {step, 1, SIGKILL});
    dead.wait();
    ASSERT_TRUE(dead.was_killed());
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(world.publish(world.publisher(), kSurvivor, 1000));
    std::uint64_t& start = TopicTesting::shared(world.topic()).partition(0).control->oldest_segment;
    ASSERT_EQ(start, 1U);
    start = 2;
    auto member = group->join();
    ASSERT_TRUE(member) << describe(member.error());
    for (int taken = 0; taken < 9; ++taken) {
      auto one = member->receive(kPatience);
      ASSERT_TRUE(one) << describe(one.error()) << " after " << taken;
      EXPECT_TRUE(member->acknowledge(*one));
    }
    EXPECT_TRUE(world.read_to_end()) << world.stuck();
    EXPECT_EQ(world.gating_trail().gaps(GapReason::died), 1U);
  }
}

}  // namespace
}  // namespace testing
}  // namespace leat
