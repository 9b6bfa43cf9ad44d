// Durable topics: records come back from disk, whoever dies, and whoever falls behind reads them there.
// If these failed, a restart would lose records, or a slow subscriber would stop the publishers.
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "leat/leat.hpp"
#include "leat/store/data_lock.hpp"
#include "support/process.hpp"

namespace leat::testing {
namespace {

class Durable : public ::testing::Test {
 protected:
  Durable() {
    std::filesystem::create_directories(topics());
    std::filesystem::create_directories(data());
  }
  std::string topics() const { return temp_.path() + "/topics"; }
  std::string data() const { return temp_.path() + "/data"; }
  // A window of 64 KiB in segments of 8 KiB.
  TopicOptions options() const {
    return {.capacity_bytes = 64 << 10,
            .segment_bytes = 8 << 10,
            .directory = topics(),
            .durable = Durability::os,
            .file_bytes = 256 << 10,
            .data_directory = data()};
  }
  Result<Topic> open() const {
    return Topic::open("d", Deadline::immediate(), topics(), {}, data());
  }
  Topic must_create() const { return must_create(options()); }
  Topic must_create(const TopicOptions& wanted) const {
    auto topic = Topic::create("d", wanted);
    EXPECT_TRUE(topic) << describe(topic.error());
    return std::move(*topic);
  }
  static void publish(const Topic& topic, std::uint64_t from, std::uint64_t to,
                      std::size_t size = 0) {
    auto publisher = topic.publisher();
    ASSERT_TRUE(publisher);
    for (std::uint64_t i = from; i < to; ++i) {
      std::string text = std::to_string(i) + ' ';
      text.resize(std::max(size, text.size()), 'x');
      auto published = publisher->publish(text, kPatience);
      ASSERT_TRUE(published) << describe(published.error());
      ASSERT_EQ(*published, i);
    }
  }
  // Reads up to the end; "17" for record 17, "gap 3+4 lost".
  static std::vector<std::string> read(const Topic& topic, From from = From::beginning,
                                       std::optional<std::uint32_t> partition = {}) {
    std::vector<std::string> lines;
    auto subscriber = topic.subscriber({.from = from, .partition = partition});
    EXPECT_TRUE(subscriber) << describe(subscriber.error());
    if (!subscriber) return lines;
    subscriber->on_event([&](const Event& event) {
      lines.push_back("gap " + std::to_string(event.first) + '+' + std::to_string(event.count) +
                      ' ' + name_of(event.reason));
    });
    const std::uint32_t which = partition.value_or(0);
    while (subscriber->offset(which) < topic.info().partitions[which].end) {
      auto polled = subscriber->poll(100, [&](const Record& record) {
        lines.emplace_back(record.text().substr(0, record.text().find(' ')));
      });
      EXPECT_TRUE(polled) << describe(polled.error());
      if (!polled) break;
    }
    return lines;
  }
  static std::vector<std::string> numbers(std::uint64_t from, std::uint64_t to) {
    std::vector<std::string> lines;
    for (std::uint64_t i = from; i < to; ++i) lines.push_back(std::to_string(i));
    return lines;
  }
  bool has_window() const { return std::filesystem::exists(topics() + "/d"); }
  std::size_t segment_files() const {
    std::size_t count = 0;
    for (const auto& one : std::filesystem::directory_iterator{data() + "/d"})
      count += one.path().filename().string().starts_with("segment-") ? 1U : 0U;
    return count;
  }

  TemporaryDirectory temp_;
};

TEST_F(Durable, RecordsComeBackAfterClosingInOneFile) {
  { publish(must_create(), 0, 10); }
  EXPECT_FALSE(has_window());
  for (std::uint64_t i = 1; i < 5; ++i) {
    auto topic = open();
    ASSERT_TRUE(topic) << describe(topic.error());
    publish(*topic, 10 * i, 10 * i + 10);
    EXPECT_EQ(read(*topic), numbers(0, 10 * i + 10));
  }
  EXPECT_EQ(segment_files(), 1U);
}

TEST_F(Durable, LastToCloseDeletesTheWindow) {
  auto one = must_create();
  auto other = open();
  ASSERT_TRUE(other);
  { Topic closed = std::move(one); }
  EXPECT_TRUE(has_window());
  publish(*other, 0, 3);
  { Topic closed = std::move(*other); }
  EXPECT_FALSE(has_window());
  auto again = open();
  ASSERT_TRUE(again);
  EXPECT_EQ(read(*again), numbers(0, 3));
}

// Times on disk and in memory, and after what is there.
TEST_F(Durable, SubscribersBeginAtATime) {
  TopicOptions wanted = options();
  wanted.timestamps = true;
  const Topic topic = must_create(wanted);
  std::vector<std::int64_t> began;
  for (std::uint64_t i = 0; i < 5; ++i) {
    began.push_back(detail::wall_clock_ms());
    publish(topic, 100 * i, 100 * i + 100, 500);
    std::this_thread::sleep_for(5ms);
  }
  for (std::uint64_t i = 0; i < 5; ++i) {
    auto subscriber = topic.subscriber({.from = From::time_ms(began[i])});
    ASSERT_TRUE(subscriber) << describe(subscriber.error());
    EXPECT_EQ(subscriber->receive(kPatience)->offset, 100 * i);
  }
  auto later = topic.subscriber({.from = From::time_ms(detail::wall_clock_ms())});
  ASSERT_TRUE(later);
  EXPECT_EQ(later->receive(10ms).error(), Errc::timeout);
  publish(topic, 500, 501);
  EXPECT_EQ(later->receive(kPatience)->offset, 500U);
  // Also if the clock of the publisher is behind.
  const std::int64_t ahead = detail::wall_clock_ms() + 3'600'000;
  auto live = topic.subscriber({.from = From::time_ms(ahead)});
  ASSERT_TRUE(live);
  EXPECT_EQ(live->receive(10ms).error(), Errc::timeout);
  publish(topic, 501, 502);
  EXPECT_EQ(live->receive(kPatience)->offset, 501U);
}

TEST_F(Durable, SubscriberReadsFromDiskWhatIsNoLongerInMemory) {
  const Topic topic = must_create();
  auto behind = topic.subscriber({.from = From::beginning});
  ASSERT_TRUE(behind);
  publish(topic, 0, 20'000, 100);
  EXPECT_GT(segment_files(), 3U);
  std::uint64_t next = 0;
  while (next < 20'000) {
    auto polled = behind->poll(100, [&](const Record& record) {
      EXPECT_EQ(record.offset, next);
      EXPECT_TRUE(record.text().starts_with(std::to_string(next) + ' '));
      ++next;
    });
    ASSERT_TRUE(polled) << describe(polled.error());
  }
  EXPECT_EQ(read(topic), numbers(0, 20'000));
}

// A process that has no descriptor left now and then: nothing is lost, and nothing comes twice.
TEST_F(Durable, ASubscriberGoesOnWhenItHasDescriptorsAgain) {
  constexpr std::uint64_t kMany = 20'000;
  { publish(must_create(), 0, kMany / 2, 100); }
  Child reads{[&]() -> int {
    auto mine = open();
    CHILD_CHECK_OK(mine);
    auto subscriber = mine->subscriber({.from = From::beginning});
    CHILD_CHECK_OK(subscriber);
    ::rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    ::rlimit none = limit;
    none.rlim_cur = 3;
    std::uint64_t next = 0;
    std::uint64_t failed = 0;
    bool may_open = false;  // After each failure, for one poll: so each file fails once.
    while (next < kMany) {
      if (!may_open) ::setrlimit(RLIMIT_NOFILE, &none);
      auto polled = subscriber->poll(50, [&](const Record& record) {
        if (record.offset != next) ::_exit(2);
        ++next;
      });
      ::setrlimit(RLIMIT_NOFILE, &limit);
      may_open = !polled;
      if (polled) continue;
      if (polled.error().system_error != EMFILE) return 3;
      ++failed;
    }
    return failed > 3 ? 0 : 4;
  }};
  {
    auto topic = open();
    ASSERT_TRUE(topic) << describe(topic.error());
    auto publisher = topic->publisher();
    ASSERT_TRUE(publisher);
    const Deadline deadline{kPatience};
    for (std::uint64_t i = kMany / 2; i < kMany;) {
      auto published = publisher->publish(std::to_string(i) + ' ' + std::string(90, 'x'));
      if (published) {
        ++i;
      } else {  // The other process is the archiver, and has no descriptor now.
        ASSERT_TRUE(published.error() == Errc::no_space && !deadline.passed())
            << describe(published.error());
        std::this_thread::sleep_for(1ms);
      }
    }
  }
  reads.wait();
  EXPECT_TRUE(reads.succeeded()) << reads.describe();
}

TEST_F(Durable, SubscriberBeginsAnywhere) {
  const Topic topic = must_create();
  publish(topic, 0, 5000, 60);
  for (const std::uint64_t from : {0U, 1U, 999U, 2500U, 4990U, 4999U}) {
    EXPECT_EQ(read(topic, From::offset(from)), numbers(from, 5000)) << from;
    EXPECT_EQ(read(topic, From::last(5000 - from)), numbers(from, 5000)) << from;
  }
  EXPECT_EQ(read(topic, From::end), std::vector<std::string>{});
}

TEST_F(Durable, SubscriberBeginsAtATime) {
  TopicOptions timed = options();
  timed.timestamps = true;
  const Topic topic = must_create(timed);
  publish(topic, 0, 3000, 60);
  const std::int64_t middle = detail::wall_clock_ms() + 5;
  ASSERT_TRUE(eventually([&] { return detail::wall_clock_ms() > middle; }));
  publish(topic, 3000, 6000, 60);
  EXPECT_EQ(read(topic, From::time_ms(middle)), numbers(3000, 6000));
}

TEST_F(Durable, EveryPartitionIsKept) {
  TopicOptions several = options();
  several.partitions = 3;
  {
    const Topic topic = must_create(several);
    for (std::uint32_t i = 0; i < 3; ++i) {
      auto publisher = topic.publisher({.partition = i});
      for (int k = 0; k < 2000; ++k) ASSERT_TRUE(publisher->publish(std::to_string(k) + " text"));
    }
  }
  auto topic = open();
  ASSERT_TRUE(topic);
  for (std::uint32_t i = 0; i < 3; ++i)
    EXPECT_EQ(read(*topic, From::beginning, i), numbers(0, 2000));
}

TEST_F(Durable, BatchesAndAbortedClaimsAreKept) {
  {
    const Topic topic = must_create();
    auto publisher = topic.publisher();
    auto batch = publisher->batch();
    for (const char* text : {"0", "1", "2"}) ASSERT_TRUE(batch->add(text));
    ASSERT_TRUE(batch->commit());
    { auto dropped = publisher->try_claim(100); }
    ASSERT_TRUE(publisher->publish("4"));
  }
  auto topic = open();
  ASSERT_TRUE(topic);
  EXPECT_EQ(read(*topic), (std::vector<std::string>{"0", "1", "2", "gap 3+1 aborted", "4"}));
}

TEST_F(Durable, SurvivesTheDeathOfAllProcesses) {
  Child child{[&]() -> int {
    const Topic topic = must_create();
    publish(topic, 0, 1000);
    ::kill(::getpid(), SIGKILL);
    return 0;
  }};
  child.wait();
  ASSERT_TRUE(child.was_killed()) << child.describe();
  auto topic = open();
  ASSERT_TRUE(topic) << describe(topic.error());
  EXPECT_EQ(read(*topic), numbers(0, 1000));
}

// What a reboot does to a topic that was written 10 ms before.
TEST_F(Durable, SurvivesTheLossOfItsWindow) {
  Child child{[&]() -> int {
    const Topic topic = must_create();
    publish(topic, 0, 1000);
    CHILD_CHECK(eventually([&] { return topic.info().partitions[0].written == 1000; }));
    ::kill(::getpid(), SIGKILL);
    return 0;
  }};
  child.wait();
  ASSERT_TRUE(child.was_killed()) << child.describe();
  std::filesystem::remove_all(topics() + "/d");
  auto topic = open();
  ASSERT_TRUE(topic) << describe(topic.error());
  auto lines = read(*topic);
  ASSERT_FALSE(lines.empty());
  const std::string gap = lines.back();  // The offsets that others could have taken before.
  EXPECT_TRUE(gap.starts_with("gap 1000+") && gap.ends_with(" lost")) << gap;
  lines.pop_back();
  EXPECT_EQ(lines, numbers(0, 1000));
}

TEST_F(Durable, ANameIsTakenByEitherDirectory) {
  {
    const Topic topic = must_create();
    EXPECT_EQ(Topic::create("d", options()).error().code, Errc::exists);
  }
  EXPECT_EQ(Topic::create("d", options()).error().code, Errc::exists);
  EXPECT_EQ(Topic::create("d", {.directory = topics(), .data_directory = data()}).error().code,
            Errc::exists);
  ASSERT_TRUE(Topic::create("memory", {.directory = topics(), .data_directory = data()}));
  TopicOptions wanted = options();
  EXPECT_EQ(Topic::create("memory", wanted).error().code, Errc::exists);
  auto names = Topic::list(topics(), data());
  ASSERT_TRUE(names);
  EXPECT_EQ(*names, (std::vector<std::string>{"d", "memory"}));
}

TEST_F(Durable, DeletingTakesTheFilesToo) {
  { const Topic topic = must_create(); }
  const DeleteOptions here{.directory = topics(), .data_directory = data()};
  ASSERT_TRUE(Topic::delete_topic("d", here));
  EXPECT_EQ(open().error().code, Errc::not_found);
  EXPECT_EQ(Topic::delete_topic("d", here).error().code, Errc::not_found);
  {
    const Topic topic = must_create();
    auto publisher = topic.publisher();
    EXPECT_EQ(Topic::delete_topic("d", here).error().code, Errc::busy);
    ASSERT_TRUE(publisher->publish("x"));
    DeleteOptions forced = here;
    forced.force = true;
    ASSERT_TRUE(Topic::delete_topic("d", forced));
    EXPECT_EQ(publisher->publish("y").error().code, Errc::deleted);
  }
  EXPECT_TRUE(std::filesystem::is_empty(data()));
  EXPECT_FALSE(has_window());
}

// The archiver may be writing just then: if it finds no files, that is not a failure of the disk.
TEST_F(Durable, PublishersLearnOfADeletionWhateverTheArchiverDoes) {
  for (int i = 0; i < 200; ++i) {
    const Topic topic = must_create();
    auto publisher = topic.publisher();
    ASSERT_TRUE(publisher->publish("x"));
    const DeleteOptions forced{.force = true, .directory = topics(), .data_directory = data()};
    ASSERT_TRUE(Topic::delete_topic("d", forced)) << i;
    for (int more = 0; more < 20; ++more) {
      ASSERT_EQ(publisher->publish("y").error().code, Errc::deleted) << i;
      if (i % 8 == 0) ::usleep(100);
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(data()));
}

// Locks a topic for 0.2 s, as somebody who opens or closes it.
std::jthread lock_for_a_moment(const std::string& path) {
  auto directory = detail::open_directory_path(path, false, false);
  auto lock =
      std::make_shared<detail::LockFile>(std::move(*detail::open_data_lock(directory->get())));
  EXPECT_TRUE(*lock->try_lock(detail::kAttachLock));
  return std::jthread{[lock] {
    std::this_thread::sleep_for(200ms);
    lock->close();
  }};
}

TEST_F(Durable, DeletingWaitsForWhoeverOpensOrCloses) {
  (void)must_create();
  const std::jthread opener = lock_for_a_moment(data() + "/d");
  const DeleteOptions forced{.force = true, .directory = topics(), .data_directory = data()};
  EXPECT_EQ(Topic::delete_topic("d", forced).error(), Errc::ok);
  EXPECT_TRUE(std::filesystem::is_empty(data()));
}

TEST_F(Durable, OneOfTwoDeletionsAtOnceFindsNothing) {
  const DeleteOptions here{.directory = topics(), .data_directory = data()};
  for (int i = 0; i < 100; ++i) {
    {
      const Topic topic = must_create();
    }
    Errc other = Errc::ok;
    std::thread second{[&] { other = Topic::delete_topic("d", here).error().code; }};
    const Errc own = Topic::delete_topic("d", here).error().code;
    second.join();
    EXPECT_TRUE((own == Errc::ok && other == Errc::not_found) ||
                (own == Errc::not_found && other == Errc::ok))
        << i << ": " << describe(Error{own}) << ", " << describe(Error{other});
  }
  EXPECT_TRUE(std::filesystem::is_empty(data()));
}

// A process of the same LEAT_DIR recovers it: what the manifest names is an earlier directory still.
TEST_F(Durable, OpeningAndDeletingWaitForARecoveryAfterAMove) {
  (void)must_create();
  const std::string moved = temp_.path() + "/moved";
  std::filesystem::create_directories(moved);
  const auto open_moved = [&] {
    return Topic::open("d", Deadline::immediate(), moved, {}, data()).error();
  };
  const auto delete_moved = [&] {
    return Topic::delete_topic("d", {.directory = moved, .data_directory = data()}).error();
  };
  for (const auto& call :
       {std::function<Error()>{open_moved}, std::function<Error()>{delete_moved}}) {
    ASSERT_TRUE(open());  // So that the manifest names the other directory.
    const std::jthread opener = lock_for_a_moment(data() + "/d");
    EXPECT_EQ(call(), Errc::ok);
  }
}

// What an earlier run left in another directory is not the topic.
TEST_F(Durable, DeletingAnOldWindowLeavesTheFilesAlone) {
  const std::string other = temp_.path() + "/other";
  std::filesystem::create_directories(other);
  Child dies{[&]() -> int {
    publish(must_create(), 0, 10);
    auto topic = open();
    CHILD_CHECK_OK(topic);
    publish(*topic, 10, 20);
    ::kill(::getpid(), SIGKILL);
    return 0;
  }};
  dies.wait();
  std::filesystem::copy(topics() + "/d", other + "/d", std::filesystem::copy_options::recursive);
  std::filesystem::remove_all(topics() + "/d");
  {
    auto topic = open();
    ASSERT_TRUE(topic) << describe(topic.error());
    EXPECT_TRUE(Topic::delete_topic("d", {.directory = other, .data_directory = data()}));
    EXPECT_FALSE(std::filesystem::exists(other + "/d"));
    EXPECT_GT(segment_files(), 0U);
    EXPECT_TRUE(topic->publisher()->publish("x"));
  }
  EXPECT_TRUE(open());
}

TEST_F(Durable, ASecondDirectoryOfTopicsIsBusy) {
  const Topic topic = must_create();
  const std::string other = temp_.path() + "/other";
  std::filesystem::create_directories(other);
  EXPECT_EQ(Topic::open("d", Deadline::immediate(), other, {}, data()).error().code, Errc::busy);
  for (const bool force : {false, true})
    EXPECT_EQ(
        Topic::delete_topic("d", {.force = force, .directory = other, .data_directory = data()})
            .error(),
        Errc::busy);
}

TEST_F(Durable, WhatMakesNoSenseIsRefused) {
  for (int i = 0; i < 5; ++i) {
    TopicOptions wrong = options();
    if (i == 0) wrong.policy = Policy::overwrite;
    if (i == 1) wrong.policy = Policy::grow;
    if (i == 2) wrong.retain_all = true;
    if (i == 3) wrong.evict_after = std::chrono::seconds{1};
    if (i == 4) wrong.delete_when_unused = true;
    EXPECT_EQ(Topic::create("d", wrong).error().code, Errc::not_with_durable) << i;
  }
  const Topic topic = must_create();
  EXPECT_EQ(topic.subscriber({.gating = false, .in_place = true}).error().code,
            Errc::not_with_durable);
}

TEST_F(Durable, InfoTellsWhatIsWritten) {
  const Topic topic = must_create();
  publish(topic, 0, 5000, 100);
  ASSERT_TRUE(eventually([&] { return topic.info().partitions[0].written == 5000; }));
  const TopicInfo info = topic.info();
  ASSERT_TRUE(info.durable);
  EXPECT_EQ(info.durable->directory, std::filesystem::canonical(data() + "/d").string());
  EXPECT_EQ(info.durable->file_bytes, 256U << 10);
  EXPECT_GT(info.durable->disk_bytes, 500'000U);
  EXPECT_EQ(info.durable->archiver_pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(info.durable->state, Errc::ok);
  EXPECT_EQ(info.partitions[0].start, 0U);
}

// A small file system of its own, so that it can be full.
TEST_F(Durable, AFullDiskIsAnnouncedAtOnceAndPublishingGoesOn) {
  ASSERT_EQ(::mount("tmpfs", data().c_str(), "tmpfs", 0, "size=1m"), 0) << "needs root";
  {
    const Topic topic = must_create();
    auto publisher = topic.publisher();
    const std::string filler = data() + "/filler";
    { std::ofstream{filler} << std::string(500'000, 'x'); }
    Errc code = Errc::ok;
    std::uint64_t published = 0;
    const std::string text(1000, 'x');
    while (code == Errc::ok && published < 10'000) {
      code = publisher->publish(text, kPatience).error().code;
      if (code == Errc::ok) ++published;
    }
    EXPECT_EQ(code, Errc::no_space);
    EXPECT_EQ(topic.info().durable->state, Errc::no_space);
    auto subscriber = topic.subscriber({.from = From::beginning});
    std::uint64_t seen = 0;
    while (seen < published) {
      auto polled = subscriber->poll(100, [&](const Record&) { ++seen; });
      ASSERT_TRUE(polled) << describe(polled.error());
    }
    std::filesystem::remove(filler);
    EXPECT_TRUE(eventually([&] { return publisher->publish(text, 1ms).has_value(); }));
  }
  { EXPECT_TRUE(open()); }
  ::umount2(data().c_str(), MNT_DETACH);
}

// Whoever may publish to a topic also keeps it, in files that another user has made.
TEST_F(Durable, AnotherUserKeepsATopicThatIsForAll) {
  if (::geteuid() != 0) GTEST_SKIP() << "being another user needs root";
  for (const char* group : {"", "nogroup"}) {
    for (const std::string& path : {temp_.path(), topics(), data()})
      std::filesystem::permissions(path, std::filesystem::perms::all);
    TopicOptions wanted = options();
    wanted.mode = 0666;
    wanted.file_group = group;
    wanted.durable = Durability::fsync;
    wanted.file_bytes = 64 << 10;
    Shared<std::atomic<int>> stage;
    const auto wait_for = [&](int wanted_stage) {
      for (const Deadline deadline{kPatience}; *stage != wanted_stage && !deadline.passed();)
        ::usleep(1000);
    };
    Child other{[&]() -> int {
      if (::setgroups(0, nullptr) != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0) return 2;
      wait_for(1);
      auto mine = open();
      CHILD_CHECK_OK(mine);
      *stage = 2;
      wait_for(3);
      publish(*mine, 100, 1000, 500);
      return HasFailure() ? 3 : 0;
    }};
    {
      const Topic topic = must_create(wanted);
      publish(topic, 0, 100, 500);
      *stage = 1;
      wait_for(2);
    }
    *stage = 3;
    other.wait();
    EXPECT_TRUE(other.succeeded()) << group << ' ' << other.describe();
    auto again = open();
    ASSERT_TRUE(again) << describe(again.error());
    EXPECT_EQ(read(*again), numbers(0, 1000));
    again = Errc::not_found;
    EXPECT_TRUE(Topic::delete_topic("d", {.directory = topics(), .data_directory = data()}));
  }
}

}  // namespace
}  // namespace leat::testing
