#include "output.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <vector>

#include "bench/statistics.hpp"
#include "leat_version.hpp"
#include "machine.hpp"
#include "text_file.hpp"

namespace leat::bench {
namespace {

// The command line as typed: `leat bench …`, wherever the executables are.
std::string command_line() {
  std::ifstream file("/proc/self/cmdline");
  std::string line;
  for (std::string word; std::getline(file, word, '\0');) {
    if (line.empty()) {
      line = "leat bench";
      continue;
    }
    const bool is_plain = !word.empty() && word.find_first_of(" \t\n'\"\\$*?&;|<>()") == word.npos;
    line += " " + (is_plain ? word : "'" + word + "'");
  }
  return line;
}

}  // namespace

void JsonOption::add_to(CLI::App& command) {
  // The value is optional; without one, the JSON goes to stdout.
  option_ =
      command
          .add_option("--json", file_, "Print JSON instead of a table; or also write it to FILE")
          ->expected(0, 1)
          ->option_text("[=FILE]");
}

bool JsonOption::asked_for() const noexcept { return option_->count() > 0; }

bool JsonOption::takes_stdout() const noexcept {
  return asked_for() && (file_.empty() || file_ == "-");
}

void JsonOption::check() const {
  if (asked_for() && !takes_stdout()) check_writable(file_);
}

void JsonOption::write(const Json& report) const {
  if (!asked_for()) return;
  write_text(takes_stdout() ? "-" : file_,
             report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

Json new_report(Json parameters) {
  return {{"machine", machine_facts()},
          {"version", kVersion},
          {"commit", kCommit},
          {"date", fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)))},
          {"command", command_line()},
          {"parameters", std::move(parameters)}};
}

Json to_json(const Latency& latency) {
  return {{"p50_ns", latency.p50},
          {"p90_ns", latency.p90},
          {"p99_ns", latency.p99},
          {"p999_ns", latency.p999},
          {"max_ns", latency.max}};
}

Json to_json(const RoundTrip& trip) {
  Json json = {{"round_trip_ns", trip.round_trip_ns}};
  json.update(to_json(trip.latency));
  return json;
}

Json to_json(const std::vector<MessageCost>& runs, const std::string& receiver) {
  Json json = Json::array();
  for (const MessageCost& cost : runs) {
    json.push_back({{"records_per_second", cost.per_second()},
                    {"ns_per_record", cost.ns},
                    {"publisher_cpu_ns_per_record", cost.sender_cpu_ns},
                    {"publisher_wait_ns_per_record", cost.sender_wait_ns},
                    {receiver + "_cpu_ns_per_record", cost.receiver_cpu_ns}});
  }
  return json;
}

std::string machine_line(const Json& report) {
  const Json& machine = report["machine"];
  return fmt::format("{}, {} CPUs, {}", machine["cpu"].get<std::string>(),
                     machine["cpus_online"].get<int>(), machine["kernel"].get<std::string>());
}

std::string runs_line(int runs) {
  return runs == 1 ? "one run" : fmt::format("median of {}", runs);
}

Json reduce(const Json& runs, const std::function<double(const std::vector<double>&)>& number_of) {
  const Json& first = runs.at(0);
  if (first.is_number()) {
    std::vector<double> values;
    for (const Json& run : runs) values.push_back(run.get<double>());
    return number_of(values);
  }
  if (!first.is_object()) return first;
  Json reduced = Json::object();
  for (const auto& [key, value] : first.items()) {
    Json values = Json::array();
    for (const Json& run : runs) values.push_back(run.at(key));
    reduced[key] = reduce(values, number_of);
  }
  return reduced;
}

std::string distance_of(const std::vector<double>& cache_line_round_trips_ns) {
  // Within a last-level cache 40 to 100 ns are usual, across chips and sockets 200 to 600.
  constexpr double kFarNs = 150;
  const auto is_far = [](double ns) { return ns >= kFarNs; };
  const auto begin = cache_line_round_trips_ns.begin(), end = cache_line_round_trips_ns.end();
  if (std::none_of(begin, end, is_far)) return "near";
  return std::all_of(begin, end, is_far) ? "far" : "mixed";
}

void add_distance(Json& results, const std::vector<double>& cache_line_round_trips_ns) {
  results["cache_line_round_trip_ns"] = cache_line_round_trips_ns;
  results["cpus"] = distance_of(cache_line_round_trips_ns);
}

std::string distance_text(const Json& results) {
  const auto round_trips_ns = results["cache_line_round_trip_ns"].get<std::vector<double>>();
  return fmt::format("{:.0f} {}", median(round_trips_ns), results["cpus"].get<std::string>());
}

Json median_of(const Json& runs) { return reduce(runs, median); }

Progress::Progress() : watched_{::isatty(STDERR_FILENO) == 1} {}

void Progress::show(const std::string& what) const {
  if (watched_) fmt::print(stderr, "\r\033[K{}", what);
}

void Progress::clear() const {
  if (watched_) fmt::print(stderr, "\r\033[K");
}

}  // namespace leat::bench
