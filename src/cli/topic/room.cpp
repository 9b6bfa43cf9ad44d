#include "room.hpp"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "cli/cli.hpp"
#include "cli/doctor/cgroup.hpp"

namespace leat::cli {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// The highest directory above `path` that is on the same file system.
std::string mount_point(const std::string& path) {
  std::error_code error;
  std::filesystem::path at = std::filesystem::canonical(path, error);
  struct stat here {};
  struct stat above {};
  if (error || ::stat(at.c_str(), &here) != 0) return path;
  while (at != at.root_path() && ::stat(at.parent_path().c_str(), &above) == 0 &&
         above.st_dev == here.st_dev) {
    at = at.parent_path();
  }
  return at.string();
}

bool is_in_memory(const std::string& path) {
  struct statfs kind {};
  return ::statfs(path.c_str(), &kind) == 0 && kind.f_type == TMPFS_MAGIC;
}

// Whether it has few inodes, or less room than `needed` and than every topic needs.
bool is_short(const std::string& directory, std::uint64_t needed) {
  struct statvfs status {};
  if (::statvfs(directory.c_str(), &status) != 0) return false;
  return status.f_bavail * status.f_frsize < std::max(needed, kMiB) || has_few_inodes(status);
}

// Why a file system with room refuses some; ends a sentence.
constexpr char kWhyRefused[] =
    "more was needed at once, a project quota is used up, or room was freed since";

// With what is free there.
std::string with_room(const std::string& directory) {
  struct statvfs status {};
  if (::statvfs(directory.c_str(), &status) != 0) return directory;
  return fmt::format("{} ({} free)", directory, size_text(status.f_bavail * status.f_frsize));
}

}  // namespace

std::string existing_part(const std::string& directory) {
  std::filesystem::path path{directory};
  std::error_code ignored;
  while (!std::filesystem::exists(path, ignored) && path.has_parent_path() &&
         path != path.parent_path()) {
    path = path.parent_path();
  }
  return path.empty() ? "." : path.string();
}

bool has_few_inodes(const struct statvfs& status) {
  constexpr std::uint64_t kFew = 64;  // A call that failed for lack of inodes has freed its own.
  return status.f_files != 0 && status.f_favail < kFew;
}

std::string how_to_get_inodes(const std::string& directory) {
  struct statvfs status {};
  if (!is_in_memory(directory) || ::statvfs(directory.c_str(), &status) != 0)
    return "delete files there";
  return fmt::format("delete files there, or `mount -o remount,nr_inodes={} {}` (as root)",
                     2 * status.f_files + 1024, mount_point(directory));
}

std::string what_is_missing(std::int32_t reason, const std::string& directory,
                            std::uint64_t needed) {
  if (reason == EFBIG)
    return fmt::format(
        "a file would be larger than the limit of file sizes (`ulimit -f`), or the file system of "
        "{}, allows: raise that limit",
        directory);
  if (reason == EDQUOT)
    return fmt::format("your disk quota in {} is used up: delete files there, or have it raised",
                       directory);
  struct statvfs status {};
  if (::statvfs(directory.c_str(), &status) != 0)
    return fmt::format("the file system of {} is full", directory);
  const std::uint64_t free = status.f_bavail * status.f_frsize;
  if (has_few_inodes(status) && free >= std::max(needed, kMiB))
    return fmt::format("the file system of {} has {} free inodes, and each file needs one: {}",
                       directory, status.f_favail, how_to_get_inodes(directory));
  if (free >= needed + needed / 8 + kMiB)
    return fmt::format("the file system of {} refused room although {} are free: {}", directory,
                       size_text(free), kWhyRefused);
  if (needed == 0)
    return fmt::format("the file system of {} is full ({} free)", directory, size_text(free));
  return fmt::format("{} and a little more needed in {}, {} free; {}", size_text(needed), directory,
                     size_text(free), how_to_get_room(directory, needed));
}

std::string what_is_missing_in_one(std::int32_t reason, const std::string& one,
                                   const std::string& other, std::uint64_t needed_in_other) {
  if (one == other) return what_is_missing(reason, other, needed_in_other);
  // Free room does not show quotas and limits.
  if (reason == EDQUOT || reason == EFBIG) return what_is_missing(reason, one + " or " + other);
  if (is_short(one, 0)) return what_is_missing(reason, one);
  if (is_short(other, needed_in_other)) return what_is_missing(reason, other, needed_in_other);
  return fmt::format("the file system of {} or of {} refused room: {}", with_room(one),
                     with_room(other), kWhyRefused);
}

bool is_full_disk(std::int32_t reason) {
  return reason == 0 || reason == ENOSPC || reason == EDQUOT;
}

std::string how_to_get_room(const std::string& directory, std::uint64_t missing_bytes) {
  struct statvfs status {};
  if (!is_in_memory(directory) || ::statvfs(directory.c_str(), &status) != 0)
    return "free some there, or choose another place with --dir";
  const std::uint64_t wanted =
      status.f_blocks * status.f_frsize + missing_bytes + missing_bytes / 8;
  const std::uint64_t wanted_mib = (wanted + kMiB - 1) / kMiB;
  const std::string mount = mount_point(directory);
  const std::string docker = mount == "/dev/shm"
                                 ? fmt::format(", `docker run --shm-size={}m`", wanted_mib)
                                 : std::string{};
  return fmt::format(
      "get it with `mount -o remount,size={}M {}` (as root){}, or choose a place with more room "
      "with --dir",
      wanted_mib, mount, docker);
}

void check_room(const std::string& directory, std::uint64_t bytes) {
  struct statvfs status {};
  if (::statvfs(directory.c_str(), &status) != 0)
    return;  // Creating the topic will fail, and say so.
  const std::uint64_t free = status.f_bavail * status.f_frsize;
  if (bytes > free) {
    throw Failure{kExitFull,
                  fmt::format("no space: {} needed in {}, {} free; {}", size_text(bytes), directory,
                              size_text(free), how_to_get_room(directory, bytes - free))};
  }
  // A memory file system may promise more memory than there is; the kernel would then kill a process.
  if (!is_in_memory(directory)) return;
  const std::uint64_t memory = memory_figure("MemAvailable") + memory_figure("SwapFree");
  if (memory != 0 && bytes > memory) {
    throw Failure{
        kExitFull,
        fmt::format(
            "no memory: {} needed in {}, {} available; choose a place on a disk with --dir, "
            "or ask for less",
            size_text(bytes), directory, size_text(memory))};
  }
  const auto limit = memory_limit();
  if (limit &&
      bytes > limit->free_bytes + std::min(memory_figure("SwapFree"), limit->free_swap_bytes)) {
    throw Failure{kExitFull,
                  fmt::format("no memory: {} needed in {}, but a memory cgroup allows {}, {} of it "
                              "free; raise its limit, or choose a place on a disk with --dir",
                              size_text(bytes), directory, size_text(limit->bytes),
                              size_text(limit->free_bytes))};
  }
}

}  // namespace leat::cli
