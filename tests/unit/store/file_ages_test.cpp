// Retention by time although the wall clock is wrong for a while. If this failed, a file that was made while the clock was
// ahead would stay for ever with all behind it, and a clock that jumps would delete records that are seconds old.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "leat/base/crc32c.hpp"
#include "leat/store/retention.hpp"
#include "support/test_store.hpp"
#include "testing.hpp"

namespace leat::testing {
namespace {

constexpr std::int64_t kHour = 3'600'000;
constexpr std::int64_t kYear = 365 * 24 * kHour;
constexpr std::int64_t kToday = 54 * kYear;  // in ms since 1970
constexpr std::int64_t kBoot = 10 * kHour;

// Files of one record, dated as the test says, and a keeper that has clocks of its own.
class FileAges : public ::testing::Test {
 protected:
  FileAges() : store_{manifest()}, writer_{store_.writer()} { begin_term(); }

  static detail::Manifest manifest() {
    detail::Manifest made = small_manifest();
    made.topic.retention_ms = kHour;
    made.topic.created_ms = kToday - 10 * kYear;
    return made;
  }

  void file_dated(std::int64_t created_ms) {
    LogBytes log{store_.manifest.window.key, 100 * records_, records_};
    log.record("x");
    store_.append(writer_, log);
    ++records_;
    ASSERT_TRUE(writer_.finish_file());
    std::fstream file{store_.topic_path() + '/' + writer_.file_name().text(),
                      std::ios::in | std::ios::out | std::ios::binary};
    detail::SegmentHeader header{};
    file.read(reinterpret_cast<char*>(&header), sizeof(header));
    header.created_ms = created_ms;
    header.crc = 0;
    header.crc = detail::crc32c(0, &header, sizeof(header));
    file.seekp(0);
    file.write(reinterpret_cast<const char*>(&header), sizeof(header));
    ASSERT_TRUE(file.good());
    retention_.note_file(writer_.file_name());
  }
  // The same by the keeper that the test plays.
  void file_made_now() {
    file_dated(now_.wall_ms);
    retention_.note_made(writer_.file_name(), now_);
  }

  void begin_term() {
    retention_.begin_term(now_);
    retention_.share_ages(stored_);
  }
  void pass(std::int64_t ms) {
    now_.wall_ms += ms;
    now_.boot_ms += ms;
  }
  // Returns how many files are left.
  std::size_t expire() {
    for (bool more = true; more;) {
      auto done = retention_.expire(0, writer_, true, now_);
      EXPECT_TRUE(done) << describe(done.error());
      more = done && *done;
    }
    if (retention_.has_unstored_ages()) retention_.share_ages(stored_);
    return detail::list_segments(store_.directory(), 1)->front().live.size();
  }

  TestStore store_;
  detail::SegmentWriter writer_;
  std::uint64_t records_ = 0;
  detail::ClockReadings now_{kToday, kBoot};
  detail::Retention retention_{store_.disk, store_.directory(), store_.manifest.topic};
  std::vector<detail::CheckpointAhead> stored_;
};

TEST_F(FileAges, FilesGoWhenTheNextOneIsTooOld) {
  file_dated(kToday - 3 * kHour);
  file_dated(kToday - 2 * kHour);
  file_dated(kToday - kHour / 2);
  EXPECT_EQ(expire(), 2U);
  pass(kHour / 2);
  EXPECT_EQ(expire(), 2U);
  pass(1);
  EXPECT_EQ(expire(), 1U);
}

// Somebody has deleted a file by hand. The list is made again: otherwise nothing would expire until it is old.
TEST_F(FileAges, AFileThatIsGoneIsForgotten) {
  for (int i = 0; i < 50; ++i) file_dated(kToday - kHour / 2);
  begin_term();
  EXPECT_FALSE(*retention_.expire(0, writer_, true, now_));  // Lists them; the last ones are read.
  const auto files = detail::list_segments(store_.directory(), 1)->front().live;
  std::filesystem::remove(store_.topic_path() + '/' + files[5].text());
  pass(kHour);
  EXPECT_EQ(retention_.expire(0, writer_, true, now_).error(), Errc::not_found);
  EXPECT_EQ(expire(), 1U);
}

TEST_F(FileAges, AFileDatedInTheFutureAgesFromWhenAKeeperSawThat) {
  file_dated(kToday);
  file_dated(kToday + kYear);
  file_dated(kToday + kYear + 1);
  file_dated(kToday);
  EXPECT_EQ(expire(), 4U);
  ASSERT_EQ(stored_.size(), 1U);
  // Another keeper goes on counting.
  pass(kHour / 2);
  begin_term();
  EXPECT_EQ(expire(), 4U);
  pass(kHour / 2 + 1);
  begin_term();
  EXPECT_EQ(expire(), 1U);
  // Nothing is remembered of files that are gone.
  file_dated(now_.wall_ms);
  pass(kHour + 1);
  EXPECT_EQ(expire(), 1U);
  EXPECT_EQ(expire(), 1U);
  retention_.share_ages(stored_);
  EXPECT_TRUE(stored_.empty());
}

// It is seen long before it is its turn.
TEST_F(FileAges, AFileDatedInTheFutureIsSeenBehindOthers) {
  for (int i = 0; i < 100; ++i) file_dated(kToday);
  file_dated(kToday + kYear);
  for (int i = 0; i < 100; ++i) file_dated(kToday);
  for (int look = 0; look < 4; ++look) EXPECT_EQ(expire(), 201U);
  EXPECT_EQ(stored_.size(), 1U);
  pass(kHour + 1);
  begin_term();
  EXPECT_EQ(expire(), 1U);
}

// Each time that the clock comes back, files are found that were dated ahead of it. What is noted of that is bounded.
TEST_F(FileAges, AClockThatGoesAheadAgainAndAgainStopsNothing) {
  for (int round = 0; round < 100; ++round) {
    file_dated(now_.wall_ms + kYear);
    file_dated(now_.wall_ms);
    begin_term();
    (void)expire();
    EXPECT_LE(stored_.size(), detail::kMostAhead);
    pass(kHour / 100);
  }
  pass(kHour);
  EXPECT_EQ(expire(), 1U);
}

TEST_F(FileAges, AFileDatedBeforeItsPredecessorTakesTheTimeOfThat) {
  file_dated(kToday - 1);
  file_dated(0);  // 1970
  file_dated(1);
  file_dated(kToday);
  EXPECT_EQ(expire(), 4U);
  pass(kHour);
  EXPECT_EQ(expire(), 2U);
}

// The first files of a topic, made before the clock was set.
TEST_F(FileAges, NoFileIsOlderThanItsTopic) {
  store_.manifest.topic.created_ms = kToday - 1000;
  file_dated(0);
  file_dated(1);
  file_dated(2);
  EXPECT_EQ(expire(), 3U);
  pass(kHour);
  EXPECT_EQ(expire(), 1U);
}

TEST_F(FileAges, AClockThatJumpsAheadWhileAKeeperWorksMakesNothingOlder) {
  file_dated(kToday - kHour / 2);
  file_dated(kToday - kHour / 2);
  file_made_now();
  EXPECT_EQ(expire(), 3U);
  now_.wall_ms += kYear;
  EXPECT_EQ(expire(), 3U);
  file_made_now();
  pass(kHour / 2 + 1);
  EXPECT_EQ(expire(), 3U);
  now_.wall_ms -= 2 * kYear;
  pass(kHour / 2);
  EXPECT_EQ(expire(), 1U);
}

// A machine without a battery: it begins in 1970, and the clock is set later.
TEST_F(FileAges, ABootIn1970DeletesNothingAtOnce) {
  file_dated(kToday - 2);
  file_dated(kToday - 1);
  now_ = {1000, 1000};
  begin_term();
  EXPECT_EQ(expire(), 2U);
  file_made_now();
  pass(kHour / 10);
  file_made_now();
  EXPECT_EQ(expire(), 4U);
  now_.wall_ms += kToday;
  EXPECT_EQ(expire(), 4U);
  begin_term();
  EXPECT_EQ(expire(), 4U);
  pass(kHour + 1);
  EXPECT_EQ(expire(), 1U);
}

// Nobody knows when it was made, and it must not stay for ever.
TEST_F(FileAges, AFileWithoutAWholeHeaderAgesFromWhenAKeeperSawThat) {
  file_dated(kToday);
  file_dated(kToday);
  {
    std::fstream file{store_.topic_path() + '/' + writer_.file_name().text(),
                      std::ios::in | std::ios::out | std::ios::binary};
    file.seekp(40);
    file.put('?');
  }
  file_dated(kToday);
  EXPECT_EQ(expire(), 3U);
  pass(kHour + 1);
  EXPECT_EQ(expire(), 1U);
}

TEST_F(FileAges, WhatIsStoredIsFoundAgain) {
  const auto load = [&] {
    auto loaded = detail::CheckpointFile::load(store_.disk, store_.directory(), store_.manifest);
    EXPECT_TRUE(loaded);
    return std::move(*loaded);
  };
  detail::CheckpointFile file = load();
  detail::Checkpoint value = file.value();
  value.ahead = {{0, 0, 17, kToday}};
  ASSERT_TRUE(file.store(store_.disk, store_.directory(), value));
  ASSERT_EQ(load().value().ahead.size(), 1U);
  EXPECT_EQ(load().value().ahead[0].last_base, 17U);
  (void)store_.recover();
  EXPECT_EQ(load().value().ahead.size(), 1U);
  // More than there can be is not taken.
  file = load();
  value.ahead.resize(detail::kMostAhead * value.partitions.size() + 1);
  ASSERT_TRUE(file.store(store_.disk, store_.directory(), value));
  EXPECT_TRUE(load().value().ahead.empty());
  EXPECT_TRUE(load().is_known());
}

}  // namespace
}  // namespace leat::testing
