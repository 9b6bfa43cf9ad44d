// If this failed, deleting a group or topic by force could change a record
// while a member reads it, or block publishers. Records in place must stay
// until the member's next call, which returns `closed` or `deleted`.
#include <sys/wait.h>

#include <atomic>

#include "group/group_testing.hpp"

namespace leat {
namespace {

// Publishes several laps of a topic of a few segments.
void go_round(Publisher& publisher, int times = 100) {
  for (int i = 0; i < times; ++i) {
    const Errc published = code(publisher.publish(kHalfText, kPatience));
    ASSERT_TRUE(published == Errc::ok || published == Errc::deleted) << describe({published, 0});
  }
}
std::size_t group_files(const TestTopic& topic) {
  std::size_t count = 0;
  for (const auto& one : std::filesystem::directory_iterator{topic.directory() + "/" + kTopicName})
    count += one.path().filename().string().starts_with(detail::kGroupPrefix) ? 1U : 0U;
  return count;
}

TEST(GroupClosing, WhatAMemberReadsInPlaceStaysUntilItsNextCall) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  publish_all(publisher, {"read", "requeued", "claimed"});
  Member member = join(group_of(*topic));
  const Delivery read = take(member);
  must(member.requeue(take(member)));
  must(topic->delete_group(kGroupName, true));
  go_round(publisher);
  EXPECT_EQ(read.record.text(), "read");
  EXPECT_EQ(code(member.acknowledge(read)), Errc::closed);
  EXPECT_EQ(code(member.receive(kNothingFor)), Errc::closed);
  EXPECT_EQ(code(member.acknowledge_all()), Errc::closed);
  EXPECT_EQ(group_files(topic), 0u);  // The last member has removed it.
}

TEST(GroupClosing, WhatItTookOverStaysToo) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  publish_all(publisher, {"from another seat"});
  Member member = join(group);
  {
    Member gone = join(group);
    EXPECT_EQ(to_text(take(gone)), "0 from another seat");
  }
  const Delivery read = take(member);
  EXPECT_EQ(read.deliveries, 2u);
  must(topic->delete_group(kGroupName, true));
  go_round(publisher);
  EXPECT_EQ(read.record.text(), "from another seat");
}

TEST(GroupClosing, RecordsOfACallbackStayWhileItRuns) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  publish_all(publisher, {"first", "second"});
  Member member = join(group_of(*topic));
  Log seen;
  must(member.poll(2, [&](const Delivery& delivery) {
    if (seen.empty()) {
      must(topic->delete_group(kGroupName, true));
      go_round(publisher);
    }
    seen.push_back(to_text(delivery));
  }));
  EXPECT_EQ(seen.at(0), "0 first");
  EXPECT_EQ(code(member.poll(2, [](const Delivery&) {})), Errc::closed);
}

// A call in the callback tells the member, which then lets go of all that it has taken.
TEST(GroupClosing, ACallbackThatWasToldIsTheLastOne) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  publish_all(publisher, {"first", "second", "third"});
  Member member = join(group_of(*topic));
  Log seen;
  EXPECT_EQ(must(member.poll(3,
                             [&](const Delivery& delivery) {
                               seen.push_back(to_text(delivery));
                               must(topic->delete_group(kGroupName, true));
                               EXPECT_EQ(code(member.acknowledge(delivery)), Errc::closed);
                               go_round(publisher);
                             })),
            1u);
  EXPECT_EQ(seen, Log{"0 first"});
  EXPECT_EQ(code(member.poll(2, [](const Delivery&) {})), Errc::closed);
}

TEST(GroupClosing, WhoFreesMemoryLeavesWhatIsRead) {
  const TestTopic topic{{.capacity_bytes = 4 * kSegment,
                         .policy = Policy::grow,
                         .max_capacity_bytes = 64 * kSegment}};
  const Group group = group_of(*topic);
  auto publisher = must(topic->publisher());
  for (int i = 0; i < 60; ++i) must(publisher.publish(std::to_string(i) + kHalfText.substr(10)));
  Member member = join(group);
  std::optional<Delivery> read;
  for (int i = 0; i < 60; ++i) {
    const Delivery taken = take(member);
    if (i == 30) {
      read = taken;
    } else {
      must(member.acknowledge(taken));
    }
  }
  must(topic->delete_group(kGroupName, true));
  EXPECT_GT(must(topic->shrink()), 0u);
  EXPECT_EQ(read->record.text().substr(0, 3), "30h");
  EXPECT_EQ(code(member.acknowledge(*read)), Errc::closed);
}

TEST(GroupClosing, HoldsNothingElse) {
  const TestTopic topic{{.policy = Policy::fail}};
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member member = join(group);
  must(publisher.publish("read"));
  const Delivery read = take(member);
  while (publisher.publish(kHalfText)) {
  }
  must(topic->delete_group(kGroupName, true));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(code(publisher.publish(kHalfText)), Errc::ok) << i;
  EXPECT_EQ(read.record.text(), "read");
}

TEST(GroupClosing, TheNameIsFreeAtOnce) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  publish_all(publisher, {"a"});
  Member old = join(group_of(*topic));
  const Delivery read = take(old);
  must(topic->delete_group(kGroupName, true));
  EXPECT_EQ(must(topic->group_names()), std::vector<std::string>{});
  EXPECT_EQ(code(topic->find_group(kGroupName)), Errc::not_found);
  EXPECT_EQ(code(topic->delete_group(kGroupName)), Errc::not_found);
  const Group made = group_of(*topic);
  EXPECT_TRUE(made.was_created());
  EXPECT_EQ(made.info().members.size(), 0u);
  EXPECT_EQ(group_files(topic), 2u);
  Member member = join(made);
  EXPECT_EQ(drain(member), (Log{"0 a"}));
  EXPECT_EQ(read.record.text(), "a");
  EXPECT_EQ(code(old.receive()), Errc::closed);
  EXPECT_EQ(group_files(topic), 1u);
  EXPECT_EQ(must(topic->group_names()), std::vector<std::string>{kGroupName});
}

TEST(GroupClosing, WhoLeavesWithoutAnotherCallLetsGo) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  publish_all(publisher, {"a", "b"});
  std::optional<Member> member = join(group_of(*topic));
  (void)take(*member);
  must(topic->delete_group(kGroupName, true));
  EXPECT_EQ(group_files(topic), 1u);
  member.reset();
  EXPECT_EQ(group_files(topic), 0u);
}

TEST(GroupClosing, SleepersAreTold) {
  const TestTopic topic;
  const Group group = group_of(*topic);
  std::atomic<bool> joined{false};
  std::jthread sleeper{[&] {
    Member member = join(group);
    joined = true;
    EXPECT_EQ(code(member.receive(kPatience)), Errc::closed);
  }};
  while (!joined) std::this_thread::yield();
  must(topic->delete_group(kGroupName, true));
  sleeper.join();
  EXPECT_EQ(group_files(topic), 0u);
}

TEST(GroupClosing, AStoppedMemberKeepsWhatItReadsAndADeadOneNothing) {
  const TestTopic topic{{.capacity_bytes = 8 * kSegment, .policy = Policy::fail}};
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  for (int i = 0; i < 2; ++i) must(publisher.publish(kHalfText));  // Fills one segment.
  Child reader{[&] {
    Member member = join(must(topic.open_again().find_group(kGroupName)));
    const Delivery read = take(member);
    ::raise(SIGSTOP);
    const bool stayed = read.record.text() == kHalfText;
    return stayed && code(member.acknowledge(read)) == Errc::closed ? 0 : 1;
  }};
  int status = 0;
  ASSERT_EQ(::waitpid(reader.pid(), &status, WUNTRACED), reader.pid());
  ASSERT_TRUE(WIFSTOPPED(status));
  must(topic->delete_group(kGroupName, true));
  const std::string other(kHalf, 'o');
  for (int i = 0; i < 100; ++i) ASSERT_EQ(code(publisher.publish(other)), Errc::ok) << i;
  ::kill(reader.pid(), SIGCONT);
  EXPECT_EQ(reader.join(), 0);
  EXPECT_EQ(group_files(topic), 0u);
}

TEST(GroupClosing, TheDeadHoldNothing) {
  const TestTopic topic{{.capacity_bytes = 2 * kSegment, .policy = Policy::fail}};
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  for (int i = 0; i < 4; ++i) must(publisher.publish(kHalfText));  // Fills both segments.
  Child reader{[&] {
    Member member = join(must(topic.open_again().find_group(kGroupName)));
    const std::vector<Delivery> taken = take_all(member);
    ::raise(SIGSTOP);
    return taken.empty() ? 1 : 0;
  }};
  int status = 0;
  ASSERT_EQ(::waitpid(reader.pid(), &status, WUNTRACED), reader.pid());
  must(topic->delete_group(kGroupName, true));
  EXPECT_EQ(code(publisher.publish(kHalfText)), Errc::full);
  EXPECT_EQ(reader.kill(SIGKILL), -SIGKILL);
  EXPECT_EQ(code(publisher.publish(kHalfText)), Errc::ok);
  // No member was left to remove it; the next process that opens a group does.
  EXPECT_EQ(group_files(topic), 1u);
  (void)group_of(*topic);
  EXPECT_EQ(group_files(topic), 1u);
}

// ---- The same with the whole topic ----------------------------------------------------------------

TEST(TopicClosing, WhatAMemberReadsInPlaceStays) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  publish_all(publisher, {"read"});
  Member member = join(group_of(*topic));
  const Delivery read = take(member);
  must(Topic::delete_topic(kTopicName, {.force = true, .directory = topic.directory()}));
  go_round(publisher);
  EXPECT_EQ(read.record.text(), "read");
  must(member.acknowledge(read));
}

TEST(TopicClosing, WhatASubscriberReadsInPlaceStays) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  publish_all(publisher, {"read"});
  auto gating = from_beginning(*topic);
  auto lossy =
      must(topic->subscriber({.from = From::beginning, .gating = false, .in_place = true}));
  const Record one = must(gating.receive(kPatience));
  const Record two = must(lossy.receive(kPatience));
  must(Topic::delete_topic(kTopicName, {.force = true, .directory = topic.directory()}));
  go_round(publisher);
  EXPECT_EQ(one.text(), "read");
  EXPECT_EQ(two.text(), "read");
}

// A publisher in a process that has not mapped the group yet finds its file gone.
TEST(TopicClosing, APublisherThatNeverSawTheGroupIsToldOfTheDeletion) {
  const TestTopic topic;
  const Topic other = topic.open_again();
  auto publisher = must(other.publisher());
  (void)group_of(*topic);
  must(Topic::delete_topic(kTopicName, {.force = true, .directory = topic.directory()}));
  Errc last = Errc::ok;
  for (int i = 0; i < 100 && (last == Errc::ok || last == Errc::deleted); ++i)
    last = code(publisher.publish(kHalfText, Deadline::immediate()));
  EXPECT_EQ(last, Errc::deleted);
}

}  // namespace
}  // namespace leat
