// If this failed, a publisher could overwrite records that a group has not finished, or wait for a
// group that holds no room.
#include "group/group_testing.hpp"

namespace leat {
namespace {

// Publishes half segments until there is no room; returns how many.
std::uint64_t fill_topic(Publisher& publisher) {
  for (std::uint64_t count = 0; count < 1000; ++count) {
    auto published = publisher.publish(kHalfText, Deadline::immediate());
    if (published) continue;
    EXPECT_EQ(code(published), Errc::full);
    return count;
  }
  throw std::runtime_error{"the topic is never full"};
}

TEST(GroupRoom, GroupWithoutMembersHoldsIt) {
  const TestTopic topic{{.policy = Policy::fail}};
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  const std::uint64_t count = fill_topic(publisher);
  EXPECT_EQ(count, 8u);
  EXPECT_EQ(topic->info().partitions[0].start, 0u);
  EXPECT_EQ(group.info().lag, count);
  Member member = join(group);
  EXPECT_EQ(drain(member), repeated(count, kHalfText));
  EXPECT_EQ(code(publisher.publish(kHalfText)), Errc::ok);
}

TEST(GroupRoom, PublisherWaitsUntilMembersGoOn) {
  const TestTopic topic;
  const Group group = group_of(*topic);
  std::jthread publishing{[&] {
    auto publisher = must(topic->publisher());
    for (int i = 0; i < 200; ++i) must(publisher.publish(kHalfText, kPatience));
  }};
  Member a = join(group);
  Member b = join(group);
  std::size_t count = 0;
  while (count < 200) {
    for (Member* member : {&a, &b}) {
      auto delivery = member->receive(1ms);
      if (!delivery) continue;
      EXPECT_EQ(delivery->record.text(), kHalfText);
      must(member->acknowledge(*delivery));
      ++count;
    }
  }
}

TEST(GroupRoom, AcknowledgingSeveralAtOnceMakesIt) {
  const TestTopic topic{{.policy = Policy::fail}};
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic));
  const std::uint64_t count = fill_topic(publisher);
  const std::vector<Delivery> taken = take_all(member);
  EXPECT_EQ(must(member.acknowledge(taken)), count);
  EXPECT_EQ(take_all(member).size(), 0u);
  EXPECT_EQ(code(publisher.publish(kHalfText)), Errc::ok);
}

TEST(GroupRoom, HeldRecordsCostCapacityNotProgress) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member holder = join(group);
  Member worker = join(group);
  must(publisher.publish("held"));
  const Delivery held = take(holder);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(code(publisher.publish(kHalfText, kPatience)), Errc::ok) << i;
    ASSERT_EQ(drain(worker, 1).size(), 1u);
  }
  EXPECT_EQ(held.record.text(), "held");
  must(holder.acknowledge(held));
  for (int i = 0; i < 20; ++i) {
    must(publisher.publish(kHalfText, kPatience));
    EXPECT_EQ(drain(worker, 1).size(), 1u);
  }
}

TEST(GroupRoom, HeldRecordsOfEverySegmentFillIt) {
  const TestTopic topic{{.policy = Policy::fail}};
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member member = join(group);
  const std::uint64_t count = fill_topic(publisher);
  const std::vector<Delivery> taken = take_all(member);
  ASSERT_EQ(taken.size(), count);
  EXPECT_EQ(code(publisher.publish(kHalfText)), Errc::full);
  for (const Delivery& delivery : taken) EXPECT_EQ(delivery.record.text(), kHalfText);
  EXPECT_EQ(must(member.acknowledge_all()), count);
  EXPECT_EQ(code(publisher.publish(kHalfText)), Errc::ok);
}

TEST(GroupRoom, RequeuedRecordsStayThere) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member a = join(group);
  Member b = join(group);
  publish_all(publisher, {"later"});
  const Delivery taken = take(a);
  must(a.requeue(taken, 300ms));
  Log log;
  for (int i = 0; i < 40; ++i) {
    must(publisher.publish(kHalfText, kPatience));
    log = log + drain(b, 1);
  }
  while (log.size() < 41) log = log + drain(b, 1);
  EXPECT_EQ(sorted(log), sorted(Log{"0 later"} + repeated(40, kHalfText, 1)));
}

TEST(GroupRoom, DeletingTheGroupFreesIt) {
  const TestTopic topic{{.policy = Policy::fail}};
  auto publisher = must(topic->publisher());
  (void)group_of(*topic);
  (void)fill_topic(publisher);
  must(topic->delete_group(kGroupName));
  for (int i = 0; i < 30; ++i) EXPECT_EQ(code(publisher.publish(kHalfText)), Errc::ok);
}

TEST(GroupRoom, SlowestOfSeveralGroupsCounts) {
  const TestTopic topic{{.policy = Policy::fail}};
  auto publisher = must(topic->publisher());
  Member fast = join(group_of(*topic, {}, "fast"));
  Member slow = join(group_of(*topic, {}, "slow"));
  const std::uint64_t count = fill_topic(publisher);
  EXPECT_EQ(drain(fast).size(), count);
  EXPECT_EQ(code(publisher.publish(kHalfText)), Errc::full);
  EXPECT_EQ(drain(slow).size(), count);
  EXPECT_EQ(code(publisher.publish(kHalfText)), Errc::ok);
}

TEST(GroupRoom, SeekForwardFreesIt) {
  const TestTopic topic{{.policy = Policy::fail}};
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  (void)fill_topic(publisher);
  must(group.seek(From::end));
  EXPECT_EQ(code(publisher.publish(kHalfText)), Errc::ok);
}

TEST(GroupRoom, TopicThatRetainsAllKeepsEverything) {
  const TestTopic topic{{.policy = Policy::fail, .retain_all = true}};
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member member = join(group);
  const std::uint64_t count = fill_topic(publisher);
  EXPECT_EQ(drain(member).size(), count);
  EXPECT_EQ(code(publisher.publish(kHalfText)), Errc::full);
  must(group.seek(From::beginning));
  EXPECT_EQ(drain(member), repeated(count, kHalfText));
}

TEST(GroupReleased, NeverFallsAndEndsAtTheEnd) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member member = join(group);
  EXPECT_EQ(group.released(), 0u);
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < 50; ++i) {
    publish_numbers(publisher, 1, i);
    const Delivery delivery = take(member);
    EXPECT_LE(group.released(), i);  // The record in flight is not released.
    if (i % 10 == 3) {
      must(member.requeue(delivery));
      must(member.acknowledge(take(member)));
    } else {
      must(member.acknowledge(delivery));
    }
    const std::uint64_t now = group.released();
    EXPECT_GE(now, last);
    last = now;
  }
  EXPECT_EQ(group.released(), 50u);
}

// A publisher uses released() to stay at most four records ahead of what the group has processed.
TEST(GroupReleased, BoundsAPublisher) {
  const TestTopic topic;
  const Group group = group_of(*topic);
  auto publisher =
      must(topic->publisher({.offset_limit = [&group] { return group.released() + 4; }}));
  publish_numbers(publisher, 4);
  EXPECT_EQ(code(publisher.publish("4", Deadline::immediate())), Errc::full);
  EXPECT_EQ(code(publisher.publish("4", kNothingFor)), Errc::timeout);
  EXPECT_EQ(code(publisher.claim(1, kNothingFor)), Errc::timeout);
  Member member = join(group);
  const Delivery taken = take(member);
  EXPECT_EQ(code(publisher.publish("4", Deadline::immediate())), Errc::full);
  must(member.acknowledge(taken));
  EXPECT_EQ(must(publisher.publish("4", kPatience)), 4u);
  EXPECT_EQ(code(publisher.publish("5", Deadline::immediate())), Errc::full);
  std::jthread worker{[&] { EXPECT_EQ(drain(member, 6), numbers(6, 1)); }};
  EXPECT_EQ(must(publisher.publish("5", kPatience)), 5u);
  auto claim = must(publisher.claim(1, kPatience));
  claim.payload()[0] = std::byte{'6'};
  EXPECT_EQ(must(claim.commit()), 6u);
}

}  // namespace
}  // namespace leat
