// What `leat demo` measured, as ShmFifo's table or as JSON.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace leat::cli {

// Milliseconds.
struct DemoRun {
  double prepare_ms = 0;    // creating, opening and prefaulting, before the first call
  double publish_ms = 0;    // first call to last return
  double subscribe_ms = 0;  // first to last record verified, of the slowest subscriber
};

struct DemoPhase {
  std::string workload;  // text, structured, serialized
  std::string phase;     // sequential, concurrent, broadcast
  std::vector<DemoRun> runs;
};

struct DemoReport {
  std::uint64_t records = 0;  // per run
  std::uint64_t published = 0;
  std::uint64_t received = 0;  // each of them checked
  bool verified = false;
  std::deque<DemoPhase> phases;  // In the order they were run.
};

void print_demo_head(std::uint64_t records, std::uint64_t runs);
// One block of the table, with what ShmFifo's author published beside ours. `title` opens the first
// block of a workload.
void print_demo_phase(const DemoPhase& phase, const std::string& title, std::uint64_t records);
void print_demo_verdict(const DemoReport& report);
std::string demo_json(const DemoReport& report);

}  // namespace leat::cli
