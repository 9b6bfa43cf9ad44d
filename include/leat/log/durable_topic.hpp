// Opening and making durable topics: a window in LEAT_DIR, and a topic's data directory.
//
// docs/internals/durable.md, "Opening", shows the order of steps and what a crash between them leaves.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "leat/log/archiver_thread.hpp"
#include "leat/log/directory.hpp"
#include "leat/log/gap_finder.hpp"
#include "leat/os/user.hpp"
#include "leat/store/data_directory.hpp"
#include "leat/store/store.hpp"
#include "leat/topic.hpp"

namespace leat::inline v0::detail {

// How long to wait for a process that opens or closes the topic.
inline constexpr std::chrono::seconds kOpeningTakes{5};

// What a new window of this topic looks like.
inline NewTopic window_of(const ManifestTopic& topic) {
  NewTopic made;
  Geometry& geometry = made.geometry;
  geometry.key = make_random();
  geometry.segment_size = topic.segment_size;
  geometry.segment_count = topic.window_segments;
  geometry.partition_count = topic.partition_count;
  geometry.participant_capacity = topic.participants;
  geometry.flags = topic.flags;
  geometry.policy = topic.policy;
  geometry.revoke_after_ns = topic.revoke_after_ns;
  geometry.derive();
  made.mode = topic.mode;
  made.file_group = topic.file_group;
  return made;
}

inline Manifest manifest_of(const NewTopic& topic, const TopicOptions& options) {
  const Geometry& geometry = topic.geometry;
  Manifest manifest;
  ManifestTopic& to = manifest.topic;
  to.salt = make_random();
  manifest.id = topic.id;
  to.created_ms = wall_clock_ms();
  to.flags = geometry.flags;
  to.partition_count = geometry.partition_count;
  to.segment_size = geometry.segment_size;
  to.window_segments = geometry.segment_count;
  to.participants = geometry.participant_capacity + 1;  // one for the archiver
  to.policy = geometry.policy;
  to.durability = static_cast<std::uint32_t>(options.durable);
  to.sync_interval_ns = options.sync_interval.count();
  to.revoke_after_ns = geometry.revoke_after_ns;
  to.file_bytes = options.file_bytes;
  to.retention_bytes = options.retention_bytes;
  to.retention_ms = options.retention.count();
  to.mode = topic.mode;
  to.file_group = static_cast<std::int32_t>(topic.file_group);
  return manifest;
}

// Opens the directory with a topic's name. `wrong_format` if it is a file or a symbolic link.
inline Result<Fd> open_store_directory(int data_directory, const std::string& name) {
  auto directory = open_directory_at(data_directory, name.c_str());
  if (!directory && directory.error().system_error == ENOTDIR)
    return Error{Errc::wrong_format, ENOTDIR};
  return directory;
}

// Opens a topic's data directory. `wrong_format` if its files cannot be those of a topic.
struct OpenStore {
  Fd directory;
  Manifest manifest;
  LockFile attached;  // not locked yet

  static Result<OpenStore> open(int data_directory, const std::string& name) {
    auto directory = open_store_directory(data_directory, name);
    if (!directory) return directory.error();
    return open(std::move(*directory));
  }
  static Result<OpenStore> open(Fd directory) {
    OpenStore store;
    auto manifest = load_manifest(Disk::system(), directory.get());
    // A directory without a manifest is not a topic, but it has the name.
    if (!manifest)
      return manifest.error() == Errc::not_found ? Error{Errc::wrong_format} : manifest.error();
    auto lock = open_data_lock(directory.get());
    if (!lock) return lock.error() == Errc::not_found ? Error{Errc::wrong_format} : lock.error();
    store.directory = std::move(directory);
    store.manifest = std::move(*manifest);
    store.attached = std::move(*lock);
    return store;
  }
};

// The oldest offset on disk and what is lost behind it, by partition; and the bytes of all segment files.
struct FilesDescription {
  std::vector<std::uint64_t> start;
  std::vector<std::vector<OffsetRange>> lost;
  std::uint64_t bytes = 0;
};

// Adds the gaps of one partition that a checkpoint names. The caller settles them.
inline void add_stored_gaps(const std::vector<CheckpointGap>& gaps, std::uint32_t partition,
                            PartitionInfo& info) {
  for (const CheckpointGap& one : gaps)
    if (one.partition == partition) info.gaps.push_back({one.begin, one.end});
}

// Offsets are lost before the first file of a process that found no memory: its generation is a new one. Its header says
// where the records before it end. That may be wrong, so no range begins before the file in front.
inline std::vector<OffsetRange> find_lost(int directory, const SegmentList& files,
                                          std::uint64_t salt) {
  constexpr int kMostFiles = 1000;  // that are opened
  std::vector<OffsetRange> lost;
  int left = kMostFiles;
  for (std::size_t i = files.live.size(); i-- > 1 && left != 0;) {
    if (files.live[i].generation == files.live[i - 1].generation) continue;
    --left;
    auto reader = SegmentReader::open(Disk::system(), directory, files.live[i], salt);
    if (!reader) continue;
    auto header = reader->header();
    if (header && *header && (*header)->previous_end < (*header)->base_offset)
      lost.push_back({std::max((*header)->previous_end, files.live[i - 1].base_offset),
                      (*header)->base_offset});
  }
  std::reverse(lost.begin(), lost.end());
  return lost;
}

// `topic` may be null if it cannot be read.
inline Result<FilesDescription> describe_files(int directory, std::uint32_t partitions,
                                               const ManifestTopic* topic) {
  auto lists = list_segments(directory, partitions);
  if (!lists) return lists.error();
  FilesDescription description;
  for (const SegmentList& one : *lists) {
    description.start.push_back(one.live.empty() ? ~std::uint64_t{0}
                                                 : one.live.front().base_offset);
    description.lost.push_back(topic != nullptr ? find_lost(directory, one, topic->salt)
                                                : std::vector<OffsetRange>{});
    for (const auto* names : {&one.live, &one.abandoned}) {
      for (const SegmentName& name : *names)
        description.bytes += disk_bytes_at(directory, name.text().c_str());
    }
  }
  return description;
}

// What is constant in a durable topic's facts.
inline void describe_durable(const ManifestTopic& topic, DurableInfo& durable) {
  durable.durability = static_cast<Durability>(topic.durability);
  durable.sync_interval = std::chrono::nanoseconds{topic.sync_interval_ns};
  durable.created_ms = topic.created_ms;
  durable.file_bytes = topic.file_bytes;
  durable.retention_bytes = topic.retention_bytes;
  durable.retention = std::chrono::milliseconds{topic.retention_ms};
}

// What info() says of a durable topic that no process has open: read from its files, without
// recovering them.
//   not_found, wrong_format, permission
inline Result<TopicInfo> info_of_closed(const std::string& data_directory,
                                        const std::string& name) {
  auto data = open_data_directory(data_directory, false);
  if (!data) return data.error();
  auto directory = open_store_directory(data->get(), name);
  if (!directory) return directory.error();
  Disk& disk = Disk::system();
  auto manifest = load_manifest(disk, directory->get());
  if (!manifest)
    return manifest.error() == Errc::not_found ? Error{Errc::wrong_format} : manifest.error();
  const ManifestTopic& topic = manifest->topic;
  auto checkpoint = CheckpointFile::load(disk, directory->get(), *manifest);
  if (!checkpoint) return checkpoint.error();
  auto ends = find_ends(disk, directory->get(), *manifest, *checkpoint);
  if (!ends) return ends.error();
  auto description = describe_files(directory->get(), topic.partition_count, &topic);
  if (!description) return description.error();
  TopicInfo info;
  info.name = name;
  info.id = manifest->id;
  info.policy = static_cast<Policy>(topic.policy);
  info.segment_bytes = topic.segment_size;
  info.capacity_bytes = info.max_capacity_bytes = topic.segment_size * topic.window_segments;
  info.single_writer = (topic.flags & kSingleWriter) != 0;
  info.timestamps = (topic.flags & kTimestamps) != 0;
  info.revoke_after = std::chrono::nanoseconds{topic.revoke_after_ns};
  DurableInfo& durable = info.durable.emplace();
  auto path = path_of(directory->get());
  durable.directory = path ? *path : data_directory_path(data_directory) + '/' + name;
  describe_durable(topic, durable);
  durable.disk_bytes = description->bytes;
  for (std::uint32_t i = 0; i < topic.partition_count; ++i) {
    const PartitionEnd& end = ends->partitions[i];
    PartitionInfo& partition = info.partitions.emplace_back();
    partition.end = end.is_clean ? end.next_offset : end.frames_end;
    partition.start = std::min(description->start[i], partition.end);
    partition.gaps = std::move(description->lost[i]);
    if (end.is_clean) partition.gaps.push_back({end.frames_end, end.next_offset});
    add_stored_gaps(ends->gaps, i, partition);
    settle_gaps(partition);
    partition.capacity_bytes = info.capacity_bytes;
    partition.written = partition.end;
    partition.durable = std::min(checkpoint->value().partitions[i].durable_offset, partition.end);
  }
  return info;
}

// Whether a data directory still has its name: `not_found` if not. A deletion takes the name first, then the files.
inline Result<void> has_name_still(int data_directory, const std::string& name,
                                   const Fd& directory) noexcept {
  auto now = open_directory_at(data_directory, name.c_str());
  if (!now) return now.error();
  const Result<bool> is_same = is_same_file(now->get(), directory.get());
  if (!is_same) return is_same.error();
  return *is_same ? Result<void>{} : Errc::not_found;
}

inline Result<void> unless_missing(const Result<void>& done) noexcept {
  return done.error() == Errc::not_found ? Result<void>{} : done;
}

// Deletes a topic's data directory: renames it first, and syncs that, so that the name is free.
//   not_found   the name belongs to another directory by now, which keeps it
inline Result<void> delete_store(int data_directory, const std::string& name, const Fd& directory) {
  if (auto is_named = has_name_still(data_directory, name, directory); !is_named) return is_named;
  LEAT_CRASH_POINT("delete:files_looked_at");
  char aside[64];
  std::snprintf(aside, sizeof(aside), "%s%016llx", kDeletedPrefix,
                static_cast<unsigned long long>(make_random()));
  if (auto moved = rename_at(data_directory, name.c_str(), aside); !moved) return moved;
  LEAT_CRASH_POINT("delete:files_renamed");
  if (auto is_named = has_name_still(data_directory, aside, directory); !is_named) {
    (void)rename_at(data_directory, aside, name.c_str());
    return is_named;
  }
  // Else the topic could be back after a failure of the machine.
  const auto synced = Disk::system().sync_directory(data_directory);
  // An archiver that has not noticed the deletion yet may make one more file.
  for (const Deadline deadline{std::chrono::seconds{1}};; sleep_a_millisecond()) {
    auto names = names_in(directory.get());
    if (!names) return names.error();
    for (const std::string& one : *names) delete_file_at(directory.get(), one.c_str());
    // `not_found`: somebody else has deleted it.
    auto deleted = unless_missing(delete_directory_at(data_directory, aside));
    if (deleted || deadline.passed()) return deleted ? synced : deleted;
  }
}

// Whether a window's data directory is at this path.
inline bool has_files_at(const MappedTopic& topic, const std::string& path) {
  auto directory = open_directory_path(path, false, false);
  if (!directory) return false;
  auto manifest = load_manifest(Disk::system(), directory->get());
  return manifest && manifest->window.key == topic.geometry().key;
}
// Containers may have the same directories at different paths. If the window's path does not lead to its files here, and
// this process's data directory has them, this process uses these.
inline void find_files(MappedTopic& topic, const std::string& data_directory,
                       const std::string& name) {
  DurableWindow* const window = topic.durable();
  if (window == nullptr || has_files_at(topic, window->data_path())) return;
  std::string path = data_directory_path(data_directory) + '/' + name;
  if (has_files_at(topic, path)) window->set_data_path(std::move(path));
}

// A topic's data directory, and the directory that it is a name of.
struct StorePlace {
  Fd parent;
  std::string name;
  Fd directory;

  //   not_found   there is none, or it belongs to another window by now, or is no topic's
  static Result<StorePlace> of(const MappedTopic& topic) {
    const std::string& path = topic.durable()->data_path();
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos || slash == 0) return Errc::invalid_argument;
    auto directory = open_directory_path(path, false, false);
    if (!directory) return directory.error();
    auto manifest = load_manifest(Disk::system(), directory->get());
    if (manifest && manifest->window.key != topic.geometry().key) return Errc::not_found;
    if (!manifest && !is_lost(manifest.error())) return manifest.error();
    auto names = names_in(directory->get());
    if (!names) return names.error();
    if (!is_store(*names)) return Errc::not_found;
    auto parent = open_directory_path(path.substr(0, slash), false, false);
    if (!parent) return parent.error();
    return StorePlace{std::move(*parent), path.substr(slash + 1), std::move(*directory)};
  }
};

// Whether this process may delete a topic's data directory.
//   permission
//   wrong_format   a directory is in it, which is not the topic's
inline Result<void> may_delete_store(int data_directory, const std::string& name,
                                     const Fd& directory) {
  auto may = may_delete_directory_at(data_directory, name.c_str());
  if (!may) return may;
  auto inner = find_directory_in(directory.get());
  if (!inner) return inner.error();
  if (!inner->empty()) return Error{Errc::wrong_format, ENOTEMPTY};
  return {};
}

// Whether this process may delete the topic, its files on disk included. Errors as for may_delete_store().
inline Result<void> may_delete_topic(const Fd& directory, const std::string& name,
                                     const MappedTopic& topic) {
  if (topic.durable() != nullptr) {
    auto place = StorePlace::of(topic);
    auto may =
        unless_missing(place ? may_delete_store(place->parent.get(), place->name, place->directory)
                             : place.error());
    if (!may) return may;
  }
  return may_finish_deletion(directory, name);
}

// Deletes the data directory of a topic, given its window; unless that belongs to another window by now.
inline Result<void> delete_files_of(const MappedTopic& topic) {
  auto place = StorePlace::of(topic);
  if (!place) return unless_missing(place.error());
  LEAT_CRASH_POINT("delete:files_chosen");
  return unless_missing(delete_store(place->parent.get(), place->name, place->directory));
}

// Whether the window that a manifest names is still there, so that only its directory may be used.
inline bool has_other_window(const Manifest& manifest, const std::string& name,
                             const std::string& own_path) {
  const BootId boot = boot_id();
  if (manifest.window.key == 0 || manifest.window_directory == own_path ||
      std::memcmp(manifest.window.boot, boot.data(), boot.size()) != 0)
    return false;
  auto directory = open_directory_path(manifest.window_directory, false, false);
  if (!directory) return false;
  auto topic = attach_files(*directory, name);
  return topic && !(*topic)->is_deleted() && (*topic)->geometry().key == manifest.window.key;
}

// Deletes a durable topic that no process has open. `topics` is LEAT_DIR; empty if there is none.
//   not_found
//   busy          it is open with another LEAT_DIR
//   timeout       another process just opens, closes or deletes it: look again
//   permission    this process may not delete all of its files; none is deleted
//   wrong_format  the directory of that name is no topic's, or has another directory in it
inline Result<void> delete_closed(const Fd& topics, const std::string& data_directory,
                                  const std::string& name) {
  auto data = open_data_directory(data_directory, false);
  if (!data) return data.error();
  auto directory = open_store_directory(data->get(), name);
  if (!directory) return directory.error();
  // Of the name, which may be a new topic's by now.
  const auto or_try_again = [](const Result<void>& done) -> Result<void> {
    return done.error() == Errc::not_found ? Error{Errc::timeout} : done;
  };
  auto names = names_in(directory->get());
  if (!names) return names.error();
  if (!is_store(*names)) {
    auto is_named = or_try_again(has_name_still(data->get(), name, *directory));
    return is_named ? Error{Errc::wrong_format} : is_named.error();
  }
  LEAT_CRASH_POINT("delete:files_opened");
  auto lock = open_data_lock(directory->get());
  if (!lock && lock.error() != Errc::not_found) return lock.error();
  if (lock) {
    auto alone = lock->try_lock(kAttachLock);
    if (!alone) return alone.error();
    if (!*alone) {
      auto own_path = topics ? path_of(topics.get()) : Result<std::string>{std::string{}};
      if (!own_path) return own_path.error();
      auto manifest = load_manifest(Disk::system(), directory->get());
      return manifest && has_other_window(*manifest, name, *own_path) ? Errc::busy : Errc::timeout;
    }
  }
  if (auto may = or_try_again(may_delete_store(data->get(), name, *directory)); !may) return may;
  return or_try_again(delete_store(data->get(), name, *directory));
}

// Deletes a durable topic that this process has just made and could not open, unless another process has opened it
// meanwhile: then it may have records. Errors do not matter: the topic stays.
inline void delete_unopened(const std::string& data_directory, const std::string& name,
                            const TopicId& id) {
  auto data = open_data_directory(data_directory, false);
  if (!data) return;
  auto store = OpenStore::open(data->get(), name);
  if (!store) return;
  // Nobody opens the topic under this lock. Whoever opened it before has named a window in the manifest.
  auto alone = store->attached.try_lock(kAttachLock);
  if (!alone || !*alone) return;
  auto manifest = load_manifest(Disk::system(), store->directory.get());
  if (!manifest || manifest->id != id || manifest->window.key != 0) return;
  (void)delete_store(data->get(), name, store->directory);
}

// Finds the window of a topic that is to be deleted; null if the topic had none, and is deleted now.
// `directory` may be empty: there is no LEAT_DIR. Errors as for Topic::delete_topic.
inline Result<std::shared_ptr<MappedTopic>> window_to_delete(const Fd& directory,
                                                             const std::string& data_directory,
                                                             const std::string& name) {
  for (const Deadline deadline{kOpeningTakes};; sleep_a_millisecond()) {
    if (directory) {
      auto attached = attach_files(directory, name);
      if (attached) return std::shared_ptr<MappedTopic>{std::move(*attached)};
      if (attached.error() != Errc::not_found) return attached.error();
    }
    auto deleted = delete_closed(directory, data_directory, name);
    if (deleted) return std::shared_ptr<MappedTopic>{};
    if (deleted.error() != Errc::timeout) return deleted.error();
    if (deadline.passed()) return Errc::busy;
  }
}

// Whether a durable topic has the name.
inline bool has_store(const std::string& data_directory, const std::string& name) {
  auto data = open_data_directory(data_directory, false);
  return data && has_name(data->get(), name.c_str());
}

// A topic that was closed goes on in its last file.
inline WindowStart start_at(const PartitionEnd& end) noexcept {
  WindowStart start;
  start.next_offset = end.next_offset;
  start.frames_end = end.frames_end;
  if (end.is_clean && end.has_file && !end.is_kept && end.next_offset == end.frames_end) {
    start.file_base = end.file.base_offset;
    start.file_generation = end.file.generation;
    start.file_bytes = end.place.at;
    start.newest_ms = end.newest_ms;
  }
  return start;
}

// Joins the processes that keep a durable topic, given its window.
//   not_found   the window was just closed, or belongs to no topic any more: look again
//   busy        another process opens or closes the topic, for more than 5 s
//   corrupt     the window does not belong to a durable topic
inline Result<std::shared_ptr<MappedTopic>> start_archiver(std::shared_ptr<MappedTopic> topic,
                                                           const std::string& name,
                                                           OpenStore store) {
  if (topic->is_deleted() || store.manifest.window.key != topic->geometry().key)
    return Errc::not_found;
  if (topic->durable() == nullptr) return Errc::corrupt;
  MappedTopic* const whole = topic.get();
  auto archiver = ArchiverThread::start(std::move(topic),
                                        {std::move(store.directory), std::move(store.attached),
                                         std::move(store.manifest), name, &Disk::system()});
  if (!archiver) return archiver.error();
  whole->durable()->set_archiver(archiver->get());
  return std::shared_ptr<MappedTopic>{whole, [archiver = std::move(*archiver)](MappedTopic*) {}};
}

// Errors as start_archiver(), and:
//   wrong_format  the data directory was deleted
inline Result<std::shared_ptr<MappedTopic>> join_window(std::shared_ptr<MappedTopic> topic,
                                                        const std::string& data_directory,
                                                        const std::string& name) {
  find_files(*topic, data_directory, name);
  auto directory = open_directory_path(topic->durable()->data_path(), false, false);
  if (!directory) {
    const bool is_removed = directory.error() == Errc::not_found && !topic->is_deleted();
    return is_removed ? Error{Errc::wrong_format} : directory.error();
  }
  auto store = OpenStore::open(std::move(*directory));
  if (!store) return store.error();
  auto locked = lock_until(store->attached, kAttachLock, LockKind::shared, Deadline{kOpeningTakes});
  if (!locked) return locked.error();
  // What was read before the lock may be of an earlier window.
  auto manifest = load_manifest(Disk::system(), store->directory.get());
  if (!manifest) return manifest.error();
  store->manifest = std::move(*manifest);
  return start_archiver(std::move(topic), name, std::move(*store));
}

// Makes a window for a topic that has none: recovers its files first.
//   not_found   there is no such topic, or another process has made the window: look again
//   busy        the topic is open with another LEAT_DIR
inline Result<std::shared_ptr<MappedTopic>> make_window(const Fd& directory,
                                                        const std::string& name,
                                                        const Fd& data_directory) {
  auto store = OpenStore::open(data_directory.get(), name);
  if (!store) return store.error();
  auto own_path = path_of(directory.get());
  if (!own_path) return own_path.error();
  auto alone = store->attached.try_lock(kAttachLock, LockKind::exclusive);
  if (!alone) return alone.error();
  if (!*alone) {
    if (has_other_window(store->manifest, name, *own_path)) return Errc::busy;
    sleep_a_millisecond();
    return Errc::not_found;
  }
  // A deletion whose process died may have taken the name.
  if (auto is_named = has_name_still(data_directory.get(), name, store->directory); !is_named)
    return is_named.error();
  Disk& disk = Disk::system();
  auto manifest = load_manifest(disk, store->directory.get());
  if (!manifest) return manifest.error();
  if (has_other_window(*manifest, name, *own_path)) return Errc::busy;
  if (auto again = attach_files(directory, name); again || again.error() != Errc::not_found)
    return Errc::not_found;  // It was made before the lock was taken.
  auto path = path_of(store->directory.get());
  if (!path) return path.error();
  auto recovered = recover(disk, store->directory.get(), *manifest);
  if (!recovered) return recovered.error();
  LEAT_CRASH_POINT("open:recovered");

  const Manifest before = *manifest;
  if (!manifest->id.is_known()) manifest->id = make_topic_id();
  NewTopic window = window_of(manifest->topic);
  window.id = manifest->id;
  NewWindow start;
  start.data_path = *path;
  start.durability = StoredDurability{manifest->topic.durability};
  start.sync_interval_ns = manifest->topic.sync_interval_ns;
  start.epoch = recovered->generation;
  start.cut_bytes = recovered->cut_bytes();
  start.cut_records = recovered->cut_records();
  start.damaged = recovered->damaged();
  for (const PartitionEnd& end : recovered->partitions) start.partitions.push_back(start_at(end));
  window.window = &start;
  manifest->window.key = window.geometry.key;
  const BootId boot = boot_id();
  std::memcpy(manifest->window.boot, boot.data(), boot.size());
  manifest->window_directory = *own_path;
  auto made = store_manifest(disk, store->directory.get(), *manifest);
  LEAT_CRASH_POINT("open:window_named");
  auto topic = made ? create_topic(directory, name, window) : made.error();
  if (!topic) {
    // Nobody has published: else the next process would take the topic for one that was not closed.
    (void)store_closed(disk, store->directory.get(), *recovered);
    // And the window was never there: delete_unopened() relies on that.
    (void)store_manifest(disk, store->directory.get(), before);
    return topic.error();
  }
  LEAT_CRASH_POINT("open:window_made");
  auto shared = store->attached.try_lock(kAttachLock, LockKind::shared);
  if (!shared) return shared.error();
  store->manifest = std::move(*manifest);
  return start_archiver(std::move(*topic), name, std::move(*store));
}

}  // namespace leat::inline v0::detail
