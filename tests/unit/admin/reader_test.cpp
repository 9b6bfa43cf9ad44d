// Reading records from files without opening their topic. If these failed, `leat dump` would lose records, invent some, or never
// end on a topic that is in use.
#include <filesystem>
#include <string>
#include <vector>

#include "unit/admin/admin_testing.hpp"

namespace leat {
namespace {

class AdminReader : public AdminTest {};

TEST_F(AdminReader, HasEachPartitionInOrder) {
  {
    TopicOptions options = durable();
    options.partitions = 2;
    options.timestamps = true;
    const Topic topic = create("d", options);
    for (std::uint32_t i = 0; i < 2; ++i) {
      auto publisher = must(topic.publisher({.partition = i}));
      for (const char* text : {"a", "b", "c"}) must(publisher.publish(text + std::to_string(i)));
    }
  }
  FilesReader reader = must(files_of("d").reader());
  EXPECT_EQ(read(reader, 1), (Log{"0 a1", "1 b1", "2 c1"}));
  EXPECT_EQ(read(reader, 0), (Log{"0 a0", "1 b0", "2 c0"}));
  EXPECT_EQ(read(reader, 0, 1), (Log{"1 b0", "2 c0"}));
  EXPECT_EQ(read(reader, 0, 3), Log{});
  EXPECT_EQ(code(reader.seek(2, 0)), Errc::invalid_argument);
}

TEST_F(AdminReader, HasKeysHeadersAndTimes) {
  {
    TopicOptions options = durable();
    options.timestamps = true;
    const Topic topic = create("d", options);
    auto publisher = must(topic.publisher());
    const Header header{"name", "x"};
    must(publisher.publish({.key = "key", .headers = {&header, 1}, .value = "value"}));
  }
  FilesReader reader = must(files_of("d").reader());
  must(reader.seek(0, 0));
  FilesEntry entry;
  ASSERT_TRUE(must(reader.next(entry)));
  ASSERT_TRUE(entry.is_record);
  EXPECT_EQ(entry.record.key.text(), "key");
  EXPECT_EQ(entry.record.text(), "value");
  EXPECT_GT(entry.record.timestamp_ms, 0);
  EXPECT_EQ((*entry.record.headers.begin()).value.text(), "x");
}

TEST_F(AdminReader, HasNothingBeforeTheFirstSeek) {
  make_closed("d", 1);
  FilesReader reader = must(files_of("d").reader());
  FilesEntry entry;
  EXPECT_FALSE(must(reader.next(entry)));
}

TEST_F(AdminReader, ShowsDamageAsAGap) {
  make_closed("d", 3);
  const std::filesystem::path segment = segment_of("d");
  spoil(segment, static_cast<std::streamoff>(std::filesystem::file_size(segment)) - 20);
  FilesReader reader = must(files_of("d").reader());
  const Log log = read(reader);
  ASSERT_FALSE(log.empty());
  EXPECT_TRUE(log.back().ends_with("damaged")) << log.back();
}

TEST_F(AdminReader, ReadsATopicThatNobodyRecovered) {
  make_unclosed("d", 3);
  FilesReader reader = must(files_of("d").reader());
  EXPECT_EQ(read(reader), (Log{"0 0", "1 1", "2 2"}));
  EXPECT_TRUE(must(files_of("d").inspect()).needs_recovery);
}

TEST_F(AdminReader, OutlivesTheObjectThatMadeIt) {
  make_closed("d", 1);
  FilesReader reader = [&] {
    const TopicFiles files = files_of("d");
    return must(files.reader());
  }();
  FilesReader moved = std::move(reader);
  EXPECT_EQ(read(moved), Log{"0 0"});
}

// Retention deletes the files in front of the reader: their offsets are one gap, and nothing else is missing.
TEST_F(AdminReader, ShowsWhatRetentionTakesAsAGap) {
  constexpr int kRecords = 2000;
  TopicOptions options = durable();
  options.retention_bytes = 128 << 10;
  const Topic topic = create("d", options);
  auto publisher = must(topic.publisher());
  const auto publish_large = [&](int count) {
    for (int i = 0; i < count; ++i) must(publisher.publish(std::string(500, 'x'), 10s));
  };
  publish_large(200);
  must(topic.sync(10s));
  FilesReader reader = must(files_of("d").reader());
  must(reader.seek(0, 0));
  FilesEntry entry;
  ASSERT_TRUE(must(reader.next(entry)));
  EXPECT_EQ(text_of(entry).substr(0, 2), "0 ");
  publish_large(kRecords);
  must(topic.sync(10s));
  for (const Deadline deadline{10s}; topic.info().partitions[0].start < 1000 && !deadline.passed();)
    std::this_thread::sleep_for(1ms);
  // It ends, although there are newer files, and where it ends all before was a record or in a gap.
  std::uint64_t next = 1;
  bool was_overwritten = false;
  while (must(reader.next(entry))) {
    const std::uint64_t first = entry.is_record ? entry.record.offset : entry.gap.first;
    ASSERT_EQ(first, next);
    next = entry.is_record ? first + 1 : first + entry.gap.count;
    if (!entry.is_record) {
      EXPECT_EQ(entry.gap.reason, GapReason::overwritten);
      was_overwritten = true;
    }
  }
  EXPECT_TRUE(was_overwritten);
  EXPECT_GT(next, 1000U);
}

}  // namespace
}  // namespace leat
