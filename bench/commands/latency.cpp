// leat bench latency: a message to another process and its answer, beside a single slot.
//
// Measured in turns with the bare round trip of the same payload. The percentiles are from a pass of
// their own, since reading the clock for each message takes about 25 ns.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "bench/floors/floors.hpp"
#include "bench/leat/log.hpp"
#include "bench/output/output.hpp"
#include "bench/statistics.hpp"
#include "commands.hpp"

namespace leat::bench {
namespace {

constexpr std::array<std::size_t, 3> kLatencySizes = {8, 100, 1024};
constexpr std::array<double, 3> kLatencyTargets = {1.35, 1.7, 1.4};  // For `ratio`, spinning.

struct LatencyArguments {
  std::optional<std::size_t> size;  // None: a table of the usual sizes.
  std::uint64_t count = 0;          // 0: as many as take about 0.1 s.
  bool block = false;
  int runs = 5;
  std::vector<int> cpus;
  std::string verify = "ends";
  JsonOption json;
};

Load load_of(const LatencyArguments& options, std::size_t size) {
  const std::uint64_t usual = options.block ? 10'000 : 200'000 / (1 + size / 2048);
  Load load =
      round_trips(size, options.count != 0 ? options.count : std::max<std::uint64_t>(usual, 1000),
                  options.verify == "full" ? Verify::full : Verify::ends);
  load.variant = options.block ? Variant::blocking : Variant::spinning;
  return load;
}

// The floor of a sleeping pair is what the kernel needs for two wake-ups.
Json floor_of(const Load& load, const Placement& placement) {
  if (load.variant == Variant::blocking) {
    return {{"round_trip_ns", futex_round_trip_ns(load.count, placement)}};
  }
  return to_json(slot_round_trip(load, placement));
}

// With too few samples a percentile is nothing but the slowest of them.
Json without_uncertain(Json trip, std::uint64_t count) {
  constexpr std::array<std::pair<const char*, double>, 3> kPercentiles{
      {{"p90_ns", 0.9}, {"p99_ns", 0.99}, {"p999_ns", 0.999}}};
  for (const auto& [name, part] : kPercentiles) {
    if (trip.contains(name) && count < samples_needed(part)) trip[name] = nullptr;
  }
  return trip;
}

// runs, median, floor, ratio for one size.
Json measure_size(const LatencyArguments& options, const Load& load, const Progress& progress) {
  const Placement placement{options.cpus};
  std::vector<double> cache_lines_ns;
  Json floors = Json::array();
  Json runs = Json::array();
  for (int run = 1; run <= options.runs; ++run) {
    progress.show(fmt::format("{} B, run {} of {}", load.size, run, options.runs));
    // On a virtual machine, the distance between the two CPUs changes from second to second.
    cache_lines_ns.push_back(cache_line_round_trip_ns(kCacheLineTrips, placement));
    floors.push_back(without_uncertain(floor_of(load, placement), load.count));
    runs.push_back(without_uncertain(to_json(log_round_trip(load, placement)), load.count));
  }
  progress.clear();
  Json middle = median_of(runs);
  const Json floor = median_of(floors);
  const double floor_ns = floor["round_trip_ns"];
  const double ratio = middle["round_trip_ns"].get<double>() / floor_ns;
  Json results = {{"runs", std::move(runs)},
                  {"median", std::move(middle)},
                  {"floor", floor_ns},
                  {"ratio", ratio}};
  add_distance(results, cache_lines_ns);
  if (!options.block) results["floor_median"] = floor;
  return results;
}

Json parameters_of(const LatencyArguments& options, const Load& load) {
  return {{"size", load.size},
          {"count", load.count},
          {"waiting", options.block ? "sleeping" : "polling"},
          {"floor", options.block ? "futex" : "single slot"},
          {"verify", options.verify}};
}

void print_latency_head(const Json& report, int runs) {
  fmt::print("{}; {}\n", machine_line(report), runs_line(runs));
  fmt::print("Nanoseconds for a message and its answer.\n\n");
  fmt::print("{:>7} {:>10} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9} {:>6} {:>7} {:>10}\n", "bytes",
             "round trip", "p50", "p90", "p99", "p99.9", "max", "floor", "ratio", "target", "line");
}

void print_row(const LatencyArguments& options, std::size_t size, const Json& results) {
  const Json& middle = results["median"];
  const auto whole = [&](const char* key) {
    return middle[key].is_null() ? "-" : fmt::format("{:.0f}", middle[key].get<double>());
  };
  const auto known = std::find(kLatencySizes.begin(), kLatencySizes.end(), size);
  std::string target;
  if (known != kLatencySizes.end() && !options.block) {
    target = fmt::format("{:.2f}", kLatencyTargets[static_cast<std::size_t>(known - kLatencySizes.begin())]);
  }
  fmt::print(
      "{:>7} {:>10.1f} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9.1f} {:>6.2f} {:>7} "
      "{:>10}\n",
      size, middle["round_trip_ns"].get<double>(), whole("p50_ns"), whole("p90_ns"),
      whole("p99_ns"), whole("p999_ns"), whole("max_ns"), results["floor"].get<double>(),
      results["ratio"].get<double>(), target, distance_text(results));
  std::fflush(stdout);
}

void run_latency(LatencyArguments options) {
  options.json.check();
  (void)topic_directory();
  options.cpus = chosen_cpus(options.cpus);
  Json parameters = {{"runs", options.runs}, {"pin", options.cpus}};
  if (options.size) {
    parameters.update(parameters_of(options, load_of(options, *options.size)));
  }
  Json report = new_report(parameters);
  const bool with_table = !options.json.takes_stdout();
  if (with_table) print_latency_head(report, options.runs);

  const SignalScope signals;
  const Progress progress;
  const auto measure = [&](std::size_t size) {
    Json results = measure_size(options, load_of(options, size), progress);
    if (with_table) print_row(options, size, results);
    return results;
  };
  if (options.size) {
    report.update(measure(*options.size));
  } else {
    for (const std::size_t size : kLatencySizes) {
      Json entry = {{"parameters", parameters_of(options, load_of(options, size))}};
      entry.update(measure(size));
      report["cases"].push_back(std::move(entry));
    }
  }
  if (with_table) {
    fmt::print(
        "\nfloor: {}; ratio: round trip / floor; target: for the ratio.\n"
        "{}",
        options.block ? "two processes that wake each other by futex"
                      : "a single slot in each direction, with the same payload",
        kDistanceNote);
  }
  options.json.write(report);
}

}  // namespace

void add_latency(CLI::App& bench) {
  CLI::App* command =
      bench.add_subcommand("latency", "A message and its answer, beside a single slot");
  auto options = std::make_shared<LatencyArguments>();
  command->add_option("--size", options->size, "Bytes of a message; by default a table of sizes")
      ->check(CLI::Range(std::size_t{0}, kLargestRecord))
      ->option_text("BYTES");
  command
      ->add_option("--count", options->count,
                   "Round trips of each pass; by default for about 0.1 s")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}))
      ->option_text("N");
  command->add_flag("--block", options->block,
                    "Sleep until a message comes, instead of spinning; the floor is a futex");
  command
      ->add_option("--verify", options->verify,
                   "Check the sequence at both ends of a message, or all its bytes")
      ->check(CLI::IsMember({"ends", "full"}))
      ->option_text("ends|full [ends]");
  add_runs_option(*command, options->runs);
  add_pin_option(*command, options->cpus);
  options->json.add_to(*command);
  command->footer(
      "Two topics of 8 MiB with an exclusive publisher each; both sides look without a pause. The "
      "round trip is total time / count; the percentiles are of a second pass that reads the clock "
      "once per message.\n\n"
      "Example:\n  leat bench latency --size 100 --pin 0,1 --json");
  command->callback([options] { run_latency(*options); });
}

}  // namespace leat::bench
