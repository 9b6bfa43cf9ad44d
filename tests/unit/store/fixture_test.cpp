// A data directory that an earlier version wrote can be read, byte for byte. If this failed, an update
// of Leat would lose the records of its users.
//
// tests/fixtures/store-1 was written by this file, with LEAT_MAKE_FIXTURE set to the directory's path.
// A later version of the format gets a directory of its own, and this one stays.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "leat/store/saved_groups.hpp"
#include "support/process.hpp"
#include "support/store_files.hpp"
#include "support/test_store.hpp"

namespace leat::testing {
namespace {

using Lines = std::vector<std::string>;

constexpr std::uint64_t kFixtureKey = 0x0123'4567'89ab'cdef;
constexpr std::int64_t kTime = 1'700'000'000'000;

detail::Manifest fixture_manifest() {
  detail::Manifest manifest = small_manifest(2);
  manifest.topic.flags = detail::kTimestamps;
  return manifest;
}

std::string big(char c) { return std::string(30'000, c); }

// Partition 0: three files, of which successors of an archiver that died wrote the last two. Partition 1: one file.
void write_fixture(TestStore& store) {
  const std::array<Header, 2> headers{{{"colour", "red"}, {"size", "12"}}};
  auto writer = store.writer(0);
  LogBytes log{kFixtureKey};
  log.full({.key = "anna", .headers = headers, .value = "first"}, kTime);
  log.batch({"second", "", "fourth"}).aborted("junk");
  log.full({.key = Bytes{"\x00\xff", 2}, .value = "sixth"}, kTime + 5);
  store.append(writer, log);
  LogBytes more = log.next();
  store.append(writer, more.full({.value = big('a')}, kTime + 6));
  store.checkpoint(writer, false);
  detail::SegmentWriter successor{store.disk, store.directory(), store.manifest.topic, 0};
  successor.begin(writer.generation() + 3, 7, 7, false);
  for (const char c : {'b', 'c', 'd'}) {
    LogBytes next{kFixtureKey + 2, 100, successor.end_offset()};
    store.append(successor, next.full({.value = big(c)}, kTime + 7));
  }
  LogBytes last{kFixtureKey + 2, 9000, successor.end_offset()};
  store.append(successor, last.died().full({.value = "end"}, kTime + 1));

  detail::SegmentWriter other{store.disk, store.directory(), store.manifest.topic, 1};
  other.begin(successor.generation(), 0, 0, true);
  LogBytes of_other{kFixtureKey + 2};
  store.append(other, of_other.full({.key = "bob", .value = "hello"}, kTime));
  store.checkpoint(other, true, 1);
  store.checkpoint(successor, true, 0);
}

Lines first_partition() {
  return {"0 first",       "1 second",        "2 ",
          "3 fourth",      "gap 4+1 aborted", "5 sixth",
          "6 " + big('a'), "7 " + big('b'),   "8 " + big('c'),
          "9 " + big('d'), "gap 10+1 died",   "11 end"};
}

TEST(Fixture, OfVersion1CanBeRead) {
  if (const char* path = std::getenv("LEAT_MAKE_FIXTURE"); path != nullptr) {
    TestStore store{fixture_manifest()};
    write_fixture(store);
    std::filesystem::create_directories(path);
    std::filesystem::copy(store.topic_path(), std::string{path} + "/orders");
  }
  const std::string fixture = std::string{LEAT_SOURCE_DIR} + "/tests/fixtures/store-1/orders";
  auto directory = detail::open_directory_path(fixture, false, false);
  ASSERT_TRUE(directory) << fixture;
  detail::Disk& disk = detail::Disk::system();
  auto manifest = detail::load_manifest(disk, directory->get());
  ASSERT_TRUE(manifest) << describe(manifest.error());
  EXPECT_EQ(manifest->topic.salt, fixture_manifest().topic.salt);
  EXPECT_EQ(manifest->topic.flags, std::uint32_t{detail::kTimestamps | detail::kDurable});
  EXPECT_EQ(read_store(disk, directory->get(), *manifest, 0), first_partition());
  EXPECT_EQ(read_store(disk, directory->get(), *manifest, 1), (Lines{"0 hello"}));
  auto report = detail::check_store(disk, directory->get());
  ASSERT_TRUE(report) << describe(report.error());
  EXPECT_FALSE(report->is_damaged()) << report->findings.front().text;
  EXPECT_TRUE(report->was_closed);
}

// Its checkpoint does not say whose it is. Nothing is lost when it is opened, and then it does.
TEST(Fixture, OfVersion1CanBeOpened) {
  PlacedFiles placed{read_files(std::string{LEAT_SOURCE_DIR} + "/tests/fixtures/store-1/orders")};
  detail::Disk& disk = detail::Disk::system();
  const auto is_signed = [&] {
    auto file = detail::SectionsPair::load(disk, placed.directory(), detail::kCheckpoint,
                                           detail::kCheckpointMagic);
    return file && file->newest().find("salt").has_value();
  };
  EXPECT_FALSE(is_signed());
  auto checkpoint = detail::CheckpointFile::load(disk, placed.directory(), fixture_manifest());
  EXPECT_TRUE(checkpoint && checkpoint->is_known());
  auto recovered = detail::recover_and_close(disk, placed.directory(), fixture_manifest());
  ASSERT_TRUE(recovered) << describe(recovered.error());
  EXPECT_EQ(recovered->cut_bytes(), 0U);
  EXPECT_EQ(placed.read(fixture_manifest()), first_partition());
  EXPECT_FALSE(placed.is_damaged());
  EXPECT_TRUE(is_signed());
}

// What this version writes is what the fixture was written as.
TEST(Fixture, IsWhatIsWrittenToday) {
  TestStore store{fixture_manifest()};
  write_fixture(store);
  EXPECT_EQ(store.read(0, 0), first_partition());
  EXPECT_EQ(store.read(0, 1), (Lines{"0 hello"}));
}

// ---- Groups: tests/fixtures/groups-1 --------------------------------------------------------------

// As it was made, and as two archivers saved it.
detail::SavedGroup group_fixture(std::uint64_t epoch) {
  detail::SavedGroup group;
  group.facts = {0xfeed'0000'0000'0001, epoch, kTime, detail::kByKey, 64, 1024, 5,
                 30'000'000'000,        epoch, 0};
  group.name = "workers";
  group.offsets =
      epoch == 0 ? std::vector<std::uint64_t>{0, 0} : std::vector<std::uint64_t>{10 * epoch, 7};
  if (epoch != 0) {
    group.in_flight = {{3, 0x8000'0000'1234'5678, 0, 0, 1},
                       {8, 0, 1'500'000'000, 0, 4},
                       {6, 0x8000'0000'0000'0001, 0, 1, 65'535}};
  }
  return group;
}
// Without the section that says whose files they are: there was none yet.
void write_group_fixture(int directory) {
  detail::Disk& disk = detail::Disk::system();
  detail::Manifest manifest = fixture_manifest();
  manifest.topic.salt = 0;
  ASSERT_TRUE(detail::store_new_group(disk, directory, group_fixture(0), manifest));
  for (const std::uint64_t epoch : {2U, 5U}) {
    detail::SectionsPair pair;
    const std::string name = detail::saved_group_name(group_fixture(0).facts.id, epoch);
    const detail::SavedGroup group = group_fixture(epoch);
    for (int copy = 0; copy < 2; ++copy) {
      ASSERT_TRUE(pair.replace_older(disk, directory, name, detail::kSavedGroupMagic,
                                     group.sections(), {}));
    }
  }
}

TEST(Fixture, GroupsOfVersion1CanBeRead) {
  if (const char* path = std::getenv("LEAT_MAKE_FIXTURE"); path != nullptr) {
    const std::string made = std::string{path} + "/groups";
    std::filesystem::create_directories(made);
    write_group_fixture(detail::open_directory_path(made, false, false)->get());
  }
  const std::string fixture = std::string{LEAT_SOURCE_DIR} + "/tests/fixtures/groups-1";
  auto directory = detail::open_directory_path(fixture, false, false);
  ASSERT_TRUE(directory) << fixture;
  auto groups =
      detail::load_groups(detail::Disk::system(), directory->get(), fixture_manifest().topic);
  ASSERT_TRUE(groups) << describe(groups.error());
  ASSERT_EQ(groups->size(), 1U);
  ASSERT_TRUE(groups->front().saved);
  EXPECT_TRUE(groups->front().damaged.empty());
  const detail::SavedGroup& group = *groups->front().saved;
  EXPECT_EQ(group.format(1, 0), group_fixture(5).format(1, 0));
  EXPECT_EQ(group.name, "workers");
  EXPECT_EQ(group.offsets, (std::vector<std::uint64_t>{50, 7}));
}

// Except for the section `salt`.
TEST(Fixture, OfGroupsIsWhatIsWrittenToday) {
  const TemporaryDirectory temp;
  write_group_fixture(detail::open_directory_path(temp.path(), false, false)->get());
  EXPECT_EQ(read_files(temp.path()),
            read_files(std::string{LEAT_SOURCE_DIR} + "/tests/fixtures/groups-1"));
}

}  // namespace
}  // namespace leat::testing
