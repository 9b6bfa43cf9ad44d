// Adding memory to a topic with policy grow.
//
//     SegmentMemory memory{topic, partition};
//     std::uint64_t added = memory.add();  // one more physical segment, or kNoSegment
//
// A process that adds memory holds a shared lock on the records file, one that frees memory
// (log/shrink.hpp) an exclusive lock. take() never waits for the lock.
// docs/internals/log.md, "Growing".
#pragma once

#include "leat/log/participants.hpp"

namespace leat::inline v0::detail {

// A lock on a topic's records file, held while this object exists. Not inherited by a forked child.
class RecordsLock {
 public:
  // `busy` if there is a conflicting lock; `deleted` if the topic's files are gone.
  static Result<RecordsLock> take(const MappedTopic& topic, LockKind kind) {
    auto file = topic.open_records_to_lock();
    if (!file) return file.error();
    RecordsLock lock{std::move(*file)};
    auto locked = lock.file_.try_lock(0, kind);
    if (!locked) return locked.error();
    if (!*locked) return Errc::busy;
    return lock;
  }
  RecordsLock(RecordsLock&&) noexcept = default;
  RecordsLock& operator=(RecordsLock&&) noexcept = default;
  int fd() const noexcept { return file_.get(); }

 private:
  explicit RecordsLock(LockFile file) noexcept : file_{std::move(file)} {}
  LockFile file_;
};

inline constexpr std::uint64_t kNoSegment = ~0ULL;

class SegmentMemory {
 public:
  SegmentMemory(MappedTopic& topic, std::uint32_t partition) noexcept
      : topic_{topic}, view_{topic.partition(partition)} {}

  // The number of physical segments that have memory.
  std::uint64_t count() const noexcept { return scan().count; }

  // Gives memory to one more physical segment and returns its index. kNoSegment if the maximum is
  // reached, there is no memory, or another process is freeing memory: try again later.
  std::uint64_t add() {
    if (!may_add(scan()) || !topic_.may_ask_for_memory()) return kNoSegment;
    auto lock = RecordsLock::take(topic_, LockKind::shared);
    if (!lock) return kNoSegment;
    LEAT_CRASH_POINT("grow:locked");
    // Check again, now that nothing can be freed. All publishers that add choose the first
    // segment without memory, so two that add at once do not exceed the maximum.
    const Scan now = scan();
    return may_add(now) && give(lock->fd(), now.first_without) ? now.first_without : kNoSegment;
  }

  // The number of segments that may have memory.
  std::uint64_t maximum() const noexcept {
    // [sleeping] seq_cst: changed before sleepers are woken.
    const std::uint32_t maximum = load_seq_cst<Edge::sleeping>(topic_.header().max_segments);
    return std::min(maximum, topic_.geometry().segment_count);
  }

 private:
  struct Scan {
    std::uint64_t count = 0;
    std::uint64_t first_without = kNoSegment;
  };
  Scan scan() const noexcept {
    Scan found;
    for (std::uint64_t i = 0; i < topic_.geometry().segment_count; ++i) {
      // [segment-open] acquire: the memory is there if the mark is gone.
      if ((load_acquire<Edge::segment_open>(view_.physical[i].last_segment) & kNoMemory) == 0) {
        ++found.count;
      } else if (found.first_without == kNoSegment) {
        found.first_without = i;
      }
    }
    return found;
  }
  bool may_add(const Scan& found) const noexcept {
    return found.first_without != kNoSegment && found.count < maximum();
  }

  bool give(int fd, std::uint64_t physical) {
    const std::uint64_t size = topic_.geometry().segment_size;
    const std::uint64_t offset = view_.records_offset + physical * size;
    std::uint64_t& word = view_.physical[physical].last_segment;
    std::uint64_t seen = load_acquire<Edge::segment_open>(word);
    if ((seen & kNoMemory) == 0) return true;
    if (!allocate_range(fd, offset, size)) {
      topic_.note_no_memory();
      return false;
    }
    LEAT_CRASH_POINT("grow:allocated");
    topic_.populate_for_writing(offset, size);
    // [segment-open] seq_cst: the memory before the mark goes. If the swap fails, another publisher
    // has given it memory.
    compare_exchange<Edge::segment_open>(word, seen, seen & ~kNoMemory);
    LEAT_CRASH_POINT("grow:supplied");
    return true;
  }

  MappedTopic& topic_;
  PartitionView view_;
};

}  // namespace leat::inline v0::detail
