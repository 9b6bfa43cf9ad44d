// The groups in a copy of a topic. If these failed, a group of a restored topic would pass over new records, or get
// records again that were acknowledged before the backup.
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "leat/store/backup.hpp"
#include "saved_testing.hpp"
#include "support/process.hpp"

namespace leat {
namespace {

// Between the listing of the groups' files and the opening of the first one somebody else does something.
class MeanwhileDisk : public detail::Disk {
 public:
  explicit MeanwhileDisk(std::function<void()> meanwhile) : meanwhile_{std::move(meanwhile)} {}
  Result<detail::Fd> open(int directory, const char* name, int flags,
                          ::mode_t mode) noexcept override {
    if (meanwhile_ && std::string_view{name}.starts_with("group-"))
      std::exchange(meanwhile_, nullptr)();
    return Disk::open(directory, name, flags, mode);
  }

 private:
  std::function<void()> meanwhile_;
};

class BackupOfGroups : public ::testing::Test {
 protected:
  // What the copy has of the topic's only group.
  detail::SavedGroup copied_group(detail::Disk& disk = detail::Disk::system()) {
    auto parent = must(detail::open_directory_path(copies_.path(), false, false));
    must(detail::copy_store(disk, topic_.directory(), topic_.manifest(), {.is_open = true},
                            parent.get(), "copy"));
    auto copy = must(detail::open_directory_at(parent.get(), "copy"));
    auto groups = topic_.load(copy.get());
    EXPECT_EQ(groups.size(), 1U);
    EXPECT_TRUE(groups.at(0).saved && groups.at(0).damaged.empty());
    return *groups.at(0).saved;
  }
  UnkeptTopic topic_;
  testing::TemporaryDirectory copies_;
};

// What is published to the restored topic gets the offsets behind its end.
TEST_F(BackupOfGroups, AreNotAheadOfItsRecords) {
  auto publisher = must(topic_->publisher());
  publish_numbers(publisher, 20);
  Member member = join(group_of(*topic_, {.mode = GroupMode::at_most_once}, "most"));
  auto saver = topic_.saver(1);
  must(saver->save());
  (void)take(member);
  must(saver->save());
  ASSERT_GT(topic_.load().at(0).saved->offsets[0], 20U);
  // No archiver has written a record, so the copy ends where the topic began.
  EXPECT_EQ(copied_group().offsets, std::vector<std::uint64_t>{0});
}

TEST_F(BackupOfGroups, AreCopiedAgainIfANewArchiverHasReplacedTheirFiles) {
  auto publisher = must(topic_->publisher());
  publish_numbers(publisher, 20);
  Member member = join(group_of(*topic_, {}, "least"));
  auto first = topic_.saver(1);
  must(first->save());
  for (int i = 0; i < 5; ++i) must(member.acknowledge(take(member)));
  must(first->save());
  MeanwhileDisk disk{[&] {
    auto second = topic_.saver(2);
    for (int i = 0; i < 5; ++i) must(member.acknowledge(take(member)));
    must(second->save());
    must(second->save());
  }};
  EXPECT_EQ(copied_group(disk).facts.epoch, 2U);
}

}  // namespace
}  // namespace leat
