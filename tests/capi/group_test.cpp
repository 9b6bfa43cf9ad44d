// If these tests failed, programs in C would lose records of a group, get them twice, or acknowledge those of
// others.
#include <chrono>
#include <thread>

#include "capi.hpp"

using namespace leat_capi_test;

using Texts = std::vector<std::string>;

namespace {

std::vector<leat_delivery> receive(const MemberHandle& member, std::uint32_t capacity = 16,
                                   std::int64_t timeout_ns = kSecond) {
  std::vector<leat_delivery> all(capacity);
  std::uint32_t count = 0;
  must(leat_member_receive(member.get(), all.data(), capacity, &count, timeout_ns, nullptr));
  all.resize(count);
  return all;
}

// In several calls, because members leave something for each other.
std::vector<leat_delivery> receive_all(const MemberHandle& member, std::size_t count) {
  std::vector<leat_delivery> all;
  while (all.size() < count) {
    for (const leat_delivery& one : receive(member)) all.push_back(one);
  }
  return all;
}

Texts texts_of(const std::vector<leat_delivery>& deliveries) {
  Texts all;
  for (const leat_delivery& one : deliveries) all.push_back(text_of(one.record));
  return all;
}

leat_group_info info_of(const GroupHandle& group) {
  leat_group_info info{};
  info.size = sizeof(info);
  must(leat_group_get_info(group.get(), &info, nullptr, 0, nullptr, 0, nullptr));
  return info;
}

// Copies of records, in groups with a lease and of durable topics, are vectors, whose data may be null.
TEST_F(CapiTest, AnEmptyRecordHasAnAddress) {
  for (const bool is_durable : {false, true}) {
    leat_topic_options options = LEAT_TOPIC_OPTIONS_INIT;
    options.durable = is_durable ? LEAT_DURABILITY_OS : LEAT_DURABILITY_NONE;
    TopicHandle topic = create(options);
    leat_group_options wanted = LEAT_GROUP_OPTIONS_INIT;
    wanted.lease_ns = is_durable ? 0 : 9 * kSecond;
    const GroupHandle group = open_group(topic, wanted);
    const MemberHandle member = join(group);
    publish(open_publisher(topic), "");
    leat_delivery delivery;
    std::uint32_t count = 0;
    must(leat_member_receive(member.get(), &delivery, 1, &count, 5 * kSecond, nullptr));
    EXPECT_EQ(leat_record_is_gap(&delivery.record), 0);
    EXPECT_NE(delivery.record.value, nullptr);
    leat_place place = LEAT_PLACE_INIT;
    place.force = 1;
    must(leat_topic_delete("topic", LEAT_TEXT, &place, nullptr));
  }
}

}  // namespace

TEST_F(CapiTest, GroupIsMadeFoundAndDeleted) {
  auto topic = create();
  GroupHandle group;
  EXPECT_EQ(leat_topic_find_group(topic.get(), "group", 5, group.out(), nullptr),
            LEAT_ERR_NOT_FOUND);
  std::uint32_t was_created = 0;
  EXPECT_EQ(leat_topic_group(topic.get(), "group", LEAT_TEXT, nullptr, group.out(), &was_created,
                             nullptr),
            LEAT_OK);
  EXPECT_EQ(was_created, 1U);
  GroupHandle again;
  EXPECT_EQ(leat_topic_group(topic.get(), "group", 5, nullptr, again.out(), &was_created, nullptr),
            LEAT_OK);
  EXPECT_EQ(was_created, 0U);
  EXPECT_EQ(text_from([&](auto... rest) { return leat_group_name(again.get(), rest...); }),
            "group");
  EXPECT_EQ(text_from([&](auto... rest) {
              return leat_topic_group_names(topic.get(), rest..., nullptr);
            }),
            "group\n");
  auto member = join(group);
  EXPECT_EQ(leat_topic_delete_group(topic.get(), "group", 5, 0, nullptr), LEAT_ERR_BUSY);
  EXPECT_EQ(leat_topic_delete_group(topic.get(), "group", 5, 2, nullptr),
            LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(leat_topic_delete_group(topic.get(), "group", 5, 1, nullptr), LEAT_OK);
  leat_delivery delivery;
  std::uint32_t count = 0;
  EXPECT_EQ(leat_member_receive(member.get(), &delivery, 1, &count, kSecond, nullptr),
            LEAT_ERR_CLOSED);
}

TEST_F(CapiTest, DeliveriesAreAcknowledgedByAnyCopy) {
  auto topic = create();
  auto publisher = open_publisher(topic);
  auto group = open_group(topic);
  auto member = join(group);
  auto other = join(group);
  for (const char* value : {"a", "b", "c", "d", "e", "f"}) publish(publisher, value);
  const auto all = receive_all(member, 6);
  ASSERT_EQ(texts_of(all), (Texts{"a", "b", "c", "d", "e", "f"}));
  EXPECT_EQ(all[0].deliveries, 1U);
  const leat_delivery copy = all[2];
  EXPECT_EQ(leat_member_acknowledge(other.get(), &copy), LEAT_ERR_NOT_IN_FLIGHT);
  EXPECT_EQ(leat_member_acknowledge(member.get(), &copy), LEAT_OK);
  EXPECT_EQ(leat_member_acknowledge(member.get(), &all[2]), LEAT_ERR_NOT_IN_FLIGHT);
  std::uint64_t acknowledged = 0;
  EXPECT_EQ(leat_member_acknowledge_up_to(member.get(), &all[1], &acknowledged), LEAT_OK);
  EXPECT_EQ(acknowledged, 2U);
  EXPECT_EQ(leat_member_acknowledge_some(member.get(), &all[1], 3, &acknowledged), LEAT_OK);
  EXPECT_EQ(acknowledged, 1U);  // "d"; the other two were done.
  EXPECT_EQ(leat_member_acknowledge_some(member.get(), all.data(), 3, nullptr),
            LEAT_ERR_NOT_IN_FLIGHT);
  EXPECT_EQ(leat_member_acknowledge_some(member.get(), nullptr, 0, nullptr), LEAT_OK);
  EXPECT_EQ(leat_member_requeue(member.get(), &all[5], 0), LEAT_OK);
  EXPECT_EQ(leat_member_requeue(member.get(), &all[5], 0), LEAT_ERR_NOT_IN_FLIGHT);
  EXPECT_EQ(leat_member_requeue(member.get(), &all[4], -1), LEAT_ERR_INVALID_ARGUMENT);
  std::uint64_t count = 0;
  EXPECT_EQ(leat_member_in_flight(member.get(), &count), LEAT_OK);
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(leat_member_acknowledge_all(member.get(), nullptr), LEAT_OK);
  const auto again = receive(other);
  ASSERT_EQ(texts_of(again), Texts{"f"});
  EXPECT_EQ(again[0].deliveries, 2U);
  EXPECT_EQ(info_of(group).redelivered, 1U);
}

// A program may keep the bytes of a delivery for too long, or scribble over them.
TEST_F(CapiTest, DeliveriesThatWereNeverInFlight) {
  auto topic = create();
  auto publisher = open_publisher(topic);
  auto group = open_group(topic);
  auto member = join(group);
  publish(publisher, "a");
  auto held = receive(member);
  for (std::size_t i = 0; i < sizeof(leat_delivery); ++i) {
    leat_delivery wrong{};
    EXPECT_NE(leat_member_acknowledge(member.get(), &wrong), LEAT_OK);
    wrong = held[0];
    reinterpret_cast<unsigned char*>(&wrong.state)[i % 24] ^= 0x81;
    (void)leat_member_acknowledge_up_to(member.get(), &wrong, nullptr);
  }
  leat_delivery wrong = held[0];
  wrong.record.partition = 9;
  EXPECT_EQ(leat_member_acknowledge(member.get(), &wrong), LEAT_ERR_NOT_IN_FLIGHT);
  EXPECT_EQ(leat_member_acknowledge_some(member.get(), &wrong, 1, nullptr), LEAT_ERR_NOT_IN_FLIGHT);
  leat_delivery gap{};
  gap.record.flags = LEAT_RECORD_IS_GAP;
  EXPECT_EQ(leat_member_acknowledge(member.get(), &gap), LEAT_ERR_NOT_IN_FLIGHT);
  EXPECT_EQ(leat_member_acknowledge_some(member.get(), &gap, 1, nullptr), LEAT_OK);
}

TEST_F(CapiTest, ReceivesACopy) {
  auto topic = create();
  auto publisher = open_publisher(topic);
  auto group = open_group(topic);
  auto member = join(group);
  publish(publisher, "copied");
  char text[8] = "";
  std::uint64_t size = 0;
  std::int32_t detail = 0;
  EXPECT_EQ(leat_member_receive_copy(member.get(), text, 5, &size, 0, &detail),
            LEAT_ERR_BUFFER_TOO_SMALL);
  EXPECT_EQ(size, 6U);
  EXPECT_EQ(detail, 6);
  EXPECT_EQ(leat_member_receive_copy(member.get(), text, 8, &size, 0, nullptr), LEAT_OK);
  EXPECT_EQ(size, 6U);
  EXPECT_STREQ(text, "copied");
  EXPECT_EQ(leat_member_receive_copy(member.get(), text, 8, &size, 0, nullptr), LEAT_ERR_TIMEOUT);
  EXPECT_EQ(size, 0U);
  EXPECT_EQ(leat_member_receive_copy(member.get(), nullptr, 8, &size, 0, nullptr),
            LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(info_of(group).in_flight, 0U);
}

TEST_F(CapiTest, RecordsOfAMemberThatLeavesComeBack) {
  auto topic = create();
  auto publisher = open_publisher(topic);
  auto group = open_group(topic);
  auto member = join(group);
  publish(publisher, "a");
  EXPECT_EQ(texts_of(receive(member)), Texts{"a"});
  auto other = join(group);
  EXPECT_EQ(member.close(), LEAT_OK);
  EXPECT_EQ(texts_of(receive(other, 1, 10 * kSecond)), Texts{"a"});
}

TEST_F(CapiTest, GroupIsMoved) {
  auto topic = create();
  auto publisher = open_publisher(topic);
  auto group = open_group(topic);
  auto member = join(group);
  for (const char* value : {"a", "b", "c"}) publish(publisher, value);
  receive(member);
  EXPECT_EQ(leat_member_acknowledge_all(member.get(), nullptr), LEAT_OK);
  std::uint64_t offset = 0;
  EXPECT_EQ(leat_group_position(group.get(), 0, &offset), LEAT_OK);
  EXPECT_EQ(offset, 3U);
  EXPECT_EQ(leat_group_released(group.get(), 0, &offset), LEAT_OK);
  EXPECT_LE(offset, 3U);
  EXPECT_EQ(leat_group_position(group.get(), 1, &offset), LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(leat_group_released(group.get(), 1, &offset), LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(leat_group_seek(group.get(), LEAT_FROM_OFFSET, 1, 0, nullptr), LEAT_OK);
  EXPECT_EQ(texts_of(receive(member)), (Texts{"b", "c"}));
  EXPECT_EQ(leat_group_seek(group.get(), LEAT_FROM_OFFSET, 99, 0, nullptr),
            LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(leat_group_seek(group.get(), 9, 0, 0, nullptr), LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(leat_group_seek(group.get(), LEAT_FROM_TIME, 1, LEAT_ANY_PARTITION, nullptr),
            LEAT_ERR_NEEDS_TIMESTAMPS);
}

TEST_F(CapiTest, InfoOfAGroup) {
  auto topic = create();
  leat_group_options options = LEAT_GROUP_OPTIONS_INIT;
  options.max_deliveries = 3;
  options.by_key = 1;
  options.lease_ns = 9 * kSecond;
  auto group = open_group(topic, options);
  leat_member_options named = LEAT_MEMBER_OPTIONS_INIT;
  named.name = {"ann", LEAT_TEXT};
  MemberHandle member;
  ASSERT_EQ(leat_group_join(group.get(), &named, member.out(), nullptr), LEAT_OK);
  auto publisher = open_publisher(topic);
  publish(publisher, "a");
  leat_group_info info{};
  info.size = sizeof(info);
  leat_member_info members[2] = {};
  std::uint64_t offsets[2] = {7, 7};
  ASSERT_EQ(leat_group_get_info(group.get(), &info, members, 2, offsets, 2, nullptr), LEAT_OK);
  EXPECT_EQ(info.by_key, 1U);
  EXPECT_EQ(info.max_deliveries, 3U);
  EXPECT_EQ(info.lease_ns, 9 * kSecond);
  EXPECT_EQ(info.lag, 1U);
  EXPECT_EQ(info.member_count, 1U);
  EXPECT_EQ(info.partition_count, 1U);
  EXPECT_EQ(info.taking, LEAT_OK);
  EXPECT_STREQ(members[0].name, "ann");
  EXPECT_EQ(members[0].pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(offsets[0], 0U);
  EXPECT_EQ(offsets[1], 7U);
  EXPECT_NE(
      text_from([&](auto... rest) { return leat_group_dead_letter_topic(group.get(), rest...); }),
      "");
  named.name = {std::string(64, 'x').c_str(), 64};
  const std::string too_long(64, 'x');
  named.name = bytes_of(too_long);
  MemberHandle other;
  EXPECT_EQ(leat_group_join(group.get(), &named, other.out(), nullptr), LEAT_ERR_INVALID_ARGUMENT);
}

TEST_F(CapiTest, MemberWaitsAndIsStopped) {
  auto topic = create();
  auto publisher = open_publisher(topic);
  auto group = open_group(topic);
  auto member = join(group);
  leat_delivery delivery;
  std::uint32_t count = 7;
  EXPECT_EQ(leat_member_receive(member.get(), &delivery, 1, &count, 0, nullptr), LEAT_ERR_TIMEOUT);
  EXPECT_EQ(count, 0U);
  EXPECT_EQ(leat_member_wait(member.get(), 1000), LEAT_ERR_TIMEOUT);
  std::thread stopper{[&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
    leat_member_stop(member.get());
  }};
  EXPECT_EQ(leat_member_receive(member.get(), &delivery, 1, &count, LEAT_FOREVER, nullptr),
            LEAT_ERR_STOPPED);
  stopper.join();
  std::uint32_t is_stopped = 0;
  EXPECT_EQ(leat_member_is_stopped(member.get(), &is_stopped), LEAT_OK);
  EXPECT_EQ(is_stopped, 1U);
  publish(publisher, "a");
  EXPECT_EQ(texts_of(receive(member)), Texts{"a"});
  EXPECT_EQ(leat_member_resume(member.get()), LEAT_OK);
  std::int32_t fd = -1;
  EXPECT_EQ(leat_member_wait_fd(member.get(), &fd, nullptr), LEAT_OK);
  EXPECT_GE(fd, 0);
  EXPECT_EQ(leat_member_receive(member.get(), nullptr, 1, &count, 0, nullptr),
            LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(leat_member_receive(member.get(), &delivery, 0, &count, 0, nullptr),
            LEAT_ERR_INVALID_ARGUMENT);
}

TEST_F(CapiTest, GroupWithALeaseLosesIt) {
  auto topic = create();
  auto publisher = open_publisher(topic);
  leat_group_options options = LEAT_GROUP_OPTIONS_INIT;
  options.lease_ns = kSecond / 20;
  auto group = open_group(topic, options);
  auto member = join(group);
  auto other = join(group);
  publish(publisher, "a");
  const auto held = receive(member);
  EXPECT_EQ(texts_of(receive(other, 1, 10 * kSecond)), Texts{"a"});
  EXPECT_EQ(leat_member_acknowledge(member.get(), held.data()), LEAT_ERR_LEASE_LOST);
}

// Gaps of durable topics: what was claimed and never committed is not on disk either.
TEST_F(CapiTest, GapsOfAMemberAreEntries) {
  leat_topic_options options = LEAT_TOPIC_OPTIONS_INIT;
  options.durable = LEAT_DURABILITY_OS;
  auto topic = create(options);
  auto publisher = open_publisher(topic);
  auto group = open_group(topic);
  for (int i = 0; i < 4; ++i) {
    leat_claim claim;
    must(leat_publisher_claim(publisher.get(), 8, 0, &claim, nullptr));
    must(leat_publisher_abort(publisher.get(), &claim, nullptr));
    publish(publisher, std::to_string(i));
  }
  auto member = join(group);
  std::uint64_t gaps = 0;
  Texts records;
  while (records.size() < 4 || gaps < 4) {
    for (const leat_delivery& one : receive(member, 1, 5 * kSecond)) {
      if (leat_record_is_gap(&one.record) != 0) {
        EXPECT_EQ(leat_gap_reason(&one.record), std::uint32_t{LEAT_GAP_ABORTED});
        EXPECT_EQ(one.deliveries, 0U);
        gaps += leat_gap_count(&one.record);
      } else {
        records.push_back(text_of(one.record));
      }
    }
  }
  EXPECT_EQ(records, (Texts{"0", "1", "2", "3"}));
  EXPECT_EQ(gaps, 4U);
}
