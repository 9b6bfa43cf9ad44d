// Manifests and checkpoints: two files of named sections, of which one is whole at any time. If this
// failed, a crash while one is written could make a topic unreadable.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "support/test_store.hpp"

namespace leat::testing {
namespace {

using detail::Section;
using detail::SectionsFile;
using detail::SectionsPair;

constexpr std::uint64_t kMagic = detail::kManifestMagic;

std::span<const std::byte> bytes(const std::string& text) {
  return std::as_bytes(std::span{text.data(), text.size()});
}
std::string text_of(std::optional<std::span<const std::byte>> data) {
  if (!data) return "none";
  return {reinterpret_cast<const char*>(data->data()), data->size()};
}

std::vector<std::byte> sample(std::uint64_t sequence = 1) {
  static const std::string one = "first";
  static const std::string two(100, 'x');
  const std::vector<Section> sections{{"one", bytes(one)}, {"two", bytes(two)}, {"empty", {}}};
  return SectionsFile::format(kMagic, sequence, sections);
}

void reseal(std::vector<std::byte>& file, detail::SectionsHeader header) {
  header.crc = 0;
  std::memcpy(file.data(), &header, sizeof(header));
  header.crc = detail::crc32c(0, file.data(), header.size);
  std::memcpy(file.data(), &header, sizeof(header));
}

detail::SectionsHeader header_of(const std::vector<std::byte>& file) {
  detail::SectionsHeader header{};
  std::memcpy(&header, file.data(), sizeof(header));
  return header;
}

TEST(Sections, ComeBack) {
  auto file = SectionsFile::parse(sample(7), kMagic);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->sequence(), 7U);
  EXPECT_EQ(text_of(file->find("one")), "first");
  EXPECT_EQ(text_of(file->find("two")), std::string(100, 'x'));
  EXPECT_EQ(text_of(file->find("empty")), "");
  EXPECT_EQ(text_of(file->find("three")), "none");
  std::uint64_t value = 0;
  EXPECT_TRUE(file->get("two", value));
  EXPECT_FALSE(file->get("one", value)) << "it is shorter than the value";
}

TEST(Sections, EveryFlippedBitIsFound) {
  std::vector<std::byte> file = sample();
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    file[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    EXPECT_EQ(SectionsFile::parse(file, kMagic).error().code, Errc::corrupt) << bit;
    file[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
  }
}

TEST(Sections, EveryShorterFileIsFound) {
  const std::vector<std::byte> file = sample();
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_EQ(SectionsFile::parse({file.begin(), file.begin() + static_cast<long>(size)}, kMagic)
                  .error()
                  .code,
              Errc::corrupt);
}

TEST(Sections, ALongerEarlierContentBehindDoesNotMatter) {
  std::vector<std::byte> file = sample(3);
  file.resize(file.size() + 500, std::byte{0x77});
  EXPECT_TRUE(SectionsFile::parse(file, kMagic));
}

TEST(Sections, AnotherVersionIsNotDamage) {
  std::vector<std::byte> file = sample();
  detail::SectionsHeader header = header_of(file);
  header.version = 2;
  reseal(file, header);
  EXPECT_EQ(SectionsFile::parse(file, kMagic).error().code, Errc::wrong_format);
  EXPECT_EQ(SectionsFile::parse(sample(), detail::kCheckpointMagic).error().code, Errc::corrupt);
}

// The last section says whose a file is: 24 bytes, as docs/format.md has them.
TEST(Sections, OfAnotherTopicAreDamage) {
  const std::string one = "first";
  const std::vector<Section> sections{{"one", bytes(one)}};
  const detail::SectionsKind kind{kMagic, 0x1122'3344'5566'7788};
  const std::vector<std::byte> of_nobody = SectionsFile::format(kMagic, 1, sections);
  const std::vector<std::byte> of_one = SectionsFile::format(kind, 1, sections);
  EXPECT_EQ(text_of(std::span{of_one}.last(24)),
            (std::string{"salt\0\0\0\0\0\0\0\0\x08\0\0\0\x88\x77\x66\x55\x44\x33\x22\x11", 24}));
  EXPECT_TRUE(SectionsFile::parse(of_one, kind));
  EXPECT_EQ(SectionsFile::parse(of_one, {kMagic, kind.salt + 1}).error().code, Errc::corrupt);
  // An earlier version neither writes it nor looks at it.
  EXPECT_TRUE(SectionsFile::parse(of_nobody, kind));
  EXPECT_TRUE(SectionsFile::parse(of_one, kMagic));
  EXPECT_EQ(of_one.size(), of_nobody.size() + 24);
}

TEST(Sections, SizesThatLieAreFoundBehindARightChecksum) {
  for (const std::uint32_t count : {0U, 2U, 4U, 255U}) {
    std::vector<std::byte> file = sample();
    detail::SectionsHeader header = header_of(file);
    header.count = count;
    reseal(file, header);
    EXPECT_EQ(SectionsFile::parse(file, kMagic).error().code, Errc::corrupt) << count;
  }
  for (const std::uint32_t size : {9U, 200U, 0xffff'ffffU, 0xffff'fff9U}) {
    std::vector<std::byte> file = sample();
    std::memcpy(file.data() + sizeof(detail::SectionsHeader) + 12, &size, sizeof(size));
    reseal(file, header_of(file));
    EXPECT_FALSE(SectionsFile::parse(file, kMagic)) << size;
  }
}

class PairTest : public ::testing::Test {
 protected:
  void write(const std::string& text) {
    const std::vector<Section> sections{{"text", bytes(text)}};
    ASSERT_TRUE(pair_.replace_older(store_.disk, store_.directory(), "x", kMagic, sections, {}));
  }
  std::string read() {
    auto pair = SectionsPair::load(store_.disk, store_.directory(), "x", kMagic);
    return pair ? text_of(pair->newest().find("text")) : describe(pair.error());
  }
  std::string path(int copy) { return store_.topic_path() + "/x-" + std::to_string(copy); }

  TestStore store_;
  SectionsPair pair_;
};

TEST_F(PairTest, TheNewerOneCounts) {
  EXPECT_EQ(SectionsPair::load(store_.disk, store_.directory(), "x", kMagic).error().code,
            Errc::not_found);
  for (const std::string& text : std::vector<std::string>{"a", std::string(1000, 'b'), "c", "d"}) {
    write(text);
    EXPECT_EQ(read(), text);
  }
}

TEST_F(PairTest, TheOtherOneIsThereIfOneIsDamaged) {
  write("old");
  write("new");
  std::filesystem::resize_file(path(1), 10);
  EXPECT_EQ(read(), "old");
  auto pair = SectionsPair::load(store_.disk, store_.directory(), "x", kMagic);
  EXPECT_EQ(pair->error(1).code, Errc::corrupt);
  pair_ = std::move(*pair);
  write("newest");  // Over the damaged one.
  EXPECT_EQ(read(), "newest");
  std::filesystem::resize_file(path(1), 10);
  EXPECT_EQ(read(), "old");
  std::filesystem::remove(path(0));
  EXPECT_EQ(SectionsPair::load(store_.disk, store_.directory(), "x", kMagic).error().code,
            Errc::corrupt);
}

TEST(Manifest, ValuesThatDescribeNoTopicAreRefused) {
  TestStore store;
  const auto refused = [&](auto&& change) {
    detail::Manifest wrong = small_manifest();
    change(wrong.topic);
    EXPECT_FALSE(wrong.is_valid());
    EXPECT_TRUE(detail::store_manifest(store.disk, store.directory(), wrong));
    EXPECT_EQ(detail::load_manifest(store.disk, store.directory()).error().code, Errc::corrupt);
  };
  refused([](auto& topic) { topic.partition_count = 0; });
  refused([](auto& topic) { topic.partition_count = 1025; });
  refused([](auto& topic) { topic.segment_size = 4097; });
  refused([](auto& topic) { topic.segment_size = std::uint64_t{1} << 40; });
  refused([](auto& topic) { topic.window_segments = 1; });
  refused([](auto& topic) { topic.file_bytes = 1000; });
  refused([](auto& topic) { topic.durability = 0; });
  refused([](auto& topic) { topic.durability = 4; });
  refused([](auto& topic) { topic.flags = 1U << 30; });
  refused([](auto& topic) { topic.policy = 9; });
  refused([](auto& topic) { topic.mode = 0200000; });
  refused([](auto& topic) { topic.retention_ms = -1; });
  refused([](auto& topic) { topic.sync_interval_ns = -1; });
  refused([](auto& topic) { topic.participants = 0; });
}

TEST(Manifest, TheWindowAndItsDirectoryComeBack) {
  TestStore store;
  detail::Manifest manifest = small_manifest();
  manifest.window.key = 77;
  manifest.window.boot[3] = std::byte{9};
  manifest.window_directory = "/dev/shm/leat-0";
  ASSERT_TRUE(detail::store_manifest(store.disk, store.directory(), manifest));
  auto loaded = detail::load_manifest(store.disk, store.directory());
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->window.key, 77U);
  EXPECT_EQ(loaded->window.boot[3], std::byte{9});
  EXPECT_EQ(loaded->window_directory, "/dev/shm/leat-0");
}

}  // namespace
}  // namespace leat::testing
