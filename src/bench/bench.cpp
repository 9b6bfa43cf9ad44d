#include "bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "commands.hpp"
#include "processes.hpp"

namespace leat::bench {

void Runner::on_run(CLI::App& command, std::function<void()> work) const {
  command.callback([exit_code = exit_code_, work = std::move(work)] {
    // Not fmt::print, which throws when nobody can read it.
    const auto complain = [&](const char* sentence, int code) {
      std::fputs(fmt::format("leat: {}\n", sentence).c_str(), stderr);
      *exit_code = code;
    };
    try {
      work();
    } catch (const Failure& failure) {
      complain(failure.what(), failure.exit_code());
    } catch (const std::exception& error) {
      complain(error.what(), kExitFailed);
    }
  });
}

void add_pin_option(CLI::App& command, std::vector<int>& cpus) {
  command
      .add_option("--pin", cpus,
                  "CPUs to run the processes on, in turn; by default all that may be used")
      ->delimiter(',')
      ->option_text("CPU,CPU...");
}

void add_runs_option(CLI::App& command, int& runs) {
  command.add_option("--runs", runs, "How often to measure; the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str()
      ->option_text("N [" + std::to_string(runs) + "]");
}

std::vector<int> chosen_cpus(const std::vector<int>& asked) {
  const std::vector<int> usable = usable_cpus();
  for (const int cpu : asked) {
    if (std::find(usable.begin(), usable.end(), cpu) == usable.end()) {
      throw Failure(kExitBadUsage, fmt::format("--pin {}: not a CPU that may be used; those are {}",
                                               cpu, fmt::join(usable, ",")));
    }
  }
  return asked.empty() ? usable : asked;
}

void add_bench_command(CLI::App& app, int& exit_code) {
  CLI::App* bench = app.add_subcommand("bench", "Measure this machine and the log on it");
  bench->require_subcommand(1);
  bench->footer("Example:\n  leat bench limits --runs 3");
  const Runner runner(exit_code);
  add_limits(*bench, runner);
  add_log(*bench, runner);
  add_group(*bench, runner);
  add_latency(*bench, runner);
  add_ipc(*bench, runner);
  add_crash(*bench, runner);
  add_idle(*bench, runner);
  add_report(*bench, runner);
  add_compare(*bench, runner);
}

}  // namespace leat::bench
