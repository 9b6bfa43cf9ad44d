// leat bench ipc: every way two processes can talk, on the same messages.
//
// A row is a method in one variant. All rows are measured in turns, round after round, so that everything
// else that the machine does affects all of them alike.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "bench/harness/clock.hpp"
#include "bench/ipc/methods.hpp"
#include "bench/ipc/rows.hpp"
#include "bench/ipc/sweep.hpp"
#include "bench/leat/topics.hpp"
#include "bench/output/text_file.hpp"
#include "bench/report/report_page.hpp"
#include "commands.hpp"

namespace leat::bench {
namespace {

using namespace ipc;

constexpr std::size_t kMaxSize = 64u << 20;
constexpr std::uint64_t kMaxCount = 100'000'000;
constexpr std::uint32_t kMaxBatch = 1024;
constexpr std::uint32_t kUsualBatch = 64;

struct IpcArguments {
  std::vector<std::string> methods = {"all"};
  std::optional<std::uint64_t> count;
  std::size_t size = 100;
  std::string pattern;  // Empty: pingpong; in a sweep, both; with a rate, rate.
  std::uint64_t rate = 0;
  std::uint32_t batch = 0;  // 0: 1, and kUsualBatch where the method has batches.
  bool busy = false;
  bool block = false;
  std::optional<std::uint64_t> warm_up;
  int runs = 5;
  std::vector<int> cpus;
  std::uint64_t time_limit_s = 120;
  bool compat = false;
  std::string sweep;
  std::string out;
  JsonOption json;
  std::string html;
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
      throw Failure(kExitUsage,
                    fmt::format("--method {}: not known; choose all or of:{}", name, known_names));
    }
    chosen.push_back(*known);
  }
  return chosen;
}

std::vector<Variant> chosen_variants(const IpcArguments& options, const Method& method) {
  std::vector<Variant> variants;
  if (method.spinning && !options.block) variants.push_back(Variant::spinning);
  if (method.blocking && !options.busy) variants.push_back(Variant::blocking);
  // ipc-bench measures one variant of each method, by default the blocking one.
  if (options.compat && variants.size() > 1) variants.erase(variants.begin());
  return variants;
}

Pattern chosen_pattern(const IpcArguments& options) {
  if (options.rate != 0) return Pattern::rate;
  return options.pattern == "oneway" ? Pattern::oneway : Pattern::pingpong;
}

std::vector<Row> chosen_rows(const IpcArguments& options) {
  const Pattern pattern = chosen_pattern(options);
  Load load{.size = options.size,
            .pattern = pattern,
            .rate = options.rate,
            .time_limit = std::chrono::seconds{options.time_limit_s}};
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
        if (options.batch == 0) continue;  // --batch was not given.
        row.note = "not supported: it has no batches";
      }
      rows.push_back(row);
    }
  }
  if (rows.empty()) {
    throw Failure(kExitUsage,
                  fmt::format("none of these methods can {}; leave out --{}",
                              options.busy ? "spin" : "block", options.busy ? "busy" : "block"));
  }
  return rows;
}

void check(const IpcArguments& options) {
  if (options.rate != 0 && options.batch > 1) {
    throw Failure(kExitUsage, "--rate has each message sent when it is due: leave out --batch");
  }
  if (options.batch > 1 && options.pattern != "oneway") {
    throw Failure(kExitUsage, "--batch is for one direction: add --pattern oneway");
  }
  if (options.rate != 0 && options.pattern == "pingpong") {
    throw Failure(kExitUsage, "--rate is for one direction: leave out --pattern pingpong");
  }
  if (options.compat && chosen_pattern(options) != Pattern::pingpong) {
    throw Failure(kExitUsage, "--compat prints round trips: leave out --pattern and --rate");
  }
  if (options.compat && options.json.takes_stdout()) {
    throw Failure(kExitUsage, "--compat prints its own block: say --json=FILE");
  }
  if (options.html == "-" && (options.json.takes_stdout() || options.compat)) {
    throw Failure(kExitUsage, "--html -: stdout can have only one of the page, JSON and --compat");
  }
  if (options.sweep.empty() != options.out.empty()) {
    throw Failure(kExitUsage, "--sweep and --out DIR go together");
  }
  if (!options.sweep.empty() &&
      (options.compat || options.json.asked_for() || !options.html.empty())) {
    throw Failure(kExitUsage,
                  "--sweep writes to --out, for `leat bench report`: leave out --json, --html "
                  "and --compat");
  }
}

Json parameters_of(const IpcArguments& options) {
  return {{"methods", options.methods},
          {"size", options.size},
          {"count", options.count ? Json(*options.count) : Json(nullptr)},  // Null: see the rows.
          {"warm_up", options.warm_up ? Json(*options.warm_up) : Json(nullptr)},
          {"pattern", name_of(chosen_pattern(options))},
          {"rate", options.rate},
          {"batch", options.batch},
          {"busy", options.busy},
          {"block", options.block},
          {"runs", options.runs},
          {"pin", options.cpus}};
}

// All rows of one size and pattern.
struct Measured {
  Json report;
  std::vector<Row> rows;
};

Measured measure(const IpcArguments& options, const Progress& progress) {
  Measured measured{new_report(parameters_of(options)), chosen_rows(options)};
  measured.report["clock_ns"] = clock_cost_ns();  // Part of every latency.
  for (const auto& [library, version] : library_versions()) {
    measured.report["machine"]["libraries"][library] = version;
  }
  const Placement placement{options.cpus};
  if (!options.count) choose_counts(measured.rows, options.runs, placement, progress);
  for (Row& row : measured.rows) {
    Load& load = row.load;
    if (options.count) load.count = count_of_a_run(*options.count, options.runs);
    load.warm_up = options.warm_up.value_or(usual_warm_up(load.count));
  }
  measure_rows(measured.rows, options.runs, placement, progress);
  progress.clear();
  measured.report["results"] = to_json(measured.rows);
  return measured;
}

void run_once(const IpcArguments& options) {
  const Progress progress;
  const Measured measured = measure(options, progress);
  if (options.compat) {
    for (const Row& row : measured.rows) {
      if (row.runs.empty()) {
        fmt::print(stderr, "leat: {}: {}\n", row.method.name, row.note);
      } else {
        std::fputs(compatible(row).c_str(), stdout);
      }
    }
    std::fflush(stdout);
  } else if (!options.json.takes_stdout() && options.html != "-") {
    print_table(measured.report, measured.rows, options.runs);
  }
  options.json.write(measured.report);
  if (!options.html.empty()) {
    write_text(options.html, report_page(parse_results(measured.report.dump(), "this run")));
  }
  throw_failures(measured.rows);
}

// Each size, in both patterns unless one was chosen.
std::vector<IpcArguments> steps_of(const IpcArguments& options) {
  std::vector<std::string> patterns = {"pingpong", "oneway"};
  if (!options.pattern.empty() || options.rate != 0) patterns = {options.pattern};
  std::vector<IpcArguments> steps;
  for (const std::size_t size : sweep_sizes(options.sweep, kMaxSize)) {
    for (const std::string& pattern : patterns) {
      steps.push_back(options);
      steps.back().size = size;
      steps.back().pattern = pattern;
    }
  }
  return steps;
}

// "pingpong-100", "rate-10000-100"
std::string name_of_step(const IpcArguments& step) {
  std::string name = name_of(chosen_pattern(step));
  if (step.rate != 0) name += fmt::format("-{}", step.rate);
  return fmt::format("{}-{}", name, step.size);
}

// Each step writes a file. Steps that this build has already measured with the same parameters are
// skipped, so a sweep that was stopped continues where it was.
void run_sweep(const IpcArguments& options) {
  const std::vector<IpcArguments> steps = steps_of(options);
  const SweepDirectory directory(options.out);
  const Progress progress;
  SweepClock clock(steps.size());
  std::vector<Row> failed;
  for (const IpcArguments& step : steps) {
    const std::string name = name_of_step(step);
    const Json parameters = parameters_of(step);
    if (directory.has(name, parameters)) {
      fmt::print("{:<20} is there\n", name);
      clock.skip();
      continue;
    }
    const Measured measured = measure(step, progress);
    directory.write(name, measured.report);
    clock.step();
    fmt::print("{:<20} {} rows; {}\n", name, measured.rows.size(), clock.text());
    std::fflush(stdout);
    for (const Row& row : measured.rows) {
      if (row.failed) failed.push_back(row);
    }
  }
  throw_failures(failed);
}

void run_ipc(IpcArguments options) {
  check(options);
  options.json.check();
  if (!options.html.empty() && options.html != "-") check_writable(options.html);
  (void)topic_directory();
  options.cpus = chosen_cpus(options.cpus);
  if (options.compat) options.runs = 1;  // ipc-bench has no runs.
  const SignalScope signals;
  options.sweep.empty() ? run_once(options) : run_sweep(options);
}

// What is sent, and how.
void add_load_options(CLI::App& command, IpcArguments& options) {
  command.add_option("--method", options.methods, "Which of them")
      ->delimiter(',')
      ->option_text("all|NAME,... [all]");
  command
      .add_option(
          "-c,--count", options.count,
          "Messages of each method, in all runs together; by default 20000 round trips, or as "
          "many as take 1 s in one direction")
      ->check(CLI::Range(std::uint64_t{1}, kMaxCount))
      ->option_text("N");
  command.add_option("-s,--size", options.size, "Bytes of a message, such as 100 or 64KiB")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::size_t{1}, kMaxSize))
      ->option_text("BYTES [100]");
  command
      .add_option(
          "--pattern", options.pattern,
          "A message and its answer, or as many messages as possible in one direction; a sweep "
          "does both, or what --rate says")
      ->check(CLI::IsMember({"pingpong", "oneway"}))
      ->option_text("pingpong|oneway [pingpong]");
  command
      .add_option("--rate", options.rate,
                  "Messages per second, in one direction; the latency of each counts from when it "
                  "was due")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000'000}))
      ->option_text("PER_SECOND");
  command
      .add_option("--batch", options.batch,
                  "Messages handed over at a time, with oneway; by default 1, and 64 too")
      ->check(CLI::Range(std::uint32_t{1}, kMaxBatch))
      ->option_text("N");
}

}  // namespace

void add_ipc(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("ipc", "Every way two processes can talk");
  auto options = std::make_shared<IpcArguments>();
  add_load_options(*command, *options);
  auto* busy = command->add_flag("-b,--busy", options->busy, "Only what spins");
  command->add_flag("--block", options->block, "Only what sleeps in the kernel")->excludes(busy);
  command
      ->add_option("--warmup", options->warm_up,
                   "Messages of each run before its time starts; by default a tenth of those that "
                   "are timed")
      ->check(CLI::Range(std::uint64_t{0}, kMaxCount))
      ->option_text("N");
  add_runs_option(*command, options->runs);
  add_pin_option(*command, options->cpus);
  command
      ->add_option("--time-limit", options->time_limit_s,
                   "Seconds that one run of a method may take")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{86'400}))
      ->option_text("SECONDS [120]");
  command
      ->add_option(
          "--sweep", options->sweep,
          "Messages of several sizes in bytes, into --out: from FROM by factors of 4 up to "
          "TO, such as 1..64KiB, or a list")
      ->option_text("sizes=FROM..TO|SIZE,...");
  command
      ->add_option("--out", options->out,
                   "Where a sweep leaves its results; one that was stopped goes on there")
      ->option_text("DIR");
  command->add_flag("--compat", options->compat,
                    "One run, printed as ipc-bench does, for its scripts");
  options->json.add_to(*command);
  command->add_option("--html", options->html, "Write a page with pictures; - is stdout")
      ->option_text("FILE");
  command->footer(
      "The whole payload goes, and every byte of every message is checked. All rows are measured "
      "in turns. Times are in nanoseconds (ns): p50, p99, p99.9, max and mean of a round trip, or "
      "with --rate of one message; CPU time and context switches are per round trip or message. "
      "docs/guide/benchmarking.md says what the figures mean.\n\n"
      "Example:\n  leat bench ipc --method pipe,leat -s 100 -c 20000");
  command->callback([options] { run_ipc(*options); });
}

}  // namespace leat::bench
