// While a process takes office as the keeper of a durable topic, somebody who may write to the topic's files changes a
// word. If this failed, that would end the process.
#include "support/moment.hpp"
#include "unit/group/saved_testing.hpp"

namespace leat {
namespace testing {
namespace {

// The word says where the files of a keeper that died end.
TEST(ScribbledOffice, AKeeperGoesOnWhereItsFilesDo) {
  const UnkeptTopic topic;
  auto publisher = must(topic->publisher());
  publish_numbers(publisher, 10);
  detail::DurablePartition& words = topic.shared().durable()->partition(0);
  detail::Office dead = topic.office();
  EXPECT_TRUE(must(dead.take(dead.word())));
  EXPECT_GT(must(dead.write()), 0U);
  dead.leave();
  ASSERT_EQ(words.written.value, 10U);
  detail::Office office = topic.office();
  const Moment scribbler{"keeper:set_back", [&] { words.written.value = 9; }};
  EXPECT_TRUE(must(office.take(office.word())));
  EXPECT_EQ(scribbler.times(), 1U);
  publish_numbers(publisher, 10);
  EXPECT_GT(must(office.write()), 0U);
  EXPECT_EQ(words.written.value, 20U);
  office.leave();
}

}  // namespace
}  // namespace testing
}  // namespace leat
