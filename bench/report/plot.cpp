#include "plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "charts.hpp"
#include "units.hpp"

namespace leat::bench {
namespace {

constexpr std::size_t kLabelLength = 15;
constexpr double kLegendLine = 17;
constexpr double kBarHeight = 12;
constexpr double kRowGap = 4;

std::string bar_style(Variant variant, const char* colour) {
  return fmt::format("{} {}", variant == Variant::spinning ? "filled" : "hollow", colour);
}

std::string curve_style(Variant variant, std::string_view colour) {
  return fmt::format("curve {}{}", variant == Variant::spinning ? "" : "broken ", colour);
}

// One row for each method, as good as its better variant; within it spinning first.
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

// The colour is the method's, whatever the variant.
std::map<std::string, std::string> colours_of(const std::vector<Line>& lines) {
  constexpr std::size_t kColours = 8;
  std::map<std::string, std::string> colours;
  std::size_t next = 0;
  for (const Line& line : lines) {
    const std::string& method = line.result->key.method;
    if (colours.contains(method)) continue;
    const bool own_colour = method == "leat" || line.result->baseline;
    colours[method] =
        own_colour ? style_of(*line.result) : fmt::format("line{}", next++ % kColours);
  }
  return colours;
}

}  // namespace

const char* style_of(const Measurement& result) {
  if (is_leat(result.key.method)) return "leat";
  return result.baseline ? "base" : "other";
}

Mark mark_of(Variant variant) {
  return variant == Variant::spinning ? Mark::filled_circle : Mark::hollow_square;
}

std::string tooltip_of(const Measurement& result) {
  std::string text = to_string(result.key);
  const auto add = [&](const char* name, const std::optional<double>& value, auto&& in_words) {
    if (value) text += fmt::format("; {} {}", name, in_words(*value));
  };
  add("p50", result.median->p50_ns, time_text);
  add("p99", result.median->p99_ns, time_text);
  add("p99.9", result.median->p999_ns, time_text);
  add("messages", result.median->messages_per_second, rate_text);
  add("CPU each", result.median->cpu_ns_per_message, time_text);
  return text;
}

std::string short_label_of(const Measurement& result) {
  const std::string& method = result.key.method;
  if (method.size() <= kLabelLength) return label_of(result);
  return method.substr(0, kLabelLength - 1) + "…" + label_of(result).substr(method.size());
}

Extent extent_of(const Results& results, Figure figure) {
  const auto [lowest, highest] = std::minmax_element(
      results.begin(), results.end(), [&](const Measurement* a, const Measurement* b) {
        return *(*a->median.*figure) < *(*b->median.*figure);
      });
  return {*(*(*lowest)->median.*figure), *(*(*highest)->median.*figure)};
}

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

void Legend::add_bar(const char* style, const std::string& text) {
  const Point at = begin(24, text);
  canvas_->rectangle({at.x + 1, at.y - 8.5, 17, 9}, style);
  canvas_->text({at.x + 23, at.y}, text, "muted");
}

void Legend::add_marks_of(const Results& results) {
  const auto any = [&](auto&& has) {
    return std::any_of(results.begin(), results.end(),
                       [&](const Measurement* r) { return has(*r); });
  };
  if (any([](const Measurement& r) { return r.baseline; })) add_text("† one slot, no queue");
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

double draw_bars(Canvas& canvas, const Results& results, Figure figure, const InWords& in_words) {
  constexpr double kLeft = 104, kRight = 340;
  Legend legend(canvas);
  legend.add_bar("filled plain", "spinning");
  legend.add_bar("hollow plain", "blocking");
  legend.add_bar("filled leat", "Leat");
  legend.add_marks_of(results);

  const std::vector<Results> rows = rows_of(results);
  const auto height_of = [](const Results& row) {
    return kBarHeight * static_cast<double>(row.size());
  };
  const double top = legend.bottom() + 20;
  double bottom = top;
  for (const Results& row : rows) bottom += height_of(row) + kRowGap;

  const Extent extent = extent_of(results, figure);
  // The shortest bar must have a length, too.
  const LogScale scale = LogScale::around(extent.lowest * 0.7, extent.highest, {kLeft, kRight});
  for (const Tick& tick : scale.ticks()) {
    const double x = scale.at(tick.value);
    canvas.line({x, top - 4}, {x, bottom}, tick.labelled ? "rule" : "rule faint");
    if (tick.labelled) canvas.text({x, top - 8}, in_words(tick.value), "muted", Anchor::middle);
  }

  double y = top;
  for (const Results& row : rows) {
    const char* weight = is_leat(row[0]->key.method) ? "strong" : "";
    canvas.text({kLeft - 6, y + height_of(row) / 2 + 4}, short_label_of(*row[0]), weight,
                Anchor::end);
    for (const Measurement* result : row) {
      const double value = *(*result->median.*figure);
      const double x = scale.at(value);
      canvas.rectangle({kLeft, y + 1.5, x - kLeft, kBarHeight - 3},
                       bar_style(result->key.variant, style_of(*result)), tooltip_of(*result));
      canvas.text({x + 5, y + kBarHeight - 2.2}, in_words(value), weight);
      y += kBarHeight;
    }
    y += kRowGap;
  }
  return bottom + 4;
}

void draw_lines(Canvas& canvas, const std::vector<Line>& lines, const PlotArea& area) {
  constexpr double kLabelDistance = 13;
  const auto colours = colours_of(lines);
  std::vector<double> ends;
  for (const Line& line : lines) ends.push_back(line.points.back().y);
  const std::vector<double> labels =
      spread_apart(ends, kLabelDistance, {area.top - 6, area.bottom + 6});

  for (std::size_t i = lines.size(); i-- > 0;) {
    const Line& line = lines[i];
    const ResultKey& key = line.result->key;
    const std::string& colour = colours.at(key.method);
    const Mark mark = mark_of(key.variant);
    const Point end = line.points.back();
    canvas.line({end.x + 4, end.y}, {area.right + 12, labels[i]}, "leader " + colour);
    canvas.path(line.points, curve_style(key.variant, colour));
    for (std::size_t p = 0; p < line.points.size(); ++p) {
      canvas.mark(line.points[p], mark, colour, line.tooltips[p]);
    }
    canvas.mark({area.right + 17, labels[i]}, mark, colour);
    canvas.text({area.right + 24, labels[i] + 4}, short_label_of(*line.result),
                is_leat(key.method) ? "strong" : "");
  }
}

void draw_y_axis(Canvas& canvas, const LogScale& y, const PlotArea& area, const InWords& in_words) {
  for (const Tick& tick : y.ticks()) {
    const double at = y.at(tick.value);
    canvas.line({area.left, at}, {area.right, at}, tick.labelled ? "rule" : "rule faint");
    if (tick.labelled) {
      canvas.text({area.left - 5, at + 4}, in_words(tick.value), "muted", Anchor::end);
    }
  }
}

void draw_x_axis(Canvas& canvas, const LogScale& x, const PlotArea& area, const InWords& in_words) {
  for (const Tick& tick : x.ticks()) {
    const double at = x.at(tick.value);
    canvas.line({at, area.top}, {at, area.bottom}, tick.labelled ? "rule" : "rule faint");
    if (tick.labelled) {
      canvas.text({at, area.bottom + 18}, in_words(tick.value), "muted", Anchor::middle);
    }
  }
}

}  // namespace leat::bench
