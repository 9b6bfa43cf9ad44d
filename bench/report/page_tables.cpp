#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "bench/output/units.hpp"
#include "charts.hpp"
#include "page_parts.hpp"

namespace leat::bench {
namespace {

std::string number_text(double value) { return fmt::format("{:.2f}", value); }

struct Column {
  std::string title;
  std::function<std::string(const Measurement&)> cell;
  bool words = false;  // Text, not a figure: aligned left, and may wrap.
};

Column figure_column(const char* title, Figure figure, const InWords& in_words) {
  return {title,
          [=](const Measurement& result) { return or_none(*result.median.*figure, in_words); }};
}

std::string range_of_rank_figure(const Measurement& result) {
  const std::string range = range_text(result, rank_figure(result.key.pattern), rank_words(result));
  return range.empty() ? kNone : range;
}

std::vector<Column> name_columns() {
  return {{"method", [](const Measurement& result) { return label_of(result); }},
          {"variant", [](const Measurement& result) { return name_of(result.key.variant); }}};
}

void add(std::vector<Column>& columns, std::vector<Column> more) {
  std::move(more.begin(), more.end(), std::back_inserter(columns));
}

std::vector<Column> latency_columns(Pattern pattern) {
  std::vector<Column> columns = name_columns();
  if (pattern == Pattern::rate) {
    columns.push_back({"rate", [](const Measurement& result) {
                         return rate_text(static_cast<double>(result.key.rate));
                       }});
  }
  add(columns, {figure_column("p50", &Figures::p50_ns, time_text),
                figure_column("p90", &Figures::p90_ns, time_text),
                figure_column("p99", &Figures::p99_ns, time_text),
                figure_column("p99.9", &Figures::p999_ns, time_text),
                figure_column("p99.99", &Figures::p9999_ns, time_text),
                figure_column("max", &Figures::max_ns, time_text),
                figure_column("mean", &Figures::mean_ns, time_text),
                figure_column("std. dev.", &Figures::stddev_ns, time_text),
                figure_column("per second", &Figures::messages_per_second, rate_text)});
  return columns;
}

std::vector<Column> oneway_columns() {
  std::vector<Column> columns = name_columns();
  add(columns,
      {{"batch", [](const Measurement& result) { return fmt::format("{}", result.key.batch); }},
       figure_column("messages", &Figures::messages_per_second, rate_text),
       {"bytes", [](const Measurement& result) {
          const auto& rate = result.median->messages_per_second;
          return rate ? bytes_rate_text(*rate * static_cast<double>(result.key.size)) : kNone;
        }}});
  return columns;
}

std::vector<Column> cost_columns(Pattern pattern) {
  const bool oneway = pattern == Pattern::oneway;
  return {figure_column("CPU", &Figures::cpu_ns_per_message, time_text),
          figure_column("CPU, sender", &Figures::sender_cpu_ns_per_message, time_text),
          figure_column("CPU, receiver", &Figures::receiver_cpu_ns_per_message, time_text),
          figure_column("switches", &Figures::context_switches_per_message, number_text),
          {"runs", [](const Measurement& result) { return fmt::format("{}", result.runs.size()); }},
          {oneway ? "range of messages" : "range of p50", range_of_rank_figure}};
}

std::string table(const std::vector<Column>& columns, const Results& results) {
  std::string out = "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>";
  for (const Column& column : columns) {
    out +=
        fmt::format("<th{}>{}</th>", column.words ? " class=\"words\"" : "", escaped(column.title));
  }
  out += "</tr></thead><tbody>\n";
  for (const Measurement* result : results) {
    out += is_leat(result->key.method) ? "<tr class=\"leat\">"
           : result->baseline          ? "<tr class=\"base\">"
                                       : "<tr>";
    for (const Column& column : columns) {
      out += fmt::format("<td{}>{}</td>", column.words ? " class=\"words\"" : "",
                         escaped(column.cell(*result)));
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

// A longer table would push everything after it off the screen.
constexpr std::size_t kLong = 12;

std::string folded_if_long(const std::string& title, std::size_t rows, const std::string& table) {
  if (rows <= kLong) return table;
  return fmt::format("<details><summary>{}: {} rows</summary>\n{}</details>\n", title, rows, table);
}

const char* words_for(Pattern pattern) {
  switch (pattern) {
    case Pattern::pingpong: return "round trips";
    case Pattern::oneway: return "one way";
    case Pattern::rate: break;
  }
  return "at a rate";
}

}  // namespace

std::string tables_of(const ResultSet& set, std::uint64_t size) {
  std::string out;
  const auto add_table = [&](Pattern pattern, const char* title, std::vector<Column> columns) {
    const auto results = ranked(set, pattern, size);
    if (results.empty()) return;
    add(columns, cost_columns(pattern));
    if (results.size() <= kLong) out += fmt::format("<h3>{}</h3>\n", title);
    out += folded_if_long(title, results.size(), table(columns, results));
  };
  add_table(Pattern::pingpong, "Round trips", latency_columns(Pattern::pingpong));
  add_table(Pattern::oneway, "One way, as fast as it goes", oneway_columns());
  add_table(Pattern::rate, "One way at a fixed rate", latency_columns(Pattern::rate));
  return out;
}

// One row for each method and reason: a sweep meets the same limit at many sizes and patterns.
std::string table_of_missing(const ResultSet& set) {
  struct Limit {
    std::set<Variant> variants;
    std::set<Pattern> patterns;
    std::set<std::uint64_t> sizes;
  };
  std::map<std::pair<std::string, std::string>, Limit> limits;
  for (const Measurement& result : set.results) {
    if (result.median) continue;
    Limit& limit = limits[{result.key.method, result.note}];
    limit.variants.insert(result.key.variant);
    limit.patterns.insert(result.key.pattern);
    limit.sizes.insert(result.key.size);
  }
  if (limits.empty()) return {};
  const auto joined = [](const auto& values, const auto& in_words) {
    std::string out;
    for (const auto value : values) out += (out.empty() ? "" : ", ") + std::string(in_words(value));
    return out;
  };
  std::string out =
      "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th>method</th>"
      "<th class=\"words\">what</th><th class=\"words\">reason</th></tr></thead><tbody>\n";
  for (const auto& [method_and_note, limit] : limits) {
    const auto& [method, note] = method_and_note;
    out += fmt::format(
        "<tr><td>{}</td><td class=\"words\">{}; {}; {}</td><td class=\"words\">{}</td></tr>\n",
        escaped(method), joined(limit.variants, [](Variant v) { return name_of(v); }),
        joined(limit.patterns, words_for), joined(limit.sizes, size_text),
        note.empty() ? "not said" : escaped(note));
  }
  out += "</tbody></table></div>\n";
  return "<h2>Not measured</h2>\n" + folded_if_long("Methods and reasons", limits.size(), out);
}

std::string table_of_remarks(const ResultSet& set) {
  Results results;
  for (const Measurement& result : set.results) {
    if (result.median && !result.note.empty()) results.push_back(&result);
  }
  if (results.empty()) return {};
  std::vector<Column> columns = name_columns();
  add(columns,
      {{"pattern", [](const Measurement& result) { return words_for(result.key.pattern); }},
       {"size", [](const Measurement& result) { return size_text(result.key.size); }},
       {"note", [](const Measurement& result) { return result.note; }, true}});
  return fmt::format("<details><summary>Remarks on {} results</summary>\n{}</details>\n",
                     results.size(), table(columns, results));
}

}  // namespace leat::bench
