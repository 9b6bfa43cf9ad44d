#include "report_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "bench/statistics.hpp"
#include "charts.hpp"
#include "plot.hpp"
#include "svg.hpp"
#include "units.hpp"

namespace leat::bench {
namespace {

const char kStyle[] = R"(*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,"DejaVu Sans",sans-serif}
main{max-width:1080px;margin:0 auto;padding:20px 16px 48px}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
h1{font-size:1.6rem;line-height:1.2;margin:.2em 0}h2{font-size:1.25rem;margin:1.8em 0 .4em}
h3{font-size:1rem;margin:0}p{margin:.5em 0;max-width:70ch}a{color:var(--other)}
.muted{color:var(--muted)}small,.caption{font-size:.84rem;color:var(--muted);margin:.2em 0 .8em}
.charts{columns:340px 2;column-gap:44px;margin:1em 0}
figure{margin:0 0 28px;max-width:520px;break-inside:avoid}figure svg{display:block;width:100%;height:auto}
.scroll{overflow-x:auto;margin:.6em 0 1.4em;border:1px solid var(--rule);border-radius:6px}
table{border-collapse:collapse;font-size:.84rem;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:4px 10px;text-align:right;white-space:nowrap;border-top:1px solid var(--rule)}
thead th{border-top:0;background:var(--panel);font-weight:600}
th:first-child,td:first-child,.words{text-align:left}td.words{white-space:normal;min-width:16em;overflow-wrap:anywhere}
td:first-child{position:sticky;left:0;background:var(--paper)}thead th:first-child{position:sticky;left:0}
tr.leat td:first-child{color:var(--leat);font-weight:700}tr.base td:first-child{color:var(--muted)}
details{border-top:1px solid var(--rule);padding:.6em 0}summary{cursor:pointer;font-weight:600;padding:.3em 0}
ul{padding-left:1.2em;max-width:72ch}li{margin:.3em 0}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--panel);padding:10px 12px;border-radius:6px;
font-size:.84rem}dl{display:grid;grid-template-columns:minmax(6em,max-content) 1fr;gap:2px 16px;
font-size:.84rem;margin:0}dt{color:var(--muted)}dd{margin:0;overflow-wrap:anywhere}
@media(max-width:480px){main{padding:12px 12px 40px}td.words{min-width:11em}dl{grid-template-columns:1fr}dd{margin-bottom:.5em}}
)";

const char kNone[] = "–";

std::string or_none(const std::optional<double>& value, const InWords& in_words) {
  return value ? in_words(*value) : kNone;
}

std::string number_text(double value) { return fmt::format("{:.2f}", value); }

// How far the runs of a result lie apart: the widest difference, as a part of their median.
std::optional<double> spread_of(const Measurement& result) {
  const Figure figure =
      result.key.pattern == Pattern::oneway ? &Figures::messages_per_second : &Figures::p50_ns;
  std::vector<double> values;
  for (const Figures& run : result.runs) values.push_back(*(run.*figure));
  const double middle = median(values);
  if (values.size() < 2 || middle <= 0) return std::nullopt;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return (*most - *least) / middle;
}

std::string percent_text(double part) { return fmt::format("{:.0f} %", part * 100); }

// --- Tables -------------------------------------------------------------------------------------

struct Column {
  std::string title;
  std::function<std::string(const Measurement&)> cell;
  bool words = false;  // Not a number: left, and may be broken into lines.
};

Column figure_column(const char* title, Figure figure, const InWords& in_words) {
  return {title,
          [=](const Measurement& result) { return or_none(*result.median.*figure, in_words); }};
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
                figure_column("largest", &Figures::max_ns, time_text),
                figure_column("mean", &Figures::mean_ns, time_text),
                figure_column("deviation", &Figures::stddev_ns, time_text),
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

std::vector<Column> cost_columns() {
  return {figure_column("CPU", &Figures::cpu_ns_per_message, time_text),
          figure_column("of the sender", &Figures::sender_cpu_ns_per_message, time_text),
          figure_column("of the receiver", &Figures::receiver_cpu_ns_per_message, time_text),
          figure_column("switches", &Figures::context_switches_per_message, number_text),
          {"runs", [](const Measurement& result) { return fmt::format("{}", result.runs.size()); }},
          {"spread",
           [](const Measurement& result) { return or_none(spread_of(result), percent_text); }}};
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

std::string tables_of(const ResultSet& set, std::uint64_t size) {
  std::string out;
  const auto add_table = [&](Pattern pattern, const char* title, std::vector<Column> columns) {
    const auto results = ranked(set, pattern, size);
    if (results.empty()) return;
    add(columns, cost_columns());
    out += fmt::format("<h3>{}</h3>\n{}", title, table(columns, results));
  };
  add_table(Pattern::pingpong, "Round trips", latency_columns(Pattern::pingpong));
  add_table(Pattern::oneway, "One way, as fast as it goes", oneway_columns());
  add_table(Pattern::rate, "One way at a fixed rate", latency_columns(Pattern::rate));
  return out;
}

// One row for each method and reason: a sweep meets the same limit in many sizes and patterns.
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
      "<h2>Not measured</h2>\n<div class=\"scroll\" "
      "tabindex=\"0\"><table><thead><tr><th>method</th>"
      "<th class=\"words\">what</th><th class=\"words\">reason</th></tr></thead><tbody>\n";
  for (const auto& [method_and_note, limit] : limits) {
    const auto& [method, note] = method_and_note;
    out += fmt::format(
        "<tr><td>{}</td><td class=\"words\">{}; {}; {}</td><td class=\"words\">{}</td></tr>\n",
        escaped(method), joined(limit.variants, [](Variant v) { return name_of(v); }),
        joined(limit.patterns, [](Pattern p) { return name_of(p); }),
        joined(limit.sizes, size_text), note.empty() ? "not said" : escaped(note));
  }
  return out + "</tbody></table></div>\n";
}

// Remarks on results that have figures.
std::string table_of_notes(const ResultSet& set) {
  Results results;
  for (const Measurement& result : set.results) {
    if (result.median && !result.note.empty()) results.push_back(&result);
  }
  if (results.empty()) return {};
  std::vector<Column> columns = name_columns();
  add(columns, {{"pattern", [](const Measurement& result) { return name_of(result.key.pattern); }},
                {"size", [](const Measurement& result) { return size_text(result.key.size); }},
                {"note", [](const Measurement& result) { return result.note; }, true}});
  return fmt::format("<details><summary>Remarks on {} results</summary>\n{}</details>\n",
                     results.size(), table(columns, results));
}

// --- Words --------------------------------------------------------------------------------------

// A figure that no line is broken in.
std::string unbroken(std::string figure) {
  const std::size_t space = figure.find(' ');
  return space == std::string::npos ? figure : figure.replace(space, 1, "&nbsp;");
}

std::string named(const Measurement& result, Figure figure, const InWords& in_words) {
  // Round trips are ranked by variant, one way is not.
  const bool say_variant = result.key.pattern == Pattern::oneway;
  return fmt::format("{} ({}{}{})", escaped(result.key.method),
                     unbroken(in_words(*(*result.median.*figure))), say_variant ? ", " : "",
                     say_variant ? name_of(result.key.variant) : "");
}

// "leat (151 ns), then aeron (170 ns); the best baseline is shm (80 ns)". Only queues between
// processes compete, each method with its best variant.
std::string ranking(const Results& best_first, Figure figure, const InWords& in_words) {
  std::string text;
  std::size_t rank = 0;
  std::set<std::string> seen;
  bool leat_is_named = false;
  const Measurement* baseline = nullptr;
  const Measurement* in_process = nullptr;
  for (const Measurement* result : best_first) {
    if (result->baseline || result->in_process) {
      const Measurement*& best = result->baseline ? baseline : in_process;
      if (best == nullptr) best = result;
      continue;
    }
    if (!seen.insert(result->key.method).second) continue;
    ++rank;
    const std::string name = named(*result, figure, in_words);
    if (rank == 1) text = "<strong>" + name + "</strong>";
    if (rank == 2 || rank == 3) text += ", then " + name;
    if (!is_leat(result->key.method) || leat_is_named) continue;
    leat_is_named = true;
    if (rank > 3) text += fmt::format("; Leat is number {}: {}", rank, name);
  }
  const auto add_apart = [&](const char* what, const Measurement* best) {
    if (best == nullptr) return;
    text += fmt::format("{}the best {} is {}", text.empty() ? "" : "; ", what,
                        named(*best, figure, in_words));
  };
  add_apart("baseline", baseline);
  add_apart("within one process", in_process);
  return text;
}

std::string in_short(const ResultSet& set, std::uint64_t size) {
  std::string out;
  const auto item = [&](const std::string& what, const Results& results, Figure figure,
                        const InWords& in_words) {
    if (results.empty()) return;
    out += fmt::format("<li>{}: {}.</li>\n", what, ranking(results, figure, in_words));
  };
  for (const Variant variant : {Variant::spinning, Variant::blocking}) {
    auto results = ranked(set, Pattern::pingpong, size);
    std::erase_if(results, [&](const Measurement* r) { return r->key.variant != variant; });
    item(fmt::format("Fastest round trip of {}, {}", size_text(size), name_of(variant)), results,
         &Figures::p50_ns, time_text);
  }
  for (const std::uint64_t batch : batches_of(set)) {
    auto results = ranked(set, Pattern::oneway, size);
    std::erase_if(results, [&](const Measurement* r) { return r->key.batch != batch; });
    item(fmt::format("Most messages of {} one way, {}", size_text(size),
                     batch == 1 ? "one at a time" : fmt::format("in batches of {}", batch)),
         results, &Figures::messages_per_second, rate_text);
  }
  return out.empty() ? out : "<ul>\n" + out + "</ul>\n";
}

std::string machine_words(const Source& source) {
  return fmt::format("{}, {} CPUs, {}", source.fact("cpu"), source.fact("cpus_online"),
                     source.fact("kernel"));
}

// What a reader must know before believing a figure; what depends on the machine is said from its
// facts.
std::string notes_on_figures(const ResultSet& set) {
  std::string out = "<h2>What the figures mean</h2>\n<ul>\n";
  const auto item = [&](const std::string& text) { out += "<li>" + text + "</li>\n"; };
  item(
      "Each figure is the median of several runs. p99 means: of 100 messages 99 were at least as "
      "fast. "
      "The largest ones are mostly the operating system's doing and change from run to run.");
  item(
      "A round trip is there and back, between two processes, with the whole payload in both "
      "directions. One way at a fixed rate is counted from the moment at which a message was due, "
      "so a "
      "sender that was held up does not hide it.");
  item(
      "Spinning means that a side that waits uses its whole CPU for it, whether or not messages "
      "come. "
      "Blocking sleeps, and pays for being woken. CPU is of both sides, for each message or round "
      "trip.");
  if (std::any_of(set.results.begin(), set.results.end(), [](const Measurement& result) {
        return result.median && result.key.pattern == Pattern::rate &&
               !result.median->sender_cpu_ns_per_message;
      })) {
    item("At a fixed rate CPU is the receiver's alone: the sender spins to keep the time.");
  }
  const bool any_baseline = std::any_of(set.results.begin(), set.results.end(),
                                        [](const Measurement& result) { return result.baseline; });
  if (any_baseline) {
    item(
        "† Baselines hold one message in one slot and are no queue: they show what this machine "
        "can do at "
        "best, not what a program could use instead.");
  }
  if (std::any_of(set.results.begin(), set.results.end(),
                  [](const Measurement& r) { return r.in_process; })) {
    item("‡ Runs as threads of one process, where the others are processes of their own.");
  }
  std::set<std::string> said;
  for (const Source& source : set.sources) {
    const std::string cpus = source.fact("cpus_online"), guest = source.fact("hypervisor");
    std::string text;
    if (guest != "unknown" && guest != "none") {
      text = fmt::format(
          "The machine is virtual (by {}): other guests of the same hardware, which nobody "
          "sees from inside, make some runs slower than others. ",
          escaped(guest));
    }
    if (std::atoi(cpus.c_str()) == 2) {
      text +=
          "It has 2 CPUs, one for each side: whatever else runs takes one of them away, and that "
          "is in "
          "the slow percentiles.";
    }
    if (!text.empty() && said.insert(text).second) item(text);
  }
  std::vector<double> spreads;
  for (const Measurement& result : set.results) {
    if (const auto spread = spread_of(result)) spreads.push_back(*spread);
  }
  if (!spreads.empty()) {
    item(fmt::format(
        "The noise that was seen: the runs of one result lie {} apart in the middle case and {} in "
        "the worst. A difference smaller than the spread of its row says nothing; "
        "<code>leat bench compare</code> tells which ones do.",
        percent_text(median(spreads)),
        percent_text(*std::max_element(spreads.begin(), spreads.end()))));
  }
  return out + "</ul>\n";
}

// Files that were measured by the same program on the same machine are told of once.
std::string provenance(const ResultSet& set) {
  struct Place {
    const Source* source;
    std::set<std::string> commands;
    std::vector<std::string> files;
  };
  std::vector<Place> places;
  for (const Source& source : set.sources) {
    auto place = std::find_if(places.begin(), places.end(), [&](const Place& p) {
      // Load and the like differ from run to run.
      return machine_words(*p.source) == machine_words(source) &&
             p.source->commit == source.commit && p.source->version == source.version;
    });
    if (place == places.end()) place = places.insert(places.end(), Place{&source, {}, {}});
    if (!source.command.empty()) place->commands.insert(source.command);
    place->files.push_back(source.file);
  }
  std::string out = "<h2>Where and how</h2>\n";
  if (places.size() > 1) {
    out +=
        "<p>These results come from more than one machine or version. Compare them with "
        "care.</p>\n";
  }
  for (const Place& place : places) {
    out += fmt::format("<details><summary>{}, leat {}, commit {}</summary>\n",
                       escaped(machine_words(*place.source)), escaped(place.source->version),
                       escaped(place.source->commit));
    if (!place.commands.empty()) {
      out += "<pre>";
      for (const std::string& command : place.commands) out += escaped(command) + "\n";
      out += "</pre>\n";
    }
    out += "<dl>\n";
    for (const Fact& fact : place.source->machine) {
      out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped(fact.name), escaped(fact.value));
    }
    out += fmt::format("<dt>files</dt><dd>{}</dd>\n</dl></details>\n",
                       escaped(fmt::format("{}", fmt::join(place.files, ", "))));
  }
  return out;
}

// --- The page -----------------------------------------------------------------------------------

std::string figure(const std::optional<Chart>& chart) {
  if (!chart) return {};
  return fmt::format("<figure id=\"{}\"><h3>{}</h3><p class=\"caption\">{}</p>\n{}</figure>\n",
                     escaped(chart->name), escaped(chart->title), escaped(chart->caption),
                     inline_svg(*chart));
}

std::string charts_of(const ResultSet& set, std::uint64_t size, bool with_throughput) {
  std::string out = figure(latency_bars(set, size)) + figure(cpu_against_latency(set, size)) +
                    figure(latency_curves(set, size));
  for (const std::uint64_t rate : rates_of(set, size)) {
    out += figure(latency_curves(set, size, rate));
  }
  if (with_throughput) {
    for (const std::uint64_t batch : batches_of(set)) out += figure(throughput(set, batch));
  }
  return out.empty() ? out : "<div class=\"charts\">\n" + out + "</div>\n";
}

}  // namespace

std::string report_page(const ResultSet& set, std::uint64_t size) {
  if (size == 0) size = usual_size(set);
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      // Nothing is loaded and nothing runs, whatever a result's text says.
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; img-src data:\">\n"
      // An empty picture: without it a browser asks the server for one.
      "<link rel=\"icon\" href=\"data:,\">\n<title>leat bench ipc</title>\n<style>";
  out += theme_css() + chart_css() + kStyle + "</style></head>\n<body><main>\n";
  out += "<h1>Messages between two processes</h1>\n";
  std::set<std::string> machines;
  for (const Source& source : set.sources) machines.insert(machine_words(source));
  std::set<std::string> methods;
  for (const Measurement& result : set.results) methods.insert(result.key.method);
  out +=
      fmt::format("<p class=\"muted\">{} ways, measured by <code>leat bench ipc</code> on {}</p>\n",
                  methods.size(), escaped(fmt::format("{}", fmt::join(machines, "; "))));
  out += in_short(set, size);

  if (size != 0) {
    out += fmt::format("<h2>{}</h2>\n{}{}", size_text(size), charts_of(set, size, true),
                       tables_of(set, size));
  }
  out += notes_on_figures(set);
  const std::vector<std::uint64_t> sizes = sizes_of(set);
  if (sizes.size() > 1) out += "<h2>Other sizes</h2>\n";
  for (const std::uint64_t other : sizes) {
    if (other == size) continue;
    out += fmt::format("<details><summary>{}</summary>\n{}{}</details>\n", size_text(other),
                       charts_of(set, other, false), tables_of(set, other));
  }
  out += table_of_missing(set) + table_of_notes(set) + provenance(set);
  return out + "</main></body></html>\n";
}

// --- Markdown -----------------------------------------------------------------------------------

namespace {

// What would end a cell, or be read as a mark or as HTML.
std::string markdown_cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '\\' || c == '`' || c == '*' || c == '_' || c == '[' || c == ']')
      out += '\\';
    if (c == '<') {
      out += "&lt;";
    } else {
      out += c == '\n' ? ' ' : c;
    }
  }
  return out;
}

}  // namespace

std::string report_markdown(const ResultSet& set, std::uint64_t size) {
  if (size == 0) size = usual_size(set);
  // Every method and variant that has anything at this size, by its round trip; then the others.
  Results rows = ranked(set, Pattern::pingpong, size);
  const auto has_row = [&](const Measurement* result) {
    return std::any_of(rows.begin(), rows.end(), [&](const Measurement* row) {
      return row->key.method == result->key.method && row->key.variant == result->key.variant;
    });
  };
  for (const Measurement* result : ranked(set, Pattern::oneway, size)) {
    if (!has_row(result)) rows.push_back(result);
  }
  const std::vector<std::uint64_t> batches = batches_of(set);

  std::string out = fmt::format("| {}, round trip | | p50 | p99 | p99.9 | CPU |", size_text(size));
  for (const std::uint64_t batch : batches) {
    out += batch == 1 ? " one way |" : fmt::format(" in batches of {} |", batch);
  }
  out += "\n| --- | --- | --- | --- | --- | --- |";
  for (std::size_t i = 0; i < batches.size(); ++i) out += " --- |";
  out += '\n';

  for (const Measurement* row : rows) {
    ResultKey key = row->key;
    key.pattern = Pattern::pingpong;
    key.batch = 1;
    key.rate = 0;
    const Measurement* trip = set.find(key);
    const auto cell = [&](const Measurement* result, Figure figure, const InWords& in_words) {
      return result != nullptr && result->median ? or_none(*result->median.*figure, in_words)
                                                 : kNone;
    };
    out += fmt::format("| {} | {} | {} | {} | {} | {} |", markdown_cell(label_of(*row)),
                       name_of(key.variant), cell(trip, &Figures::p50_ns, time_text),
                       cell(trip, &Figures::p99_ns, time_text),
                       cell(trip, &Figures::p999_ns, time_text),
                       cell(trip, &Figures::cpu_ns_per_message, time_text));
    key.pattern = Pattern::oneway;
    for (const std::uint64_t batch : batches) {
      key.batch = batch;
      out += fmt::format(" {} |", cell(set.find(key), &Figures::messages_per_second, rate_text));
    }
    out += '\n';
  }

  std::set<std::string> unsupported;
  for (const Measurement& result : set.results) {
    if (!result.median && result.key.size == size) {
      unsupported.insert(
          fmt::format("{} ({})", markdown_cell(result.key.method), markdown_cell(result.note)));
    }
  }
  if (!unsupported.empty())
    out += fmt::format("\nNot measured: {}.\n", fmt::join(unsupported, "; "));
  if (std::any_of(rows.begin(), rows.end(), [](const Measurement* row) { return row->baseline; })) {
    out += "\n† One slot and no queue: what this machine can do at best.\n";
  }
  if (std::any_of(rows.begin(), rows.end(),
                  [](const Measurement* row) { return row->in_process; })) {
    out += "\n‡ Threads of one process.\n";
  }
  return out;
}

}  // namespace leat::bench
