// What messages cost through the kernel: a pipe, or a Unix stream socket, one write(2) for each.
// Programs without shared memory do it so; the log is shown beside them.
//
//     const Placement placement{{0, 1}};
//     double ns = kernel_ns_per_record(KernelChannel::pipe, {.size = 100}, placement);
//     RoundTrip trip = kernel_round_trip(KernelChannel::unix_socket, {.size = 100}, placement);
//
// Each call forks two processes, measures once after a warm-up, checks every payload and throws
// Failure if one was wrong. Both sides block; buffers have the size that the kernel gives them.
// A stream has no messages of 0 bytes: the size is at least 1.
#pragma once

#include <cstddef>
#include <cstdint>

#include "processes.hpp"
#include "round_trip.hpp"

namespace leat::bench {

enum class KernelChannel { pipe, unix_socket };

struct KernelStreamOptions {
  std::size_t size = 8;
  std::uint64_t records = 50'000;
};

// One process writes, the other reads up to 64 KiB at a time and cuts it into messages.
double kernel_ns_per_record(KernelChannel channel, const KernelStreamOptions& options,
                            const Placement& placement);

// Two pipes, or one pair of sockets. The peer reads the whole message and sends it back.
RoundTrip kernel_round_trip(KernelChannel channel, const RoundTripOptions& options,
                            const Placement& placement);

}  // namespace leat::bench
