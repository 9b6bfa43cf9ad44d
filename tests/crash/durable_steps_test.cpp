// A process is killed or stopped at every labelled step while it opens, keeps, closes or deletes a durable
// topic. If this failed, a crash at the wrong moment could lose records that were acknowledged, write some
// twice, or leave a topic that cannot be opened.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scenarios.hpp"
#include "support/moment.hpp"

namespace leat::testing {
namespace {

struct Case {
  std::string step;
  int nth;
  int signal;
  Durability durable = Durability::os;
};
const char* name_of(Durability durable) {
  return durable == Durability::os ? "os" : durable == Durability::interval ? "interval" : "fsync";
}
std::ostream& operator<<(std::ostream& out, const Case& one) {
  return out << one.step << ", time " << one.nth << ", " << name_of(one.durable)
             << (one.signal == SIGKILL ? ", killed" : ", stopped");
}
std::string name_of_durable_case(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.step + '_' + std::to_string(info.param.nth) + '_' +
                     name_of(info.param.durable) +
                     (info.param.signal == SIGKILL ? "_killed" : "_stopped");
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
}
std::vector<Case> durable_cases() {
  std::vector<Case> cases;
  for (const char* step : kDurableSteps) {
    for (const int nth : {1, 2})
      for (const int signal : {SIGKILL, SIGSTOP}) cases.push_back({step, nth, signal});
  }
  for (const char* step : kStoreSteps) {
    for (const int signal : {SIGKILL, SIGSTOP}) cases.push_back({step, 2, signal});
  }
  for (const int signal : {SIGKILL, SIGSTOP}) {
    for (const char* step : kSyncSteps) {
      for (const Durability durable : {Durability::interval, Durability::fsync})
        cases.push_back({step, 2, signal, durable});
    }
    for (const char* step : {"archiver:written", "archiver:announced", "archiver:handover_stored",
                             "store:frame_written", "store:file_synced"})
      cases.push_back({step, 3, signal, Durability::fsync});
  }
  return cases;
}

constexpr std::uint64_t kMostRecords = 2000;
constexpr std::uint64_t kPublishers = 3;  // The victim, one beside it, and one that comes later.

struct Notes {
  std::atomic<std::uint8_t> acknowledged[kPublishers][kMostRecords];
  std::atomic<std::uint64_t> begun[kPublishers];
};

class DurableSteps : public ::testing::TestWithParam<Case> {
 protected:
  DurableSteps() { std::filesystem::create_directories(temp_.path() + "/topics"); }

  TopicOptions options() const {
    return {.capacity_bytes = 8 * 4096,
            .segment_bytes = 4096,
            .directory = temp_.path() + "/topics",
            .durable = GetParam().durable,
            .sync_interval = GetParam().durable == Durability::interval ? 5ms : 0ms,
            .file_bytes = 64 << 10,
            .data_directory = temp_.path() + "/data"};
  }
  // While one that opens or closes it is stopped, others get `busy`.
  Result<Topic> open() const {
    for (const Deadline deadline{kPatience};;) {
      auto topic = Topic::open_or_create("d", options());
      if (topic || topic.error() != Errc::busy || deadline.passed()) return topic;
    }
  }

  // Publishes records that say whose they are. Inside its claims it has `turn`.
  int publish(std::uint64_t who, std::uint64_t count, std::mutex* turn = nullptr) {
    auto topic = open();
    CHILD_CHECK_OK(topic);
    return publish_to(*topic, who, count, turn);
  }
  int publish_to(const Topic& topic, std::uint64_t who, std::uint64_t count,
                 std::mutex* turn = nullptr) {
    auto publisher = topic.publisher();
    CHILD_CHECK_OK(publisher);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t number = notes_->begun[who]++;
      std::string text = std::to_string(who) + ' ' + std::to_string(number) + ' ';
      text.resize(text.size() + 400, 'x');
      if (number % 8 == 0) CHILD_CHECK_OK(abort_claim(*publisher, turn));
      CHILD_CHECK_OK(turn == nullptr ? publisher->publish(text, kPatience)
                                     : publish_in_turn(*publisher, text, *turn));
      notes_->acknowledged[who][number] = 1;
    }
    return 0;
  }

  // If there is room.
  static Result<std::uint64_t> abort_claim(Publisher& publisher, std::mutex* turn) {
    std::unique_lock<std::mutex> has_turn;
    if (turn != nullptr) has_turn = std::unique_lock{*turn};
    auto claim = publisher.try_claim(100);
    if (claim) return claim->abort();
    return claim.error() == Errc::full ? Result<std::uint64_t>{0} : claim.error();
  }
  // Not for topics whose publishers wait for more than room.
  static Result<std::uint64_t> publish_in_turn(Publisher& publisher, const std::string& text,
                                               std::mutex& turn) {
    for (const Deadline deadline{kPatience};;) {
      {
        const std::lock_guard has_turn{turn};
        auto published = publisher.publish(text, Deadline::immediate());
        if (published || published.error() != Errc::full || deadline.passed()) return published;
      }
      ::usleep(100);
    }
  }

  // Numbers of records leave out none of these.
  static void expect_no_gap_at(const Topic& topic, const std::vector<std::uint64_t>& records) {
    const TopicInfo info = topic.info();
    for (const OffsetRange& gap : info.partitions[0].gaps) {
      const auto first = std::ranges::lower_bound(records, gap.begin);
      EXPECT_TRUE(first == records.end() || *first >= gap.end) << gap.begin << ' ' << *first;
    }
  }

  // Everything acknowledged is there once, in order; offsets have no holes.
  void expect_all() {
    auto topic = open();
    ASSERT_TRUE(topic) << describe(topic.error());
    auto subscriber = topic->subscriber({.from = From::beginning});
    ASSERT_TRUE(subscriber) << describe(subscriber.error());
    std::uint64_t next = topic->info().partitions[0].start;
    std::uint64_t seen[kPublishers] = {};
    std::vector<std::vector<bool>> there(kPublishers, std::vector<bool>(kMostRecords));
    std::vector<std::uint64_t> offsets;
    subscriber->on_event([&](const Event& event) {
      EXPECT_EQ(event.first, next);
      EXPECT_TRUE(event.reason == GapReason::died || event.reason == GapReason::lost ||
                  event.reason == GapReason::aborted)
          << name_of(event.reason) << ' ' << event.first << '+' << event.count;
      next = event.first + event.count;
    });
    const std::uint64_t end = topic->info().partitions[0].end;
    while (next < end) {
      auto polled = subscriber->poll(1000, [&](const Record& record) {
        EXPECT_EQ(record.offset, next);
        next = record.offset + 1;
        offsets.push_back(record.offset);
        const std::uint64_t who = std::stoull(std::string{record.text()});
        const std::uint64_t number = std::stoull(std::string{record.text().substr(2)});
        ASSERT_TRUE(who < kPublishers && number < kMostRecords);
        EXPECT_GE(number, seen[who]) << "twice, or out of order";
        seen[who] = number + 1;
        there[who][number] = true;
      });
      ASSERT_TRUE(polled) << describe(polled.error());
    }
    for (std::uint64_t who = 0; who < kPublishers; ++who) {
      for (std::uint64_t i = 0; i < notes_->begun[who]; ++i) {
        if (notes_->acknowledged[who][i] != 0) {
          EXPECT_TRUE(there[who][i]) << "missing: " << who << ' ' << i;
        }
      }
    }
    expect_no_gap_at(*topic, offsets);
  }

  TemporaryDirectory temp_;
  Shared<Notes> notes_;
};

TEST_P(DurableSteps, NothingAcknowledgedIsLostAndOthersGoOn) {
  { ASSERT_TRUE(open()); }
  const int signal = GetParam().signal;
  Child beside{[&] { return publish(1, 300); }};
  Child victim{[&]() -> int {
    arm({GetParam().step, GetParam().nth, signal});
    // Opens and closes it several times, so that it is sometimes the last, and sometimes not.
    for (int turn = 0; turn < 6; ++turn) {
      if (const int status = publish(0, 100); status != 0) return status;
    }
    return 0;
  }};
  victim.wait();
  const bool is_stopped = victim.poll() == Child::State::stopped;
  // Others go on, unless it was stopped while it was alone with the files: then they wait for it.
  const auto expect_end = [&](Child& other) {
    if (other.wait(is_stopped ? 2s : kPatience) == Child::State::late && is_stopped) victim.go_on();
    EXPECT_NE(other.wait(2 * kPatience), Child::State::late) << other.describe();
    EXPECT_TRUE(other.succeeded()) << other.describe();
  };
  expect_end(beside);
  Child later{[&] { return publish(2, 300); }};
  expect_end(later);
  if (is_stopped) victim.go_on();
  EXPECT_NE(victim.wait(2 * kPatience), Child::State::late) << victim.describe();
  EXPECT_TRUE(victim.succeeded() || signal == SIGKILL) << victim.describe();
  expect_all();
}

INSTANTIATE_TEST_SUITE_P(All, DurableSteps, ::testing::ValuesIn(durable_cases()),
                         name_of_durable_case);

// Whoever opens a topic whose window was lost recovers it, and may die meanwhile.
class DurableOpening : public DurableSteps {};

TEST_P(DurableOpening, TheNextOneOpensIt) {
  Child first{[&]() -> int {
    if (const int status = publish(0, 200); status != 0) return status;
    ::kill(::getpid(), SIGKILL);
    return 0;
  }};
  first.wait();
  std::filesystem::remove_all(options().directory + "/d");
  Child victim{[&]() -> int {
    arm({GetParam().step, GetParam().nth, GetParam().signal});
    return publish(1, 10);
  }};
  victim.wait();
  EXPECT_TRUE(victim.was_killed()) << victim.describe();
  Child later{[&] { return publish(2, 10); }};
  later.wait();
  EXPECT_TRUE(later.succeeded()) << later.describe();
  expect_all();
}

INSTANTIATE_TEST_SUITE_P(All, DurableOpening,
                         ::testing::Values(Case{"open:recovered", 1, SIGKILL},
                                           Case{"open:window_named", 1, SIGKILL},
                                           Case{"open:window_made", 1, SIGKILL},
                                           Case{"recovery:partitions_cut", 1, SIGKILL}),
                         name_of_durable_case);

// The process that takes over from a dead archiver may die, or be stopped, before it has written anything.
class DurableTakeover : public DurableSteps {
 protected:
  static bool is_behind(const Topic& topic) {
    const PartitionInfo partition = topic.info().partitions[0];
    return partition.written < partition.end;
  }
};

TEST_P(DurableTakeover, TheNextOneTakesOver) {
  { ASSERT_TRUE(open()); }
  Child first{[&] {
    arm({"archiver:announced", 5, SIGKILL});
    return publish(0, 200);
  }};
  first.wait();
  EXPECT_TRUE(first.was_killed()) << first.describe();
  Child victim{[&]() -> int {
    // Others get `busy` while it is stopped in the middle of opening or closing the topic.
    std::mutex turn;
    std::unique_lock opens{turn};
    arm({GetParam().step, GetParam().nth, GetParam().signal, &turn});
    auto topic = open();
    opens.unlock();
    CHILD_CHECK_OK(topic);
    const int status = publish_to(*topic, 1, 10);
    // Until its archiver has taken over.
    for (const Deadline deadline{kPatience}; is_behind(*topic) && !deadline.passed();)
      ::usleep(100);
    return status;
  }};
  victim.wait();
  EXPECT_TRUE(victim.was_killed() || victim.poll() == Child::State::stopped) << victim.describe();
  Child later{[&] { return publish(2, 200); }};
  later.wait(2 * kPatience);
  EXPECT_TRUE(later.succeeded()) << later.describe();
  if (GetParam().signal == SIGSTOP) victim.go_on();
  EXPECT_NE(victim.wait(2 * kPatience), Child::State::late) << victim.describe();
  expect_all();
}

std::vector<Case> takeover_cases() {
  std::vector<Case> cases;
  for (const Durability durable : {Durability::os, Durability::interval, Durability::fsync})
    for (const int signal : {SIGKILL, SIGSTOP})
      for (const char* step : kTakeoverSteps) cases.push_back({step, 1, signal, durable});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(All, DurableTakeover, ::testing::ValuesIn(takeover_cases()),
                         name_of_durable_case);

// An archiver dies when something is durable, before it has woken anybody: the threads that wait for it go
// on, although nothing more happens.
class DurableWaiting : public DurableSteps {};

TEST_P(DurableWaiting, WhoWaitsForASyncGoesOn) {
  { ASSERT_TRUE(open()); }
  Child archiver{[&]() -> int {
    arm({GetParam().step, GetParam().nth, GetParam().signal});
    auto topic = open();
    CHILD_CHECK_OK(topic);
    auto publisher = topic->publisher();
    CHILD_CHECK_OK(publisher->publish("first"));
    notes_->begun[0] = 1;
    for (;;) ::pause();
  }};
  while (notes_->begun[0] == 0) ::usleep(1000);
  Child subscriber{[&]() -> int {
    auto topic = open();
    CHILD_CHECK_OK(topic);
    auto reads = topic->subscriber({.from = From::offset(1)});
    CHILD_CHECK_OK(reads);
    notes_->begun[1] = 1;
    CHILD_CHECK_OK(reads->receive(kPatience));
    return 0;
  }};
  while (notes_->begun[1] == 0) ::usleep(1000);
  ::usleep(20'000);  // It sleeps.
  Child publisher{[&]() -> int {
    auto topic = open();
    CHILD_CHECK_OK(topic);
    auto publishes = topic->publisher();
    CHILD_CHECK_OK(publishes->publish("second"));
    return 0;
  }};
  EXPECT_NE(archiver.wait(), Child::State::late);
  EXPECT_TRUE(archiver.was_killed()) << archiver.describe();
  for (Child* one : {&publisher, &subscriber}) {
    EXPECT_NE(one->wait(5s), Child::State::late);
    EXPECT_TRUE(one->succeeded()) << one->describe();
  }
}

INSTANTIATE_TEST_SUITE_P(All, DurableWaiting,
                         ::testing::Values(Case{kSyncSteps[1], 2, SIGKILL, Durability::fsync}),
                         name_of_durable_case);

// While old files are deleted: what is left is whole, and everything newer is there.
class DurableExpiry : public DurableSteps {};

TEST_P(DurableExpiry, LeavesWhatIsNewer) {
  TopicOptions wanted = options();
  wanted.retention_bytes = 64 << 10;
  { ASSERT_TRUE(Topic::create("d", wanted)); }
  // The victim's archiver thread is never stopped while another of its threads has an open claim: that would
  // rightly hold up all publishers.
  Child victim{[&] {
    static std::mutex stopping;
    std::mutex* const turn = GetParam().signal == SIGSTOP ? &stopping : nullptr;
    arm({GetParam().step, GetParam().nth, GetParam().signal, turn});
    return publish(0, 1000, turn);
  }};
  victim.wait();
  EXPECT_TRUE(victim.was_killed() || victim.poll() == Child::State::stopped) << victim.describe();
  Child later{[&] { return publish(2, 1000); }};
  later.wait(2 * kPatience);
  EXPECT_TRUE(later.succeeded()) << later.describe();
  if (GetParam().signal == SIGSTOP) victim.go_on();
  EXPECT_NE(victim.wait(2 * kPatience), Child::State::late) << victim.describe();
  auto topic = open();
  ASSERT_TRUE(topic) << describe(topic.error());
  const PartitionInfo partition = topic->info().partitions[0];
  EXPECT_GT(partition.start, 0U);
  auto subscriber = topic->subscriber({.from = From::beginning});
  ASSERT_TRUE(subscriber);
  std::uint64_t next = partition.start;
  std::string last;
  subscriber->on_event([&](const Event& event) {
    EXPECT_EQ(event.first, next);
    EXPECT_TRUE(event.reason == GapReason::died || event.reason == GapReason::aborted)
        << name_of(event.reason);
    next = event.first + event.count;
  });
  std::vector<std::uint64_t> offsets;
  while (next < partition.end) {
    auto polled = subscriber->poll(1000, [&](const Record& record) {
      EXPECT_EQ(record.offset, next);
      next = record.offset + 1;
      offsets.push_back(record.offset);
      if (record.text().starts_with("2 ")) last = record.text();
    });
    ASSERT_TRUE(polled) << describe(polled.error());
  }
  expect_no_gap_at(*topic, offsets);
  // Who was stopped has published behind it since.
  if (GetParam().signal == SIGKILL) {
    EXPECT_TRUE(last.starts_with("2 999 ")) << last.substr(0, 10);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, DurableExpiry,
    ::testing::Values(Case{kExpirySteps[0], 1, SIGKILL}, Case{kExpirySteps[0], 2, SIGKILL},
                      Case{kExpirySteps[0], 2, SIGSTOP}, Case{kExpirySteps[1], 1, SIGKILL},
                      Case{kExpirySteps[1], 3, SIGKILL}, Case{kExpirySteps[1], 2, SIGSTOP},
                      Case{kExpirySteps[2], 1, SIGKILL}, Case{kExpirySteps[2], 2, SIGKILL},
                      Case{kExpirySteps[2], 2, SIGSTOP}),
    name_of_durable_case);

class DurableDeletion : public DurableSteps {
 protected:
  bool has_window() const {
    return GetParam().step == "delete:files_chosen" || GetParam().step == "delete:files_looked_at";
  }
  // A topic that is open in this process, if the step is one with memory to delete.
  std::optional<Topic> made() const {
    auto topic = open();
    EXPECT_TRUE(topic) << describe(topic.error());
    return topic && has_window() ? std::optional{std::move(*topic)} : std::nullopt;
  }
  Result<void> delete_topic() const {
    return Topic::delete_topic("d", {.force = has_window(),
                                     .directory = options().directory,
                                     .data_directory = options().data_directory});
  }
};
INSTANTIATE_TEST_SUITE_P(All, DurableDeletion,
                         ::testing::Values(Case{kDeleteFilesSteps[0], 1, SIGKILL},
                                           Case{kDeleteFilesSteps[1], 1, SIGKILL},
                                           Case{kDeleteFilesSteps[2], 1, SIGKILL},
                                           Case{kDeleteFilesSteps[3], 1, SIGKILL}),
                         name_of_durable_case);

TEST_P(DurableDeletion, ADeathLeavesTheNameFree) {
  { ASSERT_TRUE(open()); }
  Child victim{[&]() -> int {
    arm({GetParam().step, 1, SIGKILL});  // Before the archiver's thread starts.
    const auto topic = made();
    (void)delete_topic();
    return 0;
  }};
  victim.wait();
  EXPECT_TRUE(victim.was_killed()) << victim.describe();
  EXPECT_EQ(delete_topic().error(),
            GetParam().step == "delete:files_renamed" ? Errc::not_found : Errc::ok);
  auto topic = Topic::create("d", options());
  EXPECT_TRUE(topic) << describe(topic.error());
}

// Whoever stopped for so long that another process deleted the topic does not delete the next one of that name while
// that is in use.
TEST_P(DurableDeletion, OnlyTheTopicThatWasLookedAtIsDeleted) {
  std::optional<Topic> first;
  std::optional<Topic> next;
  std::optional<Publisher> publisher;
  bool was_there = false;
  const Moment moment{GetParam().step, [&] {
                        if (std::exchange(was_there, true)) return;
                        (void)delete_topic();
                        first.reset();
                        auto topic = Topic::create("d", options());
                        ASSERT_TRUE(topic) << describe(topic.error());
                        next = std::move(*topic);
                        auto made = next->publisher();
                        ASSERT_TRUE(made) << describe(made.error());
                        publisher = std::move(*made);
                        EXPECT_TRUE(publisher->publish("0", kPatience));
                      }};
  first = made();
  (void)delete_topic();
  ASSERT_TRUE(publisher);
  EXPECT_TRUE(publisher->publish("1", kPatience));
  publisher.reset();
  next.reset();
  auto again =
      Topic::open("d", Deadline::immediate(), options().directory, {}, options().data_directory);
  ASSERT_TRUE(again) << describe(again.error());
  EXPECT_EQ(again->info().partitions[0].end, 2U);
}

}  // namespace
}  // namespace leat::testing
