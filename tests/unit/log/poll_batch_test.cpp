// If this failed, a program that collects records in an array could find some of them overwritten, or
// could get gaps in the wrong order.
#include <cstring>
#include <random>

#include "log/durable_testing.hpp"
#include "testing.hpp"

namespace leat {
namespace {

// What a poll_batch() delivered: views, as a client keeps them, and what they said at first.
struct Kept {
  Log first;
  std::vector<Record> records;
  std::size_t entries = 0;

  bool is_still_the_same() const {
    std::size_t at = 0;
    for (const std::string& line : first) {
      if (line.ends_with("aborted") || line.ends_with("overwritten")) continue;
      if (at == records.size() || to_text(records[at++]) != line) return false;
    }
    return at == records.size();
  }
};

Kept poll_batch(Subscriber& subscriber, std::size_t limit) {
  Kept kept;
  kept.entries = must(subscriber.poll_batch(
      limit,
      [&](const Record& record) {
        kept.first.push_back(to_text(record));
        kept.records.push_back(record);
      },
      [&](const Event& gap) { kept.first.push_back(to_text(gap)); }));
  EXPECT_LE(kept.entries, limit);
  EXPECT_EQ(kept.entries, kept.first.size());
  return kept;
}

TEST(PollBatch, GapsCountAndComeInOrder) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  EXPECT_EQ(poll_batch(subscriber, 8).entries, 0u);
  must(publisher.publish("a"));
  must(must(publisher.try_claim(1)).abort());
  must(publisher.publish("b"));
  EXPECT_EQ(poll_batch(subscriber, 2).first, (Log{"0 a", "1+1 aborted"}));
  EXPECT_EQ(poll_batch(subscriber, 8).first, Log{"2 b"});
}

TEST(PollBatch, LeavesNoSegmentOnceItHasARecordOfIt) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  for (std::uint64_t next = 0; next < 200;) {
    while (publisher.publish(kHalfText, Deadline::immediate())) {
    }
    const Kept kept = poll_batch(subscriber, 1000);
    ASSERT_NE(kept.entries, 0u);
    // Whatever room the publisher finds now is not that of these records.
    while (publisher.publish(std::string(kHalf, 'n'), Deadline::immediate())) {
    }
    ASSERT_TRUE(kept.is_still_the_same());
    next += kept.entries;
    ASSERT_EQ(subscriber.offset(), next);
  }
}

TEST(PollBatch, CopiesOfALossySubscriberStay) {
  const TestTopic topic{{.policy = Policy::overwrite}};
  auto publisher = must(topic->publisher());
  auto subscriber = must(topic->subscriber({.from = From::beginning, .gating = false}));
  std::uint64_t next = 0;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 5; ++i) must(publisher.publish(std::string(100, static_cast<char>('a' + i))));
    auto batch = must(publisher.batch());
    for (int i = 0; i < 7; ++i) must(batch.add(std::string(50, static_cast<char>('A' + i))));
    must(batch.commit());
    const Kept kept = poll_batch(subscriber, 9);  // Ends within the batch.
    ASSERT_EQ(kept.records.size(), 9u);
    ASSERT_EQ(kept.records[0].offset, next);
    for (int i = 0; i < 20; ++i) must(publisher.publish(kHalfText));
    ASSERT_TRUE(kept.is_still_the_same());
    const Kept rest = poll_batch(subscriber, 3);
    ASSERT_EQ(rest.records.at(2).text(), std::string(50, 'G'));
    next = must(publisher.publish("mark"));
    while (subscriber.offset() <= next) (void)poll_batch(subscriber, 100);
    ++next;
  }
}

TEST(PollBatch, ACopyMayFollowAGap) {
  const TestTopic topic{{.policy = Policy::overwrite}};
  auto publisher = must(topic->publisher());
  auto subscriber = must(topic->subscriber({.from = From::beginning, .gating = false}));
  for (int i = 0; i < 20; ++i) must(publisher.publish(kHalfText));
  const Kept kept = poll_batch(subscriber, 2);
  ASSERT_EQ(kept.records.size(), 1u);
  EXPECT_TRUE(kept.first.front().ends_with("overwritten"));
}

TEST(PollBatch, TheRestOfABatchThatPollBeganStays) {
  const TestTopic topic{{.policy = Policy::overwrite}};
  auto publisher = must(topic->publisher());
  auto subscriber = must(topic->subscriber({.from = From::beginning, .gating = false}));
  auto batch = must(publisher.batch());
  for (int i = 0; i < 4; ++i) must(batch.add(std::string(200, static_cast<char>('a' + i))));
  must(batch.commit());
  for (int i = 0; i < 4; ++i) must(publisher.publish(std::string(150, 'n')));
  EXPECT_EQ(must(subscriber.poll(2, kIgnore)), 2u);
  const Kept kept = poll_batch(subscriber, 6);
  EXPECT_GE(kept.entries, 2u);
  EXPECT_TRUE(kept.is_still_the_same());
}

TEST(PollBatch, AChildLeavesItsParentsPinAlone) {
  const TestTopic topic{{.policy = Policy::overwrite}};
  auto publisher = must(topic->publisher());
  auto subscriber =
      must(topic->subscriber({.from = From::beginning, .gating = false, .in_place = true}));
  must(publisher.publish("mine"));
  const Kept kept = poll_batch(subscriber, 1);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_refused = subscriber.poll(1, kIgnore).error() == Errc::forked &&
                            subscriber.receive(0s).error() == Errc::forked;
    ::_exit(is_refused ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  for (int i = 0; i < 50; ++i) must(publisher.publish(kHalfText));
  EXPECT_TRUE(kept.is_still_the_same());
}

TEST(PollBatch, ReturnsFewerIfCopiesNeedTooMuchMemory) {
  const TestTopic topic{{.capacity_bytes = 16 << 20, .segment_bytes = 4 << 20, .policy = Policy::overwrite}};
  auto publisher = must(topic->publisher());
  auto subscriber = must(topic->subscriber({.from = From::beginning, .gating = false}));
  for (const std::size_t size : {100'000U, 100'000U, 100'000U, 1'000'000U, 10U})
    must(publisher.publish(std::string(size, 'x')));
  std::vector<std::size_t> counts;
  for (std::size_t count = 1; count != 0;)
    counts.push_back(count = poll_batch(subscriber, 10).entries);
  // Two fit into 256 KiB; the large one is alone, or has room for the small one behind it.
  std::size_t all = 0;
  for (const std::size_t count : counts) all += count;
  EXPECT_EQ(all, 5u);
  EXPECT_EQ(counts.at(0), 2u);
}

TEST(PollBatch, InPlacePinsWhatItHasDelivered) {
  const TestTopic topic{{.policy = Policy::overwrite}};
  auto publisher = must(topic->publisher());
  auto subscriber =
      must(topic->subscriber({.from = From::beginning, .gating = false, .in_place = true}));
  for (int i = 0; i < 3; ++i) must(publisher.publish(std::to_string(i)));
  const Kept kept = poll_batch(subscriber, 10);
  EXPECT_EQ(kept.entries, 3u);
  for (int i = 0; i < 50; ++i) must(publisher.publish(kHalfText));
  EXPECT_TRUE(kept.is_still_the_same());
}

// Any mix of limits, sizes, batches and aborted claims: what is delivered is what poll() delivers, and
// stays as it was while others publish.
TEST(PollBatch, DeliversWhatPollDelivers) {
  for (const bool is_lossy : {false, true}) {
    std::mt19937 random{is_lossy ? 7U : 3U};
    const TestTopic topic;
    auto publisher = must(topic->publisher());
    auto plain = must(topic->subscriber({.from = From::beginning, .gating = !is_lossy}));
    auto kept_one = must(topic->subscriber({.from = From::beginning, .gating = !is_lossy}));
    for (int round = 0; round < 300; ++round) {
      for (std::size_t i = random() % 6; i != 0; --i) {
        if (random() % 5 == 0) must(must(publisher.claim(10)).abort());
        must(publisher.publish(std::string(random() % 700, static_cast<char>('a' + random() % 26))));
      }
      const Log expected = drain(plain, 1 + random() % 5);
      Log found;
      while (true) {
        const Kept kept = poll_batch(kept_one, 1 + random() % 5);
        if (kept.entries == 0) break;
        ASSERT_TRUE(kept.is_still_the_same());
        found.insert(found.end(), kept.first.begin(), kept.first.end());
      }
      ASSERT_EQ(found, expected) << "round " << round;
    }
  }
}

class DurablePollBatch : public testing::DurableSync {};

TEST_F(DurablePollBatch, FramesReadFromDiskStay) {
  const Topic topic = create(Durability::os);
  auto publisher = publisher_of(topic);
  constexpr std::uint64_t kRecords = 3000;  // Ten times the window.
  for (std::uint64_t i = 0; i < kRecords; ++i)
    ASSERT_TRUE(publisher.publish(std::to_string(i) + std::string(200, 'x')));
  auto subscriber = must(topic.subscriber({.from = From::beginning}));
  std::uint64_t next = 0;
  while (next < kRecords) {
    ASSERT_TRUE(subscriber.wait(testing::kPatience));
    const Kept kept = poll_batch(subscriber, 500);
    if (kept.entries != 0) must(publisher.publish(std::string(300, 'n')));
    ASSERT_TRUE(kept.is_still_the_same());
    for (const Record& record : kept.records) {
      if (next == kRecords) break;
      ASSERT_TRUE(record.text().starts_with(std::to_string(next) + "x"));
      ++next;
    }
  }
}

}  // namespace
}  // namespace leat
