// Which method to use, by what a program needs: the first table of the report.
//
//     for (const DecisionRow& row : decision_table(set, 100)) {
//       if (row.best != nullptr) fmt::print("{}\n", row.best->key.method);
//     }
//
// The answers come from the round trips of one size and from the facts in bench/ipc/methods.hpp. Only
// queues between processes take part: a single slot can't stand in for one, nor can threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "result_set.hpp"

namespace leat::bench {

inline constexpr std::array kQuestions = {"May burn CPU while idle", "Readers", "Survives kill -9",
                                          "Message boundaries"};

struct DecisionRow {
  // One for each question; empty: every answer leads to the same method.
  std::array<std::string, kQuestions.size()> needs;
  const Measurement* best = nullptr;     // Null: nothing that was measured will do.
  std::vector<const Measurement*> tied;  // With the best one; best first.

  bool operator==(const DecisionRow&) const = default;
};

// Empty if nothing took part.
std::vector<DecisionRow> decision_table(const ResultSet& set, std::uint64_t size);

// The methods of this size that did not take part.
struct LeftOut {
  std::vector<std::string> one_slot;
  std::vector<std::string> in_process;
  std::vector<std::string> unknown;  // No facts: not a method of `leat bench ipc`.
};
LeftOut left_out_of_decision(const ResultSet& set, std::uint64_t size);

}  // namespace leat::bench
