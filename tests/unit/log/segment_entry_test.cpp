// If this failed, somebody who reads the entry of a segment while the entry gets its next segment could
// take that one's words for its own: a wrong offset, or `corrupt` for nothing.
#include "leat/log/segments.hpp"
#include "testing.hpp"

namespace leat {
namespace {

using namespace detail;

// Segment 1, whose memory a claim or a pin may keep, while segment 9 is the current one and a publisher
// prepares segment 9 or 10 in the entry of segment 1 or 2: it has stored the base and not yet the map.
class ReusedEntry : public ::testing::Test {
 protected:
  void prepare(std::uint64_t current) {
    for (int i = 0; i < 3; ++i) must(publisher_.publish(kHalfText));  // Opens segment 2.
    const std::uint64_t closed = layout().pack(current, 2, 256) | ClaimLayout::kClosed;
    store_relaxed(words().control->current, current);
    store_relaxed(words().control->claim, closed);
    SegmentEntry& entry = words().entry(current + 1);
    store_relaxed(entry.base_offset, 2 * current);
    store_relaxed(entry.previous_end, closed);
  }
  PartitionView words() const { return topic_.shared().partition(0); }
  const Geometry& geometry() const { return topic_.shared().geometry(); }
  const ClaimLayout& layout() const { return geometry().claim_layout; }

  const TestTopic topic_{{.capacity_bytes = 4 * kSegment}};
  Publisher publisher_ = must(topic_->publisher());
};

TEST_F(ReusedEntry, IsNotReadAsTheSegmentsOwn) {
  EXPECT_EQ(must(find_segment(topic_.shared(), words(), 1)).base_offset, 0U);
  prepare(geometry().entry_count);
  EXPECT_EQ(words().entry(1).map >> kPhysicalBits, 1U);
  EXPECT_EQ(code(find_segment(topic_.shared(), words(), 1)), Errc::corrupt);
  EXPECT_EQ(must(find_segment(topic_.shared(), words(), 2)).base_offset, 2U);
}

TEST_F(ReusedEntry, SaysNothingOfWhereClaimsEnd) {
  prepare(geometry().entry_count + 1);
  EXPECT_EQ(words().entry(2).map >> kPhysicalBits, 2U);
  EXPECT_FALSE(must(find_claims_end(geometry(), words(), 1)).is_open);
}

TEST_F(ReusedEntry, IsReadOfASegmentThatIsPreparedAndNotOpen) {
  for (int i = 0; i < 3; ++i) must(publisher_.publish(kHalfText));
  store_relaxed(words().control->current, std::uint64_t{1});
  EXPECT_EQ(must(find_segment(topic_.shared(), words(), 2)).number, 2U);
}

}  // namespace
}  // namespace leat
