// If this failed, a lossy subscriber could deliver a damaged record, report a wrong number of lost
// ones, or have a record overwritten that it reads in place.
#include <poll.h>

#include "testing.hpp"

namespace leat {
namespace {

Subscriber lossy(const Topic& topic, bool in_place = false, From from = From::beginning) {
  return must(topic.subscriber({.from = from, .gating = false, .in_place = in_place}));
}

TEST(LossySubscriber, GetsEverythingWhileItKeepsUp) {
  const TestTopic topic{{.policy = Policy::overwrite}};
  auto publisher = must(topic->publisher());
  auto subscriber = lossy(*topic);
  EXPECT_TRUE(subscriber.is_lossy());
  for (std::uint64_t i = 0; i < 200; ++i) {
    must(publisher.publish(kHalfText));
    ASSERT_EQ(drain(subscriber), repeated(1, kHalfText, i));
  }
}

TEST(LossySubscriber, IsToldExactlyWhatItLost) {
  const TestTopic topic{{.policy = Policy::overwrite}};
  auto publisher = must(topic->publisher());
  auto subscriber = lossy(*topic);
  std::uint64_t next = 0;
  for (std::uint64_t published = 0; published < 500;) {
    for (std::uint64_t i = 0; i < published % 23; ++i)
      must(publisher.publish(std::string(500, 'x')));
    must(publisher.publish("end"));
    published += published % 23 + 1;
    const std::uint64_t start = topic->info().partitions[0].start;
    Log expected;
    if (start > next) {
      expected.push_back(std::to_string(next) + "+" + std::to_string(start - next) +
                         " overwritten");
      next = start;
    }
    const Log log = drain(subscriber);
    ASSERT_EQ(log.size(), expected.size() + published - next);
    if (!expected.empty()) {
      ASSERT_EQ(log.front(), expected.front());
    }
    ASSERT_EQ(log.back(), std::to_string(published - 1) + " end");
    next = published;
  }
}

TEST(LossySubscriber, RecordOutlivesItsSegment) {
  const TestTopic topic{{.policy = Policy::overwrite}};
  auto publisher = must(topic->publisher());
  auto subscriber = lossy(*topic);
  must(publisher.publish("a copy"));
  const Record record = must(subscriber.receive(0s));
  for (int i = 0; i < 50; ++i) must(publisher.publish(kHalfText));
  EXPECT_EQ(record.text(), "a copy");
}

TEST(LossySubscriber, OvertakenInTheMiddleOfABatchStillHasItsCopy) {
  const TestTopic topic{{.policy = Policy::overwrite}};
  auto publisher = must(topic->publisher());
  auto subscriber = lossy(*topic);
  auto batch = must(publisher.batch());
  for (int i = 0; i < 10; ++i) must(batch.add("x"));
  must(batch.commit());
  EXPECT_EQ(must(subscriber.poll(4, kIgnore)), 4u);
  for (int i = 0; i < 50; ++i) must(publisher.publish(kHalfText));
  const std::uint64_t start = topic->info().partitions[0].start;
  const Log log = drain(subscriber);
  ASSERT_GT(log.size(), 7u);
  EXPECT_EQ(Log(log.begin(), log.begin() + 6), repeated(6, "x", 4));
  EXPECT_EQ(log[6], "10+" + std::to_string(start - 10) + " overwritten");
}

TEST(LossySubscriber, ReadsAbortsBatchesKeysAndHeaders) {
  const TestTopic topic{{.policy = Policy::overwrite, .timestamps = true}};
  auto publisher = must(topic->publisher());
  for (const bool in_place : {false, true}) {
    auto subscriber = lossy(*topic, in_place, From::end);
    const std::uint64_t first = subscriber.offset();
    const Header header{"name", "value"};
    must(publisher.publish({.key = "key", .headers = {&header, 1}, .value = "v"}));
    { auto claim = must(publisher.try_claim(100)); }
    auto batch = must(publisher.batch());
    must(batch.add({.key = "k", .value = "b"}));
    must(batch.commit());
    bool headers_seen = false;
    Log log;
    subscriber.on_event([&](const Event& event) { log.push_back(to_text(event)); });
    must(subscriber.poll(10, [&](const Record& record) {
      log.push_back(to_text(record) + " " + std::string{record.key.text()});
      for (const Header each : record.headers)
        headers_seen = each.name == "name" && each.value.text() == "value";
    }));
    const auto at = [&](std::uint64_t i) { return std::to_string(first + i); };
    EXPECT_EQ(log, (Log{at(0) + " v key", at(1) + "+1 aborted", at(2) + " b k"}));
    EXPECT_TRUE(headers_seen);
  }
}

TEST(LossySubscriber, PinKeepsWhatIsReadInPlace) {
  const TestTopic topic{{.policy = Policy::overwrite}};
  auto publisher = must(topic->publisher());
  auto subscriber = lossy(*topic, true);
  must(publisher.publish("pinned"));
  must(subscriber.poll(1, [&](const Record& record) {
    // Several laps are published while the record is read.
    for (int i = 0; i < 100; ++i) must(publisher.publish(kHalfText));
    EXPECT_EQ(record.text(), "pinned");
  }));
  const Log log = drain(subscriber);
  const std::uint64_t start = topic->info().partitions[0].start;
  ASSERT_FALSE(log.empty());
  EXPECT_EQ(log.front(), "1+" + std::to_string(start - 1) + " overwritten");
}

TEST(LossySubscriber, RecordReceivedInPlaceStaysUntilTheNextCall) {
  const TestTopic topic{{.policy = Policy::overwrite}};
  auto publisher = must(topic->publisher());
  auto subscriber = lossy(*topic, true);
  must(publisher.publish("pinned"));
  const Record record = must(subscriber.receive(0s));
  for (int i = 0; i < 100; ++i) must(publisher.publish(kHalfText));
  EXPECT_EQ(record.text(), "pinned");
}

TEST(LossySubscriber, PinCostsOneSegmentAndNoMore) {
  const TestTopic topic{{.policy = Policy::overwrite}};
  auto publisher = must(topic->publisher());
  auto subscriber = lossy(*topic, true);
  must(publisher.publish("pinned"));
  must(subscriber.poll(1, [&](const Record&) {
    for (int i = 0; i < 100; ++i) must(publisher.publish(kHalfText));
    const PartitionInfo info = topic->info().partitions[0];
    EXPECT_GE(info.end - info.start, 4u);
    EXPECT_LE(info.end - info.start, 6u);
  }));
  // Without the pin, all four segments hold records again.
  (void)drain(subscriber);
  for (int i = 0; i < 100; ++i) must(publisher.publish(kHalfText));
  const PartitionInfo info = topic->info().partitions[0];
  EXPECT_GE(info.end - info.start, 7u);
}

TEST(LossySubscriber, InPlaceIsForLossyOnesOnly) {
  const TestTopic topic;
  EXPECT_EQ(code(topic->subscriber({.in_place = true})), Errc::invalid_argument);
}

// A callback for gaps that is slower than the publisher: while it runs, everything is overwritten. A limit, so that
// the test ends even if the calls do not.
class SlowCallback {
 public:
  SlowCallback(const Topic& topic, Subscriber& subscriber) : publisher_{must(topic.publisher())} {
    overwrite();
    subscriber.on_event([this](const Event&) {
      if (++gaps < kMost) overwrite();
    });
  }
  void overwrite() {
    for (int i = 0; i < 20; ++i) must(publisher_.publish(kHalfText));
  }

  static constexpr int kMost = 1000;
  int gaps = 0;

 private:
  Publisher publisher_;
};

TEST(LossySubscriber, CallbackForGapsSlowerThanALapDoesNotKeepThePollFromReturning) {
  for (const bool in_place : {false, true}) {
    const TestTopic topic{{.policy = Policy::overwrite}};
    auto subscriber = lossy(*topic, in_place);
    SlowCallback slow{*topic, subscriber};
    EXPECT_EQ(must(subscriber.poll(1, kIgnore)), 0u);
    EXPECT_LT(slow.gaps, 20);
    EXPECT_EQ(must(subscriber.poll(10, kIgnore)), 0u);
    EXPECT_LT(slow.gaps, 40);
  }
}

TEST(LossySubscriber, CallbackForGapsSlowerThanALapDoesNotKeepReceiveFromReturning) {
  const TestTopic topic{{.policy = Policy::overwrite}};
  auto subscriber = lossy(*topic);
  SlowCallback slow{*topic, subscriber};
  EXPECT_EQ(code(subscriber.receive(0s)), Errc::timeout);
  subscriber.stop_waits();
  EXPECT_EQ(code(subscriber.receive()), Errc::stopped);
  subscriber.resume_waits();
  EXPECT_LT(slow.gaps, SlowCallback::kMost);
  slow.gaps =
      SlowCallback::kMost;  // Not slow any more: the record behind the gap comes in the same call.
  EXPECT_TRUE(subscriber.receive(0s));
}

TEST(LossySubscriber, DescriptorIsReadableAfterAPollThatFoundOnlyGaps) {
  const TestTopic topic{{.policy = Policy::overwrite}};
  auto subscriber = lossy(*topic);
  const int fd = must(subscriber.wait_fd());
  SlowCallback slow{*topic, subscriber};
  EXPECT_EQ(must(subscriber.poll(1, kIgnore)), 0u);
  // Also for a program that is told of changes only (EPOLLET): it was made readable anew.
  pollfd readable{fd, POLLIN, 0};
  EXPECT_EQ(::poll(&readable, 1, 0), 1);
}

TEST(Subscriber, CallbackForGapsThatCausesTheNextOneDoesNotKeepThePollFromReturning) {
  const TestTopic topic{{.capacity_bytes = 16 * kSegment}};
  auto publisher = must(topic->publisher());
  auto subscriber = must(topic->subscriber());
  const auto abort_one = [&] { (void)must(publisher.try_claim(8)); };
  abort_one();
  int gaps = 0;
  subscriber.on_event([&](const Event&) {
    if (++gaps < 5000) abort_one();
  });
  EXPECT_EQ(must(subscriber.poll(1, kIgnore)), 0u);
  EXPECT_LT(gaps, 5000);
  EXPECT_EQ(code(subscriber.receive(0s)), Errc::timeout);
  EXPECT_LT(gaps, 5000);
}

// A publisher overtakes the reader all the time. Every record it gets must be complete, and records
// and gaps must cover all offsets.
TEST(LossySubscriber, NeverSeesHalfARecordThoughOvertakenAllTheTime) {
  for (const bool in_place : {false, true}) {
    const TestTopic topic{{.policy = Policy::overwrite}};
    std::jthread writer{[&](const std::stop_token& stop) {
      auto publisher = must(topic->publisher());
      for (std::uint64_t i = 0; !stop.stop_requested(); ++i) {
        const std::string text(8 + i * 7 % 1500, static_cast<char>('a' + i % 26));
        if (i % 5 != 0) {
          must(publisher.publish(text));
          continue;
        }
        auto batch = must(publisher.batch());
        for (int j = 0; j < 3; ++j) {
          if (!batch.add(text)) break;
        }
        if (batch.count() != 0) must(batch.commit());
      }
    }};
    auto subscriber = lossy(*topic, in_place);
    std::uint64_t next = subscriber.offset();
    std::uint64_t records = 0;
    std::uint64_t lost = 0;
    subscriber.on_event([&](const Event& event) {
      ASSERT_EQ(event.first, next);
      ASSERT_EQ(event.reason, GapReason::overwritten);
      next += event.count;
      lost += event.count;
    });
    const Deadline end{500ms};
    while (!end.passed() || (lost == 0 && records < 10'000'000)) {
      must(subscriber.poll(7, [&](const Record& record) {
        ASSERT_EQ(record.offset, next);
        ++next;
        ++records;
        ASSERT_GE(record.value.size(), 8u);
        const std::string_view text = record.text();
        ASSERT_EQ(text.find_first_not_of(text[0]), std::string_view::npos) << record.offset;
      }));
    }
    EXPECT_GT(records, 0u);
    EXPECT_GT(lost, 0u);
  }
}

}  // namespace
}  // namespace leat
