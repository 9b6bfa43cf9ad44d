// The gaps that an archiver has written since the last checkpoint, which is to name them. Used by one thread at a time, the
// archiver's. docs/internals/durable.md, "Gaps on disk".
//
//     UnstoredGaps gaps{topic};
//     gaps.note(gaps_of(piece, partition));
//     if (gaps.due_ns() <= now_ns()) …               // store a checkpoint:
//     gaps.add_to(checkpoint.gaps);
//     gaps.note_stored();
#pragma once

#include <cstdint>
#include <vector>

#include "leat/base/clock.hpp"
#include "leat/log/committed_prefix.hpp"
#include "leat/log/gap_finder.hpp"
#include "leat/store/retention.hpp"
#include "leat/store/stored_gaps.hpp"

namespace leat::inline v0::detail {

// The offsets of a piece that have no record. Its memory must not have been reused.
inline std::vector<CheckpointGap> gaps_of(const CommittedPrefix::Piece& piece,
                                          std::uint32_t partition) {
  FrameHeader header{};
  header.bytes = static_cast<std::uint32_t>(piece.bytes.size());
  header.window_key = piece.facts.window_key;
  header.position = piece.facts.position;
  header.first_offset = piece.facts.first_offset;
  header.offsets = piece.facts.offsets;
  header.records = piece.facts.records;
  std::vector<CheckpointGap> gaps;
  add_gaps_of(header, piece.bytes.data(), partition, gaps);
  return gaps;
}

class UnstoredGaps {
 public:
  explicit UnstoredGaps(MappedTopic& topic) noexcept : topic_{topic} {}

  void note(const std::vector<CheckpointGap>& gaps) {
    if (is_empty() && !gaps.empty()) put_off();
    for (const CheckpointGap& one : gaps) add_gap(one, gaps_);
  }
  // Those in memory before offset `end`: an archiver that died may not have stored the last ones.
  void note_memory(std::uint32_t partition, std::uint64_t end) {
    PartitionInfo info;
    info.end = end;
    GapFinder{topic_, partition}.add_to(info);
    settle_gaps(info);
    std::vector<CheckpointGap> gaps;
    for (const OffsetRange& one : info.gaps) gaps.push_back({partition, 0, one.begin, one.end});
    note(gaps);
  }

  bool is_empty() const noexcept { return gaps_.empty(); }
  // When a checkpoint should be stored for them, in ns on the monotonic clock.
  std::int64_t due_ns() const noexcept { return is_empty() ? Retention::kNever : due_ns_; }
  void put_off() noexcept { due_ns_ = ns_from_now(kStoreEvery); }

  // Adds them to what a checkpoint is to say.
  void add_to(std::vector<CheckpointGap>& stored) const {
    stored.insert(stored.end(), gaps_.begin(), gaps_.end());
    settle_gaps(stored);
  }
  void note_stored() noexcept { gaps_.clear(); }

 private:
  static constexpr std::int64_t kStoreEvery = 1'000'000'000;  // ns

  MappedTopic& topic_;
  std::vector<CheckpointGap> gaps_;
  std::int64_t due_ns_ = 0;  // if there is any
};

}  // namespace leat::inline v0::detail
