#include "charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "plot.hpp"
#include "svg.hpp"
#include "units.hpp"

namespace leat::bench {
namespace {

constexpr double kPlotHeight = 250;
constexpr char kLogarithmic[] = "the axis is logarithmic";

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

bool drawable(const std::optional<double>& value) { return value && *value > 0; }

// Those that a logarithmic axis can show.
Results drawable_ones(Results results, Figure figure) {
  std::erase_if(results, [&](const Measurement* r) { return !drawable(*r->median.*figure); });
  return results;
}

// Of many results those that a reader can tell apart: all of Leat, the best that is no queue, and the
// best few others of each variant.
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
  area.bottom = area.top + kPlotHeight;
  return area;
}

// --- Curves of latency --------------------------------------------------------------------------

struct Stop {
  const char* name;
  Figure figure;
};
constexpr std::array<Stop, 6> kStops = {{{"p50", &Figures::p50_ns},
                                         {"p90", &Figures::p90_ns},
                                         {"p99", &Figures::p99_ns},
                                         {"p99.9", &Figures::p999_ns},
                                         {"p99.99", &Figures::p9999_ns},
                                         {"max", &Figures::max_ns}}};

Extent extent_of_stops(const Results& results) {
  Extent extent{*results.front()->median->p50_ns, 0};
  for (const Measurement* result : results) {
    for (const Stop& stop : kStops) {
      const auto& value = *result->median.*stop.figure;
      if (!drawable(value)) continue;
      extent.lowest = std::min(extent.lowest, *value);
      extent.highest = std::max(extent.highest, *value);
    }
  }
  return extent;
}

Chart curves_of(const Results& results) {
  Canvas canvas;
  const PlotArea area = begin_plot(canvas, results);
  const Extent extent = extent_of_stops(results);
  const LogScale y = LogScale::around(extent.lowest, extent.highest, {area.bottom, area.top});
  draw_y_axis(canvas, y, area, time_text);

  const double step = (area.right - area.left - 24) / static_cast<double>(kStops.size() - 1);
  const auto x_of = [&](std::size_t i) { return area.left + 12 + step * static_cast<double>(i); };
  for (std::size_t i = 0; i < kStops.size(); ++i) {
    canvas.text({x_of(i), area.bottom + 18}, kStops[i].name, "muted", Anchor::middle);
  }
  std::vector<Line> lines;
  for (const Measurement* result : results) {
    Line& line = lines.emplace_back(Line{result, {}, {}});
    for (std::size_t i = 0; i < kStops.size(); ++i) {
      const auto& value = *result->median.*kStops[i].figure;
      if (!drawable(value)) continue;
      line.points.push_back({x_of(i), y.at(*value)});
      line.tooltips.push_back(fmt::format("{}, {}: {} {}", result->key.method,
                                          name_of(result->key.variant), kStops[i].name,
                                          time_text(*value)));
    }
  }
  draw_lines(canvas, lines, area);
  Chart chart;
  chart.height = area.bottom + 26;
  chart.body = canvas.svg();
  return chart;
}

// --- Throughput against size --------------------------------------------------------------------

// Labels for the largest size, and from the left as many as there is room for.
void draw_size_axis(Canvas& canvas, const std::set<std::uint64_t>& sizes, const LogScale& x,
                    const PlotArea& area) {
  constexpr double kGap = 6;
  const auto place_of = [&](std::uint64_t size) { return x.at(static_cast<double>(size)); };
  const auto half_of = [&](std::uint64_t size) { return width_of(size_text(size)) / 2; };
  const std::uint64_t last = *sizes.rbegin();
  const double end = place_of(last) - half_of(last) - kGap;
  double free_from = 0;
  for (const std::uint64_t size : sizes) {
    const double at = place_of(size);
    canvas.line({at, area.top}, {at, area.bottom}, "rule faint");
    const bool fits = at - half_of(size) >= free_from && at + half_of(size) <= end;
    if (!fits && size != last) continue;
    canvas.text({at, area.bottom + 18}, size_text(size), "muted", Anchor::middle);
    free_from = at + half_of(size) + kGap;
  }
}

// Lines along which as many bytes pass in a second, whatever the size.
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
    canvas.text({begin.x + 10, begin.y + 9}, text, "muted small");
  }
}

struct Series {
  const Measurement* judged = nullptr;  // At the usual size, else at the smallest.
  Results by_size;
};

// Leat and the best few, each with all its sizes.
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
  draw_size_axis(canvas, sizes, x, area);
  draw_bytes_per_second(canvas, x, y);
  std::vector<Line> lines;
  for (const Series& series : best) {
    Line& line = lines.emplace_back(Line{series.judged, {}, {}});
    for (const Measurement* result : series.by_size) {
      line.points.push_back({x.at(static_cast<double>(result->key.size)),
                             y.at(*result->median->messages_per_second)});
      line.tooltips.push_back(tooltip_of(*result));
    }
  }
  draw_lines(canvas, lines, area);
  Chart chart;
  chart.height = area.bottom + 26;
  chart.body = canvas.svg();
  return chart;
}

// --- CPU against latency ------------------------------------------------------------------------

// Where the names of points are: beside them, or in a column at the right with lines to it.
struct Names {
  std::vector<std::optional<Box>> beside;  // One for each point.
  std::vector<std::size_t> in_column;
  std::vector<Point> line_ends;  // One for each in the column.
};

// Points that stand so close together that none of their names would have room.
std::vector<std::size_t> crowded(const std::vector<Point>& points) {
  constexpr double kNear = 22;
  constexpr std::ptrdiff_t kAtMost = 2;  // The point itself and one more.
  std::vector<std::size_t> crowded;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto near = [&](const Point& other) {
      return std::hypot(other.x - points[i].x, other.y - points[i].y) < kNear;
    };
    if (std::count_if(points.begin(), points.end(), near) > kAtMost) crowded.push_back(i);
  }
  return crowded;
}

void fill_column(Names& names, const std::vector<Point>& points, const PlotArea& area) {
  constexpr double kStep = 13;
  std::vector<double> wanted;
  for (const std::size_t i : names.in_column) wanted.push_back(points[i].y);
  const PixelRange range{area.top - 6, area.bottom + 6};
  const double room = (range.to - range.from) / static_cast<double>(wanted.size() + 1);
  names.line_ends.clear();
  for (const double y : spread_apart(wanted, std::min(kStep, room), range)) {
    names.line_ends.push_back({area.right + 10, y});
  }
}

Names place_names(const Results& results, const std::vector<Point>& points, const PlotArea& area) {
  constexpr double kLetters = 12;
  Names names;
  names.in_column = crowded(points);
  // Whoever finds no place goes to the column as well, and its line may take the place of others.
  for (bool all_placed = false; !all_placed;) {
    fill_column(names, points, area);
    LabelPlacer placer({area.left, area.top, area.right - area.left, area.bottom - area.top});
    for (const Point& point : points) placer.keep_free(point);
    for (std::size_t c = 0; c < names.in_column.size(); ++c) {
      placer.keep_free(points[names.in_column[c]], names.line_ends[c]);
    }
    names.beside.assign(points.size(), std::nullopt);
    const std::vector<std::size_t> before = names.in_column;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (std::find(before.begin(), before.end(), i) != before.end()) continue;
      names.beside[i] = placer.place(points[i], width_of(short_label_of(*results[i])), kLetters);
      if (!names.beside[i]) names.in_column.push_back(i);
    }
    all_placed = names.in_column.size() == before.size();
  }
  return names;
}

void draw_names(Canvas& canvas, const Results& results, const std::vector<Point>& points,
                const PlotArea& area) {
  const Names names = place_names(results, points, area);
  const auto write = [&](std::size_t i, Point at) {
    canvas.text(at, short_label_of(*results[i]), is_leat(results[i]->key.method) ? "strong" : "");
  };
  for (std::size_t c = 0; c < names.in_column.size(); ++c) {
    const std::size_t i = names.in_column[c];
    const Point end = names.line_ends[c];
    canvas.line(points[i], end, fmt::format("leader {}", style_of(*results[i])));
    canvas.mark({end.x + 5, end.y}, mark_of(results[i]->key.variant), style_of(*results[i]));
    write(i, {end.x + 12, end.y + 4});
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (names.beside[i]) write(i, {names.beside[i]->x, names.beside[i]->y + 10});
  }
}

}  // namespace

bool is_leat(const std::string& method) { return method == "leat" || method.starts_with("leat-"); }

std::string label_of(const Measurement& result) {
  return result.key.method + (result.baseline ? "†" : "") + (result.in_process ? "‡" : "") +
         (result.median && !result.verified ? "!" : "");
}

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

std::optional<Chart> latency_bars(const ResultSet& set, std::uint64_t size) {
  const Results results = drawable_ones(ranked(set, Pattern::pingpong, size), &Figures::p50_ns);
  if (results.empty()) return std::nullopt;
  Canvas canvas;
  Chart chart;
  chart.name = fmt::format("round-trip-{}", size);
  chart.title = fmt::format("Round trip of {}: the median", size_text(size));
  chart.caption =
      fmt::format("Time from sending a message to having its answer, p50. Shorter is better; {}.",
                  kLogarithmic);
  chart.height = draw_bars(canvas, results, &Figures::p50_ns, time_text);
  chart.body = canvas.svg();
  return chart;
}

std::optional<Chart> latency_curves(const ResultSet& set, std::uint64_t size, std::uint64_t rate) {
  Results results = ranked(set, rate > 0 ? Pattern::rate : Pattern::pingpong, size);
  std::erase_if(results, [&](const Measurement* result) { return result->key.rate != rate; });
  results = chosen_few(drawable_ones(std::move(results), &Figures::p50_ns));
  if (results.empty()) return std::nullopt;
  Chart chart = curves_of(results);
  const std::string who = "Leat, the best few others and the best baseline.";
  if (rate == 0) {
    chart.name = fmt::format("percentiles-{}", size);
    chart.title = fmt::format("Round trip of {}: how many are how fast", size_text(size));
    chart.caption = "p99: 99 of 100 round trips took at most so long. " + who;
  } else {
    chart.name = fmt::format("percentiles-{}-at-{}", size, rate);
    chart.title =
        fmt::format("One way, {}, {}", size_text(size), rate_text(static_cast<double>(rate)));
    chart.caption =
        "p99: 99 of 100 messages took at most so long from the moment at which they were due. " +
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
        "Messages a second against their size, both axes logarithmic. Higher is better. Along a "
        "dotted line the same number of bytes passes in a second.";
  } else {
    sort_best_first(results);
    Canvas canvas;
    chart.height = draw_bars(canvas, results, &Figures::messages_per_second, rate_text);
    chart.body = canvas.svg();
    chart.title = fmt::format("One way, {}, {}", size_text(*sizes.begin()), how);
    chart.caption = fmt::format("Messages a second. Longer is better; {}.", kLogarithmic);
  }
  chart.name = fmt::format("throughput-batch-{}", batch);
  return chart;
}

std::optional<Chart> cpu_against_latency(const ResultSet& set, std::uint64_t size) {
  constexpr Figure kCpu = &Figures::cpu_ns_per_message;
  Results results = drawable_ones(ranked(set, Pattern::pingpong, size), &Figures::p50_ns);
  results = drawable_ones(std::move(results), kCpu);
  if (results.empty()) return std::nullopt;

  Canvas canvas;
  Legend legend(canvas);
  legend.add_mark(Mark::filled_circle, "spinning");
  legend.add_mark(Mark::hollow_square, "blocking");
  legend.add_bar("filled leat", "Leat");
  legend.add_marks_of(results);
  const double top = legend.bottom() + 10;
  // All names might have to stand one below the other.
  const double height = std::max(300.0, 11.5 * static_cast<double>(results.size()));
  const PlotArea area{.top = top, .bottom = top + height};
  const Extent latency = extent_of(results, &Figures::p50_ns);
  const Extent cpu = extent_of(results, kCpu);
  const LogScale x =
      LogScale::around(latency.lowest, latency.highest, {area.left + 8, area.right - 8});
  const LogScale y = LogScale::around(cpu.lowest, cpu.highest, {area.bottom - 8, area.top + 8});
  draw_y_axis(canvas, y, area, time_text);
  draw_x_axis(canvas, x, area, time_text);

  std::vector<Point> points;
  for (const Measurement* result : results) {
    points.push_back({x.at(*result->median->p50_ns), y.at(*(*result->median.*kCpu))});
  }
  draw_names(canvas, results, points, area);
  // Backwards, so that the best lies on top.
  for (std::size_t i = results.size(); i-- > 0;) {
    canvas.mark(points[i], mark_of(results[i]->key.variant), style_of(*results[i]),
                tooltip_of(*results[i]));
  }

  Chart chart;
  chart.name = fmt::format("cpu-{}", size);
  chart.title = fmt::format("What a round trip of {} costs", size_text(size));
  chart.caption =
      "CPU time of both sides (upwards) against the time that passes, p50 (to the right), both "
      "axes "
      "logarithmic. Nearer to the lower left is better.";
  chart.height = area.bottom + 26;
  chart.body = canvas.svg();
  return chart;
}

std::vector<Chart> all_charts(const ResultSet& set) {
  std::vector<Chart> charts;
  const auto add = [&](std::optional<Chart> chart) {
    if (chart) charts.push_back(std::move(*chart));
  };
  for (const std::uint64_t size : sizes_of(set)) {
    add(latency_bars(set, size));
    add(latency_curves(set, size));
    add(cpu_against_latency(set, size));
    for (const std::uint64_t rate : rates_of(set, size)) add(latency_curves(set, size, rate));
  }
  for (const std::uint64_t batch : batches_of(set)) add(throughput(set, batch));
  return charts;
}

}  // namespace leat::bench
