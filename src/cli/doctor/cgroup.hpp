// The memory that this process's control groups leave it: a container's limit, which /proc/meminfo does not show.
//
//     if (auto limit = memory_limit()) fmt::print("at most {}\n", limit->bytes);
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace leat::cli {

struct MemoryLimit {
  std::uint64_t bytes = 0;
  // Counts the cache of files as free, because the kernel takes it back.
  std::uint64_t free_bytes = 0;
  // How much may be swapped out besides, if the machine has so much swap.
  std::uint64_t free_swap_bytes = UINT64_MAX;
};

// The tightest limit of the process's memory cgroup and those above it, as far as they can be seen; version 1 or 2.
// Empty if there is none. `system` is put before /proc and /sys, for tests.
std::optional<MemoryLimit> memory_limit(const std::string& system = {});

}  // namespace leat::cli
