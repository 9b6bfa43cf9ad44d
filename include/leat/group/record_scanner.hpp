// Scans the records of a partition from a group's cursor on, without holding anything.
//
// What it reads counts only if the cursor is then swapped from the place where the scan began. The
// cursor itself keeps the memory until it moves; if it has moved, the swap fails and everything
// that was read is discarded. So all reads are atomic and all numbers are checked.
// docs/internals/groups.md, "Taking".
#pragma once

#include <memory>
#include <utility>

#include "leat/format/found_record.hpp"
#include "leat/group/stored_scanner.hpp"
#include "leat/log/segments.hpp"

namespace leat::inline v0::detail {

// A record, perhaps of a batch, as the scan found it.
struct ScannedRecord {
  std::uint64_t position = 0;  // of the record, or of its batch, in granules
  std::uint64_t offset = 0;
  InFlightPlace where;
  std::uint32_t detail = 0;
  const std::byte* payload = nullptr;  // Durable topics: none, it is read when it is handed out.
  // Hash of its key. The scan sets it in durable topics; RecordTaker, if the group goes by key.
  std::uint64_t key = 0;
};

enum class Scan : std::uint8_t {
  record,
  skipped,  // a gap, or the step to the next segment
  nothing,  // nothing more for now
  corrupt,  // no publisher wrote this, or it was overwritten meanwhile; durable topics: see error()
};

class RecordScanner {
 public:
  RecordScanner(MappedTopic& topic, std::uint32_t partition, const std::byte* records) noexcept
      : topic_{&topic},
        view_{topic.partition(partition)},
        records_{records + view_.records_offset},
        segment_granules_{topic.geometry().segment_granules},
        key_{topic.geometry().key},
        partition_{partition} {}

  // Durable topics: scans by offset from now on.
  void read_stored(std::unique_ptr<StoredScanner> stored) noexcept {
    stored_ = std::move(stored);
    segment_granules_ = 0;  // So that next() asks next_segment().
  }
  // Null unless the topic is durable.
  StoredScanner* stored() const noexcept { return stored_.get(); }
  // Durable topics: what the last `skipped` has passed.
  const StoredScanner::Entry& passed() const noexcept { return entry_; }

  // Goes to a cursor. `nothing` if its segment is not mapped yet; `corrupt` if no cursor can be
  // there, unless it has moved since; otherwise `skipped`.
  Scan go_to(const CursorValue& cursor) noexcept {
    const std::uint64_t position = cursor.position();
    if (stored_ != nullptr) {
      stored_->go_to(position);
      return Scan::skipped;
    }
    if (position - segment_.position >= segment_granules_ || segment_.data == nullptr) {
      const Scan entered = enter(position / segment_granules_);
      if (entered != Scan::skipped) return entered;
    }
    const std::uint64_t granule = position - segment_.position;
    if (granule_ != granule || records_before_ != cursor.records_before() ||
        batch_index() != cursor.batch_index()) {
      if (cursor.batch_index() != 0) return go_to_batch(granule, cursor);
      granule_ = granule;
      records_before_ = cursor.records_before();
      batch_left_ = 0;
      batch_count_ = 0;
    }
    return Scan::skipped;
  }

  CursorValue cursor(std::uint64_t taker, std::uint64_t take_number) const noexcept {
    if (stored_ != nullptr) return CursorValue::make(stored_->offset(), taker, 0, 0, take_number);
    // The end of a segment that is full to its last granule is the beginning of the next one.
    const bool is_at_end = granule_ == segment_granules_;
    return CursorValue::make(segment_.position + granule_, taker, is_at_end ? 0 : records_before_,
                             batch_index(), take_number);
  }
  // Whether the scanner is at this cursor, in a segment that is mapped.
  bool is_at(const CursorValue& at) const noexcept {
    return granule_ < segment_granules_ && cursor(at.taker(), at.take_number()) == at;
  }
  std::uint64_t offset() const noexcept {
    return segment_.base_offset + records_before_ + batch_index();
  }
  std::uint64_t segment() const noexcept { return segment_.number; }
  std::uint64_t segment_position() const noexcept { return segment_.position; }
  std::uint32_t partition() const noexcept { return partition_; }
  // Place of the next record, or of the hole there.
  RecordPlace hole() const noexcept { return {segment_.number, records_before_, granule_}; }

  [[gnu::always_inline]] Scan next(ScannedRecord& found) noexcept {
    if (batch_left_ != 0) return next_of_batch(found);
    if (granule_ >= segment_granules_) [[unlikely]]
      return stored_ != nullptr ? next_stored(found) : next_segment();
    const RecordHeader& header = segment_.header(granule_);
    FoundRecord record;
    record.kind = segment_.kind(granule_, key_);
    if (!is_record_kind(record.kind)) [[unlikely]]
      return next_segment();
    if (!examine_record(header, segment_granules_ - granule_, record)) [[unlikely]]
      return Scan::corrupt;
    if (record.kind == static_cast<std::uint64_t>(RecordKind::data)) [[likely]] {
      found.position = segment_.position + granule_;
      found.offset = segment_.base_offset + records_before_;
      found.where = {physical_, partition_, 0};
      found.detail = record.detail;
      found.payload = reinterpret_cast<const std::byte*>(&header + 1);
      granule_ += record.granules;
      ++records_before_;
      return Scan::record;
    }
    if (record.kind == static_cast<std::uint64_t>(RecordKind::batch)) {
      const Scan entered = enter_batch();
      return entered == Scan::skipped ? next_of_batch(found) : entered;
    }
    granule_ += record.granules;
    records_before_ += record.records;
    return Scan::skipped;
  }

  // Whether next() would find something at the cursor.
  bool is_ready_at(const CursorValue& cursor) noexcept {
    if (go_to(cursor) != Scan::skipped) return false;
    if (stored_ != nullptr) return stored_->is_ready();
    if (batch_left_ != 0) return true;
    if (granule_ < segment_granules_ && is_record_kind(segment_.kind(granule_, key_))) {
      return true;
    }
    return next_is_mapped();
  }

  // Approximate number of records that publishers have claimed from here on; very large if their
  // claims are in a later segment.
  std::uint64_t claimed_beyond() const noexcept {
    constexpr std::uint64_t kMany = 1 << 20;
    if (stored_ != nullptr) return stored_->claimed_beyond();
    const ClaimLayout& layout = topic_->geometry().claim_layout;

    const std::uint64_t claim = load_relaxed<Why::hint>(view_.control->claim);
    if (layout.segment(claim) != layout.truncate_segment(segment_.number)) return kMany;
    const std::uint64_t claimed = layout.records(claim);
    const std::uint64_t passed = records_before_ + batch_index();
    return claimed > passed ? claimed - passed : 0;
  }

  // Whether something is claimed here and not visible yet, so that its owner must be waited for.
  bool has_hole() const noexcept {
    return segment_.data != nullptr && has_hole_at(topic_->geometry(), view_, hole());
  }

 private:
  std::uint64_t batch_index() const noexcept { return batch_count_ - batch_left_; }
  [[gnu::noinline]] Scan enter(std::uint64_t number) noexcept {
    const Geometry& geometry = topic_->geometry();
    const SegmentEntry& entry = view_.entry(number);
    // [segment-map] acquire.
    if (load_acquire<Edge::segment_map>(entry.map) >> kPhysicalBits < number) return Scan::nothing;
    auto place = find_segment(*topic_, view_, number);
    if (!place) return Scan::corrupt;
    physical_ = static_cast<std::uint32_t>(place->physical);
    segment_.enter(*place, records_, geometry);
    granule_ = 0;
    records_before_ = 0;
    batch_left_ = 0;
    batch_count_ = 0;
    return Scan::skipped;
  }

  // Whether the next segment is mapped, and the scan has passed all records of this one.
  bool next_is_mapped() const noexcept {
    const SegmentEntry& next = view_.entry(segment_.number + 1);
    // [segment-map] acquire: base_offset was stored before.
    return load_acquire<Edge::segment_map>(next.map) >> kPhysicalBits == segment_.number + 1 &&
           load_relaxed<Why::stored_before>(next.base_offset) ==
               segment_.base_offset + records_before_;
  }
  [[gnu::noinline]] Scan next_segment() noexcept {
    return next_is_mapped() ? enter(segment_.number + 1) : Scan::nothing;
  }

  [[gnu::noinline]] Scan next_stored(ScannedRecord& found) noexcept {
    switch (stored_->next(entry_)) {
      case StoredScanner::Step::record: break;
      case StoredScanner::Step::gap: return Scan::skipped;
      case StoredScanner::Step::nothing: return Scan::nothing;
      case StoredScanner::Step::failed: return Scan::corrupt;
    }
    found = {entry_.first, entry_.first, {0, partition_, 0}, 0, nullptr, entry_.key};
    return Scan::record;
  }

  // Goes to a cursor in the middle of a batch. Members that take turns in a large batch come here with each take,
  // so this goes on from where the scanner is, or last was, in the batch, if the cursor is behind that place.
  [[gnu::noinline]] Scan go_to_batch(std::uint64_t granule, const CursorValue& cursor) noexcept {
    const std::uint64_t index = cursor.batch_index();
    const auto is_before_it = [&](const BatchPlace& place) {
      return place.left != 0 && place.segment == segment_.number && place.granule == granule &&
             place.records_before == cursor.records_before() && place.index() <= index;
    };
    const BatchPlace here = batch_place();
    granule_ = granule;
    records_before_ = cursor.records_before();
    batch_left_ = 0;
    batch_count_ = 0;
    if (is_before_it(here)) {
      restore(here);
    } else if (is_before_it(seen_)) {
      restore(seen_);
    } else if (const Scan entered = enter_batch(); entered != Scan::skipped) {
      return entered;
    }
    if (index >= batch_count_) return Scan::corrupt;
    ScannedRecord passed;
    while (batch_index() != index) {
      if (next_of_batch(passed) != Scan::record) return Scan::corrupt;
    }
    seen_ = batch_place();
    return Scan::skipped;
  }

  // A place in a batch, as the scanner has found it.
  struct BatchPlace {
    std::uint64_t segment = 0;
    std::uint64_t granule = 0;  // of the batch
    std::uint64_t records_before = 0;
    const std::byte* at = nullptr;
    const std::byte* end = nullptr;
    std::uint64_t granules = 0;
    std::uint64_t count = 0;
    std::uint64_t left = 0;  // 0: none

    std::uint64_t index() const noexcept { return count - left; }
  };
  BatchPlace batch_place() const noexcept {
    return {segment_.number, granule_,        records_before_, batch_at_,
            batch_end_,      batch_granules_, batch_count_,    batch_left_};
  }
  void restore(const BatchPlace& place) noexcept {
    batch_at_ = place.at;
    batch_end_ = place.end;
    batch_granules_ = place.granules;
    batch_count_ = place.count;
    batch_left_ = place.left;
  }

  // Enters the batch at the current place.
  [[gnu::noinline]] Scan enter_batch() noexcept {
    const RecordHeader& header = segment_.header(granule_);
    FoundRecord record;
    record.kind = segment_.kind(granule_, key_);
    if (granule_ >= segment_granules_ ||
        record.kind != static_cast<std::uint64_t>(RecordKind::batch) ||
        !examine_record(header, segment_granules_ - granule_, record)) {
      return Scan::corrupt;
    }
    const auto* payload = reinterpret_cast<const std::byte*>(&header + 1);
    batch_at_ = payload + sizeof(BatchHeader);
    batch_end_ = payload + record.length();
    batch_granules_ = record.granules;
    batch_count_ = batch_left_ = record.records;
    return Scan::skipped;
  }

  Scan next_of_batch(ScannedRecord& found) noexcept {
    const auto left = static_cast<std::size_t>(batch_end_ - batch_at_);
    if (left < sizeof(BatchFrame)) return Scan::corrupt;
    // relaxed: stored before the commit word.
    const std::uint32_t detail =
        load_relaxed<Why::stored_before>(reinterpret_cast<const BatchFrame*>(batch_at_)->detail);
    const std::uint64_t length = detail & kDetailLength;
    if (length > left - sizeof(BatchFrame)) return Scan::corrupt;
    found.position = segment_.position + granule_;
    found.offset = offset();
    found.where = {physical_, partition_, static_cast<std::uint32_t>(batch_index())};
    found.detail = detail;
    found.payload = batch_at_ + sizeof(BatchFrame);
    const std::uint64_t size = Geometry::round_up(sizeof(BatchFrame) + length, kBatchAlignment);
    batch_at_ += size < left ? size : left;
    if (--batch_left_ == 0) {
      granule_ += batch_granules_;
      records_before_ += batch_count_;
      batch_count_ = 0;
    }
    return Scan::record;
  }

  MappedTopic* topic_;
  PartitionView view_;
  std::unique_ptr<StoredScanner> stored_;
  StoredScanner::Entry entry_;
  const std::byte* records_;  // First segment of this partition.
  std::uint64_t segment_granules_;
  std::uint64_t key_;
  CurrentSegment<const std::byte> segment_;
  std::uint64_t granule_ = 0;         // Place of the next record, or of its batch, in the segment.
  std::uint64_t records_before_ = 0;  // Records before that place in the segment.
  const std::byte* batch_at_ = nullptr;
  const std::byte* batch_end_ = nullptr;
  std::uint64_t batch_granules_ = 0;
  std::uint64_t batch_count_ = 0;  // Records of the current batch; 0 outside batches.
  std::uint64_t batch_left_ = 0;
  std::uint32_t physical_ = 0;
  std::uint32_t partition_;
  BatchPlace seen_;  // Where go_to() last was in the middle of a batch.
};

// Where a record of a batch was found, so that later ones are found without scanning the batch from its begin.
struct FoundInBatch {
  std::uint64_t position = 0;  // of the batch
  std::uint32_t partition = 0;
  std::uint32_t index = 0;
  std::size_t at = sizeof(BatchHeader);  // Its frame, in bytes from the beginning of the payload.
};

// Finds and checks the record of an entry, in place. The entry keeps its memory. Nothing if the entry
// names no valid record.
inline std::optional<ScannedRecord> find_in_flight(const MappedTopic& topic,
                                                   const std::byte* records,
                                                   const InFlightEntry& entry,
                                                   FoundInBatch& last) noexcept {
  const Geometry& geometry = topic.geometry();
  // relaxed, all: stored before the entry's state.
  ScannedRecord found;
  found.position = load_relaxed<Why::stored_before>(entry.position);
  found.offset = load_relaxed<Why::stored_before>(entry.offset);
  found.where = InFlightPlace::unpack(load_relaxed<Why::stored_before>(entry.where));
  if (found.where.partition >= geometry.partition_count ||
      found.where.physical >= geometry.segment_count) {
    return std::nullopt;
  }
  const std::uint64_t granule = found.position % geometry.segment_granules;
  const auto& header = *reinterpret_cast<const RecordHeader*>(
      records + found.where.partition * geometry.partition_size() +
      found.where.physical * geometry.segment_size + granule * kGranule);
  FoundRecord record;
  record.kind =
      load_acquire<Edge::record_ready>(header.commit) ^ position_tag(found.position, geometry.key);
  if (!is_record_kind(record.kind) ||
      !examine_record(header, geometry.segment_granules - granule, record) ||
      !record.has_payload()) {
    return std::nullopt;
  }
  const auto* at = reinterpret_cast<const std::byte*>(&header + 1);
  if (record.kind == static_cast<std::uint64_t>(RecordKind::data)) {
    found.detail = record.detail;
    found.payload = at;
    return found;
  }
  const std::byte* const begin = at;
  const std::byte* const end = at + record.length();
  // The same position and partition are the same batch. Its bytes are checked anew all the same.
  const bool goes_on = last.position == found.position && last.partition == found.where.partition &&
                       last.index <= found.where.batch_index && last.at <= record.length();
  at += goes_on ? last.at : sizeof(BatchHeader);
  for (std::uint64_t index = goes_on ? last.index : 0; index < record.records; ++index) {
    const auto left = static_cast<std::size_t>(end - at);
    if (left < sizeof(BatchFrame)) return std::nullopt;
    found.detail =
        load_relaxed<Why::stored_before>(reinterpret_cast<const BatchFrame*>(at)->detail);
    const std::uint64_t length = found.detail & kDetailLength;
    if (length > left - sizeof(BatchFrame)) return std::nullopt;
    found.payload = at + sizeof(BatchFrame);
    if (index == found.where.batch_index) {
      last = {found.position, found.where.partition, found.where.batch_index,
              static_cast<std::size_t>(at - begin)};
      return found;
    }
    const std::uint64_t size = Geometry::round_up(sizeof(BatchFrame) + length, kBatchAlignment);
    at += size < left ? size : left;
  }
  return std::nullopt;
}

}  // namespace leat::inline v0::detail
