#include "processes.hpp"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

#include "spin.hpp"

namespace leat::bench {
namespace {

void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) noexcept {
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  ::syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

void pin_to(int cpu) {
  if (cpu == kAnyCpu) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) {
    throw system_failure(fmt::format("cannot run on CPU {}", cpu));
  }
}

// Whether a role shares its CPU with another one.
bool is_crowded(const std::vector<Role>& roles, const Role& role) {
  if (roles.size() > usable_cpus().size() && role.cpu == kAnyCpu) return true;
  return std::count_if(roles.begin(), roles.end(), [&](const Role& other) {
           return role.cpu != kAnyCpu && other.cpu == role.cpu;
         }) > 1;
}

}  // namespace

SharedMemory::SharedMemory(std::size_t size_bytes) : size_bytes_{size_bytes} {
  void* address =
      ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    throw system_failure(fmt::format("cannot map {} bytes of shared memory", size_bytes));
  }
  data_ = static_cast<std::byte*>(address);
}

SharedMemory::~SharedMemory() { ::munmap(data_, size_bytes_); }

void SharedMemory::prefault() const {
#ifdef MADV_POPULATE_WRITE
  if (::madvise(data_, size_bytes_, MADV_POPULATE_WRITE) == 0) return;
#endif
  // Kernels before 5.14: touch each page. No other process may be using the memory yet.
  const auto page_size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (std::size_t offset = 0; offset < size_bytes_; offset += page_size) {
    auto* byte = reinterpret_cast<volatile unsigned char*>(data_ + offset);
    *byte = *byte;
  }
}

void SharedMemory::make_read_only() const {
  if (::mprotect(data_, size_bytes_, PROT_READ) != 0) throw system_failure("cannot protect memory");
}

void Barrier::pass(bool may_sleep) noexcept {
  // acquire/release throughout: what a party wrote before meet() is visible to all afterwards.
  const std::uint32_t generation = generation_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == parties_) {
    arrived_.store(0, std::memory_order_relaxed);  // relaxed: the next line publishes it.
    generation_.store(generation + 1, std::memory_order_release);
    futex(generation_, FUTEX_WAKE, INT_MAX);
    return;
  }
  constexpr int kSpinsBeforeSleep = 2000;
  Spin spin;
  for (int i = 0; generation_.load(std::memory_order_acquire) == generation; ++i) {
    if (may_sleep && i >= kSpinsBeforeSleep) {
      futex(generation_, FUTEX_WAIT, generation);
    } else {
      spin.once();
    }
  }
}

struct Child::Message {
  char text[512] = {};
  bool is_not_supported = false;

  void set(const char* what) noexcept { std::strncpy(text, what, sizeof text - 1); }
};

Child::Child(std::string name, int cpu, const std::function<void()>& run)
    : name_{std::move(name)}, message_{std::make_unique<Shared<Message>>()} {
  const pid_t parent = ::getpid();
  std::fflush(nullptr);  // Or the child would have a copy of what is still buffered.
  pid_ = ::fork();
  if (pid_ < 0) throw system_failure("cannot start a process");
  if (pid_ == 0) run_and_exit(parent, cpu, run);
}

void Child::run_and_exit(pid_t parent, int cpu, const std::function<void()>& run) noexcept {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kExitFailed);  // The parent died before the line above.
  // Ctrl-C goes to every process of the terminal; only the parent acts on it, by ending the children.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  try {
    pin_to(cpu);
    run();
    ::_exit(0);
  } catch (const NotSupported& reason) {
    (*message_)->is_not_supported = true;
    (*message_)->set(reason.what());
  } catch (const std::exception& error) {
    (*message_)->set(error.what());
  } catch (...) {
    (*message_)->set("unknown exception");
  }
  ::_exit(kExitFailed);
}

Child::~Child() {
  if (has_ended()) return;
  kill(SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Child::kill(int signal) const noexcept {
  if (!ended_) ::kill(pid_, signal);
}

bool Child::has_ended() noexcept {
  if (!ended_) ended_ = ::waitpid(pid_, &status_, WNOHANG) == pid_;
  return ended_;
}

void Child::check_end() const {
  if (WIFEXITED(status_) && WEXITSTATUS(status_) == 0) return;
  if (WIFSIGNALED(status_)) {
    throw Failure(fmt::format("the {} died: {}", name_, ::strsignal(WTERMSIG(status_))));
  }
  const std::string text = (*message_)->text;
  if ((*message_)->is_not_supported) throw NotSupported(text);
  throw Failure(
      fmt::format("the {} failed: {}", name_,
                  text.empty() ? fmt::format("exit code {}", WEXITSTATUS(status_)) : text));
}

SignalScope::SignalScope() {
  sigemptyset(&watched_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&watched_, signal);
  ::sigprocmask(SIG_BLOCK, &watched_, &before_);
}

SignalScope::~SignalScope() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

void SignalScope::wait(std::chrono::nanoseconds at_most) const {
  const auto ns = std::max<std::int64_t>(at_most.count(), 0);
  const timespec timeout{ns / 1'000'000'000, ns % 1'000'000'000};
  const int signal = ::sigtimedwait(&watched_, nullptr, &timeout);
  if (signal < 0 || signal == SIGCHLD) return;
  throw Failure(128 + signal, fmt::format("stopped: {}", ::strsignal(signal)));
}

void wait_for(const SignalScope& signals, double seconds, const std::function<void()>& check) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>{seconds});
  for (auto now = Clock::now(); now < end; now = Clock::now()) {
    signals.wait(end - now);
    check();
  }
}

void wait_until(const SignalScope& signals, std::chrono::seconds patience, const char* complaint,
                const std::function<bool()>& is_true) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!is_true()) {
    if (std::chrono::steady_clock::now() >= end) throw Failure(complaint);
    signals.wait(std::chrono::milliseconds{5});
  }
}

void run_roles(const std::vector<Role>& roles, std::chrono::seconds time_limit) {
  using Clock = std::chrono::steady_clock;
  const SignalScope signals;
  const Shared<Barrier> barrier(static_cast<std::uint32_t>(roles.size()));
  std::vector<std::unique_ptr<Child>> children;
  for (const Role& role : roles) {
    const bool crowded = is_crowded(roles, role);
    children.push_back(std::make_unique<Child>(role.name, role.cpu, [&] {
      if (crowded) Spin::expect_crowd();
      role.run(*barrier);
    }));
  }

  const auto deadline = Clock::now() + time_limit;
  while (!children.empty()) {
    std::erase_if(children, [](const std::unique_ptr<Child>& child) {
      if (!child->has_ended()) return false;
      child->check_end();
      return true;
    });
    if (children.empty()) break;
    if (Clock::now() >= deadline) {
      throw Failure(fmt::format("not finished after {} s; the {} was still running",
                                time_limit.count(), children.front()->name()));
    }
    signals.wait(deadline - Clock::now());
  }
}

void run_as_threads(const std::vector<Role>& roles) {
  struct State {
    explicit State(const std::vector<Role>& all)
        : roles{all}, barrier{static_cast<std::uint32_t>(all.size())}, running{all.size()} {}
    const std::vector<Role> roles;
    Barrier barrier;
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t running;
    std::string failure;
  };
  // Shared with the threads: if one fails, the others outlive this call.
  const auto state = std::make_shared<State>(roles);
  for (const Role& role : roles) {
    if (is_crowded(roles, role)) Spin::expect_crowd();
  }
  std::vector<std::thread> threads;
  for (const Role& role : state->roles) {
    threads.emplace_back([state, &role] {
      std::string failure;
      try {
        pin_to(role.cpu);
        role.run(state->barrier);
      } catch (const std::exception& error) {
        failure = fmt::format("the {} failed: {}", role.name, error.what());
      }
      const std::lock_guard guard{state->mutex};
      --state->running;
      if (state->failure.empty()) state->failure = failure;
      state->changed.notify_one();
    });
  }
  std::unique_lock lock{state->mutex};
  state->changed.wait(lock, [&] { return state->running == 0 || !state->failure.empty(); });
  const std::string failure = state->failure;
  lock.unlock();
  for (std::thread& thread : threads) failure.empty() ? thread.join() : thread.detach();
  if (!failure.empty()) throw Failure(failure);
}

std::vector<int> usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) throw system_failure("cannot list the CPUs");
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace leat::bench
