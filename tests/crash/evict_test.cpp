// If this failed, a stopped gating subscriber would block publishers in spite of `evict_after`, or
// would not learn exactly which records it lost when it continues.
#include "scenarios.hpp"

namespace leat::testing {
namespace {

struct Case {
  std::uint64_t batches;  // Batches or single records that it reads before it stops.
  bool in_poll;
};
std::ostream& operator<<(std::ostream& out, const Case& one) {
  return out << one.batches << (one.in_poll ? " within a poll" : " before a poll");
}

class Evict : public ::testing::TestWithParam<Case> {};

// Publishes from another process: `count` batches of `size` records; two batches fill a segment.
void publish_batches(const std::string& directory, Ledger& ledger, int count, std::size_t size) {
  Child publisher{[&]() -> int {
    auto opened = Topic::open("topic", Deadline::immediate(), directory);
    CHILD_CHECK_OK(opened);
    auto joined = opened->publisher();
    CHILD_CHECK_OK(joined);
    for (int i = 0; i < count; ++i) {
      auto frames = joined->batch();
      CHILD_CHECK_OK(frames);
      std::vector<Mark> marks;
      for (std::size_t k = 0; k < size; ++k) {
        marks.push_back(ledger.begin(kVictim));
        CHILD_CHECK_OK(frames->add(make_message(marks.back(), 1500 / size)));
      }
      auto first = frames->commit(kPatience);
      CHILD_CHECK_OK(first);
      for (std::size_t k = 0; k < size; ++k)
        ledger.end(marks[k], Result<std::uint64_t>{*first + k});
    }
    return 0;
  }};
  publisher.wait();
  ASSERT_TRUE(publisher.succeeded()) << publisher.describe();
}

TEST_P(Evict, SubscriberThatDoesNotRunIsLeftBehind) {
  const bool in_poll = GetParam().in_poll;
  struct Batch {
    std::size_t size;
    std::size_t unread;  // Records of the last batch that it does not read.
  };
  for (const auto [batch, unread] : {Batch{1, 0}, Batch{5, 0}, Batch{5, 2}}) {
    SCOPED_TRACE("batches of " + std::to_string(batch) + ", unread " + std::to_string(unread));
    const std::uint64_t read = GetParam().batches * batch - unread;
    TemporaryDirectory directory;
    Shared<Ledger> ledger;
    auto topic = Topic::create("topic", {.capacity_bytes = 16384,
                                         .segment_bytes = 4096,
                                         .evict_after = 2ms,
                                         .directory = directory.path()});
    ASSERT_TRUE(topic) << describe(topic.error());
    auto subscriber = topic->subscriber({.from = From::beginning});
    ASSERT_TRUE(subscriber) << describe(subscriber.error());
    Trail trail{"evicted"};
    subscriber->on_event([&](const Event& event) { trail.on_event(event); });

    const auto publish = [&, batch = batch](int count) {
      publish_batches(directory.path(), *ledger, count, batch);
    };
    publish(7);
    // It reads up to a place within a segment, or exactly to the end of one
    // (each holds two records or batches). Then the others publish many laps:
    // between two of its polls, or while it is in one.
    const auto on_record = [&](const Record& record) {
      trail.on_record(record);
      if (in_poll && trail.next() == read) publish(100);
    };
    if (in_poll) {
      ASSERT_TRUE(subscriber->poll(read + 1, on_record));
    } else {
      for (std::uint64_t i = 0; i < read; ++i) ASSERT_TRUE(subscriber->poll(1, on_record));
      publish(100);
      EXPECT_FALSE(subscriber->is_lossy());  // It has not noticed yet.
    }
    const std::uint64_t end = topic->info().partitions.at(0).end;
    const Deadline late{kPatience};
    while (trail.next() < end && !late.passed()) {
      auto ready = subscriber->wait(1s);
      ASSERT_TRUE(ready) << describe(ready.error());
      auto polled = subscriber->poll(3, on_record);
      ASSERT_TRUE(polled) << describe(polled.error());
    }
    EXPECT_TRUE(subscriber->is_lossy());
    EXPECT_EQ(trail.next(), end);
    EXPECT_EQ(trail.first(), 0U);
    EXPECT_GT(trail.gaps(GapReason::overwritten), 0U);
    EXPECT_EQ(compare(*ledger, trail), std::vector<std::string>{});
  }
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::uint64_t batches : {1U, 2U, 3U, 4U, 6U}) {
    for (const bool in_poll : {false, true}) cases.push_back({batches, in_poll});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Each, Evict, ::testing::ValuesIn(all_cases()));

}  // namespace
}  // namespace leat::testing
