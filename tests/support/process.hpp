// Child processes, shared memory and temporary directories for tests with several processes.
//
//     Child child{[&]() -> int { CHILD_CHECK(work()); return 0; }};
//     EXPECT_EQ(child.wait(5s), Child::Ended{0});
//
// A child is a fork of the test, without its other threads; it must open its own topics. It is
// killed if the test dies, and never returns into GoogleTest.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <string>
#include <utility>

#include "support/calm_fork.hpp"

namespace leat::testing {

using namespace std::chrono_literals;

// How long anything may take before a test considers it stuck. The promised times are milliseconds,
// but the machine may be busy.
inline constexpr std::chrono::seconds kPatience{10};
// The same for a process that was killed: only the kernel can be late then. On a virtual machine it took more than 20 s to
// unmap the files of processes with a sanitizer.
inline constexpr std::chrono::seconds kPatienceWithKernel{100};

inline bool is_child = false;

}  // namespace leat::testing

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
// Asked by the search for leaks at exit(). In a child it would wait for ever if another thread was in the allocator when
// the parent forked.
extern "C" [[gnu::used]] inline int
__lsan_is_turned_off() {  // NOLINT(bugprone-reserved-identifier)
  return leat::testing::is_child ? 1 : 0;
}
#endif
#endif

namespace leat::testing {

// In a child: if the condition is false, prints it and exits with status 1.
#define CHILD_CHECK(condition)                                                              \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      std::fprintf(stderr, "child: %s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      ::_exit(1);                                                                           \
    }                                                                                       \
  } while (false)

// The same for a leat::Result; prints its error.
#define CHILD_CHECK_OK(result)                                                    \
  do {                                                                            \
    if (!(result)) {                                                              \
      std::fprintf(stderr, "child: %s:%d: %s: %s\n", __FILE__, __LINE__, #result, \
                   ::leat::describe((result).error()).c_str());                   \
      ::_exit(1);                                                                 \
    }                                                                             \
  } while (false)

class Child {
 public:
  enum class State { running, stopped, exited, killed, late };

  explicit Child(const std::function<int()>& run) : pid_{start(run)} {}
  Child(Child&& other) noexcept
      : pid_{std::exchange(other.pid_, -1)},
        state_{other.state_},
        detail_{other.detail_},
        is_condemned_{other.is_condemned_} {}
  Child& operator=(Child&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(state_, other.state_);
    std::swap(detail_, other.detail_);
    std::swap(is_condemned_, other.is_condemned_);
    return *this;
  }
  ~Child() {
    if (pid_ > 0 && !has_ended()) {
      signal(SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }

  ::pid_t pid() const noexcept { return pid_; }
  void signal(int number) noexcept {
    if (number == SIGKILL) is_condemned_ = true;
    ::kill(pid_, number);
  }
  void go_on() noexcept {
    if (has_ended()) return;  // It may have ended just before the SIGSTOP.
    state_ = State::running;
    signal(SIGCONT);
  }

  // The child's current state: running, stopped, exited or killed. Does not wait.
  State poll() {
    if (has_ended()) return state_;
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG | WUNTRACED) != pid_) return state_;
    if (WIFSTOPPED(status)) {
      state_ = State::stopped;
    } else if (WIFEXITED(status)) {
      state_ = State::exited;
      detail_ = WEXITSTATUS(status);
    } else {
      state_ = State::killed;
      detail_ = WTERMSIG(status);
    }
    return state_;
  }

  // Waits until it stops or ends; calls `meanwhile` repeatedly. After SIGKILL it waits longer.
  State wait(
      std::chrono::milliseconds patience = kPatience,
      const std::function<void()>& meanwhile = [] {}) {
    if (is_condemned_)
      patience = std::max<std::chrono::milliseconds>(patience, kPatienceWithKernel);
    const auto until = std::chrono::steady_clock::now() + patience;
    while (poll() == State::running) {
      if (std::chrono::steady_clock::now() > until) return State::late;
      meanwhile();
      ::usleep(200);
    }
    return state_;
  }

  bool has_ended() const noexcept { return state_ == State::exited || state_ == State::killed; }
  bool succeeded() const noexcept { return state_ == State::exited && detail_ == 0; }
  bool was_killed() const noexcept { return state_ == State::killed && detail_ == SIGKILL; }
  std::string describe() const {
    switch (state_) {
      case State::running: return "runs: " + first_line("stat") + ", in " + first_line("wchan");
      case State::stopped: return "is stopped";
      case State::exited: return "ended with status " + std::to_string(detail_);
      case State::killed: return "was killed by signal " + std::to_string(detail_);
      case State::late: break;
    }
    return "is late";
  }

 private:
  // The first line of a file in the child's /proc directory.
  std::string first_line(const char* name) const {
    std::string line;
    std::getline(std::ifstream{"/proc/" + std::to_string(pid_) + "/" + name}, line);
    return line;
  }

  static ::pid_t start(const std::function<int()>& run) {
    std::fflush(nullptr);
    const ::pid_t parent = ::getpid();
    const ::pid_t pid = calm_fork();
    if (pid != 0) return pid;
    is_child = true;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // 0 means that the parent is in another PID namespace; then assume that it is alive.
    if (const ::pid_t seen = ::getppid(); seen != parent && seen != 0) ::_exit(1);
    ::_exit(run());
  }

  ::pid_t pid_ = -1;
  State state_ = State::running;
  int detail_ = 0;
  bool is_condemned_ = false;  // SIGKILL was sent.
};

// A T in memory that children share with the test. Starts as zero bytes.
template <class T>
class Shared {
 public:
  Shared() : value_{map()} {}
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() { ::munmap(value_, sizeof(T)); }
  T* operator->() const noexcept { return value_; }
  T& operator*() const noexcept { return *value_; }

 private:
  static T* map() {
    void* at =
        ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) std::abort();
    return new (at) T;  // The memory is zero; T must have no initializers of its own.
  }
  T* value_;
};

// A directory for one test; the process that made it removes it at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() : owner_{::getpid()} {
    char path[] = "/dev/shm/leat-test-XXXXXX";
    if (::mkdtemp(path) == nullptr) std::abort();
    path_ = path;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (owner_ == ::getpid()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  ::pid_t owner_;
};

// Calls `done` until it returns true. Returns false if that takes longer than `patience`.
inline bool eventually(const std::function<bool()>& done,
                       std::chrono::milliseconds patience = kPatience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > until) return done();
    ::usleep(200);
  }
  return true;
}

}  // namespace leat::testing
