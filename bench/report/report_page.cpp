#include "report_page.hpp"

#include <fmt/format.h>

#include <vector>

#include "bench/output/units.hpp"
#include "charts.hpp"
#include "page_parts.hpp"
#include "svg.hpp"

namespace leat::bench {
namespace {

const char kStyle[] = R"(*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,"DejaVu Sans",sans-serif}
main{max-width:1080px;margin:0 auto;padding:20px 16px 48px}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
h1{font-size:1.6rem;line-height:1.2;margin:.2em 0 .5em}h2{font-size:1.25rem;margin:1.8em 0 .4em}
h3{font-size:1rem;margin:0}p{margin:.5em 0;max-width:70ch}
.caption{font-size:.84rem;color:var(--muted);margin:.2em 0 .8em}small{display:block;font-size:.75rem;color:var(--muted)}
.charts{columns:340px 2;column-gap:44px;margin:1em 0}
figure{margin:0 0 28px;max-width:520px;break-inside:avoid}figure svg{display:block;width:100%;height:auto}
.scroll{overflow-x:auto;margin:.6em 0 1.4em;border:1px solid var(--rule);border-radius:6px;--shade:#0004;
background:linear-gradient(to left,var(--paper) 40%,transparent) right/40px 100% no-repeat local,
linear-gradient(to left,var(--shade),transparent) right/16px 100% no-repeat scroll}
@media(prefers-color-scheme:dark){.scroll{--shade:#fff4}}
table{border-collapse:collapse;font-size:.84rem;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:4px 10px;text-align:right;white-space:nowrap;border-top:1px solid var(--rule)}
thead th{border-top:0;background:var(--panel);font-weight:600}
th:first-child,td:first-child,.words{text-align:left}td.words{white-space:normal;min-width:16em;overflow-wrap:anywhere}
td:first-child{position:sticky;left:0;background:var(--paper);border-right:1px solid var(--rule)}thead th:first-child{position:sticky;left:0}
tr.leat td:first-child,.decision td.leat{color:var(--leat)}tr.leat td:first-child{font-weight:700}
tr.base td:first-child{color:var(--muted)}
.decision th,.decision td{text-align:left;vertical-align:top;white-space:normal;line-height:1.35;position:static;border-right:0}
.decision .figure{text-align:right;white-space:nowrap}.decision .any{color:var(--muted)}
.decision td.use{white-space:nowrap}.decision th.figure{white-space:normal}.decision td.tied{min-width:9em}.decision tr.first td{border-top:2px solid var(--muted)}
details{border-top:1px solid var(--rule);padding:.6em 0}summary{cursor:pointer;font-weight:600;padding:.3em 0}
ul{padding-left:1.2em;max-width:72ch}li{margin:.3em 0}
.whole{display:inline-block;max-width:100%}p code,li code{white-space:nowrap}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--panel);padding:10px 12px;border-radius:6px;
margin:.6em 0;font-size:.84rem}dl{display:grid;grid-template-columns:minmax(6em,max-content) 1fr;gap:2px 16px;
font-size:.84rem;margin:0}dt{color:var(--muted)}dd{margin:0;overflow-wrap:anywhere}
.decision th:first-child{min-width:7.5em}
@media(max-width:840px){.decision thead{display:none}
.decision tr{display:grid;grid-template-columns:repeat(6,1fr);padding:6px 0;border-top:1px solid var(--rule)}
.decision tr:first-child{border-top:0}.decision tr.first{border-top:2px solid var(--muted)}
.decision tr.first td{border:0}.decision td{border:0;min-width:0;grid-column:span 3;padding:3px 10px}
.decision td.tied{min-width:0}.decision td.figure{grid-column:span 2;order:1;text-align:left}
.decision td::before{content:attr(data-title);display:block;font-size:.75rem;color:var(--muted)}
.decision td.figure small{white-space:normal}}
@media(max-width:480px){main{padding:12px 12px 40px}td.words{min-width:7em}dl{grid-template-columns:1fr}dd{margin-bottom:.5em}}
)";

std::string figure(const std::optional<Chart>& chart) {
  if (!chart) return {};
  return fmt::format("<figure id=\"{}\"><h3>{}</h3><p class=\"caption\">{}</p>\n{}</figure>\n",
                     escaped(chart->name), escaped(chart->title), escaped(chart->caption),
                     inline_svg(*chart));
}

std::string charts_of(const ResultSet& set, std::uint64_t size, bool with_throughput) {
  std::string out = figure(latency_dots(set, size)) + figure(cpu_against_latency(set, size)) +
                    figure(latency_curves(set, size));
  for (const std::uint64_t rate : rates_of(set, size)) {
    out += figure(latency_curves(set, size, rate));
  }
  if (with_throughput) {
    for (const std::uint64_t batch : batches_of(set)) out += figure(throughput(set, batch));
  }
  return out.empty() ? out : "<div class=\"charts\">\n" + out + "</div>\n";
}

// What most readers want to know, of the size that most methods have in common.
std::string section_of(const ResultSet& set, std::uint64_t size) {
  std::string out;
  if (const std::string table = decision_section(set, size); !table.empty()) {
    out = "<h2>Which should I use?</h2>\n" + table + decision_notes(set, size);
  }
  return out + fmt::format("<h2>Messages of {}</h2>\n{}{}{}", size_text(size),
                           ranking_list(set, size), charts_of(set, size, true),
                           tables_of(set, size));
}

}  // namespace

std::string report_page(const ResultSet& set, std::uint64_t size) {
  if (size == 0) size = usual_size(set);
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      // Nothing is loaded and nothing runs, whatever the texts of the results say.
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; img-src data:\">\n"
      // An empty icon, so that the browser doesn't ask a server for one.
      "<link rel=\"icon\" href=\"data:,\">\n<title>leat bench ipc</title>\n<style>";
  out += theme_css() + chart_css() + kStyle + "</style></head>\n<body><main>\n";
  out += "<h1>Messages between two processes</h1>\n";
  out += about_measurement(set);
  if (size != 0) out += section_of(set, size);
  out += notes_on_figures(set);
  const std::vector<std::uint64_t> sizes = sizes_of(set);
  if (sizes.size() > 1) out += "<h2>Other sizes</h2>\n";
  for (const std::uint64_t other : sizes) {
    if (other == size) continue;
    out += fmt::format("<details><summary>{}</summary>\n{}{}{}</details>\n", size_text(other),
                       decision_section(set, other), charts_of(set, other, false),
                       tables_of(set, other));
  }
  out += table_of_missing(set) + table_of_remarks(set) + provenance(set);
  return out + "</main></body></html>\n";
}

}  // namespace leat::bench
