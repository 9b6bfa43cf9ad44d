// If this failed, publishers and subscribers in several threads of one process would have a data
// race, or lose, repeat or damage records. ThreadSanitizer checks this test for races.
#include <algorithm>
#include <atomic>
#include <map>

#include "testing.hpp"

namespace leat {
namespace {

#if LEAT_THREAD_SANITIZER
constexpr std::uint32_t kRecords = 3000;
#else
constexpr std::uint32_t kRecords = 20'000;
#endif

// Without a gating subscriber, a publisher that does not run for a whole lap may get `revoked`.
enum class Gated { always, not_always };

void must_unless_overwritten(const Result<std::uint64_t>& published, Gated gated) {
  if (published || (code(published) == Errc::revoked && gated == Gated::not_always)) return;
  throw std::runtime_error{describe(published.error())};
}

// Publishes one thread's records: each contains the thread's number and 0, 1, 2 …; of various
// sizes, some in batches, with aborted claims in between.
void publish_all(const Topic& topic, std::uint32_t who, Gated gated,
                 const PublisherOptions& options = {}) {
  auto publisher = must(topic.publisher(options));
  std::mt19937 random{who};
  for (std::uint32_t i = 0; i < kRecords;) {
    const auto text = [&] {
      return std::to_string(who) + " " + std::to_string(i) + std::string(random() % 200, '.');
    };
    switch (random() % 8) {
      case 0: {
        auto batch = must(publisher.batch());
        for (unsigned long j = random() % 5 + 1; j > 0 && i < kRecords; --j, ++i)
          must(batch.add(text()));
        must_unless_overwritten(batch.commit(), gated);
        break;
      }
      case 1: {
        auto claim = publisher.try_claim(100);
        if (claim && random() % 2 == 0) must_unless_overwritten(claim->abort(), gated);
        break;
      }
      default: must_unless_overwritten(publisher.publish(text()), gated); ++i;
    }
  }
}

// Checks that each publisher's records come in order, and that records and gaps cover all offsets.
class Account {
 public:
  void on_record(const Record& record) {
    ASSERT_EQ(record.offset, next_[record.partition]++);
    std::uint32_t who = 0;
    std::uint32_t number = 0;
    ASSERT_EQ(std::sscanf(std::string{record.text()}.c_str(), "%u %u", &who, &number), 2);
    if (losses_allowed_) {
      ASSERT_GE(number, last_[who]);
    } else {
      ASSERT_EQ(number, last_[who]);
    }
    last_[who] = number + 1;
    ++records_;
  }
  void on_event(const Event& event) {
    ASSERT_EQ(event.first, next_[event.partition]);
    next_[event.partition] += event.count;
    if (!losses_allowed_) {
      ASSERT_EQ(event.reason, GapReason::aborted);
    }
  }
  void allow_losses() { losses_allowed_ = true; }
  std::uint64_t records() const { return records_; }
  std::uint64_t next(std::uint32_t partition) { return next_[partition]; }

 private:
  std::map<std::uint32_t, std::uint64_t> next_;
  std::map<std::uint32_t, std::uint32_t> last_;
  std::uint64_t records_ = 0;
  bool losses_allowed_ = false;
};

// Reads until `done` is set and nothing more comes.
void read_all(Subscriber subscriber, const std::atomic<bool>& done, Account& account) {
  subscriber.on_event([&](const Event& event) { account.on_event(event); });
  while (true) {
    const bool last = done;
    const std::size_t count =
        must(subscriber.poll(50, [&](const Record& record) { account.on_record(record); }));
    if (count != 0) continue;
    auto waited = subscriber.wait(10ms);
    if (!waited) {
      ASSERT_EQ(code(waited), Errc::timeout);
      if (last) return;
    }
  }
}

struct Run {
  std::uint32_t publishers = 2;
  TopicOptions topic = {};
  PublisherOptions publisher = {};
  std::vector<SubscriberOptions> subscribers = {};
};

void run(const Run& run) {
  const TestTopic topic{run.topic};
  std::atomic<bool> done = false;
  std::vector<Account> accounts(run.subscribers.size());
  std::vector<std::jthread> readers;
  for (std::size_t i = 0; i < accounts.size(); ++i) {
    if (!run.subscribers[i].gating) accounts[i].allow_losses();
    readers.emplace_back([&done, &account = accounts[i],
                          subscriber = must(topic->subscriber(run.subscribers[i]))]() mutable {
      read_all(std::move(subscriber), done, account);
    });
  }
  const Gated gated = std::ranges::any_of(run.subscribers, &SubscriberOptions::gating)
                          ? Gated::always
                          : Gated::not_always;
  {
    std::vector<std::jthread> writers;
    for (std::uint32_t who = 0; who < run.publishers; ++who)
      writers.emplace_back([&, who] { publish_all(*topic, who, gated, run.publisher); });
  }
  done = true;
  readers.clear();
  const TopicInfo info = topic->info();
  for (std::size_t i = 0; i < accounts.size(); ++i) {
    if (run.subscribers[i].gating) {
      EXPECT_EQ(accounts[i].records(), run.publishers * kRecords);
    }
    for (std::uint32_t partition = 0; partition < info.partitions.size(); ++partition)
      EXPECT_EQ(accounts[i].next(partition), info.partitions[partition].end);
  }
}

const SubscriberOptions kGating{.from = From::beginning};
const SubscriberOptions kSleeper{.from = From::beginning, .spin = 0ns};
const SubscriberOptions kLossy{.from = From::beginning, .gating = false};
const SubscriberOptions kInPlace{.from = From::beginning, .gating = false, .in_place = true};

TEST(Threads, SharedPublishersAndGatingSubscribers) {
  run({.publishers = 3, .subscribers = {kGating, kSleeper}});
}
TEST(Threads, ExclusivePublisherAndGatingSubscribers) {
  run({.publishers = 1, .publisher = {.exclusive = true}, .subscribers = {kGating, kSleeper}});
}
TEST(Threads, SharedPublishersAndLossySubscribers) {
  run({.topic = {.policy = Policy::overwrite}, .subscribers = {kLossy, kInPlace}});
}
TEST(Threads, ExclusivePublisherAndLossySubscribers) {
  run({.publishers = 1,
       .topic = {.policy = Policy::overwrite},
       .publisher = {.exclusive = true},
       .subscribers = {kLossy, kInPlace}});
}
TEST(Threads, GatingAndLossyTogether) { run({.subscribers = {kSleeper, kLossy}}); }
TEST(Threads, SeveralPartitions) {
  run({.publishers = 3, .topic = {.partitions = 2}, .subscribers = {kGating, kSleeper}});
}
TEST(Threads, OnTheSmallestTopic) {
  run({.topic = {.capacity_bytes = 2 * kSegment}, .subscribers = {kGating}});
}

TEST(Threads, SubscribersComeAndGoWhileOthersPublish) {
  const TestTopic topic;
  std::atomic<bool> done = false;
  std::vector<std::jthread> visitors;
  for (int i = 0; i < 2; ++i) {
    visitors.emplace_back([&, i] {
      const From where = i == 0 ? From::beginning : From::end;
      for (int visit = 0; !done; ++visit) {
        auto subscriber =
            must(topic->subscriber({.from = where, .gating = visit % 3 != 0, .spin = 0ns}));
        std::uint64_t next = subscriber.offset();
        subscriber.on_event([&](const Event& event) {
          ASSERT_EQ(event.first, next);
          next += event.count;
        });
        for (int poll = 0; poll < 20; ++poll) {
          must(subscriber.poll(10, [&](const Record& record) {
            ASSERT_EQ(record.offset, next);
            ++next;
          }));
        }
      }
    });
  }
  std::vector<std::jthread> writers;
  for (std::uint32_t who = 0; who < 2; ++who)
    writers.emplace_back([&, who] { publish_all(*topic, who, Gated::not_always); });
  writers.clear();
  done = true;
}

TEST(Threads, PublishersComeAndGo) {
  const TestTopic topic;
  std::atomic<bool> done = false;
  std::jthread reader{[&, subscriber = from_beginning(*topic)]() mutable {
    std::uint64_t next = 0;
    subscriber.on_event([&](const Event& event) {
      ASSERT_EQ(event.first, next);
      next += event.count;
    });
    while (!done || next < topic->info().partitions[0].end) {
      must(subscriber.poll(100, [&](const Record& record) { ASSERT_EQ(record.offset, next++); }));
    }
  }};
  std::vector<std::jthread> writers;
  for (int i = 0; i < 3; ++i) {
    writers.emplace_back([&] {
      for (int visit = 0; visit < 200; ++visit) {
        auto publisher = must(topic->publisher());
        for (int j = 0; j < 5; ++j) must(publisher.publish("x"));
        auto claim = publisher.try_claim(50);
      }
    });
  }
  writers.clear();
  done = true;
}

TEST(Threads, InfoCanBeAskedAtAnyTime) {
  const TestTopic topic{{.policy = Policy::overwrite}};
  std::jthread writer{[&] { publish_all(*topic, 0, Gated::not_always); }};
  std::uint64_t last = 0;
  for (int i = 0; i < 300; ++i) {
    const PartitionInfo info = topic->info().partitions[0];
    EXPECT_LE(info.start, info.end);
    EXPECT_GE(info.end, last);
    last = info.end;
  }
}

}  // namespace
}  // namespace leat
