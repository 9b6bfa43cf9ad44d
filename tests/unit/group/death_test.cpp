// If this failed, a killed member's records could be lost or never go to another member, or a
// forked child could use its parent's member.
#include <sys/mman.h>

#include <atomic>
#include <memory>

#include "group/group_testing.hpp"

namespace leat {
namespace {

// A child that joined the group, took a number of records, and is stopped.
class Holder {
 public:
  Holder(const TestTopic& topic, int handed_out)
      : child_{[&topic, handed_out] {
          Member member = join(must(topic.open_again().find_group(kGroupName)));
          for (int i = 0; i < handed_out; ++i) (void)take(member);
          ::raise(SIGSTOP);
          return 0;
        }} {
    int status = 0;
    ::waitpid(child_.pid(), &status, WUNTRACED);
    if (!WIFSTOPPED(status)) throw std::runtime_error{"the child could not take its records"};
  }
  void kill() { EXPECT_EQ(child_.kill(SIGKILL), -SIGKILL); }

 private:
  Child child_;
};

TEST(MemberDeath, ItsRecordsGoToAnother) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  publish_numbers(publisher, 10);
  Holder holder{topic, 3};
  EXPECT_EQ(group.info().members.size(), 1u);
  holder.kill();
  Member member = join(group);
  std::vector<Delivery> taken;
  while (taken.size() < 10) taken.push_back(take(member));
  EXPECT_EQ(sorted(to_log(taken)), numbers(10));
  for (const Delivery& delivery : taken)
    EXPECT_EQ(delivery.deliveries, delivery.record.offset < 3 ? 2u : 1u) << delivery.record.offset;
  EXPECT_EQ(must(member.acknowledge_all()), 10u);
  EXPECT_EQ(group.info().in_flight, 0u);
  EXPECT_EQ(group.info().redelivered, 3u);
  EXPECT_EQ(group.info().members.size(), 1u);
}

TEST(MemberDeath, AlsoIfTheOtherSleeps) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  publish_numbers(publisher, 1);
  Holder holder{topic, 1};
  Log log;
  std::jthread sleeper{[&] {
    Member member = join(group);
    log = drain(member, 1);
  }};
  std::this_thread::sleep_for(kNothingFor);
  holder.kill();
  sleeper.join();
  EXPECT_EQ(log, numbers(1));
}

TEST(MemberDeath, StoppedIsNotDead) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  publish_numbers(publisher, 1);
  Holder holder{topic, 1};
  Member member = join(group);
  EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);
  EXPECT_EQ(code(topic->delete_group(kGroupName)), Errc::busy);
  holder.kill();
  EXPECT_EQ(drain(member, 1), numbers(1));
}

TEST(MemberDeath, WhileAsleepLosesNothing) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Child sleeper{[&] {
    Member member = join(must(topic.open_again().find_group(kGroupName)));
    (void)take(member);
    return 0;
  }};
  while (group.info().members.empty()) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(kNothingFor);
  EXPECT_EQ(sleeper.kill(SIGKILL), -SIGKILL);
  Member member = join(group);
  publish_numbers(publisher, 3);
  EXPECT_EQ(drain(member, 3), numbers(3));
}

TEST(MemberDeath, LetsItsKeysGo) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.by_key = true});
  must(publisher.publish({.key = "k", .value = "0"}));
  Holder holder{topic, 1};
  must(publisher.publish({.key = "k", .value = "1"}));
  Member member = join(group);
  EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);
  holder.kill();
  EXPECT_EQ(drain(member, 2), numbers(2));
}

TEST(MemberDeath, CountsTowardsMaxDeliveries) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.max_deliveries = 2});
  publish_all(publisher, {"bad"});
  for (int i = 0; i < 2; ++i) Holder{topic, 1}.kill();
  Member member = join(group);
  publish_all(publisher, {"good"});
  EXPECT_EQ(drain(member, 1), (Log{"1 good"}));
  EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);
  EXPECT_EQ(dead_values(dead_topic(topic)), (std::vector<std::string>{"bad"}));
}

TEST(MemberDeath, AtMostOnceLosesOnlyWhatWasHandedOut) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.mode = GroupMode::at_most_once});
  publish_numbers(publisher, 10);
  Holder{topic, 3}.kill();
  Member member = join(group);
  Log log;
  while (log.size() < 7) log.push_back(to_text(take(member)));
  EXPECT_EQ(sorted(log), numbers(7, 3));
  EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);
}

TEST(MemberDeath, DeadOnesHoldNoPlaceAndNoGroup) {
  const TestTopic topic;
  const Group group = group_of(*topic, {.members = 1});
  Holder{topic, 0}.kill();
  {
    const Member member = join(group);
    EXPECT_EQ(code(group.join()), Errc::too_many);
  }
  Holder{topic, 0}.kill();
  EXPECT_EQ(code(topic->delete_group(kGroupName)), Errc::ok);
}

TEST(MemberDeath, RoomThatItHeldIsFreed) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  must(publisher.publish(kHalfText));
  Holder holder{topic, 1};
  std::uint64_t count = 1;
  while (publisher.publish(kHalfText, Deadline::immediate())) ++count;
  holder.kill();
  Member member = join(group);
  std::jthread others{[&] {
    for (int i = 0; i < 50; ++i) must(publisher.publish(kHalfText, kPatience));
  }};
  EXPECT_EQ(sorted(drain(member, count + 50)), sorted(repeated(count + 50, kHalfText)));
}

// Members in several processes are killed during their work, again and again. In the end every
// record was processed at least once, and nothing is left.
TEST(MemberDeath, AgainAndAgainLosesNothing) {
  constexpr std::uint64_t kRecords = 3000;
  const TestTopic topic{{.capacity_bytes = 16 * kSegment}};
  const Group group = group_of(*topic);
  struct Done {
    std::uint8_t of[kRecords];
  };
  void* const memory =
      ::mmap(nullptr, sizeof(Done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto& done = *static_cast<Done*>(memory);
  const auto work = [&](Member& member) {
    auto delivery = member.receive(5ms);
    if (!delivery) return;
    const auto number = std::stoull(std::string{delivery->record.text()});
    std::atomic_ref{done.of[number]}.store(1, std::memory_order_relaxed);
    must(member.acknowledge(*delivery));
  };
  const auto start = [&] {
    return std::make_unique<Child>([&] {
      Member member = join(must(topic.open_again().find_group(kGroupName)));
      while (true) work(member);
      return 0;
    });
  };
  std::mt19937_64 random{test_seed()};
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < 3; ++i) children.push_back(start());
  auto publisher = must(topic->publisher());
  for (std::uint64_t i = 0; i < kRecords; ++i) {
    must(publisher.publish(std::to_string(i), kPatience));
    if (random() % 200 != 0) continue;
    auto& victim = children[random() % children.size()];
    std::this_thread::sleep_for(std::chrono::microseconds{random() % 3000});
    EXPECT_EQ(victim->kill(SIGKILL), -SIGKILL);
    victim = start();
  }
  for (auto& child : children) EXPECT_EQ(child->kill(SIGKILL), -SIGKILL);
  Member member = join(group);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (group.info().lag + group.info().in_flight != 0) {
    ASSERT_LT(std::chrono::steady_clock::now(), until);
    work(member);
  }
  EXPECT_EQ(std::count(done.of, done.of + kRecords, 1), std::ptrdiff_t{kRecords});
  ::munmap(memory, sizeof(Done));
}

TEST(MemberFork, InheritedHandlesSayForked) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member member = join(group);
  publish_numbers(publisher, 2);
  const Delivery held = take(member);
  Child child{[&] {
    std::vector<Delivery> taken;
    std::byte buffer[8];
    const bool all = code(member.receive(Deadline::immediate())) == Errc::forked &&
                     code(member.receive(taken, 1, Deadline::immediate())) == Errc::forked &&
                     code(member.receive_copy(buffer, Deadline::immediate())) == Errc::forked &&
                     code(member.poll(1, [](const Delivery&) {})) == Errc::forked &&
                     code(member.acknowledge(held)) == Errc::forked &&
                     code(member.acknowledge_all()) == Errc::forked &&
                     code(member.requeue(held)) == Errc::forked &&
                     code(member.wait(Deadline::immediate())) == Errc::forked &&
                     code(member.wait_fd()) == Errc::forked;
    { const Member dropped = std::move(member); }  // Must not end the parent's membership.
    return all ? 0 : 1;
  }};
  EXPECT_EQ(child.join(), 0);
  EXPECT_EQ(group.info().members.size(), 1u);
  must(member.acknowledge(held));
  EXPECT_EQ(drain(member, 1), numbers(1, 1));
}

TEST(MemberFork, ChildThatOpensAgainIsAMemberOfItsOwn) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member member = join(group);
  publish_numbers(publisher, 1);
  const Delivery held = take(member);
  publish_numbers(publisher, 1, 1);
  Child child{[&] {
    Member mine = join(must(topic.open_again().find_group(kGroupName)));
    return drain(mine, 1) == numbers(1, 1) ? 0 : 1;
  }};
  EXPECT_EQ(child.join(), 0);
  must(member.acknowledge(held));
  EXPECT_EQ(group.info().in_flight, 0u);
}

// A callback forks. The child continues at the same place in the code, but
// must not get the parent's records.
TEST(GroupFork, AChildOfACallbackGetsNoRecords) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member member = join(group);
  publish_numbers(publisher, 6);
  Log log;
  ::pid_t child = -1;
  int status = -1;
  auto count = member.poll(10, [&](const Delivery& one) {
    log.push_back(to_text(one));
    if (child != -1) return;
    child = ::fork();
    if (child > 0) ::waitpid(child, &status, 0);
  });
  if (child == 0) ::_exit(code(count) == Errc::forked && log.size() == 1 ? 0 : 1);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(must(std::move(count)), 6U);
  EXPECT_EQ(log, numbers(6));
}

}  // namespace
}  // namespace leat
