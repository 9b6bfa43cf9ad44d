// How threads of the model die, stop and continue. If this were wrong, the tests that kill
// processes at any operation would prove nothing.
#include <fcntl.h>

#include <algorithm>

#include "machine.hpp"

namespace leat::inline v0::detail::model {
namespace {

// A stopped thread continues at the latest after this many timers of other threads have run out.
constexpr std::uint64_t kPatience = 24;

bool lives(const Fiber& fiber) {
  return fiber.state == State::ready || fiber.state == State::asleep;
}

void kill_the_doomed() {
  Machine& m = machine();
  m.doom = kNever;
  const bool dies_itself = std::find(m.doomed.begin(), m.doomed.end(), m.running) != m.doomed.end();
  for (const Thread thread : m.doomed) {
    if (thread != m.running) kill(thread);
  }
  if (dies_itself) kill(m.running);  // Does not return.
}

}  // namespace

void meet_fate(Thread self) {
  Machine& m = machine();
  Fiber& fiber = m.fibers[self];
  const std::uint64_t operation = fiber.operations++;
  if (m.steps >= m.doom) kill_the_doomed();
  if (operation == fiber.kill_at) kill(self);
  if (operation == fiber.suspend_at) fiber.suspended = true;
}

namespace {

// Resumes one stopped thread: one that is due after the timers of others or, with `at_once`, any.
// False if there is none.
bool let_one_go_on(bool at_once) {
  Machine& m = machine();
  for (Thread thread = 0; thread < m.fibers.size(); ++thread) {
    Fiber& fiber = m.fibers[thread];
    if (!lives(fiber) || !fiber.suspended || fiber.timers_until_it_goes_on == kNever) continue;
    if (!at_once && fiber.timers_until_it_goes_on-- != 0) continue;
    const bool is_doomed =
        m.doom != kNever && std::find(m.doomed.begin(), m.doomed.end(), thread) != m.doomed.end();
    if (is_doomed && random(2) == 0) {
      kill_the_doomed();
    } else {
      resume(thread);
    }
    return true;
  }
  return false;
}

}  // namespace

void count_timer() { (void)let_one_go_on(false); }
bool let_stopped_go_on() { return let_one_go_on(true); }

void Execution::kill_at(Thread thread, std::uint64_t operation) {
  machine().fibers.at(thread).kill_at = operation;
}
void Execution::suspend_at(Thread thread, std::uint64_t operation) {
  machine().fibers.at(thread).suspend_at = operation;
}
void Execution::may_die(Thread thread, std::uint64_t within) { kill_at(thread, random(within)); }
void Execution::may_stop(Thread thread, std::uint64_t within) {
  suspend_at(thread, random(within));
  machine().fibers.at(thread).timers_until_it_goes_on = random(kPatience);
}
void Execution::may_die_together(std::vector<Thread> threads, std::uint64_t within) {
  machine().doomed = std::move(threads);
  machine().doom = machine().steps + random(within);
}
bool Execution::finished(Thread thread) const {
  return machine().fibers.at(thread).state == State::finished;
}
bool Execution::killed(Thread thread) const {
  return machine().fibers.at(thread).state == State::dead;
}

void kill(Thread thread) {
  Machine& m = machine();
  Fiber& fiber = m.fibers.at(thread);
  if (!lives(fiber)) return;
  record("kill", kNoEdge, Side::all, nullptr, thread, nullptr);
  fiber.state = State::dead;
  m.left_behind = true;
  for (const Lock& lock : m.locks) {
    if (lock.owner != thread) continue;
    struct flock unlock {};
    unlock.l_type = F_UNLCK;
    unlock.l_whence = SEEK_SET;
    unlock.l_start = lock.offset;
    unlock.l_len = 1;
    ::fcntl(lock.fd, F_OFD_SETLK, &unlock);
  }
  m.lock_view.join(fiber.view.now);
  if (thread == m.running) switch_to(choose_next(false));
}

void suspend(Thread thread) {
  machine().fibers.at(thread).suspended = true;
  if (thread == machine().running) schedule();
}
void resume(Thread thread) { machine().fibers.at(thread).suspended = false; }

}  // namespace leat::inline v0::detail::model
