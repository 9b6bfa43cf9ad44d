// If these tests failed, a program in C could not be interrupted, would be ended by an exception that it
// cannot catch, or its records would be held by child processes that outlive it.
#include <pthread.h>
#include <spawn.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <system_error>
#include <thread>

#include "capi.hpp"

using namespace leat_capi_test;

using Texts = std::vector<std::string>;

namespace {

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

// Ways to start a process that goes on for longer than this test; each returns its number.
pid_t by_fork() {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::sleep(30);
  ::_exit(0);
}
pid_t by_fork_and_exec() {
  const pid_t child = ::fork();
  if (child == 0) ::execl("/bin/sleep", "sleep", "30", nullptr);
  return child;
}
pid_t by_spawn() {
  pid_t child = 0;
  char name[] = "sleep";
  char seconds[] = "30";
  char* const words[] = {name, seconds, nullptr};
  return ::posix_spawn(&child, "/bin/sleep", nullptr, nullptr, words, ::environ) == 0 ? child : -1;
}

pid_t (*const kWays[])() = {by_fork, by_fork_and_exec, by_spawn};

// Names of files below `directory` that a process has open.
std::vector<std::string> open_files(pid_t process, const std::string& directory) {
  std::vector<std::string> all;
  for (const auto& one :
       std::filesystem::directory_iterator{"/proc/" + std::to_string(process) + "/fd"}) {
    std::error_code closed_meanwhile;
    const std::string file = std::filesystem::read_symlink(one.path(), closed_meanwhile);
    if (file.starts_with(directory)) all.push_back(file);
  }
  return all;
}

}  // namespace

class CapiChild : public CapiTest, public testing::WithParamInterface<std::size_t> {
 protected:
  // A process with a record of the group and a claim in its hands, which has started another one by `start`. Returns
  // both numbers.
  static std::pair<pid_t, pid_t> start_parent(pid_t (*start)()) {
    int ready[2];
    if (::pipe(ready) != 0) throw std::runtime_error{"pipe failed"};
    const pid_t parent = ::fork();
    if (parent == 0) {
      try {
        TopicHandle topic;
        must(leat_topic_open("topic", 5, 0, nullptr, topic.out(), nullptr));
        auto member = join(open_group(topic));
        leat_delivery delivery;
        std::uint32_t count = 0;
        must(leat_member_receive(member.get(), &delivery, 1, &count, 10 * kSecond, nullptr));
        auto publisher = open_publisher(topic);
        leat_claim claim;
        must(leat_publisher_claim(publisher.get(), 1, 0, &claim, nullptr));
        std::int32_t fd = -1;
        must(leat_member_wait_fd(member.get(), &fd, nullptr));
        const pid_t child = start();
        if (::write(ready[1], &child, sizeof(child)) == sizeof(child)) ::sleep(30);
      } catch (...) {
      }
      ::_exit(1);
    }
    ::close(ready[1]);
    pid_t child = -1;
    if (::read(ready[0], &child, sizeof(child)) != sizeof(child)) child = -1;
    ::close(ready[0]);
    return {parent, child};
  }
};
INSTANTIATE_TEST_SUITE_P(Started, CapiChild, testing::Values(0, 1, 2));

// If it did, others would wait for as long as the child goes on.
TEST_P(CapiChild, KeepsNothingOfItsDeadParent) {
  auto topic = create();
  auto publisher = open_publisher(topic);
  auto subscriber = open_subscriber(topic);
  auto group = open_group(topic);
  publish(publisher, "a");
  const auto [parent, child] = start_parent(kWays[GetParam()]);
  ASSERT_GT(child, 0);
  auto member = join(group);
  publish(publisher, "b");
  EXPECT_EQ(drain(subscriber), Texts{"a"});  // Then comes the claim.
  for (int i = 0; i < 1000 && kWays[GetParam()] != by_fork; ++i) {
    if (open_files(child, directory_).empty()) break;  // As soon as it is another program.
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
    ASSERT_NE(i, 999);
  }
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  leat_record record;
  std::uint32_t count = 0;
  must(leat_subscriber_receive(subscriber.get(), &record, 1, &count, 10 * kSecond, nullptr));
  EXPECT_EQ(entry(record), "1+1 died");
  EXPECT_EQ(drain(subscriber), Texts{"b"});
  Texts received;
  while (received.size() < 2) {
    leat_delivery delivery;
    must(leat_member_receive(member.get(), &delivery, 1, &count, 10 * kSecond, nullptr));
    received.push_back(text_of(delivery.record));
  }
  std::ranges::sort(received);
  EXPECT_EQ(received, (Texts{"a", "b"}));
  EXPECT_EQ(::kill(child, SIGKILL), 0);  // It was there all the time.
}

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

TEST_F(CapiTest, SignalEndsTheOpeningAndTheRepairOfATopic) {
  leat_topic_options options = LEAT_TOPIC_OPTIONS_INIT;
  options.durable = LEAT_DURABILITY_OS;
  auto durable = create(options);
  auto publisher = open_publisher(durable);
  leat_claim claim{};  // As long as it is open, nothing is written.
  must(leat_publisher_claim(publisher.get(), 8, 0, &claim, nullptr));
  const Signals signals;
  leat_place place = LEAT_PLACE_INIT;
  TopicHandle topic;
  EXPECT_EQ(leat_topic_open("never", 5, kSecond / 5, &place, topic.out(), nullptr),
            LEAT_ERR_NOT_FOUND);
  place.interruptible = 1;
  EXPECT_EQ(leat_topic_open("never", 5, 20 * kSecond, &place, topic.out(), nullptr),
            LEAT_ERR_INTERRUPTED);
  std::int32_t detail = 0;
  EXPECT_EQ(leat_topic_repair(durable.get(), kSecond / 5, &detail), LEAT_ERR_NOT_DURABLE);
  EXPECT_EQ(detail, 0);
  EXPECT_EQ(leat_topic_repair_interruptible(durable.get(), 20 * kSecond, &detail),
            LEAT_ERR_NOT_DURABLE);
  EXPECT_EQ(detail, EINTR);
  must(leat_publisher_commit(publisher.get(), &claim, 8, nullptr));
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
