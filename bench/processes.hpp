// Processes of one measurement: each role runs in its own forked process, pinned to a CPU, and
// leaves its result in memory that all of them share.
//
//     Shared<std::uint64_t> elapsed_ns;
//     run_roles({{"writer", 0, [&](Barrier& start) { start.meet(); *elapsed_ns = write_all(); }},
//                {"reader", 1, [&](Barrier& start) { start.meet(); read_all(); }}},
//               std::chrono::seconds(60));
//
// No role outlives the measurement: all are killed when one fails, when the time is up, on Ctrl-C,
// and by the kernel when the parent dies.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "failure.hpp"

namespace leat::bench {

inline constexpr std::size_t kCacheLine = 64;
inline constexpr int kAnyCpu = -1;

// Nanoseconds of a clock that all processes of the machine share.
std::uint64_t now_ns() noexcept;
// CPU time that this thread has used.
std::uint64_t thread_cpu_ns() noexcept;
// CPU time that all threads of this process have used.
std::uint64_t process_cpu_ns() noexcept;

inline void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// One look in vain at a word that another role will change.
class Spin {
 public:
  void once() noexcept {
    relax();
    once_without_pause();
  }
  // The same after a look that takes as long as a pause by itself.
  void once_without_pause() noexcept {
    if (++count_ % looks_per_yield_ == 0) yield();
  }

  // For this process: roles share CPUs, so the one waited for may need this very CPU.
  static void expect_crowd() noexcept { looks_per_yield_ = 1; }

 private:
  static void yield() noexcept;
  // Yielding now and then costs nothing and helps if something else runs on the CPU.
  static inline std::uint32_t looks_per_yield_ = 4096;
  std::uint32_t count_ = 0;
};

// Memory that this process and all that it forks share; zero at first.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t size_bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const noexcept { return data_; }
  std::size_t size_bytes() const noexcept { return size_bytes_; }
  // Maps every page into the calling process, so that no fault falls into the time measured.
  void prefault() const;
  // In the calling process from now on.
  void make_read_only() const;

 private:
  std::byte* data_;
  std::size_t size_bytes_;
};

// One T in memory of its own.
template <class T>
class Shared {
 public:
  template <class... Arguments>
  explicit Shared(Arguments&&... arguments)
      : memory_{sizeof(T)}, value_{new(memory_.data()) T{std::forward<Arguments>(arguments)...}} {}

  T& operator*() const noexcept { return *value_; }
  T* operator->() const noexcept { return value_; }

 private:
  SharedMemory memory_;
  T* value_;
};

// Where all roles meet before the time starts; as often as they like. Lives in shared memory.
class Barrier {
 public:
  explicit Barrier(std::uint32_t parties) noexcept : parties_{parties} {}

  // Returns when all parties have called it. Late ones are waited for asleep; afterwards all spin
  // together for a moment, so that nobody is still waking up when the first one goes on.
  void meet() noexcept {
    pass(true);
    pass(false);
  }

 private:
  void pass(bool may_sleep) noexcept;

  std::uint32_t parties_;  // Constant.
  std::atomic<std::uint32_t> arrived_{0};
  std::atomic<std::uint32_t> generation_{0};
};

struct Role {
  std::string name;  // In messages: "the writer failed: …".
  int cpu = kAnyCpu;
  std::function<void(Barrier&)> run;  // Throws to fail the whole measurement.
};

// One forked process. Killed and reaped when it goes out of scope.
class Child {
 public:
  // `name` and `cpu` as in Role; `run` may throw, the sentence ends up in failure().
  Child(std::string name, int cpu, const std::function<void()>& run);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const noexcept { return pid_; }
  const std::string& name() const noexcept { return name_; }
  void kill(int signal) const noexcept;
  // True once it has ended; does not wait.
  bool has_ended() noexcept;
  // Why it did not end well; empty if it did. Only once it has ended.
  std::string failure() const;

 private:
  struct Message;
  [[noreturn]] void run_and_exit(pid_t parent, int cpu, const std::function<void()>& run) noexcept;

  std::string name_;
  std::unique_ptr<Shared<Message>> message_;
  pid_t pid_ = -1;
  int status_ = -1;  // Of waitpid, once ended.
  bool ended_ = false;
};

// Holds back the signals that end a program while it lives, so that a measurement can end its
// children and remove its files first. wait() reports them.
class SignalScope {
 public:
  SignalScope();
  ~SignalScope();
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;

  // Returns when a child changed or the time is up; throws Failure when asked to end.
  void wait(std::chrono::nanoseconds at_most) const;

 private:
  sigset_t watched_;
  sigset_t before_;
};

// Runs every role to its end. Throws Failure if one failed, or after the time limit.
void run_roles(const std::vector<Role>& roles, std::chrono::seconds time_limit);

// The same with threads of this process, which must be a role's: a failure is thrown while the other
// threads still run, and ends them with the process.
void run_as_threads(const std::vector<Role>& roles);

// CPUs that this process may use, lowest first.
std::vector<int> usable_cpus();

// Which role runs where: role i on cpus[i modulo their number]; nowhere in particular if empty.
struct Placement {
  std::vector<int> cpus;
  int cpu(std::size_t role) const noexcept {
    return cpus.empty() ? kAnyCpu : cpus[role % cpus.size()];
  }
};

}  // namespace leat::bench
