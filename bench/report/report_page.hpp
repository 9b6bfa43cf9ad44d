// Results as one page that needs nothing else, and as a table in Markdown.
//
//     write_text("report.html", report_page(read_results({"results/"})));
//     write_text("-", report_page(parse_results(report.dump(), "this run")));
//
// First a table that says which method to use, then charts and tables of every size, what was not
// supported and why, and where all of it was measured. The page has no script and loads nothing. All
// texts from the results are escaped.
#pragma once

#include <cstdint>
#include <string>

#include "result_set.hpp"

namespace leat::bench {

// `size` is the one that is shown first; 0: usual_size().
std::string report_page(const ResultSet& set, std::uint64_t size = 0);

// One row for each method and variant at one size: round trip, one way, CPU.
std::string report_markdown(const ResultSet& set, std::uint64_t size = 0);

}  // namespace leat::bench
