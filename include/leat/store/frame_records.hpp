// The records in a frame: log bytes as their publishers wrote them, so every value is checked.
//
//     FrameRecords records{header, payload, partition};
//     StoredEntry entry;
//     while (records.next(entry)) …        // a record, or offsets without one
//     if (records.is_nonsense()) …
#pragma once

#include <algorithm>
#include <cstring>

#include "leat/format/found_record.hpp"
#include "leat/format/store_layout.hpp"
#include "leat/format/wire.hpp"
#include "leat/record.hpp"

namespace leat::inline v0::detail {

struct StoredEntry {
  bool is_record = false;
  Record record;  // If it is one. Its views point into the frame.
  Event gap;      // If not.
};

class FrameRecords {
 public:
  FrameRecords() noexcept = default;
  // `payload` must be aligned to 16 bytes and stay valid.
  FrameRecords(const FrameHeader& header, const std::byte* payload,
               std::uint32_t partition) noexcept
      : header_{header},
        payload_{payload},
        partition_{partition},
        offset_{header.first_offset},
        end_{header.first_offset + header.offsets} {}

  // The next record or gap; false at the end of the frame, or of what makes sense in it.
  bool next(StoredEntry& entry) noexcept {
    if (batch_left_ != 0) return next_of_batch(entry);
    if (offset_ == end_ || is_nonsense_) return false;
    const std::uint64_t granules = header_.bytes / kGranule;
    if (granule_ >= granules) return fail();
    const auto& header = *reinterpret_cast<const RecordHeader*>(payload_ + granule_ * kGranule);
    FoundRecord found;
    found.kind = header.commit ^ position_tag(header_.position + granule_, header_.window_key);
    if (!is_record_kind(found.kind) || !examine_record(header, granules - granule_, found) ||
        found.records > end_ - offset_)
      return fail();
    const std::byte* payload = reinterpret_cast<const std::byte*>(&header + 1);
    granule_ += found.granules;
    if (found.kind == static_cast<std::uint64_t>(RecordKind::batch)) {
      batch_at_ = payload + sizeof(BatchHeader);
      batch_end_ = payload + found.length();
      batch_left_ = found.records;
      return next_of_batch(entry);
    }
    if (found.kind == static_cast<std::uint64_t>(RecordKind::data))
      return take(found.detail, {payload, found.length()}, entry);
    entry.is_record = false;
    entry.gap = {offset_, found.records, reason_of(found.kind), partition_};
    offset_ += found.records;
    return true;
  }

  // Whether next() ended because what follows can't have been written by a publisher.
  bool is_nonsense() const noexcept { return is_nonsense_; }
  bool is_done() const noexcept { return offset_ == end_; }
  // Offset of the next entry.
  std::uint64_t offset() const noexcept { return offset_; }
  // Offset behind the frame.
  std::uint64_t end() const noexcept { return end_; }

 private:
  static GapReason reason_of(std::uint64_t kind) noexcept {
    if (kind == static_cast<std::uint64_t>(RecordKind::died)) return GapReason::died;
    if (kind == static_cast<std::uint64_t>(RecordKind::revoked)) return GapReason::revoked;
    return GapReason::aborted;
  }
  bool fail() noexcept {
    is_nonsense_ = true;
    batch_left_ = 0;
    return false;
  }
  bool take(std::uint32_t detail, Bytes payload, StoredEntry& entry) noexcept {
    entry.is_record = true;
    entry.record = {};
    entry.record.partition = partition_;
    entry.record.offset = offset_;
    if (!read_payload(detail, payload, entry.record)) return fail();
    ++offset_;
    return true;
  }
  bool next_of_batch(StoredEntry& entry) noexcept {
    const auto left = static_cast<std::size_t>(batch_end_ - batch_at_);
    BatchFrame frame{};
    if (left < sizeof(frame)) return fail();
    std::memcpy(&frame, batch_at_, sizeof(frame));
    const std::size_t length = frame.detail & kDetailLength;
    if (length > left - sizeof(frame)) return fail();
    if (!take(frame.detail, {batch_at_ + sizeof(frame), length}, entry)) return false;
    const std::size_t size =
        (sizeof(frame) + length + kBatchAlignment - 1) / kBatchAlignment * kBatchAlignment;
    batch_at_ += std::min(size, left);
    --batch_left_;
    return true;
  }

  FrameHeader header_{};
  const std::byte* payload_ = nullptr;
  std::uint32_t partition_ = 0;
  std::uint64_t offset_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t granule_ = 0;
  const std::byte* batch_at_ = nullptr;
  const std::byte* batch_end_ = nullptr;
  std::uint64_t batch_left_ = 0;
  bool is_nonsense_ = false;
};

}  // namespace leat::inline v0::detail
