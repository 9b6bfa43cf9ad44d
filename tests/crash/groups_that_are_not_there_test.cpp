// If this failed, a stranger who writes the numbers of groups that do not exist into a topic's memory would hold up, for
// many seconds, whoever opens, makes or deletes a group.
#include "support/moment.hpp"
#include "unit/testing.hpp"

namespace leat {
namespace {

using namespace detail;
using testing::Moment;

TEST(GroupsThatAreNotThere, AreWaitedForOnlyOnce) {
  const TestTopic topic{{.capacity_bytes = 2 * kSegment, .segment_bytes = kSegment}};
  const Group group = must(topic->group("real"));
  for (std::uint32_t slot = 1; slot < kMaxGroups; ++slot)
    store_relaxed(topic.shared().header().groups[slot], 0x1000 + std::uint64_t{slot});
  int waits = 0;
  const Moment moment{"files:wait", [&] { ++waits; }};
  EXPECT_TRUE(topic->find_group("real"));
  EXPECT_EQ(code(topic->find_group("other")), Errc::corrupt);
  EXPECT_EQ(code(topic->group("new")), Errc::corrupt);
  EXPECT_TRUE(topic->delete_group("real", true));
  EXPECT_GT(waits, 0);
  EXPECT_LE(waits, 4 * 50);  // On a busy machine, they may take several seconds.
}

}  // namespace
}  // namespace leat
