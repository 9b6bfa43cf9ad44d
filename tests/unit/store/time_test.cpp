// A time is found without reading everything, whatever order the records' times are in. If this failed,
// `--from 1h` would skip records, or read a terabyte.
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "support/random.hpp"
#include "support/test_store.hpp"
#include "testing.hpp"

namespace leat::testing {
namespace {

constexpr std::uint64_t kTimesKey = 0x7777'1111'2222'3335;

// Counts the bytes that are read.
class CountingDisk : public detail::Disk {
 public:
  Result<std::size_t> read(int file, std::byte* to, std::size_t size,
                           std::uint64_t at) noexcept override {
    auto done = Disk::read(file, to, size, at);
    bytes += done ? *done : 0;
    return done;
  }
  std::uint64_t bytes = 0;
};

detail::StoredRecords records_of(TestStore& store, detail::Disk& disk) {
  auto lists = detail::list_segments(store.directory(), 1);
  EXPECT_TRUE(lists);
  return detail::StoredRecords{detail::StoredFrames{
      disk, store.directory(), store.manifest.topic.salt, 0, std::move(lists->front())}};
}

std::optional<std::uint64_t> first_not_older(detail::StoredRecords& records, std::int64_t time_ms) {
  detail::StoredEntry entry;
  for (;;) {
    auto more = records.next(entry);
    EXPECT_TRUE(more);
    if (!more || !*more) return {};
    if (entry.is_record && entry.record.timestamp_ms >= time_ms) return entry.record.offset;
  }
}

// Against reading everything, in topics whose clocks jump.
TEST(StoredTime, FindsTheFirstRecordThatIsNotOlderInAnyOrderOfTimes) {
  Random random{test_seed()};
  for (int round = 0; round < 30; ++round) {
    TestStore store;
    detail::SegmentWriter writer = store.writer();
    LogBytes log{kTimesKey};
    std::vector<std::int64_t> times;
    std::int64_t now = 1000;
    const std::uint64_t how = below(random, 3);  // Rising, jumping now and then, or any.
    for (std::uint64_t frame = below(random, 40); frame > 0; --frame) {
      for (std::uint64_t record = 1 + below(random, 4); record > 0; --record) {
        now += static_cast<std::int64_t>(below(random, 20));
        if (how == 1 && below(random, 20) == 0) now -= 500;
        if (how == 2) now = static_cast<std::int64_t>(below(random, 5000));
        log.timed(std::string(below(random, 9000), 'x'), now);
        times.push_back(now);
      }
      store.append(writer, log);
      log = log.next();
      if (below(random, 6) == 0) {
        EXPECT_TRUE(writer.finish_file());
      }
    }
    for (int turn = 0; turn < 20; ++turn) {
      const std::int64_t wanted = times.empty()
                                      ? 5
                                      : times[below(random, times.size())] +
                                            static_cast<std::int64_t>(below(random, 3)) - 1;
      detail::StoredRecords all = records_of(store, detail::Disk::system());
      ASSERT_TRUE(all.seek(0));
      const auto expected = first_not_older(all, wanted);
      detail::StoredRecords near = records_of(store, detail::Disk::system());
      ASSERT_TRUE(near.seek_time(wanted));
      EXPECT_EQ(first_not_older(near, wanted), expected) << "round " << round;
    }
    if (HasFailure()) return;
  }
}

TEST(StoredTime, ReadsLittleOfLargeFiles) {
  detail::Manifest manifest = small_manifest();
  manifest.topic.file_bytes = 16 << 20;
  TestStore store{manifest};
  detail::SegmentWriter writer = store.writer();
  LogBytes log{kTimesKey};
  for (std::int64_t time = 0; time < 400; ++time) {  // 40 MB in three files
    log.timed(std::string(100'000, 'x'), time);
    store.append(writer, log);
    log = log.next();
  }
  CountingDisk disk;
  detail::StoredRecords records = records_of(store, disk);
  ASSERT_TRUE(records.seek_time(300));
  EXPECT_EQ(first_not_older(records, 300), 300U);
  EXPECT_LT(disk.bytes, 12U << 20);
  // A frame that is larger than what is looked at first.
  log.timed(std::string(3'000'000, 'x'), 1000);
  store.append(writer, log);
  log = log.next();
  EXPECT_TRUE(writer.finish_file());
  log.timed("end", 2000);
  store.append(writer, log);
  for (const std::int64_t time : {400, 1000, 1001, 2000}) {
    detail::StoredRecords again = records_of(store, disk);
    ASSERT_TRUE(again.seek_time(time));
    EXPECT_EQ(first_not_older(again, time), time <= 1000 ? 400U : 401U) << time;
  }
}

TEST(StoredTime, NothingIsFoundWhereNothingIs) {
  TestStore store;
  detail::StoredRecords records = records_of(store, detail::Disk::system());
  ASSERT_TRUE(records.seek_time(0));
  EXPECT_EQ(first_not_older(records, 0), std::nullopt);
}

}  // namespace
}  // namespace leat::testing
