#include "commands.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/harness/processes.hpp"

namespace leat::bench {

bool Choices::was_made() const {
  return std::any_of(options_.begin(), options_.end(),
                     [](const CLI::Option* option) { return option->count() > 0; });
}

CLI::Option* add_pin_option(CLI::App& command, std::vector<int>& cpus) {
  return command
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
      throw Failure(kExitUsage, fmt::format("--pin {}: not a CPU that may be used; those are {}",
                                            cpu, fmt::join(usable, ",")));
    }
  }
  return asked.empty() ? usable : asked;
}

}  // namespace leat::bench
