// If this failed, killing or stopping members at random could lose records of a consumer group,
// deliver acknowledged ones again, or make the others hang.
//
// Each storm takes a few seconds; SOAK_SECONDS makes it that many, in rounds with new topics. The
// seed is printed; LEAT_SEED=seed repeats it.
#include "group_storm.hpp"

#include <cstdlib>

namespace leat::testing {
namespace {

constexpr std::chrono::seconds kRound{2};

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

void weather(const GroupStormOptions& options) {
  const std::chrono::seconds duration{number_from("SOAK_SECONDS", kRound.count())};
  std::uint64_t seed = number_from("LEAT_SEED", std::random_device{}());
  const auto until = std::chrono::steady_clock::now() + duration;
  do {
    std::printf("LEAT_SEED=%llu\n", static_cast<unsigned long long>(seed));
    SCOPED_TRACE("LEAT_SEED=" + std::to_string(seed));
    GroupStorm{options, seed}.run(std::min<std::chrono::milliseconds>(duration, kRound));
    ++seed;
  } while (std::chrono::steady_clock::now() < until && !::testing::Test::HasFailure());
}

TEST(GroupStorm, AtLeastOnceWithASubscriberBeside) { weather({.subscriber = true}); }
TEST(GroupStorm, AtMostOnce) { weather({.group = {.mode = GroupMode::at_most_once}}); }
TEST(GroupStorm, ByKey) { weather({.group = {.by_key = true}}); }
// Members soon use spare entries, which others use again while a member is stopped.
TEST(GroupStorm, ByKeyWithFewInFlight) {
  for (const std::uint32_t in_flight : {4U, 16U})
    weather({.group = {.by_key = true}, .polls = true, .in_flight = in_flight});
}
TEST(GroupStorm, Leases) { weather({.group = {.lease = 4ms}}); }
TEST(GroupStorm, SeveralPartitions) { weather({.members = 4, .partitions = 3}); }

}  // namespace
}  // namespace leat::testing
