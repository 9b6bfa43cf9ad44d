// Subscribers of durable topics that read memory only. If these failed, an event loop would wait for the disk, or miss
// records that are only there.
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <thread>

#include "durable_testing.hpp"
#include "testing.hpp"

namespace leat::testing {
namespace {

class MemoryOnly : public DurableSync {
 protected:
  // More than the window has.
  static constexpr std::uint64_t kMany = 400;
  static constexpr std::size_t kSize = 500;  // of a record

  static std::string text(std::uint64_t offset) {
    std::string made = std::to_string(offset) + ' ';
    made.resize(kSize, 'x');
    return made;
  }
  static void publish(const Topic& topic, std::uint64_t count) {
    Publisher publisher = publisher_of(topic, {.acknowledge = Stage::committed});
    for (std::uint64_t i = 0; i < count; ++i)
      ASSERT_TRUE(publisher.publish(text(topic.end_offset(0)), kPatience));
    ASSERT_TRUE(
        wait_until([&] { return topic.info().partitions[0].written == topic.end_offset(0); }));
  }
  // What a subscriber got. Records and gaps must follow each other without an offset between them.
  struct Seen {
    std::uint64_t next = 0;
    std::uint64_t records = 0;
    std::uint64_t lost = 0;
    GapReason reason{};
  };
  static Subscriber subscriber_of(const Topic& topic, Seen& seen, const SubscriberOptions& wanted) {
    auto made = topic.subscriber(wanted);
    EXPECT_TRUE(made) << describe(made.error());
    seen.next = made->offset();
    made->on_event([&seen](const Event& gap) {
      EXPECT_EQ(gap.first, seen.next);
      seen.next = gap.first + gap.count;
      seen.lost += gap.count;
      seen.reason = gap.reason;
    });
    return std::move(*made);
  }
  // One that has not noticed yet that its next record is on disk: its files are not open.
  static Subscriber overtaken(const Topic& topic, Seen& seen) {
    Subscriber subscriber =
        subscriber_of(topic, seen, {.from = From::end, .read = Stage::committed});
    subscriber.read_memory_only(true);
    publish(topic, kMany);
    return subscriber;
  }
  static Result<std::size_t> poll(Subscriber& subscriber, Seen& seen, std::size_t limit = 100) {
    return subscriber.poll(limit, [&](const Record& record) {
      EXPECT_EQ(record.offset, seen.next);
      EXPECT_EQ(record.text(), text(record.offset));
      seen.next = record.offset + 1;
      ++seen.records;
    });
  }
  void expect_on_disk(Subscriber& subscriber, Seen& seen) {
    const std::uint64_t reads = disk_.own_reads();
    EXPECT_EQ(must(poll(subscriber, seen)), 0U);
    EXPECT_TRUE(subscriber.next_is_on_disk());
    EXPECT_EQ(disk_.own_reads(), reads);
  }
  // As another thread would, until nothing more is only on disk.
  static Error read_from_disk(Subscriber& subscriber, Seen& seen, std::uint64_t until) {
    Error failed;
    std::thread{[&] {
      subscriber.read_memory_only(false);
      while (seen.next < until && failed.code == Errc::ok) {
        if (auto count = poll(subscriber, seen); !count) failed = count.error();
      }
      subscriber.read_memory_only(true);
    }}.join();
    return failed;
  }
  std::string first_file() const {
    std::string first;
    for (const auto& one : std::filesystem::directory_iterator{temp_.path() + "/data/d"}) {
      const std::string path = one.path().string();
      if (path.find("/segment-") != std::string::npos && (first.empty() || path < first))
        first = path;
    }
    return first;
  }
};

TEST_F(MemoryOnly, StopsBeforeARecordThatIsOnlyOnDisk) {
  const Topic topic = create(Durability::os);
  Seen seen;
  Subscriber subscriber = overtaken(topic, seen);
  expect_on_disk(subscriber, seen);
  expect_on_disk(subscriber, seen);
  const std::uint64_t reads = disk_.own_reads();
  const Deadline half{kPatience / 2};
  EXPECT_EQ(subscriber.receive(kPatience).error(), Errc::timeout);
  EXPECT_TRUE(subscriber.wait(kPatience));
  EXPECT_FALSE(half.passed());
  EXPECT_EQ(disk_.own_reads(), reads);
  EXPECT_EQ(read_from_disk(subscriber, seen, kMany), Errc::ok);
  EXPECT_EQ(seen.records, kMany);

  // It is in memory again.
  publish(topic, 20);
  const std::uint64_t reads_before = disk_.own_reads();
  EXPECT_EQ(must(poll(subscriber, seen)), 20U);
  EXPECT_EQ(must(poll(subscriber, seen)), 0U);
  EXPECT_FALSE(subscriber.next_is_on_disk());
  EXPECT_EQ(disk_.own_reads(), reads_before);
  EXPECT_EQ(subscriber.wait(1ms).error(), Errc::timeout);
}

TEST_F(MemoryOnly, OneThatBeganOnDiskReadsNoFurther) {
  const Topic topic = create(Durability::os);
  publish(topic, kMany);
  Seen seen;
  Subscriber subscriber =
      subscriber_of(topic, seen, {.from = From::beginning, .read = Stage::committed});
  EXPECT_EQ(must(poll(subscriber, seen, 1)), 1U);
  subscriber.read_memory_only(true);
  const std::uint64_t reads = disk_.own_reads();
  while (!subscriber.next_is_on_disk()) ASSERT_TRUE(poll(subscriber, seen));  // The frame's rest.
  EXPECT_EQ(disk_.own_reads(), reads);
  EXPECT_LT(seen.next, kMany);
  subscriber.read_memory_only(false);
  EXPECT_FALSE(subscriber.next_is_on_disk());
  while (seen.next < kMany) ASSERT_TRUE(poll(subscriber, seen));
}

// Random bursts, some of which overtake the subscriber.
TEST_F(MemoryOnly, LosesNothingWhereverItsRecordsAre) {
  std::mt19937 random{20261130};
  const Topic topic = create(Durability::os);
  Seen seen;
  Subscriber subscriber = subscriber_of(topic, seen, {.from = From::end, .read = Stage::committed});
  subscriber.read_memory_only(true);
  int turns_on_disk = 0;
  int turns_in_memory = 0;
  for (int round = 0; round < 60; ++round) {
    publish(topic, random() % 150);
    for (int i = 0; i < 4; ++i) {
      const std::uint64_t reads = disk_.own_reads();
      ASSERT_TRUE(poll(subscriber, seen, random() % 60));
      EXPECT_EQ(disk_.own_reads(), reads);
      if (!subscriber.next_is_on_disk()) {
        ++turns_in_memory;
        continue;
      }
      ++turns_on_disk;
      subscriber.read_memory_only(false);
      ASSERT_TRUE(poll(subscriber, seen, random() % 100));
      subscriber.read_memory_only(true);
    }
  }
  EXPECT_EQ(read_from_disk(subscriber, seen, topic.end_offset(0)), Errc::ok);
  EXPECT_EQ(seen.lost, 0U);
  EXPECT_GT(turns_on_disk, 10);
  EXPECT_GT(turns_in_memory, 10);
}

TEST_F(MemoryOnly, RetentionMayTakeWhatIsLeftForLater) {
  TopicOptions wanted = options(Durability::os);
  wanted.file_bytes = 64 << 10;
  wanted.retention_bytes = 128 << 10;
  const Topic topic = create(wanted);
  Seen seen;
  Subscriber subscriber = overtaken(topic, seen);
  expect_on_disk(subscriber, seen);
  publish(topic, 5 * kMany);
  ASSERT_TRUE(wait_until([&] { return topic.info().partitions[0].start > kMany; }));
  expect_on_disk(subscriber, seen);
  EXPECT_EQ(read_from_disk(subscriber, seen, topic.end_offset(0)), Errc::ok);
  EXPECT_GT(seen.lost, kMany);
  EXPECT_EQ(seen.reason, GapReason::overwritten);
}

TEST_F(MemoryOnly, DamageIsFoundByTheOneThatReadsTheDisk) {
  TopicOptions wanted = options(Durability::os);
  wanted.file_bytes = 64 << 10;
  const Topic topic = create(wanted);
  Seen seen;
  Subscriber subscriber = overtaken(topic, seen);
  std::fstream file{first_file(), std::ios::in | std::ios::out | std::ios::binary};
  file.seekp(10'000);
  file << std::string(1000, '\x5a');
  file.close();
  expect_on_disk(subscriber, seen);
  EXPECT_EQ(read_from_disk(subscriber, seen, kMany), Errc::ok);
  EXPECT_GT(seen.lost, 0U);
  EXPECT_EQ(seen.reason, GapReason::damaged);
}

TEST_F(MemoryOnly, ADiskThatFailsIsTriedAgain) {
  const Topic topic = create(Durability::os);
  Seen seen;
  Subscriber subscriber = overtaken(topic, seen);
  expect_on_disk(subscriber, seen);
  disk_.fail_opens(EACCES);
  EXPECT_EQ(read_from_disk(subscriber, seen, kMany), Errc::permission);
  expect_on_disk(subscriber, seen);
  disk_.mend();
  EXPECT_EQ(read_from_disk(subscriber, seen, kMany), Errc::ok);
  EXPECT_EQ(seen.records, kMany);
}

TEST_F(MemoryOnly, ADeletedTopicIsFoundByTheOneThatReadsTheDisk) {
  const Topic topic = create(Durability::os);
  Seen seen;
  Subscriber subscriber = overtaken(topic, seen);
  expect_on_disk(subscriber, seen);
  delete_topic();
  expect_on_disk(subscriber, seen);
  EXPECT_EQ(read_from_disk(subscriber, seen, kMany), Errc::deleted);
}

TEST_F(MemoryOnly, PartitionsInMemoryGoOn) {
  TopicOptions wanted = options(Durability::os);
  wanted.partitions = 2;
  const Topic topic = create(wanted);
  auto made = topic.subscriber({.from = From::end, .read = Stage::committed});
  ASSERT_TRUE(made) << describe(made.error());
  made->read_memory_only(true);
  Publisher publisher = publisher_of(topic, {.acknowledge = Stage::committed});
  const auto publish_to = [&](std::uint32_t partition) {
    ASSERT_TRUE(
        publisher.publish({.value = std::string(kSize, 'x'), .partition = partition}, kPatience));
  };
  for (std::uint64_t i = 0; i < kMany; ++i) publish_to(0);
  for (int i = 0; i < 5; ++i) publish_to(1);
  std::vector<std::uint32_t> from;
  const std::uint64_t reads = disk_.own_reads();
  must(made->poll(100, [&](const Record& record) { from.push_back(record.partition); }));
  EXPECT_EQ(from, std::vector<std::uint32_t>(5, 1));
  EXPECT_TRUE(made->next_is_on_disk());
  EXPECT_EQ(disk_.own_reads(), reads);
}

TEST_F(MemoryOnly, TheDescriptorStaysReadableWhileTheNextRecordIsOnDisk) {
  const Topic topic = create(Durability::os);
  Seen seen;
  Subscriber subscriber = overtaken(topic, seen);
  auto fd = subscriber.wait_fd();
  ASSERT_TRUE(fd);
  expect_on_disk(subscriber, seen);
  ::pollfd readable{*fd, POLLIN, 0};
  EXPECT_EQ(::poll(&readable, 1, 1000), 1);
}

}  // namespace
}  // namespace leat::testing
