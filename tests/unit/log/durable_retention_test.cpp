// Retention: the oldest files go, what is left is whole, and whoever was reading them is told exactly what is
// gone. If these failed, a disk would fill up, or a slow subscriber would see damage where nothing is.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "leat/leat.hpp"
#include "leat/os/disk.hpp"
#include "leat/store/manifest.hpp"
#include "leat/store/segment_reader.hpp"
#include "support/process.hpp"

namespace leat::testing {
namespace {

class DurableRetention : public ::testing::Test {
 protected:
  static constexpr std::size_t kSize = 500;  // of a record

  // A window of 64 KiB, files of 64 KiB: about 120 records each.
  TopicOptions options() const {
    return {.capacity_bytes = 64 << 10,
            .segment_bytes = 8 << 10,
            .directory = temp_.path() + "/topics",
            .durable = Durability::os,
            .file_bytes = 64 << 10,
            .data_directory = temp_.path() + "/data"};
  }
  Topic create(const TopicOptions& wanted) const {
    auto topic = Topic::open_or_create("d", wanted);
    EXPECT_TRUE(topic) << describe(topic.error());
    return std::move(*topic);
  }
  static void publish(const Topic& topic, std::uint64_t count) {
    auto publisher = topic.publisher();
    ASSERT_TRUE(publisher);
    for (std::uint64_t i = 0; i < count; ++i) {
      auto offset = publisher->publish(std::string(kSize, 'x'), kPatience);
      ASSERT_TRUE(offset) << describe(offset.error());
    }
  }
  static bool wait_until(const std::function<bool()>& condition) {
    for (const Deadline deadline{kPatience}; !condition();) {
      if (deadline.passed()) return false;
      std::this_thread::sleep_for(1ms);
    }
    return true;
  }
  static bool is_written(const Topic& topic) {
    const PartitionInfo info = topic.info().partitions[0];
    return info.written == info.end;
  }
  static std::uint64_t start(const Topic& topic) { return topic.info().partitions[0].start; }
  static std::string content_of(const std::string& path) {
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
  }
  std::size_t files() const {
    std::size_t count = 0;
    for (const auto& one : std::filesystem::directory_iterator{temp_.path() + "/data/d"})
      count += one.path().filename().string().starts_with("segment-") ? 1U : 0U;
    return count;
  }

  // As far as retention would take them.
  void delete_oldest_files(std::size_t kept) const {
    while (files() > kept) {
      std::set<std::string> names;
      for (const auto& one : std::filesystem::directory_iterator{temp_.path() + "/data/d"})
        if (one.path().filename().string().starts_with("segment-")) names.insert(one.path());
      std::filesystem::remove(*names.begin());
    }
  }

  // Reads up to an offset. Records and gaps must tile the offsets, and all gaps be `overwritten`.
  struct Tiles {
    std::uint64_t next = 0;
    std::uint64_t records = 0;
    std::uint64_t gaps = 0;
    std::string complaint;
  };
  static Tiles read(Subscriber& subscriber, std::uint64_t first, std::uint64_t until,
                    std::chrono::microseconds pause = 0us) {
    Tiles tiles;
    tiles.next = first;
    subscriber.on_event([&](const Event& event) {
      if (event.first != tiles.next || event.reason != GapReason::overwritten)
        tiles.complaint = std::string{name_of(event.reason)} + ' ' + std::to_string(event.first) +
                          '+' + std::to_string(event.count) + " at " + std::to_string(tiles.next);
      tiles.next = event.first + event.count;
      ++tiles.gaps;
    });
    while (tiles.next < until && tiles.complaint.empty()) {
      auto polled = subscriber.poll(10, [&](const Record& record) {
        if (record.offset != tiles.next || record.value.size() != kSize)
          tiles.complaint = "record " + std::to_string(record.offset);
        tiles.next = record.offset + 1;
        ++tiles.records;
      });
      if (!polled) tiles.complaint = describe(polled.error());
      if (pause != 0us) std::this_thread::sleep_for(pause);
    }
    return tiles;
  }

  TemporaryDirectory temp_;
};

TEST_F(DurableRetention, KeepsSoManyBytesAndLittleMore) {
  TopicOptions wanted = options();
  wanted.retention_bytes = 256 << 10;
  {
    const Topic topic = create(wanted);
    publish(topic, 4000);
    ASSERT_TRUE(wait_until([&] { return topic.info().partitions[0].written == 4000; }));
    const TopicInfo info = topic.info();
    EXPECT_EQ(info.durable->retention_bytes, wanted.retention_bytes);
    // What is kept, and the file that could not go, and the one in use.
    EXPECT_LE(info.durable->disk_bytes, (256U + 2 * 64) << 10);
    EXPECT_GE((4000 - start(topic)) * (kSize + 16), 250U << 10);
    EXPECT_GT(start(topic), 3000U);
    auto subscriber = topic.subscriber({.from = From::beginning});
    const Tiles tiles = read(*subscriber, start(topic), 4000);
    EXPECT_EQ(tiles.complaint, "");
    EXPECT_EQ(tiles.gaps, 0U);
    // Whoever wants what is gone is told.
    auto old = topic.subscriber({.from = From::offset(100)});
    const Tiles rest = read(*old, 100, 4000);
    EXPECT_EQ(rest.complaint, "");
    EXPECT_EQ(rest.gaps, 1U);
  }
  const Topic topic = create(wanted);
  EXPECT_GT(start(topic), 3000U);
  publish(topic, 4000);
  auto subscriber = topic.subscriber({.from = From::beginning});
  EXPECT_EQ(read(*subscriber, subscriber->offset(), 8000).complaint, "");
  EXPECT_GT(subscriber->offset(), 7000U);
}

TEST_F(DurableRetention, EverythingStaysUnlessToldOtherwise) {
  const Topic topic = create(options());
  publish(topic, 4000);
  EXPECT_EQ(start(topic), 0U);
  EXPECT_GT(files(), 25U);
}

// Also while nobody publishes. The file in use stays, however old it is.
TEST_F(DurableRetention, FilesThatWereFullForTooLongGo) {
  TopicOptions wanted = options();
  wanted.retention = 200ms;
  const Topic topic = create(wanted);
  EXPECT_EQ(topic.info().durable->retention, 200ms);
  publish(topic, 1000);
  const std::int64_t published = detail::now_ns();
  const std::size_t before = files();
  if (detail::now_ns() - published < 50'000'000) {
    EXPECT_GT(before, 5U);
  }
  EXPECT_TRUE(wait_until([&] { return files() == 1; })) << files();
  EXPECT_GT(start(topic), 800U);
  auto subscriber = topic.subscriber({.from = From::beginning});
  EXPECT_EQ(read(*subscriber, subscriber->offset(), 1000).complaint, "");
}

// Readers of files that go meanwhile: a gap, never damage.
TEST_F(DurableRetention, SlowSubscribersAreToldWhatIsGone) {
  TopicOptions wanted = options();
  wanted.retention_bytes = 128 << 10;
  const Topic topic = create(wanted);
  publish(topic, 500);
  ASSERT_TRUE(wait_until([&] { return start(topic) != 0; }));
  constexpr std::uint64_t kAll = 20'000;
  std::vector<std::jthread> subscribers;
  for (const auto pause : {0us, 50us, 500us, 3000us}) {
    subscribers.emplace_back([&, pause] {
      auto subscriber = topic.subscriber({.from = From::offset(0)});
      ASSERT_TRUE(subscriber);
      const Tiles tiles = read(*subscriber, 0, kAll, pause);
      EXPECT_EQ(tiles.complaint, "") << pause.count();
      EXPECT_GT(tiles.gaps, 0U);
    });
  }
  publish(topic, kAll - 500);
}

// There is no archiver then, because there is nothing to write.
TEST_F(DurableRetention, FilesGetTooOldWhileNobodyPublishes) {
  TopicOptions wanted = options();
  wanted.retention = 300ms;
  {
    const Topic topic = create(wanted);
    publish(topic, 1000);
  }
  const Topic topic = create(wanted);
  EXPECT_TRUE(wait_until([&] { return files() == 1; }));
}

// A superseded archiver has left a file in which nothing counts.
TEST_F(DurableRetention, AbandonedFilesGoToo) {
  TopicOptions wanted = options();
  wanted.durable = Durability::fsync;
  wanted.retention_bytes = 64 << 10;
  Child dies{[&]() -> int {
    auto topic = Topic::create("d", wanted);
    CHILD_CHECK_OK(topic);
    auto publisher = topic->publisher();
    CHILD_CHECK_OK(publisher->publish(std::string(kSize, 'x')));
    ::kill(::getpid(), SIGKILL);
    return 0;
  }};
  dies.wait();
  const Topic topic = create(wanted);
  publish(topic, 1);
  // The successor's first file begins where the dead archiver's ends, and so on.
  publish(topic, 1000);
  EXPECT_LE(files(), 4U);
}

// Blocks that are there already cost less than new ones.
TEST_F(DurableRetention, FullFilesAreUsedAgain) {
  TopicOptions wanted = options();
  wanted.retention_bytes = 128 << 10;
  const Topic topic = create(wanted);
  std::set<::ino_t> files;
  for (int i = 0; i < 80; ++i) {
    publish(topic, 50);
    for (const auto& one : std::filesystem::directory_iterator{temp_.path() + "/data/d"}) {
      struct stat status {};
      if (one.path().filename().string().starts_with("segment-") &&
          ::stat(one.path().c_str(), &status) == 0)
        files.insert(status.st_ino);
    }
  }
  EXPECT_LE(files.size(), 8U);  // More than 30 were made.
  ASSERT_TRUE(wait_until([&] { return is_written(topic) && this->files() <= 4; }));
  auto subscriber = topic.subscriber({.from = From::beginning});
  const Tiles tiles = read(*subscriber, subscriber->offset(), 4000);
  EXPECT_EQ(tiles.complaint, "");
  EXPECT_EQ(tiles.gaps, 0U);
}

// An archiver that is stopped while it ends its files cuts them when it goes on. If another archiver had used one of
// them again, its records would be lost.
TEST_F(DurableRetention, FilesOfAnotherArchiverAreNotUsedAgain) {
  TopicOptions wanted = options();
  wanted.retention_bytes = 128 << 10;
  const std::string directory = temp_.path() + "/data/d";
  const auto inodes = [&] {
    std::set<::ino_t> found;
    for (const auto& one : std::filesystem::directory_iterator{directory}) {
      struct stat status {};
      if (one.path().filename().string().starts_with("segment-") &&
          ::stat(one.path().c_str(), &status) == 0)
        found.insert(status.st_ino);
    }
    return found;
  };
  Child dies{[&]() -> int {
    const Topic topic = create(wanted);
    publish(topic, 300);
    if (!wait_until([&] { return topic.info().partitions[0].written == 300; })) return 1;
    ::kill(::getpid(), SIGKILL);
    return 0;
  }};
  dies.wait();
  EXPECT_TRUE(dies.was_killed()) << dies.describe();
  const Topic topic = create(wanted);
  // A file that is deleted while it is open keeps its number: nobody else gets it.
  std::vector<detail::Fd> open_files;
  for (const auto& one : std::filesystem::directory_iterator{directory}) {
    if (one.path().filename().string().starts_with("segment-"))
      open_files.emplace_back(::open(one.path().c_str(), O_RDONLY | O_CLOEXEC));
  }
  const std::set<::ino_t> before = inodes();
  EXPECT_GE(before.size(), 3U);
  for (int i = 0; i < 40; ++i) publish(topic, 50);
  EXPECT_TRUE(wait_until([&] { return start(topic) > 1000; }));
  for (const ::ino_t one : inodes()) EXPECT_FALSE(before.contains(one));
}

// Most of them never fill a file, and the room that they reserved is not theirs any more.
TEST_F(DurableRetention, ArchiversThatDieOneAfterTheOtherLeaveLittle) {
  for (const auto durable : {Durability::os, Durability::fsync}) {
    TopicOptions wanted = options();
    wanted.durable = durable;
    wanted.retention_bytes = 128 << 10;
    const auto die = [&](std::uint64_t records, int times) {
      for (int i = 0; i < times; ++i) {
        Child dies{[&]() -> int {
          const Topic topic = create(wanted);
          publish(topic, records);
          const std::uint64_t end = topic.info().partitions[0].end;
          if (!wait_until([&] { return topic.info().partitions[0].written >= end; })) return 1;
          ::kill(::getpid(), SIGKILL);
          return 0;
        }};
        dies.wait();
        ASSERT_TRUE(dies.was_killed()) << dies.describe();
      }
    };
    die(1, 20);
    {
      const Topic topic = create(wanted);
      EXPECT_GE(files(), 20U);  // 10 KB in all.
      // The dead ones' files have a block or two, only the last one is as it was.
      EXPECT_TRUE(
          wait_until([&] { return topic.info().durable->disk_bytes <= (20U * 8 + 64) << 10; }));
    }
    die(100, 12);
    const Topic topic = create(wanted);
    EXPECT_TRUE(wait_until([&] {
      return topic.info().durable->disk_bytes <= (128U + 2 * 64) << 10;
    })) << topic.info().durable->disk_bytes;
    auto subscriber = topic.subscriber({.from = From::beginning});
    const std::uint64_t first = subscriber->offset();
    EXPECT_EQ(read(*subscriber, first, topic.info().partitions[0].end).complaint, "");
    EXPECT_GE(topic.info().partitions[0].end - first, 100U);
    subscriber = Errc::closed;
    EXPECT_TRUE(Topic::delete_topic("d", {.force = true,
                                          .directory = temp_.path() + "/topics",
                                          .data_directory = temp_.path() + "/data"}));
  }
}

// Stops its process when it makes its third segment file.
class StoppingDisk : public detail::Disk {
 public:
  StoppingDisk() { Disk::replace_system(this); }
  ~StoppingDisk() override { Disk::replace_system(nullptr); }
  StoppingDisk(const StoppingDisk&) = delete;
  StoppingDisk& operator=(const StoppingDisk&) = delete;

  Result<detail::Fd> open(int directory, const char* name, int flags,
                          ::mode_t mode) noexcept override {
    const bool makes = (flags & O_CREAT) != 0 && std::string_view{name}.starts_with("segment-");
    if (makes && ++made_ == 3) ::raise(SIGSTOP);
    return Disk::open(directory, name, flags, mode);
  }

 private:
  std::atomic<int> made_ = 0;
};

// An archiver is stopped and superseded, and goes on when its successor's first files are deleted: its own would count.
TEST_F(DurableRetention, AnArchiverThatGoesOnLeavesNoFile) {
  TopicOptions wanted = options();
  wanted.retention_bytes = 128 << 10;
  Child stops{[&]() -> int {
    const StoppingDisk disk;
    const Topic topic = create(wanted);
    // One by one, so that no claim is open when it is stopped.
    for (std::uint64_t i = 0; i < 1000; ++i) {
      publish(topic, 1);
      if (!wait_until([&] { return topic.info().partitions[0].written > i; })) return 1;
      if (topic.info().durable->archiver_pid != static_cast<std::uint32_t>(::getpid())) return 0;
    }
    return 1;
  }};
  stops.wait();
  ASSERT_EQ(stops.poll(), Child::State::stopped);
  const Topic topic = create(wanted);
  publish(topic, 1500);
  auto publisher = topic.publisher();
  ASSERT_TRUE(publisher && publisher->publish(std::string(kSize, 'x'), kPatience));
  ASSERT_TRUE(publisher->flush(kPatience));  // Then all that goes is gone.
  EXPECT_GT(start(topic), 1000U);
  stops.go_on();
  stops.wait();
  EXPECT_TRUE(stops.succeeded()) << stops.describe();
  auto subscriber = topic.subscriber({.from = From::beginning});
  const std::uint64_t first = subscriber->offset();
  EXPECT_GT(first, 1000U);
  const Tiles tiles = read(*subscriber, first, topic.info().partitions[0].end);
  EXPECT_EQ(tiles.complaint, "");
  EXPECT_EQ(tiles.gaps, 0U);
}

// A backup, for example.
TEST_F(DurableRetention, FilesWithASecondNameAreLeftAlone) {
  TopicOptions wanted = options();
  wanted.retention_bytes = 128 << 10;
  const Topic topic = create(wanted);
  publish(topic, 200);
  ASSERT_TRUE(wait_until([&] { return topic.info().partitions[0].written == 200; }));
  std::string found;
  for (const auto& one : std::filesystem::directory_iterator{temp_.path() + "/data/d"}) {
    const std::string name = one.path().filename();
    if (name.starts_with("segment-") && (found.empty() || name < found)) found = name;
  }
  const std::string kept = temp_.path() + "/kept";
  std::filesystem::create_hard_link(temp_.path() + "/data/d/" + found, kept);
  const std::string before = content_of(kept);
  EXPECT_GT(before.size(), 50'000U);
  publish(topic, 3000);
  EXPECT_GT(start(topic), 2000U);
  EXPECT_TRUE(content_of(kept) == before);
}

// The first file that is renamed to be used again gets a second name: just before, so that an archiver that had
// counted the names before it renames would overwrite what the second one leads to; or after they were counted,
// as by a link(2) that had looked up the old name before.
class LinkingDisk : public detail::Disk {
 public:
  enum class Moment { before_it_is_renamed, after_the_count };

  LinkingDisk(std::string second_name, Moment moment)
      : second_name_{std::move(second_name)}, moment_{moment} {
    Disk::replace_system(this);
  }
  ~LinkingDisk() override { Disk::replace_system(nullptr); }
  LinkingDisk(const LinkingDisk&) = delete;
  LinkingDisk& operator=(const LinkingDisk&) = delete;

  Result<void> rename(int directory, const char* from, const char* to) noexcept override {
    if (std::string_view{to}.starts_with(detail::kSparePrefix)) {
      if (moment_ == Moment::before_it_is_renamed) link_now(directory, from);
      spare_ = to;
    }
    return Disk::rename(directory, from, to);
  }
  // The archiver syncs the directory before it uses the spare.
  Result<void> sync_directory(int directory) noexcept override {
    if (!spare_.empty()) link_now(directory, spare_.c_str());
    return Disk::sync_directory(directory);
  }

  std::atomic<bool> has_linked = false;

 private:
  void link_now(int directory, const char* name) noexcept {
    if (!has_linked) has_linked = ::linkat(directory, name, AT_FDCWD, second_name_.c_str(), 0) == 0;
  }

  std::string second_name_;
  Moment moment_;
  std::string spare_;  // Archiver only.
};

TEST_F(DurableRetention, AFileThatGetsASecondNameAtTheLastMomentIsNotUsedAgain) {
  using Moment = LinkingDisk::Moment;
  for (const auto moment : {Moment::before_it_is_renamed, Moment::after_the_count}) {
    const TemporaryDirectory temp;
    const std::string kept = temp.path() + "/kept";
    LinkingDisk disk{kept, moment};
    TopicOptions wanted = options();
    wanted.directory = temp.path() + "/topics";
    wanted.data_directory = temp.path() + "/data";
    wanted.retention_bytes = 128 << 10;
    const Topic topic = create(wanted);
    publish(topic, 4000);
    ASSERT_TRUE(wait_until([&] { return topic.info().partitions[0].written == 4000; }));
    ASSERT_TRUE(disk.has_linked);
    // The first file: its header says so, and nothing of a later one is in it.
    const std::string content = content_of(kept);
    detail::SegmentHeader header{};
    ASSERT_GT(content.size(), 50'000U);
    std::memcpy(&header, content.data(), sizeof(header));
    EXPECT_EQ(header.base_offset, 0U);
    EXPECT_EQ(header.flags, 0U);
  }
}

// Each deletion waits for the disk once. Publishers must not wait for all of them.
TEST_F(DurableRetention, PublishersDoNotWaitForManyFilesToGo) {
  struct SlowNames : detail::Disk {
    SlowNames() { Disk::replace_system(this); }
    ~SlowNames() override { Disk::replace_system(nullptr); }
    Result<void> sync_directory(int directory) noexcept override {
      if (is_slow) std::this_thread::sleep_for(10ms);
      return Disk::sync_directory(directory);
    }
    std::atomic<bool> is_slow = false;
  } disk;
  constexpr std::size_t kFiles = 60;
  publish(create(options()), kFiles * 120);
  const std::size_t before = files();
  ASSERT_GT(before, kFiles / 2);
  {
    auto data = detail::open_directory_path(temp_.path() + "/data/d", false, false);
    ASSERT_TRUE(data);
    auto manifest = detail::load_manifest(disk, data->get());
    ASSERT_TRUE(manifest);
    manifest->topic.retention_bytes = 1;
    ASSERT_TRUE(detail::store_manifest(disk, data->get(), *manifest));
  }
  disk.is_slow = true;
  const Topic topic = create(options());
  auto publisher = topic.publisher({.acknowledge = Stage::durable});
  ASSERT_TRUE(publisher);
  ASSERT_TRUE(publisher->publish("x", kPatience));
  EXPECT_LT(files(), before);
  EXPECT_GT(files(), 2U);  // Not all of them went meanwhile.
  EXPECT_TRUE(wait_until([&] { return files() <= 2; }));
}

// Retention keeps less than memory has: whoever begins before both begins in memory.
TEST_F(DurableRetention, WhatIsStillInMemoryIsNotGone) {
  TopicOptions wanted = options();
  wanted.capacity_bytes = 1 << 20;
  wanted.segment_bytes = 64 << 10;
  wanted.retention_bytes = 64 << 10;
  const Topic topic = create(wanted);
  publish(topic, 4000);
  ASSERT_TRUE(wait_until([&] { return is_written(topic) && files() <= 3; }));
  const std::uint64_t oldest = start(topic);
  const std::uint64_t end = topic.info().partitions[0].end;
  ASSERT_GT(oldest, 0U);
  ASSERT_LT(oldest, end - 1000);  // Files have fewer.
  for (const From from : {From::beginning, From::offset(0), From::offset(oldest)}) {
    auto subscriber = topic.subscriber({.from = from});
    ASSERT_TRUE(subscriber);
    std::uint64_t gone = 0;
    subscriber->on_event([&](const Event& event) { gone += event.count; });
    auto record = subscriber->receive(kPatience);
    ASSERT_TRUE(record) << describe(record.error());
    EXPECT_EQ(record->offset, oldest);
    EXPECT_TRUE(gone == 0 || gone == oldest) << gone;
  }
}

// The same for subscribers that were there before retention took their records: one on disk, and one that
// is overtaken in memory.
TEST_F(DurableRetention, GoesOnInMemoryWhenRetentionPasses) {
  TopicOptions wanted = options();
  wanted.capacity_bytes = 1 << 20;
  wanted.segment_bytes = 64 << 10;
  const Topic topic = create(wanted);
  publish(topic, 100);
  auto overtaken = topic.subscriber({.from = From::beginning});
  ASSERT_TRUE(overtaken && overtaken->receive(kPatience));
  publish(topic, 3900);
  auto on_disk = topic.subscriber({.from = From::beginning});
  ASSERT_TRUE(on_disk);
  ASSERT_TRUE(on_disk->receive(kPatience));
  ASSERT_TRUE(wait_until([&] { return is_written(topic); }));
  ASSERT_EQ(start(topic), 0U);
  delete_oldest_files(2);
  const std::uint64_t oldest = start(topic);
  const std::uint64_t end = topic.info().partitions[0].end;
  ASSERT_GT(oldest, 0U);
  ASSERT_LT(oldest, end - 1000);
  for (Subscriber* const subscriber : {&*overtaken, &*on_disk}) {
    const Tiles tiles = read(*subscriber, 1, end);
    EXPECT_EQ(tiles.complaint, "");
    EXPECT_EQ(tiles.gaps, 1U);
    EXPECT_GE(tiles.records, end - oldest);
  }
}

// Then the subscriber on disk enters the log, and from there goes to the files once more, which fails here: it
// stays where it was.
TEST_F(DurableRetention, AnErrorWhenRetentionPassesMovesNobody) {
  TopicOptions wanted = options();
  wanted.capacity_bytes = 1 << 20;
  wanted.segment_bytes = 64 << 10;
  const Topic topic = create(wanted);
  publish(topic, 4000);
  auto subscriber = topic.subscriber({.from = From::beginning});
  ASSERT_TRUE(subscriber && subscriber->receive(kPatience));
  ASSERT_TRUE(wait_until([&] { return is_written(topic); }));
  delete_oldest_files(2);
  const std::string files = temp_.path() + "/data/d";
  std::filesystem::rename(files, files + ".away");  // The subscriber has the directory open.
  std::uint64_t next = 1;
  Result<std::size_t> polled{0};
  while (polled && next < 4000)
    polled = subscriber->poll(1, [&](const Record& record) { next = record.offset + 1; });
  EXPECT_EQ(polled.error(), Errc::not_found) << describe(polled.error());
  EXPECT_EQ(subscriber->offset(), next);
  std::filesystem::rename(files + ".away", files);
  const Tiles tiles = read(*subscriber, next, topic.info().partitions[0].end);
  EXPECT_EQ(tiles.complaint, "");
}

TEST_F(DurableRetention, MakesNoSenseInMemory) {
  EXPECT_EQ(Topic::create("m", {.directory = temp_.path(), .retention_bytes = 1}).error(),
            Errc::invalid_argument);
  EXPECT_EQ(Topic::create("m", {.directory = temp_.path(), .retention = 1ms}).error(),
            Errc::invalid_argument);
  TopicOptions wanted = options();
  wanted.retention = -1ms;
  EXPECT_EQ(Topic::create("d", wanted).error(), Errc::invalid_argument);
}

}  // namespace
}  // namespace leat::testing
