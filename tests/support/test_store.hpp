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

#include "leat/store/segment_writer.hpp"
#include "leat/store/store.hpp"

namespace leat::testing {

// Builds what becomes one frame.
class LogBytes {
 public:
  explicit LogBytes(std::uint64_t key, std::uint64_t position = 0, std::uint64_t first_offset = 0)
      : key_{key}, start_{position}, first_{first_offset} {}

  LogBytes& record(std::string_view value) { return add(detail::RecordKind::data, value, 1); }
  LogBytes& aborted(std::string_view junk = "") {
    return add(detail::RecordKind::aborted, junk, 1);
  }
  LogBytes& died() { return add(detail::RecordKind::died, "", 1); }
  LogBytes& timed(std::string_view value, std::int64_t timestamp_ms) {
    std::string payload(8, '\0');
    std::memcpy(payload.data(), &timestamp_ms, 8);
    newest_ms_ = std::max(newest_ms_, timestamp_ms);
    return add(detail::RecordKind::data, payload += value, 1, detail::kHasTimestamp);
  }
  // With a key, headers and a timestamp.
  LogBytes& full(const NewRecord& record, std::int64_t timestamp_ms) {
    const detail::ExtensionSizes sizes = detail::extension_sizes(record, true);
    std::string payload(sizes.total + record.value.size(), '\0');
    auto* const at = reinterpret_cast<std::byte*>(payload.data());
    std::byte* const value = detail::write_extension(at, record, sizes);
    std::memcpy(at, &timestamp_ms, sizeof(timestamp_ms));  // Not the time of the test.
    std::memcpy(value, record.value.data(), record.value.size());
    newest_ms_ = std::max(newest_ms_, timestamp_ms);
    return add(detail::RecordKind::data, payload, 1, sizes.flags);
  }
  LogBytes& batch(const std::vector<std::string>& values) {
    std::string payload(sizeof(detail::BatchHeader), '\0');
    const auto count = static_cast<std::uint32_t>(values.size());
    std::memcpy(payload.data(), &count, sizeof(count));
    for (const std::string& value : values) {
      const auto size = static_cast<std::uint32_t>(value.size());
      payload.append(reinterpret_cast<const char*>(&size), sizeof(size)).append(value);
      payload.resize((payload.size() + 7) / 8 * 8);
    }
    return add(detail::RecordKind::batch, payload, count);
  }

  std::span<const std::byte> bytes() const { return bytes_; }
  detail::FrameFacts facts() const {
    return {key_, start_, first_, offsets_, records_, newest_ms_};
  }
  // The next frame of the same log.
  LogBytes next() const {
    return LogBytes{key_, start_ + bytes_.size() / detail::kGranule, first_ + offsets_};
  }

 private:
  LogBytes& add(detail::RecordKind kind, std::string_view payload, std::uint32_t offsets,
                std::uint32_t flags = 0) {
    const std::uint64_t granules = detail::granules_for(payload.size());
    const std::uint64_t position = start_ + bytes_.size() / detail::kGranule;
    detail::RecordHeader header{};
    header.commit = detail::position_tag(position, key_) | static_cast<std::uint64_t>(kind);
    header.claim = static_cast<std::uint32_t>(granules) |
                   (kind == detail::RecordKind::batch ? detail::kBatchClaim : 0);
    header.detail = static_cast<std::uint32_t>(payload.size()) | flags;
    const std::size_t at = bytes_.size();
    bytes_.resize(at + granules * detail::kGranule);
    std::memcpy(bytes_.data() + at, &header, sizeof(header));
    if (!payload.empty())
      std::memcpy(bytes_.data() + at + sizeof(header), payload.data(), payload.size());
    offsets_ += offsets;
    if (kind == detail::RecordKind::data || kind == detail::RecordKind::batch) records_ += offsets;
    return *this;
  }

  std::uint64_t key_;
  std::uint64_t start_;
  std::uint64_t first_;
  std::uint32_t offsets_ = 0;
  std::uint32_t records_ = 0;
  std::int64_t newest_ms_ = detail::kNoTimestamp;
  std::vector<std::byte> bytes_;
};

inline detail::Manifest small_manifest(std::uint32_t partitions = 1) {
  detail::Manifest manifest;
  manifest.topic.salt = 0x5a17;
  manifest.topic.created_ms = 1'700'000'000'000;
  manifest.topic.partition_count = partitions;
  manifest.topic.segment_size = 4096;
  manifest.topic.window_segments = 8;
  manifest.topic.participants = 16;
  manifest.topic.durability = static_cast<std::uint32_t>(detail::StoredDurability::os);
  manifest.topic.file_bytes = 64 << 10;
  manifest.topic.mode = 0600;
  manifest.topic.file_group = -1;
  return manifest;
}

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
  // Syncs, and stores what a keeper stores: `closed` as the last one to leave.
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
