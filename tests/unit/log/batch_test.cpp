// If this failed, subscribers could see part of a batch, or a batch's records
// could be lost or mixed with others.
#include "testing.hpp"

namespace leat {
namespace {

TEST(Batch, TwoOfOnePublisherDoNotMix) {
  const TestTopic topic{{.partitions = 2}};
  auto publisher = must(topic->publisher());
  auto zero = must(publisher.batch(0));
  auto one = must(publisher.batch(1));
  must(zero.add("zero"));
  must(one.add("one"));
  must(zero.add("zero again"));
  (void)must(zero.commit());
  (void)must(one.commit());
  auto first = must(topic->subscriber({.from = From::beginning, .partition = 0}));
  auto second = must(topic->subscriber({.from = From::beginning, .partition = 1}));
  EXPECT_EQ(drain(first), (Log{"0 zero", "1 zero again"}));
  EXPECT_EQ(drain(second), (Log{"0 one"}));
}

TEST(Batch, RecordForAnotherPartitionIsRefused) {
  const TestTopic topic{{.partitions = 2}};
  auto publisher = must(topic->publisher());
  auto batch = must(publisher.batch(1));
  EXPECT_EQ(code(batch.add(NewRecord{.value = "x", .partition = 0})), Errc::invalid_argument);
  EXPECT_EQ(code(batch.add(NewRecord{.value = "x", .partition = 1})), Errc::ok);
}

TEST(Batch, BecomesVisibleAllAtOnceWithOffsetsInARow) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  must(publisher.publish("first"));
  auto batch = must(publisher.batch());
  for (const char* text : {"a", "", "ccc"}) must(batch.add(text));
  EXPECT_EQ(batch.count(), 3u);
  EXPECT_EQ(drain(subscriber), Log{"0 first"});
  EXPECT_EQ(must(batch.commit()), 1u);
  EXPECT_EQ(batch.count(), 0u);
  EXPECT_EQ(drain(subscriber), (Log{"1 a", "2 ", "3 ccc"}));

  must(batch.add("again"));
  EXPECT_EQ(must(batch.commit()), 4u);
  EXPECT_EQ(drain(subscriber), Log{"4 again"});
}

TEST(Batch, EmptyIsRefused) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  EXPECT_EQ(code(must(publisher.batch()).commit()), Errc::invalid_argument);
  EXPECT_EQ(must(publisher.publish("x")), 0u);
}

TEST(Batch, DroppedTakesNoOffset) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  {
    auto batch = must(publisher.batch());
    must(batch.add("x"));
  }
  EXPECT_EQ(must(publisher.publish("y")), 0u);
}

TEST(Batch, TooLargeKeepsWhatWasAdded) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto batch = must(publisher.batch());
  EXPECT_EQ(code(batch.add(kHalfText)), Errc::too_large);  // The record's frame needs room, too.
  std::uint64_t added = 0;
  while (batch.add("0123456789")) ++added;
  EXPECT_EQ(added, (kHalf - sizeof(detail::BatchHeader)) / 16);
  EXPECT_EQ(batch.count(), added);
  must(batch.commit());
  auto subscriber = from_beginning(*topic);
  EXPECT_EQ(drain(subscriber), repeated(added, "0123456789"));
}

TEST(Batch, OfTheMostAndSmallestRecordsFits) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  for (std::uint64_t round = 0, offset = 0; round < 20; ++round) {
    auto batch = must(publisher.batch());
    std::uint64_t added = 0;
    while (batch.add("")) ++added;
    ASSERT_EQ(added, (kHalf - 8) / 8);
    ASSERT_EQ(must(batch.commit()), offset);
    ASSERT_EQ(drain(subscriber), repeated(added, "", offset));
    offset += added;
  }
}

TEST(Batch, CarriesKeysAndHeaders) {
  const TestTopic topic{{.timestamps = true}};
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  const std::array<Header, 1> headers{{{"name", "value"}}};
  auto batch = must(publisher.batch());
  must(batch.add({.key = "k", .headers = headers, .value = "v"}));
  must(batch.add("plain"));
  must(batch.commit());
  Record record = must(subscriber.receive(0s));
  EXPECT_EQ(record.key.text(), "k");
  EXPECT_EQ(record.text(), "v");
  EXPECT_GT(record.timestamp_ms, 0);
  ASSERT_FALSE(record.headers.empty());
  EXPECT_EQ((*record.headers.begin()).name, "name");
  record = must(subscriber.receive(0s));
  EXPECT_FALSE(record.has_key);
  EXPECT_EQ(record.text(), "plain");
}

TEST(Batch, GoesToThePartitionNamed) {
  const TestTopic topic{{.partitions = 3}};
  auto publisher = must(topic->publisher({.partition = 0}));
  EXPECT_EQ(code(publisher.batch(3)), Errc::invalid_argument);
  auto batch = must(publisher.batch(2));
  must(batch.add("x"));
  must(batch.commit());
  EXPECT_EQ(topic->info().partitions[2].end, 1u);
}

TEST(Batch, IsKeptWhenThereIsNoRoom) {
  const TestTopic topic{{.capacity_bytes = 2 * kSegment, .policy = Policy::fail}};
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  std::uint64_t published = 0;
  while (publisher.publish(kHalfText)) ++published;
  auto batch = must(publisher.batch());
  must(batch.add("a"));
  must(batch.add("b"));
  EXPECT_EQ(code(batch.commit()), Errc::full);
  EXPECT_EQ(batch.count(), 2u);
  (void)drain(subscriber);
  EXPECT_EQ(must(batch.commit()), published);
  EXPECT_EQ(drain(subscriber),
            (Log{std::to_string(published) + " a", std::to_string(published + 1) + " b"}));
}

}  // namespace
}  // namespace leat
