// Retention by time although the wall clock is wrong for a while. If this failed, a file that was made while the clock was
// ahead would stay for ever with all behind it, and a clock that jumps would delete records that are seconds old.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
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

// Files of one record, dated as the test says, and an archiver whose clocks the test sets.
class FileAges : public ::testing::Test {
 protected:
  FileAges() : store_{manifest()}, writer_{store_.writer()} { begin_epoch(); }

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
  // The same, made by the archiver itself.
  void file_made_now() {
    file_dated(now_.wall_ms);
    retention_.note_made(writer_.file_name(), now_);
  }

  void begin_epoch() {
    retention_.begin_epoch(now_);
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
  std::vector<detail::CheckpointMisdated> stored_;
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
  begin_epoch();
  EXPECT_FALSE(*retention_.expire(0, writer_, true, now_));  // Lists them; the last ones are read.
  const auto files = detail::list_segments(store_.directory(), 1)->front().live;
  std::filesystem::remove(store_.topic_path() + '/' + files[5].text());
  pass(kHour);
  EXPECT_EQ(retention_.expire(0, writer_, true, now_).error(), Errc::not_found);
  EXPECT_EQ(expire(), 1U);
}

TEST_F(FileAges, AFileDatedInTheFutureAgesFromWhenAnArchiverSawThat) {
  file_dated(kToday);
  file_dated(kToday + kYear);
  file_dated(kToday + kYear + 1);
  file_dated(kToday);
  EXPECT_EQ(expire(), 4U);
  ASSERT_EQ(stored_.size(), 1U);
  // Another archiver goes on counting.
  pass(kHour / 2);
  begin_epoch();
  EXPECT_EQ(expire(), 4U);
  pass(kHour / 2 + 1);
  begin_epoch();
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
  for (int turn = 0; turn < 4; ++turn) EXPECT_EQ(expire(), 201U);
  EXPECT_EQ(stored_.size(), 1U);
  pass(kHour + 1);
  begin_epoch();
  EXPECT_EQ(expire(), 1U);
}

// Each time that the clock comes back, files are found that were dated ahead of it. What is noted of that is bounded.
TEST_F(FileAges, AClockThatGoesAheadAgainAndAgainStopsNothing) {
  for (int round = 0; round < 100; ++round) {
    file_dated(now_.wall_ms + kYear);
    file_dated(now_.wall_ms);
    begin_epoch();
    (void)expire();
    EXPECT_LE(stored_.size(), detail::kMostMisdated);
    pass(kHour / 100);
  }
  pass(kHour);
  EXPECT_EQ(expire(), 1U);
}

TEST_F(FileAges, AFileDatedBeforeItsPredecessorAgesFromWhenAnArchiverSawThat) {
  file_dated(kToday - 10 * kHour);
  file_dated(0);  // 1970
  file_dated(1);
  file_dated(kToday);
  EXPECT_EQ(expire(), 4U);
  pass(kHour / 2);
  begin_epoch();
  EXPECT_EQ(expire(), 4U);
  pass(kHour / 2 + 1);
  EXPECT_EQ(expire(), 1U);
}

// A clock that is adjusted by a moment is no reason to keep a file for up to an hour longer.
TEST_F(FileAges, AFileDatedAMomentBeforeItsPredecessorTakesItsDate) {
  file_dated(kToday - kHour / 2);
  file_dated(kToday - kHour / 2 - 100);
  file_dated(kToday - kHour / 2 - 60'000);
  EXPECT_EQ(expire(), 3U);
  EXPECT_TRUE(stored_.empty());
  pass(kHour / 2);
  EXPECT_EQ(expire(), 3U);
  pass(1);
  EXPECT_EQ(expire(), 1U);
}

TEST_F(FileAges, AFileDatedLongerBeforeItsPredecessorAgesFromWhenAnArchiverSawThat) {
  file_dated(kToday - kHour / 2);
  file_dated(kToday - kHour / 2 - 60'001);
  EXPECT_EQ(expire(), 2U);
  pass(kHour / 2 + 1);
  EXPECT_EQ(expire(), 2U);
  pass(kHour / 2);
  EXPECT_EQ(expire(), 1U);
}

// The first files of a topic, made before the clock was set.
TEST_F(FileAges, AFileDatedBeforeItsTopicAgesFromWhenAnArchiverSawThat) {
  store_.manifest.topic.created_ms = kToday - 10 * kHour;
  file_dated(0);
  file_dated(1);
  file_dated(2);
  EXPECT_EQ(expire(), 3U);
  pass(kHour / 2);
  begin_epoch();
  EXPECT_EQ(expire(), 3U);
  pass(kHour / 2 + 1);
  EXPECT_EQ(expire(), 1U);
}

// A file made while the clock was ahead, and noticed by an archiver whose clock says 1970.
TEST_F(FileAges, AnArchiverWithAClockBehindDatesNoFileForLaterOnes) {
  file_dated(kToday - 10 * kHour);
  file_dated(kToday + kYear);
  file_dated(kToday + kYear + 1);
  now_ = {1000, 1000};
  begin_epoch();
  EXPECT_EQ(expire(), 3U);
  now_ = {kToday + 2, 3000};
  begin_epoch();
  EXPECT_EQ(expire(), 3U);
  pass(kHour / 2);
  begin_epoch();
  EXPECT_EQ(expire(), 3U);
  pass(kHour / 2 + 1);
  EXPECT_EQ(expire(), 1U);
}

// The same for the opposite error: otherwise the files would stay for a year.
TEST_F(FileAges, AnArchiverWithAClockAheadKeepsNoFileForYears) {
  file_dated(0);
  file_dated(1);
  now_.wall_ms += kYear;
  begin_epoch();
  EXPECT_EQ(expire(), 2U);
  now_.wall_ms -= kYear;
  begin_epoch();
  EXPECT_EQ(expire(), 2U);
  pass(kHour / 2);
  begin_epoch();
  pass(kHour / 2 + 1);
  EXPECT_EQ(expire(), 1U);
}

// A machine without a battery on which something publishes before its clock is set: what was noticed must not be
// forgotten with each boot.
TEST_F(FileAges, AnArchiverIn1970ForgetsNothingThatWasNoticed) {
  file_dated(2000);  // Later than the next boots.
  file_dated(2001);
  for (int boot = 0; boot < 2; ++boot) {
    EXPECT_EQ(expire(), 2U);
    const detail::ClockReadings right = now_;
    now_.wall_ms = 1000;
    begin_epoch();
    EXPECT_EQ(expire(), 2U);
    now_ = right;
    pass(kHour / 2 + 1);
    begin_epoch();
  }
  EXPECT_EQ(expire(), 1U);
}

TEST_F(FileAges, AClockThatJumpsAheadWhileAnArchiverWorksMakesNothingOlder) {
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
  begin_epoch();
  EXPECT_EQ(expire(), 2U);
  file_made_now();
  pass(kHour / 10);
  file_made_now();
  EXPECT_EQ(expire(), 4U);
  now_.wall_ms += kToday;
  EXPECT_EQ(expire(), 4U);
  begin_epoch();
  EXPECT_EQ(expire(), 4U);
  pass(kHour + 1);
  EXPECT_EQ(expire(), 1U);
}

// Nobody knows when it was made, and it must not stay for ever.
TEST_F(FileAges, AFileWithoutAWholeHeaderAgesFromWhenAnArchiverSawThat) {
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
  value.misdated = {{0, 0, 17, kToday}};
  ASSERT_TRUE(file.store(store_.disk, store_.directory(), value));
  ASSERT_EQ(load().value().misdated.size(), 1U);
  EXPECT_EQ(load().value().misdated[0].last_base, 17U);
  (void)store_.recover();
  EXPECT_EQ(load().value().misdated.size(), 1U);
  // More than there can be is not taken.
  file = load();
  value.misdated.resize(detail::kMostMisdated * value.partitions.size() + 1);
  ASSERT_TRUE(file.store(store_.disk, store_.directory(), value));
  EXPECT_TRUE(load().value().misdated.empty());
  EXPECT_TRUE(load().is_known());
}

// Files of one partition and their archivers, with a clock that is right, years ahead, in 1970, or a moment behind.
// Retention's rules without its files, so that all sequences of clocks can be tried.
class ClockModel {
 public:
  static constexpr std::int64_t kMoment = 100;
  static constexpr std::int64_t kClocks[] = {0, 5 * kYear, -kToday, -kMoment};

  explicit ClockModel(std::int64_t topic_clock)
      : topic_clock_{topic_clock}, topic_ms_{kToday + topic_clock} {}

  void step(std::int64_t clock, bool is_new_archiver, std::int64_t pause) {
    pass(pause);
    clock_ = clock;
    earliest_clock_ = std::min(earliest_clock_, clock);
    is_nearly_right_ = is_nearly_right_ && std::abs(clock) <= kMoment;
    if (is_new_archiver) {
      archiver_clock_ = clock;
      ages_.begin(now());
      ages_.know(stored_);
      youngest_deleted_.reset();
    }
    for (int i = 0; i < 2; ++i) {
      expire();
      ages_.note_made(0, base_, now());
      files_.push_back({base_++, true_ms_, now().wall_ms});
      pass(i == 0 ? kHour / 5 : kMoment / 2);
    }
    expire();
  }
  // Lets the clock be right, with archivers that work only for a while.
  std::size_t files_at_last() {
    for (int i = 0; i < 6; ++i) step(0, true, 0);
    pass(2 * kHour);
    expire();
    return files_.size();
  }
  bool has_deleted_too_early() const noexcept { return has_deleted_too_early_; }
  // Although no clock was wrong by more than a moment.
  bool has_kept_too_long() const noexcept { return has_kept_too_long_; }

 private:
  struct File {
    std::uint64_t base;
    std::int64_t made_ms;  // by a clock that is right
    std::int64_t date_ms;
  };

  detail::ClockReadings now() const noexcept { return {true_ms_ + clock_, true_ms_ - kToday}; }
  void pass(std::int64_t ms) noexcept { true_ms_ += ms; }
  std::int64_t age(std::size_t index) {
    const File& file = files_[index];
    if (!ages_.age_ms(0, file.base, now())) {
      detail::FileAges::Dates dates{file.date_ms, std::nullopt, topic_ms_};
      if (index != 0) dates.previous_ms = files_[index - 1].date_ms;
      ages_.note_dated(0, file.base, dates, files_.back().base, now());
    }
    return *ages_.age_ms(0, file.base, now());
  }
  void expire() {
    for (std::size_t i = files_.size(); i-- > 0;) (void)age(i);
    while (files_.size() > 1) {
      std::int64_t youngest =
          std::min({ages_.age_of_topic_ms(topic_ms_, now()), age(0), age(1),
                    youngest_deleted_ ? now().boot_ms - *youngest_deleted_ : kToday});
      if (youngest <= kHour) break;
      // An archiver whose clock is ahead of an earlier one believes it, unless dates contradict the earlier one: the
      // topic's date does, if the clock was the archiver's when the topic was made.
      const bool is_promised =
          archiver_clock_ == topic_clock_ || archiver_clock_ <= earliest_clock_;
      if (is_promised && true_ms_ - files_[1].made_ms <= kHour - kMoment)
        has_deleted_too_early_ = true;
      youngest_deleted_ = now().boot_ms - youngest;
      files_.erase(files_.begin());
      ages_.forget_before(0, files_.front().base);
    }
    if (is_nearly_right_ && files_.size() > 1 && true_ms_ - files_[1].made_ms > kHour + 2 * kMoment)
      has_kept_too_long_ = true;
    stored_ = ages_.take_misdated();
  }

  std::int64_t topic_clock_;
  std::int64_t topic_ms_;
  std::int64_t true_ms_ = kToday;
  std::int64_t clock_ = 0;
  std::int64_t archiver_clock_ = 0;
  std::int64_t earliest_clock_ = topic_clock_;
  detail::FileAges ages_;
  std::vector<detail::CheckpointMisdated> stored_;
  std::vector<File> files_;
  std::uint64_t base_ = 0;
  std::optional<std::int64_t> youngest_deleted_;
  bool has_deleted_too_early_ = false;
  bool is_nearly_right_ = std::abs(topic_clock_) <= kMoment;
  bool has_kept_too_long_ = false;
};

// All sequences of four clocks, each set while an archiver works or before the next one begins, with a long pause
// before one of them.
TEST(FileAgesModel, NoSequenceOfWrongClocksDeletesTooEarlyOrKeepsForEver) {
  constexpr unsigned kSteps = 4;
  constexpr unsigned kClocks = std::size(ClockModel::kClocks);
  constexpr unsigned kChoices = 2 * kClocks;  // a clock, and whether there is a new archiver
  constexpr unsigned kSequences = kChoices * kChoices * kChoices * kClocks;
  for (const std::int64_t topic_clock : ClockModel::kClocks) {
    for (unsigned pause = 0; pause < kSteps; ++pause) {
      for (unsigned sequence = 0; sequence < kSequences; ++sequence) {
        ClockModel model{topic_clock};
        std::string text = "topic " + std::to_string(topic_clock) + ':';
        unsigned rest = sequence;
        for (unsigned i = 0; i < kSteps; ++i) {
          const std::int64_t clock = ClockModel::kClocks[rest % kClocks];
          const bool is_new_archiver = i == 0 || rest % kChoices >= kClocks;
          rest /= i == 0 ? kClocks : kChoices;
          text += i == pause ? " pause," : "";
          text += (is_new_archiver ? " archiver " : " set ") + std::to_string(clock);
          model.step(clock, is_new_archiver, i == pause ? 5 * kHour : 0);
        }
        ASSERT_FALSE(model.has_deleted_too_early()) << text;
        ASSERT_LE(model.files_at_last(), 1U) << text;
        ASSERT_FALSE(model.has_deleted_too_early()) << text << ", then right";
        ASSERT_FALSE(model.has_kept_too_long()) << text;
      }
    }
  }
}

}  // namespace
}  // namespace leat::testing
