// If this failed, records could be lost, delivered twice, out of order or half written. Claiming
// and committing must give dense offsets.
#include <gtest/gtest.h>

#include "small_topic.hpp"

namespace leat {
namespace {

// Publishers of three records each and a subscriber that reads along.
void publish_and_read(model::Execution& run, std::uint32_t publishers,
                      const PublisherOptions& options) {
  SmallTopic topic;
  std::map<std::uint64_t, Mark> published;
  for (std::uint32_t who = 0; who < publishers; ++who) {
    run.thread("publisher " + std::to_string(who), [&, who] {
      auto publisher = must(topic->publisher(options), "publisher");
      publish(publisher, who, 3, kSmall * (1 + who), published);
    });
  }
  Ledger ledger;
  run.thread("subscriber", [&] {
    auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
    read_until(subscriber, ledger, 3 * publishers);
  });
  if (!run.run()) return;
  model::check(
      published.size() == 3 * publishers && published.rbegin()->first == 3 * publishers - 1,
      "offsets are not dense");
  ledger.check_published(published);
}

TEST(Claim, OneSharedPublisher) {
  EXPECT_TRUE(model::holds(model::explore(
      {.name = "one"}, [](model::Execution& run) { publish_and_read(run, 1, {}); })));
}

TEST(Claim, TwoSharedPublishersTakeTurns) {
  EXPECT_TRUE(
      model::holds(model::explore({.name = "two", .executions = 4000},
                                  [](model::Execution& run) { publish_and_read(run, 2, {}); })));
}

TEST(Claim, AnExclusivePublisher) {
  EXPECT_TRUE(model::holds(model::explore({.name = "exclusive"}, [](model::Execution& run) {
    publish_and_read(run, 1, {.exclusive = true});
  })));
}

// All records of a batch are visible as soon as one of them is.
TEST(Claim, BatchesAppearWhole) {
  EXPECT_TRUE(model::holds(model::explore({.name = "batch"}, [](model::Execution& run) {
    SmallTopic topic;
    Ledger ledger;
    run.thread("publisher", [&] {
      auto publisher = must(topic->publisher(), "publisher");
      for (std::uint32_t i = 0; i < 2; ++i) {
        auto batch = must(publisher.batch(), "batch");
        for (std::uint32_t k = 0; k < 3; ++k) {
          model::check(batch.add(payload_of({0, 3 * i + k}, kSmall)).has_value(), "add");
        }
        model::check(must(batch.commit(), "commit") == 3 * i, "offset of the batch");
      }
    });
    run.thread("subscriber", [&] {
      auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
      while (ledger.next() < 6) {
        const auto polled = must(
            subscriber.poll(100, [&](const Record& record) { ledger.on_record(record, false); }),
            "poll");
        model::check(polled % 3 == 0, "part of a batch");
        if (polled == 0) model::check(subscriber.wait().has_value(), "wait");
      }
    });
    run.run();
  })));
}

// An aborted claim is a gap of one offset.
TEST(Claim, AbortedClaimsAreGaps) {
  EXPECT_TRUE(model::holds(model::explore({.name = "abort"}, [](model::Execution& run) {
    SmallTopic topic;
    Ledger ledger;
    std::map<std::uint64_t, Mark> published;
    run.thread("publisher", [&] {
      auto publisher = must(topic->publisher(), "publisher");
      publish(publisher, 0, 1, kSmall, published, 0);
      (void)must(must(publisher.try_claim(100), "claim").abort(), "abort");
      publish(publisher, 0, 1, kSmall, published, 1);
    });
    run.thread("subscriber", [&] {
      auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
      read_until(subscriber, ledger, 3);
    });
    if (!run.run()) return;
    ledger.check_published(published);
    model::check(ledger.gaps() == std::map<std::uint64_t, GapReason>{{1, GapReason::aborted}},
                 "one gap");
  })));
}

// ---- Why the edges are needed -------------------------------------------------------------------

testing::AssertionResult breaks_weakened(Edge edge, Side side, const PublisherOptions& options) {
  return model::breaks(
      model::explore({.name = "weakened", .executions = 20'000}, [&](model::Execution& run) {
        model::weaken(edge, side);
        publish_and_read(run, options.exclusive ? 1 : 2, options);
      }));
}

TEST(ClaimEdges, TheCommitWordReleasesTheRecord) {
  EXPECT_TRUE(breaks_weakened(Edge::record_ready, Side::store, {.exclusive = true}));
  EXPECT_TRUE(breaks_weakened(Edge::record_ready, Side::rmw, {}));
}

TEST(ClaimEdges, TheReaderAcquiresTheRecord) {
  EXPECT_TRUE(breaks_weakened(Edge::record_ready, Side::load, {.exclusive = true}));
  EXPECT_TRUE(breaks_weakened(Edge::record_ready, Side::load, {}));
}

}  // namespace
}  // namespace leat
