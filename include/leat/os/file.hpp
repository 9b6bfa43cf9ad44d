// File allocation and memory mappings.
#pragma once

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "leat/base/replace.hpp"
#include "leat/os/fd.hpp"
#include "leat/os/signals.hpp"
#include "leat/result.hpp"

namespace leat::inline v0::detail {

#ifdef LEAT_MODEL
namespace model {  // Makes all mappings of a byte one location of the model.
void mapped(const void* data, std::size_t size, int fd) noexcept;
void unmapped(const void* data) noexcept;
// Sets whether a range of a file has memory; the model reports accesses to a range without.
void has_memory(int fd, std::size_t offset, std::size_t size, bool has) noexcept;
}  // namespace model
#endif

// Duplicates a descriptor below 3 to a higher number: a program that was started without standard
// streams still writes to 1 and 2, and must not write into a topic.
inline Fd above_standard_streams(Fd fd) noexcept {
  if (fd.get() < 0 || fd.get() > 2) return fd;
  return Fd{::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3)};
}

// A shared mapping of a whole file.
class Mapping {
 public:
  Mapping() noexcept = default;
  Mapping(Mapping&& other) noexcept
      : data_{std::exchange(other.data_, nullptr)}, size_{std::exchange(other.size_, 0)} {}
  Mapping& operator=(Mapping&& other) noexcept { return replace(*this, other); }
  ~Mapping() {
#ifdef LEAT_MODEL
    if (data_ != nullptr) model::unmapped(data_);
#endif
    if (data_ != nullptr) ::munmap(data_, size_);
  }

  // Maps `size` bytes of the file and populates the page tables, so that no later access faults.
  // The file's pages exist already (allocate_file), so this is cheap. `whole` = false means that
  // the file has holes: the caller then calls populate() on the parts that have pages.
  static Result<Mapping> map(int fd, std::size_t size, bool writable, bool whole = true) noexcept {
    const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    const int flags = whole ? MAP_SHARED | MAP_POPULATE : MAP_SHARED;
    void* data = ::mmap(nullptr, size, protection, flags, fd, 0);
    if (data == MAP_FAILED) return last_system_error();
#ifdef LEAT_MODEL
    model::mapped(data, size, fd);
#endif
    Mapping mapping;
    mapping.data_ = data;
    mapping.size_ = size;
    // MAP_POPULATE only maps pages for reading; the first write to each page would still fault.
    // Older kernels refuse MADV_POPULATE_WRITE (EINVAL); there, the first lap takes the faults.
    if (writable && whole) mapping.populate(0, size, true);
    return mapping;
  }

  // Populates the page tables for a range whose pages exist. Never raises a signal.
  void populate(std::size_t offset, std::size_t size, bool writable) const noexcept {
    (void)::madvise(data() + offset, size, writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
  }

  std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }
  std::size_t size() const noexcept { return size_; }
  explicit operator bool() const noexcept { return data_ != nullptr; }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

// Runs a call that changes a file's size or pages, with signals blocked: on tmpfs a signal undoes
// the work of an interrupted call, so a program with a fast timer would never finish. Exceeding
// RLIMIT_FSIZE returns an error and does not end the process by SIGXFSZ.
template <class Call>
Result<void> change_file(Call&& call) noexcept {
  const SignalsBlocked blocked;
  const bool was_pending = is_pending(SIGXFSZ);  // Raised by the program itself.
  int result = 0;
  do {
    result = call();
  } while (result != 0 && errno == EINTR);
  if (result == 0) return {};
  const Error error = last_system_error();
  if (error.system_error == EFBIG && !was_pending) take_pending(SIGXFSZ);
  return error;
}

// For a new, empty file that will be mapped. On a file system that writes changed pages to another place (btrfs,
// bcachefs), allocated pages alone are not enough: the first change after a sync needs a new place, and on a full disk
// that is a SIGBUS. Others, which write in place, refuse the flag.
inline void write_in_place(int fd) noexcept {
  // As in linux/fs.h, which a program could not include together with sys/mount.h.
  constexpr unsigned long kGetFlags = _IOR('f', 1, long);
  constexpr unsigned long kSetFlags = _IOW('f', 2, long);
  constexpr int kNoCopyOnWrite = 0x0080'0000;
  int flags = 0;
  if (::ioctl(fd, kGetFlags, &flags) != 0 || (flags & kNoCopyOnWrite) != 0) return;
  flags |= kNoCopyOnWrite;
  (void)::ioctl(fd, kSetFlags, &flags);
}

// Extends the file and allocates its pages (zeroed), so that a full file system is an error here
// and not a SIGBUS later.
inline Result<void> allocate_range(int fd, std::size_t offset, std::size_t size) noexcept {
  // In parts, so that signals are not blocked for long. A segment is never larger than a part: if a
  // call fails, tmpfs takes back what that call allocated.
  constexpr std::size_t kPart = std::size_t{1} << 30;
  // A request that cannot fit would use up all memory before it fails.
  struct ::statvfs space {};
  if (size > kPart && ::fstatvfs(fd, &space) == 0 && space.f_blocks != 0 &&
      size / space.f_frsize > space.f_bavail)
    return Error{Errc::no_space, ENOSPC};
  for (std::size_t done = 0; done < size || done == 0; done += kPart) {
    auto result = change_file([&] {
      return ::fallocate(fd, 0, static_cast<off_t>(offset + done),
                         static_cast<off_t>(std::min(size - done, kPart)));
    });
    if (!result) return result;
  }
#ifdef LEAT_MODEL
  model::has_memory(fd, offset, size, true);
#endif
  return {};
}
inline Result<void> allocate_file(int fd, std::size_t size) noexcept {
  return allocate_range(fd, 0, size);
}

// Sets the file's size without allocating pages: the whole file is a hole.
inline Result<void> set_file_size(int fd, std::size_t size) noexcept {
  auto done = change_file([&] { return ::ftruncate(fd, static_cast<off_t>(size)); });
  if (!done) return done;
#ifdef LEAT_MODEL
  model::has_memory(fd, 0, size, false);
#endif
  return {};
}

// Frees the pages of a range; the file keeps its size.
inline Result<void> make_hole(int fd, std::size_t offset, std::size_t size) noexcept {
  auto done = change_file([&] {
    return ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                       static_cast<off_t>(size));
  });
  if (!done) return done;
#ifdef LEAT_MODEL
  model::has_memory(fd, offset, size, false);
#endif
  return {};
}

// Bytes of memory that the file's pages occupy.
inline Result<std::size_t> file_memory(int fd) noexcept {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return last_system_error();
  return static_cast<std::size_t>(status.st_blocks) * 512;
}

// Reads the first `size` bytes of a file, so that what it says about itself can be checked before the
// file is mapped. `wrong_format` if there are fewer.
inline Result<void> read_beginning(int fd, void* into, std::size_t size) noexcept {
  ::ssize_t got = 0;
  do {
    got = ::pread(fd, into, size, 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return last_system_error();
  if (static_cast<std::size_t>(got) < size) return Errc::wrong_format;
  return {};
}

// Whether to populate a mapping of a file that others made, which should have pages for all of its
// `size` bytes. Of a file with holes, each access would take memory, as much as its size says, or end
// this process where there is none. tmpfs counts pages exactly, so there such a file is refused. Other
// file systems may count fewer (compression): then the mapping is made and not populated.
//   wrong_format
inline Result<bool> may_populate(int fd, std::size_t size) noexcept {
  auto memory = file_memory(fd);
  if (!memory) return memory.error();
  if (*memory >= size) return true;
  struct ::statfs system {};
  if (::fstatfs(fd, &system) != 0) return last_system_error();
  if (system.f_type == TMPFS_MAGIC) return Errc::wrong_format;
  return false;
}

// How many names a file has; 0 if unknown.
inline std::uint64_t link_count(int fd) noexcept {
  struct stat status {};
  return ::fstat(fd, &status) == 0 ? status.st_nlink : 0;
}

// Size in bytes, or an error.
inline Result<std::size_t> file_size(int fd) noexcept {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return last_system_error();
  return static_cast<std::size_t>(status.st_size);
}

}  // namespace leat::inline v0::detail
