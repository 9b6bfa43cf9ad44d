// How old the segment files of a topic are, although the wall clock may be wrong for a while: for retention.
//
//     ages.begin(ClockReadings::now());                        // an archiver takes over
//     ages.know(checkpoint.misdated);                          // what earlier ones have noted
//     ages.note_made(partition, base, ClockReadings::now());   // it has made a file
//     ages.note_dated(partition, base, dates, last_base, now); // another archiver made one
//     ages.age_ms(partition, base, now)
//
// An archiver reads the wall clock once. From then on it adds what CLOCK_BOOTTIME has advanced, so that setting the
// clock while it works makes no file older or younger. docs/internals/durable.md, "Retention".
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "leat/base/clock.hpp"
#include "leat/format/store_layout.hpp"

namespace leat::inline v0::detail {

struct ClockReadings {
  std::int64_t wall_ms;
  std::int64_t boot_ms;  // CLOCK_BOOTTIME
  static ClockReadings now() noexcept { return {wall_clock_ms(), boot_clock_ms()}; }
};

class FileAges {
 public:
  void begin(const ClockReadings& now) {
    began_ = now;
    misdated_.clear();
    born_.clear();
    is_unstored_ = false;
  }
  void know(const std::vector<CheckpointMisdated>& misdated) { misdated_ = misdated; }

  void note_made(std::uint32_t partition, std::uint64_t base, const ClockReadings& now) {
    born_[{partition, base}] = now.boot_ms;
  }
  // What a file's header says, or nothing if that is damaged.
  struct Dates {
    std::optional<std::int64_t> own_ms;
    std::optional<std::int64_t> previous_ms;  // of the file in front of it, if there is one
    std::int64_t topic_ms = 0;
  };
  // A date that cannot be right is later than now, or earlier than what was there before the file. If it is earlier by
  // so little that the clock was only adjusted, the file takes the time of what was there. Other files count as made
  // when an archiver noticed them. This archiver notes that for all files up to `last_base`, the last one.
  void note_dated(std::uint32_t partition, std::uint64_t base, const Dates& dates,
                  std::uint64_t last_base, const ClockReadings& now) {
    const std::int64_t now_ms = time_ms(now);
    const std::int64_t earliest_ms = earliest(dates, now_ms);
    const bool is_dated =
        dates.own_ms && *dates.own_ms <= now_ms &&
        (*dates.own_ms >= earliest_ms || time_between(*dates.own_ms, earliest_ms) <= kAdjusted);
    std::int64_t since_ms = 0;
    if (is_dated) {
      since_ms = std::max(*dates.own_ms, earliest_ms);
    } else {
      since_ms = noticed_ms(partition, base, last_base, earliest_ms, now_ms);
    }
    born_[{partition, base}] = now.boot_ms - time_between(since_ms, now_ms);
  }

  // How long ago a file was made; nothing if that was not noted yet.
  std::optional<std::int64_t> age_ms(std::uint32_t partition, std::uint64_t base,
                                     const ClockReadings& now) const {
    const auto found = born_.find({partition, base});
    if (found == born_.end()) return std::nullopt;
    return now.boot_ms - found->second;
  }

  // The same for the topic. One that is dated later than now counts as older than every file.
  std::int64_t age_of_topic_ms(std::int64_t created_ms, const ClockReadings& now) const noexcept {
    return created_ms <= time_ms(now) ? time_between(created_ms, time_ms(now)) : kForEver;
  }

  // Forgets the files that are gone: those before `base`.
  void forget_before(std::uint32_t partition, std::uint64_t base) {
    born_.erase(born_.lower_bound({partition, 0}), born_.lower_bound({partition, base}));
    std::erase_if(misdated_, [&](const CheckpointMisdated& one) {
      return one.partition == partition && one.last_base < base;
    });
  }

  // What is to be stored, and whether something was added since the last call of take_misdated().
  const std::vector<CheckpointMisdated>& take_misdated() noexcept {
    is_unstored_ = false;
    return misdated_;
  }
  bool has_unstored_ages() const noexcept { return is_unstored_; }

 private:
  static constexpr std::int64_t kForEver = INT64_MAX / 4;
  static constexpr std::int64_t kNever = INT64_MIN;
  // A clock that is set back by no more than this is adjusted, not wrong.
  static constexpr std::int64_t kAdjusted = 60'000;

  std::int64_t time_ms(const ClockReadings& now) const noexcept {
    return began_.wall_ms + (now.boot_ms - began_.boot_ms);
  }
  static std::int64_t time_between(std::int64_t from_ms, std::int64_t to_ms) noexcept {
    std::int64_t time = 0;
    return __builtin_sub_overflow(to_ms, from_ms, &time) ? kForEver : std::min(time, kForEver);
  }

  // The latest time, of those that are not in the future, at which the file was not there yet; kNever if none is known.
  static std::int64_t earliest(const Dates& dates, std::int64_t now_ms) noexcept {
    std::int64_t latest = dates.topic_ms <= now_ms ? dates.topic_ms : kNever;
    if (dates.previous_ms && *dates.previous_ms <= now_ms)
      latest = std::max(latest, *dates.previous_ms);
    return latest;
  }

  // When an archiver noticed that the date of a file cannot be right. That time was stored, and may be wrong, too, if
  // the archiver's clock was wrong: then it is replaced by the present time. It is kept if no date is known to be
  // earlier than now, because then the present clock may be the one that is behind.
  std::int64_t noticed_ms(std::uint32_t partition, std::uint64_t base, std::uint64_t last_base,
                          std::int64_t earliest_ms, std::int64_t now_ms) {
    const auto is_of_partition = [&](const CheckpointMisdated& one) {
      return one.partition == partition;
    };
    std::size_t count = 0;
    for (CheckpointMisdated& one : misdated_) {
      if (!is_of_partition(one)) continue;
      if (base <= one.last_base) {
        const bool is_right = one.seen_ms >= earliest_ms && one.seen_ms <= now_ms;
        if (!is_right && earliest_ms != kNever) {
          one.seen_ms = now_ms;
          is_unstored_ = true;
        }
        return std::min(one.seen_ms, now_ms);
      }
      ++count;
    }
    if (count >= kMostMisdated) {  // The oldest two become one: its files stay longer.
      const auto oldest = std::ranges::find_if(misdated_, is_of_partition);
      const auto next = std::find_if(oldest + 1, misdated_.end(), is_of_partition);
      next->seen_ms = std::max(next->seen_ms, oldest->seen_ms);
      misdated_.erase(oldest);
    }
    misdated_.push_back({partition, 0, last_base, now_ms});
    is_unstored_ = true;
    return now_ms;
  }

  ClockReadings began_ = ClockReadings::now();
  // By partition and base offset: when a file was made, in ms of CLOCK_BOOTTIME.
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::int64_t> born_;
  std::vector<CheckpointMisdated> misdated_;  // Of each partition in the order of offsets.
  bool is_unstored_ = false;
};

}  // namespace leat::inline v0::detail
