// A process is killed or stopped at every labelled step of the life of groups on a durable topic, and after
// that the window stays, or is gone as after a restart of the machine. If this failed, a crash at the wrong
// moment could lose records, deliver some twice that must come at most once, lose a group or bring back
// one that was deleted, or make others wait for ever.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "group_scenarios.hpp"
#include "scenarios.hpp"

namespace leat::testing {
namespace {

struct Case {
  std::string step;
  int nth = 1;
  int signal = SIGKILL;
  bool restarts = false;  // The window is gone afterwards.
};
std::ostream& operator<<(std::ostream& out, const Case& one) {
  return out << one.step << ", time " << one.nth
             << (one.signal == SIGKILL ? ", killed" : ", stopped")
             << (one.restarts ? ", restart" : "");
}
std::string name_of_saved_case(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.step + '_' + std::to_string(info.param.nth) +
                     (info.param.signal == SIGKILL ? "_killed" : "_stopped") +
                     (info.param.restarts ? "_restart" : "");
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
}

enum Which : std::size_t { kLeast, kMost, kShort, kGroups };
constexpr const char* kNames[] = {"least", "most", "short"};  // The last one is deleted again.
constexpr std::size_t kFirst = 300;                           // records on disk from the start
constexpr std::size_t kAllRecords = kFirst + 20;

struct Notes {
  std::atomic<std::uint32_t> handed[kGroups][kAllRecords];
  std::atomic<std::uint32_t> settling[kGroups][kAllRecords];  // The acknowledgement was called.
  std::atomic<std::uint32_t> settled[kGroups][kAllRecords];   // It had returned.
  std::atomic<bool> created[kGroups];
  std::atomic<bool> deleting[kGroups];
  std::atomic<bool> deleted[kGroups];
};

class DurableGroups : public ::testing::TestWithParam<Case> {
 protected:
  DurableGroups() {
    std::filesystem::create_directories(temp_.path() + "/topics");
    Child first{[&]() -> int {
      auto topic = open();
      CHILD_CHECK_OK(topic);
      return publish(*topic, 0, kFirst);
    }};
    first.wait();
    EXPECT_TRUE(first.succeeded()) << first.describe();
  }

  TopicOptions options() const {
    return {.capacity_bytes = 8 * 4096,
            .segment_bytes = 4096,
            .directory = temp_.path() + "/topics",
            .durable = Durability::os,
            .file_bytes = 64 << 10,
            .data_directory = temp_.path() + "/data"};
  }
  void lose_window() const { std::filesystem::remove_all(options().directory + "/d"); }

  // ---- In children ------------------------------------------------------------------------------

  Result<Topic> open() const {
    for (const Deadline deadline{kPatience};;) {
      auto topic = Topic::open_or_create("d", options());
      if (topic || topic.error() != Errc::busy || deadline.passed()) return topic;
    }
  }
  static int publish(const Topic& topic, std::size_t from, std::size_t to) {
    auto publisher = topic.publisher();
    CHILD_CHECK_OK(publisher);
    for (std::size_t i = from; i < to; ++i)
      CHILD_CHECK_OK(publisher->publish(std::to_string(i), kPatience));
    return 0;
  }
  Group group(const Topic& topic, Which which) {
    const GroupMode mode = which == kMost ? GroupMode::at_most_once : GroupMode::at_least_once;
    for (const Deadline deadline{kPatience};;) {
      auto group = topic.group(kNames[which], {.from = From::beginning, .mode = mode});
      // Another process is stopped in the middle.
      if (!group && group.error() == Errc::busy && !deadline.passed()) continue;
      CHILD_CHECK_OK(group);
      notes_->created[which] = true;
      return std::move(*group);
    }
  }
  static std::size_t number_of(const Delivery& delivery) {
    const auto number = std::stoul(std::string{delivery.record.text()});
    CHILD_CHECK(number < kAllRecords);
    return number;
  }
  // Takes and acknowledges a record. False if none comes in time.
  bool take(Member& member, Which which, std::chrono::milliseconds patience, bool settles = true) {
    auto taken = member.receive(Deadline{patience});
    if (!taken) {
      if (taken.error() != Errc::timeout) CHILD_CHECK_OK(taken);
      return false;
    }
    const std::size_t number = number_of(*taken);
    ++notes_->handed[which][number];
    if (which == kMost) CHILD_CHECK(notes_->handed[which][number] == 1);
    if (!settles) return true;
    ++notes_->settling[which][number];
    CHILD_CHECK_OK(member.acknowledge(*taken));
    ++notes_->settled[which][number];
    return true;
  }

  // Makes the groups, or opens them; works in them; makes and deletes another one; closes the topic.
  int live(int count) {
    auto topic = open();
    CHILD_CHECK_OK(topic);
    for (const Which which : {kMost, kLeast}) {
      auto member = group(*topic, which).join({.spin = 0ns});
      CHILD_CHECK_OK(member);
      for (int i = 0; i < count; ++i) (void)take(*member, which, 200ms, i % 3 != 0);
    }
    notes_->deleting[kShort] = notes_->deleted[kShort] = false;
    { (void)group(*topic, kShort); }
    notes_->deleting[kShort] = true;
    auto deleted = topic->delete_group(kNames[kShort]);
    if (deleted.error() == Errc::not_found) return 0;  // Somebody else did it.
    CHILD_CHECK_OK(deleted);
    notes_->deleted[kShort] = true;
    return 0;
  }

  // Whoever comes next: everything is there, and goes on.
  int go_on() {
    auto topic = open();
    CHILD_CHECK_OK(topic);
    for (const Which which : {kLeast, kMost}) {
      if (notes_->created[which]) CHILD_CHECK_OK(topic->find_group(kNames[which]));
    }
    const auto found = topic->find_group(kNames[kShort]);
    if (notes_->deleted[kShort]) CHILD_CHECK(found.error() == Errc::not_found);
    if (notes_->created[kShort] && !notes_->deleting[kShort]) CHILD_CHECK_OK(found);
    if (!found) CHILD_CHECK(found.error() == Errc::not_found);
    if (publish(*topic, kFirst, kAllRecords) != 0) return 1;
    for (const Which which : {kLeast, kMost}) {
      const Group all = group(*topic, which);
      auto member = all.join({.spin = 0ns});
      CHILD_CHECK_OK(member);
      const auto is_done = [&all] {
        const GroupInfo info = all.info();
        return info.lag == 0 && info.in_flight == 0;
      };
      for (const Deadline deadline{kPatience}; !is_done();) {
        (void)take(*member, which, 20ms);
        CHILD_CHECK(!deadline.passed());
      }
    }
    return 0;
  }

  // ---- In the test ------------------------------------------------------------------------------

  void expect_success(const char* who, const std::function<int()>& body) {
    Child child{body};
    EXPECT_NE(child.wait(3 * kPatience), Child::State::late) << who << ' ' << child.describe();
    EXPECT_TRUE(child.succeeded()) << who << ' ' << child.describe();
  }
  void expect_right() {
    for (std::size_t i = 0; i < kAllRecords; ++i) {
      EXPECT_NE(notes_->settled[kLeast][i] + notes_->settling[kLeast][i], 0U) << "lost: " << i;
      EXPECT_LE(notes_->handed[kMost][i], 1U) << "twice: " << i;
      // Published after everything else; and behind what was saved ahead.
      if (i >= kFirst) {
        EXPECT_EQ(notes_->handed[kMost][i], 1U) << "skipped: " << i;
      }
    }
  }

  TemporaryDirectory temp_;
  Shared<Notes> notes_;
};

TEST_P(DurableGroups, KeepTheirPromises) {
  const Case& what = GetParam();
  Child victim{[&]() -> int {
    arm({what.step, what.nth, what.signal});
    for (const int count : {40, 10, 70}) {
      if (const int status = live(count); status != 0) return status;
    }
    return 0;
  }};
  victim.wait(2 * kPatience);
  const bool is_stopped = victim.poll() == Child::State::stopped;
  EXPECT_TRUE(victim.was_killed() || is_stopped) << victim.describe();
  if (is_stopped) {
    // Others go on, unless they need what it has alone.
    Child beside{[&] { return live(30); }};
    if (beside.wait(500ms) == Child::State::late) victim.go_on();
    EXPECT_NE(beside.wait(2 * kPatience), Child::State::late) << beside.describe();
    EXPECT_TRUE(beside.succeeded()) << beside.describe();
    if (victim.poll() == Child::State::stopped) victim.go_on();
    EXPECT_NE(victim.wait(2 * kPatience), Child::State::late) << victim.describe();
    EXPECT_TRUE(victim.succeeded()) << victim.describe();
  }
  if (what.restarts) lose_window();
  expect_success("the next one", [&] { return go_on(); });
  expect_right();
  // It was closed in order: nothing comes again.
  lose_window();
  expect_success("the last one", [&]() -> int {
    auto topic = open();
    CHILD_CHECK_OK(topic);
    for (const Which which : {kLeast, kMost}) {
      auto member = group(*topic, which).join({.spin = 0ns});
      CHILD_CHECK_OK(member);
      CHILD_CHECK(!take(*member, which, 30ms));
    }
    return 0;
  });
}

std::vector<Case> saved_cases() {
  std::vector<Case> cases;
  const auto add = [&cases](const char* step, std::initializer_list<int> times) {
    for (const int nth : times) {
      for (const int signal : {SIGKILL, SIGSTOP})
        for (const bool restarts : {false, true}) {
          const bool is_rare = nth > 1 && signal == SIGSTOP && !restarts;
          if (!is_rare) cases.push_back({step, nth, signal, restarts});
        }
    }
  };
  for (const char* step : kSavedGroupSteps) add(step, {1, 2});
  for (const char* step : {"group:filled", "group:entered"}) add(step, {1, 3});
  for (const char* step : {"group:closing", "group:closed", "group:out"}) add(step, {1});
  // In the middle of the work, and when a group was made anew.
  add("group:saved", {3, 4, 7});
  for (const char* step : {"take:entered", "take:noting", "take:moved", "take:noted"})
    add(step, {1, 3});
  add("take:handed", {2, 45, 85});
  for (const char* step : {"settle:before", "settle:done"}) add(step, {2, 30});
  for (const char* step : {"leave:returned", "leave:vacated"}) add(step, {1});
  for (const char* step : {"archiver:counted", "archiver:fenced", "archiver:took_over",
                           "archiver:leaving", "archiver:files_ended", "archiver:closed"})
    add(step, {1, 2});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(All, DurableGroups, ::testing::ValuesIn(saved_cases()),
                         name_of_saved_case);

// What a member had claimed and not handed out is saved when the topic is closed. The next one gets it, and
// the machine fails before a second has passed.
class DurableGroupsAtMostOnce : public DurableGroups {};
INSTANTIATE_TEST_SUITE_P(All, DurableGroupsAtMostOnce, ::testing::Values(Case{"none"}),
                         name_of_saved_case);

TEST_P(DurableGroupsAtMostOnce, WhatWasSavedAsNotHandedOutComesOnce) {
  expect_success("who closes it", [&]() -> int {
    auto topic = open();
    CHILD_CHECK_OK(topic);
    auto member = group(*topic, kMost).join({.spin = 0ns});
    CHILD_CHECK_OK(member);
    CHILD_CHECK(take(*member, kMost, kPatience));
    return 0;
  });
  for (int turn = 0; turn < 2; ++turn) {
    Child victim{[&]() -> int {
      auto topic = open();
      CHILD_CHECK_OK(topic);
      auto member = group(*topic, kMost).join({.spin = 0ns});
      CHILD_CHECK_OK(member);
      for (int i = 0; i < 20; ++i)
        CHILD_CHECK(take(*member, kMost, turn == 0 ? kPatience : 100ms) || turn != 0);
      ::raise(SIGKILL);
      return 0;
    }};
    victim.wait();
    EXPECT_TRUE(victim.was_killed()) << victim.describe();
    lose_window();
  }
  expect_success("the next one", [&] { return go_on(); });
  expect_right();
}

// The archiver dies between two steps of a save, and from then on records are only acknowledged, which wakes nobody.
// The process that stands by takes over and saves.
class DurableGroupsTakenOver : public DurableGroups {};
INSTANTIATE_TEST_SUITE_P(All, DurableGroupsTakenOver,
                         ::testing::Values(Case{"group:unsettled"}, Case{"group:saved"},
                                           Case{"group:all_saved"}),
                         name_of_saved_case);

TEST_P(DurableGroupsTakenOver, AcknowledgementsAreNotForgotten) {
  const Shared<std::atomic<bool>> is_archiver;
  Child victim{[&]() -> int {
    auto topic = open();
    CHILD_CHECK_OK(topic);
    publish(*topic, kFirst, kFirst + 10);  // So that it takes over.
    ::usleep(50'000);
    *is_archiver = true;
    arm({GetParam().step, GetParam().nth, SIGKILL});
    for (;;) ::pause();
  }};
  ASSERT_TRUE(eventually([&] { return is_archiver->load(); }));
  Child member_process{[&]() -> int {
    auto topic = open();
    CHILD_CHECK_OK(topic);
    auto member = group(*topic, kLeast).join({.spin = 0ns});
    CHILD_CHECK_OK(member);
    std::vector<Delivery> taken;
    for (int i = 0; i < 6; ++i) {
      auto one = member->receive(kPatience);
      CHILD_CHECK_OK(one);
      taken.push_back(*one);
    }
    CHILD_CHECK(eventually([&] { return !is_archiver->load(); }));  // It is dead.
    for (const Delivery& one : taken) CHILD_CHECK_OK(member->acknowledge(one));
    ::usleep(3'000'000);  // A second, a take-over, and some more.
    ::raise(SIGKILL);     // Before the topic is closed.
    return 0;
  }};
  victim.wait();
  EXPECT_TRUE(victim.was_killed()) << victim.describe();
  *is_archiver = false;
  member_process.wait();
  EXPECT_TRUE(member_process.was_killed()) << member_process.describe();
  lose_window();
  expect_success("the next one", [&]() -> int {
    auto topic = open();
    CHILD_CHECK_OK(topic);
    auto member = group(*topic, kLeast).join({.spin = 0ns});
    CHILD_CHECK_OK(member);
    auto one = member->receive(kPatience);
    CHILD_CHECK_OK(one);
    // A member may have claimed more than it took.
    for (int i = 0; i < 200; ++i) {
      CHILD_CHECK(number_of(*one) >= 6);
      one = member->receive(kPatience);
      CHILD_CHECK_OK(one);
    }
    return 0;
  });
}

}  // namespace
}  // namespace leat::testing
