// Where topics live: one directory per topic under LEAT_DIR, named like the topic.
//
// A topic appears whole, by renaming a finished directory, and disappears by renaming it away; the
// directory itself is the topic's identity, so nobody ever mixes the files of two topics.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "leat/log/participants.hpp"

namespace leat::detail {

inline constexpr char kNewPrefix[] = ".new-";          // being created
inline constexpr char kDeletedPrefix[] = ".deleted-";  // being removed
inline constexpr char kDirectoryLock[] = ".lock";

// Letters, digits, dot, underscore and dash; 1 to 200; not starting with a dot, which is ours.
inline bool is_valid_topic_name(std::string_view name) noexcept {
  if (name.empty() || name.size() > 200 || name[0] == '.') return false;
  for (const char c : name) {
    const bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '.' || c == '_' || c == '-';
    if (!ok) return false;
  }
  return true;
}

// The directory asked for, else $LEAT_DIR, else /dev/shm/leat-<uid>.
inline std::string directory_path(std::string_view wanted) {
  if (!wanted.empty()) return std::string{wanted};
  if (const char* from_environment = std::getenv("LEAT_DIR");
      from_environment != nullptr && *from_environment != '\0') {
    return from_environment;
  }
  return "/dev/shm/leat-" + std::to_string(::geteuid());
}

// Opens the directory, making it (0700) if it is missing. The default one lies in a place where
// anybody may create names, so there it must be the caller's own and no link: else `permission`.
inline Result<Fd> open_directory(std::string_view wanted) {
  const std::string path = directory_path(wanted);
  const bool is_default = path == "/dev/shm/leat-" + std::to_string(::geteuid());
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return last_system_error();
  Fd directory{
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | (is_default ? O_NOFOLLOW : 0))};
  if (!directory) {
    if (is_default && (errno == ELOOP || errno == ENOTDIR)) return Error{Errc::permission, errno};
    return last_system_error();
  }
  if (is_default) {
    struct stat status {};
    if (::fstat(directory.get(), &status) != 0) return last_system_error();
    if (status.st_uid != ::geteuid()) return Errc::permission;
  }
  return directory;
}

inline Result<Fd> open_topic_directory(const Fd& directory, const std::string& name) {
  if (!is_valid_topic_name(name)) return Errc::invalid_argument;
  Fd topic{
      ::openat(directory.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)};
  if (!topic) return last_system_error();
  return topic;
}

// Removes the two files and the directory.
inline void remove_topic_files(const Fd& directory, const std::string& name) noexcept {
  const Fd topic{
      ::openat(directory.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)};
  if (topic) {
    ::unlinkat(topic.get(), kControlFile, 0);
    ::unlinkat(topic.get(), kRecordsFile, 0);
  }
  ::unlinkat(directory.get(), name.c_str(), AT_REMOVEDIR);
}

// What a new topic starts with, beyond its geometry.
struct NewTopic {
  Geometry geometry;
  ::mode_t mode = 0600;
  std::int64_t group = -1;            // gid, or -1 to leave it
  std::uint64_t first_segment = 1;    // tests start just below a wrap-around
  std::uint64_t first_offset = 0;
};

// Writes a fresh control file's content. The file is zero and has its final size.
inline void initialise_control(std::byte* control, const NewTopic& topic) noexcept {
  const Geometry& geometry = topic.geometry;
  auto& header = *reinterpret_cast<TopicHeader*>(control);
  // relaxed, all: the rename publishes them.
  store_relaxed(header.format_version, kFormatVersion);
  store_relaxed(header.flags, geometry.flags);
  store_relaxed(header.key, geometry.key);
  store_relaxed(header.segment_size, geometry.segment_size);
  store_relaxed(header.segment_count, geometry.segment_count);
  store_relaxed(header.partition_count, geometry.partition_count);
  store_relaxed(header.participant_capacity, geometry.participant_capacity);
  store_relaxed(header.policy, geometry.policy);
  store_relaxed(header.revoke_after_ns, geometry.revoke_after_ns);
  store_relaxed(header.evict_after_ns, geometry.evict_after_ns);
  store_relaxed(header.created_ms, wall_clock_ms());
  std::byte* partition =
      control + sizeof(TopicHeader) + geometry.participant_capacity * sizeof(ParticipantSlot);
  const std::uint64_t physical_size =
      Geometry::round_up(geometry.segment_count * sizeof(PhysicalSegment), kLine);
  for (std::uint32_t i = 0; i < geometry.partition_count; ++i) {
    auto& words = *reinterpret_cast<PartitionControl*>(partition);
    auto* physical = reinterpret_cast<PhysicalSegment*>(partition + sizeof(PartitionControl));
    auto* entries =
        reinterpret_cast<SegmentEntry*>(partition + sizeof(PartitionControl) + physical_size);
    SegmentEntry& first = entries[topic.first_segment & (geometry.entry_count - 1)];
    store_relaxed(words.claim, geometry.claim_layout.pack(topic.first_segment, 0, 0));
    store_relaxed(words.current, topic.first_segment);
    store_relaxed(words.start, topic.first_segment);
    store_relaxed(physical[0].last_segment, topic.first_segment);
    store_relaxed(first.map, topic.first_segment << kPhysicalBits);
    store_relaxed(first.base_offset, topic.first_offset);
    partition += geometry.partition_control_size();
  }
  store_relaxed(header.magic, kMagic);
}

inline Result<void> make_topic_file(int directory, const char* name, std::size_t size,
                                    const NewTopic& topic, Fd& file) {
  file = Fd{::openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!file) return last_system_error();
  if (auto allocated = allocate_file(file.get(), size); !allocated) return allocated.error();
  if (topic.group >= 0 &&
      ::fchown(file.get(), static_cast<::uid_t>(-1), static_cast<::gid_t>(topic.group)) != 0) {
    return last_system_error();
  }
  if (::fchmod(file.get(), topic.mode) != 0) return last_system_error();
  return {};
}

inline Result<void> fill_topic_directory(int directory, const NewTopic& topic) {
  Fd control;
  Fd records;
  // The large one first: when space is short, that is where it shows.
  if (auto made =
          make_topic_file(directory, kRecordsFile, topic.geometry.records_size(), topic, records);
      !made) {
    return made.error();
  }
  if (auto made =
          make_topic_file(directory, kControlFile, topic.geometry.control_size(), topic, control);
      !made) {
    return made.error();
  }
  auto mapping = Mapping::map(control.get(), topic.geometry.control_size(), true);
  if (!mapping) return mapping.error();
  initialise_control(mapping->data(), topic);
  // Whoever may read a file of the topic may enter its directory.
  const ::mode_t enter = ((topic.mode & 0444) >> 2) | topic.mode;
  if (topic.group >= 0 &&
      ::fchown(directory, static_cast<::uid_t>(-1), static_cast<::gid_t>(topic.group)) != 0) {
    return last_system_error();
  }
  if (::fchmod(directory, enter) != 0) return last_system_error();
  return {};
}

// Makes the topic's directory under a temporary name and renames it. `exists` if the name is taken.
inline Result<void> create_topic(const Fd& directory, const std::string& name,
                                 const NewTopic& topic) {
  char temporary[64];
  std::snprintf(temporary, sizeof(temporary), "%s%ld-%016llx", kNewPrefix,
                static_cast<long>(::getpid()), static_cast<unsigned long long>(make_random()));
  if (::mkdirat(directory.get(), temporary, 0700) != 0) return last_system_error();
  const Fd made{
      ::openat(directory.get(), temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)};
  Result<void> result =
      made ? fill_topic_directory(made.get(), topic) : Result<void>{last_system_error()};
  LEAT_STEP("create:filled");
  if (result && ::renameat2(directory.get(), temporary, directory.get(), name.c_str(),
                            RENAME_NOREPLACE) != 0) {
    result = last_system_error();
  }
  if (!result) remove_topic_files(directory, temporary);
  return result;
}

// Takes a topic that is marked as deleted out of the directory, so that its name is free. Anybody
// who meets one may do it.
//   busy   another process holds the directory's lock and does not move on
inline Result<void> finish_deletion(const Fd& directory, const std::string& name) {
  const Fd lock{
      ::openat(directory.get(), kDirectoryLock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666)};
  if (!lock) return last_system_error();
  for (const Deadline deadline{std::chrono::seconds{5}};;) {
    auto locked = try_lock_byte(lock.get(), 0);
    if (!locked) return locked.error();
    if (*locked) break;
    if (deadline.passed()) return Errc::busy;
    ::usleep(1000);
  }
  // Under the lock nobody else takes the name away; is it (still) the deleted topic?
  auto found = open_topic_directory(directory, name);
  if (!found) return found.error().code == Errc::not_found ? Result<void>{} : found.error();
  auto topic = SharedTopic::attach(std::move(*found));
  if (topic && !(*topic)->is_deleted()) return {};
  if (!topic && topic.error().code != Errc::not_found && topic.error().code != Errc::wrong_format) {
    return topic.error();
  }
  char aside[64];
  std::snprintf(aside, sizeof(aside), "%s%016llx", kDeletedPrefix,
                static_cast<unsigned long long>(make_random()));
  if (::renameat(directory.get(), name.c_str(), directory.get(), aside) != 0)
    return last_system_error();
  LEAT_STEP("delete:renamed");
  remove_topic_files(directory, aside);
  return {};
}

// Names of all topics, in no order.
inline Result<std::vector<std::string>> topic_names(const Fd& directory) {
  const int copy = ::openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return last_system_error();
  DIR* stream = ::fdopendir(copy);
  if (stream == nullptr) {
    ::close(copy);
    return last_system_error();
  }
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(stream)) {
    if (is_valid_topic_name(entry->d_name)) names.emplace_back(entry->d_name);
  }
  ::closedir(stream);
  return names;
}

// Sleeps until something in the directory changes, at most until the deadline. No polling: inotify.
class DirectoryWatch {
 public:
  explicit DirectoryWatch(const std::string& path) noexcept
      : fd_{::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)} {
    if (fd_) watched_ = ::inotify_add_watch(fd_.get(), path.c_str(), IN_MOVED_TO | IN_CREATE) >= 0;
  }
  void wait(Deadline deadline) noexcept {
    if (deadline.is_immediate()) return;
    // Where inotify is not to be had, look every 10 ms.
    if (!watched_) deadline = deadline.at_most_ns(10'000'000);
    int timeout_ms = -1;
    if (!deadline.is_never()) {
      const std::int64_t left = (deadline.at_ns() - now_ns() + 999'999) / 1'000'000;
      timeout_ms = left <= 0 ? 0 : left > 3'600'000 ? 3'600'000 : static_cast<int>(left);
    }
    pollfd entry{fd_.get(), POLLIN, 0};
    ::poll(&entry, watched_ ? 1 : 0, timeout_ms);
    char events[4096];
    while (watched_ && ::read(fd_.get(), events, sizeof(events)) > 0) {
    }
  }

 private:
  Fd fd_;
  bool watched_ = false;
};

}  // namespace leat::detail
