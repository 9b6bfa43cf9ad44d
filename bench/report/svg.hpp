// What the charts are drawn with: a canvas that writes SVG, a logarithmic axis, and a place for every
// label. Colours are names of classes; what they are in light and in dark is in charts.cpp.
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

// How wide a text of the charts' size is, about: nothing here knows the reader's font.
double width_of(std::string_view text);

class Canvas {
 public:
  // Text that a click or a pointer shows: empty for none.
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

// From pixels `from` to `to`, whichever is larger.
struct PixelRange {
  double from = 0, to = 0;
};

struct Tick {
  double value = 0;
  bool labelled = false;
};

// A logarithmic axis between two of 1, 2, 5, 10, 20, …
class LogScale {
 public:
  // Both above 0; the smallest axis that has them and at least two labels.
  static LogScale around(double lowest, double highest, PixelRange pixels);

  double at(double value) const noexcept;
  double lowest() const noexcept { return lowest_; }
  double highest() const noexcept { return highest_; }
  // From the lowest up; labels where they do not crowd.
  std::vector<Tick> ticks() const;

 private:
  LogScale(double lowest, double highest, PixelRange pixels) noexcept
      : lowest_{lowest}, highest_{highest}, pixels_{pixels} {}

  double lowest_;
  double highest_;
  PixelRange pixels_;
};

// Moves what stands too close apart, within `area` if there is room. Keeps the order; the results are
// in the order of `wanted`.
std::vector<double> spread_apart(const std::vector<double>& wanted, double distance,
                                 PixelRange area);

// Finds places for labels right beside points so that nothing covers anything else.
//
//     LabelPlacer placer(area);
//     for (const Point& point : points) placer.keep_free(point);
//     if (const auto box = placer.place(points[0], width_of("pipe"), 12)) …
class LabelPlacer {
 public:
  explicit LabelPlacer(const Box& area) noexcept : area_{area} {}

  // No label lies on this point, or on this line.
  void keep_free(Point point);
  void keep_free(Point from, Point to) { lines_.push_back({from, to}); }
  // None if there is no room.
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
