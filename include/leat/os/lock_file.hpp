// A file that is opened to lock bytes of it, and that no forked child keeps.
//
//     auto file = LockFile::open(directory, "control", O_RDWR);
//     auto locked = file->try_lock(offset);   // until *file is closed, or its process is dead
//
// A child of fork has a copy of every descriptor, and a lock lives for as long as any of them. So the
// child closes its copies of these at once, and the process does not fork while it opens or closes one:
// a child finds each of them on the list of os/fork_state.hpp, and no number that is another file's by now.
#pragma once

#include <utility>

#include "leat/os/directory.hpp"
#include "leat/os/fork_state.hpp"
#include "leat/os/lock.hpp"

namespace leat::inline v0::detail {

class LockFile {
 public:
  LockFile() noexcept = default;
  LockFile(LockFile&& other) noexcept { *this = std::move(other); }
  LockFile& operator=(LockFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(locked_, other.locked_);
    std::swap(fork_generation_, other.fork_generation_);
    return *this;
  }
  ~LockFile() { close(); }

  // Opens a file as open_file_at() does.
  static Result<LockFile> open(int directory, const char* name, int flags, ::mode_t mode = 0) {
    const ForkHeld held;
    std::vector<int>& list = fork_state().locks;
    list.push_back(-1);  // First: no memory may be had.
    auto fd = open_file_at(directory, name, flags, mode);
    if (!fd) {
      list.pop_back();
      return fd.error();
    }
    list.back() = fd->get();
    return LockFile{std::move(*fd)};
  }

  // As try_lock_byte(). One byte of each file.
  Result<bool> try_lock(std::int64_t offset, LockKind kind = LockKind::exclusive) noexcept {
    auto locked = try_lock_byte(fd_.get(), offset, kind);
    if (locked && *locked) locked_ = offset;
    return locked;
  }

  // Gives the lock up.
  void close() noexcept {
    if (!fd_) return;
    if (is_inherited()) {
      fd_.release();  // Closed at fork; the number may be another file's by now.
      return;
    }
    // A child made without fork (clone(2)) may have a copy still.
    if (locked_ >= 0) (void)try_lock_byte(fd_.get(), locked_, LockKind::none);
    const ForkHeld held;
    std::erase(fork_state().locks, fd_.get());
    fd_ = Fd{};
  }

  int get() const noexcept { return fd_.get(); }
  // Opened by a parent of this process: it is closed here, and locks nothing.
  bool is_inherited() const noexcept { return fork_generation_ != fork_generation(); }

 private:
  explicit LockFile(Fd fd) noexcept : fd_{std::move(fd)} {}

  Fd fd_;
  std::int64_t locked_ = -1;  // The byte; -1 for none.
  std::uint32_t fork_generation_ = fork_generation();
};

}  // namespace leat::inline v0::detail
