// The log of libleat-lightq: a file with one line for each failure.
//
//     log().open("logs", "program", LOG_EVENT);
//     log().write(LOG_ERROR, "init_producer: the broker at 127.0.0.1:5500 refuses: unauthorized_access");
//
// Any thread may use it.
#pragma once

#include <leat/lightq_api.h>

#include <mutex>
#include <string>

#include "leat/os/fd.hpp"

namespace leat::lightq_api {

class Log {
 public:
  // False if the file cannot be written; then it stays as it was.
  bool open(const std::string& directory, std::string process, lightq_loglevel level);
  bool set_level(lightq_loglevel level);
  // Does nothing without a file, or below its level.
  void write(lightq_loglevel level, const std::string& sentence) noexcept;

 private:
  std::mutex mutex_;
  // Both protected by mutex_.
  detail::Fd file_;
  lightq_loglevel level_ = LOG_EVENT;
};

// The one of this process.
Log& log();

// Whether the number is one of the enumeration's.
bool is_level(lightq_loglevel level) noexcept;

}  // namespace leat::lightq_api
