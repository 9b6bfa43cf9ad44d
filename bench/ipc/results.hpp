// The rows of `leat bench ipc`: measured in turns, then shown as a table, as JSON, or as ipc-bench
// shows its one.
#pragma once

#include <string>
#include <vector>

#include "bench/report.hpp"
#include "methods.hpp"

namespace leat::bench::ipc {

inline constexpr char kFailed[] = "failed: ";  // How the note of a row begins that did.

// A method with one load.
struct Row {
  Method method;
  Load load;
  std::vector<Cost> runs = {};
  std::string note = {};  // Why there are no runs: it cannot do it, or it failed.
  bool failed = false;
};

// Of `count` messages that go in `runs` runs, those of each; not less than one.
std::uint64_t count_of_a_run(std::uint64_t count, int runs);

// How many messages a row needs if nobody said: 20,000 in all runs together, fewer if they are large;
// with oneway, as many as take about 1 s, found by trying.
void choose_counts(std::vector<Row>& rows, int runs, const Placement& placement,
                   const Progress& progress);

// Every row once, and again, `runs` times. One that can't do its load gets a note; one that fails,
// too, and the others go on. Throws Failure only if a signal ends the measuring.
void measure_rows(std::vector<Row>& rows, int runs, const Placement& placement,
                  const Progress& progress);
// Throws the first failure of a row, if there was one: for the exit code.
void throw_failures(const std::vector<Row>& rows);

// Medians of each figure over the runs.
Cost median_of(const std::vector<Cost>& runs);

Json to_json(const std::vector<Row>& rows);
void print_table(const Json& report, const std::vector<Row>& rows, int runs);
// The eight lines of ipc-bench, with its spaces and tabs, and the frame around them. For one run.
std::string compatible(const Row& row);

}  // namespace leat::bench::ipc
