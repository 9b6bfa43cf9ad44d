// Files that are not what their names say, and files that another one replaces. If these failed, a subscriber would
// get another partition's records, or records would come back that recovery has decided not to count.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/store_files.hpp"
#include "support/test_store.hpp"

namespace leat::testing {
namespace {

using Lines = std::vector<std::string>;

constexpr std::uint64_t kKey = 0x4444'0000'1234'5678;

detail::SegmentWriter begun(TestStore& store, std::uint32_t partition, std::uint64_t generation,
                            std::uint64_t offset) {
  detail::SegmentWriter writer{store.disk, store.directory(), store.manifest.topic, partition};
  writer.begin(generation, offset, offset, offset == 0);
  return writer;
}
void append(TestStore& store, detail::SegmentWriter& writer, const std::string& text, int count) {
  for (int i = 0; i < count; ++i) {
    LogBytes log{kKey, 1000 * (writer.end_offset() + 1), writer.end_offset()};
    store.append(writer, log.record(text + std::to_string(writer.end_offset())));
  }
}

// ---- Files of two partitions that have changed places ---------------------------------------------

class SwappedFiles : public ::testing::Test {
 protected:
  SwappedFiles() {
    const std::uint64_t generation = store_.recover().generation;
    for (const std::uint32_t partition : {0U, 1U}) {
      auto writer = begun(store_, partition, generation, 0);
      append(store_, writer, partition == 0 ? "a" : "b", 3);
      if (partition == 0) append(store_, writer, "a", 4);
      store_.checkpoint(writer, true, partition);
      names_[partition] = writer.file_name().text();
    }
  }
  void swap() {
    const std::string place = store_.topic_path() + '/';
    std::filesystem::rename(place + names_[0], place + "x");
    std::filesystem::rename(place + names_[1], place + names_[0]);
    std::filesystem::rename(place + "x", place + names_[1]);
  }

  TestStore store_{small_manifest(2)};
  std::string names_[2];
};

TEST_F(SwappedFiles, AreDamagedAndNotReadAsEachOthers) {
  ASSERT_EQ(store_.read(0, 0).size(), 7U);
  ASSERT_EQ(store_.read(0, 1), (Lines{"0 b0", "1 b1", "2 b2"}));
  swap();
  // The topic was closed: what it had is damaged, and nothing is lost.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(store_.read(0, 0), (Lines{"gap 0+7 damaged"}));
    EXPECT_EQ(store_.read(0, 1), (Lines{"gap 0+3 damaged"}));
    const detail::StoreReport report = store_.check();
    EXPECT_EQ(report.damaged, 10U);
    EXPECT_EQ(report.lost, 0U);
    EXPECT_EQ(std::ranges::count_if(report.findings,
                                    [](const detail::StoreFinding& one) {
                                      return one.text.find("another partition") !=
                                             std::string::npos;
                                    }),
              2);
    ASSERT_TRUE(detail::recover_and_close(store_.disk, store_.directory(), store_.manifest));
  }
}

// They are whole, in the wrong place: recovery leaves them as they are, and what follows goes into new files.
TEST_F(SwappedFiles, AreKeptUntilSomebodyPutsThemBack) {
  const Lines before = store_.read(0, 0);
  swap();
  for (const bool was_closed : {true, false}) {
    auto recovered = store_.recover();  // After that it is open.
    for (const std::uint32_t partition : {0U, 1U}) {
      const detail::PartitionEnd& end = recovered.partitions[partition];
      EXPECT_TRUE(end.is_kept);
      EXPECT_EQ(end.frames_end, partition == 0 ? 7U : 3U);
      EXPECT_EQ(end.next_offset == end.frames_end, was_closed);
    }
  }
  swap();
  EXPECT_EQ(store_.read(0, 0), before);
  EXPECT_EQ(store_.read(0, 1), (Lines{"0 b0", "1 b1", "2 b2"}));
}

// ---- A file that nobody finished replaces another one ---------------------------------------------

// Archiver B takes over from A and writes a file. C takes over from B and has just made its own file for the same
// offsets when the power fails: only the name of C's file is on stable storage, and perhaps that of B's.
class ReplacedFile : public ::testing::TestWithParam<bool> {
 protected:
  ReplacedFile() {
    auto a = begun(store_, 0, 2, 0);
    append(store_, a, "a", 3);
    store_.checkpoint(a, false);
    auto b = begun(store_, 0, 3, 3);
    append(store_, b, "b", 3);
    b_ = b.file_name();
    c_ = {0, 3, 4};
    put_zeros(c_);
    if (GetParam()) {
      std::filesystem::remove(path(b_));
      put_zeros(b_);
    }
  }
  std::string path(const detail::SegmentName& name) const {
    return store_.topic_path() + '/' + name.text();
  }
  void put_zeros(const detail::SegmentName& name) const {
    std::ofstream{path(name)};
    std::filesystem::resize_file(path(name), 65536);
  }

  TestStore store_;
  detail::SegmentName b_;
  detail::SegmentName c_;
};

TEST_P(ReplacedFile, DoesNotCountAgainWithoutTheOneThatReplacesIt) {
  const detail::Recovered recovered = store_.recover();
  EXPECT_EQ(recovered.partitions[0].frames_end, 3U);
  EXPECT_FALSE(std::filesystem::exists(path(b_)));
  EXPECT_FALSE(std::filesystem::exists(path(c_)));
  // What was in it is kept aside.
  EXPECT_EQ(std::filesystem::exists(store_.topic_path() + "/cut-" + b_.text()), !GetParam());
  EXPECT_EQ(recovered.cut_bytes(), 0U);
  auto writer = store_.writer();
  const std::uint64_t next = writer.end_offset();
  append(store_, writer, "new", 1);
  store_.checkpoint(writer, true);
  const std::string record = std::to_string(next);
  EXPECT_EQ(store_.read(),
            (Lines{"0 a0", "1 a1", "2 a2", "gap 3+" + std::to_string(next - 3) + " lost",
                   record + " new" + record}));
  EXPECT_FALSE(store_.check().is_damaged());
}

// A crash in the middle: the replaced file goes first.
TEST_P(ReplacedFile, IsGoneBeforeTheOneThatReplacesIt) {
  std::filesystem::remove(path(b_));
  EXPECT_EQ(store_.recover().partitions[0].frames_end, 3U);
  EXPECT_FALSE(store_.check().is_damaged());
}

INSTANTIATE_TEST_SUITE_P(AndTheOtherOneHasOnlyZeros, ReplacedFile, ::testing::Bool());

}  // namespace
}  // namespace leat::testing
