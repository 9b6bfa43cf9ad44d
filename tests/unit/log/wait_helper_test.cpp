// If this failed, a process with many wait descriptors would have as many threads, or some of its
// descriptors would not become readable, or use processor time while nothing comes.
#include "leat/log/wait_helper.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "leat/log/wait_fd.hpp"
#include "testing.hpp"

namespace leat {
namespace {

constexpr std::size_t kServed = detail::WaitHelper::kMost;

bool becomes_readable(int fd, std::chrono::milliseconds patience = 30s) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, static_cast<int>(patience.count())) == 1;
}

std::size_t thread_count() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator{"/proc/self/task"})
    ++count;
  return count;
}
// A thread that was joined may be listed for a moment longer.
bool has_threads(std::size_t count) {
  const Deadline deadline{10s};
  while (thread_count() != count && !deadline.passed()) std::this_thread::sleep_for(1ms);
  return thread_count() == count;
}

// Subscribers of one topic, and their descriptors, which are armed.
struct Watched {
  explicit Watched(std::size_t count, const Topic& topic) {
    for (std::size_t i = 0; i < count; ++i) {
      subscribers.push_back(from_beginning(topic));
      fds.push_back(must(subscribers.back().wait_fd()));
    }
  }
  std::vector<Subscriber> subscribers;
  std::vector<int> fds;
};

TEST(WaitHelper, ServesAsManyAsTheKernelTakes) {
  if (!detail::has_futex_waitv()) GTEST_SKIP() << "this kernel sleeps on one word";
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  std::jthread{[] {
  }}.join();  // With a process's first thread, the thread sanitizer starts its own.
  const std::size_t before = thread_count();
  {
    Watched watched{2 * kServed + 1, *topic};
    EXPECT_EQ(thread_count(), before + 3);
    must(publisher.publish("x"));
    for (std::size_t i = 0; i < watched.fds.size(); ++i) {
      ASSERT_TRUE(becomes_readable(watched.fds[i])) << i;
      EXPECT_EQ(drain(watched.subscribers[i]), Log{"0 x"});
    }
    // The first helper has room again.
    watched.subscribers.erase(watched.subscribers.begin());
    Watched more{1, *topic};
    EXPECT_EQ(thread_count(), before + 3);
    must(publisher.publish("y"));
    EXPECT_TRUE(becomes_readable(more.fds[0]));
    EXPECT_TRUE(becomes_readable(watched.fds.back()));
  }
  EXPECT_TRUE(has_threads(before));
}

TEST(WaitHelper, EachTopicIsHeard) {
  const std::vector<TestTopic> topics(kServed + 2);
  std::vector<Watched> watched;
  for (const TestTopic& topic : topics) watched.emplace_back(1, *topic);
  for (std::size_t i = 0; i < topics.size(); ++i) {
    // Nothing was said of the later ones.
    if (i + 1 < topics.size()) {
      EXPECT_FALSE(becomes_readable(watched[i + 1].fds[0], 0ms)) << i;
    }
    must(must(topics[i]->publisher()).publish("x"));
    ASSERT_TRUE(becomes_readable(watched[i].fds[0])) << i;
  }
}

TEST(WaitHelper, RestsWhileNothingComes) {
  const TestTopic topic;
  const Watched watched{kServed, *topic};
  const auto switches = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
  };
  std::this_thread::sleep_for(20ms);
  const auto before = switches();
  std::this_thread::sleep_for(300ms);
  EXPECT_LE(switches() - before, 5);
}

TEST(WaitHelper, AHoleAheadOfOneConcernsNoOther) {
  const TestTopic topic;
  const TestTopic quiet;
  Watched one{1, *topic};
  const Watched other{1, *quiet};
  auto publisher = must(topic->publisher());
  auto claim = must(publisher.try_claim(1));
  EXPECT_EQ(drain(one.subscribers[0]), Log{});
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(becomes_readable(one.fds[0])) << i;  // It is readable every 2 ms.
    EXPECT_EQ(drain(one.subscribers[0]), Log{});
  }
  EXPECT_FALSE(becomes_readable(other.fds[0], 0ms));
}

// The helper is already awake for an earlier record when a subscriber that found nothing arms it anew.
TEST(WaitHelper, DoesNotSignalWhatWasDrainedWhileItWoke) {
  const TestTopic topic;
  detail::WaitHelper helper;
  const auto start = [&](std::uint32_t* word) {
    return must(detail::WaitFd::start(TopicTesting::shared_pointer(*topic), word, &helper));
  };
  std::array<std::uint32_t, 2> words{};
  const detail::WaitHandle drained = start(&words[0]);
  const detail::WaitHandle other = start(&words[1]);
  drained->arm(1, false);  // Both are due: their words are 0.
  other->arm(1, false);
  drained->drain();
  helper.serve();
  EXPECT_FALSE(becomes_readable(drained->fd(), 0ms));
  EXPECT_TRUE(becomes_readable(other->fd(), 0ms));
}

#if !LEAT_THREAD_SANITIZER  // It knows no child with threads of a process with threads.
// Whether all other threads sleep soon. While one starts, ASan's allocator may be locked, and stays so in a forked child.
bool others_sleep() {
  const auto is_asleep = [](const std::filesystem::path& task) {
    std::ifstream file{task / "stat"};
    std::string text;
    std::getline(file, text);
    const std::size_t end = text.rfind(") ");
    return end != std::string::npos && text[end + 2] == 'S';
  };
  const Deadline deadline{10s};
  while (!deadline.passed()) {
    std::this_thread::sleep_for(1ms);
    bool all = true;
    for (const auto& one : std::filesystem::directory_iterator{"/proc/self/task"})
      all = all && (one.path().filename() == std::to_string(::gettid()) || is_asleep(one.path()));
    if (all) return true;
  }
  return false;
}

// The child's descriptors get a helper of their own; the parent's is left alone.
TEST(WaitHelper, ForkedChildStartsItsOwn) {
  const TestTopic topic;
  Watched watched{2, *topic};
  ASSERT_TRUE(others_sleep());
  Child child{[&] {
    const std::size_t before = thread_count();
    const TestTopic another;
    Watched own{2, *another};
    if (thread_count() != before + (detail::has_futex_waitv() ? 1 : 2)) return 1;
    watched.subscribers.clear();
    must(must(another->publisher()).publish("x"));
    for (const int fd : own.fds) {
      if (!becomes_readable(fd)) return 2;
    }
    own.subscribers.clear();
    return has_threads(before) ? 0 : 3;
  }};
  EXPECT_EQ(child.join(), 0);
  must(must(topic->publisher()).publish("x"));
  for (const int fd : watched.fds) EXPECT_TRUE(becomes_readable(fd));
}

#if !LEAT_TEST_SANITIZED  // ASan's allocator stays locked in a child if another thread held its lock.
TEST(WaitHelper, MayForkWhileOthersComeAndGo) {
  const TestTopic topic;
  std::jthread others{[&](const std::stop_token& stop) {
    while (!stop.stop_requested()) const Watched watched{2, *topic};
  }};
  for (int i = 0; i < 20; ++i) {
    Child child{[] {
      const TestTopic another;
      const Watched own{1, *another};
      must(must(another->publisher()).publish("x"));
      return becomes_readable(own.fds[0]) ? 0 : 1;
    }};
    ASSERT_EQ(child.join(), 0) << i;
  }
}
#endif

#endif

// Threads add, arm and remove descriptors that share helpers, and each hears of its own records.
TEST(WaitHelper, DescriptorsComeAndGoInAnyThread) {
  std::mt19937_64 seeds{test_seed()};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([seed = seeds()] {
      std::mt19937_64 random{seed};
      const TestTopic topic;
      auto publisher = must(topic->publisher());
      for (int round = 0; round < 50; ++round) {
        auto subscriber = must(topic->subscriber());
        const int fd = must(subscriber.wait_fd());
        for (std::uint64_t count = random() % 5; count-- > 0;) {
          if (random() % 2 == 0)
            std::this_thread::sleep_for(std::chrono::microseconds{random() % 200});
          must(publisher.publish("x"));
          std::size_t got = 0;
          while (got == 0) {
            ASSERT_TRUE(becomes_readable(fd));
            got = drain(subscriber).size();
          }
        }
        // Closed armed or not, while the helper sleeps or not.
        if (random() % 2 == 0) must(publisher.publish("x"));
      }
    });
  }
}

// ---- Kernels that sleep on one word -------------------------------------------------------------

class OneWord : public ::testing::Test {
 protected:
  OneWord() {
    const detail::SignalsBlocked blocked;
    helper_.start();
  }
  detail::WaitHandle start() {
    return must(detail::WaitFd::start(TopicTesting::shared_pointer(*topic_), nullptr, &helper_));
  }
  std::uint32_t announce() {
    bool capped = false;
    return topic_.shared().announce_sleep(&capped);
  }

  const TestTopic topic_;
  detail::WaitHelper helper_{false};
};

TEST_F(OneWord, IsSignalledByAWake) {
  EXPECT_EQ(helper_.most(), 1U);
  const detail::WaitHandle fd = start();
  for (int i = 0; i < 20; ++i) {
    fd->arm(announce(), false);
    if (i % 2 == 0) std::this_thread::sleep_for(1ms);
    must(must(topic_->publisher()).publish("x"));
    ASSERT_TRUE(becomes_readable(fd->fd())) << i;
    fd->drain();
  }
}

TEST_F(OneWord, IsSignalledInTimeIfItFellAsleepWithoutATimer) {
  const detail::WaitHandle fd = start();
  const std::uint32_t value = announce();
  fd->arm(value, false);
  std::this_thread::sleep_for(20ms);
  fd->arm(value, true);
  EXPECT_TRUE(becomes_readable(fd->fd()));
}

TEST_F(OneWord, IsRemovedWhileItsHelperSleeps) {
  for (int i = 0; i < 20; ++i) {
    const detail::WaitHandle fd = start();
    if (i % 4 != 0) fd->arm(announce(), false);
    if (i % 2 == 0) std::this_thread::sleep_for(1ms);
  }
}

}  // namespace
}  // namespace leat
