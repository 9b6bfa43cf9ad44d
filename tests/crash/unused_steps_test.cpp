// If this failed, a process that dies or stops while it lets go of a topic with
// `delete_when_unused` could block that name for others, or delete a topic that is in use again.
#include <algorithm>

#include "scenarios.hpp"

namespace leat::testing {
namespace {

struct Case {
  std::string step;
  int signal;
};
std::ostream& operator<<(std::ostream& out, const Case& one) {
  return out << one.step << (one.signal == SIGKILL ? " killed" : " stopped");
}
std::string name_of_case(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.step + (info.param.signal == SIGKILL ? "_killed" : "_stopped");
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
}

class UnusedSteps : public ::testing::TestWithParam<Case> {
 protected:
  TopicOptions options(bool delete_when_unused = true) const {
    return {.capacity_bytes = 16384,
            .segment_bytes = 4096,
            .delete_when_unused = delete_when_unused,
            .directory = directory_.path()};
  }
  std::vector<std::string> names() {
    auto listed = Topic::list(directory_.path());
    EXPECT_TRUE(listed) << describe(listed.error());
    return listed ? *listed : std::vector<std::string>{};
  }
  // A user that creates the topic, publishes a record, and is killed or stopped while it lets go.
  Child hurt_last_user() {
    const auto& [step, signal] = GetParam();
    Child victim{[&] {
      arm({step, 1, signal});
      auto topic = Topic::create("topic", options());
      CHILD_CHECK_OK(topic);
      auto publisher = topic->publisher();
      CHILD_CHECK_OK(publisher);
      CHILD_CHECK(publisher->publish("old"));
      return 0;  // Destructors run here.
    }};
    victim.wait();
    EXPECT_TRUE(signal == SIGKILL ? victim.was_killed() : victim.poll() == Child::State::stopped)
        << victim.describe();
    return victim;
  }
  void go_on(Child& victim) {
    if (GetParam().signal != SIGSTOP) return;
    victim.go_on();
    victim.wait();
    EXPECT_TRUE(victim.succeeded()) << victim.describe();
  }
  bool is_decided() const {
    return !GetParam().step.starts_with("unused:") && GetParam().step != "delete:attempted";
  }
  static std::vector<std::string> texts(const Topic& topic) {
    std::vector<std::string> found;
    auto reader = topic.subscriber({.from = From::beginning});
    EXPECT_TRUE(reader) << describe(reader.error());
    if (!reader) return found;
    EXPECT_TRUE(
        reader->poll(100, [&](const Record& record) { found.emplace_back(record.text()); }));
    return found;
  }

  TemporaryDirectory directory_;
};

TEST_P(UnusedSteps, OthersHaveTheTopicAtOnceAndKeepIt) {
  Child victim = hurt_last_user();
  {
    auto topic = Topic::open_or_create("topic", options());
    ASSERT_TRUE(topic) << describe(topic.error());
    std::vector<std::string> expected;
    if (!is_decided()) expected.emplace_back("old");
    EXPECT_EQ(texts(*topic), expected);
    go_on(victim);
    auto publisher = topic->publisher();
    ASSERT_TRUE(publisher) << describe(publisher.error());
    ASSERT_TRUE(publisher->publish("new"));
    expected.emplace_back("new");
    EXPECT_EQ(texts(*topic), expected);
    EXPECT_EQ(names(), std::vector<std::string>{"topic"});
  }
  EXPECT_EQ(names(), std::vector<std::string>{});
}

// Another process had the topic open, without using it, when the last user checked.
TEST_P(UnusedSteps, WhoHasItOpenMayStillJoin) {
  Child victim = hurt_last_user();
  auto topic = Topic::open_or_create("topic", options());
  ASSERT_TRUE(topic) << describe(topic.error());
  go_on(victim);
  EXPECT_TRUE(topic->publisher());
}

TEST_P(UnusedSteps, AnotherTopicOfThatNameIsLeftAlone) {
  Child victim = hurt_last_user();
  auto removed = Topic::delete_topic("topic", {.force = true, .directory = directory_.path()});
  ASSERT_TRUE(removed || removed.error().code == Errc::not_found) << describe(removed.error());
  {
    auto topic = Topic::create("topic", options(false));
    ASSERT_TRUE(topic) << describe(topic.error());
    ASSERT_TRUE(topic->publisher()->publish("keep"));
  }
  go_on(victim);
  EXPECT_EQ(names(), std::vector<std::string>{"topic"});
  auto topic = Topic::open("topic", Deadline::immediate(), directory_.path());
  ASSERT_TRUE(topic) << describe(topic.error());
  EXPECT_EQ(texts(*topic), std::vector<std::string>{"keep"});
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const int signal : {SIGKILL, SIGSTOP}) {
    for (const char* step : kUnusedSteps) cases.push_back({step, signal});
    for (const char* step : kDeleteSteps) cases.push_back({step, signal});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Each, UnusedSteps, ::testing::ValuesIn(all_cases()), name_of_case);

}  // namespace
}  // namespace leat::testing
