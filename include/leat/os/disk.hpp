// Every call that touches files of a data directory. Tests put another Disk in its place: one that
// records calls and replays a power failure, or one that fails on request.
//
//     Disk& disk = Disk::system();
//     auto file = disk.open(directory, "checkpoint-0", O_RDWR | O_CREAT, 0600);
//     disk.write(file->get(), bytes, 0);
//     disk.sync(file->get());
//
// Any thread may call any function. All of them go on after a signal.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "leat/os/background_sync.hpp"
#include "leat/os/directory.hpp"
#include "leat/os/file.hpp"
#include "leat/result.hpp"

namespace leat::inline v0::detail {

// Whether an error of a read means that the disk does not return the data, or that the file system finds its own
// structures damaged. Other errors (no permission, too many open files) say nothing about the file.
inline bool is_unreadable(Error error) noexcept {
  const int reason = error.system_error;
  return reason == EIO || reason == EUCLEAN || reason == EBADMSG || reason == ENODATA;
}

class Disk {
 public:
  static constexpr std::size_t kMaxParts = 4;  // of one write()

  // The operating system's own files.
  static Disk& system() noexcept { return *in_use(); }
  // Puts another one in its place, for tests; null: puts it back. Before any topic is open.
  static void replace_system(Disk* other) noexcept;

  virtual ~Disk() = default;

  // Opens a regular file of a directory; never follows a link. `wrong_format` if the name belongs
  // to something else.
  virtual Result<Fd> open(int directory, const char* name, int flags, ::mode_t mode) noexcept {
    return open_file_at(directory, name, flags, mode);
  }

  using Part = std::span<const std::byte>;

  // Writes the parts one after the other, all of them, or fails; after an error any part of it may
  // have been written.
  virtual Result<void> write(int file, std::span<const Part> parts, std::uint64_t at) noexcept {
    const SignalsBlocked blocked;  // Exceeding RLIMIT_FSIZE is an error, not a signal.
    const bool was_pending = is_pending(SIGXFSZ);
    std::array<::iovec, kMaxParts> left{};
    const std::size_t count = std::min(parts.size(), kMaxParts);
    for (std::size_t i = 0; i < count; ++i)
      left[i] = {const_cast<std::byte*>(parts[i].data()), parts[i].size()};
    for (std::size_t i = 0; i < count;) {
      if (left[i].iov_len == 0) {
        ++i;
        continue;
      }
      const ::ssize_t written =
          ::pwritev(file, &left[i], static_cast<int>(count - i), static_cast<::off_t>(at));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) {
        const Error error = written < 0 ? last_system_error() : Error{Errc::io_error, EIO};
        if (error.system_error == EFBIG && !was_pending) take_pending(SIGXFSZ);
        return error;
      }
      at += static_cast<std::uint64_t>(written);
      auto done = static_cast<std::size_t>(written);
      for (; i < count && done >= left[i].iov_len; ++i) done -= left[i].iov_len;
      if (i < count)
        left[i] = {static_cast<std::byte*>(left[i].iov_base) + done, left[i].iov_len - done};
    }
    return {};
  }
  Result<void> write(int file, Part data, std::uint64_t at) noexcept {
    return write(file, std::span{&data, 1}, at);
  }

  // Reads up to `size` bytes. Fewer only at the end of the file.
  virtual Result<std::size_t> read(int file, std::byte* to, std::size_t size,
                                   std::uint64_t at) noexcept {
    std::size_t total = 0;
    while (total < size) {
      const ::ssize_t done =
          ::pread(file, to + total, size - total, static_cast<::off_t>(at + total));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return last_system_error();
      if (done == 0) break;
      total += static_cast<std::size_t>(done);
    }
    return total;
  }

  // As read(), and goes on behind blocks that the disk does not return, not even on a second try: `is_whole` becomes
  // false, and the bytes of those blocks are 0. Behind many such blocks in a row more and more are passed over at
  // once, because each may take seconds.
  Result<std::size_t> read_around(int file, std::byte* to, std::size_t size, std::uint64_t at,
                                  bool& is_whole) noexcept {
    auto all = read(file, to, size, at);
    if (all || !is_unreadable(all.error())) return all;
    auto file_end = this->size(file);
    if (!file_end) return file_end.error();
    set_read_ahead(file, false);
    auto blocks = read_blocks(file, to, at, std::min(at + size, *file_end), is_whole);
    set_read_ahead(file, true);
    return blocks;
  }

  // Whether a read of a file may fetch more than was asked for. Not while bad blocks are looked for.
  virtual void set_read_ahead(int file, bool is_on) noexcept {
    (void)::posix_fadvise(file, 0, 0, is_on ? POSIX_FADV_NORMAL : POSIX_FADV_RANDOM);
  }

  // Drops what the page cache has of a range, except what is not written yet.
  virtual void drop_cached(int file, std::uint64_t at, std::uint64_t size) noexcept {
    (void)::posix_fadvise(file, static_cast<::off_t>(at), static_cast<::off_t>(size),
                          POSIX_FADV_DONTNEED);
  }

  // Copies the bytes from `at` to `end` to the start of another file; fewer if the file ends before. What cannot be
  // read becomes 0, which is damage in the copy, too.
  Result<void> copy(int from, std::uint64_t at, std::uint64_t end, int to) {
    std::vector<std::byte> buffer(std::min<std::uint64_t>(end - at, std::uint64_t{1} << 20));
    for (std::uint64_t done = 0; at + done < end;) {
      const std::uint64_t size = std::min<std::uint64_t>(buffer.size(), end - at - done);
      bool is_whole = true;
      auto bytes = read_around(from, buffer.data(), size, at + done, is_whole);
      if (!bytes) return bytes.error();
      if (*bytes == 0) break;
      if (auto written = write(to, Part{buffer.data(), *bytes}, done); !written) return written;
      done += *bytes;
    }
    return {};
  }

  virtual Result<std::uint64_t> size(int file) noexcept {
    auto found = file_size(file);
    if (!found) return found.error();
    return std::uint64_t{*found};
  }

  // Where the next bytes are that somebody wrote: at `at` or behind it; the file's end if there are none. What lies
  // before is a hole, or room that was only reserved, and reads as zeros. `at` where the file system cannot tell.
  virtual std::uint64_t next_data(int file, std::uint64_t at) noexcept {
    const ::off_t data = ::lseek(file, static_cast<::off_t>(at), SEEK_DATA);
    if (data >= 0) return static_cast<std::uint64_t>(data);
    if (errno != ENXIO) return at;
    auto end = file_size(file);
    return end ? std::max<std::uint64_t>(at, *end) : at;
  }

  // Reserves blocks, so that a full disk is an error here. Nothing happens where the file system
  // can't: then a write may fail.
  virtual Result<void> allocate(int file, std::uint64_t size) noexcept {
    auto done = change_file([&] { return ::fallocate(file, 0, 0, static_cast<::off_t>(size)); });
    if (!done && done.error() == Errc::unsupported) return {};
    return done;
  }

  virtual Result<void> truncate(int file, std::uint64_t size) noexcept {
    return change_file([&] { return ::ftruncate(file, static_cast<::off_t>(size)); });
  }

  // Returns once the file's data, and its size, are on stable storage. After an error it is unknown
  // what is, and a second call may wrongly succeed: never retry.
  //   io_error   whatever the reason is, a full disk too: no error of a sync may pass for another
  virtual Result<void> sync(int file) noexcept {
    if (::fdatasync(file) != 0) return Error{Errc::io_error, errno};
    return {};
  }

  // Starts what sync() does, without waiting. False if the system cannot: then sync() is needed.
  virtual bool start_sync(BackgroundSync& sync, int file) noexcept { return sync.start(file); }
  // How that ended; nothing if it goes on. `waits`: until it is over. Errors as for sync().
  virtual std::optional<Result<void>> end_sync(BackgroundSync& sync, int /*file*/,
                                               bool waits) noexcept {
    return sync.result(waits);
  }

  // sync() for the names in a directory.
  virtual Result<void> sync_directory(int directory) noexcept {
    if (::fsync(directory) != 0) return Error{Errc::io_error, errno};
    return {};
  }

  // Starts to write a range without waiting for it. Promises nothing.
  virtual void start_writing(int file, std::uint64_t at, std::uint64_t size) noexcept {
    (void)::sync_file_range(file, static_cast<::off_t>(at), static_cast<::off_t>(size),
                            SYNC_FILE_RANGE_WRITE);
  }

  // `exists` if the new name is taken.
  virtual Result<void> rename(int directory, const char* from, const char* to) noexcept {
    return rename_at(directory, from, to);
  }

  // Gives a file a second name in another directory. Some file systems cannot.
  virtual Result<void> link(int from_directory, const char* from, int to_directory,
                            const char* to) noexcept {
    return link_at(from_directory, from, to_directory, to);
  }

  virtual Result<void> make_directory(int directory, const char* name) noexcept {
    return make_directory_at(directory, name);
  }

  virtual Result<void> delete_file(int directory, const char* name) noexcept {
    if (::unlinkat(directory, name, 0) != 0) return last_system_error();
    return {};
  }

 private:
  static Disk*& in_use() noexcept;

  Result<std::size_t> read_blocks(int file, std::byte* to, std::uint64_t at, std::uint64_t end,
                                  bool& is_whole) noexcept {
    constexpr std::uint64_t kBlock = 4096;
    // The page cache may hold so much as one piece, and reads all of it again for any block of it. So the piece of a
    // bad block is dropped, once. Other pieces stay: they may be all that is left if the whole disk fails.
    constexpr std::uint64_t kPiece = std::uint64_t{2} << 20;
    constexpr unsigned kMany = 16;
    unsigned bad = 0;  // blocks in a row
    std::uint64_t next = at;
    std::uint64_t dropped_end = 0;
    while (next < end) {
      std::byte* const place = to + (next - at);
      std::uint64_t block_end = std::min(end, (next / kBlock + 1) * kBlock);
      auto bytes = read(file, place, block_end - next, next);
      const bool is_dropped = next < dropped_end;
      if (!bytes && is_unreadable(bytes.error()) && (bad < kMany || !is_dropped)) {
        const std::uint64_t piece = next / kPiece * kPiece;
        if (!is_dropped) drop_cached(file, piece, kPiece);
        dropped_end = piece + kPiece;
        bytes = read(file, place, block_end - next, next);
      }
      if (bytes) {
        if (*bytes == 0) break;
        next += *bytes;
        bad = 0;
        continue;
      }
      if (!is_unreadable(bytes.error())) return bytes;
      is_whole = false;
      if (++bad > kMany)
        block_end = std::min(end, block_end + (kBlock << std::min(bad - kMany, 10U)));
      std::fill_n(place, block_end - next, std::byte{0});
      next = block_end;
    }
    return static_cast<std::size_t>(next - std::min(next, at));
  }
};

inline Disk*& Disk::in_use() noexcept {
  static Disk system;
  static Disk* disk = &system;
  return disk;
}

inline void Disk::replace_system(Disk* other) noexcept {
  static Disk* const system = in_use();
  in_use() = other != nullptr ? other : system;
}

}  // namespace leat::inline v0::detail
