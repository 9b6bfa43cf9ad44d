// Members of durable topics' groups that read memory only. If these failed, an event loop would wait for the disk, or a
// record would be lost, delivered twice, or counted as delivered when it was not.
#include <random>
#include <set>
#include <thread>

#include "support/switch_disk.hpp"
#include "unit/group/group_testing.hpp"

namespace leat {
namespace {

constexpr std::uint64_t kMany = 400;  // More than the window has.

class MemberInMemory : public ::testing::Test {
 protected:
  MemberInMemory() {
    ::unsetenv("LEAT_TEST_DURABLE");
    topic_.emplace(must(Topic::create(kTopicName, {.capacity_bytes = 64 << 10,
                                                   .segment_bytes = 8 << 10,
                                                   .directory = topics_.path(),
                                                   .durable = Durability::os,
                                                   .file_bytes = 64 << 10,
                                                   .data_directory = data_.path()})));
  }
  static std::string text(std::uint64_t offset) {
    std::string made = std::to_string(offset) + ' ';
    made.resize(500, 'x');
    return made;
  }
  void publish(std::uint64_t count) {
    auto publisher = must(topic_->publisher({.acknowledge = Stage::committed}));
    for (std::uint64_t i = 0; i < count; ++i)
      must(publisher.publish(text(topic_->end_offset(0)), kPatience));
    for (const Deadline deadline{kPatience};
         topic_->info().partitions[0].written != topic_->end_offset(0);)
      ASSERT_FALSE(deadline.passed());
  }
  static Member joined(const Group& group) {
    Member member = join(group);
    member.read_memory_only(true);
    return member;
  }
  // Without waiting.
  Result<std::vector<Delivery>> receive(Member& member, std::size_t limit = 1000) {
    const std::uint64_t reads = disk_.own_reads();
    std::vector<Delivery> taken;
    auto count = member.receive(taken, limit, Deadline::immediate());
    EXPECT_EQ(disk_.own_reads(), reads);
    if (!count) return count.error();
    return taken;
  }
  void expect_on_disk(Member& member) {
    EXPECT_EQ(code(receive(member)), Errc::timeout);
    EXPECT_TRUE(member.next_is_on_disk());
  }
  // As another thread would.
  static std::vector<Delivery> receive_from_disk(Member& member, std::size_t count) {
    std::vector<Delivery> taken;
    std::thread{[&] {
      member.read_memory_only(false);
      while (taken.size() < count) must(member.receive(taken, count - taken.size(), kPatience));
      member.read_memory_only(true);
    }}.join();
    return taken;
  }
  static void expect_records(const std::vector<Delivery>& taken, std::uint64_t first,
                             std::uint32_t deliveries = 1) {
    for (std::size_t i = 0; i < taken.size(); ++i) {
      EXPECT_EQ(taken[i].record.offset, first + i);
      EXPECT_EQ(taken[i].record.text(), text(first + i));
      EXPECT_EQ(taken[i].deliveries, deliveries);
    }
  }

  TestDirectory topics_;
  TestDirectory data_;
  testing::SwitchDisk disk_;
  std::optional<Topic> topic_;
};

TEST_F(MemberInMemory, StopsBeforeARecordThatIsOnlyOnDisk) {
  const Group group = group_of(*topic_);
  Member member = joined(group);
  publish(kMany);
  expect_on_disk(member);
  expect_on_disk(member);
  const Deadline half{kPatience / 2};
  EXPECT_EQ(code(member.receive(kPatience)), Errc::timeout);
  must(member.wait(kPatience));
  EXPECT_FALSE(half.passed());
  const auto taken = receive_from_disk(member, kMany);
  expect_records(taken, 0);
  EXPECT_EQ(must(member.acknowledge(taken)), kMany);

  publish(20);  // It is in memory again.
  const auto more = must(receive(member));
  EXPECT_EQ(more.size(), 20U);
  expect_records(more, kMany);
  EXPECT_EQ(code(receive(member)), Errc::timeout);
  EXPECT_FALSE(member.next_is_on_disk());
  EXPECT_EQ(code(member.wait(1ms)), Errc::timeout);
}

TEST_F(MemberInMemory, ReturnedRecordsMayBeOnDisk) {
  const Group group = group_of(*topic_);
  Member member = joined(group);
  publish(10);
  const auto taken = must(receive(member));
  ASSERT_EQ(taken.size(), 10U);
  publish(kMany);
  for (const Delivery& one : taken) must(member.requeue(one));
  expect_on_disk(member);
  auto again = receive_from_disk(member, 10);
  expect_records(again, 0, 2);
  EXPECT_EQ(group.info().redelivered, 10U);
}

// One by one, so that it has taken 64 of them when they leave memory.
TEST_F(MemberInMemory, WhatItTookInAdvanceKeepsItsPlace) {
  const Group group = group_of(*topic_);
  Member member = joined(group);
  publish(64);
  const Delivery first = must(member.receive(Deadline::immediate()));
  EXPECT_EQ(first.record.offset, 0U);
  publish(kMany);
  EXPECT_EQ(code(member.receive(Deadline::immediate())), Errc::timeout);
  EXPECT_TRUE(member.next_is_on_disk());
  int polled = 0;
  EXPECT_EQ(must(member.poll(10, [&](const Delivery&) { ++polled; })), 0U);
  EXPECT_EQ(polled, 0);
  EXPECT_EQ(must(member.acknowledge_all()), 1U);
  const auto taken = receive_from_disk(member, 63 + kMany);
  expect_records(taken, 1);
  EXPECT_EQ(must(member.acknowledge_all()), 63 + kMany);
  EXPECT_EQ(group.info().in_flight, 0U);
}

TEST_F(MemberInMemory, WhatItLeftOnDiskGoesToOthersWithoutCounting) {
  const Group group = group_of(*topic_);
  {
    Member member = joined(group);
    publish(2);
    must(member.acknowledge(must(member.receive(Deadline::immediate()))));
    publish(kMany);
    EXPECT_EQ(code(member.receive(Deadline::immediate())), Errc::timeout);
    EXPECT_TRUE(member.next_is_on_disk());
  }
  Member other = join(group);
  const Delivery next = take(other);
  EXPECT_EQ(next.record.offset, 1U);
  EXPECT_EQ(next.deliveries, 1U);
}

TEST_F(MemberInMemory, ADeadLetterOnDiskIsOneStill) {
  const Group group = group_of(*topic_, {.max_deliveries = 1});
  Member member = joined(group);
  publish(2);
  const auto taken = must(receive(member));
  ASSERT_EQ(taken.size(), 2U);
  publish(kMany);
  for (const Delivery& one : taken) must(member.requeue(one));
  expect_on_disk(member);
  expect_on_disk(member);
  EXPECT_EQ(group.info().dead_letters, 0U);
  const auto rest = receive_from_disk(member, kMany);
  expect_records(rest, 2);
  EXPECT_EQ(group.info().dead_letters, 2U);
}

TEST_F(MemberInMemory, GoesOnWhenOthersHaveTakenWhatIsOnDisk) {
  const Group group = group_of(*topic_);
  Member member = joined(group);
  Member other = join(group);
  publish(kMany);
  expect_on_disk(member);
  std::vector<std::byte> buffer(1000);
  for (std::uint64_t i = 0; i < kMany; ++i) must(other.receive_copy(buffer, kPatience));
  publish(1);
  auto taken = must(receive(member));
  expect_records(taken, kMany);
  EXPECT_FALSE(member.next_is_on_disk());
}

TEST_F(MemberInMemory, ALeaseThatRunsOutMeanwhileIsLost) {
  const Group group = group_of(*topic_, {.lease = 20ms});
  Member member = joined(group);
  Member other = join(group);
  publish(2);
  const Delivery first = must(member.receive(Deadline::immediate()));
  EXPECT_EQ(first.record.offset, 0U);
  publish(kMany);
  EXPECT_EQ(code(member.receive(Deadline::immediate())), Errc::timeout);
  EXPECT_TRUE(member.next_is_on_disk());
  std::set<std::uint64_t> offsets;
  while (offsets.size() < 2 + kMany) {
    const Delivery one = take(other);
    if (other.acknowledge(one)) offsets.insert(one.record.offset);
  }
  EXPECT_EQ(code(receive(member)), Errc::timeout);
  EXPECT_EQ(code(member.acknowledge(first)), Errc::lease_lost);
}

TEST_F(MemberInMemory, AFailingDiskReturnsWhatCannotBeRead) {
  const Group group = group_of(*topic_);
  Member member = joined(group);
  publish(kMany);
  expect_on_disk(member);
  disk_.fail_opens(EACCES);
  member.read_memory_only(false);
  EXPECT_EQ(code(member.receive(Deadline::immediate())), Errc::permission);
  member.read_memory_only(true);
  disk_.mend();
  expect_on_disk(member);
  expect_records(receive_from_disk(member, kMany), 0);
}

// Random bursts and requeues, wherever the records are by then.
TEST_F(MemberInMemory, EveryRecordIsDeliveredUntilItIsAcknowledged) {
  std::mt19937 random{20261130};
  const Group group = group_of(*topic_);
  Member member = joined(group);
  std::vector<int> acknowledged;
  int turns_on_disk = 0;
  const auto settle = [&](const std::vector<Delivery>& taken) {
    acknowledged.resize(topic_->end_offset(0));
    for (const Delivery& one : taken) {
      EXPECT_EQ(one.record.text(), text(one.record.offset));
      if (random() % 8 == 0) {
        must(member.requeue(one));
      } else {
        must(member.acknowledge(one));
        ++acknowledged[one.record.offset];
      }
    }
  };
  for (int round = 0; round < 40 || group.info().in_flight + group.info().lag != 0; ++round) {
    ASSERT_LT(round, 10'000);
    if (round < 40) publish(random() % 150);
    if (auto taken = receive(member, 1 + random() % 60)) settle(*taken);
    if (!member.next_is_on_disk()) continue;
    ++turns_on_disk;
    member.read_memory_only(false);
    std::vector<Delivery> taken;
    (void)member.receive(taken, 1 + random() % 100, Deadline::immediate());
    member.read_memory_only(true);
    settle(taken);
  }
  EXPECT_EQ(acknowledged, std::vector<int>(topic_->end_offset(0), 1));
  EXPECT_GT(turns_on_disk, 10);
}

}  // namespace
}  // namespace leat
