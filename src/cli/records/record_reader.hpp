// Records from a file descriptor, each as soon as it has come: what lies between two delimiters, or what
// follows its own length.
//
//     RecordReader lines{STDIN_FILENO, limit_bytes};
//     while (auto line = lines.next([] { return stopped(); })) use(*line);
//     if (lines.ended() != RecordReader::Ended::at_end) …
//
// Reads what is there, as much as there is, and never waits for a full buffer.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::cli {

// How one record is told from the next.
struct Framing {
  // Behind each record; the last one may lack it. Empty: before each record lies its length instead, as
  // kLengthSize bytes, the lowest first.
  std::string delimiter = "\n";

  static constexpr std::size_t kLengthSize = 4;
};

// The length before a record.
inline std::uint64_t read_length(const char* at) noexcept {
  std::uint64_t length = 0;
  for (std::size_t i = Framing::kLengthSize; i > 0; --i)
    length = (length << 8) | static_cast<unsigned char>(at[i - 1]);
  return length;
}
inline void append_length(std::uint64_t length, std::string& to) {
  for (std::size_t i = 0; i < Framing::kLengthSize; ++i)
    to += static_cast<char>((length >> (8 * i)) & 0xff);
}

class RecordReader {
 public:
  enum class Ended {
    no,
    at_end,
    stopped,
    too_long,  // A record of long_size() bytes.
    cut,       // The input ended inside a record that has a length.
    error,     // error_number()
  };

  // The size of a record is counted up to here: none can be that long, and the input may have no end.
  static constexpr std::uint64_t kMostCounted = 1 << 30;

  // A record of more than `limit_bytes` ends the reading.
  RecordReader(int fd, std::size_t limit_bytes, Framing framing = {})
      : fd_{fd}, limit_{limit_bytes}, delimiter_{std::move(framing.delimiter)}, buffer_(kRead) {}

  // The next record, without its delimiter or length. Valid until the next call. Nothing at the end: see
  // ended(). `stopped` is asked whenever a signal interrupts the reading.
  template <class Stopped>
  std::optional<std::string_view> next(Stopped&& stopped) {
    while (ended_ == Ended::no) {
      if (auto record = delimiter_.empty() ? take_counted() : take_delimited()) return record;
      if (ended_ == Ended::no && !input_has_ended_) read_more(stopped);
    }
    return std::nullopt;
  }

  Ended ended() const noexcept { return ended_; }
  int error_number() const noexcept { return error_number_; }
  // Of the record that is too long; kMostCounted or more: it has at least so many bytes.
  std::uint64_t long_size() const noexcept { return long_size_; }
  // Whether something was read that no next() has returned.
  bool has_rest() const noexcept { return begin_ != filled_ || dropped_ != 0; }

 private:
  static constexpr std::size_t kRead = 256 * 1024;

  std::optional<std::string_view> take_delimited() {
    const void* found = ::memmem(buffer_.data() + scanned_, filled_ - scanned_, delimiter_.data(),
                                 delimiter_.size());
    if (found != nullptr) {
      const auto end = static_cast<std::size_t>(static_cast<const char*>(found) - buffer_.data());
      return take(end, end + delimiter_.size());
    }
    if (input_has_ended_) {
      if (has_rest()) return take(filled_, filled_);
      ended_ = Ended::at_end;
      return std::nullopt;
    }
    // The last bytes may be the beginning of a delimiter.
    scanned_ = filled_ - std::min(delimiter_.size() - 1, filled_ - begin_);
    if (dropped_ + (scanned_ - begin_) > limit_) {  // Now only its size matters.
      dropped_ += scanned_ - begin_;
      begin_ = scanned_;
      if (dropped_ >= kMostCounted) refuse(dropped_);
    }
    return std::nullopt;
  }

  std::optional<std::string_view> take_counted() {
    const std::size_t there = filled_ - begin_;
    if (there >= Framing::kLengthSize) {
      const std::uint64_t length = read_length(buffer_.data() + begin_);
      if (length > limit_) {
        refuse(length);
        return std::nullopt;
      }
      if (there - Framing::kLengthSize >= length) {
        begin_ += Framing::kLengthSize;
        return take(begin_ + length, begin_ + length);
      }
    }
    if (input_has_ended_) ended_ = there == 0 ? Ended::at_end : Ended::cut;
    return std::nullopt;
  }

  // The record that ends at `end`; the next one begins at `next`.
  std::optional<std::string_view> take(std::size_t end, std::size_t next) {
    const std::uint64_t size = dropped_ + (end - begin_);
    if (size > limit_) {
      refuse(size);
      return std::nullopt;
    }
    const std::string_view record{buffer_.data() + begin_, size};
    begin_ = scanned_ = next;
    return record;
  }

  void refuse(std::uint64_t size) noexcept {
    ended_ = Ended::too_long;
    long_size_ = size;
  }

  template <class Stopped>
  void read_more(Stopped&& stopped) {
    if (begin_ != 0) {  // Move the unfinished record to the front.
      std::memmove(buffer_.data(), buffer_.data() + begin_, filled_ - begin_);
      filled_ -= begin_;
      scanned_ -= begin_;
      begin_ = 0;
    }
    if (filled_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
    while (!stopped()) {
      const ssize_t got = ::read(fd_, buffer_.data() + filled_, buffer_.size() - filled_);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) {  // Whoever shares it may have made it non-blocking.
        pollfd input{fd_, POLLIN, 0};
        ::poll(&input, 1, -1);
        continue;
      }
      if (got < 0) {
        ended_ = Ended::error;
        error_number_ = errno;
      }
      if (got == 0) input_has_ended_ = true;
      if (got > 0) filled_ += static_cast<std::size_t>(got);
      return;
    }
    ended_ = Ended::stopped;
  }

  int fd_;
  std::size_t limit_;
  std::string delimiter_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;      // First byte not returned yet.
  std::size_t scanned_ = 0;    // No delimiter begins between begin_ and here.
  std::size_t filled_ = 0;     // How much of the buffer is in use.
  std::uint64_t dropped_ = 0;  // Bytes before begin_ of a record that is too long.
  bool input_has_ended_ = false;
  Ended ended_ = Ended::no;
  int error_number_ = 0;
  std::uint64_t long_size_ = 0;
};

}  // namespace leat::cli
