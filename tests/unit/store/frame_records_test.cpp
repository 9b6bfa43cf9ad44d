// Frames whose checksum is right and whose content makes no sense: somebody wrote nonsense into the log. No
// byte beyond the frame may be read, and what comes before the nonsense is delivered. If this failed, a
// damaged program could crash all readers of its topic.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "support/test_store.hpp"

namespace leat::testing {
namespace {

using Lines = std::vector<std::string>;

constexpr std::uint64_t kNonsenseKey = 0x1111'2222'3333'4445;

// A frame's content in memory of exactly its size, so that AddressSanitizer sees any access beyond.
class Content {
 public:
  explicit Content(const LogBytes& log) : facts_{log.facts()}, size_{log.bytes().size()} {
    // Aligned to 16 bytes, as in a reader's buffer.
    bytes_.reset(static_cast<std::byte*>(::operator new(size_, std::align_val_t{16})));
    std::memcpy(bytes_.get(), log.bytes().data(), size_);
  }
  std::byte* at(std::size_t place) { return bytes_.get() + place; }
  template <class T>
  void set(std::size_t place, T value) {
    std::memcpy(at(place), &value, sizeof(value));
  }
  detail::FrameFacts& facts() { return facts_; }

  Lines read() {
    detail::FrameHeader header{};
    header.bytes = static_cast<std::uint32_t>(size_);
    header.window_key = facts_.window_key;
    header.position = facts_.position;
    header.first_offset = facts_.first_offset;
    header.offsets = facts_.offsets;
    detail::FrameRecords records{header, bytes_.get(), 0};
    detail::StoredEntry entry;
    Lines lines;
    while (records.next(entry)) {
      lines.push_back(entry.is_record ? std::string{entry.record.text()}
                                      : "gap of " + std::to_string(entry.gap.count));
    }
    if (records.is_nonsense()) lines.push_back("nonsense at " + std::to_string(records.offset()));
    return lines;
  }

 private:
  struct Delete {
    void operator()(std::byte* bytes) const { ::operator delete(bytes, std::align_val_t{16}); }
  };
  detail::FrameFacts facts_;
  std::size_t size_;
  std::unique_ptr<std::byte[], Delete> bytes_;
};

// Records at byte 0, 32 and 64.
LogBytes three() {
  LogBytes log{kNonsenseKey, 5, 100};
  return log.record("one").record("two").record("three");
}

const Lines kOnlyFirst{"one", "nonsense at 101"};

TEST(FrameRecords, AreReadAsTheyWereWritten) {
  EXPECT_EQ(Content{three()}.read(), (Lines{"one", "two", "three"}));
}

TEST(FrameRecords, AWrongTagIsNonsense) {
  Content content{three()};
  content.set<std::uint64_t>(32, 12345);
  EXPECT_EQ(content.read(), kOnlyFirst);
  Content elsewhere{three()};
  elsewhere.facts().position += 1;
  EXPECT_EQ(elsewhere.read(), Lines{"nonsense at 100"});
  Content of_another_log{three()};
  of_another_log.facts().window_key += 2;
  EXPECT_EQ(of_another_log.read(), Lines{"nonsense at 100"});
}

TEST(FrameRecords, SizesBeyondTheFrameAreNonsense) {
  for (const std::uint32_t granules : {0U, 5U, 100U, 0x7fff'ffffU}) {
    Content content{three()};
    content.set<std::uint32_t>(32 + 8, granules);
    EXPECT_EQ(content.read(), kOnlyFirst) << granules;
  }
  for (const std::uint32_t length : {17U, 33U, 0x1fff'ffffU}) {
    Content content{three()};
    content.set<std::uint32_t>(32 + 12, length);
    EXPECT_EQ(content.read(), kOnlyFirst) << length;
  }
}

TEST(FrameRecords, TooFewOffsetsOrTooManyAreNonsense) {
  Content few{three()};
  few.facts().offsets = 2;
  EXPECT_EQ(few.read(), (Lines{"one", "two"}));
  Content many{three()};
  many.facts().offsets = 4;
  EXPECT_EQ(many.read(), (Lines{"one", "two", "three", "nonsense at 103"}));
}

TEST(FrameRecords, ExtensionsThatDoNotFitAreNonsense) {
  // Bit 31 of a key's size is reserved: for "null", in a later version.
  for (const std::uint32_t key_size : {9U, 0x8000'0000U, 0x8000'0003U, 0xffff'ffffU}) {
    LogBytes log{kNonsenseKey};
    Content content{log.record("one").full({.key = "key", .value = "value"}, 7)};
    content.set<std::uint32_t>(32 + 16 + 8, key_size);
    EXPECT_EQ(content.read(), (Lines{"one", "nonsense at 1"})) << key_size;
  }
  for (const std::uint32_t value_size : {2U, 0x8000'0001U}) {
    const Header header{"n", "v"};
    LogBytes log{kNonsenseKey};
    Content content{log.record("one").full({.headers = {&header, 1}, .value = "x"}, 7)};
    content.set<std::uint32_t>(32 + 16 + 8 + 4 + 4, value_size);
    EXPECT_EQ(content.read(), (Lines{"one", "nonsense at 1"})) << value_size;
  }
}

TEST(FrameRecords, BatchesThatLieAreNonsense) {
  const auto batch = [] {
    LogBytes log{kNonsenseKey};
    return Content{log.record("one").batch({"two", "three"})};
  };
  EXPECT_EQ(batch().read(), (Lines{"one", "two", "three"}));
  const auto read = [&](std::size_t place, std::uint32_t value) {
    Content content = batch();
    content.set(32 + place, value);
    return content.read();
  };
  const Lines nothing{"one", "nonsense at 1"};
  for (const std::uint32_t count : {0U, 3U, 1000U, 0xffff'ffffU})
    EXPECT_EQ(read(16, count).back().substr(0, 8), "nonsense") << count;
  EXPECT_EQ(read(20, 1), nothing) << "flags of a later version";
  for (const std::uint32_t length : {100U, 0x1fff'ffffU})
    EXPECT_EQ(read(24, length), nothing) << length;
  EXPECT_EQ(read(12, 3), nothing) << "shorter than its header";
}

// Readers of a whole topic get a gap instead, and go on behind it.
TEST(FrameRecords, NonsenseIsAGapToReaders) {
  TestStore store;
  auto writer = store.writer();
  LogBytes good{kNonsenseKey};
  store.append(writer, good.record("one"));
  LogBytes bad{kNonsenseKey, 777, 1};
  const auto bytes = bad.record("two").record("three");
  detail::FrameFacts facts = bytes.facts();
  facts.position = 2;  // Not where its records say that they are.
  ASSERT_TRUE(writer.append(facts, bytes.bytes()));
  LogBytes more{kNonsenseKey, 50, 3};
  store.append(writer, more.record("four"));
  store.checkpoint(writer, true);
  EXPECT_EQ(store.read(), (Lines{"0 one", "gap 1+2 damaged", "3 four"}));
  EXPECT_EQ(store.read(2), (Lines{"gap 2+1 damaged", "3 four"}));
  const auto report = store.check();
  EXPECT_TRUE(report.is_damaged());
  EXPECT_EQ(report.damaged, 2U);
}

}  // namespace
}  // namespace leat::testing
