// What people may know of a topic.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "leat/base/config.hpp"
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

// Claims that are open and not the last ones: they keep what was claimed behind them from being read.
inline std::vector<OpenClaim> claims_with_others_behind(const SharedTopic& topic) {
  std::vector<OpenClaim> claims;
  for (std::uint32_t slot = 0; slot < topic.participant_high(); ++slot) {
    if (!is_publisher(load_acquire<Edge::slot>(topic.participant(slot).state))) continue;
    for (std::uint32_t i = 0; i < topic.geometry().partition_count; ++i) {
      const PartitionView view = topic.partition(i);
      const auto facts = read_claim(view.slots[slot]);
      if (!facts || facts->claim_phase() != kClaimed) continue;
      // [claim] acquire
      const std::uint64_t end = load_acquire<Edge::claim>(view.control->claim);
      if (end != facts->word + facts->increment) claims.push_back({slot, i, facts->phase});
    }
  }
  return claims;
}

}  // namespace detail

LEAT_INLINE TopicInfo Topic::info() const {
  const detail::Geometry& geometry = topic_->geometry();
  TopicInfo info;
  info.name = name_;
  info.policy = policy();
  info.segment_bytes = geometry.segment_size;
  info.retain_all = (geometry.flags & detail::kRetainAll) != 0;
  info.single_writer = (geometry.flags & detail::kSingleWriter) != 0;
  info.timestamps = (geometry.flags & detail::kTimestamps) != 0;
  std::vector<std::uint64_t> starts;
  std::vector<std::uint64_t> currents;
  std::vector<std::uint64_t> rooms;  // Segments, at most.
  for (std::uint32_t i = 0; i < geometry.partition_count; ++i) {
    const detail::PartitionView view = topic_->partition(i);
    PartitionInfo partition;
    std::uint64_t start = 0;
    std::uint64_t current = 0;
    for (int attempt = 0; attempt < 1000;
         ++attempt) {  // A snapshot; a busy topic may move meanwhile.
      start = detail::load_seq_cst<detail::Edge::retire>(view.control->oldest_segment);
      current = detail::load_acquire<detail::Edge::segment_open>(view.control->current);
      const std::uint64_t claim = detail::load_acquire<detail::Edge::claim>(view.control->claim);
      auto first = detail::find_segment(*topic_, view, start);
      auto newest = detail::find_segment(*topic_, view, current);
      if (!first || !newest ||
          geometry.claim_layout.segment(claim) != geometry.claim_layout.truncate_segment(current)) {
        continue;
      }
      partition.start = first->base_offset;
      partition.end = newest->base_offset + geometry.claim_layout.records(claim);
      break;
    }
    const detail::SegmentMemory memory{*topic_, i};
    const std::uint64_t segments = geometry.grows() ? memory.count() : geometry.segment_count;
    const std::uint64_t maximum = geometry.grows() ? memory.maximum() : geometry.segment_count;
    partition.capacity_bytes = segments * geometry.segment_size;
    info.capacity_bytes = std::max(info.capacity_bytes, partition.capacity_bytes);
    info.max_capacity_bytes = maximum * geometry.segment_size;
    rooms.push_back(std::max(segments, maximum));
    info.partitions.push_back(partition);
    starts.push_back(start);
    currents.push_back(current);
  }
  // What somebody is just publishing is no news; a claim that is still open a moment later is.
  std::vector<detail::OpenClaim> open_claims = detail::claims_with_others_behind(*topic_);
  if (!open_claims.empty()) {
    for (int i = 0; i < 1000; ++i) detail::spin_pause();
    const auto still_open = detail::claims_with_others_behind(*topic_);
    std::erase_if(open_claims, [&](const detail::OpenClaim& claim) {
      return std::find(still_open.begin(), still_open.end(), claim) == still_open.end();
    });
  }
  for (std::uint32_t slot = 0; slot < topic_->participant_high(); ++slot) {
    const detail::ParticipantSlot& participant = topic_->participant(slot);
    const std::uint64_t state = detail::load_acquire<detail::Edge::slot>(participant.state);
    const auto role = detail::role_of(state);
    if (!detail::is_publisher(state) && role != detail::ParticipantRole::subscriber &&
        role != detail::ParticipantRole::member) {
      continue;
    }
    if (detail::is_dead(*topic_, state)) continue;
    ParticipantInfo one;
    one.pid = detail::load_relaxed(participant.pid);
    one.role = role == detail::ParticipantRole::publisher             ? "publisher"
               : role == detail::ParticipantRole::exclusive_publisher ? "exclusive-publisher"
               : role == detail::ParticipantRole::member              ? "member"
                                                                      : "subscriber";
    one.blocking = std::any_of(open_claims.begin(), open_claims.end(),
                               [&](const detail::OpenClaim& claim) { return claim.slot == slot; });
    for (std::uint32_t i = 0;
         role == detail::ParticipantRole::subscriber && i < geometry.partition_count; ++i) {
      const detail::PartitionSlot& line = topic_->partition(i).slots[slot];
      const std::uint64_t mode = detail::load_acquire<detail::Edge::retire>(line.reader_mode);
      if (mode == static_cast<std::uint64_t>(detail::ReaderMode::none)) continue;
      const std::uint64_t offset = detail::load_relaxed(line.cursor_offset);
      one.offset += offset;
      if (info.partitions[i].end > offset) one.lag += info.partitions[i].end - offset;
      if (mode != static_cast<std::uint64_t>(detail::ReaderMode::gating)) {
        one.role = "lossy-subscriber";
      } else if (!info.retain_all &&
                 detail::load_acquire<detail::Edge::cursor>(line.cursor_segment) <= starts[i] &&
                 currents[i] - starts[i] + 1 >= rooms[i]) {
        one.blocking = true;
      }
    }
    info.participants.push_back(std::move(one));
  }
  return info;
}

}  // namespace leat::inline v0
