// How all measurements are timed, also those of the programs in bench/peers/cpp.
//
//     const Pass pass = time_all(1000, [&] { call(); });
//     const double ns = pass.ns_per_call(1000);
#pragma once

#include <sys/resource.h>
#include <time.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "bench/statistics.hpp"

namespace leat::bench {

inline std::uint64_t read_clock(clockid_t clock) noexcept {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(time.tv_nsec);
}

// The same clock in all processes of the machine.
inline std::uint64_t now_ns() noexcept { return read_clock(CLOCK_MONOTONIC); }
// CPU time of this thread.
inline std::uint64_t thread_cpu_ns() noexcept { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

// What this process has used so far, all its threads together.
struct Usage {
  std::uint64_t cpu_ns = 0;
  std::uint64_t context_switches = 0;

  static Usage now() noexcept {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return {read_clock(CLOCK_PROCESS_CPUTIME_ID),
            static_cast<std::uint64_t>(used.ru_nvcsw + used.ru_nivcsw)};
  }
  Usage since(const Usage& before) const noexcept {
    return {cpu_ns - before.cpu_ns, context_switches - before.context_switches};
  }
};

// The time that two successive readings of the clock are apart.
inline std::uint64_t clock_cost_ns() {
  std::vector<double> costs_ns;
  for (int i = 0; i < 1001; ++i) {
    const std::uint64_t before_ns = now_ns();
    costs_ns.push_back(static_cast<double>(now_ns() - before_ns));
  }
  return static_cast<std::uint64_t>(median(std::move(costs_ns)));
}

// Thousands of calls in a row, timed.
struct Pass {
  std::uint64_t started_ns = 0;
  std::uint64_t ended_ns = 0;

  double ns_per_call(std::uint64_t count) const noexcept {
    return static_cast<double>(ended_ns - started_ns) / static_cast<double>(count);
  }
};

// Reads the clock only at both ends.
template <class Call>
Pass time_all(std::uint64_t count, const Call& call) {
  const std::uint64_t started_ns = now_ns();
  for (std::uint64_t i = 0; i < count; ++i) call();
  return {started_ns, now_ns()};
}

// One sample for each call: from the end of the call before it to its own end.
template <class Call>
Pass time_each(std::vector<std::uint64_t>& samples_ns, const Call& call) {
  const std::uint64_t started_ns = now_ns();
  std::uint64_t before_ns = started_ns;
  for (std::uint64_t& sample_ns : samples_ns) {
    call();
    const std::uint64_t after_ns = now_ns();
    sample_ns = after_ns - before_ns;
    before_ns = after_ns;
  }
  return {started_ns, before_ns};
}

// Samples to be filled in. Not zero, so that every page is touched before the time starts.
inline std::vector<std::uint64_t> empty_samples(std::uint64_t count) {
  return std::vector<std::uint64_t>(count, 1);
}

}  // namespace leat::bench
