// A sync of one file that goes on while its caller does something else.
//
//     BackgroundSync sync;
//     if (!sync.start(file)) …                    // this system cannot: use fdatasync
//     while (!sync.result(false)) …               // not over yet
//
// It is Linux's asynchronous I/O (io_submit(2) with IOCB_CMD_FDSYNC), which has a thread of the kernel wait
// for the disk. A thread of this process would have to survive forks and exits. The system calls are made
// directly, because glibc has no functions for them. Belongs to one thread at a time; not to a forked child.
#pragma once

#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <utility>

#include "leat/base/replace.hpp"
#include "leat/result.hpp"

namespace leat::inline v0::detail {

class BackgroundSync {
 public:
  BackgroundSync() noexcept = default;
  BackgroundSync(BackgroundSync&& other) noexcept
      : context_{std::exchange(other.context_, 0)},
        is_going_on_{std::exchange(other.is_going_on_, false)} {}
  BackgroundSync& operator=(BackgroundSync&& other) noexcept { return replace(*this, other); }
  // Waits for what is going on.
  ~BackgroundSync() {
    if (context_ != 0) ::syscall(SYS_io_destroy, context_);
  }

  // Starts to sync a file, which may be closed meanwhile. One at a time. False if the system cannot:
  // a sandbox forbids it, or too many processes do the same.
  bool start(int file) noexcept {
    if (context_ == 0 && ::syscall(SYS_io_setup, 1, &context_) != 0) {
      context_ = 0;
      return false;
    }
    ::iocb request{};
    request.aio_fildes = static_cast<std::uint32_t>(file);
    request.aio_lio_opcode = IOCB_CMD_FDSYNC;
    ::iocb* const requests[] = {&request};
    is_going_on_ = ::syscall(SYS_io_submit, context_, 1, requests) == 1;
    return is_going_on_;
  }

  // How the sync that was started ended; nothing if it goes on. `waits`: until it is over.
  //   io_error   whatever the reason is; what is on stable storage is unknown
  std::optional<Result<void>> result(bool waits) noexcept {
    if (!is_going_on_) return Result<void>{Error{Errc::io_error, EINVAL}};
    ::io_event event{};
    long found = 0;
    do {
      ::timespec now{};
      found =
          ::syscall(SYS_io_getevents, context_, waits ? 1 : 0, 1, &event, waits ? nullptr : &now);
    } while (found < 0 && errno == EINTR);
    if (found == 0) return std::nullopt;
    is_going_on_ = false;
    if (found < 0) return Result<void>{Error{Errc::io_error, errno}};
    if (event.res != 0) return Result<void>{Error{Errc::io_error, static_cast<int>(-event.res)}};
    return Result<void>{};
  }

 private:
  ::aio_context_t context_ = 0;
  bool is_going_on_ = false;
};

}  // namespace leat::inline v0::detail
