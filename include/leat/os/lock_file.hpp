// A file or a directory opened for locking, whose locks a forked child does not inherit.
//
//     auto file = LockFile::open(directory, "control", O_RDWR);
//     auto locked = file->try_lock(offset);   // until *file is closed, or its process is dead
//
// A forked child has a copy of every descriptor, and a lock lives as long as any copy. So the child
// closes its copies at once (os/fork_state.hpp has the list), and the process does not fork while a
// LockFile is opened or closed: the child finds every one of them on the list, and no number that
// already belongs to another file.
#pragma once

#include <sys/file.h>

#include <cerrno>
#include <utility>

#include "leat/base/replace.hpp"
#include "leat/os/directory.hpp"
#include "leat/os/fork_state.hpp"
#include "leat/os/lock.hpp"

namespace leat::inline v0::detail {

class LockFile {
 public:
  LockFile() noexcept = default;
  LockFile(LockFile&& other) noexcept
      : fd_{std::move(other.fd_)},
        locked_{std::exchange(other.locked_, kNone)},
        fork_generation_{other.fork_generation_} {}
  LockFile& operator=(LockFile&& other) noexcept { return replace(*this, other); }
  ~LockFile() { close(); }

  // Opens a file like open_file_at().
  static Result<LockFile> open(int directory, const char* name, int flags, ::mode_t mode = 0) {
    return open_with([=] { return open_file_at(directory, name, flags, mode); });
  }
  // Opens an open file once more, for reading and writing: a lock of its own. It need not have a name any more.
  static Result<LockFile> open_again(int file) {
    return open_with([file] { return open_file_again(file); });
  }
  // Opens a directory, for lock_whole().
  static Result<LockFile> open_directory(int directory, const char* name) {
    return open_with([=] { return open_directory_at(directory, name); });
  }

  // Like try_lock_byte(). A LockFile locks at most one byte.
  Result<bool> try_lock(std::int64_t offset, LockKind kind = LockKind::exclusive) noexcept {
    auto locked = try_lock_byte(fd_.get(), offset, kind);
    if (locked && *locked) locked_ = offset;
    return locked;
  }

  // Locks the file or directory as a whole (flock(2)). False if another description has done so.
  Result<bool> lock_whole() noexcept {
    while (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return false;
      if (errno != EINTR) return last_system_error();
    }
    locked_ = kWhole;
    return true;
  }

  // Releases the lock and closes the file.
  void close() noexcept {
    if (!fd_) return;
    if (is_inherited()) {
      fd_.release();  // Closed at fork; the number may belong to another file by now.
      return;
    }
    // A child created by the bare clone(2) may still have a copy.
    if (locked_ >= 0) (void)try_lock_byte(fd_.get(), locked_, LockKind::none);
    if (locked_ == kWhole) (void)::flock(fd_.get(), LOCK_UN);
    const ForkHeld held;
    std::erase(fork_state().locks, fd_.get());
    fd_ = Fd{};
  }

  int get() const noexcept { return fd_.get(); }
  // Whether it was opened by a parent of this process: then it is closed here, and locks nothing.
  bool is_inherited() const noexcept { return fork_generation_ != fork_generation(); }

 private:
  static constexpr std::int64_t kNone = -1;
  static constexpr std::int64_t kWhole = -2;

  explicit LockFile(Fd fd) noexcept : fd_{std::move(fd)} {}

  template <class Open>
  static Result<LockFile> open_with(const Open& open_file) {
    const ForkHeld held;
    std::vector<int>& list = fork_state().locks;
    list.push_back(-1);  // First: it may throw bad_alloc.
    auto fd = open_file();
    if (!fd) {
      list.pop_back();
      return fd.error();
    }
    list.back() = fd->get();
    return LockFile{std::move(*fd)};
  }

  Fd fd_;
  std::int64_t locked_ = kNone;  // Offset of the locked byte, kNone or kWhole.
  std::uint32_t fork_generation_ = fork_generation();
};

}  // namespace leat::inline v0::detail
