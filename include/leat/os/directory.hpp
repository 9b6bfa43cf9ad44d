// Operations on directories and on names relative to an open directory.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leat/os/file.hpp"

namespace leat::inline v0::detail {

// Opens a name in a directory. Never follows a symbolic link.
inline Result<Fd> open_at(int directory, const char* name, int flags, ::mode_t mode = 0) noexcept {
  Fd fd =
      above_standard_streams(Fd{::openat(directory, name, flags | O_CLOEXEC | O_NOFOLLOW, mode)});
  if (!fd) return last_system_error();
  return fd;
}
// Opens a regular file. Anything else with that name (a FIFO, a device) is `wrong_format`;
// never blocks on it.
inline Result<Fd> open_file_at(int directory, const char* name, int flags,
                               ::mode_t mode = 0) noexcept {
  auto file = open_at(directory, name, flags | O_NONBLOCK, mode);
  if (!file) {
    const int reason = file.error().system_error;
    const bool is_other =
        reason == ENXIO || reason == ENODEV || reason == EISDIR || reason == ELOOP;
    return is_other ? Error{Errc::wrong_format, reason} : file.error();
  }
  struct stat status {};
  if (::fstat(file->get(), &status) != 0) return last_system_error();
  if (!S_ISREG(status.st_mode)) return Errc::wrong_format;
  return file;
}
// After a failed call with a path below /proc/self/fd. ENOENT there is also what some file systems (FUSE, 9p) return when
// a file without a name is opened again.
inline Error error_below_proc() noexcept {
  const Error error = last_system_error();
  const bool is_missing = error == Errc::not_found && ::access("/proc/self/fd", F_OK) != 0;
  return is_missing ? kNoProc : error;
}
// Opens an open file once more, for reading and writing, whether or not it still has a name. Needs /proc.
inline Result<Fd> open_file_again(int file) noexcept {
  char path[32];
  std::snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
  Fd again = above_standard_streams(Fd{::open(path, O_RDWR | O_CLOEXEC)});
  if (!again) return error_below_proc();
  return again;
}
inline Result<Fd> open_directory_at(int directory, const char* name) noexcept {
  return open_at(directory, name, O_RDONLY | O_DIRECTORY);
}

// Opens a directory by path. With `make`, creates it with mode 0700 if it is missing. With
// `only_own`, returns `permission` unless it belongs to the caller, is not a symbolic link, and
// nobody else can write to it.
inline Result<Fd> open_directory_path(const std::string& path, bool make, bool only_own) noexcept {
  if (make && ::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return last_system_error();
  const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (only_own ? O_NOFOLLOW : 0);
  Fd directory = above_standard_streams(Fd{::open(path.c_str(), flags)});
  if (!directory) {
    if (only_own && (errno == ELOOP || errno == ENOTDIR)) return Error{Errc::permission, errno};
    return last_system_error();
  }
  struct stat status {};
  if (::fstat(directory.get(), &status) != 0) return last_system_error();
  if (only_own && (status.st_uid != ::geteuid() || (status.st_mode & 022) != 0))
    return Errc::permission;
  return directory;
}

inline Result<void> make_directory_at(int directory, const char* name) noexcept {
  if (::mkdirat(directory, name, 0700) != 0) return last_system_error();
  return {};
}

// Makes a directory with mode 0700 unless something has that path. Syncs its name to stable storage where the file
// system can do that.
inline void make_directory(const std::string& path) noexcept {
  if (::mkdir(path.c_str(), 0700) != 0) return;
  const std::size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const Fd directory{::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (directory) (void)::fsync(directory.get());
}

inline bool has_name(int directory, const char* name) noexcept {
  return ::faccessat(directory, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

// Whether nothing has this name. False if that is not known.
inline bool is_missing(int directory, const char* name) noexcept {
  return ::faccessat(directory, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
}
// Whether something has this name that is not a directory: a symbolic link, for example.
inline bool is_other_than_directory(int directory, const char* name) noexcept {
  struct stat status {};
  return ::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(status.st_mode);
}

// The absolute path of an open directory, without links. Needs /proc.
inline Result<std::string> path_of(int directory) {
  const std::string link = "/proc/self/fd/" + std::to_string(directory);
  char path[4096];
  const ::ssize_t size = ::readlink(link.c_str(), path, sizeof(path));
  if (size < 0) return error_below_proc();
  return std::string{path, static_cast<std::size_t>(size)};
}

// A topic's directory that is being deleted has another name first: this and a number.
inline constexpr char kDeletedPrefix[] = "+deleted-";
inline bool is_being_deleted(const std::string& path) {
  return path.compare(path.rfind('/') + 1, sizeof(kDeletedPrefix) - 1, kDeletedPrefix) == 0;
}

// Bytes of a file's blocks; 0 if there is no such file.
inline std::uint64_t disk_bytes_at(int directory, const char* name) noexcept {
  struct stat status {};
  if (::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

// Whether this process may write to what has this name, or to the directory itself ("."). Asks for the effective user.
// If that is also the real user, without AT_EACCESS, because filters of old container systems refuse calls with it.
inline Result<void> may_write_at(int directory, const char* name) noexcept {
  const bool is_itself = ::geteuid() == ::getuid() && ::getegid() == ::getgid();
  if (::faccessat(directory, name, W_OK | X_OK, is_itself ? 0 : AT_EACCESS) != 0)
    return last_system_error();
  return {};
}
// Whether no user may delete something, nor what is in it, because it is immutable or append-only (chattr(1)), or
// something is mounted there. "" is the directory itself. False where the kernel does not report it.
inline bool is_locked_in_place(int directory, const char* name) noexcept {
  const std::uint64_t locked =
      STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND | (*name != '\0' ? STATX_ATTR_MOUNT_ROOT : 0);
  struct statx status {};
  return ::statx(directory, name, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, STATX_TYPE, &status) == 0 &&
         (status.stx_attributes & locked) != 0;
}
// Whether this process owns what has this name, or has CAP_FOWNER. The latter shows by setting the mode that the file
// has already. Never sets that of another file, to which a link leads. Needs /proc unless it is the owner.
inline Result<void> may_act_as_owner(int directory, const char* name) noexcept {
  const Fd file =
      above_standard_streams(Fd{::openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC)});
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return last_system_error();
  if (status.st_uid == ::geteuid()) return {};
  if (S_ISLNK(status.st_mode))
    return ::geteuid() == 0 ? Result<void>{} : Error{Errc::permission, EPERM};
  char path[32];
  std::snprintf(path, sizeof(path), "/proc/self/fd/%d", file.get());
  if (::chmod(path, status.st_mode & 07777) != 0) return error_below_proc();
  return {};
}
// Whether this process may rename and delete a name in a directory. `permission` if not.
inline Result<void> may_delete_at(int directory, const char* name) noexcept {
  struct stat parent {};
  struct stat status {};
  if (auto may = may_write_at(directory, "."); !may) return may;
  if (::fstat(directory, &parent) != 0 ||
      ::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
    return last_system_error();
  // In a sticky directory, such as /tmp, only its owner and the owner of the name may.
  if ((parent.st_mode & S_ISVTX) != 0 && parent.st_uid != ::geteuid()) {
    if (auto may = may_act_as_owner(directory, name); !may) return may;
  }
  if (is_locked_in_place(directory, "") || is_locked_in_place(directory, name))
    return Errc::permission;
  return {};
}

// Returns `exists` if the new name is taken.
inline Result<void> rename_at(int directory, const char* from, const char* to) noexcept {
  if (::renameat2(directory, from, directory, to, RENAME_NOREPLACE) == 0) return {};
  // NFS and some others, where backups may be, cannot tell: the name could be taken in between.
  if (errno != EINVAL) return last_system_error();
  if (has_name(directory, to)) return Errc::exists;
  if (::renameat(directory, from, directory, to) != 0) return last_system_error();
  return {};
}

// Gives a file a second name, in this directory or another one of the same file system.
inline Result<void> link_at(int from_directory, const char* from, int to_directory,
                            const char* to) noexcept {
  if (::linkat(from_directory, from, to_directory, to, 0) != 0) return last_system_error();
  return {};
}

inline void delete_file_at(int directory, const char* name) noexcept {
  ::unlinkat(directory, name, 0);
}
// Fails if something is in it.
inline Result<void> delete_directory_at(int directory, const char* name) noexcept {
  if (::unlinkat(directory, name, AT_REMOVEDIR) != 0) return last_system_error();
  return {};
}

// Sets the mode regardless of the umask, and the group unless it is -1. What another user's file has already is
// not set again, because only its owner may. A directory keeps its set-group-ID bit: users who share it by that expect
// that their files get its group.
inline Result<void> set_access(int fd, ::mode_t mode, std::int64_t group) noexcept {
  struct stat file {};
  if (::fstat(fd, &file) != 0) return last_system_error();
  const bool has_group = group < 0 || file.st_gid == static_cast<::gid_t>(group);
  if (!has_group && ::fchown(fd, static_cast<::uid_t>(-1), static_cast<::gid_t>(group)) != 0)
    return last_system_error();
  constexpr ::mode_t kAll = 07777;
  if (S_ISDIR(file.st_mode)) mode |= file.st_mode & S_ISGID;
  if ((file.st_mode & kAll) != mode && ::fchmod(fd, mode) != 0) return last_system_error();
  return {};
}

// Gives another file of a topic what the topic's files have. If all users may read and write them, it need not have
// their group, which gives and takes no right then: a user who is not in it cannot set it.
inline Result<void> set_access_like_others(int fd, ::mode_t mode, std::int64_t group) noexcept {
  auto set = set_access(fd, mode, group);
  const int error = set.error().system_error;
  const bool is_no_member = error == EPERM || error == EINVAL;  // EINVAL: not mapped to here.
  return is_no_member && (mode & 0066) == 0066 ? set_access(fd, mode, -1) : set;
}

inline Result<bool> is_same_file(int one, int other) noexcept {
  struct stat first {};
  struct stat second {};
  if (::fstat(one, &first) != 0 || ::fstat(other, &second) != 0) return last_system_error();
  return first.st_ino == second.st_ino && first.st_dev == second.st_dev;
}

// Without `.` and `..`. Uses the descriptor up. An error in the middle is an error: some names alone would pass for all.
inline Result<std::vector<std::string>> names_in(Fd directory) {
  struct Close {
    void operator()(DIR* stream) const noexcept { ::closedir(stream); }
  };
  const std::unique_ptr<DIR, Close> stream{::fdopendir(directory.get())};
  if (stream == nullptr) return last_system_error();
  directory.release();
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(stream.get());
    if (entry == nullptr && errno != 0) return last_system_error();
    if (entry == nullptr) return names;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
}
inline Result<std::vector<std::string>> names_in(int directory) {
  auto copy = open_directory_at(directory, ".");
  if (!copy) return copy.error();
  return names_in(std::move(*copy));
}

// The name of a directory in a directory; empty if there is none.
inline Result<std::string> find_directory_in(int directory) {
  auto names = names_in(directory);
  if (!names) return names.error();
  for (std::string& name : *names) {
    struct stat status {};
    if (::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(status.st_mode))
      return std::move(name);
  }
  return std::string{};
}

// Whether this process may delete a directory with the files in it. `permission` if not.
inline Result<void> may_delete_directory_at(int directory, const char* name) {
  if (auto may = may_delete_at(directory, name); !may) return may;
  if (auto may = may_write_at(directory, name); !may) return may;
  auto inside = open_directory_at(directory, name);
  if (!inside) return inside.error();
  auto files = names_in(inside->get());
  if (!files) return files.error();
  for (const std::string& file : *files) {
    auto may = may_delete_at(inside->get(), file.c_str());
    if (!may && may.error() != Errc::not_found) return may;
  }
  return {};
}

// An entry of the database of groups, and the texts that it points to.
struct FileGroup {
  // `find(entry, buffer, size, found)`: getgrnam_r(3) or getgrgid_r(3). The functions without _r have one buffer for
  // all threads.
  template <class Find>
  explicit FileGroup(Find&& find) {
    constexpr std::size_t kMost = std::size_t{1} << 24;  // bytes; a group with many members is long
    for (text.resize(1024); find(&entry, text.data(), text.size(), &found) == ERANGE;
         text.resize(2 * text.size())) {
      if (text.size() >= kMost) return;
    }
  }
  FileGroup(const FileGroup&) = delete;  // `found` points into it.
  FileGroup& operator=(const FileGroup&) = delete;

  ::group entry{};
  ::group* found = nullptr;  // Null if there is none.
  std::vector<char> text;
};

inline std::optional<::gid_t> find_file_group(const std::string& name) {
  const FileGroup group{[&](auto... rest) { return ::getgrnam_r(name.c_str(), rest...); }};
  if (group.found == nullptr) return std::nullopt;
  return group.found->gr_gid;
}

// Empty if it has none.
inline std::string name_of_file_group(::gid_t number) {
  const FileGroup group{[&](auto... rest) { return ::getgrgid_r(number, rest...); }};
  return group.found != nullptr ? group.found->gr_name : "";
}

inline void sleep_a_millisecond() noexcept { ::usleep(1000); }

}  // namespace leat::inline v0::detail
