// If this failed, a publisher that is killed could stall a consumer group:
// its members would wait for, or report as corrupt, a segment that was
// prepared but never opened, or a hole in a segment that was just retired.
#include "unit/testing.hpp"
#include "world.hpp"

namespace leat {
namespace testing {
namespace {

// Waits longer than one second, after which members once reported such a segment as corrupt.
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

// A publisher may retire a segment although a member has just begun there, if it looked at groups
// and cursors before. Here the test itself advances `oldest_segment`. A dead publisher's hole in
// that segment must still be filled.
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
