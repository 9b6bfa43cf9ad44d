// If this failed, a publisher that is stopped in the middle of a claim would block subscribers in
// spite of `revoke_after`, or would damage newer records or not get an error when it continues.
#include "scenarios.hpp"

namespace leat::testing {
namespace {

struct Case {
  std::string scenario;
  std::string step;
  std::uint32_t segments;
};
std::ostream& operator<<(std::ostream& out, const Case& one) {
  return out << one.scenario << " at " << one.step << ", " << one.segments << " segments";
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const char* scenario : {"publish", "batch", "claim"}) {
    for (const char* step : {"claim:announced", "claim:won", "claim:marked", "commit:before",
                             "commit:swapped", "commit:done"}) {
      for (const std::uint32_t segments : {3U, 4U}) cases.push_back({scenario, step, segments});
    }
  }
  return cases;
}
std::string name_of_case(const ::testing::TestParamInfo<Case>& info) {
  std::string name =
      info.param.scenario + "_" + info.param.step + "_" + std::to_string(info.param.segments);
  for (char& c : name) {
    if (c == ':') c = '_';
  }
  return name;
}

const Scenario& find_scenario(std::string_view name) {
  for (const Scenario& scenario : scenarios()) {
    if (scenario.name == name) return scenario;
  }
  std::abort();
}

std::uint64_t count_fates(World& world, Fate fate) {
  std::uint64_t found = 0;
  const std::uint32_t count = world.ledger().count[kVictim];
  for (std::uint32_t i = 0; i < count; ++i) {
    if (world.ledger().find({kVictim, i})->fate == fate) ++found;
  }
  return found;
}

class Revoke : public ::testing::TestWithParam<Case> {};

TEST_P(Revoke, StoppedPublisherIsToldAndDamagesNothing) {
  const auto& [name, step, segments] = GetParam();
  const Scenario& scenario = find_scenario(name);
  // How many records the others publish meanwhile: none, a few laps, and so many that the control
  // file knows only newer segments.
  for (const int others : {0, 30, 250}) {
    for (int nth = 1; nth <= 3 && !HasFailure(); ++nth) {
      SCOPED_TRACE("time " + std::to_string(nth) + ", " + std::to_string(others) + " records");
      World world{{.segments = segments, .revoke_after = 5ms}};
      scenario.prepare(world);
      Child victim = world.start([&] { return scenario.victim(world); }, {step, nth, SIGSTOP});
      ASSERT_EQ(victim.wait(), Child::State::stopped) << victim.describe();

      EXPECT_TRUE(world.read_to_end()) << world.stuck();
      EXPECT_TRUE(world.publish_and_read(others)) << "the publisher is stuck at " << world.end();
      EXPECT_TRUE(world.read_to_end()) << world.stuck();
      const std::uint64_t revoked = world.gating_trail().gaps(GapReason::revoked);
      const std::uint64_t claimed = name == "batch" ? 3 : 1;
      EXPECT_EQ(revoked, is_open_claim(step) ? claimed : 0);

      victim.go_on();
      victim.wait(kPatience, [&] { world.read_some(false); });
      EXPECT_TRUE(victim.succeeded()) << victim.describe();
      if (name != "claim" || nth < 3) {  // Else the claim was aborted or dropped, not committed.
        // If it is stopped before its call has room to write to, it claims
        // again and returns no error.
        const std::uint64_t told = count_fates(world, Fate::revoked);
        const bool may_claim_anew = step == "claim:won" || step == "claim:marked";
        EXPECT_TRUE(told == revoked || (may_claim_anew && told == 0)) << told;
        EXPECT_FALSE(told != 0 && step == "claim:won");
      }
      world.expect_progress();
      EXPECT_EQ(world.gating_trail().gaps(GapReason::revoked), revoked);
      EXPECT_EQ(world.gating_trail().gaps(GapReason::died), 0U);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Each, Revoke, ::testing::ValuesIn(all_cases()), name_of_case);

// With two segments, of which a marked claim holds one, publishers have no
// room, but readers can read on. Once the stopped publisher continues or
// dies, everything works again. An unmarked claim holds nothing.
TEST(RevokeInTwoSegments, ReadersGoOnAndRoomComesBack) {
  for (const int then : {SIGCONT, SIGKILL}) {
    for (const char* step : {"claim:won", "claim:marked", "commit:before"}) {
      SCOPED_TRACE(std::string{step} + (then == SIGCONT ? " continues" : " dies"));
      World world{{.segments = 2, .revoke_after = 5ms}};
      const Scenario& scenario = find_scenario("publish");
      scenario.prepare(world);
      Child victim = world.start([&] { return scenario.victim(world); }, {step, 2, SIGSTOP});
      ASSERT_EQ(victim.wait(), Child::State::stopped) << victim.describe();
      const bool is_marked = step != std::string{"claim:won"};
      EXPECT_EQ(world.publish_and_read(60, is_marked ? 200ms : kPatience), !is_marked);
      EXPECT_TRUE(world.read_to_end()) << world.stuck();
      EXPECT_EQ(world.gating_trail().gaps(GapReason::revoked), 1U);
      victim.signal(then);
      if (then == SIGCONT) {
        victim.go_on();
        victim.wait(kPatience, [&] { world.read_some(false); });
        EXPECT_TRUE(victim.succeeded()) << victim.describe();
        EXPECT_EQ(count_fates(world, Fate::revoked), is_marked ? 1U : 0U);
      }
      world.expect_progress();
      EXPECT_EQ(world.gating_trail().gaps(GapReason::revoked), 1U);
    }
  }
}

}  // namespace
}  // namespace leat::testing
