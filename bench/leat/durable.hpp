// Measurements of durable topics, each in a private data directory that is removed afterwards.
//
//     DurableCost cost =
//         measure_durable({.size = 100, .records = 1'000'000}, {}, "/var/tmp", {0, 1});
//
// A process that does nothing else is the archiver; publishers are processes of their own. The time ends
// when everything can be read from disk (durability os) or is on stable storage, not when the publishers
// are done.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "log.hpp"
#include "tool/private_directory.hpp"

namespace leat::bench {

inline constexpr std::uint64_t kDurableCapacityBytes = 32u << 20;  // A durable topic's default.
inline constexpr std::uint64_t kMaxDurableRun = 512u << 20;  // Bytes on disk, warm-up included.

// How far records have to come, and how many a publisher publishes before it waits for the disk.
struct DurableLevel {
  Durability durable = Durability::os;
  std::chrono::nanoseconds sync_interval{0};
  std::uint32_t in_flight = 0;   // 0: it never waits by itself.
  bool recycles = false;         // Only one full file is kept, so that files are used again.
  bool publisher_archives = false;  // The archiver is in the publisher's process. Only with in_flight.

  friend bool operator==(const DurableLevel&, const DurableLevel&) = default;
};

// A directory for one measurement, in this one.
tool::PrivateDirectory make_data_directory(const std::string& parent);

// Bytes that a run of this many records, and its warm-up, take in the log.
std::uint64_t log_bytes_of(const LogOptions& options, const DurableLevel& level);

struct DurableCost {
  MessageCost messages;                 // Without a receiver.
  double archiver_cpu_ns_per_byte = 0;  // of payload; 0 if it is in the publisher's process
  std::uint32_t archiver_changes = 0;   // How often another process took over during the run.
};

// The archiver runs on the last CPU, unless the publisher's process is the archiver. Afterwards every record is
// read from disk and verified; throws Failure if one was wrong.
DurableCost measure_durable(const LogOptions& options, const DurableLevel& level,
                            const std::string& data_directory, const std::vector<int>& cpus);

// One topic whose records are on disk, for the measurements that only read.
class StoredTopic {
 public:
  // Publishes `records` records of `size` bytes. `is_clean`: closes it in order; otherwise its
  // process is killed, and its last checkpoint is the one at the start.
  StoredTopic(const std::string& data_directory, std::uint64_t records, std::size_t size,
              std::uint64_t file_bytes, bool is_clean, int cpu);

  std::vector<std::string> files() const;
  std::uint64_t bytes_on_disk() const;
  std::uint64_t records() const noexcept { return records_; }
  // Records per second of a subscriber that reads and verifies all of them.
  double replayed_per_second(int cpu) const;
  // Bytes per second of the search for the end of an unclean tail.
  double searched_bytes_per_second(int cpu) const;
  // Until it is open, and ready to publish.
  double open_ns(int cpu) const;
  // Making a topic in memory with the same window.
  double transient_ns(int cpu) const;

 private:
  Load load() const;

  TemporaryTopics topics_;
  tool::PrivateDirectory data_;
  std::uint64_t records_;
  std::size_t size_;
};

}  // namespace leat::bench
