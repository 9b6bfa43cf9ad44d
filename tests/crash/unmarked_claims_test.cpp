// If this failed, a publisher that dies or stops in the middle of claiming could cause gaps of the
// wrong size, make a living publisher lose its record, or hold room that it never claimed.
//
// Publishers die or stop between announcing a claim and marking it, alone and beside others that
// announced the same claim. Each victim has a list of steps at which it is hit, in this order, so
// that the whole sequence is fixed.
#include "leat/log/announcement.hpp"
#include "unit/testing.hpp"
#include "world.hpp"

namespace leat {
namespace testing {
namespace {

constexpr std::uint32_t kOther = kEarlierVictim;

// Sets this process up to be hit by the blows in this order, each when its step is next reached.
void arm_in_turn(const std::vector<Blow>& blows) {
  static std::vector<Blow> left;
  left = blows;
  detail::crash_point_hook = [](const char* name) {
    if (left.empty() || left.front().step != name) return;
    const int signal = left.front().signal;
    left.erase(left.begin());
    ::raise(signal);
  };
}

// A child that publishes one record, or a batch of `records`, of `size` bytes each.
Child publishing(World& world, std::uint32_t id, std::size_t size, std::size_t records,
                 const std::vector<Blow>& blows) {
  return Child{[&, blows]() -> int {
    Topic topic = world.open();
    auto publisher = topic.publisher();
    CHILD_CHECK_OK(publisher);
    arm_in_turn(blows);
    if (records == 1) {
      CHILD_CHECK_OK(world.publish(*publisher, id, size, kPatience));
    } else {
      CHILD_CHECK_OK(world.publish_batch(*publisher, id, std::vector<std::size_t>(records, size)));
    }
    return 0;
  }};
}
const Blow kStopAnnounced{"claim:announced", 1, SIGSTOP};
const Blow kStopWon{"claim:won", 1, SIGSTOP};
const Blow kDieWon{"claim:won", 1, SIGKILL};

void expect_stopped(Child& child) {
  ASSERT_EQ(child.wait(), Child::State::stopped) << child.describe();
}
void go_on_and_succeed(Child& child) {
  child.go_on();
  child.wait();
  EXPECT_TRUE(child.succeeded()) << child.describe();
}
void kill(Child& child) {
  child.signal(SIGKILL);
  child.go_on();
  child.wait();
  ASSERT_TRUE(child.was_killed());
}

// The sizes of all claims that are announced and open.
std::vector<std::uint64_t> announced_granules(World& world) {
  const detail::MappedTopic& shared = TopicTesting::shared(world.topic());
  std::vector<std::uint64_t> all;
  for (std::uint32_t i = 0; i < shared.participant_high(); ++i) {
    const auto facts = detail::read_claim(shared.partition(0).slots[i]);
    if (facts && facts->is_open())
      all.push_back(shared.geometry().claim_layout.granules(facts->increment));
  }
  return all;
}

// Two publishers want to claim from the same word: one a batch of two records, the other a single
// record of as many granules. The single record wins, and both die: the gap must have one record.
// This is found from the records behind the gap or, if there are none, from the claim word.
TEST(UnmarkedClaims, OfTwoDeadOfOneLengthTheRecordsAreCounted) {
  for (const bool follows : {true, false}) {
    SCOPED_TRACE(follows ? "with records behind" : "last");
    World world;
    ASSERT_TRUE(world.publish_and_read(2));
    const std::uint64_t before = world.end();
    Child loser = publishing(world, kOther, 16, 2, {kStopAnnounced});
    expect_stopped(loser);
    Child owner = publishing(world, kVictim, 60, 1, {kStopAnnounced, kDieWon});
    expect_stopped(owner);
    ASSERT_EQ(announced_granules(world), (std::vector<std::uint64_t>{5, 5}));
    owner.go_on();
    owner.wait();
    ASSERT_TRUE(owner.was_killed());
    kill(loser);
    if (follows) {
      ASSERT_TRUE(world.publish(world.publisher(), kSurvivor, 900));
    }
    EXPECT_TRUE(world.read_to_end()) << world.stuck();
    EXPECT_EQ(world.gating_trail().gaps(GapReason::died), 1U);
    EXPECT_EQ(world.gating_trail().next(), before + (follows ? 2U : 1U));
    world.expect_progress();
    EXPECT_EQ(world.gating_trail().gaps(GapReason::died), 1U);
  }
}

// The owner is dead, and a publisher that announced the same claim and lost is stopped. Nobody
// waits for it, and when it continues, it publishes.
TEST(UnmarkedClaims, AStoppedLoserHoldsUpNobody) {
  World world;
  ASSERT_TRUE(world.publish_and_read(2));
  Child owner = publishing(world, kVictim, 50, 1, {kStopAnnounced, kDieWon});
  expect_stopped(owner);
  Child loser = publishing(world, kOther, 50, 1, {kStopAnnounced});
  expect_stopped(loser);
  owner.go_on();
  owner.wait();
  ASSERT_TRUE(owner.was_killed());
  ASSERT_TRUE(world.publish(world.publisher(), kSurvivor, 50));
  EXPECT_TRUE(world.read_to_end()) << world.stuck();
  EXPECT_EQ(world.gating_trail().gaps(GapReason::died), 1U);
  world.expect_progress();
  go_on_and_succeed(loser);
  EXPECT_EQ(world.ledger().find({kOther, 0})->fate, Fate::published);
  world.expect_progress();
}

// A living publisher has made the last claim of a segment and is stopped
// before it marks the claim. Another one that had announced a shorter claim
// there has died. The living publisher's call must succeed.
TEST(UnmarkedClaims, ADeadLoserRevokesNobodyAtASegmentsEnd) {
  World world;
  ASSERT_TRUE(world.publish(world.publisher(), kSurvivor, 1500));
  Child living = publishing(world, kVictim, 1500, 1, {kStopAnnounced, kStopWon});
  expect_stopped(living);
  Child loser = publishing(world, kOther, 16, 1, {kStopAnnounced});
  expect_stopped(loser);
  living.go_on();
  expect_stopped(living);
  kill(loser);
  ASSERT_TRUE(world.publish(world.publisher(), kSurvivor, 1500));  // Closes the segment.
  for (int i = 0; i < 20; ++i) world.read_some(true);
  go_on_and_succeed(living);
  EXPECT_EQ(world.ledger().find({kVictim, 0})->fate, Fate::published);
  world.expect_progress();
  EXPECT_EQ(world.gating_trail().gaps(GapReason::revoked), 0U);
}

// With two segments, the others would have no room if one were kept for a publisher that has not
// claimed anything, or has not marked its claim.
TEST(UnmarkedClaims, HoldNoSegment) {
  for (const Blow& blow : {kStopAnnounced, kStopWon}) {
    SCOPED_TRACE(blow.step);
    World world{{.segments = 2, .gating_from_start = false}};
    Child stopped = publishing(world, kVictim, 50, 1, {blow});
    expect_stopped(stopped);
    EXPECT_TRUE(world.publish_and_read(60)) << "no room at offset " << world.end();
    go_on_and_succeed(stopped);
    EXPECT_EQ(world.ledger().find({kVictim, 0})->fate, Fate::published);
    world.expect_progress();
  }
}

// A publisher stops after it has seen that its record does not fit. Meanwhile
// others have moved on to the next segment, where the record fits. The
// publisher must neither close that segment nor report `full`. With two
// segments there is no room for a third, because the reader holds the first.
TEST(UnmarkedClaims, WhoComesLateToASegmentsEndLooksAgain) {
  for (const std::uint32_t segments : {2U, 4U}) {
    SCOPED_TRACE(std::to_string(segments) + " segments");
    World world{{.segments = segments}};
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(world.publish(world.publisher(), kSurvivor, 1500));
    Child late = Child{[&]() -> int {
      Topic topic = world.open();
      auto publisher = topic.publisher();
      CHILD_CHECK_OK(publisher);
      arm_in_turn({{"roll:begun", 1, SIGSTOP}});
      CHILD_CHECK_OK(world.publish(*publisher, kVictim, 1500));  // Without waiting for room.
      return 0;
    }};
    expect_stopped(late);
    ASSERT_TRUE(world.publish(world.publisher(), kSurvivor, 1500));
    go_on_and_succeed(late);
    EXPECT_EQ(TopicTesting::shared(world.topic()).partition(0).control->current, 2U);
    world.expect_progress();
  }
}

}  // namespace
}  // namespace testing
}  // namespace leat
