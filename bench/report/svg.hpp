// What the charts are drawn with: a canvas that writes SVG, a logarithmic axis, and the placing of
// labels. Colours are names of CSS classes; chart_style.cpp defines them for light and dark.
//
//     LogScale x = LogScale::around(95, 2100, {.from = 40, .to = 300});  // 50 … 5000
//     Canvas canvas;
//     canvas.text({x.at(1000), 12}, "1 µs", "muted", Anchor::middle);
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leat::bench {

// For HTML and SVG, between tags and in quotes.
std::string escaped(std::string_view text);

struct Point {
  double x = 0, y = 0;
};

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
  bool overlaps(const Box& other) const noexcept;
  bool contains(const Box& other) const noexcept;
};

enum class Anchor { start, middle, end };
enum class Mark { filled_circle, hollow_square };

// The approximate width of a text in the charts' font size; the reader's font is not known here.
double width_of(std::string_view text);

class Canvas {
 public:
  // The tooltip is what a browser shows under the pointer; empty for none.
  void rectangle(const Box& box, std::string_view style, std::string_view tooltip = {});
  void line(Point from, Point to, std::string_view style);
  void path(const std::vector<Point>& points, std::string_view style);
  void mark(Point center, Mark mark, std::string_view style, std::string_view tooltip = {});
  void text(Point baseline, std::string_view text, std::string_view style,
            Anchor anchor = Anchor::start);

  const std::string& svg() const noexcept { return out_; }

 private:
  void close(std::string_view element, std::string_view tooltip);

  std::string out_;
};

// From pixel `from` to pixel `to`; an axis that points upwards has from > to.
struct PixelRange {
  double from = 0, to = 0;
};

// A logarithmic axis. Both ends are one of …, 1, 2, 5, 10, 20, …
class LogScale {
 public:
  // The shortest axis that contains both values. Both must be above 0.
  static LogScale around(double lowest, double highest, PixelRange pixels);

  double at(double value) const noexcept;
  double lowest() const noexcept { return lowest_; }
  double highest() const noexcept { return highest_; }
  // At least two values, smallest first. Neighbours are `room` pixels apart, so that each can have a
  // label.
  std::vector<double> ticks(double room) const;

 private:
  LogScale(double lowest, double highest, PixelRange pixels) noexcept
      : lowest_{lowest}, highest_{highest}, pixels_{pixels} {}

  double lowest_;
  double highest_;
  PixelRange pixels_;
};

// Places that are at least `distance` apart, as near as possible to those wanted and within `area` if
// there is room. They keep their order along the axis; result i belongs to wanted[i].
std::vector<double> spread_apart(const std::vector<double>& wanted, double distance,
                                 PixelRange area);

// Finds places for labels right beside their points, so that no label covers a label, point or line.
//
//     LabelPlacer placer(area);
//     for (const Point& point : points) placer.keep_free(point);
//     if (const auto box = placer.place(points[0], width_of("pipe"), 12)) …
class LabelPlacer {
 public:
  explicit LabelPlacer(const Box& area) noexcept : area_{area} {}

  // No label will cover this point, or this line.
  void keep_free(Point point);
  void keep_free(Point from, Point to) { lines_.push_back({from, to}); }
  // Empty if there is no room.
  std::optional<Box> place(Point point, double width, double height);

 private:
  struct Segment {
    Point from, to;
  };
  bool is_free(const Box& label) const;

  Box area_;
  std::vector<Box> taken_;
  std::vector<Segment> lines_;
};

}  // namespace leat::bench
