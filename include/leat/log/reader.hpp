// One subscriber's side of one partition: walks the records, in place or through validated copies.
//
// docs/internals/log.md, "Reading", says why a gating reader's memory stays and how a lossy one
// notices that it was overtaken.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "leat/log/found_record.hpp"
#include "leat/log/segments.hpp"

namespace leat::detail {

enum class StartAt : std::uint8_t { beginning, end, offset };

// What one step of a reader came to. Not a Result: this is the hot path.
enum class Step : std::uint8_t {
  go_on,
  stop,    // nothing more for now
  failed,  // PartitionReader::failed_ says why
};

class PartitionReader {
 public:
  PartitionReader(SharedTopic& topic, std::uint32_t partition, std::uint32_t self,
                  const std::byte* records, ReaderMode mode, bool pin_in_place) noexcept
      : topic_{&topic},
        view_{topic.partition(partition)},
        slot_{&view_.slots[self]},
        records_{records + view_.records_offset},
        partition_{partition},
        self_{self},
        mode_{mode},
        pin_in_place_{pin_in_place && mode == ReaderMode::lossy} {}

  // First of two steps to join: names a segment in the slot, before others see the slot at all.
  void prepare(StartAt at) noexcept {
    const std::uint64_t segment = at == StartAt::end
                                      ? load_acquire<Edge::segment_open>(view_.control->current)
                                      : load_seq_cst<Edge::retire>(view_.control->start);
    store_relaxed(slot_->cursor_segment,
                  segment);  // relaxed, both: the slot's state publishes them
    store_relaxed(slot_->reader_mode, static_cast<std::uint64_t>(mode_));
  }

  // Second step, once the slot is taken: settles where to begin. With `offset`, records before it
  // are passed over.
  Result<void> settle(StartAt at, std::uint64_t offset) {
    std::uint64_t number = load_relaxed(slot_->cursor_segment);  // relaxed: own store
    for (std::uint32_t moves = 0; moves < kManyMoves; ++moves) {
      // [retire] seq_cst: the cursor is visible before start is looked at. If start is not past it
      // now, whoever moves start on sees the cursor, and the segment stays.
      const std::uint64_t start = load_seq_cst<Edge::retire>(view_.control->start);
      if (start > number || at == StartAt::offset) {
        auto better = at == StartAt::offset ? segment_of_offset(start, offset) : start;
        if (!better) return better.error();
        if (*better != number) {
          number = *better;
          (void)exchange<Edge::retire>(slot_->cursor_segment, number);
          if (load_seq_cst<Edge::retire>(view_.control->start) > number) continue;
        }
      }
      if (at == StartAt::end) {
        const std::uint64_t current = load_acquire<Edge::segment_open>(view_.control->current);
        if (current != number) {
          number = current;
          (void)exchange<Edge::retire>(slot_->cursor_segment, number);
          continue;
        }
      }
      auto segment = find_segment(*topic_, view_, number);
      const std::uint64_t claim = load_acquire<Edge::claim>(view_.control->claim);
      if (at == StartAt::end && load_acquire<Edge::segment_open>(view_.control->current) != number)
        continue;
      if (load_seq_cst<Edge::retire>(view_.control->start) > number) continue;
      if (!segment) return segment.error();
      enter(*segment);
      skip_until_ = 0;
      if (at == StartAt::end) {
        const ClaimLayout& layout = geometry().claim_layout;
        if (layout.segment(claim) != layout.truncate_segment(number)) continue;
        granule_ = layout.granules(claim);
        offset_ = base_offset_ + layout.records(claim);
        if (granule_ > geometry().segment_granules) return Errc::corrupt;
      } else if (at == StartAt::offset) {
        skip_until_ = offset;
        if (offset < offset_) {
          pending_gap_ = Event{offset, offset_ - offset, GapReason::overwritten, partition_};
        }
      }
      store_relaxed(slot_->cursor_offset, this->offset());  // relaxed: for people
      // [retire] release: the cursor was named before its segment could be retired.
      store_release<Edge::retire>(slot_->settled, 1);
      return {};
    }
    return Errc::corrupt;
  }

  // Passes over everything before the first record that is not older.
  void skip_until_time(std::int64_t time_ms) noexcept {
    skip_until_time_ms_ = time_ms;
    skip_until_ = ~0ULL;
  }

  // Delivers up to `limit` records, oldest first, and gaps as they come. Returns how many records.
  template <class OnRecord, class OnEvent>
  Result<std::size_t> poll(std::size_t limit, OnRecord&& on_record, OnEvent&& on_event) {
    if (failed_ != Errc::ok) [[unlikely]]
      return failed_;
    if (pending_gap_) [[unlikely]]
      on_event(*std::exchange(pending_gap_, std::nullopt));
    if (is_evicted()) [[unlikely]]
      notice_eviction();
    std::size_t count = 0;
    Step step = Step::go_on;
    while (count < limit && step == Step::go_on) {
      if (batch_left_ != 0) {
        step = next_of_batch(count, on_record);
        continue;
      }
      if (granule_ < geometry().segment_granules) [[likely]] {
        const RecordHeader* header = header_here();
        // [record-ready] acquire: header and payload were written before.
        const std::uint64_t kind = load_acquire<Edge::record_ready>(header->commit) ^ tag_here();
        if (kind < 256) [[likely]] {
          step = mode_ == ReaderMode::lossy
                     ? deliver_copy(*header, kind, count, on_record, on_event)
                     : deliver(*header, kind, count, on_record, on_event);
          continue;
        }
      }
      step = advance_segment(on_event);
    }
    // relaxed: for people. What gates is cursor_segment.
    store_relaxed(slot_->cursor_offset, offset_);
    // Where a failed partition goes on is not known: it stays failed.
    if (step == Step::failed && count == 0) [[unlikely]]
      return failed_;
    return count;
  }

  // Whether poll() would do something: a record, a gap, or a step to the next segment.
  bool is_ready() const noexcept {
    if (pending_gap_ || batch_left_ != 0 || failed_ != Errc::ok) return true;
    if (granule_ < geometry().segment_granules) {
      if ((load_acquire<Edge::record_ready>(header_here()->commit) ^ tag_here()) < 256) return true;
    }
    if (is_evicted() || is_overtaken()) return true;
    const SegmentEntry& next = view_.entries[(segment_ + 1) & (geometry().entry_count - 1)];
    return load_acquire<Edge::segment_map>(next.map) >> kPhysicalBits == segment_ + 1 &&
           load_relaxed(next.base_offset) == offset_;
  }

  // Whether something is claimed that is not visible yet: then somebody in particular is waited for.
  bool has_hole() const noexcept { return has_hole_at(geometry(), view_, place()); }

  // Called now and then while nothing comes: fills the hole ahead if its owner is dead, or stopped
  // for longer than the topic allows. `corrupt` if nobody owns it.
  Result<void> look_after_hole() {
    // In this order: what is claimed is looked at first, then once more what is there.
    if (!has_hole() || is_ready()) {
      hole_.clear();
      return {};
    }
    if (mode_ == ReaderMode::lossy && !pin_for_repair()) return {};
    auto looked = hole_.look(*topic_, partition_, self_, place());
    if (mode_ == ReaderMode::lossy) store_release<Edge::cursor>(slot_->repair_pin, 0);
    // What was looked at may have been retired meanwhile: no hole of this reader's any more.
    if (is_evicted() || is_overtaken()) return {};
    if (!looked) failed_ = looked.error().code;  // The next poll says so.
    return looked;
  }

  // Lossy, in place: what was delivered is no longer in use.
  void unpin() noexcept {
    if (batch_left_ != 0 || pinned_ == 0) return;
    pinned_ = 0;
    store_release<Edge::cursor>(slot_->pin, 0);
  }

  // Of the next record to deliver; while a time is looked for, of the next one to look at.
  std::uint64_t offset() const noexcept {
    return offset_ < skip_until_ && !skip_until_time_ms_ ? skip_until_ : offset_;
  }
  // Where the next record is, or will be.
  RecordPlace place() const noexcept { return {segment_, offset_ - base_offset_, granule_}; }
  bool is_lossy() const noexcept { return mode_ == ReaderMode::lossy; }
  std::uint32_t partition() const noexcept { return partition_; }

 private:
  const Geometry& geometry() const noexcept { return topic_->geometry(); }

  void enter(const SegmentPlace& segment) noexcept {
    segment_ = segment.number;
    segment_data_ = records_ + segment.physical * geometry().segment_size;
    segment_position_ = segment.number * geometry().segment_granules;
    base_offset_ = segment.base_offset;
    offset_ = segment.base_offset;
    granule_ = 0;
  }

  // The live segment that holds `offset`, or the oldest, or the newest.
  Result<std::uint64_t> segment_of_offset(std::uint64_t start,
                                          std::uint64_t offset) const noexcept {
    std::uint64_t number = load_acquire<Edge::segment_open>(view_.control->current);
    if (number < start || number - start >= geometry().segment_count) return start;
    while (number > start) {
      auto segment = find_segment(*topic_, view_, number);
      if (!segment) return start;  // Reused meanwhile; settle() sees that.
      if (segment->base_offset <= offset) break;
      --number;
    }
    return number;
  }

  const RecordHeader* header_here() const noexcept {
    return reinterpret_cast<const RecordHeader*>(segment_data_ + granule_ * kGranule);
  }
  std::uint64_t tag_here() const noexcept {
    return position_tag(segment_position_ + granule_, geometry().key);
  }
  [[gnu::noinline, gnu::cold]] Step fail(Errc code) noexcept {
    failed_ = code;
    return Step::failed;
  }

  [[gnu::always_inline]] bool examine(const RecordHeader& header,
                                      FoundRecord& found) const noexcept {
    return examine_record(header, geometry().segment_granules - granule_, found);
  }

  // Delivers what lies at `header`, in place.
  template <class OnRecord, class OnEvent>
  [[gnu::always_inline]] Step deliver(const RecordHeader& header, std::uint64_t kind,
                                      std::size_t& count, OnRecord&& on_record,
                                      OnEvent&& on_event) {
    FoundRecord found;
    found.kind = kind;
    if (!examine(header, found)) [[unlikely]]
      return fail(Errc::corrupt);
    return consume(found, reinterpret_cast<const std::byte*>(&header + 1), count, on_record,
                   on_event);
  }

  // The same through a private copy that is checked to be whole, or in place under a pin.
  template <class OnRecord, class OnEvent>
  Step deliver_copy(const RecordHeader& header, std::uint64_t kind, std::size_t& count,
                    OnRecord&& on_record, OnEvent&& on_event) {
    if (pin_in_place_ && !pin()) return advance_segment(on_event);
    FoundRecord found;
    found.kind = kind;
    const bool is_sane = examine(header, found);
    const auto* payload = reinterpret_cast<const std::byte*>(&header + 1);
    if (is_sane && found.has_payload() && !pin_in_place_) {
      copy_.resize(Geometry::round_up(found.length(), 8));
      copy_racing(copy_.data(), payload, found.length());
      payload = copy_.data();
    }
    // [overwrite] acquire: whoever overwrites what was just read moved start on before.
    fence_acquire<Edge::overwrite>();
    if (!pin_in_place_ && load_seq_cst<Edge::retire>(view_.control->start) > segment_) {
      return advance_segment(on_event);
    }
    if (!is_sane) return fail(Errc::corrupt);
    return consume(found, payload, count, on_record, on_event);
  }

  template <class OnRecord, class OnEvent>
  [[gnu::always_inline]] Step consume(const FoundRecord& found, const std::byte* payload,
                                      std::size_t& count, OnRecord&& on_record,
                                      OnEvent&& on_event) {
    const std::uint64_t first = offset_;
    granule_ += found.granules;
    if (found.kind == static_cast<std::uint64_t>(RecordKind::data)) [[likely]] {
      ++offset_;
      return hand_over(first, found.detail, Bytes{payload, found.length()}, count, on_record);
    }
    if (found.kind == static_cast<std::uint64_t>(RecordKind::batch)) {
      batch_at_ = payload + sizeof(BatchHeader);
      batch_end_ = payload + found.length();
      batch_left_ = found.records;
      batch_granule_ = granule_ - found.granules;
      batch_offset_ = first;
      return Step::go_on;
    }
    offset_ += found.records;
    if (offset_ > skip_until_) {
      const std::uint64_t from = first > skip_until_ ? first : skip_until_;
      const GapReason reason = gap_reason(static_cast<RecordKind>(found.kind));
      on_event(Event{from, offset_ - from, reason, partition_});
    }
    return Step::go_on;
  }

  static GapReason gap_reason(RecordKind kind) noexcept {
    if (kind == RecordKind::died) return GapReason::died;
    return kind == RecordKind::revoked ? GapReason::revoked : GapReason::aborted;
  }

  template <class OnRecord>
  [[gnu::always_inline]] Step hand_over(std::uint64_t offset, std::uint32_t detail, Bytes payload,
                                        std::size_t& count, OnRecord&& on_record) {
    Record record;
    record.offset = offset;
    record.partition = partition_;
    if (!read_payload(detail, payload, record)) [[unlikely]]
      return fail(Errc::corrupt);
    if (offset < skip_until_) [[unlikely]] {
      if (!skip_until_time_ms_ || record.timestamp_ms < *skip_until_time_ms_) return Step::go_on;
      skip_until_time_ms_.reset();
      skip_until_ = 0;
    }
    ++count;
    on_record(record);
    return Step::go_on;
  }

  template <class OnRecord>
  [[gnu::always_inline]] Step next_of_batch(std::size_t& count, OnRecord&& on_record) {
    const auto left = static_cast<std::size_t>(batch_end_ - batch_at_);
    BatchFrame frame{};
    if (left < sizeof(frame)) [[unlikely]]
      return fail(Errc::corrupt);
    std::memcpy(&frame, batch_at_, sizeof(frame));
    frame.detail = as_copied(frame.detail);
    const std::uint64_t length = frame.detail & kDetailLength;
    if (length > left - sizeof(frame)) [[unlikely]]
      return fail(Errc::corrupt);
    const Bytes payload{batch_at_ + sizeof(frame), length};
    const std::uint64_t size = Geometry::round_up(sizeof(frame) + length, kBatchAlignment);
    batch_at_ += size < left ? size : left;
    --batch_left_;
    return hand_over(offset_++, frame.detail, payload, count, on_record);
  }

  // Goes to the next segment if this one is read to its end; a lossy reader that was overtaken goes
  // to the oldest segment. False: nothing more for now.
  template <class OnEvent>
  Step advance_segment(OnEvent&& on_event) {
    if (is_overtaken()) return skip_to_start(on_event);
    const std::uint64_t number = segment_ + 1;
    const SegmentEntry& entry = view_.entries[number & (geometry().entry_count - 1)];
    // [segment-map] acquire.
    if (load_acquire<Edge::segment_map>(entry.map) >> kPhysicalBits < number) return Step::stop;
    auto segment = find_segment(*topic_, view_, number);
    // [retire] looked at after the entry was read: until now this segment held, so the next one did.
    if (is_overtaken()) return skip_to_start(on_event);
    if (is_evicted()) {
      notice_eviction();
      return Step::go_on;
    }
    if (!segment) return fail(segment.error().code);
    if (segment->base_offset != offset_) {
      if (segment->base_offset < offset_) return fail(Errc::corrupt);
      return Step::stop;  // Something in this segment is not committed yet.
    }
    enter(*segment);
    move_cursor();
    // [retire] looked at after the cursor names the segment: from here on its memory is not given back
    // (log/shrink.hpp), though a lossy reader's is reused.
    if (is_overtaken()) return skip_to_start(on_event);
    return Step::go_on;
  }

  // [cursor], [retire] seq_cst: all reads of the old segment are done before the cursor leaves it;
  // and it names the new one before the mode is looked at. Then whoever waits for room is woken.
  void move_cursor() noexcept {
    (void)exchange<Edge::cursor>(slot_->cursor_segment, segment_);
    LEAT_STEP("cursor:moved");
    notice_eviction();
    SharedTopic::wake(topic_->header().space_wake);
  }

  // Lossy, and what it was going to read is gone.
  bool is_overtaken() const noexcept {
    return mode_ == ReaderMode::lossy &&
           load_seq_cst<Edge::retire>(view_.control->start) > segment_;
  }
  // Made lossy by a publisher, and not aware of it: only this segment is held for it still.
  bool is_evicted() const noexcept {
    return mode_ == ReaderMode::gating && geometry().evict_after_ns != 0 &&
           load_seq_cst<Edge::retire>(slot_->reader_mode) ==
               static_cast<std::uint64_t>(ReaderMode::evicted);
  }

  void notice_eviction() noexcept {
    if (!is_evicted()) return;
    mode_ = ReaderMode::lossy;
    // What was handed out of this segment is no longer in use: this is a new call.
    (void)exchange<Edge::retire>(slot_->reader_mode, static_cast<std::uint64_t>(ReaderMode::lossy));
    if (batch_left_ != 0) leave_batch();
    SharedTopic::wake(topic_->header().space_wake);
  }

  // The rest of a batch that was read in place is read again, as a copy, up to where we were.
  void leave_batch() noexcept {
    batch_left_ = 0;
    skip_until_ = offset_ > skip_until_ ? offset_ : skip_until_;
    granule_ = batch_granule_;
    offset_ = batch_offset_;
  }

  template <class OnEvent>
  Step skip_to_start(OnEvent&& on_event) {
    const std::uint64_t lost_from = offset_;
    for (std::uint32_t moves = 0;; ++moves) {
      if (moves == kManyMoves) return fail(Errc::corrupt);
      const std::uint64_t start = load_seq_cst<Edge::retire>(view_.control->start);
      auto segment = find_segment(*topic_, view_, start);
      LEAT_STEP("skip:looked");
      if (load_seq_cst<Edge::retire>(view_.control->start) != start) continue;
      if (!segment) return fail(segment.error().code);
      if (segment->base_offset < lost_from) return fail(Errc::corrupt);
      enter(*segment);
      (void)exchange<Edge::cursor>(slot_->cursor_segment, segment_);
      if (!is_overtaken()) break;
    }
    const std::uint64_t from = lost_from > skip_until_ ? lost_from : skip_until_;
    if (offset_ > from) on_event(Event{from, offset_ - from, GapReason::overwritten, partition_});
    return Step::go_on;
  }

  // Lossy, in place: keeps the segment's memory from being reused. False if it is too late.
  bool pin() noexcept {
    if (pinned_ == segment_) return true;
    // [retire] seq_cst: pin first, then look at start.
    (void)exchange<Edge::retire>(slot_->pin, segment_);
    pinned_ = segment_;
    return load_seq_cst<Edge::retire>(view_.control->start) <= segment_;
  }
  bool pin_for_repair() noexcept {
    (void)exchange<Edge::retire>(slot_->repair_pin, segment_);
    if (load_seq_cst<Edge::retire>(view_.control->start) <= segment_) return true;
    store_release<Edge::cursor>(slot_->repair_pin, 0);
    return false;
  }

  SharedTopic* topic_;
  PartitionView view_;
  PartitionSlot* slot_;        // Own line in view_.slots.
  const std::byte* records_;   // First segment of this partition.
  std::uint64_t segment_ = 0;  // Number of the segment being read.
  const std::byte* segment_data_ = nullptr;
  std::uint64_t segment_position_ = 0;
  std::uint64_t base_offset_ = 0;
  std::uint64_t granule_ = 0;     // Next record's place in the segment.
  std::uint64_t offset_ = 0;      // Next record's offset.
  std::uint64_t skip_until_ = 0;  // Offsets below are not delivered, nor their gaps reported.
  std::optional<std::int64_t> skip_until_time_ms_;  // Set: skip_until_ is infinite until this time.
  const std::byte* batch_at_ = nullptr;
  const std::byte* batch_end_ = nullptr;
  std::uint64_t batch_left_ = 0;  // Records of the current batch not delivered yet.
  std::uint64_t batch_granule_ = 0;
  std::uint64_t batch_offset_ = 0;
  std::optional<Event> pending_gap_;
  Errc failed_ = Errc::ok;       // Set once, then returned by every poll.
  std::uint64_t pinned_ = 0;     // What slot_->pin holds.
  std::vector<std::byte> copy_;  // Lossy: the record (or batch) being delivered.
  HoleWatch hole_;
  std::uint32_t partition_;
  std::uint32_t self_;
  ReaderMode mode_;
  bool pin_in_place_;
};

}  // namespace leat::detail
