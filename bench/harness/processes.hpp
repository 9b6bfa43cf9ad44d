// The processes of one measurement: each role runs in its own forked process, pinned to a CPU, and
// leaves its result in memory that all of them share.
//
//     Shared<std::uint64_t> elapsed_ns;
//     run_roles({{"writer", 0, [&](Barrier& start) { start.meet(); *elapsed_ns = write_all(); }},
//                {"reader", 1, [&](Barrier& start) { start.meet(); read_all(); }}},
//               std::chrono::seconds(60));
//
// No role outlives the measurement: all are killed when one fails, when the time is up and on Ctrl-C,
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
#include <utility>
#include <vector>

#include "bench/failure.hpp"

namespace leat::bench {

inline constexpr std::size_t kCacheLine = 64;
inline constexpr int kAnyCpu = -1;

// Memory shared by this process and all that it forks; zero at first.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t size_bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const noexcept { return data_; }
  std::size_t size_bytes() const noexcept { return size_bytes_; }
  // Maps every page into the calling process, so that no page fault falls into the measured time.
  void prefault() const;
  // For the calling process, from now on.
  void make_read_only() const;

 private:
  std::byte* data_;
  std::size_t size_bytes_;
};

// A T in shared memory.
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

// Where all roles wait for each other; can be used any number of times. Lives in shared memory.
class Barrier {
 public:
  explicit Barrier(std::uint32_t parties) noexcept : parties_{parties} {}

  // Returns once all parties have called it. Parties sleep while they wait for a late one; at the end
  // all spin together for a moment, so that nobody is still waking up when the first one returns.
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

// One forked process. Killed and reaped by the destructor.
class Child {
 public:
  // `name` and `cpu` as in Role; what `run` throws is passed on by check_end().
  Child(std::string name, int cpu, const std::function<void()>& run);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const noexcept { return pid_; }
  const std::string& name() const noexcept { return name_; }
  void kill(int signal) const noexcept;
  // True once it has ended; does not wait.
  bool has_ended() noexcept;
  // Throws Failure if it did not end well, or the NotSupported that ended it. Only once it has ended.
  void check_end() const;

 private:
  struct Message;
  [[noreturn]] void run_and_exit(pid_t parent, int cpu, const std::function<void()>& run) noexcept;

  std::string name_;
  std::unique_ptr<Shared<Message>> message_;
  pid_t pid_ = -1;
  int status_ = -1;  // From waitpid, once it has ended.
  bool ended_ = false;
};

// While it lives, signals that would end the program are held back, so that a measurement can end its
// children and remove its files first. wait() reports them.
class SignalScope {
 public:
  SignalScope();
  ~SignalScope();
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;

  // Returns when a child has changed state or the time is up; throws Failure when asked to end.
  void wait(std::chrono::nanoseconds at_most) const;

 private:
  sigset_t watched_;
  sigset_t before_;
};

// Lets children work. `check` is called whenever one has changed state, and throws if it should not have.
void wait_for(const SignalScope& signals, double seconds, const std::function<void()>& check);

// Waits for a condition. Throws Failure with the complaint if it does not become true in time.
void wait_until(const SignalScope& signals, std::chrono::seconds patience, const char* complaint,
                const std::function<bool()>& is_true);

// Runs every role to its end. Throws Failure if one failed, or after the time limit; NotSupported if a
// role threw that.
void run_roles(const std::vector<Role>& roles, std::chrono::seconds time_limit);

// The same with threads of this process, which must itself be a role: a failure is thrown while the
// other threads are still running, and the end of the process ends them.
void run_as_threads(const std::vector<Role>& roles);

// CPUs that this process may use, lowest first.
std::vector<int> usable_cpus();

// Role i runs on CPU cpus[i % cpus.size()]; on any CPU if there are none.
struct Placement {
  std::vector<int> cpus;
  int cpu(std::size_t role) const noexcept {
    return cpus.empty() ? kAnyCpu : cpus[role % cpus.size()];
  }
};

}  // namespace leat::bench
