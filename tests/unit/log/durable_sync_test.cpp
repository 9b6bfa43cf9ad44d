// When records of a durable topic are on stable storage, who waits for that, and what happens when it fails. If
// these failed, an acknowledged record could be lost with the machine, or a failed disk go unnoticed.
#include <atomic>

#include "durable_testing.hpp"

namespace leat::testing {
namespace {

TEST_F(DurableSync, FsyncReturnsWhenTheRecordIsSynced) {
  const Topic topic = create(Durability::fsync);
  Publisher publisher = publisher_of(topic);
  for (std::uint64_t i = 0; i < 20; ++i) {
    const std::uint64_t syncs = disk_.syncs();
    ASSERT_EQ(*publisher.publish(std::to_string(i)), i);
    EXPECT_GT(publisher.durable_offset(), i);
    EXPECT_GT(disk_.syncs(), syncs);
    EXPECT_EQ(publisher.last_offset(), i);
  }
}

TEST_F(DurableSync, FsyncWaitsForTheDisk) {
  const Topic topic = create(Durability::fsync);
  Publisher publisher = publisher_of(topic);
  ASSERT_TRUE(publisher.publish("first"));
  auto subscriber = topic.subscriber();
  auto impatient = topic.subscriber({.read = Stage::committed});
  ASSERT_TRUE(subscriber && impatient);
  disk_.hold_syncs(true);
  auto late = publisher.publish("x", 50ms);
  EXPECT_EQ(late.error(), Errc::not_durable);
  EXPECT_EQ(publisher.last_offset(), 1U);
  EXPECT_EQ(impatient->receive(kPatience)->text(), "x");
  EXPECT_EQ(subscriber->receive(50ms).error(), Errc::timeout);
  EXPECT_EQ(durable_of(topic), 1U);
  disk_.hold_syncs(false);
  EXPECT_EQ(subscriber->receive(kPatience)->text(), "x");
  EXPECT_TRUE(publisher.flush(kPatience));
  EXPECT_EQ(publisher.durable_offset(), 2U);
}

// Without two thread switches for each record; and a slow disk must not delay a deadline.
TEST_F(DurableSync, APublisherInTheArchiversProcessSyncsItselfUnlessItsWaitMayEnd) {
  const Topic topic = create(Durability::fsync);
  Publisher publisher = publisher_of(topic);
  std::stop_source stop;
  const std::uint64_t before = disk_.own_syncs();  // of creating the topic
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(publisher.publish("x", kPatience));
    ASSERT_TRUE(publisher.flush(Deadline::never(), stop.get_token()));
  }
  EXPECT_EQ(disk_.own_syncs(), before);
  // Not while the archiver's thread does its own work.
  EXPECT_TRUE(wait_until([&] { return publisher.publish("x") && disk_.own_syncs() > before; }));
}

TEST_F(DurableSync, PublishersThatSyncThemselvesAndOthersLoseNothing) {
  const Topic topic = create(Durability::fsync);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      Publisher publisher = publisher_of(topic);
      for (int record = 0; record < 100; ++record) {
        const auto offset = i % 2 == 0 ? publisher.publish("x") : publisher.publish("x", kPatience);
        ASSERT_TRUE(offset) << describe(offset.error());
        EXPECT_GT(publisher.durable_offset(), *offset);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(read(topic, 400).size(), 400U);
}

// The archiver's thread has to handle the error that the publisher's thread met.
TEST_F(DurableSync, AFailedSyncOfAPublisherMakesTheTopicReadOnly) {
  const Topic topic = create(Durability::fsync);
  Publisher publisher = publisher_of(topic);
  const std::uint64_t before = disk_.own_syncs();
  ASSERT_TRUE(wait_until([&] { return publisher.publish("x") && disk_.own_syncs() > before; }));
  disk_.fail_syncs(EIO);
  EXPECT_EQ(publisher.publish("y").error(), Errc::io_error);
  EXPECT_EQ(publisher.publish("z").error(), Errc::read_only);
}

TEST_F(DurableSync, APublisherThatSyncsItselfLearnsOfAFullDisk) {
  const Topic topic = create(Durability::fsync);
  Publisher publisher = publisher_of(topic);
  const std::uint64_t before = disk_.own_syncs();
  ASSERT_TRUE(wait_until([&] { return publisher.publish("x") && disk_.own_syncs() > before; }));
  disk_.fail_writes(ENOSPC);
  EXPECT_EQ(publisher.publish("y").error(), Errc::not_durable);
  disk_.mend();
  EXPECT_TRUE(wait_until([&] { return publisher.flush().has_value(); }));
  EXPECT_EQ(publisher.durable_offset(), topic.info().partitions[0].end);
}

// After a publisher's sync has failed, the archiver's thread does not sync again.
TEST_F(DurableSync, AFailedSyncOfAPublisherIsNotTriedAgain) {
  const Topic topic = create(Durability::fsync);
  Publisher publisher = publisher_of(topic);
  disk_.fail_an_own_sync(EIO);
  Result<std::uint64_t> published = publisher.publish("x");
  for (const Deadline deadline{kPatience}; !disk_.has_failed_an_own_sync() && !deadline.passed();)
    published = publisher.publish("x");
  EXPECT_EQ(published.error(), Errc::io_error);
  EXPECT_EQ(published.error().system_error, EIO);
  EXPECT_EQ(publisher.publish("y").error(), Errc::read_only);
  EXPECT_EQ(durable_of(topic), publisher.last_offset());
}

// All who wait are acknowledged by the next sync.
TEST_F(DurableSync, OneSyncIsForManyPublishers) {
  const Topic topic = create(Durability::fsync);
  ASSERT_TRUE(publisher_of(topic).publish("first"));
  const std::uint64_t before = disk_.syncs();
  disk_.hold_syncs(true);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      Publisher publisher = publisher_of(topic);
      EXPECT_TRUE(publisher.publish("x", kPatience));
    });
  }
  EXPECT_TRUE(wait_until([&] { return topic.info().partitions[0].end == 17; }));
  disk_.hold_syncs(false);
  threads.clear();
  EXPECT_LE(disk_.syncs() - before, 4U);
}

TEST_F(DurableSync, IntervalSyncsWithoutBeingAsked) {
  const Topic topic = create(Durability::interval);
  Publisher publisher = publisher_of(topic);
  for (int i = 0; i < 5; ++i) {
    auto offset = publisher.publish("x");
    ASSERT_TRUE(offset);
    EXPECT_TRUE(wait_until([&] { return durable_of(topic) > *offset; }));
  }
}

TEST_F(DurableSync, IntervalSyncsNoMoreOftenThanItIsTold) {
  TopicOptions wanted = options(Durability::interval);
  wanted.sync_interval = 1h;
  wanted.capacity_bytes = 8 << 20;
  wanted.segment_bytes = 1 << 20;
  const Topic topic = create(wanted);
  Publisher publisher = publisher_of(topic);
  ASSERT_TRUE(publisher.publish("first"));  // Nothing was synced before: at once.
  ASSERT_TRUE(wait_until([&] { return durable_of(topic) == 1; }));
  ASSERT_TRUE(publisher.publish("second"));  // A checkpoint is stored behind it, which is synced.
  ASSERT_TRUE(publisher.flush(kPatience));
  const std::uint64_t syncs = disk_.syncs();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(publisher.publish("x"));
  ASSERT_TRUE(wait_until([&] { return topic.info().partitions[0].written == 102; }));
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(disk_.syncs(), syncs);
  EXPECT_TRUE(publisher.flush(kPatience));
  EXPECT_EQ(durable_of(topic), 102U);
}

// Otherwise publishers would wait for the interval whenever the window is full.
TEST_F(DurableSync, IntervalSyncsBeforeTheWindowIsFull) {
  TopicOptions wanted = options(Durability::interval);
  wanted.sync_interval = 1h;
  const Topic topic = create(wanted);
  Publisher publisher = publisher_of(topic);
  for (int i = 0; i < 1000; ++i)
    ASSERT_TRUE(publisher.publish(std::string(1000, 'x'), kPatience)) << i;
}

TEST_F(DurableSync, WithOsOnlyWhoAsksIsSynced) {
  const Topic topic = create(Durability::os);
  Publisher publisher = publisher_of(topic);
  ASSERT_TRUE(publisher.publish("x"));
  ASSERT_TRUE(wait_until([&] { return topic.info().partitions[0].written == 1; }));
  std::this_thread::sleep_for(10ms);
  EXPECT_EQ(durable_of(topic), 0U);
  ASSERT_TRUE(publisher.flush(kPatience));
  EXPECT_EQ(durable_of(topic), 1U);
  Publisher patient = publisher_of(topic, {.acknowledge = Stage::durable});
  ASSERT_EQ(*patient.publish("y", kPatience), 1U);
  EXPECT_EQ(durable_of(topic), 2U);
  ASSERT_TRUE(publisher.publish("z"));
  ASSERT_TRUE(publisher.request_sync());
  EXPECT_TRUE(wait_until([&] { return publisher.durable_offset() == 3; }));
}

TEST_F(DurableSync, ABatchIsAcknowledgedAsAWhole) {
  const Topic topic = create(Durability::fsync);
  Publisher publisher = publisher_of(topic, {.exclusive = true});
  Batch batch = std::move(*publisher.batch());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(batch.add("x"));
  ASSERT_EQ(*batch.commit(kPatience), 0U);
  EXPECT_EQ(publisher.durable_offset(), 10U);
  EXPECT_EQ(publisher.last_offset(), 9U);
  disk_.hold_syncs(true);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(batch.add("y"));
  EXPECT_EQ(batch.commit(20ms).error(), Errc::not_durable);
  EXPECT_EQ(batch.count(), 0U);  // It is published.
  disk_.hold_syncs(false);
  EXPECT_EQ(read(topic, 20).size(), 20U);
}

TEST_F(DurableSync, AClaimDoesNotWaitButFlushDoes) {
  const Topic topic = create(Durability::fsync);
  Publisher publisher = publisher_of(topic);
  disk_.hold_syncs(true);
  auto claim = publisher.try_claim(1);
  ASSERT_TRUE(claim);
  EXPECT_EQ(publisher.flush(kPatience).error(), Errc::busy);
  claim->payload()[0] = std::byte{'x'};
  ASSERT_TRUE(claim->commit());
  EXPECT_EQ(publisher.flush(20ms).error(), Errc::not_durable);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(publisher.flush(Deadline::never(), stop.get_token()).error(), Errc::not_durable);
  disk_.hold_syncs(false);
  EXPECT_TRUE(publisher.flush(kPatience));
}

// Its own records are settled: what others claim behind them does not matter.
TEST_F(DurableSync, FlushWaitsForNobodysLaterClaim) {
  const Topic topic = create(Durability::os);
  Publisher publisher = publisher_of(topic);
  Publisher other = publisher_of(topic);
  ASSERT_TRUE(publisher.publish("x"));
  auto open = other.try_claim(10);
  ASSERT_TRUE(open);
  EXPECT_TRUE(publisher.flush(kPatience));
  // An earlier one does.
  ASSERT_TRUE(publisher.publish("y"));
  EXPECT_EQ(publisher.flush(20ms).error(), Errc::not_durable);
  ASSERT_TRUE(open->commit());
  EXPECT_TRUE(publisher.flush(kPatience));
}

TEST_F(DurableSync, ADescriptorTellsThatMoreIsDurable) {
  const Topic topic = create(Durability::os);
  Publisher publisher = publisher_of(topic);
  auto fd = publisher.durable_fd();
  ASSERT_TRUE(fd);
  EXPECT_EQ(publisher.durable_offset(), 0U);
  const auto is_readable = [&](int ms) {
    ::pollfd entry{*fd, POLLIN, 0};
    return ::poll(&entry, 1, ms) == 1;
  };
  ASSERT_TRUE(publisher.publish("x"));
  EXPECT_FALSE(is_readable(20));
  ASSERT_TRUE(publisher.request_sync());
  for (std::uint64_t durable = 0; durable != 1; durable = publisher.durable_offset())
    ASSERT_TRUE(is_readable(20'000));
  ASSERT_TRUE(publisher.publish("y"));
  EXPECT_FALSE(is_readable(20));
}

// A publisher that waits here need not know which process syncs.
TEST_F(DurableSync, AnotherProcessSyncs) {
  const Shared<std::uint32_t> is_archiver;  // Nobody else opens the topic before, and becomes that.
  Child archiver{[&]() -> int {
    auto topic = Topic::create("d", options(Durability::fsync));
    CHILD_CHECK_OK(topic);
    auto publisher = topic->publisher();
    CHILD_CHECK_OK(publisher->publish("x"));
    std::atomic_ref{* is_archiver} = 1;
    for (;;) ::pause();
  }};
  ASSERT_TRUE(wait_until([&] { return std::atomic_ref{*is_archiver} == 1; }));
  auto topic = open();
  ASSERT_TRUE(topic);
  EXPECT_EQ(durable_of(*topic), 1U);
  Publisher publisher = publisher_of(*topic);
  const std::uint64_t syncs = disk_.syncs();
  for (std::uint64_t i = 1; i < 10; ++i) ASSERT_EQ(*publisher.publish("y", kPatience), i);
  EXPECT_EQ(disk_.syncs(), syncs);
  archiver.signal(SIGKILL);
  archiver.wait();
  for (std::uint64_t i = 10; i < 20; ++i) ASSERT_EQ(*publisher.publish("z", kPatience), i);
  EXPECT_GT(disk_.syncs(), syncs);
  EXPECT_EQ(read(*topic, 20).size(), 20U);
}

// The archiver dies between writing and syncing, and nobody publishes any more.
TEST_F(DurableSync, ASuccessorSyncsWhatADeadArchiverDidNot) {
  for (const Durability durable : {Durability::os, Durability::interval, Durability::fsync}) {
    SCOPED_TRACE(static_cast<int>(durable));
    TopicOptions wanted = options(durable);
    if (durable == Durability::interval) wanted.sync_interval = 200ms;
    Child archiver{[&]() -> int {
      disk_.hold_syncs(false);
      auto topic = Topic::create("d", wanted);
      CHILD_CHECK_OK(topic);
      auto publisher = topic->publisher({.acknowledge = Stage::committed});
      CHILD_CHECK_OK(publisher->publish("first"));
      CHILD_CHECK_OK(publisher->flush());
      disk_.hold_syncs(durable == Durability::fsync);
      for (int i = 0; i < 10; ++i) CHILD_CHECK_OK(publisher->publish("x"));
      for (;;) ::pause();
    }};
    ASSERT_TRUE(wait_until([&] {
      auto topic = open();
      return topic && topic->info().partitions[0].end == 11;
    }));
    auto topic = open();
    ASSERT_TRUE(topic);
    archiver.signal(SIGKILL);
    archiver.wait();
    if (durable == Durability::os) {
      Publisher publisher = publisher_of(*topic, {.acknowledge = Stage::durable});
      ASSERT_TRUE(publisher.publish("last", kPatience));
      EXPECT_EQ(durable_of(*topic), 12U);
    } else {
      EXPECT_TRUE(wait_until([&] { return durable_of(*topic) == 11; })) << durable_of(*topic);
    }
    EXPECT_EQ(read(*topic, 11).size(), 11U);
    topic = Errc::closed;
    ASSERT_TRUE(Topic::delete_topic(
        "d", {.directory = wanted.directory, .data_directory = wanted.data_directory}));
  }
}

// Somebody removes LEAT_DIR, as systemd's RemoveIPC does at logout; then the archiver is killed in the middle of a
// claim.
TEST_F(DurableSync, ASuccessorGoesOnWithoutTheDirectoryOfTopics) {
  const Shared<std::uint32_t> claimed;
  const Shared<std::uint32_t> go;
  Child archiver{[&]() -> int {
    auto topic = Topic::create("d", options(Durability::os));
    CHILD_CHECK_OK(topic);
    auto publisher = topic->publisher();
    CHILD_CHECK_OK(publisher->publish("0"));
    CHILD_CHECK_OK(publisher->flush());
    std::atomic_ref{* claimed} = 1;
    while (std::atomic_ref{*go} == 0) std::this_thread::sleep_for(1ms);
    auto claim = publisher->try_claim(10);
    CHILD_CHECK_OK(claim);
    std::atomic_ref{* claimed} = 2;
    for (;;) ::pause();
  }};
  ASSERT_TRUE(wait_until([&] { return std::atomic_ref{*claimed} == 1; }));
  auto topic = open();
  ASSERT_TRUE(topic);
  std::optional<Publisher> publisher = publisher_of(*topic);
  std::atomic_ref{* go} = 1;
  ASSERT_TRUE(wait_until([&] { return std::atomic_ref{*claimed} == 2; }));
  for (const auto& one : std::filesystem::directory_iterator{temp_.path() + "/topics"})
    std::filesystem::remove_all(one.path());
  ASSERT_TRUE(publisher->publish("2"));
  archiver.signal(SIGKILL);
  archiver.wait();
  ASSERT_TRUE(publisher->publish("3"));
  auto flushed = publisher->flush(kPatience);
  EXPECT_TRUE(flushed) << describe(flushed.error());
  publisher.reset();
  topic = Errc::closed;
  topic = open();
  ASSERT_TRUE(topic) << describe(topic.error());
  EXPECT_EQ(read(*topic, 4), (std::vector<std::string>{"0", "gap died", "2", "3"}));
}

// ---- What a review found --------------------------------------------------------------------------

// The archiver fills holes in every partition, however busy the others are.
TEST_F(DurableSync, ABusyPartitionDoesNotKeepAnotherFromGoingOn) {
  TopicOptions wanted = options(Durability::os);
  wanted.partitions = 2;
  const std::string go = temp_.path() + "/go";
  Child dies{[&]() -> int {
    CHILD_CHECK(wait_until([&] { return std::filesystem::exists(go); }));
    auto topic = Topic::open("d", kPatience, wanted.directory, {}, wanted.data_directory);
    CHILD_CHECK_OK(topic);
    auto publisher = topic->publisher({.partition = 1});
    auto claim = publisher->try_claim(10);
    CHILD_CHECK_OK(claim);
    ::kill(::getpid(), SIGKILL);
    return 0;
  }};
  const Topic topic = create(wanted);
  std::jthread busy{[&](const std::stop_token& stop) {
    Publisher publisher = publisher_of(topic, {.partition = 0});
    while (!stop.stop_requested()) EXPECT_TRUE(publisher.publish("x", kPatience));
  }};
  std::filesystem::create_directory(go);
  dies.wait();
  Publisher publisher = publisher_of(topic, {.partition = 1});
  ASSERT_TRUE(publisher.publish("behind the hole"));
  EXPECT_TRUE(publisher.flush(kPatience));
}

// An open claim keeps an archiver from writing. That does not mean that the archiver is stopped.
TEST_F(DurableSync, AnOpenClaimIsNoReasonToTakeOver) {
  const Topic topic = create(Durability::os);
  auto other = open();  // Stands by.
  ASSERT_TRUE(other);
  Publisher publisher = publisher_of(topic);
  ASSERT_TRUE(publisher.publish("x"));
  ASSERT_TRUE(publisher.flush(kPatience));
  const auto names = [&] {
    std::vector<std::string> found;
    for (const auto& one : std::filesystem::directory_iterator{temp_.path() + "/data/d"})
      found.push_back(one.path().filename());
    return found.size();
  };
  const std::size_t before = names();
  auto claim = publisher.try_claim(10);
  ASSERT_TRUE(claim);
  Publisher behind = publisher_of(topic);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(behind.publish("y"));
    std::this_thread::sleep_for(100ms);
  }
  ASSERT_TRUE(claim->commit());
  ASSERT_TRUE(behind.flush(kPatience));
  EXPECT_EQ(names(), before);  // A successor would have begun a file.
}

TEST_F(DurableSync, TheArchiverMayLeaveWhileOthersPublish) {
  for (const Durability durable : {Durability::os, Durability::fsync}) {
    auto topic = Topic::create("d", options(durable));
    ASSERT_TRUE(topic);
    ASSERT_TRUE(publisher_of(*topic).publish("x"));  // Makes it the archiver.
    auto other = open();
    ASSERT_TRUE(other);
    std::vector<std::jthread> busy;
    for (int i = 0; i < 2; ++i) {
      busy.emplace_back([&](const std::stop_token& stop) {
        Publisher publisher = publisher_of(*other);
        while (!stop.stop_requested()) EXPECT_TRUE(publisher.publish("x", kPatience));
      });
    }
    const std::int64_t begun = detail::now_ns();
    topic = Errc::closed;
    EXPECT_LT(detail::now_ns() - begun, 5'000'000'000);
    busy.clear();
    other = Errc::closed;
    delete_topic();
  }
}

// It has nothing to do until somebody asks for a sync.
TEST_F(DurableSync, AReaderOfWhatIsDurableSleepsAlthoughItIsOvertaken) {
  const Topic topic = create(Durability::os);
  auto subscriber = topic.subscriber({.read = Stage::durable});
  ASSERT_TRUE(subscriber);
  Publisher publisher = publisher_of(topic);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(publisher.publish(std::string(1000, 'x'), kPatience));
  int polls = 0;
  for (const Deadline deadline{100ms}; !deadline.passed(); ++polls) {
    (void)subscriber->wait(deadline);
    auto polled = subscriber->poll(100, [](const Record&) {});
    ASSERT_TRUE(polled) << describe(polled.error());
  }
  EXPECT_LT(polls, 1000);
  ASSERT_TRUE(publisher.flush(kPatience));
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_EQ(subscriber->receive(kPatience)->offset, i);
}

// ---- What makes no sense, and what is old -----------------------------------------------------------

TEST_F(DurableSync, OnlyDurableTopicsCanBeSynced) {
  auto topic = Topic::create("m", {.directory = temp_.path() + "/topics"});
  ASSERT_TRUE(topic);
  EXPECT_EQ(topic->publisher({.acknowledge = Stage::durable}).error(), Errc::needs_durable);
  EXPECT_EQ(topic->subscriber({.read = Stage::durable}).error(), Errc::needs_durable);
  EXPECT_TRUE(topic->subscriber({.read = Stage::committed}));
  Publisher publisher = publisher_of(*topic, {.acknowledge = Stage::committed});
  EXPECT_EQ(publisher.flush().error(), Errc::needs_durable);
  EXPECT_EQ(publisher.request_sync().error(), Errc::needs_durable);
  EXPECT_EQ(publisher.durable_fd().error(), Errc::needs_durable);
  EXPECT_EQ(publisher.durable_offset(), 0U);
  EXPECT_EQ(topic->repair().error(), Errc::needs_durable);
}

TEST_F(DurableSync, IntervalsOutOfRangeAreRefused) {
  for (const auto interval : {std::chrono::nanoseconds{0}, std::chrono::nanoseconds{999'999},
                              std::chrono::nanoseconds{-1}, std::chrono::nanoseconds{1h} + 1ns}) {
    TopicOptions wanted = options(Durability::interval);
    wanted.sync_interval = interval;
    EXPECT_EQ(Topic::create("d", wanted).error(), Errc::invalid_argument) << interval.count();
  }
  TopicOptions wanted = options(Durability::os);
  wanted.sync_interval = 20ms;
  EXPECT_EQ(Topic::create("d", wanted).error(), Errc::invalid_argument);
  wanted.durable = Durability::none;
  EXPECT_EQ(Topic::create("d", wanted).error(), Errc::invalid_argument);
}

TEST_F(DurableSync, DurabilitySurvivesClosing) {
  { (void)create(Durability::interval); }
  auto topic = open();
  ASSERT_TRUE(topic);
  EXPECT_EQ(topic->info().durable->durability, Durability::interval);
  EXPECT_EQ(topic->info().durable->sync_interval, 20ms);
}

// Subscribers of all kinds see a fsync topic's records once, in order, from memory and from disk.
TEST_F(DurableSync, SubscribersReadFromMemoryAndFromDisk) {
  for (const Durability durable : {Durability::interval, Durability::fsync}) {
    const Topic topic = create(durable);
    constexpr std::uint64_t kCount = 2000;  // Many times the window.
    std::jthread publishing{[&] {
      Publisher publisher = publisher_of(topic, {.acknowledge = Stage::committed});
      for (std::uint64_t i = 0; i < kCount; ++i)
        EXPECT_TRUE(publisher.publish(std::to_string(i) + std::string(200, ' '), kPatience));
    }};
    std::vector<std::jthread> subscribers;
    for (const Stage stage : {Stage::committed, Stage::durable}) {
      for (const bool is_slow : {false, true}) {
        subscribers.emplace_back([&, stage, is_slow] {
          auto subscriber = topic.subscriber({.from = From::beginning, .read = stage});
          ASSERT_TRUE(subscriber);
          subscriber->on_event([](const Event& event) { FAIL() << event.first; });
          for (std::uint64_t i = 0; i < kCount; ++i) {
            auto record = subscriber->receive(kPatience);
            ASSERT_TRUE(record) << describe(record.error()) << ' ' << i;
            ASSERT_EQ(record->offset, i);
            ASSERT_EQ(std::stoull(std::string{record->text()}), i);
            if (stage == Stage::durable) {
              ASSERT_GT(topic.info().partitions[0].durable, i);
            }
            if (is_slow && i % 100 == 0) std::this_thread::sleep_for(2ms);
          }
        });
      }
    }
    subscribers.clear();
    publishing.join();
    delete_topic();
  }
}

}  // namespace
}  // namespace leat::testing
