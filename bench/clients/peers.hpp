// Python between two processes: Leat beside pyzmq.
//
//     const PeerRun run = peer_run_of(output);  // Of the program build/clients/speed/peers.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "bench/output/output.hpp"

namespace leat::bench::clients {

// `peers HOW TOPIC SIZE RECORDS CPU CPU` starts both processes, each on its CPU, and prints "runtime" and
// "records_per_second", from when the first record is sent until the last one was received.
struct PeerWay {
  const char* how;  // Its first argument.
  const char* title;
  double times_wanted;  // For 100 bytes: times pyzmq's records per second. 0: it is pyzmq.
};
inline constexpr std::array<PeerWay, 3> kPeerWays = {{
    {"pyzmq", "pyzmq", 0},
    {"single", "Leat, one by one", 6},
    {"batch", "Leat, batches of 64", 20},
}};

struct PeerRun {
  std::string runtime;
  double records_per_second = 0;
};

// What the program printed. Throws Failure if it is something else.
PeerRun peer_run_of(const std::string& output);

// An entry for each way, from one run of each in each round: how, title, runtime, records_per_second, and those of
// Leat times_pyzmq, the median of the rounds' ratios, and target (for 100 bytes).
Json peers_of(const std::vector<std::array<PeerRun, kPeerWays.size()>>& rounds, std::size_t size);

}  // namespace leat::bench::clients
