// TopicFiles of leat/admin.hpp: the files of a durable topic, or of a backup.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/admin.hpp"
#include "leat/log/directory.hpp"
#include "leat/log/durable_topic.hpp"
#include "leat/store/backup.hpp"
#include "leat/store/data_directory.hpp"
#include "leat/store/data_lock.hpp"
#include "leat/store/saved_groups.hpp"

namespace leat::inline v0 {

namespace detail {

// Looks at both copies of a pair. One that is just being written is whole a moment later.
inline CopiesInfo inspect_copies(int directory, const std::string& name, const SectionsKind& kind) {
  constexpr int kMostTries = 10;
  Disk& disk = Disk::system();
  const auto is_whole = [](const Result<SectionsPair>& pair) {
    return pair && pair->error(0) == Errc::ok && pair->error(1) == Errc::ok;
  };
  auto pair = SectionsPair::load(disk, directory, name, kind);
  for (int i = 0; i < kMostTries && !is_whole(pair); ++i) {
    sleep_a_millisecond();
    pair = SectionsPair::load(disk, directory, name, kind);
  }
  CopiesInfo copies;
  copies.state = pair.error().code;
  for (std::size_t i = 0; pair && i < 2; ++i) {
    if (pair->error(i) == Errc::ok) continue;
    copies.bad_copy = SectionsPair::file_name(name, i);
    copies.is_missing = pair->error(i) == Errc::not_found;
  }
  return copies;
}

inline void add_cut_files(FilesInfo& info, int directory, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (!name.starts_with(kCutPrefix)) continue;
    ++info.cut_files;
    info.cut_bytes += disk_bytes_at(directory, name.c_str());
  }
}

inline CopyReport report_of(const CopiedStore& copied) noexcept {
  return {copied.files, copied.linked, copied.bytes, copied.offsets, copied.damaged};
}

}  // namespace detail

static_assert(std::string_view{TopicFiles::kLock} == detail::kDataLock);

LEAT_INLINE bool CheckReport::is_damaged() const noexcept {
  return std::ranges::any_of(findings, &FileFinding::is_damage);
}

LEAT_INLINE TopicFiles::TopicFiles(detail::Fd directory) noexcept
    : directory_{std::move(directory)} {}

LEAT_INLINE Result<TopicFiles> TopicFiles::open(const std::string& topic,
                                                std::string_view data_directory) {
  auto data = detail::open_data_directory(data_directory, false);
  if (!data) return data.error();
  auto directory = detail::open_store_directory(data->get(), topic);
  if (!directory) return directory.error();
  return TopicFiles{std::move(*directory)};
}

LEAT_INLINE Result<TopicFiles> TopicFiles::open_path(const std::string& path) {
  auto directory = detail::open_directory_path(path, false, false);
  if (!directory) return directory.error();
  return TopicFiles{std::move(*directory)};
}

LEAT_INLINE Result<bool> TopicFiles::is_topic() const {
  auto names = detail::names_in(directory_.get());
  if (!names) return names.error();
  return detail::is_store(*names);
}

LEAT_INLINE Result<ManifestInfo> TopicFiles::manifest() const {
  auto manifest = detail::load_manifest(detail::Disk::system(), directory_.get());
  if (!manifest) return manifest.error();
  const detail::ManifestTopic& topic = manifest->topic;
  return ManifestInfo{
      .id = manifest->id,
      .partitions = topic.partition_count,
      .memory_bytes = topic.segment_size * topic.window_segments * topic.partition_count,
      .memory_directory = std::move(manifest->window_directory)};
}

LEAT_INLINE Result<FilesInfo> TopicFiles::inspect() const {
  const int directory = directory_.get();
  auto names = detail::names_in(directory);
  if (!names) return names.error();
  if (!detail::is_store(*names)) return Errc::not_found;
  FilesInfo info;
  detail::add_cut_files(info, directory, *names);
  info.is_open = is_open();
  info.manifest = detail::inspect_copies(directory, detail::kManifest, detail::kManifestMagic);
  if (info.manifest.state != Errc::ok) return info;
  auto manifest = detail::load_manifest(detail::Disk::system(), directory);
  info.error = manifest.error().code;
  if (!manifest) return info;
  info.checkpoint = detail::inspect_copies(directory, detail::kCheckpoint,
                                           {detail::kCheckpointMagic, manifest->topic.salt});
  if (info.checkpoint.state != Errc::ok) return info;
  auto checkpoint = detail::CheckpointFile::load(detail::Disk::system(), directory, *manifest);
  info.needs_recovery = checkpoint && checkpoint->value().state.is_clean != 1 && !is_open();
  return info;
}

LEAT_INLINE bool TopicFiles::is_open() const {
  auto lock = detail::open_data_lock(directory_.get());
  return lock && detail::byte_is_locked(lock->get(), detail::kAttachLock);
}

LEAT_INLINE bool TopicFiles::is_open_elsewhere(const std::string& topic,
                                               std::string_view directory) const {
  auto manifest = detail::load_manifest(detail::Disk::system(), directory_.get());
  if (!manifest) return false;
  auto topics = detail::open_directory(directory, false);
  auto path = topics ? detail::path_of(topics->get()) : topics.error();
  return detail::has_other_window(*manifest, topic, path ? *path : std::string{});
}

LEAT_INLINE Result<bool> TopicFiles::has_unreadable_group() const {
  auto manifest = detail::load_manifest(detail::Disk::system(), directory_.get());
  if (!manifest) return manifest.error();
  auto groups = detail::load_groups(detail::Disk::system(), directory_.get(), manifest->topic);
  if (!groups) return groups.error();
  return std::ranges::any_of(*groups, [](const detail::StoredGroup& one) { return !one.saved; });
}

LEAT_INLINE Result<std::string> TopicFiles::irregular_file() const {
  auto names = detail::names_in(directory_.get());
  if (!names) return names.error();
  for (std::string& name : *names) {
    const bool is_own = name == detail::kDataLock || name.starts_with(detail::kManifest) ||
                        name.starts_with(detail::kCheckpoint) ||
                        name.starts_with(detail::kSegmentPrefix) ||
                        name.starts_with(detail::kSavedGroupPrefix);
    if (!is_own) continue;
    const auto file = detail::Disk::system().open(directory_.get(), name.c_str(), O_RDONLY, 0);
    if (file.error() == Errc::wrong_format) return std::move(name);
  }
  return std::string{};
}

LEAT_INLINE Result<CheckReport> TopicFiles::check() const {
  auto checked = detail::check_store(detail::Disk::system(), directory_.get());
  if (!checked) return checked.error();
  CheckReport report;
  for (detail::StoreFinding& one : checked->findings)
    report.findings.push_back({std::move(one.file), std::move(one.text), one.is_damage});
  report.files = checked->files;
  report.bytes = checked->bytes;
  report.frames = checked->frames;
  report.records = checked->records;
  report.damaged = checked->damaged;
  report.lost = checked->lost;
  report.was_closed = checked->was_closed;
  return report;
}

// Does not replace anything else: a process may still have the topic open by the file that had the name before.
LEAT_INLINE Result<void> TopicFiles::make_lock() const {
  detail::Disk& disk = detail::Disk::system();
  const int directory = directory_.get();
  const auto present = disk.open(directory, kLock, O_RDONLY, 0);
  if (present.error() == Errc::wrong_format) return Errc::exists;
  if (present.error() != Errc::not_found) return {};
  auto manifest = detail::load_manifest(disk, directory);
  if (!manifest) return manifest.error();
  auto made = detail::make_file(disk, directory, kLock, 0, manifest->access());
  if (!made) return made.error();
  return disk.sync_directory(directory);
}

LEAT_INLINE Result<void> TopicFiles::repair(RepairReport& report) const {
  detail::Disk& disk = detail::Disk::system();
  const int directory = directory_.get();
  auto lock = detail::open_data_lock(directory);
  if (!lock) return lock.error();
  auto alone = lock->try_lock(detail::kAttachLock);
  if (!alone) return alone.error();
  if (!*alone) return Errc::busy;
  auto manifest = detail::load_manifest(disk, directory);  // As it is now that nobody changes it.
  if (!manifest) return manifest.error();
  if (auto stored = detail::store_manifest(disk, directory, *manifest); !stored) return stored;
  auto deleted = detail::repair_groups(disk, directory, *manifest);
  if (!deleted) return deleted.error();
  report.deleted_groups = std::move(*deleted);
  // Nobody has it open, so this is how it was closed.
  auto recovered = detail::recover_and_close(disk, directory, *manifest);
  if (!recovered) return recovered.error();
  report.cut_bytes = recovered->cut_bytes();
  report.cut_records = recovered->cut_records();
  return {};
}

LEAT_INLINE Result<CopyReport> TopicFiles::back_up(const std::string& path,
                                                   const BackupOptions& options) const {
  const std::size_t slash = path.rfind('/');
  const std::string name = path.substr(slash == std::string::npos ? 0 : slash + 1);
  if (name.empty() || name == "." || name == "..") return Errc::invalid_argument;
  const std::string above = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  auto parent = detail::open_directory_path(above, false, false);
  if (!parent) return parent.error();
  const auto is_same = detail::is_same_file(directory_.get(), parent->get());
  if (!is_same) return is_same.error();
  if (*is_same) return Errc::invalid_argument;
  detail::Disk& disk = detail::Disk::system();
  auto manifest = detail::load_manifest(disk, directory_.get());
  if (!manifest) return manifest.error();
  const detail::CopyOptions wanted{
      .may_link = !options.copies, .is_open = is_open(), .stop = options.stop};
  auto copied =
      detail::copy_store(disk, directory_.get(), std::move(*manifest), wanted, parent->get(), name);
  if (!copied) return copied.error();
  return detail::report_of(*copied);
}

// Copies all of it: the topic goes on in its last file, and recovery may cut others.
LEAT_INLINE Result<CopyReport> TopicFiles::restore(const std::string& topic,
                                                   const std::stop_token& stop,
                                                   std::string_view directory,
                                                   std::string_view data_directory) const {
  if (!is_valid_name(topic)) return Errc::invalid_argument;
  if (has_files(topic, data_directory) || has_memory(topic, directory)) return Errc::exists;
  detail::Disk& disk = detail::Disk::system();
  auto manifest = detail::load_manifest(disk, directory_.get());
  if (!manifest) return manifest.error();
  auto data = detail::open_data_directory(data_directory, false);
  if (!data) return data.error();
  auto copied =
      detail::copy_store(disk, directory_.get(), std::move(*manifest),
                         {.stop = stop, .id = detail::make_topic_id()}, data->get(), topic);
  if (!copied) return copied.error();
  return detail::report_of(*copied);
}

}  // namespace leat::inline v0
