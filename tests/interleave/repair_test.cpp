// Death at any operation: whoever is left goes on, and its account comes out even.
#include <gtest/gtest.h>

#include "small_topic.hpp"

namespace leat {
namespace {

struct Case {
  std::uint32_t victims = 1;
  std::uint32_t survivors = 1;
  bool exclusive = false;
  std::uint32_t segments = 3;
  std::size_t size = kSmall;
  std::uint64_t operations = 90;  // A victim dies at one of so many.
  bool kill_subscriber = false;   // Another subscriber dies, too.
  std::uint32_t records = 3;      // Of each publisher.
};

// Publishers of which some die; then a reader counts everything that was ever claimed.
void die_and_repair(model::Execution& run, const Case& c) {
  SmallTopic topic{{.capacity_bytes = c.segments * kSegment}};
  std::map<std::uint64_t, Mark> published;
  Ledger ledger;
  auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
  std::uint32_t dead = 0;
  for (std::uint32_t who = 0; who < c.victims + c.survivors; ++who) {
    const bool is_victim = who < c.victims;
    const auto thread =
        run.thread((is_victim ? "victim " : "survivor ") + std::to_string(who), [&, who] {
          auto publisher = topic->publisher({.exclusive = c.exclusive});
          while (c.exclusive && publisher.error().code == Errc::busy) {  // The other one lives.
            model::yield();
            publisher = topic->publisher({.exclusive = true});
          }
          model::check(publisher.has_value(), "publisher: " + describe(publisher.error()));
          // Different sizes, so that claims of several are never told apart by luck.
          for (std::uint32_t i = 0; i < c.records; ++i) {
            publish(*publisher, who, 1, c.size + 16 * ((who + i) % 3), published, i);
          }
        });
    if (is_victim) run.kill_at(thread, model::random(c.operations));
  }
  run.thread("subscriber", [&] {
    read_until(subscriber, ledger, c.survivors * c.records);
    // Then it still makes room for those who go on.
    const auto is_over = [&](model::Thread who) { return run.finished(who) || run.killed(who); };
    for (model::Thread who = 0; who < c.victims + c.survivors; ++who) {
      while (!is_over(who)) read_some(subscriber, ledger, 100, 1ms);
    }
  });
  if (c.kill_subscriber) {
    const auto reader = run.thread("dying subscriber", [&] {
      auto other = must(topic->subscriber(from_beginning()), "subscriber");
      Ledger its{other.offset()};
      read_until(other, its, 3);
    });
    run.kill_at(reader, model::random(200));
  }
  if (!run.run()) return;
  for (std::uint32_t who = 0; who < c.victims; ++who) dead += run.killed(who) ? 1 : 0;
  const std::uint64_t end = topic->info().partitions.at(0).end;
  run.thread("last", [&] { read_until(subscriber, ledger, end); });
  if (!run.run()) return;
  ledger.check_published(published);
  for (const auto& [offset, reason] : ledger.gaps())
    model::check(reason == GapReason::died, "reason");
  model::check(ledger.gaps().size() <= dead, "more gaps than dead");
}

testing::AssertionResult survives(const char* name, const Case& c, int executions = 4000) {
  return model::holds(model::explore({.name = name, .executions = executions},
                                     [&](model::Execution& run) { die_and_repair(run, c); }));
}

TEST(Repair, ADeadPublisherLeavesAtMostOneGap) { EXPECT_TRUE(survives("one", {}, 6000)); }

TEST(Repair, SeveralMayDieAtOnce) { EXPECT_TRUE(survives("two", {.victims = 2})); }

TEST(Repair, OnlyAReaderIsLeft) { EXPECT_TRUE(survives("reader", {.victims = 2, .survivors = 0})); }

TEST(Repair, DeathWhileRolling) {
  EXPECT_TRUE(
      survives("rolling", {.segments = 2, .size = kThird, .operations = 250, .records = 5}));
}

TEST(Repair, DeathOfAnExclusivePublisher) {
  EXPECT_TRUE(survives("exclusive", {.survivors = 0, .exclusive = true}));
}

TEST(Repair, AnExclusivePublisherFollowsADeadOne) {
  EXPECT_TRUE(survives("heir", {.survivors = 1, .exclusive = true}));
}

// Whoever repairs may die at it.
TEST(Repair, DeathOfTheRepairer) {
  EXPECT_TRUE(survives("repairer", {.segments = 2, .size = kHalf - 64, .kill_subscriber = true}));
}

// A dead gating subscriber holds no room, and a dead publisher pins none.
TEST(Repair, TheDeadHoldNoRoom) {
  EXPECT_TRUE(model::holds(model::explore({.name = "room"}, [](model::Execution& run) {
    SmallTopic topic{{.capacity_bytes = 2 * kSegment}};
    std::map<std::uint64_t, Mark> published;
    const auto reader = run.thread("dying subscriber", [&] {
      auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
      for (int i = 0; i < 10; ++i) {
        (void)must(subscriber.poll(1, [](const Record&) {}), "poll");
        model::yield();
      }
    });
    const auto writer = run.thread("dying publisher", [&] {
      auto publisher = must(topic->publisher(), "publisher");
      publish(publisher, 0, 3, kHalf, published);
    });
    run.kill_at(reader, model::random(150));
    run.kill_at(writer, model::random(150));
    run.thread("survivor", [&] {
      auto publisher = must(topic->publisher(), "publisher");
      publish(publisher, 1, 8, kHalf, published);
    });
    if (!run.run()) return;
  })));
}

// Publishes `count` records whose claims others may give up meanwhile; returns how many they did.
int publish_revocable(Publisher& publisher, std::uint32_t who, std::uint32_t count,
                      std::size_t size, std::map<std::uint64_t, Mark>& published) {
  int revoked = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto offset = publisher.publish(payload_of({who, i}, size + 32 * (i % 2)));
    if (offset) {
      published[*offset] = {who, i};
    } else {
      model::check(offset.error().code == Errc::revoked, "publish: " + describe(offset.error()));
      ++revoked;
    }
  }
  return revoked;
}

// After all is done: reads the rest, and everything is a record that was published or a gap that was
// revoked.
void account_for_all(model::Execution& run, SmallTopic& topic, Subscriber& subscriber,
                     Ledger& ledger, const std::map<std::uint64_t, Mark>& published) {
  const std::uint64_t end = topic->info().partitions.at(0).end;
  run.thread("last", [&] { read_until(subscriber, ledger, end); });
  if (!run.run()) return;
  ledger.check_published(published);
  model::check(ledger.records().size() == published.size(), "a revoked record was delivered");
  for (const auto& [offset, reason] : ledger.gaps()) {
    model::check(reason == GapReason::revoked, "reason");
  }
}

// A stopped publisher's claim is given up after a while; when it goes on it is told, and does no harm.
TEST(Repair, StoppedPublishersAreRevoked) {
  int revoked = 0;
  EXPECT_TRUE(model::holds(
      model::explore({.name = "revoke", .executions = 4000}, [&](model::Execution& run) {
        SmallTopic topic{{.capacity_bytes = 4 * kSegment, .revoke_after = 4ms}};
        std::map<std::uint64_t, Mark> published;
        Ledger ledger;
        auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
        const auto publish_some = [&](std::uint32_t who, std::uint32_t count) {
          auto publisher = must(topic->publisher(), "publisher");
          revoked += publish_revocable(publisher, who, count, kHalf - 32, published);
        };
        const auto stopped = run.thread("stopped", [&] { publish_some(0, 3); });
        run.suspend_at(stopped, model::random(120));
        run.thread("survivor", [&] { publish_some(1, 9); });
        run.thread("subscriber", [&] { read_until(subscriber, ledger, 9); });
        if (!run.run()) return;
        model::resume(stopped);
        if (!run.run()) return;
        account_for_all(run, topic, subscriber, ledger, published);
      })));
  EXPECT_GT(revoked, 10);
}

// Claims are given up at once, while their owners are just about to commit them.
void revoke_at_once(model::Execution& run, int& revoked) {
  SmallTopic topic{{.revoke_after = 1ns}};
  std::map<std::uint64_t, Mark> published;
  Ledger ledger;
  auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
  for (std::uint32_t who = 0; who < 2; ++who) {
    run.thread("publisher " + std::to_string(who), [&, who] {
      auto publisher = must(topic->publisher(), "publisher");
      revoked += publish_revocable(publisher, who, 3, kSmall, published);
    });
  }
  run.thread("subscriber", [&] { read_until(subscriber, ledger, 6); });
  if (!run.run()) return;
  account_for_all(run, topic, subscriber, ledger, published);
}

TEST(Repair, EitherTheOwnerOrTheRevokerWins) {
  int revoked = 0;
  EXPECT_TRUE(
      model::holds(model::explore({.name = "revoke at once", .executions = 6000},
                                  [&](model::Execution& run) { revoke_at_once(run, revoked); })));
  EXPECT_GT(revoked, 100);
}

// ---- What the edges are for ------------------------------------------------------------------------

testing::AssertionResult breaks_weakened(Edge edge, Side side, const Case& c) {
  return model::breaks(
      model::explore({.name = "weakened", .executions = 30'000}, [&](model::Execution& run) {
        model::weaken(edge, side);
        die_and_repair(run, c);
      }));
}

TEST(RepairEdges, TheIntentIsOfItsPhase) {
  EXPECT_TRUE(breaks_weakened(Edge::intent, Side::all, {.victims = 2}));
}

TEST(RepairEdges, TheClaimIsAnnouncedBefore) {
  EXPECT_TRUE(breaks_weakened(Edge::claim, Side::all, {.victims = 2}));
}

}  // namespace
}  // namespace leat
