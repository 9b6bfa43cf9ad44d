// If this failed, a topic that is in use for a very long time would lose or damage records when one
// of its counters wraps around (docs/format.md says how far away each is).
//
// The topics begin just below such a point, and all kinds of operations cross it.
#include "testing.hpp"

namespace leat {
namespace {

// Crosses `segments` segments with two publishers, single records, batches and aborts. A gating
// reader, a lossy one that keeps up, and readers that join later must all see the same.
void run_over(const TestTopic& topic, std::uint64_t first_offset, std::uint64_t segments) {
  auto one = must(topic->publisher());
  auto two = must(topic->publisher());
  auto gating = from_beginning(*topic);
  auto lossy = must(topic->subscriber({.from = From::beginning, .gating = false}));
  std::uint64_t offset = first_offset;
  const std::string large(kThird, 'x');
  for (std::uint64_t i = 0; i < segments; ++i) {
    SCOPED_TRACE("segment " + std::to_string(i));
    auto at = [&](std::uint64_t ahead) { return std::to_string(offset + ahead); };
    auto from_end = must(topic->subscriber({.partition = 0}));
    ASSERT_EQ(from_end.offset(), offset);
    ASSERT_EQ(must(one.publish(large)), offset);
    auto batch = must(two.batch());
    must(batch.add("b"));
    must(batch.add("c"));
    ASSERT_EQ(must(batch.commit()), offset + 1);
    auto claim = must(one.try_claim(kThird - 64));
    ASSERT_EQ(must(two.publish(large.substr(64))), offset + 4);
    must(claim.abort());
    const Log expected{at(0) + " " + large, at(1) + " b", at(2) + " c", at(3) + "+1 aborted",
                       at(4) + " " + large.substr(64)};
    ASSERT_EQ(drain(gating), expected);
    ASSERT_EQ(drain(lossy), expected);
    ASSERT_EQ(drain(from_end), expected);
    auto from_offset = must(topic->subscriber({.from = From::offset(offset + 2)}));
    ASSERT_EQ(drain(from_offset), Log(expected.begin() + 2, expected.end()));
    offset += 5;
    ASSERT_EQ(topic->info().partitions[0].end, offset);
  }
  auto late = from_beginning(*topic);
  const std::uint64_t start = topic->info().partitions[0].start;
  std::uint64_t next = start;
  for (const std::string& line : drain(late)) ASSERT_EQ(std::stoull(line), next++);
  EXPECT_EQ(next, offset);
}

// Many small records in each segment; the reader reads after every 100 of them.
void run_small(const TestTopic& topic, std::uint64_t first_offset) {
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  for (std::uint64_t i = 0; i < 5000; ++i) {
    ASSERT_EQ(must(publisher.publish(std::to_string(i))), first_offset + i);
    if (i % 100 != 99) continue;
    std::uint64_t next = i - 99;
    must(subscriber.poll(1000, [&](const Record& record) {
      ASSERT_EQ(record.offset, first_offset + next);
      ASSERT_EQ(record.text(), std::to_string(next));
      ++next;
    }));
    ASSERT_EQ(next, i + 1);
  }
}

// Publishers die and leave holes on both sides of the wrap-around.
void run_deaths(const TestTopic& topic, std::uint64_t first_offset, int deaths) {
  auto subscriber = from_beginning(*topic);
  std::uint64_t offset = first_offset;
  for (int i = 0; i < deaths; ++i) {
    Child child{[&] {
      auto publisher = must(topic.open_again().publisher());
      must(publisher.publish(std::string(kThird, 'x')));
      auto claim = must(publisher.try_claim(kThird));
      ::_exit(0);
      return 1;
    }};
    ASSERT_EQ(child.join(), 0);
    ASSERT_EQ(read_until(subscriber, offset + 2),
              (Log{std::to_string(offset) + " " + std::string(kThird, 'x'),
                   std::to_string(offset + 1) + "+1 died"}));
    offset += 2;
  }
}

constexpr std::uint64_t kTruncatedBits = 44;  // In the claim word, with segments of 4 KiB.

TEST(WrapAround, TruncatedSegmentNumberOfTheClaimWord) {
  const std::uint64_t first = (1ULL << kTruncatedBits) - 10;
  {
    const TestTopic topic{{}, first, 0};
    ASSERT_EQ(topic.shared().geometry().claim_layout.segment_bits, kTruncatedBits);
    run_over(topic, 0, 40);
  }
  {
    const TestTopic topic{{}, first, 0};
    run_small(topic, 0);
  }
  {
    const TestTopic topic{{}, first, 0};
    run_deaths(topic, 0, 30);
  }
}

// The position repeats after 2^56 granules. With segments of 64 KiB their
// numbers are still small then.
TEST(WrapAround, PositionOfTheRecordTag) {
  const TestTopic topic{{.segment_bytes = 1 << 16}, (1ULL << 44) - 3, 0};
  ASSERT_EQ(topic.shared().geometry().segment_granules, 1u << 12);
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  for (std::uint64_t i = 0; i < 2000; ++i) {
    ASSERT_EQ(must(publisher.publish(std::string(1000, 'x'))), i);
    ASSERT_EQ(drain(subscriber), repeated(1, std::string(1000, 'x'), i));
  }
}

TEST(WrapAround, OffsetsOver32Bits) {
  const std::uint64_t first = (1ULL << 32) - 20;
  {
    const TestTopic topic{{}, 1, first};
    run_over(topic, first, 20);
  }
  {
    const TestTopic topic{{}, 1, first};
    run_small(topic, first);
  }
  {
    const TestTopic topic{{}, 1, first};
    run_deaths(topic, first, 15);
  }
}

TEST(WrapAround, OffsetsOver63Bits) {
  const std::uint64_t first = (1ULL << 63) - 20;
  const TestTopic topic{{}, 1, first};
  run_over(topic, first, 20);
}

// The number of wake-ups wraps around after 2^29; that must not change the lowest three bits.
TEST(WrapAround, WakeWords) {
  const TestTopic topic;
  detail::TopicHeader& header = topic.shared().header();
  detail::store_relaxed(header.data_wake, ~std::uint32_t{7} - 80);
  detail::store_relaxed(header.space_wake, ~std::uint32_t{7} - 80);
  std::jthread reader{[&] {
    auto subscriber = must(topic->subscriber({.from = From::beginning, .spin = 0ns}));
    for (std::uint64_t i = 0; i < 200; ++i) ASSERT_EQ(must(subscriber.receive(30s)).offset, i);
  }};
  while (topic->info().participants.empty()) std::this_thread::yield();
  auto publisher = must(topic->publisher());
  for (int i = 0; i < 100; ++i) {  // The reader is usually asleep.
    must(publisher.publish("x"));
    std::this_thread::sleep_for(100us);
  }
  for (int i = 0; i < 100; ++i) must(publisher.publish(std::string(kHalf, 'x'), 30s));
  reader.join();
  EXPECT_LT(detail::load_relaxed(header.data_wake), 4000u);
  EXPECT_EQ(detail::load_relaxed(header.data_wake) & detail::kDeleted, 0u);
  EXPECT_EQ(code(publisher.publish("x")), Errc::ok);
}

TEST(WrapAround, WakeWordsByHandMadeWakes) {
  const TestTopic topic;
  auto subscriber = from_beginning(*topic);
  detail::TopicHeader& header = topic.shared().header();
  detail::store_relaxed(header.data_wake, ~std::uint32_t{7} | detail::kSleeping);
  detail::MappedTopic::wake(header.data_wake);
  EXPECT_EQ(detail::load_relaxed(header.data_wake), 0u);
  detail::store_relaxed(header.data_wake, ~std::uint32_t{7});
  topic.shared().wake_everybody();
  EXPECT_EQ(detail::load_relaxed(header.data_wake), 0u);
}

// The position of a lock byte has 55 bits of the identity.
TEST(WrapAround, Identities) {
  const TestTopic topic;
  detail::store_relaxed(topic.shared().header().next_identity, (1ULL << 55) - 5);
  for (int i = 0; i < 20; ++i) {
    auto publisher = must(topic->publisher());
    auto subscriber = must(topic->subscriber());
    EXPECT_EQ(code(Topic::delete_topic(kTopicName, {.directory = topic.directory()})), Errc::busy);
    EXPECT_EQ(topic->info().participants.size(), 2u);
    must(publisher.publish("x"));
    EXPECT_EQ(must(subscriber.poll(10, kIgnore)), 1u);
  }
  Child child{[&] {
    auto publisher = must(topic.open_again().publisher());
    auto claim = must(publisher.try_claim(1));
    ::_exit(0);
    return 1;
  }};
  EXPECT_EQ(child.join(), 0);
  auto subscriber = must(topic->subscriber({.from = From::offset(20)}));
  EXPECT_EQ(read_until(subscriber, 21), Log{"20+1 died"});
}

TEST(WrapAround, PartitionsHandedOut) {
  const TestTopic topic{{.partitions = 3}};
  detail::store_relaxed(topic.shared().header().next_partition, ~std::uint32_t{0} - 2);
  for (int i = 0; i < 8; ++i) {
    auto publisher = must(topic->publisher());
    EXPECT_LT(publisher.partition(), 3u);
    must(publisher.publish("x"));
  }
}

// Segment numbers have 48 bits in the map, which is 1 EiB with the smallest segments. After that
// nothing can be published, but existing records stay readable.
TEST(WrapAround, SegmentNumbersEnd) {
  const std::uint64_t first = (1ULL << 48) - 20;
  const TestTopic topic{{.policy = Policy::fail}, first, 0};
  Child child{[&] {
    ::alarm(20);
    auto publisher = must(topic.open_again().publisher());
    auto subscriber = from_beginning(*topic);
    for (std::uint64_t i = 0; i < 40; ++i) {
      if (must(publisher.publish(std::string(kHalf, 'x'))) != i) return 1;
      if (drain(subscriber) != repeated(1, std::string(kHalf, 'x'), i)) return 2;
    }
    if (publisher.publish(std::string(kHalf, 'x'))) return 3;
    if (drain(subscriber) != Log{}) return 4;
    return 0;
  }};
  EXPECT_EQ(child.join(), 0);
}

}  // namespace
}  // namespace leat
