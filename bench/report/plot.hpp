// The parts that charts of results are put together from: legends, bars, lines, axes.
//
//     Canvas canvas;
//     Legend legend(canvas);
//     legend.add_variants(results);
//     draw_lines(canvas, lines, {.top = legend.bottom(), .bottom = legend.bottom() + 250});
//
// Colours and shapes mean the same everywhere: charts.hpp says what.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "result_set.hpp"
#include "svg.hpp"

namespace leat::bench {

// Narrow, so that the letters are still large enough on a phone.
inline constexpr double kChartWidth = 400;

using Results = std::vector<const Measurement*>;
using InWords = std::function<std::string(double)>;

// The class of a result's colour.
const char* style_of(const Measurement& result);
Mark mark_of(Variant variant);
// What a pointer on a result shows.
std::string tooltip_of(const Measurement& result);
// The name of a result's method, short enough to stand beside a chart.
std::string short_label_of(const Measurement& result);

// The smallest and the largest of a figure that all results have.
struct Extent {
  double lowest = 0, highest = 0;
};
Extent extent_of(const Results& results, Figure figure);

// Rows of small pictures with their meaning.
class Legend {
 public:
  explicit Legend(Canvas& canvas) : canvas_{&canvas} {}

  void add_mark(Mark mark, const std::string& text);
  void add_line(Variant variant, const std::string& text);
  void add_bar(const char* style, const std::string& text);
  // What the marks behind names mean, as far as they occur.
  void add_marks_of(const Results& results);
  double bottom() const { return y_ + 6; }

 private:
  void add_text(const std::string& text);
  Point begin(double picture_width, const std::string& text);

  Canvas* canvas_;
  double x_ = 0;
  double y_ = 11;  // Of the letters' foot.
};

// One row of bars for each method, with a legend. Results come best first. Returns the height.
double draw_bars(Canvas& canvas, const Results& results, Figure figure, const InWords& in_words);

struct PlotArea {
  double left = 50, right = 288, top = 0, bottom = 0;
};

struct Line {
  const Measurement* result;  // Gives name, variant and colour.
  std::vector<Point> points;
  std::vector<std::string> tooltips;  // One for each point.
};

// Lines with their names at the right of the area. The first ones lie on top.
void draw_lines(Canvas& canvas, const std::vector<Line>& lines, const PlotArea& area);

void draw_y_axis(Canvas& canvas, const LogScale& y, const PlotArea& area, const InWords& in_words);
void draw_x_axis(Canvas& canvas, const LogScale& x, const PlotArea& area, const InWords& in_words);

}  // namespace leat::bench
