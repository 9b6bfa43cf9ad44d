// Files of benchmark results. Reading any bytes gives a set of results or a
// Failure with a one-line message, and every set of results can be rendered
// as a page, charts and a table with valid coordinates. If this failed, `leat
// bench report` would crash on a damaged file or draw a broken page.
//
// The sources are included here so that the fuzzer sees which of their lines an input reaches.
#define FMT_HEADER_ONLY
#include "../../bench/report/result_set.cpp"
#include "../../bench/report/chart_style.cpp"
#include "../../bench/report/charts.cpp"
#include "../../bench/report/cpu_chart.cpp"
#include "../../bench/report/decision.cpp"
#include "../../bench/report/page_decision.cpp"
#include "../../bench/report/page_notes.cpp"
#include "../../bench/report/page_parts.cpp"
#include "../../bench/report/page_ranking.cpp"
#include "../../bench/report/page_tables.cpp"
#include "../../bench/report/plot.cpp"
#include "../../bench/report/report_markdown.cpp"
#include "../../bench/report/report_page.cpp"
#include "../../bench/report/runs.cpp"
#include "../../bench/report/svg.cpp"
#include "../../bench/output/units.cpp"

namespace leat::tool {

// Replaces the one in failure.cpp. Parsing makes no system calls, so it is never called.
Failure system_failure(const std::string& what, int) { return Failure(what); }

}  // namespace leat::tool

namespace leat::bench::ipc {

// The real one is in methods.cpp, which links every library that is measured. Here the facts are made
// up from the name.
std::optional<Facts> facts_of(std::string_view name) {
  if (name.size() % 5 == 0) return std::nullopt;
  return Facts{.queue = name.size() % 7 != 0,
               .boundaries = name.front() % 2 == 0,
               .shared = name.front() % 3 == 0,
               .broadcast = name.back() % 2 == 0,
               .survives_kill = name.back() % 3 == 0};
}

}  // namespace leat::bench::ipc

namespace {

void expect(bool truth) {
  if (!truth) std::abort();
}

bool has_no_number(const std::string& svg) {
  for (const char* part :
       {"\"nan", "\"-nan", "\"inf", "\"-inf", ",nan", ",-nan", ",inf", ",-inf"}) {
    if (svg.find(part) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leat::bench;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ResultSet set;
  try {
    set = parse_results(text, "input");
  } catch (const Failure& failure) {
    const std::string sentence = failure.what();
    expect(sentence.starts_with("input: ") && sentence.find('\n') == std::string::npos);
    return 0;
  }
  for (const Measurement& result : set.results) expect(set.find(result.key) == &result);
  merge(set, set);
  const std::string page = report_page(set);
  expect(page.ends_with("</html>\n") && page.find("<script") == std::string::npos);
  (void)report_markdown(set);
  for (const Chart& chart : all_charts(set)) expect(!has_no_number(chart.body));
  return 0;
}
