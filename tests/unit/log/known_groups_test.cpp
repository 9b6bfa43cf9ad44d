// If this failed, a child process or a signal handler that publishes could wait for ever for a lock that nobody releases, a
// thread could look at the memory of a group that was freed, or the memory of deleted groups could stay.
#include "leat/log/known_groups.hpp"

#include <signal.h>
#include <sys/time.h>

#include <atomic>

#include "leat/log/mapped_once.hpp"
#include "unit/testing.hpp"

namespace leat {
namespace {

using detail::GroupView;
using detail::KnownGroups;

const GroupOptions kSmall{.members = 1, .in_flight = 16};

std::weak_ptr<GroupView> view_of(detail::MappedTopic& shared, std::uint32_t slot = 0) {
  return must(shared.group(slot));
}
void make_anew(const Topic& topic) {
  must(topic.delete_group("g"));
  (void)must(topic.group("g", kSmall));
}

TEST(KnownGroups, ViewOfADeletedGroupIsFreedOnceTheNextIsMapped) {
  const TestTopic topic;
  (void)must(topic->group("g", kSmall));
  const auto first = view_of(topic.shared());
  EXPECT_FALSE(first.expired());
  make_anew(*topic);
  const auto second = view_of(topic.shared());
  EXPECT_TRUE(first.expired());
  EXPECT_FALSE(second.expired());
}

TEST(KnownGroups, ViewStaysWhileAThreadLooksAndIsFreedLater) {
  const TestTopic topic;
  (void)must(topic->group("g", kSmall));
  const auto first = view_of(topic.shared());
  {
    KnownGroups::LookupGuard guard{topic.shared().known_groups()};
    EXPECT_NE(must(topic.shared().known_group_at(0, guard)), nullptr);
    make_anew(*topic);  // It needs no lock that the looking thread has.
    EXPECT_NE(must(topic.shared().group(0)), first.lock());
    EXPECT_FALSE(first.expired());
  }
  make_anew(*topic);
  EXPECT_TRUE(first.expired());
}

TEST(KnownGroups, ChildDoesNotWaitForThreadsOfItsParent) {
  const TestTopic topic;
  (void)must(topic->group("g", kSmall));
  const auto first = view_of(topic.shared());
  const KnownGroups::LookupGuard guard{topic.shared().known_groups()};
  Child child{[&] {
    make_anew(*topic);
    (void)must(topic.shared().group(0));
    return first.expired() ? 0 : 1;
  }};
  EXPECT_EQ(child.join(), 0);
}

TEST(KnownGroups, MayBeLookedAtAndReplacedByThreadsAtOnce) {
  const TestTopic topic;
  std::atomic<bool> is_over = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      auto publisher = must(topic->publisher());
      while (!is_over) (void)publisher.publish(kHalfText, Deadline::immediate());
    });
  }
  for (int i = 0; i < 30; ++i) {
    const Group group = must(topic->group("g", kSmall));
    EXPECT_EQ(group.info().name, "g");
    must(topic->delete_group("g"));
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(MappedOnce, FirstMappingIsKept) {
  const TestDirectory directory;
  const detail::Fd file = directory.open_file("a");
  must(detail::allocate_file(file.get(), 1));
  detail::MappedOnce once;
  EXPECT_EQ(once.get(), nullptr);
  const auto map = [&] { return must(detail::Mapping::map(file.get(), 1, true)); };
  const std::byte* const first = once.keep(map()).data();
  EXPECT_EQ(once.keep(map()).data(), first);
  EXPECT_EQ(once.get()->data(), first);
}

// Publishers that need room look at the groups. A child would inherit a lock that is held.
TEST(NoLock, IsInheritedFromThreadsThatRoll) {
  const TestTopic topic;
  for (int i = 0; i < 20; ++i) (void)must(topic->group(std::to_string(i), kSmall));
  std::atomic<bool> is_over = false;
  std::thread busy{[&] {
    auto publisher = must(topic->publisher());
    while (!is_over) (void)publisher.publish(kHalfText, Deadline::immediate());
  }};
  for (int i = 0; i < 50; ++i) {
    const ::pid_t child = calm_fork();
    if (child == 0) {
      ::alarm(10);
      auto publisher = topic->publisher();
      ::_exit(publisher && code(publisher->publish("x", Deadline::immediate())) != Errc::corrupt
                  ? 0
                  : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_EQ(status, 0);
  }
  is_over = true;
  busy.join();
}

Publisher* of_handler = nullptr;

TEST(NoLock, IsTakenByAHandlerThatPublishes) {
  const TestTopic topic{{.policy = Policy::fail}};
  const Group group = must(topic->group("g", kSmall));
  Child child{[&] {
    ::alarm(10);
    auto mine = must(topic->publisher());
    auto another = must(topic->publisher());
    (void)must(topic->find_group("g"));  // Mapped here, because that allocates memory.
    of_handler = &another;
    struct sigaction action {};
    action.sa_handler = [](int) { (void)of_handler->publish("x", Deadline::immediate()); };
    ::sigaction(SIGVTALRM, &action, nullptr);
    const ::itimerval timer{{0, 100}, {0, 100}};
    ::setitimer(ITIMER_VIRTUAL, &timer, nullptr);
    for (const Deadline end{500ms}; !end.passed();)
      (void)mine.publish(kHalfText, Deadline::immediate());
    const ::itimerval none{};
    ::setitimer(ITIMER_VIRTUAL, &none, nullptr);
    return 0;
  }};
  EXPECT_EQ(child.join(), 0);
}

}  // namespace
}  // namespace leat
