// The subcommands of `leat bench`, one file each: options, what to measure, tables. Each function
// registers one.
//
//     add_limits(app);
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <vector>

namespace leat::bench {

void add_limits(CLI::App& bench);
void add_log(CLI::App& bench);
void add_group(CLI::App& bench);
void add_broker(CLI::App& bench);
void add_latency(CLI::App& bench);
void add_ipc(CLI::App& bench);
void add_clients(CLI::App& bench);
void add_crash(CLI::App& bench);
void add_idle(CLI::App& bench);
void add_report(CLI::App& bench);
void add_compare(CLI::App& bench);

inline constexpr std::size_t kLargestRecord = (1u << 19) - 16;  // What a topic of 8 MiB takes.

// Options that choose one case: given any of them, that one is measured; else a table of the usual ones.
//
//     Choices choice;
//     choice(command.add_option("--size", size), "BYTES [100]");
//     command.callback([choice] { run(choice.was_made()); });
class Choices {
 public:
  void operator()(CLI::Option* option) { options_.push_back(option); }
  void operator()(CLI::Option* option, const std::string& text) {
    options_.push_back(option->option_text(text));
  }
  // Once the arguments were parsed.
  bool was_made() const;

 private:
  std::vector<CLI::Option*> options_;
};

// Options that several subcommands share.
CLI::Option* add_pin_option(CLI::App& command, std::vector<int>& cpus);
void add_runs_option(CLI::App& command, int& runs);

// The CPUs asked for, checked, or by default all that this process may use.
std::vector<int> chosen_cpus(const std::vector<int>& asked);

}  // namespace leat::bench
