// If this failed, a record could be processed twice or not at all when several threads share a
// group, or one member would do nearly all the work.
#include <atomic>
#include <random>

#include "group/group_testing.hpp"

namespace leat {
namespace {

struct Shares {
  std::vector<std::uint64_t> of_member;
  std::vector<int> of_record;
};

// `count` members on threads of their own call `work` for each record they
// take, until all `records` are done.
template <class Work>
Shares share(const Topic& topic, const Group& group, std::size_t count, std::uint64_t records,
             Work work) {
  Shares shares{std::vector<std::uint64_t>(count), std::vector<int>(records)};
  std::atomic<std::uint64_t> left{records};
  std::atomic<std::size_t> joined{0};
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        Member member = join(group);
        ++joined;
        while (left > 0) {
          auto delivery = member.receive(10ms);
          if (!delivery) continue;
          const auto number = std::stoull(std::string{delivery->record.text()});
          if (!work(member, *delivery)) continue;
          ++shares.of_record[number];  // Accessed only by the member that holds the record.
          ++shares.of_member[i];
          --left;
        }
      });
    }
    while (joined < count) std::this_thread::sleep_for(1ms);
    auto publisher = must(topic.publisher());
    publish_numbers(publisher, records);
  }
  return shares;
}

// The wide margin allows for a busy machine.
TEST(Share, MembersWithEqualWorkGetEqualShares) {
  constexpr std::uint64_t kRecords = 2000;
  const TestTopic topic{{.capacity_bytes = 64 * kSegment}};
  const Group group = group_of(*topic);
  const Shares shares =
      share(*topic, group, 4, kRecords, [](Member& member, const Delivery& delivery) {
        std::this_thread::sleep_for(1ms);
        must(member.acknowledge(delivery));
        return true;
      });
  for (const int times : shares.of_record) EXPECT_EQ(times, 1);
  for (const std::uint64_t share : shares.of_member) {
    EXPECT_GE(share, kRecords / 4 * 6 / 10);
    EXPECT_LE(share, kRecords / 4 * 14 / 10);
  }
}

TEST(Share, SlowMemberGetsLess) {
  const TestTopic topic{{.capacity_bytes = 64 * kSegment}};
  const Group group = group_of(*topic);
  std::atomic<std::uint32_t> slow{0};
  const Shares shares = share(*topic, group, 2, 500, [&](Member& member, const Delivery& delivery) {
    thread_local const bool is_slow = slow.fetch_add(1) == 0;
    std::this_thread::sleep_for(is_slow ? 10ms : 100us);
    must(member.acknowledge(delivery));
    return true;
  });
  for (const int times : shares.of_record) EXPECT_EQ(times, 1);
  const auto [least, most] = std::minmax(shares.of_member[0], shares.of_member[1]);
  EXPECT_LT(least, most);
}

TEST(Share, RandomGivingBackAndLeavingLosesNothing) {
  constexpr std::uint64_t kRecords = 3000;
  const TestTopic topic{{.capacity_bytes = 16 * kSegment}};
  const Group group = group_of(*topic);
  const std::uint64_t seed = test_seed();
  std::atomic<std::uint64_t> thread_number{0};
  const Shares shares =
      share(*topic, group, 4, kRecords, [&](Member& member, const Delivery& delivery) {
        thread_local std::mt19937_64 random{seed + ++thread_number};
        switch (random() % 20) {
          case 0: must(member.requeue(delivery)); return false;
          case 1:
            must(member.requeue(delivery, std::chrono::microseconds{random() % 3000}));
            return false;
          case 2: member = join(group); return false;  // Leaves while it holds the record.
          default: must(member.acknowledge(delivery)); return true;
        }
      });
  for (const int times : shares.of_record) EXPECT_EQ(times, 1);
  EXPECT_EQ(group.info().in_flight, 0u);
  EXPECT_EQ(group.info().lag, 0u);
  EXPECT_GT(group.info().redelivered, 0u);
}

TEST(Share, SeveralPublishersAndPartitionsBesideASubscriber) {
  constexpr std::uint64_t kEach = 1000;
  const TestTopic topic{{.partitions = 3}};
  const Group group = group_of(*topic);
  auto subscriber = from_beginning(*topic);
  std::vector<std::atomic<int>> seen(3 * kEach);
  std::atomic<std::uint64_t> left{3 * kEach};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      Member member = join(group);
      std::vector<Delivery> taken;
      while (left > 0) {
        taken.clear();
        if (!member.receive(taken, 16, 10ms)) continue;
        for (const Delivery& delivery : taken)
          ++seen[std::stoull(std::string{delivery.record.text()})];
        left -= must(member.acknowledge_up_to(taken.back()));
      }
    });
  }
  for (std::uint64_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      auto publisher = must(topic->publisher({.partition = static_cast<std::uint32_t>(i)}));
      for (std::uint64_t k = 0; k < kEach; ++k)
        must(publisher.publish(std::to_string(i * kEach + k), kPatience));
    });
  }
  std::uint64_t read = 0;
  while (read < 3 * kEach) {
    must(subscriber.wait(kPatience));
    read += must(subscriber.poll(100, kIgnore));
  }
  threads.clear();
  for (const auto& times : seen) EXPECT_EQ(times, 1);
}

}  // namespace
}  // namespace leat
