// If this failed, a publisher that is stopped for a long time could, when it continues, overwrite
// another publisher's record or make subscribers stop.
//
// The segment number in the claim word is truncated. With segments of 64 MiB it
// repeats after 65536 segments. Here a publisher stops before its swap, or between
// swap and mark, until the number repeats. Getting there is quick, because the
// test claims half segments and aborts them, which writes only headers.
#include "unit/testing.hpp"
#include "world.hpp"

namespace leat {
namespace testing {
namespace {

constexpr std::uint32_t kFirst = 0;
constexpr std::uint32_t kLate = 1;

class Lap : public ::testing::Test {
 protected:
  static constexpr std::size_t kSegment = std::size_t{64} << 20;

  Lap() {
    topic_.emplace(std::move(*Topic::create("topic", {.capacity_bytes = 3 * kSegment,
                                                      .segment_bytes = kSegment,
                                                      .directory = directory_.path()})));
    publisher_.emplace(std::move(*topic_->publisher()));
    publish(1000);
    publish(200);
  }

  static constexpr const char* kBetweenCalls = "";

  // A publisher that publishes `before` records, then stops at `step`, and, when it continues, dies
  // at the step `then` if one is given.
  Child start_late(const char* step, const char* then = "", int before = 0) {
    return Child{[&, step, then, before]() -> int {
      auto topic = Topic::open("topic", Deadline::immediate(), directory_.path());
      CHILD_CHECK_OK(topic);
      auto publisher = topic->publisher();
      CHILD_CHECK_OK(publisher);
      for (int i = 0; i < before; ++i) publish_late(*publisher);
      if (step == kBetweenCalls) ::raise(SIGSTOP);
      static std::string stop_at, die_at;
      stop_at = step;
      die_at = then;
      detail::crash_point_hook = [](const char* name) {
        if (stop_at == name) {
          stop_at.clear();
          ::raise(SIGSTOP);
        } else if (stop_at.empty() && die_at == name) {
          ::raise(SIGKILL);
        }
      };
      publish_late(*publisher);
      return 0;
    }};
  }
  void publish_late(Publisher& publisher) {
    const Mark mark = ledger_->begin(kLate);
    const auto offset = publisher.publish(make_message(mark, 400), kPatience);
    ledger_->end(mark, offset);
    CHILD_CHECK_OK(offset);
  }

  // While the late publisher is stopped: claims up to the end of the last segment before the first
  // one's truncated number repeats.
  void go_round(Child& late) {
    ASSERT_EQ(late.wait(), Child::State::stopped) << late.describe();
    const detail::ClaimLayout layout = TopicTesting::shared(*topic_).geometry().claim_layout;
    const detail::PartitionControl& control = *TopicTesting::shared(*topic_).partition(0).control;
    const std::uint64_t last = std::uint64_t{1} << layout.segment_bits;
    const std::size_t half = publisher_->max_record_size();
    while (control.current < last || layout.granules(control.claim) < kSegment / 16) {
      auto claim = publisher_->try_claim(half);
      ASSERT_TRUE(claim) << describe(claim.error());
      ASSERT_TRUE(claim->abort());
      ASSERT_LE(control.current, last);
    }
  }

  void publish(std::size_t size) {
    const Mark mark = ledger_->begin(kFirst);
    const auto offset = publisher_->publish(make_message(mark, size), Deadline::immediate());
    ledger_->end(mark, offset);
    ASSERT_TRUE(offset) << describe(offset.error());
  }

  // The late publisher continues and must take this number of offsets; then everything must arrive.
  // Returns the first of these offsets.
  std::uint64_t go_on(Child& late, std::uint64_t offsets) {
    const std::uint64_t first = topic_->info().partitions.at(0).end;
    late.go_on();
    late.wait();
    EXPECT_TRUE(late.succeeded()) << late.describe();
    EXPECT_EQ(topic_->info().partitions.at(0).end, first + offsets);
    read_all();
    return first;
  }

  // Everything in the log arrives as it was published.
  void read_all() {
    auto reader = topic_->subscriber({.from = From::beginning});
    ASSERT_TRUE(reader) << describe(reader.error());
    reader->on_event([&](const Event& event) { trail_.on_event(event); });
    EXPECT_TRUE(eventually([&] {
      (void)reader->wait(3ms);
      auto polled = reader->poll(1000, [&](const Record& record) { trail_.on_record(record); });
      EXPECT_TRUE(polled) << describe(polled.error());
      return trail_.next() >= topic_->info().partitions.at(0).end;
    })) << "stuck at offset "
        << trail_.next();
    EXPECT_EQ(compare(*ledger_, trail_), std::vector<std::string>{});
  }

  TemporaryDirectory directory_;
  Shared<Ledger> ledger_;
  Trail trail_;
  std::optional<Topic> topic_;
  std::optional<Publisher> publisher_;
};

// The place of its claim, made a lap ago, is now in the middle of another record.
TEST_F(Lap, AClaimOfTheLapBeforeWritesNothing) {
  Child late = start_late("claim:won");
  go_round(late);
  publish(3000);
  late.go_on();
  late.wait();
  EXPECT_TRUE(late.succeeded()) << late.describe();
  read_all();
}

// The claim word has the same value as when the late publisher announced its
// claim, so its swap succeeds.
TEST_F(Lap, AClaimThatWasAnnouncedALapAgoIsMadeAnew) {
  Child late = start_late("claim:announced");
  go_round(late);
  publish(1000);
  publish(200);
  EXPECT_TRUE(trail_.at(go_on(late, 2)).is_gap);  // Its record follows the gap.
}

// It remembers the segment of its first record, and the claim word has that
// segment's truncated number again. Stopped before it looks, it must notice
// that this is a later segment, and loses nothing.
TEST_F(Lap, WhoPublishedALapAgoClaimsInTheSegmentOfNow) {
  Child late = start_late(kBetweenCalls, "", 1);
  go_round(late);
  publish(1000);
  EXPECT_FALSE(trail_.at(go_on(late, 1)).is_gap);
}

// The same, but stopped after it has looked and announced, so its swap succeeds.
TEST_F(Lap, WhoPublishedALapAgoClaimsAnew) {
  Child late = start_late("claim:announced", "", 1);
  go_round(late);
  publish(1000);
  publish(200);
  publish(400);
  EXPECT_TRUE(trail_.at(go_on(late, 2)).is_gap);  // Its record follows the gap.
}

// Its swap succeeds, but it dies before it can check where its claim is.
TEST_F(Lap, AClaimOfTheDeadThatWasAnnouncedALapAgoIsOneGap) {
  Child late = start_late("claim:announced", "claim:won");
  go_round(late);
  publish(1000);
  publish(200);
  const std::uint64_t before = topic_->info().partitions.at(0).end;
  late.go_on();
  late.wait();
  ASSERT_TRUE(late.was_killed()) << late.describe();
  EXPECT_EQ(topic_->info().partitions.at(0).end, before + 1);
  publish(500);
  read_all();
  EXPECT_EQ(trail_.gaps(GapReason::died), 1U);
}

// The same, but its claim follows the hole of another dead publisher. How many records that hole
// has is computed from where the late claim begins.
TEST_F(Lap, BehindAHoleOfTheDead) {
  Child late = start_late("claim:announced", "claim:won");
  go_round(late);
  // Its claim is as large as the first record of the first lap.
  Child dead{[&]() -> int {
    auto topic = Topic::open("topic", Deadline::immediate(), directory_.path());
    CHILD_CHECK_OK(topic);
    auto publisher = topic->publisher();
    CHILD_CHECK_OK(publisher);
    arm({"claim:won", 1, SIGKILL});
    (void)publisher->publish(std::string(1000, 'd'));
    return 0;
  }};
  dead.wait();
  ASSERT_TRUE(dead.was_killed()) << dead.describe();
  publish(200);
  const std::uint64_t before = topic_->info().partitions.at(0).end;
  late.go_on();
  late.wait();
  ASSERT_TRUE(late.was_killed()) << late.describe();
  EXPECT_EQ(topic_->info().partitions.at(0).end, before + 1);
  publish(500);
  read_all();
  EXPECT_EQ(trail_.gaps(GapReason::died), 2U);
}

}  // namespace
}  // namespace testing
}  // namespace leat
