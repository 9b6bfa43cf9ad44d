// If this failed, subscribers could see part of a batch, or a batch's records
// could be lost or mixed with others.
#include "testing.hpp"

namespace leat {
namespace {

// By publishers that collect batches in memory, and by exclusive ones, which collect them in the log.
class Batches : public ::testing::TestWithParam<bool> {
 protected:
  static Publisher publisher_of(const TestTopic& topic, PublisherOptions options = {}) {
    options.exclusive = GetParam();
    return must(topic->publisher(options));
  }
};
INSTANTIATE_TEST_SUITE_P(Each, Batches, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "InTheLog" : "InMemory"; });

TEST_P(Batches, TwoOfOnePublisherDoNotMix) {
  const TestTopic topic{{.partitions = 2}};
  auto publisher = publisher_of(topic);
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

TEST_P(Batches, RecordForAnotherPartitionIsRefused) {
  const TestTopic topic{{.partitions = 2}};
  auto publisher = publisher_of(topic);
  auto batch = must(publisher.batch(1));
  EXPECT_EQ(code(batch.add(NewRecord{.value = "x", .partition = 0})), Errc::invalid_argument);
  EXPECT_EQ(code(batch.add(NewRecord{.value = "x", .partition = 1})), Errc::ok);
}

TEST_P(Batches, BecomesVisibleAllAtOnceWithOffsetsInARow) {
  const TestTopic topic;
  auto publisher = publisher_of(topic);
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

TEST_P(Batches, EmptyIsRefused) {
  const TestTopic topic;
  auto publisher = publisher_of(topic);
  EXPECT_EQ(code(must(publisher.batch()).commit()), Errc::invalid_argument);
  EXPECT_EQ(must(publisher.publish("x")), 0u);
}

TEST_P(Batches, DroppedTakesNoOffset) {
  const TestTopic topic;
  auto publisher = publisher_of(topic);
  {
    auto batch = must(publisher.batch());
    must(batch.add("x"));
  }
  EXPECT_EQ(must(publisher.publish("y")), 0u);
}

TEST_P(Batches, TooLargeKeepsWhatWasAdded) {
  const TestTopic topic;
  auto publisher = publisher_of(topic);
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

TEST_P(Batches, OfTheMostAndSmallestRecordsFits) {
  const TestTopic topic;
  auto publisher = publisher_of(topic);
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

TEST_P(Batches, CarriesKeysAndHeaders) {
  const TestTopic topic{{.timestamps = true}};
  auto publisher = publisher_of(topic);
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

TEST_P(Batches, GoesToThePartitionNamed) {
  const TestTopic topic{{.partitions = 3}};
  auto publisher = publisher_of(topic, {.partition = 0});
  EXPECT_EQ(code(publisher.batch(3)), Errc::invalid_argument);
  auto batch = must(publisher.batch(2));
  must(batch.add("x"));
  must(batch.commit());
  EXPECT_EQ(topic->info().partitions[2].end, 1u);
}

TEST_P(Batches, IsKeptWhenThereIsNoRoom) {
  const TestTopic topic{{.capacity_bytes = 2 * kSegment, .policy = Policy::fail}};
  auto publisher = publisher_of(topic);
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

TEST_P(Batches, IsKeptWhenItsWaitIsStopped) {
  const TestTopic topic{{.capacity_bytes = 2 * kSegment}};
  auto publisher = publisher_of(topic);
  std::optional<Subscriber> subscriber;
  std::jthread{[&] {  // Not this thread's, so that waiting for it makes sense.
    subscriber = from_beginning(*topic);
    EXPECT_EQ(code(subscriber->wait(0s)), Errc::timeout);
    EXPECT_EQ(drain(*subscriber), Log{});
  }}
      .join();
  std::uint64_t published = 0;
  while (publisher.publish(kHalfText, Deadline::immediate())) ++published;
  auto batch = must(publisher.batch());
  must(batch.add("a"));
  must(batch.add("b"));
  std::stop_source source;
  {
    std::jthread stopper{[&] {
      std::this_thread::sleep_for(10ms);
      source.request_stop();
    }};
    EXPECT_EQ(code(batch.commit(Deadline::never(), source.get_token())), Errc::stopped);
  }
  EXPECT_EQ(code(batch.commit(30s, source.get_token())), Errc::stopped);  // It stays so.
  EXPECT_EQ(batch.count(), 2u);
  (void)drain(*subscriber);
  EXPECT_EQ(must(batch.commit(30s, source.get_token())),
            published);  // If there is room, nothing waits.
  EXPECT_EQ(drain(*subscriber),
            (Log{std::to_string(published) + " a", std::to_string(published + 1) + " b"}));
}

// What the publisher does with the room that a batch has borrowed must not reach the batch, nor the
// other way round.
TEST_P(Batches, StaysWholeWhenThePublisherPublishesInBetween) {
  const TestTopic topic{{.capacity_bytes = 4 * kSegment}};
  auto publisher = publisher_of(topic);
  auto subscriber = from_beginning(*topic);
  must(publisher.publish("0"));  // Enters the first segment.
  auto batch = must(publisher.batch());
  must(batch.add("a"));
  must(publisher.publish("in between"));
  must(batch.add("b"));
  must(publisher.publish("and again"));
  must(batch.add("c"));
  EXPECT_EQ(drain(subscriber), (Log{"0 0", "1 in between", "2 and again"}));
  EXPECT_EQ(must(batch.commit()), 3u);
  EXPECT_EQ(drain(subscriber), (Log{"3 a", "4 b", "5 c"}));
}

TEST_P(Batches, StaysWholeBesideAnOpenClaim) {
  const TestTopic topic{{.capacity_bytes = 4 * kSegment}};
  auto publisher = publisher_of(topic);
  auto subscriber = from_beginning(*topic);
  auto claim = must(publisher.try_claim(100));
  std::fill(claim.payload().begin(), claim.payload().end(), std::byte{'x'});
  auto batch = must(publisher.batch());
  must(batch.add("a"));
  EXPECT_EQ(code(batch.commit()), Errc::busy);
  EXPECT_EQ(batch.count(), 1u);
  must(claim.commit(1));
  must(batch.add("b"));
  EXPECT_EQ(must(batch.commit()), 1u);
  must(batch.add("c"));
  auto second = must(publisher.try_claim(1));  // Claimed while a batch has borrowed the room.
  must(batch.add("d"));
  must(second.abort());
  EXPECT_EQ(must(batch.commit()), 4u);
  EXPECT_EQ(drain(subscriber), (Log{"0 x", "1 a", "2 b", "3+1 aborted", "4 c", "5 d"}));
}

TEST_P(Batches, SeveralAtOnceStayApart) {
  const TestTopic topic{{.capacity_bytes = 4 * kSegment}};
  auto publisher = publisher_of(topic);
  auto subscriber = from_beginning(*topic);
  must(publisher.publish("0"));
  auto one = must(publisher.batch());
  must(one.add("a"));
  auto two = must(publisher.batch());
  must(two.add("x"));
  must(one.add("b"));
  must(two.add("y"));
  must(two.commit());
  must(one.add("c"));
  auto moved = std::move(one);
  must(moved.add("d"));
  must(moved.commit());
  EXPECT_EQ(drain(subscriber), (Log{"0 0", "1 x", "2 y", "3 a", "4 b", "5 c", "6 d"}));
}

TEST_P(Batches, DroppedOrMovedLeavesThePublisherItsRoom) {
  const TestTopic topic{{.capacity_bytes = 4 * kSegment}};
  auto publisher = publisher_of(topic);
  auto subscriber = from_beginning(*topic);
  must(publisher.publish("0"));
  {
    auto dropped = must(publisher.batch());
    for (int i = 0; i < 20; ++i) must(dropped.add("dropped"));
    auto moved = std::move(dropped);
    must(moved.add("dropped, too"));
  }
  for (const char* text : {"1", "2", "3"}) must(publisher.publish(text));
  EXPECT_EQ(drain(subscriber), (Log{"0 0", "1 1", "2 2", "3 3"}));
}

// Of every size, from every place in the segment.
TEST_P(Batches, FitsOrMovesOnAtTheEndOfASegment) {
  const TestTopic topic{{.capacity_bytes = 4 * kSegment}};
  auto publisher = publisher_of(topic);
  auto subscriber = from_beginning(*topic);
  std::mt19937 random{1};
  std::uint64_t offset = 0;
  for (int round = 0; round < 2000; ++round) {
    Log expected;
    if (random() % 2 == 0) {
      must(publisher.publish("single"));
      expected.push_back(std::to_string(offset++) + " single");
    }
    auto batch = must(publisher.batch());
    std::vector<std::string> texts;
    const std::size_t size = random() % 120;
    for (std::size_t i = random() % 40; i != 0; --i) {
      const std::string text(random() % (size + 1), static_cast<char>('a' + i % 26));
      if (!batch.add(text)) break;  // Too large.
      texts.push_back(text);
    }
    if (random() % 4 == 0) {
      must(publisher.publish("between"));
      expected.push_back(std::to_string(offset++) + " between");
    }
    if (!texts.empty()) {
      ASSERT_EQ(must(batch.commit()), offset);
    }
    for (const std::string& text : texts) expected.push_back(std::to_string(offset++) + " " + text);
    ASSERT_EQ(drain(subscriber), expected) << round;
  }
}

TEST_P(Batches, OfAChildProcessDoesNotReachTheLog) {
  const TestTopic topic{{.capacity_bytes = 4 * kSegment}};
  auto publisher = publisher_of(topic);
  auto subscriber = from_beginning(*topic);
  must(publisher.publish("0"));
  auto batch = must(publisher.batch());
  must(batch.add("parent"));
  const pid_t child = ::fork();
  if (child == 0) {
    const bool added = batch.add("child").has_value();
    ::_exit(added && code(batch.commit()) == Errc::forked ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  must(batch.add("parent again"));
  must(batch.commit());
  EXPECT_EQ(drain(subscriber), (Log{"0 0", "1 parent", "2 parent again"}));
}

TEST_P(Batches, IsKeptWhenTheLimitIsReached) {
  const TestTopic topic{{.capacity_bytes = 4 * kSegment}};
  std::uint64_t limit = 2;
  auto publisher = publisher_of(topic, {.offset_limit = [&] { return limit; }});
  auto subscriber = from_beginning(*topic);
  must(publisher.publish("0"));
  auto batch = must(publisher.batch());
  must(batch.add("a"));
  must(batch.add("b"));
  EXPECT_NE(code(batch.commit(Deadline::immediate())), Errc::ok);
  EXPECT_EQ(batch.count(), 2u);
  limit = 10;
  topic->recheck_offset_limits();
  EXPECT_EQ(must(batch.commit()), 1u);
  EXPECT_EQ(drain(subscriber), (Log{"0 0", "1 a", "2 b"}));
}

TEST_P(Batches, IsKeptWhenTheLimitThrows) {
  const TestTopic topic{{.capacity_bytes = 4 * kSegment}};
  bool is_broken = false;
  auto publisher = publisher_of(topic, {.offset_limit = [&]() -> std::uint64_t {
                                  if (is_broken) throw std::runtime_error{"no limit"};
                                  return 10;
                                }});
  auto subscriber = from_beginning(*topic);
  must(publisher.publish("0"));
  auto batch = must(publisher.batch());
  must(batch.add("a"));
  must(batch.add("b"));
  is_broken = true;
  topic->recheck_offset_limits();
  EXPECT_THROW((void)batch.commit(), std::runtime_error);
  is_broken = false;
  must(publisher.publish("in between, and longer than the batch"));
  must(batch.add("c"));
  EXPECT_EQ(must(batch.commit()), 2u);
  EXPECT_EQ(drain(subscriber),
            (Log{"0 0", "1 in between, and longer than the batch", "2 a", "3 b", "4 c"}));
}

TEST_P(Batches, MayBeAddedToByTheLimitOfAnother) {
  const TestTopic topic{{.capacity_bytes = 4 * kSegment}};
  std::optional<Batch> notes;
  auto publisher = publisher_of(topic, {.offset_limit = [&]() -> std::uint64_t {
                                  if (notes) must(notes->add("the limit was asked for"));
                                  return notes ? 10 : 1;
                                }});
  auto subscriber = from_beginning(*topic);
  must(publisher.publish("0"));
  auto batch = must(publisher.batch());
  must(batch.add("a"));
  notes.emplace(must(publisher.batch()));
  EXPECT_EQ(must(batch.commit()), 1u);
  EXPECT_EQ(must(notes->commit()), 2u);
  EXPECT_EQ(drain(subscriber), (Log{"0 0", "1 a", "2 the limit was asked for"}));
  notes.reset();  // No batch outlives its publisher.
}

TEST_P(Batches, DoesNotHinderAPublisherThatIsMoved) {
  const TestTopic topic{{.capacity_bytes = 4 * kSegment}};
  auto publisher = publisher_of(topic);
  auto subscriber = from_beginning(*topic);
  must(publisher.publish("0"));
  {
    auto batch = must(publisher.batch());
    must(batch.add("dropped"));
    auto moved = std::move(publisher);
    must(moved.publish("1"));
    must(batch.add("dropped, too"));
    publisher = std::move(moved);
  }
  {
    auto batch = must(publisher.batch());
    must(batch.add("dropped"));
    auto moved = std::move(publisher);
    { auto dropped = std::move(batch); }
    must(moved.publish("2"));
    publisher = std::move(moved);
  }
  auto batch = must(publisher.batch());
  must(batch.add("a"));
  auto moved = std::move(publisher);
  must(moved.publish("3"));
  publisher = std::move(moved);
  must(batch.add("b"));
  EXPECT_EQ(must(batch.commit()), 4u);
  EXPECT_EQ(drain(subscriber), (Log{"0 0", "1 1", "2 2", "3 3", "4 a", "5 b"}));
}

}  // namespace
}  // namespace leat
