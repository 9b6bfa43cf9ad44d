// Groups of a durable topic that no thread keeps: the tests save them when they want to.
//
//     UnkeptTopic topic;
//     auto saver = topic.saver(1);          // an archiver's epoch
//     … group_of(*topic, …) …
//     EXPECT_TRUE(saver->save());
//     topic.load()                          // what is saved
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "group_testing.hpp"
#include "leat/log/durable_topic.hpp"
#include "support/test_store.hpp"

namespace leat {

class UnkeptTopic {
 public:
  UnkeptTopic() : manifest_{testing::small_manifest()} {
    std::filesystem::create_directories(place_ / "data");
    std::filesystem::create_directories(place_ / "topics");
    detail::ManifestTopic& topic = manifest_.topic;
    topic.flags = detail::kDurable;
    topic.window_segments = 64;
    topic.participants = 20;
    topic.durability = static_cast<std::uint32_t>(detail::StoredDurability::os);
    detail::Disk& disk = detail::Disk::system();
    auto data = must(detail::open_directory_path((place_ / "data").string(), false, false));
    must(detail::create_store(disk, data.get(), kTopicName, manifest_));
    directory_ = must(detail::open_directory_at(data.get(), kTopicName));
    auto recovered = must(detail::recover(disk, directory_.get(), manifest_));
    detail::NewTopic window = detail::window_of(topic);
    detail::NewWindow start;
    start.data_path = data_path();
    start.durability = detail::StoredDurability::os;
    start.epoch = recovered.generation;
    for (const auto& end : recovered.partitions) start.partitions.push_back(detail::start_at(end));
    window.window = &start;
    manifest_.window.key = window.geometry.key;
    must(detail::store_manifest(disk, directory_.get(), manifest_));
    auto topics = must(detail::open_directory_path((place_ / "topics").string(), false, false));
    must(detail::create_topic(topics, kTopicName, window));
    shared_ = must(detail::attach_files(topics, kTopicName));
    topic_.emplace(TopicTesting::make(shared_, (place_ / "topics").string()));
  }
  const Topic& operator*() const { return *topic_; }
  const Topic* operator->() const { return &*topic_; }

  std::string data_path() const { return (place_ / "data" / kTopicName).string(); }
  int directory() const { return directory_.get(); }
  const detail::Manifest& manifest() const { return manifest_; }
  detail::MappedTopic& shared() const { return *shared_; }

  std::unique_ptr<detail::GroupSaver> saver(std::uint64_t epoch,
                                            detail::Disk& disk = detail::Disk::system()) const {
    auto saver = std::make_unique<detail::GroupSaver>(*shared_, disk, directory(), manifest_);
    saver->begin(epoch);
    return saver;
  }
  // An archiver's, without its thread.
  detail::Archiver archiver() const {
    return {shared_, detail::Disk::system(), directory(), manifest_};
  }
  std::vector<detail::StoredGroup> load() const { return load(directory()); }
  std::vector<detail::StoredGroup> load(int directory) const {
    detail::Disk disk;  // Not the one that a test has put in its place.
    return must(detail::load_groups(disk, directory, manifest_.topic));
  }
  // Of the group in memory that has the name.
  std::uint64_t saved_id(const std::string& name) const {
    for (std::uint32_t slot = 0; slot < detail::kMaxGroups; ++slot) {
      if (shared_->group_number(slot) == 0) continue;
      const auto group = must(shared_->group(slot));
      if (group->name() == name && !group->is_closed())
        return detail::load_relaxed<detail::Why::test>(group->header().saved_id);
    }
    throw std::runtime_error{"no group " + name};
  }

 private:
  TestDirectory place_;
  detail::Manifest manifest_;
  detail::Fd directory_;
  std::shared_ptr<detail::MappedTopic> shared_;
  std::optional<Topic> topic_;
};

// As long as it lives, it is the operating system's disk.
class DiskReplaced {
 public:
  explicit DiskReplaced(detail::Disk& disk) { detail::Disk::replace_system(&disk); }
  ~DiskReplaced() { detail::Disk::replace_system(nullptr); }
  DiskReplaced(const DiskReplaced&) = delete;
  DiskReplaced& operator=(const DiskReplaced&) = delete;
};

// Whether what is saved delivers the record of this offset.
inline bool delivers(const detail::SavedGroup& saved, std::uint64_t offset,
                     std::uint32_t partition = 0) {
  return offset >= saved.offsets[partition] ||
         std::any_of(saved.in_flight.begin(), saved.in_flight.end(),
                     [&](const detail::SavedInFlight& one) {
                       return one.partition == partition && one.offset == offset;
                     });
}

}  // namespace leat
