// If this failed, a process that keeps overwriting words of a topic could make other processes loop
// forever. They must return `corrupt` after a bounded number of attempts.
//
// docs/internals/impossible-states.md lists the places. Those that a single overwrite reveals are tested in
// tests/unit/log/invariant_test.cpp and tests/unit/group/invariant_test.cpp.
#include "leat/group.hpp"
#include "leat/log/announcement.hpp"
#include "support/moment.hpp"
#include "unit/testing.hpp"
#include "world.hpp"

namespace leat {
namespace testing {
namespace {

// The word must have been overwritten at least this often; otherwise the test shows nothing.
constexpr std::uint64_t kManyTimes = 1000;

detail::PartitionControl& control_of(World& world) {
  return *TopicTesting::shared(world.topic()).partition(0).control;
}

// Publishes until it fails, at most 100 records.
Errc publish_on(Publisher& publisher) {
  const std::string message(1500, 'x');
  for (int i = 0; i < 100; ++i) {
    auto offset = publisher.publish(message, Deadline::immediate());
    if (!offset) return offset.error().code;
  }
  return Errc::ok;
}

TEST(ScribbledMeanwhile, AClaimWordThatNeverStandsStillIsCorrupt) {
  World world;
  detail::PartitionControl& control = control_of(world);
  const std::uint64_t one =
      TopicTesting::shared(world.topic()).geometry().claim_layout.increment(1, 0);
  const Moment scribbler{"roll:recorded", [&] { control.claim ^= one; }};
  EXPECT_EQ(publish_on(world.publisher()), Errc::corrupt);
  EXPECT_GT(scribbler.times(), kManyTimes);
}

// The end of the log cannot be read at first. It must not be taken for 0: the reader would deliver records that are older
// than the time, and the group would begin with them.
TEST(ScribbledMeanwhile, AnEndThatCanBeReadLaterIsNotTheBeginning) {
  const TestTopic topic{{.timestamps = true}};
  auto publisher = must(topic->publisher());
  for (int i = 0; i < 3; ++i) must(publisher.publish("old"));
  detail::PartitionControl& control = *topic.shared().partition(0).control;
  const std::uint64_t claim = control.claim;
  const std::uint64_t nonsense = topic.shared().geometry().claim_layout.pack(7, 0, 1);
  const From later = From::time_ms(4'000'000'000'000);
  const Moment mender{"end:unknown", [&] { control.claim = claim; }};
  control.claim = nonsense;
  auto subscriber = must(topic->subscriber({.from = later}));
  control.claim = nonsense;
  const Group group = must(topic->group("later", {.from = later}));
  EXPECT_EQ(mender.times(), 2U);
  must(publisher.publish("new"));
  EXPECT_EQ(must(subscriber.receive(Deadline::immediate())).offset, 3U);
  Member member = must(group.join());
  EXPECT_EQ(must(member.receive(Deadline::immediate())).record.offset, 3U);
}

TEST(ScribbledMeanwhile, MemoryThatIsFreedAtOnceIsCorrupt) {
  World world{{.segments = 2, .grow_to = 4}};
  const detail::MappedTopic& shared = TopicTesting::shared(world.topic());
  const Moment scribbler{"grow:chosen", [&] {
                           for (std::uint64_t i = 0; i < shared.geometry().segment_count; ++i)
                             shared.partition(0).physical[i].last_segment |= detail::kNoMemory;
                         }};
  EXPECT_EQ(publish_on(world.publisher()), Errc::corrupt);
  EXPECT_GT(scribbler.times(), kManyTimes);
}

// The publisher's claim was withdrawn, and no announcement is readable, so no owner can be found.
TEST(ScribbledMeanwhile, AClaimThatCannotBeGivenUpIsCorrupt) {
  World world;
  auto other = world.topic().publisher();
  ASSERT_TRUE(other);
  const detail::MappedTopic& shared = TopicTesting::shared(world.topic());
  const std::uint32_t slots = shared.participant_high();
  const Moment scribbler{"announcement:read", [&] {
                           for (std::uint32_t i = 0; i < slots; ++i) {
                             detail::PartitionSlot& slot = shared.partition(0).slots[i];
                             slot.phase += detail::kPhaseMask + 1;
                           }
                         }};
  for (std::uint32_t i = 0; i < slots; ++i)
    shared.partition(0).slots[i].withdrawn = detail::kPhaseMask + 1;
  auto offset = other->publish("x", Deadline::immediate());
  ASSERT_FALSE(offset);
  EXPECT_EQ(offset.error().code, Errc::corrupt);
  EXPECT_GT(scribbler.times(), kManyTimes);
}

TEST(ScribbledMeanwhile, AnAnnouncementThatNeverStandsStillIsNotRead) {
  detail::PartitionSlot slot{};
  const Moment scribbler{"announcement:read", [&] { slot.phase += detail::kPhaseMask + 1; }};
  EXPECT_FALSE(detail::read_claim(slot).has_value());
}

TEST(ScribbledMeanwhile, AnOldestSegmentThatNeverStandsStillIsCorrupt) {
  World world{{.gating_from_start = false}};
  auto lossy = world.topic().subscriber({.from = From::beginning, .gating = false});
  ASSERT_TRUE(lossy);
  EXPECT_EQ(publish_on(world.publisher()), Errc::ok);  // Several laps: the subscriber is overtaken.
  detail::PartitionControl& control = control_of(world);
  const Moment scribbler{"skip:looked", [&] { control.oldest_segment ^= 1; }};
  EXPECT_EQ(lossy->receive(Deadline::immediate()).error().code, Errc::corrupt);
  EXPECT_GT(scribbler.times(), kManyTimes);
}

class ScribbledCursor : public ::testing::Test {
 protected:
  ScribbledCursor()
      : group_{*world_.topic().group("g", {.from = From::beginning})},
        cursor_{(*TopicTesting::shared(world_.topic()).group(0))->cursor(0)} {
    EXPECT_TRUE(world_.publisher().publish("x", Deadline::immediate()));
  }
  World world_;
  Group group_;
  detail::GroupCursor& cursor_;
};

TEST_F(ScribbledCursor, NoClaimIsMade) {
  auto member = group_.join();
  ASSERT_TRUE(member);
  const Moment scribbler{"take:noting", [&] { cursor_.record ^= 1; }};
  EXPECT_EQ(member->receive(Deadline::immediate()).error().code, Errc::corrupt);
  EXPECT_GT(scribbler.times(), kManyTimes);
}

TEST_F(ScribbledCursor, NobodySeeks) {
  const Moment scribbler{"seek:noted", [&] { cursor_.record ^= 1; }};
  EXPECT_EQ(group_.seek(From::end).error().code, Errc::corrupt);
  EXPECT_GT(scribbler.times(), kManyTimes);
}

}  // namespace
}  // namespace testing
}  // namespace leat
