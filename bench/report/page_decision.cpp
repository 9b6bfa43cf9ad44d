#include <fmt/format.h>

#include <array>

#include "bench/output/units.hpp"
#include "charts.hpp"
#include "decision.hpp"
#include "page_parts.hpp"

namespace leat::bench {
namespace {

struct TitledFigure {
  const char* title;
  Figure figure;
};
constexpr std::array<TitledFigure, 3> kShown = {
    {{"p50", &Figures::p50_ns},
     {"p99", &Figures::p99_ns},
     {"CPU per round trip", &Figures::cpu_ns_per_message}}};

// Where the window is too narrow for columns, a row shows the titles of its cells.
std::string cell(const char* style, const char* title, const std::string& html) {
  return fmt::format("<td class=\"{}\" data-title=\"{}\">{}</td>", style, title, html);
}

std::string figure_cell(const Measurement& result, const TitledFigure& shown) {
  const auto unbroken_time = [](double ns) { return unbroken(time_text(ns)); };
  return cell("figure", shown.title,
              fmt::format("{}<small>{}</small>", or_none(*result.median.*shown.figure, time_text),
                          range_text(result, shown.figure, unbroken_time)));
}

// The variant is said only where it is not that of the best one.
std::string names_of_tied(const DecisionRow& row) {
  std::string names;
  for (const Measurement* result : row.tied) {
    names += (names.empty() ? "" : ", ") + with_whole_words(result->key.method);
    if (result->key.variant != row.best->key.variant) {
      names += fmt::format(" ({})", name_of(result->key.variant));
    }
  }
  return names.empty() ? kNone : names;
}

std::string row_of(const DecisionRow& row, bool first_of_group) {
  std::string out = first_of_group ? "<tr class=\"first\">" : "<tr>";
  for (std::size_t i = 0; i < row.needs.size(); ++i) {
    const std::string& need = row.needs[i];
    out += cell(need.empty() ? "need any" : "need", kQuestions[i], need.empty() ? "any" : need);
  }
  if (row.best == nullptr) {
    return out +
           "<td colspan=\"5\" class=\"use any\" data-title=\"Use\">"
           "nothing that was measured</td></tr>\n";
  }
  const ResultKey& key = row.best->key;
  out += cell(is_leat(key.method) ? "use leat" : "use", "Use",
              fmt::format("<strong>{}</strong><small>{}</small>", with_whole_words(key.method),
                          name_of(key.variant)));
  for (const TitledFigure& shown : kShown) out += figure_cell(*row.best, shown);
  return out + cell("tied", "Tied with", names_of_tied(row)) + "</tr>\n";
}

std::string sentence_on_left_out(const LeftOut& left_out) {
  std::string out;
  const auto add = [&](const std::vector<std::string>& methods, const char* why) {
    if (methods.empty()) return;
    out +=
        fmt::format(" {}: {}.", why, with_whole_words(fmt::format("{}", fmt::join(methods, ", "))));
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
  out += "<th>Use</th>";
  for (const TitledFigure& shown : kShown) {
    out += fmt::format("<th class=\"figure\">{}</th>", shown.title);
  }
  out += "<th>Tied with</th></tr></thead><tbody>\n";
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
