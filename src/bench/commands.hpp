// The subcommands of `leat bench`, one file each. Each function registers one below `bench`.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace leat::bench {

// How a subcommand gets to run: registers the work, reports its Failure in one line on stderr and
// keeps the exit code.
class Runner {
 public:
  explicit Runner(int& exit_code) noexcept : exit_code_{&exit_code} {}
  void on_run(CLI::App& command, std::function<void()> work) const;

 private:
  int* exit_code_;
};

void add_limits(CLI::App& bench, const Runner& runner);
void add_log(CLI::App& bench, const Runner& runner);
void add_group(CLI::App& bench, const Runner& runner);
void add_latency(CLI::App& bench, const Runner& runner);
void add_ipc(CLI::App& bench, const Runner& runner);
void add_crash(CLI::App& bench, const Runner& runner);
void add_idle(CLI::App& bench, const Runner& runner);
void add_report(CLI::App& bench, const Runner& runner);
void add_compare(CLI::App& bench, const Runner& runner);

// Options that several subcommands share.
void add_pin_option(CLI::App& command, std::vector<int>& cpus);
void add_runs_option(CLI::App& command, int& runs);

// The CPUs asked for, checked, or by default all that this process may use.
std::vector<int> chosen_cpus(const std::vector<int>& asked);

}  // namespace leat::bench
