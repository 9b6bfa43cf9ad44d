// If these tests failed, programs in C that wait would use up the processor, or could not be ended.
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <thread>

#include "capi.hpp"

using namespace leat_capi_test;

namespace {

// A topic without room, and whoever can wait for it. Nobody is interrupted, and nobody waits for itself.
struct Waiters {
  explicit Waiters(const TopicHandle& topic) {
    must(leat_topic_publisher(topic.get(), nullptr, publisher.out(), nullptr));
    must(leat_topic_publisher(topic.get(), nullptr, second.out(), nullptr));
    leat_subscriber_options options = LEAT_SUBSCRIBER_OPTIONS_INIT;
    options.any_thread = 1;
    must(leat_topic_subscriber(topic.get(), &options, gating.out(), nullptr));
    leat_topic_info info{};
    info.size = sizeof(info);
    must(leat_topic_get_info(topic.get(), &info, nullptr, 0, nullptr, 0, nullptr));
    has_room = info.durable != LEAT_DURABILITY_NONE;
    const std::string value(1000, 'x');
    while (!has_room && leat_publisher_publish(publisher.get(), value.data(), value.size(), 0,
                                               nullptr, nullptr) == LEAT_OK) {
    }
    for (SubscriberHandle& one : subscribers)  // They begin behind all that, as the group does.
      must(leat_topic_subscriber(topic.get(), &options, one.out(), nullptr));
    must(leat_topic_group(topic.get(), "group", 5, nullptr, group.out(), nullptr, nullptr));
    leat_member_options any = LEAT_MEMBER_OPTIONS_INIT;
    any.any_thread = 1;
    for (MemberHandle& one : members) must(leat_group_join(group.get(), &any, one.out(), nullptr));
  }

  bool has_room = true;  // Of durable topics, what subscribers have not read is read from disk.
  PublisherHandle publisher;
  PublisherHandle second;
  SubscriberHandle gating;
  SubscriberHandle subscribers[5];
  GroupHandle group;
  MemberHandle members[4];
};

// A descriptor says that there may be something to do. So `wait` looks, which also makes it unreadable.
template <class Handle>
std::int32_t poll_until_stopped(Handle* one, std::int32_t fd,
                                std::int32_t (*wait)(Handle*, std::int64_t)) {
  for (;;) {
    const std::int32_t code = wait(one, 1);
    if (code != LEAT_ERR_TIMEOUT) return code;
    pollfd readable{fd, POLLIN, 0};
    if (::poll(&readable, 1, -1) != 1) return LEAT_ERR_IO_ERROR;
  }
}

// Each function that waits and can be stopped, and how. Without leat_publisher_flush(): these tests cannot hold up the
// sync that it waits for.
struct Wait {
  const char* name;
  std::function<std::int32_t()> wait;
  std::function<std::int32_t()> stop;
  std::function<std::int32_t()> resume;
};

std::vector<Wait> idle_waits(Waiters& of) {
  std::vector<Wait> all;
  const auto add_subscriber = [&](const char* name, std::size_t which, auto wait) {
    leat_subscriber* const one = of.subscribers[which].get();
    all.push_back({name, [=] { return wait(one); }, [=] { return leat_subscriber_stop(one); },
                   [=] { return leat_subscriber_resume(one); }});
  };
  const auto add_member = [&](const char* name, std::size_t which, auto wait) {
    leat_member* const one = of.members[which].get();
    all.push_back({name, [=] { return wait(one); }, [=] { return leat_member_stop(one); },
                   [=] { return leat_member_resume(one); }});
  };
  add_subscriber("leat_subscriber_wait", 0,
                 [](leat_subscriber* one) { return leat_subscriber_wait(one, LEAT_FOREVER); });
  add_subscriber("leat_subscriber_receive", 1, [](leat_subscriber* one) {
    leat_record record;
    std::uint32_t count = 0;
    return leat_subscriber_receive(one, &record, 1, &count, LEAT_FOREVER, nullptr);
  });
  leat_subscriber* const other = of.subscribers[3].get();
  add_subscriber("leat_subscriber_wait_any", 2, [other](leat_subscriber* one) {
    leat_subscriber* const both[] = {other, one};
    std::uint32_t index = 0;
    return leat_subscriber_wait_any(both, 2, LEAT_FOREVER, &index);
  });
  add_subscriber("poll() of leat_subscriber_wait_fd", 4, [](leat_subscriber* one) {
    std::int32_t fd = -1;
    must(leat_subscriber_wait_fd(one, &fd, nullptr));
    return poll_until_stopped(one, fd, leat_subscriber_wait);
  });
  add_member("leat_member_wait", 0, [](leat_member* one) {
    leat_delivery delivery;  // It returns at once unless there was nothing to receive.
    std::uint32_t count = 0;
    const std::int32_t code = leat_member_receive(one, &delivery, 1, &count, 0, nullptr);
    return code == LEAT_ERR_TIMEOUT ? leat_member_wait(one, LEAT_FOREVER) : code;
  });
  add_member("leat_member_receive", 1, [](leat_member* one) {
    leat_delivery delivery;
    std::uint32_t count = 0;
    return leat_member_receive(one, &delivery, 1, &count, LEAT_FOREVER, nullptr);
  });
  add_member("leat_member_receive_copy", 2, [](leat_member* one) {
    char text[8];
    std::uint64_t size = 0;
    return leat_member_receive_copy(one, text, sizeof(text), &size, LEAT_FOREVER, nullptr);
  });
  add_member("poll() of leat_member_wait_fd", 3, [](leat_member* one) {
    std::int32_t fd = -1;
    leat_delivery delivery;
    std::uint32_t count = 0;
    must(leat_member_wait_fd(one, &fd, nullptr));
    const std::int32_t code = leat_member_receive(one, &delivery, 1, &count, 0, nullptr);
    return code == LEAT_ERR_TIMEOUT ? poll_until_stopped(one, fd, leat_member_wait) : code;
  });
  return all;
}

std::vector<Wait> all_waits(Waiters& of) {
  std::vector<Wait> all = idle_waits(of);
  if (of.has_room) return all;
  const auto add_publisher = [&](const char* name, PublisherHandle& which, auto wait) {
    leat_publisher* const one = which.get();
    all.push_back({name, [=] { return wait(one); }, [=] { return leat_publisher_stop(one); },
                   [=] { return leat_publisher_resume(one); }});
  };
  static const std::string value(1000, 'x');
  add_publisher("leat_publisher_publish", of.publisher, [](leat_publisher* one) {
    return leat_publisher_publish(one, value.data(), value.size(), LEAT_FOREVER, nullptr, nullptr);
  });
  add_publisher("leat_publisher_publish_record", of.publisher, [](leat_publisher* one) {
    leat_new_record record = LEAT_NEW_RECORD_INIT;
    record.value = bytes_of(value);
    return leat_publisher_publish_record(one, &record, LEAT_FOREVER, nullptr, nullptr);
  });
  add_publisher("leat_publisher_publish_batch", of.publisher, [](leat_publisher* one) {
    const leat_bytes values[] = {bytes_of(value), bytes_of(value)};
    return leat_publisher_publish_batch(one, values, 2, LEAT_ANY_PARTITION, LEAT_FOREVER, nullptr,
                                        nullptr);
  });
  add_publisher("leat_publisher_publish_record_batch", of.publisher, [](leat_publisher* one) {
    leat_new_record record = LEAT_NEW_RECORD_INIT;
    record.value = bytes_of(value);
    const leat_new_record records[] = {record, record};
    return leat_publisher_publish_record_batch(one, records, 2, LEAT_ANY_PARTITION, LEAT_FOREVER,
                                               nullptr, nullptr);
  });
  add_publisher("leat_publisher_claim", of.second, [](leat_publisher* one) {
    leat_claim claim;
    return leat_publisher_claim(one, value.size(), LEAT_FOREVER, &claim, nullptr);
  });
  return all;
}

std::int64_t cpu_ns(clockid_t clock) {
  timespec spent{};
  ::clock_gettime(clock, &spent);
  return spent.tv_sec * kSecond + spent.tv_nsec;
}

}  // namespace

class CapiWaits : public CapiTest, public testing::WithParamInterface<std::uint32_t> {
 protected:
  static TopicHandle create_of_this_kind() {
    leat_topic_options options = LEAT_TOPIC_OPTIONS_INIT;
    options.durable = GetParam();
    return create(options);
  }
};
INSTANTIATE_TEST_SUITE_P(Durability, CapiWaits,
                         testing::Values(LEAT_DURABILITY_NONE, LEAT_DURABILITY_OS));

// All wait at once: together, with the threads that serve descriptors, they use no more than one may. What counts
// is the processor time of this process, without beginning and ending the waits. Cold caches of a loaded machine add
// to it, so the least of three counts. Publishers that wait for room are not idle: they look after those who take it.
TEST_P(CapiWaits, CostNothing) {
  auto topic = create_of_this_kind();
  Waiters waiters{topic};
  const auto all = idle_waits(waiters);
  std::vector<std::thread> threads;
  std::atomic<std::size_t> ended = 0;
  for (const Wait& one : all) {
    threads.emplace_back([&] {
      EXPECT_EQ(one.wait(), LEAT_ERR_STOPPED) << one.name;
      ++ended;
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds{500});
  // ThreadSanitizer has a thread of its own.
  const std::int64_t most = 2 * kSecond / (LEAT_TEST_SANITIZED != 0 ? 100 : 1000);
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < 3 && least >= most; ++i) {
    const std::int64_t before = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    std::this_thread::sleep_for(std::chrono::seconds{2});
    least = std::min(least, cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - before);
  }
  EXPECT_EQ(ended, 0U);
  for (const Wait& one : all) EXPECT_EQ(one.stop(), LEAT_OK) << one.name;
  for (std::thread& one : threads) one.join();
  EXPECT_LT(least, most);
}

TEST_P(CapiWaits, EndWhenAnotherThreadStopsThemUntilItResumes) {
  auto topic = create_of_this_kind();
  Waiters waiters{topic};
  for (const Wait& one : all_waits(waiters)) {
    for (int round = 0; round < 2; ++round) {
      std::atomic<bool> has_ended = false;
      std::thread waiting{[&] {
        EXPECT_EQ(one.wait(), LEAT_ERR_STOPPED) << one.name;
        has_ended = true;
      }};
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
      EXPECT_FALSE(has_ended) << one.name;
      EXPECT_EQ(one.stop(), LEAT_OK) << one.name;
      waiting.join();
      EXPECT_EQ(one.wait(), LEAT_ERR_STOPPED) << one.name;  // Later ones, too, from any thread.
      EXPECT_EQ(one.stop(), LEAT_OK) << one.name;
      EXPECT_EQ(one.wait(), LEAT_ERR_STOPPED) << one.name;
      EXPECT_EQ(one.resume(), LEAT_OK) << one.name;
    }
  }
}
