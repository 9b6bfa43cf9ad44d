// A deterministic scheduler for the real sources, built with LEAT_MODEL. Threads are fibers of one
// thread; at every atomic operation, futex call and lock another thread may continue; and loads
// return whatever memory.hpp allows. A seed always gives the same execution.
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
//       if (!run.run()) return;  // Failed: the threads never run again.
//     });
//     EXPECT_TRUE(model::holds(result));
//
// `LEAT_SEED=n` runs only the execution with that seed; `LEAT_EXECUTIONS=f` runs f times as many.
// model::weaken(edge) makes the operations of one edge relaxed in this execution.
// EXPECT_TRUE(model::breaks(result)) then shows that the edge is needed and that the test notices.
//
// Threads that are killed, or that a failed execution leaves behind, never
// continue, and their destructors do not run. Their locks, descriptors and
// mappings are released as the kernel would do it.
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
  std::uint64_t seed = 1;            // Of the first execution; the next ones have 2, 3, …
  std::uint64_t max_steps = 20'000;  // An execution that takes more is abandoned.
  double abandoned_allowed = 0;      // Fraction of the executions; more is a failure.
  // A wait that ends only by its timer, when nobody else can run, is a failure.
  bool needless_timeouts_fail = false;
};

struct Result {
  std::string name;
  bool failed = false;
  std::string message;  // Why, with the seed.
  std::string trace;    // The last operations before the failure.
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
  // Runs until every thread is done, dead, suspended, or waits for a suspended one. False if the
  // execution failed or was abandoned; then the body must return at once. Afterwards more threads
  // may be added, and run() called again.
  bool run();

  // Takes effect before the thread's operation number `operation`, counted
  // from 0, or from the last count_operations().
  void kill_at(Thread thread, std::uint64_t operation);
  void suspend_at(Thread thread, std::uint64_t operation);

  // The seed decides. The thread dies before one of its first `within` operations, counted as
  // above; if it makes fewer, it may live.
  void may_die(Thread thread, std::uint64_t within);
  // The thread stops there. It continues when no other thread can run, or
  // after some timers of others.
  void may_stop(Thread thread, std::uint64_t within);
  // All die at the same moment, like a process group that is killed: before one of the execution's
  // next `within` steps. Stopped ones die, too.
  void may_die_together(std::vector<Thread> threads, std::uint64_t within);

  bool finished(Thread thread) const;
  bool killed(Thread thread) const;
};

using Body = std::function<void(Execution&)>;
Result explore(const Options& options, const Body& body);

// ---- From anywhere inside an execution ----------------------------------------------------------

// Ends the execution as a failure unless `condition`.
void check(bool condition, const std::string& message);
std::uint64_t random(std::uint64_t limit);  // 0 … limit - 1
void weaken(Edge edge, Side side = Side::all);
void drop_membarriers();    // They succeed without effect, as if the call were missing.
void refuse_membarriers();  // They fail, as in a sandbox; publishers do not know that.

// Like signals from outside; a suspended thread keeps its locks.
void kill(Thread thread);
void suspend(Thread thread);
void resume(Thread thread);
Thread current();  // kSetup outside of threads.
inline constexpr Thread kSetup = static_cast<Thread>(-1);
void count_operations();  // The current thread's next operation is number 0.
void yield();             // A point where others may run.
std::int64_t clock_ns();  // Virtual time.

// Reads bytes through the memory model, so that a missing order shows as stale bytes.
std::string read_checked(const void* data, std::size_t size);

// How often operations of an edge ran, in all executions. A test that weakens an operation that
// never ran shows nothing.
std::uint64_t uses(Edge edge, Side side);

}  // namespace leat::inline v0::detail::model
