// If this failed, a topic could be deleted while somebody uses it, or an exclusive publisher could
// work beside another publisher and overwrite its records.
#include <gtest/gtest.h>

#include "small_topic.hpp"

namespace leat {
namespace {

DeleteOptions remove_options(bool force) {
  return {.force = force, .directory = SmallTopic::directory()};
}

// One thread opens the topic and joins while another deletes it.
void delete_and_join(model::Execution& run) {
  SmallTopic topic;
  bool joined = false, left = false, removed = false;
  run.thread("deleter", [&] {
    const bool left_before = left;
    const auto result = Topic::delete_topic("t", remove_options(false));
    model::check(result || result.error().code == Errc::busy,
                 "remove: " + describe(result.error()));
    removed = result.has_value();
    model::check(!removed || !joined || left || left_before, "deleted under a living participant");
  });
  run.thread("joiner", [&] {
    auto opened = Topic::open("t", Deadline::immediate(), SmallTopic::directory());
    if (!opened) {
      model::check(opened.error().code == Errc::not_found, "open: " + describe(opened.error()));
      return;
    }
    auto publisher = opened->publisher();
    if (!publisher) {
      model::check(publisher.error().code == Errc::deleted,
                   "publisher: " + describe(publisher.error()));
      return;
    }
    joined = true;
    model::check(!removed, "joined a deleted topic");
    const auto offset = publisher->publish(payload_of({}, kSmall));
    model::check(offset.has_value(), "publish: " + describe(offset.error()));
    left = true;
  });
  run.run();
}

TEST(Delete, NeverUnderALivingParticipant) {
  EXPECT_TRUE(
      model::holds(model::explore({.name = "delete", .executions = 4000}, delete_and_join)));
}

// With force, all participants get `deleted`, and a new topic of the same
// name is independent of the old.
TEST(Delete, ByForceAndMadeAgain) {
  EXPECT_TRUE(model::holds(model::explore({.name = "force"}, [](model::Execution& run) {
    SmallTopic topic;
    run.thread("publisher", [&] {
      auto publisher = topic->publisher();
      while (publisher) {
        const auto offset = publisher->publish(payload_of({}, kSmall));
        if (offset) continue;
        model::check(offset.error().code == Errc::deleted, "publish: " + describe(offset.error()));
        return;
      }
      model::check(publisher.error().code == Errc::deleted,
                   "publisher: " + describe(publisher.error()));
    });
    run.thread("subscriber", [&] {
      auto subscriber = topic->subscriber(from_beginning());
      if (!subscriber) return;
      auto record = subscriber->receive();
      while (record) record = subscriber->receive();
      model::check(record.error().code == Errc::deleted, "receive: " + describe(record.error()));
    });
    run.thread("deleter", [&] {
      const auto removed = Topic::delete_topic("t", remove_options(true));
      model::check(removed.has_value(), "remove: " + describe(removed.error()));
      auto again = Topic::create("t", {.capacity_bytes = 2 * kSegment,
                                       .segment_bytes = kSegment,
                                       .directory = SmallTopic::directory()});
      model::check(again.has_value(), "create: " + describe(again.error()));
      model::check(again->info().partitions.at(0).end == 0, "the new topic is empty");
    });
    run.run();
  })));
}

TEST(Delete, OfTwoDeletersOneDoesIt) {
  EXPECT_TRUE(model::holds(model::explore({.name = "two deleters"}, [](model::Execution& run) {
    SmallTopic topic;
    int removed = 0;
    for (int i = 0; i < 2; ++i) {
      run.thread("deleter " + std::to_string(i), [&] {
        const auto result = Topic::delete_topic("t", remove_options(false));
        const Errc code = result.error().code;
        model::check(
            result || code == Errc::busy || code == Errc::not_found || code == Errc::deleted,
            "remove: " + describe(result.error()));
        removed += result ? 1 : 0;
      });
    }
    if (!run.run()) return;
    model::check(removed >= 1, "nobody deleted it");
    model::check(!Topic::open("t", Deadline::immediate(), SmallTopic::directory()),
                 "it is still there");
  })));
}

// A deleter that dies halfway blocks nobody, and another one finishes the deletion.
TEST(Delete, ADeadDeleterBlocksNobody) {
  EXPECT_TRUE(model::holds(model::explore({.name = "dead deleter"}, [](model::Execution& run) {
    SmallTopic topic;
    const auto victim =
        run.thread("victim", [&] { (void)Topic::delete_topic("t", remove_options(false)); });
    run.kill_at(victim, model::random(30));
    run.thread("joiner", [&] {
      auto publisher = topic->publisher();
      model::check(publisher || publisher.error().code == Errc::deleted,
                   "publisher: " + describe(publisher.error()));
    });
    if (!run.run()) return;
    const auto removed = Topic::delete_topic("t", remove_options(true));
    model::check(removed || removed.error().code == Errc::not_found,
                 "remove: " + describe(removed.error()));
  })));
}

// A deleter dies after the deletion is decided and before it has woken
// sleepers. The next one wakes them.
TEST(Delete, ADeadDeleterLeavesNobodyAsleep) {
  EXPECT_TRUE(model::holds(model::explore({.name = "sleepers"}, [](model::Execution& run) {
    SmallTopic topic;
    auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
    run.thread("subscriber", [&] {
      const auto record = subscriber.receive();
      model::check(record.error().code == Errc::deleted, "receive: " + describe(record.error()));
    });
    const auto victim =
        run.thread("victim", [&] { (void)Topic::delete_topic("t", remove_options(true)); });
    run.kill_at(victim, model::random(40));
    run.thread("next", [&] {
      while (!run.finished(victim) && !run.killed(victim)) model::yield();
      const auto removed = Topic::delete_topic("t", remove_options(true));
      model::check(removed || removed.error().code == Errc::not_found,
                   "remove: " + describe(removed.error()));
    });
    run.run();
  })));
}

// ---- Exclusive publishers -----------------------------------------------------------------------

// An exclusive and a shared publisher, or two exclusive ones, must never be
// active at the same time.
void exclude(model::Execution& run, bool both_exclusive) {
  SmallTopic topic;
  bool inside[2] = {};
  std::map<std::uint64_t, Mark> published;
  for (std::uint32_t who = 0; who < 2; ++who) {
    run.thread((who == 0 || both_exclusive ? "exclusive " : "shared ") + std::to_string(who),
               [&, who] {
                 auto publisher = topic->publisher({.exclusive = who == 0 || both_exclusive});
                 if (!publisher) {
                   model::check(publisher.error().code == Errc::busy,
                                "publisher: " + describe(publisher.error()));
                   return;
                 }
                 model::check(!inside[1 - who], "two at once");
                 inside[who] = true;
                 publish(*publisher, who, 2, kSmall, published);
                 inside[who] = false;
               });
  }
  if (!run.run()) return;
  auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
  Ledger ledger;
  read_until(subscriber, ledger, published.size());
  ledger.check_published(published);
}

TEST(Exclusive, NeverBesideAnother) {
  for (const bool both : {false, true}) {
    EXPECT_TRUE(model::holds(model::explore({.name = "exclusive", .executions = 4000},
                                            [&](model::Execution& run) { exclude(run, both); })));
  }
}

// ---- Why the edges are needed -------------------------------------------------------------------

testing::AssertionResult breaks_weakened(const std::vector<std::pair<Edge, Side>>& edges,
                                         const model::Body& body) {
  return model::breaks(
      model::explore({.name = "weakened", .executions = 20'000}, [&](model::Execution& run) {
        for (const auto& [edge, side] : edges) model::weaken(edge, side);
        body(run);
      }));
}

TEST(DeleteEdges, TheMarkIsSetBeforeTheSlotsAreLookedAt) {
  EXPECT_TRUE(breaks_weakened({{Edge::topic_state, Side::rmw}}, delete_and_join));
  EXPECT_TRUE(breaks_weakened({{Edge::slot, Side::rmw}}, delete_and_join));
}

TEST(ExclusiveEdges, TheWordIsSetBeforeTheSlotsAreLookedAt) {
  const auto body = [](model::Execution& run) { exclude(run, false); };
  EXPECT_TRUE(breaks_weakened({{Edge::exclusive, Side::rmw}}, body));
  EXPECT_TRUE(breaks_weakened({{Edge::slot, Side::rmw}}, body));
}

}  // namespace
}  // namespace leat
