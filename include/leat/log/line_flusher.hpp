// Takes what a reader has read out of the caches, if the CPU that writes it is far away.
//
// Between CPUs that share no last-level cache, a publisher that reuses a segment waits for each line
// that the reader still has in its cache: three to four times as long as for a line that is in no cache.
// So a reader that finds itself far from the publishers flushes what it has read. Between CPUs that
// share a cache, that would cost more than it gains. docs/decisions/0016-far-cpus.md has the figures.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "leat/format/layout.hpp"
#include "leat/os/processor.hpp"

namespace leat::inline v0::detail {

class LineFlusher {
 public:
  // How long the reader waited for a word that a publisher had just written, measured with now_ns(). Told
  // at each segment, because virtual CPUs move. A reader that is behind holds publishers up, and would
  // only do so for longer if it flushed.
  void note(std::int64_t load_ns, bool is_behind) noexcept {
    is_behind_ = is_behind;
    loads_ = static_cast<std::uint8_t>(loads_ << 1 | (load_ns >= kFarNs ? 1 : 0));
  }
  // The reader goes on at the beginning of a segment.
  void enter_segment() noexcept {
    flushed_ = 0;
    const bool is_far = std::popcount(loads_) >= kFarLoads;
    due_ = is_far && !is_behind_ && can_flush_lines() ? kStep : kNever;
  }

  // The granule of the segment at which flush() is to be called; ~0 if the publishers are near.
  std::uint64_t due() const noexcept { return due_; }

  // What lies before `granule` was read and is no longer in use.
  void flush(const std::byte* segment, std::uint64_t granule) noexcept {
    flush_lines(segment + flushed_ * kGranule, segment + granule * kGranule);
    flushed_ = granule;
    due_ = granule + kStep;
  }

 private:
  // With the 20 to 30 ns of the clock; measured: 20 to 70 near, 130 to 160 far.
#if defined(LEAT_TEST_STEPS) || defined(LEAT_MODEL)
  static constexpr std::int64_t kFarNs = 0;  // Tests that kill and interleave are always far.
#else
  static constexpr std::int64_t kFarNs = 120;
#endif
  static constexpr int kFarLoads = 3;  // Of the last eight: one alone may have been interrupted.
  static constexpr std::uint64_t kStep = 4096 / kGranule;  // Up to 4 MiB measured the same.
  static constexpr std::uint64_t kNever = ~0ULL;

  std::uint64_t due_ = kNever;
  std::uint64_t flushed_ = 0;  // Granules below were flushed.
  bool is_behind_ = false;
  std::uint8_t loads_ = 0;  // A bit for each of the last eight loads: whether it was far.
};

}  // namespace leat::inline v0::detail
