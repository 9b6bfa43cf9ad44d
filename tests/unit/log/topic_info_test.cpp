// If this failed, Topic::info(), and so `leat topic info`, would show wrong offsets or
// participants, or the wrong one as blocking.
#include "support/test_store.hpp"
#include "testing.hpp"

namespace leat {
namespace {

TEST(TopicInfo, TellsOffsetsAndParticipants) {
  const TestTopic topic{{.partitions = 2, .timestamps = true}};
  auto publisher = must(topic->publisher({.partition = 1}));
  auto gating = from_beginning(*topic);
  auto lossy = must(topic->subscriber({.from = From::beginning, .gating = false}));
  for (int i = 0; i < 5; ++i) must(publisher.publish("x"));
  EXPECT_EQ(must(gating.poll(3, [](const Record&) {})), 3u);

  const TopicInfo info = topic->info();
  EXPECT_EQ(info.name, kTopicName);
  EXPECT_EQ(info.policy, Policy::block);
  EXPECT_TRUE(info.timestamps);
  EXPECT_FALSE(info.retain_all);
  EXPECT_FALSE(info.single_writer);
  ASSERT_EQ(info.partitions.size(), 2u);
  EXPECT_EQ(info.partitions[0].end, 0u);
  EXPECT_EQ(info.partitions[1].start, 0u);
  EXPECT_EQ(info.partitions[1].end, 5u);
  ASSERT_EQ(info.participants.size(), 3u);
  EXPECT_EQ(info.participants[0].role, "publisher");
  EXPECT_EQ(info.participants[1].role, "subscriber");
  EXPECT_EQ(info.participants[1].offset, 3u);
  EXPECT_EQ(info.participants[1].lag, 2u);
  EXPECT_EQ(info.participants[2].role, "lossy-subscriber");
  EXPECT_EQ(info.participants[2].lag, 5u);
  for (const auto& participant : info.participants) {
    EXPECT_EQ(participant.pid, static_cast<std::uint32_t>(::getpid()));
    EXPECT_FALSE(participant.blocking);
  }
}

TEST(TopicInfo, EndOffsetAndSegmentBytesAgreeAndMapNoRecords) {
  const TestTopic topic{{.partitions = 2}};
  auto publisher = must(topic->publisher({.partition = 1}));
  for (int i = 0; i < 5; ++i) must(publisher.publish(kHalfText));
  auto claim = must(publisher.try_claim(1));
  const Topic again = topic.open_again();
  const TopicInfo info = topic->info();
  const int before = count_mapped_records();
  EXPECT_EQ(again.end_offset(0), 0U);
  EXPECT_EQ(again.end_offset(1), 6U);
  EXPECT_EQ(again.end_offset(0), info.partitions[0].end);
  EXPECT_EQ(again.end_offset(1), info.partitions[1].end);
  EXPECT_EQ(again.segment_bytes(), info.segment_bytes);
  EXPECT_EQ(again.segment_bytes(), kSegment);
  EXPECT_EQ(count_mapped_records(), before);
}

// The headers of files may say anything. What overlapped would be subtracted twice from the records.
TEST(TopicInfo, LostRangesOfFilesNeverOverlap) {
  testing::TestStore store;
  detail::SegmentWriter writer = store.writer();
  const auto make_file = [&](std::uint64_t generation, std::uint64_t base, std::uint64_t previous) {
    writer.begin(generation, base, previous, base == 0);
    testing::LogBytes log{store.manifest.window.key, 1000 * generation, base};
    store.append(writer, log.record("x"));
    ASSERT_TRUE(writer.finish_file());
  };
  make_file(2, 0, 0);
  make_file(3, 100, 1);
  make_file(4, 200, 0);  // A lie.
  store.checkpoint(writer, true);
  const TopicInfo info = must(detail::info_of_closed(store.path, "t"));
  const PartitionInfo& partition = info.partitions.at(0);
  EXPECT_EQ(partition.end, 201U);
  ASSERT_EQ(partition.gaps.size(), 1U);
  EXPECT_EQ(partition.gaps[0].begin, 1U);
  EXPECT_EQ(partition.gaps[0].end, 200U);
  EXPECT_EQ(partition.count_from(0), 2U);
}

// Memory, the window and the headers of files may each know the same gap.
TEST(TopicInfo, NoGapIsSubtractedTwice) {
  PartitionInfo partition;
  partition.start = 10;
  partition.end = 201;
  partition.gaps = {{200, 300}, {0, 100}, {150, 160}, {0, 101}, {50, 90}, {170, 170}, {0, 5}};
  detail::settle_gaps(partition);
  ASSERT_EQ(partition.gaps.size(), 3U);
  EXPECT_EQ(partition.gaps[0].begin, 10U);
  EXPECT_EQ(partition.gaps[0].end, 101U);
  EXPECT_EQ(partition.gaps[1].begin, 150U);
  EXPECT_EQ(partition.gaps[1].end, 160U);
  EXPECT_EQ(partition.gaps[2].begin, 200U);
  EXPECT_EQ(partition.gaps[2].end, 201U);
  EXPECT_EQ(partition.count_from(0), 89U);
}

TEST(TopicInfo, TellsWhatItWasCreatedWith) {
  const TestTopic plain;
  EXPECT_FALSE(plain->info().delete_when_unused);
  EXPECT_EQ(plain->info().revoke_after, 0ns);
  EXPECT_EQ(plain->info().evict_after, 0ns);
  const TestTopic topic{{.delete_when_unused = true, .revoke_after = 500ms, .evict_after = 2s}};
  EXPECT_TRUE(topic->info().delete_when_unused);
  EXPECT_EQ(topic->info().revoke_after, 500ms);
  EXPECT_EQ(topic->info().evict_after, 2s);
}

TEST(TopicInfo, TellsHowMuchIsUsed) {
  const TestTopic topic{{.capacity_bytes = 4 * kSegment, .segment_bytes = kSegment}};
  EXPECT_EQ(topic->info().partitions[0].used_bytes, 0u);
  auto publisher = must(topic->publisher());
  must(publisher.publish("x"));
  EXPECT_EQ(topic->info().partitions[0].used_bytes, 32u);  // A header of 16 bytes, and up to 16.
  // Nobody reads, so old segments go; what remains is never more than the capacity.
  for (int i = 0; i < 20; ++i) must(publisher.publish(std::string(kHalf, 'x')));
  const PartitionInfo info = topic->info().partitions[0];
  EXPECT_GT(info.used_bytes, 2 * kSegment);
  EXPECT_LE(info.used_bytes, info.capacity_bytes);
}

TEST(TopicInfo, TellsWhoBlocks) {
  const TestTopic topic{{.capacity_bytes = 2 * kSegment, .policy = Policy::fail}};
  auto publisher = must(topic->publisher());
  auto slow = from_beginning(*topic);
  auto fast = from_beginning(*topic);
  while (publisher.publish(std::string(kHalf, 'x'))) {
    (void)drain(fast);
  }
  const TopicInfo info = topic->info();
  ASSERT_EQ(info.participants.size(), 3u);
  EXPECT_FALSE(info.participants[0].blocking);
  EXPECT_TRUE(info.participants[1].blocking);
  EXPECT_FALSE(info.participants[2].blocking);
}

TEST(TopicInfo, NewSubscriberIsWhereItBegins) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  for (int i = 0; i < 10; ++i) (void)must(publisher.publish("x"));
  {
    auto leaves_a_slot_that_says_10 = from_beginning(*topic);
    (void)drain(leaves_a_slot_that_says_10);
  }
  {
    const auto subscriber = from_beginning(*topic);
    EXPECT_EQ(topic->info().participants.at(1).offset, 0u);
    EXPECT_EQ(topic->info().participants.at(1).lag, 10u);
  }
  const auto subscriber = must(topic->subscriber({.from = From::offset(7)}));
  EXPECT_EQ(subscriber.offset(), 7u);
  EXPECT_EQ(topic->info().participants.at(1).lag, 3u);
}

TEST(TopicInfo, NamesThePublisherThatOthersWaitFor) {
  const TestTopic topic;
  auto first = must(topic->publisher());
  auto second = must(topic->publisher());
  auto claim = must(first.try_claim(1));
  EXPECT_FALSE(topic->info().participants.at(0).blocking);  // Nothing is behind its claim yet.
  (void)must(second.publish("x"));
  EXPECT_TRUE(topic->info().participants.at(0).blocking);
  EXPECT_FALSE(topic->info().participants.at(1).blocking);
  (void)must(claim.commit());
  EXPECT_FALSE(topic->info().participants.at(0).blocking);
}

}  // namespace
}  // namespace leat
