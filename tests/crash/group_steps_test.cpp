// If this failed, killing or stopping one member of a group could block the
// other members, lose records, or deliver acknowledged ones again. A member
// is killed and stopped at every labelled step in turn.
#include "group_scenarios.hpp"

namespace leat::testing {
namespace {

constexpr int kTimesPerStep = 3;  // The first, second and third time the step is reached.

struct Case {
  GroupScenario scenario;
  std::string step;
};
std::ostream& operator<<(std::ostream& out, const Case& one) {
  return out << one.scenario << " at " << one.step;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const GroupScenario& scenario : group_scenarios()) {
    for (const char* step : scenario.steps) cases.push_back({scenario, step});
  }
  return cases;
}

std::string name_of_case(const ::testing::TestParamInfo<Case>& info) {
  std::string name = std::string{info.param.scenario.name} + "_" + info.param.step;
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
}

class GroupSweep : public ::testing::TestWithParam<Case> {
 protected:
  // A new world with a victim that is killed or stopped the nth time it reaches the step. False if
  // it never does; then it has run to its end.
  bool hurt_victim(int nth, int signal) {
    const auto& [scenario, step] = GetParam();
    victim_.reset();
    world_.emplace(scenario.options);
    if (scenario.prepare != nullptr) scenario.prepare(*world_);
    victim_.emplace(world_->start([&] { return scenario.victim(*world_); }, {step, nth, signal}));
    victim_->wait();
    if (!victim_->succeeded()) return true;
    EXPECT_GT(nth, 1) << "the scenario never reached " << step;
    return false;
  }

  // Records that the victim took but did not hand out are delivered to others as first deliveries.
  // Those that it handed out are delivered again or, with at_most_once, are gone.
  void expect_handed_counts() {
    const std::uint32_t in_call = GetParam().scenario.in_call;
    EXPECT_LE(world_->account().unnoted(), in_call);
    if (world_->mode() == GroupMode::at_most_once) {
      EXPECT_LE(world_->account().untaken(), in_call) << "lost";
    }
  }

  std::optional<GroupWorld> world_;
  std::optional<Child> victim_;
};

TEST_P(GroupSweep, OthersGoOnWhenItIsKilled) {
  for (int nth = 1; nth <= kTimesPerStep && !HasFailure(); ++nth) {
    SCOPED_TRACE("time " + std::to_string(nth));
    if (!hurt_victim(nth, SIGKILL)) break;
    ASSERT_TRUE(victim_->was_killed()) << victim_->describe();
    world_->expect_progress();
    expect_handed_counts();
  }
}

// A stopped member keeps what it was handed; everything else is delivered to the others meanwhile.
TEST_P(GroupSweep, OthersGoOnWhileItIsStoppedAndWhenItContinues) {
  for (int nth = 1; nth <= kTimesPerStep && !HasFailure(); ++nth) {
    SCOPED_TRACE("time " + std::to_string(nth));
    if (!hurt_victim(nth, SIGSTOP)) break;
    ASSERT_EQ(victim_->poll(), Child::State::stopped) << victim_->describe();
    const GroupScenario& scenario = GetParam().scenario;
    const bool is_leased = scenario.options.group.lease != 0ns;
    world_->expect_others_take(is_leased ? 0 : scenario.in_call + scenario.keeps);
    victim_->go_on();
    victim_->wait();
    EXPECT_TRUE(victim_->succeeded()) << victim_->describe();
    world_->expect_progress();
    expect_handed_counts();
  }
}

INSTANTIATE_TEST_SUITE_P(Each, GroupSweep, ::testing::ValuesIn(all_cases()), name_of_case);

}  // namespace
}  // namespace leat::testing
