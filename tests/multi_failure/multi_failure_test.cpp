// If this failed, killing or stopping several processes at the same time could lose or repeat
// records, or make the others wait for much longer than 100 ms.
//
// Each case takes a few seconds; SOAK_SECONDS makes it that many, in rounds with new topics. The
// seed is printed; LEAT_SEED=seed repeats it.
#include <cstdlib>

#include "supervisor.hpp"

namespace leat::testing {
namespace {

constexpr std::chrono::seconds kRound{2};

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

void endure(const MultiFailureOptions& options) {
  const std::chrono::seconds duration{number_from("SOAK_SECONDS", kRound.count())};
  std::uint64_t seed = number_from("LEAT_SEED", std::random_device{}());
  MultiFailureTotals totals;
  const Deadline until{duration};
  do {
    std::printf("LEAT_SEED=%llu\n", static_cast<unsigned long long>(seed));
    Supervisor{options, seed++}.run(std::min<std::chrono::milliseconds>(duration, kRound), totals);
  } while (!until.passed() && !::testing::Test::HasFailure());
  std::printf(
      "%llu records, %llu taken; %llu strikes, %llu kills, %llu stops, %llu of them at a "
      "step; the spared went on after %.1f ms at most, %llu times too late\n",
      static_cast<unsigned long long>(totals.records),
      static_cast<unsigned long long>(totals.taken),
      static_cast<unsigned long long>(totals.strikes),
      static_cast<unsigned long long>(totals.kills), static_cast<unsigned long long>(totals.stops),
      static_cast<unsigned long long>(totals.at_steps),
      static_cast<double>(totals.longest_ns) / 1e6, static_cast<unsigned long long>(totals.late));
  // A busy machine may keep a process from running for that long, but not often.
  EXPECT_LE(totals.late, 1 + totals.strikes / 10)
      << "the spared processes often need more than 100 ms to continue";
}

TEST(MultiFailure, OfPublishers) { endure({.publishers = 4}); }
TEST(MultiFailure, OfPublishersOfSeveralPartitions) { endure({.partitions = 3, .segments = 4}); }
TEST(MultiFailure, OfPublishersThatMayBeRevoked) { endure({.revoke_after = 3ms, .publishers = 4}); }
TEST(MultiFailure, OfAGroup) { endure({.publishers = 2, .subscribers = 1, .members = 3}); }
TEST(MultiFailure, OfAGroupByKey) {
  endure({.publishers = 2, .subscribers = 1, .members = 3, .group = {.by_key = true}});
}
TEST(MultiFailure, OfAGroupWithLeases) {
  endure({.publishers = 2, .subscribers = 1, .members = 3, .group = {.lease = 4ms}});
}
TEST(MultiFailure, OfAGroupByKeyWithLeases) {
  endure(
      {.publishers = 2, .subscribers = 1, .members = 3, .group = {.by_key = true, .lease = 4ms}});
}
TEST(MultiFailure, OfAGroupAtMostOnce) {
  endure({.publishers = 2,
          .subscribers = 1,
          .members = 3,
          .group = {.mode = GroupMode::at_most_once}});
}
TEST(MultiFailure, WhileGroupsComeAndGo) {
  endure({.partitions = 2, .publishers = 2, .subscribers = 1, .members = 2, .movers = 3});
}
TEST(MultiFailure, OfATopicThatGrows) {
  endure({.segments = 3, .policy = Policy::grow, .members = 2, .movers = 1});
}
TEST(MultiFailure, WhileTopicsComeAndGo) {
  endure({.publishers = 2, .subscribers = 1, .renewers = 4});
}

}  // namespace
}  // namespace leat::testing
