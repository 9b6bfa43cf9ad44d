// A member's way through a partition of a durable topic: by offset, in memory or in the files.
//
// What a durable topic's group has not read is not kept in memory, so its cursor is an offset, and its
// members read copies, as lossy subscribers do. What they have read stays true, whoever moves the cursor.
// docs/internals/groups.md, "Durable topics".
#pragma once

#include <algorithm>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "leat/format/group_layout.hpp"
#include "leat/log/committed_prefix.hpp"
#include "leat/log/partitioner.hpp"
#include "leat/log/reader.hpp"

namespace leat::inline v0::detail {

// Hash of a record's key; 0 if it has none.
inline std::uint64_t key_hash(const Record& record) noexcept {
  return record.has_key ? murmur2(record.key) | 1ULL << 63 : 0;
}

// Where a reader of a durable topic belongs.
struct StoredPlace {
  MappedTopic* topic = nullptr;
  const std::byte* records = nullptr;  // The topic's records, mapped for reading.
  std::uint32_t partition = 0;
  std::uint32_t own_slot = 0;  // Of the participant that reads.
};

// Reads from any offset on.
class OffsetReader {
 public:
  explicit OffsetReader(const StoredPlace& place) noexcept : place_{place} {}

  // Goes to an offset. Errors as those of a subscriber; after one, the next call begins anew.
  Result<void> go_to(std::uint64_t offset) {
    // Reading over a few records takes less time than looking for the place.
    constexpr std::uint64_t kFew = 4096;
    if (reader_ && offset >= reader_->offset() && offset - reader_->offset() <= kFew) {
      // What lies before may be only on disk, when this is in memory.
      if (offset == reader_->offset() || !reader_->next_is_on_disk()) {
        reader_->skip_to(offset);
        return {};
      }
    }
    reader_.emplace(*place_.topic, place_.partition, place_.own_slot, place_.records,
                    ReaderMode::lossy, false, stage_of(*place_.topic->durable()));
    reader_->read_memory_only(memory_only_);
    reader_->prepare(StartAt::offset);
    auto settled = reader_->settle(StartAt::offset, offset);
    if (!settled) reader_.reset();
    return settled;
  }
  // As PartitionReader::poll().
  template <class OnRecord, class OnEvent>
  Result<std::size_t> poll(std::size_t limit, OnRecord&& on_record, OnEvent&& on_event) {
    auto count = reader_->poll(limit, on_record, on_event);
    if (!count) reader_.reset();
    return count;
  }
  void forget() noexcept { reader_.reset(); }

  // As those of PartitionReader.
  void read_memory_only(bool is_on) noexcept {
    memory_only_ = is_on;
    if (reader_) reader_->read_memory_only(is_on);
  }
  bool next_is_on_disk() const noexcept { return reader_ && reader_->next_is_on_disk(); }

  // Only after go_to() has succeeded.
  bool is_ready() const noexcept { return reader_->is_ready(); }
  bool has_hole() const noexcept { return reader_ && reader_->has_hole(); }
  Result<void> repair_hole() { return reader_ ? reader_->repair_hole() : Result<void>{}; }

  const StoredPlace& place() const noexcept { return place_; }

 private:
  StoredPlace place_;
  std::optional<PartitionReader> reader_;
  bool memory_only_ = false;
};

class StoredScanner {
 public:
  enum class Step : std::uint8_t { record, gap, nothing, failed };
  // A record, or what there is instead.
  struct Entry {
    std::uint64_t first = 0;
    std::uint64_t count = 1;
    std::uint64_t key = 0;  // of a record
    std::optional<GapReason> gap;

    std::uint64_t end() const noexcept { return first + count; }
  };

  StoredScanner(const StoredPlace& place, const GroupGeometry& group,
                const OwnedWord& limit) noexcept
      : reader_{place},
        limit_{group.at_most_once() ? &limit : nullptr},
        expired_stops_{group.expired_stops()},
        expired_to_end_{group.expired_to_end()} {}

  // Offset of the next entry.
  std::uint64_t offset() const noexcept { return offset_; }
  void go_to(std::uint64_t offset) noexcept {
    offset_ = offset;
    has_stepped_ = false;
    // What was read stays true: the next entry may be among it.
    if (next_ != 0 && offset < entries_[next_ - 1].end()) next_ = 0;
    while (next_ != entries_.size() && entries_[next_].end() <= offset) ++next_;
    const bool is_among =
        next_ != entries_.size() ? entries_[next_].first <= offset : read_until_ == offset;
    if (is_among) return;
    entries_.clear();
    next_ = 0;
  }

  Step next(Entry& entry) noexcept {
    if (next_ == entries_.size() && !read()) {
      // What was passed before can be taken; the next scan begins with the error.
      return error_.code == Errc::ok || has_stepped_ ? Step::nothing : Step::failed;
    }
    entry = entries_[next_];
    if (entry.first < offset_) {  // The cursor is in the middle of a gap.
      entry.count = entry.end() - offset_;
      entry.first = offset_;
    }
    if (entry.count > kMaxPosition || entry.first > kMaxPosition - entry.count) {
      error_ = {Errc::corrupt};  // No cursor could say so.
      return has_stepped_ ? Step::nothing : Step::failed;
    }
    if (!entry.gap && !may_take()) return Step::nothing;
    if (entry.gap == GapReason::overwritten && expired_stops_) {
      error_ = {Errc::expired};
      return has_stepped_ ? Step::nothing : Step::failed;
    }
    offset_ = entry.end();
    ++next_;
    has_stepped_ = true;
    return entry.gap ? Step::gap : Step::record;
  }

  // Whether next() would not return `nothing`.
  bool is_ready() noexcept {
    if (next_ != entries_.size()) return entries_[next_].gap || may_take();
    if (auto there = go_on(); !there) return true;  // next() returns the error.
    return reader_.is_ready();
  }
  // Whether the next record waits until the group is saved.
  bool is_at_limit() const noexcept { return next_ != entries_.size() && !may_take(); }
  // Why the last step failed.
  Error error() const noexcept { return error_; }

  // As those of PartitionReader, for what this one has not read ahead.
  void read_memory_only(bool is_on) noexcept { reader_.read_memory_only(is_on); }
  bool next_is_on_disk() const noexcept { return reader_.next_is_on_disk(); }

  bool has_hole() const noexcept { return reader_.has_hole(); }
  Result<void> repair_hole() { return reader_.repair_hole(); }
  std::uint64_t claimed_beyond() const noexcept {
    const StoredPlace& place = reader_.place();
    const std::uint64_t end = end_of_claims(*place.topic, place.partition);
    return end > offset_ ? end - offset_ : 0;
  }

 private:
  static constexpr std::size_t kReadAtOnce = 64;  // records
  static constexpr std::size_t kMostKept = 1024;  // entries

  bool may_take() const noexcept {
    // [archiver] The saved group begins there. [sync] seq_cst: read after a sleep is announced.
    return limit_ == nullptr || offset_ < load_seq_cst<Edge::sync>(limit_->value);
  }

  Result<void> go_on() {
    try {
      return reader_.go_to(entries_.empty() ? offset_ : read_until_);
    } catch (const std::bad_alloc&) {
      return Error{Errc::no_memory};
    }
  }

  // Reads more entries. False if there is none now, or if it failed.
  bool read() noexcept {
    error_ = {};
    const auto failed = [this](Error error) {
      reader_.forget();
      error_ = error;
      return false;
    };
    if (auto there = go_on(); !there) return failed(there.error());
    if (entries_.empty()) read_until_ = offset_;
    if (entries_.size() >= kMostKept) {
      entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(next_));
      next_ = 0;
    }
    try {
      auto count = reader_.poll(
          kReadAtOnce,
          [this](const Record& record) {
            add({record.offset, 1, key_hash(record), {}});
          },
          [this](const Event& event) {
            add({event.first, event.count, 0, event.reason});
          });
      if (!count && next_ == entries_.size()) return failed(count.error());
    } catch (const std::bad_alloc&) {
      return failed({Errc::no_memory});
    }
    return next_ != entries_.size();
  }
  void add(Entry entry) {
    if (entry.end() <= read_until_) return;
    if (entry.first < read_until_) {
      entry.count = entry.end() - read_until_;
      entry.first = read_until_;
    }
    if (entry.gap == GapReason::overwritten && expired_to_end_) {
      const StoredPlace& place = reader_.place();
      entry.count =
          std::max(entry.end(), end_of_claims(*place.topic, place.partition)) - entry.first;
    }
    entries_.push_back(entry);
    read_until_ = entry.end();
  }

  OffsetReader reader_;
  const OwnedWord* limit_;
  bool expired_stops_;
  bool expired_to_end_;
  std::uint64_t offset_ = 0;
  std::vector<Entry> entries_;    // Consecutive ones.
  std::size_t next_ = 0;          // Index of the next one.
  std::uint64_t read_until_ = 0;  // Where they end.
  bool has_stepped_ = false;      // Since go_to().
  Error error_;
};

}  // namespace leat::inline v0::detail
