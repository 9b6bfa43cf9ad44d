// A directory or a file that is being made under a temporary name, until it is whole and gets its own.
//
//     auto made = BeingMade::directory(parent, [&](const char* name) { return make_directory_at(parent, name); });
//     // ... fill it through made->fd() ...
//     auto named = rename_at(parent, made->name(), "orders");
//     if (named) made->note_named();  // Else the destructor removes it, as it does when something is thrown.
//
// Its maker has it locked (flock(2)). The kernel drops the lock when the maker dies, in any PID namespace and whatever
// the clocks say, so the lock alone decides what is left over: see lock_left_over().
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

// The process number in it is informational.
inline std::string new_name() {
  char name[64];
  std::snprintf(name, sizeof(name), "%s%ld-%016llx", kNewPrefix, static_cast<long>(::getpid()),
                static_cast<unsigned long long>(make_random()));
  return name;
}

class BeingMade {
 public:
  // Makes a directory with make(name). `parent` stays open as long as the object exists.
  template <class Make>
  static Result<BeingMade> directory(int parent, const Make& make) {
    return start(parent, AT_REMOVEDIR, [&](BeingMade& made) -> Result<LockFile> {
      if (auto done = make(made.name()); !done) return done.error();
      made.is_there_ = true;
      LEAT_CRASH_POINT("make:made");
      auto opened = LockFile::open_directory(parent, made.name());
      if (opened.error() == Errc::not_found) return Errc::busy;
      return opened;
    });
  }
  // Makes an empty file with mode 0600.
  static Result<BeingMade> file(int parent) {
    return start(parent, 0, [&](BeingMade& made) {
      auto opened = LockFile::open(parent, made.name(), O_RDWR | O_CREAT | O_EXCL, 0600);
      made.is_there_ = static_cast<bool>(opened);
      return opened;
    });
  }

  BeingMade(BeingMade&& other) noexcept
      : parent_{other.parent_},
        how_{other.how_},
        is_there_{std::exchange(other.is_there_, false)},
        name_{std::move(other.name_)},
        file_{std::move(other.file_)} {}
  BeingMade& operator=(BeingMade&&) = delete;
  // Removes it, with the files in it, unless it has got its own name.
  ~BeingMade() {
    if (!is_there_ || file_.is_inherited()) return;
    if (how_ == AT_REMOVEDIR && is_at_name()) delete_files();
    (void)::unlinkat(parent_, name(), how_);
  }

  int fd() const noexcept { return file_.get(); }
  const char* name() const noexcept { return name_.c_str(); }
  // To be called when it has got its own name.
  void note_named() noexcept { is_there_ = false; }

 private:
  BeingMade(int parent, int how) : parent_{parent}, how_{how}, name_{new_name()} {}

  // A cleaner may lock it first, and then removes it or gives it up: it is made anew with another name. `open` returns
  // `busy` if it is gone already.
  template <class Open>
  static Result<BeingMade> start(int parent, int how, const Open& open) {
    constexpr int kAttempts = 100;
    for (int i = 0; i < kAttempts; ++i) {
      BeingMade made{parent, how};
      auto opened = open(made);
      if (!opened && opened.error() == Errc::busy) continue;
      if (!opened) return opened.error();
      made.file_ = std::move(*opened);
      // A file system without such locks refuses a cleaner's lock, too: nobody then removes anything.
      const auto locked = made.file_.lock_whole();
      const bool is_cleaned = locked && !*locked;
      if (!is_cleaned && made.is_at_name()) {
        LEAT_CRASH_POINT("make:locked");
        return made;
      }
    }
    return Errc::busy;
  }
  bool is_at_name() const noexcept {
    struct stat named {};
    struct stat opened {};
    return ::fstatat(parent_, name(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           ::fstat(fd(), &opened) == 0 && named.st_ino == opened.st_ino &&
           named.st_dev == opened.st_dev;
  }
  // Without readdir(3), which needs memory and a descriptor: it may be the lack of those that is being cleaned up after.
  void delete_files() const noexcept {
    constexpr int kPasses = 3;  // A file system may skip names while others are deleted.
    for (int pass = 0; pass < kPasses && ::lseek(fd(), 0, SEEK_SET) == 0; ++pass) {
      alignas(::dirent64) char entries[4096];
      for (;;) {
        const long size = ::syscall(SYS_getdents64, fd(), entries, sizeof(entries));
        if (size <= 0) break;
        for (long at = 0; at < size;) {
          const auto* const entry = reinterpret_cast<const ::dirent64*>(entries + at);
          (void)::unlinkat(fd(), entry->d_name, 0);  // Not `.` and `..`, which are directories.
          at += entry->d_reclen;
        }
      }
    }
  }

  int parent_;
  int how_;                // Flags of unlinkat(2).
  bool is_there_ = false;  // And has not got its own name.
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
