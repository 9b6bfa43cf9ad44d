// Finds the offsets of a one-partition topic that hold no record, because their claim was aborted,
// or its publisher died.
//
//     gaps.check(topic);
//     const std::uint64_t places = limit + gaps.count_from(0);
//
// For limits that count records: a gap does not use up a place. One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "leat/topic.hpp"

namespace leat::inline v0::compat {

class Gaps {
 public:
  Gaps() = default;
  Gaps(const Gaps&) = delete;
  Gaps& operator=(const Gaps&) = delete;

  // Reads what was published since the last call, and repairs holes of dead publishers on the way.
  // Holds no room.
  void check(const Topic& topic) {
    if (!reader_) {
      auto reader = topic.subscriber({.from = From::beginning,
                                      .gating = false,
                                      .in_place = true,
                                      .spin = std::chrono::nanoseconds{0},
                                      .patience = std::chrono::nanoseconds{0}});
      if (!reader) return;  // No participant slot: until there is one, gaps count as records.
      reader_.emplace(std::move(*reader));
      reader_->on_event([this](const Event& event) {
        if (event.reason != GapReason::overwritten) gaps_.push_back({event.first, event.count});
      });
    }
    while (true) {
      const std::uint64_t before = reader_->offset();
      if (!reader_->poll(1000, [](const Record&) {})) return;
      if (reader_->offset() != before) continue;
      // At a hole: waiting repairs it if its owner is dead.
      if (!reader_->wait(std::chrono::nanoseconds{1})) return;
    }
  }

  // The number of offsets from `offset` on that are known to be gaps. Forgets those before it.
  std::uint64_t count_from(std::uint64_t offset) {
    while (!gaps_.empty() && gaps_.front().first + gaps_.front().second <= offset)
      gaps_.pop_front();
    std::uint64_t count = 0;
    for (const auto& [first, length] : gaps_)
      count += first < offset ? first + length - offset : length;
    return count;
  }

 private:
  std::optional<Subscriber> reader_;                          // Made by the first check().
  std::deque<std::pair<std::uint64_t, std::uint64_t>> gaps_;  // First offset and count, ascending.
};

}  // namespace leat::inline v0::compat
