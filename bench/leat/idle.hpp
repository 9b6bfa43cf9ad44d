// The CPU time of subscribers that wait for a record that does not come.
//
//     const std::uint64_t cpu_ns = measure_idle({.subscribers = 8, .seconds = 10}, {0, 1}, signals);
#pragma once

#include <cstdint>
#include <vector>

#include "bench/harness/processes.hpp"

namespace leat::bench {

struct IdleOptions {
  std::uint32_t subscribers = 8;
  double seconds = 10;
};

// Of all subscribers together. Throws Failure if one ends early, or does not get the record that is
// published in the end.
std::uint64_t measure_idle(const IdleOptions& options, const std::vector<int>& cpus,
                           const SignalScope& signals);

}  // namespace leat::bench
