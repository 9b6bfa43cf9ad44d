// If these tests failed, programs in C could not make, find, inspect or delete topics, or would crash on what
// they pass by mistake.
#include <algorithm>

#include "capi.hpp"

using namespace leat_capi_test;

TEST_F(CapiTest, TopicIsCreatedOpenedAndDeleted) {
  TopicHandle topic;
  EXPECT_EQ(leat_topic_open("topic", LEAT_TEXT, 0, nullptr, topic.out(), nullptr),
            LEAT_ERR_NOT_FOUND);
  EXPECT_EQ(topic.get(), nullptr);
  // Only the first 5 bytes are the name.
  EXPECT_EQ(leat_topic_create("topics", 5, nullptr, topic.out(), nullptr), LEAT_OK);
  EXPECT_EQ(text_from([&](auto... rest) { return leat_topic_name(topic.get(), rest...); }),
            "topic");
  TopicHandle again;
  EXPECT_EQ(leat_topic_create("topic", 5, nullptr, again.out(), nullptr), LEAT_ERR_EXISTS);
  EXPECT_EQ(leat_topic_open_or_create("topic", 5, nullptr, again.out(), nullptr), LEAT_OK);
  TopicHandle third;
  EXPECT_EQ(leat_topic_open("topic", 5, LEAT_FOREVER, nullptr, third.out(), nullptr), LEAT_OK);
  EXPECT_EQ(leat_topic_delete("topic", 5, nullptr, nullptr), LEAT_OK);
  EXPECT_EQ(leat_topic_delete("topic", 5, nullptr, nullptr), LEAT_ERR_NOT_FOUND);
}

TEST_F(CapiTest, TopicNameOfABrokerIsForLater) {
  TopicHandle topic;
  const std::string name = "tcp://host:5500/orders";
  EXPECT_EQ(leat_topic_open(name.data(), name.size(), 0, nullptr, topic.out(), nullptr),
            LEAT_ERR_UNSUPPORTED);
  EXPECT_EQ(leat_topic_create(name.data(), LEAT_TEXT, nullptr, topic.out(), nullptr),
            LEAT_ERR_UNSUPPORTED);
  EXPECT_EQ(leat_topic_delete(name.data(), LEAT_TEXT, nullptr, nullptr), LEAT_ERR_UNSUPPORTED);
}

TEST_F(CapiTest, TopicRefusesWhatCannotBe) {
  TopicHandle topic;
  const auto create_named = [&](const char* name, std::uint64_t size) {
    return leat_topic_create(name, size, nullptr, topic.out(), nullptr);
  };
  EXPECT_EQ(create_named(nullptr, 0), LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(create_named(nullptr, 5), LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(create_named("topic", 0), LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(create_named("to\0ic", 5), LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(create_named("a/b", 3), LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(create_named("topic", LEAT_TEXT - 1), LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(leat_topic_create("topic", 5, nullptr, nullptr, nullptr), LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(leat_topic_open("topic", 5, -2, nullptr, topic.out(), nullptr),
            LEAT_ERR_INVALID_ARGUMENT);
  for (auto member : {&leat_topic_options::retain_all, &leat_topic_options::single_writer,
                      &leat_topic_options::timestamps, &leat_topic_options::delete_when_unused,
                      &leat_topic_options::policy, &leat_topic_options::durable}) {
    leat_topic_options options = LEAT_TOPIC_OPTIONS_INIT;
    options.*member = 9;
    EXPECT_EQ(leat_topic_create("topic", 5, &options, topic.out(), nullptr),
              LEAT_ERR_INVALID_ARGUMENT);
  }
  EXPECT_EQ(leat_topic_close(nullptr), LEAT_ERR_INVALID_ARGUMENT);
  leat_topic* none = nullptr;
  EXPECT_EQ(leat_topic_close(&none), LEAT_ERR_INVALID_ARGUMENT);
}

TEST_F(CapiTest, ErrnoIsADetail) {
  const std::string missing = directory_ + "/missing/deeper";
  leat_topic_options options = LEAT_TOPIC_OPTIONS_INIT;
  options.directory = bytes_of(missing);
  TopicHandle topic;
  std::int32_t detail = 0;
  EXPECT_EQ(leat_topic_create("topic", 5, &options, topic.out(), &detail), LEAT_ERR_NOT_FOUND);
  EXPECT_EQ(detail, ENOENT);
}

TEST_F(CapiTest, TopicsAreListed) {
  EXPECT_EQ(text_from([&](auto... rest) { return leat_topic_list(nullptr, rest..., nullptr); }),
            "");
  for (const char* name : {"b", "a", "c"}) {
    TopicHandle topic;
    must(leat_topic_create(name, LEAT_TEXT, nullptr, topic.out(), nullptr));
  }
  EXPECT_EQ(text_from([&](auto... rest) { return leat_topic_list(nullptr, rest..., nullptr); }),
            "a\nb\nc\n");
  char text[5];
  std::uint64_t size = 0;
  EXPECT_EQ(leat_topic_list(nullptr, text, 5, &size, nullptr), LEAT_ERR_BUFFER_TOO_SMALL);
  EXPECT_EQ(size, 6U);
  leat_place place = LEAT_PLACE_INIT;
  const std::string missing = directory_ + "/missing";
  place.directory = bytes_of(missing);
  EXPECT_EQ(leat_topic_list(&place, text, 5, &size, nullptr), LEAT_OK);
  EXPECT_EQ(size, 0U);
}

TEST_F(CapiTest, PlaceMayBeOfAnOlderProgram) {
  const auto topic = create();
  leat_place place = LEAT_PLACE_INIT;
  TopicHandle again;
  place.interruptible = 2;
  EXPECT_EQ(leat_topic_open("topic", 5, 0, &place, again.out(), nullptr),
            LEAT_ERR_INVALID_ARGUMENT);
  place.size = offsetof(leat_place, interruptible);  // What follows is not the struct's.
  EXPECT_EQ(leat_topic_open("topic", 5, 0, &place, again.out(), nullptr), LEAT_OK);
  place = LEAT_PLACE_INIT;
  place.reserved = 1;
  EXPECT_EQ(leat_topic_delete("topic", 5, &place, nullptr), LEAT_ERR_INVALID_ARGUMENT);
}

TEST_F(CapiTest, DeletedUnderItsParticipants) {
  auto topic = create();
  auto publisher = open_publisher(topic);
  auto subscriber = open_subscriber(topic);
  publish(publisher, "last");
  EXPECT_EQ(leat_topic_delete("topic", 5, nullptr, nullptr), LEAT_ERR_BUSY);
  leat_place place = LEAT_PLACE_INIT;
  place.force = 1;
  EXPECT_EQ(leat_topic_delete("topic", 5, &place, nullptr), LEAT_OK);
  EXPECT_EQ(leat_publisher_publish(publisher.get(), "x", 1, 0, nullptr, nullptr), LEAT_ERR_DELETED);
  leat_record record;
  std::uint32_t count = 0;
  EXPECT_EQ(leat_subscriber_receive(subscriber.get(), &record, 1, &count, kSecond, nullptr),
            LEAT_OK);
  EXPECT_EQ(text_of(record), "last");
  std::int32_t code = LEAT_OK;
  while (code == LEAT_OK)
    code = leat_subscriber_receive(subscriber.get(), &record, 1, &count, kSecond, nullptr);
  EXPECT_EQ(code, LEAT_ERR_DELETED);
}

TEST_F(CapiTest, InfoOfATopic) {
  leat_topic_options options = LEAT_TOPIC_OPTIONS_INIT;
  options.partitions = 2;
  options.timestamps = 1;
  options.policy = LEAT_POLICY_GROW;
  options.revoke_after_ns = 5 * kSecond;
  auto topic = create(options);
  auto publisher = open_publisher(topic);
  auto subscriber = open_subscriber(topic);
  publish(publisher, "a");
  leat_topic_info info{};
  info.size = sizeof(info);
  leat_partition_info partitions[3] = {};
  leat_participant_info participants[1] = {};
  ASSERT_EQ(leat_topic_get_info(topic.get(), &info, partitions, 3, participants, 1, nullptr),
            LEAT_OK);
  EXPECT_EQ(info.size, sizeof(info));
  EXPECT_EQ(info.policy, std::uint32_t{LEAT_POLICY_GROW});
  EXPECT_EQ(info.segment_bytes, 4096U);
  EXPECT_EQ(info.id[6] >> 4, 4) << "the version of a random UUID";
  EXPECT_EQ(info.timestamps, 1U);
  EXPECT_EQ(info.single_writer, 0U);
  EXPECT_EQ(info.revoke_after_ns, 5 * kSecond);
  EXPECT_EQ(info.partition_count, 2U);
  EXPECT_EQ(info.participant_count, 2U);
  EXPECT_EQ(info.durable, std::uint32_t{LEAT_DURABILITY_NONE});
  EXPECT_EQ(partitions[0].end + partitions[1].end, 1U);
  EXPECT_EQ(participants[0].pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(participants[0].role, std::uint32_t{LEAT_ROLE_PUBLISHER});
  std::uint64_t bytes = 0;
  ASSERT_EQ(leat_topic_max_record_size(topic.get(), &bytes), LEAT_OK);
  EXPECT_EQ(info.max_record_bytes, bytes);
  std::uint32_t count = 0;
  ASSERT_EQ(leat_topic_partitions(topic.get(), &count), LEAT_OK);
  EXPECT_EQ(count, 2U);
}

TEST_F(CapiTest, InfoForAnOlderAndANewerProgram) {
  auto topic = create();
  struct {
    leat_topic_info info;
    std::uint64_t later[2];
  } newer{};
  newer.later[0] = newer.later[1] = 7;
  newer.info.size = sizeof(newer);
  EXPECT_EQ(leat_topic_get_info(topic.get(), &newer.info, nullptr, 0, nullptr, 0, nullptr),
            LEAT_OK);
  EXPECT_EQ(newer.later[0] + newer.later[1], 0U);
  EXPECT_EQ(newer.info.segment_bytes, 4096U);
  leat_topic_info older{};
  older.segment_bytes = 7;
  older.size = 16;
  EXPECT_EQ(leat_topic_get_info(topic.get(), &older, nullptr, 0, nullptr, 0, nullptr), LEAT_OK);
  EXPECT_EQ(older.segment_bytes, 7U);
  EXPECT_EQ(older.capacity_bytes, 4 * 4096U);
  older.size = 3;
  EXPECT_EQ(leat_topic_get_info(topic.get(), &older, nullptr, 0, nullptr, 0, nullptr),
            LEAT_ERR_INVALID_ARGUMENT);
}

TEST_F(CapiTest, JsonOfATopic) {
  auto topic = create();
  auto group = open_group(topic);
  const std::string json =
      text_from([&](auto... rest) { return leat_topic_get_json(topic.get(), rest..., nullptr); });
  EXPECT_EQ(json.find("{\n  \"name\": \"topic\",\n  \"id\": \""), 0U) << json;
  EXPECT_NE(json.find("\",\n  \"policy\": \"block\","), std::string::npos) << json;
  EXPECT_NE(json.find("\"groups\": [\n    {\n      \"name\": \"group\""), std::string::npos)
      << json;
  EXPECT_EQ(json.back(), '}');
}

TEST_F(CapiTest, TopicGrowsAndShrinks) {
  leat_topic_options options = LEAT_TOPIC_OPTIONS_INIT;
  options.policy = LEAT_POLICY_GROW;
  auto topic = create(options);
  EXPECT_EQ(leat_topic_set_max_capacity(topic.get(), 8 * 4096, nullptr), LEAT_OK);
  EXPECT_EQ(leat_topic_set_max_capacity(topic.get(), 1, nullptr), LEAT_ERR_INVALID_ARGUMENT);
  leat_topic_info info{};
  info.size = sizeof(info);
  ASSERT_EQ(leat_topic_get_info(topic.get(), &info, nullptr, 0, nullptr, 0, nullptr), LEAT_OK);
  EXPECT_EQ(info.min_capacity_bytes, 4 * 4096U);
  EXPECT_EQ(info.max_capacity_bytes, 8 * 4096U);
  EXPECT_EQ(leat_topic_set_max_capacity(topic.get(), info.max_capacity_limit, nullptr), LEAT_OK);
  EXPECT_EQ(leat_topic_set_max_capacity(topic.get(), info.max_capacity_limit + 1, nullptr),
            LEAT_ERR_INVALID_ARGUMENT);
  std::uint64_t freed = 7;
  EXPECT_EQ(leat_topic_shrink(topic.get(), &freed, nullptr), LEAT_OK);
  EXPECT_EQ(freed % 4096, 0U);
  EXPECT_EQ(leat_topic_shrink(topic.get(), nullptr, nullptr), LEAT_OK);
  EXPECT_EQ(leat_topic_repair(topic.get(), 0, nullptr), LEAT_ERR_NEEDS_DURABLE);
}

TEST_F(CapiTest, OptionsOfAnotherVersion) {
  // An older program: the rest keeps its default.
  leat_topic_options options = LEAT_TOPIC_OPTIONS_INIT;
  options.partitions = 3;
  options.participants = 0;  // Beyond its end; would be refused.
  options.size = offsetof(leat_topic_options, participants);
  TopicHandle topic;
  EXPECT_EQ(leat_topic_create("older", LEAT_TEXT, &options, topic.out(), nullptr), LEAT_OK);
  std::uint32_t count = 0;
  must(leat_topic_partitions(topic.get(), &count));
  EXPECT_EQ(count, 3U);
  // A newer one: what this library does not know must be 0.
  struct {
    leat_topic_options options = LEAT_TOPIC_OPTIONS_INIT;
    std::uint64_t later = 0;
  } newer;
  newer.options.size = sizeof(newer);
  TopicHandle second;
  EXPECT_EQ(leat_topic_create("newer", LEAT_TEXT, &newer.options, second.out(), nullptr), LEAT_OK);
  newer.later = 1;
  TopicHandle third;
  EXPECT_EQ(leat_topic_create("third", LEAT_TEXT, &newer.options, third.out(), nullptr),
            LEAT_ERR_UNSUPPORTED);
  newer.options.size = 3;
  EXPECT_EQ(leat_topic_create("third", LEAT_TEXT, &newer.options, third.out(), nullptr),
            LEAT_ERR_INVALID_ARGUMENT);
}
