// If this failed, killing or stopping one process could block the others, or lose, repeat or damage
// their records. A process is killed and stopped at every labelled step of the protocol in turn.
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "group_scenarios.hpp"
#include "scenarios.hpp"

namespace leat::testing {
namespace {

constexpr int kTimesPerStep = 3;  // The first, second and third time the step is reached.

// All labels in the sources, so that a new one cannot be forgotten here.
std::set<std::string> labels_in_sources() {
  std::set<std::string> labels;
  const auto root = std::filesystem::path{__FILE__}.parent_path() / "../../include/leat";
  const std::string call = "LEAT_CRASH_POINT(\"";
  for (const auto& entry : std::filesystem::recursive_directory_iterator{root}) {
    if (!entry.is_regular_file()) continue;
    std::ostringstream text;
    text << std::ifstream{entry.path()}.rdbuf();
    const std::string source = text.str();
    for (std::size_t at = source.find(call); at != std::string::npos; at = source.find(call, at)) {
      at += call.size();
      const std::string label = source.substr(at, source.find('"', at) - at);
      // The example in the macro's own comment has no colon.
      if (label.find(':') != std::string::npos) labels.insert(label);
    }
  }
  return labels;
}

TEST(Steps, EveryLabelOfTheSourcesIsSwept) {
  std::set<std::string> swept;
  for (const Scenario& scenario : scenarios()) {
    swept.insert(scenario.steps.begin(), scenario.steps.end());
  }
  swept.insert(std::begin(kCreateSteps), std::end(kCreateSteps));
  swept.insert(std::begin(kDeleteSteps), std::end(kDeleteSteps));
  swept.insert(std::begin(kUnusedSteps), std::end(kUnusedSteps));
  swept.insert(std::begin(kDurableSteps), std::end(kDurableSteps));
  swept.insert(std::begin(kSyncSteps), std::end(kSyncSteps));
  swept.insert(std::begin(kTakeoverSteps), std::end(kTakeoverSteps));
  swept.insert(std::begin(kExpirySteps), std::end(kExpirySteps));
  swept.insert(std::begin(kDeleteFilesSteps), std::end(kDeleteFilesSteps));
  swept.insert(std::begin(kStoreSteps), std::end(kStoreSteps));
  swept.insert(std::begin(kRecoverySteps), std::end(kRecoverySteps));
  swept.insert(std::begin(kCopySteps), std::end(kCopySteps));
  swept.insert(kWakeStep);
  // They change nothing: moments of standstill_test.cpp, one_cpu_test.cpp, scribbled_meanwhile_test.cpp,
  // groups_that_are_not_there_test.cpp and simple_ipc_names_test.cpp.
  swept.insert({"archiver:watched", "wait:yields", "end:unknown", "files:wait"});
  swept.insert({"simple_ipc:settings", "simple_ipc:blocks"});
  for (const GroupScenario& scenario : group_scenarios()) {
    swept.insert(scenario.steps.begin(), scenario.steps.end());
  }
  swept.insert(std::begin(kCreateGroupSteps), std::end(kCreateGroupSteps));
  swept.insert(std::begin(kDeleteGroupSteps), std::end(kDeleteGroupSteps));
  swept.insert(std::begin(kSavedGroupSteps), std::end(kSavedGroupSteps));
  EXPECT_EQ(labels_in_sources(), swept);
  EXPECT_GE(swept.size(), 25U);  // Fewer would mean that the search does not work.
}

struct Case {
  Scenario scenario;
  std::string step;
};
std::ostream& operator<<(std::ostream& out, const Case& one) {
  return out << one.scenario << " at " << one.step;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Scenario& scenario : scenarios()) {
    for (const char* step : scenario.steps) cases.push_back({scenario, step});
  }
  return cases;
}

std::string name_of_case(const ::testing::TestParamInfo<Case>& info) {
  std::string name = std::string{info.param.scenario.name} + "_" + info.param.step;
  for (char& c : name) {
    if (c == ':') c = '_';
  }
  return name;
}

// What became of the victim's records, as seen by the gating subscriber.
struct VictimRecords {
  std::uint64_t unacknowledged = 0;
  std::uint64_t arrived = 0;   // Of the unacknowledged ones.
  std::uint64_t given_up = 0;  // Aborted, as noted by the victim.
};
VictimRecords records_of_victim(World& world) {
  VictimRecords records;
  const std::uint32_t count = world.ledger().count[kVictim];
  for (std::uint32_t i = 0; i < count; ++i) {
    const LedgerEntry entry = *world.ledger().find({kVictim, i});
    if (entry.fate == Fate::aborted || (entry.fate == Fate::refused && entry.offset != ~0ULL))
      ++records.given_up;
    if (entry.fate != Fate::started) continue;
    ++records.unacknowledged;
    for (const Trail::Step& step : world.gating_trail().steps()) {
      if (!step.is_gap && step.mark.publisher == kVictim && step.mark.sequence == i)
        ++records.arrived;
    }
  }
  return records;
}

class StepSweep : public ::testing::TestWithParam<Case> {
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

  // While the victim is stopped, nobody waits for it except where the guarantees say so.
  void expect_progress_meanwhile() {
    const auto& [scenario, step] = GetParam();
    const Waits waits = scenario.waits(step);
    if (scenario.options.exclusive) {
      // The exclusive publisher is alive, so nobody else may publish.
      EXPECT_EQ(world_->topic().publisher().error().code, Errc::busy);
      EXPECT_EQ(world_->topic().publisher({.exclusive = true}).error().code, Errc::busy);
      EXPECT_EQ(world_->read_to_end(waits == Waits::nobody ? kPatience : 200ms),
                waits == Waits::nobody);
      return;
    }
    if (waits == Waits::nobody) {
      world_->expect_progress();
      return;
    }
    const std::uint64_t before = world_->end();
    const std::uint64_t read_before = world_->gating_trail().next();
    EXPECT_FALSE(world_->publish_and_read(60, 200ms)) << "the victim did not hold any room";
    if (waits == Waits::readers) {
      EXPECT_GT(world_->end(), before) << "the publisher did not go on behind the hole";
      EXPECT_FALSE(world_->read_to_end(50ms))
          << "somebody read past the hole of a living publisher";
      EXPECT_LT(world_->gating_trail().next(), before);
    } else {
      EXPECT_TRUE(world_->read_to_end()) << world_->stuck();
      EXPECT_GE(world_->gating_trail().next(), read_before);
    }
    EXPECT_EQ(world_->topic().info().partitions.size(), 1U);
  }

  std::optional<World> world_;
  std::optional<Child> victim_;
};

TEST_P(StepSweep, OthersGoOnWhenItIsKilled) {
  const auto& [scenario, step] = GetParam();
  for (int nth = 1; nth <= kTimesPerStep && !HasFailure(); ++nth) {
    SCOPED_TRACE("time " + std::to_string(nth));
    if (!hurt_victim(nth, SIGKILL)) break;
    ASSERT_TRUE(victim_->was_killed()) << victim_->describe();
    world_->expect_progress();
    if (!scenario.options.gating_from_start) continue;  // No subscriber saw everything.

    // An open claim becomes a gap of exactly its records. A committed record arrives even if
    // publish() did not return. What was not claimed leaves no trace.
    const VictimRecords records = records_of_victim(*world_);
    const Trail& trail = world_->gating_trail();
    const std::uint64_t holes = is_open_claim(step) ? records.unacknowledged : 0;
    EXPECT_EQ(trail.gaps(GapReason::died),
              holes + static_cast<std::uint64_t>(scenario.died_before));
    if (is_open_claim(step)) {
      EXPECT_GE(holes, 1U);
      EXPECT_EQ(records.arrived, 0U);
    } else if (step == "claim:announced") {
      EXPECT_EQ(records.arrived, 0U);
    } else if (step == "commit:swapped" || step == "commit:done") {
      EXPECT_EQ(records.arrived + trail.gaps(GapReason::aborted),
                records.unacknowledged + records.given_up);
    }
  }
}

TEST_P(StepSweep, OthersGoOnWhileItIsStoppedAndWhenItContinues) {
  const auto& [scenario, step] = GetParam();
  for (int nth = 1; nth <= kTimesPerStep && !HasFailure(); ++nth) {
    SCOPED_TRACE("time " + std::to_string(nth));
    if (!hurt_victim(nth, SIGSTOP)) break;
    ASSERT_EQ(victim_->poll(), Child::State::stopped) << victim_->describe();
    expect_progress_meanwhile();
    victim_->go_on();
    victim_->wait(kPatience, [&] { world_->read_some(false); });
    EXPECT_TRUE(victim_->succeeded()) << victim_->describe();
    world_->expect_progress();

    const Trail& trail = world_->gating_trail();
    if (scenario.options.gating_from_start) {
      EXPECT_EQ(trail.gaps(GapReason::died), static_cast<std::uint64_t>(scenario.died_before));
    }
    EXPECT_EQ(trail.gaps(GapReason::revoked), 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Each, StepSweep, ::testing::ValuesIn(all_cases()), name_of_case);

}  // namespace
}  // namespace leat::testing
