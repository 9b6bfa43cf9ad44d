// If these tests failed, a child process (of a Python or Ruby program, say) would work as its parent's publisher or
// member, or take the parent's place away when it ends.
#include "capi.hpp"

using namespace leat_capi_test;

using Texts = std::vector<std::string>;

namespace {

struct World {
  TopicHandle topic;
  PublisherHandle publisher;
  SubscriberHandle subscriber;
  GroupHandle group;
  MemberHandle member;
};

// Whether every function that needs the parent's handles says so.
bool all_are_forked(World& world, const leat_claim& claim, const leat_delivery& delivery) {
  std::uint64_t number = 0;
  std::uint32_t count = 0;
  std::int32_t fd = 0;
  leat_record record;
  leat_delivery into;
  leat_claim second;
  leat_subscriber* const subscriber = world.subscriber.get();
  leat_publisher* const publisher = world.publisher.get();
  leat_member* const member = world.member.get();
  leat_topic_info info{};
  info.size = sizeof(info);
  const leat_claim nobodys_claim{};
  const leat_delivery nobodys{};
  leat_topic* const topic = world.topic.get();
  PublisherHandle new_publisher;
  SubscriberHandle new_subscriber;
  GroupHandle new_group;
  MemberHandle new_member;
  const std::int32_t codes[] = {
      leat_topic_publisher(topic, nullptr, new_publisher.out(), nullptr),
      leat_topic_subscriber(topic, nullptr, new_subscriber.out(), nullptr),
      leat_topic_find_group(topic, "group", 5, new_group.out(), nullptr),
      leat_group_join(world.group.get(), nullptr, new_member.out(), nullptr),
      leat_topic_get_info(topic, &info, nullptr, 0, nullptr, 0, nullptr),
      leat_topic_get_json(topic, nullptr, 0, &number, nullptr),
      leat_topic_name(topic, nullptr, 0, &number),
      leat_publisher_publish(publisher, "x", 1, 0, nullptr, nullptr),
      leat_publisher_claim(publisher, 1, 0, &second, nullptr),
      leat_publisher_commit(publisher, &claim, 1, nullptr),
      leat_publisher_commit(publisher, &nobodys_claim, 1, nullptr),
      leat_publisher_abort(publisher, &nobodys_claim, nullptr),
      leat_publisher_flush(publisher, 0, nullptr),
      leat_publisher_durable_offset(publisher, 0, &number),
      leat_publisher_waiting_for(publisher, 0, nullptr, 0, &count, nullptr),
      leat_publisher_stop(publisher),
      leat_subscriber_poll(subscriber, &record, 1, &count, nullptr),
      leat_subscriber_receive(subscriber, &record, 1, &count, 0, nullptr),
      leat_subscriber_wait(subscriber, 0),
      leat_subscriber_wait_any(&subscriber, 1, 0, &count),
      leat_subscriber_wait_fd(subscriber, &fd, nullptr),
      leat_subscriber_offset(subscriber, 0, &number),
      leat_subscriber_stop(subscriber),
      leat_member_receive(member, &into, 1, &count, 0, nullptr),
      leat_member_acknowledge(member, &delivery),
      leat_member_acknowledge(member, &nobodys),
      leat_member_acknowledge_some(member, &nobodys, 1, &number),
      leat_member_acknowledge_all(member, &number),
      leat_member_requeue(member, &delivery, 0),
      leat_member_wait(member, 0),
      leat_member_wait_fd(member, &fd, nullptr),
      leat_member_stop(member),
      leat_group_position(world.group.get(), 0, &number),
  };
  int which = 0;
  bool all = true;
  for (const std::int32_t code : codes) {
    if (code != LEAT_ERR_FORKED) {
      std::fprintf(stderr, "call %d: %s\n", which, leat_error_name(code));
      all = false;
    }
    ++which;
  }
  return all;
}

}  // namespace

class CapiFork : public CapiTest, public testing::WithParamInterface<std::uint32_t> {};
#ifdef __SANITIZE_THREAD__  // It knows no child with threads of a process with threads.
INSTANTIATE_TEST_SUITE_P(Durability, CapiFork, testing::Values(LEAT_DURABILITY_NONE));
#else
INSTANTIATE_TEST_SUITE_P(Durability, CapiFork,
                         testing::Values(LEAT_DURABILITY_NONE, LEAT_DURABILITY_OS));
#endif

TEST_P(CapiFork, ChildHarmsNobodyWithWhatItInherits) {
  leat_topic_options options = LEAT_TOPIC_OPTIONS_INIT;
  options.durable = GetParam();
  World world{create(options), {}, {}, {}, {}};
  must(leat_topic_publisher(world.topic.get(), nullptr, world.publisher.out(), nullptr));
  leat_subscriber_options from = LEAT_SUBSCRIBER_OPTIONS_INIT;
  must(leat_topic_subscriber(world.topic.get(), &from, world.subscriber.out(), nullptr));
  must(leat_topic_group(world.topic.get(), "group", 5, nullptr, world.group.out(), nullptr,
                        nullptr));
  must(leat_group_join(world.group.get(), nullptr, world.member.out(), nullptr));
  std::int32_t fd = -1;
  must(leat_subscriber_wait_fd(world.subscriber.get(), &fd, nullptr));
  publish(world.publisher, "a");
  leat_delivery delivery;
  std::uint32_t count = 0;
  must(leat_member_receive(world.member.get(), &delivery, 1, &count, 5 * kSecond, nullptr));
  leat_claim claim;
  must(leat_publisher_claim(world.publisher.get(), 1, 0, &claim, nullptr));

  EXPECT_EQ(in_child([&] {
              if (!all_are_forked(world, claim, delivery)) return false;
              if (world.topic.close() + world.group.close() + world.publisher.close() +
                      world.subscriber.close() + world.member.close() !=
                  LEAT_OK)
                return false;
              TopicHandle topic;
              must(leat_topic_open("topic", 5, 0, nullptr, topic.out(), nullptr));
              auto publisher = open_publisher(topic);
              publish(publisher, "of the child");
              return true;
            }),
            0);

  *claim.data = 'b';
  EXPECT_EQ(leat_publisher_commit(world.publisher.get(), &claim, 1, nullptr), LEAT_OK);
  EXPECT_EQ(leat_member_acknowledge(world.member.get(), &delivery), LEAT_OK);
  publish(world.publisher, "c");
  Texts all;
  while (all.size() < 4) {
    must(leat_subscriber_wait(world.subscriber.get(), 10 * kSecond));
    for (const std::string& text : drain(world.subscriber)) all.push_back(text);
  }
  EXPECT_EQ(all, (Texts{"a", "b", "of the child", "c"}));
}
