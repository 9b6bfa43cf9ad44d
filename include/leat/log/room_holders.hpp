// Who keeps a full partition from taking another record.
//
//     std::vector<RoomHolder> holders = RoomHolders{topic, partition}.find();   // none: there is room
//
// Roller asks the same question before it opens a segment, and repairs, retires and reuses on the way. This only looks, so
// any thread of any process may ask, and the answer may be out of date when it is read.
#pragma once

#include <algorithm>
#include <vector>

#include "leat/log/segments.hpp"
#include "leat/publisher.hpp"

namespace leat::inline v0::detail {

class RoomHolders {
 public:
  RoomHolders(MappedTopic& topic, std::uint32_t partition) noexcept
      : topic_{topic},
        view_{topic.partition(partition)},
        partition_{partition},
        roller_{topic, partition, kNobody} {}

  std::vector<RoomHolder> find() {
    if ((topic_.geometry().flags & kRetainAll) != 0 || may_grow()) return {};
    // [retire] seq_cst, then [segment-open] acquire: as in find_room().
    const std::uint64_t oldest = load_seq_cst<Edge::retire>(view_.control->oldest_segment);
    const std::uint64_t current = load_acquire<Edge::segment_open>(view_.control->current);
    for (std::uint64_t i = 0; i < topic_.geometry().segment_count; ++i) {
      const std::uint64_t last = load_acquire<Edge::segment_open>(view_.physical[i].last_segment);
      if (last < oldest && (last == 0 || !add_holders(last, false))) return {};
    }
    // Bounded, because the words may be corrupted.
    const std::uint64_t count =
        std::min<std::uint64_t>(current - oldest, topic_.geometry().segment_count);
    for (std::uint64_t i = 0; oldest < current && i < count; ++i) {
      if (add_holders(oldest + i, true)) break;  // It cannot be retired, nor can those behind it.
      if (!add_holders(oldest + i, false)) return {};  // It can be, and its memory is free then.
    }
    return std::move(found_);
  }

 private:
  static constexpr std::uint32_t kNobody = ~0U;  // The slot of no participant.

  // Policy grow: whether a publisher would add memory. Not if one waits: it has tried in vain.
  bool may_grow() const noexcept {
    if (!topic_.geometry().grows()) return false;
    const SegmentMemory memory{topic_, partition_};
    // [sleeping] acquire: only a hint.
    return memory.count() < memory.maximum() && topic_.may_ask_for_memory() &&
           (load_acquire<Edge::sleeping>(topic_.header().space_wake) & kSleeping) == 0;
  }

  // Whether somebody holds `segment`. With `only_cursors`: whether it may not even be retired.
  bool add_holders(std::uint64_t segment, bool only_cursors) {
    if (!roller_.is_on_disk(segment)) {
      add({.kind = RoomHolder::Kind::archiver,
           .pids = {load_relaxed<Why::hint>(topic_.durable()->header().archiver_pid)}});
      return true;
    }
    bool is_held = false;
    for (std::uint32_t slot = 0; slot < topic_.participant_high(); ++slot) {
      const ParticipantSlot& participant = topic_.participant(slot);
      const std::uint64_t state = load_seq_cst<Edge::slot>(participant.state);
      if (state == 0) continue;
      const Roller::Holder holder = roller_.holder_of(slot, state, segment, only_cursors);
      if (holder == Roller::Holder::none || holder == Roller::Holder::announcement ||
          is_dead(topic_, state))
        continue;  // Publishers withdraw or reap these.
      const bool reads = holder == Roller::Holder::reader || holder == Roller::Holder::pin ||
                         !is_publisher(state);  // Readers repair, too.
      add({.kind = reads ? RoomHolder::Kind::subscriber : RoomHolder::Kind::publisher,
           .pids = {load_relaxed<Why::hint>(participant.pid)}});
      is_held = true;
    }
    GroupRoom{topic_, partition_}.each_in_need(segment, only_cursors, [&](const GroupView& group) {
      is_held = true;
      std::vector<std::uint32_t> pids;
      group.each_living_member(topic_.control_fd(), [&](const GroupSeat& seat) {
        pids.push_back(load_relaxed<Why::hint>(seat.pid));
      });
      if (!group.is_closed())
        return add({.kind = RoomHolder::Kind::group, .pids = pids, .group = group.name()});
      // Nobody finds a deleted group by its name any more. Its members are still there.
      for (const std::uint32_t pid : pids)
        add({.kind = RoomHolder::Kind::subscriber, .pids = {pid}});
    });
    return is_held;
  }

  void add(RoomHolder holder) {
    holder.partition = partition_;
    const bool is_known = std::ranges::any_of(found_, [&](const RoomHolder& one) {
      return one.kind == holder.kind && one.group == holder.group &&
             (!one.group.empty() || one.pids == holder.pids);
    });
    if (!is_known) found_.push_back(std::move(holder));
  }

  MappedTopic& topic_;
  PartitionView view_;
  std::uint32_t partition_;
  const Roller roller_;
  std::vector<RoomHolder> found_;
};

}  // namespace leat::inline v0::detail
