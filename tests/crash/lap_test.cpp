// The segment number in the claim word is truncated: with segments of 64 MiB it comes round after 65536
// of them. A publisher stops before its swap, or between swap and mark, until then. Claims of half a
// segment that are given up write nothing but their headers, so that takes a moment only.
#include "unit/testing.hpp"
#include "world.hpp"

namespace leat {
namespace testing {
namespace {

constexpr std::uint32_t kWalker = 0;
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

  // A publisher that stops at its first `step`, and perhaps dies at another one later. Before it stops it
  // may publish so many records.
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

  // While it stands: up to the end of the last segment before the truncated number of the first one comes
  // again.
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
    const Mark mark = ledger_->begin(kWalker);
    const auto offset = publisher_->publish(make_message(mark, size), Deadline::immediate());
    ledger_->end(mark, offset);
    ASSERT_TRUE(offset) << describe(offset.error());
  }

  // It goes on, takes so many offsets, and all that is there arrives. Returns the first of them.
  std::uint64_t go_on(Child& late, std::uint64_t offsets) {
    const std::uint64_t first = topic_->info().partitions.at(0).end;
    late.go_on();
    late.wait();
    EXPECT_TRUE(late.succeeded()) << late.describe();
    EXPECT_EQ(topic_->info().partitions.at(0).end, first + offsets);
    read_all();
    return first;
  }

  // All that is there arrives as it was published.
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

// Where its claim was a lap ago, there is the middle of another record now.
TEST_F(Lap, AClaimOfTheLapBeforeWritesNothing) {
  Child late = start_late("claim:won");
  go_round(late);
  publish(3000);
  late.go_on();
  late.wait();
  EXPECT_TRUE(late.succeeded()) << late.describe();
  read_all();
}

// The claim word is what it was when the late one announced its claim, so its swap succeeds.
TEST_F(Lap, AClaimThatWasAnnouncedALapAgoIsMadeAnew) {
  Child late = start_late("claim:announced");
  go_round(late);
  publish(1000);
  publish(200);
  EXPECT_TRUE(trail_.at(go_on(late, 2)).is_gap);  // And its record follows.
}

// It knows the segment of its first record, whose truncated number the claim word has again. Before it
// looks: it is of a later segment, and nothing is lost.
TEST_F(Lap, WhoPublishedALapAgoClaimsInTheSegmentOfNow) {
  Child late = start_late(kBetweenCalls, "", 1);
  go_round(late);
  publish(1000);
  EXPECT_FALSE(trail_.at(go_on(late, 1)).is_gap);
}

// And after it has looked and announced: its swap succeeds.
TEST_F(Lap, WhoPublishedALapAgoClaimsAnew) {
  Child late = start_late("claim:announced", "", 1);
  go_round(late);
  publish(1000);
  publish(200);
  publish(400);
  EXPECT_TRUE(trail_.at(go_on(late, 2)).is_gap);  // And its record follows.
}

// The same, but it dies before it could tell.
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

// And behind somebody else's hole, whose records are counted by where that claim begins.
TEST_F(Lap, BehindAHoleOfTheDead) {
  Child late = start_late("claim:announced", "claim:won");
  go_round(late);
  // It takes what the first record of the first lap took.
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
