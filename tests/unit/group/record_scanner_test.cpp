// If this failed, members that take turns in a large batch would read its frames again and again from the first
// one: the time would grow with the square of the number of records.
//
// Frames that have been passed are overwritten with nonsense here, which a scan of them would report.
#include "leat/group/record_scanner.hpp"

#include "group/group_testing.hpp"

namespace leat::detail {
namespace {

class BigBatch {
 public:
  explicit BigBatch(int records) {
    auto publisher = must(topic_->publisher());
    auto batch = must(publisher.batch());
    for (int i = 0; i < records; ++i) must(batch.add(std::string(1, static_cast<char>('a' + i))));
    must(batch.commit());
  }
  const TestTopic& topic() const { return topic_; }
  std::uint64_t position() const { return topic_.shared().geometry().segment_granules; }
  CursorValue cursor(std::uint64_t index) const {
    return CursorValue::make(position(), 0, 0, index, 0);
  }
  RecordScanner scanner() const {
    return {topic_.shared(), 0, must(topic_.shared().records_for_reading())};
  }
  // Makes frames before `index` invalid.
  void scribble_before(std::uint64_t index) const {
    std::byte* const payload =
        reinterpret_cast<std::byte*>(
            &reinterpret_cast<RecordHeader*>(must(topic_.shared().records_for_writing()))[0] + 1) +
        sizeof(BatchHeader);
    const std::uint64_t size = Geometry::round_up(sizeof(BatchFrame) + 1, kBatchAlignment);
    for (std::uint64_t i = 0; i < index; ++i)
      store_relaxed(reinterpret_cast<BatchFrame*>(payload + i * size)->detail, kDetailLength);
  }

 private:
  TestTopic topic_;
};

std::string next_of(RecordScanner& scanner) {
  ScannedRecord found;
  if (scanner.next(found) != Scan::record) return "(none)";
  return {reinterpret_cast<const char*>(found.payload), found.detail & kDetailLength};
}

TEST(RecordScanner, GoesOnInABatchFromWhereItIs) {
  const BigBatch batch{10};
  RecordScanner scanner = batch.scanner();
  ASSERT_EQ(scanner.go_to(batch.cursor(2)), Scan::skipped);
  EXPECT_EQ(next_of(scanner), "c");
  batch.scribble_before(3);
  ASSERT_EQ(scanner.go_to(batch.cursor(6)), Scan::skipped);
  EXPECT_EQ(next_of(scanner), "g");
  EXPECT_EQ(scanner.offset(), 7u);
}

// Another member has moved the cursor, but not as far as this one has scanned in vain.
TEST(RecordScanner, GoesOnInABatchFromWhereItsLastScanBegan) {
  const BigBatch batch{10};
  RecordScanner scanner = batch.scanner();
  ASSERT_EQ(scanner.go_to(batch.cursor(2)), Scan::skipped);
  for (const char* value : {"c", "d", "e", "f", "g", "h", "i", "j"})
    EXPECT_EQ(next_of(scanner), value);  // It has left the batch.
  batch.scribble_before(2);
  ASSERT_EQ(scanner.go_to(batch.cursor(4)), Scan::skipped);
  EXPECT_EQ(next_of(scanner), "e");
  batch.scribble_before(4);
  ASSERT_EQ(scanner.go_to(batch.cursor(5)), Scan::skipped);
  EXPECT_EQ(next_of(scanner), "f");
}

TEST(RecordScanner, GoesBackInABatch) {
  const BigBatch batch{10};
  RecordScanner scanner = batch.scanner();
  for (const std::uint64_t index : {7U, 3U, 9U, 1U, 0U, 5U}) {
    ASSERT_EQ(scanner.go_to(batch.cursor(index)), Scan::skipped);
    EXPECT_EQ(next_of(scanner), std::string(1, static_cast<char>('a' + index)));
    EXPECT_EQ(scanner.go_to(batch.cursor(10)), Scan::corrupt);
  }
}

// A failed search for a batch that is none must not leave the place in another one.
TEST(RecordScanner, AfterABatchThatIsNoneFindsTheRightOne) {
  const BigBatch batch{10};
  RecordScanner scanner = batch.scanner();
  ASSERT_EQ(scanner.go_to(batch.cursor(3)), Scan::skipped);
  const CursorValue none = CursorValue::make(batch.position() + 40, 0, 0, 5, 0);
  EXPECT_EQ(scanner.go_to(none), Scan::corrupt);
  EXPECT_EQ(scanner.go_to(none), Scan::corrupt);
  ASSERT_EQ(scanner.go_to(batch.cursor(4)), Scan::skipped);
  EXPECT_EQ(next_of(scanner), "e");
}

TEST(RecordScanner, FindsInFlightRecordsOfABatchOneAfterTheOther) {
  const BigBatch batch{10};
  const MappedTopic& shared = batch.topic().shared();
  const std::byte* const records = must(batch.topic().shared().records_for_reading());
  InFlightEntry entry{};
  entry.position = batch.position();
  FoundInBatch last;
  const auto find = [&](std::uint32_t index) -> std::string {
    entry.where = InFlightPlace{0, 0, index}.pack();
    const auto found = find_in_flight(shared, records, entry, last);
    if (!found) return "(none)";
    return {reinterpret_cast<const char*>(found->payload), found->detail & kDetailLength};
  };
  EXPECT_EQ(find(6), "g");
  EXPECT_EQ(find(2), "c");
  batch.scribble_before(2);
  EXPECT_EQ(find(2), "c");
  EXPECT_EQ(find(8), "i");
  EXPECT_EQ(find(10), "(none)");
  EXPECT_EQ(find(1), "(none)");
}

// ---- All of it --------------------------------------------------------------------------------------

TEST(MemberBatch, MembersThatTakeTurnsGetEachRecordOnce) {
  constexpr std::uint64_t kRecords = 20'000;
  const TestTopic topic{{.capacity_bytes = 1 << 20, .segment_bytes = 512 << 10}};
  auto publisher = must(topic->publisher());
  auto batch = must(publisher.batch());
  for (std::uint64_t i = 0; i < kRecords; ++i) must(batch.add("x"));
  must(batch.commit());
  const Group group = group_of(*topic, {.in_flight = 1024});
  std::vector<Member> members;
  for (int i = 0; i < 3; ++i) members.push_back(join(group));
  std::vector<int> times(kRecords);
  for (std::uint64_t i = 0; i < kRecords; ++i) {
    Member& member = members[i % 3];
    const Delivery one = take(member);
    ++times[one.record.offset];
    EXPECT_EQ(one.record.text(), "x");
    must(member.acknowledge(one));
  }
  EXPECT_EQ(times, std::vector<int>(kRecords, 1));
}

}  // namespace
}  // namespace leat::detail
