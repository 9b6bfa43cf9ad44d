// A topic's data directory that is written as an archiver writes it, on a recorded disk, and the truth
// about it: what was appended under which offset, and from which call on it must survive.
//
//     World world{random};                  // creates the topic
//     world.run(random, 40);                // appends, syncs, closes, is killed, recovers
//     const auto judged = world.judge(cut, seed, more);   // the power failed there
//     EXPECT_EQ(judged.complaint, "");
#pragma once

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/recorded_disk.hpp"
#include "support/test_store.hpp"

namespace leat::testing {

// An empty directory in memory, deleted at the end: a "disk" that costs no time.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    const bool has_memory = ::access("/dev/shm", W_OK) == 0;
    path = has_memory ? "/dev/shm/leat-store-XXXXXX" : "/tmp/leat-store-XXXXXX";
    EXPECT_NE(::mkdtemp(path.data()), nullptr);
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  std::string path;
};

// The truth about one partition. Times are numbers of calls of the disk.
struct Truth {
  static constexpr std::size_t kNever = ~std::size_t{0};
  struct Value {
    std::string text;
    // It may be on stable storage if this call was made. 0: from an earlier world.
    std::size_t born = 0;
    std::size_t dead = kNever;  // A recovery that ended here did not find it: it may never return.
  };
  struct Promise {
    std::size_t made = 0;
    std::uint64_t below = 0;  // All that lives below this offset survives.
  };
  std::map<std::uint64_t, Value> values;
  std::vector<Promise> promises;
  std::uint64_t taken_before = 0;  // Offsets below were taken in an earlier world.

  // What was true after `cut` calls.
  Truth at(std::size_t cut) const {
    Truth then;
    then.taken_before = taken_before;
    for (const auto& [offset, value] : values) {
      if (value.born > cut) continue;
      then.taken_before = std::max(then.taken_before, offset + 1);
      if (value.dead > cut) then.values[offset] = {value.text, 0, kNever};
    }
    std::uint64_t below = 0;
    for (const Promise& promise : promises)
      if (promise.made <= cut) below = std::max(below, promise.below);
    then.promises = {{0, below}};
    return then;
  }
};

// Everything that a recovered partition has: offset and text. A complaint if its entries do not tile
// the offsets up to the next one.
struct ReadBack {
  std::map<std::uint64_t, std::string> values;
  std::string complaint;
};
inline ReadBack read_all(detail::Disk& disk, int directory, const detail::Manifest& manifest,
                         std::uint32_t partition, const detail::PartitionEnd& end) {
  ReadBack back;
  auto lists = detail::list_segments(directory, manifest.topic.partition_count);
  if (!lists) return {{}, "no files: " + describe(lists.error())};
  detail::StoredFrames frames{disk, directory, manifest.topic.salt, partition,
                              std::move((*lists)[partition])};
  frames.expect_end(end.frames_end, end.next_offset);
  // What was lost before the first file that there is, nobody tells about.
  std::uint64_t next = frames.place().offset;
  detail::StoredRecords records{std::move(frames)};
  if (auto found = records.seek(0); !found) return {{}, "seek: " + describe(found.error())};
  detail::StoredEntry entry;
  for (;;) {
    auto more = records.next(entry);
    if (!more) return {{}, "read: " + describe(more.error())};
    if (!*more) break;
    const std::uint64_t first = entry.is_record ? entry.record.offset : entry.gap.first;
    if (first != next) return {{}, "offset " + std::to_string(next) + " is not told about"};
    next = first + (entry.is_record ? 1 : entry.gap.count);
    if (entry.is_record) {
      back.values[first] = entry.record.text();
    } else if (entry.gap.reason == GapReason::damaged) {
      back.complaint = "damage at offset " + std::to_string(first);
    } else if (entry.gap.reason != GapReason::lost) {
      back.values[first] = name_of(entry.gap.reason);
    }
  }
  if (next != end.next_offset)
    back.complaint =
        "entries end at " + std::to_string(next) + " instead of " + std::to_string(end.next_offset);
  return back;
}

class World {
 public:
  static constexpr std::uint32_t kPartitions = 2;

  // A new topic.
  explicit World(RecordedDisk::Lies lies = {})
      : manifest_{small_manifest(kPartitions)}, truths_(kPartitions) {
    manifest_.window.key = kKey;
    disk_ = std::make_unique<RecordedDisk>(place_.path, lies);
    auto data = must(detail::open_directory_path(place_.path, false, false));
    EXPECT_TRUE(detail::create_store(*disk_, data.get(), "t", manifest_));
    created_ = disk_->calls();
    topic_ = must(detail::open_directory_at(data.get(), "t"));
  }
  // The topic that a power failure left of another world.
  World(const World& before, std::size_t cut, std::uint64_t seed) : manifest_{before.manifest_} {
    Random random{seed};
    before.disk_->replay(cut, random, place_.path);
    for (const Truth& truth : before.truths_) truths_.push_back(truth.at(cut));
    disk_ = std::make_unique<RecordedDisk>(place_.path);
    auto data = must(detail::open_directory_path(place_.path, false, false));
    if (auto topic = detail::open_directory_at(data.get(), "t")) topic_ = std::move(*topic);
  }

  std::size_t calls() const { return disk_->calls(); }
  std::size_t created() const { return created_; }
  bool has_topic() const { return static_cast<bool>(topic_); }

  // Recovers, and then does what archivers do. Returns a complaint if something went wrong that has nothing to
  // do with power.
  std::string run(Random& random, int steps) {
    if (const std::string bad = start(); !bad.empty()) return bad;
    for (int i = 0; i < steps; ++i) {
      const auto partition = static_cast<std::uint32_t>(below(random, kPartitions));
      const std::uint64_t what = below(random, 40);
      if (what == 0 || what == 1) {
        // Killed some calls later, perhaps in the middle of the next recovery.
        disk_->die_at(calls() + below(random, 12));
      } else if (what == 2) {
        if (close()) is_open_ = false;
      } else if (what < 7) {
        (void)checkpoint(false);
      } else if (what < 14) {
        (void)sync(partition);
      } else if (what == 14) {
        (void)finish(partition);
      } else if (what == 15) {
        manifest_.window.key += 2;
        (void)detail::store_manifest(*disk_, topic_.get(), manifest_);
      } else {
        (void)append(partition, random);
      }
      if (!disk_->is_dead() && is_open_) continue;
      if (is_open_ && below(random, 2) == 0) disk_->live();
      if (const std::string bad = start(); !bad.empty()) return bad;
    }
    disk_->live();
    return {};
  }

  // Whether what a power failure after `cut` calls leaves is all that it has to be, and the topic goes
  // on. Empty if so.
  std::string judge(std::size_t cut, std::uint64_t seed) const {
    World after{*this, cut, seed};
    if (!after.has_topic())
      return cut < created_ || created_ == 0 ? "" : "the topic is not there any more";
    return after.stand_trial();
  }

 private:
  static constexpr std::uint64_t kKey = 0x1234'5678'9abc'def1;

  static detail::Fd must(Result<detail::Fd> file) {
    EXPECT_TRUE(file);
    return file ? std::move(*file) : detail::Fd{};
  }

  // Recovers and begins a generation. Nothing that a process wrote is lost if only it was killed.
  std::string start() {
    is_open_ = false;
    auto recovered = detail::recover(*disk_, topic_.get(), manifest_);
    if (!recovered && disk_->is_dead()) {
      disk_->live();
      recovered = detail::recover(*disk_, topic_.get(), manifest_);
    }
    if (!recovered) return "recover: " + describe(recovered.error());
    if (recovered->damaged() != 0) return "recovery calls something damaged";
    writers_.clear();
    for (std::uint32_t i = 0; i < kPartitions; ++i) {
      const detail::PartitionEnd& end = recovered->partitions[i];
      if (auto bad = compare(i, end); !bad.empty()) return bad;
      writers_.emplace_back(*disk_, topic_.get(), manifest_.topic, i);
      writers_[i].begin(recovered->generation, end.next_offset, end.frames_end, !end.has_file);
    }
    is_open_ = true;
    return {};
  }

  // What came back against the truth; then the truth is what came back.
  std::string compare(std::uint32_t partition, const detail::PartitionEnd& end) {
    Truth& truth = truths_[partition];
    const auto in = [&](std::uint64_t offset) {
      return " (partition " + std::to_string(partition) + ", offset " + std::to_string(offset) +
             ")";
    };
    ReadBack back = read_all(*disk_, topic_.get(), manifest_, partition, end);
    if (!back.complaint.empty()) return back.complaint + in(end.next_offset);
    std::uint64_t promised = 0;
    for (const Truth::Promise& promise : truth.promises)
      promised = std::max(promised, promise.below);
    std::optional<std::uint64_t> missing;
    if (end.next_offset < truth.taken_before) return "offsets are given out again" + in(0);
    for (auto& [offset, value] : truth.values) {
      if (end.next_offset <= offset) return "offsets are given out again" + in(offset);
      const auto found = back.values.find(offset);
      if (found == back.values.end()) {
        if (offset < promised && value.dead == Truth::kNever)
          return "durable, but lost" + in(offset);
        if (value.dead != Truth::kNever) continue;
        if (!missing) missing = offset;
        value.dead = calls();
        continue;
      }
      if (value.dead != Truth::kNever) return "what was lost came back" + in(offset);
      if (missing) return "came back, but what was before did not" + in(*missing);
      if (found->second != value.text) return "came back with another value" + in(offset);
      back.values.erase(found);
    }
    if (!back.values.empty()) return "never written" + in(back.values.begin()->first);
    truth.promises.push_back({calls(), end.next_offset});
    return {};
  }

  bool append(std::uint32_t partition, Random& random) {
    detail::SegmentWriter& writer = writers_[partition];
    const std::uint64_t first = writer.end_offset();
    LogBytes log{kKey, below(random, 1U << 20), first};
    std::vector<std::string> texts;
    const auto text = [&] {
      std::string made = std::to_string(++serial_) + ':';
      const std::uint64_t sizes[] = {10, 100, 1000, 9000};
      made.resize(made.size() + below(random, sizes[below(random, 4)]),
                  static_cast<char>('a' + serial_ % 26));
      return made;
    };
    const std::uint64_t entries = 1 + below(random, 4);
    for (std::uint64_t i = 0; i < entries; ++i) {
      const std::uint64_t kind = below(random, 8);
      if (kind == 0) {
        log.aborted(text());
        texts.push_back(name_of(GapReason::aborted));
      } else if (kind == 1) {
        texts.push_back(text());
        texts.push_back(text());
        log.batch({texts.end()[-2], texts.back()});
      } else {
        log.record(texts.emplace_back(text()));
      }
    }
    const std::size_t born = calls() + 1;
    if (!writer.append(log.facts(), log.bytes())) return false;
    for (std::size_t i = 0; i < texts.size(); ++i)
      truths_[partition].values[first + i] = {texts[i], born, Truth::kNever};
    return true;
  }

  bool sync(std::uint32_t partition) {
    if (!writers_[partition].sync()) return false;
    return promise(partition);
  }
  bool finish(std::uint32_t partition) {
    if (!writers_[partition].finish_file()) return false;
    return promise(partition);
  }
  bool promise(std::uint32_t partition) {
    truths_[partition].promises.push_back({calls(), writers_[partition].durable_offset()});
    return true;
  }
  bool close() {
    for (std::uint32_t i = 0; i < kPartitions; ++i)
      if (!finish(i)) return false;
    return checkpoint(true);
  }
  // Partitions of which nothing was written keep the place that recovery stored.
  bool checkpoint(bool is_clean) {
    auto file = detail::CheckpointFile::load(*disk_, topic_.get(), manifest_);
    if (!file || disk_->is_dead()) return false;
    detail::Checkpoint value = file->value();
    value.state.is_clean = is_clean ? 1 : 0;
    for (std::uint32_t i = 0; i < kPartitions; ++i) {
      if (!sync(i)) return false;
      const auto& synced = writers_[i].synced();
      detail::CheckpointPartition& part = value.partitions[i];
      part.durable_offset = writers_[i].durable_offset();
      part.reserved_offset = part.durable_offset + detail::kReservedOffsets;
      if (synced.file.generation == 0) continue;
      part.file_base = synced.file.base_offset;
      part.file_generation = synced.file.generation;
      part.file_bytes = synced.bytes;
      part.frames_end = synced.end_offset;
      part.newest_ms = synced.newest_ms;
    }
    return static_cast<bool>(file->store(*disk_, topic_.get(), std::move(value)));
  }

  // Findings about one copy of two are not held against a topic that waits for recovery: the power
  // may have failed while it was written.
  std::string check(bool is_recovered) {
    auto report = detail::check_store(*disk_, topic_.get());
    if (!report) return "check: " + describe(report.error());
    for (const detail::StoreFinding& finding : report->findings) {
      const bool is_copy = finding.file.starts_with(detail::kCheckpoint) ||
                           finding.file.starts_with(detail::kManifest);
      if (finding.is_damage && (is_recovered || !is_copy))
        return (is_recovered ? "check after recovery: " : "check before recovery: ") +
               finding.file + ": " + finding.text;
    }
    return {};
  }

  std::string stand_trial() {
    auto manifest = detail::load_manifest(*disk_, topic_.get());
    if (!manifest) return "manifest: " + describe(manifest.error());
    manifest_ = std::move(*manifest);
    if (auto bad = check(false); !bad.empty()) return bad;
    if (auto bad = start(); !bad.empty()) return bad;
    // Who opens the topic next stores the manifest, with its window.
    if (!detail::store_manifest(*disk_, topic_.get(), manifest_)) return "the manifest stays";
    if (auto bad = check(true); !bad.empty()) return bad;
    Random random{1};
    for (std::uint32_t i = 0; i < kPartitions; ++i)
      if (!append(i, random)) return "nothing can be appended";
    if (!close()) return "it cannot be closed";
    if (auto bad = check(true); !bad.empty()) return bad;
    const std::vector<std::uint64_t> ends{writers_[0].end_offset(), writers_[1].end_offset()};
    if (auto bad = start(); !bad.empty()) return bad;
    for (std::uint32_t i = 0; i < kPartitions; ++i)
      if (writers_[i].end_offset() != ends[i]) return "a topic that was closed ends elsewhere";
    return {};
  }

  ScratchDirectory place_;
  detail::Manifest manifest_;
  std::unique_ptr<RecordedDisk> disk_;
  detail::Fd topic_;
  std::vector<Truth> truths_;
  std::vector<detail::SegmentWriter> writers_;
  std::size_t created_ = 0;
  bool is_open_ = false;
  static inline std::uint64_t serial_ = 0;
};

}  // namespace leat::testing
