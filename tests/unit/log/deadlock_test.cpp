// If this failed, a publisher could wait for ever for a subscriber of its own thread, or get `would_deadlock` although
// another thread could make room.
#include <atomic>

#include "unit/testing.hpp"

namespace leat {
namespace {

constexpr auto kLong = 30s;

// Publishes until it gets an error; waits for room until the deadline.
Errc fill(Publisher& publisher, const Deadline& deadline = kLong) {
  for (int i = 0; i < 1000; ++i) {
    auto published = publisher.publish(kHalfText, deadline);
    if (!published) return code(published);
  }
  return Errc::ok;
}

TEST(Deadlock, ARecordInPlaceOfTheOwnThreadsLossySubscriber) {
  const TestTopic topic{{.capacity_bytes = 2 * kSegment}};
  auto subscriber =
      must(topic->subscriber({.from = From::beginning, .gating = false, .in_place = true}));
  auto publisher = must(topic->publisher());
  must(publisher.publish("x"));
  EXPECT_EQ(must(subscriber.receive(0s)).text(), "x");  // In use until the next call.
  EXPECT_EQ(fill(publisher), Errc::would_deadlock);
  (void)must(subscriber.poll(1, kIgnore));
  must(publisher.publish(kHalfText, 0s));
}

TEST(Deadlock, ARecordInPlaceOfTheOwnThreadsEvictedSubscriber) {
  const TestTopic topic{{.capacity_bytes = 2 * kSegment, .evict_after = 1ms}};
  auto subscriber = from_beginning(*topic);
  auto publisher = must(topic->publisher());
  must(publisher.publish("x"));
  EXPECT_EQ(must(subscriber.receive(0s)).text(), "x");
  // Evicted once it has held the oldest segment for a millisecond: that is then retired, and its memory kept for the record.
  for (const Deadline late{kLong}; topic->info().partitions[0].start == 0 && !late.passed();) {
    EXPECT_EQ(fill(publisher), Errc::would_deadlock);
    std::this_thread::sleep_for(2ms);
  }
  EXPECT_NE(topic->info().partitions[0].start, 0u);
  EXPECT_EQ(fill(publisher), Errc::would_deadlock);
  (void)subscriber.poll(1, kIgnore);
  must(publisher.publish(kHalfText, 0s));
}

TEST(Deadlock, ARecordInPlaceOfAnotherThreadIsWaitedFor) {
  const TestTopic topic{{.capacity_bytes = 2 * kSegment}};
  auto subscriber =
      must(topic->subscriber({.from = From::beginning, .gating = false, .in_place = true}));
  auto publisher = must(topic->publisher());
  must(publisher.publish("x"));
  std::thread{[&] { EXPECT_EQ(must(subscriber.receive(0s)).text(), "x"); }}.join();
  EXPECT_EQ(fill(publisher, 50ms), Errc::timeout);
}

// A thread that has ended gave its subscriber to another one. What the publisher's thread has in common with it must not
// make the subscriber its own: threads that follow each other have the same stack and thread-local variables.
TEST(Deadlock, ASubscriberOfAThreadThatHasEndedIsWaitedFor) {
  for (int round = 0; round < 3; ++round) {
    const TestTopic topic{{.capacity_bytes = 2 * kSegment}};
    auto subscriber = from_beginning(*topic);
    std::thread{[&] { (void)must(subscriber.poll(10, kIgnore)); }}.join();
    Errc refused = Errc::ok;
    std::thread{[&] {
      auto publisher = must(topic->publisher());
      refused = fill(publisher, 50ms);
    }}.join();
    EXPECT_EQ(refused, Errc::timeout);
  }
}

TEST(Deadlock, ThreadsHaveTokensOfTheirOwn) {
  std::vector<std::uint64_t> tokens;
  for (int i = 0; i < 20; ++i)
    std::thread{[&] { tokens.push_back(detail::thread_token()); }}.join();
  tokens.push_back(detail::thread_token());
  EXPECT_EQ(detail::thread_token(), tokens.back());
  std::sort(tokens.begin(), tokens.end());
  EXPECT_EQ(std::unique(tokens.begin(), tokens.end()), tokens.end());
  EXPECT_NE(tokens.front(), 0u);
}

}  // namespace
}  // namespace leat
