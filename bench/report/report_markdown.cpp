#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "bench/output/units.hpp"
#include "charts.hpp"
#include "page_parts.hpp"
#include "report_page.hpp"

namespace leat::bench {
namespace {

// Escapes what would end the cell, or be read as Markdown or HTML.
std::string markdown_cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '\\' || c == '`' || c == '*' || c == '_' || c == '[' || c == ']')
      out += '\\';
    if (c == '<') {
      out += "&lt;";
    } else {
      out += c == '\n' ? ' ' : c;
    }
  }
  return out;
}

std::string footnotes(const ResultSet& set, const Results& rows, std::uint64_t size) {
  std::string out;
  std::set<std::string> unsupported;
  for (const Measurement& result : set.results) {
    if (!result.median && result.key.size == size) {
      unsupported.insert(
          fmt::format("{} ({})", markdown_cell(result.key.method), markdown_cell(result.note)));
    }
  }
  if (!unsupported.empty())
    out += fmt::format("\nNot measured: {}.\n", fmt::join(unsupported, "; "));
  if (std::any_of(rows.begin(), rows.end(), [](const Measurement* row) { return row->baseline; })) {
    out += "\n† One slot and no queue: what this machine can do at best.\n";
  }
  if (std::any_of(rows.begin(), rows.end(),
                  [](const Measurement* row) { return row->in_process; })) {
    out += "\n‡ Threads of one process.\n";
  }
  return out;
}

}  // namespace

std::string report_markdown(const ResultSet& set, std::uint64_t size) {
  if (size == 0) size = usual_size(set);
  // Every method and variant with figures of this size: by round trip, then those without one.
  Results rows = ranked(set, Pattern::pingpong, size);
  const auto has_row = [&](const Measurement* result) {
    return std::any_of(rows.begin(), rows.end(), [&](const Measurement* row) {
      return row->key.method == result->key.method && row->key.variant == result->key.variant;
    });
  };
  for (const Measurement* result : ranked(set, Pattern::oneway, size)) {
    if (!has_row(result)) rows.push_back(result);
  }
  const std::vector<std::uint64_t> batches = batches_of(set);

  std::string out = fmt::format("| {}, round trip | | p50 | p99 | p99.9 | CPU |", size_text(size));
  for (const std::uint64_t batch : batches) {
    out += batch == 1 ? " one way |" : fmt::format(" in batches of {} |", batch);
  }
  out += "\n| --- | --- | --- | --- | --- | --- |";
  for (std::size_t i = 0; i < batches.size(); ++i) out += " --- |";
  out += '\n';

  for (const Measurement* row : rows) {
    ResultKey key = row->key;
    key.pattern = Pattern::pingpong;
    key.batch = 1;
    key.rate = 0;
    const Measurement* trip = set.find(key);
    const auto cell = [&](const Measurement* result, Figure figure, const InWords& in_words) {
      return result != nullptr && result->median ? or_none(*result->median.*figure, in_words)
                                                 : kNone;
    };
    out += fmt::format("| {} | {} | {} | {} | {} | {} |", markdown_cell(label_of(*row)),
                       name_of(key.variant), cell(trip, &Figures::p50_ns, time_text),
                       cell(trip, &Figures::p99_ns, time_text),
                       cell(trip, &Figures::p999_ns, time_text),
                       cell(trip, &Figures::cpu_ns_per_message, time_text));
    key.pattern = Pattern::oneway;
    for (const std::uint64_t batch : batches) {
      key.batch = batch;
      out += fmt::format(" {} |", cell(set.find(key), &Figures::messages_per_second, rate_text));
    }
    out += '\n';
  }

  return out + footnotes(set, rows, size);
}

}  // namespace leat::bench
