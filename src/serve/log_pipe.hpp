// A log on a stderr that is a pipe or a socket: whoever reads it may have stopped reading, and must not stop the broker.
#pragma once

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/sinks/base_sink.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <mutex>
#include <string_view>

namespace leat::broker {

// Drops lines as long as there is no room for one, and then says how many. Any thread. If other processes write to the
// same pipe, one of them may take the room before this does; then it waits.
class LogPipe : public spdlog::sinks::base_sink<std::mutex> {
 public:
  static bool is_stderr() noexcept {
    struct stat status {};
    return ::fstat(STDERR_FILENO, &status) == 0 &&
           (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (!has_room()) {
      ++dropped_;
      return;
    }
    if (dropped_ != 0) {
      write(
          fmt::format("{} lines are missing here: whoever reads the log was too slow\n", dropped_));
      dropped_ = 0;
      if (!has_room()) {
        ++dropped_;
        return;
      }
    }
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    write({line.data(), line.size()});
  }
  void flush_() override {}

 private:
  // Of a pipe that is ready: PIPE_BUF bytes.
  static bool has_room() noexcept {
    pollfd one{STDERR_FILENO, POLLOUT, 0};
    return ::poll(&one, 1, 0) == 1;
  }
  static void write(std::string_view line) noexcept {
    if (line.size() <= PIPE_BUF) {
      (void)!::write(STDERR_FILENO, line.data(), line.size());
    } else if (::write(STDERR_FILENO, line.data(), PIPE_BUF - 1) > 0 && has_room()) {
      (void)!::write(STDERR_FILENO, "\n", 1);
    }
  }

  std::uint64_t dropped_ = 0;
};

}  // namespace leat::broker
