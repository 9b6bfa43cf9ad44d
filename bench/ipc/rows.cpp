#include "rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "bench/output/units.hpp"

namespace leat::bench::ipc {
namespace {

constexpr int kSignalExit = 128;  // And above: a signal ended the measurement, nothing failed.

// No figure is more precise than a tenth of a nanosecond.
double tenths(double value) { return std::round(value * 10) / 10; }

Json to_json(const Cost& cost, const Load& load) {
  const Pattern pattern = load.pattern;
  const bool has_latency = pattern != Pattern::oneway;
  const auto latency = [&](double value_ns) {
    return has_latency ? Json(tenths(value_ns)) : Json(nullptr);
  };
  const auto percentile = [&](double part, double value_ns) {
    return load.count < samples_needed(part) ? Json(nullptr) : latency(value_ns);
  };
  const Latency& of = cost.latency;
  // At a rate the sender spins until the next message is due, which is no cost of sending.
  const bool sender_counts = pattern != Pattern::rate;
  return {{"p50_ns", latency(of.p50)},
          {"p90_ns", percentile(0.9, of.p90)},
          {"p99_ns", percentile(0.99, of.p99)},
          {"p999_ns", percentile(0.999, of.p999)},
          {"p9999_ns", percentile(0.9999, of.p9999)},
          {"min_ns", latency(of.min)},
          {"max_ns", latency(of.max)},
          {"mean_ns", latency(of.mean)},
          {"stddev_ns", latency(of.stddev)},
          {"elapsed_ns", cost.elapsed_ns},
          {"messages_per_second", tenths(cost.messages_per_second)},
          {"cpu_ns_per_message",
           tenths((sender_counts ? cost.sender_cpu_ns : 0) + cost.receiver_cpu_ns)},
          {"sender_cpu_ns_per_message",
           sender_counts ? Json(tenths(cost.sender_cpu_ns)) : Json(nullptr)},
          {"receiver_cpu_ns_per_message", tenths(cost.receiver_cpu_ns)},
          {"context_switches_per_message", std::round(cost.context_switches * 1e4) / 1e4}};
}

// A warning about a row that has figures; empty if there is none.
std::string remark_on(const Row& row) {
  if (row.load.pattern != Pattern::rate || row.runs.empty()) return {};
  constexpr double kKeptUp = 0.95;
  const double reached = median_of(row.runs).messages_per_second;
  if (reached >= kKeptUp * static_cast<double>(row.load.rate)) return {};
  return fmt::format("could not keep up: {}; the longer a run, the larger its latencies",
                     rate_text(reached));
}

Json to_json(const Row& row) {
  Json runs = Json::array();
  for (const Cost& run : row.runs) runs.push_back(to_json(run, row.load));
  const bool measured = !row.runs.empty();
  return {{"method", row.method.name},
          {"variant", name_of(row.load.variant)},
          {"baseline", row.method.baseline && row.load.variant == Variant::spinning},
          {"pattern", name_of(row.load.pattern)},
          {"size", row.load.size},
          {"count", row.load.count * std::max<std::size_t>(row.runs.size(), 1)},
          {"batch", row.load.batch},
          {"rate", row.load.rate},
          {"verified", measured},
          {"median", measured ? to_json(median_of(row.runs), row.load) : Json(nullptr)},
          {"runs", std::move(runs)},
          {"note", row.note.empty() ? remark_on(row) : row.note}};
}

constexpr std::uint64_t kUsualCount = 20'000;
constexpr std::uint64_t kFewest = 1000;
constexpr std::uint64_t kFewestAtRate = 20;       // Each may take a second.
constexpr std::uint64_t kMostAtRate = 1'000'000;  // A slow method takes a minute for so many.
constexpr std::uint64_t kMost = 20'000'000;
constexpr std::uint64_t kUsualBytes = 512u << 20;  // If messages are large.
constexpr double kUsualSeconds = 1;

// How many messages take this many seconds.
std::uint64_t count_by_trying(Load load, const Method& method, double seconds,
                              const Placement& placement) {
  constexpr double kLongEnoughNs = 2e7;
  constexpr std::uint64_t kFactor = 8;
  for (load.count = kFewest;; load.count *= kFactor) {
    load.warm_up = load.count / 10;
    const Cost cost = method.measure(load, placement);
    if (cost.elapsed_ns < kLongEnoughNs && load.count < kMost / kFactor) continue;
    // Measured twice, since a process may have had to wait for its CPU.
    const Cost again = method.measure(load, placement);
    const double count = std::max(cost.messages_per_second, again.messages_per_second) * seconds;
    return std::clamp(static_cast<std::uint64_t>(count), kFewest, kMost);
  }
}

// Runs `measure`; if it throws, notes why in the row.
template <class Measure>
void with_note(Row& row, const Measure& measure) {
  try {
    measure();
  } catch (const NotSupported& reason) {
    row.note = fmt::format("not supported: {}", reason.what());
  } catch (const Failure& failure) {
    if (failure.exit_code() >= kSignalExit) throw;
    row.note = kFailed + std::string(failure.what());
    row.failed = true;
  } catch (const std::exception& error) {
    row.note = kFailed + std::string(error.what());
    row.failed = true;
  }
  if (!row.note.empty()) row.runs.clear();
}

std::string shown(double ns) {
  if (ns < 9999.5) return fmt::format("{:.0f}", ns);
  if (ns < 9'999'500) return fmt::format("{:.1f}k", ns / 1e3);
  return fmt::format("{:.1f}M", ns / 1e6);
}

void print_head(const Json& report, const Load& load, int runs) {
  fmt::print("{}; messages of {} B, {}\n", machine_line(report), load.size, runs_line(runs));
  fmt::print("{}\n\n", load.pattern == Pattern::pingpong
                           ? "Time of a round trip: a message and its answer."
                       : load.pattern == Pattern::rate
                           ? fmt::format("Time from when a message was due until it was received, "
                                         "at {} messages/s.",
                                         load.rate)
                           : std::string("As fast as it goes in one direction."));
  fmt::print("{:<11} {:<9} ", "method", "variant");
  if (load.pattern == Pattern::oneway) {
    fmt::print("{:>5} ", "batch");
  } else {
    fmt::print("{:>8} {:>8} {:>8} {:>8} {:>8} ", "p50 ns", "p99 ns", "p99.9 ns", "max ns",
               "mean ns");
  }
  fmt::print("{:>12} {:>8} {:>8}\n", "messages/s", "CPU ns", "switches");
}

void print_row(const Row& row) {
  const Load& load = row.load;
  fmt::print("{:<11} {:<9} ", row.method.name, name_of(load.variant));
  if (load.pattern == Pattern::oneway) fmt::print("{:>5} ", load.batch);
  if (row.runs.empty()) {
    fmt::print("{}\n", row.note);
    return;
  }
  const Cost cost = median_of(row.runs);
  if (load.pattern != Pattern::oneway) {
    const auto percentile = [&](double part, double value_ns) {
      return load.count < samples_needed(part) ? "-" : shown(value_ns);
    };
    fmt::print("{:>8} {:>8} {:>8} {:>8} {:>8} ", shown(cost.latency.p50),
               percentile(0.99, cost.latency.p99), percentile(0.999, cost.latency.p999),
               shown(cost.latency.max), shown(cost.latency.mean));
  }
  const double cpu_ns =
      cost.receiver_cpu_ns + (load.pattern == Pattern::rate ? 0 : cost.sender_cpu_ns);
  fmt::print("{:>12.0f} {:>8} {:>8.2f}{}{}\n", cost.messages_per_second, shown(cpu_ns),
             cost.context_switches,
             row.method.baseline && load.variant == Variant::spinning ? "  baseline" : "",
             remark_on(row).empty() ? "" : "  could not keep up");
}

void print_foot(const Json& report, const Load& load) {
  const bool is_round_trip = load.pattern == Pattern::pingpong;
  fmt::print(
      "\nns: nanoseconds; k, M: thousand, million.\n"
      "{}CPU ns, switches: CPU time and context switches of {} per {}.\n"
      "baseline: one slot and no queue, with nothing but the memory between the two.\n",
      is_round_trip                     ? "messages/s: round trips per second.\n"
      : load.pattern == Pattern::oneway ? "batch: messages that are handed over at a time.\n"
                                        : "",
      load.pattern == Pattern::rate ? "the receiver" : "both sides",
      is_round_trip ? "round trip" : "message");
  if (load.pattern == Pattern::oneway) return;
  fmt::print("Reading the clock takes {} ns, which is part of each latency.\n",
             report["clock_ns"].get<std::uint64_t>());
  if (load.count < samples_needed(0.999)) {
    fmt::print("-: in each run a p99 needs 100 messages, a p99.9 needs 1000.\n");
  }
}

}  // namespace

std::uint64_t count_of_a_run(std::uint64_t count, int runs) {
  const auto parts = static_cast<std::uint64_t>(runs);
  return (count + parts - 1) / parts;
}

void choose_counts(std::vector<Row>& rows, int runs, const Placement& placement,
                   const Progress& progress) {
  for (Row& row : rows) {
    Load& load = row.load;
    if (!row.note.empty()) continue;
    switch (load.pattern) {
      case Pattern::pingpong:
        load.count =
            count_of_a_run(std::clamp(kUsualBytes / load.size, kFewest, kUsualCount), runs);
        break;
      case Pattern::rate:
        load.count = count_of_a_run(std::clamp(load.rate, kFewestAtRate, kMostAtRate), runs);
        break;
      case Pattern::oneway:
        progress.show(
            fmt::format("{} ({}): how many messages", row.method.name, name_of(load.variant)));
        with_note(row, [&] {
          load.count = count_by_trying(load, row.method, kUsualSeconds / runs, placement);
        });
        break;
    }
  }
}

void measure_rows(std::vector<Row>& rows, int runs, const Placement& placement,
                  const Progress& progress) {
  for (int run = 1; run <= runs; ++run) {
    for (Row& row : rows) {
      if (!row.note.empty()) continue;
      progress.show(fmt::format("{} ({}), {} B, round {} of {}", row.method.name,
                                name_of(row.load.variant), row.load.size, run, runs));
      with_note(row, [&] { row.runs.push_back(row.method.measure(row.load, placement)); });
    }
  }
}

void throw_failures(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    if (row.failed) {
      throw Failure(
          fmt::format("{} ({}) {}", row.method.name, name_of(row.load.variant), row.note));
    }
  }
}

Cost median_of(const std::vector<Cost>& runs) {
  const auto of = [&](auto&& figure) {
    std::vector<double> values;
    for (const Cost& run : runs) values.push_back(figure(run));
    return median(std::move(values));
  };
  const auto latency = [&](double Latency::*figure) {
    return of([&](const Cost& run) { return run.latency.*figure; });
  };
  return {.latency = {latency(&Latency::p50), latency(&Latency::p90), latency(&Latency::p99),
                      latency(&Latency::p999), latency(&Latency::p9999), latency(&Latency::min),
                      latency(&Latency::max), latency(&Latency::mean), latency(&Latency::stddev)},
          .elapsed_ns = of([](const Cost& run) { return run.elapsed_ns; }),
          .messages_per_second = of([](const Cost& run) { return run.messages_per_second; }),
          .sender_cpu_ns = of([](const Cost& run) { return run.sender_cpu_ns; }),
          .receiver_cpu_ns = of([](const Cost& run) { return run.receiver_cpu_ns; }),
          .context_switches = of([](const Cost& run) { return run.context_switches; })};
}

Json to_json(const std::vector<Row>& rows) {
  Json results = Json::array();
  for (const Row& row : rows) results.push_back(to_json(row));
  return results;
}

void print_table(const Json& report, const std::vector<Row>& rows, int runs) {
  const Load& load = rows.front().load;
  print_head(report, load, runs);
  for (const Row& row : rows) print_row(row);
  print_foot(report, load);
  std::fflush(stdout);
}

std::string compatible(const Row& row) {
  const Cost cost = median_of(row.runs);
  const auto us = [](double ns) { return fmt::format("{:.3f}\tus", ns / 1e3); };
  return fmt::format(
      "\n============ RESULTS ================\n"
      "Message size:       {}\n"
      "Message count:      {}\n"
      "Total duration:     {:.3f}\tms\n"
      "Average duration:   {}\n"
      "Minimum duration:   {}\n"
      "Maximum duration:   {}\n"
      "Standard deviation: {}\n"
      "Message rate:       {:.0f}\tmsg/s\n"
      "=====================================\n",
      row.load.size, row.load.count, cost.elapsed_ns / 1e6, us(cost.latency.mean),
      us(cost.latency.min), us(cost.latency.max), us(cost.latency.stddev),
      std::floor(cost.messages_per_second));
}

}  // namespace leat::bench::ipc
