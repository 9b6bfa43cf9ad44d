// If these tests failed, programs in C would read other bytes than were published, read beyond them, or never
// wake up.
#include <poll.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "capi.hpp"

using namespace leat_capi_test;

using Texts = std::vector<std::string>;

namespace {

std::string text_at(const std::uint8_t* at, std::uint32_t size) {
  return {reinterpret_cast<const char*>(at), size};
}

Texts headers_of(const leat_record& record) {
  Texts all;
  leat_headers headers = leat_record_headers(&record);
  leat_header header;
  while (leat_next_header(&headers, &header) != 0)
    all.push_back(text_at(header.name, header.name_size) + "=" +
                  text_at(header.value, header.value_size));
  return all;
}

std::string key_of(const leat_record& record) {
  const std::uint8_t* key = leat_record_key(&record);
  return key == nullptr ? "no key" : "'" + text_at(key, record.key_size) + "'";
}

leat_record next(const SubscriberHandle& subscriber) {
  leat_record record{};
  std::uint32_t count = 0;
  must(leat_subscriber_receive(subscriber.get(), &record, 1, &count, kSecond, nullptr));
  return record;
}

}  // namespace

// Each combination of key, headers and timestamp, because each lies elsewhere.
TEST_F(CapiTest, WhatLiesBeforeTheValue) {
  for (const std::uint32_t timestamps : {0U, 1U}) {
    for (const std::uint32_t durable : {0U, 1U}) {
      leat_topic_options options = LEAT_TOPIC_OPTIONS_INIT;
      options.timestamps = timestamps;
      options.durable = durable;
      auto topic = create(options);
      auto publisher = open_publisher(topic);
      auto subscriber = open_subscriber(topic);
      auto group = open_group(topic);
      auto member = join(group);
      const std::string long_value(300, 'v');
      std::vector<leat_new_header> many(9, {{"n", 1}, {"", 0}});
      for (const char* key : {static_cast<const char*>(nullptr), "", "key"}) {
        for (const std::uint32_t headers : {0U, 1U, 9U}) {
          leat_new_record record = LEAT_NEW_RECORD_INIT;
          record.value = bytes_of(long_value);
          record.key = {key, key == nullptr ? 0 : std::strlen(key)};
          many[0] = {{"name", 4}, {"va\0ue", 5}};
          record.headers = many.data();
          record.header_count = headers;
          must(leat_publisher_publish_record(publisher.get(), &record, 0, nullptr, nullptr));
          leat_delivery delivery;
          std::uint32_t count = 0;
          must(leat_member_receive(member.get(), &delivery, 1, &count, 5 * kSecond, nullptr));
          for (const leat_record& read : {next(subscriber), delivery.record}) {
            EXPECT_EQ(text_of(read), long_value);
            EXPECT_EQ(key_of(read), key == nullptr ? "no key" : "'" + std::string{key} + "'");
            const Texts found = headers_of(read);
            ASSERT_EQ(found.size(), headers);
            if (headers > 0) {
              EXPECT_EQ(found[0], (std::string{"name=va\0ue", 10}));
            }
            if (headers > 1) {
              EXPECT_EQ(found[8], "n=");
            }
            if (timestamps == 0) {
              EXPECT_EQ(leat_record_timestamp_ms(&read), -1);
            } else {
              const auto now = std::chrono::system_clock::now().time_since_epoch();
              const auto now_ms =
                  std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
              EXPECT_LE(leat_record_timestamp_ms(&read), now_ms);
              EXPECT_GE(leat_record_timestamp_ms(&read), now_ms - 60'000);
            }
          }
          must(leat_member_acknowledge(member.get(), &delivery));
        }
      }
      member.close();
      subscriber.close();
      publisher.close();
      leat_place place = LEAT_PLACE_INIT;
      place.force = 1;  // A durable topic's archiver is a participant.
      must(leat_topic_delete("topic", 5, &place, nullptr));
    }
  }
}

// Another process may write anything into the headers, at any time.
TEST(CapiRecord, HeadersThatAreNotCompleteEndTheList) {
  const auto names = [](const std::vector<std::uint8_t>& bytes) {
    leat_record record{};
    record.value = bytes.data() + bytes.size();
    record.headers_size = static_cast<std::uint32_t>(bytes.size());
    record.flags = LEAT_RECORD_HAS_HEADERS;
    return headers_of(record);
  };
  EXPECT_EQ(names({}), Texts{});
  EXPECT_EQ(names({1, 0, 0, 0, 1, 0, 0}), Texts{});
  EXPECT_EQ(names({0, 0, 0, 0, 0, 0, 0, 0}), Texts{"="});
  EXPECT_EQ(names({1, 0, 0, 0, 1, 0, 0, 0, 'a', 'b'}), Texts{"a=b"});
  EXPECT_EQ(names({1, 0, 0, 0, 2, 0, 0, 0, 'a', 'b'}), Texts{});
  EXPECT_EQ(names({255, 255, 255, 255, 255, 255, 255, 255, 'a', 'b'}), Texts{});
  EXPECT_EQ(names({0, 0, 0, 0, 255, 255, 255, 255, 'a', 'b'}), Texts{});
  EXPECT_EQ(names({1, 0, 0, 0, 0, 0, 0, 0, 'a', 9, 0, 0, 0, 0, 0, 0, 0}), Texts{"a="});
  EXPECT_EQ(names({1, 0, 0, 0, 0, 0, 0, 0, 'a', 0, 0}), Texts{"a="});
}

TEST(CapiRecord, GapsOfAnyLength) {
  leat_record gap{};
  gap.value_size = 0xFFFF'FFFF;
  gap.key_size = 2;
  gap.headers_size = LEAT_GAP_LOST;
  gap.flags = LEAT_RECORD_IS_GAP;
  EXPECT_EQ(leat_record_is_gap(&gap), 1);
  EXPECT_EQ(leat_gap_count(&gap), 0x2'FFFF'FFFF);
  EXPECT_EQ(leat_gap_reason(&gap), std::uint32_t{LEAT_GAP_LOST});
}

TEST_F(CapiTest, GapsComeInOrderHoweverSmallTheArray) {
  for (const std::uint32_t capacity : {1U, 2U, 3U, 16U}) {
    auto topic = create();
    auto publisher = open_publisher(topic);
    auto subscriber = open_subscriber(topic);
    Texts expected;
    for (int i = 0; i < 20; ++i) {
      if (i % 3 == 1) {
        leat_claim claim;
        must(leat_publisher_claim(publisher.get(), 8, 0, &claim, nullptr));
        must(leat_publisher_abort(publisher.get(), &claim, nullptr));
        expected.push_back(std::to_string(i) + "+1 aborted");
      } else {
        publish(publisher, std::to_string(i));
        expected.push_back(std::to_string(i));
      }
    }
    EXPECT_EQ(drain(subscriber, capacity), expected);
    subscriber.close();
    publisher.close();
    must(leat_topic_delete("topic", 5, nullptr, nullptr));
  }
}

// What a poll delivered is there until the next, though the topic has room for a few records only, and the
// publisher fills it again at once.
TEST_F(CapiTest, DeliveredRecordsStayUntilTheNextPoll) {
  auto topic = create();
  auto publisher = open_publisher(topic);
  auto subscriber = open_subscriber(topic);
  std::uint64_t published = 0;
  std::uint64_t read = 0;
  const auto fill = [&] {
    while (true) {
      std::string value = std::to_string(published);
      value.resize(300, '.');
      if (leat_publisher_publish(publisher.get(), value.data(), value.size(), 0, nullptr,
                                 nullptr) != LEAT_OK)
        return;
      ++published;
    }
  };
  while (read < 1000) {
    fill();
    leat_record records[64];
    std::uint32_t count = 0;
    must(leat_subscriber_poll(subscriber.get(), records, 64, &count, nullptr));
    fill();
    for (std::uint32_t i = 0; i < count; ++i) {
      std::string value = std::to_string(read++);
      value.resize(300, '.');
      ASSERT_EQ(text_of(records[i]), value);
    }
  }
}

TEST_F(CapiTest, NextBatchLiesWhereItIsFetched) {
  auto topic = create();
  auto publisher = open_publisher(topic);
  auto subscriber = open_subscriber(topic);
  constexpr std::uint32_t kBatch = 8;
  for (std::uint32_t i = 0; i < 2 * kBatch + 1; ++i) publish(publisher, std::string(100, 'v'));
  leat_record batch[kBatch];
  leat_record next_batch[kBatch];
  std::uint32_t count = 0;
  must(leat_subscriber_poll(subscriber.get(), batch, kBatch, &count, nullptr));
  ASSERT_EQ(count, kBatch);
  const std::uint64_t distance = leat_next_batch(batch, count, kBatch);
  const auto stride = static_cast<std::uint64_t>(batch[1].value - batch[0].value);
  EXPECT_EQ(distance, kBatch * stride);
  must(leat_subscriber_poll(subscriber.get(), next_batch, kBatch, &count, nullptr));
  EXPECT_EQ(batch[0].value + distance, next_batch[0].value);
  EXPECT_EQ(leat_next_batch(batch, kBatch - 1, kBatch), 0U) << "nothing is behind it";
  EXPECT_EQ(leat_next_batch(batch, 1, 1), 0U) << "one tells no distance";
  leat_record far[2] = {batch[0], batch[0]};
  far[1].value += 1 << 20;
  EXPECT_EQ(leat_next_batch(far, 2, 2), 0U) << "the next one may lie anywhere";
  leat_prefetch(nullptr, 0);
  far[0].value = nullptr;
  leat_prefetch(&far[0], distance);  // Nothing is there, and nothing happens.
}

TEST_F(CapiTest, LossySubscriberIsToldWhatItLost) {
  leat_topic_options options = LEAT_TOPIC_OPTIONS_INIT;
  options.policy = LEAT_POLICY_OVERWRITE;
  auto topic = create(options);
  auto publisher = open_publisher(topic);
  SubscriberHandle gating;
  EXPECT_EQ(leat_topic_subscriber(topic.get(), nullptr, gating.out(), nullptr),
            LEAT_ERR_NOT_WITH_OVERWRITE);
  leat_subscriber_options lossy = LEAT_SUBSCRIBER_OPTIONS_INIT;
  lossy.gating = 0;
  auto subscriber = open_subscriber(topic, lossy);
  std::uint32_t is_lossy = 0;
  EXPECT_EQ(leat_subscriber_is_lossy(subscriber.get(), &is_lossy), LEAT_OK);
  EXPECT_EQ(is_lossy, 1U);
  for (int i = 0; i < 100; ++i) publish(publisher, std::string(1000, 'x'));
  const leat_record gap = next(subscriber);
  ASSERT_EQ(leat_record_is_gap(&gap), 1);
  EXPECT_EQ(leat_gap_reason(&gap), std::uint32_t{LEAT_GAP_OVERWRITTEN});
  const auto rest = drain(subscriber);
  EXPECT_EQ(leat_gap_count(&gap) + rest.size(), 100U);
}

TEST_F(CapiTest, SubscriberBeginsWhereItShould) {
  leat_topic_options options = LEAT_TOPIC_OPTIONS_INIT;
  options.timestamps = 1;
  auto topic = create(options);
  auto publisher = open_publisher(topic);
  for (const char* value : {"a", "b", "c", "d"}) publish(publisher, value);
  const auto from = [&](std::uint32_t where, std::uint64_t value) {
    leat_subscriber_options begin = LEAT_SUBSCRIBER_OPTIONS_INIT;
    begin.from = where;
    begin.from_value = value;
    SubscriberHandle subscriber;
    must(leat_topic_subscriber(topic.get(), &begin, subscriber.out(), nullptr));
    return drain(subscriber);
  };
  EXPECT_EQ(from(LEAT_FROM_END, 0), Texts{});
  EXPECT_EQ(from(LEAT_FROM_BEGINNING, 0), (Texts{"a", "b", "c", "d"}));
  EXPECT_EQ(from(LEAT_FROM_OFFSET, 2), (Texts{"c", "d"}));
  EXPECT_EQ(from(LEAT_FROM_LAST, 1), Texts{"d"});
  EXPECT_EQ(from(LEAT_FROM_TIME, 1), (Texts{"a", "b", "c", "d"}));
  EXPECT_EQ(from(LEAT_FROM_TIME, INT64_MAX), Texts{});
  EXPECT_THROW(from(LEAT_FROM_TIME, UINT64_MAX), std::runtime_error);
  EXPECT_THROW(from(5, 0), std::runtime_error);
}

TEST_F(CapiTest, SubscriberRefusesWhatCannotBe) {
  auto topic = create();
  auto subscriber = open_subscriber(topic);
  leat_record record;
  std::uint32_t count = 7;
  EXPECT_EQ(leat_subscriber_poll(subscriber.get(), nullptr, 1, &count, nullptr),
            LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(leat_subscriber_poll(subscriber.get(), &record, 0, &count, nullptr),
            LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(leat_subscriber_poll(subscriber.get(), &record, 1, nullptr, nullptr),
            LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(leat_subscriber_poll(nullptr, &record, 1, &count, nullptr), LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(leat_subscriber_receive(subscriber.get(), &record, 1, &count, -2, nullptr),
            LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(leat_subscriber_receive(subscriber.get(), &record, 1, &count, 0, nullptr),
            LEAT_ERR_TIMEOUT);
  EXPECT_EQ(leat_subscriber_receive(subscriber.get(), &record, 1, &count, 1000, nullptr),
            LEAT_ERR_TIMEOUT);
  EXPECT_EQ(count, 0U);
  std::uint64_t offset = 0;
  EXPECT_EQ(leat_subscriber_offset(subscriber.get(), 0, &offset), LEAT_OK);
  EXPECT_EQ(leat_subscriber_offset(subscriber.get(), 1, &offset), LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(leat_subscriber_offset(subscriber.get(), LEAT_ANY_PARTITION, &offset),
            LEAT_ERR_INVALID_ARGUMENT);
  for (auto member : {&leat_subscriber_options::gating, &leat_subscriber_options::in_place,
                      &leat_subscriber_options::any_thread, &leat_subscriber_options::interruptible,
                      &leat_subscriber_options::read, &leat_subscriber_options::partition}) {
    leat_subscriber_options options = LEAT_SUBSCRIBER_OPTIONS_INIT;
    options.*member = 9;
    SubscriberHandle other;
    EXPECT_EQ(leat_topic_subscriber(topic.get(), &options, other.out(), nullptr),
              LEAT_ERR_INVALID_ARGUMENT);
  }
}

TEST_F(CapiTest, WaitsEndWithARecordAndWhenStopped) {
  auto topic = create();
  auto publisher = open_publisher(topic);
  auto subscriber = open_subscriber(topic);
  std::thread other{[&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
    publish(publisher, "a");
  }};
  EXPECT_EQ(text_of(next(subscriber)), "a");
  other.join();
  std::thread stopper{[&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
    leat_subscriber_stop(subscriber.get());
  }};
  EXPECT_EQ(leat_subscriber_wait(subscriber.get(), LEAT_FOREVER), LEAT_ERR_STOPPED);
  stopper.join();
  leat_record record;
  std::uint32_t count = 0;
  EXPECT_EQ(leat_subscriber_receive(subscriber.get(), &record, 1, &count, LEAT_FOREVER, nullptr),
            LEAT_ERR_STOPPED);
  std::uint32_t is_stopped = 0;
  EXPECT_EQ(leat_subscriber_is_stopped(subscriber.get(), &is_stopped), LEAT_OK);
  EXPECT_EQ(is_stopped, 1U);
  EXPECT_EQ(leat_subscriber_resume(subscriber.get()), LEAT_OK);
  EXPECT_EQ(leat_subscriber_wait(subscriber.get(), 1000), LEAT_ERR_TIMEOUT);
}

TEST_F(CapiTest, WaitForSeveralSubscribersOrADescriptor) {
  auto topic = create();
  auto publisher = open_publisher(topic);
  auto first = open_subscriber(topic);
  auto second = open_subscriber(topic);
  leat_subscriber* both[] = {first.get(), second.get()};
  std::uint32_t index = 7;
  EXPECT_EQ(leat_subscriber_wait_any(both, 2, 1000, &index), LEAT_ERR_TIMEOUT);
  publish(publisher, "a");
  drain(first);
  EXPECT_EQ(leat_subscriber_wait_any(both, 2, LEAT_FOREVER, &index), LEAT_OK);
  EXPECT_EQ(index, 1U);
  EXPECT_EQ(leat_subscriber_wait_any(both, 0, 0, &index), LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(leat_subscriber_wait_any(both, LEAT_MAX_WAIT_ANY + 1, 0, &index),
            LEAT_ERR_INVALID_ARGUMENT);
  both[1] = nullptr;
  EXPECT_EQ(leat_subscriber_wait_any(both, 2, 0, &index), LEAT_ERR_INVALID_ARGUMENT);
  std::int32_t fd = -1;
  ASSERT_EQ(leat_subscriber_wait_fd(first.get(), &fd, nullptr), LEAT_OK);
  publish(publisher, "b");
  pollfd readable{fd, POLLIN, 0};
  EXPECT_EQ(::poll(&readable, 1, 10'000), 1);
  EXPECT_EQ(drain(first), Texts{"b"});
}
