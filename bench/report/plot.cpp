#include "plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "bench/output/units.hpp"
#include "charts.hpp"

namespace leat::bench {
namespace {

constexpr std::size_t kNameLength = 15;
constexpr double kLegendLine = 17;
constexpr double kRowHeight = 17;

std::string curve_style(Variant variant, std::string_view colour) {
  return fmt::format("curve {}{}", variant == Variant::spinning ? "" : "broken ", colour);
}

// One row for each method, ordered by its better variant; within a row spinning comes first.
std::vector<Results> rows_of(const Results& best_first) {
  std::vector<Results> rows;
  std::map<std::string, std::size_t> row_of;
  for (const Measurement* result : best_first) {
    const auto [found, is_new] = row_of.emplace(result->key.method, rows.size());
    if (is_new) rows.emplace_back();
    rows[found->second].push_back(result);
  }
  for (Results& row : rows) {
    std::stable_sort(row.begin(), row.end(), [](const Measurement* a, const Measurement* b) {
      return a->key.variant < b->key.variant;
    });
  }
  return rows;
}

// As many values of an axis as have room for their labels side by side.
std::vector<double> ticks_with_room(const LogScale& x, const InWords& in_words) {
  constexpr double kGap = 8;
  const auto touch = [&](double a, double b) {
    return x.at(b) - x.at(a) < (width_of(in_words(a)) + width_of(in_words(b))) / 2 + kGap;
  };
  for (double room = 20;; room += 4) {
    const std::vector<double> ticks = x.ticks(room);
    const bool last_choice = ticks.size() == 2;
    if (last_choice || std::adjacent_find(ticks.begin(), ticks.end(), touch) == ticks.end()) {
      return ticks;
    }
  }
}

}  // namespace

Mark mark_of(Variant variant) {
  return variant == Variant::spinning ? Mark::filled_circle : Mark::hollow_square;
}

std::string tooltip_of(const Measurement& result) {
  std::string text = to_string(result.key);
  const auto add = [&](const char* name, Figure figure, auto&& in_words) {
    const auto& value = *result.median.*figure;
    if (!value) return;
    text += fmt::format("; {} {}", name, in_words(*value));
    if (const auto range = range_of_runs(result, figure)) {
      text += fmt::format(" ({} to {})", in_words(range->low), in_words(range->high));
    }
  };
  add("p50", &Figures::p50_ns, time_text);
  add("p99", &Figures::p99_ns, time_text);
  add("p99.9", &Figures::p999_ns, time_text);
  add("messages", &Figures::messages_per_second, rate_text);
  add("CPU", &Figures::cpu_ns_per_message, time_text);
  return text;
}

std::string short_name_of(const std::string& method) {
  return method.size() <= kNameLength ? method : method.substr(0, kNameLength - 1) + "…";
}

bool drawable(const std::optional<double>& value) { return value && *value > 0; }

Results drawable_ones(Results results, Figure figure) {
  std::erase_if(results, [&](const Measurement* r) { return !drawable(*r->median.*figure); });
  return results;
}

Extent extent_of(const Results& results, Figure figure) {
  Extent extent{*(*results.front()->median.*figure), 0};
  const auto include = [&](double value) {
    if (!drawable(value)) return;
    extent.lowest = std::min(extent.lowest, value);
    extent.highest = std::max(extent.highest, value);
  };
  for (const Measurement* result : results) {
    include(*(*result->median.*figure));
    if (const auto range = range_of_runs(*result, figure)) {
      include(range->low);
      include(range->high);
    }
  }
  return extent;
}

// --- Legend -------------------------------------------------------------------------------------

void Legend::add_mark(Mark mark, const std::string& text) {
  const Point at = begin(16, text);
  canvas_->mark({at.x + 5, at.y - 4}, mark, "plain");
  canvas_->text({at.x + 14, at.y}, text, "muted");
}

void Legend::add_line(Variant variant, const std::string& text) {
  const Point at = begin(34, text);
  canvas_->line({at.x, at.y - 4}, {at.x + 26, at.y - 4}, curve_style(variant, "plain"));
  canvas_->mark({at.x + 13, at.y - 4}, mark_of(variant), "plain");
  canvas_->text({at.x + 32, at.y}, text, "muted");
}

void Legend::add_marks_of(const Results& results) {
  const auto any = [&](auto&& has) {
    return std::any_of(results.begin(), results.end(),
                       [&](const Measurement* r) { return has(*r); });
  };
  if (any([](const Measurement& r) { return r.runs.size() > 1; })) {
    const std::string text = "range of the runs";
    const Point at = begin(24, text);
    canvas_->line({at.x + 1, at.y - 4}, {at.x + 18, at.y - 4}, "range plain");
    canvas_->text({at.x + 23, at.y}, text, "muted");
  }
  if (any([](const Measurement& r) { return r.baseline; }))
    add_text("† spins on one slot of memory");
  if (any([](const Measurement& r) { return r.in_process; })) add_text("‡ threads of one process");
  if (any([](const Measurement& r) { return !r.verified; })) add_text("! payload not verified");
}

void Legend::add_text(const std::string& text) { canvas_->text(begin(0, text), text, "muted"); }

Point Legend::begin(double picture_width, const std::string& text) {
  const double width = picture_width + width_of(text) + 8;
  if (x_ > 0 && x_ + width > kChartWidth) {
    x_ = 0;
    y_ += kLegendLine;
  }
  const Point at{x_, y_};
  x_ += width;
  return at;
}

// --- Dots and lines -----------------------------------------------------------------------------

void draw_range(Canvas& canvas, const std::optional<Range>& range, std::string_view colour,
                const std::function<Point(double)>& place_of) {
  if (!range || range->low <= 0) return;
  canvas.line(place_of(range->low), place_of(range->high), fmt::format("range {}", colour));
}

double draw_dots(Canvas& canvas, const Results& results, Figure figure, const InWords& in_words) {
  constexpr double kLeft = 108, kRight = 272;
  constexpr std::array kColumns = {336.0, 398.0};  // The right ends of the figures, by variant.
  Legend legend(canvas);
  legend.add_mark(Mark::filled_circle, "spinning");
  legend.add_mark(Mark::hollow_square, "blocking");
  legend.add_marks_of(results);

  const std::vector<Results> rows = rows_of(results);
  const double top = legend.bottom() + 20;
  const double bottom = top + kRowHeight * static_cast<double>(rows.size());
  const Extent extent = extent_of(results, figure);
  const LogScale scale = LogScale::around(extent.lowest, extent.highest, {kLeft, kRight});
  for (const double tick : ticks_with_room(scale, in_words)) {
    canvas.line({scale.at(tick), top - 4}, {scale.at(tick), bottom}, "rule");
    canvas.text({scale.at(tick), top - 8}, in_words(tick), "muted", Anchor::middle);
  }
  for (const Variant variant : {Variant::spinning, Variant::blocking}) {
    canvas.mark({kColumns[static_cast<std::size_t>(variant)] - 20, top - 12}, mark_of(variant),
                "plain");
  }

  double middle = top + kRowHeight / 2;
  for (const Results& row : rows) {
    const std::string& method = row[0]->key.method;
    const char* colour = colour_of(method);
    const char* weight = is_leat(method) ? "strong" : "";
    canvas.line({kLeft, middle}, {kRight, middle}, "row");
    canvas.text({kLeft - 8, middle + 4}, short_name_of(method), weight, Anchor::end);
    const auto place_of = [&](const Measurement& result) {
      return scale.at(*(*result.median.*figure));
    };
    // Two marks that would cover each other stand one above the other.
    const bool apart = row.size() > 1 && std::abs(place_of(*row[0]) - place_of(*row[1])) < 9;
    double lane = apart ? middle - 4 : middle;
    for (const Measurement* result : row) {
      const Variant variant = result->key.variant;
      draw_range(canvas, range_of_runs(*result, figure), colour, [&](double end) {
        return Point{scale.at(end), lane};
      });
      canvas.mark({place_of(*result), lane}, mark_of(variant), colour, tooltip_of(*result));
      canvas.text({kColumns[static_cast<std::size_t>(variant)], middle + 4},
                  in_words(*(*result->median.*figure)) + marks_of(*result), weight, Anchor::end);
      if (apart) lane = middle + 4;
    }
    middle += kRowHeight;
  }
  return bottom + 4;
}

void draw_lines(Canvas& canvas, const std::vector<Line>& lines, const PlotArea& area) {
  std::vector<double> ends;
  for (const Line& line : lines) ends.push_back(line.points.back().at.y);
  const std::vector<double> labels =
      spread_apart(ends, kLabelDistance, {area.top - 6, area.bottom + 6});

  for (std::size_t i = lines.size(); i-- > 0;) {
    const Line& line = lines[i];
    const ResultKey& key = line.result->key;
    const std::string colour = colour_of(key.method);
    const Mark mark = mark_of(key.variant);
    const Point end = line.points.back().at;
    canvas.line({end.x + 4, end.y}, {area.right + 12, labels[i]}, "leader " + colour);
    std::vector<Point> path;
    for (const LinePoint& point : line.points) {
      path.push_back(point.at);
      if (point.range) canvas.line(point.range->first, point.range->second, "range " + colour);
    }
    canvas.path(path, curve_style(key.variant, colour));
    for (const LinePoint& point : line.points) canvas.mark(point.at, mark, colour, point.tooltip);
    canvas.mark({area.right + 17, labels[i]}, mark, colour);
    canvas.text({area.right + 24, labels[i] + 4},
                short_name_of(key.method) + marks_of(*line.result),
                is_leat(key.method) ? "strong" : "");
  }
}

// --- Axes ---------------------------------------------------------------------------------------

void draw_y_axis(Canvas& canvas, const LogScale& y, const PlotArea& area, const InWords& in_words) {
  for (const double tick : y.ticks(kLabelDistance)) {
    canvas.line({area.left, y.at(tick)}, {area.right, y.at(tick)}, "rule");
    canvas.text({area.left - 5, y.at(tick) + 4}, in_words(tick), "muted", Anchor::end);
  }
}

void draw_x_axis(Canvas& canvas, const LogScale& x, const PlotArea& area, const InWords& in_words) {
  for (const double tick : ticks_with_room(x, in_words)) {
    canvas.line({x.at(tick), area.top}, {x.at(tick), area.bottom}, "rule");
    canvas.text({x.at(tick), area.bottom + 18}, in_words(tick), "muted", Anchor::middle);
  }
}

}  // namespace leat::bench
