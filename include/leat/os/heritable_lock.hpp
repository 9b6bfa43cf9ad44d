// A shared lock of which a forked child gets one of its own.
//
//     auto lock = HeritableLock::take(directory, "control", offset);
//
// A fork opens the file once more, and locks that, before there is a child: so there is no moment at which only the parent's
// lock says that the file is in use. Parent and child then release their locks independently. A child that gets none,
// because no descriptor was left, holds no lock. A child that calls exec, or ends, loses its lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "leat/os/lock_file.hpp"

namespace leat::inline v0::detail {

class HeritableLock final : private Heritable {
 public:
  // `directory` stays open as long as the lock exists, and `name` is a literal.
  //   busy        another description has it exclusively
  //   not_found   there is no such file
  static Result<std::unique_ptr<HeritableLock>> take(int directory, const char* name,
                                                     std::int64_t offset) {
    std::unique_ptr<HeritableLock> made{new HeritableLock{directory, name, offset}};
    auto file = LockFile::open(directory, name, O_RDWR);
    if (!file) return file.error();
    made->own_ = std::move(*file);
    auto locked = made->own_.try_lock(offset, LockKind::shared);
    if (!locked) return locked.error();
    if (!*locked) return Errc::busy;
    const ForkHeld held;
    fork_state().heritables.push_back(made.get());
    return made;
  }
  HeritableLock(const HeritableLock&) = delete;
  HeritableLock& operator=(const HeritableLock&) = delete;
  ~HeritableLock() { (void)release(); }

  int get() const noexcept { return adopted_ ? adopted_.get() : own_.get(); }

  // Releases the lock. False if this process had none.
  bool release() noexcept {
    {
      const ForkHeld held;
      std::erase(fork_state().heritables, static_cast<Heritable*>(this));
    }
    if (!is_held()) return false;
    // A child created by the bare clone(2) may have a copy of the descriptor.
    if (adopted_) (void)try_lock_byte(adopted_.get(), offset_, LockKind::none);
    adopted_ = Fd{};
    own_.close();
    return true;
  }

 private:
  HeritableLock(int directory, const char* name, std::int64_t offset) noexcept
      : directory_{directory}, name_{name}, offset_{offset} {}

  bool is_held() const noexcept { return adopted_ || (own_.get() >= 0 && !own_.is_inherited()); }

  void before_fork() noexcept override {
    if (!is_held()) return;
    auto file = open_file_at(directory_, name_, O_RDWR);
    if (!file) return;
    auto locked = try_lock_byte(file->get(), offset_, LockKind::shared);
    if (locked && *locked) for_child_ = std::move(*file);
  }
  void in_parent() noexcept override { for_child_ = Fd{}; }  // Not unlocked: the child has a copy.
  void in_child() noexcept override { adopted_ = std::move(for_child_); }

  const int directory_;
  const char* const name_;
  const std::int64_t offset_;
  LockFile own_;  // Of the process that made this object.
  Fd adopted_;    // Of its child; empty if there was no descriptor for it.
  Fd for_child_;  // While it forks.
};

}  // namespace leat::inline v0::detail
