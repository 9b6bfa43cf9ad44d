// Liveness as the kernel knows it: open-file-description locks on single bytes of a file.
//
// A participant locks its own byte through its own file description. The kernel drops the lock when
// the description is closed: by close, exec, or any kind of death, in any PID namespace. Other
// processes test it with byte_is_locked(). Unlike process-owned locks (F_SETLK), it is not dropped
// when another descriptor of the file is closed. Unlike a PID, a byte is never reused, so a
// participant that is dead stays dead.
#pragma once

#include <fcntl.h>

#include <cerrno>
#include <cstdint>

#include "leat/result.hpp"

namespace leat::inline v0::detail {

#ifdef LEAT_MODEL
namespace model {
bool try_lock_byte(int fd, std::int64_t offset, short kind) noexcept;
bool byte_is_locked(int fd, std::int64_t offset) noexcept;
}  // namespace model
#endif

enum class LockKind : short { exclusive = F_WRLCK, shared = F_RDLCK, none = F_UNLCK };

// True if this description now holds the lock (or, with `none`, has released it); false if another
// description holds a conflicting one.
inline Result<bool> try_lock_byte(int fd, std::int64_t offset,
                                  LockKind kind = LockKind::exclusive) noexcept {
#ifdef LEAT_MODEL
  return model::try_lock_byte(fd, offset, static_cast<short>(kind));
#else
  struct flock lock {};
  lock.l_type = static_cast<short>(kind);
  lock.l_whence = SEEK_SET;
  lock.l_start = offset;
  lock.l_len = 1;
  while (::fcntl(fd, F_OFD_SETLK, &lock) != 0) {
    if (errno == EAGAIN || errno == EACCES) return false;
    if (errno != EINTR) return last_system_error();
  }
  return true;
#endif
}

// Whether another description holds the byte. About 0.6 us. If the kernel reports an error the
// answer is yes: a participant is never considered dead without proof.
inline bool byte_is_locked(int fd, std::int64_t offset) noexcept {
#ifdef LEAT_MODEL
  return model::byte_is_locked(fd, offset);
#else
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = offset;
  lock.l_len = 1;
  return ::fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
#endif
}

// Whether another description holds any of `count` bytes.
inline bool range_is_locked(int fd, std::int64_t offset, std::int64_t count) noexcept {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = offset;
  lock.l_len = count;
  return ::fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

}  // namespace leat::inline v0::detail
