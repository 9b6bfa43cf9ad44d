// Shared by model.cpp (the scheduler), fates.cpp (deaths and stops) and
// hooks.cpp (the operations that are scheduled).
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "memory.hpp"
#include "model.hpp"

namespace leat::inline v0::detail::model {

inline constexpr std::uint64_t kNever = ~std::uint64_t{0};
inline constexpr std::size_t kEdges = static_cast<std::size_t>(Edge::known_group) + 1;
inline constexpr std::size_t kSides = 5;
inline constexpr std::size_t kTraceLength = 150;

enum class State { ready, asleep, finished, dead };

struct Fiber {
  std::string name;
  std::function<void()> body;
  ucontext_t beginning{};
  jmp_buf place;  // Where it goes on, once it has begun.
  bool begun = false;
  void* stack = nullptr;
  ThreadView view;
  State state = State::ready;
  bool started = false;
  bool suspended = false;
  std::uint64_t operations = 0;
  std::uint64_t kill_at = kNever;
  std::uint64_t suspend_at = kNever;
  std::uint64_t timers_until_it_goes_on = kNever;  // While suspended. kNever: until resume().
  std::uint64_t futex = 0;                         // Key of the word it sleeps on.
  std::int64_t deadline_ns = 0;
  bool timed = false;
  std::int64_t priority = 0;

  bool runnable() const noexcept { return state == State::ready && !suspended; }
};

struct Lock {
  int fd;
  std::int64_t offset;
  Thread owner;
  bool shared;
};

struct Operation {
  Thread thread;
  const char* what;
  int edge;
  std::uint64_t key;
  std::uint64_t value;
  std::size_t age;
  const void* caller;
};

// How one execution makes its choices; drawn from its seed.
struct Strategy {
  bool by_priority = false;               // If false, a random walk.
  std::uint64_t switch_one_in = 1;        // For the random walk.
  std::set<std::uint64_t> change_points;  // Steps at which the running thread gets lowest priority.
  std::uint64_t stale_from = 0;           // Between these steps loads return the oldest store.
  std::uint64_t stale_until = 0;
  std::uint64_t stale_one_in = 0;     // 0: loads return the latest store.
  std::uint64_t spurious_one_in = 0;  // Spurious wake-ups, and timers that run while others could.
  bool late_timers = false;           // By up to seconds, as on a busy machine.
};

std::size_t choose_age(std::size_t count);

struct Machine {
  Options options;
  Result result;
  Memory memory{choose_age};
  std::vector<Fiber> fibers;
  std::vector<void*> stacks;  // Reused by later executions.
  jmp_buf home;               // Where run() goes on.
  jmp_buf after_body;         // Target of a failure outside of threads.
  Thread running = kSetup;
  ThreadView setup_view;
  View lock_view;  // Passed from each lock call to the next ones.
  std::vector<Lock> locks;
  std::set<std::uint64_t> holes;  // Keys of file pages without memory.
  Strategy strategy;
  std::uint64_t random_state = 0;
  std::uint64_t seed = 0;
  std::uint64_t steps = 0;
  std::vector<Thread> doomed;  // These die together, before step `doom`.
  std::uint64_t doom = kNever;
  std::int64_t clock_ns = 0;
  std::int64_t lowest_priority = 0;
  bool copying = false;
  const void* copy_goes_on = nullptr;  // Where the last load or store ended.
  bool abandoned = false;
  bool left_behind = false;  // Some fiber ended without running its destructors.
  bool no_membarrier = false;
  bool refuses_membarriers = false;
  bool weak[kEdges][kSides] = {};
  std::uint64_t uses[kEdges][kSides] = {};
  std::array<Operation, kTraceLength> trace{};
  std::uint64_t traced = 0;
};
Machine& machine();

void schedule(bool yielding = false);  // Called before each operation: others may run first.
Thread choose_next(bool yielding);     // kSetup if the run is over.
void switch_to(Thread next);
void wake(Fiber& fiber);
void meet_fate(Thread self);  // Called before its operation: it, or others, may die or stop.
bool let_stopped_go_on();     // Called when nobody can run. False if nobody is stopped.
void count_timer();           // A timer ran out; stopped threads may continue.
ThreadView& current_view();
void record(const char* what, int edge, Side side, const void* word, std::uint64_t value,
            const void* caller);  // For traces.

}  // namespace leat::inline v0::detail::model
