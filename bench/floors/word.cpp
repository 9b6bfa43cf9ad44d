// Floors that transfer no payload: a word in shared memory, changed by two processes in turn.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include "bench/harness/spin.hpp"
#include "floors.hpp"

namespace leat::bench {
namespace {

template <class Number>
struct alignas(kCacheLine) Word {
  std::atomic<Number> value{0};
};

// call(from, to) makes the round trips number `from` to `to` in one process, answer(from, to) in the
// other.
template <class Call, class Answer>
double bare_round_trip_ns(std::uint64_t count, std::uint64_t warm_up, const Placement& placement,
                          const Call& call, const Answer& answer) {
  constexpr std::chrono::seconds kTimeLimit{120};
  const Shared<double> result(0.0);
  run_roles({{"caller", placement.cpu(0),
              [&](Barrier& barrier) {
                barrier.meet();
                call(0, warm_up);
                const std::uint64_t started_ns = now_ns();
                call(warm_up, warm_up + count);
                *result = static_cast<double>(now_ns() - started_ns) / static_cast<double>(count);
              }},
             {"answerer", placement.cpu(1),
              [&](Barrier& barrier) {
                barrier.meet();
                answer(0, warm_up + count);
              }}},
            kTimeLimit);
  return *result;
}

}  // namespace

double cache_line_round_trip_ns(std::uint64_t count, const Placement& placement) {
  const Shared<Word<std::uint64_t>> word;
  // The caller makes the value odd, the answerer even. relaxed, pairs with nothing: there is no data
  // but the value itself.
  const auto bounce = [&](std::uint64_t awaited, std::uint64_t end) {
    Spin spin;
    for (; awaited != end; awaited += 2) {
      while (word->value.load(std::memory_order_relaxed) != awaited) spin.once();
      word->value.store(awaited + 1, std::memory_order_relaxed);
    }
  };
  return bare_round_trip_ns(
      count, usual_warm_up(count), placement,
      [&](std::uint64_t from, std::uint64_t to) { bounce(2 * from, 2 * to); },
      [&](std::uint64_t from, std::uint64_t to) { bounce(2 * from + 1, 2 * to + 1); });
}

double futex_round_trip_ns(std::uint64_t count, const Placement& placement) {
  const Shared<std::array<Word<std::uint32_t>, 2>> words;
  std::atomic<std::uint32_t>& there = (*words)[0].value;
  std::atomic<std::uint32_t>& back = (*words)[1].value;
  // The release here pairs with the acquire below, though only the value itself is handed over.
  const auto set_and_wake = [](std::atomic<std::uint32_t>& word, std::uint32_t value) {
    word.store(value, std::memory_order_release);
    ::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  };
  const auto sleep_until = [](std::atomic<std::uint32_t>& word, std::uint32_t value) {
    std::uint32_t seen;
    while ((seen = word.load(std::memory_order_acquire)) != value) {
      ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, nullptr, nullptr, 0);
    }
  };
  const auto turn_of = [](std::uint64_t index) { return static_cast<std::uint32_t>(index + 1); };
  return bare_round_trip_ns(
      count, 0, placement,
      [&](std::uint64_t from, std::uint64_t to) {
        for (std::uint64_t i = from; i < to; ++i) {
          set_and_wake(there, turn_of(i));
          sleep_until(back, turn_of(i));
        }
      },
      [&](std::uint64_t from, std::uint64_t to) {
        for (std::uint64_t i = from; i < to; ++i) {
          sleep_until(there, turn_of(i));
          set_and_wake(back, turn_of(i));
        }
      });
}

}  // namespace leat::bench
