// If this failed, subscribers could sleep on although a record is there for them, because its
// publisher was killed between the commit and the wake-up.
//
// The kernel wakes one sleeper when the publisher dies: the one that has slept longest. Here that
// sleeper does not want the record. It goes to sleep first, before the subscribers that wait for
// the record, and must wake them.
#include <poll.h>

#include "scenarios.hpp"

namespace leat::testing {
namespace {

constexpr std::uint32_t kPartition = 0;  // The record is published here.
constexpr std::uint32_t kElsewhere = 1;

enum class Wait { receive, wait_any, wait_fd };
std::ostream& operator<<(std::ostream& out, Wait wait) {
  return out << (wait == Wait::receive    ? "receive"
                 : wait == Wait::wait_any ? "wait_any"
                                          : "wait_fd");
}

class RobustWake : public ::testing::TestWithParam<Wait> {
 protected:
  RobustWake() {
    for (const char* name : {"topic", "another"}) {
      auto created = Topic::create(name, {.capacity_bytes = 16384,
                                          .segment_bytes = 4096,
                                          .partitions = 2,
                                          .directory = directory_.path()});
      EXPECT_TRUE(created) << describe(created.error());
    }
  }
  // Called in children.
  Topic open(const char* name = "topic") const {
    auto opened = Topic::open(name, Deadline::immediate(), directory_.path());
    CHILD_CHECK_OK(opened);
    return std::move(*opened);
  }
  static Subscriber subscriber(const Topic& topic, std::uint32_t partition) {
    auto joined = topic.subscriber({.partition = partition, .spin = 0ns});
    CHILD_CHECK_OK(joined);
    return std::move(*joined);
  }

  // Counts how often the child goes to sleep. With `dies`, the child is
  // killed when the robust wake wakes it.
  void watch_sleep(bool dies) const {
    static std::atomic<std::uint32_t>* times;
    static bool dies_of_it;
    times = &*sleeps_;
    dies_of_it = dies;
    detail::crash_point_hook = [](const char* name) {
      if (std::string_view{name} == "sleep:announced") ++*times;
      if (dies_of_it && std::string_view{name} == kWakeStep) ::raise(SIGKILL);
    };
  }
  // Waits for records that never come, and polls whenever it is woken.
  int sleep_elsewhere(Wait wait, bool dies) const {
    watch_sleep(dies);
    const Topic topic = open();
    const Topic another = open("another");
    Subscriber here = subscriber(topic, kElsewhere);
    Subscriber there = subscriber(another, kElsewhere);
    while (true) {
      if (wait == Wait::receive) {
        (void)here.wait();
      } else if (wait == Wait::wait_any) {
        (void)wait_any({&there, &here});
      } else {
        CHILD_CHECK_OK(there.wait_fd());  // One helper sleeps for both.
        CHILD_CHECK_OK(there.poll(1, [](const Record&) {}));
        auto fd = here.wait_fd();
        CHILD_CHECK_OK(fd);
        ::pollfd entry{*fd, POLLIN, 0};
        CHILD_CHECK(::poll(&entry, 1, -1) == 1);
      }
      auto polled = here.poll(1, [](const Record&) {});
      CHILD_CHECK(polled && *polled == 0);
    }
  }
  int receive_one() const {
    watch_sleep(false);
    const Topic topic = open();
    Subscriber reader = subscriber(topic, kPartition);
    auto record = reader.receive();
    CHILD_CHECK_OK(record);
    CHILD_CHECK(record->text() == "last words");
    return 0;
  }

  // Starts a child and returns when it sleeps.
  Child asleep(const std::function<int()>& body) {
    const std::uint32_t before = *sleeps_;
    Child child{body};
    EXPECT_TRUE(eventually([&] { return *sleeps_ > before; }));
    ::usleep(20'000);  // The child is counted shortly before it really sleeps.
    return child;
  }
  void publish_and_die() {
    Child victim{[&]() -> int {
      arm({"commit:done", 1, SIGKILL});
      const Topic topic = open();
      auto publisher = topic.publisher({.partition = kPartition});
      CHILD_CHECK_OK(publisher);
      (void)publisher->publish("last words");
      return 0;
    }};
    victim.wait();
    ASSERT_TRUE(victim.was_killed()) << victim.describe();
  }

  TemporaryDirectory directory_;
  Shared<std::atomic<std::uint32_t>> sleeps_;
};

TEST_P(RobustWake, IsPassedOnByWhoHasNoUseForIt) {
  const Child first = asleep([this] { return sleep_elsewhere(GetParam(), false); });
  std::vector<Child> others;
  for (int i = 0; i < 2; ++i) others.push_back(asleep([this] { return receive_one(); }));
  publish_and_die();
  for (Child& other : others) {
    other.wait();
    EXPECT_TRUE(other.succeeded()) << other.describe();
  }
}

TEST_P(RobustWake, IsPassedOnWhenWhoWasToldDies) {
  Child first = asleep([this] { return sleep_elsewhere(GetParam(), true); });
  Child other = asleep([this] { return receive_one(); });
  publish_and_die();
  first.wait();
  EXPECT_TRUE(first.was_killed()) << first.describe();
  other.wait();
  EXPECT_TRUE(other.succeeded()) << other.describe();
}

// Many sleepers that do not want the record: each is woken, goes back to
// sleep, and wakes nobody else.
TEST_P(RobustWake, EndsInSilence) {
  constexpr std::uint32_t kSleepers = 5;
  std::vector<Child> sleepers;
  for (std::uint32_t i = 0; i < kSleepers; ++i)
    sleepers.push_back(asleep([this] { return sleep_elsewhere(GetParam(), false); }));
  const std::uint32_t before = *sleeps_;
  publish_and_die();
  EXPECT_TRUE(eventually([&] { return *sleeps_ >= before + kSleepers; }));
  ::usleep(50'000);  // Time for wake-ups that must not happen.
  // wait_any sleeps on two topics, and may be woken through either.
  EXPECT_LE(*sleeps_, before + 8 * kSleepers);
}

INSTANTIATE_TEST_SUITE_P(Each, RobustWake,
                         ::testing::Values(Wait::receive, Wait::wait_any, Wait::wait_fd),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace leat::testing
