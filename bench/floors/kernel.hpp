// Floors of one process: memory, system calls, the disk. Those of two processes are in floors.hpp.
//
//     double ns = system_call_ns(300'000, 0);  // on CPU 0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "bench/harness/processes.hpp"

namespace leat::bench {

// Bytes copied per nanosecond, which is GB/s, from one buffer of this size to another.
double copy_gb_per_s(std::size_t size_bytes, int cpu);

// The cheapest system call.
double system_call_ns(std::uint64_t count, int cpu);

// The first write to a page of fresh shared memory.
double first_touch_ns_per_page(std::size_t pages, int cpu);

// fdatasync of one overwritten 4 KiB block of a file in this directory: the median of `count`.
double fdatasync_ns(const std::string& directory, int count);

// The file system of this directory: "ext4", "tmpfs", …
std::string file_system_of(const std::string& directory);

}  // namespace leat::bench
