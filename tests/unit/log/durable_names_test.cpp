// The names of a durable topic's files: who gets them, and when they are gone. If these failed, a topic that was deleted
// could come back, or two users who share a directory could not use each other's topics.
#include <grp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <utility>

#include "durable_testing.hpp"

namespace leat::testing {
namespace {

// A topic that was deleted, and is back when the power has failed, may have what nobody was to keep.
TEST(DurableNames, OfADeletedTopicAreGoneForGood) {
  struct WatchedNames : detail::Disk {
    WatchedNames() { Disk::replace_system(this); }
    ~WatchedNames() override { Disk::replace_system(nullptr); }
    Result<void> sync_directory(int directory) noexcept override {
      const bool is_there = detail::has_name(directory, "d");
      if (data >= 0 && *detail::is_same_file(directory, data)) (is_there ? with : without) += 1;
      return Disk::sync_directory(directory);
    }
    std::atomic<int> data = -1;
    std::atomic<int> with = 0;
    std::atomic<int> without = 0;
  } disk;
  const TemporaryDirectory temp;
  std::filesystem::create_directories(temp.path() + "/topics");
  std::filesystem::create_directories(temp.path() + "/data");
  auto data = detail::open_directory_path(temp.path() + "/data", false, false);
  ASSERT_TRUE(data);
  disk.data = data->get();
  const TopicOptions wanted{.directory = temp.path() + "/topics",
                            .durable = Durability::os,
                            .data_directory = temp.path() + "/data"};
  for (const bool is_open : {false, true}) {
    disk.with = disk.without = 0;
    auto topic = Topic::create("d", wanted);
    ASSERT_TRUE(topic) << describe(topic.error());
    EXPECT_EQ(disk.with, 1);
    EXPECT_EQ(disk.without, 0);
    if (!is_open) topic = Errc::closed;
    ASSERT_TRUE(Topic::delete_topic(
        "d",
        {.force = true, .directory = wanted.directory, .data_directory = wanted.data_directory}));
    EXPECT_EQ(disk.without, 1);
  }
}

// Does something when the directory of topic "d" has got its name: another process may do that before its
// creator opens the topic.
class JustNamedDisk : public detail::Disk {
 public:
  JustNamedDisk(const std::string& data_directory, std::function<void()> act)
      : act_{std::move(act)} {
    auto data = detail::open_directory_path(data_directory, false, false);
    EXPECT_TRUE(data);
    data_ = std::move(*data);
    Disk::replace_system(this);
  }
  ~JustNamedDisk() override { Disk::replace_system(nullptr); }
  Result<void> sync_directory(int directory) noexcept override {
    if (act_ && *detail::is_same_file(directory, data_.get()) && detail::has_name(directory, "d"))
      std::exchange(act_, {})();
    return Disk::sync_directory(directory);
  }

 private:
  std::function<void()> act_;
  detail::Fd data_;
};

class DurableJustNamed : public ::testing::Test {
 protected:
  DurableJustNamed() {
    for (const auto* const path : {&wanted_.directory, &wanted_.data_directory})
      std::filesystem::create_directories(*path);
  }
  Result<Topic> open() const {
    return Topic::open("d", Deadline::immediate(), wanted_.directory, {}, wanted_.data_directory);
  }
  // Creates a topic for whose memory there is no room.
  bool cannot_create() const {
    return limit_files(40'000) && Topic::create("d", wanted_).error() == Errc::no_space;
  }
  static bool limit_files(::rlim_t bytes) {
    const ::rlimit limit{bytes, RLIM_INFINITY};
    return ::setrlimit(RLIMIT_FSIZE, &limit) == 0;
  }
  // In a process that closes the topic, or that dies together with the window.
  void publish_elsewhere(bool closes) const {
    Child other{[&]() -> int {
      CHILD_CHECK(limit_files(RLIM_INFINITY));
      auto topic = open();
      CHILD_CHECK_OK(topic);
      auto publisher = topic->publisher();
      CHILD_CHECK_OK(publisher);
      CHILD_CHECK_OK(publisher->publish("precious", kPatience));
      if (!closes) ::_exit(0);
      return 0;
    }};
    other.wait();
    EXPECT_TRUE(other.succeeded()) << other.describe();
    if (!closes) std::filesystem::remove_all(wanted_.directory + "/d");
  }

  const TemporaryDirectory temp_;
  const TopicOptions wanted_{.directory = temp_.path() + "/topics",
                             .durable = Durability::fsync,
                             .data_directory = temp_.path() + "/data"};
};

TEST_F(DurableJustNamed, ATopicThatCannotBeOpenedLeavesNothing) {
  Child creator{[this] { return cannot_create() ? 0 : 1; }};
  creator.wait();
  ASSERT_TRUE(creator.succeeded()) << creator.describe();
  EXPECT_TRUE(std::filesystem::is_empty(wanted_.data_directory));
  EXPECT_TRUE(std::filesystem::is_empty(wanted_.directory));
}

// It may have records that were acknowledged.
TEST_F(DurableJustNamed, ATopicThatItsCreatorCannotOpenStaysIfAnotherProcessHasOpenedIt) {
  for (const bool closes : {true, false}) {
    Child creator{[&]() -> int {
      const JustNamedDisk disk{wanted_.data_directory, [&] { publish_elsewhere(closes); }};
      return cannot_create() ? 0 : 1;
    }};
    creator.wait();
    ASSERT_TRUE(creator.succeeded()) << creator.describe();
    auto topic = open();
    ASSERT_TRUE(topic) << describe(topic.error());
    auto subscriber = topic->subscriber({.from = From::beginning});
    ASSERT_TRUE(subscriber);
    auto record = subscriber->receive(kPatience);
    ASSERT_TRUE(record) << describe(record.error());
    EXPECT_EQ(record->text(), "precious");
    topic = Errc::closed;
    subscriber = Errc::closed;
    ASSERT_TRUE(Topic::delete_topic(
        "d",
        {.force = true, .directory = wanted_.directory, .data_directory = wanted_.data_directory}));
  }
}

TEST_F(DurableJustNamed, ATopicThatIsDeletedBeforeItsCreatorOpensItIsMadeAgain) {
  int deletions = 0;
  const JustNamedDisk disk{
      wanted_.data_directory, [&] {
        EXPECT_TRUE(Topic::delete_topic(
            "d", {.directory = wanted_.directory, .data_directory = wanted_.data_directory}));
        ++deletions;
      }};
  auto topic = Topic::create("d", wanted_);
  ASSERT_TRUE(topic) << describe(topic.error());
  EXPECT_EQ(deletions, 1);
  EXPECT_TRUE(topic->publisher());
}

// Another container has the same directories at other paths. A directory that is renamed looks like that.
TEST_F(DurableSync, TheSameFilesAtAnotherPathAreUsed) {
  const std::string elsewhere = temp_.path() + "/elsewhere";
  const auto open_with = [&](const std::string& data) {
    return Topic::open("d", Deadline::immediate(), temp_.path() + "/topics", {}, data);
  };
  const Topic first = create(Durability::os);
  Publisher publisher = publisher_of(first);
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(publisher.publish(std::string(500, 'x'), kPatience));
  ASSERT_TRUE(publisher.flush(kPatience));
  std::filesystem::rename(temp_.path() + "/data", elsewhere);
  EXPECT_EQ(open().error(), Errc::wrong_format);
  {
    auto second = open_with(elsewhere);
    ASSERT_TRUE(second) << describe(second.error());
    ASSERT_TRUE(publisher_of(*second).publish("y", kPatience));
    EXPECT_EQ(read(*second, 301).size(), 301U);
    EXPECT_EQ(second->info().durable->directory, elsewhere + "/d");
    EXPECT_NE(second->info().durable->disk_bytes, 0U);
    ASSERT_TRUE(second->group("g"));
  }
  EXPECT_EQ(
      Topic::delete_topic("d", {.directory = temp_.path() + "/topics", .data_directory = elsewhere})
          .error(),
      Errc::busy);
  EXPECT_TRUE(Topic::delete_topic(
      "d", {.force = true, .directory = temp_.path() + "/topics", .data_directory = elsewhere}));
  EXPECT_TRUE(std::filesystem::is_empty(elsewhere));
}

// Two users share directories by their set-group-ID bit and a mode of 0660.
TEST_F(DurableSync, UsersShareADirectoryByItsGroup) {
  if (::geteuid() != 0) GTEST_SKIP() << "being another user needs root";
  constexpr ::gid_t kShared = 40100;
  constexpr ::uid_t kOther = 40002;
  ASSERT_EQ(::chmod(temp_.path().c_str(), 0755), 0);
  for (const char* name : {"/topics", "/data"}) {
    const std::string path = temp_.path() + name;
    ASSERT_EQ(::chown(path.c_str(), 0, kShared), 0);
    ASSERT_EQ(::chmod(path.c_str(), 02770), 0);
  }
  TopicOptions wanted = options(Durability::fsync);
  wanted.mode = 0660;
  wanted.file_bytes = 64 << 10;
  const auto publish = [](const Topic& topic) {
    auto publisher = topic.publisher();
    for (int i = 0; publisher && i < 300; ++i)
      if (!publisher->publish(std::string(500, 'x'), kPatience)) return false;
    return publisher.has_value();
  };
  ASSERT_TRUE(publish(create(wanted)));
  Child other{[&]() -> int {
    const ::gid_t groups[] = {kShared};
    if (::setgroups(1, groups) != 0 || ::setgid(kOther) != 0 || ::setuid(kOther) != 0) return 2;
    auto topic = open();
    CHILD_CHECK_OK(topic);
    CHILD_CHECK_OK(topic->group("g"));
    return publish(*topic) ? 0 : 3;
  }};
  other.wait();
  EXPECT_TRUE(other.succeeded()) << other.describe();
  for (const auto& one : std::filesystem::directory_iterator{temp_.path() + "/data/d"}) {
    struct stat file {};
    ASSERT_EQ(::stat(one.path().c_str(), &file), 0);
    EXPECT_EQ(file.st_gid, kShared) << one.path();
    EXPECT_EQ(file.st_mode & 0777, 0660U) << one.path();
  }
  auto topic = open();
  ASSERT_TRUE(topic) << describe(topic.error());
  EXPECT_EQ(topic->info().partitions[0].end, 600U);
}

}  // namespace
}  // namespace leat::testing
