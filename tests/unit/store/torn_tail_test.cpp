// The last file may end at any byte: recovery keeps every whole frame before it, moves the rest aside
// byte for byte, and goes on. If this failed, a crash in the middle of a write would cost records that
// were whole, or the topic could not be opened.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "support/one_of.hpp"
#include "support/store_files.hpp"

namespace leat::testing {
namespace {

constexpr std::uint64_t kTailKey = 0x1234'5678'9abc'def1;

// One partition of five frames in one file, two records each.
struct Tail {
  explicit Tail(bool closed) {
    TestStore store;
    manifest = store.manifest;
    auto writer = store.writer();
    LogBytes log{kTailKey};
    for (int i = 0; i < 5; ++i) {
      ends.push_back(i == 0 ? sizeof(detail::SegmentHeader) : writer.file_position());
      log.record("value " + std::to_string(2 * i) + std::string(100, 'x'));
      log.record("value " + std::to_string(2 * i + 1));
      store.append(writer, log);
      log = log.next();
    }
    ends.push_back(writer.file_position());
    name = writer.file_name().text();
    if (closed) store.checkpoint(writer, true);
    records = store.read();
    files = read_files(store.topic_path());
    EXPECT_EQ(records.size(), 10U);
  }
  const std::string& bytes() const { return files.at(name); }
  // Where the whole frames of a changed file end, as their number.
  std::size_t whole(const std::string& changed) const {
    std::size_t count = 0;
    while (count < 5 && changed.size() >= ends[count + 1] &&
           std::equal(changed.begin() + static_cast<std::ptrdiff_t>(ends[count]),
                      changed.begin() + static_cast<std::ptrdiff_t>(ends[count + 1]),
                      bytes().begin() + static_cast<std::ptrdiff_t>(ends[count])))
      ++count;
    return count;
  }
  std::vector<std::string> first_records(std::size_t frames) const {
    return {records.begin(), records.begin() + static_cast<std::ptrdiff_t>(2 * frames)};
  }

  detail::Manifest manifest;
  std::string name;
  std::vector<std::uint64_t> ends;  // ends[i]: where frame i begins
  std::vector<std::string> records;
  StoreFiles files;
};

// Appends a record where a recovered partition goes on, and closes.
void go_on(PlacedFiles& placed, const Tail& tail, const detail::Recovered& recovered) {
  const detail::PartitionEnd& end = recovered.partitions[0];
  detail::SegmentWriter writer{detail::Disk::system(), placed.directory(), tail.manifest.topic, 0};
  writer.begin(recovered.generation, end.next_offset, end.frames_end, !end.has_file);
  LogBytes log{kTailKey + 2, 0, end.next_offset};
  log.record("new");
  ASSERT_TRUE(writer.append(log.facts(), log.bytes()));
  ASSERT_TRUE(writer.sync());
}

// A file of a topic that was not closed was changed from some byte on: all that is whole before is
// there, the rest is put aside.
void expect_cut(PlacedFiles& placed, const Tail& tail, const std::string& changed,
                std::uint64_t cut_records) {
  placed.reset();
  placed.put(tail.name, changed);
  const std::size_t whole = tail.whole(changed);
  const std::uint64_t at = tail.ends[whole];
  auto data_end = changed.find_last_not_of('\0') + 1;
  data_end = std::max<std::size_t>(data_end, at);
  auto recovered = detail::recover(detail::Disk::system(), placed.directory(), tail.manifest);
  ASSERT_TRUE(recovered);
  EXPECT_EQ(recovered->damaged(), 0U);
  EXPECT_EQ(recovered->cut_bytes(), data_end - at);
  EXPECT_EQ(recovered->cut_records(), cut_records);
  EXPECT_EQ(recovered->partitions[0].frames_end, 2 * whole);
  EXPECT_EQ(placed.get("cut-" + tail.name + '-' + std::to_string(at)),
            changed.substr(std::min<std::size_t>(at, changed.size()), data_end - at));
  EXPECT_EQ(placed.read(tail.manifest), tail.first_records(whole));
  go_on(placed, tail, *recovered);
  auto expected = tail.first_records(whole);
  const std::uint64_t next = recovered->partitions[0].next_offset;
  EXPECT_GE(next, 10U);
  expected.push_back("gap " + std::to_string(2 * whole) + '+' + std::to_string(next - 2 * whole) +
                     " lost");
  expected.push_back(std::to_string(next) + " new");
  EXPECT_EQ(placed.read(tail.manifest), expected);
  EXPECT_FALSE(placed.is_damaged());
}

TEST(TornTail, EndsAtAnyByteBehindTheLastWholeFrame) {
  const Tail tail{false};
  PlacedFiles placed{tail.files};
  for (std::uint64_t size = tail.ends[2]; size <= tail.ends[5]; size += testing::kOneOf) {
    expect_cut(placed, tail, tail.bytes().substr(0, size), 0);
    if (HasFailure()) FAIL() << "size " << size;
  }
}

TEST(TornTail, IsZeroFromAnyByteOn) {
  const Tail tail{false};
  PlacedFiles placed{tail.files};
  for (std::uint64_t from = tail.ends[2]; from <= tail.ends[5]; from += testing::kOneOf) {
    std::string changed = tail.bytes();
    std::fill(changed.begin() + static_cast<std::ptrdiff_t>(from), changed.end(), '\0');
    expect_cut(placed, tail, changed, 0);
    if (HasFailure()) FAIL() << "from " << from;
  }
}

// The disk wrote the last frames, but not one before them: they were never acknowledged either.
TEST(TornTail, WholeFramesBehindATornOneAreCutAndCounted) {
  const Tail tail{false};
  PlacedFiles placed{tail.files};
  for (std::size_t frame = 0; frame < 5; ++frame) {
    std::string changed = tail.bytes();
    changed[tail.ends[frame] + 80] ^= 1;
    expect_cut(placed, tail, changed, 2 * (4 - frame));
    if (HasFailure()) FAIL() << "frame " << frame;
  }
}

// Files have all their blocks from the start. What nobody has written is not read: that could take minutes.
TEST(TornTail, OfGigabytesOfNothingIsNotRead) {
  struct MeteredDisk : detail::Disk {
    Result<std::size_t> read(int file, std::byte* to, std::size_t size,
                             std::uint64_t at) noexcept override {
      bytes += size;
      return Disk::read(file, to, size, at);
    }
    std::uint64_t bytes = 0;
  } disk;
  TestStore store{small_manifest(), disk};
  detail::SegmentWriter writer = store.writer();
  LogBytes log{kTailKey};
  log.record("one");
  store.append(writer, log);
  const std::string path = store.topic_path() + '/' + writer.file_name().text();
  ASSERT_EQ(::truncate(path.c_str(), std::int64_t{8} << 30), 0);
  disk.bytes = 0;
  EXPECT_EQ(store.read(), std::vector<std::string>{"0 one"});
  store.recover();
  EXPECT_LT(disk.bytes, 64U << 20);
  EXPECT_EQ(std::filesystem::file_size(path), writer.file_position());
}

// A topic that was closed was whole: what is missing from it is damage, and its offsets stay taken.
TEST(TornTail, OfAClosedTopicIsDamage) {
  const Tail tail{true};
  PlacedFiles placed{tail.files};
  EXPECT_FALSE(placed.is_damaged());
  for (std::uint64_t size = tail.ends[2]; size < tail.ends[5]; size += testing::kOneOf) {
    placed.reset();
    placed.put(tail.name, tail.bytes().substr(0, size));
    const std::size_t whole = tail.whole(tail.bytes().substr(0, size));
    EXPECT_TRUE(placed.is_damaged());
    auto recovered = detail::recover(detail::Disk::system(), placed.directory(), tail.manifest);
    ASSERT_TRUE(recovered);
    EXPECT_EQ(recovered->damaged(), 10 - 2 * whole);
    EXPECT_TRUE(placed.is_damaged());
    go_on(placed, tail, *recovered);
    const std::uint64_t next = recovered->partitions[0].next_offset;
    EXPECT_GE(next, 10U);
    auto expected = tail.first_records(whole);
    expected.push_back("gap " + std::to_string(2 * whole) + '+' + std::to_string(10 - 2 * whole) +
                       " damaged");
    expected.push_back("gap 10+" + std::to_string(next - 10) + " lost");
    expected.push_back(std::to_string(next) + " new");
    EXPECT_EQ(placed.read(tail.manifest), expected);
    EXPECT_TRUE(placed.is_damaged());
    if (HasFailure()) FAIL() << "size " << size;
  }
}

// Either copy of the manifest and of the checkpoint ends at any byte, or has old bytes from there on.
TEST(TornTail, OfOneCopyCostsNothing) {
  for (const bool closed : {false, true}) {
    const Tail tail{closed};
    PlacedFiles placed{tail.files};
    for (const char* name : {"manifest-0", "manifest-1", "checkpoint-0", "checkpoint-1"}) {
      const std::string& bytes = tail.files.at(name);
      std::string other = name;
      other.back() = static_cast<char>('0' + '1' - other.back());
      for (std::size_t size = 0; size < bytes.size(); size += testing::kOneOf) {
        for (const bool is_mixed : {false, true}) {
          std::string changed = bytes.substr(0, size);
          if (is_mixed) changed += tail.files.at(other).substr(size);
          placed.reset();
          placed.put(name, changed);
          EXPECT_TRUE(detail::load_manifest(detail::Disk::system(), placed.directory()));
          auto recovered =
              detail::recover(detail::Disk::system(), placed.directory(), tail.manifest);
          ASSERT_TRUE(recovered);
          EXPECT_EQ(recovered->damaged() + recovered->cut_bytes(), 0U);
          // Beyond what subscribers may have seen of a topic that was not closed.
          EXPECT_GE(recovered->partitions[0].next_offset, closed ? 10 : detail::kReservedOffsets);
          EXPECT_EQ(placed.read(tail.manifest), tail.records);
          if (HasFailure()) FAIL() << name << " size " << size << (is_mixed ? " mixed" : "");
        }
      }
    }
  }
}

}  // namespace
}  // namespace leat::testing
