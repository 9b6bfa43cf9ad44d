// What `leat bench ipc` and the programs of bench/peers measured, read back from their JSON.
//
//     const ResultSet set = read_results({"results/"});             // files or directories of them
//     const ResultSet mine = parse_results(report.dump(), "mine");  // what was just measured
//
// Files are not trusted: whatever is not in the right form, and every impossible number, is a Failure of
// one line that names the file and the result. A percentile that has too few samples is left out.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/pattern.hpp"

namespace leat::bench {

// What was measured. Two results with the same key are repetitions of one measurement.
struct ResultKey {
  std::string method;  // 1 to 64 printable ASCII characters.
  Variant variant = Variant::spinning;
  Pattern pattern = Pattern::pingpong;
  std::uint64_t size = 0;  // Bytes of a message.
  std::uint64_t batch = 1;
  std::uint64_t rate = 0;  // Messages a second; 0: as fast as it goes.

  auto operator<=>(const ResultKey&) const = default;
};

// "pipe, spinning, pingpong, 100 B"
std::string to_string(const ResultKey& key);

// One run, or the median of several. A figure is empty if the pattern has none.
struct Figures {
  std::optional<double> min_ns, p50_ns, p90_ns, p99_ns, p999_ns, p9999_ns, max_ns;
  std::optional<double> mean_ns, stddev_ns;
  std::optional<double> messages_per_second;
  std::optional<double> cpu_ns_per_message;  // Of both sides together.
  std::optional<double> sender_cpu_ns_per_message, receiver_cpu_ns_per_message;
  std::optional<double> context_switches_per_message;
};

using Figure = std::optional<double> Figures::*;

struct NamedFigure {
  const char* name;
  Figure figure;
};

// Their names in JSON.
inline constexpr std::array<NamedFigure, 14> kFigures = {{
    {"min_ns", &Figures::min_ns},
    {"p50_ns", &Figures::p50_ns},
    {"p90_ns", &Figures::p90_ns},
    {"p99_ns", &Figures::p99_ns},
    {"p999_ns", &Figures::p999_ns},
    {"p9999_ns", &Figures::p9999_ns},
    {"max_ns", &Figures::max_ns},
    {"mean_ns", &Figures::mean_ns},
    {"stddev_ns", &Figures::stddev_ns},
    {"messages_per_second", &Figures::messages_per_second},
    {"cpu_ns_per_message", &Figures::cpu_ns_per_message},
    {"sender_cpu_ns_per_message", &Figures::sender_cpu_ns_per_message},
    {"receiver_cpu_ns_per_message", &Figures::receiver_cpu_ns_per_message},
    {"context_switches_per_message", &Figures::context_switches_per_message},
}};

struct Percentile {
  const char* title;
  double part;
  Figure figure;
};

inline constexpr std::array<Percentile, 5> kPercentiles = {
    {{"p50", 0.5, &Figures::p50_ns},
     {"p90", 0.9, &Figures::p90_ns},
     {"p99", 0.99, &Figures::p99_ns},
     {"p99.9", 0.999, &Figures::p999_ns},
     {"p99.99", 0.9999, &Figures::p9999_ns}}};

struct Measurement {
  ResultKey key;
  bool baseline = false;    // Spins on one slot of memory: a floor for every queue.
  bool in_process = false;  // Between threads of one process; all others are between two processes.
  bool verified = false;    // Every byte was checked.
  std::uint64_t count = 0;  // Messages of all runs together.
  // Of one run: that run. Empty: not supported, and the note says why.
  std::optional<Figures> median;
  std::vector<Figures> runs;
  std::string note;
  std::size_t source = 0;  // In ResultSet::sources.
};

struct Fact {
  std::string name;
  std::string value;
  bool operator==(const Fact&) const = default;
};

// Where results come from.
struct Source {
  std::string file;
  std::string version;
  std::string commit;
  std::string day;  // "2026-11-23"; empty if the file does not say.
  std::string command;
  std::vector<Fact> machine;

  // About the machine; "unknown" if the file does not say.
  std::string fact(std::string_view name) const;
};

struct ResultSet {
  std::vector<Source> sources;
  std::vector<Measurement> results;  // By key, each key once.
  std::vector<std::string> skipped;  // Files of a directory that hold another kind of report.

  const Measurement* find(const ResultKey& key) const;
};

// Reads files, and every *.json of a directory. If two results have the same key, the one in the file
// with the later name counts. Throws Failure: not there, not readable, not what `leat bench ipc` writes.
ResultSet read_results(const std::vector<std::string>& paths);

// The text of one file; `name` is for messages.
ResultSet parse_results(std::string_view text, const std::string& name);

// Adds the results of `later`, which replace those with the same key. Sources without results are left out.
void merge(ResultSet& set, ResultSet later);

}  // namespace leat::bench
