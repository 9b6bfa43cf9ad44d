// leat bench crash: how soon the others go on after a participant was killed.
#include <fmt/format.h>

#include <array>
#include <memory>

#include "bench/leat/crash.hpp"
#include "bench/output/output.hpp"
#include "bench/statistics.hpp"
#include "commands.hpp"

namespace leat::bench {
namespace {

struct Scenario {
  Survivor survivor;
  const char* key;
  const char* title;
};
constexpr std::array<Scenario, 4> kScenarios = {{
    {Survivor::asleep, "subscriber_asleep", "publisher killed, subscriber asleep"},
    {Survivor::polling, "subscriber_polling", "publisher killed, subscriber polling"},
    {Survivor::beside_publisher, "another_publisher", "publisher killed, another one goes on"},
    {Survivor::publisher, "publisher_waiting", "subscriber killed, publisher waits for room"},
}};

struct CrashArguments {
  int kills = 20;
  std::uint64_t resident_mib = 0;
  std::vector<int> cpus;
  JsonOption json;
};

Json measure_once(const CrashArguments& options, int kill, const Progress& progress) {
  Json run;
  for (const Scenario& scenario : kScenarios) {
    progress.show(fmt::format("kill {} of {}: {}", kill, options.kills, scenario.title));
    // Sleepers recheck every 2 ms: the kills are spread evenly over that interval.
    const auto phase_us = static_cast<std::uint64_t>(kill * 2000 / options.kills);
    const Recovery recovery = measure_kill({.survivor = scenario.survivor,
                                            .resident_bytes = options.resident_mib << 20,
                                            .delay_us = 5000 + phase_us},
                                           options.cpus);
    run[scenario.key] = {{"kill_to_release_us", recovery.kill_to_release_us},
                         {"release_to_progress_us", recovery.release_to_progress_us}};
  }
  return run;
}

void print_crash_table(const Json& report) {
  fmt::print("{}; {} kills each\n", machine_line(report), report["runs"].size());
  fmt::print(
      "Microseconds: from the kill to the kernel's release of the victim's lock, and from\n"
      "that to the survivor's next record, gap or publication.\n\n");
  fmt::print("{:<46} {:^26}   {:^26}\n", "", "kill to release", "release to progress");
  fmt::print("{:<46} {:>8} {:>8} {:>8}   {:>8} {:>8} {:>8}\n", "", "median", "p90", "max", "median",
             "p90", "max");
  for (const Scenario& scenario : kScenarios) {
    fmt::print("{:<46}", scenario.title);
    for (const char* time : {"kill_to_release_us", "release_to_progress_us"}) {
      for (const char* part : {"median", "p90", "max"}) {
        fmt::print(" {:>8.0f}", report[part][scenario.key][time].get<double>());
      }
      fmt::print("  ");
    }
    fmt::print("\n");
  }
}

void run_crash(CrashArguments options) {
  options.json.check();
  options.cpus = chosen_cpus(options.cpus);
  Json report = new_report(
      {{"kills", options.kills}, {"pin", options.cpus}, {"resident_mib", options.resident_mib}});
  report["runs"] = Json::array();
  const SignalScope signals;
  const Progress progress;
  for (int kill = 1; kill <= options.kills; ++kill) {
    report["runs"].push_back(measure_once(options, kill, progress));
  }
  progress.clear();
  const Json& runs = report["runs"];
  Json median = median_of(runs);
  Json p90 = reduce(runs, [](const auto& values) { return percentile(values, 0.9); });
  Json max = reduce(runs, [](const auto& values) { return percentile(values, 1); });
  report["median"] = std::move(median);
  report["p90"] = std::move(p90);
  report["max"] = std::move(max);
  if (!options.json.takes_stdout()) print_crash_table(report);
  options.json.write(report);
}

}  // namespace

void add_crash(CLI::App& bench) {
  CLI::App* command =
      bench.add_subcommand("crash", "How soon the others go on after a process was killed");
  auto options = std::make_shared<CrashArguments>();
  command->add_option("--kills", options->kills, "Kills of each kind")
      ->check(CLI::Range(1, 10'000))
      ->option_text("N [20]");
  command
      ->add_option("--resident-mib", options->resident_mib,
                   "MiB of memory that the victim has in use: the kernel frees it before the lock")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 20))
      ->option_text("MIB [0]");
  add_pin_option(*command, options->cpus);
  options->json.add_to(*command);
  command->footer(
      "A killed publisher has claimed a record and not committed it; a killed subscriber holds the "
      "room that a publisher waits for.\n\n"
      "Example:\n  leat bench crash --resident-mib 1024 --json");
  command->callback([options] { run_crash(*options); });
}

}  // namespace leat::bench
