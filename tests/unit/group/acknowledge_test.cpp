// If this failed, a member's records could be delivered again after they were acknowledged, or lost
// when it requeues them, leaves, exceeds its lease or fails too often.
#include "group/group_testing.hpp"

namespace leat {
namespace {

TEST(Acknowledge, EndsARecord) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  publish_numbers(publisher, 3);
  {
    Member member = join(group);
    std::vector<Delivery> taken = take_all(member);
    must(member.acknowledge(taken[0]));
    must(member.acknowledge(taken[2]));  // Any order is allowed.
    EXPECT_EQ(member.in_flight(), 1u);
  }
  Member next = join(group);
  EXPECT_EQ(drain(next), (Log{"1 1"}));
}

TEST(Acknowledge, TwiceIsNotInFlight) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic));
  publish_numbers(publisher, 2);
  const Delivery first = take(member);
  must(member.acknowledge(first));
  EXPECT_EQ(code(member.acknowledge(first)), Errc::not_in_flight);
  EXPECT_EQ(code(member.requeue(first)), Errc::not_in_flight);
  const Delivery second = take(member);
  EXPECT_EQ(code(member.acknowledge(first)), Errc::not_in_flight);  // Even if its entry was reused.
  EXPECT_EQ(member.in_flight(), 1u);
  must(member.acknowledge(second));
}

TEST(Acknowledge, OfSomebodyElsesRecordIsNotInFlight) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member a = join(group);
  Member b = join(group);
  publish_numbers(publisher, 1);
  const Delivery of_a = take(a);
  publish_numbers(publisher, 1, 1);
  const Delivery of_b = take(b);
  EXPECT_EQ(code(b.acknowledge(of_a)), Errc::not_in_flight);
  EXPECT_EQ(code(a.acknowledge(of_b)), Errc::not_in_flight);
  EXPECT_EQ(code(a.requeue(of_b)), Errc::not_in_flight);
  EXPECT_EQ(code(a.acknowledge_up_to(of_b)), Errc::not_in_flight);
  must(a.acknowledge(of_a));
  must(b.acknowledge(of_b));
}

TEST(Acknowledge, OfAnotherGroupsRecordIsNotInFlight) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic, {}, "one"));
  Member other = join(group_of(*topic, {}, "two"));
  publish_numbers(publisher, 2);
  const Delivery first = take(member);
  const Delivery second = take(member);
  const Delivery same =
      take(other);  // Its entry has the same number and state as that of the first one.
  EXPECT_EQ(code(member.acknowledge(same)), Errc::not_in_flight);
  EXPECT_EQ(code(member.requeue(same)), Errc::not_in_flight);
  EXPECT_EQ(code(member.acknowledge_up_to(same)), Errc::not_in_flight);
  EXPECT_EQ(member.in_flight(), 2u);
  must(member.acknowledge(first));
  EXPECT_EQ(code(other.acknowledge(second)), Errc::not_in_flight);
  must(member.acknowledge(second));
}

TEST(Acknowledge, UpToOneIsAllThatWasTakenBefore) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member member = join(group);
  publish_numbers(publisher, 6);
  std::vector<Delivery> taken = take_all(member);
  must(member.acknowledge(taken[1]));
  EXPECT_EQ(must(member.acknowledge_up_to(taken[3])), 3u);
  EXPECT_EQ(member.in_flight(), 2u);
  EXPECT_EQ(code(member.acknowledge_up_to(taken[3])), Errc::not_in_flight);
  EXPECT_EQ(must(member.acknowledge_up_to(taken[5])), 2u);
  EXPECT_EQ(group.info().in_flight, 0u);
}

TEST(Acknowledge, UpToOneIsInTheOrderOfTakingNotOfOffsets) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member member = join(group);
  publish_numbers(publisher, 3);
  std::vector<Delivery> taken = take_all(member);
  must(member.requeue(taken[0]));
  const Delivery again = take(member);  // Now taken last, although its offset is the lowest.
  EXPECT_EQ(to_text(again), "0 0");
  EXPECT_EQ(must(member.acknowledge_up_to(taken[2])), 2u);
  EXPECT_EQ(member.in_flight(), 1u);
  must(member.acknowledge(again));
}

TEST(Acknowledge, AllIsWhatWasHandedOutAndNoMore) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member member = join(group);
  EXPECT_EQ(must(member.acknowledge_all()), 0u);
  publish_numbers(publisher, 10);
  for (int i = 0; i < 4; ++i) (void)take(member);
  EXPECT_EQ(must(member.acknowledge_all()), 4u);
  EXPECT_EQ(drain(member), numbers(6, 4));
}

// ---- Several at once -----------------------------------------------------------------------------

TEST(AcknowledgeSome, InAnyOrderAndOnlyThese) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  {
    Member member = join(group);
    EXPECT_EQ(must(member.acknowledge(std::span<const Delivery>{})), 0u);
    publish_numbers(publisher, 6);
    const std::vector<Delivery> taken = take_all(member);
    const std::vector<Delivery> some{taken[4], taken[1], taken[2]};
    EXPECT_EQ(must(member.acknowledge(some)), 3u);
    EXPECT_EQ(member.in_flight(), 3u);
    EXPECT_EQ(group.info().in_flight, 3u);
  }
  Member next = join(group);
  EXPECT_EQ(drain(next), (Log{"0 0", "3 3", "5 5"}));
}

TEST(AcknowledgeSome, ThoseThatAreNotInFlightDoNotCount) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member member = join(group);
  Member other = join(group);
  publish_numbers(publisher, 4);
  const std::vector<Delivery> taken = take_all(member);
  publish_numbers(publisher, 1, 4);
  const Delivery of_other = take(other);
  must(member.acknowledge(taken[0]));
  must(member.requeue(taken[1]));
  const std::vector<Delivery> some{taken[0], taken[2], of_other, taken[1], taken[2], taken[3]};
  EXPECT_EQ(must(member.acknowledge(some)), 2u);
  EXPECT_EQ(code(member.acknowledge(some)), Errc::not_in_flight);
  EXPECT_EQ(member.in_flight(), 0u);
  EXPECT_EQ(must(other.acknowledge({&of_other, 1})), 1u);
  EXPECT_EQ(drain(other), (Log{"1 1"}));  // What was requeued.
}

TEST(AcknowledgeSome, OfAClosedGroupIsRefused) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic));
  publish_numbers(publisher, 2);
  const std::vector<Delivery> taken = take_all(member);
  must(topic->delete_group(kGroupName, true));
  EXPECT_EQ(code(member.acknowledge(taken)), Errc::closed);
}

TEST(AcknowledgeSome, ByKeyFreesTheKeys) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.by_key = true});
  Member member = join(group);
  Member other = join(group);
  for (const char* key : {"a", "b", "a"})
    must(publisher.publish(NewRecord{.key = Bytes{key}, .value = Bytes{key}}));
  const std::vector<Delivery> taken = take_all(member);
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_EQ(must(member.acknowledge(std::span{taken}.last(2))), 2u);
  must(publisher.publish(NewRecord{.key = Bytes{"b"}, .value = Bytes{"free"}}));
  EXPECT_EQ(take(other).record.text(), "free");
  EXPECT_EQ(must(member.acknowledge(taken)), 1u);
}

// ---- requeue -----------------------------------------------------------------------------------

TEST(Requeue, GoesToWhoeverComesNext) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member a = join(group);
  Member b = join(group);
  publish_all(publisher, {"x"});
  const Delivery taken = take(a);
  EXPECT_EQ(taken.deliveries, 1u);
  must(a.requeue(taken));
  EXPECT_EQ(code(a.acknowledge(taken)), Errc::not_in_flight);
  EXPECT_EQ(a.in_flight(), 0u);
  const Delivery again = take(b);
  EXPECT_EQ(to_text(again), "0 x");
  EXPECT_EQ(again.deliveries, 2u);
  must(b.acknowledge(again));
  EXPECT_EQ(group.info().redelivered, 1u);
  EXPECT_EQ(group.info().in_flight, 0u);
}

TEST(Requeue, OldRecordComesBeforeNewOnes) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member a = join(group);
  Member b = join(group);
  publish_numbers(publisher, 1);
  must(a.requeue(take(a)));
  publish_numbers(publisher, 5, 1);
  EXPECT_EQ(drain(b), numbers(6));
}

TEST(Requeue, ToOneselfWorksAndIsCounted) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic));
  publish_all(publisher, {"x"});
  for (std::uint32_t i = 1; i <= 100; ++i) {
    const Delivery taken = take(member);
    EXPECT_EQ(taken.deliveries, i);
    must(member.requeue(taken));
  }
  EXPECT_EQ(drain(member), (Log{"0 x"}));
}

TEST(Requeue, WakesASleeper) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member a = join(group);
  publish_all(publisher, {"x"});
  const Delivery taken = take(a);
  std::jthread sleeper{[&] {
    Member b = join(group);
    EXPECT_EQ(drain(b, 1), (Log{"0 x"}));
  }};
  std::this_thread::sleep_for(kNothingFor);
  must(a.requeue(taken));
}

TEST(Requeue, WithADelayComesNotBefore) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic));
  publish_all(publisher, {"x"});
  const Delivery taken = take(member);
  const auto until = std::chrono::steady_clock::now() + 100ms;
  must(member.requeue(taken, 100ms));
  const Delivery again = take(member);  // Sleeps until the delay has passed.
  EXPECT_GE(std::chrono::steady_clock::now(), until);
  EXPECT_EQ(to_text(again), "0 x");
  EXPECT_EQ(again.deliveries, 2u);
  must(member.acknowledge(again));
}

TEST(Requeue, WithALongDelayHoldsUpNoOthers) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member member = join(group);
  publish_numbers(publisher, 3);
  must(member.requeue(take(member), 1h));
  EXPECT_EQ(drain(member, 2), numbers(2, 1));
  EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);
  EXPECT_EQ(group.info().in_flight, 1u);
}

// ---- Leaving -------------------------------------------------------------------------------------

TEST(Leaving, RequeuesWhatIsUnacknowledged) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  publish_numbers(publisher, 10);
  {
    Member member = join(group);
    const Delivery taken = take(member);
    (void)take(member);
    must(member.acknowledge(taken));
  }
  EXPECT_EQ(group.info().in_flight + group.info().lag, 9u);
  Member other = join(group);
  const std::vector<Delivery> taken = take_all(other);
  EXPECT_EQ(to_log(taken), numbers(9, 1));
  EXPECT_EQ(taken[0].deliveries, 2u);  // It had been handed out once.
  EXPECT_EQ(taken[1].deliveries, 1u);
}

TEST(Leaving, ByMoveAssignmentRequeuesToo) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  publish_numbers(publisher, 1);
  Member member = join(group);
  (void)take(member);
  member = join(group);
  EXPECT_EQ(group.info().members.size(), 1u);
  EXPECT_EQ(drain(member, 1), numbers(1));
}

TEST(Leaving, MovedMemberKeepsWhatItHolds) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  publish_numbers(publisher, 2);
  Member member = join(group);
  const Delivery taken = take(member);
  Member moved = std::move(member);
  must(moved.acknowledge(taken));
  EXPECT_EQ(drain(moved, 1), numbers(1, 1));
}

// ---- max_deliveries ------------------------------------------------------------------------------

// Takes a record and requeues it, `times` times; then nothing more may come.
void fail_always(Member& member, int times) {
  for (int i = 0; i < times; ++i) must(member.requeue(take(member)));
  EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);
}

TEST(MaxDeliveries, MovesARecordToTheDeadOnes) {
  const TestTopic topic{{.partitions = 2}};
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.max_deliveries = 3});
  Member member = join(group);
  const Header headers[] = {{"shop", "corner"}};
  must(publisher.publish({.value = "fine", .partition = 1U}));
  EXPECT_EQ(drain(member, 1), (Log{"0 fine"}));
  must(publisher.publish({.key = "anna", .headers = headers, .value = "bad", .partition = 1U}));
  fail_always(member, 3);
  EXPECT_EQ(group.info().in_flight, 0u);
  EXPECT_EQ(group.info().lag, 0u);
  EXPECT_EQ(group.info().redelivered, 2u);

  const Topic dead = dead_topic(topic);
  EXPECT_EQ(dead.info().durable.has_value(), topic->info().durable.has_value());
  auto reader = must(dead.subscriber({.from = From::beginning, .gating = false}));
  const Record record = must(reader.receive(kPatience));
  EXPECT_EQ(record.text(), "bad");
  EXPECT_TRUE(record.has_key);
  EXPECT_EQ(record.key.text(), "anna");
  EXPECT_EQ(header_of(record, "shop"), "corner");
  EXPECT_NE(header_of(record, "leat-reason"), "(none)");
  EXPECT_EQ(header_of(record, "leat-topic"), kTopicName);
  EXPECT_EQ(header_of(record, "leat-group"), kGroupName);
  EXPECT_EQ(header_of(record, "leat-partition"), "1");
  EXPECT_EQ(header_of(record, "leat-offset"), "1");
  EXPECT_EQ(header_of(record, "leat-deliveries"), "3");
}

TEST(MaxDeliveries, OthersGoOn) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic, {.max_deliveries = 2}));
  publish_all(publisher, {"good", "bad", "fine"});
  Log done;
  while (done.size() < 2) {
    const Delivery delivery = take(member);
    if (delivery.record.text() == "bad") {
      EXPECT_LE(delivery.deliveries, 2u);
      must(member.requeue(delivery));
    } else {
      done.push_back(to_text(delivery));
      must(member.acknowledge(delivery));
    }
  }
  EXPECT_EQ(done, (Log{"0 good", "2 fine"}));
  while (true) {  // The remaining deliveries of the bad record.
    auto delivery = member.receive(kNothingFor);
    if (!delivery) break;
    must(member.requeue(*delivery));
  }
  EXPECT_EQ(dead_values(dead_topic(topic)), (std::vector<std::string>{"bad"}));
}

TEST(MaxDeliveries, OfOneMeansNoSecondChance) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic, {.max_deliveries = 1}));
  publish_all(publisher, {"bad"});
  fail_always(member, 1);
  EXPECT_EQ(dead_values(dead_topic(topic)), (std::vector<std::string>{"bad"}));
}

TEST(MaxDeliveries, LeavingCountsAsOne) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.max_deliveries = 2});
  publish_all(publisher, {"bad"});
  for (int i = 0; i < 2; ++i) {
    Member member = join(group);
    EXPECT_EQ(to_text(take(member)), "0 bad");
  }
  Member member = join(group);
  EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);
  EXPECT_EQ(dead_values(dead_topic(topic)), (std::vector<std::string>{"bad"}));
}

TEST(MaxDeliveries, AcknowledgedAtTheLastOneIsNotDead) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic, {.max_deliveries = 2}));
  publish_all(publisher, {"x"});
  must(member.requeue(take(member)));
  EXPECT_EQ(drain(member, 1), (Log{"0 x"}));
  EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);
  auto dead = Topic::open("topic.g.dead", Deadline::immediate(), topic.directory());
  if (dead) {
    EXPECT_TRUE(dead_values(*dead).empty());
  }
}

// ---- at most once --------------------------------------------------------------------------------

TEST(AtMostOnce, TakenIsNotDeliveredAgain) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.mode = GroupMode::at_most_once});
  publish_numbers(publisher, 5);
  {
    Member member = join(group);
    EXPECT_EQ(to_text(take(member)), "0 0");
    EXPECT_EQ(to_text(take(member)), "1 1");
  }
  Member other = join(group);
  EXPECT_EQ(drain(other, 3), numbers(3, 2));
  EXPECT_EQ(code(other.receive(kNothingFor)), Errc::timeout);
  EXPECT_EQ(group.info().redelivered, 0u);
  EXPECT_EQ(group.info().in_flight, 0u);
}

TEST(AtMostOnce, StaysInPlaceUntilItIsAcknowledged) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.mode = GroupMode::at_most_once, .in_flight = 2});
  Member member = join(group);
  publish_numbers(publisher, 3);
  const Delivery first = take(member);
  (void)take(member);
  EXPECT_EQ(code(member.receive(kPatience)), Errc::in_flight_full);
  EXPECT_EQ(group.info().in_flight, 2u);
  EXPECT_EQ(first.record.text(), "0");
  EXPECT_EQ(must(member.acknowledge_all()), 2u);
  EXPECT_EQ(drain(member, 1), numbers(1, 2));
}

TEST(AtMostOnce, CopiesAndPollsAsUsual) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic, {.mode = GroupMode::at_most_once}));
  publish_numbers(publisher, 3);
  std::byte buffer[8];
  EXPECT_EQ(must(member.receive_copy(buffer, kPatience)), 1u);
  EXPECT_EQ(Bytes(buffer, 1).text(), "0");
  Log log;
  EXPECT_EQ(must(member.poll(10, [&](const Delivery& one) { log.push_back(to_text(one)); })), 2u);
  EXPECT_EQ(log, numbers(2, 1));
}

// ---- Lease ---------------------------------------------------------------------------------------

TEST(Lease, LostOnesDoNotKeepOthersFromBeingAcknowledged) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.lease = 200ms});
  Member slow = join(group);
  Member other = join(group);
  publish_all(publisher, {"x"});
  const Delivery lost = take(slow);
  const Delivery again = take(other);  // Sleeps until the lease has run out.
  publish_all(publisher, {"y"});
  const Delivery held = take(slow);
  const std::vector<Delivery> both{lost, held};
  EXPECT_EQ(must(slow.acknowledge(both)), 1u);
  EXPECT_EQ(slow.in_flight(), 0u);
  EXPECT_EQ(must(other.acknowledge({&again, 1})), 1u);
  publish_all(publisher, {"z"});
  const Delivery third = take(slow);
  EXPECT_EQ(to_text(take(other)), "2 z");
  const std::vector<Delivery> none{held, third};
  EXPECT_EQ(code(slow.acknowledge(none)), Errc::lease_lost);
  EXPECT_EQ(code(slow.acknowledge(none)), Errc::not_in_flight);
}

TEST(Lease, RecordThatIsHeldTooLongGoesToAnother) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.lease = 100ms});
  Member slow = join(group);
  Member other = join(group);
  publish_all(publisher, {"x"});
  const auto start = std::chrono::steady_clock::now();
  const Delivery held = take(slow);
  const Delivery again = take(other);  // Sleeps until the lease has run out.
  EXPECT_GE(std::chrono::steady_clock::now() - start, 100ms);
  EXPECT_EQ(to_text(again), "0 x");
  EXPECT_EQ(again.deliveries, 2u);
  EXPECT_EQ(code(slow.acknowledge(held)), Errc::lease_lost);
  EXPECT_EQ(held.record.text(), "x");  // With a lease, a member has a copy.
  EXPECT_EQ(slow.in_flight(), 0u);
}

TEST(Lease, WithinItAllIsAsUsual) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.lease = 1h});
  Member member = join(group);
  Member other = join(group);
  publish_numbers(publisher, 10);
  std::vector<Delivery> taken;
  for (std::uint64_t i = 0; i < 10; ++i) {  // Each copy is valid until the next record is taken.
    taken.push_back(take(member));
    EXPECT_EQ(to_text(taken.back()), numbers(1, i)[0]);
  }
  EXPECT_EQ(code(other.receive(kNothingFor)), Errc::timeout);
  for (const Delivery& delivery : taken) must(member.acknowledge(delivery));
  EXPECT_EQ(group.info().redelivered, 0u);
}

TEST(Lease, LostRecordsDoNotBlockTheTopic) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.lease = 1s});
  Member slow = join(group);
  Member other = join(group);
  publish_all(publisher, {"x"});
  const Delivery held = take(slow);
  EXPECT_EQ(drain(other, 1), (Log{"0 x"}));
  for (int i = 0; i < 50; ++i) {
    must(publisher.publish(kHalfText, kPatience));
    EXPECT_EQ(drain(other, 1).size(), 1u);
  }
  EXPECT_EQ(held.record.text(), "x");
}

TEST(Lease, LostRecordIsNotHiddenByTheDelayOfWhoHadIt) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.lease = 20ms});
  Member slow = join(group);
  Member other = join(group);
  publish_all(publisher, {"x"});
  const Delivery lost = take(slow);
  must(other.requeue(take(other), 1ms));
  EXPECT_EQ(code(slow.requeue(lost, 1h)), Errc::lease_lost);
  EXPECT_EQ(take(other).deliveries, 3u);
}

TEST(Lease, AtMostOnceItOnlyFreesTheRoom) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.mode = GroupMode::at_most_once, .lease = 20ms});
  Member slow = join(group);
  Member other = join(group);
  publish_all(publisher, {"x"});
  const Delivery held = take(slow);
  EXPECT_EQ(code(other.receive(100ms)), Errc::timeout);
  EXPECT_EQ(group.info().in_flight, 0u);
  EXPECT_EQ(code(slow.acknowledge(held)), Errc::lease_lost);
}

// While a callback takes long, the records after its own count as not delivered yet.
TEST(Lease, PolledRecordsBeginTheirsWhenTheirTurnComes) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.lease = 50ms});
  Member slow = join(group);
  Member other = join(group);
  publish_numbers(publisher, 4);
  std::vector<std::uint32_t> deliveries(4);
  std::uint64_t polled = 0;
  must(slow.poll(4, [&](const Delivery& one) {
    if (++polled != 1) return;
    EXPECT_EQ(one.record.offset, 0u);
    while (auto taken = other.receive(200ms)) {  // The first, after its lease, and the rest.
      deliveries[taken->record.offset] = taken->deliveries;
      must(other.acknowledge(*taken));
    }
  }));
  EXPECT_EQ(polled, 1u);
  EXPECT_EQ(deliveries, (std::vector<std::uint32_t>{2, 1, 1, 1}));
}

}  // namespace
}  // namespace leat
