// If this failed, a deletion that is refused would destroy the topic, or somebody else's files.
#include <fcntl.h>
#include <grp.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <fstream>
#include <optional>

#include "testing.hpp"

namespace leat {
namespace {

namespace fs = std::filesystem;

TopicOptions small_in(const TestDirectory& directory) {
  return {.capacity_bytes = 4 * kSegment, .segment_bytes = kSegment, .directory = directory.path()};
}

// As chattr(1) does. False where the file system cannot.
bool set_immutable(const std::string& path, bool on) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  int flags = 0;
  bool done = fd >= 0 && ::ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0;
  flags = on ? flags | FS_IMMUTABLE_FL : flags & ~FS_IMMUTABLE_FL;
  done = done && ::ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0;
  ::close(fd);
  return done;
}

// A deletion cannot be undone once it is decided: somebody who may write to the topic, but not delete its name, must not
// get that far.
TEST(DeletionRights, WithoutTheRightLeavesTheTopicAsItWas) {
  if (::geteuid() != 0) GTEST_SKIP() << "being another user needs root";
  const auto all = fs::perms::all;
  const auto only_owner_writes = all & ~(fs::perms::group_write | fs::perms::others_write);
  const auto sticky = all | fs::perms::sticky_bit;
  for (const bool durable : {false, true}) {
    for (const fs::perms directories : {only_owner_writes, sticky}) {
      const TestDirectory directory;
      const TestDirectory data;
      fs::permissions(directory.path(), durable ? all : directories);
      fs::permissions(data.path(), directories);
      TopicOptions options = small_in(directory);
      options.mode = 0666;
      if (durable) {
        options.durable = Durability::os;
        options.capacity_bytes = 0;
        options.segment_bytes = 0;
        options.data_directory = data.path();
      }
      const Topic topic = must(Topic::create("a", options));
      // Other users' locks, whatever this one's umask is.
      std::ofstream{directory / "+lock"};
      fs::permissions(directory / "+lock", all);
      Publisher publisher = must(topic.publisher());
      Subscriber subscriber = must(topic.subscriber());
      (void)must(publisher.publish("precious"));
      const auto delete_as_nobody = [&](bool force) {
        Child child{[&] {
          if (::setgid(65534) != 0 || ::setuid(65534) != 0) return 1;
          const auto done =
              Topic::delete_topic("a", {.force = force, .directory = directory.path()});
          return code(done) == Errc::permission ? 0 : 2;
        }};
        return child.join();
      };
      EXPECT_EQ(delete_as_nobody(true), 0) << durable;
      EXPECT_EQ(delete_as_nobody(false), 0) << durable;
      (void)must(publisher.publish("more"));
      EXPECT_EQ(read_until(subscriber, 2), (Log{"0 precious", "1 more"}));
      EXPECT_EQ(code(Topic::open("a", 0s, directory.path())), Errc::ok);
      EXPECT_EQ(code(Topic::delete_topic("a", {.force = true, .directory = directory.path()})),
                Errc::ok);
    }
  }
}

// The same of a durable topic that nobody has open, and of what an owner has made immutable.
TEST(DeletionRights, OfAClosedTopicWithoutTheRightLeavesItsFiles) {
  if (::geteuid() != 0) GTEST_SKIP() << "being another user needs root";
  const auto all = fs::perms::all;
  enum class Because { others_may_not_write, sticky, immutable };
  for (const auto because : {Because::others_may_not_write, Because::sticky, Because::immutable}) {
    const TestDirectory directory;
    const TestDirectory data;
    fs::permissions(directory.path(), all);
    fs::permissions(data.path(), all);
    const std::string store = data / "a";
    const TopicOptions options{.mode = 0666,
                               .directory = directory.path(),
                               .durable = Durability::os,
                               .data_directory = data.path()};
    (void)must(must(must(Topic::create("a", options)).publisher()).publish("precious"));
    std::string segment;
    for (const auto& file : fs::directory_iterator{store}) {
      if (file.path().filename().string().starts_with("segment-")) segment = file.path();
    }
    if (because == Because::others_may_not_write) {
      fs::permissions(store, all & ~(fs::perms::group_write | fs::perms::others_write));
    } else if (because == Because::sticky) {
      fs::permissions(store, all | fs::perms::sticky_bit);
    } else if (!set_immutable(segment, true)) {
      continue;  // This file system has no such files.
    }
    for (const bool force : {false, true}) {
      Child child{[&] {
        if (because != Because::immutable && (::setgid(65534) != 0 || ::setuid(65534) != 0))
          return 1;
        const auto done = Topic::delete_topic(
            "a", {.force = force, .directory = directory.path(), .data_directory = data.path()});
        return code(done) == Errc::permission ? 0 : 2;
      }};
      EXPECT_EQ(child.join(), 0) << static_cast<int>(because);
    }
    (void)set_immutable(segment, false);
    {
      const Topic topic = must(Topic::open("a", 0s, directory.path(), {}, data.path()));
      Subscriber subscriber = must(topic.subscriber({.from = From::beginning}));
      EXPECT_EQ(read_until(subscriber, 1), (Log{"0 precious"}));
    }
    EXPECT_EQ(code(Topic::delete_topic(
                  "a", {.directory = directory.path(), .data_directory = data.path()})),
              Errc::ok);
    EXPECT_TRUE(fs::is_empty(data.path()));
  }
}

TEST(DeletionRights, LeavesDirectoriesThatAreNoTopics) {
  const TestDirectory directory;
  const TestDirectory data;
  const DeleteOptions forced{
      .force = true, .directory = directory.path(), .data_directory = data.path()};
  const auto make_photos = [&](const char* name) {
    fs::create_directory(data / name);
    std::ofstream{(data / name) / "a.jpg"} << "precious";
  };
  make_photos("photos");
  fs::create_directory(data / "empty");
  EXPECT_EQ(code(Topic::delete_topic("photos", forced)), Errc::wrong_format);
  EXPECT_EQ(code(Topic::delete_topic("empty", forced)), Errc::wrong_format);
  EXPECT_TRUE(fs::exists(data / "photos/a.jpg"));
  // Also in the place of an open topic's files.
  const Topic topic = must(Topic::create(
      "a",
      {.directory = directory.path(), .durable = Durability::os, .data_directory = data.path()}));
  fs::remove_all(data / "a");
  make_photos("a");
  EXPECT_EQ(code(Topic::delete_topic("a", forced)), Errc::ok);
  EXPECT_TRUE(fs::exists(data / "a/a.jpg"));
}

// A lock that a stranger has made would keep the owner from deleting.
TEST(DeletionRights, RefusedDeletionLeavesNothingBehind) {
  if (::geteuid() != 0) GTEST_SKIP() << "being another user needs root";
  const TestDirectory directory;
  fs::permissions(directory.path(), fs::perms::all | fs::perms::sticky_bit);
  const auto as_user = [&](::uid_t user, const auto& work) {
    Child child{[&] { return ::setgid(user) == 0 && ::setuid(user) == 0 ? work() : 1; }};
    EXPECT_EQ(child.join(), 0);
  };
  const auto deletes = [&] {
    return code(Topic::delete_topic("a", {.directory = directory.path()}));
  };
  as_user(12345, [&] {
    TopicOptions options = small_in(directory);
    options.mode = 0666;
    (void)must(Topic::create("a", options));
    return 0;
  });
  as_user(54321, [&] { return deletes() == Errc::permission ? 0 : 2; });
  EXPECT_FALSE(fs::exists(directory / "+lock"));
  as_user(12345, [&] { return deletes() == Errc::ok ? 0 : 2; });
}

TEST(DeletionRights, IsForTheOwnerInAStickyDirectory) {
  if (::geteuid() != 0) GTEST_SKIP() << "being another user needs root";
  const TestDirectory directory;
  fs::permissions(directory.path(), fs::perms::all | fs::perms::sticky_bit);
  std::ofstream{directory / "+lock"};
  fs::permissions(directory / "+lock", fs::perms::all);
  Child owner{[&] {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) return 1;
    (void)must(Topic::create("a", small_in(directory)));
    (void)must(Topic::create("b", small_in(directory)));
    return code(Topic::delete_topic("a", {.directory = directory.path()})) == Errc::ok ? 0 : 2;
  }};
  EXPECT_EQ(owner.join(), 0);
  EXPECT_EQ(code(Topic::delete_topic("b", {.directory = directory.path()})), Errc::ok) << "as root";
  EXPECT_EQ(must(Topic::list(directory.path())), std::vector<std::string>{});
}

// Its memory is what is left of it.
TEST(DeletionRights, DurableOneWithoutFilesIsDeletedToo) {
  for (const bool with_all : {false, true}) {
    const TestDirectory directory;
    const TestDirectory data;
    const std::string path = data / "inner";
    const auto topic = must(Topic::create(
        "a", {.directory = directory.path(), .durable = Durability::os, .data_directory = path}));
    fs::remove_all(with_all ? path : path + "/a");
    EXPECT_EQ(code(Topic::delete_topic(
                  "a", {.force = true, .directory = directory.path(), .data_directory = path})),
              Errc::ok)
        << with_all;
    EXPECT_EQ(code(Topic::open("a", 0s, directory.path(), {}, path)), Errc::not_found);
  }
}

// A lock that only its maker could take would keep the others from deleting, and from closing durable topics.
TEST(DeletionRights, WhoeverMayWriteToTheDirectoryMayLockIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "being another user needs root";
  const struct {
    ::mode_t directory;
    ::mode_t lock;
    ::gid_t group;  // of the directory, and of the lock
  } cases[] = {{0777, 0666, 0}, {01777, 0666, 0}, {02770, 0660, 65534}, {0755, 0600, 0}};
  for (const auto& one : cases) {
    const TestDirectory directory;
    ASSERT_EQ(::chown(directory.path().c_str(), 0, one.group), 0);
    ASSERT_EQ(::chmod(directory.path().c_str(), one.directory), 0);
    const ::mode_t umask = ::umask(0077);
    (void)must(Topic::create("a", small_in(directory)));
    EXPECT_EQ(code(Topic::delete_topic("a", {.directory = directory.path()})), Errc::ok);
    ::umask(umask);
    struct stat status {};
    ASSERT_EQ(::stat((directory / "+lock").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, one.lock) << std::oct << one.directory;
    EXPECT_EQ(status.st_gid, one.group);
    if ((one.directory & 0022) == 0) continue;
    Child other{[&] {
      if (::setgid(65534) != 0 || ::setuid(65534) != 0) return 1;
      (void)must(Topic::create("b", small_in(directory)));
      return code(Topic::delete_topic("b", {.directory = directory.path()})) == Errc::ok ? 0 : 2;
    }};
    EXPECT_EQ(other.join(), 0) << std::oct << one.directory;
  }
}

// Somebody who may not give files to the directory's group gives them to no other one.
TEST(DeletionRights, LockOfAForeignGroupIsForNoOtherGroup) {
  if (::geteuid() != 0) GTEST_SKIP() << "being another user needs root";
  const TestDirectory directory;
  ASSERT_EQ(::chown(directory.path().c_str(), 65534, 12345), 0);
  ASSERT_EQ(::chmod(directory.path().c_str(), 0770), 0);
  Child owner{[&] {
    if (::setgroups(0, nullptr) != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0) return 1;
    (void)must(Topic::create("a", small_in(directory)));
    return code(Topic::delete_topic("a", {.directory = directory.path()})) == Errc::ok ? 0 : 2;
  }};
  EXPECT_EQ(owner.join(), 0);
  struct stat status {};
  ASSERT_EQ(::stat((directory / "+lock").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

// Somebody has the lock for himself, as earlier versions made it. Whoever cannot take it still has his topic when he closes
// it, and when he tried to delete it; also if its window is deleted already.
TEST(DeletionRights, LockOfSomebodyElseCostsNobodyATopic) {
  if (::geteuid() != 0) GTEST_SKIP() << "being another user needs root";
  const auto all = fs::perms::all;
  for (const bool window_is_deleted : {false, true}) {
    const TestDirectory directory;
    const TestDirectory data;
    fs::permissions(directory.path(), all);
    fs::permissions(data.path(), all);
    std::ofstream{directory / "+lock"};
    fs::permissions(directory / "+lock", fs::perms::owner_read | fs::perms::owner_write);
    const TopicOptions options{
        .directory = directory.path(), .durable = Durability::os, .data_directory = data.path()};
    Child owner{[&] {
      if (::setgid(65534) != 0 || ::setuid(65534) != 0) return 1;
      (void)must(must(must(Topic::create("a", options)).publisher()).publish("precious"));
      const Topic again = must(Topic::open("a", 0s, directory.path(), {}, data.path()));
      return must(again.publisher()).publish("more") ? 0 : 2;
    }};
    EXPECT_EQ(owner.join(), 0);
    EXPECT_TRUE(fs::exists(directory / "a")) << "the window stays";
    if (window_is_deleted) {  // As an earlier version left it.
      const detail::Fd place = must(detail::open_directory(directory.path(), false));
      const auto window = must(detail::attach_files(place, "a"));
      window->header().deleting = detail::kDeletionDecided;
      window->announce_deletion();
    }
    for (const bool force : {false, true}) {
      Child deletes{[&] {
        if (::setgid(65534) != 0 || ::setuid(65534) != 0) return 1;
        const auto done = Topic::delete_topic(
            "a", {.force = force, .directory = directory.path(), .data_directory = data.path()});
        return code(done) == Errc::permission ? 0 : 2;
      }};
      EXPECT_EQ(deletes.join(), 0) << window_is_deleted;
    }
    fs::permissions(directory / "+lock", all);
    const Topic topic = must(Topic::open("a", 0s, directory.path(), {}, data.path()));
    Subscriber subscriber = must(topic.subscriber({.from = From::beginning}));
    Log log = read_until(subscriber, 2);
    log.resize(2);  // What follows is a gap if the window was lost before it was closed.
    EXPECT_EQ(log, (Log{"0 precious", "1 more"})) << window_is_deleted;
  }
}

// What somebody has put there is not the topic's, so it cannot be deleted with it.
TEST(DeletionRights, ADirectoryInTheDataDirectoryIsInTheWay) {
  for (const bool is_open : {false, true}) {
    const TestDirectory directory;
    const TestDirectory data;
    const TopicOptions options{
        .directory = directory.path(), .durable = Durability::os, .data_directory = data.path()};
    std::optional<Topic> topic = must(Topic::create("a", options));
    (void)must(must(topic->publisher()).publish("precious"));
    fs::create_directory(data / "a/mine");
    if (!is_open) topic.reset();
    const DeleteOptions forced{
        .force = true, .directory = directory.path(), .data_directory = data.path()};
    EXPECT_EQ(code(Topic::delete_topic("a", forced)), Errc::wrong_format);
    topic.reset();
    topic = must(Topic::open("a", 0s, directory.path(), {}, data.path()));
    {
      Subscriber subscriber = must(topic->subscriber({.from = From::beginning}));
      EXPECT_EQ(read_until(subscriber, 1), (Log{"0 precious"}));
    }
    fs::remove(data / "a/mine");
    EXPECT_EQ(code(Topic::delete_topic("a", forced)), Errc::ok);
    EXPECT_TRUE(fs::is_empty(data.path()));
  }
}

// Whoever asks for the right to delete a name changes nothing, least of all a file of his own to which somebody
// else's link leads.
TEST(DeletionRights, AskingForThemDoesNotFollowLinks) {
  if (::geteuid() != 0) GTEST_SKIP() << "being another user needs root";
  constexpr ::uid_t kVictim = 65533;
  constexpr ::uid_t kOther = 65534;
  const TestDirectory directory;
  fs::permissions(directory.path(), fs::perms::all);
  const std::string secret = directory / "secret";
  std::ofstream{secret};
  fs::permissions(secret, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_directory(directory / "shared");
  fs::permissions(directory / "shared", fs::perms::all | fs::perms::sticky_bit);
  fs::create_symlink(secret, directory / "shared/link");
  ASSERT_EQ(::chown(secret.c_str(), kVictim, kVictim), 0);
  for (const char* name : {"shared", "shared/link"})
    ASSERT_EQ(::lchown((directory / name).c_str(), kOther, kOther), 0);
  const auto ask = [&] {
    const detail::Fd place = must(detail::open_directory_path(directory.path(), false, false));
    return code(detail::may_delete_directory_at(place.get(), "shared"));
  };
  EXPECT_EQ(ask(), Errc::ok);
  Child victim{[&] { return ::setuid(kVictim) == 0 && ask() == Errc::permission ? 0 : 1; }};
  EXPECT_EQ(victim.join(), 0);
  Child other{[&] { return ::setuid(kOther) == 0 && ask() == Errc::ok ? 0 : 1; }};
  EXPECT_EQ(other.join(), 0);
  EXPECT_EQ(fs::status(secret).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

}  // namespace
}  // namespace leat
