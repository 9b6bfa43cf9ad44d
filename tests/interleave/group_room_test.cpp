// What publishers find when they ask a group for room: records that are done with, and a group that is
// deleted by force while members take.
#include <gtest/gtest.h>

#include <array>

#include "small_topic.hpp"

namespace leat {
namespace {

// As another process has it: fibers of one thread must not wait for each other in a Topic.
Topic open_topic() {
  return must(Topic::open("t", Deadline::immediate(), SmallTopic::directory()), "open");
}
constexpr MemberOptions kNoSpin{.spin = 0ns, .patience = 0ns};

// One hold for one record after the other. Who reuses a segment has seen that each of its records is done
// with, also if all that it saw is that the hold has another record by now.
void reuse_hold(model::Execution& run, std::uint32_t from) {
  SmallTopic topic{{.capacity_bytes = 2 * kSegment}};
  const GroupOptions options{.from = From::beginning, .members = 2, .in_flight = 1};
  (void)must(topic->group("g", options), "group");
  auto publisher = must(open_topic().publisher(), "publisher");
  constexpr std::uint32_t kRecords = 4;  // Both segments.
  for (std::uint32_t i = 0; i < kRecords; ++i)
    (void)must(publisher.publish(payload_of({0, i}, kHalf)), "publish");
  Member member = must(must(open_topic().find_group("g"), "find").join(kNoSpin), "join");
  // In place of what its user reads: seen as 1, the reads are over.
  std::array<std::uint64_t, kRecords> done{};
  std::uint32_t acknowledged = 0;  // Known to the test only: where it gets interesting.
  run.thread("member", [&] {
    for (std::uint32_t i = 0; i < kRecords; ++i) {
      if (i == from) {  // It may stand still while its hold gets the next record.
        model::count_operations();
        run.may_stop(model::current(), 60);
      }
      const auto one = must(member.receive(), "take");
      detail::store_relaxed(done[i], 1);
      model::check(member.acknowledge(one).has_value(), "acknowledge");
      ++acknowledged;
    }
  });
  run.thread("publisher", [&] {
    while (acknowledged < from) model::yield();
    for (int attempt = 0; attempt < 4; ++attempt) {
      if (!publisher.publish(payload_of({0, kRecords}, kHalf), Deadline::immediate())) continue;
      for (std::uint32_t i = 0; i < 2; ++i)
        model::check(detail::load_relaxed(done[i]) == 1, "reused while it is read");
      break;
    }
  });
  run.run();
}

TEST(GroupRoom, ASegmentIsReusedAfterItsRecordsAreDoneWith) {
  EXPECT_TRUE(model::holds(model::explore({.name = "reuse"}, [](model::Execution& run) {
    reuse_hold(run, static_cast<std::uint32_t>(model::random(3)));
  })));
}

TEST(GroupRoomEdges, AHoldGetsAnotherRecordAfterTheLastOneIsRead) {
  EXPECT_TRUE(model::breaks(
      model::explore({.name = "weakened", .executions = 40'000}, [](model::Execution& run) {
        model::weaken(Edge::hold_place);
        reuse_hold(run, 2);
      })));
}

// Two members take, give back and take again; somebody deletes the group by force; a publisher goes
// round. What a member has in place is the record until its next call, whether it knows or not.
void close_group(model::Execution& run, bool may_die, bool by_key) {
  SmallTopic topic{{.capacity_bytes = 2 * kSegment}};
  const GroupOptions options{
      .from = From::beginning, .by_key = by_key, .members = 2, .in_flight = 2};
  (void)must(topic->group("g", options), "group");
  auto publisher = must(open_topic().publisher(), "publisher");
  for (std::uint32_t i = 0; i < 4; ++i)
    (void)must(publisher.publish(payload_of({0, i}, kHalf)), "publish");
  for (int who = 0; who < 2; ++who) {
    run.thread("member " + std::to_string(who), [&run, group = must(open_topic().find_group("g"),
                                                                    "find")] {
      auto joined = group.join(kNoSpin);
      if (!joined) {
        model::check(joined.error().code == Errc::closed, "join: " + describe(joined.error()));
        return;
      }
      Member& member = *joined;
      for (int i = 0; i < 4; ++i) {
        const auto one = member.receive(Deadline::immediate());
        if (one.error().code == Errc::closed) return;
        model::check(one || one.error().code == Errc::timeout, "take: " + describe(one.error()));
        if (!one) continue;
        for (int step = 0; step < 8; ++step) model::yield();
        const auto& value = one->record.value;
        const Mark mark = mark_of(model::read_checked(value.data(), value.size()), true);
        model::check(mark.number == one->record.offset, "another record's bytes");
        const auto done = i % 2 == 0 ? member.give_back(*one) : member.acknowledge(*one);
        model::check(done || done.error().code == Errc::closed,
                     "let go: " + describe(done.error()));
      }
    });
  }
  const auto deleter = run.thread("deleter", [topic = open_topic()] {
    model::check(topic.delete_group("g", true).has_value(), "delete");
  });
  std::uint32_t next = 4;
  run.thread("publisher", [&] {
    for (int i = 0; i < 8; ++i) {
      if (publisher.publish(payload_of({0, next}, kHalf), Deadline::immediate())) ++next;
    }
  });
  if (may_die) run.kill_at(deleter, model::random(80));
  if (!run.run()) return;
  if (!may_die) {
    // Nobody is left that had it: its room is free, and the next one to look finds it gone.
    run.thread("last", [&, topic = open_topic()] {
      for (std::uint32_t i = 0; i < 4; ++i)
        (void)must(publisher.publish(payload_of({0, i}, kHalf), Deadline::immediate()), "publish");
      const Group made = must(topic.group("g", {.from = From::end, .members = 1}), "group");
      model::check(made.was_created(), "the deleted group");
    });
    run.run();
  }
}

TEST(GroupRoom, AForcedDeletionLeavesWhatMembersRead) {
  EXPECT_TRUE(
      model::holds(model::explore({.name = "close", .executions = 1500, .max_steps = 60'000},
                                  [](model::Execution& run) { close_group(run, false, false); })));
}

TEST(GroupRoom, AForcedDeletionLeavesWhatMembersReadByKey) {
  EXPECT_TRUE(
      model::holds(model::explore({.name = "key", .executions = 1000, .max_steps = 60'000},
                                  [](model::Execution& run) { close_group(run, false, true); })));
}

TEST(GroupRoom, AForcedDeletionByWhoDies) {
  EXPECT_TRUE(
      model::holds(model::explore({.name = "die", .executions = 1000, .max_steps = 60'000},
                                  [](model::Execution& run) { close_group(run, true, false); })));
}

}  // namespace
}  // namespace leat
