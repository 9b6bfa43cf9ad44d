// What every subcommand prints: a table for people, or JSON with the machine and the parameters. (Tables,
// pictures and pages of earlier results are in bench/report.)
//
//     Json report = new_report({{"runs", 5}});
//     report["runs"] = runs;
//     report["median"] = median_of(runs);
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/harness/one_way.hpp"
#include "bench/harness/round_trip.hpp"

namespace leat::bench {

// Keeps the order in which the facts were given.
using Json = nlohmann::ordered_json;

// --json[=FILE]
class JsonOption {
 public:
  void add_to(CLI::App& command);

  // Throws Failure now, rather than after minutes of measuring, if FILE cannot be written.
  void check() const;
  // Whether the JSON goes to stdout, so that no table must be printed.
  bool takes_stdout() const noexcept;
  bool asked_for() const noexcept;
  // Writes the JSON if it was asked for.
  void write(const Json& report) const;

 private:
  CLI::Option* option_ = nullptr;  // Owned by the command.
  std::string file_;               // Empty or "-": stdout.
};

// machine, version, commit, date, command, parameters. The date is that of the call, in UTC:
// "2026-11-23T02:32:39Z".
Json new_report(Json parameters);

// p50_ns … max_ns.
Json to_json(const Latency& latency);
// The same, behind round_trip_ns.
Json to_json(const RoundTrip& trip);

// A run each: records_per_second, …, and for a `receiver` "member": member_cpu_ns_per_record.
Json to_json(const std::vector<MessageCost>& runs, const std::string& receiver);

// "AMD EPYC, 2 CPUs, Linux 6.1.0": the beginning of a table.
std::string machine_line(const Json& report);
// "median of 5", or "one run", which has no median.
std::string runs_line(int runs);

// An object of the same shape as each of the runs; every number is the median of theirs.
Json median_of(const Json& runs);
// The same with another function than the median.
Json reduce(const Json& runs, const std::function<double(const std::vector<double>&)>& number_of);

// Where the two CPUs were in all runs, by the round trips of a cache line between them: "near" if they
// share a last-level cache, "far" if not, else "mixed".
std::string distance_of(const std::vector<double>& cache_line_round_trips_ns);
// Writes both into results: the round trips and the distance.
void add_distance(Json& results, const std::vector<double>& cache_line_round_trips_ns);
// A column of 10: "46 near", with the median round trip.
std::string distance_text(const Json& results);
// What that column is, in lines below the table.
inline constexpr char kDistanceNote[] =
    "line: round trip of a bare cache line between the two CPUs, meanwhile, in nanoseconds; near:\n"
    "they share a last-level cache, far: they do not, mixed: it changed between the runs.\n";

// A line on stderr that replaces itself, if stderr is a terminal.
class Progress {
 public:
  Progress();
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(const std::string& what) const;
  void clear() const;

 private:
  bool watched_;
};

}  // namespace leat::bench
