// Limits of one process or of the kernel; those of two processes are in floor.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "processes.hpp"

namespace leat::bench {

// Bytes copied per nanosecond, which is GB/s, from one buffer of this size to another.
double copy_gb_per_s(std::size_t size_bytes, int cpu);

// The cheapest system call there is.
double system_call_ns(std::uint64_t count, int cpu);

// Two processes that put each other to sleep and wake each other.
double futex_round_trip_ns(std::uint64_t count, const Placement& placement);

// The first write to a page of fresh shared memory.
double first_touch_ns_per_page(std::size_t pages, int cpu);

// fdatasync of one overwritten 4 KiB block of a file in this directory: the median of `count`.
double fdatasync_ns(const std::string& directory, int count);

// "ext4", "tmpfs", …: where such a file would lie.
std::string file_system_of(const std::string& directory);

}  // namespace leat::bench
