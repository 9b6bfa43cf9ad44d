#include "decision.hpp"

#include <algorithm>
#include <set>

#include "bench/ipc/methods.hpp"
#include "charts.hpp"
#include "runs.hpp"

namespace leat::bench {
namespace {

struct Candidate {
  const Measurement* result;
  ipc::Facts facts;
};
using Candidates = std::vector<Candidate>;

// One answer to a question, and who is still a candidate after it.
struct Choice {
  const char* text;
  bool (*allows)(const Candidate&);
};

bool anyone(const Candidate&) { return true; }
bool sleeps(const Candidate& candidate) {
  return candidate.result->key.variant == Variant::blocking;
}
bool is_shared(const Candidate& candidate) { return candidate.facts.shared; }
bool is_broadcast(const Candidate& candidate) { return candidate.facts.broadcast; }
bool survives_kill(const Candidate& candidate) { return candidate.facts.survives_kill; }
bool keeps_boundaries(const Candidate& candidate) { return candidate.facts.boundaries; }

// In the order of kQuestions.
const std::array<std::vector<Choice>, kQuestions.size()> kChoices = {{
    {{"yes", anyone}, {"no", sleeps}},
    {{"one", anyone}, {"several, sharing", is_shared}, {"several, each gets all", is_broadcast}},
    {{"not needed", anyone}, {"needed", survives_kill}},
    {{"not needed", anyone}, {"needed", keeps_boundaries}},
}};

DecisionRow answer_of(const Candidates& best_first) {
  DecisionRow row;
  if (best_first.empty()) return row;
  row.best = best_first.front().result;
  for (const Candidate& candidate : best_first) {
    if (candidate.result == row.best) continue;
    if (tied(*row.best, *candidate.result, rank_figure(row.best->key.pattern))) {
      row.tied.push_back(candidate.result);
    }
  }
  return row;
}

// The rows for all answers to the questions from this one on. If the answer to this one makes no
// difference, its rows are there once.
std::vector<DecisionRow> rows_of(const Candidates& best_first, std::size_t question) {
  if (question == kQuestions.size()) return {answer_of(best_first)};
  std::vector<std::vector<DecisionRow>> by_choice;
  for (const Choice& choice : kChoices[question]) {
    Candidates allowed;
    std::copy_if(best_first.begin(), best_first.end(), std::back_inserter(allowed), choice.allows);
    by_choice.push_back(rows_of(allowed, question + 1));
  }
  const auto is_first = [&](const auto& rows) { return rows == by_choice.front(); };
  if (std::all_of(by_choice.begin(), by_choice.end(), is_first)) return by_choice.front();
  std::vector<DecisionRow> all;
  for (std::size_t i = 0; i < by_choice.size(); ++i) {
    for (DecisionRow& row : by_choice[i]) {
      row.needs[question] = kChoices[question][i].text;
      all.push_back(std::move(row));
    }
  }
  return all;
}

std::vector<std::string> sorted(const std::set<std::string>& names) {
  return {names.begin(), names.end()};
}

}  // namespace

std::vector<DecisionRow> decision_table(const ResultSet& set, std::uint64_t size) {
  Candidates best_first;
  for (const Measurement* result : ranked(set, Pattern::pingpong, size)) {
    const auto facts = ipc::facts_of(result->key.method);
    if (facts && facts->queue && !result->in_process) best_first.push_back({result, *facts});
  }
  if (best_first.empty()) return {};
  return rows_of(best_first, 0);
}

LeftOut left_out_of_decision(const ResultSet& set, std::uint64_t size) {
  std::set<std::string> one_slot, in_process, unknown;
  for (const Measurement* result : ranked(set, Pattern::pingpong, size)) {
    const std::string& method = result->key.method;
    const auto facts = ipc::facts_of(method);
    if (result->in_process) {
      in_process.insert(method);
    } else if (!facts) {
      unknown.insert(method);
    } else if (!facts->queue) {
      one_slot.insert(method);
    }
  }
  return {sorted(one_slot), sorted(in_process), sorted(unknown)};
}

}  // namespace leat::bench
