#include "log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
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

// The file with that number; 0 is the one that is written to.
std::string name_of(const std::string& path, int number) {
  return path + (number == 0 ? "" : "." + std::to_string(number)) + ".txt";
}

os::Fd open_file(const std::string& path) {
  return os::Fd{::open(name_of(path, 0).c_str(),
                       O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600)};
}

}  // namespace

bool is_level(lightq_loglevel level) noexcept {
  return static_cast<unsigned>(level) <= static_cast<unsigned>(LOG_OFF);
}

bool Log::open(const std::string& directory, std::string process, lightq_loglevel level) {
  if (!is_level(level)) return false;
  process.erase(0, process.rfind('/') + 1);
  std::string path = directory + "/" + process + "_" + std::to_string(::getpid()) + ".log";
  os::Fd file = open_file(path);
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return false;
  const std::lock_guard lock{mutex_};
  std::swap(path_, path);
  std::swap(file_, file);
  size_ = static_cast<std::uint64_t>(status.st_size);  // It may have been there before.
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
    if (size_ != 0 && size_ + line.size() > file_bytes_) rotate();
    // A log that cannot be written stops nobody.
    const ::ssize_t written = ::write(file_.get(), line.data(), line.size());
    if (written > 0) size_ += static_cast<std::uint64_t>(written);
  } catch (...) {
  }
}

// If it fails, the log goes on in the file that it has, for as long again.
void Log::rotate() {
  size_ = 0;
  for (int number = kLogFiles - 1; number > 0; --number)
    (void)std::rename(name_of(path_, number - 1).c_str(), name_of(path_, number).c_str());
  if (os::Fd file = open_file(path_)) std::swap(file_, file);
}

Log& log() {
  static Log one;
  return one;
}

}  // namespace leat::lightq_api
