// Durability `os`: a full file is synced while the archiver goes on. If these failed, publishers would wait for the
// disk although nobody asked for it, or records would be lost, or called durable when they are not on stable storage.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "durable_testing.hpp"
#include "leat/store/backup.hpp"

namespace leat::testing {
namespace {

class DurableFullFiles : public DurableSync {
 protected:
  static constexpr std::uint64_t kMost = 4;  // full files that are not synced
  static constexpr std::uint64_t kPerFile =
      240;  // records of 1000 bytes fit in a file, and a few more

  // A topic with an archiver and so many records.
  Topic create_os(std::uint64_t records = 1, std::uint64_t retention_bytes = 0) const {
    TopicOptions wanted = options(Durability::os);
    wanted.retention_bytes = retention_bytes;
    Topic topic = create(wanted);
    publish(topic, records);
    EXPECT_TRUE(is_written(topic, records));
    return topic;
  }
  // While syncs are held.
  void publish_held(const Topic& topic, std::uint64_t count) {
    const std::uint64_t before = written_of(topic);
    disk_.hold_syncs(true);
    publish(topic, count);
    ASSERT_TRUE(is_written(topic, before + count));
    EXPECT_EQ(durable_of(topic), 0U);
  }
  static void publish(const Topic& topic, std::uint64_t count) {
    Publisher publisher = publisher_of(topic);
    for (std::uint64_t i = 0; i < count; ++i) {
      auto offset = publisher.publish(std::string(1000, 'x'), kPatience);
      ASSERT_TRUE(offset) << describe(offset.error());
    }
  }
  // Returns when the process has called ready().
  static Child start(const std::function<void(const std::function<void()>& ready)>& run) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const detail::Fd from{ends[0]};
    detail::Fd to{ends[1]};
    Child child{[&]() -> int {
      run([&] { (void)!::write(to.get(), "x", 1); });
      return 1;
    }};
    to = {};
    char ready = 0;
    EXPECT_EQ(::read(from.get(), &ready, 1), 1);
    return child;
  }
  // A process that is the archiver, and whose syncs take for ever.
  Child keep_three_full_files() {
    return start([&](const std::function<void()>& ready) {
      const Topic topic = create_os();
      publish_held(topic, 3 * kPerFile);
      ready();
      for (;;) ::pause();
    });
  }
  static std::uint64_t written_of(const Topic& topic) { return topic.info().partitions[0].written; }
  static bool is_written(const Topic& topic, std::uint64_t count) {
    return wait_until([&] { return written_of(topic) == count; });
  }
  std::vector<std::string> files() const {
    std::vector<std::string> found;
    for (const auto& one : std::filesystem::directory_iterator{temp_.path() + "/data/d"}) {
      const std::string name = one.path().filename();
      if (name.starts_with("segment-")) found.push_back(name);
    }
    std::sort(found.begin(), found.end());
    return found;
  }
};

TEST_F(DurableFullFiles, NobodyWaitsForTheirSync) {
  const Topic topic = create_os();
  publish_held(topic, (kMost - 1) * kPerFile + 100);
  EXPECT_EQ(files().size(), kMost);
  disk_.hold_syncs(false);
  // All full files, without anybody publishing, and nothing of the last one.
  EXPECT_TRUE(wait_until([&] { return durable_of(topic) >= (kMost - 1) * kPerFile; }));
  EXPECT_LT(durable_of(topic), written_of(topic));
  EXPECT_EQ(disk_.background_syncs(), kMost - 1);
}

TEST_F(DurableFullFiles, TheArchiverWaitsWhenTheDiskIsFarBehind) {
  const Topic topic = create_os();
  disk_.hold_syncs(true);
  std::jthread busy{[&] { publish(topic, 12 * kPerFile); }};
  ASSERT_TRUE(wait_until([&] { return files().size() == kMost + 1; }));
  ASSERT_TRUE(wait_until([&] { return disk_.is_holding(); }));
  const std::uint64_t written = written_of(topic);
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(written_of(topic), written);
  EXPECT_EQ(files().size(), kMost + 1);
  disk_.hold_syncs(false);
  busy.join();
  ASSERT_TRUE(is_written(topic, 12 * kPerFile + 1));
  EXPECT_EQ(read(topic, 12 * kPerFile + 1).size(), 12 * kPerFile + 1);
}

TEST_F(DurableFullFiles, WhoAsksForASyncWaitsForAllOfThem) {
  const Topic topic = create_os();
  publish_held(topic, 2 * kPerFile + 100);
  Publisher publisher = publisher_of(topic);
  ASSERT_TRUE(publisher.publish("x"));
  EXPECT_EQ(publisher.flush(Deadline{20ms}).error(), Errc::not_durable);
  EXPECT_EQ(durable_of(topic), 0U);
  disk_.hold_syncs(false);
  ASSERT_TRUE(publisher.flush(kPatience));
  EXPECT_EQ(durable_of(topic), 2 * kPerFile + 102);
}

TEST_F(DurableFullFiles, AFailedSyncMakesTheTopicReadOnly) {
  const Topic topic = create_os();
  publish_held(topic, 2 * kPerFile);
  disk_.fail_syncs(EIO);
  disk_.hold_syncs(false);
  EXPECT_TRUE(wait_until([&] { return topic.info().durable->state == Errc::read_only; }));
  EXPECT_EQ(topic.info().durable->reason, EIO);
  EXPECT_EQ(durable_of(topic), 0U);
  Publisher publisher = publisher_of(topic);
  EXPECT_EQ(publisher.publish("x", kPatience).error(), Errc::read_only);
  // Memory has no more than what was not written; the files are read as far as they are whole.
  disk_.mend();
  ASSERT_TRUE(topic.repair(kPatience));
  ASSERT_TRUE(publisher.publish("x", kPatience));
  EXPECT_EQ(read(topic, 2 * kPerFile + 2).size(), 2 * kPerFile + 2);
}

TEST_F(DurableFullFiles, ASystemThatCannotDoThatWaitsForEachFile) {
  disk_.can_sync_in_background(false);
  {
    const Topic topic = create_os(3 * kPerFile);
    EXPECT_TRUE(wait_until([&] { return durable_of(topic) > kPerFile; }));
    EXPECT_EQ(disk_.background_syncs(), 0U);
  }
  auto topic = open();
  ASSERT_TRUE(topic);
  EXPECT_EQ(read(*topic, 3 * kPerFile).size(), 3 * kPerFile);
}

TEST_F(DurableFullFiles, TheLastProcessFinishesThem) {
  {
    const Topic topic = create_os();
    publish_held(topic, 3 * kPerFile);
    disk_.hold_syncs(false);
  }
  auto topic = open();
  ASSERT_TRUE(topic);
  const TopicInfo info = topic->info();
  EXPECT_EQ(info.partitions[0].durable, 3 * kPerFile + 1);  // Closed in order, so all of it.
  EXPECT_EQ(info.partitions[0].end, 3 * kPerFile + 1);
  EXPECT_EQ(info.durable->cut_bytes, 0U);
  EXPECT_EQ(read(*topic, 3 * kPerFile + 1).size(), 3 * kPerFile + 1);
}

TEST_F(DurableFullFiles, AnotherProcessGoesOnWhenTheArchiverLeaves) {
  auto topic = std::optional{create_os()};
  auto other = open();
  ASSERT_TRUE(other);
  publish_held(*topic, 2 * kPerFile);
  std::jthread lets_go{[&] {
    std::this_thread::sleep_for(20ms);
    disk_.hold_syncs(false);
  }};
  topic.reset();
  EXPECT_GE(durable_of(*other), kPerFile);  // Nothing is left to the other one.
  publish(*other, 1);
  ASSERT_TRUE(is_written(*other, 2 * kPerFile + 2));
  EXPECT_EQ(read(*other, 2 * kPerFile + 2).size(), 2 * kPerFile + 2);
}

TEST_F(DurableFullFiles, ASuccessorSyncsThoseOfADeadArchiver) {
  Child archiver = keep_three_full_files();
  archiver.signal(SIGKILL);  // Before anybody could take it for stopped.
  archiver.wait();
  const std::uint64_t syncs = disk_.syncs();
  auto topic = open();
  ASSERT_TRUE(topic) << describe(topic.error());
  publish(*topic, 1);
  EXPECT_TRUE(wait_until([&] { return durable_of(*topic) == 3 * kPerFile + 1; }));
  EXPECT_GE(disk_.syncs(), syncs + 3);
  EXPECT_EQ(read(*topic, 3 * kPerFile + 2).size(), 3 * kPerFile + 2);
}

TEST_F(DurableFullFiles, RetentionDeletesNoneThatIsNotSynced) {
  const Topic topic = create_os(1, 256 << 10);
  disk_.hold_syncs(true);
  std::jthread busy{[&] { publish(topic, 8 * kPerFile); }};
  ASSERT_TRUE(wait_until([&] { return disk_.is_holding(); }));
  EXPECT_EQ(topic.info().partitions[0].start, 0U);
  // One that is kept, one that is synced, one in use.
  EXPECT_LE(files().size(), 3U);
  disk_.hold_syncs(false);
  busy.join();
  ASSERT_TRUE(is_written(topic, 8 * kPerFile + 1));
  EXPECT_GT(topic.info().partitions[0].start, 4 * kPerFile);
  EXPECT_TRUE(wait_until([&] { return files().size() <= 3; }));
}

// ---- What a review found --------------------------------------------------------------------------

// Otherwise the next archiver's sync might wrongly succeed.
TEST_F(DurableFullFiles, AnErrorIsAnnouncedAlthoughTheArchiverHasToLeave) {
  const Topic topic = create_os();
  publish_held(topic, kPerFile + 100);
  disk_.fail_opens(EMFILE);
  disk_.fail_syncs(EIO);
  std::jthread busy{[&] {
    Publisher publisher = publisher_of(topic);
    while (publisher.publish(std::string(1000, 'x'), kPatience)) {
    }
  }};
  EXPECT_TRUE(wait_until([&] { return disk_.is_holding(); }));
  disk_.hold_syncs(false);
  EXPECT_TRUE(wait_until([&] { return topic.info().durable->state == Errc::read_only; }));
  EXPECT_EQ(topic.info().durable->reason, EIO);
  busy.join();
  disk_.mend();
}

TEST_F(DurableFullFiles, AnErrorIsAnnouncedWhoeverMeetsIt) {
  TopicOptions wanted = options(Durability::os);
  wanted.partitions = 2;
  for (int round = 0; round < 5; ++round) {
    const Topic topic = create(wanted);
    Publisher first = publisher_of(topic, {.partition = 0});
    Publisher other = publisher_of(topic, {.partition = 1});
    ASSERT_TRUE(first.publish("x", kPatience));
    ASSERT_TRUE(is_written(topic, 1));
    disk_.hold_syncs(true);
    for (std::uint64_t i = 0; i < kPerFile + 100; ++i)
      ASSERT_TRUE(first.publish(std::string(1000, 'x'), kPatience));
    ASSERT_TRUE(is_written(topic, kPerFile + 101));
    ASSERT_TRUE(other.publish("x", kPatience));
    disk_.fail_syncs(EIO);
    disk_.hold_syncs(false);
    EXPECT_EQ(other.flush().error(), Errc::io_error);  // Does the archiver's work.
    EXPECT_TRUE(wait_until([&] { return topic.info().durable->state == Errc::read_only; }));
    disk_.mend();
    delete_topic();
  }
}

// The archiver waits for the disk while it leaves, and another process does not wait that long for it.
TEST_F(DurableFullFiles, NothingStaysInMemoryWhenAllLeaveAtOnce) {
  auto topic = std::optional{create_os()};
  auto other = open();
  ASSERT_TRUE(other);
  publish_held(*topic, 2 * kPerFile);
  std::jthread leaves{[&] { topic.reset(); }};
  EXPECT_TRUE(wait_until([&] { return disk_.is_holding(); }));
  ASSERT_TRUE(publisher_of(*other).publish("last", kPatience));
  other = Errc::closed;  // Gives up after a second.
  disk_.hold_syncs(false);
  leaves.join();
  std::filesystem::remove_all(temp_.path() + "/topics");
  std::filesystem::create_directories(temp_.path() + "/topics");
  other = open();
  ASSERT_TRUE(other) << describe(other.error());
  EXPECT_EQ(other->info().partitions[0].end, 2 * kPerFile + 2);
  EXPECT_EQ(read(*other, 2 * kPerFile + 2).back(), "last");
}

// Remembers which files were synced.
class NotingDisk : public detail::Disk {
 public:
  NotingDisk() { Disk::replace_system(this); }
  ~NotingDisk() override { Disk::replace_system(nullptr); }
  NotingDisk(const NotingDisk&) = delete;
  NotingDisk& operator=(const NotingDisk&) = delete;

  Result<void> sync(int file) noexcept override {
    auto done = Disk::sync(file);
    const std::lock_guard guard{mutex_};
    if (done)
      synced_.insert(
          std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file)).filename());
    return done;
  }
  bool has_synced(const std::string& name) {
    const std::lock_guard guard{mutex_};
    return synced_.contains(name);
  }

 private:
  std::mutex mutex_;
  std::set<std::string> synced_;
};

// All processes die, and their memory is lost with them, but the machine goes on: a container whose /dev/shm is
// its own. What recovery reads is in the page cache, and nobody has synced it.
TEST_F(DurableFullFiles, RecoverySyncsWhatItCallsDurable) {
  Child archiver = keep_three_full_files();
  archiver.signal(SIGKILL);
  archiver.wait();
  std::filesystem::remove_all(temp_.path() + "/topics/d");
  const std::vector<std::string> left = files();
  ASSERT_GE(left.size(), 3U);
  NotingDisk disk;
  auto topic = open();
  ASSERT_TRUE(topic) << describe(topic.error());
  EXPECT_GE(durable_of(*topic), 3 * kPerFile + 1);
  for (const std::string& name : left) EXPECT_TRUE(disk.has_synced(name)) << name;
}

// The first sync fails, while a process that was stopped goes on, and while this one can't close descriptors at
// once, as beside a fork() of much memory.
class SuccessorsDisk : public detail::Disk {
 public:
  explicit SuccessorsDisk(Child& other) : other_{other} { Disk::replace_system(this); }
  ~SuccessorsDisk() override {
    Disk::replace_system(nullptr);
    if (forks_.joinable()) forks_.join();
  }
  SuccessorsDisk(const SuccessorsDisk&) = delete;
  SuccessorsDisk& operator=(const SuccessorsDisk&) = delete;

  Result<void> sync(int file) noexcept override {
    if (syncs_++ != 0) return Disk::sync(file);
    other_.signal(SIGCONT);
    std::this_thread::sleep_for(50ms);
    std::atomic<bool> is_held = false;
    forks_ = std::jthread{[&] {
      const std::lock_guard guard{detail::fork_state().mutex};
      is_held = true;
      std::this_thread::sleep_for(300ms);
    }};
    while (!is_held) std::this_thread::yield();
    return Error{Errc::io_error, EIO};
  }

 private:
  Child& other_;
  std::atomic<int> syncs_ = 0;
  std::jthread forks_;
};

// The sync of a third process would succeed.
TEST_F(DurableFullFiles, ASuccessorsErrorIsAnnouncedBeforeAnybodyTakesOver) {
  Child archiver = keep_three_full_files();
  Child third = start([&](const std::function<void()>& ready) {
    disk_.mend();
    auto topic = open();
    if (!topic) return;
    ready();
    for (;;) ::pause();
  });
  third.signal(SIGSTOP);
  SuccessorsDisk disk{third};
  auto topic = open();
  ASSERT_TRUE(topic) << describe(topic.error());
  archiver.signal(SIGKILL);
  archiver.wait();
  Publisher publisher = publisher_of(*topic);
  (void)publisher.publish("x");
  EXPECT_TRUE(wait_until([&] { return topic->info().durable->state == Errc::read_only; }));
  EXPECT_EQ(topic->info().durable->reason, EIO);
  EXPECT_EQ(durable_of(*topic), 0U);
}

TEST_F(DurableFullFiles, ABackupSyncsWhatItLinks) {
  const Topic topic = create_os();
  publish_held(topic, 3 * kPerFile + 100);
  disk_.hold_syncs(false);
  auto from = detail::open_directory_path(temp_.path() + "/data/d", false, false);
  auto parent = detail::open_directory_path(temp_.path(), false, false);
  ASSERT_TRUE(from);
  ASSERT_TRUE(parent);
  auto manifest = detail::load_manifest(disk_, from->get());
  ASSERT_TRUE(manifest);
  const std::uint64_t syncs = disk_.syncs();
  auto copied = detail::copy_store(disk_, from->get(), *manifest,
                                   {.may_link = true, .is_open = true}, parent->get(), "copy");
  ASSERT_TRUE(copied) << describe(copied.error());
  EXPECT_EQ(copied->linked, 3U);
  EXPECT_GE(disk_.syncs(), syncs + 4);
}

}  // namespace
}  // namespace leat::testing
