// If this failed, Ctrl-C could be lost in a wait, a publisher that waits could not be stopped, or a runtime
// that moves its tasks between threads would get `would_deadlock` for no reason.
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <functional>

#include "leat/os/event.hpp"
#include "testing.hpp"

namespace leat {
namespace {

// Signals a thread that waits in `wait`, again and again until it has returned.
Error interrupted(const std::function<Error()>& wait) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) {};
  ::sigaction(SIGUSR1, &action, &before);  // Without SA_RESTART.
  Error error;
  std::atomic<bool> is_done = false;
  std::thread waiter{[&] {
    error = wait();
    is_done = true;
  }};
  while (!is_done) {
    std::this_thread::sleep_for(1ms);
    ::pthread_kill(waiter.native_handle(), SIGUSR1);
  }
  waiter.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  return error;
}

void fill(Publisher& publisher) {
  while (publisher.publish(kHalfText, Deadline::immediate())) {
  }
}

TEST(Interrupt, EndsAWaitIfItWasAskedTo) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = must(topic->subscriber({.interruptible = true}));
  EXPECT_EQ(interrupted([&] { return subscriber.wait().error(); }), Errc::interrupted);
  EXPECT_EQ(interrupted([&] { return subscriber.receive().error(); }), Errc::interrupted);
  const detail::EventFd never;
  EXPECT_EQ(interrupted([&] { return subscriber.wait(Deadline::never(), never.get()).error(); }),
            Errc::interrupted);
  // It has lost nothing.
  must(publisher.publish("x"));
  EXPECT_EQ(drain(subscriber), Log{"0 x"});
}

TEST(Interrupt, EndsAWaitForSeveral) {
  const TestTopic topic;
  const TestTopic other;
  auto one = must(topic->subscriber());
  auto two = must(other->subscriber({.interruptible = true}));
  EXPECT_EQ(interrupted([&] { return wait_any({&one, &two}).error(); }), Errc::interrupted);
}

TEST(Interrupt, IsNotNoticedOtherwise) {
  const TestTopic topic;
  auto subscriber = must(topic->subscriber());
  EXPECT_EQ(interrupted([&] { return subscriber.wait(50ms).error(); }), Errc::timeout);
}

TEST(Interrupt, EndsAMembersWait) {
  const TestTopic topic;
  auto member = must(must(topic->group("workers")).join({.interruptible = true}));
  EXPECT_EQ(interrupted([&] { return member.receive().error(); }), Errc::interrupted);
}

TEST(Interrupt, EndsAPublishersWaitAndPublishesNothing) {
  const TestTopic topic;
  auto subscriber = from_beginning(*topic);
  auto publisher = must(topic->publisher({.interruptible = true}));
  fill(publisher);
  const std::uint64_t end = topic->info().partitions[0].end;
  EXPECT_EQ(interrupted([&] { return publisher.publish(kHalfText).error(); }), Errc::interrupted);
  EXPECT_EQ(interrupted([&] { return publisher.claim(kHalf).error(); }), Errc::interrupted);
  EXPECT_EQ(topic->info().partitions[0].end, end);
}

TEST(Interrupt, EndsTheOpeningOfATopicIfItWasAskedTo) {
  const TestDirectory directory;
  const auto open = [&](Deadline deadline, bool interruptible) {
    return Topic::open("never", deadline, directory.path(), {}, {}, interruptible).error();
  };
  EXPECT_EQ(interrupted([&] { return open(Deadline::never(), true); }), Errc::interrupted);
  EXPECT_EQ(interrupted([&] { return open(50ms, false); }), Errc::not_found);
}

TEST(Interrupt, EndsARepairIfItWasAskedTo) {
  const TestDirectory data;
  const TestTopic topic{{.durable = Durability::os, .data_directory = data.path()}};
  auto publisher = must(topic->publisher());
  auto claim = must(publisher.claim(8));  // Keeps the archiver from writing.
  const Error error = interrupted([&] { return topic->repair(Deadline::never(), true).error(); });
  EXPECT_EQ(error, Errc::not_durable);
  EXPECT_EQ(error.system_error, EINTR);
  const Error late = interrupted([&] { return topic->repair(50ms).error(); });
  EXPECT_EQ(late, Errc::not_durable);
  EXPECT_EQ(late.system_error, 0);
  must(claim.commit());
  EXPECT_EQ(code(topic->repair(10s, true)), Errc::ok);
}

TEST(StopWaits, EndsAPublishersWaitsUntilTheyAreResumed) {
  const TestTopic topic;
  auto subscriber = must(topic->subscriber({.from = From::beginning, .any_thread = true}));
  auto publisher = must(topic->publisher());
  fill(publisher);
  {
    const std::jthread stopper{[&] {
      std::this_thread::sleep_for(5ms);
      publisher.stop_waits();
    }};
    EXPECT_EQ(code(publisher.publish(kHalfText)), Errc::stopped);
  }
  EXPECT_TRUE(publisher.waits_are_stopped());
  EXPECT_EQ(code(publisher.publish(kHalfText)), Errc::stopped);  // Later ones, too,
  EXPECT_FALSE(drain(subscriber).empty());
  must(publisher.publish("x"));  // unless there is room.
  fill(publisher);
  Publisher moved = std::move(publisher);
  EXPECT_EQ(code(moved.publish(kHalfText)), Errc::stopped);
  moved.resume_waits();
  EXPECT_EQ(code(moved.publish(kHalfText, 5ms)), Errc::timeout);
}

TEST(Spin, EndsAtTheDeadlineAndWhenItIsStopped) {
  const TestTopic topic;
  auto subscriber =
      must(topic->subscriber({.spin = 24h, .patience = std::chrono::nanoseconds::max()}));
  EXPECT_EQ(code(subscriber.wait(1ms)), Errc::timeout);
  const std::jthread stopper{[&] {
    std::this_thread::sleep_for(5ms);
    subscriber.stop_waits();
  }};
  EXPECT_EQ(code(subscriber.wait()), Errc::stopped);
}

TEST(AnyThread, NobodyIsToldOfADeadlock) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = must(topic->subscriber({.from = From::beginning, .any_thread = true}));
  EXPECT_EQ(drain(subscriber), Log{});
  fill(publisher);
  EXPECT_EQ(code(publisher.publish(kHalfText, 20ms)), Errc::timeout);
  const std::jthread reader{[&] {
    std::this_thread::sleep_for(5ms);
    EXPECT_FALSE(
        drain(subscriber).empty());  // Now it is another thread's, as a goroutine would be.
  }};
  must(publisher.publish(kHalfText));
}

TEST(AnyThread, NorIsItOfAMember) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto member = must(must(topic->group("workers")).join({.any_thread = true}));
  EXPECT_EQ(code(member.receive(0s)), Errc::timeout);
  fill(publisher);
  EXPECT_EQ(code(publisher.publish(kHalfText, 20ms)), Errc::timeout);
}

TEST(DeliveryParts, AreEnoughToSettleIt) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto member = must(must(topic->group("workers")).join());
  must(publisher.publish("a"));
  must(publisher.publish("b"));
  const auto first = detail::DeliveryParts::of(must(member.receive(0s)));
  const auto second = detail::DeliveryParts::of(must(member.receive(0s)));
  must(member.acknowledge(first.delivery()));
  EXPECT_EQ(code(member.acknowledge(first.delivery())), Errc::not_in_flight);
  auto nonsense = second;
  nonsense.entry = ~std::uint64_t{0};
  EXPECT_EQ(code(member.acknowledge(nonsense.delivery())), Errc::not_in_flight);
  nonsense.state = first.state;  // What the empty places of its table may still hold.
  EXPECT_EQ(code(member.acknowledge(nonsense.delivery())), Errc::not_in_flight);
  nonsense = second;
  nonsense.partition = 1'000'000;  // Not used: the entry says which record it is.
  must(member.acknowledge(nonsense.delivery()));
  EXPECT_EQ(member.in_flight(), 0u);
}

}  // namespace
}  // namespace leat
