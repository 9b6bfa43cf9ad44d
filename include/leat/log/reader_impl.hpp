// What a reader does when it joins, between segments, and at a hole.
#pragma once

#include <algorithm>

#include "leat/base/config.hpp"
#include "leat/log/committed_prefix.hpp"
#include "leat/log/disk_reader.hpp"
#include "leat/log/reader.hpp"
#include "leat/log/segments.hpp"

namespace leat::inline v0::detail {

LEAT_INLINE Result<void> HoleWatch::check(MappedTopic& topic, std::uint32_t partition,
                                          std::uint32_t own_slot, const RecordPlace& place) {
  const std::int64_t now = now_ns();
  if (since_ns_ == kNowhere || place != place_) {
    place_ = place;
    since_ns_ = now;
    pause_.begin(now);
  }
  pause_.check(now);
  const std::int64_t revoke_after_ns = topic.geometry().revoke_after_ns;
  const bool revoke = revoke_after_ns != 0 && pause_.is_late(now, since_ns_, revoke_after_ns);
  auto state = Repair{topic, partition, own_slot}.fill_hole(place, revoke);
  if (!state) return state.error();
  if (*state == HoleState::unknown) return Errc::corrupt;
  return {};
}

LEAT_INLINE void CloseDiskReader::operator()(DiskReader* reader) const noexcept { delete reader; }

LEAT_INLINE const Geometry& PartitionReader::geometry() const noexcept {
  return topic_->geometry();
}

LEAT_INLINE PartitionReader::PartitionReader(MappedTopic& topic, std::uint32_t partition,
                                             std::uint32_t own_slot, const std::byte* records,
                                             ReaderMode mode, bool pin_in_place,
                                             Stage read) noexcept
    : topic_{&topic},
      view_{topic.partition(partition)},
      slot_{&view_.slots[own_slot]},
      records_{records + view_.records_offset},
      read_{read},
      visible_until_{read == Stage::durable ? 0 : ~std::uint64_t{0}},
      key_{topic.geometry().key},
      segment_granules_{topic.geometry().segment_granules},
      partition_{partition},
      own_slot_{own_slot},
      mode_{mode},
      pin_in_place_{pin_in_place && mode == ReaderMode::lossy},
      may_be_evicted_{topic.geometry().evict_after_ns != 0} {}

LEAT_INLINE void PartitionReader::prepare(StartAt at) noexcept {
  const std::uint64_t segment = at == StartAt::end
                                    ? load_acquire<Edge::segment_open>(view_.control->current)
                                    : load_seq_cst<Edge::retire>(view_.control->oldest_segment);
  store_relaxed<Why::published_later>(slot_->cursor_segment, segment);
  store_relaxed<Why::published_later>(slot_->reader_mode, static_cast<std::uint64_t>(mode_));
}

LEAT_INLINE Result<void> PartitionReader::settle(StartAt at, std::uint64_t offset) {
  std::uint64_t number = load_relaxed<Why::own>(slot_->cursor_segment);
  for (std::uint32_t moves = 0; moves < kManyMoves; ++moves) {
    // [retire] seq_cst: the cursor is visible before oldest_segment is read. If oldest_segment
    // is not past the cursor now, a publisher that moves it later sees the cursor, and the
    // segment stays.
    const std::uint64_t oldest = load_seq_cst<Edge::retire>(view_.control->oldest_segment);
    if (oldest > number || at == StartAt::offset) {
      auto better = at == StartAt::offset ? segment_of_offset(oldest, offset) : oldest;
      if (!better) return better.error();
      if (*better != number) {
        number = *better;
        (void)exchange<Edge::retire>(slot_->cursor_segment, number);
        if (load_seq_cst<Edge::retire>(view_.control->oldest_segment) > number) continue;
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
    if (load_seq_cst<Edge::retire>(view_.control->oldest_segment) > number) continue;
    if (!segment) return segment.error();
    enter(*segment);
    skip_until_ = 0;
    if (at == StartAt::end) {
      const ClaimLayout& layout = geometry().claim_layout;
      if (layout.segment(claim) != layout.truncate_segment(number)) continue;
      granule_ = layout.granules(claim);
      offset_ = segment_.base_offset + layout.records(claim);
      if (granule_ > geometry().segment_granules) return Errc::corrupt;
    } else if (at == StartAt::offset) {
      skip_until_ = offset;
      if (offset < offset_) {
        pending_gap_ = Event{offset, offset_ - offset, GapReason::overwritten, partition_};
      }
    }
    if (topic_->durable() != nullptr && at != StartAt::end) {
      const std::uint64_t wanted = at == StartAt::offset ? offset : 0;
      if (wanted < segment_.base_offset) {
        pending_gap_.reset();
        auto entered = enter_disk(wanted, at == StartAt::offset);
        if (!entered) return entered;
        // Retention may keep less than memory has.
        if (disk_->offset() > segment->base_offset) {
          disk_.reset();
          enter(*segment);
          pending_gap_.reset();
          if (at == StartAt::offset)
            pending_gap_ = Event{offset, offset_ - offset, GapReason::overwritten, partition_};
        }
      }
    }
    store_relaxed<Why::hint>(slot_->cursor_offset, this->offset());
    // [retire] release: the cursor was stored before its segment could be retired.
    store_release<Edge::retire>(slot_->settled, 1);
    return {};
  }
  return Errc::corrupt;
}

LEAT_INLINE Result<void> PartitionReader::skip_until_time(std::int64_t time_ms) {
  const auto end = known_end_of_claims(*topic_, partition_);
  if (!end) return end.error();
  skip_until_time_ms_ = time_ms;
  // What is published from now on is wanted, even if the clock of a publisher is behind.
  skip_until_ = *end;
  if (disk_ == nullptr) return {};
  auto found = disk_->seek_time(time_ms);
  if (found && *found > skip_until_) found = disk_->seek(skip_until_);
  if (!found) return disk_error(found.error());
  offset_ = *found;
  return {};
}

LEAT_INLINE bool PartitionReader::is_ready() const noexcept {
  if (pending_gap_ || batch_left_ != 0 || failed_.code != Errc::ok) return true;
  if (disk_ != nullptr) return has_more_on_disk() || may_enter_log();
  if (has_record() && is_visible()) return true;
  if (is_evicted() || is_overtaken()) return true;
  const SegmentEntry& next = view_.entry(segment_.number + 1);
  return load_acquire<Edge::segment_map>(next.map) >> kPhysicalBits == segment_.number + 1 &&
         load_relaxed<Why::stored_before>(next.base_offset) == offset_;
}

LEAT_INLINE bool PartitionReader::has_hole() const noexcept {
  return disk_ == nullptr && !has_record() && has_hole_at(geometry(), view_, place());
}

LEAT_INLINE Result<void> PartitionReader::repair_hole() {
  // In this order: first what is claimed, then once more what is visible.
  if (!has_hole() || is_ready()) {
    hole_.clear();
    return {};
  }
  if (mode_ == ReaderMode::lossy && !pin_for_repair()) return {};
  auto checked = hole_.check(*topic_, partition_, own_slot_, place());
  if (mode_ == ReaderMode::lossy) store_release<Edge::cursor>(slot_->repair_pin, 0);
  // The segment may have been retired meanwhile: then this is no longer this reader's hole.
  if (is_evicted() || is_overtaken()) return {};
  if (!checked) failed_ = checked.error();  // The next poll returns it.
  return checked;
}

LEAT_INLINE bool PartitionReader::sees_further() noexcept {
  if (read_ != Stage::durable) return true;  // It is at the largest offset that there is.
  visible_until_ = topic_->durable()->durable(partition_);
  return offset_ < visible_until_;
}

LEAT_INLINE bool PartitionReader::is_visible() const noexcept {
  return offset_ < visible_until_ || read_ != Stage::durable ||
         offset_ < topic_->durable()->durable(partition_);
}

LEAT_INLINE void PartitionReader::unpin() noexcept {
  if (batch_left_ != 0 || pinned_ == 0) return;
  pinned_ = 0;
  store_release<Edge::cursor>(slot_->pin, 0);
}

LEAT_INLINE void PartitionReader::enter(const SegmentPlace& segment) noexcept {
  segment_.enter(segment, records_, geometry());
  offset_ = segment.base_offset;
  granule_ = 0;
  flusher_.enter_segment();
  check_until_ = std::min(segment_granules_, flusher_.due());
}

LEAT_INLINE Result<std::uint64_t> PartitionReader::segment_of_offset(
    std::uint64_t oldest, std::uint64_t offset) const noexcept {
  std::uint64_t number = load_acquire<Edge::segment_open>(view_.control->current);
  if (number < oldest || number - oldest >= geometry().segment_count) return oldest;
  while (number > oldest) {
    auto segment = find_segment(*topic_, view_, number);
    if (!segment) return oldest;  // Reused meanwhile; settle() notices.
    if (segment->base_offset <= offset) break;
    --number;
  }
  return number;
}

[[gnu::noinline]] LEAT_INLINE CopyState PartitionReader::copy_record(const RecordHeader& header,
                                                                     FoundRecord& found,
                                                                     const std::byte*& payload,
                                                                     bool keeps, bool has_kept) {
  if (pin_in_place_ && !pin()) return CopyState::overtaken;
  const bool is_sane = examine(header, found);
  payload = reinterpret_cast<const std::byte*>(&header + 1);
  if (is_sane && found.has_payload() && !pin_in_place_ && !is_skipped(found)) {
    std::byte* const copy = room_for_copy(found.length(), keeps, has_kept);
    if (copy == nullptr) return CopyState::no_room;
    copy_racing(copy, payload, found.length());
    payload = copy;
  }
  // [overwrite] acquire: a publisher that overwrote these bytes moved oldest_segment before.
  fence_acquire<Edge::overwrite>();
  if (!pin_in_place_ &&
      load_seq_cst<Edge::retire>(view_.control->oldest_segment) > segment_.number) {
    return CopyState::overtaken;
  }
  return is_sane ? CopyState::whole : CopyState::nonsense;
}

LEAT_INLINE std::byte* PartitionReader::room_for_copy(std::uint64_t size, bool keeps,
                                                      bool has_kept) {
  constexpr std::uint64_t kKept = 256 * 1024;  // bytes
  const std::uint64_t rounded = std::max<std::uint64_t>(8, Geometry::round_up(size, 8));
  if (!keeps) {
    copy_.resize(rounded);
    copied_ = rounded;  // What is left of a batch stays, if the next call keeps.
    return copy_.data();
  }
  if (copied_ + rounded > copy_.size()) {
    if (has_kept && copied_ != 0) return nullptr;
    copied_ = 0;
    if (copy_.size() < rounded || copy_.size() < kKept) copy_.resize(std::max(rounded, kKept));
  }
  std::byte* const room = copy_.data() + copied_;
  copied_ += rounded;
  return room;
}

LEAT_INLINE bool PartitionReader::flush_at_mark() noexcept {
  if (granule_ < flusher_.due()) return false;
  flusher_.flush(segment_.data, granule_);
  check_until_ = std::min(segment_granules_, flusher_.due());
  return granule_ < segment_granules_;
}

LEAT_INLINE ReadOutcome PartitionReader::advance_segment() {
  if (flush_at_mark()) return ReadOutcome::go_on;
  if (is_overtaken()) return skip_to_oldest();
  const std::uint64_t number = segment_.number + 1;
  const SegmentEntry& entry = view_.entry(number);
  // [segment-map] acquire.
  if (load_acquire<Edge::segment_map>(entry.map) >> kPhysicalBits < number)
    return ReadOutcome::stop;
  // Not find_segment(), which would read the claim word's line again and again at a hole, and before
  // note_distance() measures how long that takes.
  auto segment = read_entry(*topic_, view_, number);
  // [retire] seq_cst: read after the entry. If this segment is still live, the entry was valid.
  if (is_overtaken()) return skip_to_oldest();
  if (is_evicted()) {
    notice_eviction();
    return ReadOutcome::go_on;
  }
  if (!segment) return fail(segment.error());
  if (segment->base_offset != offset_) {
    if (segment->base_offset < offset_) return fail(Errc::corrupt);
    return ReadOutcome::stop;  // This segment has an uncommitted record.
  }
  note_distance();
  enter(*segment);
  move_cursor();
  // [retire] seq_cst: read after the cursor is stored. From here on the segment's memory is not
  // freed (log/shrink.hpp), although it may be reused under a lossy reader.
  if (is_overtaken()) return skip_to_oldest();
  return ReadOutcome::go_on;
}

LEAT_INLINE void PartitionReader::note_distance() noexcept {
  const std::int64_t before_ns = now_ns();
  // relaxed: informational. A publisher has changed this word since the last segment.
  const std::uint64_t current = load_relaxed<Why::hint>(view_.control->current);
  const std::uint64_t ahead = std::max(current, segment_.number) - segment_.number;
  flusher_.note(now_ns() - before_ns, 2 * ahead > geometry().segment_count);
}

LEAT_INLINE void PartitionReader::move_cursor() noexcept {
  (void)exchange<Edge::cursor>(slot_->cursor_segment, segment_.number);
  LEAT_CRASH_POINT("cursor:moved");
  notice_eviction();
  MappedTopic::wake(topic_->header().space_wake);
}

LEAT_INLINE bool PartitionReader::is_evicted() const noexcept {
  return mode_ == ReaderMode::gating && may_be_evicted_ &&
         load_seq_cst<Edge::retire>(slot_->reader_mode) ==
             static_cast<std::uint64_t>(ReaderMode::evicted);
}

LEAT_INLINE void PartitionReader::notice_eviction() noexcept {
  if (!is_evicted()) return;
  mode_ = ReaderMode::lossy;
  // Records delivered from this segment are no longer in use: this is a new call.
  (void)exchange<Edge::retire>(slot_->reader_mode, static_cast<std::uint64_t>(ReaderMode::lossy));
  if (batch_left_ != 0) leave_batch();
  MappedTopic::wake(topic_->header().space_wake);
}

LEAT_INLINE void PartitionReader::leave_batch() noexcept {
  batch_left_ = 0;
  if (offset_ > skip_until_) skip_until_time_ms_.reset();  // Else it might deliver some once more.
  skip_until_ = offset_ > skip_until_ ? offset_ : skip_until_;
  granule_ = batch_granule_;
  offset_ = batch_offset_;
}

LEAT_INLINE Result<void> PartitionReader::enter_disk(std::uint64_t offset, bool is_exact) {
  if (memory_only_) {
    disk_.reset(DiskReader::open_later(*topic_->durable(), partition_, offset).release());
    offset_ = offset;
    needs_disk_ = true;
    return {};
  }
  auto disk = DiskReader::open(*topic_->durable(), partition_);
  if (!disk) return disk_error(disk.error());
  auto start = (*disk)->seek(offset);
  if (!start) return disk_error(start.error());
  if (*start > offset && topic_->is_deleted()) return Errc::deleted;
  offset_ = *start;
  if (offset_ > offset && is_exact)
    pending_gap_ = Event{offset, offset_ - offset, GapReason::overwritten, partition_};
  disk_.reset(disk->release());
  return {};
}

LEAT_INLINE ReadOutcome PartitionReader::poll_disk(std::size_t limit, std::size_t& count,
                                                   const DiskCalls& calls) {
  StoredEntry entry;
  needs_disk_ = false;
  while (count < limit) {
    if (disk_ == nullptr) return ReadOutcome::go_on;  // A callback polled, and entered the log.
    // Looking at the log takes longer than reading a record: once for each frame is often enough.
    if (disk_->next_in_frame(entry)) [[likely]] {
      offset_ = disk_->offset();
    } else {
      if ((calls.keeps && count != 0) || is_inherited()) return ReadOutcome::stop;
      auto is_there = next_on_disk(entry);
      if (!is_there) return fail(is_there.error());
      if (disk_ == nullptr) {
        if (pending_gap_ &&
            !calls.on_event(calls.context, *std::exchange(pending_gap_, std::nullopt)))
          return ReadOutcome::stop;
        return ReadOutcome::go_on;
      }
      if (!*is_there) return ReadOutcome::stop;
    }
    if (!entry.is_record) {
      if (!calls.on_event(calls.context, entry.gap)) return ReadOutcome::stop;
    } else if (is_wanted(entry.record)) {
      ++count;
      calls.on_record(calls.context, entry.record);
    }
  }
  return ReadOutcome::stop;
}

LEAT_INLINE Result<bool> PartitionReader::next_on_disk(StoredEntry& entry) {
  if (may_enter_log()) {
    if (try_to_enter_log()) return false;
    if (failed_.code != Errc::ok) return std::exchange(failed_, Error{});
    if (pending_gap_) {  // Retention has overtaken it just now.
      entry.is_record = false;
      entry.gap = *std::exchange(pending_gap_, std::nullopt);
      return true;
    }
  }
  if (memory_only_) {
    needs_disk_ = has_more_on_disk();
    return false;
  }
  auto more = disk_->next(entry, topic_->durable()->readable(partition_, read_));
  if (!more) return disk_error(more.error());
  if (!*more && disk_->misses_records()) {
    auto there = next_in_memory(entry);
    if (!there || disk_ == nullptr) return there;
    more = std::move(there);
  }
  // A deletion takes the files one by one, which looks like damage.
  if (*more && !entry.is_record && topic_->is_deleted()) return Errc::deleted;
  if (*more && !entry.is_record && entry.gap.reason == GapReason::overwritten &&
      memory_may_have(entry.gap)) {
    disk_->go_back(entry.gap.first);
    if (try_to_enter_log()) return false;
    if (failed_.code != Errc::ok) return std::exchange(failed_, Error{});
    if (!pending_gap_) return false;
    entry.gap = *std::exchange(pending_gap_, std::nullopt);
  }
  offset_ = disk_->offset();
  return more;
}

// Whether some of what retention has taken may still be in memory, because retention keeps less.
LEAT_INLINE bool PartitionReader::memory_may_have(const Event& gap) const noexcept {
  const std::uint64_t oldest = load_seq_cst<Edge::retire>(view_.control->oldest_segment);
  auto segment = find_segment(*topic_, view_, oldest);
  return !segment || segment->base_offset < gap.first + gap.count;  // Or it was retired meanwhile.
}

// Goes on where memory has what the files have lost. Returns as next_on_disk().
LEAT_INLINE Result<bool> PartitionReader::next_in_memory(StoredEntry& entry) {
  const std::uint64_t oldest = load_seq_cst<Edge::retire>(view_.control->oldest_segment);
  auto segment = find_segment(*topic_, view_, oldest);
  if (!segment) return false;  // It was retired meanwhile.
  if (load_seq_cst<Edge::retire>(view_.control->oldest_segment) != oldest) return false;
  if (segment->base_offset > disk_->offset()) {
    entry.is_record = false;
    entry.gap = disk_->pass_missing(segment->base_offset);
    return true;
  }
  if (!try_to_enter_log() && failed_.code != Errc::ok) return std::exchange(failed_, Error{});
  return false;
}

LEAT_INLINE Error PartitionReader::disk_error(Error error) const noexcept {
  return topic_->is_deleted() ? Error{Errc::deleted} : error;
}

LEAT_INLINE bool PartitionReader::has_more_on_disk() const noexcept {
  return disk_->offset() < topic_->durable()->readable(partition_, read_);
}

// Whether to go on in memory: when nothing more is on disk, or publishers would not overtake it there
// again soon.
LEAT_INLINE bool PartitionReader::may_enter_log() const noexcept {
  const std::uint64_t oldest = load_seq_cst<Edge::retire>(view_.control->oldest_segment);
  const std::uint64_t current = load_acquire<Edge::segment_open>(view_.control->current);
  const std::uint64_t number = has_more_on_disk() ? oldest + (current - oldest) / 2 : oldest;
  auto segment = find_segment(*topic_, view_, number);
  return segment && segment->base_offset <= disk_->offset();  // Else it was retired meanwhile.
}

LEAT_INLINE bool PartitionReader::try_to_enter_log() {
  const std::uint64_t offset = disk_->offset();
  const std::uint64_t skip_until = skip_until_;
  auto disk = std::move(disk_);
  if (auto settled = settle(StartAt::offset, offset); !settled) {
    failed_ = settled.error();
    disk_ = std::move(disk);
    offset_ = offset;
    skip_until_ = skip_until;
    return false;
  }
  skip_until_ = std::max(skip_until, skip_until_);
  return disk_ == nullptr;
}

LEAT_INLINE ReadOutcome PartitionReader::skip_to_oldest() {
  const std::uint64_t lost_from = offset_;
  if (topic_->durable() != nullptr) {
    if (batch_left_ != 0) leave_batch();
    const std::uint64_t wanted = std::max(offset_, skip_until_time_ms_ ? 0 : skip_until_);
    if (auto entered = enter_disk(wanted, false); !entered) return fail(entered.error());
    // next_on_disk() reports the gap; it checks memory first.
    if (offset_ > wanted) disk_->go_back(wanted);
    offset_ = wanted;
    return ReadOutcome::stop;
  }
  for (std::uint32_t moves = 0;; ++moves) {
    if (moves == kManyMoves) return fail(Errc::corrupt);
    const std::uint64_t oldest = load_seq_cst<Edge::retire>(view_.control->oldest_segment);
    auto segment = find_segment(*topic_, view_, oldest);
    LEAT_CRASH_POINT("skip:looked");
    if (load_seq_cst<Edge::retire>(view_.control->oldest_segment) != oldest) continue;
    if (!segment) return fail(segment.error());
    if (segment->base_offset < lost_from) return fail(Errc::corrupt);
    enter(*segment);
    (void)exchange<Edge::cursor>(slot_->cursor_segment, segment_.number);
    if (!is_overtaken()) break;
  }
  const std::uint64_t from = lost_from > skip_until_ ? lost_from : skip_until_;
  if (offset_ > from)
    pending_gap_ = Event{from, offset_ - from, GapReason::overwritten, partition_};
  return ReadOutcome::go_on;
}

LEAT_INLINE bool PartitionReader::pin() noexcept {
  if (pinned_ == segment_.number) return true;
  if (is_inherited()) return false;
  // [retire] seq_cst: stores the pin, then reads oldest_segment.
  (void)exchange<Edge::retire>(slot_->pin, segment_.number);
  pinned_ = segment_.number;
  return load_seq_cst<Edge::retire>(view_.control->oldest_segment) <= segment_.number;
}

LEAT_INLINE bool PartitionReader::pin_for_repair() noexcept {
  (void)exchange<Edge::retire>(slot_->repair_pin, segment_.number);
  if (load_seq_cst<Edge::retire>(view_.control->oldest_segment) <= segment_.number) return true;
  store_release<Edge::cursor>(slot_->repair_pin, 0);
  return false;
}

}  // namespace leat::inline v0::detail
