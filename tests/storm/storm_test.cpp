// If this failed, killing or stopping processes at random could lose, repeat, reorder or damage
// records, or make the others hang.
//
// Each storm takes a few seconds; SOAK_SECONDS makes it that many, in rounds with new topics. The
// seed is printed; LEAT_SEED=seed repeats it.
#include <cstdlib>

#include "storm.hpp"

namespace leat::testing {
namespace {

constexpr std::chrono::seconds kRound{2};

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

void weather(const StormOptions& options) {
  const std::chrono::seconds duration{number_from("SOAK_SECONDS", kRound.count())};
  std::uint64_t seed = number_from("LEAT_SEED", std::random_device{}());
  const auto until = std::chrono::steady_clock::now() + duration;
  do {
    std::printf("LEAT_SEED=%llu\n", static_cast<unsigned long long>(seed));
    SCOPED_TRACE("LEAT_SEED=" + std::to_string(seed));
    Storm{options, seed}.run(std::min<std::chrono::milliseconds>(duration, kRound));
    ++seed;
  } while (std::chrono::steady_clock::now() < until && !::testing::Test::HasFailure());
}

TEST(Storm, Kills) { weather({}); }
TEST(Storm, Stops) { weather({.kills = false, .stops = true}); }
TEST(Storm, KillsAndStops) { weather({.stops = true}); }
TEST(Storm, KillsAndStopsWithRevocation) { weather({.stops = true, .revoke_after = 3ms}); }
TEST(Storm, KillsAndStopsWithRevocationAndEviction) {
  weather({.segments = 4, .stops = true, .revoke_after = 2ms, .evict_after = 2ms});
}
TEST(Storm, ExclusivePublishersTakeOver) { weather({.exclusive = true, .stops = true}); }
TEST(Storm, LossySubscribersAreOvertaken) {
  weather({.gating = 0,
           .gating_victims = 0,
           .lossy = 2,
           .policy = Policy::overwrite,
           .stops = true,
           .revoke_after = 3ms});
}
TEST(Storm, LossySubscribersInPlace) {
  weather({.gating = 0,
           .gating_victims = 0,
           .lossy = 2,
           .segments = 8,
           .stops = true,
           .in_place = true});
}
TEST(Storm, GrowsAndShrinks) {
  weather({.segments = 3, .policy = Policy::grow, .stops = true, .revoke_after = 3ms});
}
TEST(Storm, FewSegmentsManyPublishers) {
  weather({.publishers = 6, .gating = 1, .segments = 3, .stops = true, .revoke_after = 2ms});
}

}  // namespace
}  // namespace leat::testing
