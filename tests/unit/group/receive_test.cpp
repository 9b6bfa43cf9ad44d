// If this failed, members would get wrong records, in a wrong order, or more than they asked for.
#include <functional>
#include <optional>
#include <stdexcept>

#include "group/group_testing.hpp"

namespace leat {
namespace {

TEST(Member, TakesWhatIsThereOldestFirst) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic));
  publish_numbers(publisher, 200);
  EXPECT_EQ(drain(member), numbers(200));
  EXPECT_EQ(code(member.receive(Deadline::immediate())), Errc::timeout);
}

TEST(Member, SharesWithTheOthers) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member a = join(group);
  Member b = join(group);
  Log of_a;
  Log of_b;
  for (std::uint64_t i = 0; i < 20; ++i) {  // One at a time: none is taken in advance.
    publish_numbers(publisher, 1, i);
    Member& who = i % 2 == 0 ? a : b;
    (i % 2 == 0 ? of_a : of_b).push_back(to_text(take(who)));
    EXPECT_EQ(code((i % 2 == 0 ? b : a).receive(Deadline::immediate())), Errc::timeout);
  }
  EXPECT_EQ(of_a.size(), 10u);
  EXPECT_EQ(of_b.size(), 10u);
  EXPECT_EQ(must(a.acknowledge_all()), 10u);
  EXPECT_EQ(must(b.acknowledge_all()), 10u);
  EXPECT_EQ(group.info().in_flight, 0u);
}

TEST(Member, EachRecordGoesToOneAndKeepsItsOrder) {
  const TestTopic topic{{.capacity_bytes = 64 * kSegment}};
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  std::vector<Member> members;
  for (int i = 0; i < 3; ++i) members.push_back(join(group));
  publish_numbers(publisher, 1000);
  std::vector<bool> seen(1000);
  std::vector<std::uint64_t> last(3, 0);
  std::size_t count = 0;
  for (std::size_t turn = 0; count < 1000; ++turn) {
    ASSERT_LT(turn, 100'000u);
    Member& member = members[turn % 3];
    auto taken = member.receive(Deadline::immediate());
    if (!taken) continue;  // The other members hold the rest.
    const std::uint64_t offset = taken->record.offset;
    ASSERT_EQ(taken->record.text(), std::to_string(offset));
    ASSERT_FALSE(seen[offset]);
    seen[offset] = true;
    if (last[turn % 3] != 0) {
      EXPECT_GT(offset, last[turn % 3]);
    }
    last[turn % 3] = offset;
    ++count;
    must(member.acknowledge(*taken));
  }
  for (Member& member : members) EXPECT_TRUE(take_all(member).empty());
}

TEST(Member, GetsKeysHeadersAndTimestamps) {
  const TestTopic topic{{.timestamps = true}};
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic));
  const Header headers[] = {{"shop", "corner"}, {"till", "3"}};
  const std::int64_t before = detail::wall_clock_ms();
  must(publisher.publish({.key = "anna", .headers = headers, .value = "tea"}));
  const Delivery taken = take(member);
  EXPECT_EQ(taken.deliveries, 1u);
  EXPECT_EQ(taken.record.text(), "tea");
  EXPECT_TRUE(taken.record.has_key);
  EXPECT_EQ(taken.record.key.text(), "anna");
  EXPECT_GE(taken.record.timestamp_ms, before);
  Log found;
  for (const Header header : taken.record.headers)
    found.push_back(std::string{header.name} + "=" + std::string{header.value.text()});
  EXPECT_EQ(found, (Log{"shop=corner", "till=3"}));
}

TEST(Member, WhatItHoldsStaysInPlace) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member member = join(group);
  Member other = join(group);
  publish_all(publisher, {"held"});
  const Delivery held = take(member);
  for (int i = 0; i < 50; ++i) {  // Several laps of the topic.
    must(publisher.publish(kHalfText));
    EXPECT_EQ(drain(other).size(), 1u);
  }
  EXPECT_EQ(held.record.text(), "held");
  must(member.acknowledge(held));
}

TEST(Member, TakesPartsOfABatch) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic));
  auto batch = must(publisher.batch());
  for (const char* value : {"0", "1", "2", "3", "4"}) must(batch.add(value));
  must(batch.commit());
  publish_numbers(publisher, 1, 5);
  std::vector<Delivery> taken;
  EXPECT_EQ(must(member.receive(taken, 2, kPatience)), 2u);
  EXPECT_EQ(to_log(taken), numbers(2));
  must(member.acknowledge_all());
  EXPECT_EQ(drain(member), numbers(4, 2));
}

TEST(Member, HandsTheRestOfABatchToAnother) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  auto batch = must(publisher.batch());
  for (const char* value : {"0", "1", "2", "3", "4"}) must(batch.add(value));
  must(batch.commit());
  {
    Member member = join(group);
    for (int i = 0; i < 2; ++i) must(member.acknowledge(take(member)));
  }
  Member other = join(group);
  const std::vector<Delivery> rest = take_all(other);
  EXPECT_EQ(to_log(rest), numbers(3, 2));
  // They had never been handed out.
  for (const Delivery& delivery : rest) EXPECT_EQ(delivery.deliveries, 1u);
}

TEST(Member, PassesOverGaps) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member member = join(group);
  publish_all(publisher, {"a"});
  must(must(publisher.try_claim(8)).abort());
  publish_all(publisher, {"b"});
  must(must(publisher.try_claim(8)).abort());
  publish_all(publisher, {"c"});
  EXPECT_EQ(drain(member), (Log{"0 a", "2 b", "4 c"}));
  EXPECT_EQ(group.info().lag, 0u);
  EXPECT_EQ(group.info().in_flight, 0u);
}

TEST(Member, TakesWhatComesAfterAClaimIsSettled) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto slow = must(topic->publisher());
  Member member = join(group_of(*topic));
  auto claim = must(slow.try_claim(4));
  publish_all(publisher, {"behind"});
  EXPECT_EQ(code(member.receive(Deadline::immediate())), Errc::timeout);
  std::memcpy(claim.payload().data(), "held", 4);
  must(claim.commit());
  EXPECT_EQ(drain(member), (Log{"0 held", "1 behind"}));
}

TEST(Member, TakesFromAllPartitions) {
  const TestTopic topic{{.partitions = 4}};
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic));
  for (std::uint32_t i = 0; i < 40; ++i)
    must(publisher.publish({.value = std::to_string(i), .partition = i % 4}));
  std::vector<std::uint64_t> next(4, 0);
  const std::vector<Delivery> taken = take_all(member);
  EXPECT_EQ(taken.size(), 40u);
  for (const Delivery& delivery : taken) {
    const Record& record = delivery.record;
    ASSERT_LT(record.partition, 4u);
    EXPECT_EQ(record.offset, next[record.partition]++);
    EXPECT_EQ(record.text(), std::to_string(4 * record.offset + record.partition));
  }
}

TEST(Member, OnePartitionThatIsFullOfWorkDoesNotStarveTheOthers) {
  const TestTopic topic{{.capacity_bytes = 64 * kSegment, .partitions = 2}};
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic));
  for (int i = 0; i < 1000; ++i) must(publisher.publish({.value = "busy", .partition = 0U}));
  must(publisher.publish({.value = "lone", .partition = 1U}));
  int before = 0;
  while (true) {
    const Delivery delivery = take(member);
    must(member.acknowledge(delivery));
    if (delivery.record.partition == 1) break;
    ++before;
  }
  EXPECT_LT(before, 1000);
}

TEST(Member, AppendsUpToTheLimit) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic));
  publish_numbers(publisher, 10);
  std::vector<Delivery> taken;
  EXPECT_EQ(must(member.receive(taken, 4, kPatience)), 4u);
  EXPECT_EQ(must(member.receive(taken, 3, kPatience)), 3u);
  EXPECT_EQ(to_log(taken), numbers(7));
}

TEST(Member, WaitsForOneAndNotForMore) {
  const TestTopic topic;
  Member member = join(group_of(*topic));
  std::jthread late{[&] {
    auto publisher = must(topic->publisher());
    std::this_thread::sleep_for(kNothingFor);
    must(publisher.publish("x"));
  }};
  std::vector<Delivery> taken;
  EXPECT_EQ(must(member.receive(taken, 100, kPatience)), 1u);
  EXPECT_EQ(to_log(taken), (Log{"0 x"}));
}

TEST(Member, MayHoldAsManyAsTheGroupAllows) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.in_flight = 3});
  Member member = join(group);
  publish_numbers(publisher, 10);
  std::vector<Delivery> taken;
  while (taken.size() < 3) must(member.receive(taken, 10, kPatience));
  EXPECT_EQ(taken.size(), 3u);
  EXPECT_EQ(code(member.receive(kPatience)), Errc::in_flight_full);
  EXPECT_EQ(code(member.receive(taken, 10, kPatience)), Errc::in_flight_full);
  must(member.acknowledge(taken[1]));
  EXPECT_EQ(to_text(take(member)), "3 3");
  EXPECT_EQ(code(member.receive(kPatience)), Errc::in_flight_full);
  EXPECT_EQ(must(member.acknowledge_all()), 3u);
  EXPECT_EQ(drain(member, 6), numbers(6, 4));
}

TEST(Member, LimitOfOneStillLetsOthersWork) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.in_flight = 1});
  Member a = join(group);
  Member b = join(group);
  publish_numbers(publisher, 4);
  EXPECT_EQ(to_text(take(a)), "0 0");
  EXPECT_EQ(to_text(take(b)), "1 1");
  must(b.acknowledge_all());
  EXPECT_EQ(drain(b, 2), numbers(2, 2));
  must(a.acknowledge_all());
}

// ---- poll ----------------------------------------------------------------------------------------

TEST(MemberPoll, AcknowledgesWhenTheCallReturns) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member member = join(group);
  EXPECT_EQ(must(member.poll(10, [](const Delivery&) {})), 0u);
  publish_numbers(publisher, 5);
  Log log;
  EXPECT_EQ(must(member.poll(3,
                             [&](const Delivery& delivery) {
                               log.push_back(to_text(delivery));
                               EXPECT_GE(group.info().in_flight, 1u);
                             })),
            3u);
  EXPECT_EQ(log, numbers(3));
  EXPECT_EQ(member.in_flight(), 0u);
  EXPECT_EQ(must(member.poll(10, [&](const Delivery& one) { log.push_back(to_text(one)); })), 2u);
  EXPECT_EQ(log, numbers(5));
  EXPECT_EQ(group.info().in_flight, 0u);
}

TEST(MemberPoll, GoesOnAcrossManySegments) {
  const TestTopic topic;
  const Group group = group_of(*topic);
  Member member = join(group);
  auto publisher = must(topic->publisher());
  Log log;
  for (int i = 0; i < 100; ++i) {
    must(publisher.publish(kHalfText));
    must(member.poll(10, [&](const Delivery& delivery) { log.push_back(to_text(delivery)); }));
  }
  EXPECT_EQ(log, repeated(100, kHalfText));
}

TEST(MemberPoll, CallThatThrowsRequeuesWhatItDidNotDo) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member member = join(group);
  publish_numbers(publisher, 5);
  const auto poll = [&] {
    (void)member.poll(5, [](const Delivery& delivery) {
      if (delivery.record.offset == 2) throw std::runtime_error{"not this one"};
    });
  };
  EXPECT_THROW(poll(), std::runtime_error);
  EXPECT_EQ(sorted(drain(member, 3)), numbers(3, 2));
  EXPECT_EQ(group.info().in_flight, 0u);
}

// The poll ends. Records that were not acknowledged go back, the callback's own one too.
TEST(MemberPoll, CallThatDestroysTheMemberIsItsLast) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  publish_numbers(publisher, 4);
  std::optional<Member> member = join(group);
  Log seen;
  EXPECT_EQ(must(member->poll(4,
                              [&](const Delivery& delivery) {
                                seen.push_back(to_text(delivery));
                                if (seen.size() == 2) member.reset();
                              })),
            2u);
  EXPECT_EQ(seen, numbers(2));
  EXPECT_TRUE(group.info().members.empty());
  member = join(group);
  EXPECT_EQ(drain(*member), numbers(3, 1));
}
TEST(MemberPoll, CallThatReplacesTheMemberAndThrows) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  publish_numbers(publisher, 3);
  Member member = join(group);
  const auto replace = [&](const Delivery&) {
    member = join(group);
    throw std::runtime_error{"replaced"};
  };
  const auto poll = [&](const Delivery&) { (void)member.poll(1, replace); };
  EXPECT_THROW((void)member.poll(3, poll), std::runtime_error);
  EXPECT_EQ(group.info().members.size(), 1u);
  EXPECT_EQ(drain(member), numbers(3));
}

int counted = 0;
void count_one(const Delivery&) { ++counted; }

TEST(MemberPoll, CallsWhateverCanBeCalled) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member member = join(group);
  publish_numbers(publisher, 4);
  const std::function<int(Delivery)> copies = [](const Delivery&) { return ++counted; };
  EXPECT_EQ(must(member.poll(1, count_one)), 1u);
  EXPECT_EQ(must(member.poll(1, &count_one)), 1u);
  EXPECT_EQ(must(member.poll(1, copies)), 1u);
  EXPECT_EQ(must(member.poll(1, std::function<void(const Delivery&)>{count_one})), 1u);
  EXPECT_EQ(counted, 4);
}

// ---- receive_copy -----------------------------------------------------------------------------------

TEST(MemberTakeCopy, CopiesAndAcknowledges) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member member = join(group);
  must(publisher.publish({.key = "key", .value = "hello"}));
  std::byte buffer[16];
  EXPECT_EQ(must(member.receive_copy(buffer, kPatience)), 5u);
  EXPECT_EQ(Bytes(buffer, 5).text(), "hello");
  EXPECT_EQ(group.info().in_flight, 0u);
  EXPECT_EQ(code(member.receive_copy(buffer, Deadline::immediate())), Errc::timeout);
}

TEST(MemberTakeCopy, BufferThatIsTooSmallLosesNothing) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member member = join(group);
  publish_all(publisher, {"hello", "next"});
  std::byte small[4];
  for (int i = 0; i < 3; ++i) {
    auto copied = member.receive_copy(small, kPatience);
    EXPECT_EQ(code(copied), Errc::buffer_too_small);
    EXPECT_EQ(copied.error().system_error, 5);
  }
  std::byte exact[5];
  EXPECT_EQ(must(member.receive_copy(exact, kPatience)), 5u);
  EXPECT_EQ(Bytes(exact, 5).text(), "hello");
  EXPECT_EQ(must(member.receive_copy(small, kPatience)), 4u);
  EXPECT_EQ(Bytes(small, 4).text(), "next");
}

TEST(MemberTakeCopy, EmptyRecordFitsNothing) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic));
  publish_all(publisher, {""});
  EXPECT_EQ(must(member.receive_copy({}, kPatience)), 0u);
}

}  // namespace
}  // namespace leat
