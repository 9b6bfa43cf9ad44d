#include <fmt/format.h>

#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "charts.hpp"
#include "plot.hpp"
#include "svg.hpp"

namespace leat::bench {
namespace {

// Each is at least 4 : 1 against the paper, in light and in dark.
struct Colour {
  const char* name;
  const char* light;
  const char* dark;
};
constexpr std::array<Colour, 15> kColours = {{{"leat", "#c2410c", "#ff9a57"},
                                              {"gold", "#946200", "#f2c94c"},
                                              {"grey", "#6b727b", "#98a0a9"},
                                              {"blue", "#0b6bb5", "#5db4ef"},
                                              {"navy", "#27408b", "#8fa6ff"},
                                              {"violet", "#6a4bc4", "#b09cff"},
                                              {"plum", "#8e2f86", "#e08ad6"},
                                              {"rose", "#c2255c", "#ff8fb0"},
                                              {"red", "#b3261e", "#ff8a80"},
                                              {"brown", "#7a4a2b", "#d0a383"},
                                              {"olive", "#66700a", "#c5cf4d"},
                                              {"green", "#1b7a3d", "#6fd08c"},
                                              {"teal", "#0b7a75", "#4fd1c5"},
                                              {"slate", "#44586a", "#a9bccb"},
                                              {"black", "#1c1f23", "#e6e9ec"}}};
constexpr std::size_t kFirstShared = 3;  // Those before it have one meaning only.

// There are more methods than colours that an eye can tell apart. Methods that are often best at the
// same thing, and so in the same chart, have different ones.
constexpr std::array<std::pair<std::string_view, const char*>, 31> kColourOfMethod = {{
    {"leat", "leat"},        {"leat-group", "gold"},  {"shm", "grey"},       {"mmap", "grey"},
    {"pipe", "blue"},        {"fifo", "navy"},        {"splice", "teal"},    {"domain", "violet"},
    {"socketpair", "plum"},  {"seqpacket", "rose"},   {"dgram", "olive"},    {"tcp", "slate"},
    {"udp", "brown"},        {"io_uring", "black"},   {"mq-sysv", "red"},    {"mq-posix", "brown"},
    {"boost-mq", "rose"},    {"eventfd", "green"},    {"signal", "slate"},   {"futex", "red"},
    {"condvar", "brown"},    {"sem-posix", "black"},  {"sem-sysv", "olive"}, {"vm-readv", "teal"},
    {"zeromq-ipc", "brown"}, {"zeromq-tcp", "slate"}, {"nng", "navy"},       {"aeron", "green"},
    {"iceoryx2", "violet"},  {"chronicle", "brown"},  {"disruptor", "teal"},
}};

}  // namespace

const char* colour_of(std::string_view method) {
  for (const auto& [name, colour] : kColourOfMethod) {
    if (name == method) return colour;
  }
  // A name from elsewhere: any colour, as long as it is always the same one.
  const auto sum = std::accumulate(
      method.begin(), method.end(), std::size_t{0},
      [](std::size_t so_far, char c) { return so_far * 31 + static_cast<unsigned char>(c); });
  return kColours[kFirstShared + sum % (kColours.size() - kFirstShared)].name;
}

std::string theme_css() {
  std::string light, dark;
  for (const Colour& colour : kColours) {
    light += fmt::format("--{}:{};", colour.name, colour.light);
    dark += fmt::format("--{}:{};", colour.name, colour.dark);
  }
  // Text is at least 4.5 : 1 against the paper.
  return fmt::format(
      ":root{{color-scheme:light dark;--paper:#fff;--ink:#1c1f23;--muted:#5b636d;--rule:#d5d9de;"
      "--panel:#f6f7f9;{}}}\n"
      "@media(prefers-color-scheme:dark){{:root{{--paper:#14171a;--ink:#e6e9ec;--muted:#a0a8b1;"
      "--rule:#353b42;--panel:#1c2024;{}}}}}\n",
      light, dark);
}

std::string chart_css() {
  std::string css = R"(.chart{font:11px system-ui,"DejaVu Sans",sans-serif;overflow:visible}
.chart text{fill:var(--ink)}.chart text.muted{fill:var(--muted)}.chart text.strong{font-weight:700}
.chart text.small{font-size:9px;paint-order:stroke;stroke:var(--paper);stroke-width:3px}.chart text.title{font-size:14px;font-weight:700}
.chart .rule{stroke:var(--rule);stroke-width:1}.chart .row{stroke:var(--rule);stroke-width:1;stroke-opacity:.5}
.chart .diagonal{stroke:var(--muted);stroke-width:1;stroke-dasharray:1 4}
.chart .filled{fill:currentColor;stroke:currentColor;stroke-width:1}
.chart .hollow{fill:var(--paper);stroke:currentColor;stroke-width:1.5}
.chart .curve{fill:none;stroke:currentColor;stroke-width:1.8}.chart .broken{stroke-dasharray:5 3}
.chart .range{stroke:currentColor;stroke-width:2.5;stroke-opacity:.4}
.chart .leader{stroke:currentColor;stroke-width:.8;stroke-opacity:.7}
.chart .plain{color:var(--muted)}
)";
  for (const Colour& colour : kColours) {
    css += fmt::format(".chart .{0}{{color:var(--{0})}}\n", colour.name);
  }
  return css;
}

std::string inline_svg(const Chart& chart) {
  return fmt::format(
      "<svg class=\"chart\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {:.0f} "
      "{:.0f}\">\n{}</svg>\n",
      escaped(chart.title + ". " + chart.caption), kChartWidth, std::ceil(chart.height),
      chart.body);
}

std::string svg_file(const Chart& chart) {
  constexpr double kMargin = 12, kTitle = 26;
  const double width = kChartWidth + 2 * kMargin;
  const double height = std::ceil(chart.height) + kTitle + 2 * kMargin;
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\" aria-label=\"{0}\" "
      "width=\"{1:.0f}\" height=\"{2:.0f}\" viewBox=\"0 0 {1:.0f} "
      "{2:.0f}\">\n<style>{3}{4}</style>\n"
      "<rect width=\"{1:.0f}\" height=\"{2:.0f}\" style=\"fill:var(--paper)\"/>\n"
      "<g transform=\"translate({5:.0f} {6:.0f})\">\n<text class=\"title\" y=\"0\">{7}</text>\n"
      "<g transform=\"translate(0 {8:.0f})\">\n{9}</g></g></svg>\n",
      escaped(chart.title + ". " + chart.caption), width, height, theme_css(), chart_css(), kMargin,
      kMargin + 14, escaped(chart.title), kTitle - 10, chart.body);
}

}  // namespace leat::bench
