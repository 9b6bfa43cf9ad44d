// If this failed, a publisher could wait forever for members of its own thread, or get
// `would_deadlock` although another thread could free room.
#include "group/group_testing.hpp"

namespace leat {
namespace {

// Publishes until it gets an error; waits for room until the deadline.
Errc fill(Publisher& publisher, const Deadline& deadline = kPatience) {
  for (int i = 0; i < 1000; ++i) {
    auto published = publisher.publish(kHalfText, deadline);
    if (!published) return code(published);
  }
  return Errc::ok;
}

TEST(GroupDeadlock, TheOnlyMemberIsThePublishersOwn) {
  const TestTopic topic;
  const Group group = group_of(*topic);
  auto publisher = must(topic->publisher());
  Member member = join(group);
  EXPECT_EQ(code(member.receive(Deadline::immediate())), Errc::timeout);  // It is this thread's.
  EXPECT_EQ(fill(publisher), Errc::would_deadlock);
  // It may continue as soon as the member frees room.
  const std::size_t count = drain(member).size();
  EXPECT_EQ(count, 8u);
  EXPECT_EQ(code(publisher.publish(kHalfText, kPatience)), Errc::ok);
}

TEST(GroupDeadlock, AMemberThatNobodyUsedYetMayBeGivenToAnotherThread) {
  const TestTopic topic;
  const Group group = group_of(*topic);
  auto publisher = must(topic->publisher());
  Member member = join(group);
  EXPECT_EQ(fill(publisher, 50ms), Errc::timeout);
  std::jthread worker{[&] { EXPECT_EQ(drain(member, 8).size(), 8u); }};
  EXPECT_EQ(code(publisher.publish(kHalfText, kPatience)), Errc::ok);
}

TEST(GroupDeadlock, RecordsInItsHandsCount) {
  const TestTopic topic;
  const Group group = group_of(*topic);
  auto publisher = must(topic->publisher());
  Member member = join(group);
  while (publisher.publish(kHalfText, Deadline::immediate())) {
  }
  const std::vector<Delivery> taken = take_all(member);
  EXPECT_EQ(fill(publisher), Errc::would_deadlock);
  must(member.acknowledge(taken.front()));
  must(member.acknowledge(taken.at(1)));
  EXPECT_EQ(code(publisher.publish(kHalfText, kPatience)), Errc::ok);
}

TEST(GroupDeadlock, SeveralGroupsAndSubscribersOfOneThread) {
  const TestTopic topic;
  Member one = join(group_of(*topic, {}, "one"));
  Member two = join(group_of(*topic, {}, "two"));
  auto subscriber = from_beginning(*topic);
  auto publisher = must(topic->publisher());
  (void)one.receive(Deadline::immediate());
  (void)two.receive(Deadline::immediate());
  (void)must(subscriber.poll(1, kIgnore));
  EXPECT_EQ(fill(publisher), Errc::would_deadlock);
  (void)drain(one);
  (void)drain(two);
  EXPECT_EQ(fill(publisher), Errc::would_deadlock);  // Because of this thread's subscriber.
}

TEST(GroupDeadlock, AnotherThreadsMemberCouldMakeRoom) {
  const TestTopic topic;
  const Group group = group_of(*topic);
  auto publisher = must(topic->publisher());
  Member mine = join(group);
  (void)mine.receive(Deadline::immediate());
  std::optional<Member> other;
  std::jthread{[&] {
    other = join(group);
    (void)other->receive(Deadline::immediate());
  }}.join();
  EXPECT_EQ(fill(publisher, kNothingFor), Errc::timeout);
  other.reset();
  EXPECT_EQ(fill(publisher), Errc::would_deadlock);
}

TEST(GroupDeadlock, AnotherGroupsMemberCouldMakeRoom) {
  const TestTopic topic;
  Member mine = join(group_of(*topic, {}, "mine"));
  (void)mine.receive(Deadline::immediate());
  const Group others = group_of(*topic, {}, "others");  // No members yet, but somebody may join.
  auto publisher = must(topic->publisher());
  EXPECT_EQ(fill(publisher, kNothingFor), Errc::timeout);
  std::jthread{[&] {
    Member member = join(others);
    (void)drain(member);
  }}.join();
  EXPECT_EQ(fill(publisher), Errc::would_deadlock);
}

TEST(GroupDeadlock, AGroupWithoutMembersMayGetOne) {
  const TestTopic topic;
  const Group group = group_of(*topic);
  auto publisher = must(topic->publisher());
  EXPECT_EQ(fill(publisher, kNothingFor), Errc::timeout);
}

TEST(GroupDeadlock, ADeadMemberCountsForNobody) {
  const TestTopic topic;
  const Group group = group_of(*topic);
  auto publisher = must(topic->publisher());
  Member mine = join(group);
  (void)mine.receive(Deadline::immediate());
  Child dead{[&] {
    Member member = join(must(topic.open_again().find_group(kGroupName)));
    (void)member.receive(Deadline::immediate());
    ::kill(::getpid(), SIGKILL);
    return 0;
  }};
  EXPECT_EQ(dead.join(), -SIGKILL);
  EXPECT_EQ(fill(publisher), Errc::would_deadlock);
}

TEST(GroupDeadlock, AMemberThatWentToAnotherThreadIsThatOnes) {
  const TestTopic topic;
  const Group group = group_of(*topic);
  auto publisher = must(topic->publisher());
  Member member = join(group);
  (void)member.receive(Deadline::immediate());
  std::jthread{[&] { (void)member.receive(Deadline::immediate()); }}.join();
  EXPECT_EQ(fill(publisher, kNothingFor), Errc::timeout);
  (void)member.acknowledge_all();  // Now it is this thread's member again.
  EXPECT_EQ(fill(publisher), Errc::would_deadlock);
}

}  // namespace
}  // namespace leat
