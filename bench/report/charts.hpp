// Pictures of a ResultSet, as SVG that is right in light and in dark and on a phone.
//
//     if (const auto chart = latency_bars(set, 100)) page += inline_svg(*chart);
//     for (const Chart& chart : all_charts(set)) write(chart.name + ".svg", svg_file(chart));
//
// Leat has a colour of its own, what is no queue is grey. Spinning is a filled shape or a whole line,
// blocking a hollow shape or a broken line, for those who see no difference between colours.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "result_set.hpp"

namespace leat::bench {

struct Chart {
  std::string name;     // Of its file: "round-trip-100".
  std::string title;    // "Round trip of 100 B"
  std::string caption;  // How to read it, in a sentence or two.
  double height = 0;    // The width is the same for all.
  std::string body;     // The elements within <svg>.
};

// For HTML that has theme_css() and chart_css() in its style.
std::string inline_svg(const Chart& chart);
// A whole file, with title and style.
std::string svg_file(const Chart& chart);
// The variables --paper, --ink, --muted, --rule, --leat … in light and in dark.
std::string theme_css();
std::string chart_css();

// The sizes of which there are figures, smallest first.
std::vector<std::uint64_t> sizes_of(const ResultSet& set);
std::vector<std::uint64_t> batches_of(const ResultSet& set);
// 100 B if that was measured; else the size of which most methods were. 0 if there are no figures.
std::uint64_t usual_size(const ResultSet& set);

// The results of one pattern and size that have figures, best first.
std::vector<const Measurement*> ranked(const ResultSet& set, Pattern pattern, std::uint64_t size);

// The name of a result's method as charts and tables show it, with its marks: "shm†".
std::string label_of(const Measurement& result);
bool is_leat(const std::string& method);

// Each of them is empty if there is nothing to draw.
std::optional<Chart> latency_bars(const ResultSet& set, std::uint64_t size);
// rate 0: of the round trip.
std::optional<Chart> latency_curves(const ResultSet& set, std::uint64_t size,
                                    std::uint64_t rate = 0);
// Against the size; bars if there is one size only.
std::optional<Chart> throughput(const ResultSet& set, std::uint64_t batch);
std::optional<Chart> cpu_against_latency(const ResultSet& set, std::uint64_t size);

// The rates at which a size was measured.
std::vector<std::uint64_t> rates_of(const ResultSet& set, std::uint64_t size);

std::vector<Chart> all_charts(const ResultSet& set);

}  // namespace leat::bench
