// If this failed, a process that is killed while it makes a gap could leave an offset that counts as a record.
#include "world.hpp"

namespace leat::testing {
namespace {

// A process is killed at this step of `body`.
void kill_at(World& world, const char* step, const std::function<int()>& body) {
  Child victim = world.start(body, {step});
  victim.wait();
  ASSERT_TRUE(victim.was_killed()) << victim.describe();
}

int claim_and_abort(const World& world) {
  const Topic topic = world.open();
  auto publisher = topic.publisher();
  CHILD_CHECK_OK(publisher);
  auto claim = publisher->try_claim(100);
  CHILD_CHECK_OK(claim);
  CHILD_CHECK_OK(claim->abort());
  return 0;
}

TEST(Gaps, AreNotCountedIfTheirPublisherIsKilled) {
  for (const char* step : {"claim:marked", "commit:before", "commit:swapped", "commit:done"}) {
    SCOPED_TRACE(step);
    World world;
    kill_at(world, step, [&] { return claim_and_abort(world); });
    EXPECT_TRUE(world.read_to_end()) << world.stuck();
    EXPECT_EQ(world.end(), 1U);
    world.expect_counted(world.gating_trail());
  }
}

TEST(Gaps, AreNotCountedIfTheirRepairerIsKilled) {
  for (const char* step : {"repair:header", "repair:filled"}) {
    SCOPED_TRACE(step);
    World world;
    kill_at(world, "claim:marked", [&] { return claim_and_abort(world); });
    kill_at(world, step, [&] {
      const Topic topic = world.open();
      auto subscriber = topic.subscriber({.from = From::beginning});
      CHILD_CHECK_OK(subscriber);
      CHILD_CHECK_OK(subscriber->wait(kPatience));
      return 0;
    });
    EXPECT_TRUE(world.read_to_end()) << world.stuck();
    EXPECT_EQ(world.end(), 1U);
    world.expect_counted(world.gating_trail());
  }
}

}  // namespace
}  // namespace leat::testing
