// If this failed, a publisher on a full topic would wait, fail or overwrite
// records where its policy says otherwise.
#include <atomic>
#include <utility>

#include "testing.hpp"

namespace leat {
namespace {

// Publishes half segments until an error or the limit; returns the error, and
// how many were published.
std::pair<Errc, int> fill_up(Publisher& publisher, const Deadline& deadline, int limit = 1000) {
  for (int i = 0; i < limit; ++i) {
    const Errc result = code(publisher.publish(kHalfText, deadline));
    if (result != Errc::ok) return {result, i};
  }
  return {Errc::ok, limit};
}

TEST(Policy, FailReturnsAtOnce) {
  const TestTopic topic{{.policy = Policy::fail}};
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  const auto [result, count] = fill_up(publisher, Deadline::never());
  EXPECT_EQ(result, Errc::full);
  EXPECT_EQ(count, 8);
  EXPECT_EQ(drain(subscriber).size(), 8u);
  EXPECT_EQ(code(publisher.publish(kHalfText)), Errc::ok);
}

TEST(Policy, WithoutReadersTheOldestIsReused) {
  for (const Policy policy : {Policy::block, Policy::fail, Policy::overwrite}) {
    const TestTopic topic{{.policy = policy}};
    auto publisher = must(topic->publisher());
    EXPECT_EQ(fill_up(publisher, Deadline::never(), 100).first, Errc::ok);
    EXPECT_GE(topic->info().partitions[0].start, 100u - 8);
    EXPECT_EQ(topic->info().partitions[0].end, 100u);
  }
}

TEST(Policy, LossyReadersHoldNothing) {
  const TestTopic topic{{.policy = Policy::fail}};
  auto publisher = must(topic->publisher());
  auto subscriber = must(topic->subscriber({.from = From::beginning, .gating = false}));
  EXPECT_EQ(fill_up(publisher, Deadline::never(), 100).first, Errc::ok);
}

TEST(Policy, BlockWaitsUntilTheDeadline) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  std::jthread other{[&](const std::stop_token& stop) {
    auto subscriber = from_beginning(*topic);
    while (!stop.stop_requested()) std::this_thread::sleep_for(1ms);
  }};
  while (topic->info().participants.size() != 2) std::this_thread::yield();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(fill_up(publisher, 20ms).first, Errc::timeout);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 20ms);
  EXPECT_EQ(code(publisher.publish(kHalfText, Deadline::immediate())), Errc::full);
  EXPECT_EQ(code(publisher.try_claim(kHalf)), Errc::full);

  std::stop_source source;
  std::jthread stopper{[&] {
    std::this_thread::sleep_for(20ms);
    source.request_stop();
  }};
  EXPECT_EQ(code(publisher.publish(kHalfText, Deadline::never(), source.get_token())),
            Errc::stopped);
}

TEST(Policy, BlockGoesOnWhenThereIsRoom) {
  const TestTopic topic;
  std::jthread reader{[&] {
    auto subscriber = from_beginning(*topic);
    for (std::uint64_t i = 0; i < 200; ++i) {
      const Record record = must(subscriber.receive(30s));
      ASSERT_EQ(record.offset, i);
      if (i % 10 == 0) std::this_thread::sleep_for(1ms);
    }
  }};
  while (topic->info().participants.empty()) std::this_thread::yield();
  auto publisher = must(topic->publisher());
  EXPECT_EQ(fill_up(publisher, 30s, 200).first, Errc::ok);
}

TEST(Policy, BlockGoesOnWhenTheReaderLeavesOrDies) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  std::optional<Subscriber> subscriber;
  std::jthread leaver;
  for (const bool dies : {false, true}) {
    std::atomic<bool> attached = false;
    std::optional<Child> child;
    if (dies) {
      child.emplace([&] {
        auto mine = from_beginning(topic.open_again());
        ::raise(SIGSTOP);
        return 0;
      });
      int status = 0;
      ::waitpid(child->pid(), &status, WUNTRACED);
      leaver = std::jthread{[&] {
        std::this_thread::sleep_for(20ms);
        ::kill(child->pid(), SIGKILL);
      }};
    } else {
      leaver = std::jthread{[&] {
        auto mine = from_beginning(*topic);
        attached = true;
        std::this_thread::sleep_for(20ms);
      }};
      while (!attached) std::this_thread::yield();
    }
    EXPECT_EQ(fill_up(publisher, 30s, 50).first, Errc::ok);
    leaver.join();
    if (child) {
      EXPECT_EQ(child->join(), -SIGKILL);
    }
  }
}

TEST(Policy, RetainAllNeverReuses) {
  for (const Policy policy : {Policy::block, Policy::fail}) {
    const TestTopic topic{{.policy = policy, .retain_all = true}};
    auto publisher = must(topic->publisher());
    auto subscriber = from_beginning(*topic);
    EXPECT_EQ(fill_up(publisher, Deadline::never()), (std::pair{Errc::full, 8}));
    EXPECT_EQ(drain(subscriber).size(), 8u);
    EXPECT_EQ(code(publisher.publish(kHalfText)), Errc::full);
    auto late = from_beginning(*topic);
    EXPECT_EQ(drain(late).size(), 8u);
  }
}

TEST(Policy, SmallerRecordsStillFitWhenALargeOneDoesNot) {
  const TestTopic topic{
      {.capacity_bytes = 2 * kSegment, .policy = Policy::fail, .retain_all = true}};
  auto publisher = must(topic->publisher());
  for (int i = 0; i < 3; ++i) must(publisher.publish(kHalfText));
  must(publisher.publish("x"));
  EXPECT_EQ(code(publisher.publish(kHalfText)), Errc::full);
  EXPECT_EQ(must(publisher.publish("y")), 4u);
}

TEST(Policy, WaitingForOnesOwnSubscriberIsADeadlock) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  EXPECT_EQ(fill_up(publisher, Deadline::never()).first, Errc::would_deadlock);
  EXPECT_EQ(drain(subscriber).size(), 8u);
  EXPECT_EQ(code(publisher.publish(kHalfText)), Errc::ok);
}

// A subscriber is often created by one thread and polled by another, which may start late.
TEST(Policy, SubscriberThatIsGivenAwayIsNoDeadlock) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  std::jthread reader{[&] {
    std::this_thread::sleep_for(50ms);
    for (std::uint64_t read = 0; read < 9;) read += must(subscriber.poll(100, kIgnore));
  }};
  for (int i = 0; i < 9; ++i) EXPECT_EQ(code(publisher.publish(kHalfText)), Errc::ok);
}

// The thread that polls counts, not the one that created the subscriber.
TEST(Policy, SubscriberOfAnotherThreadIsNoDeadlock) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  std::jthread reader{[&] {
    (void)subscriber.poll(1, [](const Record&) {});
    while (topic->info().partitions[0].end < 8) std::this_thread::yield();
    std::this_thread::sleep_for(10ms);
    (void)drain(subscriber);
  }};
  while (topic->info().participants.size() < 2) std::this_thread::yield();
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(fill_up(publisher, 30s, 9).first, Errc::ok);
}

TEST(Policy, PartitionsFillUpApart) {
  const TestTopic topic{{.policy = Policy::fail, .retain_all = true, .partitions = 2}};
  auto first = must(topic->publisher({.partition = 0}));
  auto second = must(topic->publisher({.partition = 1}));
  EXPECT_EQ(fill_up(first, Deadline::never()), (std::pair{Errc::full, 8}));
  EXPECT_EQ(fill_up(second, Deadline::never()), (std::pair{Errc::full, 8}));
}

}  // namespace
}  // namespace leat
