// If this failed, lags, numbers of records and From::last would count offsets that hold nothing because their claims
// were given up, or leave out records.
#include <fstream>

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
void expect_counts_as_read(const TestTopic& topic) {
  std::vector<std::uint64_t> records;
  auto reader = must(topic->subscriber({.from = From::beginning, .gating = false}));
  while (must(reader.poll(1000, [&](const Record& one) { records.push_back(one.offset); })) != 0) {
  }
  const PartitionInfo info = info_of(topic);
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
  expect_counts_as_read(topic);
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
      if (i % 10 == 0) expect_counts_as_read(topic);
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
  expect_counts_as_read(topic);
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
  expect_counts_as_read(topic);
  for (std::uint64_t i = 0; i <= view.entry_mask; ++i)
    detail::store_relaxed(view.entries[i].base_offset, ~std::uint64_t{0} - i);
  (void)info_of(topic).count_from(0);
}

}  // namespace
}  // namespace leat
