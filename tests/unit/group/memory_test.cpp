// If this failed, a member that runs out of memory could lose a record, count
// it as delivered, or crash.
//
// This file replaces operator new: on the thread of a test it fails after a
// given number of allocations. It also counts the bytes in use.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>

#include "group/group_testing.hpp"
#include "support/process.hpp"

namespace leat {
namespace {

thread_local int allocations_left = -1;  // -1: no limit.
std::atomic<std::size_t> bytes_in_use = 0;

void* note_allocated(void* memory) {
  if (memory != nullptr) bytes_in_use += ::malloc_usable_size(memory);
  return memory;
}
void note_freed(void* memory) {
  if (memory != nullptr) bytes_in_use -= ::malloc_usable_size(memory);
  std::free(memory);
}

struct Allocations {
  explicit Allocations(int count) { allocations_left = count; }
  ~Allocations() { allocations_left = -1; }
};

}  // namespace
}  // namespace leat

// Not inlined, because GCC would warn about a mismatch of new and free.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (leat::allocations_left == 0) throw std::bad_alloc{};
  if (leat::allocations_left > 0) --leat::allocations_left;
  if (void* memory = leat::note_allocated(std::malloc(size != 0 ? size : 1))) return memory;
  throw std::bad_alloc{};
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return leat::note_allocated(std::malloc(size != 0 ? size : 1));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { leat::note_freed(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  leat::note_freed(memory);
}
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
  leat::note_freed(memory);
}

namespace leat {
namespace {

// With a lease, the user gets copies. Those that poll() has acknowledged are not kept until it returns.
TEST(MemberMemory, PollFreesTheCopiesOfRecordsThatAreOver) {
  constexpr std::size_t kSize = 2000;
  const TestTopic topic{{.capacity_bytes = 200 * kSegment}};
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.lease = 1h});
  for (int i = 0; i < 200; ++i) must(publisher.publish(std::string(kSize, 'x')));
  Member member = join(group);
  std::size_t most = 0;
  const std::size_t before = bytes_in_use;
  const auto visit = [&](const Delivery& delivery) {
    EXPECT_EQ(delivery.record.value.size(), kSize);
    most = std::max<std::size_t>(most, bytes_in_use);
  };
  EXPECT_EQ(must(member.poll(1000, visit)), 200u);
  EXPECT_LT(most, before + 10 * kSize);
}

// What the callback itself receives stays valid until the next call.
TEST(MemberMemory, PollKeepsTheCopyThatItsCallbackHasReceived) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic, {.lease = 1h}));
  publish_all(publisher, {"a", "b", "c"});
  std::optional<Delivery> kept;
  Log log;
  must(member.poll(2, [&](const Delivery& delivery) {
    log.push_back(to_text(delivery));
    if (!kept) kept = take(member);
  }));
  EXPECT_EQ(log, (Log{"0 a", "2 c"}));
  EXPECT_EQ(to_text(*kept), "1 b");
}

TEST(MemberMemory, JoiningWithoutSaysSoAndTakesNoSeat) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.by_key = true, .members = 1, .lease = 1h});
  publish_numbers(publisher, 1);
  {
    Member first = join(group);  // The seat has been used before.
    (void)take(first);
  }
  for (int count = 0;; ++count) {
    std::optional<Result<Member>> joined;
    {
      const Allocations few{count};
      joined.emplace(group.join());
    }
    if (*joined) break;
    ASSERT_EQ(code(*joined), Errc::no_memory) << count;
    ASSERT_LT(count, 1000);
    EXPECT_TRUE(group.info().members.empty());
  }
}

// A member of a durable topic's group copies what it hands out.
TEST(MemberMemory, OfLargeCopiesIsFreedWhenTheyAreSettled) {
  constexpr std::size_t kLarge = 500'000;  // bytes
  constexpr std::size_t kCount = 8;
  const testing::TemporaryDirectory topics;
  const testing::TemporaryDirectory data;
  const Topic topic = must(Topic::create(
      "t", {.directory = topics.path(), .durable = Durability::os, .data_directory = data.path()}));
  const Group group = group_of(topic, {.from = From::beginning, .in_flight = kCount});
  auto publisher = must(topic.publisher());
  for (std::size_t i = 0; i < kCount; ++i) must(publisher.publish(std::string(kLarge, 'x')));
  Member member = join(group);
  const std::size_t before = bytes_in_use;
  std::vector<Delivery> held;
  for (std::size_t i = 0; i < kCount; ++i) held.push_back(take(member));
  EXPECT_GE(bytes_in_use - before, kCount * kLarge);
  for (const Delivery& one : held) must(member.acknowledge(one));
  EXPECT_LE(bytes_in_use, before + kLarge + (1 << 20));  // The reader may hold one record.
}

TEST(MemberMemory, WorkingNeedsNone) {
  for (const bool by_key : {false, true}) {
    const TestTopic topic;
    auto publisher = must(topic->publisher());
    const Group group = group_of(*topic, {.by_key = by_key, .in_flight = 16});
    Member member = join(group);
    for (int i = 0; i < 100; ++i) {
      const std::string key = std::to_string(i % 7);
      must(publisher.publish({.key = key, .value = "x"}));
    }
    std::size_t done = 0;
    std::vector<Delivery> taken;
    taken.reserve(16);
    const Allocations none{0};
    for (int i = 0; done < 100; ++i) {
      taken.clear();
      const auto count =
          member.receive(taken, static_cast<std::size_t>(1 + i % 8), Deadline::immediate());
      for (const Delivery& one : taken) {
        const bool fails = i % 3 == 0;
        if (fails ? !member.requeue(one) : !member.acknowledge(one)) std::abort();
        done += fails ? 0 : 1;
      }
      const auto polled = member.poll(3, [](const Delivery&) {});
      if (!polled || (!count && count.error().code != Errc::timeout)) std::abort();
      done += *polled;
    }
  }
}

// The record is neither lost nor counted as delivered.
TEST(MemberMemory, RecordThatCannotBeCopiedGoesBack) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.lease = 1h});
  Member member = join(group);
  publish_numbers(publisher, 2);
  {
    const Allocations none{0};
    EXPECT_EQ(code(member.receive(kPatience)), Errc::no_memory);
  }
  Log log;
  while (log.size() < 2) {
    const Delivery one = take(member);
    EXPECT_EQ(one.deliveries, 1u);
    log.push_back(to_text(one));
  }
  EXPECT_EQ(sorted(log), numbers(2));
}

// A record that was handed out too often must not be handed out once more.
TEST(MemberMemory, DeadLetterThatCannotBeCopiedStaysOne) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.max_deliveries = 1, .lease = 1h});
  Member member = join(group);
  publish_all(publisher, {"bad"});
  must(member.requeue(take(member)));
  {
    const Allocations none{0};
    EXPECT_EQ(code(member.receive(kPatience)), Errc::no_memory);
  }
  EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);
  EXPECT_EQ(dead_values(dead_topic(topic)), std::vector<std::string>{"bad"});
}

TEST(CreateWithoutMemory, LeavesNothing) {
  const TestDirectory topics;
  int failures = 0;
  for (bool is_made = false; !is_made; ++failures) {
    ASSERT_LT(failures, 1000);
    const TopicOptions options{
        .capacity_bytes = 4 * kSegment, .segment_bytes = kSegment, .directory = topics.path()};
    const std::string name = "topic";
    try {
      const Allocations few{failures};
      is_made = static_cast<bool>(Topic::create(name, options));
    } catch (const std::bad_alloc&) {
    }
    if (!is_made) {
      EXPECT_TRUE(topics.is_empty()) << "allocation " << failures;
    }
  }
  EXPECT_GT(failures, 3);
}

}  // namespace
}  // namespace leat
