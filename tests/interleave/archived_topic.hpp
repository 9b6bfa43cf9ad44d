// A durable topic whose archivers are threads of a test.
#pragma once

#include <memory>
#include <string>

#include "leat/log/durable_topic.hpp"
#include "small_topic.hpp"

namespace leat {

// A durable topic of three segments, without the threads that keep it: the tests' own threads do.
class ArchivedTopic {
 public:
  explicit ArchivedTopic(detail::StoredDurability durability = detail::StoredDurability::os) {
    const std::string path = SmallTopic::fresh_directory();
    std::filesystem::create_directories(path + "/data");
    std::filesystem::create_directories(path + "/topics");
    detail::Disk& disk = detail::Disk::system();
    detail::ManifestTopic& topic = manifest.topic;
    topic.salt = 1;
    topic.flags = detail::kDurable;
    topic.partition_count = 1;
    topic.segment_size = kSegment;
    topic.window_segments = 3;
    topic.participants = 10;
    topic.durability = static_cast<std::uint32_t>(durability);
    if (durability == detail::StoredDurability::interval) topic.sync_interval_ns = 1'000'000;
    topic.file_bytes = 64 << 10;
    topic.mode = 0600;
    topic.file_group = -1;
    auto data = must(detail::open_directory_path(path + "/data", false, false), "data");
    model::check(detail::create_store(disk, data.get(), "t", manifest).has_value(), "store");
    directory = must(detail::open_directory_at(data.get(), "t"), "store");
    auto recovered = must(detail::recover(disk, directory.get(), manifest), "recover");
    detail::NewTopic window = detail::window_of(topic);
    detail::NewWindow start;
    start.data_path = path + "/data/t";
    start.durability = durability;
    start.sync_interval_ns = topic.sync_interval_ns;
    start.epoch = recovered.generation;
    start.partitions.push_back(detail::start_at(recovered.partitions[0]));
    window.window = &start;
    manifest.window.key = window.geometry.key;
    model::check(detail::store_manifest(disk, directory.get(), manifest).has_value(), "manifest");
    auto topics = must(detail::open_directory_path(path + "/topics", false, false), "topics");
    model::check(detail::create_topic(topics, "t", window).has_value(), "window");
    shared = must(detail::attach_files(topics, "t"), "attach");
    topic_.emplace(TopicTesting::make(shared, path + "/topics"));
  }
  ~ArchivedTopic() {
    topic_.reset();
    shared.reset();
    std::filesystem::remove_all(SmallTopic::directory());
  }
  Topic* operator->() { return &*topic_; }
  // As another process has it.
  std::shared_ptr<detail::MappedTopic> attach() const {
    auto topics = must(
        detail::open_directory_path(SmallTopic::directory() + "/topics", false, false), "topics");
    return must(detail::attach_files(topics, "t"), "attach");
  }

  std::unique_ptr<detail::Archiver> archiver() {
    auto archiver = std::make_unique<detail::Archiver>(shared, detail::Disk::system(),
                                                       directory.get(), manifest);
    model::check(archiver->open_probe().has_value(), "probe");
    return archiver;
  }
  std::uint64_t written() const { return shared->durable()->written(0); }
  // What must never move back, and is on disk.
  std::uint64_t safe() const { return shared->durable()->kept_from(0); }

  std::string files() const {
    std::string text;
    auto names = detail::names_in(directory.get());
    for (const std::string& name : *names) {
      if (name.starts_with("segment-") || name.starts_with("cut-"))
        text +=
            ' ' + name + ':' +
            std::to_string(std::filesystem::file_size(SmallTopic::directory() + "/data/t/" + name));
    }
    return text;
  }

  // Everything before `end` is on disk, once, as it was published.
  void check_disk(std::uint64_t end, const std::map<std::uint64_t, Mark>& published) {
    auto lists = must(detail::list_segments(directory.get(), 1), "list");
    detail::StoredRecords records{detail::StoredFrames{
        detail::Disk::system(), directory.get(), manifest.topic.salt, 0, std::move(lists[0])}};
    model::check(records.seek(0).has_value(), "seek");
    detail::StoredEntry entry;
    std::uint64_t next = 0;
    const auto file = must(
        detail::CheckpointFile::load(detail::Disk::system(), directory.get(), manifest), "load");
    const auto is_gap = [&](std::uint64_t offset) {
      return std::ranges::any_of(file.value().gaps, [&](const detail::CheckpointGap& one) {
        return one.begin <= offset && offset < one.end;
      });
    };
    while (next < end && must(records.next(entry), "read")) {
      if (!entry.is_record) {
        model::check(entry.gap.first == next && entry.gap.reason == GapReason::died,
                     "gap at " + std::to_string(next) + '+' + std::to_string(entry.gap.count) +
                         ' ' + name_of(entry.gap.reason) + files());
        next += entry.gap.count;
        continue;
      }
      model::check(entry.record.offset == next, "record " + std::to_string(entry.record.offset) +
                                                    " instead of " + std::to_string(next));
      model::check(!is_gap(next), "a record is called a gap");
      const Mark mark = mark_of(std::string{entry.record.text()}, true);
      const auto found = published.find(next);
      model::check(found == published.end() || found->second == mark, "another record");
      ++next;
    }
    model::check(next >= end, "only " + std::to_string(next) + " of " + std::to_string(end));
  }

  detail::Manifest manifest;
  detail::Fd directory;
  std::shared_ptr<detail::MappedTopic> shared;

 private:
  std::optional<Topic> topic_;
};

}  // namespace leat
