// Which offsets of a topic with one partition hold no record: given up, or left by a writer that died.
//
//     gaps.look(topic);
//     const std::uint64_t places = limit + gaps.count_from(0);
//
// For limits that count records: what holds none takes no place. One thread at a time.
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

  // Reads what came since the last look, and repairs what the dead left there. Holds no room.
  void look(const Topic& topic) {
    if (!reader_) {
      auto reader = topic.subscriber({.from = From::beginning,
                                      .gating = false,
                                      .in_place = true,
                                      .spin = std::chrono::nanoseconds{0},
                                      .patience = std::chrono::nanoseconds{0}});
      if (!reader) return;  // No slot is free: then gaps count until there is one.
      reader_.emplace(std::move(*reader));
      reader_->on_event([this](const Event& event) {
        if (event.reason != GapReason::overwritten) gaps_.push_back({event.first, event.count});
      });
    }
    while (true) {
      const std::uint64_t before = reader_->offset();
      if (!reader_->poll(1000, [](const Record&) {})) return;
      if (reader_->offset() != before) continue;
      // At a hole: a look at it fills it if its owner died.
      if (!reader_->wait(std::chrono::nanoseconds{1})) return;
    }
  }

  // How many offsets from `offset` on are known to hold none. What is before it is forgotten.
  std::uint64_t count_from(std::uint64_t offset) {
    while (!gaps_.empty() && gaps_.front().first + gaps_.front().second <= offset)
      gaps_.pop_front();
    std::uint64_t count = 0;
    for (const auto& [first, length] : gaps_)
      count += first < offset ? first + length - offset : length;
    return count;
  }

 private:
  std::optional<Subscriber> reader_;                          // Made by the first look.
  std::deque<std::pair<std::uint64_t, std::uint64_t>> gaps_;  // First offset and count, rising.
};

}  // namespace leat::inline v0::compat
