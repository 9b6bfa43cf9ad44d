// If this failed, offsets could be missing, a subscriber could read a record before it is complete,
// or two exclusive publishers could work at the same time.
#include "leat/publisher.hpp"

#include <array>
#include <atomic>

#include "leat/log/partitioner.hpp"
#include "testing.hpp"

namespace leat {
namespace {

TEST(Publisher, OffsetsAreDenseFromZeroOverManySegments) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    const std::string text = std::to_string(i) + std::string(i % 300, '.');
    ASSERT_EQ(must(publisher.publish(text)), i);
    if (i % 30 == 29) {
      std::uint64_t expected = i - 29;
      must(subscriber.poll(1000, [&](const Record& record) {
        ASSERT_EQ(record.offset, expected);
        ASSERT_EQ(record.text(), std::to_string(expected) + std::string(expected % 300, '.'));
        ++expected;
      }));
      ASSERT_EQ(expected, i + 1);
    }
  }
}

TEST(Publisher, EverySizeFromNothingToTheLimitArrivesWhole) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  EXPECT_EQ(publisher.max_record_size(), kHalf);
  for (std::size_t size = 0; size <= publisher.max_record_size(); ++size) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(size + i * 7);
    must(publisher.publish(text));
    const Record record = must(subscriber.receive(0s));
    ASSERT_EQ(record.offset, size);
    ASSERT_EQ(record.text(), text);
  }
}

TEST(Publisher, TooLargeChangesNothing) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const std::string text(publisher.max_record_size() + 1, 'x');
  EXPECT_EQ(code(publisher.publish(text)), Errc::too_large);
  EXPECT_EQ(code(publisher.publish({.key = "k", .value = kHalfText})), Errc::too_large);
  EXPECT_EQ(code(publisher.try_claim(text.size())), Errc::too_large);
  EXPECT_EQ(code(publisher.try_claim(~std::size_t{0})), Errc::too_large);
  EXPECT_EQ(must(publisher.publish("a")), 0u);
}

// As after a read() that failed: the size is -1. With what is added to it, it must not become small.
TEST(Publisher, ASizeThatWrapsIsTooLarge) {
  for (const bool timestamps : {false, true}) {
    const TestTopic topic{{.timestamps = timestamps}};
    auto publisher = must(topic->publisher());
    auto batch = must(publisher.batch());
    must(batch.add("a"));
    for (std::size_t size = ~std::size_t{0}; size != ~std::size_t{0} - 40; --size) {
      const Bytes huge{"x", size};
      const Header headers[] = {{"name", huge}, {"name", huge}, {"name", "value"}};
      EXPECT_EQ(code(publisher.try_claim(size)), Errc::too_large);
      EXPECT_EQ(code(publisher.publish(huge)), Errc::too_large);
      EXPECT_EQ(code(batch.add(huge)), Errc::too_large);
      for (const NewRecord& record :
           {NewRecord{.key = "k", .value = huge}, NewRecord{.key = huge, .value = "v"},
            NewRecord{.key = huge, .value = huge}, NewRecord{.headers = headers, .value = "v"}}) {
        EXPECT_EQ(code(publisher.publish(record)), Errc::too_large);
        EXPECT_EQ(code(batch.add(record)), Errc::too_large);
      }
    }
    EXPECT_EQ(must(publisher.publish("first")), 0U);
    EXPECT_EQ(batch.count(), 1U);
    EXPECT_EQ(must(batch.commit()), 1U);
  }
}

// --- Claims ------------------------------------------------------------------------------------

void fill(const Claim& claim, std::string_view text) {
  std::memcpy(claim.payload().data(), text.data(), text.size());
}

TEST(Publisher, ClaimIsWrittenInPlaceAndInvisibleUntilCommit) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  auto claim = must(publisher.try_claim(5));
  EXPECT_EQ(claim.payload().size(), 5u);
  EXPECT_EQ(claim.offset(), 0u);
  fill(claim, "hello");
  EXPECT_EQ(drain(subscriber), Log{});
  EXPECT_EQ(must(claim.commit()), 0u);
  EXPECT_EQ(drain(subscriber), Log{"0 hello"});
}

TEST(Publisher, CommitOfLessPublishesTheBeginning) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  for (const std::size_t size : {0U, 1U, 99U, 100U}) {
    auto claim = must(publisher.try_claim(100));
    fill(claim, std::string(100, 'x'));
    must(claim.commit(size));
  }
  must(publisher.publish("next"));
  EXPECT_EQ(drain(subscriber), (Log{"0 ", "1 x", "2 " + std::string(99, 'x'),
                                    "3 " + std::string(100, 'x'), "4 next"}));
}

TEST(Publisher, CommitOfMoreIsRefusedAndTheClaimStaysOpen) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto claim = must(publisher.try_claim(2));
  EXPECT_EQ(code(claim.commit(3)), Errc::invalid_argument);
  fill(claim, "ok");
  must(claim.commit(2));
  auto subscriber = from_beginning(*topic);
  EXPECT_EQ(drain(subscriber), Log{"0 ok"});
}

TEST(Publisher, AbortedAndDroppedClaimsAreGaps) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  must(publisher.publish("a"));
  EXPECT_EQ(must(must(publisher.try_claim(10)).abort()), 1u);
  {
    auto claim = must(publisher.try_claim(kHalf));
    auto moved = std::move(claim);
  }
  must(publisher.publish("b"));
  EXPECT_EQ(drain(subscriber), (Log{"0 a", "1+1 aborted", "2+1 aborted", "3 b"}));
}

TEST(Publisher, ClaimOfAParentIsNotTheChilds) {
  for (const bool exclusive : {false, true}) {
    const TestTopic topic;
    auto publisher = must(topic->publisher({.exclusive = exclusive}));
    auto subscriber = from_beginning(*topic);
    auto kept = must(publisher.try_claim(1));
    kept.payload()[0] = std::byte{'k'};
    Child drops{[&] {
      const auto dropped = std::move(kept);
      return 0;
    }};
    EXPECT_EQ(drops.join(), 0);
    Child commits{[&] { return code(kept.commit()) == Errc::forked ? 0 : 1; }};
    EXPECT_EQ(commits.join(), 0);
    EXPECT_EQ(code(kept.commit()), Errc::ok);
    EXPECT_EQ(drain(subscriber), Log{"0 k"});
  }
}

TEST(Publisher, OneOpenClaimAtATime) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto claim = must(publisher.try_claim(1));
  EXPECT_EQ(code(publisher.try_claim(1)), Errc::busy);
  EXPECT_EQ(code(publisher.publish("x")), Errc::busy);
  EXPECT_EQ(code(publisher.publish({.key = "k", .value = "x"})), Errc::busy);
  auto batch = must(publisher.batch());
  must(batch.add("x"));
  EXPECT_EQ(code(batch.commit()), Errc::busy);
  must(claim.abort());
  EXPECT_EQ(must(batch.commit()), 1u);
}

TEST(Publisher, ClaimSurvivesThatItsPublisherIsMoved) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto claim = must(publisher.try_claim(1));
  Publisher moved = std::move(publisher);
  EXPECT_EQ(code(moved.try_claim(1)), Errc::busy);
  fill(claim, "x");
  must(claim.commit());
  EXPECT_EQ(must(moved.publish("y")), 1u);
  auto subscriber = from_beginning(*topic);
  EXPECT_EQ(drain(subscriber), (Log{"0 x", "1 y"}));
}

TEST(Publisher, AssignedPublisherTakesTheOthersPlace) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  must(publisher.publish("a"));
  publisher = must(topic->publisher());
  must(publisher.publish("b"));
  EXPECT_EQ(topic->info().participants.size(), 1u);
  auto subscriber = from_beginning(*topic);
  EXPECT_EQ(drain(subscriber), (Log{"0 a", "1 b"}));
}

TEST(PublisherDeathTest, PublishingAClaimTwiceIsABug) {
  const TestTopic topic;  // Declared outside of EXPECT_DEATH, so that it is removed.
  EXPECT_DEATH(
      {
        auto publisher = must(topic->publisher());
        auto claim = must(publisher.try_claim(1));
        (void)claim.commit();
        (void)claim.commit();
      },
      "leat: bug");
}

// --- Exclusive ---------------------------------------------------------------------------------

TEST(ExclusivePublisher, IsTheOnlyOne) {
  const TestTopic topic;
  {
    auto exclusive = must(topic->publisher({.exclusive = true}));
    EXPECT_TRUE(exclusive.is_exclusive());
    EXPECT_EQ(code(topic->publisher({.exclusive = true})), Errc::busy);
    EXPECT_EQ(code(topic->publisher()), Errc::busy);
    EXPECT_EQ(must(exclusive.publish("a")), 0u);
  }
  {
    auto shared = must(topic->publisher());
    EXPECT_EQ(code(topic->publisher({.exclusive = true})), Errc::busy);
    EXPECT_EQ(must(shared.publish("b")), 1u);
  }
  auto exclusive = must(topic->publisher({.exclusive = true}));
  EXPECT_EQ(must(exclusive.publish("c")), 2u);
  auto subscriber = from_beginning(*topic);
  EXPECT_EQ(drain(subscriber), (Log{"0 a", "1 b", "2 c"}));
}

TEST(ExclusivePublisher, IsEveryOneOfASingleWriterTopic) {
  const TestTopic topic{{.single_writer = true}};
  auto publisher = must(topic->publisher());
  EXPECT_TRUE(publisher.is_exclusive());
  EXPECT_EQ(code(topic->publisher()), Errc::busy);
}

TEST(ExclusivePublisher, DeadOneIsSucceededAndItsOpenClaimIsAGap) {
  const TestTopic topic{{.partitions = 2}};
  for (const bool exclusive : {true, false}) {
    Child child{[&] {
      const Topic mine = topic.open_again();
      auto publisher = must(mine.publisher({.exclusive = true, .partition = 1}));
      must(publisher.publish("whole"));
      auto claim = must(publisher.try_claim(10));
      ::_exit(0);
      return 1;
    }};
    ASSERT_EQ(child.join(), 0);
    auto publisher = must(topic->publisher({.exclusive = exclusive, .partition = 1}));
    must(publisher.publish("next"));
  }
  auto subscriber = from_beginning(*topic);
  EXPECT_EQ(read_until(subscriber, 6, 1),
            (Log{"0 whole", "1+1 died", "2 next", "3 whole", "4+1 died", "5 next"}));
}

TEST(ExclusivePublisher, DoesEverythingASharedOneDoes) {
  const TestTopic topic{{.partitions = 2, .single_writer = true, .timestamps = true}};
  auto publisher = must(topic->publisher({.partition = 0}));
  auto subscriber = must(topic->subscriber({.from = From::beginning, .partition = 0}));
  for (std::uint64_t round = 0, offset = 0; round < 100; ++round, offset += 5) {
    ASSERT_EQ(must(publisher.publish("a")), offset);
    { auto claim = must(publisher.try_claim(100)); }
    auto batch = must(publisher.batch());
    must(batch.add("b"));
    must(batch.add({.key = "k", .value = "c"}));
    ASSERT_EQ(must(batch.commit()), offset + 2);
    ASSERT_EQ(must(publisher.publish({.key = "k", .value = kHalfText.substr(100), .partition = 0})),
              offset + 4);
    const auto at = [&](std::uint64_t i) { return std::to_string(offset + i); };
    ASSERT_EQ(drain(subscriber), (Log{at(0) + " a", at(1) + "+1 aborted", at(2) + " b",
                                      at(3) + " c", at(4) + " " + kHalfText.substr(100)}));
  }
}

// --- Key, headers, timestamps, partitions ------------------------------------------------------

TEST(Publisher, KeyAndHeadersArriveInPlace) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  const std::array<Header, 3> headers{{{"a", "1"}, {"", ""}, {"a", Bytes{"\0x", 2}}}};
  must(publisher.publish({.key = "key", .headers = headers, .value = "value"}));
  must(publisher.publish({.key = "", .value = ""}));
  must(publisher.publish({.headers = headers}));
  must(publisher.publish({.value = "plain"}));

  Record record = must(subscriber.receive(0s));
  EXPECT_TRUE(record.has_key);
  EXPECT_EQ(record.key.text(), "key");
  EXPECT_EQ(record.text(), "value");
  EXPECT_EQ(record.timestamp_ms, -1);
  std::size_t count = 0;
  for (const Header header : record.headers) {
    ASSERT_LT(count, headers.size());
    EXPECT_EQ(header.name, headers[count].name);
    EXPECT_EQ(header.value.text(), headers[count].value.text());
    ++count;
  }
  EXPECT_EQ(count, headers.size());

  record = must(subscriber.receive(0s));
  EXPECT_TRUE(record.has_key);
  EXPECT_EQ(record.key.text(), "");
  EXPECT_TRUE(record.headers.empty());
  record = must(subscriber.receive(0s));
  EXPECT_FALSE(record.has_key);
  EXPECT_FALSE(record.headers.empty());
  record = must(subscriber.receive(0s));
  EXPECT_FALSE(record.has_key);
  EXPECT_TRUE(record.headers.empty());
  EXPECT_EQ(record.text(), "plain");
}

TEST(Publisher, TimestampsAreThoseOfTheWallClock) {
  const TestTopic topic{{.timestamps = true}};
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  const std::int64_t before = detail::wall_clock_ms();
  must(publisher.publish("a"));
  must(publisher.publish({.key = "k", .value = "b"}));
  {
    auto claim = must(publisher.try_claim(1));
    fill(claim, "c");
    must(claim.commit());
  }
  const std::int64_t after = detail::wall_clock_ms();
  for (const char* text : {"a", "b", "c"}) {
    const Record record = must(subscriber.receive(0s));
    EXPECT_EQ(record.text(), text);
    EXPECT_GE(record.timestamp_ms, before);
    EXPECT_LE(record.timestamp_ms, after);
  }
}

TEST(Publisher, TimestampsTakeFromTheLimit) {
  const TestTopic topic{{.timestamps = true}};
  auto publisher = must(topic->publisher());
  EXPECT_EQ(code(publisher.publish(kHalfText)), Errc::too_large);
  EXPECT_EQ(code(publisher.try_claim(kHalf)), Errc::too_large);
  EXPECT_EQ(code(publisher.publish(kHalfText.substr(8))), Errc::ok);
}

TEST(Publisher, KeyChoosesThePartitionAsKafkaDoes) {
  constexpr std::uint32_t kPartitions = 7;
  const TestTopic topic{{.partitions = kPartitions}};
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  for (int i = 0; i < 200; ++i) {
    const std::string key = "key-" + std::to_string(i);
    must(publisher.publish({.key = key, .value = "v"}));
    const Record record = must(subscriber.receive(0s));
    EXPECT_EQ(record.partition, detail::partition_for_key(Bytes{key}, kPartitions)) << key;
    EXPECT_EQ(record.key.text(), key);
  }
}

TEST(Publisher, WithoutAKeyEachHasAPartitionOfItsOwn) {
  const TestTopic topic{{.partitions = 3}};
  std::vector<Publisher> publishers;
  std::vector<int> used(3);
  for (int i = 0; i < 3; ++i) {
    publishers.push_back(must(topic->publisher()));
    ++used[publishers.back().partition()];
    for (int j = 0; j < 5; ++j) must(publishers.back().publish("x"));
  }
  EXPECT_EQ(used, (std::vector<int>{1, 1, 1}));
  for (const PartitionInfo& partition : topic->info().partitions) EXPECT_EQ(partition.end, 5u);
}

TEST(Publisher, PartitionNamedByTheCallerWins) {
  const TestTopic topic{{.partitions = 3}};
  EXPECT_EQ(code(topic->publisher({.partition = 3})), Errc::invalid_argument);
  auto publisher = must(topic->publisher({.partition = 1}));
  EXPECT_EQ(publisher.partition(), 1u);
  must(publisher.publish("x"));
  must(publisher.publish({.key = "any", .value = "x", .partition = 2}));
  EXPECT_EQ(code(publisher.publish({.value = "x", .partition = 3})), Errc::invalid_argument);
  const TopicInfo info = topic->info();
  EXPECT_EQ(info.partitions[0].end, 0u);
  EXPECT_EQ(info.partitions[1].end, 1u);
  EXPECT_EQ(info.partitions[2].end, 1u);
}

TEST(Publisher, InheritedHandleIsRefused) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  must(publisher.publish("a"));
  Child child{[&] {
    if (code(publisher.publish("b")) != Errc::forked) return 1;
    if (code(publisher.publish({.key = "k", .value = "b"})) != Errc::forked) return 2;
    if (code(publisher.try_claim(1)) != Errc::forked) return 3;
    auto batch = must(publisher.batch());
    must(batch.add("b"));
    if (code(batch.commit()) != Errc::forked) return 4;
    must(must(topic->publisher()).publish("child"));  // The child's own handle.
    { const auto dropped = std::move(publisher); }    // Must not free the parent's slot.
    return 0;
  }};
  EXPECT_EQ(child.join(), 0);
  EXPECT_EQ(topic->info().participants.size(), 1u);
  must(publisher.publish("c"));
  auto subscriber = from_beginning(*topic);
  EXPECT_EQ(drain(subscriber), (Log{"0 a", "1 child", "2 c"}));
}

// A child that survives must not keep its dead parent's lock.
TEST(Publisher, DeadParentIsDeadThoughItsChildLives) {
  const TestTopic topic;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Child parent{[&] {
    auto publisher = must(topic.open_again().publisher());
    auto claim = must(publisher.try_claim(1));
    if (::fork() == 0) {
      ::close(ends[1]);
      char byte = 0;
      (void)!::read(ends[0], &byte, 1);  // Waits until the test closes the pipe.
      ::_exit(0);
    }
    ::_exit(0);
    return 1;
  }};
  EXPECT_EQ(parent.join(), 0);
  auto publisher = must(topic->publisher());
  must(publisher.publish("x"));
  auto subscriber = from_beginning(*topic);
  EXPECT_EQ(read_until(subscriber, 2), (Log{"0+1 died", "1 x"}));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Publisher, TopicHasRoomForAsManyAsItWasMadeFor) {
  const TestTopic topic{{.participants = 3}};
  std::vector<Publisher> publishers;
  for (int i = 0; i < 3; ++i) publishers.push_back(must(topic->publisher()));
  EXPECT_EQ(code(topic->publisher()), Errc::too_many);
  EXPECT_EQ(code(topic->subscriber()), Errc::too_many);
  publishers.pop_back();
  EXPECT_EQ(code(topic->subscriber()), Errc::ok);
}

TEST(Publisher, PlacesOfTheDeadAreTakenOver) {
  const TestTopic topic{{.participants = 2}};
  for (int i = 0; i < 5; ++i) {
    Child child{[&] {
      auto first = must(topic.open_again().publisher());
      auto second = must(topic.open_again().publisher());
      auto claim = must(second.try_claim(1));
      ::_exit(0);
      return 1;
    }};
    ASSERT_EQ(child.join(), 0);
  }
  auto publisher = must(topic->publisher());
  must(publisher.publish("x"));
  auto subscriber = from_beginning(*topic);
  EXPECT_EQ(read_until(subscriber, 6),
            (Log{"0+1 died", "1+1 died", "2+1 died", "3+1 died", "4+1 died", "5 x"}));
}

}  // namespace
}  // namespace leat
