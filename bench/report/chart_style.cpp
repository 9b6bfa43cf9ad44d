#include <fmt/format.h>

#include <cmath>

#include "charts.hpp"
#include "plot.hpp"
#include "svg.hpp"

namespace leat::bench {

std::string theme_css() {
  // Colours that differ in brightness as well as in hue, for eyes that see fewer hues; at least
  // 3 : 1 against the paper, text at least 4.5 : 1.
  return R"(:root{color-scheme:light dark;--paper:#fff;--ink:#1c1f23;--muted:#5b636d;--rule:#d5d9de;
--panel:#f6f7f9;--leat:#c2410c;--other:#0b6bb5;--base:#767d86;--line0:#0b6bb5;--line1:#00785a;
--line2:#a03d7e;--line3:#7a6000;--line4:#2f4858;--line5:#5b4bc4;--line6:#8a4b12;--line7:#0f7f8c}
@media(prefers-color-scheme:dark){:root{--paper:#14171a;--ink:#e6e9ec;--muted:#a0a8b1;--rule:#353b42;
--panel:#1c2024;--leat:#ff9a57;--other:#5db4ef;--base:#949ca5;--line0:#5db4ef;--line1:#3fc79f;
--line2:#e694c5;--line3:#d8c24a;--line4:#b9c8d3;--line5:#a99cff;--line6:#d99f66;--line7:#58ccd8}}
)";
}

std::string chart_css() {
  std::string css = R"(.chart{font:11px system-ui,"DejaVu Sans",sans-serif;overflow:visible}
.chart text{fill:var(--ink)}.chart text.muted{fill:var(--muted)}.chart text.strong{font-weight:700}
.chart text.small{font-size:9px}.chart text.title{font-size:14px;font-weight:700}
.chart .rule{stroke:var(--rule);stroke-width:1}.chart .faint{stroke-opacity:.45}
.chart .diagonal{stroke:var(--muted);stroke-width:1;stroke-dasharray:1 4}
.chart .filled{fill:currentColor;stroke:currentColor;stroke-width:1}
.chart .hollow{fill:var(--paper);stroke:currentColor;stroke-width:1.5}
.chart .curve{fill:none;stroke:currentColor;stroke-width:1.8}.chart .broken{stroke-dasharray:5 3}
.chart .leader{stroke:currentColor;stroke-width:.8;stroke-opacity:.6}
.chart .plain{color:var(--muted)}
)";
  for (const char* name : {"leat", "other", "base", "line0", "line1", "line2", "line3", "line4",
                           "line5", "line6", "line7"}) {
    css += fmt::format(".chart .{0}{{color:var(--{0})}}\n", name);
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
