// If this failed, a process that dies at the wrong moment could make the others hang, lose records,
// or skip offsets that were published.
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
  std::uint64_t operations = 90;  // A victim dies at one of its first operations, up to this many.
  bool kill_subscriber = false;   // Another subscriber dies, too.
  std::uint32_t records = 3;      // Records of each publisher.
};

// Publishers of which some die; then a reader accounts for everything that was ever claimed.
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
          while (c.exclusive && publisher.error().code == Errc::busy) {  // The other one is alive.
            model::yield();
            publisher = topic->publisher({.exclusive = true});
          }
          model::check(publisher.has_value(), "publisher: " + describe(publisher.error()));
          // Different sizes, so that taking one publisher's claim for another's would be noticed.
          for (std::uint32_t i = 0; i < c.records; ++i) {
            publish(*publisher, who, 1, c.size + 16 * ((who + i) % 3), published, i);
          }
        });
    if (is_victim) run.kill_at(thread, model::random(c.operations));
  }
  run.thread("subscriber", [&] {
    read_until(subscriber, ledger, c.survivors * c.records);
    // The reader keeps reading, so that the living publishers have room.
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

TEST(Repair, AnExclusivePublisherTakesOverFromADeadOne) {
  EXPECT_TRUE(survives("heir", {.survivors = 1, .exclusive = true}));
}

// The repairer may die, too.
TEST(Repair, DeathOfTheRepairer) {
  EXPECT_TRUE(survives("repairer", {.segments = 2, .size = kHalf - 64, .kill_subscriber = true}));
}

// Neither a dead gating subscriber nor a dead publisher holds room.
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
      publish_revocable(publisher, 0, 3, kHalf, published);
    });
    run.kill_at(reader, model::random(150));
    run.kill_at(writer, model::random(150));
    run.thread("survivor", [&] {
      auto publisher = must(topic->publisher(), "publisher");
      publish_revocable(publisher, 1, 8, kHalf, published);
    });
    if (!run.run()) return;
  })));
}

// At the end: reads the rest. Everything is a published record, or a revoked claim, or a claim that
// was withdrawn before it was marked, which its publisher made a gap itself.
void account_for_all(model::Execution& run, SmallTopic& topic, Subscriber& subscriber,
                     Ledger& ledger, const std::map<std::uint64_t, Mark>& published) {
  const std::uint64_t end = topic->info().partitions.at(0).end;
  run.thread("last", [&] { read_until(subscriber, ledger, end); });
  if (!run.run()) return;
  ledger.check_published(published);
  model::check(ledger.records().size() == published.size(), "a revoked record was delivered");
  for (const auto& [offset, reason] : ledger.gaps()) {
    model::check(reason == GapReason::revoked || reason == GapReason::aborted, "reason");
  }
}

// A stopped publisher's claim is revoked after a while. When it continues, it
// gets an error and does no harm.
TEST(Repair, StoppedPublishersAreRevoked) {
  std::uint32_t revoked = 0;
  EXPECT_TRUE(model::holds(
      model::explore({.name = "revoke", .executions = 4000}, [&](model::Execution& run) {
        SmallTopic topic{{.capacity_bytes = 4 * kSegment, .revoke_after = 4ms}};
        std::map<std::uint64_t, Mark> published;
        Ledger ledger;
        auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
        const auto publish_some = [&](std::uint32_t who, std::uint32_t count) {
          auto publisher = must(topic->publisher(), "publisher");
          for (std::uint32_t i = 0; i < count; ++i) {
            revoked += publish_revocable(publisher, who, 1, kHalf - 32 * (i % 2), published, i);
          }
        };
        const auto stopped = run.thread("stopped", [&] { publish_some(0, 3); });
        run.suspend_at(stopped, model::random(120));
        const auto survivor = run.thread("survivor", [&] { publish_some(1, 9); });
        run.thread("subscriber", [&] {
          read_until(subscriber, ledger, 9);
          while (!run.finished(survivor)) read_some(subscriber, ledger, 100, 1ms);
        });
        if (!run.run()) return;
        model::resume(stopped);
        if (!run.run()) return;
        account_for_all(run, topic, subscriber, ledger, published);
      })));
  EXPECT_GT(revoked, 10U);
}

// Claims are revoked at once, while their owners are about to commit them.
void revoke_at_once(model::Execution& run, std::uint32_t& revoked) {
  SmallTopic topic{{.revoke_after = 1ns}};
  std::map<std::uint64_t, Mark> published;
  Ledger ledger;
  auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
  for (std::uint32_t who = 0; who < 2; ++who) {
    run.thread("publisher " + std::to_string(who), [&, who] {
      auto publisher = must(topic->publisher(), "publisher");
      for (std::uint32_t i = 0; i < 3; ++i) {
        revoked += publish_revocable(publisher, who, 1, kSmall + 32 * (i % 2), published, i);
      }
    });
  }
  run.thread("subscriber", [&] { read_until(subscriber, ledger, 6); });
  if (!run.run()) return;
  account_for_all(run, topic, subscriber, ledger, published);
}

TEST(Repair, EitherTheOwnerOrTheRevokerWins) {
  std::uint32_t revoked = 0;
  EXPECT_TRUE(
      model::holds(model::explore({.name = "revoke at once", .executions = 6000},
                                  [&](model::Execution& run) { revoke_at_once(run, revoked); })));
  EXPECT_GT(revoked, 100U);
}

// A check of a publisher's announced claim must return the values of one claim, not a mixture of
// two. The size of record n is computed from n.
void read_claims(model::Execution& run) {
  SmallTopic topic;
  auto directory = must(detail::open_directory(SmallTopic::directory(), false), "directory");
  auto topic_directory = must(detail::open_topic_directory(directory, "t"), "topic directory");
  const auto shared = must(detail::MappedTopic::attach(topic_directory), "attach");
  const auto size_of = [](std::uint64_t record) { return kSmall * (1 + 2 * (record % 3)); };
  std::map<std::uint64_t, Mark> published;
  auto publisher = must(topic->publisher(), "publisher");
  run.thread("publisher", [&] {
    for (std::uint32_t i = 0; i < 6; ++i) publish(publisher, 0, 1, size_of(i), published, i);
  });
  run.thread("onlooker", [&] {
    const detail::ClaimLayout& layout = shared->geometry().claim_layout;
    for (int i = 0; i < 6; ++i) {
      const auto facts = detail::read_claim(shared->partition(0).slots[0]);
      if (!facts || facts->claim_phase() == detail::kIdle) continue;
      const std::uint64_t record = layout.records(facts->word);
      model::check(layout.granules(facts->increment) == detail::granules_for(size_of(record)),
                   "facts of two claims");
    }
  });
  run.run();
}

TEST(Repair, AClaimIsReadWhole) {
  EXPECT_TRUE(model::holds(model::explore({.name = "facts"}, read_claims)));
}

// ---- Why the edges are needed -------------------------------------------------------------------

TEST(RepairEdges, TheIntentIsOfItsPhase) {
  for (const Side side : {Side::store, Side::load}) {
    EXPECT_TRUE(model::breaks(
        model::explore({.name = "weakened", .executions = 20'000}, [&](model::Execution& run) {
          model::weaken(Edge::intent, side);
          read_claims(run);
        })));
  }
}

}  // namespace
}  // namespace leat
