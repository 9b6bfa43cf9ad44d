// If this failed, a publisher that looks at a group could use the memory of a view that another thread has just freed.
#include "leat/log/known_groups.hpp"

#include <gtest/gtest.h>

#include "model.hpp"

namespace leat::detail {
namespace {

using Known = KnownGroups::Known;

// Threads that look at a slot while others replace what is there, again and again. Whether a view is freed shows in what
// its owner knows of it; the view itself is not touched.
void read_and_replace(model::Execution& run) {
  constexpr int kReplacers = 2;
  KnownGroups groups;
  std::vector<std::pair<const GroupView*, std::weak_ptr<GroupView>>> made;
  const auto make_view = [&] {
    auto view = std::make_shared<GroupView>();
    made.emplace_back(view.get(), view);
    return view;
  };
  const auto is_alive = [&](const GroupView* view) {
    for (const auto& [address, owner] : made)
      if (address == view && !owner.expired()) return true;
    return false;
  };
  {
    KnownGroups::LookupGuard guard{groups};
    (void)groups.replace(0, nullptr, make_view(), guard);
  }
  for (int i = 0; i < kReplacers; ++i) {
    run.thread("replacer " + std::to_string(i), [&] {
      for (int k = 0; k < 2; ++k) {
        KnownGroups::LookupGuard guard{groups};
        Known* const known = groups.at(0, guard);
        (void)groups.replace(0, known, make_view(), guard);
      }
    });
  }
  run.thread("looker", [&] {
    for (int k = 0; k < 2; ++k) {
      const KnownGroups::LookupGuard guard{groups};
      const GroupView* const view = groups.at(0, guard)->view.get();
      model::check(is_alive(view), "freed before it was looked at");
      model::yield();
      model::check(is_alive(view), "freed while a thread looks at it");
    }
  });
  if (!run.run()) return;
  std::size_t alive = 0;
  {
    KnownGroups::LookupGuard guard{groups};
    (void)groups.replace(0, groups.at(0, guard), make_view(), guard);
  }
  for (const auto& one : made) alive += one.second.expired() ? 0 : 1;
  model::check(alive == 1, "views that nobody looks at stay");
}

TEST(KnownGroups, AreNotFreedWhileAThreadLooks) {
  EXPECT_TRUE(model::holds(model::explore({.name = "look and replace"}, read_and_replace)));
}

TEST(KnownGroups, NeedTheirEdge) {
  EXPECT_TRUE(model::breaks(
      model::explore({.name = "weakened", .executions = 20'000}, [](model::Execution& run) {
        model::weaken(Edge::known_group);
        read_and_replace(run);
      })));
}

}  // namespace
}  // namespace leat::detail
