// leat bench log --durable: what durable topics cost, beside what the kernel takes for the same bytes.
#pragma once

#include <string>
#include <vector>

#include "bench/leat/durable.hpp"
#include "bench/output/output.hpp"

namespace leat::bench {

struct DurablePlan {
  struct Case {
    LogOptions log;
    DurableLevel level;
  };
  std::vector<Case> cases;    // The log's, in the order of the table.
  bool has_more = false;      // Also publishing at a rate; with os, replay, recovery and opening.
  bool has_peers = false;     // Also SQLite.
  std::uint64_t records = 0;  // Of each of those; 0: the usual numbers.
  int runs = 5;
  std::vector<int> cpus;
  std::string data_directory = "/var/tmp";
  JsonOption json;
};

// The usual table, or the one case that was asked for.
std::vector<DurablePlan::Case> usual_durable_cases(const LogOptions& common,
                                                   const DurableLevel& level, bool choose_records);
// "os", "interval:20ms" or "fsync". Throws Failure if it is something else.
DurableLevel parse_level(const std::string& text);
// So many that a run writes about 192 MiB.
std::uint64_t usual_durable_records(std::size_t size);

// Throws Failure if a case would write too much, or the directory is in memory.
void run_durable(const DurablePlan& plan, Json parameters);

}  // namespace leat::bench
