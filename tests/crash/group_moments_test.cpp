// If this failed, a member of a group could lose a record, count a delivery that never happened,
// see a record change while it holds it, or wait forever for one. Every test reproduces a former
// bug: somebody deletes, looks, dies or stops at one particular moment of a member's call.
#include <sys/wait.h>

#include <csignal>
#include <optional>

#include "support/moment.hpp"
#include "unit/group/group_testing.hpp"

namespace leat {
namespace {

using testing::Moment;

// A member dies just before it parks a record, which it must do because another member has the key.
void expect_not_delivered_by_who_dies_parking(GroupOptions options) {
  const TestTopic topic;
  options.by_key = true;
  const Group group = group_of(*topic, options);
  auto publisher = must(topic->publisher());
  Member member = join(group);
  publish_pairs(publisher, {{"k", "0"}});
  const Delivery first = take(member);
  publish_pairs(publisher, {{"k", "1"}});
  Child parker{[&] {
    Member other = join(must(topic.open_again().find_group(kGroupName)));
    const Moment moment{"take:moved", [] { ::raise(SIGKILL); }};
    (void)other.receive(kPatience);
    return 0;
  }};
  ASSERT_EQ(parker.join(), -SIGKILL);
  must(member.acknowledge(first));
  const Delivery second = take(member);
  EXPECT_EQ(to_text(second), "1 1");
  EXPECT_EQ(second.deliveries, 1U);
}
TEST(GroupMoments, WhoDiesParkingHasDeliveredNothing) {
  expect_not_delivered_by_who_dies_parking({});
}
TEST(GroupMoments, WhoDiesParkingAtMostOnceHasLostNothing) {
  expect_not_delivered_by_who_dies_parking({.mode = GroupMode::at_most_once});
}
TEST(GroupMoments, WhoDiesParkingHasDeadLetteredNothing) {
  expect_not_delivered_by_who_dies_parking({.max_deliveries = 1});
}

TEST(GroupMoments, ADeletionInsideACallLeavesWhatTheCallHandsOut) {
  const TestTopic topic{{.capacity_bytes = 16 * kSegment}};
  const Group group = group_of(*topic, {.in_flight = 1024});
  auto publisher = must(topic->publisher());
  Member member = join(group);
  publish_numbers(publisher, 400);
  std::vector<Delivery> taken;
  int takes = 0;
  {
    const Moment moment{"take:moved", [&] {
                          if (++takes == 2) must(topic->delete_group(kGroupName, true));
                        }};
    EXPECT_GT(must(member.receive(taken, 1000)), 0U);
  }
  ASSERT_GE(takes, 2);
  for (int i = 0; i < 2000; ++i) must(publisher.publish("another", kPatience));
  EXPECT_EQ(to_log(taken), numbers(taken.size()));
  EXPECT_EQ(code(member.receive()), Errc::closed);
}

TEST(GroupMoments, WhatIsReleasedStaysReleased) {
  const TestTopic topic;
  const Group group = group_of(*topic);
  auto publisher = must(topic->publisher());
  Member member = join(group);
  publish_numbers(publisher, 10);
  (void)drain(member, 10);
  publish_numbers(publisher, 5);
  std::uint64_t during = 0;
  {
    const Moment moment{"take:entered", [&] { during = group.released(); }};
    (void)take(member);
  }
  EXPECT_EQ(during, 10U);
}

// While a member scans for returned records, the entry of a record that it has
// already found gets another record, which is returned as well. The scan did
// not find that one, so later records with its key must wait.
TEST(GroupMoments, AnEntryThatGotAnotherRecordIsNotTheOneThatWasFound) {
  const TestTopic topic;
  const Group group = group_of(*topic, {.by_key = true});
  auto publisher = must(topic->publisher());
  Member member = join(group);
  publish_pairs(publisher, {{"x", "x"}, {"y", "y"}});
  std::vector<Delivery> both;
  ASSERT_EQ(must(member.receive(both, 2)), 2U);
  detail::GroupView& view = *must(topic.shared().group(0));
  const std::uint32_t index_of_x = view.entry(0, 0).offset == both[0].record.offset ? 0 : 1;
  ASSERT_EQ(index_of_x, 0U) << "the scan must visit the other entry later";
  must(member.acknowledge(both[1]));
  must(member.requeue(both[0]));

  Member other = join(group);
  bool is_reused = false;
  bool is_first = true;
  const Moment moment{"retake:found", [&] {
                        if (!std::exchange(is_first, false)) return;
                        must(member.acknowledge(take(member)));
                        publish_pairs(publisher, {{"k", "1"}});
                        const Delivery one = take(member);
                        is_reused = view.entry(0, index_of_x).offset == one.record.offset;
                        must(member.requeue(one, 1h));
                        publish_pairs(publisher, {{"k", "2"}});
                        EXPECT_EQ(code(member.receive(Deadline::immediate())), Errc::timeout);
                      }};
  std::vector<Delivery> taken;
  EXPECT_EQ(code(other.receive(taken, 10, Deadline::immediate())), Errc::timeout);
  EXPECT_TRUE(is_reused);
}

// A member that is stopped in the middle of a take of many records holds back their key. Others
// that wait for the key must still return when their deadline passes.
TEST(GroupMoments, AStoppedTakeLetsOthersGiveUpInTime) {
  const TestTopic topic{{.capacity_bytes = 1 << 20, .segment_bytes = 1 << 18}};
  const Group group = group_of(*topic, {.by_key = true, .in_flight = 1024});
  auto publisher = must(topic->publisher());
  Member giver = join(group);
  Member member = join(group);
  publish_pairs(publisher, {{"k", "0"}});
  const Delivery first = take(giver);
  for (int i = 1; i < 1000; ++i) publish_pairs(publisher, {{"k", std::to_string(i)}});
  Child stopped{[&] {
    Member other = join(must(topic.open_again().find_group(kGroupName)));
    const Moment moment{"take:entered", [] { ::raise(SIGSTOP); }};
    std::vector<Delivery> taken;
    (void)other.receive(taken, 256, kPatience);
    return 0;
  }};
  int status = 0;
  ASSERT_EQ(::waitpid(stopped.pid(), &status, WUNTRACED), stopped.pid());
  ASSERT_TRUE(WIFSTOPPED(status));
  must(giver.requeue(first));
  EXPECT_EQ(code(member.receive(100ms)), Errc::timeout);
  EXPECT_EQ(stopped.kill(SIGKILL), -SIGKILL);
  EXPECT_EQ(to_text(take(member)), "0 0");
}

// A member frees a key slot whose owner has no more records of it, and is hurt before it announces
// that. False: a lease did not run out as needed, on a machine that is busy; try again.
bool is_found_though_who_freed_it_was_hurt(int signal) {
  const TestTopic topic;
  const Group group = group_of(*topic, {.by_key = true, .lease = 20ms});
  auto publisher = must(topic->publisher());
  Member owner = join(group);
  Member other = join(group);
  publish_pairs(publisher, {{"k", "0"}});
  const Delivery first = take(owner);
  if (!takes_lease_away(group, other)) return false;
  Child asker{[&] {
    Member member = join(must(topic.open_again().find_group(kGroupName)));
    const Moment moment{"keys:freed", [&] { ::raise(signal); }};
    (void)member.receive(kPatience);
    return 0;
  }};
  siginfo_t hurt{};
  const int looked =
      ::waitid(P_PID, static_cast<::id_t>(asker.pid()), &hurt, WEXITED | WSTOPPED | WNOWAIT);
  EXPECT_EQ(looked, 0);
  if (hurt.si_code == CLD_EXITED) return false;
  EXPECT_EQ(hurt.si_code, signal == SIGKILL ? CLD_KILLED : CLD_STOPPED);
  EXPECT_EQ(code(owner.acknowledge(first)), Errc::lease_lost);
  EXPECT_EQ(to_text(take_in_time(other)), "0 0");
  return true;
}
TEST(GroupMoments, WhoFreesASlotNeedNotSaySo) {
  for (const int signal : {SIGKILL, SIGSTOP}) {
    int tries = 0;
    while (!is_found_though_who_freed_it_was_hurt(signal)) ASSERT_LT(++tries, 100);
  }
}

// A spare entry that was just reserved still contains the key of its previous record.
TEST(GroupMoments, ASpareEntryKeepsNoKeyBack) {
  const TestTopic topic;
  const Group group = group_of(*topic, {.by_key = true, .in_flight = 1});
  auto publisher = must(topic->publisher());
  Member taker = join(group);
  Member other = join(group);
  publish_pairs(publisher, {{"a", "0"}, {"k", "1"}});
  must(taker.requeue(take(taker), 1h));  // Keeps the only entry of its row in use.
  must(taker.acknowledge(take(taker)));  // This record was in a spare entry.
  publish_pairs(publisher, {{"k", "2"}});
  const Delivery given = take(other);
  std::optional<Result<Delivery>> meanwhile;
  {
    const Moment moment{"take:spare", [&] {
                          if (meanwhile) return;
                          meanwhile.emplace(Errc::timeout);
                          must(other.requeue(given));
                          *meanwhile = other.receive(Deadline::immediate());
                        }};
    EXPECT_EQ(must(taker.poll(1, [](const Delivery&) {})), 0U);
  }
  ASSERT_TRUE(meanwhile);
  EXPECT_EQ(to_text(must(std::move(*meanwhile))), "2 2");
}

// A member is stopped right after its take. Meanwhile another one takes the record, acknowledges it,
// and uses its spare entry for a record with another key. The member must count the key of its own
// record; if it counted the other's, its table of keys would overflow after a few such stops.
TEST(GroupMoments, AMemberThatWasStoppedAfterItsTakeKnowsItsOwnKey) {
  const TestTopic topic;
  constexpr std::uint32_t kInFlight = 4;
  const Group group = group_of(*topic, {.by_key = true, .in_flight = kInFlight});
  auto publisher = must(topic->publisher());
  Member stopped = join(group);
  Member other = join(group);
  detail::GroupView& view = *must(topic.shared().group(0));
  int key = 0;
  const auto publish = [&] {
    const std::string next = std::to_string(++key);
    must(publisher.publish({.key = Bytes{next}, .value = "v"}));
  };
  for (Member* member : {&stopped, &other}) {  // Both rows are full, so takes use spare entries.
    for (std::uint32_t i = 0; i < kInFlight; ++i) {
      publish();
      must(member->requeue(take(*member), 1h));
    }
  }
  std::uint32_t reused = 0;
  for (std::uint32_t round = 0; round < 3 * kInFlight; ++round) {
    // So that its next take has a larger number than those before, and gets the first spare entry.
    for (int i = 0; i < 30; ++i) {
      publish();
      must(stopped.acknowledge(take(stopped)));
    }
    publish();
    std::vector<Delivery> held;
    bool is_first = true;
    const Moment moment{"take:moved", [&] {
                          if (!std::exchange(is_first, false)) return;
                          const Delivery taken = take(other);
                          std::uint32_t spare = 0;
                          const auto spare_offset = [&] {
                            return view.entry(view.geometry().seat_count, spare).offset;
                          };
                          while (spare_offset() != taken.record.offset) ++spare;
                          must(other.acknowledge(taken));
                          for (std::uint32_t i = 0; i < kInFlight; ++i) {
                            publish();
                            held.push_back(take(other));
                          }
                          if (spare_offset() != taken.record.offset) ++reused;
                        }};
    EXPECT_EQ(must(stopped.poll(1, [](const Delivery&) {})), 0U);
    for (const Delivery& one : held) must(other.acknowledge(one));
  }
  EXPECT_GT(reused, kInFlight);
}

// Looking for another member's ready records visits all entries of the group, in vain if that member works on one
// record for long.
TEST(GroupMoments, WhoWorksLongIsLookedAtLessAndLess) {
  const TestTopic topic;
  const Group group = group_of(*topic);
  auto publisher = must(topic->publisher());
  Member works = join(group);
  Member waits = join(group);
  publish_numbers(publisher, 1);
  const Delivery long_work = take(works);
  const Moment moment{"others:looking", [] {}};
  for (int i = 0; i < 100; ++i) EXPECT_EQ(code(waits.receive(5ms)), Errc::timeout);
  EXPECT_GE(moment.times(), 2U);
  EXPECT_LT(moment.times(), 20U);
  // It goes on, and stops again with records that it has not handed out: others take them at once.
  publish_numbers(publisher, 10, 1);
  must(works.acknowledge(long_work));
  (void)take(works);
  EXPECT_EQ(drain(waits, 9).size(), 9U);
}

// One snapshot is enough for all partitions. An info() of the whole topic reads each publisher's announcement.
TEST(GroupMoments, ASubscriberFromTheLastRecordsReadsEachPartitionOnce) {
  const TestTopic topic{{.partitions = 16}};
  auto publisher = must(topic->publisher());
  const Moment moment{"announcement:read", [] {}};
  auto subscriber = must(topic->subscriber({.from = From::last(1)}));
  EXPECT_LE(moment.times(), 16U);
}

}  // namespace
}  // namespace leat
