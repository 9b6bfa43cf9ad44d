// The groups of a durable topic, as its data directory has them.
//
//     auto groups = load_groups(disk, directory, manifest.topic);
//     for (const StoredGroup& one : *groups) if (one.saved) …
//
// Each group has one file "group-ID", which is made with the group and says by its name that the group exists,
// and a pair of files for each archiver that has saved it: "group-ID-EPOCH-0" and "-1". A superseded archiver
// writes to files that nobody reads. docs/internals/durable.md, "Groups".
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "leat/base/crash_point.hpp"
#include "leat/format/group_layout.hpp"
#include "leat/format/store_layout.hpp"
#include "leat/os/directory.hpp"
#include "leat/store/file_names.hpp"
#include "leat/store/manifest.hpp"
#include "leat/store/sections.hpp"

namespace leat::inline v0::detail {

inline GroupGeometry geometry_of(const SavedGroupFacts& saved) noexcept {
  GroupGeometry geometry;
  geometry.flags = saved.flags;
  geometry.seat_count = saved.seat_count;
  geometry.in_flight_limit = saved.in_flight_limit;
  geometry.max_deliveries = saved.max_deliveries;
  geometry.lease_ns = saved.lease_ns;
  return geometry;
}
// The other way round. The rest is zero.
inline SavedGroupFacts facts_of(const GroupGeometry& geometry) noexcept {
  SavedGroupFacts facts{};
  facts.flags = geometry.flags;
  facts.seat_count = geometry.seat_count;
  facts.in_flight_limit = geometry.in_flight_limit;
  facts.max_deliveries = geometry.max_deliveries;
  facts.lease_ns = geometry.lease_ns;
  return facts;
}

// What is saved of a group.
struct SavedGroup {
  SavedGroupFacts facts{};
  std::string name;
  std::vector<std::uint64_t> offsets;    // of the next record to be taken, by partition
  std::vector<SavedInFlight> in_flight;  // records before that are not acknowledged, in order

  std::vector<std::byte> format(std::uint64_t sequence, std::uint64_t salt) const {
    const auto list = sections();
    return SectionsFile::format({kSavedGroupMagic, salt}, sequence, list);
  }
  // They point into this object.
  std::array<Section, 4> sections() const {
    return {{{"group", bytes_of(facts)},
             {"name", std::as_bytes(std::span{name})},
             {"offsets", std::as_bytes(std::span{offsets})},
             {"holds", std::as_bytes(std::span{in_flight})}}};
  }

  //   corrupt   no group of a topic with so many partitions
  static Result<SavedGroup> read(const SectionsFile& file, std::uint32_t partitions) {
    SavedGroup group;
    const auto name = file.find("name");
    const auto offsets = file.find("offsets");
    const auto in_flight = file.find("holds");
    if (!file.get("group", group.facts) || !name || !offsets || !in_flight ||
        offsets->size() != partitions * sizeof(std::uint64_t) ||
        in_flight->size() % sizeof(SavedInFlight) != 0)
      return Errc::corrupt;
    group.name.assign(reinterpret_cast<const char*>(name->data()), name->size());
    group.offsets.resize(partitions);
    std::memcpy(group.offsets.data(), offsets->data(), offsets->size());
    group.in_flight.resize(in_flight->size() / sizeof(SavedInFlight));
    if (!in_flight->empty())
      std::memcpy(group.in_flight.data(), in_flight->data(), in_flight->size());
    if (!group.is_valid()) return Errc::corrupt;
    return group;
  }

  // Whether a group can be like that.
  bool is_valid() const noexcept {
    GroupGeometry geometry = geometry_of(facts);
    geometry.number = 1;  // Any.
    geometry.partition_count = static_cast<std::uint32_t>(offsets.size());
    if (!geometry.is_valid() || name.empty() || name.size() > kMaxGroupName ||
        in_flight.size() > geometry.all_entries() ||
        std::ranges::any_of(offsets, [](std::uint64_t one) { return one > kMaxStoredOffset; }))
      return false;
    const SavedInFlight* last = nullptr;
    for (const SavedInFlight& one : in_flight) {
      if (one.partition >= offsets.size() || one.offset >= offsets[one.partition] ||
          one.delay_ns < 0)
        return false;
      const auto place = std::tie(one.partition, one.offset);
      if (last != nullptr && place <= std::tie(last->partition, last->offset)) return false;
      last = &one;
    }
    return true;
  }
};

// A group in a data directory.
struct StoredGroup {
  std::uint64_t id = 0;
  std::optional<SavedGroup> saved;   // Nothing if it is damaged.
  std::vector<std::string> files;    // All of them,
  std::vector<std::string> damaged;  // and those that cannot be read.
};

namespace saved_groups {

struct Files {
  bool exists = false;                                  // The file without an epoch is there.
  std::map<std::uint64_t, int, std::greater<>> epochs;  // Number of files of each.
  std::vector<std::string> names;
};

// What the last archiver saved. An archiver that died during its first save has left one file that is not whole;
// then what the archiver before it saved is still there.
inline Result<void> read_newest(Disk& disk, int directory, const ManifestTopic& topic,
                                const Files& files, StoredGroup& group) {
  const SectionsKind kind{kSavedGroupMagic, topic.salt};
  const auto read = [&](const SectionsFile& file) {
    auto saved = SavedGroup::read(file, topic.partition_count);
    if (saved && saved->facts.id == group.id) group.saved = std::move(*saved);
    return group.saved.has_value();
  };
  bool is_lost_for_good = false;
  for (const auto& [epoch, count] : files.epochs) {
    const std::string name = saved_group_name(group.id, epoch);
    auto pair = SectionsPair::load(disk, directory, name, kind);
    if (!pair && !is_lost(pair.error())) return pair.error();
    for (std::size_t i = 0; i < 2; ++i) {
      const bool is_bad = !pair || is_lost(pair->error(i));
      const bool is_there = !pair || pair->error(i) != Errc::not_found;
      if (is_bad && is_there && i < static_cast<std::size_t>(count))
        group.damaged.push_back(SectionsPair::file_name(name, i));
    }
    if (pair && !is_lost_for_good && !group.saved && !read(pair->newest()))
      group.damaged.push_back(name);
    // With both files the first save was complete, and nothing older tells the truth; nor perhaps if the only one
    // is there and cannot be read.
    const bool may_be_complete = count == 2 || (!pair && is_unreadable(pair.error()));
    is_lost_for_good = is_lost_for_good || (!group.saved && may_be_complete);
  }
  const std::string first = saved_group_name(group.id);
  auto file = SectionsFile::load(disk, directory, first.c_str(), kind);
  if (!file && !is_lost(file.error())) return file.error();
  const bool is_needed = !group.saved && !is_lost_for_good;
  if (!file || (is_needed && !read(*file))) group.damaged.push_back(first);
  return {};
}

}  // namespace saved_groups

namespace saved_groups {

inline Result<std::vector<StoredGroup>> read_listed(Disk& disk, int directory,
                                                    const ManifestTopic& topic,
                                                    const std::vector<std::string>& names,
                                                    std::vector<std::string>* left_over) {
  std::map<std::uint64_t, Files> all;
  for (const std::string& name : names) {
    if (left_over != nullptr && name.starts_with(kNewGroupPrefix)) left_over->push_back(name);
    const auto parsed = SavedGroupFile::parse(name);
    if (!parsed) continue;
    Files& files = all[parsed->id];
    if (parsed->epoch == 0)
      files.exists = true;
    else
      ++files.epochs[parsed->epoch];
    files.names.push_back(name);
  }
  std::vector<StoredGroup> groups;
  for (auto& [id, files] : all) {
    if (!files.exists) {
      if (left_over != nullptr)
        left_over->insert(left_over->end(), files.names.begin(), files.names.end());
      continue;
    }
    StoredGroup group;
    group.id = id;
    auto read = read_newest(disk, directory, topic, files, group);
    if (!read) return read.error();
    group.files = std::move(files.names);
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace saved_groups

// All groups in a topic's data directory, damaged ones included. Files that an archiver left of a deleted group are
// not one; their names are in `left_over`, if given.
inline Result<std::vector<StoredGroup>> load_groups(Disk& disk, int directory,
                                                    const ManifestTopic& topic,
                                                    std::vector<std::string>* left_over = nullptr) {
  constexpr int kMostChanges = 100;
  auto names = names_in(directory);
  for (int changes = 0;; ++changes) {
    if (!names) return names.error();
    if (left_over != nullptr) left_over->clear();
    auto groups = saved_groups::read_listed(disk, directory, topic, *names, left_over);
    if (!groups || changes == kMostChanges) return groups;
    const bool is_damaged =
        std::ranges::any_of(*groups, [](const StoredGroup& one) { return !one.damaged.empty(); });
    if (!is_damaged) return groups;
    // An archiver may have deleted an earlier one's files between the listing and the reading.
    auto now = names_in(directory);
    if (now && std::ranges::is_permutation(*now, *names)) return groups;
    names = std::move(now);
  }
}

// Makes the file of a new group. It gets its name when it is whole and on stable storage.
inline Result<void> store_new_group(Disk& disk, int directory, const SavedGroup& group,
                                    const Manifest& manifest) {
  const std::string name = saved_group_name(group.facts.id);
  const std::string temporary = std::string{kNewGroupPrefix} + sixteen_digits(group.facts.id);
  const auto make = [&]() -> Result<void> {
    auto file = make_file(disk, directory, temporary.c_str(), O_EXCL, manifest.access());
    if (!file) return file.error();
    auto written = disk.write(file->get(), group.format(1, manifest.topic.salt), 0);
    if (!written) return written;
    if (auto synced = disk.sync(file->get()); !synced) return synced;
    LEAT_CRASH_POINT("group:file_written");
    if (auto named = disk.rename(directory, temporary.c_str(), name.c_str()); !named) return named;
    return disk.sync_directory(directory);
  };
  auto made = make();
  if (!made) {
    (void)disk.delete_file(directory, temporary.c_str());
    (void)disk.delete_file(directory, name.c_str());
  }
  return made;
}

// Deletes a group's files: first the one that says that it exists. It is gone for good before the others
// are: after a failure of the machine it would tell where the group began.
inline Result<void> delete_stored_group(Disk& disk, int directory, std::uint64_t id) {
  auto names = names_in(directory);
  if (!names) return names.error();
  const std::string first = saved_group_name(id);
  if (std::find(names->begin(), names->end(), first) != names->end()) {
    if (auto deleted = disk.delete_file(directory, first.c_str()); !deleted) return deleted;
    if (auto synced = disk.sync_directory(directory); !synced) return synced;
    LEAT_CRASH_POINT("group:file_deleted");
  }
  for (const std::string& name : *names) {
    const auto parsed = SavedGroupFile::parse(name);
    if (parsed && parsed->id == id && parsed->epoch != 0)
      (void)disk.delete_file(directory, name.c_str());
  }
  return disk.sync_directory(directory);
}

namespace saved_groups {

// Writes all files of a group of which one can be read. They are of the last epoch, as if its archiver had saved
// the group once more.
inline Result<void> write_anew(Disk& disk, int directory, const Manifest& manifest,
                               StoredGroup& group) {
  std::uint64_t epoch = 1;
  for (const std::string& one : group.files)
    epoch = std::max(epoch, SavedGroupFile::parse(one)->epoch);
  SavedGroup& saved = *group.saved;
  saved.facts.epoch = epoch;
  const std::string pair_name = saved_group_name(group.id, epoch);
  const SectionsKind kind{kSavedGroupMagic, manifest.topic.salt};
  auto pair = SectionsPair::load(disk, directory, pair_name, kind);
  if (!pair && !is_lost(pair.error())) return pair.error();
  SectionsPair files = pair ? std::move(*pair) : SectionsPair{};
  for (int copy = 0; copy < 2; ++copy) {
    auto done =
        files.replace_older(disk, directory, pair_name, kind, saved.sections(), manifest.access());
    if (!done) return done;
  }
  // In place: only its name counts now.
  const std::string name = saved_group_name(group.id);
  auto file = make_file(disk, directory, name.c_str(), 0, manifest.access());
  if (!file) return file.error();
  const auto bytes = saved.format(1, kind.salt);
  if (auto written = disk.write(file->get(), bytes, 0); !written) return written;
  if (auto cut = disk.truncate(file->get(), bytes.size()); !cut) return cut;
  if (auto synced = disk.sync(file->get()); !synced) return synced;
  for (const std::string& one : group.files) {
    const std::uint64_t of = SavedGroupFile::parse(one)->epoch;
    if (of == 0 || of == epoch) continue;
    if (auto deleted = disk.delete_file(directory, one.c_str()); !deleted) return deleted;
  }
  return disk.sync_directory(directory);
}

}  // namespace saved_groups

// Writes the files of damaged groups anew from one that can be read, and deletes the useless ones: those of groups
// of which no file can be read, and what archivers left of deleted groups. Nobody else may have the topic open.
// Returns the names of the files that said that the deleted groups existed; nobody knows the groups' names.
inline Result<std::vector<std::string>> repair_groups(Disk& disk, int directory,
                                                      const Manifest& manifest) {
  std::vector<std::string> left_over;
  auto groups = load_groups(disk, directory, manifest.topic, &left_over);
  if (!groups) return groups.error();
  for (const std::string& name : left_over) {
    if (auto deleted = disk.delete_file(directory, name.c_str()); !deleted) return deleted.error();
  }
  std::vector<std::string> deleted_groups;
  for (StoredGroup& one : *groups) {
    Result<void> done;
    if (!one.saved) {
      done = delete_stored_group(disk, directory, one.id);
      deleted_groups.push_back(saved_group_name(one.id));
    } else if (!one.damaged.empty()) {
      done = saved_groups::write_anew(disk, directory, manifest, one);
    }
    if (!done) return done.error();
  }
  return deleted_groups;
}

}  // namespace leat::inline v0::detail
