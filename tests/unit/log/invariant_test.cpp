// If this failed, a process that writes nonsense into a topic's shared words or records could make
// readers or publishers crash or hang. They must return `corrupt` soon.
//
// docs/internals/impossible-states.md lists the places; those of groups are tested in
// tests/unit/group/invariant_test.cpp.
#include "leat/log/repair.hpp"
#include "testing.hpp"

namespace leat {
namespace {

using namespace detail;

constexpr auto kSoon = 10s;  // Only ends a test that fails.

class ScribbledTopic {
 public:
  explicit ScribbledTopic(const TopicOptions& options = {})
      : topic_{options}, publisher_{must(topic_->publisher())} {}

  const TestTopic& topic() { return topic_; }
  Publisher& publisher() { return publisher_; }
  PartitionView words() { return topic_.shared().partition(0); }
  SegmentEntry& entry(std::uint64_t segment) { return words().entry(segment); }
  const ClaimLayout& layout() { return topic_.shared().geometry().claim_layout; }
  // The header at a granule of the first segment.
  RecordHeader& header(std::uint64_t granule) {
    return reinterpret_cast<RecordHeader*>(must(topic_.shared().records_for_writing()))[granule];
  }
  std::byte* payload(std::uint64_t granule) {
    return reinterpret_cast<std::byte*>(&header(granule) + 1);
  }

  // Every kind of subscriber must end with `corrupt`, and deliver nothing more after that.
  void expect_corrupt() {
    for (const SubscriberOptions& options :
         {SubscriberOptions{.from = From::beginning},
          SubscriberOptions{.from = From::beginning, .gating = false},
          SubscriberOptions{.from = From::beginning, .gating = false, .in_place = true}}) {
      auto subscriber = topic_->subscriber(options);
      if (!subscriber) {
        EXPECT_EQ(code(subscriber), Errc::corrupt);
        continue;
      }
      for (int again = 0; again < 2; ++again) {
        Errc last = Errc::ok;
        while (last == Errc::ok) last = code(subscriber->receive(kSoon));
        EXPECT_EQ(last, Errc::corrupt);
      }
    }
  }
  // Publishes until an error; returns its code.
  Errc publish_on() {
    for (int i = 0; i < 100; ++i) {
      auto published = publisher_.publish(kHalfText, kSoon);
      if (!published) return code(published);
    }
    return Errc::ok;
  }

 private:
  TestTopic topic_;
  Publisher publisher_;
};

void publish_batch(Publisher& publisher) {
  auto batch = must(publisher.batch());
  for (int i = 0; i < 3; ++i) must(batch.add("x"));
  must(batch.commit());
}

// ---- Records --------------------------------------------------------------------------------------

TEST(Invariant, ARecordThatDoesNotFitIsCorrupt) {
  ScribbledTopic scribbled;
  must(scribbled.publisher().publish("x"));
  RecordHeader& header = scribbled.header(0);
  for (const std::uint32_t claim : {0U, 257U, ~kBatchClaim}) {
    store_relaxed(header.claim, claim);
    scribbled.expect_corrupt();
  }
  store_relaxed(header.claim, 2U);
  store_relaxed(header.detail, 1000U);
  scribbled.expect_corrupt();
}

TEST(Invariant, AKindThatIsNoneIsCorrupt) {
  ScribbledTopic scribbled;
  must(scribbled.publisher().publish("x"));
  RecordHeader& header = scribbled.header(0);
  store_relaxed(header.commit, load_relaxed(header.commit) ^ 0x40);
  scribbled.expect_corrupt();
}

TEST(Invariant, AFrameOfABatchThatDoesNotFitIsCorrupt) {
  ScribbledTopic scribbled;
  publish_batch(scribbled.publisher());
  auto* frame = reinterpret_cast<BatchFrame*>(scribbled.payload(0) + sizeof(BatchHeader));
  store_relaxed(frame->detail, kDetailLength);
  scribbled.expect_corrupt();
}

TEST(Invariant, MoreRecordsThanABatchHasBytesForAreCorrupt) {
  ScribbledTopic scribbled;
  publish_batch(scribbled.publisher());
  auto* header = reinterpret_cast<BatchHeader*>(scribbled.payload(0));
  for (const std::uint32_t count : {0U, 5U, ~0U}) {
    store_relaxed(header->count, count);
    scribbled.expect_corrupt();
  }
}

TEST(Invariant, AKeyLargerThanItsRecordIsCorrupt) {
  ScribbledTopic scribbled;
  must(scribbled.publisher().publish({.key = "key", .value = "x"}));
  store_relaxed(reinterpret_cast<std::uint32_t&>(*scribbled.payload(0)), 1000U);
  scribbled.expect_corrupt();
}

TEST(Invariant, HeadersThatAreCutOffAreCorrupt) {
  ScribbledTopic scribbled;
  const Header headers[] = {{"name", "value"}};
  must(scribbled.publisher().publish({.headers = headers, .value = "x"}));
  // headers_size, name_size, …: the name reaches beyond the headers.
  store_relaxed(reinterpret_cast<std::uint32_t&>(*(scribbled.payload(0) + 4)), 1000U);
  scribbled.expect_corrupt();
}

// ---- Segments -------------------------------------------------------------------------------------

TEST(Invariant, ASegmentThatBeginsBeforeTheLastOneEndsIsCorrupt) {
  ScribbledTopic scribbled;
  for (int i = 0; i < 3; ++i) must(scribbled.publisher().publish(kHalfText));
  store_relaxed(scribbled.entry(2).base_offset, std::uint64_t{1});
  scribbled.expect_corrupt();
}

TEST(Invariant, ASegmentInMemoryThatIsNoneIsCorrupt) {
  ScribbledTopic scribbled;
  for (int i = 0; i < 3; ++i) must(scribbled.publisher().publish(kHalfText));
  store_relaxed(scribbled.entry(2).map, 2ULL << kPhysicalBits | 1000);
  scribbled.expect_corrupt();
  store_relaxed(scribbled.entry(1).map, 1ULL << kPhysicalBits | 4);
  scribbled.expect_corrupt();
}

TEST(Invariant, AnOldestSegmentThatIsNoneIsCorrupt) {
  for (const std::uint64_t start : {std::uint64_t{77}, ~std::uint64_t{0}}) {
    ScribbledTopic scribbled;
    must(scribbled.publisher().publish("x"));
    auto lossy = must(scribbled.topic()->subscriber({.from = From::beginning, .gating = false}));
    store_relaxed(scribbled.words().control->oldest_segment, start);
    EXPECT_EQ(code(lossy.poll(10, kIgnore)), Errc::corrupt);
    scribbled.expect_corrupt();
  }
}

TEST(Invariant, ASegmentPreparedInMemoryThatIsNoneIsCorrupt) {
  ScribbledTopic scribbled;
  store_relaxed(scribbled.entry(2).map, 2ULL << kPhysicalBits | 1000);
  EXPECT_EQ(scribbled.publish_on(), Errc::corrupt);
}

TEST(Invariant, AClaimInASegmentWhoseEntryIsAnothersIsCorrupt) {
  ScribbledTopic scribbled;
  store_relaxed(scribbled.entry(1).map, 9ULL << kPhysicalBits);
  EXPECT_EQ(scribbled.publish_on(), Errc::corrupt);
}

// ---- The claim word -------------------------------------------------------------------------------

TEST(Invariant, ClaimsBeyondTheirSegmentAreCorrupt) {
  ScribbledTopic scribbled;
  store_relaxed(scribbled.words().control->claim, scribbled.layout().pack(1, 3, 300));
  EXPECT_EQ(code(scribbled.topic()->subscriber()), Errc::corrupt);
}

TEST(Invariant, AClaimWordOfAnotherSegmentIsCorrupt) {
  ScribbledTopic scribbled;
  store_relaxed(scribbled.words().control->claim, scribbled.layout().pack(7, 0, 256));
  EXPECT_EQ(scribbled.publish_on(), Errc::corrupt);
  EXPECT_EQ(code(scribbled.topic()->subscriber()), Errc::corrupt);
}

// A subscriber from a time needs the end of the log.
TEST(Invariant, AnEndThatCannotBeReadIsCorrupt) {
  ScribbledTopic scribbled{{.timestamps = true}};
  must(scribbled.publisher().publish("old"));
  store_relaxed(scribbled.words().control->claim, scribbled.layout().pack(7, 0, 256));
  EXPECT_EQ(code(scribbled.topic()->subscriber({.from = From::time_ms(1)})), Errc::corrupt);
  EXPECT_EQ(code(scribbled.topic()->group("g", {.from = From::time_ms(1)})), Errc::corrupt);
}

TEST(Invariant, ACurrentSegmentThatIsNoneIsCorrupt) {
  ScribbledTopic scribbled;
  store_relaxed(scribbled.words().control->current, std::uint64_t{77});
  EXPECT_EQ(scribbled.publish_on(), Errc::corrupt);
  EXPECT_EQ(code(scribbled.topic()->subscriber()), Errc::corrupt);
  (void)scribbled.topic()->info();
}

// A hole without an owner, in the open segment and in a closed one.
TEST(Invariant, ARecordThatWasClaimedAndIsNobodysIsCorrupt) {
  ScribbledTopic scribbled;
  must(scribbled.publisher().publish(kHalfText));
  store_relaxed(scribbled.header(0).commit, std::uint64_t{0});
  scribbled.expect_corrupt();
  for (int i = 0; i < 3; ++i) must(scribbled.publisher().publish(kHalfText));
  scribbled.expect_corrupt();
}

TEST(Invariant, AClosedSegmentsEndThatIsNoneIsCorrupt) {
  ScribbledTopic scribbled;
  for (int i = 0; i < 3; ++i) must(scribbled.publisher().publish(kHalfText));
  store_relaxed(scribbled.header(0).commit, std::uint64_t{0});
  store_relaxed(scribbled.entry(2).previous_end, std::uint64_t{0});
  scribbled.expect_corrupt();
}

// The claims end behind the segment, and in its last granule a record that does not end there is
// claimed, committed, or left open by a dead publisher. Here the segment is the last one in memory.
TEST(Invariant, ClaimsBeyondTheLastSegmentAreNotFollowed) {
  ScribbledTopic scribbled{{.capacity_bytes = 2 * kSegment, .segment_bytes = kSegment}};
  for (int i = 0; i < 3; ++i) must(scribbled.publisher().publish(kHalfText));
  const Geometry& geometry = scribbled.topic().shared().geometry();
  const ClaimLayout& layout = scribbled.layout();
  constexpr std::uint64_t kLast = kSegment / kGranule - 1;
  store_relaxed(scribbled.words().control->claim, layout.pack(2, 5, kLast + 3));
  RecordHeader& header = scribbled.header(2 * kLast + 1);
  const std::uint64_t tag = position_tag(2 * (kLast + 1) + kLast, geometry.key);
  Repair repair{scribbled.topic().shared(), 0, 0};
  EXPECT_EQ(code(repair.fill_hole({2, 3, kLast}, false)), Errc::corrupt);
  store_relaxed(header.claim, 2U | kBatchClaim);
  store_relaxed(header.commit, tag | static_cast<std::uint64_t>(RecordKind::batch));
  EXPECT_EQ(code(repair.fill_hole({2, 3, kLast - 1}, false)), Errc::corrupt);
  // Within the segment, but a batch of one granule: its number of records would be behind the segment.
  store_relaxed(scribbled.words().control->claim, layout.pack(2, 5, kLast + 1));
  store_relaxed(header.commit, std::uint64_t{0});
  Child dead{[&] {
    auto publisher = must(scribbled.topic().open_again().publisher());
    PartitionSlot& slot = scribbled.words().slots[1];  // The next after the one in use.
    store_relaxed(slot.claim_word, layout.pack(2, 3, kLast));
    store_relaxed(slot.claim_increment, layout.increment(2, 1));
    store_relaxed(slot.claim_segment, std::uint64_t{2});
    store_relaxed(slot.phase, std::uint64_t{4} | kClaimed);
    ::_exit(0);  // Without leaving the topic.
    return 0;
  }};
  ASSERT_EQ(dead.join(), 0);
  EXPECT_NE(must(repair.fill_hole({2, 3, kLast}, false)), HoleState::filled);
}

// An exclusive publisher does not go on in a segment that it could not enter: any address would be
// that segment's.
TEST(Invariant, ASegmentThatCannotBeEnteredIsNotClaimedIn) {
  const TestTopic topic;
  const PartitionView words = topic.shared().partition(0);
  store_relaxed(words.entry(1).map, 1ULL << kPhysicalBits | kPhysicalMask);
  auto publisher = must(topic->publisher({.exclusive = true}));
  for (const std::uint64_t granules : {0U, 50U, 100U}) {
    store_relaxed(words.control->claim,
                  topic.shared().geometry().claim_layout.pack(1, 1, granules));
    EXPECT_EQ(code(publisher.publish("x")), Errc::corrupt);
    EXPECT_EQ(code(publisher.try_claim(1)), Errc::corrupt);
    auto batch = must(publisher.batch());
    must(batch.add("x"));
    EXPECT_EQ(code(batch.commit()), Errc::corrupt);
  }
}

// ---- The end of the numbers -----------------------------------------------------------------------

// Offsets continue at 0 after 2^64 - 1, in topics whose readers need not wait for a disk.
TEST(Invariant, TheLargestOffsetIsAnOffset) {
  for (const bool gating : {true, false}) {
    const TestTopic topic;
    auto publisher = must(topic->publisher());
    must(publisher.publish("x"));
    must(publisher.publish("y"));
    store_relaxed(topic.shared().partition(0).entry(1).base_offset, ~std::uint64_t{0});
    auto subscriber = must(topic->subscriber({.from = From::beginning, .gating = gating}));
    EXPECT_EQ(code(subscriber.wait(kSoon)), Errc::ok);
    EXPECT_EQ(drain(subscriber), (Log{std::to_string(~std::uint64_t{0}) + " x", "0 y"}));
  }
}

// ---- Wrong values that are bounded without an error ---------------------------------------------

TEST(Invariant, AParticipantOfNoRoleIsTakenForOneThatHoldsNothing) {
  ScribbledTopic scribbled{{.policy = Policy::fail}};
  store_relaxed(scribbled.topic().shared().participant(5).state, make_state(12345, {}) | 0xee);
  store_relaxed(scribbled.topic().shared().header().participant_high, ~0U);
  EXPECT_EQ(scribbled.publish_on(), Errc::ok);
}

TEST(Invariant, MemoryOfASegmentFarAheadIsTakenForUsed) {
  ScribbledTopic scribbled{{.policy = Policy::fail}};
  for (std::uint64_t i = 1; i < 4; ++i)
    store_relaxed(scribbled.words().physical[i].last_segment, std::uint64_t{1} << 40);
  EXPECT_EQ(scribbled.publish_on(), Errc::full);
}

}  // namespace
}  // namespace leat
