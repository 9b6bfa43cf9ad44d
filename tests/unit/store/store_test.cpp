// What was written can be read, cut and damaged ends are told apart, and a topic goes on behind them.
// If these failed, records on disk could be lost, read twice, or read wrong.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/test_store.hpp"

namespace leat::testing {
namespace {

using Lines = std::vector<std::string>;

constexpr std::uint64_t kStoreKey = 0x1234'5678'9abc'def1;

TEST(Store, EmptyTopicIsWhole) {
  TestStore store;
  EXPECT_EQ(store.read(), Lines{});
  const auto report = store.check();
  EXPECT_TRUE(report.findings.empty()) << report.findings.front().text;
  EXPECT_TRUE(report.was_closed);
}

TEST(Store, RecordsBatchesAndGapsComeBack) {
  TestStore store;
  auto writer = store.writer();
  LogBytes log{kStoreKey};
  log.record("one").batch({"two", "three"}).aborted("junk").record("").died();
  store.append(writer, log);
  auto more = log.next();
  store.append(writer, more.record(std::string(1000, 'x')));
  store.checkpoint(writer, true);
  const Lines expected{"0 one",
                       "1 two",
                       "2 three",
                       "gap 3+1 aborted",
                       "4 ",
                       "gap 5+1 died",
                       "6 " + std::string(1000, 'x')};
  EXPECT_EQ(store.read(), expected);
  EXPECT_EQ(store.read(2), Lines(expected.begin() + 2, expected.end()));
  const auto report = store.check();
  EXPECT_TRUE(report.findings.empty()) << report.findings.front().text;
  EXPECT_EQ(report.records, 5U);
  EXPECT_EQ(report.frames, 2U);
}

// Somebody has copied the checkpoint of a topic with fewer, larger records into this one's directory. Where those
// end, there is no such offset here.
TEST(Store, ACheckpointOfAnotherTopicIsDamageAndCutsNothing) {
  const auto fill = [](TestStore& store, std::uint64_t count, std::size_t size) {
    auto writer = store.writer();
    for (std::uint64_t i = 0; i < count; ++i) {
      LogBytes log{kStoreKey, 100 + 1000 * i, i};
      store.append(writer, log.record(std::string(size, 'x')));
    }
    store.checkpoint(writer, true);
  };
  detail::Manifest manifest = small_manifest();
  ++manifest.topic.salt;
  TestStore other{manifest};
  fill(other, 2, 3000);
  for (const int copies : {1, 2}) {
    TestStore store;
    fill(store, 100, 10);
    const Lines expected = store.read();
    ASSERT_EQ(expected.size(), 100U);
    for (int i = 0; i < copies; ++i) {
      const std::string name = "/checkpoint-" + std::to_string(i);
      std::filesystem::copy_file(other.topic_path() + name, store.topic_path() + name,
                                 std::filesystem::copy_options::overwrite_existing);
    }
    const auto report = store.check();
    ASSERT_FALSE(report.findings.empty());
    EXPECT_EQ(report.findings.front().file, copies == 1 ? "checkpoint-0" : "checkpoint");
    EXPECT_TRUE(report.findings.front().is_damage);
    EXPECT_EQ(report.records, 100U);
    EXPECT_EQ(store.read(), expected);
    const detail::Recovered recovered = store.recover();
    EXPECT_EQ(recovered.cut_bytes(), 0U);
    EXPECT_EQ(store.read(), expected);
    EXPECT_FALSE(store.check().is_damaged());
  }
}

// Many frames in many files: every offset can be sought.
TEST(Store, SeeksAnyOffsetInManyFiles) {
  auto manifest = small_manifest();
  manifest.topic.file_bytes = 3 << 20;
  TestStore store{manifest};
  auto writer = store.writer();
  LogBytes log{kStoreKey};
  constexpr std::uint64_t kRecords = 4000;
  for (std::uint64_t i = 0; i < kRecords; ++i) {
    log.record(std::to_string(i) + std::string(i % 7 * 700, 'x'));
    if (i % 3 != 0 && i + 1 != kRecords) continue;
    store.append(writer, log);
    log = log.next();
  }
  store.checkpoint(writer, true);
  EXPECT_GT(store.check().files, 2U);
  for (std::uint64_t from = 0; from < kRecords; from += 97) {
    const Lines lines = store.read(from);
    ASSERT_EQ(lines.size(), kRecords - from) << from;
    EXPECT_TRUE(lines.front().starts_with(std::to_string(from) + ' ' + std::to_string(from)));
  }
  EXPECT_EQ(store.read(kRecords), Lines{});
}

// Whoever opens a topic that was not closed goes on behind every offset that may have been given out.
TEST(Store, NumberingGoesOnBehindReservedOffsets) {
  TestStore store;
  auto writer = store.writer();
  LogBytes log{kStoreKey};
  store.append(writer, log.record("a"));
  auto again = store.writer();  // As after a failure: nothing was closed.
  const std::uint64_t next = again.end_offset();
  EXPECT_EQ(next, detail::kReservedOffsets);
  LogBytes more{kStoreKey + 2, 0, next};
  store.append(again, more.record("b"));
  store.checkpoint(again, true);
  EXPECT_EQ(store.read(), (Lines{"0 a", "gap 1+" + std::to_string(next - 1) + " lost",
                                 std::to_string(next) + " b"}));
  const auto report = store.check();
  EXPECT_FALSE(report.is_damaged());
  EXPECT_EQ(report.lost, next - 1);
}

TEST(Store, WhatAnArchiverWritesAfterItWasSupersededDoesNotCount) {
  TestStore store;
  auto stopped = store.writer();
  LogBytes log{kStoreKey};
  store.append(stopped, log.record("a"));
  detail::SegmentWriter successor{store.disk, store.directory(), store.manifest.topic, 0};
  successor.begin(stopped.generation() + 1, 1, 1, false);
  auto second = log.next();
  store.append(successor, second.record("b"));
  auto late = log.next();
  store.append(stopped, late.record("late"));
  store.checkpoint(successor, true);
  EXPECT_EQ(store.read(), (Lines{"0 a", "1 b"}));
}

}  // namespace
}  // namespace leat::testing
