// If this failed, several publishers that are killed at about the same time
// could block subscribers, or make gaps of the wrong size: holes behind
// holes, and claims announced from the same claim word.
#include <random>

#include "scenarios.hpp"

namespace leat::testing {
namespace {

// Publishes one record or batch, and is killed meanwhile.
int publish_once(World& world, std::uint32_t id, std::size_t size, std::size_t records) {
  Topic topic = world.open();
  auto publisher = topic.publisher();
  CHILD_CHECK_OK(publisher);
  if (records == 1) {
    (void)world.publish(*publisher, id, size);
  } else {
    (void)world.publish_batch(*publisher, id, std::vector<std::size_t>(records, size));
  }
  return 0;
}

// Several publishers die one after the other, some before they claimed, some before they could mark
// their claim. Every hole becomes a gap of exactly its size.
TEST(SeveralVictims, LeaveHolesBehindHoles) {
  for (unsigned seed = 1; seed <= 60 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random{seed};
    World world{{.segments = 3, .participants = 11}};
    ASSERT_TRUE(world.publish_and_read(static_cast<int>(random() % 9)));
    std::uint64_t holes = 0;
    const auto victims = static_cast<unsigned>(1 + random() % 7);
    for (unsigned i = 0; i < victims; ++i) {
      // Sizes repeat, so that claims announced from the same word are hard to tell apart.
      const std::size_t size = random() % 3 == 0 ? 900 : 16 + random() % 3 * 16;
      const std::size_t records = random() % 3 == 0 ? 2 : 1;
      constexpr const char* kSteps[] = {"claim:announced", "claim:won",     "claim:won",
                                        "claim:marked",    "commit:before", "commit:done"};
      const char* step = kSteps[random() % 6];
      const std::uint32_t before = world.ledger().count[kVictim];
      Child victim = world.start([&] { return publish_once(world, kVictim, size, records); },
                                 {step, 1, SIGKILL});
      victim.wait();
      if (victim.succeeded()) break;  // The topic is full, because nobody reads meanwhile.
      ASSERT_TRUE(victim.was_killed()) << victim.describe();
      if (is_open_claim(step)) holes += world.ledger().count[kVictim] - before;
      if (random() % 4 == 0) (void)world.publish(world.publisher(), kSurvivor, 40);
    }
    world.expect_progress();
    EXPECT_EQ(world.gating_trail().gaps(GapReason::died), holes);
  }
}

// One publisher dies with an unmarked claim. Another one, alive but stopped,
// has announced a claim from the same word. If both claims have the same
// size, nobody can tell whose the hole is: it becomes a gap, and the living
// publisher claims again. Otherwise the end of the hole shows whose it is.
TEST(SeveralVictims, AtOneClaimWord) {
  for (const bool same_size : {false, true}) {
    for (const auto revoke_after : {0ns, std::chrono::nanoseconds{5ms}}) {
      SCOPED_TRACE(std::string{same_size ? "the same size" : "another size"} +
                   (revoke_after == 0ns ? "" : ", with revocation"));
      World world{{.revoke_after = revoke_after}};
      ASSERT_TRUE(world.publish_and_read(3));
      Child stopped = world.start([&] { return publish_once(world, kVictim, 100, 1); },
                                  {"claim:announced", 1, SIGSTOP});
      ASSERT_EQ(stopped.wait(), Child::State::stopped);
      Child dead =
          world.start([&] { return publish_once(world, kEarlierVictim, same_size ? 100 : 300, 1); },
                      {"claim:won", 1, SIGKILL});
      dead.wait();
      ASSERT_TRUE(dead.was_killed());
      ASSERT_TRUE(world.publish(world.publisher(), kSurvivor, 50));

      EXPECT_TRUE(world.read_to_end()) << world.stuck();
      stopped.go_on();
      stopped.wait();
      EXPECT_TRUE(stopped.succeeded()) << stopped.describe();
      // It claimed again elsewhere, and lost nothing.
      EXPECT_EQ(world.ledger().find({kVictim, 0})->fate, Fate::published);
      world.expect_progress();
      EXPECT_EQ(world.gating_trail().gaps(GapReason::died), 1U);
      EXPECT_EQ(world.gating_trail().gaps(GapReason::revoked), 0U);
    }
  }
}

}  // namespace
}  // namespace leat::testing
