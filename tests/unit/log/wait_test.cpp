// If this failed, a subscriber could sleep although there is a record, use
// processor time while it waits, or not return at its deadline or on a stop.
// This includes wait_any and descriptors for epoll.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <array>
#include <atomic>

#include "testing.hpp"

namespace leat {
namespace {

TEST(Wait, ReturnsAtOnceWhenSomethingIsThere) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  EXPECT_EQ(code(subscriber.wait(0s)), Errc::timeout);
  must(publisher.publish("x"));
  EXPECT_EQ(code(subscriber.wait(0s)), Errc::ok);
  EXPECT_EQ(code(subscriber.wait(0s)), Errc::ok);  // Still true until it is polled.
  EXPECT_EQ(drain(subscriber), Log{"0 x"});
  EXPECT_EQ(code(subscriber.wait(0s)), Errc::timeout);
}

TEST(Wait, GivesUpAtItsDeadlineAndNotBefore) {
  const TestTopic topic;
  auto subscriber = from_beginning(*topic);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(code(subscriber.wait(30ms)), Errc::timeout);
  EXPECT_EQ(code(subscriber.receive(30ms)), Errc::timeout);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 60ms);
}

TEST(Wait, GapsEndItToo) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  { auto claim = must(publisher.try_claim(1)); }
  EXPECT_EQ(code(subscriber.wait(0s)), Errc::ok);
  EXPECT_EQ(code(subscriber.receive(0s)), Errc::timeout);  // Passes the gap, finds no record.
  EXPECT_EQ(subscriber.offset(), 1u);
}

TEST(Wait, IsEndedByEachKindOfPublisher) {
  for (const bool exclusive : {false, true}) {
    const TestTopic topic;
    auto publisher = must(topic->publisher({.exclusive = exclusive}));
    std::atomic<int> received = 0;
    std::jthread reader{[&] {
      auto subscriber = must(topic->subscriber({.from = From::beginning, .spin = 0ns}));
      for (int i = 0; i < 200; ++i) {
        EXPECT_EQ(must(subscriber.receive(30s)).text(), std::to_string(i));
        ++received;
      }
    }};
    for (int i = 0; i < 200; ++i) {
      must(publisher.publish(std::to_string(i)));
      // The reader is usually asleep when the next record comes.
      while (received <= i) std::this_thread::sleep_for(20us);
    }
  }
}

TEST(Wait, IsStoppedFromAnotherThread) {
  const TestTopic topic;
  auto subscriber = from_beginning(*topic);
  for (int round = 0; round < 20; ++round) {
    std::stop_source source;
    std::jthread stopper{[&] {
      std::this_thread::sleep_for(round * 100us);
      source.request_stop();
    }};
    EXPECT_EQ(code(subscriber.wait(Deadline::never(), source.get_token())), Errc::stopped);
    EXPECT_EQ(code(subscriber.receive(Deadline::never(), source.get_token())), Errc::stopped);
  }
}

TEST(Wait, StopDoesNotHideARecord) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  must(publisher.publish("x"));
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(must(subscriber.receive(Deadline::never(), source.get_token())).text(), "x");
}

TEST(Wait, UsesNoProcessorWhileNothingComes) {
  const TestTopic topic;
  auto subscriber = from_beginning(*topic);
  const auto cpu = [] {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000 + usage.ru_utime.tv_usec +
           usage.ru_stime.tv_usec;
  };
  const auto switches = [] {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
  };
  const auto before = switches();
  const auto cpu_before = cpu();
  EXPECT_EQ(code(subscriber.wait(300ms)), Errc::timeout);
  EXPECT_LE(switches() - before, 5);  // One sleep, without timers in between.
  EXPECT_LT(cpu() - cpu_before, 100'000);
}

TEST(Wait, HoleOfADeadPublisherEndsIt) {
  const TestTopic topic;
  auto subscriber = from_beginning(*topic);
  Child child{[&] {
    auto publisher = must(topic.open_again().publisher());
    auto claim = must(publisher.try_claim(1));
    ::raise(SIGSTOP);
    return 0;
  }};
  int status = 0;
  ::waitpid(child.pid(), &status, WUNTRACED);
  EXPECT_EQ(code(subscriber.wait(10ms)), Errc::timeout);  // A stopped process is not dead.
  std::jthread killer{[&] {
    std::this_thread::sleep_for(10ms);
    ::kill(child.pid(), SIGKILL);
  }};
  EXPECT_EQ(code(subscriber.wait(30s)), Errc::ok);
  EXPECT_EQ(drain(subscriber), Log{"0+1 died"});
  killer.join();
  EXPECT_EQ(child.join(), -SIGKILL);
}

TEST(Wait, HoleOfAStoppedPublisherIsRevokedIfTheTopicSaysSo) {
  const TestTopic topic{{.revoke_after = 20ms}};
  auto subscriber = from_beginning(*topic);
  auto publisher = must(topic->publisher());
  auto claim = must(publisher.try_claim(1));
  auto other = must(topic->publisher());
  must(other.publish("x"));
  EXPECT_EQ(to_text(must(subscriber.receive(30s))), "1 x");
  EXPECT_EQ(code(claim.commit()), Errc::revoked);
  EXPECT_EQ(must(publisher.publish("y")), 2u);
  EXPECT_EQ(drain(subscriber), Log{"2 y"});
}

// --- Stopping one subscriber -------------------------------------------------------------------

TEST(StopWaits, EndsWaitsFromAnotherThreadUntilResumed) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  EXPECT_FALSE(subscriber.waits_are_stopped());
  {
    std::jthread stopper{[&] {
      std::this_thread::sleep_for(10ms);
      subscriber.stop_waits();
    }};
    EXPECT_EQ(code(subscriber.receive(30s)), Errc::stopped);
  }
  EXPECT_TRUE(subscriber.waits_are_stopped());
  EXPECT_EQ(code(subscriber.wait(30s)), Errc::stopped);  // It stays so.
  must(publisher.publish("x"));
  EXPECT_EQ(to_text(must(subscriber.receive(30s))), "0 x");  // What is there is still delivered.
  subscriber.resume_waits();
  EXPECT_FALSE(subscriber.waits_are_stopped());
  EXPECT_EQ(code(subscriber.receive(10ms)), Errc::timeout);
}

TEST(StopWaits, ConcernsOneSubscriber) {
  const TestTopic topic;
  auto stopped = from_beginning(*topic);
  auto other = from_beginning(*topic);
  stopped.stop_waits();
  EXPECT_EQ(code(stopped.wait(30s)), Errc::stopped);
  EXPECT_EQ(code(other.wait(10ms)), Errc::timeout);
  EXPECT_EQ(code(wait_any({&other, &stopped}, 30s)), Errc::stopped);
}

TEST(StopDescriptor, ThatBecomesReadableEndsTheWait) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  const detail::Fd event{::eventfd(0, EFD_CLOEXEC)};
  EXPECT_EQ(code(subscriber.wait(10ms, event.get())), Errc::timeout);
  {
    std::jthread stopper{[&] {
      std::this_thread::sleep_for(10ms);
      EXPECT_EQ(::eventfd_write(event.get(), 1), 0);
    }};
    EXPECT_EQ(code(subscriber.wait(Deadline::never(), event.get())), Errc::stopped);
  }
  EXPECT_EQ(code(subscriber.wait(30s, event.get())), Errc::stopped);
  eventfd_t value = 0;
  EXPECT_EQ(::eventfd_read(event.get(), &value), 0);  // The wait has not read it.
  must(publisher.publish("x"));
  EXPECT_EQ(code(subscriber.wait(30s, event.get())), Errc::ok);
  EXPECT_EQ(drain(subscriber), Log{"0 x"});
}

TEST(StopDescriptor, PublisherEndsTheWaitToo) {
  const TestTopic topic;
  auto subscriber = from_beginning(*topic);
  const detail::Fd event{::eventfd(0, EFD_CLOEXEC)};
  for (std::uint64_t i = 0; i < 5; ++i) {
    std::jthread late{[&] {
      auto publisher = must(topic->publisher());
      std::this_thread::sleep_for(5ms);
      must(publisher.publish("x"));
    }};
    EXPECT_EQ(code(subscriber.wait(30s, event.get())), Errc::ok);
    EXPECT_EQ(drain(subscriber), (Log{std::to_string(i) + " x"}));
  }
}

TEST(StopDescriptor, StopWaitsEndsTheWaitToo) {
  const TestTopic topic;
  auto subscriber = from_beginning(*topic);
  const detail::Fd event{::eventfd(0, EFD_CLOEXEC)};
  std::jthread stopper{[&] {
    std::this_thread::sleep_for(10ms);
    subscriber.stop_waits();
  }};
  EXPECT_EQ(code(subscriber.wait(Deadline::never(), event.get())), Errc::stopped);
}

TEST(StopDescriptor, DeletedTopicEndsTheWaitToo) {
  const TestTopic topic;
  auto subscriber = from_beginning(*topic);
  const detail::Fd event{::eventfd(0, EFD_CLOEXEC)};
  std::jthread remover{[&] {
    std::this_thread::sleep_for(10ms);
    must(Topic::delete_topic(kTopicName, {.force = true, .directory = topic.directory()}));
  }};
  EXPECT_EQ(code(subscriber.wait(30s, event.get())), Errc::ok);
  EXPECT_EQ(code(subscriber.poll(1, kIgnore)), Errc::deleted);
  EXPECT_EQ(code(subscriber.wait(30s, event.get())), Errc::ok);
}

// --- Several at once ---------------------------------------------------------------------------

TEST(WaitAny, TellsWhichOneIsReady) {
  const TestTopic first;
  const TestTopic second;
  auto publisher = must(second->publisher());
  auto one = from_beginning(*first);
  auto two = from_beginning(*second);
  EXPECT_EQ(code(wait_any({&one, &two}, 0s)), Errc::timeout);
  EXPECT_EQ(code(wait_any({&one, &two}, 20ms)), Errc::timeout);
  must(publisher.publish("x"));
  EXPECT_EQ(must(wait_any({&one, &two}, 0s)), 1u);
  EXPECT_EQ(must(wait_any({&two, &one}, Deadline::never())), 0u);
}

TEST(WaitAny, IsEndedByAnyOfThem) {
  const std::array<TestTopic, 3> topics;
  std::vector<Subscriber> subscribers;
  std::vector<Subscriber*> pointers;
  for (const auto& topic : topics)
    subscribers.push_back(must(topic->subscriber({.from = From::beginning, .spin = 0ns})));
  for (auto& subscriber : subscribers) pointers.push_back(&subscriber);
  for (std::size_t i = 0; i < 30; ++i) {
    std::jthread writer{[&] {
      auto publisher = must(topics[i % 3]->publisher());
      std::this_thread::sleep_for(1ms);
      must(publisher.publish("x"));
    }};
    ASSERT_EQ(must(wait_any(pointers, 30s)), i % 3);
    EXPECT_EQ(drain(subscribers[i % 3]).size(), 1u);
  }
}

TEST(WaitAny, NoneOrTooManyIsRefused) {
  const TestTopic topic;
  auto subscriber = from_beginning(*topic);
  EXPECT_EQ(code(wait_any(std::span<Subscriber* const>{}, 0s)), Errc::invalid_argument);
  const std::vector<Subscriber*> many(kMaxWaitAny + 1, &subscriber);
  EXPECT_EQ(code(wait_any(many, 0s)), Errc::invalid_argument);
}

TEST(WaitAny, IsStoppedFromAnotherThread) {
  const TestTopic first;
  const TestTopic second;
  auto one = from_beginning(*first);
  auto two = from_beginning(*second);
  std::stop_source source;
  std::jthread stopper{[&] {
    std::this_thread::sleep_for(5ms);
    source.request_stop();
  }};
  EXPECT_EQ(code(wait_any({&one, &two}, Deadline::never(), source.get_token())), Errc::stopped);
}

TEST(WaitAny, DeletedTopicEndsIt) {
  const TestTopic first;
  const TestTopic second;
  auto one = from_beginning(*first);
  auto two = from_beginning(*second);
  std::jthread remover{[&] {
    std::this_thread::sleep_for(5ms);
    must(Topic::delete_topic(kTopicName, {.force = true, .directory = second.directory()}));
  }};
  EXPECT_EQ(must(wait_any({&one, &two})), 1u);
  EXPECT_EQ(code(two.poll(1, kIgnore)), Errc::deleted);
}

// --- Descriptors -------------------------------------------------------------------------------

class Epoll {
 public:
  Epoll() : fd_{::epoll_create1(EPOLL_CLOEXEC)} {}
  void add(int fd, std::uint32_t number) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u32 = number;
    ASSERT_EQ(::epoll_ctl(fd_.get(), EPOLL_CTL_ADD, fd, &event), 0);
  }
  // The number of a readable descriptor, or -1.
  int wait(std::chrono::milliseconds timeout) const {
    epoll_event event{};
    const int count = ::epoll_wait(fd_.get(), &event, 1, static_cast<int>(timeout.count()));
    return count == 1 ? static_cast<int>(event.data.u32) : -1;
  }

 private:
  detail::Fd fd_;
};

TEST(WaitFd, IsReadableWhenThereIsSomethingToPoll) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  const Epoll epoll;
  epoll.add(must(subscriber.wait_fd()), 7);
  EXPECT_EQ(must(subscriber.wait_fd()), must(subscriber.wait_fd()));
  for (std::uint64_t round = 0; round < 50; ++round) {
    must(publisher.publish("a"));
    must(publisher.publish("b"));
    ASSERT_EQ(epoll.wait(30s), 7);
    const Log log = drain(subscriber);
    if (!log.empty()) {
      ASSERT_EQ(log.front(), std::to_string(2 * round) + " a");
    }
    while (subscriber.offset() < 2 * (round + 1)) {
      ASSERT_EQ(epoll.wait(30s), 7);
      (void)drain(subscriber);
    }
  }
  // A late wake-up may have made it readable once more; after one more empty poll it is quiet.
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(drain(subscriber), Log{});
  EXPECT_EQ(epoll.wait(30ms), -1);
}

TEST(WaitFd, OfOneMadeLateIsReadableAtOnce) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  must(publisher.publish("a"));
  const Epoll epoll;
  epoll.add(must(subscriber.wait_fd()), 0);
  EXPECT_EQ(epoll.wait(30s), 0);
}

TEST(WaitFd, OfADeletedTopicIsReadableAtOnce) {
  const TestTopic topic;
  auto subscriber = from_beginning(*topic);
  must(Topic::delete_topic(kTopicName, {.force = true, .directory = topic.directory()}));
  const Epoll epoll;
  epoll.add(must(subscriber.wait_fd()), 0);
  EXPECT_EQ(epoll.wait(30s), 0);
}

TEST(WaitFd, IsUnreadableAfterAWaitForAnotherDescriptor) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  const detail::Fd stop{::eventfd(0, EFD_CLOEXEC)};
  const Epoll epoll;
  epoll.add(must(subscriber.wait_fd()), 0);
  must(publisher.publish("a"));
  EXPECT_EQ(must(subscriber.receive(0s)).text(), "a");
  EXPECT_EQ(code(subscriber.wait(0s, stop.get())), Errc::timeout);
  EXPECT_EQ(epoll.wait(30ms), -1);
  must(publisher.publish("b"));
  EXPECT_EQ(epoll.wait(30s), 0);
}

TEST(WaitFd, IsUnreadableAfterAWaitThatFoundNothing) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  const Epoll epoll;
  epoll.add(must(subscriber.wait_fd()), 0);
  must(publisher.publish("a"));
  ASSERT_EQ(epoll.wait(30s), 0);
  EXPECT_EQ(must(subscriber.receive(0s)).text(), "a");
  EXPECT_EQ(epoll.wait(30s), 0);  // The subscriber did not check whether there is more.
  EXPECT_EQ(code(subscriber.wait(0s)), Errc::timeout);
  EXPECT_EQ(epoll.wait(30ms), -1);
  must(publisher.publish("b"));
  EXPECT_EQ(epoll.wait(30s), 0);
}

TEST(WaitFd, ManySubscribersInOneEpoll) {
  const TestTopic first;
  const TestTopic second;
  auto one = from_beginning(*first);
  auto two = from_beginning(*second);
  const Epoll epoll;
  epoll.add(must(one.wait_fd()), 0);
  epoll.add(must(two.wait_fd()), 1);
  std::jthread writer{[&] {
    auto publisher_one = must(first->publisher());
    auto publisher_two = must(second->publisher({.exclusive = true}));
    for (int i = 0; i < 100; ++i) {
      must(publisher_one.publish("x"));
      std::this_thread::sleep_for(100us);
      must(publisher_two.publish("x"));
    }
  }};
  while (one.offset() < 100 || two.offset() < 100) {
    const int ready = epoll.wait(30s);
    ASSERT_NE(ready, -1) << one.offset() << " " << two.offset();
    (void)drain(ready == 0 ? one : two);
  }
}

TEST(WaitFd, IsReadableFromWhenAStopIsRequested) {
  const TestTopic topic;
  auto subscriber = from_beginning(*topic);
  const Epoll epoll;
  std::stop_source source;
  epoll.add(must(subscriber.wait_fd(source.get_token())), 0);
  EXPECT_EQ(epoll.wait(20ms), -1);
  {
    std::jthread stopper{[&] {
      std::this_thread::sleep_for(10ms);
      source.request_stop();
    }};
    EXPECT_EQ(epoll.wait(30s), 0);
  }
  EXPECT_EQ(drain(subscriber), Log{});
  EXPECT_EQ(epoll.wait(0ms), 0);  // It stays so.
  const detail::Fd never{::eventfd(0, EFD_CLOEXEC)};
  EXPECT_EQ(code(subscriber.wait(30s, never.get())), Errc::stopped);
}

TEST(WaitFd, ListensToTheLastTokenOnly) {
  const TestTopic topic;
  auto subscriber = from_beginning(*topic);
  const Epoll epoll;
  std::stop_source first;
  std::stop_source last;
  epoll.add(must(subscriber.wait_fd(first.get_token())), 0);
  (void)must(subscriber.wait_fd(last.get_token()));
  (void)must(subscriber.wait_fd());  // None: the last one stays.
  EXPECT_EQ(drain(subscriber), Log{});
  first.request_stop();
  EXPECT_EQ(epoll.wait(20ms), -1);
  last.request_stop();
  EXPECT_EQ(epoll.wait(30s), 0);
}

TEST(WaitFd, OfATokenThatHasStoppedIsReadableAtOnce) {
  const TestTopic topic;
  auto subscriber = from_beginning(*topic);
  std::stop_source source;
  source.request_stop();
  const Epoll epoll;
  epoll.add(must(subscriber.wait_fd(source.get_token())), 0);
  EXPECT_EQ(epoll.wait(30s), 0);
}

TEST(WaitFd, SubscriberMayGoBeforeItsStopIsRequested) {
  const TestTopic topic;
  std::stop_source source;
  {
    auto subscriber = from_beginning(*topic);
    (void)must(subscriber.wait_fd(source.get_token()));
    const Subscriber moved = std::move(subscriber);
  }
  EXPECT_TRUE(source.request_stop());
}

TEST(WaitFd, IsReadableWhileWaitsAreStopped) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  const Epoll epoll;
  epoll.add(must(subscriber.wait_fd()), 0);
  {
    std::jthread stopper{[&] {
      std::this_thread::sleep_for(10ms);
      subscriber.stop_waits();
    }};
    EXPECT_EQ(epoll.wait(30s), 0);
  }
  EXPECT_EQ(drain(subscriber), Log{});
  EXPECT_EQ(epoll.wait(0ms), 0);  // It stays so.
  subscriber.resume_waits();
  EXPECT_EQ(drain(subscriber), Log{});
  EXPECT_EQ(epoll.wait(20ms), -1);
  must(publisher.publish("x"));
  EXPECT_EQ(epoll.wait(30s), 0);
}

TEST(WaitFd, TellsOfDeletion) {
  const TestTopic topic;
  auto subscriber = from_beginning(*topic);
  const Epoll epoll;
  epoll.add(must(subscriber.wait_fd()), 0);
  must(Topic::delete_topic(kTopicName, {.force = true, .directory = topic.directory()}));
  EXPECT_EQ(epoll.wait(30s), 0);
  EXPECT_EQ(code(subscriber.poll(1, kIgnore)), Errc::deleted);
}

TEST(WaitFd, TellsOfADeadPublishersHole) {
  const TestTopic topic;
  auto subscriber = from_beginning(*topic);
  const Epoll epoll;
  epoll.add(must(subscriber.wait_fd()), 0);
  Child child{[&] {
    auto publisher = must(topic.open_again().publisher());
    auto claim = must(publisher.try_claim(1));
    ::_exit(0);
    return 1;
  }};
  EXPECT_EQ(child.join(), 0);
  Log log;
  const Deadline deadline{30s};
  auto other = must(topic->publisher());
  must(other.publish("x"));
  while (subscriber.offset() < 2 && !deadline.passed()) {
    ASSERT_EQ(epoll.wait(30s), 0);
    const Log more = drain(subscriber);
    log.insert(log.end(), more.begin(), more.end());
  }
  EXPECT_EQ(log, (Log{"0+1 died", "1 x"}));
}

// When the helper thread fell asleep there was no hole, so it has no timer. Then a publisher
// claims, and the next poll finds the hole. A program that polls whenever the descriptor is
// readable must notice that the owner dies.
TEST(WaitFd, TellsOfAHoleThatCameWhileItsHelperSlept) {
  const TestTopic topic;
  auto subscriber = from_beginning(*topic);
  const Epoll epoll;
  epoll.add(must(subscriber.wait_fd()), 0);
  EXPECT_EQ(epoll.wait(20ms), -1);  // The helper is asleep by now.
  Child child{[&] {
    auto publisher = must(topic.open_again().publisher());
    auto claim = must(publisher.try_claim(1));
    ::raise(SIGSTOP);
    return 0;
  }};
  int status = 0;
  ASSERT_EQ(::waitpid(child.pid(), &status, WUNTRACED), child.pid());
  EXPECT_EQ(drain(subscriber), Log{});
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(epoll.wait(30s), 0) << i;  // It is readable every 2 ms.
    EXPECT_EQ(drain(subscriber), Log{});
  }
  ::kill(child.pid(), SIGKILL);
  EXPECT_EQ(child.join(), -SIGKILL);
  Log log;
  while (subscriber.offset() == 0) {
    ASSERT_EQ(epoll.wait(30s), 0);
    log = drain(subscriber);
  }
  EXPECT_EQ(log, Log{"0+1 died"});
  // It is quiet again, except that a late wake-up may have made it readable once more.
  (void)epoll.wait(20ms);
  EXPECT_EQ(drain(subscriber), Log{});
  EXPECT_EQ(epoll.wait(30ms), -1);
}

}  // namespace
}  // namespace leat
