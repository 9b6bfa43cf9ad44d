// The parts of the report page, as HTML. All texts from the results are escaped.
//
//     page += decision_section(set, 100) + tables_of(set, 100) + notes_on_figures(set);
//
// A part is empty if the results have nothing to say in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plot.hpp"
#include "result_set.hpp"

namespace leat::bench {

// What a table shows where there is no figure.
inline constexpr char kNone[] = "–";
std::string or_none(const std::optional<double>& value, const InWords& in_words);
// "131&nbsp;ns" of "131 ns": no line ends between number and unit.
std::string unbroken(std::string figure);
// The range of the runs, "131 ns to 210 ns"; empty if there is none.
std::string range_text(const Measurement& result, Figure figure, const InWords& in_words);
// How to say its rank_figure().
InWords rank_words(const Measurement& result);
// Escaped; lines are not broken within words that have a hyphen, such as --size or leat-group.
std::string with_whole_words(std::string_view text);

// "AMD EPYC, 2 CPUs, Linux 6.1"
std::string machine_words(const Source& source);

// When, how often, how and where it was measured: what stands under the title.
std::string about_measurement(const ResultSet& set);
// The decision table.
std::string decision_section(const ResultSet& set, std::uint64_t size);
// What its questions and answers mean, and which methods did not take part.
std::string decision_notes(const ResultSet& set, std::uint64_t size);
// Who is best at what, one sentence each.
std::string ranking_list(const ResultSet& set, std::uint64_t size);
// Tables of all figures of one size; long ones are folded.
std::string tables_of(const ResultSet& set, std::uint64_t size);
// What could not be measured, and why.
std::string table_of_missing(const ResultSet& set);
// Remarks on results that have figures.
std::string table_of_remarks(const ResultSet& set);
// What a reader must know before believing a figure.
std::string notes_on_figures(const ResultSet& set);
// The machine, the version and the files.
std::string provenance(const ResultSet& set);

}  // namespace leat::bench
