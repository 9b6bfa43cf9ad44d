// One subscriber's side of one partition: reads the records, in place or through validated copies.
//
// docs/internals/log.md, "Reading", explains why a gating reader's memory stays, and how a lossy
// one notices that it was overtaken.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "leat/format/found_record.hpp"
#include "leat/format/wire.hpp"
#include "leat/log/current_segment.hpp"
#include "leat/log/hole_watch.hpp"
#include "leat/log/line_flusher.hpp"
#include "leat/os/fork.hpp"
#include "leat/record.hpp"
#include "leat/result.hpp"

namespace leat::inline v0::detail {

class MappedTopic;
class DiskReader;
struct StoredEntry;

// Programs that only read need not compile what is behind a DiskReader.
struct CloseDiskReader {
  void operator()(DiskReader* reader) const noexcept;
};

// `last`: a number of offsets before the end; turned into an offset before a reader is placed there.
enum class StartAt : std::uint8_t { beginning, end, offset, last };

// Outcome of one step of a reader. Not a Result: this is the hot path.
enum class ReadOutcome : std::uint8_t {
  go_on,
  stop,     // nothing more for now
  advance,  // nothing more in this segment
  failed,   // see PartitionReader::failed_
};

// Outcome of copying a record for a lossy reader.
enum class CopyState : std::uint8_t { whole, overtaken, nonsense, no_room };

class PartitionReader {
 public:
  // `read`: what it is shown; `durable` only for durable topics, whose readers are all lossy.
  PartitionReader(MappedTopic& topic, std::uint32_t partition, std::uint32_t own_slot,
                  const std::byte* records, ReaderMode mode, bool pin_in_place,
                  Stage read = Stage::committed) noexcept;

  // First of two steps to join: stores the cursor, before others can see the slot.
  void prepare(StartAt at) noexcept;

  // Second step, once the slot is taken: decides where to begin. With StartAt::offset, records
  // before `offset` are skipped.
  Result<void> settle(StartAt at, std::uint64_t offset);

  // Skips what is there before the first record with this timestamp or a later one.
  Result<void> skip_until_time(std::int64_t time_ms);

  // Skips everything before an offset.
  void skip_to(std::uint64_t offset) noexcept { skip_until_ = std::max(skip_until_, offset); }

  // Delivers up to `limit` records, oldest first, and gaps on the way. Returns the
  // number of records. Returns also after many gaps: a callback that is slower than the publishers
  // that overtake the reader must not keep the call from returning.
  //
  // With kKeeps, gaps count as records do, and all that was delivered stays valid until the next call: once
  // something was delivered, it leaves neither the segment nor the frame on disk, and copies lie one behind
  // the other.
  //
  // In a child that a callback has forked, returns `forked`, and changes nothing that the parent reads with. It
  // asks for that where it is about to change shared memory, and not for each record.
  template <bool kKeeps = false, class OnRecord, class OnEvent>
  Result<std::size_t> poll(std::size_t limit, OnRecord&& on_record, OnEvent&& on_gap) {
    if (failed_.code != Errc::ok) [[unlikely]]
      return what_failed();
    std::size_t count = 0;
    std::size_t gaps = 0;
    // Returns whether this call may go on.
    const auto on_event = [&](const Event& event) {
      if constexpr (kKeeps) ++count;
      on_gap(event);
      gaps += event.reason == GapReason::overwritten ? kMostGaps / kMostLaps : 1;
      return gaps < kMostGaps && !is_inherited();
    };
    if (kKeeps && batch_left_ == 0) copied_ = 0;
    if (pending_gap_) [[unlikely]] {
      (void)on_event(*std::exchange(pending_gap_, std::nullopt));
      if (is_inherited()) return Errc::forked;
    }
    if (may_be_evicted_ && is_evicted()) [[unlikely]]
      notice_eviction();
    ReadOutcome outcome = ReadOutcome::go_on;
    if (disk_ != nullptr) [[unlikely]]
      outcome = poll_disk(kKeeps, limit, count, on_record, on_event);
    while (count < limit && outcome == ReadOutcome::go_on) {
      if (batch_left_ != 0) {
        outcome = next_of_batch(count, on_record);
        continue;
      }
      outcome = ReadOutcome::advance;
      if (granule_ < check_until_) [[likely]] {
        const RecordHeader& header = segment_.header(granule_);
        const std::uint64_t kind = segment_.kind(granule_, key_);
        if (is_record_kind(kind)) [[likely]] {
          outcome = mode_ == ReaderMode::lossy
                        ? deliver_copy(kKeeps, header, kind, count, on_record, on_event)
                        : deliver(header, kind, count, on_record, on_event);
        }
      }
      if (outcome == ReadOutcome::advance) [[unlikely]] {
        if (is_caught_up() || is_inherited()) break;
        if (kKeeps && count != 0) {
          outcome = flush_at_mark() ? ReadOutcome::go_on : ReadOutcome::stop;
          continue;
        }
        outcome = advance_segment();
        if (pending_gap_ && !on_event(*std::exchange(pending_gap_, std::nullopt)) &&
            outcome == ReadOutcome::go_on)
          outcome = ReadOutcome::stop;
      }
    }
    if (is_inherited()) [[unlikely]]
      return Errc::forked;
    // relaxed: informational. What gates is cursor_segment.
    store_relaxed<Why::hint>(slot_->cursor_offset, offset_);
    if (outcome == ReadOutcome::failed && count == 0) [[unlikely]]
      return what_failed();
    return count;
  }

  // Whether poll() would do something: deliver a record or a gap, or step to the next segment.
  bool is_ready() const noexcept;

  // See Subscriber::read_memory_only().
  void read_memory_only(bool is_on) noexcept {
    memory_only_ = is_on;
    needs_disk_ = false;
  }
  bool next_is_on_disk() const noexcept { return needs_disk_ && disk_ != nullptr; }

  // Whether something is claimed and not visible yet, so that this reader waits for its owner.
  bool has_hole() const noexcept;

  // Called regularly while nothing comes. Fills the hole ahead if its owner is dead, or has not run
  // for longer than revoke_after. `corrupt` if nobody owns it.
  Result<void> repair_hole();

  // Lossy, in place: the delivered record is no longer in use.
  void unpin() noexcept;

  // Offset of the next record to deliver; while skipping to a timestamp, of the next
  // one to examine.
  std::uint64_t offset() const noexcept {
    return offset_ < skip_until_ && !skip_until_time_ms_ ? skip_until_ : offset_;
  }
  // Place of the next record, or where it will be.
  RecordPlace place() const noexcept {
    return {segment_.number, offset_ - segment_.base_offset, granule_};
  }
  bool is_lossy() const noexcept { return mode_ == ReaderMode::lossy; }
  // Made lossy by a publisher and not aware of it yet: only this segment is still held for it.
  bool is_evicted() const noexcept;
  std::uint32_t partition() const noexcept { return partition_; }
  std::uint32_t own_slot() const noexcept { return own_slot_; }

 private:
  // In one poll(): gaps, and among them those where publishers overtook the reader.
  static constexpr std::size_t kMostGaps = 256;
  static constexpr std::size_t kMostLaps = 16;

  const Geometry& geometry() const noexcept;

  // Whether this process is a child that a callback has forked: the slot is its parent's.
  bool is_inherited() const noexcept { return fork_generation_ != fork_generation(); }

  // What poll_disk() calls. It is no template, because it is long.
  struct DiskCalls {
    bool keeps;  // as in poll()
    void* context;
    void (*on_record)(void* context, const Record&);
    bool (*on_event)(void* context, const Event&);  // Returns whether to go on.
  };
  // Durable topics: reads what is no longer in memory. `go_on` once it has reached the log.
  ReadOutcome poll_disk(std::size_t limit, std::size_t& count, const DiskCalls& calls);
  template <class OnRecord, class OnEvent>
  [[gnu::noinline]] ReadOutcome poll_disk(bool keeps, std::size_t limit, std::size_t& count,
                                          OnRecord&& on_record, OnEvent&& on_event) {
    // References, because either may be a function, whose address is no void*.
    struct Both {
      OnRecord& on_record;
      OnEvent& on_event;
    } both{on_record, on_event};
    return poll_disk(limit, count,
                     {keeps, &both,
                      [](void* context, const Record& record) {
                        static_cast<Both*>(context)->on_record(record);
                      },
                      [](void* context, const Event& event) {
                        return static_cast<Both*>(context)->on_event(event);
                      }});
  }
  // Reads the next entry. False if there is none now, or if it left the files for the log.
  Result<bool> next_on_disk(StoredEntry& entry);
  bool memory_may_have(const Event& gap) const noexcept;
  Result<bool> next_in_memory(StoredEntry& entry);
  // What an error of the files means.
  Error disk_error(Error error) const noexcept;
  // `is_exact`: what is gone before the oldest record is a gap.
  Result<void> enter_disk(std::uint64_t offset, bool is_exact);
  bool has_more_on_disk() const noexcept;
  bool may_enter_log() const noexcept;
  bool try_to_enter_log();
  // Whether a record is not to be skipped.
  bool is_wanted(const Record& record) noexcept {
    if (record.offset >= skip_until_) [[likely]]
      return true;
    if (!skip_until_time_ms_ || record.timestamp_ms < *skip_until_time_ms_) return false;
    skip_until_time_ms_.reset();
    skip_until_ = 0;
    return true;
  }

  void enter(const SegmentPlace& segment) noexcept;

  // The live segment that contains `offset`; the oldest or the newest if none does.
  Result<std::uint64_t> segment_of_offset(std::uint64_t oldest,
                                          std::uint64_t offset) const noexcept;

  [[gnu::noinline, gnu::cold]] ReadOutcome fail(Error error) noexcept {
    failed_ = error;
    return ReadOutcome::failed;
  }
  ReadOutcome fail(Errc code) noexcept { return fail(Error{code}); }
  // A partition that is corrupt stays so: where it would go on is unknown. One that is deleted does, too: what
  // it had next may be gone without a word. What a call for a file has failed with may have passed the next time.
  Error what_failed() noexcept {
    const bool stays = failed_ == Errc::corrupt || failed_ == Errc::deleted;
    return stays ? failed_ : std::exchange(failed_, Error{});
  }

  [[gnu::always_inline]] bool examine(const RecordHeader& header,
                                      FoundRecord& found) const noexcept {
    return examine_record(header, segment_granules_ - granule_, found);
  }

  // Delivers the record at `header`, in place.
  template <class OnRecord, class OnEvent>
  [[gnu::always_inline]] ReadOutcome deliver(const RecordHeader& header, std::uint64_t kind,
                                             std::size_t& count, OnRecord&& on_record,
                                             OnEvent&& on_event) {
    FoundRecord found;
    found.kind = kind;
    if (!examine(header, found)) [[unlikely]]
      return fail(Errc::corrupt);
    return consume(found, reinterpret_cast<const std::byte*>(&header + 1), count, on_record,
                   on_event);
  }

  // Makes the record at `header` safe to deliver: copies and validates it, or pins its segment. With
  // `keeps`, copies lie one behind the other, as long as there is room for another.
  CopyState copy_record(const RecordHeader& header, FoundRecord& found, const std::byte*& payload,
                        bool keeps, bool has_kept);
  // Room in copy_ for a copy; null if there is none behind those that are kept.
  std::byte* room_for_copy(std::uint64_t size, bool keeps, bool has_kept);

  // Delivers the record at `header` to a lossy subscriber.
  template <class OnRecord, class OnEvent>
  [[gnu::noinline]] ReadOutcome deliver_copy(bool keeps, const RecordHeader& header,
                                             std::uint64_t kind, std::size_t& count,
                                             OnRecord&& on_record, OnEvent&& on_event) {
    if (offset_ >= visible_until_ && !sees_further())
      return is_overtaken() ? ReadOutcome::advance : ReadOutcome::stop;
    FoundRecord found;
    found.kind = kind;
    const std::byte* payload = nullptr;
    switch (copy_record(header, found, payload, keeps, count != 0)) {
      case CopyState::overtaken: return ReadOutcome::advance;
      case CopyState::no_room: return ReadOutcome::stop;
      case CopyState::nonsense: return fail(Errc::corrupt);
      case CopyState::whole: break;
    }
    if (is_skipped(found)) {
      granule_ += found.granules;
      offset_ += found.records;
      return ReadOutcome::go_on;
    }
    return consume(found, payload, count, on_record, on_event);
  }

  template <class OnRecord, class OnEvent>
  [[gnu::always_inline]] ReadOutcome consume(const FoundRecord& found, const std::byte* payload,
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
      return ReadOutcome::go_on;
    }
    offset_ += found.records;
    if (first >= skip_until_ || found.records > skip_until_ - first) {
      const std::uint64_t from = first > skip_until_ ? first : skip_until_;
      const GapReason reason = gap_reason(static_cast<RecordKind>(found.kind));
      if (!on_event(Event{from, offset_ - from, reason, partition_})) return ReadOutcome::stop;
    }
    return ReadOutcome::go_on;
  }

  // Whether nothing of the next record, batch or gap is wanted.
  bool is_skipped(const FoundRecord& found) const noexcept {
    return !skip_until_time_ms_ && offset_ < skip_until_ && found.records <= skip_until_ - offset_;
  }

  // Stage durable: checks how far records are on stable storage by now. Whether the next one is.
  bool sees_further() noexcept;
  // The same, without noting it.
  bool is_visible() const noexcept;
  bool has_record() const noexcept {
    return granule_ < segment_granules_ && is_record_kind(segment_.kind(granule_, key_));
  }

  static GapReason gap_reason(RecordKind kind) noexcept {
    if (kind == RecordKind::died) return GapReason::died;
    return kind == RecordKind::revoked ? GapReason::revoked : GapReason::aborted;
  }

  template <class OnRecord>
  [[gnu::always_inline]] ReadOutcome hand_over(std::uint64_t offset, std::uint32_t detail,
                                               Bytes payload, std::size_t& count,
                                               OnRecord&& on_record) {
    if ((detail & kHasExtension) != 0 || offset < skip_until_) [[unlikely]]
      return hand_over_or_skip(offset, detail, payload, count, on_record);
    Record record;
    record.offset = offset;
    record.partition = partition_;
    record.value = payload;
    ++count;
    on_record(record);
    return ReadOutcome::go_on;
  }

  // Not inline: so a record that is a value and nothing else, which is the fastest to read, stays in registers.
  template <class OnRecord>
  [[gnu::noinline]] ReadOutcome hand_over_or_skip(std::uint64_t offset, std::uint32_t detail,
                                                  Bytes payload, std::size_t& count,
                                                  OnRecord&& on_record) {
    Record record;
    record.offset = offset;
    record.partition = partition_;
    if (!read_payload(detail, payload, record)) [[unlikely]]
      return fail(Errc::corrupt);
    if (!is_wanted(record)) [[unlikely]]
      return ReadOutcome::go_on;
    ++count;
    on_record(record);
    return ReadOutcome::go_on;
  }

  template <class OnRecord>
  [[gnu::always_inline]] ReadOutcome next_of_batch(std::size_t& count, OnRecord&& on_record) {
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

  // At check_until_, flushes what was read. False at the end of the segment, or of what is there.
  bool flush_at_mark() noexcept;

  // Steps to the next segment if this one is read to its end. A lossy reader that was overtaken
  // steps to the oldest segment.
  ReadOutcome advance_segment();

  // Measures how far the publishers are; see LineFlusher. Called once per segment.
  void note_distance() noexcept;

  // [cursor], [retire] seq_cst: all reads of the old segment are done before the cursor leaves
  // it, and the cursor names the new segment before the mode is read. Then wakes publishers that
  // wait for room.
  void move_cursor() noexcept;

  // Whether there is no next segment yet, and nothing else for advance_segment() to do. Always inline: an empty
  // poll ends here, and how soon it is repeated is part of the latency.
  [[gnu::always_inline]] bool is_caught_up() const noexcept {
    if (granule_ >= flusher_.due() || is_overtaken()) return false;
    const std::uint64_t next = segment_.number + 1;
    // [segment-map] acquire.
    return load_acquire<Edge::segment_map>(view_.entry(next).map) >> kPhysicalBits < next;
  }

  // Lossy, and the next record is gone.
  bool is_overtaken() const noexcept {
    return mode_ == ReaderMode::lossy &&
           load_seq_cst<Edge::retire>(view_.control->oldest_segment) > segment_.number;
  }
  void notice_eviction() noexcept;

  // Rereads the rest of a batch as a copy; it was read in place so far.
  void leave_batch() noexcept;

  ReadOutcome skip_to_oldest();

  // Lossy, in place: keeps the segment's memory from being reused. False if it is too late.
  bool pin() noexcept;
  bool pin_for_repair() noexcept;

  MappedTopic* topic_;
  PartitionView view_;
  PartitionSlot* slot_;                      // The owner's line in view_.slots.
  const std::byte* records_;                 // First segment of this partition.
  CurrentSegment<const std::byte> segment_;  // The segment being read.
  std::uint64_t granule_ = 0;                // Place of the next record in the segment.
  std::uint64_t offset_ = 0;                 // Offset of the next record.
  std::uint64_t skip_until_ = 0;  // Offsets below are not delivered, nor are their gaps reported.
  std::optional<std::int64_t> skip_until_time_ms_;  // If set, also before a record of that time.
  const std::byte* batch_at_ = nullptr;
  const std::byte* batch_end_ = nullptr;
  std::uint64_t batch_left_ = 0;  // Records of the current batch not delivered yet.
  std::uint64_t batch_granule_ = 0;
  std::uint64_t batch_offset_ = 0;
  std::optional<Event> pending_gap_;
  Error failed_;                                       // The next poll returns it.
  std::unique_ptr<DiskReader, CloseDiskReader> disk_;  // Durable topics, while behind the window.
  bool memory_only_ = false;  // The disk reader neither opens nor reads files.
  bool needs_disk_ = false;   // The last poll stopped because of that.
  Stage read_;
  std::uint64_t visible_until_;  // What is before is shown, with Stage::durable only that.
  std::uint64_t pinned_ = 0;     // The value of slot_->pin.
  // Lossy: the record or batch being delivered, and those that are kept.
  std::vector<std::byte> copy_;
  std::uint64_t copied_ = 0;  // How much of copy_ is kept, in bytes.
  std::uint64_t key_;         // This and the next: copies of the geometry.
  std::uint64_t segment_granules_;
  // Granule; the end of the segment, or before it where a flush is due.
  std::uint64_t check_until_ = 0;
  LineFlusher flusher_;
  std::uint32_t partition_;
  std::uint32_t own_slot_;
  std::uint32_t fork_generation_ = fork_generation();
  ReaderMode mode_;
  bool pin_in_place_;
  bool may_be_evicted_;  // The topic has evict_after.
  HoleWatch hole_;
};

}  // namespace leat::inline v0::detail
