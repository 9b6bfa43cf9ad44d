#include "charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "bench/output/units.hpp"
#include "plot.hpp"
#include "svg.hpp"

namespace leat::bench {
namespace {

constexpr double kPlotHeight = 250;
Results with_figures(const ResultSet& set, Pattern pattern) {
  Results results;
  for (const Measurement& result : set.results) {
    if (result.median && result.key.pattern == pattern) results.push_back(&result);
  }
  return results;
}

void sort_best_first(Results& results) {
  std::stable_sort(results.begin(), results.end(), [](const Measurement* a, const Measurement* b) {
    if (a->key.pattern == Pattern::oneway) {
      return *a->median->messages_per_second > *b->median->messages_per_second;
    }
    return *a->median->p50_ns < *b->median->p50_ns;
  });
}

// As many results as a reader can tell apart: all of Leat, the best baseline, and the best few others
// of each variant.
Results chosen_few(const Results& best_first) {
  constexpr std::size_t kFew = 3;
  Results chosen;
  std::map<Variant, std::size_t> others;
  bool has_baseline = false;
  for (const Measurement* result : best_first) {
    if (result->baseline) {
      if (!has_baseline) chosen.push_back(result);
      has_baseline = true;
    } else if (is_leat(result->key.method) || ++others[result->key.variant] <= kFew) {
      chosen.push_back(result);
    }
  }
  return chosen;
}

PlotArea begin_plot(Canvas& canvas, const Results& results) {
  Legend legend(canvas);
  legend.add_line(Variant::spinning, "spinning");
  legend.add_line(Variant::blocking, "blocking");
  legend.add_marks_of(results);
  PlotArea area;
  area.top = legend.bottom() + 14;
  // All lines have their names at the right, one below the other.
  const double names = kLabelDistance * static_cast<double>(results.size());
  area.bottom = area.top + std::max(kPlotHeight, names);
  return area;
}

// Where the range of the runs of a figure is, at this x.
std::optional<std::pair<Point, Point>> upright_range(const Measurement& result, Figure figure,
                                                     double x, const LogScale& y) {
  const auto range = range_of_runs(result, figure);
  if (!range || range->low <= 0) return std::nullopt;
  return std::pair{Point{x, y.at(range->low)}, Point{x, y.at(range->high)}};
}

// --- Curves of latency --------------------------------------------------------------------------

struct Stop {
  const char* name;
  Figure figure;
};

// Those that any of the results has.
std::vector<Stop> stops_of(const Results& results) {
  std::vector<Stop> stops;
  for (const Percentile& percentile : kPercentiles) {
    stops.push_back({percentile.title, percentile.figure});
  }
  stops.push_back({"max", &Figures::max_ns});
  std::erase_if(stops,
                [&](const Stop& stop) { return drawable_ones(results, stop.figure).empty(); });
  return stops;
}

Extent extent_of_stops(const Results& results, const std::vector<Stop>& stops) {
  Extent extent{*results.front()->median->p50_ns, 0};
  for (const Stop& stop : stops) {
    const Extent one = extent_of(drawable_ones(results, stop.figure), stop.figure);
    extent.lowest = std::min(extent.lowest, one.lowest);
    extent.highest = std::max(extent.highest, one.highest);
  }
  return extent;
}

Chart curves_of(const Results& results) {
  constexpr double kBeside = 1.5;  // Ranges at the same stop stand beside each other.
  Canvas canvas;
  const PlotArea area = begin_plot(canvas, results);
  const std::vector<Stop> stops = stops_of(results);
  const Extent extent = extent_of_stops(results, stops);
  const LogScale y = LogScale::around(extent.lowest, extent.highest, {area.bottom, area.top});
  draw_y_axis(canvas, y, area, time_text);

  const double intervals = std::max(static_cast<double>(stops.size()) - 1, 1.0);
  const double step = (area.right - area.left - 36) / intervals;
  const auto x_of = [&](std::size_t i) { return area.left + 18 + step * static_cast<double>(i); };
  for (std::size_t i = 0; i < stops.size(); ++i) {
    canvas.text({x_of(i), area.bottom + 18}, stops[i].name, "muted", Anchor::middle);
  }
  std::vector<Line> lines;
  double beside = -kBeside * static_cast<double>(results.size() - 1) / 2;
  for (const Measurement* result : results) {
    Line& line = lines.emplace_back(Line{result, {}});
    for (std::size_t i = 0; i < stops.size(); ++i) {
      const auto& value = *result->median.*stops[i].figure;
      if (!drawable(value)) continue;
      const double x = x_of(i) + beside;
      line.points.push_back(
          {{x, y.at(*value)},
           fmt::format("{}, {}: {} {}", result->key.method, name_of(result->key.variant),
                       stops[i].name, time_text(*value)),
           upright_range(*result, stops[i].figure, x, y)});
    }
    beside += kBeside;
  }
  draw_lines(canvas, lines, area);
  Chart chart;
  chart.height = area.bottom + 26;
  chart.body = canvas.svg();
  return chart;
}

// --- Throughput against size --------------------------------------------------------------------

// Where labels would touch, they go down to the next row; a size that has no room in any of the rows
// is not on the axis. Returns the lower end.
double draw_size_axis(Canvas& canvas, const std::set<std::uint64_t>& sizes, const LogScale& x,
                      const PlotArea& area) {
  constexpr double kGap = 6;
  std::array<double, 3> free_from = {};  // By row.
  double lower_end = area.bottom;
  for (const std::uint64_t size : sizes) {
    const double at = x.at(static_cast<double>(size));
    const double half = width_of(size_text(size)) / 2;
    const auto row = std::find_if(free_from.begin(), free_from.end(),
                                  [&](double from) { return from <= at - half; });
    if (row == free_from.end()) continue;
    *row = at + half + kGap;
    const double baseline =
        area.bottom + 18 + kLabelDistance * static_cast<double>(row - free_from.begin());
    canvas.line({at, area.top}, {at, area.bottom}, "rule");
    canvas.text({at, baseline}, size_text(size), "muted", Anchor::middle);
    lower_end = std::max(lower_end, baseline + 8);
  }
  return lower_end;
}

// Lines along which the number of bytes per second is the same.
void draw_bytes_per_second(Canvas& canvas, const LogScale& x, const LogScale& y) {
  for (const double rate : {1e6, 1e8, 1e10}) {
    const double from = std::max(x.lowest(), rate / y.highest());
    const double to = std::min(x.highest(), rate / y.lowest());
    if (from >= to) continue;
    const Point begin{x.at(from), y.at(rate / from)};
    const Point end{x.at(to), y.at(rate / to)};
    canvas.line(begin, end, "diagonal");
    const std::string text = bytes_rate_text(rate);
    if (end.x - begin.x < width_of(text) || end.y - begin.y < 20) continue;
    // To the lower left of the line there are the fewest results; not if it leaves at the right.
    if (to < x.highest()) {
      canvas.text({end.x - 8, end.y - 4}, text, "muted small", Anchor::end);
    } else {
      canvas.text({begin.x + 10, begin.y + 9}, text, "muted small");
    }
  }
}

struct Series {
  const Measurement* judged = nullptr;  // Ranks it: at the usual size, else at the smallest.
  Results by_size;
};

// Those of Leat and of the best few others, each with all its sizes.
std::vector<Series> best_series(const Results& results, std::uint64_t usual_size) {
  std::map<std::pair<std::string, Variant>, Series> all;
  for (const Measurement* result : results) {
    Series& series = all[{result->key.method, result->key.variant}];
    series.by_size.push_back(result);
    if (result->key.size == usual_size || series.judged == nullptr) series.judged = result;
  }
  Results judged;
  for (const auto& [key, series] : all) judged.push_back(series.judged);
  sort_best_first(judged);
  std::vector<Series> best;
  for (const Measurement* result : chosen_few(judged)) {
    best.push_back(all[{result->key.method, result->key.variant}]);
  }
  return best;
}

Chart throughput_lines(const std::vector<Series>& best, const std::set<std::uint64_t>& sizes) {
  Results judged, shown;
  for (const Series& series : best) {
    judged.push_back(series.judged);
    shown.insert(shown.end(), series.by_size.begin(), series.by_size.end());
  }
  Canvas canvas;
  const PlotArea area = begin_plot(canvas, judged);
  const Extent extent = extent_of(shown, &Figures::messages_per_second);
  const LogScale y = LogScale::around(extent.lowest, extent.highest, {area.bottom, area.top});
  const LogScale x =
      LogScale::around(static_cast<double>(*sizes.begin()), static_cast<double>(*sizes.rbegin()),
                       {area.left + 8, area.right - 8});
  draw_y_axis(canvas, y, area, rate_text);
  const double lower_end = draw_size_axis(canvas, sizes, x, area);
  std::vector<Line> lines;
  for (const Series& series : best) {
    Line& line = lines.emplace_back(Line{series.judged, {}});
    for (const Measurement* result : series.by_size) {
      const double at = x.at(static_cast<double>(result->key.size));
      line.points.push_back({{at, y.at(*result->median->messages_per_second)},
                             tooltip_of(*result),
                             upright_range(*result, &Figures::messages_per_second, at, y)});
    }
  }
  draw_lines(canvas, lines, area);
  draw_bytes_per_second(canvas, x, y);
  Chart chart;
  chart.height = lower_end;
  chart.body = canvas.svg();
  return chart;
}

}  // namespace

bool is_leat(const std::string& method) { return method == "leat" || method.starts_with("leat-"); }

std::string marks_of(const Measurement& result) {
  return std::string(result.baseline ? "†" : "") + (result.in_process ? "‡" : "") +
         (result.median && !result.verified ? "!" : "");
}

std::string label_of(const Measurement& result) { return result.key.method + marks_of(result); }

std::vector<const Measurement*> ranked(const ResultSet& set, Pattern pattern, std::uint64_t size) {
  std::vector<const Measurement*> results = with_figures(set, pattern);
  std::erase_if(results, [&](const Measurement* result) { return result->key.size != size; });
  sort_best_first(results);
  return results;
}

std::vector<std::uint64_t> sizes_of(const ResultSet& set) {
  std::set<std::uint64_t> sizes;
  for (const Measurement& result : set.results) {
    if (result.median) sizes.insert(result.key.size);
  }
  return {sizes.begin(), sizes.end()};
}

std::vector<std::uint64_t> batches_of(const ResultSet& set) {
  std::set<std::uint64_t> batches;
  for (const Measurement* result : with_figures(set, Pattern::oneway))
    batches.insert(result->key.batch);
  return {batches.begin(), batches.end()};
}

std::vector<std::uint64_t> rates_of(const ResultSet& set, std::uint64_t size) {
  std::set<std::uint64_t> rates;
  for (const Measurement* result : ranked(set, Pattern::rate, size)) rates.insert(result->key.rate);
  return {rates.begin(), rates.end()};
}

std::uint64_t usual_size(const ResultSet& set) {
  constexpr std::uint64_t kUsual = 100;
  std::map<std::uint64_t, std::set<std::string>> methods;
  for (const Measurement& result : set.results) {
    if (result.median) methods[result.key.size].insert(result.key.method);
  }
  if (methods.contains(kUsual)) return kUsual;
  const auto most = std::max_element(
      methods.begin(), methods.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  return most == methods.end() ? 0 : most->first;
}

std::optional<Chart> latency_dots(const ResultSet& set, std::uint64_t size) {
  const Results results = drawable_ones(ranked(set, Pattern::pingpong, size), &Figures::p50_ns);
  if (results.empty()) return std::nullopt;
  Canvas canvas;
  Chart chart;
  chart.name = fmt::format("round-trip-{}", size);
  chart.title = fmt::format("Round trip of {}: p50", size_text(size));
  chart.caption =
      "Time from sending a message to having its answer. Further left is better; the axis is "
      "logarithmic.";
  chart.height = draw_dots(canvas, results, &Figures::p50_ns, time_text);
  chart.body = canvas.svg();
  return chart;
}

std::optional<Chart> latency_curves(const ResultSet& set, std::uint64_t size, std::uint64_t rate) {
  Results results = ranked(set, rate > 0 ? Pattern::rate : Pattern::pingpong, size);
  std::erase_if(results, [&](const Measurement* result) { return result->key.rate != rate; });
  results = chosen_few(drawable_ones(std::move(results), &Figures::p50_ns));
  if (results.empty()) return std::nullopt;
  Chart chart = curves_of(results);
  const std::string who = "Shown are Leat, the best few others and the best baseline.";
  if (rate == 0) {
    chart.name = fmt::format("percentiles-{}", size);
    chart.title = fmt::format("Round trip of {}: percentiles", size_text(size));
    chart.caption = "p99: 99 of 100 round trips took at most this long. " + who;
  } else {
    chart.name = fmt::format("percentiles-{}-at-{}", size, rate);
    chart.title =
        fmt::format("One way, {}, {}", size_text(size), rate_text(static_cast<double>(rate)));
    chart.caption =
        "p99: 99 of 100 messages took at most this long, from the moment at which they were due. " +
        who;
  }
  return chart;
}

std::optional<Chart> throughput(const ResultSet& set, std::uint64_t batch) {
  Results results =
      drawable_ones(with_figures(set, Pattern::oneway), &Figures::messages_per_second);
  std::erase_if(results, [&](const Measurement* result) {
    return result->key.batch != batch || result->key.rate != 0;
  });
  if (results.empty()) return std::nullopt;
  std::set<std::uint64_t> sizes;
  for (const Measurement* result : results) sizes.insert(result->key.size);

  const std::string how = batch == 1 ? "one at a time" : fmt::format("in batches of {}", batch);
  Chart chart;
  if (sizes.size() > 1) {
    chart = throughput_lines(best_series(results, usual_size(set)), sizes);
    chart.title = fmt::format("One way, {}", how);
    chart.caption =
        "Messages per second against their size, both axes logarithmic. Higher is better. Along a "
        "dotted line the number of bytes per second is the same.";
  } else {
    sort_best_first(results);
    Canvas canvas;
    chart.height = draw_dots(canvas, results, &Figures::messages_per_second, rate_text);
    chart.body = canvas.svg();
    chart.title = fmt::format("One way, {}, {}", size_text(*sizes.begin()), how);
    chart.caption = "Messages per second. Further right is better; the axis is logarithmic.";
  }
  chart.name = fmt::format("throughput-batch-{}", batch);
  return chart;
}

std::vector<Chart> all_charts(const ResultSet& set) {
  std::vector<Chart> charts;
  const auto add = [&](std::optional<Chart> chart) {
    if (chart) charts.push_back(std::move(*chart));
  };
  for (const std::uint64_t size : sizes_of(set)) {
    add(latency_dots(set, size));
    add(latency_curves(set, size));
    add(cpu_against_latency(set, size));
    for (const std::uint64_t rate : rates_of(set, size)) add(latency_curves(set, size, rate));
  }
  for (const std::uint64_t batch : batches_of(set)) add(throughput(set, batch));
  return charts;
}

}  // namespace leat::bench
