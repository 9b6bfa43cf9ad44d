// One measurement of the log: publishers and subscribers in pinned processes of their own, each of
// which opens the topic itself.
//
//     LogCost cost = measure_log({.size = 100, .records = 5'000'000}, {0, 1});
//
// The topic holds 8 MiB, blocks when full, and every subscriber gates and reads from the beginning.
// Two laps pass as a warm-up. Every record is verified; throws Failure if one was wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "payload.hpp"
#include "processes.hpp"

namespace leat::bench {

inline constexpr std::uint64_t kLogCapacityBytes = 8u << 20;

enum class Mode { exclusive, shared };

struct LogOptions {
  std::size_t size = 100;
  std::uint64_t records = 1'000'000;  // By all publishers together.
  std::uint32_t publishers = 1;
  std::uint32_t subscribers = 1;
  Mode mode = Mode::exclusive;
  std::uint32_t batch = 1;  // Records made visible at a time.
  std::uint64_t rate = 0;   // Records per second and publisher; 0: as fast as it goes.
  Verify verify = Verify::ends;
  std::uint32_t keys = 0;  // So many different ones, in one record after the other; 0: none.

  friend bool operator==(const LogOptions&, const LogOptions&) = default;
};

// Times are sums over the publishers, or means over the subscribers, divided by the records.
struct LogCost {
  double ns_per_record = 0;  // First publish until the slowest subscriber has verified the last.
  double publisher_cpu_ns_per_record = 0;  // Without the waiting.
  double publisher_wait_ns_per_record = 0;
  double subscriber_cpu_ns_per_record = 0;  // With it: subscribers spin.

  double records_per_second() const noexcept { return ns_per_record > 0 ? 1e9 / ns_per_record : 0; }
};

LogCost measure_log(const LogOptions& options, const std::vector<int>& cpus);

// Publishers on the first CPUs, subscribers on the rest; if there are too few, several share one.
struct LogPlacement {
  Placement publishers;
  Placement subscribers;
};
LogPlacement place_log(const std::vector<int>& cpus, std::uint32_t publishers,
                       std::uint32_t subscribers);

// Publisher p of several numbers its records p, p + 2^k, p + 2 * 2^k, …, so that each record tells
// whose it is and which one.
unsigned publisher_bits(std::uint32_t publishers) noexcept;

}  // namespace leat::bench
