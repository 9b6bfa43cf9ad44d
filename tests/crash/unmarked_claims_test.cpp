// Publishers that die or stop between announcing a claim and marking it as made, alone and beside others
// that announced the same: gaps are exact, who lives loses nothing, and who has claimed nothing holds
// nothing. Each victim gets its blows in turn, so that the order of all is given.
#include "leat/log/announcement.hpp"
#include "unit/testing.hpp"
#include "world.hpp"

namespace leat {
namespace testing {
namespace {

constexpr std::uint32_t kOther = kEarlierVictim;

// Arms this process with blows that fall one after the other, each the next time it comes by its step.
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

// One record, or a batch of several, of so many bytes each.
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

// How much those take who have announced a claim.
std::vector<std::uint64_t> announced_granules(World& world) {
  const detail::SharedTopic& shared = TopicTesting::shared(world.topic());
  std::vector<std::uint64_t> all;
  for (std::uint32_t i = 0; i < shared.participant_high(); ++i) {
    const auto facts = detail::read_claim(shared.partition(0).slots[i]);
    if (facts && facts->is_open())
      all.push_back(shared.geometry().claim_layout.granules(facts->increment));
  }
  return all;
}

// Two want the same word, one of them a batch of two records that takes as many granules as the single
// record of the other. The latter wins, and both die: the gap is of one record. Either with records
// behind it, which tell, or with the claim word right behind it.
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

// The owner is dead, and somebody who announced the same and lost stands still: nobody waits for it,
// and when it goes on, it publishes.
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

// A living publisher made the last claim of a segment and stands still before its mark; somebody who
// announced a shorter one from there has died. However the segment ends, the living one's call succeeds.
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

// Two segments: if one were kept for a publisher that has claimed nothing, or has not marked it, the
// others would have no room.
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

// A publisher stops after it has seen that its record does not fit. Until it goes on, others have moved
// on to the next segment, where it fits: that is not closed, and nothing is full. Two segments: room
// for one more there is none, as the reader holds the first.
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
      CHILD_CHECK_OK(world.publish(*publisher, kVictim, 1500));  // Waits for no room.
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
