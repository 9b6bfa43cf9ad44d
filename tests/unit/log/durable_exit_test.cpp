// Processes that exit or fork while they have a durable topic open. If these failed, acknowledged records would be lost
// with the part in memory, or a child would write over what its parent writes.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "durable_testing.hpp"

namespace leat::testing {
namespace {

class DurableExit : public DurableSync {
 protected:
  static void publish(const Topic& topic, std::uint64_t from, std::uint64_t to) {
    Publisher publisher = publisher_of(topic);
    for (std::uint64_t i = from; i < to; ++i) {
      auto published = publisher.publish(std::to_string(i), kPatience);
      ASSERT_TRUE(published) << describe(published.error());
      ASSERT_EQ(*published, i);
    }
  }
  static std::vector<std::string> numbers(std::uint64_t from, std::uint64_t to) {
    std::vector<std::string> lines;
    for (std::uint64_t i = from; i < to; ++i) lines.push_back(std::to_string(i));
    return lines;
  }
  bool has_window() const { return std::filesystem::exists(temp_.path() + "/topics/d"); }
};

TEST_F(DurableExit, ExitOfAProcessWritesTheRest) {
  Child child{[&]() -> int {
    auto* const leaked = new Topic{create(Durability::os)};
    publish(*leaked, 0, 5000);
    std::exit(0);
  }};
  child.wait();
  ASSERT_TRUE(child.succeeded()) << child.describe();
  EXPECT_FALSE(has_window());
  auto topic = open();
  ASSERT_TRUE(topic);
  EXPECT_EQ(read(*topic, 5000), numbers(0, 5000));
}

// Both threads would make the list of topics that the exit closes.
TEST_F(DurableExit, TwoThreadsOpenTheirFirstTopicsAtOnce) {
  Child child{[&]() -> int {
    std::atomic<int> ready = 0;
    std::vector<Topic*> leaked(2);
    const auto open_one = [&](const std::string& name, Topic*& to) {
      ++ready;
      while (ready != 2) {
      }
      auto topic = Topic::create(name, options(Durability::os));
      if (topic) to = new Topic{std::move(*topic)};
    };
    std::thread other{[&] { open_one("other", leaked[0]); }};
    open_one("one", leaked[1]);
    other.join();
    std::exit(0);
  }};
  child.wait();
  ASSERT_TRUE(child.succeeded()) << child.describe();
  EXPECT_FALSE(std::filesystem::exists(temp_.path() + "/topics/one"));
  EXPECT_FALSE(std::filesystem::exists(temp_.path() + "/topics/other"));
}

// They are acknowledged, so whoever opens the topic next finds them, or at least gives no offset twice.
TEST_F(DurableExit, OtherThreadsMayPublishWhileAProcessExits) {
  auto* const acknowledged = static_cast<std::atomic<std::uint64_t>*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(static_cast<void*>(acknowledged), MAP_FAILED);
  for (const auto durable : {Durability::os, Durability::interval}) {
    for (const bool keeps_window : {true, true, true, false, false}) {
      *acknowledged = 0;
      Child child{[&]() -> int {
        auto* const leaked = new Topic{create(durable)};
        auto* const publisher = new Publisher{std::move(*leaked->publisher())};
        auto* const busy = new std::thread{[&] {
          while (auto offset = publisher->publish("0")) {
            *acknowledged = *offset + 1;
            if (*offset % 8 == 0) ::usleep(50);
          }
        }};
        ::usleep(30'000);
        (void)busy;
        std::exit(0);
      }};
      child.wait();
      ASSERT_TRUE(child.succeeded()) << child.describe();
      if (!keeps_window) std::filesystem::remove_all(temp_.path() + "/topics/d");
      {
        auto topic = open();
        ASSERT_TRUE(topic) << describe(topic.error());
        auto next = publisher_of(*topic).publish("next", kPatience);
        ASSERT_TRUE(next) << describe(next.error());
        EXPECT_GE(*next, *acknowledged);
        // What was claimed when the process ended may be a hole.
        if (keeps_window) {
          EXPECT_EQ(read(*topic, *acknowledged), std::vector<std::string>(*acknowledged, "0"));
        }
      }
      EXPECT_FALSE(has_window());
      delete_topic();
    }
  }
  ::munmap(acknowledged, 4096);
}

// Exit handlers and destructors that run later may wait for a thread that publishes, and waits for the disk.
TEST_F(DurableExit, ThreadsThatPublishMayBeJoinedAtTheVeryEnd) {
  static std::atomic<bool> is_over = false;
  static std::thread* busy = nullptr;
  for (const auto durable : {Durability::os, Durability::fsync}) {
    Child child{[&]() -> int {
      std::atexit([] {  // Registered before the archiver's handler, so it runs after that.
        std::this_thread::sleep_for(50ms);
        is_over = true;
        busy->join();
      });
      auto* const topic = new Topic{create(durable)};
      busy = new std::thread{[topic] {
        Publisher publisher = publisher_of(*topic);
        while (!is_over) (void)publisher.publish(std::string(1000, 'x'));
      }};
      std::this_thread::sleep_for(20ms);
      std::exit(0);
    }};
    child.wait();
    EXPECT_TRUE(child.succeeded()) << child.describe();
    delete_topic();
  }
}

// It would have neither the archiver's thread nor the lock that keeps the window: its records would stay in
// memory, or its frames would overwrite the parent's.
TEST_F(DurableExit, AChildOfAForkOpensItAgain) {
  for (const auto durable : {Durability::os, Durability::interval, Durability::fsync}) {
    {
      const Topic topic = create(durable);
      publish(topic, 0, 10);
      Child child{[&]() -> int {
        CHILD_CHECK(topic.publisher().error() == Errc::forked);
        CHILD_CHECK(topic.subscriber().error() == Errc::forked);
        if (LEAT_THREAD_SANITIZER)
          return 0;  // It knows no child with threads of a process with threads.
        auto own = open();
        CHILD_CHECK_OK(own);
        publish(*own, 10, 20);
        auto publisher = own->publisher();
        CHILD_CHECK_OK(publisher->flush());
        return 0;
      }};
      child.wait();
      EXPECT_TRUE(child.succeeded()) << child.describe();
      publish(topic, LEAT_THREAD_SANITIZER ? 10 : 20, 30);
    }
    auto again = open();
    ASSERT_TRUE(again);
    EXPECT_EQ(read(*again, 30), numbers(0, 30));
    again = Errc::closed;
    delete_topic();
  }
}

TEST_F(DurableExit, AChildOfAForkLeavesItAlone) {
  auto topic = create(Durability::os);
  publish(topic, 0, 10);
  Child child{[&]() -> int {
    { Topic inherited = std::move(topic); }
    std::exit(0);
  }};
  child.wait();
  EXPECT_TRUE(child.succeeded()) << child.describe();
  EXPECT_TRUE(has_window());
  publish(topic, 10, 20);
  { Topic closed = std::move(topic); }
  EXPECT_FALSE(has_window());
  auto again = open();
  ASSERT_TRUE(again);
  EXPECT_EQ(read(*again, 20), numbers(0, 20));
}

}  // namespace
}  // namespace leat::testing
