// If this failed, a benchmark of consumer groups could lose or repeat records
// and still print a rate.
#include "bench/leat/group.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "bench/ipc/queue_group.hpp"

namespace leat::bench {
namespace {

std::string complaint_of(const Receipts& receipts) {
  try {
    receipts.check();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

TEST(Receipts, AcceptEachRecordOnce) {
  const Receipts receipts(2, 3, 130);
  for (std::uint64_t publisher = 0; publisher < 3; ++publisher) {
    for (std::uint64_t record = 0; record < 130; ++record) {
      EXPECT_TRUE(receipts.note(record % 2, publisher, record));
    }
  }
  EXPECT_EQ(complaint_of(receipts), "");
}

TEST(Receipts, NameTheRecordThatNobodyReceived) {
  const Receipts receipts(2, 2, 130);
  for (std::uint64_t record = 0; record < 130; ++record) {
    receipts.note(0, 0, record);
    if (record != 129) receipts.note(1, 1, record);
  }
  EXPECT_EQ(complaint_of(receipts), "message 129 of sender 1 was received by nobody");
}

TEST(Receipts, NameTheRecordThatTwoMembersReceived) {
  const Receipts receipts(3, 1, 70);
  for (std::uint64_t record = 0; record < 70; ++record) receipts.note(0, 0, record);
  receipts.note(2, 0, 64);
  EXPECT_EQ(complaint_of(receipts), "message 64 of sender 0 was received by two receivers");
}

TEST(Receipts, RefuseARecordThatCameBeforeOrNeverWas) {
  const Receipts receipts(1, 2, 10);
  EXPECT_TRUE(receipts.note(0, 1, 9));
  EXPECT_FALSE(receipts.note(0, 1, 9));
  EXPECT_FALSE(receipts.note(0, 1, 10));
  EXPECT_FALSE(receipts.note(0, 2, 0));
}

void check(const MessageCost& cost) {
  EXPECT_GT(cost.ns, 0);
  EXPECT_GT(cost.per_second(), 0);
  EXPECT_GT(cost.sender_cpu_ns, 0);
  EXPECT_GE(cost.sender_wait_ns, 0);
  EXPECT_GT(cost.receiver_cpu_ns, 0);
}

// measure_group() throws if a record is wrong, lost or received twice.
TEST(MeasureGroup, DeliversEveryRecordToOneMemberWhateverTheSettings) {
  const auto measured = [](const GroupLoad& load) { check(measure_group(load, usable_cpus())); };
  measured({.size = 8, .records = 1000});
  measured({.size = 100, .records = 1000, .mode = Mode::exclusive, .verify = Verify::full});
  measured({.size = 100, .records = 1001, .publishers = 2, .members = 2, .verify = Verify::full});
  measured({.size = 8, .records = 1000, .publishers = 3, .members = 4, .batch = 1});
  measured({.size = 8, .records = 1000, .members = 2, .keys = 5, .by_key = true});
  measured({.size = 1024, .records = 1000, .publishers = 1, .members = 3, .batch = 7});
}

TEST(MeasureSimpleIpc, DeliversEveryRecordToOneThread) {
  for (const Instance instance : {Instance::own, Instance::shared}) {
    const auto measured = [&](const GroupLoad& load) {
      check(measure_simple_ipc(instance, load, usable_cpus()));
    };
    measured({.size = 8, .records = 1000});
    measured({.size = 100, .records = 1001, .publishers = 3, .members = 2, .verify = Verify::full});
  }
}

TEST(MeasureQueue, DeliversEveryRecordToOneMember) {
  for (const QueueKind kind : kQueueKinds) {
    try {
      (void)make_queue(kind, 100);
    } catch (const Failure& failure) {
      std::fprintf(stderr, "%s\n", failure.what());
      continue;  // Not available on this machine.
    }
    const auto measured = [&](const GroupLoad& load) {
      check(measure_queue(kind, load, usable_cpus()));
    };
    measured({.size = 8, .records = 1000});
    measured({.size = 100, .records = 1001, .publishers = 3, .members = 2, .verify = Verify::full});
    measured({.size = 1024, .records = 500, .publishers = 1, .members = 4});
  }
}

TEST(PublisherCpu, IsMeasuredWithAndWithoutAGroup) {
  for (const bool with_group : {false, true}) {
    EXPECT_GT(publisher_cpu_ns({.size = 100, .records = 500}, 100'000, with_group, usable_cpus()),
              0);
  }
}

TEST(BoostQueue, IsFirstInFirstOutAndHasNoNameAnyMore) {
  const auto queue = make_queue(QueueKind::boost_mq, 8);
  EXPECT_EQ(queue->depth(), 1024u);
  EXPECT_EQ(make_queue(QueueKind::boost_mq, 1u << 20)->depth(), 64u);  // Limited to save memory.
  std::array<std::byte, 8> buffer{};
  for (const char letter : {'a', 'b'}) {
    buffer[0] = static_cast<std::byte>(letter);
    queue->send(std::span(buffer).first(1));
  }
  queue->send({});
  for (const char letter : {'a', 'b'}) {
    EXPECT_EQ(queue->receive(buffer), 1u);
    EXPECT_EQ(buffer[0], static_cast<std::byte>(letter));
  }
  EXPECT_EQ(queue->receive(buffer), 0u);

  const std::string own_names = "leat-bench-" + std::to_string(::getpid());
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(own_names));
  }
}

}  // namespace
}  // namespace leat::bench
