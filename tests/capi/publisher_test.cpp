// If these tests failed, programs in C would lose records or publish them twice, or a mistake with a claim
// would crash them.
#include <chrono>
#include <cstring>
#include <thread>

#include "capi.hpp"

using namespace leat_capi_test;

using Texts = std::vector<std::string>;

TEST_F(CapiTest, PublishesAndPolls) {
  auto topic = create();
  auto publisher = open_publisher(topic);
  auto subscriber = open_subscriber(topic);
  EXPECT_EQ(publish(publisher, "a"), 0U);
  EXPECT_EQ(publish(publisher, ""), 1U);
  EXPECT_EQ(leat_publisher_publish(publisher.get(), nullptr, 0, LEAT_FOREVER, nullptr, nullptr),
            LEAT_OK);
  EXPECT_EQ(leat_publisher_publish(publisher.get(), "d", 1, INT64_MAX, nullptr, nullptr), LEAT_OK);
  EXPECT_EQ(drain(subscriber), (Texts{"a", "", "", "d"}));
  EXPECT_EQ(drain(subscriber), Texts{});
}

TEST_F(CapiTest, PublisherRefusesWhatCannotBe) {
  auto topic = create();
  auto publisher = open_publisher(topic);
  EXPECT_EQ(leat_publisher_publish(nullptr, "a", 1, 0, nullptr, nullptr),
            LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(leat_publisher_publish(publisher.get(), nullptr, 1, 0, nullptr, nullptr),
            LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(leat_publisher_publish(publisher.get(), "a", 1, -2, nullptr, nullptr),
            LEAT_ERR_INVALID_ARGUMENT);
  std::uint64_t most = 0;
  ASSERT_EQ(leat_publisher_max_record_size(publisher.get(), &most), LEAT_OK);
  for (const std::uint64_t size : {most + 1, std::uint64_t{1} << 32, UINT64_MAX - 8, UINT64_MAX}) {
    std::int32_t detail = 0;
    EXPECT_EQ(leat_publisher_publish(publisher.get(), "a", size, 0, nullptr, &detail),
              LEAT_ERR_TOO_LARGE);
    EXPECT_EQ(detail, static_cast<std::int32_t>(most)) << size;
    leat_claim claim{nullptr, size, 7, 7};
    EXPECT_EQ(leat_publisher_claim(publisher.get(), claim.size, 0, &claim, nullptr),
              LEAT_ERR_TOO_LARGE);
    EXPECT_EQ(claim.data, nullptr);
    EXPECT_EQ(claim.size, size);  // So that the same call can be made again.
    EXPECT_EQ(claim.offset, 0U);
    leat_new_record record = LEAT_NEW_RECORD_INIT;
    record.value = {"a", 1};
    record.key = {"k", size};
    EXPECT_EQ(leat_publisher_publish_record(publisher.get(), &record, 0, nullptr, nullptr),
              LEAT_ERR_TOO_LARGE);
    const leat_new_header header{{"name", 4}, {"v", size}};
    record.key = {nullptr, 0};
    record.headers = &header;
    record.header_count = 1;
    EXPECT_EQ(leat_publisher_publish_record(publisher.get(), &record, 0, nullptr, nullptr),
              LEAT_ERR_TOO_LARGE);
    const leat_bytes values[] = {{"a", 1}, {"b", size}};
    EXPECT_EQ(leat_publisher_publish_batch(publisher.get(), values, 2, LEAT_ANY_PARTITION, 0,
                                           nullptr, nullptr),
              LEAT_ERR_TOO_LARGE);
  }
  leat_new_record record = LEAT_NEW_RECORD_INIT;
  record.headers = nullptr;
  record.header_count = 1;
  EXPECT_EQ(leat_publisher_publish_record(publisher.get(), &record, 0, nullptr, nullptr),
            LEAT_ERR_INVALID_ARGUMENT);
  record = LEAT_NEW_RECORD_INIT;
  record.partition = 7;
  EXPECT_EQ(leat_publisher_publish_record(publisher.get(), &record, 0, nullptr, nullptr),
            LEAT_ERR_INVALID_ARGUMENT);
  auto subscriber = open_subscriber(topic);
  EXPECT_EQ(drain(subscriber), Texts{});
}

TEST_F(CapiTest, PublisherSaysForWhomItWaits) {
  auto topic = create();
  auto publisher = open_publisher(topic);
  auto subscriber = open_subscriber(topic);
  std::uint32_t count = 7;
  leat_room_holder holders[4] = {};
  const auto ask = [&](leat_room_holder* into, std::uint32_t capacity,
                       std::uint32_t partition = LEAT_ANY_PARTITION) {
    return leat_publisher_waiting_for(publisher.get(), partition, into, capacity, &count, nullptr);
  };
  EXPECT_EQ(ask(holders, 4), LEAT_OK);
  EXPECT_EQ(count, 0U);
  const std::string name(200, 'g');
  GroupHandle group;
  must(leat_topic_group(topic.get(), name.data(), name.size(), nullptr, group.out(), nullptr,
                        nullptr));
  const std::string value(1000, 'x');
  std::int32_t code = LEAT_OK;
  while (code == LEAT_OK)
    code = leat_publisher_publish(publisher.get(), value.data(), value.size(), 0, nullptr, nullptr);
  EXPECT_EQ(ask(holders, 4, 0), LEAT_OK);
  ASSERT_EQ(count, 2U);
  EXPECT_EQ(holders[0].kind, static_cast<std::uint32_t>(LEAT_HOLDER_SUBSCRIBER));
  EXPECT_EQ(holders[0].pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_STREQ(holders[0].group, "");
  EXPECT_EQ(holders[1].kind, static_cast<std::uint32_t>(LEAT_HOLDER_GROUP));
  EXPECT_EQ(holders[1].pid, 0U);
  EXPECT_EQ(holders[1].members, 0U);
  EXPECT_EQ(holders[1].group, name);
  EXPECT_EQ(ask(holders + 2, 1), LEAT_OK);
  EXPECT_EQ(count, 2U);
  EXPECT_EQ(holders[2].kind, static_cast<std::uint32_t>(LEAT_HOLDER_SUBSCRIBER));
  EXPECT_EQ(holders[3].kind, 0U);
  EXPECT_EQ(ask(nullptr, 0), LEAT_OK);
  EXPECT_EQ(ask(nullptr, 1), LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(ask(holders, 4, 1), LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(leat_publisher_waiting_for(nullptr, 0, holders, 4, &count, nullptr),
            LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(leat_publisher_waiting_for(publisher.get(), 0, holders, 4, nullptr, nullptr),
            LEAT_ERR_INVALID_ARGUMENT);
}

TEST_F(CapiTest, FullTopicWaitsUntilItIsStopped) {
  auto topic = create();
  auto publisher = open_publisher(topic);
  auto subscriber = open_subscriber(topic);
  const std::string value(1000, 'x');
  std::int32_t code = LEAT_OK;
  while (code == LEAT_OK)
    code = leat_publisher_publish(publisher.get(), value.data(), value.size(), 0, nullptr, nullptr);
  EXPECT_EQ(code, LEAT_ERR_FULL);
  std::thread stopper{[&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
    EXPECT_EQ(leat_publisher_stop(publisher.get()), LEAT_OK);
  }};
  leat_subscriber_close(subscriber.out());
  leat_subscriber_options options = LEAT_SUBSCRIBER_OPTIONS_INIT;
  options.any_thread = 1;
  auto other = open_subscriber(topic, options);
  code = LEAT_OK;
  while (code == LEAT_OK)
    code = leat_publisher_publish(publisher.get(), value.data(), value.size(), 20 * kSecond,
                                  nullptr, nullptr);
  EXPECT_EQ(code, LEAT_ERR_STOPPED);
  stopper.join();
  std::uint32_t is_stopped = 0;
  EXPECT_EQ(leat_publisher_is_stopped(publisher.get(), &is_stopped), LEAT_OK);
  EXPECT_EQ(is_stopped, 1U);
  EXPECT_EQ(leat_publisher_resume(publisher.get()), LEAT_OK);
  EXPECT_EQ(
      leat_publisher_publish(publisher.get(), value.data(), value.size(), 1000, nullptr, nullptr),
      LEAT_ERR_TIMEOUT);
  EXPECT_EQ(other.close(), LEAT_OK);
  // Without any_thread, it is found out that this thread would wait for itself.
  auto own = open_subscriber(topic);
  code = LEAT_OK;
  while (code == LEAT_OK)
    code = leat_publisher_publish(publisher.get(), value.data(), value.size(), kSecond, nullptr,
                                  nullptr);
  EXPECT_EQ(code, LEAT_ERR_WOULD_DEADLOCK);
  std::int32_t fd = -1;
  EXPECT_EQ(leat_publisher_room_fd(publisher.get(), LEAT_ANY_PARTITION, &fd, nullptr), LEAT_OK);
  EXPECT_GE(fd, 0);
  EXPECT_EQ(leat_publisher_room_fd(publisher.get(), 1, &fd, nullptr), LEAT_ERR_INVALID_ARGUMENT);
}

TEST_F(CapiTest, BatchIsPublishedWholeOrNotAtAll) {
  auto topic = create();
  auto publisher = open_publisher(topic);
  auto subscriber = open_subscriber(topic);
  const leat_bytes values[] = {{"a", 1}, {nullptr, 0}, {"cc", 2}};
  std::uint64_t offset = 7;
  const auto publish_batch = [&](const leat_bytes* batch, std::uint64_t count) {
    return leat_publisher_publish_batch(publisher.get(), batch, count, LEAT_ANY_PARTITION, 0,
                                        &offset, nullptr);
  };
  EXPECT_EQ(publish_batch(values, 3), LEAT_OK);
  EXPECT_EQ(offset, 0U);
  EXPECT_EQ(publish_batch(values, 0), LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(publish_batch(nullptr, 1), LEAT_ERR_INVALID_ARGUMENT);
  const leat_bytes wrong[] = {{"a", 1}, {nullptr, 4}};
  EXPECT_EQ(publish_batch(wrong, 2), LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(leat_publisher_publish_batch(publisher.get(), values, 3, 1, 0, nullptr, nullptr),
            LEAT_ERR_INVALID_ARGUMENT);
  leat_new_record records[2] = {LEAT_NEW_RECORD_INIT, LEAT_NEW_RECORD_INIT};
  records[0].value = {"d", 1};
  records[1].value = {"e", 1};
  records[1].key = {"k", 1};
  EXPECT_EQ(
      leat_publisher_publish_record_batch(publisher.get(), records, 2, 0, 0, &offset, nullptr),
      LEAT_OK);
  EXPECT_EQ(offset, 3U);
  records[1].partition = 1;
  EXPECT_EQ(
      leat_publisher_publish_record_batch(publisher.get(), records, 2, 0, 0, &offset, nullptr),
      LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(drain(subscriber), (Texts{"a", "", "cc", "d", "e"}));
}

TEST_F(CapiTest, BatchOfAnExclusivePublisher) {
  auto topic = create();
  leat_publisher_options options = LEAT_PUBLISHER_OPTIONS_INIT;
  options.exclusive = 1;
  PublisherHandle publisher;
  ASSERT_EQ(leat_topic_publisher(topic.get(), &options, publisher.out(), nullptr), LEAT_OK);
  PublisherHandle second;
  EXPECT_EQ(leat_topic_publisher(topic.get(), nullptr, second.out(), nullptr), LEAT_ERR_BUSY);
  const leat_bytes wrong[] = {{"a", 1}, {nullptr, 4}};
  EXPECT_EQ(leat_publisher_publish_batch(publisher.get(), wrong, 2, 0, 0, nullptr, nullptr),
            LEAT_ERR_INVALID_ARGUMENT);
  const leat_bytes values[] = {{"a", 1}, {"b", 1}};
  EXPECT_EQ(leat_publisher_publish_batch(publisher.get(), values, 2, 0, 0, nullptr, nullptr),
            LEAT_OK);
  auto subscriber = open_subscriber(topic);
  EXPECT_EQ(drain(subscriber), (Texts{"a", "b"}));
}

TEST_F(CapiTest, ClaimIsCommittedOnce) {
  auto topic = create();
  auto publisher = open_publisher(topic);
  auto subscriber = open_subscriber(topic);
  leat_claim claim;
  ASSERT_EQ(leat_publisher_claim(publisher.get(), 8, 0, &claim, nullptr), LEAT_OK);
  EXPECT_EQ(claim.size, 8U);
  EXPECT_EQ(claim.offset, 0U);
  std::memcpy(claim.data, "in place", 8);
  leat_claim second;
  EXPECT_EQ(leat_publisher_claim(publisher.get(), 8, 0, &second, nullptr), LEAT_ERR_BUSY);
  EXPECT_EQ(leat_publisher_publish(publisher.get(), "a", 1, 0, nullptr, nullptr), LEAT_ERR_BUSY);
  EXPECT_EQ(leat_publisher_commit(publisher.get(), &claim, 9, nullptr), LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(leat_publisher_commit(publisher.get(), &second, 0, nullptr), LEAT_ERR_NOT_IN_FLIGHT);
  EXPECT_EQ(leat_publisher_commit(publisher.get(), &claim, 2, nullptr), LEAT_OK);
  EXPECT_EQ(leat_publisher_commit(publisher.get(), &claim, 2, nullptr), LEAT_ERR_NOT_IN_FLIGHT);
  EXPECT_EQ(leat_publisher_abort(publisher.get(), &claim, nullptr), LEAT_ERR_NOT_IN_FLIGHT);
  EXPECT_EQ(drain(subscriber), Texts{"in"});
}

TEST_F(CapiTest, ClaimIsAbortedByAbortAndByClose) {
  auto topic = create();
  auto publisher = open_publisher(topic);
  auto other = open_publisher(topic);
  auto subscriber = open_subscriber(topic);
  leat_claim claim;
  leat_claim others;
  ASSERT_EQ(leat_publisher_claim(publisher.get(), 8, 0, &claim, nullptr), LEAT_OK);
  ASSERT_EQ(leat_publisher_claim(other.get(), 8, 0, &others, nullptr), LEAT_OK);
  EXPECT_EQ(leat_publisher_abort(publisher.get(), &others, nullptr), LEAT_ERR_NOT_IN_FLIGHT);
  EXPECT_EQ(leat_publisher_abort(publisher.get(), &claim, nullptr), LEAT_OK);
  EXPECT_EQ(other.close(), LEAT_OK);
  EXPECT_EQ(publish(publisher, "a"), 2U);
  EXPECT_EQ(drain(subscriber), (Texts{"0+1 aborted", "1+1 aborted", "a"}));
}

TEST_F(CapiTest, ClosingTwiceIsAnErrorInAnyOrder) {
  auto topic = create();
  auto publisher = open_publisher(topic);
  auto subscriber = open_subscriber(topic);
  auto group = open_group(topic);
  auto member = join(group);
  publish(publisher, "a");
  EXPECT_EQ(topic.close(), LEAT_OK);
  EXPECT_EQ(group.close(), LEAT_OK);
  publish(publisher, "b");
  EXPECT_EQ(publisher.close(), LEAT_OK);
  EXPECT_EQ(drain(subscriber), (Texts{"a", "b"}));
  EXPECT_EQ(subscriber.close(), LEAT_OK);
  leat_delivery delivery;
  std::uint32_t count = 0;
  EXPECT_EQ(leat_member_receive(member.get(), &delivery, 1, &count, 0, nullptr), LEAT_OK);
  EXPECT_EQ(member.close(), LEAT_OK);
  EXPECT_EQ(topic.close(), LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(publisher.close(), LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(subscriber.close(), LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(group.close(), LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(member.close(), LEAT_ERR_INVALID_ARGUMENT);
}

TEST_F(CapiTest, DurableTopicIsFlushed) {
  leat_topic_options options = LEAT_TOPIC_OPTIONS_INIT;
  options.durable = LEAT_DURABILITY_OS;
  auto topic = create(options);
  auto publisher = open_publisher(topic);
  EXPECT_EQ(publish(publisher, "a"), 0U);
  EXPECT_EQ(leat_publisher_flush(publisher.get(), LEAT_FOREVER, nullptr), LEAT_OK);
  std::uint64_t offset = 0;
  EXPECT_EQ(leat_publisher_durable_offset(publisher.get(), LEAT_ANY_PARTITION, &offset), LEAT_OK);
  EXPECT_EQ(offset, 1U);
  EXPECT_EQ(leat_publisher_durable_offset(publisher.get(), 1, &offset), LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(leat_publisher_request_sync(publisher.get(), nullptr), LEAT_OK);
  std::int32_t fd = -1;
  EXPECT_EQ(leat_publisher_durable_fd(publisher.get(), &fd, nullptr), LEAT_OK);
  EXPECT_GE(fd, 0);
  EXPECT_EQ(leat_publisher_last_offset(publisher.get(), &offset), LEAT_ERR_NOT_FOUND);
  leat_publisher_options durable = LEAT_PUBLISHER_OPTIONS_INIT;
  durable.acknowledge = LEAT_STAGE_DURABLE;
  PublisherHandle waits;
  ASSERT_EQ(leat_topic_publisher(topic.get(), &durable, waits.out(), nullptr), LEAT_OK);
  EXPECT_EQ(leat_publisher_publish(waits.get(), "b", 1, LEAT_FOREVER, nullptr, nullptr), LEAT_OK);
  EXPECT_EQ(leat_publisher_last_offset(waits.get(), &offset), LEAT_OK);
  EXPECT_EQ(offset, 1U);
  EXPECT_EQ(leat_topic_repair(topic.get(), kSecond, nullptr), LEAT_OK);
  leat_topic_info info{};
  info.size = sizeof(info);
  ASSERT_EQ(leat_topic_get_info(topic.get(), &info, nullptr, 0, nullptr, 0, nullptr), LEAT_OK);
  EXPECT_EQ(info.durable, std::uint32_t{LEAT_DURABILITY_OS});
  EXPECT_EQ(info.archiver_pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_GT(info.created_ms, 0);
}

TEST_F(CapiTest, TopicInMemoryIsNotFlushed) {
  auto topic = create();
  auto publisher = open_publisher(topic);
  EXPECT_EQ(leat_publisher_flush(publisher.get(), 0, nullptr), LEAT_ERR_NEEDS_DURABLE);
  EXPECT_EQ(leat_publisher_request_sync(publisher.get(), nullptr), LEAT_ERR_NEEDS_DURABLE);
  std::uint64_t offset = 7;
  EXPECT_EQ(leat_publisher_durable_offset(publisher.get(), 0, &offset), LEAT_OK);
  EXPECT_EQ(offset, 0U);
  std::uint32_t partition = 7;
  EXPECT_EQ(leat_publisher_partition(publisher.get(), &partition), LEAT_OK);
  EXPECT_EQ(partition, 0U);
}
