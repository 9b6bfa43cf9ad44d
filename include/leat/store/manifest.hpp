// What a durable topic is, and how far it is on disk: the manifest and the checkpoint.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/base/clock.hpp"
#include "leat/format/layout.hpp"
#include "leat/store/file_names.hpp"
#include "leat/store/sections.hpp"
#include "leat/topic_id.hpp"

namespace leat::inline v0::detail {

struct Manifest {
  ManifestTopic topic{};
  TopicId id{};                  // Not known: a backup's, or of a version without ids.
  ManifestWindow window{};       // Key 0: no process has opened the topic yet.
  std::string window_directory;  // Path of the directory that the window is in.

  FileAccess access() const noexcept { return {topic.mode, topic.file_group}; }

  // Whether the values describe a topic. They are limits for everything read later.
  bool is_valid() const noexcept {
    Geometry geometry;
    geometry.segment_size = topic.segment_size;
    geometry.segment_count = topic.window_segments;
    geometry.partition_count = topic.partition_count;
    geometry.participant_capacity = topic.participants;
    geometry.flags = topic.flags;
    geometry.policy = topic.policy;
    geometry.revoke_after_ns = topic.revoke_after_ns;
    return geometry.is_valid() && can_be_durable() &&
           is_durability(StoredDurability{topic.durability}, topic.sync_interval_ns) &&
           topic.file_bytes >= kMinFileSize && topic.file_bytes <= kMaxFileSize &&
           topic.retention_ms >= 0 && (topic.mode & ~07777U) == 0 && topic.file_group >= -1;
  }

 private:
  // Its window cannot overwrite, grow or keep records, nor end with its last user.
  bool can_be_durable() const noexcept {
    constexpr std::uint32_t kPossible = kSingleWriter | kTimestamps | kDurable;
    return (topic.flags & ~kPossible) == 0 && topic.policy <= kFailPolicy;
  }
};

// Loads the manifest from either copy.
//   not_found     the directory has none: not a topic
//   wrong_format  of another version, or with sections that this version does not know
//   corrupt       both copies are damaged
inline Result<Manifest> load_manifest(Disk& disk, int directory) {
  auto pair = SectionsPair::load(disk, directory, kManifest, kManifestMagic);
  if (!pair) return pair.error();
  const SectionsFile& file = pair->newest();
  for (const Section& section : file.sections()) {
    if (section.name != "topic" && section.name != "id" && section.name != "window")
      return Errc::wrong_format;
  }
  Manifest manifest;
  if (!file.get("topic", manifest.topic) || !manifest.is_valid()) return Errc::corrupt;
  manifest.topic.flags |= kDurable;  // The first manifests do not have it.
  if (file.find("id") && !file.get("id", manifest.id.bytes)) return Errc::corrupt;
  if (file.get("window", manifest.window)) {
    const auto path = file.find("window")->subspan(sizeof(ManifestWindow));
    manifest.window_directory.assign(reinterpret_cast<const char*>(path.data()), path.size());
  }
  return manifest;
}

// Replaces both copies, one after the other. A crash in between leaves the new one valid: it has the
// higher number.
inline Result<void> store_manifest(Disk& disk, int directory, const Manifest& manifest) {
  auto pair = SectionsPair::load(disk, directory, kManifest, kManifestMagic);
  if (!pair && pair.error() != Errc::not_found) return pair.error();
  SectionsPair files = pair ? std::move(*pair) : SectionsPair{};
  std::vector<std::byte> window(sizeof(ManifestWindow) + manifest.window_directory.size());
  std::memcpy(window.data(), &manifest.window, sizeof(ManifestWindow));
  std::memcpy(window.data() + sizeof(ManifestWindow), manifest.window_directory.data(),
              manifest.window_directory.size());
  std::vector<Section> sections{{"topic", bytes_of(manifest.topic)}};
  if (manifest.id.is_known()) sections.push_back({"id", bytes_of(manifest.id.bytes)});
  if (manifest.window.key != 0) sections.push_back({"window", window});
  for (int copy = 0; copy < 2; ++copy) {
    auto done = files.replace_older(disk, directory, kManifest, kManifestMagic, sections,
                                    manifest.access());
    if (!done) return done;
  }
  return {};
}

struct Checkpoint {
  CheckpointState state{};
  std::vector<CheckpointPartition> partitions;
  std::vector<CheckpointMisdated> misdated;
  std::vector<CheckpointGap> gaps;
};

// The checkpoint of a topic, as it was loaded or stored last.
class CheckpointFile {
 public:
  // A topic of which neither file can be read, or with offsets that no topic has, has a checkpoint that says
  // nothing: `is_known` is false, and recovery reads every file from its start.
  //   wrong_format  of another version
  static Result<CheckpointFile> load(Disk& disk, int directory, const Manifest& manifest) {
    CheckpointFile file;
    file.access_ = manifest.access();
    file.kind_.salt = manifest.topic.salt;
    file.value_.partitions.resize(manifest.topic.partition_count);
    auto pair = SectionsPair::load(disk, directory, kCheckpoint, file.kind_);
    if (!pair) {
      file.has_hidden_ = is_unreadable(pair.error());
      if (is_lost(pair.error())) return file;
      return pair.error();
    }
    file.has_hidden_ = is_unreadable(pair->error(0)) || is_unreadable(pair->error(1));
    const auto partitions = pair->newest().find("partitions");
    CheckpointState state;
    if (!pair->newest().get("state", state) || !partitions ||
        partitions->size() != file.value_.partitions.size() * sizeof(CheckpointPartition))
      return Errc::wrong_format;
    std::vector<CheckpointPartition> read(file.value_.partitions.size());
    std::memcpy(read.data(), partitions->data(), partitions->size());
    if (std::all_of(read.begin(), read.end(), is_possible)) {
      file.value_.state = state;
      file.value_.partitions = std::move(read);
      file.is_known_ = true;
    }
    // Only retention needs it: what makes no sense is noted anew.
    file.value_.misdated = list_of<CheckpointMisdated>(
        pair->newest(), "ahead", kMostMisdated * file.value_.partitions.size());
    // Only numbers need it: what makes no sense counts as records.
    file.value_.gaps = list_of<CheckpointGap>(pair->newest(), "gaps", kMostGaps);
    std::erase_if(file.value_.gaps, [&](const CheckpointGap& one) {
      return one.partition >= manifest.topic.partition_count || one.begin >= one.end ||
             one.end > kMaxStoredOffset;
    });
    file.files_ = std::move(*pair);
    return file;
  }

  bool is_known() const noexcept { return is_known_; }
  // Whether the disk does not return one of the files, which may be the newer one.
  bool has_hidden() const noexcept { return has_hidden_; }
  const Checkpoint& value() const noexcept { return value_; }

  // Stores a checkpoint over the older file, and waits until it is on stable storage.
  Result<void> store(Disk& disk, int directory, Checkpoint value) {
    value.state.written_ms = wall_clock_ms();
    std::vector<Section> sections{{"state", bytes_of(value.state)},
                                  {"partitions", std::as_bytes(std::span{value.partitions})}};
    if (!value.misdated.empty())
      sections.push_back({"ahead", std::as_bytes(std::span{value.misdated})});
    if (!value.gaps.empty()) sections.push_back({"gaps", std::as_bytes(std::span{value.gaps})});
    auto done = files_.replace_older(disk, directory, kCheckpoint, kind_, sections, access_);
    if (!done) return done;
    value_ = std::move(value);
    is_known_ = true;
    return {};
  }

 private:
  // The entries of a section; none if it is missing, or has a size that it cannot have.
  template <class Entry>
  static std::vector<Entry> list_of(const SectionsFile& file, std::string_view section,
                                    std::size_t most) {
    const auto found = file.find(section);
    if (!found || found->empty() || found->size() % sizeof(Entry) != 0 ||
        found->size() / sizeof(Entry) > most)
      return {};
    std::vector<Entry> list(found->size() / sizeof(Entry));
    std::memcpy(list.data(), found->data(), found->size());
    return list;
  }

  static bool is_possible(const CheckpointPartition& one) noexcept {
    return std::max({one.frames_end, one.durable_offset, one.reserved_offset}) <= kMaxStoredOffset;
  }

  Checkpoint value_;
  FileAccess access_;
  SectionsKind kind_{kCheckpointMagic};
  SectionsPair files_;
  bool is_known_ = false;
  bool has_hidden_ = false;
};

}  // namespace leat::inline v0::detail
