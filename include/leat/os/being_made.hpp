// A directory or a file that is being made under a temporary name, until it is whole and gets its own.
//
//     auto made = BeingMade::directory(parent, [&](const char* name) { return make_directory_at(parent, name); });
//     // ... fill it through made->fd() ...
//     auto named = rename_at(parent, made->name(), "orders");
//
// Its maker has it locked (flock(2)). The kernel drops the lock when the maker dies, in any PID namespace and whatever
// the clocks say, so the lock alone decides what is left over: see lock_left_over().
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include "leat/base/crash_point.hpp"
#include "leat/os/lock_file.hpp"

namespace leat::inline v0::detail {

// Reserved; a topic's name has no plus sign.
inline constexpr char kNewPrefix[] = "+new-";

// The number is informational.
inline std::string new_name() {
  char name[64];
  std::snprintf(name, sizeof(name), "%s%ld-%016llx", kNewPrefix, static_cast<long>(::getpid()),
                static_cast<unsigned long long>(make_random()));
  return name;
}

class BeingMade {
 public:
  // Makes a directory with make(name).
  template <class Make>
  static Result<BeingMade> directory(int parent, const Make& make) {
    const auto open = [&](const char* name) -> Result<LockFile> {
      if (auto made = make(name); !made) return made.error();
      LEAT_CRASH_POINT("make:made");
      auto opened = LockFile::open_directory(parent, name);
      if (opened || opened.error() == Errc::not_found)
        return opened ? std::move(opened) : Errc::busy;
      (void)delete_directory_at(parent, name);
      return opened;
    };
    return start(parent, open, [&](const char* name) { (void)delete_directory_at(parent, name); });
  }
  // Makes an empty file with mode 0600.
  static Result<BeingMade> file(int parent) {
    const auto open = [&](const char* name) {
      return LockFile::open(parent, name, O_RDWR | O_CREAT | O_EXCL, 0600);
    };
    return start(parent, open, [&](const char* name) { delete_file_at(parent, name); });
  }

  int fd() const noexcept { return file_.get(); }
  const char* name() const noexcept { return name_.c_str(); }

 private:
  BeingMade(std::string name, LockFile file) noexcept
      : name_{std::move(name)}, file_{std::move(file)} {}

  // A cleaner may lock it first, and then removes it or gives it up: it is made anew with another name. `open` returns
  // `busy` if it is gone already.
  template <class Open, class Remove>
  static Result<BeingMade> start(int parent, const Open& open, const Remove& remove) {
    constexpr int kAttempts = 100;
    for (int i = 0; i < kAttempts; ++i) {
      std::string name = new_name();
      auto opened = open(name.c_str());
      if (!opened && opened.error() == Errc::busy) continue;
      if (!opened) return opened.error();
      // A file system without such locks refuses a cleaner's lock, too: nobody then removes anything.
      const auto locked = opened->lock_whole();
      const bool is_cleaned = locked && !*locked;
      if (!is_cleaned && is_same_name(parent, name.c_str(), opened->get())) {
        LEAT_CRASH_POINT("make:locked");
        return BeingMade{std::move(name), std::move(*opened)};
      }
      remove(name.c_str());
    }
    return Errc::busy;
  }
  static bool is_same_name(int parent, const char* name, int file) noexcept {
    struct stat named {};
    struct stat opened {};
    return ::fstatat(parent, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           ::fstat(file, &opened) == 0 && named.st_ino == opened.st_ino &&
           named.st_dev == opened.st_dev;
  }

  std::string name_;
  LockFile file_;
};

// Locks what a dead maker has left under a temporary name. Whoever holds the descriptor may remove it. Empty if its
// maker lives, or if that is not known.
inline Fd lock_left_over(int parent, const char* name) noexcept {
  auto opened = open_at(parent, name, O_RDONLY | O_NONBLOCK);
  if (!opened || ::flock(opened->get(), LOCK_EX | LOCK_NB) != 0) return Fd{};
  return std::move(*opened);
}

}  // namespace leat::inline v0::detail
