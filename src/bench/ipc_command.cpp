// leat bench ipc: every way two processes can talk, on the same messages.
//
// One row is a method in one variant. All rows are measured in turns, round after round, so that what
// else the machine does falls on all of them alike.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "commands.hpp"
#include "ipc/methods.hpp"
#include "ipc_results.hpp"
#include "report.hpp"
#include "round_trip.hpp"
#include "topics.hpp"

namespace leat::bench {
namespace {

using namespace ipc;

constexpr std::size_t kMaxSize = 64u << 20;
constexpr std::uint64_t kMaxCount = 100'000'000;
constexpr std::uint32_t kMaxBatch = 1024;
constexpr std::uint32_t kUsualBatch = 64;

struct Options {
  std::vector<std::string> methods = {"all"};
  std::uint64_t count = 20'000;
  std::size_t size = 100;
  std::string pattern = "pingpong";
  std::uint64_t rate = 0;
  std::uint32_t batch = 0;  // 0: the usual ones.
  bool busy = false;
  bool block = false;
  std::optional<std::uint64_t> warm_up;
  int runs = 5;
  std::vector<int> cpus;
  bool compat = false;
  JsonOption json;
};

std::vector<Method> chosen_methods(const std::vector<std::string>& names) {
  const std::vector<Method> all = all_methods();
  if (std::find(names.begin(), names.end(), "all") != names.end()) return all;
  std::vector<Method> chosen;
  for (const std::string& name : names) {
    const auto known = std::find_if(all.begin(), all.end(),
                                    [&](const Method& method) { return method.name == name; });
    if (known == all.end()) {
      std::string known_names;
      for (const Method& method : all) known_names += std::string(" ") + method.name;
      throw Failure(kExitBadUsage,
                    fmt::format("--method {}: not known; choose all or of:{}", name, known_names));
    }
    chosen.push_back(*known);
  }
  return chosen;
}

std::vector<Variant> chosen_variants(const Options& options, const Method& method) {
  std::vector<Variant> variants;
  if (method.spinning && !options.block) variants.push_back(Variant::spinning);
  if (method.blocking && !options.busy) variants.push_back(Variant::blocking);
  // ipc-bench has one variant of each, and blocks unless told otherwise.
  if (options.compat && variants.size() > 1) variants.erase(variants.begin());
  return variants;
}

Pattern chosen_pattern(const Options& options) {
  if (options.rate != 0) return Pattern::rate;
  return options.pattern == "oneway" ? Pattern::oneway : Pattern::pingpong;
}

// What is to be measured, with what came of it so far.
std::vector<Row> chosen_rows(const Options& options) {
  const Pattern pattern = chosen_pattern(options);
  Load load{.size = options.size,
            .count = options.count,
            .warm_up = options.warm_up.value_or(warm_up_calls(options.count)),
            .pattern = pattern,
            .rate = options.rate};
  std::vector<Row> rows;
  for (const Method& method : chosen_methods(options.methods)) {
    for (const Variant variant : chosen_variants(options, method)) {
      load.variant = variant;
      load.batch = 1;
      if (options.batch <= 1) rows.push_back({method, load});
      load.batch = options.batch == 0 ? kUsualBatch : options.batch;
      if (pattern != Pattern::oneway || load.batch == 1) continue;
      Row row{method, load};
      if (!method.batches) {
        if (options.batch == 0) continue;  // Nobody asked for it.
        row.note = "not supported: it has no batches";
      }
      rows.push_back(row);
    }
  }
  if (rows.empty()) {
    throw Failure(kExitBadUsage,
                  fmt::format("none of these methods can {}; leave out --{}",
                              options.busy ? "spin" : "block", options.busy ? "busy" : "block"));
  }
  return rows;
}

void check(const Options& options) {
  if (options.rate != 0 && options.batch > 1) {
    throw Failure(kExitBadUsage, "--rate has each message sent when it is due: leave out --batch");
  }
  if (options.batch > 1 && options.pattern != "oneway") {
    throw Failure(kExitBadUsage, "--batch is for one direction: add --pattern oneway");
  }
  if (options.compat && options.pattern != "pingpong") {
    throw Failure(kExitBadUsage, "--compat prints round trips: leave out --pattern and --rate");
  }
}

Json parameters_of(const Options& options) {
  return {{"size", options.size},
          {"count", options.count},
          {"warm_up", options.warm_up.value_or(warm_up_calls(options.count))},
          {"pattern", name_of(chosen_pattern(options))},
          {"rate", options.rate},
          {"runs", options.runs},
          {"pin", options.cpus},
          {"clock_ns", clock_cost_ns()}};
}

void run_ipc(Options options) {
  check(options);
  options.json.check();
  (void)topic_directory();
  options.cpus = chosen_cpus(options.cpus);
  std::vector<Row> rows = chosen_rows(options);
  Json report = new_report(parameters_of(options));

  const SignalScope signals;
  const Progress progress;
  measure_rows(rows, options.runs, Placement{options.cpus}, progress);
  progress.clear();
  report["results"] = to_json(rows);

  if (options.compat) {
    for (const Row& row : rows) print_compatible(row);
  } else if (!options.json.takes_stdout()) {
    print_table(report, rows, options.runs);
  }
  options.json.write(report);
  throw_failures(rows);
}

}  // namespace

void add_ipc(CLI::App& bench, const Runner& runner) {
  CLI::App* command = bench.add_subcommand("ipc", "Every way two processes can talk");
  auto options = std::make_shared<Options>();
  command->add_option("--method", options->methods, "Which of them")
      ->delimiter(',')
      ->option_text("all|NAME,... [all]");
  command->add_option("-c,--count", options->count, "Messages of each run")
      ->check(CLI::Range(std::uint64_t{1}, kMaxCount))
      ->option_text("N [20000]");
  command->add_option("-s,--size", options->size, "Bytes of a message, such as 100 or 64KiB")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::size_t{1}, kMaxSize))
      ->option_text("BYTES [100]");
  command
      ->add_option("--pattern", options->pattern,
                   "A message and its answer, or as many as possible in one direction")
      ->check(CLI::IsMember({"pingpong", "oneway"}))
      ->option_text("pingpong|oneway [pingpong]");
  command
      ->add_option("--rate", options->rate,
                   "In one direction, so many messages per second; latency from when each was due")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000'000}))
      ->option_text("N");
  command
      ->add_option("--batch", options->batch,
                   "With oneway: messages handed over at a time; by default 1, and 64 too")
      ->check(CLI::Range(std::uint32_t{1}, kMaxBatch))
      ->option_text("N");
  auto* busy = command->add_flag("-b,--busy", options->busy, "Only what spins");
  command->add_flag("--block", options->block, "Only what sleeps in the kernel")->excludes(busy);
  command->add_option("--warmup", options->warm_up, "Messages before the time starts; a tenth more")
      ->check(CLI::Range(std::uint64_t{0}, kMaxCount))
      ->option_text("N");
  add_runs_option(*command, options->runs);
  add_pin_option(*command, options->cpus);
  command->add_flag("--compat", options->compat, "Print what ipc-bench prints, for its scripts");
  options->json.add_to(*command);
  command->footer(
      "The whole payload goes, and every byte of every message is checked. All rows are measured "
      "in\n"
      "turns. docs/guide/benchmarking.md says what the figures mean.\n\n"
      "Example:\n  leat bench ipc --method pipe,leat -s 100 -c 20000");
  runner.on_run(*command, [options] { run_ipc(*options); });
}

}  // namespace leat::bench
