// A durable topic's data directory for tests, and log bytes to put into it.
//
//     TestStore store;
//     LogBytes log{store.manifest.window.key};
//     log.record("one").record("two").aborted();
//     SegmentWriter writer = store.writer();
//     store.append(writer, log);            // one frame
//
// Log bytes are built as publishers leave them in a segment of the window, so tests need no topic in
// memory.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/log_bytes.hpp"

namespace leat::testing {

// What can be read: "0 one", "1 two", "gap 2+3 damaged".
inline std::vector<std::string> read_store(detail::Disk& disk, int directory,
                                           const detail::Manifest& manifest,
                                           std::uint32_t partition = 0, std::uint64_t from = 0) {
  std::vector<std::string> lines;
  auto lists = detail::list_segments(directory, manifest.topic.partition_count);
  auto file = detail::CheckpointFile::load(disk, directory, manifest);
  if (!lists || !file) return {"error " + describe(lists ? file.error() : lists.error())};
  auto ends = detail::find_ends(disk, directory, manifest, *file);
  if (!ends) return {"error " + describe(ends.error())};
  const detail::PartitionEnd& end = ends->partitions[partition];
  detail::StoredFrames frames{disk, directory, manifest.topic.salt, partition,
                              std::move((*lists)[partition])};
  frames.expect_end(end.frames_end, end.is_clean ? end.next_offset : 0);
  detail::StoredRecords records{std::move(frames)};
  if (auto found = records.seek(from); !found) return {"error " + describe(found.error())};
  detail::StoredEntry entry;
  for (;;) {
    auto more = records.next(entry);
    if (!more) return lines.push_back("error " + describe(more.error())), lines;
    if (!*more) return lines;
    if (entry.is_record) {
      lines.push_back(std::to_string(entry.record.offset) + ' ' + std::string{entry.record.text()});
    } else {
      lines.push_back("gap " + std::to_string(entry.gap.first) + '+' +
                      std::to_string(entry.gap.count) + ' ' + name_of(entry.gap.reason));
    }
  }
}

// A topic "t" in a directory of its own, deleted at the end.
class TestStore {
 public:
  explicit TestStore(detail::Manifest wanted = small_manifest(),
                     detail::Disk& where = detail::Disk::system())
      : manifest{std::move(wanted)}, disk{where} {
    char pattern[] = "/dev/shm/leat-store-XXXXXX";
    path = ::mkdtemp(pattern);
    data = std::move(*detail::open_directory_path(path, false, false));
    EXPECT_TRUE(detail::create_store(disk, data.get(), "t", manifest));
    topic = std::move(*detail::open_directory_at(data.get(), "t"));
  }
  ~TestStore() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TestStore(const TestStore&) = delete;
  TestStore& operator=(const TestStore&) = delete;

  int directory() const { return topic.get(); }
  std::string topic_path() const { return path + "/t"; }

  // A writer that goes on where the topic ends. Recovers the topic.
  detail::SegmentWriter writer(std::uint32_t partition = 0) {
    auto recovered = recover();
    detail::SegmentWriter writer{disk, directory(), manifest.topic, partition};
    const detail::PartitionEnd& end = recovered.partitions[partition];
    writer.begin(recovered.generation, end.next_offset, end.frames_end, !end.has_file);
    return writer;
  }
  detail::Recovered recover() {
    auto recovered = detail::recover(disk, directory(), manifest);
    EXPECT_TRUE(recovered) << describe(recovered.error());
    return recovered ? std::move(*recovered)
                     : detail::Recovered{
                           1, std::vector<detail::PartitionEnd>(manifest.topic.partition_count)};
  }
  void append(detail::SegmentWriter& writer, const LogBytes& log) {
    auto appended = writer.append(log.facts(), log.bytes());
    EXPECT_TRUE(appended) << describe(appended.error());
  }
  // Syncs, and stores what an archiver stores: `closed` as the last one to leave.
  void checkpoint(detail::SegmentWriter& writer, bool closed, std::uint32_t partition = 0) {
    if (closed) {
      EXPECT_TRUE(writer.finish_file());
    } else {
      EXPECT_TRUE(writer.sync());
    }
    auto file = detail::CheckpointFile::load(disk, directory(), manifest);
    ASSERT_TRUE(file);
    detail::Checkpoint value = file->value();
    value.state.generation = writer.generation();
    value.state.is_clean = closed ? 1 : 0;
    value.partitions[partition] = {writer.end_offset(),
                                   writer.end_offset() + detail::kReservedOffsets,
                                   writer.file_name().base_offset,
                                   writer.file_name().generation,
                                   writer.file_position(),
                                   writer.end_offset(),
                                   writer.newest_ms()};
    EXPECT_TRUE(file->store(disk, directory(), std::move(value)));
  }
  std::vector<std::string> read(std::uint64_t from = 0, std::uint32_t partition = 0) {
    return read_store(disk, directory(), manifest, partition, from);
  }
  detail::StoreReport check() {
    auto report = detail::check_store(disk, directory());
    EXPECT_TRUE(report) << describe(report.error());
    return report ? std::move(*report) : detail::StoreReport{};
  }

  detail::Manifest manifest;
  detail::Disk& disk;
  std::string path;
  detail::Fd data;
  detail::Fd topic;
};

}  // namespace leat::testing
