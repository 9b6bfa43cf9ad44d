// If this failed, in a group by key two members could process records with the same key at the same
// time or out of order, or other keys would wait without a reason.
#include <atomic>
#include <map>
#include <memory>

#include "group/group_testing.hpp"

namespace leat {
namespace {

TEST(ByKey, KeyThatIsHeldStaysAway) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.by_key = true});
  Member a = join(group);
  Member b = join(group);
  publish_pairs(publisher, {{"k", "first"}});
  const Delivery first = take(a);
  publish_pairs(publisher, {{"k", "second"}, {"other", "third"}});
  EXPECT_EQ(drain(b, 1), (Log{"2 third"}));
  EXPECT_EQ(code(b.receive(kNothingFor)), Errc::timeout);
  must(a.acknowledge(first));
  EXPECT_EQ(drain(b, 1), (Log{"1 second"}));
}

TEST(ByKey, RequeuedRecordHoldsItsKeyBack) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.by_key = true});
  Member a = join(group);
  Member b = join(group);
  publish_pairs(publisher, {{"k", "1"}, {"k", "2"}, {"other", "3"}});
  const Delivery first = take(a);
  EXPECT_EQ(first.record.text(), "1");
  const auto until = std::chrono::steady_clock::now() + 300ms;
  must(a.requeue(first, 300ms));
  Log of_key;
  Log of_others;
  while (of_key.size() + of_others.size() < 3) {
    for (Member* member : {&a, &b}) {
      auto delivery = member->receive(1ms);
      if (!delivery) continue;
      const bool is_of_key = delivery->record.key.text() == "k";
      if (is_of_key) {
        EXPECT_GE(std::chrono::steady_clock::now(), until);
      }
      (is_of_key ? of_key : of_others).push_back(to_text(*delivery));
      must(member->acknowledge(*delivery));
    }
  }
  EXPECT_EQ(of_key, (Log{"0 1", "1 2"}));
  EXPECT_EQ(of_others, (Log{"2 3"}));
}

// One key is held forever; the other keys must not wait for it.
TEST(ByKey, OtherKeysGoOnMeanwhile) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic, {.by_key = true}));
  publish_pairs(publisher, {{"k", "0"}, {"k", "1"}, {"other", "2"}, {"k", "3"}, {"more", "4"}});
  must(member.requeue(take(member), 1h));
  EXPECT_EQ(drain(member, 2), (Log{"2 2", "4 4"}));
  EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);
}

TEST(ByKey, RecordsWithoutAKeyHoldNobodyBack) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.by_key = true});
  Member a = join(group);
  Member b = join(group);
  publish_numbers(publisher, 1);
  const Delivery held = take(a);
  publish_numbers(publisher, 3, 1);
  EXPECT_EQ(drain(b, 3), numbers(3, 1));
  must(a.acknowledge(held));
}

TEST(ByKey, EmptyKeyIsAKey) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.by_key = true});
  Member a = join(group);
  Member b = join(group);
  publish_pairs(publisher, {{"", "first"}});
  const Delivery held = take(a);
  publish_pairs(publisher, {{"", "second"}});
  EXPECT_EQ(code(b.receive(kNothingFor)), Errc::timeout);
  must(a.acknowledge(held));
  EXPECT_EQ(drain(b, 1), (Log{"1 second"}));
}

TEST(ByKey, OneMemberMayHoldAKeyAndGetIsInOrder) {
  const TestTopic topic{{.partitions = 2}};
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic, {.by_key = true}));
  for (int i = 0; i < 30; ++i) {
    const std::string key(1, static_cast<char>('a' + i % 3));
    must(publisher.publish({.key = key, .value = std::to_string(i)}));
  }
  std::map<std::string, int> last;
  int count = 0;
  while (count < 30) {
    const Delivery delivery = take(member);
    const std::string key{delivery.record.key.text()};
    const int number = std::stoi(std::string{delivery.record.text()});
    if (last.contains(key)) {
      EXPECT_EQ(number, last[key] + 3);
    }
    last[key] = number;
    must(member.acknowledge(delivery));
    ++count;
  }
}

TEST(ByKey, HolderThatLeavesLetsItsKeyGo) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.by_key = true});
  auto a = std::make_unique<Member>(join(group));
  Member b = join(group);
  publish_pairs(publisher, {{"k", "1"}});
  (void)take(*a);
  publish_pairs(publisher, {{"k", "2"}});
  EXPECT_EQ(code(b.receive(kNothingFor)), Errc::timeout);
  a.reset();
  EXPECT_EQ(drain(b, 2), (Log{"0 1", "1 2"}));
}

// A member that has requeued `count` records of one key. When it takes the first again, some of
// those behind it become ready in that member.
std::optional<Member> with_records_ready(Publisher& publisher, const Group& group, int count = 16) {
  std::optional<Member> member = join(group);
  for (int i = 0; i < count; ++i) must(publisher.publish({.key = "k", .value = std::to_string(i)}));
  for (const Delivery& one : take_all(*member)) must(member->requeue(one));
  return member;
}

TEST(ByKey, WhatIsRequeuedComesBeforeWhatIsReady) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto member = with_records_ready(publisher, group_of(*topic, {.by_key = true}));
  must(member->requeue(take(*member)));
  must(member->acknowledge(take(*member)));
  must(member->requeue(take(*member)));
  EXPECT_EQ(drain(*member, 15), numbers(15, 1));
}

// A member processes others, but not the first record, until another member has taken that away.
// False if it was held up meanwhile: then its ready records, or all that it has, were taken too.
bool lease_ends_while_others_are_ready() {
  const TestTopic topic{{.capacity_bytes = 64 * kSegment}};
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.by_key = true, .lease = 5ms});
  auto member = with_records_ready(publisher, group, 1000);
  const Delivery first = take(*member);
  Member other = join(group);
  std::uint64_t returned = group.info().returned;
  for (int processed = 0; processed < 100; ++processed) {  // Then it still has some ready.
    if (const auto next = other.receive(1ms)) {
      EXPECT_EQ(to_text(*next), "0 0");
      EXPECT_EQ(code(member->acknowledge(first)), Errc::lease_lost);
      return false;
    }
    const std::uint64_t now = group.info().returned;
    if (now > returned + 1) return false;
    const Delivery next = take(*member);
    if (now > returned) {
      EXPECT_EQ(to_text(next), "0 0");
      EXPECT_EQ(code(member->acknowledge(first)), Errc::lease_lost);
      return true;
    }
    must(member->acknowledge(next));
    returned = group.info().returned;
  }
  return false;
}

TEST(ByKey, WhatWasTakenWithItsLeaseComesBeforeWhatIsReady) {
  int attempts = 1;
  while (!lease_ends_while_others_are_ready()) ASSERT_LT(attempts++, 100);
}

TEST(ByKey, WhatDidNotFitKeepsItsPlace) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto member = with_records_ready(publisher, group_of(*topic, {.by_key = true}));
  const Delivery first = take(*member);
  EXPECT_EQ(code(member->receive_copy({}, kPatience)), Errc::buffer_too_small);
  must(member->requeue(first));
  EXPECT_EQ(drain(*member, 16), numbers(16));
}

// Records with the key of one that is delayed for an hour wait with it; a
// record behind them must not wait.
void expect_one_behind(std::size_t members, int keys) {
  const TestTopic topic{{.capacity_bytes = 256 * kSegment, .participants = 128}};
  const Group group = group_of(*topic, {.by_key = true, .members = 64, .in_flight = 16384});
  auto publisher = must(topic->publisher());
  std::vector<Member> all;
  for (std::size_t i = 0; i < members; ++i) all.push_back(join(group));
  for (std::size_t i = 0; i < 10 * members; ++i)
    must(publisher.publish({.key = std::to_string(i), .value = "first"}));
  for (Member& member : all) (void)must(member.poll(64, [](const Delivery&) {}));
  (void)drain(all[0]);
  for (const char* value : {"late", "behind"}) {
    for (int i = 0; i < keys; ++i)
      must(publisher.publish({.key = "k" + std::to_string(i), .value = value}));
  }
  publish_all(publisher, {"last"});
  std::vector<Delivery> taken = take_all(all[0]);
  std::reverse(taken.begin(), taken.end());
  for (const Delivery& one : taken)
    must(all[0].requeue(one, one.record.text() == "late" ? 1h : 0h));
  auto last = all[1].receive(kPatience);
  ASSERT_TRUE(last) << describe(last.error());
  EXPECT_EQ(last->record.text(), "last");
  EXPECT_EQ(code(all[1].receive(kNothingFor)), Errc::timeout);
}
TEST(ByKey, WhatIsBehindManyKeysThatWaitIsFound) {
  expect_one_behind(2, 20);
  expect_one_behind(16, 250);
  expect_one_behind(60, 6000);
}

// A member that can take nothing must sleep, and not be woken by a timer again and again.
TEST(ByKey, WhoeverHasNothingToDoSleeps) {
  const TestTopic topic{{.capacity_bytes = 64 * kSegment}};
  const Group group = group_of(*topic, {.by_key = true});
  auto publisher = must(topic->publisher());
  Member giver = join(group);
  Member member = join(group);
  for (int i = 0; i < 300; ++i) must(publisher.publish({.key = std::to_string(i), .value = "x"}));
  for (const Delivery& one : take_all(giver)) must(giver.requeue(one, 1h));
  const auto used = [] { return detail::read_clock_ns(CLOCK_THREAD_CPUTIME_ID); };
  const std::int64_t before = used();
  EXPECT_EQ(code(member.receive(500ms)), Errc::timeout);
  EXPECT_LT(used() - before, 250'000'000);
}

// Another member has taken the record away, and found that its key's slot still belongs to the
// first. False if that did not happen; try again.
bool is_found_after_its_owner_left() {
  const TestTopic topic;
  const Group group = group_of(*topic, {.by_key = true, .lease = 20ms});
  auto publisher = must(topic->publisher());
  std::optional<Member> leaver = join(group);
  Member member = join(group);
  publish_pairs(publisher, {{"k", "0"}});
  (void)take(*leaver);
  if (!takes_lease_away(group, member)) return false;
  leaver.reset();
  EXPECT_EQ(to_text(take_in_time(member)), "0 0");
  return true;
}
TEST(ByKey, WhoLeavesAfterItLostARecordSaysThatItsSlotIsFree) {
  int tries = 0;
  while (!is_found_after_its_owner_left()) ASSERT_LT(++tries, 100);
}

// Three members on threads of their own; some requeue records. Each key's records are processed
// one at a time, in order.
TEST(ByKey, OrderHoldsAmongThreads) {
  constexpr std::size_t kKeys = 7;
  constexpr std::size_t kRecords = 700;
  const TestTopic topic{{.capacity_bytes = 64 * kSegment}};
  const Group group = group_of(*topic, {.by_key = true});
  std::vector<std::atomic<int>> busy(kKeys);
  std::vector<std::size_t> done(kKeys, 0);  // Accessed only by the member that has the key.
  std::atomic<std::size_t> left{kRecords};
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&, i] {
        Member member = join(group);
        for (int turn = i; left > 0; ++turn) {
          auto delivery = member.receive(10ms);
          if (!delivery) continue;
          const std::size_t key = std::stoul(std::string{delivery->record.key.text()});
          if (busy[key].fetch_add(1) != 0) ++wrong;
          if (std::stoul(std::string{delivery->record.text()}) != done[key]) ++wrong;
          const bool fails = turn % 5 == 0;
          if (!fails) ++done[key];
          busy[key].fetch_sub(1);
          must(fails ? member.requeue(*delivery) : member.acknowledge(*delivery));
          if (!fails) --left;
        }
      });
    }
    auto publisher = must(topic->publisher());
    for (std::size_t i = 0; i < kRecords; ++i) {
      must(publisher.publish(
          {.key = std::to_string(i % kKeys), .value = std::to_string(i / kKeys)}));
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(group.info().in_flight, 0u);
}

}  // namespace
}  // namespace leat
