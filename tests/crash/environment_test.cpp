// If this failed, processes in containers could take a living publisher for dead or use two copies of a topic, other
// users could open private topics, or a full file system could end processes with SIGBUS.
//
// All of these tests need root.
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "scenarios.hpp"

namespace leat::testing {
namespace {

constexpr ::uid_t kNobody = 65534;

// A test that needs root and does not have it fails with a message. It is not skipped, so that a
// missing check is noticed.
#define NEEDS_ROOT()                                                                    \
  if (::geteuid() != 0) {                                                               \
    FAIL() << "needs root (run as uid " << ::geteuid() << "): use sudo or a container"; \
  }

// ---- Two PID namespaces -------------------------------------------------------------------------

// Runs `body` as process 1 of a new PID namespace. The child ends as that process does.
Child in_new_pid_namespace(const std::function<int()>& body) {
  return Child{[&]() -> int {
    if (::unshare(CLONE_NEWPID) != 0) {
      std::fprintf(stderr, "child: unshare(CLONE_NEWPID): %s\n", std::strerror(errno));
      return 2;
    }
    Child inside{[&]() -> int {
      CHILD_CHECK(::getpid() == 1);
      return body();
    }};
    inside.wait(60s);
    return inside.succeeded() ? 0 : 1;
  }};
}

struct Signals {
  std::atomic<bool> hurt;   // The victim has reached its step.
  std::atomic<bool> go_on;  // The victim may continue, or die.
  std::atomic<std::uint64_t> records;
  std::atomic<std::uint64_t> gaps;
};
Signals* signals_of_victim;

// Makes this process wait at the step as if it were stopped. Process 1 of a namespace cannot stop
// or kill itself.
void wait_at(const char* step) {
  static const char* where;
  where = step;
  detail::crash_point_hook = [](const char* name) {
    if (std::string_view{name} != where || signals_of_victim->hurt.exchange(true)) return;
    while (!signals_of_victim->go_on) ::usleep(500);
  };
}

TEST(PidNamespaces, SeeWhoLivesAndWhoIsDead) {
  NEEDS_ROOT();
  for (const bool dies : {false, true}) {
    SCOPED_TRACE(dies ? "the publisher dies" : "the publisher is only slow");
    World world;
    Shared<Signals> signals;
    Child victim = in_new_pid_namespace([&]() -> int {
      Topic topic = world.open();
      auto publisher = topic.publisher();
      CHILD_CHECK_OK(publisher);
      signals_of_victim = &*signals;
      wait_at("commit:before");
      CHILD_CHECK_OK(world.publish(*publisher, kVictim, 100));
      return 0;
    });
    if (!eventually([&] { return signals->hurt || victim.poll() != Child::State::running; }) ||
        victim.has_ended()) {
      FAIL() << "no PID namespace to be had (unshare needs CAP_SYS_ADMIN): " << victim.describe();
    }
    // The reader's PID in its namespace is the same as the victim's PID in the other one.
    Child reader = in_new_pid_namespace([&]() -> int {
      Topic topic = world.open();
      auto subscriber = topic.subscriber({.from = From::beginning});
      CHILD_CHECK_OK(subscriber);
      subscriber->on_event([&](const Event& event) {
        CHILD_CHECK(event.reason == GapReason::died);
        signals->gaps += event.count;
      });
      while (signals->records + signals->gaps < 4) {
        (void)subscriber->wait(100ms);
        CHILD_CHECK_OK(subscriber->poll(1, [&](const Record&) { ++signals->records; }));
      }
      return 0;
    });
    ASSERT_TRUE(world.publish_and_read(3, 200ms));
    ::usleep(50'000);
    EXPECT_EQ(reader.poll(), Child::State::running) << reader.describe();
    EXPECT_EQ(signals->records + signals->gaps, 0U) << "a living publisher was taken for dead";
    if (dies) {
      victim = Child{[] { return 0; }};  // Kills the old victim's parent, and the victim with it.
    } else {
      signals->go_on = true;
    }
    reader.wait();
    EXPECT_TRUE(reader.succeeded()) << reader.describe();
    EXPECT_EQ(signals->gaps, dies ? 1U : 0U);
    EXPECT_EQ(signals->records, dies ? 3U : 4U);
    world.expect_progress();
    EXPECT_EQ(world.gating_trail().gaps(GapReason::died), dies ? 1U : 0U);
  }
}

// ---- Two users ----------------------------------------------------------------------------------

// Runs `body` as another user.
Child as_user(::uid_t user, ::gid_t group, const std::function<int()>& body) {
  return Child{[&]() -> int {
    CHILD_CHECK(::setgroups(0, nullptr) == 0);
    CHILD_CHECK(::setgid(group) == 0);
    CHILD_CHECK(::setuid(user) == 0);
    return body();
  }};
}

class TwoUsers : public ::testing::Test {
 protected:
  void SetUp() override {
    NEEDS_ROOT();
    // As a user who wants to share the directory would do.
    ASSERT_EQ(::chmod(directory_.path().c_str(), 0755), 0);
  }
  TopicOptions options(std::uint32_t mode, const std::string& group = {}) const {
    return {
        .capacity_bytes = 16384, .mode = mode, .file_group = group, .directory = directory_.path()};
  }
  void expect_success(Child&& child) {
    child.wait();
    EXPECT_TRUE(child.succeeded()) << child.describe();
  }
  Errc open_error() const {
    auto opened = Topic::open("topic", Deadline::immediate(), directory_.path());
    if (!opened && describe(opened.error()).find("permi") == std::string::npos)
      return Errc::io_error;  // The message does not mention permissions.
    return opened.error().code;
  }

  TemporaryDirectory directory_;
};

TEST_F(TwoUsers, PrivateTopicIsRefusedWithASentence) {
  auto topic = Topic::create("topic", options(0600));
  ASSERT_TRUE(topic) << describe(topic.error());
  expect_success(as_user(kNobody, kNobody, [&]() -> int {
    CHILD_CHECK(open_error() == Errc::permission);
    const auto removed =
        Topic::delete_topic("topic", {.force = true, .directory = directory_.path()});
    CHILD_CHECK(removed.error().code == Errc::permission);
    const auto created = Topic::create("another", options(0600));
    CHILD_CHECK(created.error().code == Errc::permission);
    return 0;
  }));
  auto publisher = topic->publisher();
  ASSERT_TRUE(publisher);
  EXPECT_TRUE(publisher->publish("still here"));
}

TEST_F(TwoUsers, OpenTopicIsSharedAndTheOtherUsersDeathIsRepaired) {
  auto topic = Topic::create("topic", options(0666));
  ASSERT_TRUE(topic) << describe(topic.error());
  auto reader = topic->subscriber({.from = From::beginning});
  auto publisher = topic->publisher();
  ASSERT_TRUE(reader && publisher);
  ASSERT_TRUE(publisher->publish("from root"));
  Child other = as_user(kNobody, kNobody, [&]() -> int {
    auto opened = Topic::open("topic", Deadline::immediate(), directory_.path());
    CHILD_CHECK_OK(opened);
    auto their_reader = opened->subscriber({.from = From::beginning});
    CHILD_CHECK_OK(their_reader);
    auto record = their_reader->receive(1s);
    CHILD_CHECK_OK(record);
    CHILD_CHECK(record->text() == "from root");
    auto their_publisher = opened->publisher();
    CHILD_CHECK_OK(their_publisher);
    CHILD_CHECK_OK(their_publisher->publish("from nobody"));
    arm({"claim:marked", 1, SIGKILL});
    (void)their_publisher->publish("never");
    return 0;
  });
  other.wait();
  ASSERT_TRUE(other.was_killed()) << other.describe();
  ASSERT_TRUE(publisher->publish("after"));
  std::vector<std::string> texts;
  std::uint64_t died = 0;
  reader->on_event([&](const Event& event) { died += event.reason == GapReason::died ? 1U : 0U; });
  while (auto record = reader->receive(texts.size() < 3 ? 5s : 1ms)) {
    texts.emplace_back(record->text());
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"from root", "from nobody", "after"}));
  EXPECT_EQ(died, 1U);
}

TEST_F(TwoUsers, GroupDecides) {
  const ::group* group = ::getgrgid(1);  // "daemon" on Debian; any group without root will do.
  ASSERT_NE(group, nullptr);
  const ::gid_t gid = group->gr_gid;
  auto topic = Topic::create("topic", options(0660, group->gr_name));
  ASSERT_TRUE(topic) << describe(topic.error());
  expect_success(as_user(kNobody, gid, [&]() -> int {
    auto opened = Topic::open("topic", Deadline::immediate(), directory_.path());
    CHILD_CHECK_OK(opened);
    auto publisher = opened->publisher();
    CHILD_CHECK_OK(publisher);
    CHILD_CHECK_OK(publisher->publish("from the group"));
    return 0;
  }));
  expect_success(as_user(kNobody, kNobody, [&]() -> int {
    CHILD_CHECK(open_error() == Errc::permission);
    return 0;
  }));
  auto reader = topic->subscriber({.from = From::beginning});
  ASSERT_TRUE(reader);
  auto record = reader->receive(1s);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->text(), "from the group");
}

// The parent of the default directory is writable by everybody, so another
// user could have created it.
TEST_F(TwoUsers, DefaultDirectoryOfSomebodyElseIsRefused) {
  const auto user = static_cast<::uid_t>(300'000 + ::getpid());  // A uid that no user has.
  const std::string path = "/dev/shm/leat-" + std::to_string(user);
  const auto create_as_user = [&](Errc expected) {
    expect_success(as_user(user, user, [&]() -> int {
      ::unsetenv("LEAT_DIR");
      auto created = Topic::create("topic", {.capacity_bytes = 16384});
      CHILD_CHECK(created.error().code == expected);
      return 0;
    }));
  };
  ASSERT_EQ(::mkdir(path.c_str(), 0777), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
  create_as_user(Errc::permission);
  std::filesystem::remove_all(path);

  ASSERT_EQ(::symlink(directory_.path().c_str(), path.c_str()), 0);
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0777), 0);
  create_as_user(Errc::permission);
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
  std::filesystem::remove(path);

  create_as_user(Errc::ok);
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
  EXPECT_EQ(status.st_uid, user);
  std::filesystem::remove_all(path);
}

// ---- An overlay ---------------------------------------------------------------------------------

// A topic that was made while a container's image was built lies in the lower layer of an overlay, which copies a file
// when it is opened for writing. A subscriber that came first used to map the file below, and publishers the copy.
TEST(Overlay, SubscribersAndPublishersOfATopicInTheLowerLayerMeet) {
  NEEDS_ROOT();
  const TemporaryDirectory directory;
  const std::string place = directory.path();
  for (const char* layer : {"/lower", "/upper", "/work", "/all"})
    std::filesystem::create_directory(place + layer);
  ASSERT_TRUE(Topic::create("topic", {.capacity_bytes = 16384, .directory = place + "/lower"}));
  Child child{[&]() -> int {
    const std::string layers =
        "lowerdir=" + place + "/lower,upperdir=" + place + "/upper,workdir=" + place + "/work";
    const std::string all = place + "/all";
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("overlay", all.c_str(), "overlay", 0, layers.c_str()) != 0) {
      std::fprintf(stderr, "child: cannot mount an overlay (needs CAP_SYS_ADMIN): %s\n",
                   std::strerror(errno));
      return 2;
    }
    auto topic = Topic::open("topic", Deadline::immediate(), all);
    CHILD_CHECK_OK(topic);
    auto subscriber = topic->subscriber();
    CHILD_CHECK_OK(subscriber);
    auto again = Topic::open("topic", Deadline::immediate(), all);
    CHILD_CHECK_OK(again);
    auto publisher = again->publisher();
    CHILD_CHECK_OK(publisher);
    CHILD_CHECK_OK(publisher->publish("one"));
    auto record = subscriber->receive(5s);
    CHILD_CHECK_OK(record);
    CHILD_CHECK(record->text() == "one");
    return 0;
  }};
  child.wait(60s);
  EXPECT_TRUE(child.succeeded()) << child.describe();
}

// ---- A full file system -------------------------------------------------------------------------

// Runs in a child that mounts its own tmpfs at the directory; it disappears with the child.
class SmallTmpfs : public ::testing::Test {
 protected:
  void run(const char* mount_options, const std::function<int()>& body) {
    NEEDS_ROOT();
    Child child{[&]() -> int {
      if (::unshare(CLONE_NEWNS) != 0 ||
          ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) ||
          ::mount("tmpfs", directory_.path().c_str(), "tmpfs", 0, mount_options) != 0) {
        std::fprintf(stderr, "child: cannot mount a tmpfs (needs CAP_SYS_ADMIN): %s\n",
                     std::strerror(errno));
        return 2;
      }
      return body();
    }};
    child.wait(60s);
    EXPECT_TRUE(child.succeeded()) << child.describe();
  }
  TopicOptions options(std::uint64_t capacity) const {
    return {.capacity_bytes = capacity,
            .segment_bytes = 4096,
            .participants = 4,
            .directory = directory_.path()};
  }
  // Names of topics, complete or not. The directory's own lock file is left out.
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator{directory_.path()}) {
      if (entry.is_directory()) found.push_back(entry.path().filename());
    }
    return found;
  }
  TemporaryDirectory directory_;
};

TEST_F(SmallTmpfs, CreateSaysThereIsNoSpaceAndLeavesNothing) {
  run("size=1m", [&]() -> int {
    auto created = Topic::create("topic", {.directory = directory_.path()});  // 8 MiB
    CHILD_CHECK(created.error().code == Errc::no_space);
    CHILD_CHECK(names().empty());
    // Sizes around the limit: a topic either works from its first to its last
    // byte, or is not created.
    int refused = 0;
    for (std::uint64_t capacity = 900U << 10; capacity <= 1100U << 10; capacity += 4096) {
      auto topic = Topic::create("topic", options(capacity));
      if (!topic) {
        CHILD_CHECK(topic.error().code == Errc::no_space);
        CHILD_CHECK(names().empty());
        ++refused;
        continue;
      }
      CHILD_CHECK(refused == 0);
      auto publisher = topic->publisher();
      CHILD_CHECK_OK(publisher);
      const std::string text(1300, 'x');
      for (std::uint64_t i = 0; i < 2 * capacity / 1300; ++i) {
        CHILD_CHECK_OK(publisher->publish(text));
      }
      publisher = Errc::ok;
      topic = Errc::ok;
      CHILD_CHECK_OK(Topic::delete_topic("topic", {.directory = directory_.path()}));
    }
    CHILD_CHECK(refused > 0);
    return 0;
  });
}

TEST_F(SmallTmpfs, TopicWorksOnWhenTheRestOfItIsFull) {
  run("size=1m", [&]() -> int {
    auto topic = Topic::create("topic", options(256U << 10));
    CHILD_CHECK_OK(topic);
    {
      std::ofstream filler{directory_.path() + "/filler"};
      const std::string page(4096, 'x');
      while (filler.write(page.data(), 4096).flush()) {
      }
    }
    CHILD_CHECK(Topic::create("another", options(16384)).error().code == Errc::no_space);
    auto publisher = topic->publisher();
    auto subscriber = topic->subscriber({.from = From::beginning});
    CHILD_CHECK(publisher && subscriber);
    std::uint64_t count = 0;
    const std::string text(1300, 'x');
    for (int i = 0; i < 1000; ++i) {
      CHILD_CHECK_OK(publisher->publish(text, 1s));
      CHILD_CHECK_OK(subscriber->poll(10, [&](const Record&) { ++count; }));
    }
    CHILD_CHECK(count == 1000);
    return 0;
  });
}

// A growing topic on a full file system: publishers wait as they do at the maximum, and no process
// gets SIGBUS, not even one that reads a segment whose memory was freed.
TEST_F(SmallTmpfs, GrowingTopicWaitsForMemory) {
  run("size=1m", [&]() -> int {
    TopicOptions growing = options(16384);
    growing.policy = Policy::grow;
    growing.max_capacity_bytes = 2U << 20;
    auto topic = Topic::create("topic", growing);
    CHILD_CHECK_OK(topic);
    auto publisher = topic->publisher();
    auto subscriber = topic->subscriber({.from = From::beginning});
    auto lossy = topic->subscriber({.from = From::beginning, .gating = false});
    CHILD_CHECK(publisher && subscriber && lossy);
    const std::string text(1300, 'x');
    std::uint64_t published = 0;
    std::uint64_t read = 0;
    const auto fill = [&] {
      auto offset = publisher->publish(text, Deadline::immediate());
      for (; offset; offset = publisher->publish(text, Deadline::immediate())) ++published;
      return offset.error().code;
    };
    const auto read_all = [&] {
      while (*subscriber->poll(100, [&](const Record& record) {
        read += record.text() == text ? 1U : 0U;
      }) != 0) {
      }
    };
    const std::string filler = directory_.path() + "/filler";
    for (int round = 0; round < 3; ++round) {
      CHILD_CHECK(fill() == Errc::full);
      CHILD_CHECK(topic->info().capacity_bytes > 512U << 10);
      CHILD_CHECK(topic->info().capacity_bytes < 1U << 20);
      CHILD_CHECK(publisher->publish(text, 250ms).error().code == Errc::timeout ||
                  publisher->publish(text, 250ms).error().code == Errc::would_deadlock);
      read_all();
      CHILD_CHECK(read == published);
      auto freed = topic->shrink();
      CHILD_CHECK(freed && *freed > 256U << 10);
      // Another file takes the memory that was freed; the lossy subscriber continues to read.
      std::ofstream{filler} << std::string(1U << 20, 'x');
      CHILD_CHECK(fill() == Errc::full);
      while (*lossy->poll(100, [](const Record&) {}) != 0) {
      }
      read_all();
      CHILD_CHECK(read == published);
      std::filesystem::remove(filler);
      ::usleep(150'000);  // After this time the process asks for memory again.
    }
    return 0;
  });
}

// With few inodes, creating the directory, the first or the second file fails.
TEST_F(SmallTmpfs, CreateWithoutInodesLeavesNothing) {
  for (int inodes = 1; inodes <= 4; ++inodes) {
    SCOPED_TRACE(inodes);
    run(("size=1m,nr_inodes=" + std::to_string(inodes)).c_str(), [&]() -> int {
      auto created = Topic::create("topic", options(16384));
      CHILD_CHECK(created || created.error().code == Errc::no_space);
      CHILD_CHECK(created || names().empty());
      CHILD_CHECK(inodes > 3 || !created);
      return 0;
    });
  }
}

}  // namespace
}  // namespace leat::testing
