// Charts of a ResultSet, as SVG that can be read in light and dark and on a phone.
//
//     if (const auto chart = latency_dots(set, 100)) page += inline_svg(*chart);
//     for (const Chart& chart : all_charts(set)) write(chart.name + ".svg", svg_file(chart));
//
// A method has the same colour in every chart. Spinning is a filled mark or a solid line, blocking a
// hollow mark or a dashed line, for readers who can't tell the colours apart. All axes are
// logarithmic, so there are dots and no bars: the length of a bar would mean nothing.
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
  double height = 0;    // All charts have the same width.
  std::string body;     // The elements inside <svg>.
};

// For a page whose style contains theme_css() and chart_css().
std::string inline_svg(const Chart& chart);
// A complete file, with title and style.
std::string svg_file(const Chart& chart);
// The variables --paper, --ink, --muted, --rule, --leat … for light and dark.
std::string theme_css();
std::string chart_css();

// The sizes that have figures, smallest first.
std::vector<std::uint64_t> sizes_of(const ResultSet& set);
std::vector<std::uint64_t> batches_of(const ResultSet& set);
// 100 B if that was measured, else the size at which the most methods were. 0 if there are no figures.
std::uint64_t usual_size(const ResultSet& set);

// The results of one pattern and size that have figures, best first.
std::vector<const Measurement*> ranked(const ResultSet& set, Pattern pattern, std::uint64_t size);

// What a reader must know about this result: † baseline, ‡ threads of one process, ! not verified.
std::string marks_of(const Measurement& result);
// The name of its method with these marks: "shm†".
std::string label_of(const Measurement& result);
bool is_leat(const std::string& method);

// Each of these is empty if there is nothing to draw.
std::optional<Chart> latency_dots(const ResultSet& set, std::uint64_t size);
// rate 0: of round trips.
std::optional<Chart> latency_curves(const ResultSet& set, std::uint64_t size,
                                    std::uint64_t rate = 0);
// Against the size; if there is only one size, one row for each method.
std::optional<Chart> throughput(const ResultSet& set, std::uint64_t batch);
std::optional<Chart> cpu_against_latency(const ResultSet& set, std::uint64_t size);

// The rates at which a size was measured.
std::vector<std::uint64_t> rates_of(const ResultSet& set, std::uint64_t size);

std::vector<Chart> all_charts(const ResultSet& set);

}  // namespace leat::bench
