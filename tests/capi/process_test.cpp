// If these tests failed, a program in C could not be interrupted, would run out of descriptors, or would be ended
// by an exception that it cannot catch.
#include <dirent.h>
#include <pthread.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "capi.hpp"

using namespace leat_capi_test;

namespace {

std::size_t entries_of(const char* directory) {
  std::size_t count = 0;
  DIR* const all = ::opendir(directory);
  while (::readdir(all) != nullptr) ++count;
  ::closedir(all);
  return count;
}

// Sends signals to the thread that made it, as long as it exists.
class Signals {
 public:
  Signals() {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    ::sigaction(SIGUSR1, &action, nullptr);
    sender_ = std::thread{[this, target = ::pthread_self()] {
      while (!stops_) {
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
        ::pthread_kill(target, SIGUSR1);
      }
    }};
  }
  ~Signals() {
    stops_ = true;
    sender_.join();
  }

 private:
  std::atomic<bool> stops_ = false;
  std::thread sender_;
};

}  // namespace

TEST_F(CapiTest, SignalEndsTheWaitsOfThoseThatWantIt) {
  auto topic = create();
  leat_publisher_options publisher_options = LEAT_PUBLISHER_OPTIONS_INIT;
  publisher_options.interruptible = 1;
  PublisherHandle publisher;
  must(leat_topic_publisher(topic.get(), &publisher_options, publisher.out(), nullptr));
  leat_subscriber_options subscriber_options = LEAT_SUBSCRIBER_OPTIONS_INIT;
  subscriber_options.interruptible = 1;
  subscriber_options.any_thread = 1;
  auto subscriber = open_subscriber(topic, subscriber_options);
  auto stubborn = open_subscriber(topic);
  leat_group_options from = LEAT_GROUP_OPTIONS_INIT;
  GroupHandle group;
  must(leat_topic_group(topic.get(), "group", 5, &from, group.out(), nullptr, nullptr));
  leat_member_options member_options = LEAT_MEMBER_OPTIONS_INIT;
  member_options.interruptible = 1;
  MemberHandle member;
  must(leat_group_join(group.get(), &member_options, member.out(), nullptr));
  const Signals signals;
  leat_record record;
  leat_delivery delivery;
  std::uint32_t count = 0;
  EXPECT_EQ(leat_subscriber_wait(subscriber.get(), 20 * kSecond), LEAT_ERR_INTERRUPTED);
  EXPECT_EQ(leat_subscriber_receive(subscriber.get(), &record, 1, &count, 20 * kSecond, nullptr),
            LEAT_ERR_INTERRUPTED);
  EXPECT_EQ(leat_subscriber_wait(stubborn.get(), kSecond / 5), LEAT_ERR_TIMEOUT);
  EXPECT_EQ(stubborn.close(), LEAT_OK);
  EXPECT_EQ(leat_member_receive(member.get(), &delivery, 1, &count, 20 * kSecond, nullptr),
            LEAT_ERR_INTERRUPTED);
  EXPECT_EQ(leat_member_wait(member.get(), 20 * kSecond), LEAT_ERR_INTERRUPTED);
  EXPECT_EQ(member.close(), LEAT_OK);
  const std::string value(1000, 'x');
  std::int32_t code = LEAT_OK;
  while (code == LEAT_OK)
    code = leat_publisher_publish(publisher.get(), value.data(), value.size(), 20 * kSecond,
                                  nullptr, nullptr);
  EXPECT_EQ(code, LEAT_ERR_INTERRUPTED);
}

TEST_F(CapiTest, HandlesLeaveNothingBehind) {
  auto topic = create();
  std::size_t descriptors = 0;
  std::size_t threads = 0;
  for (int i = 0; i < (LEAT_TEST_SANITIZED != 0 ? 50 : 1000); ++i) {
    TopicHandle again;
    must(leat_topic_open("topic", 5, 0, nullptr, again.out(), nullptr));
    auto publisher = open_publisher(again);
    auto subscriber = open_subscriber(again);
    auto group = open_group(again);
    auto member = join(group);
    std::int32_t fd = -1;
    if (i % 100 == 0) must(leat_subscriber_wait_fd(subscriber.get(), &fd, nullptr));
    if (i % 2 == 0) {
      leat_claim claim;
      must(leat_publisher_claim(publisher.get(), 1, 0, &claim, nullptr));
    }
    publisher.close();
    if (i == 10) {
      descriptors = entries_of("/proc/self/fd");
      threads = entries_of("/proc/self/task");
    }
    group.close();
    member.close();
    subscriber.close();
    must(leat_topic_delete_group(topic.get(), "group", 5, 0, nullptr));
  }
  EXPECT_LE(entries_of("/proc/self/fd"), descriptors);
  EXPECT_LE(entries_of("/proc/self/task"), threads);
}

#if !LEAT_TEST_SANITIZED  // They need the memory that the test takes away.
TEST_F(CapiTest, MemoryThatIsMissingIsAnError) {
  auto topic = create();
  auto group = open_group(topic);
  auto member = join(group);
  std::vector<leat_delivery> many(1'000'000);
  EXPECT_EQ(in_child([&] {
              TopicHandle own;
              must(leat_topic_open("topic", 5, 0, nullptr, own.out(), nullptr));
              GroupHandle own_group;
              must(leat_topic_find_group(own.get(), "group", 5, own_group.out(), nullptr));
              auto own_member = join(own_group);
              const rlimit limit{1 << 20, 1 << 20};
              ::setrlimit(RLIMIT_AS, &limit);
              return leat_member_acknowledge_some(own_member.get(), many.data(), many.size(),
                                                  nullptr) == LEAT_ERR_NO_MEMORY &&
                     leat_member_close(own_member.out()) == LEAT_OK;
            }),
            0);
}
#endif
