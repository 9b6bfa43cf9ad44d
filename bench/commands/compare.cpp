// `leat bench compare A B`: what changed between two results of `leat bench ipc`, beyond noise.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "bench/output/output.hpp"
#include "bench/output/text_file.hpp"
#include "bench/output/units.hpp"
#include "bench/report/ratio.hpp"
#include "bench/report/result_set.hpp"
#include "commands.hpp"

namespace leat::bench {
namespace {

// What is compared, and the verdict if it became larger or smaller.
struct Metric {
  const char* name;   // In the JSON.
  const char* title;  // In the table.
  Figure figure;
  const char* larger;
  const char* smaller;
};

constexpr Metric kP50 = {"p50_ns", "p50", &Figures::p50_ns, "slower", "faster"};
constexpr Metric kP99 = {"p99_ns", "p99", &Figures::p99_ns, "slower", "faster"};
constexpr Metric kRate = {"messages_per_second", "messages/s", &Figures::messages_per_second,
                          "faster", "slower"};
constexpr Metric kCpu = {"cpu_ns_per_message", "CPU", &Figures::cpu_ns_per_message, "dearer",
                         "cheaper"};
constexpr char kNoChange[] = "no change beyond noise";
constexpr char kTooFewRuns[] = "too few runs";
constexpr char kNoFigures[] = "no figures";

// The first one decides the verdict on a row.
std::vector<Metric> metrics_of(Pattern pattern) {
  if (pattern == Pattern::oneway) return {kRate, kCpu};
  return {kP50, kP99, kCpu};
}

struct Change {
  const Metric* metric = nullptr;
  std::optional<Ratio> ratio;  // None if one side lacks the figure, or has a zero.
  std::string verdict;
};

struct Comparison {
  const Measurement* before;
  const Measurement* after;
  std::vector<Metric> metrics;
  std::vector<Change> changes;  // One for each metric.
};

// Empty if a value is missing, or is not positive, so that it has no ratio.
std::vector<double> values_of(const Measurement& result, Figure figure) {
  std::vector<double> values;
  const auto add = [&](const Figures& figures) {
    const std::optional<double>& value = figures.*figure;
    if (!value || *value <= 0) return false;
    values.push_back(*value);
    return true;
  };
  const bool complete = result.runs.empty()
                            ? add(*result.median)
                            : std::all_of(result.runs.begin(), result.runs.end(), add);
  return complete ? values : std::vector<double>{};
}

Change change_of(const Metric& metric, const Measurement& before, const Measurement& after) {
  Change change{&metric, std::nullopt, kNoFigures};
  const std::vector<double> old_values = values_of(before, metric.figure);
  const std::vector<double> new_values = values_of(after, metric.figure);
  if (old_values.empty() || new_values.empty()) return change;
  change.ratio = ratio_of(old_values, new_values);
  const auto& interval = change.ratio->interval;
  change.verdict = !interval            ? kTooFewRuns
                   : interval->low > 1  ? metric.larger
                   : interval->high < 1 ? metric.smaller
                                        : kNoChange;
  return change;
}

std::vector<Comparison> compare(const ResultSet& before, const ResultSet& after) {
  std::vector<Comparison> comparisons;
  for (const Measurement& result : before.results) {
    const Measurement* other = after.find(result.key);
    if (!result.median || other == nullptr || !other->median) continue;
    Comparison& comparison =
        comparisons.emplace_back(Comparison{&result, other, metrics_of(result.key.pattern), {}});
    for (const Metric& metric : comparison.metrics) {
      comparison.changes.push_back(change_of(metric, result, *other));
    }
  }
  return comparisons;
}

// What has figures in one set and none in the other.
std::vector<const Measurement*> only_in(const ResultSet& set, const ResultSet& other) {
  std::vector<const Measurement*> results;
  for (const Measurement& result : set.results) {
    const Measurement* found = other.find(result.key);
    if (result.median && (found == nullptr || !found->median)) results.push_back(&result);
  }
  return results;
}

// --- JSON ---------------------------------------------------------------------------------------

Json to_json(const ResultKey& key) {
  return {{"method", key.method},
          {"variant", name_of(key.variant)},
          {"pattern", name_of(key.pattern)},
          {"size", key.size},
          {"batch", key.batch},
          {"rate", key.rate}};
}

Json to_json(const Comparison& comparison) {
  Json json = to_json(comparison.before->key);
  json["runs"] = {comparison.before->runs.size(), comparison.after->runs.size()};
  json["verdict"] = comparison.changes.front().verdict;
  for (const Change& change : comparison.changes) {
    Json& entry = json["metrics"][change.metric->name];
    const bool sure = change.ratio && change.ratio->interval;
    entry["ratio"] = change.ratio ? Json(change.ratio->ratio) : Json(nullptr);
    entry["low"] = sure ? Json(change.ratio->interval->low) : Json(nullptr);
    entry["high"] = sure ? Json(change.ratio->interval->high) : Json(nullptr);
    entry["confidence"] = sure ? Json(change.ratio->interval->confidence) : Json(nullptr);
    entry["verdict"] = change.verdict;
  }
  return json;
}

Json to_json(const std::vector<Source>& sources) {
  Json json = Json::array();
  for (const Source& source : sources) {
    json.push_back({{"file", source.file},
                    {"version", source.version},
                    {"commit", source.commit},
                    {"cpu", source.fact("cpu")},
                    {"kernel", source.fact("kernel")}});
  }
  return json;
}

Json keys_of(const std::vector<const Measurement*>& results) {
  Json json = Json::array();
  for (const Measurement* result : results) json.push_back(to_json(result->key));
  return json;
}

// --- For people ---------------------------------------------------------------------------------

std::string in_words(const Change& change) {
  if (!change.ratio) return "-";
  const auto& interval = change.ratio->interval;
  if (!interval) return fmt::format("{:.3f}", change.ratio->ratio);
  return fmt::format("{:.3f} [{:.3f}, {:.3f}]", change.ratio->ratio, interval->low, interval->high);
}

std::string what_of(const ResultKey& key) {
  if (key.pattern == Pattern::oneway) return fmt::format("{} x{}", size_text(key.size), key.batch);
  if (key.pattern == Pattern::pingpong) return size_text(key.size);
  return fmt::format("{} {}", size_text(key.size), rate_text(static_cast<double>(key.rate)));
}

// Columns as wide as their longest entry, left-aligned: numbers have units, so there is no digit to align
// them by.
std::string lined_up(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string table_of(const std::vector<Comparison>& comparisons, Pattern pattern) {
  std::vector<std::vector<std::string>> rows = {{name_of(pattern), "", ""}};
  for (const Metric& metric : metrics_of(pattern)) rows[0].emplace_back(metric.title);
  for (const Comparison& comparison : comparisons) {
    const ResultKey& key = comparison.before->key;
    if (key.pattern != pattern) continue;
    auto& row = rows.emplace_back();
    row = {key.method, name_of(key.variant), what_of(key)};
    for (const Change& change : comparison.changes) row.push_back(in_words(change));
    row.push_back(comparison.changes.front().verdict);
  }
  return rows.size() > 1 ? lined_up(rows) + "\n" : "";
}

std::string list_of(const char* where, const std::vector<const Measurement*>& results) {
  if (results.empty()) return {};
  std::string out = fmt::format("Only in {}:\n", where);
  for (const Measurement* result : results) out += fmt::format("  {}\n", to_string(result->key));
  return out + "\n";
}

std::string origin_of(const char* name, const ResultSet& set) {
  const Source& source = set.sources.back();
  const std::string more =
      set.sources.size() > 1 ? fmt::format(" and {} more files", set.sources.size() - 1) : "";
  return fmt::format("{}: {}{}, leat {}, commit {}\n", name, source.file, more, source.version,
                     source.commit);
}

bool same_machine(const ResultSet& before, const ResultSet& after) {
  const Source& a = before.sources.back();
  const Source& b = after.sources.back();
  return a.fact("cpu") == b.fact("cpu") && a.fact("cpus_online") == b.fact("cpus_online") &&
         a.fact("kernel") == b.fact("kernel");
}

std::string summary_of(const std::vector<Comparison>& comparisons) {
  if (comparisons.empty()) return "Nothing to compare: no measurement is in both.\n";
  std::map<std::string, std::size_t> counts;
  for (const Comparison& comparison : comparisons) ++counts[comparison.changes.front().verdict];
  std::vector<std::string> parts;
  for (const char* verdict : {"faster", "slower", kNoChange, kTooFewRuns, kNoFigures}) {
    if (counts[verdict] > 0) parts.push_back(fmt::format("{} {}", counts[verdict], verdict));
  }
  std::string out = fmt::format("{}.\n", fmt::join(parts, ", "));
  if (counts[kTooFewRuns] > 0) {
    out += "Too few runs: an interval of 95 % needs at least 4 runs on each side, or 3 and 5.\n";
  }
  if (counts[kTooFewRuns] < comparisons.size()) {
    out +=
        "In brackets: at least 95 % confidence, from the runs. Where nothing changed, about 1 in "
        "20 "
        "still looks as if it had.\nThe runs know the noise within A and within B, not what the "
        "machine did between them: if it matters, measure in turns.\n";
  }
  return out;
}

std::string text_of(const ResultSet& before, const ResultSet& after,
                    const std::vector<Comparison>& comparisons) {
  std::string out = origin_of("A", before) + origin_of("B", after);
  if (!same_machine(before, after)) {
    out += "These are different machines: the ratios say nothing about the program alone.\n";
  }
  out += "B divided by A:\n\n";
  for (const Pattern pattern : {Pattern::pingpong, Pattern::oneway, Pattern::rate}) {
    out += table_of(comparisons, pattern);
  }
  return out + list_of("A", only_in(before, after)) + list_of("B", only_in(after, before)) +
         summary_of(comparisons);
}

struct CompareArguments {
  std::string before;
  std::string after;
  JsonOption json;
};

void run(const CompareArguments& options) {
  const ResultSet before = read_results({options.before});
  const ResultSet after = read_results({options.after});
  options.json.check();
  const std::vector<Comparison> comparisons = compare(before, after);
  Json json = {{"a", to_json(before.sources)},
               {"b", to_json(after.sources)},
               {"same_machine", same_machine(before, after)},
               {"compared", Json::array()},
               {"only_in_a", keys_of(only_in(before, after))},
               {"only_in_b", keys_of(only_in(after, before))}};
  for (const Comparison& comparison : comparisons) json["compared"].push_back(to_json(comparison));
  if (!options.json.takes_stdout()) write_text("-", text_of(before, after, comparisons));
  options.json.write(json);
}

}  // namespace

void add_compare(CLI::App& bench) {
  auto options = std::make_shared<CompareArguments>();
  CLI::App* command = bench.add_subcommand("compare", "Say what changed between two results");
  command
      ->add_option("a", options->before,
                   "What was: a JSON file of `leat bench ipc`, or a directory of them")
      ->required()
      ->option_text("A");
  command->add_option("b", options->after, "What is now, the same way")
      ->required()
      ->option_text("B");
  options->json.add_to(*command);
  command->footer("Example:\n  leat bench compare before.json after.json");
  command->callback([options] { run(*options); });
}

}  // namespace leat::bench
