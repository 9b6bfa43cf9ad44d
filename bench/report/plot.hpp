// The parts that charts of results are put together from: legends, dots, lines, axes.
//
//     Canvas canvas;
//     Legend legend(canvas);
//     legend.add_marks_of(results);
//     draw_lines(canvas, lines, {.top = legend.bottom(), .bottom = legend.bottom() + 250});
//
// Colours and shapes mean the same in every chart; charts.hpp says what.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "result_set.hpp"
#include "runs.hpp"
#include "svg.hpp"

namespace leat::bench {

// Narrow, so that the letters are still large enough on a phone.
inline constexpr double kChartWidth = 400;
// From one label to the next one below it.
inline constexpr double kLabelDistance = 14;

using Results = std::vector<const Measurement*>;
using InWords = std::function<std::string(double)>;

// The class of a method's colour.
const char* colour_of(std::string_view method);
Mark mark_of(Variant variant);
// What a browser shows when the pointer is on a result.
std::string tooltip_of(const Measurement& result);
// A method's name, short enough to stand beside a chart.
std::string short_name_of(const std::string& method);

// Whether a logarithmic axis can show it.
bool drawable(const std::optional<double>& value);
Results drawable_ones(Results results, Figure figure);

// The smallest and the largest of a figure, the runs included. All results must have the figure.
struct Extent {
  double lowest = 0, highest = 0;
};
Extent extent_of(const Results& results, Figure figure);

// Rows of small pictures, each with its meaning.
class Legend {
 public:
  explicit Legend(Canvas& canvas) : canvas_{&canvas} {}

  void add_mark(Mark mark, const std::string& text);
  void add_line(Variant variant, const std::string& text);
  // The line for the range of the runs, if any of the results has one; and the marks behind names.
  void add_marks_of(const Results& results);
  double bottom() const { return y_ + 6; }

 private:
  void add_text(const std::string& text);
  Point begin(double picture_width, const std::string& text);

  Canvas* canvas_;
  double x_ = 0;
  double y_ = 11;  // The baseline of the text.
};

// Draws a range of runs from place to place, unless a logarithmic axis can't show it.
void draw_range(Canvas& canvas, const std::optional<Range>& range, std::string_view colour,
                const std::function<Point(double)>& place_of);

// One row for each method, with its dots, its figures and a legend. Results come best first. Returns
// the height.
double draw_dots(Canvas& canvas, const Results& results, Figure figure, const InWords& in_words);

struct PlotArea {
  double left = 50, right = 288, top = 0, bottom = 0;
};

struct LinePoint {
  Point at;
  std::string tooltip;
  std::optional<std::pair<Point, Point>> range;  // Of the runs.
};

struct Line {
  const Measurement* result;  // Gives name, variant and colour.
  std::vector<LinePoint> points;
};

// Lines with their names to the right of the area. The first one lies on top.
void draw_lines(Canvas& canvas, const std::vector<Line>& lines, const PlotArea& area);

void draw_y_axis(Canvas& canvas, const LogScale& y, const PlotArea& area, const InWords& in_words);
void draw_x_axis(Canvas& canvas, const LogScale& x, const PlotArea& area, const InWords& in_words);

}  // namespace leat::bench
