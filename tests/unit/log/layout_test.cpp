// If this failed, programs built with different versions could disagree on the layout of shared
// memory, or a field of the claim word could overflow into the next one.
#include "leat/format/layout.hpp"

#include <set>

#include "testing.hpp"

namespace leat::detail {
namespace {

Geometry valid() {
  Geometry geometry;
  geometry.segment_size = 1 << 20;
  geometry.segment_count = 8;
  geometry.partition_count = 1;
  geometry.participant_capacity = 16;
  return geometry;
}

// --- The claim word ----------------------------------------------------------------------------

TEST(ClaimLayout, UsesAllBitsBelowTheClosedBit) {
  for (const std::uint64_t granules : {256ULL, 257ULL, 1ULL << 16, (1ULL << 26) - 1, 1ULL << 26}) {
    const ClaimLayout layout = ClaimLayout::for_segment(granules);
    EXPECT_EQ(layout.granule_bits + layout.record_bits + layout.segment_bits, 63u);
    // There are enough bits for a full segment, and for twice as many records
    // (a batch packs two per granule).
    EXPECT_GE(1ULL << layout.granule_bits, granules + 1);
    EXPECT_GE(1ULL << layout.record_bits, 2 * granules + 1);
  }
}

TEST(ClaimLayout, FieldsComeBackAsPacked) {
  std::mt19937_64 random{test_seed()};
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t segment_granules = 256 + random() % (1ULL << 26);
    const ClaimLayout layout = ClaimLayout::for_segment(segment_granules);
    const std::uint64_t segment = random();
    const std::uint64_t granules = random() % (segment_granules + 1);
    const std::uint64_t records = random() % (2 * segment_granules + 1);
    const std::uint64_t word = layout.pack(segment, records, granules);
    ASSERT_FALSE(ClaimLayout::is_closed(word));
    ASSERT_EQ(layout.granules(word), granules);
    ASSERT_EQ(layout.records(word), records);
    ASSERT_EQ(layout.segment(word), layout.truncate_segment(segment));
    const std::uint64_t closed = word | ClaimLayout::kClosed;
    ASSERT_TRUE(ClaimLayout::is_closed(closed));
    ASSERT_EQ(layout.granules(closed), granules);
    ASSERT_EQ(layout.records(closed), records);
    ASSERT_EQ(layout.segment(closed), layout.segment(word));
  }
}

TEST(ClaimLayout, StepAddsWithoutCarryingIntoTheNextField) {
  const ClaimLayout layout = ClaimLayout::for_segment(256);
  const std::uint64_t word = layout.pack(~0ULL, 512 - 3, 256 - 2) + layout.increment(3, 2);
  EXPECT_EQ(layout.granules(word), 256u);
  EXPECT_EQ(layout.records(word), 512u);
  EXPECT_EQ(layout.segment(word), layout.truncate_segment(~0ULL));
  EXPECT_FALSE(ClaimLayout::is_closed(word));
}

// --- Sizes that the format defines -------------------------------------------------------------

TEST(Layout, SizesAreThoseOfTheFormat) {
  EXPECT_EQ(sizeof(RecordHeader), 16u);
  EXPECT_EQ(sizeof(BatchHeader), 8u);
  EXPECT_EQ(sizeof(BatchFrame), 4u);
  EXPECT_EQ(sizeof(TopicHeader), 1024u);
  EXPECT_EQ(sizeof(ParticipantSlot), 128u);
  EXPECT_EQ(sizeof(PartitionControl), 256u);
  EXPECT_EQ(sizeof(PartitionSlot), 128u);
  EXPECT_EQ(sizeof(SegmentEntry), 32u);
  EXPECT_EQ(sizeof(PhysicalSegment), 8u);
}

TEST(Layout, WordsOfDifferentWritersAreApart) {
  EXPECT_NE(offsetof(TopicHeader, data_wake) / kLine, offsetof(TopicHeader, space_wake) / kLine);
  EXPECT_NE(offsetof(TopicHeader, space_wake) / kLine, offsetof(TopicHeader, exclusive) / kLine);
  EXPECT_GE(offsetof(TopicHeader, data_wake), kLine);
  EXPECT_NE(offsetof(PartitionControl, claim) / kLine,
            offsetof(PartitionControl, oldest_segment) / kLine);
  // These are swapped together.
  EXPECT_EQ(offsetof(PartitionControl, claim) % 16, 0u);
  EXPECT_EQ(offsetof(PartitionControl, current), offsetof(PartitionControl, claim) + 8);
}

TEST(Layout, PartsOfTheControlFileDoNotOverlap) {
  for (const std::uint32_t segments : {2U, 3U, 8U, 100U, 1024U}) {
    for (const std::uint32_t partitions : {1U, 3U}) {
      const TestTopic topic{
          {.capacity_bytes = segments * kSegment, .partitions = partitions, .participants = 5}};
      const MappedTopic& shared = topic.shared();
      const Geometry& geometry = shared.geometry();
      ASSERT_EQ(geometry.segment_count, segments);
      const auto address = [](const auto* at) { return reinterpret_cast<std::uintptr_t>(at); };
      std::uintptr_t end = address(&shared.participant(0)) + 7 * sizeof(ParticipantSlot);
      for (std::uint32_t i = 0; i < partitions; ++i) {
        const PartitionView view = shared.partition(i);
        EXPECT_EQ(address(view.control), end);
        EXPECT_EQ(address(view.control) % kLine, 0u);
        EXPECT_EQ(address(view.physical), address(view.control + 1));
        EXPECT_GE(address(view.entries), address(view.physical + segments));
        EXPECT_EQ(address(view.slots), address(view.entries + geometry.entry_count));
        EXPECT_EQ(address(view.slots) % kLine, 0u);
        EXPECT_EQ(view.records_offset, i * segments * kSegment);
        end = address(view.slots + 7);
      }
      EXPECT_LE(end - address(&shared.header()), geometry.control_size());
    }
  }
}

TEST(Layout, RecordsAreRoundedUpToGranules) {
  EXPECT_EQ(granules_for(0), 1u);
  EXPECT_EQ(granules_for(1), 2u);
  EXPECT_EQ(granules_for(16), 2u);
  EXPECT_EQ(granules_for(17), 3u);
}

// --- Tags --------------------------------------------------------------------------------------

TEST(PositionTag, DiffersForEveryPosition) {
  const std::uint64_t key = 0x1234'5678'9abc'def1;
  std::set<std::uint64_t> seen;
  for (std::uint64_t position = 0; position < 100'000; ++position) {
    const std::uint64_t tag = position_tag(position, key);
    EXPECT_EQ(tag & 0xff, 0u);  // The low byte is for the kind.
    EXPECT_TRUE(seen.insert(tag).second) << position;
  }
}

TEST(PositionTag, WrapsAfter2To56Granules) {
  constexpr std::uint64_t kWrap = 1ULL << 56;
  EXPECT_EQ(position_tag(5, 77), position_tag(kWrap + 5, 77));
  EXPECT_NE(position_tag(kWrap - 1, 77), position_tag(kWrap, 77));
  EXPECT_NE(position_tag(kWrap - 1, 77), position_tag(0, 77));
}

TEST(PositionTag, DependsOnTheKey) { EXPECT_NE(position_tag(1, 2), position_tag(1, 3)); }

// --- Geometry ----------------------------------------------------------------------------------

TEST(Geometry, LimitsAreChecked) {
  EXPECT_TRUE(valid().is_valid());
  const auto with = [](auto change) {
    Geometry geometry = valid();
    change(geometry);
    return geometry.is_valid();
  };
  EXPECT_FALSE(with([](Geometry& g) { g.segment_size = 0; }));
  EXPECT_FALSE(with([](Geometry& g) { g.segment_size = 2048; }));
  EXPECT_FALSE(with([](Geometry& g) { g.segment_size += 16; }));
  EXPECT_FALSE(with([](Geometry& g) { g.segment_size = (1ULL << 30) + kPage; }));
  EXPECT_TRUE(with([](Geometry& g) { g.segment_size = 1ULL << 30; }));
  EXPECT_FALSE(with([](Geometry& g) { g.segment_count = 1; }));
  EXPECT_TRUE(with([](Geometry& g) { g.segment_count = 1024; }));
  EXPECT_FALSE(with([](Geometry& g) { g.segment_count = 1025; }));
  EXPECT_FALSE(with([](Geometry& g) { g.partition_count = 0; }));
  EXPECT_FALSE(with([](Geometry& g) { g.partition_count = 1025; }));
  EXPECT_FALSE(with([](Geometry& g) { g.participant_capacity = kSpareSlots; }));
  EXPECT_FALSE(with([](Geometry& g) { g.participant_capacity = kMaxParticipants + 3; }));
  EXPECT_FALSE(with([](Geometry& g) { g.flags = 32; }));
  EXPECT_FALSE(with([](Geometry& g) { g.policy = 4; }));
  const auto growing = [&](std::uint32_t first_segments, std::uint32_t flags) {
    return with([&](Geometry& g) {
      g.policy = kGrowPolicy;
      g.first_segments = first_segments;
      g.flags = flags;
    });
  };
  EXPECT_TRUE(growing(2, 0));
  EXPECT_TRUE(growing(valid().segment_count, 0));
  EXPECT_FALSE(growing(1, 0));
  EXPECT_FALSE(growing(valid().segment_count + 1, 0));
  EXPECT_FALSE(growing(2, kRetainAll));
  EXPECT_FALSE(with([](Geometry& g) { g.revoke_after_ns = -1; }));
  EXPECT_FALSE(with([](Geometry& g) { g.evict_after_ns = -1; }));
  // So many large segments that the claim word could not distinguish their numbers.
  EXPECT_FALSE(with([](Geometry& g) {
    g.segment_size = 1ULL << 30;
    g.segment_count = 1024;
  }));
}

TEST(Geometry, EveryValidOneCanTellItsSegmentsApart) {
  for (std::uint64_t size = kPage; size <= Geometry::kMaxSegmentSize; size *= 2) {
    for (const std::uint32_t count : {2U, 3U, 100U, 128U, 1000U, 1024U}) {
      Geometry geometry = valid();
      geometry.segment_size = size;
      geometry.segment_count = count;
      if (!geometry.is_valid()) continue;
      geometry.derive();
      EXPECT_GE(geometry.entry_count, 2 * count);
      EXPECT_EQ(geometry.entry_count & (geometry.entry_count - 1), 0u);
      EXPECT_LE(geometry.entry_count, 1ULL << geometry.claim_layout.segment_bits);
      EXPECT_LT(geometry.max_payload(), std::uint64_t{kDetailLength});
      EXPECT_LE(geometry.segment_granules, std::uint64_t{kClaimGranules});
    }
  }
}

}  // namespace
}  // namespace leat::detail
