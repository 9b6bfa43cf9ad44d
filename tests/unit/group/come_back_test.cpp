// If this failed, returned records (not handed out by poll, requeued, or parked for their key)
// could be lost, come out of order by key, or use up a member's limit so that the group stalls.
#include <atomic>
#include <map>
#include <memory>

#include "group/group_testing.hpp"

namespace leat {
namespace {

void publish_keyed(Publisher& publisher, const char* key, int count) {
  for (int i = 0; i < count; ++i) must(publisher.publish({.key = key, .value = "x"}));
}

// A member is killed in the callback of the first record of a poll.
void poll_and_die(const TestTopic& topic) {
  Child child{[&topic] {
    Member member = join(must(topic.open_again().find_group(kGroupName)));
    must(member.poll(1000, [](const Delivery&) { ::raise(SIGKILL); }));
    return 0;
  }};
  int status = 0;
  ::waitpid(child.pid(), &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
}

std::vector<Delivery> take_what_comes(Member& member, std::size_t count) {
  std::vector<Delivery> taken;
  while (taken.size() < count) {
    taken.push_back(take(member));
    must(member.acknowledge(taken.back()));
  }
  EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);
  return taken;
}

// ---- poll ----------------------------------------------------------------------------------------

TEST(MemberPoll, CountsOnlyWhatItHandedOut) {
  for (const bool by_key : {false, true}) {
    const TestTopic topic;
    auto publisher = must(topic->publisher());
    const Group group = group_of(*topic, {.by_key = by_key, .max_deliveries = 1});
    for (int i = 0; i < 50; ++i)
      must(publisher.publish({.key = std::to_string(i % 20), .value = "x"}));
    poll_and_die(topic);
    Member member = join(group);
    for (const Delivery& one : take_what_comes(member, 49)) EXPECT_EQ(one.deliveries, 1u);
    EXPECT_EQ(dead_values(dead_topic(topic)).size(), 1u);  // Only one was handed out.
  }
}

TEST(MemberPoll, AtMostOnceLosesOnlyWhatItHandedOut) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.mode = GroupMode::at_most_once});
  publish_numbers(publisher, 50);
  poll_and_die(topic);
  Member member = join(group);
  EXPECT_EQ(sorted(to_log(take_what_comes(member, 49))), sorted(numbers(49, 1)));
}

// While a callback does not return, other members get all records but that one; by key, all but
// those with its key.
TEST(MemberPoll, CallbackThatBlocksHoldsBackItsOwnRecordOnly) {
  for (const bool by_key : {false, true}) {
    const TestTopic topic;
    auto publisher = must(topic->publisher());
    const Group group = group_of(*topic, {.by_key = by_key});
    for (int i = 0; i < 60; ++i)
      must(publisher.publish({.key = std::to_string(i % 10), .value = "x"}));
    std::atomic<bool> blocks{false};
    std::atomic<bool> goes_on{false};
    std::jthread slow{[&] {
      Member member = join(group);
      must(member.poll(1000, [&](const Delivery&) {
        blocks = true;
        while (!goes_on) std::this_thread::yield();
      }));
    }};
    while (!blocks) std::this_thread::yield();
    Member other = join(group);
    const std::size_t count = by_key ? 54 : 59;  // Six records have the blocked key.
    EXPECT_EQ(drain(other, count).size(), count);
    EXPECT_EQ(code(other.receive(kNothingFor)), Errc::timeout);
    EXPECT_EQ(group.info().redelivered, 0u);
    goes_on = true;
    slow.join();
    while (group.info().in_flight != 0) drain(other);
    EXPECT_EQ(group.info().lag, 0u);
  }
}

// By key, too, a record's lease begins when the callback gets it; until it
// ends, nobody else gets the record.
TEST(MemberPoll, LeaseRunsFromTheHandOver) {
  constexpr auto kLease = 300ms;
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.by_key = true, .lease = kLease});
  publish_keyed(publisher, "a", 4);
  Member member = join(group);
  std::optional<Member> other;  // Joins after the batch is taken.
  std::uint64_t seen = 0;
  while (seen < 4) {
    must(member.poll(4, [&](const Delivery& mine) {
      ++seen;
      if (!other) other.emplace(join(group));
      const auto until = std::chrono::steady_clock::now() + kLease * 4 / 10;
      while (std::chrono::steady_clock::now() < until) {
        const auto theirs = other->receive(1ms);
        EXPECT_FALSE(theirs) << "offset " << theirs->record.offset << " beside "
                             << mine.record.offset;
      }
    }));
  }
  EXPECT_EQ(group.info().redelivered, 0u);
}

// A member retakes three returned records, gets one of them and then makes no
// progress, so that another member takes the other two away.
TEST(ComeBack, RetakenRecordsThatNobodyGotAreNotRedelivered) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  publish_numbers(publisher, 3);
  {
    Member first = join(group);
    EXPECT_EQ(take_all(first).size(), 3u);
  }
  Member slow = join(group);
  must(slow.acknowledge(take(slow)));
  ASSERT_EQ(slow.in_flight(), 2u);
  Member other = join(group);
  EXPECT_EQ(drain(other, 2).size(), 2u);
  EXPECT_EQ(code(slow.receive(Deadline::immediate())), Errc::timeout);
  EXPECT_EQ(group.info().redelivered, 3u);
}

// ---- Limits --------------------------------------------------------------------------------------

TEST(ComeBack, RetakenRecordsCountAgainstTheLimit) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.in_flight = 3});
  Member member = join(group);
  publish_numbers(publisher, 12);
  for (int i = 0; i < 3; ++i) {
    Member earlier = join(group);
    for (int k = 0; k < 3; ++k) (void)take(earlier);
  }
  EXPECT_EQ(group.info().in_flight, 3u);  // Each member took what the previous one had left.
  std::vector<Delivery> taken;
  while (taken.size() < 3) must(member.receive(taken, 10, kPatience));
  EXPECT_EQ(taken.size(), 3u);
  EXPECT_EQ(code(member.receive(kPatience)), Errc::in_flight_full);
  EXPECT_EQ(must(member.acknowledge_all()), 3u);
  EXPECT_EQ(drain(member, 9).size(), 9u);
}

TEST(ComeBack, RequeuedRecordsUseUpNoPlaces) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.in_flight = 4});
  Member member = join(group);
  publish_numbers(publisher, 80);
  constexpr std::uint64_t kRoom = 4 + 16 * 4;
  for (std::uint64_t i = 0; i < kRoom; ++i) {
    const Delivery one = take(member);
    ASSERT_EQ(one.record.offset, i);
    must(member.requeue(one, 1h));
  }
  GroupInfo info = group.info();
  EXPECT_EQ(info.returned, kRoom);
  EXPECT_EQ(info.returned_limit, 64u);
  EXPECT_EQ(info.taking, Errc::redelivery_full);
  EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);
  Member other = join(group);  // It has a row of entries of its own.
  EXPECT_EQ(drain(other, 12), numbers(12, kRoom));
  EXPECT_EQ(group.info().lag, 0u);
}

// Records that a member requeued and others took lie in its row, but do not
// count against its limit.
TEST(ComeBack, WhatOthersHoldUsesUpNoPlaces) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.in_flight = 4});
  Member giver = join(group);
  std::vector<Member> others;
  for (int i = 0; i < 3; ++i) others.push_back(join(group));
  publish_numbers(publisher, 16);
  for (std::uint64_t i = 0; i < 12; ++i) {
    must(giver.requeue(take(giver)));
    (void)take(others[i / 4]);
  }
  EXPECT_EQ(drain(giver, 4).size(),
            4u);  // The others have new records, too: they take turns with returned ones.
  for (Member& other : others) EXPECT_EQ(must(other.acknowledge_all()), 4u);
  EXPECT_EQ(group.info().in_flight, 0u);
}

// ---- By key --------------------------------------------------------------------------------------

TEST(ComeBack, HotKeyDoesNotStopOtherKeys) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.by_key = true, .in_flight = 8});
  Member slow = join(group);
  publish_keyed(publisher, "hot", 1);
  const Delivery held = take(slow);
  publish_keyed(publisher, "hot", 100);
  publish_keyed(publisher, "other", 3);
  Member fast = join(group);
  EXPECT_EQ(drain(fast, 3).size(), 3u);
  EXPECT_EQ(code(fast.receive(kNothingFor)), Errc::timeout);
  must(slow.acknowledge(held));
  std::uint64_t next = 1;
  while (next <= 100) {  // In order, whichever member takes them.
    const Delivery one = take(next % 2 == 0 ? fast : slow);
    EXPECT_EQ(one.record.offset, next++);
    must((next % 2 == 0 ? slow : fast).acknowledge(one));
  }
  EXPECT_EQ(group.info().in_flight, 0u);
}

TEST(ComeBack, SeekBackLeavesHeldKeysAlone) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.by_key = true});
  Member a = join(group);
  Member b = join(group);
  publish_keyed(publisher, "k", 4);
  must(a.acknowledge(take(a)));
  const Delivery held = take(a);
  must(group.seek(From::beginning));
  EXPECT_EQ(code(b.receive(kNothingFor)), Errc::timeout);
  must(a.acknowledge(held));
  for (std::uint64_t offset = 0; offset < 4; ++offset) {
    const Delivery one = take(b);
    EXPECT_EQ(one.record.offset, offset);
    must(b.acknowledge(one));
  }
}

// With many members, batches, keys, polls and returned records, the records of a key are still
// processed one at a time and in order.
TEST(ComeBack, OrderByKeyHoldsInBatches) {
  constexpr std::size_t kKeys = 5;
  constexpr std::size_t kRecords = 4000;
  const TestTopic topic{{.capacity_bytes = 256 * kSegment}};
  const Group group = group_of(*topic, {.by_key = true, .in_flight = 32});
  auto publisher = must(topic->publisher());
  for (std::size_t i = 0; i < kRecords; ++i)
    must(publisher.publish({.key = std::to_string(i % kKeys), .value = std::to_string(i / kKeys)}));
  std::vector<std::atomic<int>> owner(kKeys);
  std::vector<std::size_t> done(kKeys, 0);  // Accessed only by the member that has the key.
  std::atomic<std::size_t> left{kRecords};
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&, i] {
        Member member = join(group);
        std::map<std::size_t, int> mine;
        const auto begin = [&](const Delivery& one) {
          const std::size_t key = std::stoul(std::string{one.record.key.text()});
          if (mine[key]++ == 0 && owner[key].exchange(i + 1) != 0) ++wrong;
          return key;
        };
        const auto end = [&](std::size_t key) {
          if (--mine[key] == 0) owner[key] = 0;
          --left;
        };
        while (left > 0) {
          std::vector<Delivery> taken;
          if (i == 0) {
            (void)member.poll(16, [&](const Delivery& one) {
              const std::size_t key = begin(one);
              if (std::stoul(std::string{one.record.text()}) != done[key]++) ++wrong;
              end(key);
            });
            continue;
          }
          if (!member.receive(taken, 16, 1ms)) continue;
          for (const Delivery& one : taken) (void)begin(one);
          for (const Delivery& one : taken) {
            const std::size_t key = std::stoul(std::string{one.record.key.text()});
            if (std::stoul(std::string{one.record.text()}) != done[key]++) ++wrong;
            end(key);
            must(member.acknowledge(one));
          }
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(group.info().in_flight, 0u);
}

// ---- Infinite times ------------------------------------------------------------------------------

constexpr auto kForEver = std::chrono::nanoseconds::max();

TEST(ForEver, ALeaseThatNeverEndsIsNotOver) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.lease = kForEver});
  Member member = join(group);
  Member other = join(group);
  publish_numbers(publisher, 1);
  const Delivery held = take(member);
  EXPECT_EQ(code(other.receive(kNothingFor)), Errc::timeout);
  must(member.acknowledge(held));
}

TEST(ForEver, ADelayThatNeverEndsIsKept) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic));
  publish_numbers(publisher, 1);
  must(member.requeue(take(member), kForEver));
  EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);
}

// Entries of the spare row have the largest numbers.
TEST(ComeBack, SpareEntriesCanBeAcknowledged) {
  constexpr std::uint32_t kInFlight = 4097;
  constexpr std::uint32_t kDelayed = (1 << 16) + kInFlight;
  const TestTopic topic{{.capacity_bytes = 1024 * kSegment}};
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic, {.in_flight = kInFlight}));
  for (std::uint32_t i = 0; i < kDelayed + 3; ++i) must(publisher.publish("x"));
  for (std::uint32_t i = 0; i < kDelayed; ++i) must(member.requeue(take(member), 1h));
  must(member.acknowledge(take(member)));
  must(member.requeue(take(member), 1h));
  (void)take(member);
  EXPECT_EQ(must(member.acknowledge_all()), 1u);
  EXPECT_EQ(member.in_flight(), 0u);
}

}  // namespace
}  // namespace leat
