// If this failed, a member could sleep although there is a record for it, or not return at its
// deadline, on a stop, or when its descriptor becomes readable.
#include <poll.h>
#include <sys/eventfd.h>

#include "group/group_testing.hpp"

namespace leat {
namespace {

TEST(MemberWait, EndsAtTheDeadline) {
  const TestTopic topic;
  Member member = join(group_of(*topic));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);
  EXPECT_EQ(code(member.wait(kNothingFor)), Errc::timeout);
  std::vector<Delivery> taken;
  EXPECT_EQ(code(member.receive(taken, 5, kNothingFor)), Errc::timeout);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 3 * kNothingFor);
  EXPECT_EQ(code(member.wait(Deadline::immediate())), Errc::timeout);
}

TEST(MemberWait, ReturnsWhenThereIsSomethingToTake) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic));
  publish_numbers(publisher, 1);
  EXPECT_EQ(code(member.wait(Deadline::immediate())), Errc::ok);
  EXPECT_EQ(code(member.wait(kPatience)), Errc::ok);
  EXPECT_EQ(drain(member), numbers(1));
}

TEST(MemberWait, IsWokenByAPublisher) {
  const TestTopic topic;
  Member member = join(group_of(*topic));
  for (std::uint64_t i = 0; i < 5; ++i) {
    std::jthread late{[&] {
      auto publisher = must(topic->publisher());
      std::this_thread::sleep_for(5ms);
      publish_numbers(publisher, 1, i);
    }};
    must(member.wait(kPatience));
    EXPECT_EQ(drain(member, 1), numbers(1, i));
  }
}

TEST(MemberWait, EveryoneOfManySleepersIsWokenInTheEnd) {
  const TestTopic topic;
  const Group group = group_of(*topic);
  std::atomic<int> got{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      Member member = join(group);
      (void)take(member);  // Holds one record, and takes no more.
      ++got;
      while (got < 4) std::this_thread::sleep_for(1ms);
      must(member.acknowledge_all());
    });
  }
  auto publisher = must(topic->publisher());
  for (int i = 0; i < 4; ++i) {
    std::this_thread::sleep_for(5ms);
    must(publisher.publish("x"));
  }
  threads.clear();
  EXPECT_EQ(got, 4);
}

TEST(MemberWait, StopTokenEndsIt) {
  const TestTopic topic;
  Member member = join(group_of(*topic));
  std::stop_source source;
  std::jthread stopper{[&] {
    std::this_thread::sleep_for(kNothingFor);
    source.request_stop();
  }};
  EXPECT_EQ(code(member.receive(Deadline::never(), source.get_token())), Errc::stopped);
  EXPECT_EQ(code(member.wait(Deadline::never(), source.get_token())), Errc::stopped);
  std::byte buffer[8];
  EXPECT_EQ(code(member.receive_copy(buffer, Deadline::never(), source.get_token())),
            Errc::stopped);
}

TEST(MemberWait, StopTokenLeavesWhatIsThere) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic));
  publish_numbers(publisher, 1);
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(to_text(must(member.receive(kPatience, source.get_token()))), "0 0");
  EXPECT_EQ(code(member.receive(kPatience, source.get_token())), Errc::stopped);
}

TEST(MemberWait, StopWaitsEndsItFromAnotherThread) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic));
  EXPECT_FALSE(member.waits_are_stopped());
  {
    std::jthread stopper{[&] {
      std::this_thread::sleep_for(kNothingFor);
      member.stop_waits();
    }};
    EXPECT_EQ(code(member.receive(kPatience)), Errc::stopped);
  }
  EXPECT_TRUE(member.waits_are_stopped());
  EXPECT_EQ(code(member.receive(kPatience)), Errc::stopped);  // Until resume_waits().
  EXPECT_EQ(code(member.wait(kPatience)), Errc::stopped);
  publish_numbers(publisher, 1);
  EXPECT_EQ(drain(member, 1), numbers(1));  // Available records are still handed out.
  member.resume_waits();
  EXPECT_FALSE(member.waits_are_stopped());
  EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);
}

TEST(MemberWait, StopWaitsConcernsOneMember) {
  const TestTopic topic;
  const Group group = group_of(*topic);
  Member stopped = join(group);
  Member other = join(group);
  stopped.stop_waits();
  EXPECT_EQ(code(stopped.receive(kPatience)), Errc::stopped);
  EXPECT_EQ(code(other.receive(kNothingFor)), Errc::timeout);
}

TEST(MemberWait, DescriptorThatBecomesReadableStopsIt) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic));
  const detail::Fd event{::eventfd(0, EFD_CLOEXEC)};
  EXPECT_TRUE(take_all(member).empty());
  EXPECT_EQ(code(member.wait(kNothingFor, event.get())), Errc::timeout);
  {
    std::jthread stopper{[&] {
      std::this_thread::sleep_for(kNothingFor);
      EXPECT_EQ(::eventfd_write(event.get(), 1), 0);
    }};
    EXPECT_EQ(code(member.wait(Deadline::never(), event.get())), Errc::stopped);
  }
  EXPECT_EQ(code(member.wait(kPatience, event.get())), Errc::stopped);
  eventfd_t value = 0;
  EXPECT_EQ(::eventfd_read(event.get(), &value), 0);  // The wait has not read it.
  publish_numbers(publisher, 1);
  EXPECT_EQ(code(member.wait(kPatience, event.get())), Errc::ok);
  EXPECT_EQ(drain(member, 1), numbers(1));
}

TEST(MemberWait, WithADescriptorIsWokenByAPublisher) {
  const TestTopic topic;
  Member member = join(group_of(*topic));
  const detail::Fd event{::eventfd(0, EFD_CLOEXEC)};
  for (std::uint64_t i = 0; i < 3; ++i) {
    std::jthread late{[&] {
      auto publisher = must(topic->publisher());
      std::this_thread::sleep_for(5ms);
      publish_numbers(publisher, 1, i);
    }};
    must(member.wait(kPatience, event.get()));
    EXPECT_EQ(drain(member, 1), numbers(1, i));
  }
}

bool is_readable(int fd, std::chrono::milliseconds patience) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, static_cast<int>(patience.count())) == 1;
}

TEST(MemberWaitFd, IsReadableWhenThereIsSomethingToTake) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic));
  const int fd = must(member.wait_fd());
  EXPECT_EQ(must(member.wait_fd()), fd);
  const auto patience = std::chrono::milliseconds{kPatience};
  for (std::uint64_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(take_all(member).empty());  // An empty poll arms the descriptor.
    publish_numbers(publisher, 1, i);
    ASSERT_TRUE(is_readable(fd, patience));
    EXPECT_EQ(drain(member, 1), numbers(1, i));
  }
}

TEST(MemberWaitFd, IsUnreadableAfterAWaitThatFoundNothing) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic));
  const int fd = must(member.wait_fd());
  publish_numbers(publisher, 1);
  ASSERT_TRUE(is_readable(fd, std::chrono::milliseconds{kPatience}));
  must(member.acknowledge(take(member)));
  EXPECT_TRUE(is_readable(fd, 0ms));  // The member did not check whether there is more.
  EXPECT_EQ(code(member.wait(0s)), Errc::timeout);
  EXPECT_FALSE(is_readable(fd, std::chrono::milliseconds{kNothingFor}));
  publish_numbers(publisher, 1, 1);
  EXPECT_TRUE(is_readable(fd, std::chrono::milliseconds{kPatience}));
}

TEST(MemberWaitFd, IsReadableForWhatOthersRequeue) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member a = join(group);
  Member b = join(group);
  publish_numbers(publisher, 1);
  const Delivery held = take(a);
  const int fd = must(b.wait_fd());
  EXPECT_TRUE(take_all(b).empty());
  must(a.requeue(held));
  ASSERT_TRUE(is_readable(fd, std::chrono::milliseconds{kPatience}));
  EXPECT_EQ(drain(b, 1), numbers(1));
}

TEST(MemberWaitFd, IsReadableFromWhenAStopIsRequested) {
  const TestTopic topic;
  Member member = join(group_of(*topic));
  std::stop_source source;
  const int fd = must(member.wait_fd(source.get_token()));
  EXPECT_TRUE(take_all(member).empty());
  EXPECT_FALSE(is_readable(fd, std::chrono::milliseconds{kNothingFor}));
  source.request_stop();
  EXPECT_TRUE(is_readable(fd, std::chrono::milliseconds{kPatience}));
  EXPECT_TRUE(take_all(member).empty());
  EXPECT_TRUE(is_readable(fd, 0ms));  // It stays so.
}

TEST(MemberWaitFd, IsReadableWhileWaitsAreStopped) {
  const TestTopic topic;
  Member member = join(group_of(*topic));
  const int fd = must(member.wait_fd());
  EXPECT_TRUE(take_all(member).empty());
  member.stop_waits();
  EXPECT_TRUE(is_readable(fd, std::chrono::milliseconds{kPatience}));
  EXPECT_TRUE(take_all(member).empty());
  EXPECT_TRUE(is_readable(fd, 0ms));
  member.resume_waits();
  EXPECT_TRUE(take_all(member).empty());
  EXPECT_FALSE(is_readable(fd, std::chrono::milliseconds{kNothingFor}));
}

TEST(MemberWait, DeletedTopicEndsTheWaitWithADescriptor) {
  const TestTopic topic;
  Member member = join(group_of(*topic));
  const detail::Fd event{::eventfd(0, EFD_CLOEXEC)};
  std::jthread remover{[&] {
    std::this_thread::sleep_for(10ms);
    must(Topic::delete_topic(kTopicName, {.force = true, .directory = topic.directory()}));
  }};
  EXPECT_EQ(code(member.wait(kPatience, event.get())), Errc::ok);
  EXPECT_EQ(code(member.receive(kPatience)), Errc::deleted);
}

// Like WaitFd.TellsOfAHoleThatCameWhileItsHelperSlept, for a member.
TEST(MemberWaitFd, IsReadableForAHoleThatCameWhileItsHelperSlept) {
  const TestTopic topic;
  Member member = join(group_of(*topic));
  const int fd = must(member.wait_fd());
  // Polls until the helper is asleep.
  while (is_readable(fd, kNothingFor)) EXPECT_TRUE(take_all(member).empty());
  Child child{[&] {
    auto publisher = must(topic.open_again().publisher());
    auto claim = must(publisher.try_claim(1));
    ::raise(SIGSTOP);
    return 0;
  }};
  int status = 0;
  ASSERT_EQ(::waitpid(child.pid(), &status, WUNTRACED), child.pid());
  const auto patience = std::chrono::milliseconds{kPatience};
  EXPECT_TRUE(take_all(member).empty());
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(is_readable(fd, patience)) << i;
    EXPECT_TRUE(take_all(member).empty());
  }
  ::kill(child.pid(), SIGKILL);
  EXPECT_EQ(child.join(), -SIGKILL);
  // No record follows the hole. Once it is filled, nothing is claimed, and
  // the descriptor becomes quiet.
  const Deadline deadline{kPatience};
  while (is_readable(fd, kNothingFor) && !deadline.passed()) EXPECT_TRUE(take_all(member).empty());
  EXPECT_FALSE(deadline.passed());
}

}  // namespace
}  // namespace leat
