// While a process becomes the archiver of a durable topic, somebody who may write to the topic's files changes a
// word. If this failed, that would end the process.
#include "support/moment.hpp"
#include "unit/group/saved_testing.hpp"

namespace leat {
namespace testing {
namespace {

// The word says where the files of an archiver that died end.
TEST(ScribbledEpoch, AnArchiverGoesOnWhereItsFilesDo) {
  const UnkeptTopic topic;
  auto publisher = must(topic->publisher());
  publish_numbers(publisher, 10);
  detail::DurablePartition& words = topic.shared().durable()->partition(0);
  detail::Archiver dead = topic.archiver();
  EXPECT_TRUE(must(dead.take_over(dead.word())));
  EXPECT_GT(must(dead.write()), 0U);
  dead.leave();
  ASSERT_EQ(words.written.value, 10U);
  detail::Archiver archiver = topic.archiver();
  const Moment scribbler{"archiver:set_back", [&] { words.written.value = 9; }};
  EXPECT_TRUE(must(archiver.take_over(archiver.word())));
  EXPECT_EQ(scribbler.times(), 1U);
  publish_numbers(publisher, 10);
  EXPECT_GT(must(archiver.write()), 0U);
  EXPECT_EQ(words.written.value, 20U);
  archiver.leave();
}

}  // namespace
}  // namespace testing
}  // namespace leat
