// If this failed, killed processes would use up a topic's participant slots until nobody could
// join, or a stopped publisher would block others in a topic without gating subscribers.
#include "scenarios.hpp"

namespace leat::testing {
namespace {

int publish_one(World& world, std::uint32_t id, std::size_t size = 100) {
  Topic topic = world.open();
  auto publisher = topic.publisher();
  CHILD_CHECK_OK(publisher);
  auto offset = world.publish(*publisher, id, size);
  CHILD_CHECK(offset || offset.error().code == Errc::revoked);
  return 0;
}

// Repairers that free the slots of the dead die themselves, in the slots reserved for repairers.
TEST(Slots, AreFreedThoughEveryRepairerDied) {
  World world{{.participants = 4}};
  Child holder =
      world.start([&] { return publish_one(world, kVictim); }, {"claim:won", 1, SIGKILL});
  holder.wait();
  ASSERT_TRUE(holder.was_killed());
  for (int i = 0; i < 5; ++i) {
    Child repairer = world.start([&] { return publish_one(world, kEarlierVictim); },
                                 {"repair:pinned", 1, SIGKILL});
    repairer.wait();
    ASSERT_TRUE(repairer.was_killed()) << "repairer " << i << " " << repairer.describe();
  }
  world.expect_progress();
  EXPECT_EQ(world.gating_trail().gaps(GapReason::died), 1U);
}

// Participants of every role die right after they got their slot, in a topic with very few slots.
TEST(Slots, OfTheDeadAreUsedAgainAndAgain) {
  World world{{.participants = 4}};
  for (int i = 0; i < 40; ++i) {
    const char* const steps[] = {"join:reserved", "join:active",   "claim:announced",
                                 "claim:won",     "commit:before", "commit:done"};
    Child victim =
        world.start([&] { return publish_one(world, kVictim); }, {steps[i % 6], 1, SIGKILL});
    victim.wait();
    ASSERT_TRUE(victim.was_killed()) << i << ": " << victim.describe();
    Child reader = world.start(
        [&] {
          Topic topic = world.open();
          CHILD_CHECK_OK(topic.subscriber({.from = From::beginning, .gating = i % 3 != 0}));
          return 0;
        },
        {i % 2 == 0 ? "join:reserved" : "join:active", 1, SIGKILL});
    reader.wait();
    ASSERT_TRUE(reader.was_killed()) << i << ": " << reader.describe();
    ASSERT_TRUE(world.publish_and_read(3)) << world.stuck();
  }
  world.expect_progress();
}

// The living keep their slots, and the next participant gets an error.
TEST(Slots, OfTheLivingAreKept) {
  World world{{.participants = 4}};
  Child stopped =
      world.start([&] { return publish_one(world, kVictim); }, {"commit:before", 1, SIGSTOP});
  ASSERT_EQ(stopped.wait(), Child::State::stopped);
  EXPECT_EQ(world.topic().publisher().error().code, Errc::too_many);
  EXPECT_EQ(world.topic().subscriber().error().code, Errc::too_many);
  stopped.go_on();
  stopped.wait();
  EXPECT_TRUE(stopped.succeeded()) << stopped.describe();
  world.expect_progress();
  EXPECT_EQ(world.gating_trail().gaps(GapReason::died), 0U);
}

// Without gating subscribers, nobody waits for a stopped publisher: its segment is passed over, and
// its record is overwritten like any other. When it continues, it damages nothing.
class Unread : public ::testing::TestWithParam<const char*> {};

TEST_P(Unread, StoppedPublisherIsPassedBy) {
  for (const std::uint32_t segments : {3U, 4U}) {
    for (const int others : {30, 250}) {
      SCOPED_TRACE(std::to_string(segments) + " segments, " + std::to_string(others) + " records");
      World world{{.segments = segments, .gating_from_start = false}};
      ASSERT_TRUE(world.publish_and_read(5));
      Child victim =
          world.start([&] { return publish_one(world, kVictim); }, {GetParam(), 1, SIGSTOP});
      ASSERT_EQ(victim.wait(), Child::State::stopped);
      EXPECT_TRUE(world.publish_and_read(others)) << "stuck at " << world.end();
      EXPECT_TRUE(world.read_to_end()) << world.stuck();
      EXPECT_EQ(world.gating_trail().gaps(GapReason::died), 0U);
      victim.go_on();
      victim.wait();
      EXPECT_TRUE(victim.succeeded()) << victim.describe();
      world.expect_progress();
    }
  }
}
std::string name_of_step(const ::testing::TestParamInfo<const char*>& step) {
  std::string name = step.param;
  name[name.find(':')] = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Each, Unread,
                         ::testing::Values("claim:announced", "claim:won", "claim:marked",
                                           "commit:before", "commit:swapped", "commit:done"),
                         name_of_step);

}  // namespace
}  // namespace leat::testing
