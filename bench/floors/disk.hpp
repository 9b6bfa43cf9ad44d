// Floors of durable topics: what the kernel's page cache takes for the same bytes, without frames,
// checksums, other processes or recovery.
//
//     DiskCost cost = file_write_cost("/var/tmp", 256 << 20, 0);          // on CPU 0
//     DiskCost cost = file_read_cost("/var/tmp/segment-…", 256 << 20, 0);
#pragma once

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace leat::bench {

struct DiskCost {
  double bytes_per_second = 0;
  double cpu_ns_per_byte = 0;
};

// write(2) to a fresh file of this directory, in pieces of 64 KiB; nothing is synced.
DiskCost file_write_cost(const std::string& directory, std::uint64_t bytes, int cpu);

// A thread that wakes every 200 us, as the process does that waits for the end of a measured run. On some
// virtual machines that alone makes fdatasync(2) ten times faster, so whatever is compared has it.
class Waker {
 public:
  Waker();

 private:
  std::jthread thread_;
};

// The same bytes in groups, to a file that has its blocks, with one fdatasync(2) behind each.
DiskCost file_sync_cost(const std::string& directory, std::uint64_t bytes, std::uint64_t group,
                        int cpu);

// pread and CRC32C of files that are in the page cache, in pieces of 64 KiB.
DiskCost file_read_cost(const std::vector<std::string>& files, int cpu);

}  // namespace leat::bench
