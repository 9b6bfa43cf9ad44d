// Deletes segment files that a topic does not keep any longer, or keeps one to be used again.
//
//     Retention retention{disk, directory, manifest.topic};
//     retention.begin_term();
//     retention.share_ages(checkpoint.ahead);
//     if (retention.begin()) retention.expire(files, writer, false);
//
// Used by one thread at a time, the keeper's. docs/internals/durable.md, "Retention", says in which order files go.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/clock.hpp"
#include "leat/base/crash_point.hpp"
#include "leat/os/disk.hpp"
#include "leat/store/file_ages.hpp"
#include "leat/store/segment_reader.hpp"
#include "leat/store/segment_writer.hpp"
#include "leat/store/store.hpp"

namespace leat::inline v0::detail {

class Retention {
 public:
  static constexpr std::int64_t kNever = INT64_MAX;

  Retention(Disk& disk, int directory, const ManifestTopic& topic) noexcept
      : disk_{disk}, directory_{directory}, topic_{topic} {}

  // When files are to be looked at again, in ns on the monotonic clock; kNever if nothing gets too old.
  std::int64_t next_ns() const noexcept {
    constexpr std::int64_t kMinute = 60'000'000'000;
    constexpr std::int64_t kShortest = 10'000'000;
    const std::int64_t ms = topic_.retention_ms;
    if (ms == 0) return kNever;
    const std::int64_t pause = ms < kMinute / 250'000 ? ms * 250'000 : kMinute;  // a quarter
    return looked_ns_ + std::max(pause, kShortest);
  }
  void put_off() noexcept { looked_ns_ = now_ns(); }

  // Whether anything may be deleted. Puts the next look off.
  bool begin() noexcept {
    put_off();
    return topic_.retention_bytes != 0 || topic_.retention_ms != 0;
  }

  // A keeper takes office: it trusts the wall clock once, now.
  void begin_term(const ClockReadings& now = ClockReadings::now()) {
    ages_.begin(now);
    noted_.clear();
    knows_ = false;
  }
  // `stored` is what the checkpoint says about files that are dated in the future, and becomes what it is to say.
  void share_ages(std::vector<CheckpointAhead>& stored) {
    if (!std::exchange(knows_, true)) ages_.know(stored);
    stored = ages_.take_ahead();
  }
  // Whether the checkpoint is to say more.
  bool has_news() const noexcept { return ages_.has_news(); }
  // This keeper has made a file.
  void note_made(const SegmentName& name, const ClockReadings& now = ClockReadings::now()) {
    if (topic_.retention_ms != 0) ages_.note_made(name.partition, name.base_offset, now);
  }

  // Deletes what a partition does not keep: the oldest first, each for good before the next, because a hole
  // between files would look like damage. The last one is for good before this is called again with `was_full`,
  // which says that the directory was synced since the last call. What is not synced yet stays. One file
  // becomes a spare, and `writer` makes its next one of it.
  Result<void> expire(const SegmentList& files, SegmentWriter& writer, bool was_full,
                      const ClockReadings& now = ClockReadings::now()) {
    if (auto looked = note_ages(files, now); !looked) return looked;
    std::size_t count = files.live.size();
    // Before the first file of a follower is made, those that it will replace seem to count.
    while (!writer.has_file() && count != 0 &&
           files.live[count - 1].base_offset >= writer.end_offset())
      --count;
    // Of the file in use only what is written: its blocks are there before.
    std::uint64_t bytes = writer.has_file() ? writer.file_position() : 0;
    for (std::size_t i = 0; i + (writer.has_file() ? 1 : 0) < count; ++i)
      bytes += disk_bytes_at(directory_, files.live[i].text().c_str());
    std::int64_t youngest = ages_.age_of_topic_ms(topic_.created_ms, now);
    for (std::size_t i = 0; i + 1 < count; ++i) {
      if (files.limit(i) > writer.durable_offset()) break;
      const std::string name = files.live[i].text();
      const std::uint64_t size = disk_bytes_at(directory_, name.c_str());
      auto is_too_old = is_full_for_too_long(files, i, youngest, now);
      if (!is_too_old) return is_too_old.error();
      const std::uint64_t most = topic_.retention_bytes;
      if (!*is_too_old && (most == 0 || bytes - size < most)) break;
      // First those in which nothing counts: with what they lose to gone, they would count again.
      bool has_deleted = false;
      for (const SegmentName& one : files.abandoned) {
        if (one.base_offset >= files.live[i + 1].base_offset) continue;
        has_deleted = disk_.delete_file(directory_, one.text().c_str()) || has_deleted;
      }
      if (i != 0 || !was_full || has_deleted) {
        if (auto synced = disk_.sync_directory(directory_); !synced) return synced;
      }
      // Only a file of this keeper: one that was followed may still write to its last, and cut the others.
      const bool is_own = files.live[i].generation == writer.generation();
      if (!is_own || !put_aside(name, writer)) {
        if (auto deleted = disk_.delete_file(directory_, name.c_str()); !deleted) return deleted;
      }
      LEAT_CRASH_POINT("keeper:expired");
      bytes -= size;
    }
    return {};
  }

 private:
  // Keeps a file for the next one that is made: its blocks are there. False if there is one already. A file
  // with other names (a backup's) only loses this one. Its names are counted after it was renamed. A link that
  // was begun before may be made later, and is not counted: whoever links a file must look afterwards whether
  // it still has its old name (StoreCopy::has_old_name).
  bool put_aside(const std::string& name, SegmentWriter& writer) {
    if (writer.has_spare()) return false;
    const std::string spare = writer.spare_name();
    if (!disk_.rename(directory_, name.c_str(), spare.c_str())) return false;
    LEAT_CRASH_POINT("keeper:put_aside");
    auto file = disk_.open(directory_, spare.c_str(), O_RDONLY, 0);
    if (file && link_count(file->get()) == 1) {
      writer.take_spare();
    } else {
      (void)disk_.delete_file(directory_, spare.c_str());
    }
    return true;
  }

  // Notes how old a file is. Its header is read once.
  Result<void> note_age(const SegmentList& files, std::size_t index, const ClockReadings& now) {
    const SegmentName& name = files.live[index];
    if (ages_.age_ms(name.partition, name.base_offset, now)) return {};
    auto reader = SegmentReader::open(disk_, directory_, name, topic_.salt);
    if (!reader) return reader.error();
    auto header = reader->header();
    if (!header) return header.error();
    ages_.note_dated(name.partition, name.base_offset,
                     *header ? std::optional{(*header)->created_ms} : std::nullopt,
                     files.live.back().base_offset, now);
    return {};
  }

  // Finds the files that are dated in the future before it is their turn to go: the last first, because a keeper that
  // works for a moment only finds at least what the one before has made. A few at a time.
  Result<void> note_ages(const SegmentList& files, const ClockReadings& now) {
    constexpr int kMostAtATime = 32;
    if (topic_.retention_ms == 0 || files.live.empty()) return {};
    const std::uint32_t partition = files.live.front().partition;
    ages_.forget_before(partition, files.live.front().base_offset);
    // All from there on are noted.
    std::uint64_t& noted = noted_.try_emplace(partition, ~std::uint64_t{0}).first->second;
    const auto first = std::ranges::lower_bound(files.live, noted, {}, &SegmentName::base_offset);
    auto index = static_cast<std::size_t>(first - files.live.begin());
    for (int left = kMostAtATime; index != 0 && left != 0; --left) {
      if (auto done = note_age(files, --index, now); !done) return done;
      noted = files.live[index].base_offset;
    }
    return {};
  }

  // A file was full when the next one was made. One that is dated before an earlier one was made after that one all the
  // same, and after the topic. `youngest`: of the files before.
  Result<bool> is_full_for_too_long(const SegmentList& files, std::size_t index,
                                    std::int64_t& youngest, const ClockReadings& now) {
    if (topic_.retention_ms == 0) return false;
    for (const std::size_t i : {index, index + 1}) {
      if (auto noted = note_age(files, i, now); !noted) return noted.error();
      const SegmentName& file = files.live[i];
      youngest =
          std::min(youngest, ages_.age_ms(file.partition, file.base_offset, now).value_or(0));
    }
    return youngest > topic_.retention_ms;
  }

  Disk& disk_;
  int directory_;
  const ManifestTopic& topic_;
  FileAges ages_;
  bool knows_ = true;                             // What earlier keepers have noted.
  std::map<std::uint32_t, std::uint64_t> noted_;  // By partition: see note_ages().
  std::int64_t looked_ns_ = now_ns();
};

}  // namespace leat::inline v0::detail
