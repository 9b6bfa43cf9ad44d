// A disk that fails: the topic is read-only for everybody at once, or goes on when the cause is gone. If these
// failed, somebody could take for safe what is lost.
#include "durable_testing.hpp"
#include "leat/format/durable_layout.hpp"
#include "leat/log/directory.hpp"

namespace leat::testing {
namespace {

TEST_F(DurableSync, AFailedSyncMakesTheTopicReadOnlyForEverybodyAtOnce) {
  for (const int number : {EIO, ENOSPC, EFBIG}) {  // Of a sync, a full disk is no better.
    SCOPED_TRACE(number);
    const Topic topic = create(Durability::fsync);
    Publisher publisher = publisher_of(topic);
    ASSERT_TRUE(publisher.publish("before"));
    disk_.fail_syncs(number);
    auto waiting = publisher.publish("unknown", kPatience);
    EXPECT_EQ(waiting.error(), Errc::io_error);
    EXPECT_EQ(waiting.error().system_error, number);
    EXPECT_EQ(publisher.last_offset(), 1U);
    disk_.mend();  // No sync is retried.
    auto later = publisher.publish("never", kPatience);
    EXPECT_EQ(later.error(), Errc::read_only);
    EXPECT_EQ(later.error().system_error, number);
    EXPECT_EQ(publisher.try_claim(1).error(), Errc::read_only);
    EXPECT_EQ(publisher_of(topic, {.acknowledge = Stage::committed}).publish("x").error(),
              Errc::read_only);
    const TopicInfo info = topic.info();
    EXPECT_EQ(info.durable->state, Errc::read_only);
    EXPECT_EQ(info.durable->reason, number);
    EXPECT_EQ(info.partitions[0].end, 2U);
    EXPECT_EQ(info.partitions[0].durable, 1U);
    EXPECT_EQ(read(topic, 1), std::vector<std::string>{"before"});
    EXPECT_EQ(read(topic, 2, Stage::committed).size(), 2U);
    // What is in memory is written again.
    ASSERT_TRUE(topic.repair(kPatience));
    EXPECT_EQ(durable_of(topic), 2U);
    ASSERT_TRUE(publisher.publish("after", kPatience));
    EXPECT_EQ(read(topic, 3), (std::vector<std::string>{"before", "unknown", "after"}));
    delete_topic();
  }
}

TEST_F(DurableSync, AFailedWriteMakesItReadOnlyAtEveryDurability) {
  for (const auto& [durable, number] :
       std::vector<std::pair<Durability, int>>{{Durability::os, EIO},
                                               {Durability::os, EROFS},
                                               {Durability::interval, EIO},
                                               {Durability::interval, EROFS},
                                               {Durability::fsync, EIO}}) {
    const Topic topic = create(durable);
    Publisher publisher = publisher_of(topic, {.acknowledge = Stage::committed});
    ASSERT_TRUE(publisher.publish("0"));
    ASSERT_TRUE(publisher.flush(kPatience));
    disk_.fail_writes(number);
    ASSERT_TRUE(publisher.publish("1"));
    EXPECT_TRUE(wait_until([&] { return topic.info().durable->state == Errc::read_only; }));
    EXPECT_EQ(publisher.publish("x").error(), Errc::read_only);
    EXPECT_EQ(publisher.flush().error(), Errc::io_error);
    EXPECT_FALSE(topic.repair(kPatience));  // Still.
    EXPECT_EQ(topic.info().durable->state, Errc::read_only);
    disk_.mend();
    EXPECT_TRUE(topic.repair(kPatience));
    EXPECT_EQ(*publisher.publish("2"), 2U);
    EXPECT_TRUE(publisher.flush(kPatience));
    EXPECT_EQ(read(topic, 3), (std::vector<std::string>{"0", "1", "2"}));
    delete_topic();
  }
}

// The archiver syncs the directory before it deletes a file that is too old, while nobody publishes.
TEST_F(DurableSync, AFailedSyncOfRetentionMakesItReadOnly) {
  TopicOptions wanted = options(Durability::os);
  wanted.file_bytes = 64 << 10;
  wanted.retention = 1000ms;
  const Topic topic = create(wanted);
  Publisher publisher = publisher_of(topic);
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(publisher.publish(std::string(500, 'x'), kPatience));
  ASSERT_TRUE(publisher.flush(kPatience));
  disk_.fail_syncs_of_names(EIO);
  EXPECT_TRUE(wait_until([&] { return topic.info().durable->state == Errc::read_only; }));
  EXPECT_EQ(topic.info().durable->reason, EIO);
  EXPECT_EQ(disk_.failed_syncs_of_names(), 1U);
  disk_.mend();
  EXPECT_EQ(publisher.publish("never", kPatience).error(), Errc::read_only);
  ASSERT_TRUE(topic.repair(kPatience));
  EXPECT_TRUE(publisher.publish("after", kPatience));
}

// What may not be on stable storage stays in memory when everybody leaves.
// rm -rf of the data directory: what is written goes into a file without a name.
TEST_F(DurableSync, FilesThatSomebodyDeletedMakeItReadOnly) {
  for (const Durability durable : {Durability::os, Durability::interval, Durability::fsync}) {
    SCOPED_TRACE(static_cast<int>(durable));
    {
      const Topic topic = create(durable);
      Publisher publisher = publisher_of(topic);
      for (const char* text : {"0", "1"}) {  // Behind the checkpoint that the first one needs.
        ASSERT_TRUE(publisher.publish(text, kPatience));
        ASSERT_TRUE(publisher.flush(kPatience));
      }
      std::filesystem::remove_all(temp_.path() + "/data/d");
      auto next = publisher.publish("2", kPatience);
      if (durable == Durability::fsync) {
        EXPECT_EQ(next.error(), Errc::io_error);
        EXPECT_EQ(next.error().system_error, ENOENT);
      } else {
        EXPECT_TRUE(wait_until([&] { return topic.info().durable->state == Errc::read_only; }));
      }
      EXPECT_EQ(publisher.publish("3", kPatience).error(), Errc::read_only);
      EXPECT_EQ(topic.info().durable->reason, ENOENT);
      EXPECT_EQ(durable_of(topic), 2U);
      EXPECT_FALSE(topic.repair(kPatience));
      EXPECT_EQ(publisher.publish("4", kPatience).error(), Errc::read_only);
    }
    delete_topic();
  }
}

TEST_F(DurableSync, AReadOnlyTopicKeepsItsMemoryWhenItIsClosed) {
  {
    const Topic topic = create(Durability::fsync);
    Publisher publisher = publisher_of(topic);
    ASSERT_TRUE(publisher.publish("0"));
    disk_.fail_syncs(EIO);
    ASSERT_FALSE(publisher.publish("1"));
  }
  disk_.mend();
  auto topic = open();
  ASSERT_TRUE(topic) << describe(topic.error());
  EXPECT_EQ(topic->info().durable->state, Errc::read_only);
  EXPECT_EQ(publisher_of(*topic).publish("x").error(), Errc::read_only);
  ASSERT_TRUE(topic->repair(kPatience));
  EXPECT_EQ(*publisher_of(*topic).publish("2"), 2U);
  EXPECT_EQ(read(*topic, 3), (std::vector<std::string>{"0", "1", "2"}));
}

// A process that has no descriptor left, or not the right to make a file, or a full disk: it passes, and nothing is lost.
TEST_F(DurableSync, WhatMayPassIsTriedAgain) {
  for (const int number : {ENOSPC, EMFILE, ENFILE, EFBIG, ENOMEM, EPERM, EACCES}) {
    SCOPED_TRACE(number);
    const Topic topic = create(Durability::fsync);
    Publisher publisher = publisher_of(topic);
    ASSERT_TRUE(publisher.publish("0"));
    disk_.fail_writes(number);
    auto waiting = publisher.publish("1", kPatience);
    EXPECT_EQ(waiting.error(), Errc::not_durable);  // At once, although there is a deadline.
    EXPECT_EQ(waiting.error().system_error, number);
    EXPECT_EQ(topic.info().durable->state, Errc::no_space);
    disk_.mend();
    EXPECT_TRUE(wait_until([&] { return publisher.durable_offset() == 2; }));
    EXPECT_TRUE(publisher.publish("2", kPatience));
    EXPECT_EQ(read(topic, 3), (std::vector<std::string>{"0", "1", "2"}));
    delete_topic();
  }
}

// The copy that was not replaced had the higher number, so that it counted when the topic was opened again.
TEST_F(DurableSync, CheckpointsThatCannotBeReadForAMomentAreStoredInTheirOrder) {
  constexpr std::uint64_t kRecords = 1000;  // Several files, each with a checkpoint.
  for (const Durability durable : {Durability::os, Durability::fsync}) {
    {
      const Topic topic = create(durable);
      Publisher publisher = publisher_of(topic, {.acknowledge = Stage::committed});
      for (std::uint64_t i = 0; i < kRecords; ++i) {
        if (i == kRecords / 2) {
          ASSERT_TRUE(publisher.flush(kPatience));
          disk_.hide_checkpoints(true);
        }
        ASSERT_TRUE(publisher.publish(std::string(1000, 'x'), kPatience));
      }
    }
    disk_.mend();
    {
      auto topic = open();
      ASSERT_TRUE(topic) << describe(topic.error());
      const auto offset = publisher_of(*topic).publish("last", kPatience);
      ASSERT_TRUE(offset) << describe(offset.error());
      EXPECT_EQ(*offset, kRecords);
      EXPECT_EQ(read(*topic, kRecords + 1).size(), kRecords + 1);
    }
    delete_topic();
  }
}

TEST_F(DurableSync, AnArchiverThatCannotReadTheCheckpointStoresNone) {
  {
    const Topic topic = create(Durability::fsync);
    ASSERT_TRUE(publisher_of(topic).publish("first", kPatience));
  }
  {
    auto topic = open();
    ASSERT_TRUE(topic) << describe(topic.error());
    disk_.hide_checkpoints(true);
    Publisher publisher = publisher_of(*topic);
    const Errc refusal = publisher.publish("second", kPatience).error().code;
    // Whichever it meets first: the archiver's state, or the error that made it so.
    EXPECT_TRUE(refusal == Errc::not_durable || refusal == Errc::io_error);
    EXPECT_EQ(topic->info().durable->state, Errc::read_only);
    disk_.mend();
    ASSERT_TRUE(topic->repair(kPatience));
    EXPECT_TRUE(publisher.publish("third", kPatience));
  }
  auto topic = open();
  ASSERT_TRUE(topic) << describe(topic.error());
  EXPECT_EQ(read(*topic, 3), (std::vector<std::string>{"first", "second", "third"}));
}

// Archivers supersede each other because the disk is slow: each gets more time than the one before.
TEST_F(DurableSync, OnASlowDiskArchiversWaitLongerEachTime) {
  const Topic topic = create(Durability::fsync);
  Publisher publisher = publisher_of(topic, {.acknowledge = Stage::committed});
  ASSERT_TRUE(publisher.publish("0"));
  ASSERT_TRUE(publisher.flush(kPatience));
  auto second = open();
  auto third = open();
  ASSERT_TRUE(second && third);
  auto window = detail::open_directory_path(temp_.path() + "/topics/d", false, false);
  ASSERT_TRUE(window);
  auto file = detail::open_file_at(window->get(), "durable", O_RDONLY);
  ASSERT_TRUE(file);
  const auto visit_word = [&](auto& word, std::size_t at) {
    EXPECT_EQ(::pread(file->get(), &word, sizeof(word), static_cast<::off_t>(at)),
              static_cast<::ssize_t>(sizeof(word)));
  };
  const auto epoch = [&] {
    std::uint64_t word = 0;
    visit_word(word, offsetof(detail::DurableHeader, epoch));
    return word >> 1;
  };
  const std::uint64_t before = epoch();
  disk_.hold_syncs(true);
  ASSERT_TRUE(publisher.publish("1"));
  ASSERT_TRUE(wait_until([&] { return epoch() == before + 1; }));
  const std::int64_t taken_over = detail::now_ns();
  EXPECT_TRUE(wait_until([&] { return epoch() == before + 2; }));
  EXPECT_GE(detail::now_ns() - taken_over, 1'900'000'000);
  disk_.hold_syncs(false);
  EXPECT_TRUE(publisher.flush(kPatience));
  EXPECT_EQ(read(topic, 2), (std::vector<std::string>{"0", "1"}));
  // The disk is quick again, and so is who follows.
  EXPECT_TRUE(wait_until([&] {
    EXPECT_TRUE(publisher.publish("quick", kPatience));
    EXPECT_TRUE(publisher.flush(kPatience));
    std::uint32_t slow = 0;
    visit_word(slow, offsetof(detail::DurableHeader, slow_syncs));
    return slow == 0;
  }));
}

// A group that cannot be saved is no reason to leave records in memory.
TEST_F(DurableSync, RecordsAreWrittenAlthoughGroupsCannotBeSaved) {
  const Topic topic = create(Durability::os);
  auto group = topic.group("g");
  ASSERT_TRUE(group);
  auto member = group->join();
  ASSERT_TRUE(member);
  Publisher publisher = publisher_of(topic, {.acknowledge = Stage::committed});
  ASSERT_TRUE(publisher.publish("0"));
  auto topics = detail::open_directory_path(temp_.path() + "/topics", false, false);
  ASSERT_TRUE(topics);
  auto shared = detail::attach_files(*topics, "d");
  ASSERT_TRUE(shared);
  const auto written = [&] { return (*shared)->durable()->written(0); };
  disk_.fail_groups(EMFILE);  // The archiver leaves, takes over again, and so on.
  ASSERT_TRUE(member->receive(kPatience));
  ASSERT_TRUE(wait_until([&] { return topic.info().durable->state == Errc::no_space; }));
  ASSERT_TRUE(publisher.publish("1"));
  EXPECT_TRUE(wait_until([&] { return written() == 2; }));
  ASSERT_TRUE(publisher.publish("2"));
  disk_.fail_groups(EIO);
  ASSERT_TRUE(wait_until([&] { return topic.info().durable->state == Errc::read_only; }));
  EXPECT_EQ(written(), 3U);
  disk_.mend();
  EXPECT_TRUE(topic.repair(kPatience));
}

TEST_F(DurableSync, ASlowDiskIsNotTakenForAStoppedArchiver) {
  const std::string go = temp_.path() + "/go";  // Forked before there are threads.
  Child standing_by{[&]() -> int {
    CHILD_CHECK(wait_until([&] { return std::filesystem::exists(go); }));
    auto mine = Topic::open("d", kPatience, options(Durability::fsync).directory, {},
                            options(Durability::fsync).data_directory);
    CHILD_CHECK_OK(mine);
    auto subscriber = mine->subscriber({.from = From::beginning});
    CHILD_CHECK_OK(subscriber);
    for (;;) ::pause();
  }};
  const Topic topic = create(Durability::fsync);
  Publisher publisher = publisher_of(topic);
  ASSERT_TRUE(publisher.publish("0"));
  std::filesystem::create_directory(go);
  ASSERT_TRUE(wait_until([&] { return topic.info().participants.size() == 2; }));
  const std::uint32_t archiver = topic.info().durable->archiver_pid;
  ASSERT_EQ(archiver, static_cast<std::uint32_t>(::getpid()));
  disk_.hold_syncs(true);
  EXPECT_EQ(publisher.publish("1", 300ms).error(), Errc::not_durable);
  disk_.hold_syncs(false);
  ASSERT_TRUE(publisher.flush(kPatience));
  EXPECT_EQ(topic.info().durable->archiver_pid, archiver);
}

TEST_F(DurableSync, WhatIsLostIsToldBeforeTheFileBehindItHasItsHeader) {
  Child child{[&]() -> int {
    const Topic topic = create(Durability::os);
    Publisher publisher = publisher_of(topic);
    CHILD_CHECK_OK(publisher.publish("kept"));
    CHILD_CHECK_OK(publisher.flush(kPatience));
    ::kill(::getpid(), SIGKILL);
    return 0;
  }};
  child.wait();
  ASSERT_TRUE(child.was_killed()) << child.describe();
  std::filesystem::remove_all(temp_.path() + "/topics/d");
  auto topic = open();
  ASSERT_TRUE(topic) << describe(topic.error());
  disk_.hold_allocations(true);
  Publisher publisher = publisher_of(*topic);
  auto next = publisher.publish("next");
  EXPECT_TRUE(next && wait_until([&] { return disk_.is_holding(); }));
  auto subscriber = topic->subscriber({.from = From::beginning});
  std::vector<Event> gaps;
  if (subscriber && next) {
    subscriber->on_event([&](const Event& gap) { gaps.push_back(gap); });
    while (subscriber->offset() <= *next)
      if (!subscriber->poll(10, [](const Record&) {})) break;
  }
  disk_.hold_allocations(false);
  ASSERT_EQ(gaps.size(), 1U);
  EXPECT_EQ(gaps[0].reason, GapReason::lost) << name_of(gaps[0].reason);
  EXPECT_EQ(gaps[0].first, 1U);
  EXPECT_EQ(gaps[0].count, *next - 1);
}

}  // namespace
}  // namespace leat::testing
