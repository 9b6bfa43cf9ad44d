// Lines from a file descriptor, each as soon as it has come.
//
//     LineReader reader{STDIN_FILENO, limit_bytes};
//     while (auto line = reader.next([] { return stopped(); })) use(*line);
//
// Reads what is there, as much as there is, and never waits for a full buffer.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace leat::cli {

class LineReader {
 public:
  enum class Ended { no, at_end, stopped, line_too_long, error };

  // Lines of more than `limit_bytes` end the reading.
  LineReader(int fd, std::size_t limit_bytes) : fd_{fd}, limit_{limit_bytes}, buffer_(kRead) {}

  // The next line without its newline; the last one may lack it. Valid until the next call. Nothing
  // at the end: see ended(). `stopped` is asked whenever a signal interrupts the reading.
  template <class Stopped>
  std::optional<std::string_view> next(Stopped&& stopped) {
    while (true) {
      const auto* newline = static_cast<const char*>(
          std::memchr(buffer_.data() + scanned_, '\n', filled_ - scanned_));
      if (newline != nullptr) {
        const auto end = static_cast<std::size_t>(newline - buffer_.data());
        return take(end, end + 1);
      }
      scanned_ = filled_;
      if (filled_ - begin_ > limit_) {
        ended_ = Ended::line_too_long;
        return std::nullopt;
      }
      if (ended_ == Ended::at_end) {
        if (begin_ == filled_) return std::nullopt;
        return take(filled_, filled_);
      }
      if (!read_more(stopped)) return std::nullopt;
    }
  }

  Ended ended() const noexcept { return ended_; }
  int error_number() const noexcept { return error_number_; }
  // Whether something was read that no next() has returned.
  bool has_rest() const noexcept { return begin_ != filled_; }

 private:
  static constexpr std::size_t kRead = 256 * 1024;

  std::optional<std::string_view> take(std::size_t end, std::size_t next) {
    const std::string_view line{buffer_.data() + begin_, end - begin_};
    begin_ = scanned_ = next;
    if (line.size() <= limit_) return line;
    ended_ = Ended::line_too_long;
    return std::nullopt;
  }

  template <class Stopped>
  bool read_more(Stopped&& stopped) {
    if (begin_ != 0) {  // The unfinished line to the front.
      std::memmove(buffer_.data(), buffer_.data() + begin_, filled_ - begin_);
      filled_ -= begin_;
      scanned_ -= begin_;
      begin_ = 0;
    }
    if (filled_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
    while (true) {
      if (stopped()) {
        ended_ = Ended::stopped;
        return false;
      }
      const ssize_t got = ::read(fd_, buffer_.data() + filled_, buffer_.size() - filled_);
      if (got > 0) {
        filled_ += static_cast<std::size_t>(got);
        return true;
      }
      if (got == 0) {
        ended_ = Ended::at_end;
        return true;
      }
      if (errno == EINTR) continue;
      ended_ = Ended::error;
      error_number_ = errno;
      return false;
    }
  }

  int fd_;
  std::size_t limit_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;    // First byte not returned yet.
  std::size_t scanned_ = 0;  // No newline between begin_ and here.
  std::size_t filled_ = 0;
  Ended ended_ = Ended::no;
  int error_number_ = 0;
};

}  // namespace leat::cli
