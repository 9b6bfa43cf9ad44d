#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "bench/output/units.hpp"
#include "charts.hpp"
#include "decision.hpp"
#include "page_parts.hpp"

namespace leat::bench {
namespace {

std::string figure_cell(const Measurement& result, Figure figure) {
  return fmt::format("<td class=\"figure\">{}<small>{}</small></td>",
                     or_none(*result.median.*figure, time_text),
                     range_text(result, figure, time_text));
}

// The variant is said only where it is not that of the best one.
std::string names_of_tied(const DecisionRow& row) {
  std::string names;
  for (const Measurement* result : row.tied) {
    names += (names.empty() ? "" : ", ") + escaped(result->key.method);
    if (result->key.variant != row.best->key.variant) {
      names += fmt::format(" ({})", name_of(result->key.variant));
    }
  }
  return names.empty() ? kNone : names;
}

std::string row_of(const DecisionRow& row, bool first_of_group) {
  std::string out = first_of_group ? "<tr class=\"first\">" : "<tr>";
  for (const std::string& need : row.needs) {
    out += need.empty() ? "<td class=\"any\">any</td>" : "<td>" + need + "</td>";
  }
  if (row.best == nullptr) {
    return out + "<td colspan=\"5\" class=\"any\">nothing that was measured</td></tr>\n";
  }
  const ResultKey& key = row.best->key;
  return out + fmt::format(
                   "<td{}><strong>{}</strong><small>{}</small></td>{}{}{}<td "
                   "class=\"tied\">{}</td></tr>\n",
                   is_leat(key.method) ? " class=\"leat\"" : "", escaped(key.method),
                   name_of(key.variant), figure_cell(*row.best, &Figures::p50_ns),
                   figure_cell(*row.best, &Figures::p99_ns),
                   figure_cell(*row.best, &Figures::cpu_ns_per_message), names_of_tied(row));
}

std::string sentence_on_left_out(const LeftOut& left_out) {
  std::string out;
  const auto add = [&](const std::vector<std::string>& methods, const char* why) {
    if (methods.empty()) return;
    out += fmt::format(" {}: {}.", why, escaped(fmt::format("{}", fmt::join(methods, ", "))));
  };
  add(left_out.one_slot, "Left out because they hold one message only and are no queue");
  add(left_out.in_process, "Left out because they run within one process");
  add(left_out.unknown, "Left out because <code>leat bench</code> knows only their figures");
  return out;
}

}  // namespace

std::string decision_section(const ResultSet& set, std::uint64_t size) {
  const std::vector<DecisionRow> rows = decision_table(set, size);
  if (rows.empty()) return {};
  std::string out = "<div class=\"scroll\" tabindex=\"0\"><table class=\"decision\"><thead><tr>";
  for (const char* question : kQuestions) out += fmt::format("<th>{}</th>", question);
  out +=
      "<th>Use</th><th class=\"figure\">p50</th><th class=\"figure\">p99</th>"
      "<th class=\"figure\">CPU per round trip</th><th>Tied with</th></tr></thead><tbody>\n";
  const std::string* group = nullptr;
  for (const DecisionRow& row : rows) {
    out += row_of(row, group != nullptr && *group != row.needs.front());
    group = &row.needs.front();
  }
  return out + "</tbody></table></div>\n";
}

std::string decision_notes(const ResultSet& set, std::uint64_t size) {
  std::string out = "<ul class=\"caption\">\n";
  const auto item = [&](const std::string& text) { out += "<li>" + text + "</li>\n"; };
  item(fmt::format(
      "The figures are of a round trip: a message of {} and its answer. CPU is of both sides "
      "together. The small figures are the range of the runs.",
      size_text(size)));
  item(
      "<b>May burn CPU while idle</b>: both sides may spin, each on a CPU of its own, while they "
      "wait for a message. If not, they must sleep.");
  item(
      "<b>Readers</b>: several that share get each message once among them; or each of them gets "
      "every message.");
  item(
      "<b>Survives kill -9</b>: whichever process is killed, at whatever moment, the others carry "
      "on, and messages that were sent and not yet received are not lost.");
  item(
      "<b>Message boundaries</b>: a reader gets messages as they were sent, not a stream of "
      "bytes.");
  item(fmt::format(
      "<b>Tied with</b>: {} This table compares p50. Where only the ranges overlap, another "
      "measurement may show another order. One run alone tells nothing about ties.",
      kTieRule));
  item("<b>any</b>: the answer is the same either way." +
       sentence_on_left_out(left_out_of_decision(set, size)));
  return out + "</ul>\n";
}

}  // namespace leat::bench
