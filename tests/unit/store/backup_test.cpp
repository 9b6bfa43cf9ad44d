// Copies of a topic's files: what a copy has, what it has in common with the topic, and what happens if the
// topic goes on, a call fails, or the power does. If these failed, a backup could be damaged, or making it
// could damage the topic.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "leat/store/backup.hpp"
#include "leat/store/retention.hpp"
#include "support/failing_disk.hpp"
#include "support/store_files.hpp"
#include "support/store_world.hpp"
#include "testing.hpp"

namespace leat::testing {
namespace {

using Lines = std::vector<std::string>;

constexpr std::uint64_t kBackupKey = 0x1234'5678'9abc'def1;

// A topic with three records of 20 KB in a file, and a place for copies.
class Backup : public ::testing::Test {
 protected:
  static LogBytes record_at(std::uint64_t offset) {
    LogBytes log{kBackupKey, 100 + 2000 * offset, offset};
    return log.record(std::to_string(offset) + std::string(20'000, 'x'));
  }
  void append(detail::SegmentWriter& writer, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) store_.append(writer, record_at(writer.end_offset()));
  }
  Result<detail::CopiedStore> copy(const detail::CopyOptions& options,
                                   const std::string& name = "copy",
                                   detail::Disk& disk = detail::Disk::system()) {
    return detail::copy_store(disk, store_.directory(), store_.manifest, options, store_.data.get(),
                              name);
  }
  std::string copy_path(const std::string& name = "copy") const { return store_.path + '/' + name; }
  // "0 0", "1 1", "gap 2+1 damaged": without the x.
  static Lines shortened(Lines lines) {
    for (std::string& line : lines) line = line.substr(0, line.find('x'));
    return lines;
  }
  Lines read_copy(const std::string& name = "copy") {
    auto directory = detail::open_directory_at(store_.data.get(), name.c_str());
    if (!directory) return {"no copy"};
    return shortened(read_store(detail::Disk::system(), directory->get(), store_.manifest));
  }
  detail::StoreReport check_copy() {
    auto directory = detail::open_directory_at(store_.data.get(), "copy");
    auto report = detail::check_store(detail::Disk::system(), directory->get());
    EXPECT_TRUE(report) << describe(report.error());
    return report ? std::move(*report) : detail::StoreReport{};
  }
  // Where whoever opens the copy goes on.
  detail::PartitionEnd end_of_copy() {
    auto directory = detail::open_directory_at(store_.data.get(), "copy");
    auto file = detail::CheckpointFile::load(store_.disk, directory->get(), store_.manifest);
    auto ends = detail::find_ends(store_.disk, directory->get(), store_.manifest, *file);
    EXPECT_TRUE(ends) << describe(ends.error());
    return ends ? ends->partitions.front() : detail::PartitionEnd{};
  }
  static Lines numbers(std::uint64_t from, std::uint64_t until) {
    Lines lines;
    for (std::uint64_t i = from; i < until; ++i)
      lines.push_back(std::to_string(i) + ' ' + std::to_string(i));
    return lines;
  }
  std::vector<std::string> names_in_data() const {
    auto names = detail::names_in(store_.data.get());
    std::erase_if(*names, [](const std::string& name) { return name.starts_with('.'); });
    std::sort(names->begin(), names->end());
    return *names;
  }

  TestStore store_;
};

const detail::CopyOptions kLinked{.may_link = true, .is_open = true};
const detail::CopyOptions kCopied{.may_link = false, .is_open = true};

TEST_F(Backup, OfATopicInUseEndsBehindItsLastWholeFrame) {
  auto writer = store_.writer();
  append(writer, 8);
  const StoreFiles before = read_files(store_.topic_path());
  auto copied = copy(kLinked);
  ASSERT_TRUE(copied) << describe(copied.error());
  EXPECT_EQ(copied->files, 3U);
  EXPECT_EQ(copied->linked, 2U);
  EXPECT_EQ(copied->offsets, 8U);
  EXPECT_EQ(read_copy(), numbers(0, 8));
  EXPECT_TRUE(read_files(store_.topic_path()) == before);
  // It is as a topic that was closed, and its next record gets the next offset.
  const auto report = check_copy();
  EXPECT_TRUE(report.was_closed);
  EXPECT_TRUE(report.findings.empty());
  EXPECT_EQ(report.bytes, copied->bytes);
  EXPECT_EQ(end_of_copy().next_offset, 8U);
  // The topic goes on; the copy does not change.
  append(writer, 8);
  store_.checkpoint(writer, true);
  EXPECT_EQ(shortened(store_.read()), numbers(0, 16));
  EXPECT_EQ(read_copy(), numbers(0, 8));
}

TEST_F(Backup, OnlyFullFilesAreLinked) {
  auto writer = store_.writer();
  append(writer, 8);
  ASSERT_TRUE(copy(kLinked));
  ASSERT_TRUE(copy(kCopied, "other"));
  std::vector<std::uintmax_t> links;
  for (const std::string& name : segments_of(read_files(copy_path())))
    links.push_back(std::filesystem::hard_link_count(copy_path() + '/' + name));
  EXPECT_EQ(links, (std::vector<std::uintmax_t>{2, 2, 1}));
  for (const std::string& name : segments_of(read_files(copy_path("other"))))
    EXPECT_EQ(std::filesystem::hard_link_count(copy_path("other") + '/' + name), 1U);
  EXPECT_EQ(read_copy("other"), numbers(0, 8));
}

// Those of a superseded archiver only when it has gone: while it lives it may write to its last one.
TEST_F(Backup, TheFileOfAnArchiverThatLivesIsNotLinked) {
  auto first = store_.writer();
  append(first, 5);
  detail::SegmentWriter successor{store_.disk, store_.directory(), store_.manifest.topic, 0};
  successor.begin(first.generation() + 3, 5, 5, false);
  append(successor, 4);
  const auto linked = [&](const char* name) {
    auto copied = copy(kLinked, name);
    EXPECT_TRUE(copied && copied->files == 4 && read_copy(name) == numbers(0, 9));
    return copied ? copied->linked : 0;
  };
  EXPECT_EQ(linked("a"), 3U);
  for (const std::uint64_t epoch : {0U, 2U}) {
    auto lock = detail::open_data_lock(store_.directory());
    ASSERT_TRUE(lock->try_lock(detail::kArchiverLock +
                               static_cast<std::int64_t>(first.generation() + epoch)));
    EXPECT_EQ(linked(epoch == 0 ? "b" : "c"), 2U);
  }
  auto lock = detail::open_data_lock(store_.directory());
  ASSERT_TRUE(
      lock->try_lock(detail::kArchiverLock + static_cast<std::int64_t>(successor.generation())));
  EXPECT_EQ(linked("d"), 3U);
}

TEST_F(Backup, HasNoWindowAndOnlyTheFilesThatCount) {
  store_.manifest.window.key = 77;
  store_.manifest.window_directory = "/somewhere";
  ASSERT_TRUE(detail::store_manifest(store_.disk, store_.directory(), store_.manifest));
  auto stopped = store_.writer();
  append(stopped, 4);
  // Another archiver takes over, and goes on before the end of what the first one has written.
  detail::SegmentWriter successor{store_.disk, store_.directory(), store_.manifest.topic, 0};
  successor.begin(stopped.generation() + 1, 2, 2, false);
  append(successor, 3);
  append(stopped, 1);
  for (const char* name : {"cut-segment-x", "spare-1-0", "group-0000000000000001", "notes"}) {
    std::ofstream{store_.topic_path() + '/' + name} << name;
  }
  auto copied = copy(kLinked);
  ASSERT_TRUE(copied) << describe(copied.error());
  EXPECT_EQ(read_copy(), numbers(0, 5));
  const StoreFiles files = read_files(copy_path());
  EXPECT_EQ(segments_of(files).size(), 2U);
  EXPECT_EQ(files.at("group-0000000000000001"), "group-0000000000000001");
  EXPECT_EQ(files.size(), 2U + 1 + 5);  // lock, manifest, checkpoint
  auto directory = detail::open_directory_at(store_.data.get(), "copy");
  auto manifest = detail::load_manifest(store_.disk, directory->get());
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->window.key, 0U);
  EXPECT_EQ(manifest->topic.salt, store_.manifest.topic.salt);
}

TEST_F(Backup, OfAnEmptyTopicIsEmpty) {
  store_.recover();
  auto copied = copy(kLinked);
  ASSERT_TRUE(copied) << describe(copied.error());
  EXPECT_EQ(copied->files + copied->offsets + copied->bytes, 0U);
  EXPECT_EQ(read_copy(), Lines{});
  EXPECT_TRUE(check_copy().was_closed);
}

TEST_F(Backup, OffsetsThatWereLostStayLost) {
  auto writer = store_.writer();
  append(writer, 2);
  const std::uint64_t next = store_.writer().end_offset();  // As after a failure of the machine.
  EXPECT_EQ(next, detail::kReservedOffsets);
  ASSERT_TRUE(copy(kLinked));
  EXPECT_EQ(end_of_copy().next_offset, next);
  auto again = store_.writer();
  append(again, 1);
  auto copied = copy(kLinked, "later");
  ASSERT_TRUE(copied);
  EXPECT_EQ(copied->offsets, 3U);
  EXPECT_EQ(read_copy("later"), shortened(store_.read()));
}

// What is reserved by a topic that was not closed may have been given out.
TEST_F(Backup, OfATopicThatNobodyRecoveredKeepsItsReservedOffsets) {
  auto writer = store_.writer();
  append(writer, 2);
  ASSERT_TRUE(copy({}));
  EXPECT_EQ(read_copy(), (Lines{"0 0", "1 1", "gap 2+16777214 lost"}));
}

TEST_F(Backup, HasNoIdAndARestoredTopicANewOne) {
  store_.manifest.id = detail::make_topic_id();
  const TopicId fresh = detail::make_topic_id();
  ASSERT_TRUE(copy({}));
  ASSERT_TRUE(copy({.id = fresh}, "restored"));
  const auto id_of = [&](const char* name) {
    auto directory = detail::open_directory_at(store_.data.get(), name);
    return detail::load_manifest(store_.disk, directory->get())->id;
  };
  EXPECT_FALSE(id_of("copy").is_known());
  EXPECT_EQ(id_of("restored"), fresh);
}

TEST_F(Backup, OfABackupIsTheSameAgain) {
  auto writer = store_.writer();
  append(writer, 8);
  ASSERT_TRUE(copy(kLinked));
  auto backup = detail::open_directory_at(store_.data.get(), "copy");
  const StoreFiles before = read_files(copy_path());
  auto restored = detail::copy_store(store_.disk, backup->get(), store_.manifest, {},
                                     store_.data.get(), "restored");
  ASSERT_TRUE(restored) << describe(restored.error());
  EXPECT_EQ(restored->linked, 0U);
  EXPECT_EQ(read_copy("restored"), numbers(0, 8));
  // Whoever goes on in it changes nothing of the backup.
  auto topic = detail::open_directory_at(store_.data.get(), "restored");
  auto recovered = detail::recover(store_.disk, topic->get(), store_.manifest);
  ASSERT_TRUE(recovered);
  const detail::PartitionEnd& end = recovered->partitions.front();
  EXPECT_TRUE(end.is_clean);
  EXPECT_EQ(end.next_offset, 8U);
  detail::SegmentWriter more{store_.disk, topic->get(), store_.manifest.topic, 0};
  ASSERT_TRUE(more.resume(end.file, recovered->generation, end.place.at, 8, 8, end.newest_ms));
  append(more, 8);
  EXPECT_TRUE(read_files(copy_path()) == before);
}

TEST_F(Backup, KeepsDamageAndWhatIsBehind) {
  auto writer = store_.writer();
  append(writer, 8);
  store_.checkpoint(writer, false);
  const std::string second = segments_of(read_files(store_.topic_path()))[1];
  std::filesystem::permissions(store_.topic_path() + '/' + second,
                               std::filesystem::perms::owner_all);
  const int file = ::open((store_.topic_path() + '/' + second).c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_EQ(::pwrite(file, "damage", 6, 25'000), 6);
  ::close(file);
  Lines expected = numbers(0, 8);
  expected[4] = "gap 4+1 damaged";
  for (const auto& options : {kLinked, kCopied}) {
    std::filesystem::remove_all(copy_path());
    ASSERT_TRUE(copy(options));
    EXPECT_EQ(read_copy(), expected);
    EXPECT_TRUE(check_copy().is_damaged());
  }
}

// The end of a full file is damaged, and nothing says that the end was ever on stable storage. Recovery cuts it off
// in the copy, which has that file in common with the topic.
TEST_F(Backup, RecoveryOfTheCopyDoesNotTouchTheTopic) {
  auto writer = store_.writer();
  append(writer, 8);
  const auto names = segments_of(read_files(store_.topic_path()));
  ASSERT_EQ(names.size(), 3U);
  const int file = ::open((store_.topic_path() + '/' + names[1]).c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_EQ(::pwrite(file, "damage", 6, 45'000), 6);
  ::close(file);
  std::filesystem::resize_file(store_.topic_path() + '/' + names[2], sizeof(detail::SegmentHeader));
  const StoreFiles before = read_files(store_.topic_path());
  ASSERT_TRUE(copy(kLinked));
  EXPECT_TRUE(read_files(store_.topic_path()) == before);
  EXPECT_EQ(read_copy(), numbers(0, 5));
}

TEST_F(Backup, AFileThatIsJustBeingMadeIsLeftOut) {
  auto writer = store_.writer();
  append(writer, 3);
  EXPECT_TRUE(writer.finish_file());
  const detail::SegmentName next{0, 3, writer.generation()};
  std::ofstream{store_.topic_path() + '/' + next.text()} << std::string(4096, '\0');
  auto copied = copy(kLinked);
  ASSERT_TRUE(copied);
  EXPECT_EQ(copied->files, 1U);
  EXPECT_EQ(copied->linked, 0U);  // The last file is the copy's own.
  EXPECT_EQ(read_copy(), numbers(0, 3));
  EXPECT_EQ(end_of_copy().next_offset, 3U);
}

// A successor has made its file and written nothing, and the superseded archiver goes on.
TEST_F(Backup, HasNothingBehindTheBeginOfAFileThatIsLeftOut) {
  auto stopped = store_.writer();
  append(stopped, 2);
  const detail::SegmentName next{0, 2, stopped.generation() + 1};
  std::ofstream{store_.topic_path() + '/' + next.text()} << std::string(4096, '\0');
  append(stopped, 2);
  for (const auto& options : {kLinked, kCopied}) {
    std::filesystem::remove_all(copy_path());
    ASSERT_TRUE(copy(options));
    EXPECT_EQ(read_copy(), numbers(0, 2));
  }
}

// Calls a function before each link, and each time a segment file is opened.
class InterruptedDisk : public detail::Disk {
 public:
  std::function<void(int call)> interrupt;

  Result<void> link(int from_directory, const char* from, int to_directory,
                    const char* to) noexcept override {
    call();
    return Disk::link(from_directory, from, to_directory, to);
  }
  Result<detail::Fd> open(int directory, const char* name, int flags,
                          ::mode_t mode) noexcept override {
    auto file = Disk::open(directory, name, flags, mode);
    if (std::string_view{name}.starts_with("segment-") && flags == O_RDONLY) call();
    return file;
  }

 private:
  void call() {
    if (!is_busy_) {
      is_busy_ = true;
      interrupt(calls_++);
      is_busy_ = false;
    }
  }
  int calls_ = 0;
  bool is_busy_ = false;
};

// While files are copied, an archiver appends, and retention takes the oldest, which are used again.
TEST_F(Backup, WhileRetentionTakesFilesHasAllBehindSomeOffset) {
  for (const auto& options : {kLinked, kCopied}) {
    for (const int each : {1, 3, 8}) {
      TestStore store;
      auto writer = store.writer();
      const auto append_three = [&] {
        for (int i = 0; i < 3; ++i) store.append(writer, record_at(writer.end_offset()));
      };
      for (int i = 0; i < 4; ++i) append_three();
      InterruptedDisk disk;
      std::uint64_t begin = 0;
      disk.interrupt = [&](int call) {
        if (call % each != 0) return;
        const auto files = detail::list_segments(store.directory(), 1)->front().live;
        const std::string oldest = files.front().text();
        begin = files[1].base_offset;
        const std::string aside = "spare-1-" + std::to_string(call);
        ASSERT_TRUE(detail::rename_at(store.directory(), oldest.c_str(), aside.c_str()));
        auto file = detail::open_at(store.directory(), aside.c_str(), O_RDWR);
        if (detail::link_count(file->get()) == 1) {
          const std::string junk(65'536, 'j');
          EXPECT_EQ(::pwrite(file->get(), junk.data(), junk.size(), 0), 65'536);
        }
        detail::delete_file_at(store.directory(), aside.c_str());
        append_three();
      };
      auto copied = detail::copy_store(disk, store.directory(), store.manifest, options,
                                       store.data.get(), "copy");
      if (!copied) {  // Every single look took a file.
        EXPECT_EQ(copied.error(), Errc::busy) << describe(copied.error());
        EXPECT_TRUE(each == 1 && !options.may_link);
        continue;
      }
      auto directory = detail::open_directory_at(store.data.get(), "copy");
      const Lines lines =
          shortened(read_store(detail::Disk::system(), directory->get(), store.manifest));
      ASSERT_FALSE(lines.empty());
      const std::uint64_t first = std::stoull(lines.front());
      EXPECT_EQ(lines, numbers(first, first + lines.size()));
      EXPECT_LE(first, begin);
      auto report = detail::check_store(detail::Disk::system(), directory->get());
      EXPECT_TRUE(report && !report->is_damaged() && report->was_closed);
    }
  }
}

// Calls a function in the middle of each link: the old name was looked up, and the new one is not made yet.
class SlowlyLinkingDisk : public detail::Disk {
 public:
  std::function<void(int link)> meanwhile;

  Result<void> link(int from_directory, const char* from, int to_directory,
                    const char* to) noexcept override {
    auto file = Disk::open(from_directory, from, O_RDONLY, 0);
    if (!file) return file.error();
    meanwhile(links_++);
    const std::string path = "/proc/self/fd/" + std::to_string(file->get());
    if (::linkat(AT_FDCWD, path.c_str(), to_directory, to, AT_SYMLINK_FOLLOW) != 0)
      return last_system_error();
    return {};
  }

 private:
  int links_ = 0;
};

// Retention puts a file aside while it is linked, and an archiver writes other records into it: the link would
// lead to those.
TEST_F(Backup, AFileThatIsUsedAgainWhileItIsLinkedIsLeftOut) {
  for (int moment = 0; moment < 3; ++moment) {
    detail::Manifest manifest = small_manifest();
    manifest.topic.retention_bytes = 1;
    TestStore store{manifest};
    auto writer = store.writer();
    for (std::uint64_t i = 0; i < 8; ++i) store.append(writer, record_at(i));
    ASSERT_TRUE(writer.sync());
    SlowlyLinkingDisk disk;
    disk.meanwhile = [&](int link) {
      if (link != moment) return;
      detail::Retention retention{store.disk, store.directory(), store.manifest.topic};
      auto files = detail::list_segments(store.directory(), 1);
      ASSERT_TRUE(files && files->front().live.size() == 3);
      for (auto more = retention.expire(0, writer, false); *more;)
        more = retention.expire(0, writer, false);
      // Into a second file.
      for (std::uint64_t i = 8; i < 10; ++i) store.append(writer, record_at(i));
    };
    auto copied = detail::copy_store(disk, store.directory(), store.manifest, kLinked,
                                     store.data.get(), "copy");
    ASSERT_TRUE(copied) << describe(copied.error());
    auto directory = detail::open_directory_at(store.data.get(), "copy");
    const Lines lines =
        shortened(read_store(detail::Disk::system(), directory->get(), store.manifest));
    const std::uint64_t first = moment == 2 ? 3 : 6;
    ASSERT_FALSE(lines.empty());
    EXPECT_EQ(lines, numbers(first, first + lines.size())) << moment;
    auto report = detail::check_store(detail::Disk::system(), directory->get());
    EXPECT_TRUE(report && !report->is_damaged()) << moment;
  }
}

// An archiver is stopped and superseded while its file is copied, and goes on writing. What it writes then does
// not count, and is not in the copy, whenever that happens.
TEST_F(Backup, HasNothingOfAnArchiverThatIsSupersededMeanwhile) {
  for (const auto& options : {kLinked, kCopied}) {
    for (int moment = 0; moment < 10; ++moment) {
      TestStore store;
      auto stopped = store.writer();
      auto lock = detail::open_data_lock(store.directory());
      ASSERT_TRUE(
          lock->try_lock(detail::kArchiverLock + static_cast<std::int64_t>(stopped.generation())));
      for (std::uint64_t i = 0; i < 4; ++i) store.append(stopped, record_at(i));
      detail::SegmentWriter successor{store.disk, store.directory(), store.manifest.topic, 0};
      InterruptedDisk disk;
      disk.interrupt = [&](int call) {
        if (call != moment) return;
        successor.begin(stopped.generation() + 1, 4, 4, false);
        store.append(successor, record_at(4));
        LogBytes late{kBackupKey, 100 + 2000 * 4, 4};
        store.append(stopped, late.record("late"));
        store.append(successor, record_at(5));
      };
      auto copied = detail::copy_store(disk, store.directory(), store.manifest, options,
                                       store.data.get(), "copy");
      ASSERT_TRUE(copied) << describe(copied.error());
      auto directory = detail::open_directory_at(store.data.get(), "copy");
      const Lines lines =
          shortened(read_store(detail::Disk::system(), directory->get(), store.manifest));
      EXPECT_TRUE(lines == numbers(0, 4) || lines == numbers(0, 6))
          << moment << ": " << ::testing::PrintToString(lines);
    }
  }
}

TEST_F(Backup, StoppedLeavesNothing) {
  auto writer = store_.writer();
  append(writer, 8);
  std::stop_source stop;
  InterruptedDisk disk;
  disk.interrupt = [&](int call) {
    if (call == 3) stop.request_stop();
  };
  auto copied = copy({.is_open = true, .stop = stop.get_token()}, "copy", disk);
  EXPECT_EQ(copied.error(), Errc::stopped);
  EXPECT_EQ(names_in_data(), (Lines{"t"}));
}

TEST_F(Backup, ATopicThatIsDeletedMeanwhileLeavesNothing) {
  auto writer = store_.writer();
  append(writer, 8);
  InterruptedDisk disk;
  disk.interrupt = [&](int call) {
    if (call != 2) return;
    ASSERT_TRUE(detail::rename_at(store_.data.get(), "t", "+deleted-1"));
    for (const std::string& name : segments_of(read_files(store_.path + "/+deleted-1")))
      detail::delete_file_at(store_.directory(), name.c_str());
  };
  auto copied = copy(kLinked, "copy", disk);
  EXPECT_EQ(copied.error(), Errc::deleted) << describe(copied.error());
  EXPECT_EQ(names_in_data(), (Lines{"+deleted-1"}));
}

TEST_F(Backup, ATopicThatIsBeingDeletedIsNotCopied) {
  auto writer = store_.writer();
  append(writer, 8);
  ASSERT_TRUE(detail::rename_at(store_.data.get(), "t", "+deleted-1"));
  EXPECT_EQ(copy(kLinked).error(), Errc::deleted);
  EXPECT_EQ(names_in_data(), (Lines{"+deleted-1"}));
  EXPECT_TRUE(copy({}));  // What is left of it may still be wanted.
}

TEST_F(Backup, ATakenNameIsNotReplaced) {
  store_.recover();
  std::filesystem::create_directory(copy_path());
  EXPECT_EQ(copy(kLinked).error(), Errc::exists);
  EXPECT_EQ(names_in_data(), (Lines{"copy", "t"}));
}

TEST_F(Backup, AnyCallMayFail) {
  auto writer = store_.writer();
  append(writer, 8);
  store_.checkpoint(writer, false);
  append(writer, 2);
  const StoreFiles before = read_files(store_.topic_path());
  for (const auto& options : {kLinked, kCopied}) {
    for (const int error : {EIO, ENOSPC, EMFILE}) {
      std::uint64_t call = 0;
      for (;; ++call) {
        FailingDisk disk{{.call = call, .error = error, .written = 100}};
        auto copied = copy(options, "copy", disk);
        SCOPED_TRACE("call " + std::to_string(call) + ", error " + std::to_string(error));
        EXPECT_TRUE(read_files(store_.topic_path()) == before);
        if (copied) {
          EXPECT_EQ(read_copy(), numbers(0, 10));
          EXPECT_FALSE(check_copy().is_damaged());
          std::filesystem::remove_all(copy_path());
          if (!disk.has_failed()) break;
        } else {
          EXPECT_EQ(copied.error().system_error, error) << describe(copied.error());
          // Only the sync of the directory that has it comes after it was given its name.
          if (names_in_data() != Lines{"t"}) {
            EXPECT_EQ(read_copy(), numbers(0, 10));
            std::filesystem::remove_all(copy_path());
          }
        }
        EXPECT_EQ(names_in_data(), Lines{"t"});
        if (HasFailure()) return;
      }
      EXPECT_GT(call, 40U);
    }
  }
}

// The copy has its name only when all of it is on stable storage.
TEST_F(Backup, APowerFailureLeavesAWholeCopyOrNone) {
  Random random{test_seed()};
  for (const auto& options : {kLinked, kCopied}) {
    TestStore store;
    RecordedDisk disk{store.path};
    detail::SegmentWriter writer{disk, store.directory(), store.manifest.topic, 0};
    auto recovered = detail::recover(disk, store.directory(), store.manifest);
    writer.begin(recovered->generation, 0, 0, true);
    for (int i = 0; i < 8; ++i) {
      const LogBytes log = record_at(writer.end_offset());
      ASSERT_TRUE(writer.append(log.facts(), log.bytes()));
    }
    ASSERT_TRUE(writer.sync());
    const std::size_t begin = disk.calls();
    ASSERT_TRUE(detail::copy_store(disk, store.directory(), store.manifest, options,
                                   store.data.get(), "copy"));
    const std::size_t end = disk.calls();
    std::size_t copies = 0;
    for (std::size_t cut = begin; cut <= end; ++cut) {
      for (int round = 0; round < 4; ++round) {
        ScratchDirectory after;
        disk.replay(cut, random, after.path);
        auto topic = detail::open_directory_path(after.path + "/t", false, false);
        ASSERT_TRUE(topic);
        ASSERT_TRUE(detail::recover(detail::Disk::system(), topic->get(), store.manifest));
        Lines lines = shortened(read_store(detail::Disk::system(), topic->get(), store.manifest));
        lines.resize(8);
        EXPECT_EQ(lines, numbers(0, 8)) << cut - begin;
        auto copy = detail::open_directory_path(after.path + "/copy", false, false);
        EXPECT_TRUE(copy || cut != end);
        if (!copy) continue;
        ++copies;
        auto report = detail::check_store(detail::Disk::system(), copy->get());
        EXPECT_TRUE(report && !report->is_damaged() && report->was_closed) << cut - begin;
        EXPECT_EQ(shortened(read_store(detail::Disk::system(), copy->get(), store.manifest)),
                  numbers(0, 8));
      }
      if (HasFailure()) return;
    }
    EXPECT_GE(copies, 4U);
  }
}

}  // namespace
}  // namespace leat::testing
