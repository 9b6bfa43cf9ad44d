// Log bytes as publishers leave them in a segment, to become a frame; and the manifest of a small topic.
//
//     LogBytes log{key};
//     log.record("one").batch({"two", "three"}).aborted();
//     writer.append(log.facts(), log.bytes());
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
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

}  // namespace leat::testing
