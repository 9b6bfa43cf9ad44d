// The log of libleat-lightq: a file with one line for each failure.
//
//     log().open("logs", "program", LOG_EVENT);
//     log().write(LOG_ERROR, "init_producer: the broker at 127.0.0.1:5500 refuses: unauthorized_access");
//
// A file that is full becomes `program_PID.log.1.txt`, that one `….log.2.txt`, and so on, as with LightQ; the oldest of
// kLogFiles is deleted. Any thread may use it.
#pragma once

#include <leat/lightq_api.h>

#include <cstdint>
#include <mutex>
#include <string>

#include "leat/os/os.hpp"

namespace leat::lightq_api {

inline constexpr std::uint64_t kLogFileBytes = 500 << 20;
inline constexpr int kLogFiles = 10;  // With the one that is written to.

class Log {
 public:
  explicit Log(std::uint64_t file_bytes = kLogFileBytes) : file_bytes_{file_bytes} {}

  // False if the file cannot be written; then it stays as it was.
  bool open(const std::string& directory, std::string process, lightq_loglevel level);
  bool set_level(lightq_loglevel level);
  // Does nothing without a file, or below its level.
  void write(lightq_loglevel level, const std::string& sentence) noexcept;

 private:
  void rotate();

  const std::uint64_t file_bytes_;  // No file becomes larger, unless by one line.
  std::mutex mutex_;
  // All protected by mutex_.
  std::string path_;  // Without ".txt".
  os::Fd file_;
  std::uint64_t size_ = 0;  // Of the file.
  lightq_loglevel level_ = LOG_EVENT;
};

// The one of this process.
Log& log();

// Whether the number is one of the enumeration's.
bool is_level(lightq_loglevel level) noexcept;

}  // namespace leat::lightq_api
