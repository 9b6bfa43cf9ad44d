// Results as one page that needs nothing else, and as a table for Markdown.
//
//     write_text("report.html", report_page(read_results({"results/"})));
//     write_text("-", report_page(parse_results(report.dump(), "this run")));
//
// The page has no script and loads nothing: pictures and tables of every size, what was not supported
// and why, and where all of it was measured. All texts from the results are escaped.
#pragma once

#include <cstdint>
#include <string>

#include "result_set.hpp"

namespace leat::bench {

// `size` is the one that is opened first; 0: usual_size().
std::string report_page(const ResultSet& set, std::uint64_t size = 0);

// One row for each method and variant of one size: round trip, one way, CPU.
std::string report_markdown(const ResultSet& set, std::uint64_t size = 0);

}  // namespace leat::bench
