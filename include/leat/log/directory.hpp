// Where topics are: one directory per topic, with the topic's name, under LEAT_DIR.
//
// A topic appears complete, by renaming a finished directory, and disappears by renaming it away.
// All its files are opened relative to its directory, so files of two topics are never mixed.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "leat/log/participants.hpp"
#include "leat/os/being_made.hpp"
#include "leat/os/directory.hpp"

namespace leat::inline v0::detail {

// Reserved; a topic's name has no plus sign.
inline constexpr char kDirectoryLock[] = "+lock";

// 1 to 200 letters, digits, dots, underscores and dashes; not "." or "..".
inline bool is_valid_topic_name(std::string_view name) noexcept {
  if (name.empty() || name.size() > 200 || name == "." || name == "..") return false;
  return std::ranges::all_of(name, is_name_character);
}

inline std::string default_directory_path() {
  return "/dev/shm/leat-" + std::to_string(::geteuid());
}

// The given directory, or $LEAT_DIR, or the default. Without a slash at the end, which would follow
// a symbolic link.
inline std::string directory_path(std::string_view wanted) {
  const char* from_environment = std::getenv("LEAT_DIR");
  if (wanted.empty() && from_environment != nullptr) wanted = from_environment;
  while (wanted.size() > 1 && wanted.ends_with('/')) wanted.remove_suffix(1);
  return wanted.empty() ? default_directory_path() : std::string{wanted};
}

// Opens the directory of topics. The default one is in a place where anybody may create names, so
// it must belong to the caller.
inline Result<Fd> open_directory(std::string_view wanted, bool make) {
  const std::string path = directory_path(wanted);
  return open_directory_path(path, make, path == default_directory_path());
}

inline Result<Fd> open_topic_directory(const Fd& directory, const std::string& name) {
  if (!is_valid_topic_name(name)) return Errc::invalid_argument;
  auto found = open_directory_at(directory.get(), name.c_str());
  // A file or a link has that name: not a topic, but the name is taken.
  if (!found && found.error().system_error == ENOTDIR) return Errc::wrong_format;
  return found;
}

// Attaches to the files of the topic with this name.
//   not_found
//   wrong_format   the name belongs to something else, or the format is another one
inline Result<std::unique_ptr<MappedTopic>> attach_files(const Fd& directory,
                                                         const std::string& name) {
  auto found = open_topic_directory(directory, name);
  while (found) {
    auto attached = MappedTopic::attach(*found);
    if (attached || attached.error().code != Errc::not_found) return attached;
    // No control file: if the name still leads to this directory, it is no topic; otherwise the
    // topic was just deleted.
    auto again = open_topic_directory(directory, name);
    if (!again) return again.error();
    const Result<bool> is_same = is_same_file(found->get(), again->get());
    if (!is_same) return is_same.error();
    if (*is_same) return Errc::wrong_format;
    found = std::move(again);
  }
  return found.error();
}

// Deletes a topic's directory, given its name and two descriptors of it; the second one is for listing, and is used up.
inline void delete_topic_files(const Fd& directory, const char* name, int topic, Fd listing) {
  if (auto files = names_in(std::move(listing))) {
    for (const std::string& file : *files) {
      if (file == kControlFile || file == kRecordsFile || file == kDurableFile ||
          file.starts_with(kGroupPrefix))
        delete_file_at(topic, file.c_str());
    }
  }
  (void)delete_directory_at(directory.get(), name);
}

// A new topic's initial state.
struct NewTopic {
  Geometry geometry;
  TopicId id{};
  std::uint32_t mode = 0600;
  std::int64_t file_group = -1;     // gid, or -1 to leave it
  std::uint64_t first_segment = 1;  // tests begin just below a wrap-around
  std::uint64_t first_offset = 0;
  std::uint32_t max_segments = 0;     // policy grow
  const NewWindow* window = nullptr;  // of a durable topic
};

// Writes the content of a new control file, which is zero and has its final size.
inline void initialise_control(std::byte* control, const NewTopic& topic) noexcept {
  const Geometry& geometry = topic.geometry;
  auto& header = *reinterpret_cast<TopicHeader*>(control);
  // relaxed, all: the rename publishes them.
  store_relaxed<Why::published_later>(header.format_version, kFormatVersion);
  store_relaxed<Why::published_later>(header.flags, geometry.flags);
  store_relaxed<Why::published_later>(header.key, geometry.key);
  store_relaxed<Why::published_later>(header.segment_size, geometry.segment_size);
  store_relaxed<Why::published_later>(header.segment_count, geometry.segment_count);
  store_relaxed<Why::published_later>(header.partition_count, geometry.partition_count);
  store_relaxed<Why::published_later>(header.participant_capacity, geometry.participant_capacity);
  store_relaxed<Why::published_later>(header.policy, geometry.policy);
  store_relaxed<Why::published_later>(header.revoke_after_ns, geometry.revoke_after_ns);
  store_relaxed<Why::published_later>(header.evict_after_ns, geometry.evict_after_ns);
  store_relaxed<Why::published_later>(header.created_ms, wall_clock_ms());
  store_relaxed<Why::published_later>(header.first_segments, geometry.first_segments);
  store_relaxed<Why::published_later>(header.grow_below, geometry.grow_below);
  store_relaxed<Why::published_later>(header.max_segments, topic.max_segments);
  const auto id = std::bit_cast<std::array<std::uint64_t, 2>>(topic.id.bytes);
  store_relaxed<Why::published_later>(header.id[0], id[0]);
  store_relaxed<Why::published_later>(header.id[1], id[1]);
  for (std::uint32_t i = 0; i < geometry.partition_count; ++i) {
    const PartitionView view = view_partition(control, geometry, i);
    SegmentEntry& first = view.entry(topic.first_segment);
    store_relaxed<Why::published_later>(view.control->claim,
                                        geometry.claim_layout.pack(topic.first_segment, 0, 0));
    store_relaxed<Why::published_later>(view.control->current, topic.first_segment);
    store_relaxed<Why::published_later>(view.control->oldest_segment, topic.first_segment);
    store_relaxed<Why::published_later>(view.physical[0].last_segment, topic.first_segment);
    store_relaxed<Why::published_later>(first.map, topic.first_segment << kPhysicalBits);
    const std::uint64_t first_offset =
        topic.window != nullptr ? topic.window->partitions[i].next_offset : topic.first_offset;
    store_relaxed<Why::published_later>(first.base_offset, first_offset);
    if (!geometry.grows()) continue;
    for (std::uint32_t k = geometry.first_segments; k < geometry.segment_count; ++k)
      store_relaxed<Why::published_later>(view.physical[k].last_segment, kNoMemory);
  }
  store_relaxed<Why::published_later>(header.magic, kMagic);
}

// Allocates memory for the segments that a topic begins with.
inline Result<void> allocate_records(int fd, const Geometry& geometry) noexcept {
  if (!geometry.grows()) return allocate_file(fd, geometry.records_size());
  auto done = set_file_size(fd, geometry.records_size());
  for (std::uint32_t i = 0; done && i < geometry.partition_count; ++i) {
    done = allocate_range(fd, i * geometry.partition_size(),
                          geometry.first_segments * geometry.segment_size);
  }
  return done;
}

template <class Allocate>
Result<Fd> make_topic_file(int directory, const char* name, const NewTopic& topic,
                           Allocate&& allocate) {
  auto file = open_file_at(directory, name, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (!file) return file.error();
  write_in_place(file->get());
  if (auto allocated = allocate(file->get()); !allocated) return allocated.error();
  auto access = set_access(file->get(), topic.mode, topic.file_group);
  if (!access) return access.error();
  return file;
}

inline Result<void> fill_topic_directory(int directory, const NewTopic& topic) {
  const Geometry& geometry = topic.geometry;
  // The large file first, because it is the one that can fail for lack of space.
  auto records = make_topic_file(directory, kRecordsFile, topic,
                                 [&](int fd) { return allocate_records(fd, geometry); });
  if (!records) return records.error();
  auto control = make_topic_file(directory, kControlFile, topic, [&](int fd) {
    return allocate_file(fd, geometry.control_size());
  });
  if (!control) return control.error();
  if (topic.window != nullptr) {
    auto file = make_topic_file(directory, kDurableFile, topic, [&](int fd) {
      return allocate_file(fd, durable_size(geometry.partition_count));
    });
    if (!file) return file.error();
    auto done = initialise_durable(file->get(), geometry, *topic.window);
    if (!done) return done;
  }
  auto mapping = Mapping::map(control->get(), geometry.control_size(), true);
  if (!mapping) return mapping.error();
  initialise_control(mapping->data(), topic);
  // Users who may read the files may also enter the directory.
  return set_access(directory, topic.mode | ((topic.mode & 0444) >> 2), topic.file_group);
}

// Creates the topic's directory under a temporary name, calls use(attached) and renames it. A topic that its creator
// cannot use, for lack of descriptors, say, gets no name. If anything fails, nothing is left.
//   exists   the name is taken
template <class Use>
Result<void> create_topic(const Fd& directory, const std::string& name, const NewTopic& topic,
                          const Use& use) {
  auto made = BeingMade::directory(directory.get(), [&](const char* temporary) {
    return make_directory_at(directory.get(), temporary);
  });
  if (!made) return made.error();
  if (auto filled = fill_topic_directory(made->fd(), topic); !filled) return filled;
  LEAT_CRASH_POINT("create:filled");
  auto copy = open_directory_at(made->fd(), ".");
  if (!copy) return copy.error();
  auto attached = MappedTopic::attach(*copy);
  if (!attached) return attached.error();
  if (auto used = use(std::move(*attached)); !used) return used;
  auto named = rename_at(directory.get(), made->name(), name.c_str());
  if (named) made->note_named();
  return named;
}

inline Result<std::unique_ptr<MappedTopic>> create_topic(const Fd& directory,
                                                         const std::string& name,
                                                         const NewTopic& topic) {
  std::unique_ptr<MappedTopic> made;
  const auto use = [&](std::unique_ptr<MappedTopic> attached) -> Result<void> {
    made = std::move(attached);
    return {};
  };
  if (auto done = create_topic(directory, name, topic, use); !done) return done.error();
  return made;
}

// Makes the file that deletions lock, for the users who may write to the directory, whatever this process's umask is.
// Made by a user who is not in the directory's group, it is for its owner and, if all may write there, for all. The
// file gets its mode before its name, so that no user is refused meanwhile.
inline Result<void> make_directory_lock(int directory) {
  struct stat place {};
  if (::fstat(directory, &place) != 0) return last_system_error();
  auto file = BeingMade::file(directory);
  if (!file) return file.error();
  const ::mode_t writers = (place.st_mode & 0022) | 0200;
  const ::mode_t mode = writers | (writers << 1);
  auto done = set_access(file->fd(), mode, place.st_gid);
  // Not a member of the directory's group: another group gets no more than everybody.
  if (!done) done = set_access(file->fd(), (mode & 0606) | ((mode & 0006) << 3), -1);
  if (done) done = rename_at(directory, file->name(), kDirectoryLock);
  if (done) file->note_named();
  return done.error() == Errc::exists ? Result<void>{} : done;
}

// Opens the file that deletions lock, and makes it if there is none.
//   permission   also because of a file that an earlier version has made with another mode
inline Result<LockFile> open_directory_lock(const Fd& directory) {
  auto lock = LockFile::open(directory.get(), kDirectoryLock, O_RDWR);
  if (lock || lock.error() != Errc::not_found) return lock;
  if (auto made = make_directory_lock(directory.get()); !made) return made.error();
  return LockFile::open(directory.get(), kDirectoryLock, O_RDWR);
}

// Whether this process may take a topic out of the directory: finish_deletion(). `permission` if not.
inline Result<void> may_finish_deletion(const Fd& directory, const std::string& name) {
  auto may = may_delete_directory_at(directory.get(), name.c_str());
  if (!may && may.error() != Errc::not_found) return may;
  // Last, because it may be made here, and then belongs to this process's user.
  auto lock = open_directory_lock(directory);
  if (!lock) return lock.error();
  return {};
}

// Deletes a topic that is marked as deleted from its directory, so that its name is free. Any
// process that finds such a topic may do it.
//   busy   another process holds the directory's lock for 5 s
inline Result<void> finish_deletion(const Fd& directory, const std::string& name) {
  auto lock = open_directory_lock(directory);
  if (!lock) return lock.error();
  for (const Deadline deadline{std::chrono::seconds{5}};; sleep_a_millisecond()) {
    auto locked = lock->try_lock(0);
    if (!locked) return locked.error();
    if (*locked) break;
    if (deadline.passed()) return Errc::busy;
  }
  // Under the lock nobody else deletes the name; check that it is still the deleted topic's.
  auto found = open_topic_directory(directory, name);
  if (!found) return found.error() == Errc::not_found ? Result<void>{} : found.error();
  auto topic = MappedTopic::attach(*found);
  if (!topic) return topic.error();
  if (!(*topic)->is_deleted()) return {};
  (*topic)->announce_deletion();
  // Now, because it may fail for lack of descriptors: then the topic is still found under its name.
  auto listing = open_directory_at((*topic)->directory_fd(), ".");
  if (!listing) return listing.error();
  char aside[64];
  std::snprintf(aside, sizeof(aside), "%s%016llx", kDeletedPrefix,
                static_cast<unsigned long long>(make_random()));
  if (auto moved = rename_at(directory.get(), name.c_str(), aside); !moved) return moved.error();
  LEAT_CRASH_POINT("delete:renamed");
  delete_topic_files(directory, aside, (*topic)->directory_fd(), std::move(*listing));
  return {};
}

// The names of all topics, in no particular order.
inline Result<std::vector<std::string>> topic_names(const Fd& directory) {
  auto names = names_in(directory.get());
  if (!names) return names.error();
  std::erase_if(*names, [](const std::string& name) { return !is_valid_topic_name(name); });
  return names;
}

}  // namespace leat::inline v0::detail
