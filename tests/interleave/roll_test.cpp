// If this failed, publishers that move on to the next segment at the same time could lose or
// overwrite records, or one that waits for room could wait forever.
#include <gtest/gtest.h>

#include "leat/log/segments.hpp"
#include "small_topic.hpp"

namespace leat {
namespace {

// Publishers publish more than one lap of a topic with `segments` segments; a gating subscriber
// blocks them when it is slow. Three records fill a segment.
void go_round(model::Execution& run, std::uint32_t segments, std::uint32_t publishers,
              const PublisherOptions& options = {}) {
  SmallTopic topic{{.capacity_bytes = segments * kSegment}};
  const std::uint32_t each = (segments + 1) * 3 / publishers + 1;
  std::map<std::uint64_t, Mark> published;
  Ledger ledger;
  auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
  for (std::uint32_t who = 0; who < publishers; ++who) {
    run.thread("publisher " + std::to_string(who), [&, who] {
      auto publisher = must(topic->publisher(options), "publisher");
      publish(publisher, who, each, kThird, published);
    });
  }
  run.thread("subscriber", [&] { read_until(subscriber, ledger, publishers * each); });
  if (!run.run()) return;
  ledger.check_published(published);
}

TEST(Roll, TwoPublishersGoRound) {
  EXPECT_TRUE(model::holds(
      model::explore({.name = "round 2"}, [](model::Execution& run) { go_round(run, 2, 2); })));
  EXPECT_TRUE(model::holds(
      model::explore({.name = "round 3"}, [](model::Execution& run) { go_round(run, 3, 2); })));
}

TEST(Roll, ThreePublishersHelpEachOther) {
  EXPECT_TRUE(model::holds(
      model::explore({.name = "three"}, [](model::Execution& run) { go_round(run, 2, 3); })));
}

TEST(Roll, AnExclusivePublisherGoesRound) {
  EXPECT_TRUE(model::holds(model::explore({.name = "exclusive"}, [](model::Execution& run) {
    go_round(run, 2, 1, {.exclusive = true});
  })));
}

// Nobody holds room: the oldest segment is reused while other publishers still claim.
TEST(Roll, WithoutReadersNobodyWaits) {
  EXPECT_TRUE(model::holds(model::explore(
      {.name = "no readers", .needless_timeouts_fail = true}, [](model::Execution& run) {
        SmallTopic topic{{.capacity_bytes = 4 * kSegment}};
        std::map<std::uint64_t, Mark> published;
        std::uint32_t revoked = 0;  // Claims that others revoked meanwhile.
        for (std::uint32_t who = 0; who < 2; ++who) {
          run.thread("publisher " + std::to_string(who), [&, who] {
            auto publisher = must(topic->publisher(), "publisher");
            revoked += publish_revocable(publisher, who, 8, kThird, published);
          });
        }
        if (!run.run()) return;
        model::check(published.size() + revoked == 16, "something is missing");
        // The remaining records are complete, and end with the last one.
        auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
        Ledger ledger{subscriber.offset()};
        read_until(subscriber, ledger, 16);
        for (const auto& [offset, mark] : ledger.records())
          model::check(published.at(offset) == mark, "another record");
      })));
}

// A publisher moves on until the entries of segments 1 and 2 get segments 9 and 10. Somebody who reads
// them meanwhile must notice.
void reuse_entries(model::Execution& run) {
  SmallTopic topic{{.capacity_bytes = 3 * kSegment, .policy = Policy::overwrite}};
  const auto shared = TopicTesting::shared_pointer(*topic);
  const detail::PartitionView view = shared->partition(0);
  auto publisher = must(topic->publisher(), "publisher");
  const auto publish_segments = [&](int count) {
    for (int i = 0; i < 2 * count; ++i)
      (void)must(publisher.publish(std::string(kHalf, 'x')), "publish");
  };
  publish_segments(7);
  run.thread("publisher", [&] { publish_segments(3); });
  run.thread("reader", [&] {
    for (int i = 0; i < 3; ++i) {
      for (const std::uint64_t segment : {1, 2}) {
        auto found = detail::find_segment(*shared, view, segment);
        model::check(!found || found->base_offset == 2 * (segment - 1), "another segment's base");
      }
      auto end = detail::find_claims_end(shared->geometry(), view, 1);
      model::check(end.has_value(), "corrupt");
      model::check(!end->is_open || end->records == 2, "another segment's end");
    }
  });
  (void)run.run();
}
TEST(Roll, AnEntryIsNotReadAsThatOfTheSegmentBefore) {
  EXPECT_TRUE(model::holds(model::explore({.name = "entry"}, reuse_entries)));
}

// ---- Why the edges are needed -------------------------------------------------------------------

testing::AssertionResult breaks_weakened(Edge edge, Side side, std::uint32_t segments = 2) {
  return model::breaks(
      model::explore({.name = "weakened", .executions = 10'000}, [&](model::Execution& run) {
        model::weaken(edge, side);
        go_round(run, segments, 2);
      }));
}

TEST(RollEdges, TheMapPublishesTheBase) {
  EXPECT_TRUE(breaks_weakened(Edge::segment_map, Side::rmw));
  EXPECT_TRUE(breaks_weakened(Edge::segment_map, Side::load));
}

TEST(RollEdges, OpeningPublishesTheSegment) {
  EXPECT_TRUE(breaks_weakened(Edge::segment_open, Side::rmw));
}

TEST(RollEdges, AnEntryIsReadBeforeItIsCheckedWhoseItIs) {
  EXPECT_TRUE(model::breaks(
      model::explore({.name = "entry", .executions = 10'000}, [&](model::Execution& run) {
        model::weaken(Edge::segment_map, Side::load);
        reuse_entries(run);
      })));
}

TEST(RollEdges, AClaimTellsWhatWasAnnouncedAndOpenedBefore) {
  EXPECT_TRUE(breaks_weakened(Edge::claim, Side::rmw));
}

}  // namespace
}  // namespace leat
