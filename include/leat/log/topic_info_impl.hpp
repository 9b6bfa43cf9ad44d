// Topic::info(): a snapshot of a topic.
#pragma once

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "leat/base/config.hpp"
#include "leat/log/durable_topic.hpp"
#include "leat/log/gap_finder.hpp"
#include "leat/log/room_holders.hpp"
#include "leat/log/segments.hpp"
#include "leat/topic.hpp"

namespace leat::inline v0 {

namespace detail {

struct OpenClaim {
  std::uint32_t slot;
  std::uint32_t partition;
  std::uint64_t phase;  // Changes with every claim.
  bool operator==(const OpenClaim&) const = default;
};

// Open claims with other claims behind them, whose records cannot be read yet.
inline std::vector<OpenClaim> claims_with_others_behind(const MappedTopic& topic) {
  std::vector<OpenClaim> claims;
  for (std::uint32_t slot = 0; slot < topic.participant_high(); ++slot) {
    if (!is_publisher(load_acquire<Edge::slot>(topic.participant(slot).state))) continue;
    for (std::uint32_t i = 0; i < topic.geometry().partition_count; ++i) {
      const PartitionView view = topic.partition(i);
      const auto claim = read_claim(view.slots[slot]);
      if (!claim || claim->claim_phase() != kClaimed) continue;
      // [claim] acquire
      const std::uint64_t end = load_acquire<Edge::claim>(view.control->claim);
      if (end != claim->word + claim->increment) claims.push_back({slot, i, claim->phase});
    }
  }
  return claims;
}

// A record that is just being published is not worth reporting; a claim that is still open a
// moment later is.
inline std::vector<OpenClaim> claims_that_block(const MappedTopic& topic) {
  std::vector<OpenClaim> claims = claims_with_others_behind(topic);
  if (claims.empty()) return claims;
  for (int i = 0; i < 1000; ++i) spin_pause();
  const std::vector<OpenClaim> still_open = claims_with_others_behind(topic);
  std::erase_if(claims, [&](const OpenClaim& claim) {
    return std::find(still_open.begin(), still_open.end(), claim) == still_open.end();
  });
  return claims;
}

// Facts about a partition, of approximately one moment.
struct PartitionDescription {
  PartitionInfo info;
  std::uint64_t oldest_segment = 0;
  bool is_full = false;   // somebody keeps it from taking another record
  bool has_rest = false;  // the current segment takes another record of average size
};

inline PartitionDescription describe_partition(MappedTopic& topic, std::uint32_t partition) {
  const Geometry& geometry = topic.geometry();
  const ClaimLayout& layout = geometry.claim_layout;
  const PartitionView view = topic.partition(partition);
  PartitionDescription description;
  for (int attempt = 0; attempt < 1000; ++attempt) {  // A busy topic may change meanwhile.
    description.oldest_segment = load_seq_cst<Edge::retire>(view.control->oldest_segment);
    const std::uint64_t current = load_acquire<Edge::segment_open>(view.control->current);
    const std::uint64_t claim = load_acquire<Edge::claim>(view.control->claim);
    auto first = find_segment(topic, view, description.oldest_segment);
    auto newest = find_segment(topic, view, current);
    if (!first || !newest || layout.segment(claim) != layout.truncate_segment(current)) continue;
    description.info.start = first->base_offset;
    description.info.end = newest->base_offset + layout.records(claim);
    description.info.used_bytes = (current - description.oldest_segment) * geometry.segment_size +
                                  layout.granules(claim) * kGranule;
    const std::uint64_t count = std::max<std::uint64_t>(
        1, description.info.end - std::min(description.info.start, description.info.end));
    description.has_rest = !ClaimLayout::is_closed(claim) &&
                           layout.granules(claim) * kGranule + description.info.used_bytes / count <
                               geometry.segment_size;
    break;
  }
  const SegmentMemory memory{topic, partition};
  const std::uint64_t segments = geometry.grows() ? memory.count() : geometry.segment_count;
  description.info.capacity_bytes = segments * geometry.segment_size;
  return description;
}

inline const char* name_of(ParticipantRole role) noexcept {
  switch (role) {
    case ParticipantRole::publisher: return "publisher";
    case ParticipantRole::exclusive_publisher: return "exclusive-publisher";
    case ParticipantRole::member: return "member";
    default: return "subscriber";
  }
}

inline void add_durable(TopicInfo& info, const DurableWindow& window) {
  const DurableHeader& header = window.header();
  DurableInfo& durable = info.durable.emplace();
  durable.durability = static_cast<Durability>(window.durability());
  durable.sync_interval = std::chrono::nanoseconds{window.sync_interval_ns()};
  durable.directory = window.data_path();
  durable.state = window.trouble();
  durable.reason = durable.state == Errc::ok ? 0 : window.reason();
  // relaxed, all: informational.
  durable.archiver_pid = load_relaxed<Why::hint>(header.archiver_pid);
  durable.cut_bytes = load_relaxed<Why::hint>(header.cut_bytes);
  durable.cut_records = load_relaxed<Why::hint>(header.cut_records);
  durable.damaged = load_relaxed<Why::hint>(header.damaged);
  for (std::uint32_t i = 0; i < info.partitions.size(); ++i) {
    info.partitions[i].written = window.written(i);
    info.partitions[i].durable = window.durable(i);
  }
  auto directory = open_directory_path(window.data_path(), false, false);
  if (!directory) return;
  auto manifest = load_manifest(Disk::system(), directory->get());
  // By now the path may belong to a new topic of that name.
  if (manifest && manifest->window.key != load_relaxed<Why::constant>(header.key)) return;
  if (manifest) describe_durable(manifest->topic, durable);
  auto description =
      describe_files(directory->get(), static_cast<std::uint32_t>(info.partitions.size()),
                     manifest ? &manifest->topic : nullptr);
  if (!description) return;
  std::vector<CheckpointGap> gaps;
  if (manifest) {
    const auto checkpoint = CheckpointFile::load(Disk::system(), directory->get(), *manifest);
    if (checkpoint) gaps = checkpoint->value().gaps;
  }
  durable.disk_bytes = description->bytes;
  for (std::uint32_t i = 0; i < info.partitions.size(); ++i) {
    PartitionInfo& partition = info.partitions[i];
    partition.start = std::min(partition.start, description->start[i]);
    partition.gaps = std::move(description->lost[i]);
    // The last file says the same if the window begins with it.
    const std::uint64_t begin = window.begin_offset(i);
    partition.gaps.push_back({window.end_before(i, begin), begin});
    add_stored_gaps(gaps, i, partition);
  }
}

// Where the records of each partition begin and end, in memory and in files; other facts may be missing.
inline std::vector<PartitionInfo> extents_of(MappedTopic& topic) {
  TopicInfo info;
  for (std::uint32_t i = 0; i < topic.geometry().partition_count; ++i)
    info.partitions.push_back(describe_partition(topic, i).info);
  if (const DurableWindow* const window = topic.durable(); window != nullptr)
    add_durable(info, *window);
  add_gaps(topic, info.partitions);
  return std::move(info.partitions);
}

// Adds a subscriber's state in one partition. `whole`: with what is in files, and the gaps.
inline void add_reader(ParticipantInfo& info, const PartitionSlot& line, const PartitionInfo& whole,
                       const PartitionDescription& partition) {
  const std::uint64_t mode = load_acquire<Edge::retire>(line.reader_mode);
  if (mode == static_cast<std::uint64_t>(ReaderMode::none)) return;
  const std::uint64_t offset = load_relaxed<Why::hint>(line.cursor_offset);
  info.offset += offset;
  info.lag += whole.count_from(offset);
  if (mode != static_cast<std::uint64_t>(ReaderMode::gating)) {
    info.role = "lossy-subscriber";
  } else if (partition.is_full &&
             load_acquire<Edge::cursor>(line.cursor_segment) <= partition.oldest_segment) {
    info.blocking = true;
  }
}

}  // namespace detail

LEAT_INLINE std::uint64_t PartitionInfo::count_from(std::uint64_t from) const noexcept {
  from = std::max(from, start);
  if (from >= end) return 0;
  std::uint64_t count = end - from;
  for (auto one = gaps.rbegin(); one != gaps.rend() && one->end > from; ++one) {
    const std::uint64_t begin = std::clamp(one->begin, from, end);
    count -= std::clamp(one->end, begin, end) - begin;
  }
  return count;
}

LEAT_INLINE std::uint64_t PartitionInfo::offset_of_last(std::uint64_t count) const noexcept {
  std::uint64_t behind = end;
  for (auto one = gaps.rbegin(); one != gaps.rend(); ++one) {
    if (one->begin >= one->end || one->end > behind) continue;
    if (count <= behind - one->end) break;
    count -= behind - one->end;
    behind = one->begin;
  }
  return behind <= start ? std::min(start, end) : behind - std::min(count, behind - start);
}

LEAT_INLINE TopicInfo Topic::info() const {
  using namespace detail;
  const Geometry& geometry = topic_->geometry();
  TopicInfo info;
  info.name = name_;
  info.id = id();
  info.policy = policy();
  info.segment_bytes = geometry.segment_size;
  info.retain_all = (geometry.flags & kRetainAll) != 0;
  info.single_writer = (geometry.flags & kSingleWriter) != 0;
  info.timestamps = (geometry.flags & kTimestamps) != 0;
  info.delete_when_unused = (geometry.flags & kDeleteWhenUnused) != 0;
  info.revoke_after = std::chrono::nanoseconds{geometry.revoke_after_ns};
  info.evict_after = std::chrono::nanoseconds{geometry.evict_after_ns};
  std::vector<PartitionDescription> partitions;
  for (std::uint32_t i = 0; i < geometry.partition_count; ++i) {
    PartitionDescription& description = partitions.emplace_back(describe_partition(*topic_, i));
    // A publisher that waits has been refused, with a large record perhaps. [sleeping] acquire: only a hint.
    const bool is_refused =
        (load_acquire<Edge::sleeping>(topic_->header().space_wake) & kSleeping) != 0;
    if (is_refused || !description.has_rest) {
      std::vector<RoomHolder> holders = RoomHolders{*topic_, i}.find();
      description.is_full = !holders.empty();
      std::ranges::move(holders, std::back_inserter(info.room_holders));
    }
    info.capacity_bytes = std::max(info.capacity_bytes, description.info.capacity_bytes);
    info.max_capacity_bytes =
        (geometry.grows() ? SegmentMemory{*topic_, i}.maximum() : geometry.segment_count) *
        geometry.segment_size;
    info.partitions.push_back(description.info);
  }
  if (DurableWindow* const window = topic_->durable(); window != nullptr)
    add_durable(info, *window);
  add_gaps(*topic_, info.partitions);
  const std::vector<OpenClaim> blocking = claims_that_block(*topic_);
  for (std::uint32_t slot = 0; slot < topic_->participant_high(); ++slot) {
    const ParticipantSlot& participant = topic_->participant(slot);
    const std::uint64_t state = load_acquire<Edge::slot>(participant.state);
    const ParticipantRole role = role_of(state);
    const bool is_shown = is_publisher(state) || role == ParticipantRole::subscriber ||
                          role == ParticipantRole::member;
    if (!is_shown || is_dead(*topic_, state)) continue;
    ParticipantInfo one;
    one.pid = load_relaxed<Why::hint>(participant.pid);
    one.role = detail::name_of(role);
    one.blocking = std::any_of(blocking.begin(), blocking.end(),
                               [&](const OpenClaim& claim) { return claim.slot == slot; });
    for (std::uint32_t i = 0; role == ParticipantRole::subscriber && i < geometry.partition_count;
         ++i) {
      add_reader(one, topic_->partition(i).slots[slot], info.partitions[i], partitions[i]);
    }
    info.participants.push_back(std::move(one));
  }
  return info;
}

}  // namespace leat::inline v0
