// What of a partition's log is committed and not on disk yet, as pieces that become frames.
//
//     CommittedPrefix prefix{topic, partition, records};
//     prefix.go_to(written);
//     while (auto piece = prefix.next()) … piece->bytes …
//
// Used by the archiver, which keeps the memory from being reused: nothing at or behind `written` is reused.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "leat/base/crash_point.hpp"
#include "leat/format/found_record.hpp"
#include "leat/format/store_layout.hpp"
#include "leat/format/wire.hpp"
#include "leat/log/hole_watch.hpp"
#include "leat/log/segments.hpp"
#include "leat/os/processor.hpp"
#include "leat/store/segment_writer.hpp"

namespace leat::inline v0::detail {

// Offset of a partition's next claim; nothing if it changes too fast to be read.
inline std::optional<std::uint64_t> try_end_of_claims(MappedTopic& topic,
                                                      std::uint32_t partition) noexcept {
  const PartitionView view = topic.partition(partition);
  const ClaimLayout& layout = topic.geometry().claim_layout;
  for (int attempt = 0; attempt < 100; ++attempt) {
    const auto point = load_claim_point(*view.control, layout);
    if (!point) break;
    auto segment = find_segment(topic, view, point->segment);
    if (segment) return segment->base_offset + layout.records(point->word);
  }
  return std::nullopt;
}
// The same, but 0 if it cannot be read. For callers to which 0 does no harm.
inline std::uint64_t end_of_claims(MappedTopic& topic, std::uint32_t partition) noexcept {
  return try_end_of_claims(topic, partition).value_or(0);
}
// The same, but reads again and again before it fails.
//   corrupt   the words of the log contradict each other
inline Result<std::uint64_t> known_end_of_claims(MappedTopic& topic,
                                                 std::uint32_t partition) noexcept {
  for (int attempt = 0; attempt < 100; ++attempt) {
    if (const auto end = try_end_of_claims(topic, partition)) return *end;
    LEAT_CRASH_POINT("end:unknown");
    yield_processor();
  }
  return Errc::corrupt;
}

class CommittedPrefix {
 public:
  // Consecutive records of one segment.
  struct Piece {
    FrameFacts facts;
    std::span<const std::byte> bytes;
  };

  CommittedPrefix(MappedTopic& topic, std::uint32_t partition, const std::byte* records) noexcept
      : topic_{&topic},
        view_{topic.partition(partition)},
        records_{records + view_.records_offset},
        geometry_{&topic.geometry()} {}

  // Goes to the record with this offset, which is not on disk.
  //   corrupt   the log has no such place
  Result<void> go_to(std::uint64_t offset) {
    std::uint64_t number = load_acquire<Edge::segment_open>(view_.control->current);
    for (std::uint32_t i = 0;; ++i, --number) {
      auto segment = find_segment(*topic_, view_, number);
      if (!segment) return segment.error();
      if (i > geometry_->segment_count) return Errc::corrupt;
      if (segment->base_offset > offset) continue;
      enter(*segment);
      break;
    }
    while (offset_ < offset) {
      FoundRecord found;
      const Check there = check(granule_, found);
      if (there == Check::nonsense) return Errc::corrupt;
      if (there == Check::record) {
        granule_ += found.granules;
        offset_ += found.records;
      } else if (!enter_next()) {
        return Errc::corrupt;
      }
    }
    if (offset_ != offset) return Errc::corrupt;
    return {};
  }

  // The records that are committed from here on, up to kTargetFrame bytes or one larger record; no
  // bytes if there are none.
  //   corrupt   the log was overwritten
  Result<Piece> next() {
    Piece piece;
    const bool has_timestamps = (geometry_->flags & kTimestamps) != 0;
    do {
      // Locals, because each acquire load would have the compiler write and read members again.
      const std::uint64_t from = granule_;
      std::uint64_t granule = from;
      std::uint64_t offset = offset_;
      std::uint64_t without_payload = 0;
      std::int64_t newest_ms = kNoTimestamp;
      for (;;) {
        FoundRecord found;
        const Check there = check(granule, found);
        if (there == Check::nonsense) return Errc::corrupt;
        if (there == Check::nothing) break;
        const std::uint64_t bytes = (granule - from + found.granules) * kGranule;
        if (granule != from && bytes > kTargetFrame) break;
        if (!found.has_payload()) {
          without_payload += found.records;
        } else if (has_timestamps) {
          newest_ms = std::max(newest_ms, newest_timestamp(granule, found));
        }
        granule += found.granules;
        offset += found.records;
      }
      piece.facts = {geometry_->key,
                     segment_.position + from,
                     offset_,
                     static_cast<std::uint32_t>(offset - offset_),
                     static_cast<std::uint32_t>(offset - offset_ - without_payload),
                     newest_ms};
      piece.bytes = {segment_.data + from * kGranule, (granule - from) * kGranule};
      granule_ = granule;
      offset_ = offset;
    } while (piece.bytes.empty() && enter_next());
    return piece;
  }

  // Takes the last piece back: it was not written.
  void take_back(const Piece& piece) noexcept {
    granule_ = piece.facts.position - segment_.position;
    offset_ = piece.facts.first_offset;
  }

  std::uint64_t offset() const noexcept { return offset_; }
  std::uint64_t segment() const noexcept { return segment_.number; }
  RecordPlace place() const noexcept {
    return {segment_.number, offset_ - segment_.base_offset, granule_};
  }

  // Whether something committed is there, or the next segment can be entered.
  bool has_more() const noexcept {
    if (granule_ < geometry_->segment_granules &&
        is_record_kind(segment_.kind(granule_, geometry_->key)))
      return true;
    const SegmentEntry& next = view_.entry(segment_.number + 1);
    return load_acquire<Edge::segment_map>(next.map) >> kPhysicalBits == segment_.number + 1 &&
           load_relaxed<Why::stored_before>(next.base_offset) == offset_;
  }

 private:
  void enter(const SegmentPlace& segment) noexcept {
    segment_.enter(segment, records_, *geometry_);
    offset_ = segment.base_offset;
    granule_ = 0;
  }

  // Enters the next segment if this one is read to its end.
  bool enter_next() noexcept {
    if (!has_more()) return false;
    auto segment = find_segment(*topic_, view_, segment_.number + 1);
    if (!segment || segment->base_offset != offset_) return false;
    enter(*segment);
    return true;
  }

  // Not a Result: for each record, a processor waits longer for one than for the record.
  enum class Check { record, nothing, nonsense };
  Check check(std::uint64_t granule, FoundRecord& found) const noexcept {
    if (granule >= geometry_->segment_granules) return Check::nothing;
    found.kind = segment_.kind(granule, geometry_->key);
    if (!is_record_kind(found.kind)) return Check::nothing;
    const RecordHeader& header = segment_.header(granule);
    __builtin_prefetch(reinterpret_cast<const std::byte*>(&header) + kAhead);
    if (!examine_record(header, geometry_->segment_granules - granule, found))
      return Check::nonsense;
    return Check::record;
  }

  std::int64_t newest_timestamp(std::uint64_t granule, const FoundRecord& found) const noexcept {
    const std::byte* payload = reinterpret_cast<const std::byte*>(&segment_.header(granule) + 1);
    const auto timestamp = [](const std::byte* at, std::size_t size) {
      std::int64_t value = kNoTimestamp;
      if (size >= sizeof(value)) std::memcpy(&value, at, sizeof(value));
      return value;
    };
    if (found.kind == static_cast<std::uint64_t>(RecordKind::data)) {
      return (found.detail & kHasTimestamp) != 0 ? timestamp(payload, found.length())
                                                 : kNoTimestamp;
    }
    std::int64_t newest = kNoTimestamp;
    const std::byte* at = payload + sizeof(BatchHeader);
    const std::byte* const end = payload + found.length();
    for (std::uint64_t i = 0; i < found.records; ++i) {
      const auto left = static_cast<std::size_t>(end - at);
      BatchFrame frame{};
      if (left < sizeof(frame)) break;
      std::memcpy(&frame, at, sizeof(frame));
      const std::size_t length = frame.detail & kDetailLength;
      if (length > left - sizeof(frame)) break;
      if ((frame.detail & kHasTimestamp) != 0)
        newest = std::max(newest, timestamp(at + sizeof(frame), length));
      at +=
          std::min<std::size_t>(Geometry::round_up(sizeof(frame) + length, kBatchAlignment), left);
    }
    return newest;
  }

  // Bytes. What publishers wrote is in their CPU's cache.
  static constexpr std::size_t kAhead = 4096;

  MappedTopic* topic_;
  PartitionView view_;
  const std::byte* records_;
  const Geometry* geometry_;
  CurrentSegment<const std::byte> segment_;
  std::uint64_t granule_ = 0;  // Place of the next record in the segment.
  std::uint64_t offset_ = 0;   // Offset of the next record.
};

}  // namespace leat::inline v0::detail
