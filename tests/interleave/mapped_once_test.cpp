// If this failed, two threads that map a topic's records at once could use different mappings, or one before it is made.
#include "leat/log/mapped_once.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

#include "model.hpp"

namespace leat::detail {
namespace {

// Threads that make a mapping if there is none yet. What it says is in a word of the model, written before it is kept.
void make_and_use(model::Execution& run) {
  constexpr int kThreads = 3;
  MappedOnce once;
  std::array<std::uint32_t, kThreads> made{};
  std::array<const Mapping*, kThreads> used{};
  for (std::size_t i = 0; i < kThreads; ++i) {
    run.thread("user " + std::to_string(i), [&, i] {
      const Mapping* found = once.get();
      if (found == nullptr) {
        store_relaxed<Why::test>(made[i], 1U);
        found = &once.keep(Mapping{});
      }
      used[i] = found;
      std::uint32_t ready = 0;
      for (const std::uint32_t& one : made) ready += load_relaxed<Why::test>(one);
      model::check(ready != 0, "used before it was made");
    });
  }
  if (!run.run()) return;
  for (const Mapping* one : used) model::check(one == once.get(), "threads use different mappings");
}

TEST(MappedOnce, IsOneForAllThreads) {
  EXPECT_TRUE(model::holds(model::explore({.name = "map once"}, make_and_use)));
}

TEST(MappedOnce, NeedsItsEdge) {
  EXPECT_TRUE(model::breaks(
      model::explore({.name = "weakened", .executions = 20'000}, [](model::Execution& run) {
        model::weaken(Edge::mapped_once);
        make_and_use(run);
      })));
}

}  // namespace
}  // namespace leat::detail
