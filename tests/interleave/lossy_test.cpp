// If this failed, a lossy subscriber that is overtaken during a read could deliver a damaged
// record, or report a wrong number of lost ones.
#include <gtest/gtest.h>

#include <iterator>
#include <set>

#include "small_topic.hpp"

namespace leat {
namespace {

void overtake(model::Execution& run, std::uint32_t publishers, const SubscriberOptions& options,
              bool stop_the_reader, std::uint64_t* lost = nullptr) {
  SmallTopic topic{{.capacity_bytes = 5 * kSegment, .policy = Policy::overwrite}};
  std::map<std::uint64_t, Mark> published;
  Ledger ledger;
  auto subscriber = must(topic->subscriber(options), "subscriber");
  for (std::uint32_t who = 0; who < publishers; ++who) {
    run.thread("publisher " + std::to_string(who), [&, who] {
      auto publisher = must(topic->publisher(), "publisher");
      publish_revocable(publisher, who, 16 / publishers, kHalf, published);
    });
  }
  const auto reader =
      run.thread("subscriber", [&] { read_until(subscriber, ledger, 16, options.in_place); });
  if (stop_the_reader) {  // During a read; everything is overwritten before it continues.
    run.suspend_at(reader, model::random(200));
    if (!run.run()) return;
    model::resume(reader);
  }
  if (!run.run()) return;
  for (const auto& [offset, reason] : ledger.gaps())
    model::check(reason == GapReason::overwritten, "reason");
  for (const auto& [offset, mark] : ledger.records())
    model::check(published.at(offset) == mark, "another record");
  if (lost != nullptr) *lost += ledger.gaps().size();
}

constexpr SubscriberOptions kCopies = {.from = From::beginning, .gating = false, .spin = 0ns};
constexpr SubscriberOptions kPins = {
    .from = From::beginning, .gating = false, .in_place = true, .spin = 0ns};

TEST(Lossy, CopiesAreWholeOrCountedAsLost) {
  std::uint64_t lost = 0;
  for (const std::uint32_t publishers : {1U, 2U}) {
    EXPECT_TRUE(model::holds(
        model::explore({.name = "copies", .executions = 4000}, [&](model::Execution& run) {
          overtake(run, publishers, kCopies, model::random(2) == 0, &lost);
        })));
  }
  EXPECT_GT(lost, 100U);
}

TEST(Lossy, PinnedRecordsStay) {
  std::uint64_t lost = 0;
  EXPECT_TRUE(
      model::holds(model::explore({.name = "pins", .executions = 4000}, [&](model::Execution& run) {
        overtake(run, 1, kPins, model::random(2) == 0, &lost);
      })));
  EXPECT_GT(lost, 100U);
}

// Somebody looks for gaps while they are overwritten.
void look_for_gaps(model::Execution& run, std::uint64_t* found) {
  SmallTopic topic{{.capacity_bytes = 3 * kSegment, .policy = Policy::overwrite}};
  std::set<std::uint64_t> aborted;
  std::map<std::uint64_t, Mark> published;
  const auto look = [&] {
    const PartitionInfo info = topic->info().partitions[0];
    for (const OffsetRange& gap : info.gaps) {
      for (std::uint64_t offset = gap.begin; offset < gap.end; ++offset, ++*found)
        model::check(aborted.contains(offset), "no gap");
    }
  };
  run.thread("publisher", [&] {
    auto publisher = must(topic->publisher(), "publisher");
    for (std::uint32_t i = 0; i < 3; ++i) {  // Each fills a segment.
      auto claim = must(publisher.try_claim(kHalf), "claim");
      aborted.insert(claim.offset());
      model::check(claim.abort().has_value(), "abort");
      publish(publisher, 0, 1, kHalf, published, i);
    }
    for (std::uint32_t i = 0; i < 3; ++i) {  // A batch where the gaps were.
      auto batch = must(publisher.batch(), "batch");
      for (int k = 0; k < 3; ++k)
        model::check(batch.add(std::string(kHalf / 4, 'x')).has_value(), "add");
      const std::uint64_t first = must(batch.commit(), "commit");
      for (std::uint32_t k = 0; k < 3; ++k) published[first + k] = {};
      publish(publisher, 0, 1, kHalf, published, 3 + i);
    }
  });
  run.thread("looker", [&] {
    for (int i = 0; i < 4; ++i) look();
  });
  if (!run.run()) return;
  const PartitionInfo info = topic->info().partitions[0];
  const auto left = [&](const auto& offsets) {
    return static_cast<std::uint64_t>(
        std::distance(offsets.lower_bound(info.start), offsets.end()));
  };
  model::check(info.count_from(0) == left(published), "not all gaps are found");
}

TEST(Lossy, GapsAreFoundWhereTheyAre) {
  std::uint64_t found = 0;
  EXPECT_TRUE(
      model::holds(model::explore({.name = "gaps", .executions = 2000},
                                  [&](model::Execution& run) { look_for_gaps(run, &found); })));
  EXPECT_GT(found, 1000U);
}

// ---- Why the edges are needed -------------------------------------------------------------------

testing::AssertionResult breaks_weakened(Edge edge, Side side, const SubscriberOptions& options) {
  return model::breaks(
      model::explore({.name = "weakened", .executions = 20'000}, [&](model::Execution& run) {
        model::weaken(edge, side);
        overtake(run, 1, options, true);
      }));
}

TEST(LossyEdges, StartMovesBeforeBytesAreOverwritten) {
  EXPECT_TRUE(breaks_weakened(Edge::overwrite, Side::fence, kCopies));
}

TEST(LossyEdges, ThePinIsSetBeforeStartIsLookedAt) {
  EXPECT_TRUE(breaks_weakened(Edge::retire, Side::rmw, kPins));
}

}  // namespace
}  // namespace leat
