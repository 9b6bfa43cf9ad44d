// If this failed, a publisher could overwrite a record while a member of a
// group still reads it: because the member's entry moved on to another record,
// or because the group is being deleted by force.
#include <gtest/gtest.h>

#include <array>

#include "small_topic.hpp"

namespace leat {
namespace {

// A Topic of its own, as in another process: a Topic has a mutex, and fibers
// of one thread must not block on it.
Topic open_topic() {
  return must(Topic::open("t", Deadline::immediate(), SmallTopic::directory()), "open");
}
constexpr MemberOptions kNoSpin{.spin = 0ns, .patience = 0ns};

// A single entry is used for one record after the other. A publisher that
// reuses a segment must have seen that each of its records is done with, even
// if it only saw that the entry has another record by now.
void reuse_entry(model::Execution& run, std::uint32_t from) {
  SmallTopic topic{{.capacity_bytes = 2 * kSegment}};
  const GroupOptions options{.from = From::beginning, .members = 2, .in_flight = 1};
  (void)must(topic->group("g", options), "group");
  auto publisher = must(open_topic().publisher(), "publisher");
  constexpr std::uint32_t kRecordsOfGroup = 4;  // These fill both segments.
  for (std::uint32_t i = 0; i < kRecordsOfGroup; ++i)
    (void)must(publisher.publish(payload_of({0, i}, kHalf)), "publish");
  Member member = must(must(open_topic().find_group("g"), "find").join(kNoSpin), "join");
  // Stands for the member's reads of a record: whoever sees 1 knows that they are over.
  std::array<std::uint64_t, kRecordsOfGroup> done{};
  std::uint32_t acknowledged = 0;  // For the test alone: tells the publisher when to begin.
  run.thread("member", [&] {
    for (std::uint32_t i = 0; i < kRecordsOfGroup; ++i) {
      if (i == from) {  // It may stop while its entry gets the next record.
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
      if (!publisher.publish(payload_of({0, kRecordsOfGroup}, kHalf), Deadline::immediate()))
        continue;
      for (std::uint32_t i = 0; i < 2; ++i)
        model::check(detail::load_relaxed(done[i]) == 1, "a record was overwritten during a read");
      break;
    }
  });
  run.run();
}

TEST(GroupRoom, ASegmentIsReusedAfterItsRecordsAreDoneWith) {
  EXPECT_TRUE(model::holds(model::explore({.name = "reuse"}, [](model::Execution& run) {
    reuse_entry(run, static_cast<std::uint32_t>(model::random(3)));
  })));
}

TEST(GroupRoomEdges, AnEntryGetsAnotherRecordAfterTheLastOneIsRead) {
  EXPECT_TRUE(model::breaks(
      model::explore({.name = "weakened", .executions = 40'000}, [](model::Execution& run) {
        model::weaken(Edge::in_flight_place);
        reuse_entry(run, 2);
      })));
}

// Two members take records, requeue them and take them again while the group is deleted by force
// and a publisher fills the topic again. A record that a member reads in place must not change
// until the member's next call, whether the member knows of the deletion or not.
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
        const auto done = i % 2 == 0 ? member.requeue(*one) : member.acknowledge(*one);
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
    // No member is left: the group's room is free, and a new group of that name can be made.
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
