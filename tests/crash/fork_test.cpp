// If this failed, a child process could keep its killed parent's locks. The parent would then count
// as alive, and the others would wait for it forever.
//
// A process forks at some step, continues, and is killed; its child lives on and does nothing. The
// child inherits a copy of every descriptor that was open at that step.
#include "scenarios.hpp"

namespace leat::testing {
namespace {

// The child that survives its parent, and whether it runs yet.
struct Left {
  std::atomic<::pid_t> pid;
  std::atomic<bool> runs;
};

class Fork : public ::testing::Test {
 protected:
  ~Fork() override {
    if (left_->runs) ::kill(left_->pid, SIGKILL);
  }
  TopicOptions options() const {
    return {.capacity_bytes = 16384, .segment_bytes = 4096, .directory = directory_.path()};
  }
  void create(const TopicOptions& options) {
    auto created = Topic::create("topic", options);
    ASSERT_TRUE(created) << describe(created.error());
  }
  Topic open() const {
    auto opened = Topic::open("topic", Deadline::immediate(), directory_.path());
    CHILD_CHECK_OK(opened);
    return std::move(*opened);
  }
  // Runs `body` in a process that forks at the step, and is killed at the end.
  void die_and_leave_child(const char* step, const std::function<void()>& body) {
    Child parent{[&]() -> int {
      static const char* at;
      static Left* left;
      at = step;
      left = &*left_;
      detail::crash_point_hook = [](const char* name) {
        if (left->pid != 0 || std::string_view{name} != at) return;
        const ::pid_t pid = ::fork();
        if (pid != 0) {
          left->pid = pid;
          return;
        }
        left->runs = true;
        ::alarm(60);  // In case the test dies.
        while (true) ::pause();
      };
      body();
      ::raise(SIGKILL);
      return 0;
    }};
    parent.wait();
    ASSERT_TRUE(parent.was_killed()) << parent.describe();
    ASSERT_NE(left_->pid, 0) << "never reached " << step;
    ASSERT_TRUE(eventually([&] { return left_->runs.load(); }));
  }

  TemporaryDirectory directory_;
  Shared<Left> left_;
};

TEST_F(Fork, WhileItJoinsKeepsNobodyAlive) {
  for (const char* step : {"join:locked", "join:reserved", "join:active"}) {
    SCOPED_TRACE(step);
    (void)Topic::delete_topic("topic", {.force = true, .directory = directory_.path()});
    left_->pid = 0;
    left_->runs = false;
    create(options());
    die_and_leave_child(step, [&] {
      const Topic topic = open();
      auto reader = topic.subscriber({.from = From::beginning});
      CHILD_CHECK_OK(reader);
      ::raise(SIGKILL);
    });
    const Topic topic = open();
    EXPECT_TRUE(topic.info().participants.empty());
    // Nor does it hold room.
    auto publisher = topic.publisher();
    ASSERT_TRUE(publisher);
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(publisher->publish(std::string(1000, 'x'), kPatience));
    }
    ::kill(left_->pid, SIGKILL);
  }
}

TEST_F(Fork, WhileItDeletesLeavesTheDirectoryUnlocked) {
  create(options());
  die_and_leave_child("delete:renamed", [&] {
    CHILD_CHECK(Topic::delete_topic("topic", {.directory = directory_.path()}));
  });
  create(options());
  auto removed = Topic::delete_topic("topic", {.directory = directory_.path()});
  EXPECT_TRUE(removed) << describe(removed.error());
}

TEST_F(Fork, WhileItMakesAGroupLeavesTheGroupsUnlocked) {
  create(options());
  die_and_leave_child("group:filled", [&] { CHILD_CHECK(open().group("one")); });
  auto group = open().group("another");
  EXPECT_TRUE(group) << describe(group.error());
}

TEST_F(Fork, WhileItShrinksLeavesTheRecordsUnlocked) {
  TopicOptions growing = options();
  growing.policy = Policy::grow;
  create(growing);
  die_and_leave_child("shrink:locked", [&] { CHILD_CHECK(open().shrink()); });
  auto shrunk = open().shrink();
  EXPECT_TRUE(shrunk) << describe(shrunk.error());
}

// The child has the topic open, too, until it ends.
TEST_F(Fork, WhileATopicIsOpenKeepsItUntilTheChildEnds) {
  TopicOptions passing = options();
  passing.delete_when_unused = true;
  create(passing);
  die_and_leave_child("join:active", [&] {
    const Topic topic = open();
    CHILD_CHECK(topic.publisher());
    ::raise(SIGKILL);
  });
  const auto use = [&] { EXPECT_TRUE(open().publisher()); };
  use();
  EXPECT_EQ(Topic::list(directory_.path())->size(), 1U);
  ::kill(left_->pid, SIGKILL);
  EXPECT_TRUE(eventually([&] {
    use();
    return Topic::list(directory_.path())->empty();
  }));
  EXPECT_TRUE(Topic::list(directory_.path())->empty());
}

}  // namespace
}  // namespace leat::testing
