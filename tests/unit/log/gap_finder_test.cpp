// If this failed, lags, numbers of records and From::last would count offsets that hold nothing because their claims
// were given up, or leave out records.
#include <filesystem>
#include <fstream>

#include "leat/log/durable_topic.hpp"
#include "log/durable_testing.hpp"
#include "support/test_store.hpp"
#include "testing.hpp"

namespace leat {
namespace {

PartitionInfo info_of(const TestTopic& topic) { return topic->info().partitions[0]; }

void abort_claim(Publisher& publisher, std::size_t size = 1) {
  must(must(publisher.try_claim(size)).abort());
}

// The lags of all subscribers.
std::vector<std::uint64_t> lags(const TestTopic& topic) {
  std::vector<std::uint64_t> lags;
  for (const ParticipantInfo& one : topic->info().participants)
    if (one.role.ends_with("subscriber")) lags.push_back(one.lag);
  return lags;
}

// The most memory, in bytes, that this process had mapped at a time since forget_most_memory().
std::uint64_t most_memory() {
  std::ifstream status{"/proc/self/status"};
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) << 10;
  throw std::runtime_error{"no VmHWM"};
}
bool forget_most_memory() {
  std::ofstream file{"/proc/self/clear_refs"};
  return static_cast<bool>(file << "5" << std::flush);
}

// What a new subscriber finds, record by record and gap by gap.
void expect_counts_as_read(const Topic& topic) {
  std::vector<std::uint64_t> records;
  auto reader = must(topic.subscriber({.from = From::beginning, .gating = false}));
  while (must(reader.poll(1000, [&](const Record& one) { records.push_back(one.offset); })) != 0) {
  }
  const PartitionInfo info = topic.info().partitions[0];
  ASSERT_EQ(reader.offset(), info.end);
  for (std::uint64_t from = info.start; from <= info.end; ++from) {
    const auto left = records.end() - std::lower_bound(records.begin(), records.end(), from);
    ASSERT_EQ(info.count_from(from), static_cast<std::uint64_t>(left)) << from;
  }
  for (std::uint64_t count = 1; count <= records.size(); ++count)
    ASSERT_EQ(info.offset_of_last(count), records[records.size() - count]) << count;
}

TEST(GapFinder, AbortedClaimsAreNotCounted) {
  const TestTopic topic;
  auto gating = from_beginning(*topic);
  auto lossy = must(topic->subscriber({.from = From::beginning, .gating = false}));
  auto publisher = must(topic->publisher());
  must(publisher.publish("0"));
  abort_claim(publisher);
  { const auto dropped = must(publisher.try_claim(1)); }
  must(publisher.publish("3"));
  must(publisher.publish("4"));
  abort_claim(publisher);
  EXPECT_EQ(info_of(topic).count_from(0), 3U);
  EXPECT_EQ(lags(topic), (std::vector<std::uint64_t>{3, 3}));
  EXPECT_EQ(must(gating.poll(2, kIgnore)), 2U);
  EXPECT_EQ(lags(topic), (std::vector<std::uint64_t>{1, 3}));
  const auto begin_of_last = [&](std::uint64_t count) {
    return must(topic->subscriber({.from = From::last(count)})).offset();
  };
  EXPECT_EQ(begin_of_last(0), 6U);
  EXPECT_EQ(begin_of_last(2), 3U);
  EXPECT_EQ(begin_of_last(3), 0U);
  EXPECT_EQ(begin_of_last(4), 0U);
}

TEST(GapFinder, ExclusivePublishersAbortedClaimsAreNotCounted) {
  const TestTopic topic;
  auto publisher = must(topic->publisher({.exclusive = true}));
  abort_claim(publisher);
  must(publisher.publish("1"));
  EXPECT_EQ(info_of(topic).count_from(0), 1U);
}

TEST(GapFinder, EachPartitionHasItsOwn) {
  const TestTopic topic{{.partitions = 2}};
  auto publisher = must(topic->publisher({.partition = 1}));
  abort_claim(publisher);
  must(publisher.publish("1"));
  must(must(topic->publisher({.partition = 0})).publish("0"));
  const TopicInfo info = topic->info();
  EXPECT_TRUE(info.partitions[0].gaps.empty());
  EXPECT_EQ(info.partitions[0].count_from(0), 1U);
  EXPECT_EQ(info.partitions[1].count_from(0), 1U);
}

// What is behind an open claim is unknown until it is finished.
TEST(GapFinder, AClaimThatIsOpenCountsAndHidesWhatFollows) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto other = must(topic->publisher());
  abort_claim(publisher);
  auto open = must(publisher.try_claim(1));
  abort_claim(other);
  EXPECT_EQ(info_of(topic).count_from(0), 2U);
  must(open.commit());
  EXPECT_EQ(info_of(topic).count_from(0), 1U);
}

TEST(GapFinder, TheClaimOfADeadPublisherIsNotCountedOnceItIsRepaired) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  claim_and_die(topic);
  must(publisher.publish("1"));
  EXPECT_EQ(info_of(topic).count_from(0), 2U);
  auto reader = from_beginning(*topic);
  EXPECT_EQ(read_until(reader, 2), (Log{"0+1 died", "1 1"}));
  EXPECT_EQ(info_of(topic).count_from(0), 1U);
  EXPECT_EQ(must(topic->subscriber({.from = From::last(1)})).offset(), 1U);
}

TEST(GapFinder, ARevokedClaimIsNotCounted) {
  const TestTopic topic{{.revoke_after = 1ms}};
  auto publisher = must(topic->publisher());
  auto claim = must(publisher.try_claim(1));
  must(must(topic->publisher()).publish("1"));
  auto reader = from_beginning(*topic);
  EXPECT_EQ(read_until(reader, 2), (Log{"0+1 revoked", "1 1"}));
  EXPECT_EQ(code(claim.commit()), Errc::revoked);
  EXPECT_EQ(info_of(topic).count_from(0), 1U);
}

// In a segment whose entry belonged to a segment with gaps, and in memory that contains their headers.
TEST(GapFinder, ALapLaterNothingIsLeftOfThem) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  for (int i = 0; i < 20; ++i) {
    abort_claim(publisher, kThird);
    must(publisher.publish(std::string(kHalf, 'x')));
  }
  for (int i = 0; i < 40; ++i) must(publisher.publish(std::string(kThird, 'x')));
  EXPECT_TRUE(info_of(topic).gaps.empty());
  expect_counts_as_read(*topic);
}

// Publishes, aborts, and publishes batches at random, over many laps.
TEST(GapFinder, CountsWhatASubscriberReads) {
  std::mt19937_64 random{test_seed()};
  for (const Policy policy : {Policy::block, Policy::grow}) {
    const TestTopic topic{{.policy = policy}};
    auto publisher = must(topic->publisher());
    for (int i = 0; i < 300; ++i) {
      const std::size_t size = random() % kThird;
      switch (random() % 4) {
        case 0: must(publisher.publish(std::string(size, 'x'))); break;
        case 1: {
          auto batch = must(publisher.batch());
          for (std::uint64_t n = 1 + random() % 4; n-- != 0;) must(batch.add("x"));
          must(batch.commit());
          break;
        }
        default: abort_claim(publisher, size);
      }
      if (i % 10 == 0) expect_counts_as_read(*topic);
    }
  }
}

// Memory of the topic that was freed has no gaps, and must not be touched.
TEST(GapFinder, WhatWasFreedIsNotRead) {
  const TestTopic topic{{.policy = Policy::grow, .max_capacity_bytes = 16 * kSegment}};
  auto publisher = must(topic->publisher());
  {
    const auto gating = from_beginning(*topic);
    for (int i = 0; i < 12; ++i) {  // Each fills a segment.
      abort_claim(publisher, kThird);
      must(publisher.publish(std::string(kHalf, 'x')));
    }
    EXPECT_EQ(info_of(topic).count_from(0), 12U);
  }
  EXPECT_GT(must(topic->shrink()), 0U);
  expect_counts_as_read(*topic);
}

// The first claim that was given up is among them, the last is not.
TEST(GapFinder, StopsAfter262144RecordsAlsoInsideASegment) {
  constexpr std::uint64_t kLookedAt = 262'144;
  const TestTopic topic{{.capacity_bytes = 16 << 20, .segment_bytes = 8 << 20}};
  auto publisher = must(topic->publisher());
  abort_claim(publisher);
  abort_claim(publisher);
  for (std::uint64_t i = 3; i < kLookedAt; ++i) must(publisher.publish(""));
  abort_claim(publisher);
  abort_claim(publisher);
  const PartitionInfo info = info_of(topic);
  ASSERT_EQ(info.end, kLookedAt + 1);
  ASSERT_EQ(info.gaps.size(), 2U);
  EXPECT_EQ(info.gaps[0].end, 2U);
  EXPECT_EQ(info.gaps[1].begin, kLookedAt - 1);
  EXPECT_EQ(info.gaps[1].end, kLookedAt);
}

// To find gaps costs no memory for all of a topic's records, neither during the search nor afterwards.
TEST(GapFinder, MapsRecordsForTheTimeOfALookAndOnlyWhatItReads) {
  if (detail::kOneMapping) GTEST_SKIP() << "readers use the writable mapping";
  constexpr std::uint64_t kCapacity = 32 << 20;
  for (const Policy policy : {Policy::block, Policy::grow}) {
    const TestTopic topic{
        {.capacity_bytes = kCapacity, .segment_bytes = 4 << 20, .policy = policy}};
    {
      auto publisher = must(topic->publisher());
      abort_claim(publisher);
      must(publisher.publish("1"));
    }
    const Topic again = topic.open_again();
    const int mapped = count_mapped_records();
    if (!forget_most_memory()) GTEST_SKIP() << "the kernel does not forget it";
    const std::uint64_t before = most_memory();
    EXPECT_EQ(again.info().partitions[0].gaps.size(), 1U);
    EXPECT_LT(most_memory(), before + kCapacity / 4);
    EXPECT_EQ(count_mapped_records(), mapped);
  }
}

// Whoever may write the words can at most make the numbers wrong.
TEST(GapFinder, ANoteWithoutGapsCostsOnlyALook) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  for (int i = 0; i < 20; ++i) must(publisher.publish(kHalfText));
  const detail::PartitionView view = topic.shared().partition(0);
  for (std::uint64_t i = 0; i <= view.entry_mask; ++i)
    detail::store_relaxed(view.entries[i].has_gaps, view.entries[i].map >> detail::kPhysicalBits);
  expect_counts_as_read(*topic);
  for (std::uint64_t i = 0; i <= view.entry_mask; ++i)
    detail::store_relaxed(view.entries[i].base_offset, ~std::uint64_t{0} - i);
  (void)info_of(topic).count_from(0);
}

// The window is 64 KiB, so most of these gaps are no longer in memory.
class StoredGaps : public testing::DurableSync {
 protected:
  // Each is about 100 bytes. Returns how many records it has published.
  static std::uint64_t publish_and_abort(const Topic& topic, int count) {
    std::mt19937_64 random{test_seed()};
    auto publisher = must(topic.publisher());
    std::uint64_t records = 0;
    for (int i = 0; i < count; ++i) {
      switch (random() % 5) {
        case 0: abort_claim(publisher, 100); break;
        case 1: {
          auto batch = must(publisher.batch());
          for (int n = 0; n < 3; ++n) must(batch.add(std::string(20, 'x')));
          must(batch.commit());
          records += 3;
          break;
        }
        default: must(publisher.publish(std::string(80, 'x'))); ++records;
      }
    }
    must(publisher.publish("behind the last gap, so that subscribers pass it"));
    return records + 1;
  }
  static void abort_claim(Publisher& publisher, std::size_t size) {
    must(must(publisher.claim(size)).abort());
  }
  static PartitionInfo partition(const Topic& topic) { return topic.info().partitions[0]; }
  static std::uint64_t count(const Topic& topic) {
    const PartitionInfo info = partition(topic);
    return info.count_from(info.start);
  }
  static bool is_written(const Topic& topic) {
    const PartitionInfo info = partition(topic);
    return info.written == info.end;
  }
  PartitionInfo closed() const {
    return must(detail::info_of_closed(temp_.path() + "/data", "d")).partitions[0];
  }
  // Publishes in a process that is then killed, although it is the archiver.
  void publish_and_be_killed(const std::function<void(const Topic&)>& publish) const {
    Child child{[&] {
      const Topic topic = must(open());
      publish(topic);
      if (!wait_until([&] { return is_written(topic); })) return 1;
      ::raise(SIGKILL);
      return 0;
    }};
    EXPECT_EQ(child.join(), -SIGKILL);
  }
};

TEST_F(StoredGaps, AreNotCountedWhenMemoryNoLongerHasThem) {
  for (const Durability durability : {Durability::os, Durability::interval, Durability::fsync}) {
    const Topic topic = create(durability);
    const auto group = must(topic.group("g", {.from = From::beginning}));
    const std::uint64_t records = publish_and_abort(topic, 2000);
    ASSERT_GE(count(topic), records);
    // The last ones are stored a second later.
    ASSERT_TRUE(wait_until([&] { return count(topic) == records; })) << count(topic) - records;
    EXPECT_EQ(group.info().lag, records);
    expect_counts_as_read(topic);
    delete_topic();
  }
}

TEST_F(StoredGaps, ArePartOfATopicThatIsClosedAndOpenedAgain) {
  std::uint64_t records = 0;
  for (int turn = 0; turn < 3; ++turn) {
    const Topic topic = turn == 0 ? create(Durability::os) : must(open());
    EXPECT_EQ(count(topic), records);
    records += publish_and_abort(topic, 500);
  }
  EXPECT_EQ(closed().count_from(0), records);
  const Topic topic = must(open());
  EXPECT_EQ(count(topic), records);
  expect_counts_as_read(topic);
  EXPECT_EQ(must(topic.subscriber({.from = From::last(records)})).offset(),
            closed().offset_of_last(records));
}

TEST_F(StoredGaps, OfDeadAndRevokedClaimsAreNotCounted) {
  TopicOptions wanted = options(Durability::os);
  wanted.revoke_after = 1ms;
  const Topic topic = create(wanted);
  auto publisher = publisher_of(topic);
  auto stopped = publisher_of(topic);
  publish_and_be_killed([](const Topic& other) {
    auto mortal = must(other.publisher());
    auto claim = must(mortal.try_claim(1));
    ::raise(SIGKILL);
  });
  auto claim = must(stopped.try_claim(1));
  for (int i = 0; i < 1000; ++i) must(publisher.publish(std::string(80, 'x')));
  EXPECT_EQ(code(claim.commit()), Errc::revoked);
  EXPECT_EQ(partition(topic).end, 1002U);
  EXPECT_TRUE(wait_until([&] { return count(topic) == 1000; })) << count(topic);
  expect_counts_as_read(topic);
}

// The archiver dies before it stores them. The next one finds them in memory.
TEST_F(StoredGaps, AreFoundByTheNextArchiver) {
  { const Topic topic = create(Durability::os); }
  publish_and_be_killed([](const Topic& topic) {
    auto publisher = must(topic.publisher());
    for (int i = 0; i < 10; ++i) {
      abort_claim(publisher, 1);
      must(publisher.publish("x"));
    }
  });
  const Topic topic = must(open());
  auto publisher = publisher_of(topic);
  for (int i = 0; i < 1000; ++i) must(publisher.publish(std::string(80, 'x')));
  EXPECT_TRUE(wait_until([&] { return count(topic) == 1010; })) << count(topic);
  expect_counts_as_read(topic);
}

// As after a failure of the machine: they are in the frames behind the checkpoint.
TEST_F(StoredGaps, AreFoundByRecovery) {
  { const Topic topic = create(Durability::os); }
  testing::Shared<std::atomic<std::uint64_t>> records;
  publish_and_be_killed([&](const Topic& topic) { *records = publish_and_abort(topic, 2000); });
  std::filesystem::remove_all(temp_.path() + "/topics/d");
  EXPECT_EQ(closed().count_from(0), *records);
  {
    const Topic topic = must(open());
    EXPECT_EQ(count(topic), *records);
    *records += publish_and_abort(topic, 100);
    EXPECT_EQ(count(topic), *records);
  }
  EXPECT_EQ(closed().count_from(0), *records);
  expect_counts_as_read(must(open()));
}

TEST_F(StoredGaps, OfFilesThatRetentionHasDeletedAreNotSubtracted) {
  TopicOptions wanted = options(Durability::os);
  wanted.file_bytes = 64 << 10;
  wanted.retention_bytes = 128 << 10;
  {
    const Topic topic = create(wanted);
    (void)publish_and_abort(topic, 6000);
  }
  const Topic topic = must(open());
  EXPECT_GT(partition(topic).start, 0U);
  expect_counts_as_read(topic);
}

// A version that does not know them leaves them out of the checkpoint: then they count.
TEST_F(StoredGaps, CountAsRecordsWithoutTheirSection) {
  std::uint64_t records = 0;
  {
    const Topic topic = create(Durability::os);
    records = publish_and_abort(topic, 100);
  }
  auto directory = must(detail::open_directory_path(temp_.path() + "/data/d", false, false));
  detail::Disk& disk = detail::Disk::system();
  const auto manifest = must(detail::load_manifest(disk, directory.get()));
  auto file = must(detail::CheckpointFile::load(disk, directory.get(), manifest));
  detail::Checkpoint without = file.value();
  EXPECT_FALSE(without.gaps.empty());
  without.gaps.clear();
  must(file.store(disk, directory.get(), without));
  const Topic topic = must(open());
  EXPECT_EQ(count(topic), partition(topic).end);
  EXPECT_GT(partition(topic).end, records);
}

std::vector<std::uint64_t> numbers_of(const std::vector<detail::CheckpointGap>& gaps) {
  std::vector<std::uint64_t> numbers;
  for (const auto& one : gaps) numbers.insert(numbers.end(), {one.partition, one.begin, one.end});
  return numbers;
}

// Offsets behind the end of the files may get records later.
TEST(GapsOfACheckpoint, RecoveryKeepsThoseBeforeTheEndThatMakeSense) {
  testing::TestStore store;
  auto writer = store.writer();
  testing::LogBytes log{store.manifest.window.key};
  store.append(writer, log.record("0").aborted().record("2").died().died());
  store.checkpoint(writer, true);
  const auto load = [&] {
    return must(detail::CheckpointFile::load(store.disk, store.directory(), store.manifest));
  };
  detail::CheckpointFile file = load();
  detail::Checkpoint value = file.value();
  value.gaps = {{0, 0, 3, 9}, {0, 0, 50, 60}, {0, 0, 1, 2},
                {7, 0, 0, 1}, {0, 0, 2, 2},   {0, 0, 2, ~std::uint64_t{0}}};
  must(file.store(store.disk, store.directory(), value));
  (void)store.recover();
  EXPECT_EQ(numbers_of(load().value().gaps), (std::vector<std::uint64_t>{0, 1, 2, 0, 3, 5}));
}

TEST(GapsOfACheckpoint, RecoveryFindsThoseInFramesBehindIt) {
  testing::TestStore store;
  auto writer = store.writer();
  testing::LogBytes log{store.manifest.window.key};
  store.append(writer, log.record("0").aborted());
  store.checkpoint(writer, false);
  testing::LogBytes more = log.next();
  store.append(writer, more.died().batch({"3", "4"}).aborted().record("6"));
  EXPECT_EQ(numbers_of(store.recover().gaps), (std::vector<std::uint64_t>{0, 2, 3, 0, 5, 6}));
}

TEST(GapsOfACheckpoint, TheLastOnesOfEachPartitionAreKept) {
  std::vector<detail::CheckpointGap> gaps;
  for (std::uint64_t i = 0; i < detail::kMostGaps; ++i) {
    detail::add_gap({0, 0, 2 * i, 2 * i + 1}, gaps);
    detail::add_gap({1, 0, 2 * i, 2 * i + 1}, gaps);
  }
  detail::add_gap({1, 0, 2 * detail::kMostGaps - 1, 2 * detail::kMostGaps}, gaps);
  detail::settle_gaps(gaps);
  ASSERT_EQ(gaps.size(), detail::kMostGaps);
  const std::size_t half = detail::kMostGaps / 2;
  EXPECT_EQ(gaps[0].partition, 0U);
  EXPECT_EQ(gaps[0].begin, detail::kMostGaps);
  EXPECT_EQ(gaps[half - 1].end, 2 * detail::kMostGaps - 1);
  EXPECT_EQ(gaps[half].partition, 1U);
  EXPECT_EQ(gaps.back().end, 2 * detail::kMostGaps);
}

}  // namespace
}  // namespace leat
