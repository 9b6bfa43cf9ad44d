// If this failed, a topic with `delete_when_unused` would stay after its last user, or be deleted
// while somebody still has it open.
#include <signal.h>
#include <sys/resource.h>

#include "testing.hpp"

namespace leat {
namespace {

TopicOptions passing(const TestDirectory& directory) {
  return {.capacity_bytes = 4 * kSegment,
          .segment_bytes = kSegment,
          .delete_when_unused = true,
          .directory = directory.path()};
}

TEST(UnusedTopic, GoesWithItsLastUser) {
  const TestDirectory directory;
  const TopicOptions options = passing(directory);
  {
    std::optional<Topic> topic = must(Topic::create("a", options));
    std::optional<Publisher> publisher = must(topic->publisher());
    std::optional<Topic> other = must(Topic::open("a", 0s, directory.path()));
    std::optional<Subscriber> subscriber = from_beginning(*other);
    topic.reset();
    publisher.reset();
    EXPECT_EQ(code(Topic::open("a", 0s, directory.path())), Errc::ok);
    other.reset();
    EXPECT_EQ(must(Topic::list(directory.path())).size(), 1u);
    subscriber.reset();
  }
  EXPECT_EQ(code(Topic::open("a", 0s, directory.path())), Errc::not_found);
  EXPECT_TRUE(directory.is_empty());
}

TEST(UnusedTopic, StaysWhileItIsOpenSomewhere) {
  const TestDirectory directory;
  const TopicOptions options = passing(directory);
  {
    const Topic made = must(Topic::create("a", options));
    const Topic other = must(Topic::open("a", 0s, directory.path()));
    auto publisher = must(other.publisher());
    (void)must(publisher.publish("x"));
    auto reader = from_beginning(made);
    EXPECT_EQ(drain(reader).size(), 1u);
  }
  EXPECT_EQ(code(Topic::open("a", 0s, directory.path())), Errc::not_found);
}

TEST(UnusedTopic, IsNotRemovedByLookingAtIt) {
  const TestDirectory directory;
  const TopicOptions options = passing(directory);
  (void)must(Topic::create("a", options));
  const ::pid_t child = ::fork();
  if (child == 0) {
    const Topic opened = must(Topic::open("a", 0s, directory.path()));
    auto publisher = must(opened.publisher());
    (void)must(publisher.publish("x"));
    ::_exit(0);  // Exits without destructors, as if killed.
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(must(Topic::open("a", 0s, directory.path())).info().partitions[0].end, 1u);
  (void)from_beginning(must(Topic::open("a", 0s, directory.path())));
  EXPECT_EQ(code(Topic::open("a", 0s, directory.path())), Errc::not_found);
}

TEST(UnusedTopic, LeavesAnotherOfItsNameAlone) {
  const TestDirectory directory;
  const TopicOptions options = passing(directory);
  std::optional<Topic> old = must(Topic::create("a", options));
  std::optional<Publisher> publisher = must(old->publisher());
  must(Topic::delete_topic("a", {.force = true, .directory = directory.path()}));
  (void)must(Topic::create("a", options));
  publisher.reset();
  old.reset();
  EXPECT_EQ(code(Topic::open("a", 0s, directory.path())), Errc::ok);
}

TEST(UnusedTopic, StaysUntilItWasUsed) {
  const TestDirectory directory;
  const TopicOptions options = passing(directory);
  (void)must(Topic::create("a", options));
  EXPECT_EQ(code(Topic::open("a", 0s, directory.path())), Errc::ok);
}

// A process that has only opened the topic is no user. But others cannot know that, so the topic is
// deleted only when that process closes it.
TEST(UnusedTopic, GoesWithWhoeverLookedLast) {
  const TestDirectory directory;
  std::optional<Topic> used = must(Topic::create("a", passing(directory)));
  (void)must(must(used->publisher()).publish("x"));
  std::optional<Topic> looks = must(Topic::open("a", 0s, directory.path()));
  std::optional<Topic> looks_too = must(Topic::open("a", 0s, directory.path()));
  used.reset();
  looks.reset();
  EXPECT_EQ(must(Topic::list(directory.path())).size(), 1u);
  EXPECT_EQ(looks_too->info().partitions[0].end, 1u);
  looks_too.reset();
  EXPECT_TRUE(directory.is_empty());
}

TEST(UnusedTopic, StaysForAUserThatCameWhileSomebodyLooked) {
  const TestDirectory directory;
  std::optional<Topic> used = must(Topic::create("a", passing(directory)));
  (void)must(must(used->publisher()).publish("x"));
  std::optional<Topic> looks = must(Topic::open("a", 0s, directory.path()));
  used.reset();
  {
    const Topic again = must(Topic::open_or_create("a", passing(directory)));
    auto reader = from_beginning(again);
    looks.reset();
    EXPECT_EQ(drain(reader), Log{"0 x"});
    EXPECT_FALSE(directory.is_empty());
  }
  EXPECT_TRUE(directory.is_empty());
}

// A process that only had the topic open is killed; the next one that opens
// and closes the topic deletes it.
TEST(UnusedTopic, GoesThoughWhoeverLookedWasKilled) {
  const TestDirectory directory;
  std::optional<Topic> used = must(Topic::create("a", passing(directory)));
  (void)must(must(used->publisher()).publish("x"));
  Child looker{[&] {
    const Topic opened = must(Topic::open("a", 0s, directory.path()));
    ::raise(SIGSTOP);
    return 0;
  }};
  int status = 0;
  ASSERT_EQ(::waitpid(looker.pid(), &status, WUNTRACED), looker.pid());
  used.reset();
  EXPECT_FALSE(directory.is_empty());
  ::kill(looker.pid(), SIGKILL);
  EXPECT_EQ(looker.join(), -SIGKILL);
  (void)Topic::open("a", 0s, directory.path());
  EXPECT_TRUE(directory.is_empty());
}

// A forked child has copies of its parent's handles. Destroying these copies
// must not delete the topic.
TEST(UnusedTopic, IsNotRemovedByAForkedChild) {
  const TestDirectory directory;
  std::optional<Topic> used = must(Topic::create("a", passing(directory)));
  auto publisher = must(used->publisher());
  (void)must(publisher.publish("x"));
  Child child{[&] {
    { const Publisher inherited = std::move(publisher); }
    used.reset();
    return 0;
  }};
  EXPECT_EQ(child.join(), 0);
  EXPECT_EQ(must(publisher.publish("y")), 1u);
  EXPECT_EQ(must(Topic::open("a", 0s, directory.path())).info().partitions[0].end, 2u);
}

// Where a child and its parent tell each other how far they are.
class Signal {
 public:
  Signal() { EXPECT_EQ(::pipe(ends_), 0); }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  ~Signal() {
    for (const int end : ends_) ::close(end);
  }
  void give() const { EXPECT_EQ(::write(ends_[1], "", 1), 1); }
  void wait() const {
    char byte = 0;
    EXPECT_EQ(::read(ends_[0], &byte, 1), 1);
  }

 private:
  int ends_[2] = {-1, -1};
};

TEST(UnusedTopic, StaysForAChildThatHasItOpenWhenTheParentClosesIt) {
  const TestDirectory directory;
  std::optional<Topic> topic = must(Topic::create("a", passing(directory)));
  (void)must(must(topic->publisher()).publish("x"));
  const Signal closed;
  Child child{[&] {
    closed.wait();
    auto publisher = topic->publisher();
    const bool is_open = publisher && publisher->publish("y");
    publisher = Errc::ok;
    topic.reset();
    return is_open && directory.is_empty() ? 0 : 1;
  }};
  topic.reset();
  EXPECT_FALSE(directory.is_empty());
  closed.give();
  EXPECT_EQ(child.join(), 0);
  EXPECT_TRUE(directory.is_empty());
}

TEST(UnusedTopic, GoesWithAGrandchildThatIsTheLast) {
  const TestDirectory directory;
  std::optional<Topic> topic = must(Topic::create("a", passing(directory)));
  (void)must(must(topic->publisher()).publish("x"));
  const Signal closed;
  const Signal forked;
  Child child{[&] {
    Child grandchild{[&] {
      forked.give();
      closed.wait();
      const bool was_there = !directory.is_empty();
      topic.reset();
      return was_there ? 0 : 1;
    }};
    topic.reset();
    return grandchild.join();
  }};
  forked.wait();
  topic.reset();
  closed.give();
  EXPECT_EQ(child.join(), 0);
  EXPECT_TRUE(directory.is_empty());
}

TEST(UnusedTopic, GoesWithItsParentIfTheChildIsGoneFirst) {
  const TestDirectory directory;
  std::optional<Topic> topic = must(Topic::create("a", passing(directory)));
  (void)must(must(topic->publisher()).publish("x"));
  Child killed{[&] {
    (void)must(must(topic->publisher()).publish("y"));
    return 0;  // Exits without destructors.
  }};
  EXPECT_EQ(killed.join(), 0);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const ::pid_t replaced = ::fork();
  if (replaced == 0) {
    ::dup2(ready[1], STDOUT_FILENO);
    ::execl("/bin/sh", "sh", "-c", "echo; exec sleep 30", nullptr);
    ::_exit(1);
  }
  // A program that has printed something has closed what exec closes, and so released its locks.
  char byte;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  ::close(ready[1]);
  topic.reset();
  EXPECT_TRUE(directory.is_empty());
  ::kill(replaced, SIGKILL);
  ::waitpid(replaced, nullptr, 0);
}

// Without a descriptor for its lock, a child decides nothing.
TEST(UnusedTopic, IsNotRemovedByAChildWithoutALock) {
#if LEAT_TEST_SANITIZED
  GTEST_SKIP() << "the sanitizer opens pipes to look whether memory can be read";
#endif
  const TestDirectory directory;
  std::optional<Topic> topic = must(Topic::create("a", passing(directory)));
  auto publisher = must(topic->publisher());
  (void)must(publisher.publish("x"));
  ::rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const ::rlimit none{3, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  Child child{[&] {
                topic.reset();
                return 0;
              },
              ::fork};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(child.join(), 0);
  EXPECT_FALSE(directory.is_empty());
  EXPECT_EQ(must(publisher.publish("y")), 1u);
}

}  // namespace
}  // namespace leat
