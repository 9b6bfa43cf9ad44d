// Children, shared memory and directories for tests with several processes.
//
//     Child child{[&]() -> int { CHILD_CHECK(work()); return 0; }};
//     EXPECT_EQ(child.wait(5s), Child::Ended{0});
//
// A child begins as a copy of the test without its threads; it must open its own handles. It dies
// with the test, and never returns into GoogleTest.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <string>
#include <utility>

namespace leat::testing {

using namespace std::chrono_literals;

// How long anything may take before a test calls it stuck. The promises are in milliseconds; the
// machine may be busy with something else.
inline constexpr std::chrono::seconds kPatience{10};

// In a child: says what failed and ends it with status 1.
#define CHILD_CHECK(condition)                                                              \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      std::fprintf(stderr, "child: %s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      ::_exit(1);                                                                           \
    }                                                                                       \
  } while (false)

// The same with the error of a leat::Result.
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
      : pid_{std::exchange(other.pid_, -1)}, state_{other.state_}, detail_{other.detail_} {}
  Child& operator=(Child&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(state_, other.state_);
    std::swap(detail_, other.detail_);
    return *this;
  }
  ~Child() {
    if (pid_ > 0 && !has_ended()) {
      signal(SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }

  ::pid_t pid() const noexcept { return pid_; }
  void signal(int number) const noexcept { ::kill(pid_, number); }
  void go_on() noexcept {
    if (has_ended()) return;  // Perhaps by itself, just before it was to be stopped.
    state_ = State::running;
    signal(SIGCONT);
  }

  // Looks what became of it: running, stopped, exited or killed. Never waits.
  State look() {
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

  // Until it stops or ends; `meanwhile` is called between looks.
  State wait(
      std::chrono::milliseconds patience = kPatience,
      const std::function<void()>& meanwhile = [] {}) {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (look() == State::running) {
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
  // Of a file in /proc that says what the kernel knows of it.
  std::string first_line(const char* name) const {
    std::string line;
    std::getline(std::ifstream{"/proc/" + std::to_string(pid_) + "/" + name}, line);
    return line;
  }

  static ::pid_t start(const std::function<int()>& run) {
    std::fflush(nullptr);
    const ::pid_t parent = ::getpid();
    const ::pid_t pid = ::fork();
    if (pid != 0) return pid;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // 0: the parent is in another PID namespace, and alive for all we can tell.
    if (const ::pid_t seen = ::getppid(); seen != parent && seen != 0) ::_exit(1);
    ::_exit(run());
  }

  ::pid_t pid_ = -1;
  State state_ = State::running;
  int detail_ = 0;
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
    return new (at) T;  // Zero already; T must not say otherwise.
  }
  T* value_;
};

// A directory of this test's own, removed at the end by the process that made it.
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

// Calls `done` until it returns true. False if that takes longer than the patience of tests.
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
