// Disks that are full or broken: every call of the store fails once, with every error that matters. If these
// failed, a full disk could damage what is on it, or a failed sync could be taken for a done one.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/failing_disk.hpp"
#include "support/process.hpp"
#include "support/test_store.hpp"

namespace leat::testing {
namespace {

constexpr std::uint64_t kFaultsKey = 0x9999'8888'7777'6665;
constexpr std::array kErrors{EIO, ENOSPC, EMFILE, EROFS, EACCES};

std::size_t open_files() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator{"/proc/self/fd"})
    ++count;
  return count;
}

// What an archiver does, in several files. Appends records until a call fails.
class Scenario {
 public:
  explicit Scenario(TestStore& store, detail::Disk& disk) : store_{store}, disk_{disk} {}

  Result<void> run() {
    auto recovered = detail::recover(disk_, store_.directory(), store_.manifest);
    if (!recovered) return recovered.error();
    const detail::PartitionEnd& end = recovered->partitions[0];
    detail::SegmentWriter writer{disk_, store_.directory(), store_.manifest.topic, 0};
    writer.begin(recovered->generation, end.next_offset, end.frames_end, !end.has_file);
    return append_to(writer);
  }
  Result<void> append_to(detail::SegmentWriter& writer) {
    LogBytes log{kFaultsKey, 1000, writer.end_offset()};
    begin = writer.end_offset();
    for (int i = 0; i < 8; ++i) {
      log.record(std::to_string(log.facts().first_offset) + std::string(20'000, 'x'));
      if (auto done = writer.append(log.facts(), log.bytes()); !done) return done;
      durable = std::max(durable, writer.durable_offset());
      if (i % 3 == 2) {
        if (auto done = writer.sync(); !done) return done;
        durable = std::max(durable, writer.durable_offset());
      }
      log = log.next();
    }
    if (auto done = writer.finish_file(); !done) return done;
    durable = std::max(durable, writer.durable_offset());
    auto file = detail::CheckpointFile::load(disk_, store_.directory(), store_.manifest);
    if (!file) return file.error();
    detail::Checkpoint value = file->value();
    const auto& synced = writer.synced();
    value.state = {writer.generation(), 0, 1, 0};
    value.partitions[0] = {synced.end_offset,
                           synced.end_offset + detail::kReservedOffsets,
                           synced.file.base_offset,
                           synced.file.generation,
                           synced.bytes,
                           synced.end_offset,
                           synced.newest_ms};
    return file->store(disk_, store_.directory(), std::move(value));
  }

  std::uint64_t begin = 0;    // Offset of its first record,
  std::uint64_t durable = 0;  // and the offset up to which its records were on stable storage.

 private:
  TestStore& store_;
  detail::Disk& disk_;
};

// Every record says its offset; every durable one must be there: those before `first_run`, and those from
// `begin` to `durable`.
void expect_whole(TestStore& store, std::uint64_t first_run, std::uint64_t begin,
                  std::uint64_t durable) {
  std::uint64_t next = 0;
  for (const std::string& line : store.read()) {
    if (line.starts_with("gap ")) {
      const std::uint64_t first = std::stoull(line.substr(4));
      next = first + std::stoull(line.substr(line.find('+') + 1));
      EXPECT_TRUE(first >= first_run && (first >= durable || next <= begin)) << line;
      EXPECT_TRUE(line.ends_with(" lost")) << line;
      continue;
    }
    const std::uint64_t offset = std::stoull(line);
    ASSERT_EQ(offset, next) << line.substr(0, 50);
    EXPECT_EQ(line.substr(line.find(' ') + 1, std::to_string(offset).size()),
              std::to_string(offset));
    next = offset + 1;
  }
  EXPECT_GE(next, durable);
}

TEST(Faults, AnyCallOfAnArchiverMayFail) {
  for (const int error : kErrors) {
    for (const std::uint64_t written : {0U, 70U, 10'000U}) {
      std::uint64_t call = 0;
      for (;; ++call) {
        TestStore store;
        { ASSERT_TRUE(Scenario(store, store.disk).run()); }
        const std::size_t files = open_files();
        FailingDisk disk{{.call = call, .error = error, .written = written}};
        Scenario scenario{store, disk};
        const auto result = scenario.run();
        EXPECT_EQ(open_files(), files) << "call " << call;
        if (!disk.has_failed()) {
          ASSERT_TRUE(result) << describe(result.error());
          break;
        }
        SCOPED_TRACE("call " + std::to_string(call) + ", error " + std::to_string(error));
        if (!result) {
          EXPECT_EQ(result.error().system_error, error) << describe(result.error());
        }
        // Once the cause is gone, the topic is opened again and goes on.
        store.recover();
        expect_whole(store, 8, scenario.begin, scenario.durable);
        Scenario again{store, store.disk};
        ASSERT_TRUE(again.run());
        expect_whole(store, 8, again.begin, again.durable);
        EXPECT_FALSE(store.check().is_damaged());
      }
      EXPECT_GT(call, 30U);
      if (error != ENOSPC && error != EIO) break;  // Such errors come before anything is written.
    }
  }
}

// A file system such as NFS: only fallocate() reserves room. A write is kept in memory, and a sync fails if the disk has
// not enough for it.
class LateDisk : public detail::Disk {
 public:
  std::uint64_t room = 0;  // for one file

  Result<void> write(int file, std::span<const Part> parts, std::uint64_t at) noexcept override {
    std::uint64_t end = at;
    for (const Part& part : parts) end += part.size();
    written_ = std::max(written_, end);
    return Disk::write(file, parts, at);
  }
  Result<void> allocate(int file, std::uint64_t size) noexcept override {
    if (size > room) return Error{Errc::no_space, ENOSPC};
    return Disk::allocate(file, size);
  }
  Result<void> sync(int file) noexcept override {
    if (written_ > room) return Error{Errc::io_error, ENOSPC};
    return Disk::sync(file);
  }

 private:
  std::uint64_t written_ = 0;
};

// Appends until the disk is full, syncs, and goes on when there is room. Otherwise the sync would fail, and records that
// were acknowledged would be lost.
void expect_that_full_comes_before_the_sync(LateDisk& disk, TestStore& store,
                                            detail::SegmentWriter& writer, LogBytes log,
                                            std::size_t record) {
  std::uint64_t count = log.facts().first_offset;
  for (;; ++count) {
    log.record(std::to_string(count) + std::string(record, 'x'));
    auto done = writer.append(log.facts(), log.bytes());
    if (!done) {
      EXPECT_EQ(done.error().system_error, ENOSPC);
      break;
    }
    log = log.next();
    ASSERT_LT(count, 1000U);
  }
  auto synced = writer.sync();
  ASSERT_TRUE(synced) << describe(synced.error());
  EXPECT_EQ(writer.durable_offset(), count);
  disk.room *= 2;
  store.append(writer, log);
  EXPECT_TRUE(writer.finish_file());
  expect_whole(store, 0, 0, count + 1);
}

TEST(Faults, AFileThatGrowsReservesRoomForEachFrame) {
  TestStore store;
  LateDisk disk;
  disk.room = 50'000;  // Not for a whole file.
  detail::SegmentWriter writer{disk, store.directory(), store.manifest.topic, 0};
  writer.begin(1, 0, 0, true);
  expect_that_full_comes_before_the_sync(disk, store, writer, LogBytes{kFaultsKey}, 10'000);
}

// It begins small.
TEST(Faults, TheFirstFileOfAPartitionReservesMoreRoomWhenItGrows) {
  detail::Manifest manifest = small_manifest();
  manifest.topic.file_bytes = 8 << 20;
  TestStore store{manifest};
  LateDisk disk;
  disk.room = 3'500'000;
  detail::SegmentWriter writer{disk, store.directory(), store.manifest.topic, 0};
  writer.begin(1, 0, 0, true);
  expect_that_full_comes_before_the_sync(disk, store, writer, LogBytes{kFaultsKey}, 200'000);
}

TEST(Faults, AnArchiverThatGoesOnWithAFileReservesRoomForEachFrame) {
  TestStore store;
  LateDisk disk;
  disk.room = 50'000;
  detail::SegmentWriter first{disk, store.directory(), store.manifest.topic, 0};
  first.begin(1, 0, 0, true);
  LogBytes log{kFaultsKey};
  log.record('0' + std::string(10'000, 'x'));
  store.append(first, log);
  ASSERT_TRUE(first.sync());
  detail::SegmentWriter second{disk, store.directory(), store.manifest.topic, 0};
  ASSERT_TRUE(second.resume(first.file_name(), 2, first.file_position(), 1, 1, first.newest_ms()));
  expect_that_full_comes_before_the_sync(disk, store, second, log.next(), 10'000);
}

// A full disk is no reason to open the topic again: the same frame is tried until it fits.
TEST(Faults, TheSameFrameGoesOnWhenThereIsRoom) {
  for (std::uint64_t call = 0;; ++call) {
    TestStore store;
    auto recovered = store.recover();
    FailingDisk disk{{.call = call, .error = ENOSPC, .from_then_on = true, .written = 5000}};
    detail::SegmentWriter writer{disk, store.directory(), store.manifest.topic, 0};
    writer.begin(recovered.generation, 0, 0, true);
    LogBytes log{kFaultsKey};
    for (int i = 0; i < 10; ++i) {
      log.record(std::to_string(i) + std::string(20'000, 'x'));
      auto done = writer.append(log.facts(), log.bytes());
      if (!done && disk.has_failed_to_sync()) break;
      if (!done) {
        EXPECT_EQ(done.error().code, Errc::no_space);
        EXPECT_FALSE(writer.append(log.facts(), log.bytes()));
        if (disk.has_failed_to_sync()) break;
        disk.mend();
        done = writer.append(log.facts(), log.bytes());
      }
      ASSERT_TRUE(done) << describe(done.error());
      log = log.next();
    }
    disk.mend();
    if (disk.has_failed_to_sync()) {
      // What is on stable storage is unknown: no retry.
      EXPECT_EQ(writer.append(log.facts(), log.bytes()).error(), Errc::io_error);
      EXPECT_EQ(writer.sync().error(), Errc::io_error);
      EXPECT_EQ(writer.finish_file().error(), Errc::io_error);
      continue;
    }
    store.checkpoint(writer, true);
    EXPECT_EQ(store.read().size(), 10U);
    expect_whole(store, 10, 0, 10);
    EXPECT_FALSE(store.check().is_damaged());
    if (!disk.has_failed()) break;
  }
}

TEST(Faults, WhatCannotBeMadeLeavesNothingBehind) {
  for (const int error : kErrors) {
    for (std::uint64_t call = 0;; ++call) {
      TestStore other;  // Its data directory is where the new one is made.
      const std::size_t files = open_files();
      FailingDisk disk{{.call = call, .error = error}};
      auto made = detail::create_store(disk, other.data.get(), "new", small_manifest());
      EXPECT_EQ(open_files(), files);
      if (!disk.has_failed()) {
        ASSERT_TRUE(made);
        break;
      }
      if (made) continue;  // A call whose failure does not matter.
      auto names = detail::names_in(other.data.get());
      ASSERT_TRUE(names);
      std::erase_if(*names, [](const std::string& name) { return name[0] == '.'; });
      // Unless only the sync of its name failed.
      EXPECT_TRUE(*names == std::vector<std::string>{"t"} || names->size() == 2U) << call;
    }
  }
}

TEST(Faults, ReadingAndCheckingTellTheError) {
  TestStore store;
  ASSERT_TRUE(Scenario(store, store.disk).run());
  for (const int error : {EIO, EMFILE, EACCES}) {
    for (std::uint64_t call = 0;; ++call) {
      const std::size_t files = open_files();
      FailingDisk disk{{.call = call, .error = error}};
      auto report = detail::check_store(disk, store.directory());
      EXPECT_EQ(open_files(), files);
      if (!disk.has_failed()) {
        ASSERT_TRUE(report);
        break;
      }
      if (report) {
        EXPECT_EQ(error, EIO) << call;  // One of two copies could not be read.
      } else {
        EXPECT_EQ(report.error().system_error, error) << call;
      }
    }
  }
}

// Another file of a topic wants all its blocks at once. Made anew, or of a file that is not needed any more.
TEST(Faults, WhereAWholeFileHasNoRoomFramesTakeWhatIsThere) {
  for (const bool has_spare : {false, true}) {
    const TemporaryDirectory place;
    ASSERT_EQ(::mount("tmpfs", place.path().c_str(), "tmpfs", 0, "size=2m"), 0) << "needs root";
    {
      detail::Manifest manifest = small_manifest();
      manifest.topic.file_bytes = 64 << 20;
      TestStore store{manifest};
      std::filesystem::copy(store.topic_path(), place.path() + "/t");
      store.topic = std::move(*detail::open_directory_path(place.path() + "/t", false, false));
      detail::SegmentWriter writer{store.disk, store.directory(), store.manifest.topic, 0};
      writer.begin(store.recover().generation, 0, 0, false);
      if (has_spare) {
        std::ofstream{place.path() + "/t/" + writer.spare_name()} << std::string(100'000, 'x');
        writer.take_spare();
      }
      LogBytes log{kFaultsKey};
      std::uint64_t count = 0;
      for (;; ++count) {
        log.record(std::to_string(count) + std::string(20'000, 'x'));
        if (auto done = writer.append(log.facts(), log.bytes()); !done) {
          EXPECT_EQ(done.error().code, Errc::no_space) << describe(done.error());
          break;
        }
        log = log.next();
      }
      EXPECT_GT(count, 80U);
      EXPECT_EQ(store.read().size(), count);
    }
    ::umount2(place.path().c_str(), MNT_DETACH);
  }
}

// A real file system that is full.
TEST(Faults, AFullFileSystemIsNoDamage) {
  TemporaryDirectory place;
  ASSERT_EQ(::mount("tmpfs", place.path().c_str(), "tmpfs", 0, "size=1m"), 0) << "needs root";
  {
    TestStore store;
    std::filesystem::copy(store.topic_path(), place.path() + "/t");
    store.topic = std::move(*detail::open_directory_path(place.path() + "/t", false, false));
    auto writer = store.writer();
    LogBytes log{kFaultsKey};
    std::uint64_t count = 0;
    for (;; ++count) {
      log.record(std::to_string(count) + std::string(20'000, 'x'));
      auto done = writer.append(log.facts(), log.bytes());
      if (!done) {
        EXPECT_EQ(done.error().code, Errc::no_space) << describe(done.error());
        break;
      }
      log = log.next();
    }
    EXPECT_GT(count, 30U);
    EXPECT_EQ(store.read().size(), count);
    std::filesystem::remove(place.path() + "/t/" +
                            detail::list_segments(store.directory(), 1)->front().live[0].text());
    auto done = writer.append(log.facts(), log.bytes());
    EXPECT_TRUE(done) << describe(done.error());
  }
  ::umount2(place.path().c_str(), MNT_DETACH);
}

// A limit on the size of files is an error, and ends no process by a signal.
TEST(Faults, ALimitOnTheSizeOfFilesIsAnError) {
  Child child{[]() -> int {
    TestStore store;
    auto writer = store.writer();
    const ::rlimit limit{40'000, 40'000};
    CHILD_CHECK(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
    LogBytes log{kFaultsKey};
    log.record(std::string(20'000, 'x'));
    CHILD_CHECK(writer.append(log.facts(), log.bytes()).error() == Errc::no_space);
    return 0;
  }};
  child.wait();
  EXPECT_TRUE(child.succeeded()) << child.describe();
}

}  // namespace
}  // namespace leat::testing
