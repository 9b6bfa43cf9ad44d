// If this failed, a subscriber could miss records, get some twice, or begin at the wrong one.
#include "leat/subscriber.hpp"

#include <poll.h>

#include <map>

#include "testing.hpp"

namespace leat {
namespace {

TEST(Subscriber, PollDeliversUpToItsLimitOldestFirst) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  for (int i = 0; i < 5; ++i) must(publisher.publish("x"));
  EXPECT_EQ(must(subscriber.poll(0, kIgnore)), 0u);
  EXPECT_EQ(subscriber.offset(), 0u);
  EXPECT_EQ(must(subscriber.poll(2, kIgnore)), 2u);
  EXPECT_EQ(subscriber.offset(), 2u);
  EXPECT_EQ(drain(subscriber, 2), repeated(3, "x", 2));
  EXPECT_EQ(must(subscriber.poll(2, kIgnore)), 0u);
}

TEST(Subscriber, PollStopsInTheMiddleOfABatch) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  for (const std::size_t limit : {1U, 2U, 3U, 7U}) {
    auto subscriber = must(topic->subscriber());
    const std::uint64_t first = subscriber.offset();
    auto batch = must(publisher.batch());
    for (int i = 0; i < 10; ++i) must(batch.add(std::to_string(i)));
    must(batch.commit());
    must(publisher.publish("after"));
    Log expected;
    for (std::uint64_t i = 0; i < 10; ++i)
      expected.push_back(std::to_string(first + i) + " " + std::to_string(i));
    expected.push_back(std::to_string(first + 10) + " after");
    EXPECT_EQ(drain(subscriber, limit), expected) << "limit " << limit;
  }
}

TEST(Subscriber, EveryOneGetsEverything) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  std::vector<Subscriber> subscribers;
  for (int i = 0; i < 5; ++i) subscribers.push_back(from_beginning(*topic));
  for (std::uint64_t round = 0; round < 50; ++round) {
    for (int i = 0; i < 7; ++i) must(publisher.publish(std::string(100, 'x')));
    for (auto& subscriber : subscribers)
      ASSERT_EQ(drain(subscriber, 3), repeated(7, std::string(100, 'x'), round * 7));
  }
}

// --- Where to begin ----------------------------------------------------------------------------

TEST(Subscriber, FromEndGetsOnlyWhatIsClaimedLater) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto other = must(topic->publisher());
  for (int i = 0; i < 20; ++i) must(publisher.publish(kHalfText));
  auto claim = must(other.try_claim(3));  // Claimed before; committed later.
  auto subscriber = must(topic->subscriber());
  EXPECT_EQ(subscriber.offset(), 21u);
  must(claim.commit());
  must(publisher.publish("new"));
  EXPECT_EQ(drain(subscriber), Log{"21 new"});
}

TEST(Subscriber, FromBeginningStartsAtTheOldestStillThere) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  for (int i = 0; i < 100; ++i) must(publisher.publish(kHalfText));
  const std::uint64_t start = topic->info().partitions[0].start;
  EXPECT_GT(start, 80u);
  auto subscriber = from_beginning(*topic);
  EXPECT_EQ(drain(subscriber), repeated(100 - start, kHalfText, start));
}

TEST(Subscriber, FromOffsetStartsThere) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  for (int i = 0; i < 20; ++i) must(publisher.publish(std::string(300, 'x')));
  for (std::uint64_t offset = 0; offset < 20; ++offset) {
    auto subscriber = must(topic->subscriber({.from = From::offset(offset)}));
    EXPECT_EQ(drain(subscriber), repeated(20 - offset, std::string(300, 'x'), offset));
  }
}

TEST(Subscriber, FromOffsetInsideABatchStartsThere) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto batch = must(publisher.batch());
  for (int i = 0; i < 5; ++i) must(batch.add("x"));
  must(batch.commit());
  for (const bool gating : {true, false}) {
    auto subscriber = must(topic->subscriber({.from = From::offset(3), .gating = gating}));
    EXPECT_EQ(drain(subscriber), repeated(2, "x", 3));
  }
}

TEST(Subscriber, FromOffsetOfAGapReportsTheRestOfIt) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  { auto claim = must(publisher.try_claim(1)); }
  { auto claim = must(publisher.try_claim(1)); }
  must(publisher.publish("x"));
  auto subscriber = must(topic->subscriber({.from = From::offset(1)}));
  EXPECT_EQ(drain(subscriber), (Log{"1+1 aborted", "2 x"}));
}

TEST(Subscriber, FromOffsetBelowTheOldestReportsTheGap) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  for (int i = 0; i < 20; ++i) must(publisher.publish(kHalfText));
  const std::uint64_t start = topic->info().partitions[0].start;
  ASSERT_GT(start, 3u);
  auto subscriber = must(topic->subscriber({.from = From::offset(3)}));
  Log expected{"3+" + std::to_string(start - 3) + " overwritten"};
  for (std::uint64_t i = start; i < 20; ++i)
    expected.push_back(std::to_string(i) + " " + kHalfText);
  EXPECT_EQ(drain(subscriber), expected);
}

TEST(Subscriber, FromOffsetAheadOfTheEndWaitsForIt) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = must(topic->subscriber({.from = From::offset(20)}));
  for (int i = 0; i < 22; ++i) {
    must(publisher.publish(std::string(500, 'x')));
    { auto claim = must(publisher.try_claim(1)); }
    if (i < 10) {
      EXPECT_EQ(drain(subscriber), Log{}) << i;
    }
    if (i == 10) {
      EXPECT_EQ(drain(subscriber), (Log{"20 " + std::string(500, 'x'), "21+1 aborted"}));
    }
    if (i > 10) (void)drain(subscriber);
  }
}

TEST(Subscriber, FromLastStartsSoManyBeforeTheEndOfEachPartition) {
  const TestTopic topic{{.partitions = 2}};
  for (std::uint32_t partition = 0; partition < 2; ++partition) {
    auto publisher = must(topic->publisher({.partition = partition}));
    for (std::uint32_t i = 0; i < 4 + 2 * partition; ++i) must(publisher.publish("x"));
  }
  const auto offsets = [&](std::uint64_t count) {
    auto subscriber = must(topic->subscriber({.from = From::last(count)}));
    return std::pair{subscriber.offset(0), subscriber.offset(1)};
  };
  EXPECT_EQ(offsets(0), std::pair(4UL, 6UL));
  EXPECT_EQ(offsets(3), std::pair(1UL, 3UL));
  EXPECT_EQ(offsets(5), std::pair(0UL, 1UL));
  EXPECT_EQ(offsets(100), std::pair(0UL, 0UL));
  auto subscriber = must(topic->subscriber({.from = From::last(2), .partition = 1}));
  EXPECT_EQ(drain(subscriber), repeated(2, "x", 4));
}

TEST(Subscriber, FromLastOfMoreThanThereIsReportsNoGap) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  for (int i = 0; i < 20; ++i) must(publisher.publish(kHalfText));
  const std::uint64_t start = topic->info().partitions[0].start;
  ASSERT_GT(start, 0u);
  auto subscriber = must(topic->subscriber({.from = From::last(1000)}));
  EXPECT_EQ(drain(subscriber), repeated(20 - start, kHalfText, start));
}

TEST(Subscriber, FromTimeStartsAtTheFirstRecordThatIsNotOlder) {
  const TestTopic topic{{.timestamps = true}};
  auto publisher = must(topic->publisher());
  for (int i = 0; i < 5; ++i) must(publisher.publish("old"));
  { auto claim = must(publisher.try_claim(1)); }
  std::this_thread::sleep_for(5ms);
  const std::int64_t time = detail::wall_clock_ms();
  for (int i = 0; i < 5; ++i) must(publisher.publish("new"));
  for (const bool gating : {true, false}) {
    auto subscriber = must(topic->subscriber({.from = From::time_ms(time), .gating = gating}));
    EXPECT_EQ(drain(subscriber), repeated(5, "new", 6));
  }
  auto all = must(topic->subscriber({.from = From::time_ms(0)}));
  EXPECT_EQ(drain(all).back(), "10 new");
  auto none = must(topic->subscriber({.from = From::time_ms(time + 1'000'000)}));
  EXPECT_EQ(drain(none), Log{});
}

// As when the clock of a publisher was set back by an hour after the subscriber had read it.
TEST(Subscriber, FromTimeGetsWhatIsPublishedLaterWhateverItsTime) {
  for (const bool gating : {true, false}) {
    const TestTopic topic{{.timestamps = true}};
    auto publisher = must(topic->publisher());
    for (int i = 0; i < 5; ++i) must(publisher.publish("old"));
    const std::int64_t later = detail::wall_clock_ms() + 3'600'000;
    auto subscriber = must(topic->subscriber({.from = From::time_ms(later), .gating = gating}));
    EXPECT_EQ(drain(subscriber), Log{});
    for (int i = 0; i < 2; ++i) must(publisher.publish("new"));
    { auto claim = must(publisher.try_claim(1)); }
    must(publisher.publish("new"));
    EXPECT_EQ(drain(subscriber), (Log{"5 new", "6 new", "7+1 aborted", "8 new"}));
  }
}

TEST(Subscriber, OptionsThatCannotBeAreRefused) {
  const TestTopic plain{{.partitions = 2}};
  EXPECT_EQ(code(plain->subscriber({.partition = 2})), Errc::invalid_argument);
  EXPECT_EQ(code(plain->subscriber({.from = From::offset(1)})), Errc::invalid_argument);
  EXPECT_EQ(code(plain->subscriber({.from = From::offset(1), .partition = 1})), Errc::ok);
  EXPECT_EQ(code(plain->subscriber({.from = From::time_ms(1)})), Errc::needs_timestamps);
  const TestTopic overwrite{{.policy = Policy::overwrite}};
  EXPECT_EQ(code(overwrite->subscriber()), Errc::not_with_overwrite);
  EXPECT_EQ(code(overwrite->subscriber({.gating = false})), Errc::ok);
}

// --- Partitions --------------------------------------------------------------------------------

TEST(Subscriber, ReadsAllPartitionsEachInOrder) {
  const TestTopic topic{{.partitions = 3}};
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  for (std::uint32_t i = 0; i < 30; ++i)
    must(publisher.publish({.value = std::to_string(i), .partition = i % 3}));
  std::map<std::uint32_t, std::vector<std::string>> got;
  while (must(subscriber.poll(4, [&](const Record& record) {
           EXPECT_EQ(record.offset, got[record.partition].size());
           got[record.partition].emplace_back(record.text());
         })) != 0) {
  }
  for (std::uint32_t partition = 0; partition < 3; ++partition) {
    ASSERT_EQ(got[partition].size(), 10u);
    for (std::uint32_t i = 0; i < 10; ++i)
      EXPECT_EQ(got[partition][i], std::to_string(3 * i + partition));
    EXPECT_EQ(subscriber.offset(partition), 10u);
  }
}

TEST(Subscriber, BusyPartitionDoesNotStarveTheOthers) {
  const TestTopic topic{{.partitions = 2}};
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  must(publisher.publish({.value = "quiet", .partition = 1}));
  bool seen = false;
  for (int i = 0; i < 50 && !seen; ++i) {
    for (int j = 0; j < 3; ++j) must(publisher.publish({.value = "busy", .partition = 0}));
    must(subscriber.poll(2, [&](const Record& record) { seen = seen || record.partition == 1; }));
  }
  EXPECT_TRUE(seen);
}

TEST(Subscriber, OfOnePartitionHoldsNoOther) {
  const TestTopic topic{{.policy = Policy::fail, .partitions = 2}};
  auto subscriber = must(topic->subscriber({.from = From::beginning, .partition = 1}));
  auto publisher = must(topic->publisher());
  for (int i = 0; i < 30; ++i)
    EXPECT_EQ(code(publisher.publish({.value = kHalfText, .partition = 0})), Errc::ok);
  int published = 0;
  while (publisher.publish({.value = kHalfText, .partition = 1})) ++published;
  EXPECT_EQ(published, 8);
  EXPECT_EQ(drain(subscriber), repeated(8, kHalfText));
}

// --- What is held ------------------------------------------------------------------------------

TEST(Subscriber, RecordsStayInPlaceUntilTheNextCall) {
  const TestTopic topic{{.policy = Policy::fail}};
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  must(publisher.publish(std::string(kHalf, 'a')));
  must(publisher.publish(std::string(kHalf, 'b')));  // Fills the segment.
  (void)must(subscriber.receive(0s));
  const Record record = must(subscriber.receive(0s));
  while (publisher.publish(std::string(kHalf, 'c'))) {
  }
  EXPECT_EQ(record.text(), std::string(kHalf, 'b'));
}

TEST(Subscriber, RoomIsReusedOnceItHasPassed) {
  const TestTopic topic{{.capacity_bytes = 2 * kSegment, .policy = Policy::fail}};
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  for (int i = 0; i < 4; ++i) must(publisher.publish(kHalfText));
  EXPECT_EQ(code(publisher.publish(kHalfText)), Errc::full);
  EXPECT_EQ(must(subscriber.poll(2, kIgnore)), 2u);
  EXPECT_EQ(code(publisher.publish(kHalfText)), Errc::full);  // It still reads the first segment.
  EXPECT_EQ(must(subscriber.poll(1, kIgnore)), 1u);
  EXPECT_EQ(must(publisher.publish(kHalfText)), 4u);
  EXPECT_EQ(drain(subscriber), repeated(2, kHalfText, 3));
}

TEST(Subscriber, MovedFromItStillHolds) {
  const TestTopic topic{{.policy = Policy::fail}};
  auto publisher = must(topic->publisher());
  std::optional<Subscriber> outer;
  {
    auto inner = from_beginning(*topic);
    outer = std::move(inner);
  }
  int published = 0;
  while (publisher.publish(kHalfText)) ++published;
  EXPECT_EQ(published, 8);
  EXPECT_EQ(drain(*outer), repeated(8, kHalfText));
  outer.reset();
  EXPECT_EQ(code(publisher.publish(kHalfText)), Errc::ok);
}

TEST(Subscriber, EvictedOneIsToldAndReadsOn) {
  const TestTopic topic{{.evict_after = 20ms}};
  auto publisher = must(topic->publisher());
  std::optional<Subscriber> slow;
  std::jthread{[&] { slow = from_beginning(*topic); }}.join();  // Not the publisher's thread.
  must(publisher.publish("first"));
  EXPECT_EQ(must(slow->poll(1, kIgnore)), 1u);
  EXPECT_FALSE(slow->is_lossy());
  std::jthread{[&] { (void)slow->poll(0, kIgnore); }}.join();
  for (int i = 0; i < 20; ++i) must(publisher.publish(kHalfText, 30s));
  const std::uint64_t start = topic->info().partitions[0].start;
  const Log log = drain(*slow);
  EXPECT_TRUE(slow->is_lossy());
  ASSERT_FALSE(log.empty());
  EXPECT_EQ(log.front(), "1+" + std::to_string(start - 1) + " overwritten");
  EXPECT_EQ(log.size(), 1 + 21 - start);
  for (const auto& participant : topic->info().participants)
    EXPECT_NE(participant.role, "subscriber");
}

TEST(Subscriber, WithoutEvictionItBlocksForEver) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  std::optional<Subscriber> slow;
  std::jthread{[&] { slow = from_beginning(*topic); }}.join();
  int published = 0;
  while (publisher.publish(kHalfText, 20ms)) ++published;
  EXPECT_EQ(published, 8);
  EXPECT_EQ(drain(*slow), repeated(8, kHalfText));
  EXPECT_FALSE(slow->is_lossy());
}

TEST(Subscriber, EvictedInTheMiddleOfABatchGetsEachRecordOnceOrItsGap) {
  const TestTopic topic{{.evict_after = 1ms}};
  auto publisher = must(topic->publisher());
  auto slow = from_beginning(*topic);
  auto batch = must(publisher.batch());
  for (int i = 0; i < 10; ++i) must(batch.add("x"));
  must(batch.commit());
  EXPECT_EQ(must(slow.poll(4, kIgnore)), 4u);
  std::jthread{[&] { (void)slow.poll(0, kIgnore); }}.join();
  for (int i = 0; i < 20; ++i) must(publisher.publish(kHalfText, 30s));
  std::uint64_t next = 4;
  for (const std::string& line : drain(slow)) {
    ASSERT_EQ(std::stoull(line), next) << line;
    const std::size_t plus = line.find('+');
    next += plus == std::string::npos ? 1 : std::stoull(line.substr(plus + 1));
  }
  EXPECT_TRUE(slow.is_lossy());
  EXPECT_EQ(next, 30u);
}

// --- Handles -----------------------------------------------------------------------------------

TEST(Subscriber, InheritedHandleIsRefused) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  must(publisher.publish("a"));
  Child child{[&] {
    if (code(subscriber.poll(1, kIgnore)) != Errc::forked) return 1;
    if (code(subscriber.receive(0s)) != Errc::forked) return 2;
    if (code(subscriber.wait(0s)) != Errc::forked) return 3;
    auto own = from_beginning(*topic);
    { const auto dropped = std::move(subscriber); }
    return drain(own) == Log{"0 a"} ? 0 : 4;
  }};
  EXPECT_EQ(child.join(), 0);
  EXPECT_EQ(topic->info().participants.size(), 2u);
  EXPECT_EQ(drain(subscriber), Log{"0 a"});
}

TEST(Subscriber, DescriptorOfAParentIsRefusedAndLeftAlone) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  const int fd = must(subscriber.wait_fd());
  Child child{[&] {
    if (code(subscriber.wait_fd()) != Errc::forked) return 1;
    { const auto dropped = std::move(subscriber); }
    return 0;
  }};
  EXPECT_EQ(child.join(), 0);
  must(publisher.publish("a"));
  ::pollfd entry{fd, POLLIN, 0};
  EXPECT_EQ(::poll(&entry, 1, 10'000), 1);
  EXPECT_EQ(drain(subscriber), Log{"0 a"});
}

// A subscriber that only polls now and then also gets past a dead publisher's hole.
TEST(Subscriber, SlowPollsPassTheHoleOfADeadPublisher) {
  const TestTopic topic;
  auto subscriber = from_beginning(*topic);
  Child child{[&] {
    auto publisher = must(topic.open_again().publisher());
    auto claim = must(publisher.try_claim(1));
    ::_exit(0);
    return 0;
  }};
  EXPECT_EQ(child.join(), 0);
  Log log;
  for (int poll = 0; poll < 5 && log.empty(); ++poll) {
    log = drain(subscriber);
    std::this_thread::sleep_for(15ms);
  }
  EXPECT_EQ(log, Log{"0+1 died"});
}

TEST(Subscriber, IsEvictedByPublishersThatNeverWaitLong) {
  for (const Policy policy : {Policy::block, Policy::fail}) {
    const TestTopic topic{{.policy = policy, .evict_after = 20ms}};
    auto publisher = must(topic->publisher());
    auto subscriber = from_beginning(*topic);
    const auto until = std::chrono::steady_clock::now() + 10s;
    Result<std::uint64_t> published = 0;
    for (int i = 0; i < 9; ++i) {
      do {
        published = publisher.publish(kHalfText, Deadline::immediate());
      } while (code(published) == Errc::full && std::chrono::steady_clock::now() < until);
    }
    EXPECT_EQ(must(std::move(published)), 8u);
    (void)drain(subscriber);
    EXPECT_TRUE(subscriber.is_lossy());
  }
}

TEST(Subscriber, TopicAndPublisherMayGoFirst) {
  const TestDirectory directory;
  std::optional<Subscriber> subscriber;
  {
    const Topic topic =
        must(Topic::create("a", {.capacity_bytes = 1, .directory = directory.path()}));
    auto publisher = must(topic.publisher());
    subscriber = must(topic.subscriber());
    must(publisher.publish("x"));
  }
  EXPECT_EQ(drain(*subscriber), Log{"0 x"});
}

TEST(Subscriber, ReadsWhatWasPublishedBeforeAnybodyRead) {
  const TestTopic topic;
  Child child{[&] {
    must(must(topic.open_again().publisher()).publish("from a process that is gone"));
    return 0;
  }};
  EXPECT_EQ(child.join(), 0);
  auto subscriber = from_beginning(*topic);
  EXPECT_EQ(drain(subscriber), Log{"0 from a process that is gone"});
}

TEST(Subscriber, CallbackMayPublishToTheSameTopic) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  must(publisher.publish("0"));
  int count = 0;
  while (count < 100) {
    count += static_cast<int>(must(subscriber.poll(1, [&](const Record& record) {
      must(publisher.publish(std::to_string(std::stoi(std::string{record.text()}) + 1)));
    })));
  }
  EXPECT_EQ(must(publisher.publish("x")), 101u);
}

}  // namespace
}  // namespace leat
