// If this failed, a gating subscriber that joins while publishers reuse room
// could miss records or read overwritten ones.
#include <gtest/gtest.h>

#include "small_topic.hpp"

namespace leat {
namespace {

// Publishers publish several laps of a small topic; a subscriber joins at any
// moment, reads, and leaves.
void join_late(model::Execution& run, std::uint32_t publishers, const SubscriberOptions& options) {
  SmallTopic topic{{.capacity_bytes = 3 * kSegment}};
  std::map<std::uint64_t, Mark> published;
  std::uint32_t done = 0;
  for (std::uint32_t who = 0; who < publishers; ++who) {
    run.thread("publisher " + std::to_string(who), [&, who] {
      auto publisher = must(topic->publisher(), "publisher");
      publish_revocable(publisher, who, 10 / publishers, kHalf, published);
      ++done;
    });
  }
  Ledger ledger;
  run.thread("subscriber", [&] {
    auto subscriber = must(topic->subscriber(options), "subscriber");
    ledger = Ledger{subscriber.offset()};
    read_until(subscriber, ledger, 10);
  });
  if (!run.run()) return;
  model::check(done == publishers && ledger.gaps().empty(), "something is missing");
  for (const auto& [offset, mark] : ledger.records())
    model::check(published.at(offset) == mark, "another record");
}

TEST(Join, AtTheBeginningWhileRoomIsReused) {
  for (const std::uint32_t publishers : {1U, 2U}) {
    EXPECT_TRUE(model::holds(model::explore(
        {.name = "beginning", .executions = 4000},
        [&](model::Execution& run) { join_late(run, publishers, from_beginning()); })));
  }
}

TEST(Join, AtTheEndWhileRoomIsReused) {
  EXPECT_TRUE(model::holds(model::explore({.name = "end"}, [](model::Execution& run) {
    join_late(run, 2, {.from = From::end, .spin = 0ns});
  })));
}

// The requested offset may be gone; then the subscriber begins at the oldest
// record and reports the gap.
TEST(Join, AtAnOffsetWhileRoomIsReused) {
  EXPECT_TRUE(model::holds(model::explore({.name = "offset"}, [](model::Execution& run) {
    SmallTopic topic{{.capacity_bytes = 3 * kSegment}};
    std::map<std::uint64_t, Mark> published;
    run.thread("publisher", [&] {
      auto publisher = must(topic->publisher(), "publisher");
      publish(publisher, 0, 10, kHalf, published);
    });
    Ledger ledger{3};
    run.thread("subscriber", [&] {
      auto subscriber =
          must(topic->subscriber({.from = From::offset(3), .spin = 0ns}), "subscriber");
      read_until(subscriber, ledger, 10);
    });
    if (!run.run()) return;
    for (const auto& [offset, mark] : ledger.records())
      model::check(published.at(offset) == mark, "another record");
  })));
}

// With few slots, participants that join use the slots of those that left.
// Nobody may see a mixture of the two.
TEST(Join, SlotsGoFromHandToHand) {
  EXPECT_TRUE(
      model::holds(model::explore({.name = "slots", .executions = 6000}, [](model::Execution& run) {
        SmallTopic topic{{.capacity_bytes = 3 * kSegment}};
        std::map<std::uint64_t, Mark> published;
        std::uint32_t revoked = 0;
        for (std::uint32_t who = 0; who < 2; ++who) {
          run.thread("comes and goes " + std::to_string(who), [&, who] {
            for (std::uint32_t i = 0; i < 3; ++i) {
              {
                auto publisher = must(topic->publisher(), "publisher");
                revoked += publish_revocable(publisher, who, 1, kHalf, published, i);
              }
              auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
              Ledger ledger{subscriber.offset()};
              (void)must(
                  subscriber.poll(100, [&](const Record& record) { ledger.on_record(record); }),
                  "poll");
            }
          });
        }
        if (!run.run()) return;
        model::check(published.size() + revoked == 6, "something is missing");
      })));
}

// A subscriber that stops reading blocks the publisher only for `evict_after`. Then it continues as
// a lossy subscriber and learns what it lost.
TEST(Join, BlockersAreEvicted) {
  int evicted = 0;
  EXPECT_TRUE(model::holds(model::explore({.name = "evict"}, [&](model::Execution& run) {
    SmallTopic topic{{.capacity_bytes = 3 * kSegment, .evict_after = 4ms}};
    std::map<std::uint64_t, Mark> published;
    Ledger ledger;
    auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
    run.thread("publisher", [&] {
      auto publisher = must(topic->publisher(), "publisher");
      publish(publisher, 0, 8, kHalf, published);
    });
    const auto slow = run.thread("subscriber", [&] { read_until(subscriber, ledger, 8); });
    run.suspend_at(slow, model::random(60));
    if (!run.run()) return;
    model::check(published.size() == 8, "the publisher went on");
    model::resume(slow);
    if (!run.run()) return;
    for (const auto& [offset, reason] : ledger.gaps())
      model::check(reason == GapReason::overwritten, "reason");
    for (const auto& [offset, mark] : ledger.records())
      model::check(published.at(offset) == mark, "another record");
    evicted += ledger.gaps().empty() ? 0 : 1;
  })));
  EXPECT_GT(evicted, 10);
}

// ---- Why the edges are needed -------------------------------------------------------------------

testing::AssertionResult breaks_weakened(Edge edge, Side side) {
  return model::breaks(
      model::explore({.name = "weakened", .executions = 200'000}, [&](model::Execution& run) {
        model::weaken(edge, side);
        join_late(run, 1, from_beginning());
      }));
}

TEST(JoinEdges, StartMovesBeforeTheSlotsAreLookedAt) {
  EXPECT_TRUE(breaks_weakened(Edge::retire, Side::rmw));
}

TEST(JoinEdges, TheSlotIsTakenBeforeStartIsLookedAt) {
  EXPECT_TRUE(breaks_weakened(Edge::slot, Side::rmw));
}

}  // namespace
}  // namespace leat
