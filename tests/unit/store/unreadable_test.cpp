// Blocks that cannot be read. If these failed, one bad sector would end readers, or keep everybody out of
// the topic, or recovery would cut off or delete what a second look could find.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "leat/store/backup.hpp"
#include "support/bad_sector_disk.hpp"
#include "support/store_files.hpp"
#include "support/test_store.hpp"

namespace leat::testing {
namespace {

using Lines = std::vector<std::string>;

constexpr std::uint64_t kUnreadableKey = 0x7777'0000'1234'5678;
constexpr std::uint64_t kValue = 20'000;  // Three frames fill a file.

// Records 0 to 7 in three files, one a frame: 0 to 2, 3 to 5, 6 and 7.
class Unreadable : public ::testing::Test {
 protected:
  detail::SegmentWriter write(bool closed) {
    detail::SegmentWriter writer = store_.writer();
    append(writer, 0, 8);
    store_.checkpoint(writer, closed);
    return writer;
  }
  // As after a failure of the machine: the checkpoint knows the first two records, and the last file was synced
  // once.
  void write_and_fail() {
    detail::SegmentWriter writer = store_.writer();
    append(writer, 0, 2);
    store_.checkpoint(writer, false);
    append(writer, 2, 8);
  }
  void append(detail::SegmentWriter& writer, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from; i < to; ++i) {
      LogBytes log{kUnreadableKey, 1000 * (i + 1), writer.end_offset()};
      store_.append(writer, log.record(std::to_string(i) + std::string(kValue, 'x')));
    }
  }
  Lines read(detail::Disk& disk, int directory) {
    Lines lines = read_store(disk, directory, store_.manifest);
    for (std::string& line : lines)
      if (!line.starts_with("gap ")) line = line.substr(0, line.find('x'));
    return lines;
  }
  Lines read() { return read(disk_, store_.directory()); }
  std::vector<std::string> segments() { return segments_of(read_files(store_.topic_path())); }
  // Where a frame begins in its file, and bytes of a block in the middle of it.
  static std::uint64_t frame_at(std::uint64_t index) {
    return sizeof(detail::SegmentHeader) + index * detail::padded_frame(20'032);
  }
  void spoil(std::size_t file, std::uint64_t at) {
    const std::uint64_t block = at / 4096 * 4096;
    disk_.spoil(store_.directory(), segments()[file], block, block + 4096);
  }
  static Lines records(std::uint64_t from, std::uint64_t to) {
    Lines lines;
    for (std::uint64_t i = from; i < to; ++i)
      lines.push_back(std::to_string(i) + ' ' + std::to_string(i));
    return lines;
  }

  TestStore store_;
  BadSectorDisk disk_;
};

TEST_F(Unreadable, OneBlockIsAGapAndTheRestIsRead) {
  write(true);
  spoil(1, frame_at(1) + 8000);
  EXPECT_EQ(read(), (Lines{"0 0", "1 1", "2 2", "3 3", "gap 4+1 damaged", "5 5", "6 6", "7 7"}));
  auto report = detail::check_store(disk_, store_.directory());
  ASSERT_TRUE(report) << describe(report.error());
  EXPECT_TRUE(report->is_damaged());
  EXPECT_EQ(report->damaged, 1U);
  EXPECT_EQ(report->records, 7U);
  EXPECT_GT(disk_.failures(), 0U);
}

// As with Linux 6.18 on ext4.
TEST_F(Unreadable, OneBlockSpoilsOnlyItsOwnFrameWhereTheCacheHoldsLargePieces) {
  write(true);
  spoil(1, frame_at(1) + 8000);
  disk_.cache_pieces_of(2 << 20);
  EXPECT_EQ(read(), (Lines{"0 0", "1 1", "2 2", "3 3", "gap 4+1 damaged", "5 5", "6 6", "7 7"}));
  auto report = detail::check_store(disk_, store_.directory());
  ASSERT_TRUE(report) << describe(report.error());
  EXPECT_EQ(report->damaged, 1U);
}

TEST_F(Unreadable, AWholeFileIsAGapAndTheRestIsRead) {
  write(true);
  disk_.spoil(store_.directory(), segments()[1]);
  EXPECT_EQ(read(), (Lines{"0 0", "1 1", "2 2", "gap 3+3 damaged", "6 6", "7 7"}));
  disk_.mend();
  disk_.spoil(store_.directory(), segments()[1], 0, 1 << 20);
  EXPECT_EQ(read(), (Lines{"0 0", "1 1", "2 2", "gap 3+3 damaged", "6 6", "7 7"}));
}

// A disk that returns nothing at all costs few reads: each may take seconds.
TEST_F(Unreadable, ManyBlocksAreNotTriedOneByOne) {
  write(true);
  std::filesystem::resize_file(store_.topic_path() + '/' + segments()[1], 64 << 20);
  disk_.spoil(store_.directory(), segments()[1], 0, 64 << 20);
  auto reader = detail::SegmentReader::open(disk_, store_.directory(),
                                            *detail::SegmentName::parse(segments()[1]),
                                            store_.manifest.topic.salt);
  ASSERT_TRUE(reader && reader->header());
  auto found = reader->find(0);
  EXPECT_TRUE(found && !*found);
  EXPECT_TRUE(reader->has_hidden());
  EXPECT_LT(disk_.failures(), 64U * 30U);
}

TEST_F(Unreadable, WhatFailsOnceIsTriedAgain) {
  write(true);
  for (std::uint64_t call = 0;; ++call) {
    BadSectorDisk once;
    once.fail_once(call);
    EXPECT_EQ(read(once, store_.directory()), records(0, 8)) << call;
    if (once.failures() == 0) break;
  }
}

TEST_F(Unreadable, NeighboursOfABadBlockAreRead) {
  write(true);
  const std::string name = segments()[1];
  const std::string whole = read_file(store_.topic_path() + '/' + name);
  spoil(1, 20'000);
  disk_.fail_first_reads();
  auto file = disk_.open(store_.directory(), name.c_str(), O_RDONLY, 0);
  ASSERT_TRUE(file);
  std::string bytes(whole.size(), '\1');
  bool is_whole = true;
  auto read = disk_.read_around(file->get(), reinterpret_cast<std::byte*>(bytes.data()),
                                bytes.size(), 0, is_whole);
  ASSERT_TRUE(read && *read == whole.size());
  EXPECT_FALSE(is_whole);
  std::string expected = whole;
  expected.replace(16'384, 4096, 4096, '\0');
  EXPECT_TRUE(bytes == expected);
}

// The page cache may be all that is left of a disk that fails.
TEST_F(Unreadable, WhatTheCacheHasOfAFailedDiskIsRead) {
  constexpr std::uint64_t kMiB = 1 << 20;
  write(true);
  const std::string name = segments()[1];
  std::filesystem::resize_file(store_.topic_path() + '/' + name, 8 * kMiB);
  disk_.spoil(store_.directory(), name, 0, 8 * kMiB);
  disk_.keep_cached(store_.directory(), name, 0, 5 * kMiB);
  disk_.keep_cached(store_.directory(), name, 5 * kMiB + 4096, 8 * kMiB);
  auto file = disk_.open(store_.directory(), name.c_str(), O_RDONLY, 0);
  ASSERT_TRUE(file);
  std::vector<std::byte> bytes(kMiB);
  for (int turn = 0; turn < 2; ++turn) {
    for (std::uint64_t at = 0; at < 8 * kMiB; at += kMiB) {
      bool is_whole = true;
      ASSERT_TRUE(disk_.read_around(file->get(), bytes.data(), kMiB, at, is_whole));
      // Only what lies around the bad block is lost: the cache may hold that as one piece.
      const bool is_around = at / (2 * kMiB) == 2;
      EXPECT_TRUE(is_whole || is_around) << at / kMiB;
      EXPECT_FALSE(is_whole && at == 5 * kMiB);
    }
  }
}

// Whatever block it is: no byte of a file changes, what can be read is there, and records go on behind what may have
// been given out.
TEST_F(Unreadable, RecoveryTakesNothingAway) {
  write_and_fail();
  const StoreFiles before = read_files(store_.topic_path());
  for (std::size_t file = 0; file < 3; ++file) {
    const std::uint64_t size = before.at(segments_of(before)[file]).size();
    for (std::uint64_t block = 0; block * 4096 < size; ++block) {
      SCOPED_TRACE("file " + std::to_string(file) + ", block " + std::to_string(block));
      PlacedFiles placed{before};
      BadSectorDisk disk;
      disk.spoil(placed.directory(), segments_of(before)[file], block * 4096, (block + 1) * 4096);
      auto recovered = detail::recover(disk, placed.directory(), store_.manifest);
      ASSERT_TRUE(recovered) << describe(recovered.error());
      const detail::PartitionEnd& end = recovered->partitions[0];
      EXPECT_EQ(end.next_offset, 2 + detail::kReservedOffsets);
      const bool has_met_it = disk.failures() != 0;
      for (const std::string& name : segments_of(before))
        EXPECT_TRUE(!has_met_it || placed.get(name) == before.at(name)) << name;
      // The next archiver begins a file, and closes the topic.
      detail::SegmentWriter writer{disk, placed.directory(), store_.manifest.topic, 0};
      writer.begin(recovered->generation, end.next_offset, end.frames_end, !end.has_file);
      LogBytes log{kUnreadableKey, 90'000, writer.end_offset()};
      store_.append(writer, log.record("new"));
      ASSERT_TRUE(writer.finish_file());
      auto closed = detail::recover_and_close(disk, placed.directory(), store_.manifest);
      ASSERT_TRUE(closed) << describe(closed.error());
      // Once the block can be read again, all records are there.
      const std::string added = std::to_string(end.next_offset) + " new";
      Lines lines = read(disk, placed.directory());
      EXPECT_NE(std::find(lines.begin(), lines.end(), added), lines.end());
      disk.mend();
      lines = read(disk, placed.directory());
      EXPECT_EQ(Lines(lines.begin(), lines.begin() + 8), records(0, 8));
      EXPECT_NE(std::find(lines.begin(), lines.end(), added), lines.end());
      EXPECT_FALSE(placed.is_damaged());
    }
  }
}

// A topic that nobody has written to since recovery does not lose more offsets each time.
TEST_F(Unreadable, OpeningAgainSkipsNoMoreOffsets) {
  write_and_fail();
  spoil(2, frame_at(1) + 8000);
  auto first = detail::recover_and_close(disk_, store_.directory(), store_.manifest);
  ASSERT_TRUE(first) << describe(first.error());
  for (int i = 0; i < 3; ++i) {
    auto again = detail::recover_and_close(disk_, store_.directory(), store_.manifest);
    ASSERT_TRUE(again) << describe(again.error());
    EXPECT_EQ(again->partitions[0].next_offset, first->partitions[0].next_offset);
    EXPECT_EQ(again->partitions[0].frames_end, first->partitions[0].frames_end);
  }
}

// Its copies cannot be read for a moment, from when recovery has stored them. They reserve offsets that readers have seen.
TEST_F(Unreadable, ACheckpointIsNotEmptiedWhenARecoveredTopicIsClosed) {
  struct HiddenCheckpoints : detail::Disk {
    Result<detail::Fd> open(int directory, const char* name, int flags,
                            ::mode_t mode) noexcept override {
      const bool is_checkpoint = std::string_view{name}.starts_with(detail::kCheckpoint);
      if (is_checkpoint && (flags & O_CREAT) != 0) ++stores;
      if (is_checkpoint && (flags & O_CREAT) == 0 && stores >= 2) return Error{Errc::io_error, EIO};
      return Disk::open(directory, name, flags, mode);
    }
    int stores = 0;
  } disk;
  write_and_fail();
  auto closed = detail::recover_and_close(disk, store_.directory(), store_.manifest);
  ASSERT_TRUE(closed) << describe(closed.error());
  const std::uint64_t next = closed->partitions[0].next_offset;
  EXPECT_GE(next, 2 + detail::kReservedOffsets);
  EXPECT_EQ(disk.stores, 4);
  EXPECT_EQ(store_.recover().partitions[0].next_offset, next);
}

TEST_F(Unreadable, EitherCopyOfTheManifestAndTheCheckpointIsEnough) {
  write(true);
  for (const char* const copy : {"-0", "-1"}) {
    disk_.spoil(store_.directory(), std::string{"manifest"} + copy, 0, 4096);
    disk_.spoil(store_.directory(), std::string{"checkpoint"} + copy);
    EXPECT_TRUE(detail::load_manifest(disk_, store_.directory()));
    EXPECT_EQ(read(), records(0, 8));
    disk_.mend();
  }
}

// The newer copy may have reserved more offsets, which readers have seen.
TEST_F(Unreadable, WithoutACheckpointNothingIsCutAndMoreOffsetsAreSkipped) {
  write_and_fail();
  // Not whole: without a checkpoint that cannot be read, this would be the end.
  std::filesystem::resize_file(store_.topic_path() + '/' + segments()[2], frame_at(1) + 100);
  const StoreFiles before = read_files(store_.topic_path());
  for (const bool both : {false, true}) {
    PlacedFiles placed{before};
    BadSectorDisk disk;
    disk.spoil(placed.directory(), "checkpoint-0", 0, 4096);
    if (both) disk.spoil(placed.directory(), "checkpoint-1");
    auto file = detail::CheckpointFile::load(disk, placed.directory(), store_.manifest);
    ASSERT_TRUE(file);
    EXPECT_EQ(file->is_known(), !both);
    auto ends = detail::find_ends(disk, placed.directory(), store_.manifest, *file);
    ASSERT_TRUE(ends) << describe(ends.error());
    const detail::PartitionEnd& end = ends->partitions[0];
    EXPECT_TRUE(end.is_kept);
    EXPECT_GT(end.next_offset, 2 + detail::kReservedOffsets);
    EXPECT_EQ(end.frames_end, 7U);
  }
}

TEST_F(Unreadable, ABackupHasTheRest) {
  write(true);
  spoil(1, frame_at(1) + 8000);
  for (const bool may_link : {false, true}) {
    const std::string name = may_link ? "linked" : "copied";
    auto copied = detail::copy_store(disk_, store_.directory(), store_.manifest,
                                     {.may_link = may_link}, store_.data.get(), name);
    ASSERT_TRUE(copied) << describe(copied.error());
    auto directory = detail::open_directory_at(store_.data.get(), name.c_str());
    ASSERT_TRUE(directory);
    EXPECT_EQ(read(disk_, directory->get()),
              (Lines{"0 0", "1 1", "2 2", "3 3", "gap 4+1 damaged", "5 5", "6 6", "7 7"}));
  }
}

TEST_F(Unreadable, ABackupLeavesOutAFileThatCannotBeOpened) {
  write(true);
  disk_.spoil(store_.directory(), segments()[1]);
  auto copied = detail::copy_store(disk_, store_.directory(), store_.manifest, {},
                                   store_.data.get(), "copied");
  ASSERT_TRUE(copied) << describe(copied.error());
  auto directory = detail::open_directory_at(store_.data.get(), "copied");
  ASSERT_TRUE(directory);
  EXPECT_EQ(read(disk_, directory->get()),
            (Lines{"0 0", "1 1", "2 2", "gap 3+3 damaged", "6 6", "7 7"}));
}

}  // namespace
}  // namespace leat::testing
