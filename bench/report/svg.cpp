#include "svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

namespace leat::bench {
namespace {

// The nearest of …, 1, 2, 5, 10, … at or below (above) a number.
double step_below(double value) {
  const double decade = std::pow(10.0, std::floor(std::log10(value)));
  for (const double step : {10.0, 5.0, 2.0}) {
    if (decade * step <= value * 1.000001) return decade * step;
  }
  return decade;
}

double step_above(double value) {
  const double decade = std::pow(10.0, std::floor(std::log10(value)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (decade * step >= value * 0.999999) return decade * step;
  }
  return decade * 10;
}

// The sign says on which side of the line from a to b the point lies.
double side_of(Point a, Point b, Point point) {
  return (b.x - a.x) * (point.y - a.y) - (b.y - a.y) * (point.x - a.x);
}

// Whether two segments cross; touching does not count.
bool cross(Point a, Point b, Point c, Point d) {
  return side_of(a, b, c) * side_of(a, b, d) < 0 && side_of(c, d, a) * side_of(c, d, b) < 0;
}

// Whether any part of a segment is inside the box.
bool crosses(Point from, Point to, const Box& box) {
  const Point corners[] = {{box.x, box.y},
                           {box.x + box.width, box.y},
                           {box.x + box.width, box.y + box.height},
                           {box.x, box.y + box.height}};
  const auto inside = [&](Point point) { return box.overlaps({point.x, point.y, 0, 0}); };
  if (inside(from) || inside(to)) return true;
  for (int i = 0; i < 4; ++i) {
    if (cross(from, to, corners[i], corners[(i + 1) % 4])) return true;
  }
  return false;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? ' ' : c;
    }
  }
  return out;
}

bool Box::overlaps(const Box& other) const noexcept {
  return x < other.x + other.width && other.x < x + width && y < other.y + other.height &&
         other.y < y + height;
}

bool Box::contains(const Box& other) const noexcept {
  return other.x >= x && other.y >= y && other.x + other.width <= x + width &&
         other.y + other.height <= y + height;
}

double width_of(std::string_view text) {
  constexpr double kPerCharacter = 6.8;
  // Characters, not bytes: continuation bytes of UTF-8 don't count.
  return kPerCharacter * static_cast<double>(std::count_if(text.begin(), text.end(), [](char c) {
           return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;
         }));
}

void Canvas::close(std::string_view element, std::string_view tooltip) {
  if (tooltip.empty()) {
    out_ += "/>\n";
  } else {
    out_ += fmt::format("><title>{}</title></{}>\n", escaped(tooltip), element);
  }
}

void Canvas::rectangle(const Box& box, std::string_view style, std::string_view tooltip) {
  out_ += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="{}")",
                      box.x, box.y, std::max(box.width, 0.0), std::max(box.height, 0.0), style);
  close("rect", tooltip);
}

void Canvas::line(Point from, Point to, std::string_view style) {
  out_ += fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}")", from.x,
                      from.y, to.x, to.y, style);
  close("line", {});
}

void Canvas::path(const std::vector<Point>& points, std::string_view style) {
  out_ += R"(<polyline points=")";
  for (const Point& point : points) out_ += fmt::format("{:.1f},{:.1f} ", point.x, point.y);
  out_ += fmt::format(R"(" class="{}")", style);
  close("polyline", {});
}

void Canvas::mark(Point center, Mark mark, std::string_view style, std::string_view tooltip) {
  if (mark == Mark::filled_circle) {
    out_ += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="3.6" class="filled {}")", center.x,
                        center.y, style);
    close("circle", tooltip);
  } else {
    rectangle({center.x - 3.2, center.y - 3.2, 6.4, 6.4}, fmt::format("hollow {}", style), tooltip);
  }
}

void Canvas::text(Point baseline, std::string_view text, std::string_view style, Anchor anchor) {
  constexpr std::array kAnchors = {"start", "middle", "end"};
  out_ += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}" class="{}">{}</text>)",
                      baseline.x, baseline.y, kAnchors[static_cast<std::size_t>(anchor)], style,
                      escaped(text));
  out_ += '\n';
}

LogScale LogScale::around(double lowest, double highest, PixelRange pixels) {
  double low = step_below(lowest);
  double high = step_above(highest);
  if (high <= low * 1.000001) {  // One value only.
    low = step_below(lowest * 0.8);
    high = step_above(highest * 1.2);
  }
  return {low, high, pixels};
}

double LogScale::at(double value) const noexcept {
  const double part = std::log(value / lowest_) / std::log(highest_ / lowest_);
  return pixels_.from + part * (pixels_.to - pixels_.from);
}

std::vector<double> LogScale::ticks(double room) const {
  const double decades = std::log10(highest_ / lowest_);
  const double decade_pixels = std::abs(pixels_.to - pixels_.from) / decades;
  // 1, 2 and 5 of each decade if they have room; else every decade, or every second, third, …
  const bool within_decades = decade_pixels * std::log10(2) >= room;
  const int stride = std::max(1, static_cast<int>(std::ceil(room / decade_pixels)));
  const int first = static_cast<int>(std::floor(std::log10(lowest_) + 1e-9));
  const int last = static_cast<int>(std::ceil(std::log10(highest_) - 1e-9));
  std::vector<double> ticks;
  for (int decade = first; decade <= last; decade += stride) {
    for (const double step : {1.0, 2.0, 5.0}) {
      const double value = step * std::pow(10.0, decade);
      const bool on_axis = value >= lowest_ * 0.999999 && value <= highest_ * 1.000001;
      if (on_axis && (step == 1.0 || within_decades)) ticks.push_back(value);
    }
  }
  if (ticks.size() < 2) return {lowest_, highest_};
  return ticks;
}

std::vector<double> spread_apart(const std::vector<double>& wanted, double distance,
                                 PixelRange area) {
  std::vector<std::size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return wanted[a] < wanted[b]; });

  // Neighbours that are too close become a block, centred on the mean of the places they want.
  struct Block {
    double center;
    double count;
  };
  const double room = distance * static_cast<double>(wanted.size());
  const auto start_of = [&](const Block& block) {
    const double start = block.center - block.count * distance / 2;
    const double latest = std::max(area.from, area.to - block.count * distance);
    return room > area.to - area.from ? start : std::clamp(start, area.from, latest);
  };
  std::vector<Block> blocks;
  for (const std::size_t i : order) {
    Block block{wanted[i], 1};
    while (!blocks.empty() &&
           start_of(blocks.back()) + blocks.back().count * distance > start_of(block)) {
      const Block before = blocks.back();
      blocks.pop_back();
      const double count = before.count + block.count;
      block = {(before.center * before.count + block.center * block.count) / count, count};
    }
    blocks.push_back(block);
  }

  std::vector<double> places(wanted.size());
  auto next = order.begin();
  for (const Block& block : blocks) {
    double place = start_of(block) + distance / 2;
    for (double i = 0; i < block.count; ++i, place += distance) places[*next++] = place;
  }
  return places;
}

void LabelPlacer::keep_free(Point point) {
  constexpr double kHalf = 4;
  taken_.push_back({point.x - kHalf, point.y - kHalf, 2 * kHalf, 2 * kHalf});
}

std::optional<Box> LabelPlacer::place(Point point, double width, double height) {
  // Sixteenths of a turn: right, left, above, below, then the directions between them.
  constexpr std::array kDirections = {0, 8, 4, 12, 2, 14, 6, 10, 1, 15, 7, 9, 3, 13, 5, 11};
  for (const double distance : {6, 9, 12}) {
    for (const int direction : kDirections) {
      const double angle = std::numbers::pi * direction / 8;
      const double x = point.x + distance * std::cos(angle);
      const double y = point.y - distance * std::sin(angle);
      // The label touches this place with the side that faces the point.
      const Box label{x - width * (1 - std::cos(angle)) / 2, y - height * (1 + std::sin(angle)) / 2,
                      width, height};
      if (!is_free(label)) continue;
      taken_.push_back(label);
      return label;
    }
  }
  return std::nullopt;
}

bool LabelPlacer::is_free(const Box& label) const {
  return area_.contains(label) &&
         std::none_of(taken_.begin(), taken_.end(),
                      [&](const Box& other) { return label.overlaps(other); }) &&
         std::none_of(lines_.begin(), lines_.end(),
                      [&](const Segment& line) { return crosses(line.from, line.to, label); });
}

}  // namespace leat::bench
