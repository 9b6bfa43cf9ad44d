// If this failed, a group would report `corrupt` for a healthy topic when its cursor is at the end
// of a segment that is full to its last granule.
#include "testing.hpp"

namespace leat {
namespace {

// A segment of 4096 bytes holds exactly 128 records of 8 bytes. A cursor behind the last one is at
// the start of the next segment, and counts records from there.
TEST(GroupCursor, OffsetsAreRightWhereRecordsFillTheirSegment) {
  const TestTopic topic{{.capacity_bytes = 8 * kSegment}};
  const Group group = must(topic->group("workers", {.from = From::beginning}));
  Publisher publisher = must(topic->publisher());
  Member member = must(group.join());
  std::vector<Delivery> taken;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    must(publisher.publish("12345678"));
    taken.clear();
    ASSERT_EQ(must(member.receive(taken, 1)), 1u);
    ASSERT_EQ(taken[0].record.offset, i);
    ASSERT_EQ(group.released(), i);
    must(member.acknowledge(taken[0]));
    ASSERT_EQ(group.released(), i + 1);
    ASSERT_EQ(group.info().offsets, std::vector<std::uint64_t>{i + 1});
  }
}

// A member that has not taken anything for long still knows an old segment, while the cursor is at
// the end of a full one. It once looked for a hole at its old place, and reported `corrupt`.
TEST(GroupCursor, AMemberThatFellBehindFindsNothingWrong) {
  const TestTopic topic{{.capacity_bytes = 8 * kSegment}};
  const Group group = must(topic->group("workers", {.from = From::beginning}));
  Publisher publisher = must(topic->publisher());
  Member idle = must(group.join());
  Member busy = must(group.join());
  for (int i = 0; i < 128; ++i) must(publisher.publish("12345678"));
  std::size_t taken = 0;
  const auto count = [&](const Delivery&) { ++taken; };
  while (taken < 128) must(idle.poll(128, count));
  for (int i = 0; i < 2 * 128; ++i) must(publisher.publish("12345678"));
  while (taken < 3 * 128) must(busy.poll(128, count));
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(12ms);  // It looks for holes once per tick of the kernel's clock.
    EXPECT_EQ(code(idle.receive(Deadline::immediate())), Errc::timeout);
  }
}

}  // namespace
}  // namespace leat
