// Things to wait for besides futexes: an eventfd, and other descriptors.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "leat/deadline.hpp"
#include "leat/os/file.hpp"

namespace leat::inline v0::detail {

// An eventfd: its descriptor is readable while its counter is not zero.
class EventFd {
 public:
  EventFd() noexcept : fd_{above_standard_streams(Fd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)})} {}
  explicit operator bool() const noexcept { return static_cast<bool>(fd_); }
  int get() const noexcept { return fd_.get(); }

  void signal() const noexcept {
    const std::uint64_t one = 1;
    (void)!::write(fd_.get(), &one, sizeof(one));
  }
  void drain() const noexcept {
    std::uint64_t count = 0;
    (void)!::read(fd_.get(), &count, sizeof(count));
  }

 private:
  Fd fd_;
};

// The remaining time as a timeout for poll(2): at most one hour; -1 for no deadline.
inline int poll_timeout_ms(const Deadline& deadline) noexcept {
  if (deadline.is_never()) return -1;
  if (deadline.is_immediate()) return 0;
  const std::int64_t left_ms = (deadline.at_ns() - now_ns() + 999'999) / 1'000'000;
  return left_ms <= 0 ? 0 : left_ms > 3'600'000 ? 3'600'000 : static_cast<int>(left_ms);
}

// Sleeps until one of two descriptors (-1: none) is readable, the deadline passes, or a signal handler has run.
enum class Readable : std::uint8_t { none, first, second, interrupted };
inline Readable wait_readable(int first, int second, const Deadline& deadline) noexcept {
  pollfd entries[2] = {{first, POLLIN, 0}, {second, POLLIN, 0}};
  const int ready = ::poll(entries, 2, poll_timeout_ms(deadline));
  if (ready < 0 && errno == EINTR) return Readable::interrupted;
  if (ready <= 0) return Readable::none;
  return entries[0].revents != 0 ? Readable::first : Readable::second;
}

// Whether a descriptor is readable: an eventfd was signalled, or a pipe written to. Never waits.
inline bool is_readable(int fd) noexcept {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

}  // namespace leat::inline v0::detail
