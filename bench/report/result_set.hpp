// What `leat bench ipc` and the programs of bench/peers measured, read back from their JSON.
//
//     const ResultSet set = read_results({"results/"});             // files or directories of them
//     const ResultSet mine = parse_results(report.dump(), "mine");  // what was just measured
//
// Files are not trusted: whatever does not have the right form, and every number that cannot be, is a
// Failure of one line that names the file and the result.
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

// What was measured. Two results of the same key are the same measurement, made twice.
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

// One run, or the median of several. What a pattern does not have is empty.
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

struct Measurement {
  ResultKey key;
  bool baseline = false;    // One slot and no queue: what a queue can't beat.
  bool in_process = false;  // Threads of one process, where the others are two processes.
  bool verified = false;
  std::uint64_t count = 0;
  std::optional<Figures> median;  // Empty: not supported, and the note says why.
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
  std::string command;
  std::vector<Fact> machine;

  // Of the machine; "unknown" if the file does not say.
  std::string fact(std::string_view name) const;
};

struct ResultSet {
  std::vector<Source> sources;
  std::vector<Measurement> results;  // By key, each key once.
  std::vector<std::string> skipped;  // Files of a directory that hold another kind of report.

  const Measurement* find(const ResultKey& key) const;
};

// Reads files, and of a directory all its *.json. Where two have the same key, the later file by
// name counts. Throws Failure: not there, not readable, not what `leat bench ipc` writes.
ResultSet read_results(const std::vector<std::string>& paths);

// The text of one file; `name` is for messages.
ResultSet parse_results(std::string_view text, const std::string& name);

// Adds the results of `later`, which replace those of the same key.
void merge(ResultSet& set, ResultSet later);

}  // namespace leat::bench
