// The files of a durable topic's groups: damaged anywhere, cut anywhere, on a disk of which any call fails.
// If these failed, a group would begin at a wrong place without telling anybody, and records would be lost or
// be delivered twice.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "saved_testing.hpp"
#include "support/bad_sector_disk.hpp"
#include "support/failing_disk.hpp"
#include "support/one_of.hpp"
#include "support/recorded_disk.hpp"
#include "support/store_files.hpp"

namespace leat {
namespace {

using detail::SavedGroup;
using detail::StoredGroup;
using testing::FailingDisk;
using testing::PlacedFiles;
using testing::StoreFiles;

// Without what a damaged disk may not change: which of two whole copies it is.
std::string to_text(const SavedGroup& saved) {
  std::string text = saved.name + " at " + std::to_string(saved.offsets[0]);
  for (const detail::SavedInFlight& one : saved.in_flight)
    text += ' ' + std::to_string(one.offset) + 'x' + std::to_string(one.deliveries);
  return text;
}
std::optional<StoredGroup> find(int directory, const detail::Manifest& manifest, std::uint64_t id) {
  auto groups = must(detail::load_groups(detail::Disk::system(), directory, manifest.topic));
  for (StoredGroup& one : groups)
    if (one.id == id) return std::move(one);
  return {};
}

// Between the listing and the first reading somebody else does something.
class MeanwhileDisk : public detail::Disk {
 public:
  explicit MeanwhileDisk(std::function<void()> meanwhile) : meanwhile_{std::move(meanwhile)} {}
  Result<detail::Fd> open(int directory, const char* name, int flags,
                          ::mode_t mode) noexcept override {
    if (meanwhile_) std::exchange(meanwhile_, nullptr)();
    return Disk::open(directory, name, flags, mode);
  }

 private:
  std::function<void()> meanwhile_;
};

// Two groups, saved in one epoch after the other, at positions that differ each time.
class SavedFiles : public ::testing::Test {
 protected:
  SavedFiles() {
    auto publisher = must(topic_->publisher());
    publish_numbers(publisher, 50);
    Member least = join(group_of(*topic_, {}, "least"));
    Member most = join(group_of(*topic_, {.mode = GroupMode::at_most_once}, "most"));
    least_ = topic_.saved_id("least");
    most_ = topic_.saved_id("most");
    auto first = topic_.saver(1);
    must(first->save());
    (void)take(least);
    for (std::uint64_t i = 0; i < 4; ++i) must(least.acknowledge(take(least)));
    (void)take(most);
    auto second = topic_.saver(2);
    must(second->save());
    older_ = of(least_);
    for (std::uint64_t i = 0; i < 4; ++i) must(least.acknowledge(take(least)));
    must(second->save());
    newest_ = of(least_);
    ahead_ = find(topic_.directory(), topic_.manifest(), most_)->saved->offsets[0];
    EXPECT_NE(older_, newest_);
    EXPECT_EQ(ahead_, 1024U);
    files_ = testing::read_files(topic_.data_path());
  }
  std::string of(std::uint64_t id) {
    return to_text(*find(topic_.directory(), topic_.manifest(), id)->saved);
  }
  std::vector<std::string> files_of(std::uint64_t id) const {
    std::vector<std::string> names;
    for (const auto& [name, bytes] : files_)
      if (name.starts_with(detail::saved_group_name(id))) names.push_back(name);
    return names;
  }
  // After a file was damaged: the right group, or an older one, or nothing; and the damage is known.
  void expect_right(int directory, std::uint64_t id, const std::string& file) {
    const auto found = find(directory, topic_.manifest(), id);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->damaged, (std::vector<std::string>{file}));
    ASSERT_TRUE(found->saved) << "one of three files was damaged";
    if (id == most_) {
      EXPECT_EQ(found->saved->offsets[0], ahead_);
      EXPECT_TRUE(found->saved->in_flight.empty());
    } else if (const std::string text = to_text(*found->saved); text != newest_) {
      EXPECT_EQ(text, older_);
    }
  }

  UnkeptTopic topic_;
  std::uint64_t least_ = 0;
  std::uint64_t most_ = 0;
  std::string older_, newest_;  // of `least`
  std::uint64_t ahead_ = 0;     // of `most`
  StoreFiles files_;
};

TEST_F(SavedFiles, AreThreeOfEachGroup) {
  for (const std::uint64_t id : {least_, most_}) {
    const std::string name = detail::saved_group_name(id);
    EXPECT_EQ(files_of(id), (std::vector<std::string>{name, name + "-0000000000000002-0",
                                                      name + "-0000000000000002-1"}));
  }
}

TEST_F(SavedFiles, AnyBitThatFlipsIsNoticed) {
  PlacedFiles placed{files_};
  for (const std::uint64_t id : {least_, most_}) {
    for (const std::string& name : files_of(id)) {
      std::string bytes = files_.at(name);
      for (std::size_t bit = 0; bit < bytes.size() * 8 && !HasFailure(); bit += testing::kOneOf) {
        SCOPED_TRACE(name + ", bit " + std::to_string(bit));
        const auto flip = static_cast<char>(1 << bit % 8);
        bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ flip);
        placed.put(name, bytes);
        // Another version, or another file's magic number, is told, too.
        auto loaded = detail::load_groups(detail::Disk::system(), placed.directory(),
                                          topic_.manifest().topic);
        if (loaded) expect_right(placed.directory(), id, name);
        if (!loaded) {
          EXPECT_EQ(loaded.error().code, Errc::wrong_format);
        }
        if (bit % 101 == 0) {
          EXPECT_TRUE(placed.is_damaged());
        }
        bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ flip);
      }
      placed.put(name, bytes);
    }
  }
}

TEST_F(SavedFiles, AnyLengthThatIsLeftIsNoticed) {
  PlacedFiles placed{files_};
  for (const std::uint64_t id : {least_, most_}) {
    for (const std::string& name : files_of(id)) {
      const std::string& bytes = files_.at(name);
      for (std::size_t size = 0; size < bytes.size() && !HasFailure(); ++size) {
        SCOPED_TRACE(name + ", " + std::to_string(size) + " bytes");
        placed.put(name, bytes.substr(0, size));
        expect_right(placed.directory(), id, name);
      }
      placed.put(name, bytes);
    }
  }
}

// The first file still says where the group began, long ago.
TEST_F(SavedFiles, TwoDamagedCopiesDoNotBeginAGroupAnew) {
  PlacedFiles placed{files_};
  for (const std::uint64_t id : {least_, most_}) {
    const auto names = files_of(id);
    for (const std::string& name : {names[1], names[2]}) placed.put(name, "nonsense");
    const auto found = find(placed.directory(), topic_.manifest(), id);
    ASSERT_TRUE(found);
    EXPECT_FALSE(found->saved);
    EXPECT_EQ(found->damaged, (std::vector<std::string>{names[1], names[2]}));
    EXPECT_TRUE(placed.is_damaged());
    placed.reset();
  }
}

TEST_F(SavedFiles, AGroupOfATopicWithOtherPartitionsIsDamage) {
  detail::ManifestTopic other = topic_.manifest().topic;
  other.partition_count = 2;
  auto groups = detail::load_groups(detail::Disk::system(), topic_.directory(), other);
  ASSERT_TRUE(groups);
  for (const StoredGroup& one : *groups) EXPECT_FALSE(one.saved);
}

TEST_F(SavedFiles, FilesOfAnotherTopicAreDamage) {
  detail::Disk& disk = detail::Disk::system();
  PlacedFiles placed{files_};
  EXPECT_FALSE(placed.is_damaged());
  detail::Manifest other = topic_.manifest();
  ++other.topic.salt;
  must(detail::store_manifest(disk, placed.directory(), other));
  for (const std::uint64_t id : {least_, most_}) {
    const auto found = find(placed.directory(), other, id);
    ASSERT_TRUE(found);
    EXPECT_FALSE(found->saved);
    EXPECT_EQ(sorted(found->damaged), files_of(id));
  }
  std::vector<std::string> reported;
  for (const auto& one : must(detail::check_store(disk, placed.directory())).findings)
    if (one.is_damage && one.file.starts_with("group-")) reported.push_back(one.file);
  EXPECT_EQ(reported.size(), 6U);
  EXPECT_EQ(must(detail::repair_groups(disk, placed.directory(), other)).size(), 2U);
  EXPECT_EQ(must(detail::load_groups(disk, placed.directory(), other.topic)).size(), 0U);
}

// What no group can be like is refused, even if the checksum is right.
TEST_F(SavedFiles, WhatMakesNoSenseIsDamage) {
  const SavedGroup right = *find(topic_.directory(), topic_.manifest(), least_)->saved;
  ASSERT_FALSE(right.in_flight.empty());
  const auto is_read = [](const SavedGroup& saved) {
    auto file = must(detail::SectionsFile::parse(saved.format(1, 0), detail::kSavedGroupMagic));
    return SavedGroup::read(file, 1).has_value();
  };
  EXPECT_TRUE(is_read(right));
  const std::vector<std::function<void(SavedGroup&)>> changes{
      [](SavedGroup& group) { group.facts.seat_count = 0; },
      [](SavedGroup& group) { group.facts.flags = 1 << 30; },
      [](SavedGroup& group) { group.facts.lease_ns = -1; },
      [](SavedGroup& group) { group.name.clear(); },
      [](SavedGroup& group) { group.name.assign(detail::kMaxGroupName + 1, 'n'); },
      [](SavedGroup& group) { group.in_flight[0].offset = group.offsets[0]; },
      [](SavedGroup& group) { group.in_flight[0].partition = 1; },
      [](SavedGroup& group) { group.in_flight[0].delay_ns = -1; },
      [](SavedGroup& group) { group.in_flight.push_back(group.in_flight[0]); },
      [](SavedGroup& group) {
        group.facts.in_flight_limit = group.facts.seat_count = 1;
        group.offsets[0] = 1000;
        group.in_flight.clear();
        for (std::uint64_t i = 0; i < 900; ++i) group.in_flight.push_back({i, 0, 0, 0, 1});
      }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    SavedGroup wrong = right;
    changes[i](wrong);
    EXPECT_FALSE(is_read(wrong)) << i;
  }
}

// Both copies of the checkpoint are lost: the next epoch must be above those of the saved groups, or
// nobody would read what its archiver saves.
TEST_F(SavedFiles, TheNextEpochIsLaterThanAllThatSaved) {
  must(topic_.saver(77)->save());
  PlacedFiles placed{testing::read_files(topic_.data_path())};
  for (const char* name : {"checkpoint-0", "checkpoint-1"}) placed.erase(name);
  const auto recovered =
      must(detail::recover(detail::Disk::system(), placed.directory(), topic_.manifest()));
  EXPECT_GT(recovered.generation, 77U);
}

// The first save of an epoch ends when both files have their names for good: the next one overwrites the
// first of them, and the files of earlier epochs are gone by then.
TEST(SavedGroup, FirstSaveNamesBothCopiesForGood) {
  UnkeptTopic topic;
  testing::RecordedDisk disk{topic.data_path()};
  const DiskReplaced replaced{disk};
  (void)group_of(*topic);
  const std::uint64_t id = topic.saved_id(kGroupName);
  auto saver = topic.saver(1, disk);
  must(saver->save());
  testing::Random random{1};
  for (int round = 0; round < 50; ++round) {
    testing::ScratchDirectory left;
    disk.replay(disk.calls(), random, left.path);
    for (const char* copy : {"-0", "-1"})
      EXPECT_TRUE(
          std::filesystem::exists(left.path + '/' + detail::saved_group_name(id, 1) + copy));
  }
}

// ---- Errors ---------------------------------------------------------------------------------------

// Whatever call fails while a group is made, saved, closed or deleted: the call says so or succeeds, and when
// it is tried again, nothing has been lost.
class SavedErrors : public ::testing::TestWithParam<int> {};

TEST_P(SavedErrors, OfAnyCallLoseNothing) {
  for (const GroupMode mode : {GroupMode::at_least_once, GroupMode::at_most_once}) {
    for (const bool is_closing : {false, true}) {
      for (std::uint64_t call = 0;; ++call) {
        SCOPED_TRACE("call " + std::to_string(call));
        UnkeptTopic topic;
        FailingDisk disk{{.call = call, .error = GetParam(), .written = 40}};
        auto publisher = must(topic->publisher());
        publish_numbers(publisher, 10);
        auto saver = topic.saver(1, disk);
        const auto again = [&](auto&& work) {
          for (int i = 0; i < 3 && !work(); ++i) disk.mend();
          EXPECT_TRUE(work());
        };
        {
          const DiskReplaced replaced{disk};
          again([&] {
            return topic->group(kGroupName, {.from = From::beginning, .mode = mode}).has_value();
          });
        }
        again([&] { return saver->save().has_value(); });
        Member member = join(must(topic->find_group(kGroupName)));
        for (int i = 0; i < 3; ++i) must(member.acknowledge(take(member)));
        (void)take(member);
        { Member leaving = std::move(member); }
        again([&] { return saver->save(is_closing).has_value(); });
        const auto groups = topic.load();
        ASSERT_EQ(groups.size(), 1U);
        EXPECT_EQ(groups[0].damaged, std::vector<std::string>{});
        ASSERT_TRUE(groups[0].saved);
        std::vector<std::uint64_t> comes;
        for (std::uint64_t i = 0; i < 10; ++i)
          if (delivers(*groups[0].saved, i)) comes.push_back(i);
        const bool is_ahead = mode == GroupMode::at_most_once && !is_closing;
        EXPECT_EQ(comes.size(), is_ahead ? 0U : mode == GroupMode::at_most_once ? 6U : 7U);
        {
          const DiskReplaced replaced{disk};
          // A deletion that failed may have been made nevertheless.
          for (int i = 0; i < 3; ++i) {
            if (topic->delete_group(kGroupName)) break;
            disk.mend();
          }
          disk.mend();
          EXPECT_EQ(code(topic->find_group(kGroupName)), Errc::not_found);
        }
        EXPECT_TRUE(topic.load().empty());
        if (!disk.has_failed()) break;
        if (HasFailure()) return;
      }
    }
  }
}

// Whatever call fails while a group is deleted: if it is still there, it is where it was, not where it was saved.
TEST_P(SavedErrors, OfADeletionDoNotSetTheGroupBack) {
  for (std::uint64_t call = 0;; ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    UnkeptTopic topic;
    auto publisher = must(topic->publisher());
    publish_numbers(publisher, 10);
    const Group group = group_of(*topic);
    must(topic.saver(1)->save());
    {
      Member member = join(group);
      for (int i = 0; i < 3; ++i) must(member.acknowledge(take(member)));
    }
    FailingDisk disk{{.call = call, .error = GetParam()}};
    {
      const DiskReplaced replaced{disk};
      (void)topic->delete_group(kGroupName);
    }
    if (auto found = topic->find_group(kGroupName)) {
      Member member = join(*found);
      EXPECT_EQ(take(member).record.offset, 3U);
      EXPECT_EQ(topic.load().size(), 1U);
    } else {
      EXPECT_EQ(code(found), Errc::not_found);
      EXPECT_TRUE(topic.load().empty());
    }
    if (!disk.has_failed()) break;
  }
}

// Whatever call fails while groups are read: the right one, an older copy of it, or an error; no wrong one.
TEST_P(SavedErrors, OfAnyReadTellNothingWrong) {
  UnkeptTopic topic;
  auto publisher = must(topic->publisher());
  publish_numbers(publisher, 10);
  Member member = join(group_of(*topic));
  auto saver = topic.saver(1);
  must(saver->save());
  for (int i = 0; i < 3; ++i) must(member.acknowledge(take(member)));
  must(saver->save());
  const std::string newest = to_text(*topic.load()[0].saved);
  for (std::uint64_t call = 0;; ++call) {
    FailingDisk disk{{.call = call, .error = GetParam()}};
    auto groups = detail::load_groups(disk, topic.directory(), topic.manifest().topic);
    if (!disk.has_failed()) break;
    if (!groups) continue;
    EXPECT_EQ(GetParam(), EIO);  // It is tried again. The others say nothing about a file.
    ASSERT_EQ(groups->size(), 1U);
    EXPECT_EQ(groups->front().damaged, std::vector<std::string>{});
    ASSERT_TRUE(groups->front().saved);
    EXPECT_EQ(to_text(*groups->front().saved), newest);
  }
}

// If the disk does not return an archiver's only copy, that copy may be complete: an earlier archiver's would deliver
// records twice.
TEST_F(SavedFiles, ACopyThatCannotBeReadIsNotReplacedByAnEarlierOne) {
  PlacedFiles placed{files_};
  const std::string name =
      detail::SectionsPair::file_name(detail::saved_group_name(least_, 1000), 0);
  for (const bool is_readable : {true, false}) {
    placed.put(name, std::string(200, 'x'));
    testing::BadSectorDisk disk;
    if (!is_readable) disk.spoil(placed.directory(), name, 0, 4096);
    auto groups = must(detail::load_groups(disk, placed.directory(), topic_.manifest().topic));
    for (const detail::StoredGroup& one : groups) {
      if (one.id != least_) continue;
      EXPECT_EQ(one.damaged, std::vector<std::string>{name});
      EXPECT_EQ(one.saved.has_value(), is_readable);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Each, SavedErrors, ::testing::Values(EIO, ENOSPC, EMFILE));

// ---- Repair ---------------------------------------------------------------------------------------

TEST_F(SavedFiles, RepairWritesDamagedOnesAnew) {
  for (const std::uint64_t id : {least_, most_}) {
    for (const std::string& name : files_of(id)) {
      PlacedFiles placed{files_};
      placed.put(name, "nonsense");
      const std::string before = to_text(*find(placed.directory(), topic_.manifest(), id)->saved);
      EXPECT_EQ(must(detail::repair_groups(detail::Disk::system(), placed.directory(),
                                           topic_.manifest())),
                std::vector<std::string>{});
      const auto after = find(placed.directory(), topic_.manifest(), id);
      EXPECT_EQ(after->damaged, std::vector<std::string>{});
      EXPECT_EQ(to_text(*after->saved), before);
      EXPECT_EQ(after->files.size(), 3U);
      EXPECT_FALSE(placed.is_damaged());
      // The first file says the same, so that it can replace the others.
      for (const std::string& one : {files_of(id)[1], files_of(id)[2]}) placed.erase(one);
      EXPECT_EQ(to_text(*find(placed.directory(), topic_.manifest(), id)->saved), before);
    }
  }
}

TEST_F(SavedFiles, RepairDeletesWhatNothingCanBeReadOf) {
  PlacedFiles placed{files_};
  const auto names = files_of(least_);
  for (const std::string& name : {names[1], names[2]}) placed.put(name, "nonsense");
  // Left by a process that died while it made a group, and by an archiver that saved a deleted group.
  placed.put("+group-0000000000000001", "half");
  placed.put(detail::saved_group_name(2, 1) + "-0", "old");
  EXPECT_EQ(
      must(detail::repair_groups(detail::Disk::system(), placed.directory(), topic_.manifest())),
      (std::vector<std::string>{names[0]}));
  auto groups =
      detail::load_groups(detail::Disk::system(), placed.directory(), topic_.manifest().topic);
  ASSERT_EQ(groups->size(), 1U);
  EXPECT_EQ(groups->front().id, most_);
  std::vector<std::string> left;
  for (const std::string& name : must(detail::names_in(placed.directory())))
    if (name.find("group-") != std::string::npos) left.push_back(name);
  EXPECT_EQ(sorted(left), files_of(most_));
  EXPECT_FALSE(placed.is_damaged());
}

// Killed at any call, or with an error there: the group is still what it was.
TEST_F(SavedFiles, RepairThatFailsLosesNothing) {
  const std::string name = files_of(least_)[2];
  for (std::uint64_t call = 0;; ++call) {
    PlacedFiles placed{files_};
    placed.put(name, "nonsense");
    const std::string before = to_text(*find(placed.directory(), topic_.manifest(), least_)->saved);
    FailingDisk disk{{.call = call, .error = EMFILE, .from_then_on = true}};
    (void)detail::repair_groups(disk, placed.directory(), topic_.manifest());
    const auto after = find(placed.directory(), topic_.manifest(), least_);
    ASSERT_TRUE(after && after->saved) << call;
    EXPECT_EQ(to_text(*after->saved), before) << call;
    if (!disk.has_failed()) break;
  }
}

// The files of the earlier archiver are gone when they are read. That is not damage.
TEST_F(SavedFiles, AreReadAnewIfAnArchiverDeletesEarlierOnesMeanwhile) {
  auto third = topic_.saver(3);
  MeanwhileDisk disk{[&] {
    must(third->save());
    must(third->save());
  }};
  auto groups = must(detail::load_groups(disk, topic_.directory(), topic_.manifest().topic));
  ASSERT_EQ(groups.size(), 2U);
  for (const StoredGroup& one : groups) {
    ASSERT_TRUE(one.saved);
    EXPECT_TRUE(one.damaged.empty()) << one.damaged.front();
    EXPECT_NE(
        std::ranges::find_if(one.files,
                             [&](const std::string& name) {
                               return name.ends_with(detail::saved_group_name(one.id, 3) + "-0");
                             }),
        one.files.end());
  }
}

}  // namespace
}  // namespace leat
