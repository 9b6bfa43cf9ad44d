// If this failed, a new group, or one that was moved back, could lose its first records or report
// `corrupt` for a healthy topic.
//
// A group is made, or moved back to the beginning, just when a publisher that saw nobody there
// retires that segment. The group's cursor is then one segment before `oldest_segment`, in memory
// that is kept for it. Members by key, and members in a topic that grows, pin what they read and
// look at `oldest_segment`; they must not take this state for damage.
#include <gtest/gtest.h>

#include "small_topic.hpp"

namespace leat {
namespace {

struct RetirementCase {
  bool by_key = false;
  bool grows = false;
  bool seeks = false;   // If false, the group is made instead.
  bool evicts = false;  // Whoever makes or moves it is stopped, and what keeps the room is evicted.
};

Member join(const Group& group) { return must(group.join({.spin = 0ns, .patience = 0ns}), "join"); }

// Takes until nothing comes. From the first record on, all must come in
// order, and none may be missing.
void take_all(Member& member) {
  std::optional<std::uint64_t> next;
  for (;;) {
    auto one = member.receive(1ms);
    if (!one) {
      model::check(one.error().code == Errc::timeout, "take: " + describe(one.error()));
      return;
    }
    const Mark mark =
        mark_of(model::read_checked(one->record.value.data(), one->record.value.size()), true);
    model::check(mark.number == one->record.offset, "another record's bytes");
    model::check(!next || one->record.offset == *next, "records are missing");
    next = one->record.offset + 1;
    model::check(member.acknowledge(*one).has_value(), "acknowledge");
  }
}

// The group as it is while somebody makes or moves it. Null: there is none.
std::shared_ptr<detail::GroupView> half_done_group(detail::MappedTopic& topic) {
  if (topic.group_number(0) == 0) return nullptr;
  auto group = must(topic.group(0), "map the group");
  if (group == nullptr) return nullptr;
  const bool is_being_made =
      detail::load_seq_cst<Edge::group>(group->header().closed) == detail::kGroupMaking;
  return is_being_made || group->load_cursor(0).is_marked() ? group : nullptr;
}

// Stops the founder a few operations after others can see what it does.
void stop_half_done(model::Thread founder, detail::MappedTopic& topic) {
  for (int looks = 0; half_done_group(topic) == nullptr; ++looks) {
    if (looks == 100) return;  // Not for ever: as long as a thread runs, nobody's time runs out.
    model::yield();
  }
  for (std::uint64_t more = model::random(6); more != 0; --more) model::yield();
  model::suspend(founder);
}

void begin_beside_a_retirement(model::Execution& run, const RetirementCase& c) {
  TopicOptions options{.capacity_bytes = 2 * kSegment};
  if (c.evicts) {
    options.capacity_bytes = 3 * kSegment;  // An evicted subscriber keeps one segment.
    options.evict_after = 1ms;
  }
  if (c.grows) {
    options.policy = Policy::grow;
    options.max_capacity_bytes = 3 * kSegment;
  }
  SmallTopic topic{options};
  const GroupOptions group_options{
      .from = From::beginning, .by_key = c.by_key, .members = 2, .in_flight = 8};
  auto publisher = must(topic->publisher(), "publisher");
  for (std::uint32_t i = 0; i < 2; ++i)
    (void)must(publisher.publish(payload_of({0, i}, kHalf)), "publish");
  if (c.seeks) {
    GroupOptions at_end = group_options;
    at_end.from = From::end;
    (void)must(topic->group("g", at_end), "group");
  }
  bool gave_up = false;
  run.thread("publisher", [&] {
    for (std::uint32_t i = 2; i < (c.evicts ? 11 : 9) && !gave_up; ++i) {
      gave_up = true;
      // A timer may run out so late that the time is over before anybody is evicted.
      for (int tries = c.evicts ? 8 : 1; gave_up && tries != 0; --tries)
        gave_up = !publisher.publish(payload_of({0, i}, kHalf), Deadline{5ms});
    }
  });
  const auto founder = run.thread(
      "founder",
      [&, topic = must(Topic::open("t", Deadline::immediate(), SmallTopic::directory()), "open")] {
        const Group group = must(topic.group("g", group_options), "group");
        if (c.seeks) model::check(group.seek(From::beginning).has_value(), "seek");
        Member member = join(group);
        take_all(member);
      });
  const auto shared = TopicTesting::shared_pointer(*topic);
  if (c.evicts && model::random(2) == 0) {
    run.suspend_at(founder, model::random(150));
  } else if (c.evicts) {
    run.thread("watcher", [&] { stop_half_done(founder, *shared); });
  }
  if (!run.run()) return;
  if (c.evicts) {
    // A group that is moved needs room where it was, too.
    model::check(!gave_up || c.seeks || half_done_group(*shared) == nullptr,
                 "a group that is being made holds publishers up");
    model::resume(founder);
    if (!run.run()) return;
  }
  run.thread("last", [&, group = must(topic->find_group("g"), "find")] {
    Member member = join(group);
    take_all(member);
    model::check(group.info().lag == 0, "left over");
  });
  run.run();
}

testing::AssertionResult goes_on(const char* name, const RetirementCase& c) {
  return model::holds(
      model::explore({.name = name, .executions = 1500, .max_steps = 60'000},
                     [&](model::Execution& run) { begin_beside_a_retirement(run, c); }));
}

TEST(Retirement, AGroupIsMadeBesideIt) {
  EXPECT_TRUE(goes_on("plain", {}));
  EXPECT_TRUE(goes_on("by key", {.by_key = true}));
  EXPECT_TRUE(goes_on("grows", {.grows = true}));
}

TEST(Retirement, AGroupIsMovedBackBesideIt) {
  EXPECT_TRUE(goes_on("plain", {.seeks = true}));
  EXPECT_TRUE(goes_on("by key", {.by_key = true, .seeks = true}));
  EXPECT_TRUE(goes_on("grows", {.grows = true, .seeks = true}));
}

// The room that was kept for the group may be lost before the group keeps it. Then it begins anew.
TEST(Retirement, AGroupIsMadeByWhoIsEvicted) {
  EXPECT_TRUE(goes_on("plain", {.evicts = true}));
  EXPECT_TRUE(goes_on("by key", {.by_key = true, .evicts = true}));
}

TEST(Retirement, AGroupIsMovedByWhoIsEvicted) {
  EXPECT_TRUE(goes_on("plain", {.seeks = true, .evicts = true}));
  EXPECT_TRUE(goes_on("by key", {.by_key = true, .seeks = true, .evicts = true}));
}

}  // namespace
}  // namespace leat
