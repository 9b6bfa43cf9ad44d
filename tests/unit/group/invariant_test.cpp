// If this failed, a process that writes nonsense into a group's file, or into records, could make
// members crash or hang. They must return `corrupt` or `wrong_format` soon.
//
// docs/internals/impossible-states.md lists the places; those of the log are tested in
// tests/unit/log/invariant_test.cpp.
#include <fstream>

#include "group/group_testing.hpp"

namespace leat {
namespace {

using namespace detail;

constexpr auto kSoon = 10s;  // Only ends a test that fails.

// A topic with a group, and access to the words that the tests overwrite.
class ScribbledGroup {
 public:
  explicit ScribbledGroup(const TopicOptions& topic = {}, const GroupOptions& group = {})
      : topic_{topic}, group_{group_of(*topic_, group)}, publisher_{must(topic_->publisher())} {}

  const TestTopic& topic() { return topic_; }
  const Group& group() { return group_; }
  Publisher& publisher() { return publisher_; }
  GroupView& view() { return *must(topic_.shared().group(0)); }
  InFlightEntry& entry() { return view().entry(0, 0); }
  // The header at a granule of the first segment.
  RecordHeader& header(std::uint64_t granule) {
    return reinterpret_cast<RecordHeader*>(must(topic_.shared().records_for_writing()))[granule];
  }
  std::byte* payload(std::uint64_t granule) {
    return reinterpret_cast<std::byte*>(&header(granule) + 1);
  }
  void set_cursor(const CursorValue& value) {
    store_relaxed(view().cursor(0).place, value.place);
    store_relaxed(view().cursor(0).record, value.record);
  }
  std::uint64_t first_position() { return topic_.shared().geometry().segment_granules; }

  // Every way to take records must return `corrupt`. Each uses a new member,
  // which is useless afterwards.
  void expect_corrupt() {
    {
      Member member = join(group_);
      EXPECT_EQ(code(member.receive(kSoon)), Errc::corrupt);
    }
    {
      Member member = join(group_);
      std::vector<Delivery> taken;
      EXPECT_EQ(code(member.receive(taken, 10, kSoon)), Errc::corrupt);
    }
    Member member = join(group_);
    EXPECT_EQ(code(member.poll(10, [](const Delivery&) {})), Errc::corrupt);
  }

 private:
  TestTopic topic_;
  Group group_;
  Publisher publisher_;
};

// ---- Attaching ------------------------------------------------------------------------------------

TEST(GroupInvariant, EveryWrongHeaderFieldIsRefused) {
  ScribbledGroup scribbled;
  const std::uint64_t number = scribbled.topic().shared().group_number(0);
  const std::string path =
      scribbled.topic().directory() + "/topic/" + detail::group_file_name(number);
  const auto with = [&](std::size_t offset, auto value) {
    std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
    char old[sizeof(value)];
    file.seekg(static_cast<std::streamoff>(offset)).read(old, sizeof(old));
    file.seekp(static_cast<std::streamoff>(offset));
    file.write(reinterpret_cast<const char*>(&value), sizeof(value)).flush();
    const Topic again = scribbled.topic().open_again();
    const Errc found = code(again.find_group(kGroupName));
    // Publishers cannot know which room such a group holds.
    auto publisher = must(again.publisher());
    Errc published = Errc::ok;
    for (int i = 0; i < 20 && published == Errc::ok; ++i)
      published = code(publisher.publish(kHalfText, Deadline::immediate()));
    EXPECT_EQ(published, found);
    file.seekp(static_cast<std::streamoff>(offset)).write(old, sizeof(old)).flush();
    EXPECT_EQ(code(scribbled.topic().open_again().find_group(kGroupName)), Errc::ok);
    return found;
  };
  EXPECT_EQ(with(offsetof(GroupHeader, magic), std::uint64_t{0}), Errc::wrong_format);
  EXPECT_EQ(with(offsetof(GroupHeader, topic_key), std::uint64_t{1}), Errc::wrong_format);
  EXPECT_EQ(with(offsetof(GroupHeader, number), number + 1), Errc::wrong_format);
  EXPECT_EQ(with(offsetof(GroupHeader, partition_count), 2U), Errc::wrong_format);
  for (const std::uint32_t flags : {4U, 8U, 12U, 16U})  // Some are for durable topics only.
    EXPECT_EQ(with(offsetof(GroupHeader, flags), flags), Errc::wrong_format);
  for (const std::uint32_t count : {0U, 65U, 256U, ~0U}) {
    EXPECT_EQ(with(offsetof(GroupHeader, seat_count), count), Errc::wrong_format) << count;
    EXPECT_EQ(with(offsetof(GroupHeader, in_flight_limit), count), Errc::wrong_format) << count;
  }
  EXPECT_EQ(with(offsetof(GroupHeader, max_deliveries), ~0U), Errc::wrong_format);
  EXPECT_EQ(with(offsetof(GroupHeader, lease_ns), std::int64_t{-1}), Errc::wrong_format);
  std::filesystem::resize_file(path, 64);
  EXPECT_EQ(code(scribbled.topic().open_again().find_group(kGroupName)), Errc::wrong_format);
}

TEST(GroupInvariant, AGroupWithoutAFileIsCorrupt) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  store_relaxed(topic.shared().header().groups[3], std::uint64_t{12345});
  Errc published = Errc::ok;
  for (int i = 0; i < 20 && published == Errc::ok; ++i)
    published = code(publisher.publish(kHalfText, Deadline::immediate()));
  EXPECT_EQ(published, Errc::corrupt);
  EXPECT_EQ(code(topic->find_group(kGroupName)), Errc::corrupt);
  EXPECT_EQ(code(topic->group_names()), Errc::corrupt);
}

// ---- The cursor -----------------------------------------------------------------------------------

TEST(GroupInvariant, ACursorInsideARecordIsCorrupt) {
  ScribbledGroup scribbled;
  must(scribbled.publisher().publish(std::string(100, 'x')));
  must(scribbled.publisher().publish("y"));
  scribbled.set_cursor(CursorValue::make(scribbled.first_position() + 1, 0, 0, 0, 0));
  // Nothing is committed there, so it is a hole without an owner.
  Member member = join(scribbled.group());
  EXPECT_EQ(code(member.receive(kSoon)), Errc::corrupt);
}

TEST(GroupInvariant, ACursorInABatchThatIsNoneIsCorrupt) {
  ScribbledGroup scribbled;
  must(scribbled.publisher().publish("x"));
  scribbled.set_cursor(CursorValue::make(scribbled.first_position(), 0, 0, 1, 0));
  scribbled.expect_corrupt();
}

TEST(GroupInvariant, ACursorBehindTheRecordsOfABatchIsCorrupt) {
  ScribbledGroup scribbled;
  auto batch = must(scribbled.publisher().batch());
  for (int i = 0; i < 3; ++i) must(batch.add("x"));
  must(batch.commit());
  scribbled.set_cursor(CursorValue::make(scribbled.first_position(), 0, 0, 3, 0));
  scribbled.expect_corrupt();
  scribbled.set_cursor(CursorValue::make(scribbled.first_position(), 0, 0, kBatchIndexMask, 0));
  scribbled.expect_corrupt();
}

TEST(GroupInvariant, ACursorInASegmentThatIsLongGoneIsCorrupt) {
  ScribbledGroup scribbled;
  {
    Member member = join(scribbled.group());
    for (int i = 0; i < 40; ++i) {
      must(scribbled.publisher().publish(kHalfText, kPatience));
      EXPECT_EQ(drain(member, 1).size(), 1u);
    }
  }
  scribbled.set_cursor(CursorValue::make(scribbled.first_position(), 0, 0, 0, 0));
  scribbled.expect_corrupt();
}

TEST(GroupInvariant, ASegmentInMemoryThatIsNoneIsCorrupt) {
  ScribbledGroup scribbled;
  must(scribbled.publisher().publish("x"));
  const PartitionView partition = scribbled.topic().shared().partition(0);
  store_relaxed(partition.entries[1].map, 1ULL << kPhysicalBits | 1000);
  scribbled.expect_corrupt();
}

// A cursor far ahead waits for a segment that may never come; it cannot be told from one that is
// about to be opened. A seek repairs it.
TEST(GroupInvariant, ACursorFarAheadIsMendedByASeek) {
  ScribbledGroup scribbled;
  must(scribbled.publisher().publish("x"));
  scribbled.set_cursor(CursorValue::make(1ULL << 40, 0xff, 0, 0, 0));
  Member member = join(scribbled.group());
  EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);
  (void)scribbled.group().info();
  must(scribbled.group().seek(From::beginning));
  EXPECT_EQ(drain(member), (Log{"0 x"}));
}

// ---- Records --------------------------------------------------------------------------------------

TEST(GroupInvariant, ARecordThatDoesNotFitIsCorrupt) {
  ScribbledGroup scribbled;
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

TEST(GroupInvariant, AKindThatIsNoneIsCorrupt) {
  ScribbledGroup scribbled;
  must(scribbled.publisher().publish("x"));
  RecordHeader& header = scribbled.header(0);
  store_relaxed(header.commit, load_relaxed(header.commit) ^ 0x40);
  scribbled.expect_corrupt();
}

TEST(GroupInvariant, AFrameOfABatchThatDoesNotFitIsCorrupt) {
  ScribbledGroup scribbled;
  auto batch = must(scribbled.publisher().batch());
  for (int i = 0; i < 3; ++i) must(batch.add("x"));
  must(batch.commit());
  auto* frame = reinterpret_cast<BatchFrame*>(scribbled.payload(0) + sizeof(BatchHeader));
  store_relaxed(frame->detail, kDetailLength);
  scribbled.expect_corrupt();
}

TEST(GroupInvariant, MoreRecordsThanABatchHasBytesForAreCorrupt) {
  ScribbledGroup scribbled;
  auto batch = must(scribbled.publisher().batch());
  for (int i = 0; i < 3; ++i) must(batch.add("x"));
  must(batch.commit());
  auto* header = reinterpret_cast<BatchHeader*>(scribbled.payload(0));
  for (const std::uint32_t count : {0U, 5U, ~0U}) {
    store_relaxed(header->count, count);
    scribbled.expect_corrupt();
  }
}

TEST(GroupInvariant, AKeyLargerThanItsRecordIsCorrupt) {
  ScribbledGroup scribbled;
  must(scribbled.publisher().publish({.key = "key", .value = "x"}));
  store_relaxed(reinterpret_cast<std::uint32_t&>(*scribbled.payload(0)), 1000U);
  scribbled.expect_corrupt();
}

// ---- Entries ------------------------------------------------------------------------------------

TEST(GroupInvariant, AnEntryOfNoRecordIsCorrupt) {
  ScribbledGroup scribbled;
  must(scribbled.publisher().publish("x"));
  {
    Member member = join(scribbled.group());
    must(member.requeue(take(member)));
  }
  const std::uint64_t position = load_relaxed(scribbled.entry().position);
  const std::uint64_t where = load_relaxed(scribbled.entry().where);
  const auto expect_corrupt = [&] {
    Member member = join(scribbled.group());
    EXPECT_EQ(code(member.receive(kSoon)), Errc::corrupt);
    store_relaxed(scribbled.entry().position, position);
    store_relaxed(scribbled.entry().where, where);
  };
  store_relaxed(scribbled.entry().position, position + 1);
  expect_corrupt();
  store_relaxed(scribbled.entry().position, ~0ULL);
  expect_corrupt();
  store_relaxed(scribbled.entry().where, InFlightPlace{1000, 0, 0}.pack());
  expect_corrupt();
  store_relaxed(scribbled.entry().where, InFlightPlace{0, 1000, 0}.pack());
  expect_corrupt();
  Member member = join(scribbled.group());
  EXPECT_EQ(drain(member), (Log{"0 x"}));
}

// A member keeps a list of its free entries. An entry that others returned, and that is in the list already,
// must not get into the list again.
TEST(GroupInvariant, AnEntryThatIsFreeIsNotReturned) {
  constexpr std::uint32_t kHolds = 16;
  ScribbledGroup scribbled{{}, {.in_flight = kHolds}};
  must(scribbled.publisher().publish("x"));
  Member first = join(scribbled.group());
  const Delivery held = take(first);
  Member second = join(scribbled.group());
  GroupView& view = scribbled.view();
  for (std::uint32_t i = 0; i < kHolds; ++i) {
    InFlightEntry& entry = view.entry(1, i);
    entry = scribbled.entry();
    store_relaxed(entry.state, static_cast<std::uint64_t>(InFlightPhase::returned));
  }
  store_relaxed(view.seat(1).entry_high, kHolds);
  fetch_add<Edge::in_flight>(view.header().returned, 1);
  for (int again = 0; again < 3; ++again)
    EXPECT_EQ(must(second.poll(kHolds, [](const Delivery&) {})), 0U);
  must(first.acknowledge(held));
  must(scribbled.publisher().publish("y"));
  EXPECT_EQ(to_text(take(second)), "1 y");
}

TEST(GroupInvariant, AnEntryOfNoRecordOfItsBatchIsCorrupt) {
  ScribbledGroup scribbled;
  auto batch = must(scribbled.publisher().batch());
  for (int i = 0; i < 3; ++i) must(batch.add("x"));
  must(batch.commit());
  {
    Member member = join(scribbled.group());
    must(member.requeue(take(member)));
  }
  store_relaxed(scribbled.entry().where, InFlightPlace{0, 0, 7}.pack());
  Member member = join(scribbled.group());
  EXPECT_EQ(code(member.receive(kSoon)), Errc::corrupt);
}

TEST(GroupInvariant, AnOwnerThatIsNoSeatBelongsToNobody) {
  ScribbledGroup scribbled;
  must(scribbled.publisher().publish("x"));
  Member member = join(scribbled.group());
  (void)take(member);
  InFlightState state = InFlightState::unpack(load_relaxed(scribbled.entry().state));
  state.owner = 0xff;
  store_relaxed(scribbled.entry().state, state.pack());
  {
    Member other = join(scribbled.group());
    EXPECT_EQ(code(other.receive(kNothingFor)), Errc::timeout);
  }
  must(scribbled.topic()->delete_group(kGroupName, true));
  for (int i = 0; i < 40; ++i)
    ASSERT_EQ(code(scribbled.publisher().publish(kHalfText, kSoon)), Errc::ok);
}

// ---- Wrong values that are bounded without an error ----------------------------------------------

TEST(GroupInvariant, CountsThatAreTooHighAreBounded) {
  ScribbledGroup scribbled;
  must(scribbled.publisher().publish("x"));
  store_relaxed(scribbled.view().header().seat_high, ~0U);
  store_relaxed(scribbled.view().header().name_size, ~0U);
  Member member = join(scribbled.group());
  for (std::uint32_t i = 0; i < scribbled.view().geometry().seat_count; ++i) {
    store_relaxed(scribbled.view().seat(i).entry_high, ~0U);
    store_relaxed(scribbled.view().seat(i).name_size, ~0U);
    store_relaxed(scribbled.view().seat(i).participant, ~0U);
  }
  EXPECT_EQ(drain(member), (Log{"0 x"}));
  (void)scribbled.group().info();
  for (int i = 0; i < 40 && scribbled.publisher().publish(kHalfText, Deadline::immediate()); ++i) {
  }
  EXPECT_EQ(code(scribbled.publisher().publish(kHalfText, kNothingFor)), Errc::timeout);
}

TEST(GroupInvariant, ATakeOfNoPartitionWasNotMade) {
  ScribbledGroup scribbled;
  must(scribbled.publisher().publish("x"));
  {
    Child dead{[&] {
      Member member = join(must(scribbled.topic().open_again().find_group(kGroupName)));
      (void)take(member);
      ::kill(::getpid(), SIGKILL);
      return 0;
    }};
    EXPECT_EQ(dead.join(), -SIGKILL);
  }
  store_relaxed(scribbled.view().seat(0).taking, std::uint64_t{1} << 16 | 0xffff);
  store_relaxed(scribbled.view().cursor(0).place,
                load_relaxed(scribbled.view().cursor(0).place) | 0xff);  // No such seat.
  Member member = join(scribbled.group());
  (void)member.receive(kNothingFor);
  must(scribbled.publisher().publish("y"));
  EXPECT_EQ(take(member).record.offset <= 1, true);
}

}  // namespace
}  // namespace leat
