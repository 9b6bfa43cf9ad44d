#include "result_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/failure.hpp"
#include "bench/output/units.hpp"
#include "bench/statistics.hpp"

namespace leat::bench {
namespace {

// Not ordered_json, which searches all keys at every lookup: a file with a million keys would take hours.
using Value = nlohmann::json;

// Far above anything ever measured, far below what would make a page or a chart unusable.
constexpr std::uintmax_t kMaxFileBytes = 64u << 20;
constexpr std::size_t kMaxResults = 5000;
constexpr std::size_t kMaxRuns = 1000;
constexpr std::size_t kMaxNameLength = 64;
constexpr std::size_t kMaxTextLength = 2000;
constexpr std::size_t kMaxFacts = 100;
constexpr std::uint64_t kMaxInteger = std::uint64_t{1} << 40;
constexpr double kMinFigure = 1e-9;  // But for 0.
constexpr double kMaxFigure = 1e18;

// Text for a page or a terminal: no control characters, limited length.
std::string cleaned(std::string text) {
  if (text.size() > kMaxTextLength) {
    std::size_t end = kMaxTextLength;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) --end;
    text.resize(end);
    text += "…";
  }
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
  return text;
}

// Any value as text. Nothing in a report is nested deeper than `levels`.
std::string in_words(const Value& value, int levels = 3) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number()) return value.dump();
  if (value.is_null() || levels == 0) return "…";
  std::string text;
  for (const auto& [key, part] : value.items()) {
    if (text.size() > kMaxTextLength) break;
    if (!text.empty()) text += ", ";
    if (value.is_object()) text += key + ": ";
    text += in_words(part, levels - 1);
  }
  return text;
}

// Reads values out of JSON. A wrong one is a Failure that says where it is.
class Reader {
 public:
  explicit Reader(std::string where) : where_{std::move(where)} {}

  [[noreturn]] void wrong(const std::string& what) const {
    throw Failure(kExitFormat, fmt::format("{}: {}", where_, what));
  }

  const Value& member(const Value& object, const char* name) const {
    const auto found = object.find(name);
    if (found == object.end()) wrong(fmt::format("{} is missing", name));
    return *found;
  }

  std::string text(const Value& object, const char* name) const {
    const Value& value = member(object, name);
    if (!value.is_string()) wrong(fmt::format("{} is {}, not a text", name, shown(value)));
    return cleaned(value.get<std::string>());
  }

  // The name of a method: part of the key, and shown in tables, charts and terminals.
  std::string name(const Value& object, const char* name) const {
    const Value& value = member(object, name);
    const auto printable = [](unsigned char c) { return c >= 0x20 && c < 0x7F; };
    const std::string text = value.is_string() ? value.get<std::string>() : "";
    if (text.empty() || text.size() > kMaxNameLength ||
        !std::all_of(text.begin(), text.end(), printable)) {
      wrong(fmt::format("{} is not a name of 1 to {} ASCII characters", name, kMaxNameLength));
    }
    return text;
  }

  // The day of "2026-11-23T02:32:39Z".
  std::string day(const Value& object, const char* name) const {
    constexpr std::string_view kForm = "2026-11-23";
    const std::string text = this->text(object, name).substr(0, kForm.size());
    const auto fits = [](char c, char like) {
      return like == '-' ? c == '-' : c >= '0' && c <= '9';
    };
    if (text.size() != kForm.size() || !std::equal(text.begin(), text.end(), kForm.begin(), fits)) {
      wrong(fmt::format("{} is not like {}", name, kForm));
    }
    return text;
  }

  // False if it is missing.
  bool flag(const Value& object, const char* name) const {
    const auto found = object.find(name);
    if (found == object.end()) return false;
    if (!found->is_boolean())
      wrong(fmt::format("{} is {}, not true or false", name, shown(*found)));
    return found->get<bool>();
  }

  std::uint64_t integer(const Value& object, const char* name, std::uint64_t lowest) const {
    const Value& value = member(object, name);
    const double number = value.is_number() ? value.get<double>() : -1;
    if (!(number >= static_cast<double>(lowest)) || number > static_cast<double>(kMaxInteger) ||
        number != std::floor(number)) {
      wrong(fmt::format("{} is {}, not a whole number from {} to {}", name, shown(value), lowest,
                        kMaxInteger));
    }
    return static_cast<std::uint64_t>(number);
  }

  // What only `pattern` has; with any other it is `none`.
  std::uint64_t integer_of(Pattern pattern, const ResultKey& key, const Value& object,
                           const char* name, std::uint64_t none) const {
    const std::uint64_t number = integer(object, name, key.pattern == pattern ? 1 : none);
    if (key.pattern != pattern && number != none)
      wrong(fmt::format("{} is {}; with {} it is {}", name, number, name_of(key.pattern), none));
    return number;
  }

  Figures figures(const Value& object, const std::string& name) const {
    if (!object.is_object()) wrong(fmt::format("{} is {}, not an object", name, shown(object)));
    Figures figures;
    for (const NamedFigure& named : kFigures) {
      const auto found = object.find(named.name);
      if (found == object.end() || found->is_null()) continue;
      const double number = found->is_number() ? found->get<double>() : -1;
      if (number != 0 && !(number >= kMinFigure && number <= kMaxFigure)) {
        wrong(fmt::format("{}.{} is {}, not a number from {:g} to {:g}, or 0", name, named.name,
                          shown(*found), kMinFigure, kMaxFigure));
      }
      figures.*named.figure = number;
    }
    return figures;
  }

 private:
  // A value in an error message.
  static std::string shown(const Value& value) {
    if (value.is_object()) return "an object";
    if (value.is_array()) return "a list";
    if (value.is_null()) return "null";
    if (!value.is_string()) return value.dump();
    const std::string text = cleaned(value.get<std::string>());
    return text.size() <= kMaxNameLength ? "'" + text + "'" : "a long text";
  }

  std::string where_;
};

template <class Enum>
Enum one_of(const Reader& reader, const char* name, const std::string& text,
            std::initializer_list<Enum> choices) {
  std::string names;
  for (const Enum choice : choices) {
    if (text == name_of(choice)) return choice;
    names += (names.empty() ? "" : ", ") + std::string(name_of(choice));
  }
  reader.wrong(fmt::format("{} is '{}', not one of {}", name, text, names));
}

ResultKey read_key(const Reader& reader, const Value& value) {
  ResultKey key;
  key.method = reader.name(value, "method");
  key.variant = one_of(reader, "variant", reader.text(value, "variant"),
                       {Variant::spinning, Variant::blocking});
  key.pattern = one_of(reader, "pattern", reader.text(value, "pattern"),
                       {Pattern::pingpong, Pattern::oneway, Pattern::rate});
  key.size = reader.integer(value, "size", 1);
  key.batch = reader.integer_of(Pattern::oneway, key, value, "batch", 1);
  key.rate = reader.integer_of(Pattern::rate, key, value, "rate", 0);
  return key;
}

// Results are sorted and drawn by this figure.
void check_figures(const Reader& reader, const Measurement& result, const Figures& figures,
                   const std::string& name) {
  const bool oneway = result.key.pattern == Pattern::oneway;
  if (oneway ? !figures.messages_per_second : !figures.p50_ns) {
    reader.wrong(fmt::format("{}.{} is missing; {} has it", name,
                             oneway ? "messages_per_second" : "p50_ns",
                             name_of(result.key.pattern)));
  }
}

// With too few samples a percentile is nothing but the slowest of them.
void leave_out_uncertain(Figures& figures, std::uint64_t samples) {
  for (const Percentile& percentile : kPercentiles) {
    if (percentile.figure == &Figures::p50_ns || samples >= samples_needed(percentile.part))
      continue;
    (figures.*percentile.figure).reset();
  }
}

Measurement read_result(const Value& value, const std::string& place) {
  const Reader at_place(place);
  if (!value.is_object()) at_place.wrong("not an object");
  Measurement result;
  result.key = read_key(at_place, value);

  const Reader reader(fmt::format("{} ({})", place, to_string(result.key)));
  // Older files mark blocking variants, too; they don't spin on the slot.
  result.baseline = reader.flag(value, "baseline") && result.key.variant == Variant::spinning;
  result.in_process = reader.flag(value, "in_process");
  result.verified = reader.flag(value, "verified");
  result.count = reader.integer(value, "count", 0);
  if (value.contains("note")) result.note = reader.text(value, "note");

  const Value& median = reader.member(value, "median");
  const Value& runs = reader.member(value, "runs");
  if (!runs.is_array() || runs.size() > kMaxRuns) {
    reader.wrong(fmt::format("runs is not a list of at most {}", kMaxRuns));
  }
  if (median.is_null()) {
    if (!runs.empty()) reader.wrong("there are runs, but median is null");
    return result;
  }
  result.median = reader.figures(median, "median");
  check_figures(reader, result, *result.median, "median");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string name = fmt::format("runs[{}]", i);
    result.runs.push_back(reader.figures(runs[i], name));
    check_figures(reader, result, result.runs.back(), name);
  }
  const std::uint64_t samples = result.count / std::max<std::size_t>(runs.size(), 1);
  leave_out_uncertain(*result.median, samples);
  for (Figures& run : result.runs) leave_out_uncertain(run, samples);
  return result;
}

Source read_source(const Value& report, const std::string& name) {
  const Reader reader(name);
  Source source;
  source.file = name;
  source.version = reader.text(report, "version");
  source.commit = reader.text(report, "commit");
  if (report.contains("date")) source.day = reader.day(report, "date");
  if (report.contains("command")) source.command = reader.text(report, "command");
  const Value& machine = reader.member(report, "machine");
  if (!machine.is_object() || machine.size() > kMaxFacts) {
    reader.wrong(fmt::format("machine is not an object of at most {} facts", kMaxFacts));
  }
  for (const auto& [key, value] : machine.items()) {
    source.machine.push_back({cleaned(key), cleaned(in_words(value))});
  }
  return source;
}

Value parse_json(std::string_view text, const std::string& name) {
  try {
    return Value::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw Failure(kExitFormat,
                  fmt::format("{}: not JSON (wrong at byte {}); results are what `leat bench ipc "
                              "--json=FILE` writes",
                              name, error.byte));
  } catch (const nlohmann::json::exception&) {
    throw Failure(kExitFormat, fmt::format("{}: holds a number that is too large", name));
  }
}

// Rows of bench/peers of a kind that `leat bench ipc` does not measure.
bool is_of_peers_only(const Value& result) {
  if (!result.is_object() || !result.contains("pattern")) return false;
  return result["pattern"] == "group" || result["pattern"] == "crash";
}

ResultSet from_json(const Value& report, const std::string& name) {
  const Reader reader(name);
  if (!report.is_object() || !report.contains("results")) {
    reader.wrong("not a report of `leat bench ipc` (no list of results)");
  }
  const Value& results = report["results"];
  if (!results.is_array() || results.size() > kMaxResults) {
    reader.wrong(fmt::format("results is not a list of at most {}", kMaxResults));
  }
  ResultSet set;
  set.sources.push_back(read_source(report, name));
  std::map<ResultKey, Measurement> by_key;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (is_of_peers_only(results[i])) continue;
    Measurement result = read_result(results[i], fmt::format("{}: results[{}]", name, i));
    by_key.insert_or_assign(result.key, std::move(result));
  }
  for (auto& [key, result] : by_key) set.results.push_back(std::move(result));
  return set;
}

std::string read_file(const std::string& name) {
  // Opening a pipe would block until its other end is open.
  if (!std::filesystem::is_regular_file(name)) {
    throw Failure(kExitUsage, fmt::format("{}: not a file or directory of results", name));
  }
  std::ifstream file(name, std::ios::binary);
  if (!file) throw system_failure("cannot read " + name);
  const std::uintmax_t size = std::filesystem::file_size(name);
  if (size > kMaxFileBytes) {
    throw Failure(kExitFormat, fmt::format("{}: has {} bytes; results have at most {}", name, size,
                                           kMaxFileBytes));
  }
  std::string text(size, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

struct FoundFile {
  std::string name;
  bool in_directory;  // Found in a directory, not named by the user: it may be something else.
};

void find_files(const std::string& path, std::vector<FoundFile>& files) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    throw Failure(kExitNotThere, fmt::format("{}: no such file or directory", path));
  }
  if (status.type() != std::filesystem::file_type::directory) {
    files.push_back({path, false});
    return;
  }
  const std::size_t before = files.size();
  std::filesystem::directory_iterator entries(path, error);
  if (error) throw Failure(kExitPermission, fmt::format("{}: {}", path, error.message()));
  for (const auto& entry : entries) {
    if (entry.path().extension() == ".json" && entry.is_regular_file()) {
      files.push_back({entry.path().string(), true});
    }
  }
  if (files.size() == before) {
    throw Failure(kExitNotThere, fmt::format("{}: no *.json in this directory", path));
  }
}

}  // namespace

std::string to_string(const ResultKey& key) {
  std::string text = fmt::format("{}, {}, {}, {}", key.method, name_of(key.variant),
                                 name_of(key.pattern), size_text(key.size));
  if (key.pattern == Pattern::oneway) text += fmt::format(", batches of {}", key.batch);
  if (key.rate > 0) text += fmt::format(", {}", rate_text(static_cast<double>(key.rate)));
  return text;
}

std::string Source::fact(std::string_view name) const {
  const auto found = std::find_if(machine.begin(), machine.end(),
                                  [&](const Fact& fact) { return fact.name == name; });
  return found == machine.end() ? "unknown" : found->value;
}

const Measurement* ResultSet::find(const ResultKey& key) const {
  const auto found = std::lower_bound(
      results.begin(), results.end(), key,
      [](const Measurement& result, const ResultKey& k) { return result.key < k; });
  return found != results.end() && found->key == key ? &*found : nullptr;
}

namespace {

// A file of which later ones replaced every result says nothing about the rest.
void delete_unused_sources(ResultSet& set) {
  std::map<std::size_t, std::size_t> new_index;
  for (const Measurement& result : set.results) new_index.emplace(result.source, 0);
  std::vector<Source> used;
  for (auto& [index, moved] : new_index) {
    moved = used.size();
    used.push_back(std::move(set.sources[index]));
  }
  for (Measurement& result : set.results) result.source = new_index.at(result.source);
  set.sources = std::move(used);
}

}  // namespace

void merge(ResultSet& set, ResultSet later) {
  std::map<ResultKey, Measurement> by_key;
  for (Measurement& result : set.results) by_key.insert_or_assign(result.key, std::move(result));
  for (Measurement& result : later.results) {
    result.source += set.sources.size();
    by_key.insert_or_assign(result.key, std::move(result));
  }
  set.results.clear();
  for (auto& [key, result] : by_key) set.results.push_back(std::move(result));
  std::move(later.sources.begin(), later.sources.end(), std::back_inserter(set.sources));
  std::move(later.skipped.begin(), later.skipped.end(), std::back_inserter(set.skipped));
  delete_unused_sources(set);
}

ResultSet parse_results(std::string_view text, const std::string& name) {
  return from_json(parse_json(text, name), name);
}

ResultSet read_results(const std::vector<std::string>& paths) {
  std::vector<FoundFile> files;
  for (const std::string& path : paths) find_files(path, files);
  std::sort(files.begin(), files.end(),
            [](const FoundFile& a, const FoundFile& b) { return a.name < b.name; });
  ResultSet set;
  for (const FoundFile& file : files) {
    const Value report = parse_json(read_file(file.name), file.name);
    if (file.in_directory && report.is_object() && !report.contains("results")) {
      set.skipped.push_back(file.name);
      continue;
    }
    merge(set, from_json(report, file.name));
  }
  if (set.results.empty()) {
    throw Failure(kExitNotThere,
                  fmt::format("{}: no results of `leat bench ipc`", fmt::join(paths, ", ")));
  }
  return set;
}

}  // namespace leat::bench
