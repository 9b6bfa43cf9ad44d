// A deterministic scheduler for the real sources, built with LEAT_MODEL: threads are fibers of one
// thread, every atomic operation, futex call and lock is a point where another may go on, and loads
// return whatever memory.hpp allows. One seed gives one execution, always the same.
//
//     const auto result = model::explore({.name = "message passing"}, [](model::Execution& run) {
//       std::uint64_t data = 0, ready = 0;
//       run.thread("writer", [&] {
//         store_relaxed(data, 1);
//         store_release<Edge::record_ready>(ready, 1);
//       });
//       run.thread("reader", [&] {
//         if (load_acquire<Edge::record_ready>(ready) == 1) model::check(load_relaxed(data) == 1, "stale");
//       });
//       if (!run.run()) return;  // Failed: the threads stay where they are, for ever.
//     });
//     EXPECT_TRUE(model::holds(result));
//
// `LEAT_SEED=n` repeats the execution with that seed only; `LEAT_EXECUTIONS=f` runs f times as many.
// model::weaken(edge) makes the operations of one edge relaxed in this execution: EXPECT_TRUE(
// model::breaks(result)) then shows that the edge is needed and that the test would notice.
//
// Threads that are killed, or that a failed execution leaves behind, never run on: no destructor of
// theirs runs. Their locks, descriptors and mappings are released as the kernel does.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "leat/base/atomic.hpp"

namespace leat::inline v0::detail::model {

enum class Side { all, load, store, rmw, fence };

struct Options {
  const char* name = "";
  int executions = 2000;
  std::uint64_t seed = 1;            // Of the first execution; the others count on.
  std::uint64_t max_steps = 20'000;  // An execution that takes more is abandoned.
  double abandoned_allowed = 0;      // Part of the executions; more is a failure.
  bool needless_timeouts_fail =
      false;  // A timer that ends a wait when nobody can run is a failure.
};

struct Result {
  std::string name;
  bool failed = false;
  std::string message;  // Why, with the seed.
  std::string trace;    // The last operations before.
  int executions = 0;
  int abandoned = 0;
  std::uint64_t steps = 0;
};

testing::AssertionResult holds(const Result& result);
testing::AssertionResult breaks(const Result& result);

using Thread = std::size_t;

class Execution {
 public:
  Thread thread(std::string name, std::function<void()> body);
  // Runs until every thread is done, dead, or suspended (or waits for one that is). False: failed or
  // abandoned; leave at once. More threads may be added afterwards, and run() called again.
  bool run();

  // Before its operation number `operation`, counted from 0, or from the last count_operations().
  void kill_at(Thread thread, std::uint64_t operation);
  void suspend_at(Thread thread, std::uint64_t operation);

  // What may become of threads, as the seed has it. Of the next operations, counted as above, it dies
  // before one of so many; if it has fewer, it may live.
  void may_die(Thread thread, std::uint64_t within);
  // It stands still there, and goes on when nobody else can: at once, or some timers of theirs later.
  void may_stop(Thread thread, std::uint64_t within);
  // All at one moment, wherever each is then, as a process group that is killed: before one of so many
  // steps of the execution. The stopped die, too.
  void may_die_together(std::vector<Thread> threads, std::uint64_t within);

  bool finished(Thread thread) const;
  bool killed(Thread thread) const;
};

using Body = std::function<void(Execution&)>;
Result explore(const Options& options, const Body& body);

// ---- From anywhere inside an execution -----------------------------------------------------------

// Ends the execution as a failure unless `condition`.
void check(bool condition, const std::string& message);
std::uint64_t random(std::uint64_t limit);  // 0 … limit - 1
void weaken(Edge edge, Side side = Side::all);
void drop_membarriers();    // They do nothing, silently: what a missing one would do.
void refuse_membarriers();  // They fail, as in a sandbox; publishers outside of it do not know.

// As a signal from outside; a suspended thread keeps its locks.
void kill(Thread thread);
void suspend(Thread thread);
void resume(Thread thread);
Thread current();  // kSetup outside of threads.
inline constexpr Thread kSetup = static_cast<Thread>(-1);
void count_operations();  // The current thread's next operation is number 0.
void yield();             // A point where others may run.
std::int64_t clock_ns();  // Virtual time.

// Reads bytes as the memory model allows, so that a missing order shows as stale bytes.
std::string read_checked(const void* data, std::size_t size);

// How often operations of an edge ran, over all executions: a test that weakens an operation that
// never ran shows nothing.
std::uint64_t uses(Edge edge, Side side);

}  // namespace leat::inline v0::detail::model
