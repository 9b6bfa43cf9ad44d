// The subcommands of `leat bench`, one file each: options, what to measure, tables. Each function
// registers one.
//
//     add_limits(app);
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

namespace leat::bench {

void add_limits(CLI::App& bench);
void add_log(CLI::App& bench);
void add_group(CLI::App& bench);
void add_broker(CLI::App& bench);
void add_latency(CLI::App& bench);
void add_ipc(CLI::App& bench);
void add_crash(CLI::App& bench);
void add_idle(CLI::App& bench);
void add_report(CLI::App& bench);
void add_compare(CLI::App& bench);

// Options that several subcommands share.
void add_pin_option(CLI::App& command, std::vector<int>& cpus);
void add_runs_option(CLI::App& command, int& runs);

// The CPUs asked for, checked, or by default all that this process may use.
std::vector<int> chosen_cpus(const std::vector<int>& asked);

}  // namespace leat::bench
