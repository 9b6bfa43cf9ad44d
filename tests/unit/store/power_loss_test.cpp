// The power may fail after any call, and leave any part of what was not synced: recovery brings back
// all that was durable, nothing that was not written, and no offset twice. If this failed, a machine
// that loses its power would lose acknowledged records, or number new ones like old ones.
// The seed is printed; LEAT_SEED=seed repeats a run. LEAT_SOAK makes it 100,000 failures.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "support/one_of.hpp"
#include "support/store_world.hpp"
#include "testing.hpp"

namespace leat::testing {
namespace {

struct Toll {
  std::uint64_t failures = 0;
  std::string complaint;  // the first one
};

// Lets the power fail at several moments of a world, and in the worlds that come after.
void fail_power(const World& world, Random& random, int depth, int moments, Toll& toll) {
  for (int i = 0; i < moments && toll.complaint.empty(); ++i) {
    const std::size_t cut = below(random, world.calls() + 1);
    const std::uint64_t seed = random();
    ++toll.failures;
    toll.complaint = world.judge(cut, seed);
    if (!toll.complaint.empty()) {
      toll.complaint += "; after call " + std::to_string(cut) + " of " +
                        std::to_string(world.calls()) + ", depth " + std::to_string(depth);
      return;
    }
    if (depth == 3 || below(random, 4) != 0) continue;
    World next{world, cut, seed};
    if (!next.has_topic()) continue;
    toll.complaint = next.run(random, static_cast<int>(below(random, 12)));
    if (toll.complaint.empty()) fail_power(next, random, depth + 1, 4, toll);
  }
}

Toll fail_power(std::uint64_t seed, std::uint64_t failures, double seconds,
                RecordedDisk::Lies lies = {}) {
  const auto begin = std::chrono::steady_clock::now();
  Toll toll;
  for (; toll.failures < failures && toll.complaint.empty(); ++seed) {
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    if (taken.count() > seconds) break;
    Random random{seed};
    World world{lies};
    toll.complaint = world.run(random, static_cast<int>(below(random, 60)));
    if (toll.complaint.empty()) fail_power(world, random, 1, 12, toll);
    if (!toll.complaint.empty()) toll.complaint += "; LEAT_SEED=" + std::to_string(seed);
  }
  return toll;
}

TEST(PowerLoss, TakesNothingThatWasDurableAndInventsNothing) {
  const bool is_long = std::getenv("LEAT_SOAK") != nullptr;
  const Toll toll = is_long
                        ? fail_power(test_seed(), 100'000, 1e9)
                        : fail_power(test_seed(), 10'000 / testing::kOneOf, 15.0 / testing::kOneOf);
  EXPECT_EQ(toll.complaint, "");
  EXPECT_GT(toll.failures, 10U);
  std::printf("%llu power failures\n", static_cast<unsigned long long>(toll.failures));
}

// A process is killed before its checkpoint and manifest, larger than a sector, are on stable storage, and
// the power fails while the next one stores its own: of each pair one copy stays whole.
TEST(PowerLoss, AfterAKillLeavesOneOfTwoCopiesWhole) {
  Random random{test_seed()};
  for (int round = 0; round < 300; ++round) {
    ScratchDirectory place;
    RecordedDisk disk{place.path};
    auto data = detail::open_directory_path(place.path, false, false);
    auto manifest = small_manifest(32);
    manifest.window.key = 5;
    manifest.window_directory = std::string(3000, 'w');
    ASSERT_TRUE(detail::create_store(disk, data->get(), "t", manifest));
    auto topic = detail::open_directory_at(data->get(), "t");
    const auto open_topic = [&](char mark) {
      manifest.window_directory = std::string(3000, mark);
      const bool is_recovered{detail::recover(disk, topic->get(), manifest)};
      return is_recovered && detail::store_manifest(disk, topic->get(), manifest);
    };
    ASSERT_TRUE(open_topic('a'));
    disk.die_at(disk.calls() + below(random, 12));
    (void)open_topic('b');
    disk.live();
    const std::size_t before = disk.calls();
    ASSERT_TRUE(open_topic('c'));
    for (std::size_t cut = before; cut <= disk.calls(); ++cut) {
      ScratchDirectory after;
      disk.replay(cut, random, after.path);
      auto left = detail::open_directory_path(after.path + "/t", false, false);
      ASSERT_TRUE(left);
      EXPECT_TRUE(detail::load_manifest(detail::Disk::system(), left->get())) << cut - before;
      auto loaded = detail::CheckpointFile::load(detail::Disk::system(), left->get(), manifest);
      EXPECT_TRUE(loaded && loaded->is_known()) << cut - before;
    }
    if (HasFailure()) return;
  }
}

// The judge notices a disk that does not do what it says.
TEST(PowerLoss, IsNoticedIfSyncDoesNothing) {
  EXPECT_NE(fail_power(1, 2000, 60, {.sync = true}).complaint, "");
}
TEST(PowerLoss, IsNoticedIfNamesAreNotSynced) {
  EXPECT_NE(fail_power(1, 2000, 60, {.sync_directory = true}).complaint, "");
}

}  // namespace
}  // namespace leat::testing
