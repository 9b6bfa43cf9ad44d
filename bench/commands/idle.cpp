// leat bench idle: the CPU time of subscribers that wait for a record that does not come.
#include <fmt/format.h>

#include <memory>

#include "bench/leat/idle.hpp"
#include "bench/output/output.hpp"
#include "commands.hpp"

namespace leat::bench {
namespace {

struct IdleArguments {
  IdleOptions idle;
  int runs = 1;
  std::vector<int> cpus;
  JsonOption json;
};

void run_idle(IdleArguments options) {
  options.json.check();
  options.cpus = chosen_cpus(options.cpus);
  Json report = new_report({{"subscribers", options.idle.subscribers},
                            {"seconds", options.idle.seconds},
                            {"runs", options.runs},
                            {"pin", options.cpus}});
  report["runs"] = Json::array();
  const SignalScope signals;
  const Progress progress;
  for (int run = 1; run <= options.runs; ++run) {
    progress.show(fmt::format("run {} of {}: {} s", run, options.runs, options.idle.seconds));
    const std::uint64_t cpu_ns = measure_idle(options.idle, options.cpus, signals);
    report["runs"].push_back({{"cpu_ms", static_cast<double>(cpu_ns) / 1e6}});
  }
  progress.clear();
  Json median = median_of(report["runs"]);
  report["median"] = std::move(median);
  if (!options.json.takes_stdout()) {
    fmt::print("{} waiting subscribers used {:.3f} ms of CPU together in {} s\n",
               options.idle.subscribers, report["median"]["cpu_ms"].get<double>(),
               options.idle.seconds);
  }
  options.json.write(report);
}

}  // namespace

void add_idle(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("idle", "The CPU time of waiting subscribers");
  auto options = std::make_shared<IdleArguments>();
  command->add_option("--subscribers", options->idle.subscribers, "Waiting processes")
      ->check(CLI::Range(1u, 200u))
      ->option_text("N [8]");
  command->add_option("--seconds", options->idle.seconds, "Seconds that they wait")
      ->check(CLI::Range(0.01, 86400.0))
      ->option_text("SECONDS [10]");
  add_runs_option(*command, options->runs);
  add_pin_option(*command, options->cpus);
  options->json.add_to(*command);
  command->footer("Example:\n  leat bench idle --subscribers 8 --seconds 10");
  command->callback([options] { run_idle(*options); });
}

}  // namespace leat::bench
