// Deletes segment files that a topic does not keep any longer, or keeps one to be used again.
//
//     Retention retention{disk, directory, manifest.topic};
//     retention.begin_epoch();
//     retention.share_ages(checkpoint.misdated);
//     if (retention.begin()) retention.expire(partition, writer, false);
//
// Used by one thread at a time, the archiver's. docs/internals/durable.md, "Retention", says in which order files go.
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

  // When files must be checked again, in ns on the monotonic clock; kNever if nothing gets too old.
  std::int64_t next_ns() const noexcept {
    constexpr std::int64_t kMinute = 60'000'000'000;
    constexpr std::int64_t kShortest = 10'000'000;
    if (has_more_) return checked_ns_;
    const std::int64_t ms = topic_.retention_ms;
    if (ms == 0) return kNever;
    const std::int64_t pause = ms < kMinute / 250'000 ? ms * 250'000 : kMinute;  // a quarter
    return checked_ns_ + std::max(pause, kShortest);
  }
  void put_off() noexcept {
    checked_ns_ = now_ns();
    has_more_ = false;
  }
  // Whether a sync in expire() has failed in this term. A failed sync is not tried again.
  bool has_failed_to_sync() const noexcept { return has_failed_to_sync_; }
  // Whether the last look has left files to delete, when that look was, and the partition to go on with.
  bool has_more() const noexcept { return has_more_; }
  std::int64_t checked_ns() const noexcept { return checked_ns_; }
  std::uint32_t next_partition() const noexcept { return next_partition_; }
  void go_on_with(std::uint32_t partition) noexcept {
    has_more_ = true;
    next_partition_ = partition;
  }

  // Whether anything may be deleted. Puts the next look off.
  bool begin() noexcept {
    put_off();
    return topic_.retention_bytes != 0 || topic_.retention_ms != 0;
  }

  // Called when an archiver takes over: it relies on the wall clock once, now.
  void begin_epoch(const ClockReadings& now = ClockReadings::now()) {
    ages_.begin(now);
    noted_.clear();
    kept_.clear();
    born_last_.clear();
    knows_ = has_failed_to_sync_ = false;
  }
  // `stored` is what the checkpoint says about files whose date cannot be right, and becomes what it is to say.
  void share_ages(std::vector<CheckpointMisdated>& stored) {
    if (!std::exchange(knows_, true)) ages_.know(stored);
    stored = ages_.take_misdated();
  }
  // Whether the checkpoint does not say everything yet.
  bool has_unstored_ages() const noexcept { return ages_.has_unstored_ages(); }
  // Called when this archiver has made a file.
  void note_made(const SegmentName& name, const ClockReadings& now = ClockReadings::now()) {
    if (topic_.retention_ms != 0) ages_.note_made(name.partition, name.base_offset, now);
    note_file(name);
  }
  // There is another file, the last one of its partition.
  void note_file(const SegmentName& name) {
    if (kept_.empty()) return;
    Kept& kept = kept_[name.partition];
    ++used_;
    if (!kept.files.live.empty() && kept.files.live.back().base_offset >= name.base_offset) {
      kept_.clear();  // It replaces files of an earlier archiver.
    } else {
      kept.files.live.push_back(name);
      kept.sizes.push_back(kUnknown);
    }
  }

  // Deletes the oldest file that a partition does not keep. A deletion is synced before the next file is deleted,
  // because a hole between files would look like damage after a failure of the machine. `was_full` says that the
  // directory was synced since the last call; otherwise this call syncs it. True if there is more to do: one call
  // deletes one file, so that the archiver can write in between. A file that is not synced yet stays. One file becomes
  // a spare, of which `writer` makes its next file.
  Result<bool> expire(std::uint32_t partition, SegmentWriter& writer, bool was_full,
                      const ClockReadings& now = ClockReadings::now()) {
    if (is_list_old()) {
      if (auto listed = list(); !listed) return listed.error();
    }
    Kept& kept = kept_[partition];
    SegmentList& files = kept.files;
    if (auto checked = note_ages(files, now); !checked) return forget_list_if_gone(checked.error());
    std::size_t count = files.live.size();
    // Until a successor has made its first file, the files that it will replace seem to count.
    while (!writer.has_file() && count != 0 &&
           files.live[count - 1].base_offset >= writer.end_offset())
      --count;
    if (count < 2 || files.limit(0) > writer.durable_offset()) return false;
    const std::uint64_t most = topic_.retention_bytes;
    if (most != 0 && !measure(kept)) return true;
    std::int64_t youngest = ages_.age_of_topic_ms(topic_.created_ms, now);
    if (const auto gone = born_last_.find(partition); gone != born_last_.end())
      youngest = std::min(youngest, now.boot_ms - gone->second);
    auto is_too_old = is_full_for_too_long(files, 0, youngest, now);
    if (!is_too_old) return forget_list_if_gone(is_too_old.error());
    if (!*is_too_old &&
        (most == 0 || bytes_of(kept, count, writer) - std::min(kept.sizes[0], kept.bytes) < most))
      return false;
    // First those in which nothing counts: with what they lose to gone, they would count again.
    auto abandoned = delete_abandoned(files);
    if (!abandoned) return true;
    if (!was_full || *abandoned) {
      if (auto synced = disk_.sync_directory(directory_); !synced) {
        has_failed_to_sync_ = true;
        return synced.error();
      }
    }
    // Only a file of this archiver: a superseded one may still write to its last file, and cut the others.
    const std::string name = files.live[0].text();
    const bool is_own = files.live[0].generation == writer.generation();
    if (!is_own || !put_aside(name, writer)) {
      auto deleted = disk_.delete_file(directory_, name.c_str());
      if (!deleted && deleted.error() != Errc::not_found) return deleted.error();
    }
    LEAT_CRASH_POINT("archiver:expired");
    kept.forget_oldest();
    born_last_[partition] = now.boot_ms - youngest;
    return true;
  }

 private:
  static constexpr std::uint64_t kUnknown = ~std::uint64_t{0};
  static constexpr std::size_t kMostCalls = 256;  // system calls that take some microseconds

  // A partition's files, and how many bytes each occupies once it is full and synced. Kept in memory, because there may
  // be too many to list them whenever one is full.
  struct Kept {
    SegmentList files;
    std::vector<std::uint64_t> sizes;  // of files.live
    // Of the files that were listed, the first ones are not measured yet.
    std::size_t to_measure = 0;
    std::uint64_t bytes = 0;  // of those whose size is known

    void forget_oldest() {
      if (sizes[0] != kUnknown) bytes -= sizes[0];
      files.live.erase(files.live.begin());
      sizes.erase(sizes.begin());
      to_measure -= std::min<std::size_t>(to_measure, 1);
    }
  };

  // A superseded archiver may have left a file meanwhile. So the files are listed again when as many were made or
  // checked as the list had: that costs little for each file.
  bool is_list_old() noexcept { return kept_.empty() || used_++ >= used_up_; }

  // Somebody else has deleted a file that is listed: the next call looks for those that are there.
  Error forget_list_if_gone(Error error) noexcept {
    if (error == Errc::not_found) kept_.clear();
    return error;
  }

  Result<void> list() {
    kept_.clear();
    auto lists = list_segments(directory_, topic_.partition_count);
    if (!lists) return lists.error();
    used_ = used_up_ = 0;
    for (SegmentList& one : *lists) {
      Kept& kept = kept_.emplace_back();
      kept.sizes.assign(one.live.size(), kUnknown);
      kept.to_measure = one.live.size();
      used_up_ += one.live.size();
      kept.files = std::move(one);
    }
    used_up_ = std::max<std::size_t>(used_up_, topic_.partition_count);
    return {};
  }

  std::uint64_t measure(Kept& kept, std::size_t index) {
    kept.sizes[index] = disk_bytes_at(directory_, kept.files.live[index].text().c_str());
    kept.bytes += kept.sizes[index];
    return kept.sizes[index];
  }
  // False if there are more files than can be measured at a time.
  bool measure(Kept& kept) {
    for (std::size_t left = kMostCalls; kept.to_measure != 0 && left != 0; --left) {
      // Later ones may still be written, or cut.
      if (--kept.to_measure + 2 < kept.files.live.size()) (void)measure(kept, kept.to_measure);
    }
    return kept.to_measure == 0;
  }

  // Bytes of the first `count` files. Of the file in use only what is written: it may have blocks for more.
  std::uint64_t bytes_of(Kept& kept, std::size_t count, const SegmentWriter& writer) {
    std::uint64_t bytes = kept.bytes + (writer.has_file() ? writer.file_position() : 0);
    for (std::size_t i = count; i < kept.sizes.size(); ++i)
      if (kept.sizes[i] != kUnknown) bytes -= kept.sizes[i];
    std::size_t end = count - (writer.has_file() ? 1 : 0);
    for (; end != 0 && kept.sizes[end - 1] == kUnknown; --end) {
      if (kept.files.limit(end - 1) <= writer.durable_offset()) break;
      bytes += disk_bytes_at(directory_, kept.files.live[end - 1].text().c_str());
    }
    for (; end != 0 && kept.sizes[end - 1] == kUnknown; --end) bytes += measure(kept, end - 1);
    return bytes;
  }

  // Whether there were any; nothing if there are more than can be deleted at a time.
  std::optional<bool> delete_abandoned(SegmentList& files) {
    std::size_t count = 0;
    while (count < files.abandoned.size() && count < kMostCalls &&
           files.abandoned[count].base_offset < files.live[1].base_offset) {
      (void)disk_.delete_file(directory_, files.abandoned[count++].text().c_str());
    }
    files.abandoned.erase(files.abandoned.begin(),
                          files.abandoned.begin() + static_cast<std::ptrdiff_t>(count));
    if (count == kMostCalls) return std::nullopt;
    return count != 0;
  }

  // Keeps a file for the next one that is made: its blocks are there. False if there is one already. A file
  // with other names (a backup's) only loses this one. Its names are counted after it was renamed. A link that
  // was begun before may be made later, and is not counted: a process that links a file must check afterwards
  // whether it still has its old name (StoreCopy::has_old_name).
  bool put_aside(const std::string& name, SegmentWriter& writer) {
    if (writer.has_spare()) return false;
    const std::string spare = writer.spare_name();
    if (!disk_.rename(directory_, name.c_str(), spare.c_str())) return false;
    LEAT_CRASH_POINT("archiver:put_aside");
    auto file = disk_.open(directory_, spare.c_str(), O_RDONLY, 0);
    if (file && link_count(file->get()) == 1) {
      writer.take_spare();
    } else {
      (void)disk_.delete_file(directory_, spare.c_str());
    }
    return true;
  }

  // What a file's header says; nothing if that is damaged.
  Result<std::optional<std::int64_t>> date_of(const SegmentName& name) {
    auto reader = SegmentReader::open(disk_, directory_, name, topic_.salt);
    if (!reader) return reader.error();
    auto header = reader->header();
    if (!header) return header.error();
    return *header ? std::optional{(*header)->created_ms} : std::nullopt;
  }

  // Notes how old a file is. Its header is read once.
  Result<void> note_age(const SegmentList& files, std::size_t index, const ClockReadings& now) {
    const SegmentName& name = files.live[index];
    if (ages_.age_ms(name.partition, name.base_offset, now)) return {};
    auto own = date_of(name);
    if (!own) return own.error();
    FileAges::Dates dates{*own, std::nullopt, topic_.created_ms};
    if (index != 0) {
      auto previous = date_of(files.live[index - 1]);
      if (!previous) return previous.error();
      dates.previous_ms = *previous;
    }
    ages_.note_dated(name.partition, name.base_offset, dates, files.live.back().base_offset, now);
    return {};
  }

  // Finds the files whose date cannot be right before it is their turn to go, a few at a time. It begins with the last
  // file, so that an archiver that works only for a moment checks at least what the one before it has made.
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

  // A file was full when the next one was made. No file is older than the ones before it, nor than the topic. `youngest`:
  // of the files before.
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
  bool knows_ = true;                             // Whether what earlier archivers noted is known.
  std::map<std::uint32_t, std::uint64_t> noted_;  // By partition: see note_ages().
  // By partition: when the youngest file that this archiver has deleted was made.
  std::map<std::uint32_t, std::int64_t> born_last_;
  std::vector<Kept> kept_;   // By partition; empty: to be listed.
  std::size_t used_ = 0;     // How often the list was used,
  std::size_t used_up_ = 0;  // and how often it may be.
  std::int64_t checked_ns_ = now_ns();
  bool has_more_ = false;
  bool has_failed_to_sync_ = false;
  std::uint32_t next_partition_ = 0;
};

}  // namespace leat::inline v0::detail
