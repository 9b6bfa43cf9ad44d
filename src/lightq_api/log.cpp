#include "lightq_api/log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <ctime>
#include <utility>

namespace leat::lightq_api {
namespace {

constexpr const char* kNames[] = {"trace", "debug",    "info",  "event", "warning",
                                  "error", "critical", "alert", "emerg"};

std::string time_text() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  std::tm local{};
  ::localtime_r(&now.tv_sec, &local);
  char text[64];
  const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  return {text, size};
}

}  // namespace

bool is_level(lightq_loglevel level) noexcept {
  return static_cast<unsigned>(level) <= static_cast<unsigned>(LOG_OFF);
}

bool Log::open(const std::string& directory, std::string process, lightq_loglevel level) {
  if (!is_level(level)) return false;
  process.erase(0, process.rfind('/') + 1);
  const std::string path =
      directory + "/" + process + "_" + std::to_string(::getpid()) + ".log.txt";
  detail::Fd file{
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (!file) return false;
  const std::lock_guard lock{mutex_};
  std::swap(file_, file);
  level_ = level;
  return true;
}

bool Log::set_level(lightq_loglevel level) {
  if (!is_level(level)) return false;
  const std::lock_guard lock{mutex_};
  level_ = level;
  return true;
}

void Log::write(lightq_loglevel level, const std::string& sentence) noexcept {
  try {
    const std::lock_guard lock{mutex_};
    if (!file_ || level < level_ || level >= LOG_OFF) return;
    const std::string line =
        "[" + time_text() + "] [" + kNames[static_cast<unsigned>(level)] + "] " + sentence + "\n";
    // A log that cannot be written stops nobody.
    [[maybe_unused]] const ::ssize_t written = ::write(file_.get(), line.data(), line.size());
  } catch (...) {
  }
}

Log& log() {
  static Log one;
  return one;
}

}  // namespace leat::lightq_api
