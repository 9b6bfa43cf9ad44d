// If this failed, a process that dies or stops while it creates or deletes a
// group could make the group's name unusable, leave an incomplete group, or
// make publishers wait for a group that no longer exists.
#include <algorithm>

#include "group_scenarios.hpp"

namespace leat::testing {
namespace {

struct Case {
  std::string step;
  int signal = SIGKILL;
};
std::ostream& operator<<(std::ostream& out, const Case& one) {
  return out << one.step << (one.signal == SIGKILL ? " killed" : " stopped");
}
std::string name_of_case(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.step + (info.param.signal == SIGKILL ? "_killed" : "_stopped");
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
}

class GroupLife : public ::testing::TestWithParam<Case> {
 protected:
  GroupLife() {
    auto topic = Topic::create(
        "topic",
        {.capacity_bytes = 4 * 4096, .segment_bytes = 4096, .directory = directory_.path()});
    if (!topic) std::abort();
    topic_.emplace(std::move(*topic));
    auto publisher = topic_->publisher();
    if (!publisher) std::abort();
    publisher_.emplace(std::move(*publisher));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(publisher_->publish("old"));
  }

  // A child that runs `body` and is killed or stopped at the step of this case.
  Child hurt(const std::function<int(Topic&)>& body) {
    Child victim{[&]() -> int {
      arm({GetParam().step, 1, GetParam().signal});
      auto topic = Topic::open("topic", Deadline::immediate(), directory_.path());
      CHILD_CHECK_OK(topic);
      return body(*topic);
    }};
    victim.wait();
    EXPECT_TRUE(GetParam().signal == SIGKILL ? victim.was_killed()
                                             : victim.poll() == Child::State::stopped)
        << victim.describe();
    return victim;
  }
  bool is_stopped() const { return GetParam().signal == SIGSTOP; }
  void let_end(Child& victim) {
    if (!is_stopped()) return;
    victim.go_on();
    victim.wait();
    EXPECT_TRUE(victim.succeeded()) << victim.describe();
  }

  // Publishes several laps. That fails if a group holds the room.
  bool has_room() {
    for (int i = 0; i < 40; ++i) {
      if (!publisher_->publish(std::string(1000, 'x'), Deadline::immediate())) return false;
    }
    return true;
  }
  std::size_t group_files() const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator{directory_.path()}) {
      count += entry.path().filename().string().starts_with("group-") ? 1U : 0U;
    }
    return count;
  }
  void expect_works(const Group& group) {
    auto member = group.join();
    ASSERT_TRUE(member) << describe(member.error());
    auto old = member->receive(Deadline::immediate());
    for (; old; old = member->receive(Deadline::immediate())) {
      EXPECT_TRUE(member->acknowledge(*old));
    }
    EXPECT_EQ(old.error().code, Errc::timeout) << describe(old.error());
    auto published = publisher_->publish("new", kPatience);
    ASSERT_TRUE(published) << describe(published.error());
    auto taken = member->receive(kPatience);
    ASSERT_TRUE(taken) << describe(taken.error());
    EXPECT_EQ(taken->record.text(), "new");
    EXPECT_TRUE(member->acknowledge(*taken));
  }

  TemporaryDirectory directory_;
  std::optional<Topic> topic_;
  std::optional<Publisher> publisher_;
};

// ---- Creation -----------------------------------------------------------------------------------

class CreateGroup : public GroupLife {};

TEST_P(CreateGroup, NameIsFreeForOthersOrTheGroupIsThere) {
  Child victim = hurt([](Topic& topic) -> int {
    auto group = topic.group("group", {.from = From::beginning});
    CHILD_CHECK_OK(group);
    CHILD_CHECK(group->was_created());
    return 0;
  });
  const bool is_there = GetParam().step == "group:opened";
  if (is_stopped()) {
    // It keeps the lock while it is stopped. Publishers and members do not need that lock.
    EXPECT_EQ(has_room(), false) << "a process that creates a group must hold the room";
    let_end(victim);
  }
  auto group = topic_->group("group", {.from = From::beginning});
  ASSERT_TRUE(group) << describe(group.error());
  EXPECT_EQ(group->was_created(), !is_there && !is_stopped());
  {
    auto member = group->join();
    ASSERT_TRUE(member) << describe(member.error());
    for (int i = 0; i < 3; ++i) {
      auto taken = member->receive(kPatience);
      ASSERT_TRUE(taken) << describe(taken.error());
      EXPECT_EQ(taken->record.text(), "old");
      EXPECT_EQ(taken->record.offset, static_cast<std::uint64_t>(i));
      EXPECT_TRUE(member->acknowledge(*taken));
    }
  }
  expect_works(*group);
  auto names = topic_->group_names();
  ASSERT_TRUE(names) << describe(names.error());
  EXPECT_EQ(*names, std::vector<std::string>{"group"});
  EXPECT_EQ(group_files(), 1U);
  EXPECT_TRUE(topic_->delete_group("group", true));
  EXPECT_EQ(group_files(), 0U);
  EXPECT_TRUE(has_room());
}

std::vector<Case> cases_of(std::span<const char* const> steps) {
  std::vector<Case> cases;
  for (const char* step : steps) {
    for (const int signal : {SIGKILL, SIGSTOP}) cases.push_back({step, signal});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Each, CreateGroup, ::testing::ValuesIn(cases_of(kCreateGroupSteps)),
                         name_of_case);

// ---- Deletion -----------------------------------------------------------------------------------

class DeleteGroup : public GroupLife {
 protected:
  bool is_decided() const { return GetParam().step != "group:closing"; }
  Child hurt_deleter(bool force) {
    return hurt([force](Topic& topic) -> int {
      CHILD_CHECK_OK(topic.delete_group("group", force));
      return 0;
    });
  }
};

TEST_P(DeleteGroup, OthersFinishOrCallOff) {
  ASSERT_TRUE(topic_->group("group", {.from = From::beginning}));
  Child victim = hurt_deleter(false);
  EXPECT_EQ(has_room(), is_decided()) << "the group must hold the room until deletion is decided";
  let_end(victim);
  auto group = topic_->group("group", {.from = From::beginning});
  ASSERT_TRUE(group) << describe(group.error());
  EXPECT_EQ(group->was_created(), is_decided() || is_stopped());
  EXPECT_EQ(group_files(), 1U);
  expect_works(*group);
  EXPECT_TRUE(topic_->delete_group("group"));
  EXPECT_EQ(group_files(), 0U);
  EXPECT_TRUE(has_room());
}

// Members of a group that is deleted by force learn of it even while the deleter is stopped. The
// last one to learn of it removes the group from the topic.
class CloseGroup : public DeleteGroup {};

TEST_P(CloseGroup, MembersAreTold) {
  auto group = topic_->group("group", {.from = From::beginning});
  ASSERT_TRUE(group) << describe(group.error());
  auto member = group->join();
  ASSERT_TRUE(member) << describe(member.error());
  auto taken = member->receive(Deadline::immediate());
  ASSERT_TRUE(taken) << describe(taken.error());
  Child victim = hurt_deleter(true);
  const Errc expected = is_decided() ? Errc::closed : Errc::ok;
  EXPECT_EQ(member->receive(Deadline::immediate()).error().code, expected);
  EXPECT_EQ(member->acknowledge(*taken).error().code, expected);
  if (is_decided()) {
    EXPECT_EQ(group->join().error().code, Errc::closed);
    EXPECT_EQ(group->seek(From::end).error().code, Errc::closed);
  }
  let_end(victim);
  if (is_stopped()) {
    EXPECT_EQ(member->receive(Deadline::immediate()).error().code, Errc::closed);
  }
  // The next process that opens or deletes a group finishes the dead one's deletion.
  const auto again = topic_->delete_group("group", true);
  EXPECT_TRUE(again || again.error().code == Errc::not_found) << describe(again.error());
  EXPECT_EQ(member->receive(Deadline::immediate()).error().code, Errc::closed);
  EXPECT_EQ(group_files(), 0U);
  EXPECT_TRUE(has_room());
}

constexpr const char* kCloseGroupSteps[] = {"group:closing", "group:closed", "group:unlocked"};
INSTANTIATE_TEST_SUITE_P(Each, CloseGroup, ::testing::ValuesIn(cases_of(kCloseGroupSteps)),
                         name_of_case);

// That last member dies or stops while removing it: the group is gone, and
// its file is deleted with the next group.
class LeaveClosedGroup : public GroupLife {};

TEST_P(LeaveClosedGroup, OthersFinish) {
  ASSERT_TRUE(topic_->group("group", {.from = From::beginning}));
  Child victim = hurt([](Topic& topic) -> int {
    auto group = topic.find_group("group");
    CHILD_CHECK_OK(group);
    auto member = group->join();
    CHILD_CHECK_OK(member);
    CHILD_CHECK_OK(member->receive(kPatience));
    CHILD_CHECK_OK(topic.delete_group("group", true));
    CHILD_CHECK(member->receive(kPatience).error().code == Errc::closed);
    return 0;
  });
  EXPECT_TRUE(has_room());
  let_end(victim);
  auto group = topic_->group("group", {.from = From::beginning});
  ASSERT_TRUE(group) << describe(group.error());
  EXPECT_TRUE(group->was_created());
  EXPECT_EQ(group_files(), 1U);
  expect_works(*group);
}

constexpr const char* kLeaveClosedGroupSteps[] = {"leave:vacated", "group:out"};
INSTANTIATE_TEST_SUITE_P(Each, LeaveClosedGroup,
                         ::testing::ValuesIn(cases_of(kLeaveClosedGroupSteps)), name_of_case);

INSTANTIATE_TEST_SUITE_P(Each, DeleteGroup, ::testing::ValuesIn(cases_of(kDeleteGroupSteps)),
                         name_of_case);

}  // namespace
}  // namespace leat::testing
