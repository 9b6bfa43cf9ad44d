// The rows of `leat bench ipc`: measured in turns, then printed as a table, as JSON, or in ipc-bench's
// format.
#pragma once

#include <string>
#include <vector>

#include "bench/output/output.hpp"
#include "methods.hpp"

namespace leat::bench::ipc {

inline constexpr char kFailed[] = "failed: ";  // The beginning of a failed row's note.

// A method with one load.
struct Row {
  Method method;
  Load load;
  std::vector<Cost> runs = {};
  std::string note = {};  // Why there are no runs: not supported, or failed.
  bool failed = false;
};

// The messages of each run if `runs` runs have `count` messages together; at least one.
std::uint64_t count_of_a_run(std::uint64_t count, int runs);

// Chooses the number of messages where --count does not: 20,000 in all runs together, fewer if they are
// large; with oneway, as many as take about 1 s, found by trying.
void choose_counts(std::vector<Row>& rows, int runs, const Placement& placement,
                   const Progress& progress);

// Measures every row once, then again, `runs` times. A row that cannot carry its load, or fails, gets a
// note, and the others go on. Throws Failure only if a signal ends the measurement.
void measure_rows(std::vector<Row>& rows, int runs, const Placement& placement,
                  const Progress& progress);
// Throws if a row has failed, for the exit code: what the first one's note says.
void throw_failures(const std::vector<Row>& rows);

// The median of each figure over the runs.
Cost median_of(const std::vector<Cost>& runs);

Json to_json(const std::vector<Row>& rows);
void print_table(const Json& report, const std::vector<Row>& rows, int runs);
// The eight lines that ipc-bench prints, with its spaces, tabs and frame. For a single run.
std::string compatible(const Row& row);

}  // namespace leat::bench::ipc
