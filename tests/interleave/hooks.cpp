// The model's version of every operation of the library that another thread could notice: atomics,
// futex, membarrier, locks, clock and memory mappings.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "leat/base/clock.hpp"
#include "leat/os/file.hpp"
#include "leat/os/fork.hpp"
#include "leat/os/futex.hpp"
#include "leat/os/lock.hpp"
#include "leat/os/membarrier.hpp"
#include "machine.hpp"

namespace leat::inline v0::detail::model {
namespace {

constexpr std::size_t kPageSize = 4096;

bool is_weak(int edge, Side side) {
  const Machine& m = machine();
  return edge >= 0 && (m.weak[edge][0] || m.weak[edge][static_cast<std::size_t>(side)]);
}
std::memory_order effective(std::memory_order order, int edge, Side side) {
  return is_weak(edge, side) ? std::memory_order_relaxed : order;
}

// Fails where, on a full file system, the kernel would end the process with SIGBUS.
void check_memory(const void* word) {
  Machine& m = machine();
  if (m.holes.empty()) return;
  check(!m.holes.contains(m.memory.key_of(word) & ~std::uint64_t{kPageSize - 1}),
        "access to a part of the file that has no memory");
}

// Called before a plain load or store. Within a copy of many bytes, other
// threads rarely get to run: the order of its words is up to the memory
// model, and copies would otherwise use up most of the steps.
void schedule_access(const void* word, std::size_t size, std::memory_order order, int edge) {
  Machine& m = machine();
  const bool copies =
      edge == kNoEdge && order == std::memory_order_relaxed && word == m.copy_goes_on;
  m.copying = copies && random(16) != 0;
  if (!m.copying) schedule();
  m.copy_goes_on = static_cast<const char*>(word) + size;
  check_memory(word);
}

template <class Change>
std::uint64_t read_modify_write(const char* what, void* word, std::size_t size, int edge,
                                const void* caller, Change&& change) {
  schedule();
  check_memory(word);
  const auto order = effective(std::memory_order_seq_cst, edge, Side::rmw);
  const std::uint64_t old = machine().memory.update(current_view(), word, size, order, change);
  record(what, edge, Side::rmw, word, old, caller);
  return old;
}

// A thread that finds a lock free sees everything that former owners did before they lost it. With
// `shared`, other threads that share the lock may still hold it.
void meet_former_owners(std::int64_t offset, bool shared = false) {
  Machine& m = machine();
  const auto is_former = [&](const Lock& lock) {
    return lock.offset == offset && !(shared && lock.shared);
  };
  for (const Lock& lock : m.locks) {
    if (is_former(lock) && lock.owner != kSetup)
      current_view().now.join(m.fibers[lock.owner].view.now);
  }
  std::erase_if(m.locks, is_former);
}

bool byte_lock_call(int command, struct flock& lock, int fd, std::int64_t offset,
                    short kind = F_WRLCK) {
  lock = {};
  lock.l_type = kind;
  lock.l_whence = SEEK_SET;
  lock.l_start = offset;
  lock.l_len = 1;
  return ::fcntl(fd, command, &lock) == 0;
}

}  // namespace

std::uint64_t load(const void* word, std::size_t size, std::memory_order order, int edge) noexcept {
  schedule_access(word, size, order, edge);
  const std::uint64_t value =
      machine().memory.load(current_view(), word, size, effective(order, edge, Side::load));
  record("load", edge, Side::load, word, value, __builtin_return_address(0));
  return value;
}

void store(void* word, std::size_t size, std::uint64_t value, std::memory_order order,
           int edge) noexcept {
  schedule_access(word, size, order, edge);
  machine().memory.store(current_view(), word, size, value, effective(order, edge, Side::store));
  record("store", edge, Side::store, word, value, __builtin_return_address(0));
}

bool compare_exchange(void* word, std::size_t size, std::uint64_t& expected, std::uint64_t desired,
                      int edge) noexcept {
  const std::uint64_t wanted = expected;
  expected = read_modify_write("cas", word, size, edge, __builtin_return_address(0),
                               [&](std::uint64_t old) -> std::optional<std::uint64_t> {
                                 if (old != wanted) return std::nullopt;
                                 return desired;
                               });
  return expected == wanted;
}

std::uint64_t exchange(void* word, std::size_t size, std::uint64_t value, int edge) noexcept {
  return read_modify_write("exchange", word, size, edge, __builtin_return_address(0),
                           [&](std::uint64_t) { return std::optional{value}; });
}

std::uint64_t fetch_add(void* word, std::size_t size, std::uint64_t value, int edge) noexcept {
  return read_modify_write("fetch_add", word, size, edge, __builtin_return_address(0),
                           [&](std::uint64_t old) { return std::optional{old + value}; });
}

std::uint64_t fetch_or(void* word, std::size_t size, std::uint64_t value, int edge) noexcept {
  return read_modify_write("fetch_or", word, size, edge, __builtin_return_address(0),
                           [&](std::uint64_t old) { return std::optional{old | value}; });
}

bool compare_exchange_pair(std::uint64_t* pair, const std::uint64_t (&expected)[2],
                           const std::uint64_t (&desired)[2], int edge) noexcept {
  schedule();
  const bool done =
      machine().memory.compare_exchange_pair(current_view(), pair, expected, desired,
                                             effective(std::memory_order_seq_cst, edge, Side::rmw));
  record(done ? "pair cas" : "failed pair cas", edge, Side::rmw, pair, desired[0],
         __builtin_return_address(0));
  return done;
}

void fence(std::memory_order order, int edge) noexcept {
  const bool spinning = order == std::memory_order_relaxed;
  schedule(spinning);
  if (!is_weak(edge, Side::fence)) machine().memory.fence(current_view(), order);
  record(spinning ? "spin" : "fence", edge, Side::fence, nullptr, 0, __builtin_return_address(0));
}

// A full fence on every thread, in no particular order. False if the call is refused.
bool membarrier() noexcept {
  schedule();
  Machine& m = machine();
  if (m.refuses_membarriers) return false;
  record("membarrier", kNoEdge, Side::fence, nullptr, 0, __builtin_return_address(0));
  if (m.no_membarrier) return true;
  m.memory.fence(current_view(), std::memory_order_seq_cst);
  const std::size_t first = m.fibers.empty() ? 0 : random(m.fibers.size());
  for (std::size_t i = 0; i < m.fibers.size(); ++i) {
    m.memory.fence(m.fibers[(first + i) % m.fibers.size()].view, std::memory_order_seq_cst);
  }
  m.memory.fence(current_view(), std::memory_order_seq_cst);
  return true;
}

void futex_wait(const std::uint32_t* word, std::uint32_t expected, std::int64_t deadline_ns,
                bool never) noexcept {
  schedule();
  Machine& m = machine();
  const std::uint64_t value = m.memory.latest(word, sizeof(*word));
  record("futex wait", kNoEdge, Side::all, word, value, __builtin_return_address(0));
  if (value != expected || (!never && deadline_ns <= m.clock_ns)) return;
  if (m.running == kSetup) {
    check(!never, "the setup would sleep forever");
    m.clock_ns = deadline_ns;
    return;
  }
  Fiber& fiber = m.fibers[m.running];
  fiber.futex = m.memory.key_of(word);
  fiber.deadline_ns = deadline_ns;
  fiber.timed = !never;
  fiber.state = State::asleep;
  switch_to(choose_next(false));
  record("woken", kNoEdge, Side::all, word, 0, nullptr);
}

void futex_wake(const std::uint32_t* word) noexcept {
  schedule();
  Machine& m = machine();
  record("futex wake", kNoEdge, Side::all, word, 0, __builtin_return_address(0));
  const std::uint64_t key = m.memory.key_of(word);
  for (Fiber& fiber : m.fibers) {
    if (fiber.state == State::asleep && fiber.futex == key) wake(fiber);
  }
}

// Uses real kernel locks. A file description holds a lock, even if its thread is dead in the model.
bool try_lock_byte(int fd, std::int64_t offset, short kind) noexcept {
  schedule();
  Machine& m = machine();
  struct flock lock;
  const bool done = byte_lock_call(F_OFD_SETLK, lock, fd, offset, kind);
  record(kind == F_UNLCK ? "unlock" : (done ? "lock" : "failed lock"), kNoEdge, Side::all, nullptr,
         static_cast<std::uint64_t>(offset), __builtin_return_address(0));
  if (kind == F_UNLCK) {
    std::erase_if(m.locks,
                  [&](const Lock& held) { return held.fd == fd && held.offset == offset; });
  } else if (done) {
    meet_former_owners(offset, kind == F_RDLCK);
    m.locks.push_back({fd, offset, m.running, kind == F_RDLCK});
  }
  current_view().now.join(m.lock_view);
  m.lock_view.join(current_view().now);
  return done;
}

bool byte_is_locked(int fd, std::int64_t offset) noexcept {
  schedule();
  struct flock lock;
  const bool locked = !byte_lock_call(F_OFD_GETLK, lock, fd, offset) || lock.l_type != F_UNLCK;
  record(locked ? "is locked" : "is not locked", kNoEdge, Side::all, nullptr,
         static_cast<std::uint64_t>(offset), __builtin_return_address(0));
  if (!locked) meet_former_owners(offset);
  current_view().now.join(machine().lock_view);
  return locked;
}

std::int64_t now_ns() noexcept {
  machine().clock_ns += 20;
  return machine().clock_ns;
}

// Replaces the function of the C library: other threads may run, and no real time passes.
extern "C" int usleep(useconds_t microseconds) {
  machine().clock_ns += std::int64_t{microseconds} * 1000;
  yield();
  return 0;
}

std::uint64_t thread_token() noexcept { return machine().running + 2; }

void mapped(const void* data, std::size_t size, int fd) noexcept {
  machine().memory.add_mapping(data, size, fd);
}
void unmapped(const void* data) noexcept { machine().memory.remove_mapping(data); }

void has_memory(int fd, std::size_t offset, std::size_t size, bool has) noexcept {
  Machine& m = machine();
  const std::uint64_t begin = m.memory.key_of_file(fd) + offset;
  for (std::uint64_t page = begin; page < begin + size; page += kPageSize) {
    if (has)
      m.holes.erase(page);
    else
      m.holes.insert(page);
  }
}

}  // namespace leat::inline v0::detail::model
