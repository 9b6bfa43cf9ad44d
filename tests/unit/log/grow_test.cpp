// If this failed, a topic with policy `grow` would lose records, not reach or exceed its maximum,
// or keep memory that nobody needs.
#include <sys/stat.h>

#include <atomic>

#include "../testing.hpp"
#include "leat/log/segment_memory.hpp"

namespace leat {
namespace {

// Starts with three segments, grows to at most eight; one is added when at most one is free.
TopicOptions growing(std::uint64_t segments = 3, std::uint64_t maximum = 8) {
  return {.capacity_bytes = segments * kSegment,
          .policy = Policy::grow,
          .max_capacity_bytes = maximum * kSegment};
}

// How many segments the records file has memory for.
std::uint64_t segments_in_file(const TestTopic& topic) {
  struct stat status {};
  const std::string path = topic.directory() + "/" + kTopicName + "/records";
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(static_cast<std::uint64_t>(status.st_size), topic.shared().geometry().records_size());
  EXPECT_EQ(static_cast<std::uint64_t>(status.st_blocks) * 512 % kSegment, 0U);
  return static_cast<std::uint64_t>(status.st_blocks) * 512 / kSegment;
}
std::uint64_t segments_in_info(const TestTopic& topic) {
  return topic->info().capacity_bytes / kSegment;
}

// A record that contains its number and fills a third of a segment.
std::string numbered(std::uint64_t number) {
  std::string text = std::to_string(number) + " ";
  text.resize(kThird, 'x');
  return text;
}
// Publishes numbered records from `first` on until an error; returns how many.
std::uint64_t fill(Publisher& publisher, std::uint64_t first, Errc expected) {
  for (std::uint64_t i = 0;; ++i) {
    auto offset = publisher.publish(numbered(first + i), 0s);
    if (!offset) {
      EXPECT_EQ(code(offset), expected);
      return i;
    }
    EXPECT_EQ(*offset, first + i);
  }
}
// Reads all available records and checks that they are those from `next` on.
void read_numbered(Subscriber& subscriber, std::uint64_t& next) {
  while (must(subscriber.poll(100, [&](const Record& record) {
           EXPECT_EQ(record.offset, next);
           EXPECT_EQ(record.text(), numbered(next));
           ++next;
         })) != 0) {
  }
}

TEST(Grow, BeginsWithItsCapacityAndNoMore) {
  const TestTopic topic{growing()};
  EXPECT_EQ(segments_in_file(topic), 3U);
  const TopicInfo info = topic->info();
  EXPECT_EQ(info.policy, Policy::grow);
  EXPECT_EQ(info.capacity_bytes, 3 * kSegment);
  EXPECT_EQ(info.max_capacity_bytes, 8 * kSegment);
  ASSERT_EQ(info.partitions.size(), 1U);
  EXPECT_EQ(info.partitions[0].capacity_bytes, 3 * kSegment);
}

TEST(Grow, GrowsToItsMaximumAndThenBlocks) {
  const TestTopic topic{growing()};
  auto subscriber = from_beginning(*topic);
  EXPECT_EQ(must(subscriber.poll(1, kIgnore)), 0U);  // Makes it known as this thread's.
  auto publisher = must(topic->publisher());
  EXPECT_EQ(fill(publisher, 0, Errc::full), 8 * 3U);
  EXPECT_EQ(segments_in_file(topic), 8U);
  EXPECT_EQ(segments_in_info(topic), 8U);
  EXPECT_EQ(code(publisher.publish("x", 10ms)), Errc::would_deadlock);
  EXPECT_TRUE(topic->info().participants.at(0).blocking);
  std::uint64_t next = 0;
  read_numbered(subscriber, next);
  EXPECT_EQ(next, 24U);
  // From now on it reuses its segments like any topic.
  for (std::uint64_t lap = 0; lap < 5; ++lap) {
    const std::uint64_t more = fill(publisher, next, Errc::full);
    EXPECT_GE(more, 7 * 3U);
    const std::uint64_t until = next + more;
    read_numbered(subscriber, next);
    EXPECT_EQ(next, until);
  }
  EXPECT_EQ(segments_in_file(topic), 8U);
}

TEST(Grow, StaysAsItIsWhenSubscribersKeepUp) {
  const TestTopic topic{growing()};
  auto subscriber = from_beginning(*topic);
  auto lossy = must(topic->subscriber({.from = From::beginning, .gating = false}));
  auto publisher = must(topic->publisher());
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    must(publisher.publish(numbered(i), 0s));
    read_numbered(subscriber, next);
  }
  EXPECT_EQ(next, 100U);
  EXPECT_EQ(segments_in_file(topic), 3U);
}

TEST(Grow, NobodyToWaitForIsNoReason) {
  const TestTopic topic{growing()};
  auto lossy = must(topic->subscriber({.from = From::beginning, .gating = false}));
  auto publisher = must(topic->publisher());
  for (std::uint64_t i = 0; i < 100; ++i) must(publisher.publish(numbered(i), 0s));
  EXPECT_EQ(segments_in_file(topic), 3U);
}

TEST(Grow, TheDeadAreNoReason) {
  const TestTopic topic{growing()};
  Child child{[&] {
    auto there = topic.open_again();
    auto subscriber = from_beginning(there);
    ::raise(SIGKILL);
    return 0;
  }};
  EXPECT_EQ(child.join(), -SIGKILL);
  auto publisher = must(topic->publisher());
  for (std::uint64_t i = 0; i < 100; ++i) must(publisher.publish(numbered(i), 0s));
  EXPECT_EQ(segments_in_file(topic), 3U);
}

TEST(Grow, KeepsTheDistanceAskedFor) {
  TopicOptions options = growing(8, 20);
  options.grow_below_bytes = 3 * kSegment;
  const TestTopic topic{options};
  auto subscriber = from_beginning(*topic);
  auto publisher = must(topic->publisher());
  std::uint64_t used = 0;  // Used segments.
  for (std::uint64_t i = 0; i < 3 * 12; ++i) {
    must(publisher.publish(numbered(i), 0s));
    used = i / 3 + 1;
    EXPECT_EQ(segments_in_info(topic), std::max<std::uint64_t>(8, used + 3)) << "record " << i;
  }
  EXPECT_EQ(segments_in_file(topic), used + 3);
}

TEST(Grow, EachPartitionGrowsByItself) {
  TopicOptions options = growing(2, 6);
  options.partitions = 3;
  const TestTopic topic{options};
  auto subscriber = from_beginning(*topic);
  auto publisher = must(topic->publisher({.partition = 1}));
  EXPECT_EQ(fill(publisher, 0, Errc::full), 6 * 3U);
  const TopicInfo info = topic->info();
  EXPECT_EQ(info.partitions[0].capacity_bytes, 2 * kSegment);
  EXPECT_EQ(info.partitions[1].capacity_bytes, 6 * kSegment);
  EXPECT_EQ(info.partitions[2].capacity_bytes, 2 * kSegment);
  EXPECT_EQ(info.capacity_bytes, 6 * kSegment);
  EXPECT_EQ(segments_in_file(topic), 10U);
  std::uint64_t next = 0;
  read_numbered(subscriber, next);
  EXPECT_EQ(next, 18U);
}

TEST(Grow, ExclusivePublisherGrowsToo) {
  TopicOptions options = growing();
  options.single_writer = true;
  const TestTopic topic{options};
  auto subscriber = from_beginning(*topic);
  auto publisher = must(topic->publisher());
  EXPECT_EQ(fill(publisher, 0, Errc::full), 8 * 3U);
  std::uint64_t next = 0;
  read_numbered(subscriber, next);
  EXPECT_EQ(next, 24U);
}

TEST(Grow, OtherProcessesSeeWhatIsAdded) {
  const TestTopic topic{growing()};
  Child child{[&] {
    auto there = topic.open_again();
    auto subscriber = from_beginning(there);
    std::uint64_t next = 0;
    while (next < 200) {
      must(subscriber.wait(30s));
      ::usleep(200);
      read_numbered(subscriber, next);
    }
    return ::testing::Test::HasFailure() ? 1 : 0;
  }};
  auto publisher = must(topic->publisher());
  while (topic->info().participants.size() < 2) ::usleep(100);
  for (std::uint64_t i = 0; i < 200; ++i) must(publisher.publish(numbered(i), 30s));
  EXPECT_EQ(child.join(), 0);
  EXPECT_LE(segments_in_file(topic), 8U);
}

// ---- The maximum ---------------------------------------------------------------------------------

TEST(GrowMaximum, RaisedWhileAPublisherWaits) {
  const TestTopic topic{growing(2, 2)};
  auto subscriber = from_beginning(*topic);
  auto filler = must(topic->publisher());
  const std::uint64_t before = fill(filler, 0, Errc::full);
  EXPECT_EQ(before, 6U);
  std::atomic<bool> published = false;
  std::thread waiting{[&] {
    auto publisher = must(topic->publisher());
    EXPECT_EQ(must(publisher.publish(numbered(before), 30s)), before);
    published = true;
  }};
  ::usleep(20'000);
  EXPECT_FALSE(published);
  must(topic->set_max_capacity(3 * kSegment));
  waiting.join();
  EXPECT_EQ(segments_in_file(topic), 3U);
  EXPECT_EQ(topic->info().max_capacity_bytes, 3 * kSegment);
  std::uint64_t next = 0;
  read_numbered(subscriber, next);
  EXPECT_EQ(next, before + 1);
}

TEST(GrowMaximum, LoweredBelowWhatIsThereStopsGrowing) {
  const TestTopic topic{growing(2, 8)};
  auto subscriber = from_beginning(*topic);
  auto publisher = must(topic->publisher());
  std::uint64_t count = 0;
  while (segments_in_info(topic) < 5) must(publisher.publish(numbered(count++), 0s));
  must(topic->set_max_capacity(2 * kSegment));
  count += fill(publisher, count, Errc::full);
  EXPECT_EQ(count, 5 * 3U);
  EXPECT_EQ(segments_in_file(topic), 5U);
  std::uint64_t next = 0;
  read_numbered(subscriber, next);
  EXPECT_EQ(next, count);
  EXPECT_EQ(must(topic->shrink()), 3 * kSegment);
  // Everything was read, so one more segment is free.
  EXPECT_EQ(fill(publisher, count, Errc::full), 3U);
}

TEST(GrowMaximum, HasLimits) {
  const TestTopic topic{growing()};
  EXPECT_EQ(topic->max_capacity_limit(), 1024 * kSegment);
  EXPECT_EQ(code(topic->set_max_capacity(2 * kSegment)), Errc::invalid_argument);
  EXPECT_EQ(code(topic->set_max_capacity(1024 * kSegment + 1)), Errc::invalid_argument);
  must(topic->set_max_capacity(1024 * kSegment));
  must(topic->set_max_capacity(3 * kSegment));
  must(topic->set_max_capacity(3 * kSegment + 1));
  EXPECT_EQ(topic->info().max_capacity_bytes, 4 * kSegment);
  const TestTopic other{{}};
  EXPECT_EQ(code(other->set_max_capacity(8 * kSegment)), Errc::needs_growing);
  EXPECT_EQ(code(other->shrink()), Errc::needs_growing);
  EXPECT_EQ(other->info().max_capacity_bytes, other->info().capacity_bytes);
}

TEST(GrowMaximum, LargeSegmentsHaveFewer) {
  auto created = TopicTesting::new_topic(
      {.capacity_bytes = 4ULL << 30, .segment_bytes = 1ULL << 30, .policy = Policy::grow});
  ASSERT_TRUE(created);
  EXPECT_EQ(created->geometry.first_segments, 4U);
  EXPECT_EQ(created->geometry.segment_count, 128U);
  EXPECT_EQ(created->max_segments, 32U);
  // All partitions share the limit of what a process can map.
  created = TopicTesting::new_topic({.capacity_bytes = 2ULL << 30,
                                     .segment_bytes = 1ULL << 30,
                                     .policy = Policy::grow,
                                     .partitions = 1024});
  ASSERT_TRUE(created);
  EXPECT_EQ(created->geometry.segment_count, 16U);
  EXPECT_EQ(created->max_segments, 16U);
}

TEST(GrowOptions, AreChecked) {
  const auto refused = [](TopicOptions options) { return code(TopicTesting::new_topic(options)); };
  EXPECT_EQ(refused(growing(3, 3)), Errc::ok);
  EXPECT_EQ(refused(growing(3, 2)), Errc::invalid_argument);
  TopicOptions options = growing();
  options.max_capacity_bytes = 0;
  EXPECT_EQ(must(TopicTesting::new_topic(options)).max_segments, 8 * 3U);
  options.retain_all = true;
  EXPECT_EQ(refused(options), Errc::invalid_argument);
  for (const Policy policy : {Policy::block, Policy::fail, Policy::overwrite}) {
    EXPECT_EQ(refused({.policy = policy, .max_capacity_bytes = 64 << 20}), Errc::invalid_argument);
    EXPECT_EQ(refused({.policy = policy, .grow_below_bytes = 1 << 20}), Errc::invalid_argument);
  }
  options = growing();
  options.grow_below_bytes = ~0ULL;
  EXPECT_EQ(refused(options), Errc::invalid_argument);
  options = growing();
  options.max_capacity_bytes = ~0ULL;
  EXPECT_EQ(refused(options), Errc::invalid_argument);
}

// ---- Freeing memory ---------------------------------------------------------------------------------

// Touching a segment without memory would give it a page, or be a SIGBUS.
TEST(Shrink, ABatchThatAChildInheritedTouchesNothingFreed) {
  const TestTopic topic{growing()};
  auto subscriber = from_beginning(*topic);
  auto publisher = must(topic->publisher({.exclusive = true}));
  for (std::uint64_t i = 0; i < 5; ++i) must(publisher.publish(numbered(i), 0s));
  std::optional<Batch> batch{must(publisher.batch())};
  must(batch->add("in the second segment"));
  int shrunk[2];
  ASSERT_EQ(::pipe(shrunk), 0);
  Child child{[&] {
    char go = 0;
    return ::read(shrunk[0], &go, 1) == 1 && batch->add("child") ? 0 : 1;
  }};
  batch.reset();
  EXPECT_EQ(fill(publisher, 5, Errc::full), 8 * 3U - 5);
  std::uint64_t next = 0;
  read_numbered(subscriber, next);
  must(publisher.publish(numbered(next), 0s));  // In the memory of the first segment.
  read_numbered(subscriber, next);
  EXPECT_EQ(must(topic->shrink()), 5 * kSegment);
  EXPECT_EQ(segments_in_file(topic), 3U);
  ASSERT_EQ(::write(shrunk[1], "x", 1), 1);
  EXPECT_EQ(child.join(), 0);
  EXPECT_EQ(segments_in_file(topic), 3U);
  for (const int end : shrunk) ::close(end);
}

TEST(Shrink, FreesWhatWasRead) {
  const TestTopic topic{growing()};
  auto subscriber = from_beginning(*topic);
  auto publisher = must(topic->publisher());
  const std::uint64_t count = fill(publisher, 0, Errc::full);
  EXPECT_EQ(must(topic->shrink()), 0U);  // A subscriber still has to read all of it.
  EXPECT_EQ(segments_in_file(topic), 8U);
  std::uint64_t next = 0;
  read_numbered(subscriber, next);
  EXPECT_EQ(must(topic->shrink()), 5 * kSegment);
  EXPECT_EQ(segments_in_file(topic), 3U);
  EXPECT_EQ(segments_in_info(topic), 3U);
  EXPECT_EQ(must(topic->shrink()), 0U);
  // It grows again.
  const std::uint64_t more = fill(publisher, count, Errc::full);
  EXPECT_GE(more, 7 * 3U);
  EXPECT_EQ(segments_in_file(topic), 8U);
  read_numbered(subscriber, next);
  EXPECT_EQ(next, count + more);
}

TEST(Shrink, KeepsWhatIsNotReadYet) {
  const TestTopic topic{growing()};
  auto subscriber = from_beginning(*topic);
  auto publisher = must(topic->publisher());
  const std::uint64_t count = fill(publisher, 0, Errc::full);
  std::uint64_t next = 0;
  while (next < 10) {  // Up to the fourth segment: five of eight are still needed.
    next += must(subscriber.poll(
        1, [&](const Record& record) { EXPECT_EQ(record.text(), numbered(next)); }));
  }
  // Of the three free segments only one is freed: with fewer free ones,
  // a publisher would add one again at once.
  EXPECT_EQ(must(topic->shrink()), kSegment);
  EXPECT_EQ(segments_in_file(topic), 7U);
  read_numbered(subscriber, next);
  EXPECT_EQ(next, count);
}

TEST(Shrink, RepeatedWhileEverybodyWorks) {
  const TestTopic topic{growing(3, 40)};
  constexpr std::uint64_t kRecords = 30'000;
  std::atomic<bool> done = false;
  std::thread publishing{[&] {
    auto publisher = must(topic->publisher());
    while (topic->info().participants.size() < 3) ::usleep(100);
    for (std::uint64_t i = 0; i < kRecords; ++i) must(publisher.publish(numbered(i), 30s));
  }};
  std::thread reading{[&] {
    auto subscriber = from_beginning(*topic);
    std::uint64_t next = 0;
    for (int round = 0; next < kRecords; ++round) {
      must(subscriber.wait(30s));
      if (round % 50 == 0) ::usleep(1000);  // Falls behind sometimes.
      read_numbered(subscriber, next);
    }
    done = true;
  }};
  std::thread reading_lossy{[&] {
    auto lossy = must(topic->subscriber({.from = From::beginning, .gating = false}));
    lossy.on_event([](const Event& event) { EXPECT_EQ(event.reason, GapReason::overwritten); });
    while (!done) {
      must(lossy.poll(
          100, [](const Record& record) { EXPECT_EQ(record.text(), numbered(record.offset)); }));
    }
  }};
  std::uint64_t freed = 0;
  while (!done) freed += must(topic->shrink());
  publishing.join();
  reading.join();
  reading_lossy.join();
  EXPECT_GT(freed, 0U);
  must(topic->shrink());
  EXPECT_EQ(segments_in_file(topic), 3U);
}

TEST(Shrink, WhatALossySubscriberReadsStays) {
  const TestTopic topic{growing()};
  auto lossy = must(topic->subscriber({.from = From::beginning, .gating = false}));
  std::uint64_t next = 0;
  {
    auto subscriber = from_beginning(*topic);
    auto publisher = must(topic->publisher());
    fill(publisher, 0, Errc::full);
    read_numbered(subscriber, next);
  }
  // Its cursor is in the first segment, which is retired but keeps its memory.
  EXPECT_EQ(must(topic->shrink()), 5 * kSegment);
  EXPECT_EQ(segments_in_file(topic), 3U);
  EXPECT_FALSE((topic.shared().partition(0).physical[0].last_segment & detail::kNoMemory) != 0);
  // It continues where the topic begins now.
  std::uint64_t lost = 0;
  lossy.on_event([&](const Event& event) { lost += event.count; });
  std::uint64_t got = 0;
  while (lost + got < next) got += must(lossy.poll(100, kIgnore));
  EXPECT_EQ(lost + got, next);
}

// A process was killed after it marked a segment and before it made the hole in the file. The next
// shrink frees that memory, too.
TEST(Shrink, FinishesWhatADeadOneBegan) {
  const TestTopic topic{growing(3, 8)};
  auto publisher = must(topic->publisher());
  {
    auto subscriber = from_beginning(*topic);
    fill(publisher, 0, Errc::full);
  }
  detail::PartitionView view = topic.shared().partition(0);
  must(topic->shrink());
  ASSERT_EQ(segments_in_file(topic), 3U);
  std::uint64_t marked = 0;
  while ((view.physical[marked].last_segment & detail::kNoMemory) == 0) ++marked;
  auto file = must(topic.shared().open_records());
  must(detail::allocate_range(file.get(), marked * kSegment, kSegment));
  EXPECT_EQ(segments_in_file(topic), 4U);
  EXPECT_EQ(must(topic->shrink()), kSegment);
  EXPECT_EQ(segments_in_file(topic), 3U);
}

// A segment that a publisher chose to open keeps its memory until it is
// opened or the publisher is dead.
TEST(Shrink, WhatAPublisherChoseStays) {
  const TestTopic topic{growing()};
  auto publisher = must(topic->publisher());
  {
    auto subscriber = from_beginning(*topic);
    fill(publisher, 0, Errc::full);
  }
  detail::PartitionView view = topic.shared().partition(0);
  EXPECT_EQ(view.slots[0].choice, 0U);
  view.slots[0].choice = 1 + 2;
  EXPECT_EQ(must(topic->shrink()), 5 * kSegment);
  EXPECT_EQ(view.physical[2].last_segment, 3U);
  view.slots[0].choice = 0;
  must(topic->set_max_capacity(3 * kSegment));
  std::uint64_t rest = segments_in_file(topic);
  EXPECT_EQ(rest, 3U);
}

TEST(Shrink, WaitsForNobodyWhoAdds) {
  const TestTopic topic{growing()};
  auto adding = must(detail::RecordsLock::take(topic.shared(), detail::LockKind::shared));
  EXPECT_EQ(code(topic->shrink()), Errc::busy);
}

// ---- Without memory --------------------------------------------------------------------------------

// While memory is being freed, or the file system is full, publishing
// blocks as at the maximum.
TEST(Grow, WithoutMemoryItBlocks) {
  const TestTopic topic{growing()};
  auto subscriber = from_beginning(*topic);
  auto publisher = must(topic->publisher());
  std::uint64_t count = 0;
  {
    auto giving_back = must(detail::RecordsLock::take(topic.shared(), detail::LockKind::exclusive));
    count = fill(publisher, 0, Errc::full);
    EXPECT_EQ(count, 3 * 3U);
    EXPECT_EQ(segments_in_file(topic), 3U);
  }
  count += fill(publisher, count, Errc::full);
  EXPECT_EQ(count, 8 * 3U);
  std::uint64_t next = 0;
  read_numbered(subscriber, next);
  EXPECT_EQ(next, count);
}

}  // namespace
}  // namespace leat
