// leat bench log: records per second, and what each costs publisher and subscriber.
//
// The floor is a bare ring whose writer copies the payload from its own memory, as publish() does; a
// writer that makes the payload in the slot itself is faster for 8 bytes, and is reported as well. Log
// and ring get their payloads from the same kind of prepared buffers. Whatever is compared is measured
// in turns, so that everything else that the machine does affects all alike. Each turn also measures
// how far apart the two CPUs are: on a virtual machine that changes from second to second, and all
// figures with it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "bench/floors/floors.hpp"
#include "bench/leat/durable.hpp"
#include "bench/leat/log.hpp"
#include "bench/output/output.hpp"
#include "bench/output/units.hpp"
#include "bench/statistics.hpp"
#include "commands.hpp"
#include "durable.hpp"

namespace leat::bench {
namespace {

constexpr std::array<std::size_t, 4> kLogSizes = {8, 32, 100, 1024};
constexpr std::uint32_t kMaxEach = 200;  // Publishers, and subscribers.

struct LogArguments {
  std::size_t size = 100;
  std::uint64_t records = 0;  // 0: as many as take about 0.1 s.
  std::uint32_t publishers = 1;
  std::uint32_t subscribers = 1;
  std::string mode;  // Empty: exclusive if there is one publisher, else shared.
  std::uint32_t batch = 1;
  std::uint64_t rate = 0;
  std::uint64_t capacity_bytes = 0;  // 0: 8 MiB, durable topics: 32 MiB.
  int runs = 5;
  std::vector<int> cpus;
  std::string verify = "ends";
  std::string durable;  // Empty: topics in memory.
  std::uint32_t in_flight = 0;
  bool peers = false;
  std::string data_directory;  // Empty: /var/tmp
  JsonOption json;
};

// One line of the table.
struct LogCase {
  LogOptions log;
  std::optional<LogOptions> one;  // 1 publisher, 1 subscriber: what the case is compared with.
};

std::uint64_t default_records(std::size_t size) {
  return std::max<std::uint64_t>(1'000'000'000 / (size + 100), 1000);
}

const char* name_of(Mode mode) { return mode == Mode::exclusive ? "exclusive" : "shared"; }

std::string title_of(const LogOptions& log) {
  std::string title =
      fmt::format("{}, {} to {}", name_of(log.mode), log.publishers, log.subscribers);
  if (log.batch > 1) title += fmt::format(", batches of {}", log.batch);
  if (log.rate != 0) title += fmt::format(", {}/s", log.rate);
  if (log.capacity_bytes != kLogCapacityBytes) title += ", " + size_text(log.capacity_bytes);
  return title;
}

// The project's goal for `ratio` (with several publishers, for `ratio_to_one`) without a rate.
std::optional<double> target_of(const LogOptions& log) {
  struct Target {
    Mode mode;
    std::uint32_t publishers, batch;
    std::array<double, 4> by_size;
  };
  static constexpr Target kTargets[] = {{Mode::exclusive, 1, 1, {2.0, 0.9, 0.8, 1.0}},
                                        {Mode::exclusive, 1, 16, {1.3, 0.6, 0.3, 0.8}},
                                        {Mode::shared, 1, 1, {5, 2.2, 1.2, 1.2}},
                                        {Mode::shared, 2, 1, {1.3, 1.3, 1.3, 1.3}}};
  const auto size = std::find(kLogSizes.begin(), kLogSizes.end(), log.size);
  if (size == kLogSizes.end() || log.subscribers != 1 || log.rate != 0 ||
      log.capacity_bytes != kLogCapacityBytes) {
    return std::nullopt;
  }
  for (const Target& target : kTargets) {
    if (target.mode == log.mode && target.publishers == log.publishers &&
        target.batch == log.batch) {
      return target.by_size[static_cast<std::size_t>(size - kLogSizes.begin())];
    }
  }
  return std::nullopt;
}

LogCase make_case(const LogOptions& log) {
  if (log.publishers == 1 && log.subscribers == 1) return {log, std::nullopt};
  LogOptions one = log;
  one.publishers = one.subscribers = 1;
  return {log, one};
}

// The headline table: every size, every way to publish.
std::vector<std::vector<LogCase>> all_cases(const LogOptions& common, bool choose_records) {
  std::vector<std::vector<LogCase>> sizes;
  for (const std::size_t size : kLogSizes) {
    LogOptions log = common;
    log.size = size;
    if (choose_records) log.records = default_records(size);
    std::vector<LogCase> cases{make_case(log)};
    log.batch = 16;
    cases.push_back(make_case(log));
    log.batch = 1;
    log.mode = Mode::shared;
    cases.push_back(make_case(log));
    log.publishers = 2;
    cases.push_back(make_case(log));
    sizes.push_back(std::move(cases));
  }
  return sizes;
}

// All measurements of one size, run by run.
struct Turns {
  std::vector<double> cache_lines_ns;  // Round trips.
  std::vector<double> floors_ns;
  std::vector<double> floors_in_place_ns;
  std::vector<LogOptions> settings;             // Each once, however many cases need it.
  std::vector<std::vector<MessageCost>> costs;  // By setting, then by run.

  std::size_t index_of(const LogOptions& setting) const {
    return static_cast<std::size_t>(std::find(settings.begin(), settings.end(), setting) -
                                    settings.begin());
  }
};

Turns measure_in_turns(const std::vector<LogCase>& cases, int runs, const std::vector<int>& cpus,
                       const Progress& progress) {
  Turns turns;
  const auto want = [&](const LogOptions& setting) {
    if (turns.index_of(setting) == turns.settings.size()) turns.settings.push_back(setting);
  };
  for (const LogCase& one : cases) {
    want(one.log);
    if (one.one) want(*one.one);
  }
  turns.costs.resize(turns.settings.size());

  const LogOptions& first = turns.settings.front();
  const Placement placement{cpus};
  const auto ring_ns = [&](PayloadSource source) {
    return ring_ns_per_record(
        {.size = first.size, .records = first.records, .verify = first.verify, .source = source},
        placement);
  };
  for (int run = 1; run <= runs; ++run) {
    const auto show = [&](const std::string& what) {
      progress.show(fmt::format("{} B, run {} of {}: {}", first.size, run, runs, what));
    };
    turns.cache_lines_ns.push_back(cache_line_round_trip_ns(kCacheLineTrips, placement));
    show("ring");
    turns.floors_ns.push_back(ring_ns(PayloadSource::copied));
    turns.floors_in_place_ns.push_back(ring_ns(PayloadSource::in_place));
    for (std::size_t i = 0; i < turns.settings.size(); ++i) {
      show(title_of(turns.settings[i]));
      turns.costs[i].push_back(measure_log(turns.settings[i], cpus));
    }
  }
  return turns;
}

Json parameters_of(const LogOptions& log) {
  return {{"size", log.size},
          {"records", log.records},
          {"publishers", log.publishers},
          {"subscribers", log.subscribers},
          {"mode", name_of(log.mode)},
          {"batch", log.batch},
          {"rate", log.rate},
          {"verify", log.verify == Verify::full ? "full" : "ends"},
          {"capacity_bytes", log.capacity_bytes}};
}

// runs, median, floor, ratio of one case.
Json results_of(const LogCase& measured, const Turns& turns) {
  Json runs = to_json(turns.costs[turns.index_of(measured.log)], "subscriber");
  const Json median_run = median_of(runs);
  const double cost_ns = median_run["ns_per_record"];
  const double floor_ns = median(turns.floors_ns);
  const double floor_in_place_ns = median(turns.floors_in_place_ns);
  Json results = {{"runs", std::move(runs)},
                  {"median", median_run},
                  {"floor", floor_ns},
                  {"ratio", cost_ns / floor_ns},
                  {"floor_in_place", floor_in_place_ns},
                  {"ratio_in_place", cost_ns / floor_in_place_ns}};
  add_distance(results, turns.cache_lines_ns);
  if (measured.one) {
    const Json one = median_of(to_json(turns.costs[turns.index_of(*measured.one)], "subscriber"));
    results["one"] = one;
    if (measured.log.publishers > 1) {
      results["ratio_to_one"] = cost_ns / one["ns_per_record"].get<double>();
    }
    if (measured.log.subscribers > 1) {
      results["publisher_cpu_ratio_to_one"] =
          median_run["publisher_cpu_ns_per_record"].get<double>() /
          one["publisher_cpu_ns_per_record"].get<double>();
    }
  }
  return results;
}

void print_log_head(const Json& report, int runs) {
  fmt::print("{}; {}\n", machine_line(report), runs_line(runs));
  fmt::print("Nanoseconds per record; CPU time of the publishers is without their waiting.\n\n");
  fmt::print("{:<34} {:>5} {:>8} {:>8} {:>8} {:>8} {:>7} {:>6} {:>7} {:>7} {:>10}\n", "", "bytes",
             "ns", "M/s", "pub CPU", "sub CPU", "floor", "ratio", "to one", "target", "line");
}

void print_row(const LogOptions& log, const Json& results) {
  const Json& middle = results["median"];
  const auto target = target_of(log);
  const char* to_one = log.publishers > 1 ? "ratio_to_one" : "publisher_cpu_ratio_to_one";
  fmt::print(
      "{:<34} {:>5} {:>8.1f} {:>8.2f} {:>8.1f} {:>8.1f} {:>7.1f} {:>6.2f} {:>7} {:>7} {:>10}\n",
      title_of(log), log.size, middle["ns_per_record"].get<double>(),
      middle["records_per_second"].get<double>() / 1e6,
      middle["publisher_cpu_ns_per_record"].get<double>(),
      middle["subscriber_cpu_ns_per_record"].get<double>(), results["floor"].get<double>(),
      results["ratio"].get<double>(),
      results.contains(to_one) ? fmt::format("{:.2f}", results[to_one].get<double>()) : "",
      target ? fmt::format("{:.1f}", *target) : "", distance_text(results));
  std::fflush(stdout);
}

void print_foot() {
  fmt::print(
      "\nfloor: a bare ring between two processes, its payload copied in; ratio: ns / floor.\n"
      "to one: against 1 publisher and 1 subscriber: ns with several publishers, else pub CPU.\n"
      "target: for the ratio; with several publishers for to one.\n"
      "{}",
      kDistanceNote);
}

// A record or a batch is one claim, which may take at most half a segment.
void check_sizes(const LogOptions& log) {
  const std::size_t max_size = log.capacity_bytes / 16 - 16;
  if (log.size > max_size) {
    throw Failure(kExitUsage, fmt::format("a record of {} bytes needs a --capacity of {} or more",
                                          log.size, (log.size + 16) * 16));
  }
  const std::uint64_t of_one = (log.size + 4 + 7) / 8 * 8;
  if (log.batch > 1 && 8 + of_one * log.batch > max_size) {
    throw Failure(kExitUsage,
                  fmt::format("--batch {} of --size {} is too much for one claim; up to {} fit",
                              log.batch, log.size, (max_size - 8) / of_one));
  }
}

std::uint64_t records_of(const LogArguments& options) {
  if (options.records != 0) return options.records;
  return options.durable.empty() ? default_records(options.size)
                                 : usual_durable_records(options.size);
}

std::uint64_t capacity_of(const LogArguments& options) {
  if (options.capacity_bytes != 0) return options.capacity_bytes;
  return options.durable.empty() ? kLogCapacityBytes : kDurableCapacityBytes;
}

LogOptions log_options(const LogArguments& options) {
  const bool exclusive =
      options.mode.empty() ? options.publishers == 1 : options.mode == "exclusive";
  const LogOptions log{.size = options.size,
                       .records = records_of(options),
                       .publishers = options.publishers,
                       .subscribers = options.subscribers,
                       .mode = exclusive ? Mode::exclusive : Mode::shared,
                       .batch = options.batch,
                       .rate = options.rate,
                       .capacity_bytes = capacity_of(options),
                       .verify = options.verify == "full" ? Verify::full : Verify::ends};
  if (exclusive && options.publishers > 1) {
    throw Failure(kExitUsage,
                  "an exclusive publisher is the only one: --publishers 1 or --mode shared");
  }
  if (options.publishers > 1 && options.size < sizeof(std::uint64_t)) {
    throw Failure(kExitUsage,
                  "several publishers need a --size of at least 8, to tell whose a record is");
  }
  check_sizes(log);
  return log;
}

void run_durable_log(const LogArguments& options, const LogOptions& log, bool has_choice) {
  DurableLevel level = parse_level(options.durable);
  level.in_flight = options.in_flight;
  level.publisher_archives = options.in_flight != 0 && options.publishers == 1;
  if (level.in_flight != 0 && (options.batch != 1 || options.rate != 0))
    throw Failure(kExitUsage, "--in-flight goes without --batch and --rate");
  if (options.subscribers != 1)
    throw Failure(kExitUsage,
                  "--durable measures until records are on disk, without --subscribers");
  DurablePlan plan{.cases = has_choice ? std::vector<DurablePlan::Case>{{log, level}}
                                       : usual_durable_cases(log, level, options.records == 0),
                   .has_more = !has_choice,
                   .has_peers = options.peers,
                   .records = options.records,
                   .runs = options.runs,
                   .cpus = options.cpus,
                   .json = options.json};
  if (!options.data_directory.empty()) plan.data_directory = options.data_directory;
  run_durable(plan, {{"durable", options.durable},
                     {"runs", options.runs},
                     {"pin", options.cpus},
                     {"data_directory", plan.data_directory},
                     {"capacity_bytes", log.capacity_bytes}});
}

void run_log(LogArguments options, bool has_choice) {
  options.json.check();
  (void)topic_directory();
  options.cpus = chosen_cpus(options.cpus);
  const LogOptions log = log_options(options);
  if (!options.durable.empty()) {
    run_durable_log(options, log, has_choice);
    return;
  }
  if (!options.data_directory.empty() || options.in_flight != 0 || options.peers)
    throw Failure(kExitUsage, "--data-dir, --in-flight and --peers are for --durable");
  const auto plan = has_choice ? std::vector<std::vector<LogCase>>{{make_case(log)}}
                               : all_cases(log, options.records == 0);

  Json parameters = {{"runs", options.runs}, {"pin", options.cpus}};
  if (has_choice) parameters.update(parameters_of(log));
  Json report = new_report(parameters);
  const bool with_table = !options.json.takes_stdout();
  if (with_table) print_log_head(report, options.runs);

  const SignalScope signals;
  const Progress progress;
  for (const std::vector<LogCase>& cases : plan) {
    const Turns turns = measure_in_turns(cases, options.runs, options.cpus, progress);
    progress.clear();
    for (const LogCase& measured : cases) {
      Json results = results_of(measured, turns);
      if (with_table) print_row(measured.log, results);
      if (has_choice) {
        report.update(results);
      } else {
        Json entry = {{"parameters", parameters_of(measured.log)}};
        entry.update(results);
        report["cases"].push_back(std::move(entry));
      }
    }
  }
  if (with_table) print_foot();
  options.json.write(report);
}

void add_durable_options(CLI::App& command, LogArguments& options, Choices& choice) {
  command
      .add_option("--durable", options.durable,
                   "Durable topics, in turns with what the kernel takes for the same bytes; TIME such "
                   "as 20ms")
      ->option_text("os|interval:TIME|fsync");
  choice(
      command
          .add_option("--in-flight", options.in_flight,
                       "Durable topics: each publisher waits for the disk behind so many records")
          ->check(CLI::Range(1u, 1'000'000u)),
      "N");
  command.add_flag("--peers", options.peers,
                    "Durable topics: also SQLite, with the same records and the same promise");
  command
      .add_option("--data-dir", options.data_directory,
                   "Where durable topics have their files meanwhile; on a disk, not in memory")
      ->option_text("DIR [/var/tmp]");
}

}  // namespace

void add_log(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("log", "What a record costs, beside the bare ring");
  auto options = std::make_shared<LogArguments>();
  Choices choice;
  choice(command->add_option("-s,--size", options->size, "Bytes of a record")
             ->check(CLI::Range(std::size_t{1}, kLargestRecord)),
         "BYTES [100]");
  command
      ->add_option("--records", options->records,
                   "Records of one run, by all publishers together; by default for about 0.1 s")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000'000'000}))
      ->option_text("N");
  choice(command->add_option("--publishers", options->publishers, "Publishing processes")
             ->check(CLI::Range(1u, kMaxEach)),
         "N [1]");
  choice(command
             ->add_option("--subscribers", options->subscribers,
                          "Subscribing processes; each gets every record")
             ->check(CLI::Range(1u, kMaxEach)),
         "N [1]");
  choice(command
             ->add_option("--mode", options->mode,
                          "Whether the publisher may be the topic's only one; by default if it is")
             ->check(CLI::IsMember({"exclusive", "shared"})),
         "exclusive|shared");
  choice(command->add_option("--batch", options->batch, "Records published at a time")
             ->check(CLI::Range(1u, 65536u)),
         "N [1]");
  choice(command
             ->add_option("--rate", options->rate,
                          "Records per second that each publisher sends, in groups of 16; else "
                          "as fast as it goes")
             ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000})),
         "PER_SECOND");
  command
      ->add_option("--verify", options->verify,
                   "Check the sequence at both ends of a record, or all its bytes")
      ->check(CLI::IsMember({"ends", "full"}))
      ->option_text("ends|full [ends]");
  command->add_option("--capacity", options->capacity_bytes, "Bytes that the topic holds, such as 64MiB")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::uint64_t{64} << 10, std::uint64_t{4} << 30))
      ->option_text("BYTES [8MiB]");
  add_durable_options(*command, *options, choice);
  add_runs_option(*command, options->runs);
  add_pin_option(*command, options->cpus);
  options->json.add_to(*command);
  command->footer(
      "Each publisher and subscriber is a process of its own, pinned to a CPU: publishers to the "
      "first ones, subscribers to the rest. The topic blocks when it is full.\n"
      "Publishers sleep while they wait, so their CPU time is without it; with --rate it is the "
      "time around the calls.\n"
      "The floor is a bare ring with one writer and one reader. Its writer copies the payload from "
      "memory of its own, as publishing does. ratio_in_place in the JSON refers to a writer that "
      "makes the payload where it belongs; for 8 bytes that is faster.\n"
      "Without --size, --publishers, --subscribers, --mode, --batch and --rate: a table of the "
      "usual cases.\n\n"
      "Example:\n  leat bench log --size 100 --publishers 2 --mode shared --pin 0,1 --json");
  command->callback([options, choice] { run_log(*options, choice.was_made()); });
}

}  // namespace leat::bench
