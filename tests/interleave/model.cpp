// The scheduler of the model (see model.hpp): switches between fibers at
// operations, as a seed determines.
#include "model.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "leat/base/assert.hpp"
#include "machine.hpp"

extern "C" const char __executable_start;  // Defined by the linker.

namespace leat::inline v0::detail::model {

Machine& machine() {
  static Machine& the_machine = *new Machine;
  return the_machine;
}

ThreadView& current_view() {
  Machine& m = machine();
  return m.running == kSetup ? m.setup_view : m.fibers[m.running].view;
}

namespace {

constexpr std::size_t kStackSize = 256 * 1024;

std::uint64_t next_random() {
  std::uint64_t z = (machine().random_state += 0x9e37'79b9'7f4a'7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58'476d'1ce4'e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d0'49bb'1331'11ebULL;
  return z ^ (z >> 31);
}
bool one_in(std::uint64_t n) { return n != 0 && random(n) == 0; }

Strategy draw_strategy() {
  Strategy strategy;
  strategy.by_priority = random(5) < 2;
  strategy.switch_one_in = std::uint64_t{1} << random(6);
  if (strategy.by_priority) {
    // Positions of all magnitudes, because the length of the execution is not known.
    for (std::uint64_t i = 1 + random(4); i > 0; --i) {
      strategy.change_points.insert(random(std::uint64_t{8} << random(9)));
    }
  }
  if (one_in(3)) {
    // For a while, stores stay invisible to other threads unless something forces them out.
    strategy.stale_from = random(std::uint64_t{8} << random(9));
    strategy.stale_until = strategy.stale_from + random(std::uint64_t{8} << random(7));
  } else {
    strategy.stale_one_in = std::array<std::uint64_t, 4>{0, 2, 4, 16}[random(4)];
  }
  strategy.spurious_one_in = one_in(4) ? 64 : 0;
  strategy.late_timers = one_in(4);
  return strategy;
}

}  // namespace

std::size_t choose_age(std::size_t count) {
  const Machine& m = machine();
  if (count == 1 || m.running == kSetup) return 0;
  if (m.steps >= m.strategy.stale_from && m.steps < m.strategy.stale_until) return count - 1;
  if (!one_in(m.strategy.stale_one_in)) return 0;
  return random(count);
}

// ---- Traces and failures ------------------------------------------------------------------------

void record(const char* what, int edge, Side side, const void* word, std::uint64_t value,
            const void* caller) {
  Machine& m = machine();
  if (edge >= 0) ++m.uses[edge][static_cast<std::size_t>(side)];
  if (m.copying && m.traced > 0) --m.traced;  // Shows only the last access of a copy.
  m.trace[m.traced++ % kTraceLength] = {m.running, what,
                                        edge,      word == nullptr ? 0 : m.memory.key_of(word),
                                        value,     side == Side::load ? m.memory.last_age() : 0,
                                        caller};
}

namespace {

const char* edge_name(int edge) {
  static constexpr std::array<const char*, kEdges> kNames = {
      "record_ready",    "claim",       "intent",     "withdraw",     "segment_map",
      "segment_open",    "retire",      "overwrite",  "slot",         "sleeping",
      "cursor",          "exclusive",   "group",      "group_cursor", "in_flight",
      "in_flight_place", "key_slot",    "archiver",   "sync",         "segment_memory",
      "topic_state",     "mapped_once", "known_group"};
  static_assert(kNames.back() != nullptr);
  return edge < 0 ? "-" : kNames.at(static_cast<std::size_t>(edge));
}

std::string describe_trace() {
  Machine& m = machine();
  std::string text;
  for (std::uint64_t i = m.traced < kTraceLength ? 0 : m.traced - kTraceLength; i < m.traced; ++i) {
    const Operation& op = m.trace[i % kTraceLength];
    char line[200];
    std::snprintf(line, sizeof(line), "  %-12s %-12s %-12s %s%010lx = %lx%s",
                  op.thread == kSetup ? "setup" : m.fibers[op.thread].name.c_str(), op.what,
                  edge_name(op.edge), (op.key >> 63) != 0 ? "file " : "", op.key & ~(1UL << 63),
                  op.value, op.age != 0 ? " (stale)" : "");
    text += line;
    if (op.caller != nullptr) {  // For addr2line -i -e.
      std::snprintf(line, sizeof(line), "  @%lx",
                    reinterpret_cast<std::uintptr_t>(op.caller) -
                        reinterpret_cast<std::uintptr_t>(&__executable_start) - 1);
      text += line;
    }
    text += '\n';
  }
  return text;
}

void record_failure(const std::string& message) {
  Machine& m = machine();
  if (m.result.failed) return;
  m.result.failed = true;
  m.result.message =
      std::string{m.options.name} + ": " + message + " (LEAT_SEED=" + std::to_string(m.seed) + ")";
  if (m.result.abandoned == 0 || m.running != kSetup) m.result.trace = describe_trace();
}

void fail(const std::string& message) {
  record_failure(message);
  if (machine().running == kSetup) ::longjmp(machine().after_body, 1);
  machine().left_behind = true;
  switch_to(kSetup);  // Does not return.
}

// A crash or a failed assertion in a thread of the model is a failure like any other. Outside of
// threads, a crash ends the process.
void on_crash(int number) {
  Machine& m = machine();
  if (m.running == kSetup) {
    ::signal(number, SIG_DFL);
    return;
  }
  record_failure(std::string{"signal "} + ::strsignal(number));
  m.left_behind = true;
  m.running = kSetup;
  ::_longjmp(m.home, 1);
}

void catch_crashes() {
  static std::array<char, 64 * 1024> stack;
  const stack_t signal_stack{.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
  ::sigaltstack(&signal_stack, nullptr);
  struct sigaction action {};
  action.sa_handler = on_crash;
  action.sa_flags = SA_ONSTACK | SA_NODEFER;  // on_crash() does not return to restore the mask.
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT}) ::sigaction(number, &action, nullptr);
}

}  // namespace

// ---- The scheduler ------------------------------------------------------------------------------

// Switches from the current fiber to another one or, with kSetup, to run(). Returns when the
// current fiber is chosen again. By setjmp, because swapcontext makes a system call each time.
[[gnu::noinline]] void switch_to(Thread next) {
  Machine& m = machine();
  const Thread previous = m.running;
  if (next == previous) return;
  m.running = next;
  if (::_setjmp(previous == kSetup ? m.home : m.fibers[previous].place) != 0) return;
  if (next == kSetup) ::_longjmp(m.home, 1);
  Fiber& fiber = m.fibers[next];
  if (fiber.begun) ::_longjmp(fiber.place, 1);
  fiber.begun = true;
  ::setcontext(&fiber.beginning);
}

void wake(Fiber& fiber) {
  fiber.state = State::ready;
  fiber.futex = 0;
}

namespace {

// The sleeper whose deadline comes first, or null.
Fiber* first_timer() {
  Fiber* first = nullptr;
  for (Fiber& fiber : machine().fibers) {
    if (fiber.state != State::asleep || fiber.suspended || !fiber.timed) continue;
    if (first == nullptr || fiber.deadline_ns < first->deadline_ns) first = &fiber;
  }
  return first;
}

void run_timer(Fiber& fiber) {
  Machine& m = machine();
  m.clock_ns = std::max(m.clock_ns, fiber.deadline_ns);
  if (m.strategy.late_timers && one_in(4)) m.clock_ns += std::int64_t{1} << random(33);
  wake(fiber);
  m.memory.see_everything(fiber.view);  // After so much time no store is still invisible.
  count_timer();
}

// Called when nobody can run: lets the first timer run out. False if there is
// none; then the run is over or has failed.
bool wake_somebody() {
  Machine& m = machine();
  if (Fiber* sleeper = first_timer()) {
    if (m.options.needless_timeouts_fail) {
      record_failure("only a timer woke " + sleeper->name);
      return false;
    }
    if (++m.steps > m.options.max_steps) {
      m.abandoned = true;
      return false;
    }
    run_timer(*sleeper);
    return true;
  }
  if (let_stopped_go_on()) return true;
  std::string sleepers;
  bool suspended = false;  // A suspended thread might be the one that would wake them.
  for (const Fiber& fiber : m.fibers) {
    const bool lives = fiber.state == State::ready || fiber.state == State::asleep;
    suspended = suspended || (lives && fiber.suspended);
    if (fiber.state == State::asleep) sleepers += " " + fiber.name;
  }
  if (!sleepers.empty() && !suspended) {
    record_failure("lost wake-up: nobody will wake" + sleepers);
  }
  return false;
}

// Spurious wake-ups, and timers that run out while others could run.
void disturb_sleepers() {
  const Machine& m = machine();
  if (m.strategy.spurious_one_in == 0 || m.options.needless_timeouts_fail) return;
  for (Fiber& fiber : machine().fibers) {
    if (fiber.state == State::asleep && one_in(m.strategy.spurious_one_in)) wake(fiber);
  }
  Fiber* sleeper = first_timer();
  if (sleeper != nullptr && one_in(m.strategy.spurious_one_in)) run_timer(*sleeper);
}

Thread choose_by_priority(bool can_stay, bool yielding) {
  Machine& m = machine();
  if (can_stay && (yielding || m.strategy.change_points.contains(m.steps) || one_in(1024))) {
    m.fibers[m.running].priority = --m.lowest_priority;
  }
  Thread best = kSetup;
  for (Thread i = 0; i < m.fibers.size(); ++i) {
    if (!m.fibers[i].runnable()) continue;
    if (best == kSetup || m.fibers[i].priority > m.fibers[best].priority) best = i;
  }
  return best;
}

Thread choose_at_random(bool can_stay, bool yielding) {
  const Machine& m = machine();
  if (can_stay && !yielding && !one_in(m.strategy.switch_one_in)) return m.running;
  for (std::size_t skip = random(m.fibers.size());; ++skip) {
    const Thread next = skip % m.fibers.size();
    if (m.fibers[next].runnable()) return next;
  }
}

}  // namespace

// The thread that runs next; kSetup if the run is over.
Thread choose_next(bool yielding) {
  const Machine& m = machine();
  while (std::none_of(m.fibers.begin(), m.fibers.end(), std::mem_fn(&Fiber::runnable))) {
    if (!wake_somebody()) return kSetup;
  }
  disturb_sleepers();
  const bool can_stay = m.running != kSetup && m.fibers[m.running].runnable();
  return m.strategy.by_priority ? choose_by_priority(can_stay, yielding)
                                : choose_at_random(can_stay, yielding);
}

// Called before each operation.
void schedule(bool yielding) {
  Machine& m = machine();
  m.copying = false;
  m.clock_ns += 20;
  if (m.running == kSetup) return;
  const Thread self = m.running;
  if (++m.steps > m.options.max_steps) {
    m.abandoned = m.left_behind = true;
    switch_to(kSetup);
  }
  meet_fate(self);
  switch_to(choose_next(yielding));
  m.copying = false;
}

namespace {

void fiber_main() {
  Machine& m = machine();
  m.fibers[m.running].body();
  m.fibers[m.running].state = State::finished;
  switch_to(choose_next(false));
}

void* take_stack() {
  Machine& m = machine();
  if (m.stacks.empty()) {
    char* memory = static_cast<char*>(
        ::mmap(nullptr, kStackSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(memory, 4096, PROT_NONE);
    m.stacks.push_back(memory);
  }
  void* stack = m.stacks.back();
  m.stacks.pop_back();
  return stack;
}

void prepare_context(Fiber& fiber) {
  fiber.stack = take_stack();
  ::getcontext(&fiber.beginning);
  fiber.beginning.uc_stack = {.ss_sp = fiber.stack, .ss_flags = 0, .ss_size = kStackSize};
  ::makecontext(&fiber.beginning, fiber_main, 0);
}

// ---- One execution ------------------------------------------------------------------------------

std::set<int> open_descriptors() {
  std::set<int> open;
  DIR* directory = ::opendir("/proc/self/fd");
  while (const dirent* entry = ::readdir(directory)) {
    const int fd = std::atoi(entry->d_name);
    if (entry->d_name[0] != '.' && fd != ::dirfd(directory)) open.insert(fd);
  }
  ::closedir(directory);
  return open;
}

void begin_execution(std::uint64_t seed) {
  Machine& m = machine();
  m.seed = seed;
  m.random_state = seed * 0x2545'f491'4f6c'dd1dULL;
  m.memory.reset();
  m.fibers.clear();
  m.fibers.reserve(64);  // Contexts must not move in memory.
  m.setup_view = {};
  m.lock_view = {};
  m.locks.clear();
  m.holes.clear();
  m.strategy = draw_strategy();
  m.steps = 0;
  m.clock_ns = 1'000'000'000;
  m.copy_goes_on = nullptr;
  m.lowest_priority = 0;
  m.doomed.clear();
  m.doom = kNever;
  m.abandoned = m.left_behind = m.no_membarrier = m.refuses_membarriers = false;
  m.traced = 0;
  std::memset(m.weak, 0, sizeof(m.weak));
}

void end_execution(const std::set<int>& descriptors) {
  Machine& m = machine();
  if (m.abandoned && m.result.abandoned == 0) m.result.trace = describe_trace();
  for (Fiber& fiber : m.fibers) {
    m.stacks.push_back(fiber.stack);
    if (fiber.state != State::finished) m.left_behind = true;
  }
  if (m.left_behind) {
    m.memory.unmap_all();
    for (const int fd : open_descriptors()) {
      if (!descriptors.contains(fd)) ::close(fd);
    }
  }
  ++m.result.executions;
  m.result.abandoned += m.abandoned ? 1 : 0;
  m.result.steps += m.steps;
}

// A failure outside of threads ends the execution, too, without running destructors.
[[gnu::noinline]] void run_body(const Body& body) {
  Machine& m = machine();
  if (setjmp(m.after_body) == 0) {
    Execution execution;
    body(execution);
  } else {
    m.left_behind = true;
  }
}

}  // namespace

// ---- For tests ----------------------------------------------------------------------------------

Thread Execution::thread(std::string name, std::function<void()> body) {
  Machine& m = machine();
  LEAT_ASSERT(m.fibers.size() < m.fibers.capacity());
  Fiber& fiber = m.fibers.emplace_back();
  fiber.name = std::move(name);
  fiber.body = std::move(body);
  fiber.priority = static_cast<std::int64_t>(random(1U << 30));
  prepare_context(fiber);
  fiber.view.now = m.setup_view.now;
  return m.fibers.size() - 1;
}

bool Execution::run() {
  Machine& m = machine();
  if (m.result.failed || m.abandoned) return false;
  for (Fiber& fiber : m.fibers) {
    if (fiber.started) continue;  // Resuming a thread makes no new stores visible to it.
    fiber.view.now.join(m.setup_view.now);
    fiber.started = true;
  }
  switch_to(choose_next(false));
  for (const Fiber& fiber : m.fibers) m.setup_view.now.join(fiber.view.now);
  return !m.result.failed && !m.abandoned;
}

Result explore(const Options& options, const Body& body) {
  Machine& m = machine();
  m.options = options;
  m.result = {};
  m.result.name = options.name;
  std::uint64_t first = options.seed;
  auto executions = static_cast<std::uint64_t>(options.executions);
  if (const char* factor = std::getenv("LEAT_EXECUTIONS"))
    executions *= std::strtoull(factor, nullptr, 10);
  if (const char* seed = std::getenv("LEAT_SEED")) {
    first = std::strtoull(seed, nullptr, 10);
    executions = 1;
  }
  catch_crashes();
  const std::set<int> descriptors = open_descriptors();
  for (std::uint64_t i = 0; i < executions && !m.result.failed; ++i) {
    begin_execution(first + i);
    run_body(body);
    end_execution(descriptors);
  }
  if (m.result.abandoned > options.abandoned_allowed * m.result.executions) {
    record_failure("too many executions did not end: " + std::to_string(m.result.abandoned) +
                   " of " + std::to_string(m.result.executions));
  }
  return m.result;
}

testing::AssertionResult holds(const Result& result) {
  if (!result.failed) return testing::AssertionSuccess();
  return testing::AssertionFailure() << result.message << "\n" << result.trace;
}

testing::AssertionResult breaks(const Result& result) {
  if (result.failed) {
    if (std::getenv("LEAT_SEED") != nullptr)
      std::printf("%s\n%s", result.message.c_str(), result.trace.c_str());
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure()
         << result.name << ": none of " << result.executions << " executions failed, "
         << result.abandoned << " did not end";
}

void check(bool condition, const std::string& message) {
  if (!condition) fail(message);
}

std::uint64_t random(std::uint64_t limit) { return next_random() % limit; }

void weaken(Edge edge, Side side) {
  machine().weak[static_cast<std::size_t>(edge)][static_cast<std::size_t>(side)] = true;
}
void drop_membarriers() { machine().no_membarrier = true; }
void refuse_membarriers() { machine().refuses_membarriers = true; }

Thread current() { return machine().running; }
void count_operations() {
  if (current() != kSetup) machine().fibers[current()].operations = 0;
}
void yield() { schedule(true); }
std::int64_t clock_ns() { return machine().clock_ns; }

std::string read_checked(const void* data, std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0, step = 0; i < size; i += step) {
    const char* from = static_cast<const char*>(data) + i;
    if (is_middle(i, size, step)) {
      std::memcpy(&bytes[i], from, step);
      continue;
    }
    step = size - i >= 8 && reinterpret_cast<std::uintptr_t>(from) % 8 == 0 ? 8 : 1;
    const std::uint64_t value = load(from, step, std::memory_order_relaxed, kNoEdge);
    std::memcpy(&bytes[i], &value, step);
  }
  return bytes;
}

std::uint64_t uses(Edge edge, Side side) {
  return machine().uses[static_cast<std::size_t>(edge)][static_cast<std::size_t>(side)];
}

}  // namespace leat::inline v0::detail::model
