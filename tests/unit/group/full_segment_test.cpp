#include "testing.hpp"

namespace leat {
namespace {

// Segments of 4096 bytes hold exactly 128 records of 8 bytes. A cursor behind the last of them lies where
// the next segment begins, and counts records from there.
TEST(GroupCursor, OffsetsAreRightWhereRecordsFillTheirSegment) {
  const TestTopic topic{{.capacity_bytes = 8 * kSegment}};
  const Group group = must(topic->group("workers", {.from = From::beginning}));
  Publisher publisher = must(topic->publisher());
  Member member = must(group.join());
  std::vector<Delivery> taken;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    must(publisher.publish("12345678"));
    taken.clear();
    ASSERT_EQ(must(member.take(taken, 1)), 1u);
    ASSERT_EQ(taken[0].record.offset, i);
    ASSERT_EQ(group.released(), i);
    must(member.acknowledge(taken[0]));
    ASSERT_EQ(group.released(), i + 1);
    ASSERT_EQ(group.info().offsets, std::vector<std::uint64_t>{i + 1});
  }
}

}  // namespace
}  // namespace leat
