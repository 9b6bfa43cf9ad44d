// If this failed, a program that was stopped together with all others (`docker pause`, SIGSTOP, a busy machine) would take
// that for their lateness when it continues, and evict subscribers, revoke publishers or take records away from members that
// were never late.
//
// A standstill is a sleep at a step of the one who judges: the others do not move meanwhile. They do as soon as it has judged.
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <functional>
#include <thread>

#include "support/moment.hpp"
#include "support/process.hpp"
#include "unit/group/group_testing.hpp"

namespace leat {
namespace {

using testing::Moment;

constexpr auto kStandstill = 400ms;

TEST(Standstill, OfAPublisherEvictsNobody) {
  const TestTopic topic{{.evict_after = 200ms}};
  auto publisher = must(topic->publisher());
  std::optional<Subscriber> subscriber;
  std::jthread{[&] {  // Not the publisher's thread.
    subscriber = from_beginning(*topic);
    (void)subscriber->poll(0, [](const Record&) {});
  }}
      .join();
  for (int i = 0; i < 8; ++i) must(publisher.publish(kHalfText));
  int sleeps = 0;
  std::uint64_t read = 0;
  {
    const Moment moment{"space:sleeping", [&] {
                          if (++sleeps == 1) return std::this_thread::sleep_for(kStandstill);
                          std::jthread{[&] {
                            auto polled = subscriber->poll(8, [&](const Record&) { ++read; });
                            EXPECT_TRUE(polled);
                          }}.join();
                        }};
    must(publisher.publish(kHalfText, 30s));
  }
  EXPECT_GE(sleeps, 2);
  EXPECT_EQ(read, 8U);
  EXPECT_FALSE(subscriber->is_lossy());
}

// The one that does not move is evicted all the same.
TEST(Standstill, OfAPublisherDelaysAnEvictionOnly) {
  const TestTopic topic{{.evict_after = 200ms}};
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  for (int i = 0; i < 8; ++i) must(publisher.publish(kHalfText));
  int sleeps = 0;
  {
    const Moment moment{"space:sleeping", [&] {
                          if (++sleeps == 1) std::this_thread::sleep_for(kStandstill);
                        }};
    must(publisher.publish(kHalfText, 30s));
  }
  EXPECT_GE(sleeps, 2);
  (void)drain(subscriber);
  EXPECT_TRUE(subscriber.is_lossy());
}

// A publisher that does not wait, but tries twice in a row now and then.
TEST(Standstill, IsNotSeenForEverInTheRhythmOfAPublisher) {
  const TestTopic topic{{.evict_after = 200ms}};
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  for (int i = 0; i < 8; ++i) must(publisher.publish(kHalfText));
  bool has_room = false;
  int rounds = 0;
  for (; !has_room && rounds < 10; ++rounds) {
    std::this_thread::sleep_for(120ms);
    for (int i = 0; i < 2; ++i)
      has_room |= publisher.publish(kHalfText, Deadline::immediate()).has_value();
  }
  EXPECT_TRUE(has_room);
  EXPECT_GT(rounds, 2);  // The first gaps may have been standstills.
  (void)drain(subscriber);
  EXPECT_TRUE(subscriber.is_lossy());
}

// The subscriber that blocks it belongs to the publisher's thread, but is about to be given to another one.
TEST(Standstill, OfAPublisherIsNoDeadlock) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  for (int i = 0; i < 8; ++i) must(publisher.publish(kHalfText));
  int sleeps = 0;
  {
    const Moment moment{
        "space:sleeping", [&] {
          if (++sleeps == 1) return std::this_thread::sleep_for(1200ms);
          std::jthread{[&] { EXPECT_TRUE(subscriber.poll(8, [](const Record&) {})); }}.join();
        }};
    EXPECT_EQ(code(publisher.publish(kHalfText, 30s)), Errc::ok);
  }
  EXPECT_GE(sleeps, 2);
}

TEST(Standstill, OfASubscriberRevokesNobody) {
  const TestTopic topic{{.revoke_after = 100ms}};
  auto subscriber = from_beginning(*topic);
  auto publisher = must(topic->publisher());
  auto claim = must(publisher.try_claim(1));
  for (const auto pause : {0ms, 400ms}) {
    std::this_thread::sleep_for(pause);
    EXPECT_EQ(must(subscriber.poll(1, [](const Record&) {})), 0U);
  }
  EXPECT_EQ(code(claim.commit()), Errc::ok);
  EXPECT_EQ(must(subscriber.receive(30s)).offset, 0U);
  // Who stays away is revoked, although this one polls seldom.
  auto late = must(publisher.try_claim(1));
  auto other = must(topic->publisher());
  must(other.publish("x"));
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(150ms);
    if (must(subscriber.poll(1, [](const Record&) {})) != 0) break;
  }
  EXPECT_EQ(code(late.commit()), Errc::revoked);
}

TEST(Standstill, OfAMemberEndsNoLease) {
  const TestTopic topic;
  const Group group = group_of(*topic, {.lease = 100ms});
  auto publisher = must(topic->publisher());
  Member holder = join(group);
  Member judge = join(group);
  publish_numbers(publisher, 1);
  const Delivery held = take(holder);
  for (const auto pause : {0ms, 400ms}) {
    std::this_thread::sleep_for(pause);
    EXPECT_EQ(code(judge.receive(Deadline::immediate())), Errc::timeout);
  }
  EXPECT_EQ(code(holder.acknowledge(held)), Errc::ok);
  // Whoever keeps a record for longer loses it.
  publish_numbers(publisher, 1);
  const Delivery lost = take(holder);
  auto taken = judge.receive(30s);
  ASSERT_TRUE(taken) << describe(taken.error());
  EXPECT_EQ(taken->record.offset, 1U);
  EXPECT_EQ(code(holder.acknowledge(lost)), Errc::lease_lost);
}

// When it last looked, nobody had records: so there was no limit to its sleep, but it did not sleep.
TEST(Standstill, OfAMemberThatHadNobodyToWatchEndsNoLease) {
  enum class Before { join, poll, wait, polls_seldom };
  for (const auto before : {Before::join, Before::poll, Before::wait, Before::polls_seldom}) {
    SCOPED_TRACE(static_cast<int>(before));
    const TestTopic topic;
    const Group group = group_of(*topic, {.lease = 100ms});
    auto publisher = must(topic->publisher());
    Member holder = join(group);
    Member judge = join(group);
    const auto poll = [&](Deadline deadline) {
      EXPECT_EQ(code(judge.receive(deadline)), Errc::timeout);
    };
    if (before == Before::poll) poll(Deadline::immediate());
    if (before == Before::wait) poll(10ms);
    for (int i = 0; before == Before::polls_seldom && i < 3; ++i) {
      std::this_thread::sleep_for(150ms);
      poll(Deadline::immediate());
    }
    publish_numbers(publisher, 1);
    const Delivery held = take(holder);
    std::this_thread::sleep_for(kStandstill);
    poll(Deadline::immediate());
    EXPECT_EQ(code(holder.acknowledge(held)), Errc::ok);
    // Whoever keeps a record for longer loses it.
    publish_numbers(publisher, 1);
    const Delivery lost = take(holder);
    auto taken = judge.receive(30s);
    ASSERT_TRUE(taken) << describe(taken.error());
    EXPECT_EQ(code(holder.acknowledge(lost)), Errc::lease_lost);
  }
}

// It stands still after it has looked at the clock, and before it looks at the leases.
TEST(Standstill, OfAMemberInTheMiddleOfAScanEndsNoLease) {
  const TestTopic topic;
  const Group group = group_of(*topic, {.lease = 500ms});
  auto publisher = must(topic->publisher());
  Member holder = join(group);
  Member judge = join(group);
  publish_numbers(publisher, 1);
  const Delivery held = take(holder);
  int polls = 0;
  {
    const Moment moment{"others:looking", [&] {
                          if (++polls == 1) std::this_thread::sleep_for(600ms);
                        }};
    EXPECT_EQ(code(judge.receive(200ms)), Errc::timeout);
  }
  EXPECT_GE(polls, 1);
  EXPECT_EQ(code(holder.acknowledge(held)), Errc::ok);
}

// It sleeps for as long as the lease lasts, and wakes in time.
TEST(Standstill, IsNotWhatAMemberSleepsOfItsOwnChoice) {
  const TestTopic topic;
  const Group group = group_of(*topic, {.lease = 300ms});
  auto publisher = must(topic->publisher());
  Member holder = join(group);
  Member judge = join(group);
  publish_numbers(publisher, 1);
  (void)take(holder);
  auto taken = judge.receive(30s);
  ASSERT_TRUE(taken) << describe(taken.error());
  EXPECT_EQ(taken->record.offset, 0U);
}

void until(const std::atomic<bool>& flag) {
  for (const Deadline deadline{30s}; !flag && !deadline.passed();) std::this_thread::sleep_for(1ms);
}

// The archiver is in the middle of a write. The process that stands by finds that the archiver has not moved during the
// standstill, and lets it go on.
TEST(Standstill, OfAProcessThatStandsByTakesNothingOver) {
  struct Flags {
    std::atomic<bool> is_archiver, is_opened, is_stuck, may_go_on, has_gone_on, may_end;
  };
  static testing::Shared<Flags> flags;
  const testing::TemporaryDirectory temp;
  std::filesystem::create_directories(temp.path() + "/topics");
  const TopicOptions options{.directory = temp.path() + "/topics",
                             .durable = Durability::os,
                             .data_directory = temp.path() + "/data"};
  testing::Child archiver{[&]() -> int {
    auto topic = Topic::open_or_create("d", options);
    CHILD_CHECK_OK(topic);
    auto publisher = topic->publisher();
    CHILD_CHECK_OK(publisher->publish("first"));
    while (topic->info().durable->archiver_pid == 0) std::this_thread::sleep_for(1ms);
    CHILD_CHECK_OK(publisher->flush(kPatience));
    flags->is_archiver = true;
    until(flags->is_opened);
    detail::crash_point_hook = [](const char* name) {
      if (name == std::string_view{"archiver:announced"})
        flags->has_gone_on = flags->is_stuck.load();
      if (name != std::string_view{"archiver:written"}) return;
      flags->is_stuck = true;
      until(flags->may_go_on);
    };
    CHILD_CHECK_OK(publisher->publish("second"));
    until(flags->may_end);
    return 0;
  }};
  until(flags->is_archiver);
  std::atomic<int> polls = 0;
  const Moment moment{"archiver:watched", [&] {
                        if (!flags->is_stuck) return;
                        if (++polls == 1) std::this_thread::sleep_for(kStandstill);
                        if (polls == 2) {
                          flags->may_go_on = true;
                          until(flags->has_gone_on);
                        }
                      }};
  auto topic = Topic::open("d", Deadline::immediate(), options.directory);
  ASSERT_TRUE(topic) << describe(topic.error());
  const std::uint32_t before = topic->info().durable->archiver_pid;
  flags->is_opened = true;
  until(flags->has_gone_on);
  EXPECT_GE(polls, 2);
  EXPECT_EQ(topic->info().durable->archiver_pid, before);
  flags->may_go_on = flags->may_end = true;
  EXPECT_NE(archiver.wait(), testing::Child::State::late);
}

}  // namespace
}  // namespace leat
