// The chart of CPU time against latency: one point for each result, with its name.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/output/units.hpp"
#include "charts.hpp"
#include "plot.hpp"
#include "svg.hpp"

namespace leat::bench {
namespace {

constexpr Figure kCpu = &Figures::cpu_ns_per_message;

// Points so close together that their names have no room beside them. They stand in a column at the
// right, below each other, with one line to all of the points.
struct Group {
  std::vector<std::size_t> members;  // Highest first.
  std::vector<double> heights;       // Of their names in the column.
  Point line_from, line_to;
};

struct Names {
  std::vector<std::optional<Box>> beside;  // One for each point; empty: in a group.
  std::vector<Group> groups;
};

// The points that can be reached from this one in short steps, itself included.
std::vector<std::size_t> neighbourhood_of(std::size_t point, const std::vector<Point>& points) {
  constexpr double kNear = 22;
  std::vector<bool> is_in(points.size());
  std::vector<std::size_t> reached = {point};
  is_in[point] = true;
  for (std::size_t next = 0; next < reached.size(); ++next) {
    const Point from = points[reached[next]];
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (is_in[i] || std::hypot(points[i].x - from.x, points[i].y - from.y) >= kNear) continue;
      is_in[i] = true;
      reached.push_back(i);
    }
  }
  std::sort(reached.begin(), reached.end(),
            [&](std::size_t a, std::size_t b) { return points[a].y < points[b].y; });
  return reached;
}

// The neighbourhoods in which names have no room.
std::vector<Group> crowds_of(const std::vector<Point>& points) {
  constexpr std::size_t kAtMost = 2;
  std::vector<bool> seen(points.size());
  std::vector<Group> crowds;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (seen[i]) continue;
    const std::vector<std::size_t> members = neighbourhood_of(i, points);
    for (const std::size_t member : members) seen[member] = true;
    if (members.size() > kAtMost) crowds.push_back({members, {}, {}, {}});
  }
  return crowds;
}

// Gives the names of the groups their places in the column.
void fill_column(std::vector<Group>& groups, const std::vector<Point>& points,
                 const PlotArea& area) {
  std::vector<double> wanted;
  for (const Group& group : groups) {
    double sum = 0;
    for (const std::size_t member : group.members) sum += points[member].y;
    const auto count = static_cast<double>(group.members.size());
    wanted.insert(wanted.end(), group.members.size(), sum / count);
  }
  const std::vector<double> places =
      spread_apart(wanted, kLabelDistance, {area.top - 6, area.bottom + 6});
  auto next = places.begin();
  for (Group& group : groups) {
    const auto count = static_cast<std::ptrdiff_t>(group.members.size());
    group.heights.assign(next, next + count);
    next += count;
    group.line_from = points[*std::max_element(
        group.members.begin(), group.members.end(),
        [&](std::size_t a, std::size_t b) { return points[a].x < points[b].x; })];
    group.line_to = {area.right + 9, (group.heights.front() + group.heights.back()) / 2};
  }
}

std::string name_of_point(const Measurement& result) {
  return short_name_of(result.key.method) + marks_of(result);
}

Names place_names(const Results& results, const std::vector<Point>& points, const PlotArea& area) {
  constexpr double kLetters = 13;
  Names names;
  names.groups = crowds_of(points);
  // A name without a place becomes a group of its own; its line may then take the place of others.
  for (bool all_placed = false; !all_placed;) {
    fill_column(names.groups, points, area);
    LabelPlacer placer({area.left, area.top, area.right - area.left, area.bottom - area.top});
    std::vector<bool> in_group(points.size());
    for (const Point& point : points) placer.keep_free(point);
    for (const Group& group : names.groups) {
      placer.keep_free(group.line_from, group.line_to);
      for (const std::size_t member : group.members) in_group[member] = true;
    }
    all_placed = true;
    names.beside.assign(points.size(), std::nullopt);
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (in_group[i]) continue;
      names.beside[i] = placer.place(points[i], width_of(name_of_point(*results[i])), kLetters);
      if (names.beside[i]) continue;
      names.groups.push_back({{i}, {}, {}, {}});
      all_placed = false;
    }
  }
  return names;
}

void draw_names(Canvas& canvas, const Results& results, const Names& names) {
  const auto write = [&](std::size_t i, Point at) {
    canvas.text(at, name_of_point(*results[i]), is_leat(results[i]->key.method) ? "strong" : "");
  };
  for (const Group& group : names.groups) {
    canvas.line(group.line_from, group.line_to, "leader plain");
    if (group.members.size() > 1) {
      const double x = group.line_to.x, upper = group.heights.front() - 4,
                   lower = group.heights.back() + 4;
      canvas.line({x, upper}, {x, lower}, "leader plain");
      for (const double y : {upper, lower}) canvas.line({x, y}, {x + 3, y}, "leader plain");
    }
    for (std::size_t m = 0; m < group.members.size(); ++m) {
      const std::size_t i = group.members[m];
      const Point mark{group.line_to.x + 7, group.heights[m]};
      canvas.mark(mark, mark_of(results[i]->key.variant), colour_of(results[i]->key.method));
      write(i, {mark.x + 7, mark.y + 4});
    }
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (names.beside[i]) write(i, {names.beside[i]->x, names.beside[i]->y + 10});
  }
}

std::size_t names_in_column(const Names& names) {
  std::size_t count = 0;
  for (const Group& group : names.groups) count += group.members.size();
  return count;
}

// Points with both axes, in an area that is high enough for the column of names.
struct Scatter {
  PlotArea area;
  LogScale x, y;
  std::vector<Point> points;
  Names names;
};

Scatter scatter_of(const Results& results, double top) {
  const Extent latency = extent_of(results, &Figures::p50_ns);
  const Extent cpu = extent_of(results, kCpu);
  for (double height = 300;;) {
    const PlotArea area{.top = top, .bottom = top + height};
    Scatter scatter{
        area,
        LogScale::around(latency.lowest, latency.highest, {area.left + 8, area.right - 8}),
        LogScale::around(cpu.lowest, cpu.highest, {area.bottom - 8, area.top + 8}),
        {},
        {}};
    for (const Measurement* result : results) {
      scatter.points.push_back(
          {scatter.x.at(*result->median->p50_ns), scatter.y.at(*(*result->median.*kCpu))});
    }
    scatter.names = place_names(results, scatter.points, area);
    const double needed = kLabelDistance * static_cast<double>(names_in_column(scatter.names));
    if (needed <= height) return scatter;
    height = needed;
  }
}

}  // namespace

std::optional<Chart> cpu_against_latency(const ResultSet& set, std::uint64_t size) {
  Results results = drawable_ones(ranked(set, Pattern::pingpong, size), &Figures::p50_ns);
  results = drawable_ones(std::move(results), kCpu);
  if (results.empty()) return std::nullopt;

  Canvas canvas;
  Legend legend(canvas);
  legend.add_mark(Mark::filled_circle, "spinning");
  legend.add_mark(Mark::hollow_square, "blocking");
  legend.add_marks_of(results);
  const Scatter scatter = scatter_of(results, legend.bottom() + 10);
  const std::vector<Point>& points = scatter.points;
  draw_y_axis(canvas, scatter.y, scatter.area, time_text);
  draw_x_axis(canvas, scatter.x, scatter.area, time_text);
  // Backwards, so that the best lies on top.
  for (std::size_t i = results.size(); i-- > 0;) {
    const char* colour = colour_of(results[i]->key.method);
    draw_range(canvas, range_of_runs(*results[i], &Figures::p50_ns), colour, [&](double p50) {
      return Point{scatter.x.at(p50), points[i].y};
    });
    draw_range(canvas, range_of_runs(*results[i], kCpu), colour, [&](double cpu) {
      return Point{points[i].x, scatter.y.at(cpu)};
    });
  }
  draw_names(canvas, results, scatter.names);
  for (std::size_t i = results.size(); i-- > 0;) {
    canvas.mark(points[i], mark_of(results[i]->key.variant), colour_of(results[i]->key.method),
                tooltip_of(*results[i]));
  }

  Chart chart;
  chart.name = fmt::format("cpu-{}", size);
  chart.title = fmt::format("What a round trip of {} costs", size_text(size));
  chart.caption =
      "CPU time of both sides (upwards) against p50 (to the right), both axes logarithmic. Nearer "
      "to the lower left is better. A bracket has the names of the points at the end of its line.";
  chart.height = scatter.area.bottom + 26;
  chart.body = canvas.svg();
  return chart;
}

}  // namespace leat::bench
