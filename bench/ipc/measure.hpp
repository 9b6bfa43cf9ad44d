// One measurement of one channel, by the harness of the load's pattern. Two pinned processes, the whole
// payload, every byte verified.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "bench/harness/one_way.hpp"
#include "bench/harness/round_trip.hpp"
#include "cost.hpp"

namespace leat::bench::ipc {

// Throws what errno says if a system call failed.
inline void check(long result, const char* what) {
  if (result < 0) throw system_failure(what);
}

template <class Channel>
Cost measure_channel(const Load& load, const Placement& placement) {
  using Side = typename Channel::Side;
  Channel channel(load);
  switch (load.pattern) {
    case Pattern::pingpong: return cost_of(measure_round_trip(channel, load, placement), load);
    case Pattern::rate: return cost_of(measure_at_rate(channel, load, placement), load);
    case Pattern::oneway: break;
  }
  const Measured measured = measure_one_way(
      load, place_on(placement.cpus, 1, 1),
      [&](std::uint32_t i) { return Sending<Side>(load, i, channel, End::sender); },
      [&](std::uint32_t) { return InOrder<Side>(load, channel, End::receiver); });
  return cost_of(measured, load);
}

}  // namespace leat::bench::ipc
