// A process is killed at every labelled step while it writes the files of a durable topic, and while it
// recovers them. If this failed, a crash at the wrong moment could lose records on disk, or make a topic
// unreadable.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "leat/store/backup.hpp"
#include "scenarios.hpp"
#include "support/test_store.hpp"

namespace leat::testing {
namespace {

using Lines = std::vector<std::string>;

constexpr std::uint64_t kStepsKey = 0x7777'6666'5555'4443;

struct Case {
  std::string step;
  int nth;
};
std::ostream& operator<<(std::ostream& out, const Case& one) {
  return out << one.step << ", time " << one.nth;
}
std::string name_of_store_case(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.step + '_' + std::to_string(info.param.nth);
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
}
template <std::size_t kSteps>
std::vector<Case> cases_of(const char* const (&steps)[kSteps]) {
  std::vector<Case> cases;
  for (const char* step : steps) {
    for (const int nth : {1, 2, 3}) cases.push_back({step, nth});
  }
  return cases;
}

// Records 0, 1, 2, … of 20 KB, three in a file.
LogBytes record_at(std::uint64_t offset) {
  LogBytes log{kStepsKey, 100 + 2000 * offset, offset};
  return log.record(std::to_string(offset) + std::string(20'000, 'x'));
}

// Every record before `durable` is there, and what follows is whole and in order.
void expect_whole(TestStore& store, std::uint64_t durable) {
  std::uint64_t next = 0;
  for (const std::string& line : store.read()) {
    if (line.starts_with("gap ")) {
      EXPECT_TRUE(line.ends_with(" lost") && next >= durable) << line;
      next += std::stoull(line.substr(line.find('+') + 1));
      continue;
    }
    if (next == 0 && durable == 0) next = std::stoull(line);  // The oldest file begins there.
    ASSERT_EQ(std::stoull(line), next) << line.substr(0, 40);
    ++next;
  }
  EXPECT_GE(next, durable);
}

class StoreSteps : public ::testing::TestWithParam<Case> {
 protected:
  // Runs `body` in a child that dies at the step of this case. False if it never gets there so often.
  static bool dies_at_step(const std::function<int()>& body) {
    Child victim{[&] {
      arm({GetParam().step, GetParam().nth, SIGKILL});
      return body();
    }};
    victim.wait();
    EXPECT_TRUE(victim.was_killed() || victim.succeeded()) << victim.describe();
    return victim.was_killed();
  }

  TestStore store_;
};

class WritingSteps : public StoreSteps {};

TEST_P(WritingSteps, NothingThatWasSyncedIsLost) {
  Shared<std::atomic<std::uint64_t>> durable;
  const bool died = dies_at_step([&]() -> int {
    auto writer = store_.writer();
    for (std::uint64_t offset = 0; offset < 12; ++offset) {
      const LogBytes log = record_at(offset);
      CHILD_CHECK_OK(writer.append(log.facts(), log.bytes()));
      *durable = writer.durable_offset();
      if (offset % 2 == 1) CHILD_CHECK_OK(writer.sync());
      *durable = writer.durable_offset();
    }
    store_.checkpoint(writer, true);
    *durable = writer.durable_offset();
    return 0;
  });
  EXPECT_TRUE(died) << "the step was never reached";
  store_.recover();
  expect_whole(store_, *durable);
  // The next archiver goes on.
  auto writer = store_.writer();
  LogBytes more{kStepsKey + 2, 5, writer.end_offset()};
  more.record(std::to_string(writer.end_offset()));
  store_.append(writer, more);
  store_.checkpoint(writer, true);
  expect_whole(store_, *durable);
  EXPECT_FALSE(store_.check().is_damaged());
}

INSTANTIATE_TEST_SUITE_P(All, WritingSteps, ::testing::ValuesIn(cases_of(kStoreSteps)),
                         name_of_store_case);

class RecoverySteps : public StoreSteps {
 protected:
  RecoverySteps() {
    // Three files, of which nothing is known to be on stable storage; a frame of the first one is torn.
    auto writer = store_.writer();
    for (std::uint64_t offset = 0; offset < 8; ++offset) {
      const LogBytes log = record_at(offset);
      store_.append(writer, log);
    }
    auto lists = detail::list_segments(store_.directory(), 1);
    EXPECT_GE(lists->front().live.size(), 3U);
    const std::string first = store_.topic_path() + '/' + lists->front().live[0].text();
    const int file = ::open(first.c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_EQ(::pwrite(file, "torn", 4, 45'000), 4);
    ::close(file);
    // A file of an earlier archiver, which the last one replaces.
    const detail::SegmentName replaced{0, lists->front().live[2].base_offset, 0};
    std::ofstream{store_.topic_path() + '/' + replaced.text()} << "replaced";
  }
};

TEST_P(RecoverySteps, TheNextRecoveryEndsAtTheSamePlace) {
  // A later file says that the first one was synced: so this is damage, and nothing is cut. Without
  // those that say so, everything from there on is.
  auto lists = detail::list_segments(store_.directory(), 1);
  const std::vector<detail::SegmentName> files = lists->front().live;
  const std::string last = store_.topic_path() + '/' + files.back().text();
  if (GetParam().nth == 1) {
    for (const auto& name : {files[1], files[2]})
      std::filesystem::resize_file(store_.topic_path() + '/' + name.text(), 200);
  }
  const bool died = dies_at_step([&]() -> int {
    CHILD_CHECK_OK(detail::recover(store_.disk, store_.directory(), store_.manifest));
    return 0;
  });
  EXPECT_TRUE(died || GetParam().nth > 1) << "the step was never reached";
  store_.recover();
  const Lines once = store_.read();
  const std::uint64_t whole = GetParam().nth == 1 ? 2U : 7U;
  ASSERT_GE(once.size(), whole);
  store_.recover();
  EXPECT_EQ(store_.read(), once);
  auto writer = store_.writer();
  LogBytes more{kStepsKey + 2, 5, writer.end_offset()};
  more.record(std::to_string(writer.end_offset()));
  store_.append(writer, more);
  store_.checkpoint(writer, true);
  EXPECT_EQ(store_.read().back(), std::to_string(writer.end_offset() - 1) + ' ' +
                                      std::to_string(writer.end_offset() - 1));
}

INSTANTIATE_TEST_SUITE_P(All, RecoverySteps, ::testing::ValuesIn(cases_of(kRecoverySteps)),
                         name_of_store_case);

class CopySteps : public StoreSteps {};

// Whoever makes a backup and is killed leaves the topic as it was, and no backup.
TEST_P(CopySteps, ADeathLeavesTheTopicAndNoCopy) {
  auto writer = store_.writer();
  for (std::uint64_t offset = 0; offset < 11; ++offset) store_.append(writer, record_at(offset));
  const Lines before = store_.read();
  const auto copy = [&](bool may_link) {
    return detail::copy_store(store_.disk, store_.directory(), store_.manifest,
                              {.may_link = may_link, .is_open = true}, store_.data.get(), "copy");
  };
  const bool may_link = GetParam().step != "copy:file_copied";
  const bool died = dies_at_step([&]() -> int {
    CHILD_CHECK_OK(copy(may_link));
    return 0;
  });
  EXPECT_TRUE(died || GetParam().nth > 1) << "the step was never reached";
  EXPECT_EQ(detail::has_name(store_.data.get(), "copy"), !died);
  EXPECT_EQ(store_.read(), before);
  for (std::uint64_t offset = 11; offset < 14; ++offset) store_.append(writer, record_at(offset));
  std::filesystem::remove_all(store_.path + "/copy");
  auto copied = copy(may_link);
  ASSERT_TRUE(copied) << describe(copied.error());
  EXPECT_EQ(copied->offsets, 14U);
  store_.checkpoint(writer, true);
  expect_whole(store_, 14);
  EXPECT_FALSE(store_.check().is_damaged());
}

INSTANTIATE_TEST_SUITE_P(All, CopySteps, ::testing::ValuesIn(cases_of(kCopySteps)),
                         name_of_store_case);

}  // namespace
}  // namespace leat::testing
