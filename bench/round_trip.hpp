// How round trips are timed, whatever carries the message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "payload.hpp"
#include "processes.hpp"
#include "statistics.hpp"

namespace leat::bench {

struct RoundTripOptions {
  std::size_t size = 8;
  std::uint64_t count = 500'000;  // In each of the two passes.
  Verify verify = Verify::ends;
};

struct RoundTrip {
  double round_trip_ns = 0;  // Total time / count, in a pass without clocks per message.
  Percentiles percentiles;   // Of a second pass, with one clock read per message.
};

// What reading the clock twice adds to the time between.
inline std::uint64_t clock_cost_ns() {
  std::vector<double> costs_ns;
  for (int i = 0; i < 1001; ++i) {
    const std::uint64_t before_ns = now_ns();
    costs_ns.push_back(static_cast<double>(now_ns() - before_ns));
  }
  return static_cast<std::uint64_t>(median(std::move(costs_ns)));
}

// Calls before the time starts.
inline std::uint64_t warm_up_calls(std::uint64_t count) { return count / 10 + 1; }
// How many the answerer has to answer.
inline std::uint64_t all_calls(std::uint64_t count) { return warm_up_calls(count) + 2 * count; }

// Durations to be filled in; not 0, so that every page is touched before the time starts.
inline std::vector<std::uint32_t> empty_samples(std::uint64_t count) {
  return std::vector<std::uint32_t>(count, 1);
}

// `call` sends one message and returns when the answer is there and checked.
template <class Call>
RoundTrip time_calls(std::vector<std::uint32_t>& samples_ns, const Call& call) {
  RoundTrip result;
  const std::uint64_t count = samples_ns.size();
  for (std::uint64_t i = 0; i < warm_up_calls(count); ++i) call();

  const std::uint64_t started_ns = now_ns();
  for (std::uint64_t i = 0; i < count; ++i) call();
  result.round_trip_ns = static_cast<double>(now_ns() - started_ns) / static_cast<double>(count);

  std::uint64_t before_ns = now_ns();
  for (std::uint32_t& sample_ns : samples_ns) {
    call();
    const std::uint64_t after_ns = now_ns();
    sample_ns = clamp_sample_ns(after_ns - before_ns);
    before_ns = after_ns;
  }
  result.percentiles = percentiles(samples_ns);
  return result;
}

}  // namespace leat::bench
