// fork() for a test whose child allocates memory while the test has other threads.
//
// AddressSanitizer's allocator does not take its locks around a fork(). If another thread is just allocating, the
// child inherits a lock that nobody releases, and hangs. A thread that sleeps holds none. (The C library's own
// allocator takes its locks.)
#pragma once

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace leat {

// Whether all threads of this process but the calling one sleep in the kernel.
inline bool other_threads_sleep() {
  for (const auto& thread : std::filesystem::directory_iterator{"/proc/self/task"}) {
    if (thread.path().filename() == std::to_string(::gettid())) continue;
    std::string line;  // "number (name) state ..."
    std::getline(std::ifstream{thread.path() / "stat"}, line);
    const std::size_t name_end = line.rfind(')');
    if (name_end != std::string::npos && line.compare(name_end, 3, ") S") != 0) return false;
  }
  return true;
}

// As fork(), when all other threads sleep, or after 0.2 s.
inline ::pid_t calm_fork() {
#if LEAT_TEST_SANITIZED
  const auto late = std::chrono::steady_clock::now() + std::chrono::milliseconds{200};
  while (!other_threads_sleep() && std::chrono::steady_clock::now() < late)
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
#endif
  return ::fork();
}

}  // namespace leat
