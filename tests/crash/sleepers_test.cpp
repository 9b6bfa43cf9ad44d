// If this failed, subscribers and publishers that sleep could sleep forever after a process they
// depend on is killed, if no other process does anything.
#include <poll.h>

#include <fstream>

#include "scenarios.hpp"

namespace leat::testing {
namespace {

struct Seen {
  std::atomic<std::uint32_t> checked_last;  // One bit for each sleeper that is about to sleep.
  std::atomic<std::uint32_t> records;      // Published by the victim.
  std::atomic<std::uint32_t> gaps;
};

enum class Wait { receive, wait_any, wait_fd };

// Waits for records until the survivor's arrives.
int sleep_until_survivor(World& world, Seen& seen, Wait wait, std::uint32_t bit) {
  Topic topic = world.open();
  auto reader = topic.subscriber({.spin = 0ns});
  CHILD_CHECK_OK(reader);
  reader->on_event([&](const Event& event) {
    CHILD_CHECK(event.reason == GapReason::died);
    seen.gaps += static_cast<std::uint32_t>(event.count);
  });
  static Seen* where;
  static std::uint32_t my_bit;
  where = &seen;
  my_bit = bit;
  detail::crash_point_hook = [](const char* name) {
    if (std::string_view{name} == "sleep:announced") where->checked_last |= my_bit;
  };
  bool done = false;
  while (!done) {
    if (wait == Wait::receive) {
      CHILD_CHECK(reader->wait());
    } else if (wait == Wait::wait_any) {
      CHILD_CHECK(wait_any({&*reader}));
    } else {
      auto fd = reader->wait_fd();
      CHILD_CHECK_OK(fd);
      ::pollfd entry{*fd, POLLIN, 0};
      CHILD_CHECK(::poll(&entry, 1, -1) == 1);
    }
    CHILD_CHECK_OK(reader->poll(100, [&](const Record& record) {
      const auto mark = read_message(record.value);
      CHILD_CHECK(mark && !done);
      done = mark->publisher == kSurvivor;
      if (mark->publisher == kVictim) ++seen.records;
    }));
  }
  return 0;
}

bool sleeps(::pid_t pid) {
  std::string line;
  std::getline(std::ifstream{"/proc/" + std::to_string(pid) + "/stat"}, line);
  const std::size_t name_ends = line.rfind(')');
  return name_ends != std::string::npos && line.size() > name_ends + 2 &&
         line[name_ends + 2] == 'S';
}

struct Case {
  const char* step;
  bool exclusive;
};
std::ostream& operator<<(std::ostream& out, const Case& one) {
  return out << one.step << (one.exclusive ? ", exclusive" : ", shared");
}
std::string name_of_case(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.step + std::string{info.param.exclusive ? "_exclusive" : "_shared"};
  name[name.find(':')] = '_';
  return name;
}

class Sleepers : public ::testing::TestWithParam<Case> {};

// Sleepers get what the dead publisher committed, and gaps for what it left open: at once if it
// died during the commit, otherwise at the latest when the next record wakes them
// (docs/guarantees.md, "Killed and stopped").
TEST_P(Sleepers, GetWhatTheDeadPublisherLeft) {
  const auto& [step, exclusive] = GetParam();
  World world{{.exclusive = exclusive}};
  Shared<Seen> seen;
  std::vector<Child> sleepers;
  for (const Wait wait : {Wait::receive, Wait::wait_any, Wait::wait_fd}) {
    const std::uint32_t bit = 1U << sleepers.size();
    sleepers.emplace_back([&, wait, bit] { return sleep_until_survivor(world, *seen, wait, bit); });
  }
  ASSERT_TRUE(eventually([&] { return seen->checked_last == 7; }));
  ASSERT_TRUE(eventually([&] {
    return sleeps(sleepers[0].pid()) && sleeps(sleepers[1].pid()) && sleeps(sleepers[2].pid());
  }));
  ::usleep(10'000);  // The bits are set shortly before the children really sleep.

  Child victim = world.start(
      [&]() -> int {
        Topic topic = world.open();
        auto publisher = topic.publisher({.exclusive = exclusive});
        CHILD_CHECK_OK(publisher);
        (void)world.publish(*publisher, kVictim, 100);
        return 0;
      },
      {step, 1, SIGKILL});
  victim.wait();
  ASSERT_TRUE(victim.was_killed()) << victim.describe();
  const bool open = is_open_claim(step);
  if (std::string_view{step}.starts_with("commit:")) {
    // Only the kernel can wake them now.
    EXPECT_TRUE(eventually([&] { return seen->records + seen->gaps == 3; }))
        << seen->records << " records, " << seen->gaps << " gaps";
  }
  if (exclusive) world.join_publisher();
  ASSERT_TRUE(world.publish(world.publisher(), kSurvivor, 100));
  for (Child& sleeper : sleepers) {
    sleeper.wait();
    EXPECT_TRUE(sleeper.succeeded()) << sleeper.describe();
  }
  EXPECT_EQ(seen->gaps, open ? 3U : 0U);
  EXPECT_EQ(seen->records, open || std::string_view{step} == "claim:announced" ? 0U : 3U);
}

INSTANTIATE_TEST_SUITE_P(Each, Sleepers,
                         ::testing::Values(Case{"claim:announced", false},
                                           Case{"claim:announced", true}, Case{"claim:won", false},
                                           Case{"claim:marked", false},
                                           Case{"commit:before", false},
                                           Case{"commit:swapped", false},
                                           Case{"commit:done", false}, Case{"claim:won", true},
                                           Case{"commit:before", true}, Case{"commit:done", true}),
                         name_of_case);

// The hole was already there when they fell asleep.
TEST(SleepersAtAHole, NoticeThatItsOwnerDied) {
  World world;
  ASSERT_TRUE(world.publish_and_read(3));
  Child victim = world.start(
      [&]() -> int {
        Topic topic = world.open();
        auto publisher = topic.publisher();
        CHILD_CHECK_OK(publisher);
        (void)publisher->publish("last words");
        return 0;
      },
      {"commit:before", 1, SIGSTOP});
  ASSERT_EQ(victim.wait(), Child::State::stopped);
  Shared<Seen> seen;
  Child first{[&] {
    Topic topic = world.open();
    auto reader = topic.subscriber({.from = From::offset(3), .spin = 0ns});
    CHILD_CHECK_OK(reader);
    reader->on_event([&](const Event&) { ++seen->gaps; });
    seen->checked_last = 1;
    while (seen->gaps == 0) {
      CHILD_CHECK_OK(reader->wait());
      CHILD_CHECK_OK(reader->poll(1, [](const Record&) {}));
    }
    return 0;
  }};
  ASSERT_TRUE(eventually([&] { return seen->checked_last == 1; }));
  ::usleep(20'000);
  EXPECT_EQ(first.poll(), Child::State::running);
  EXPECT_EQ(seen->gaps, 0U);
  victim.signal(SIGKILL);
  first.wait();
  EXPECT_TRUE(first.succeeded()) << first.describe();
}

// A publisher waits for room that only the dead subscriber held.
TEST(SleeperForRoom, NoticesThatTheGatingSubscriberDied) {
  World world{{.gating_from_start = false}};
  Child reader = Child{[&] {
    Topic topic = world.open();
    auto joined = topic.subscriber({.from = From::beginning});
    CHILD_CHECK_OK(joined);
    ::raise(SIGSTOP);
    return 0;
  }};
  ASSERT_EQ(reader.wait(), Child::State::stopped);
  Shared<Seen> seen;
  Child publisher{[&] {
    Topic topic = world.open();
    auto joined = topic.publisher();
    CHILD_CHECK_OK(joined);
    while (world.publish(*joined, kVictim, 1300)) {
    }
    seen->checked_last = 1;
    CHILD_CHECK_OK(world.publish(*joined, kVictim, 1300, Deadline::never()));
    return 0;
  }};
  ASSERT_TRUE(eventually([&] { return seen->checked_last == 1; }));
  ::usleep(20'000);
  EXPECT_EQ(publisher.poll(), Child::State::running);
  reader.signal(SIGKILL);
  publisher.wait();
  EXPECT_TRUE(publisher.succeeded()) << publisher.describe();
  world.expect_progress();
}

}  // namespace
}  // namespace leat::testing
