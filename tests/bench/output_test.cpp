// If this failed, JSON results would not say on which machine they were
// measured, or would have wrong medians.
#include "bench/output/output.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

namespace leat::bench {
namespace {

TEST(MedianOf, KeepsTheShapeAndTakesEachNumberByItself) {
  const Json runs = Json::array({{{"a", 3}, {"deep", {{"b", 10.0}}}, {"name", "x"}},
                                 {{"a", 1}, {"deep", {{"b", 30.0}}}, {"name", "x"}},
                                 {{"a", 2}, {"deep", {{"b", 20.0}}}, {"name", "x"}}});
  EXPECT_EQ(median_of(runs), (Json{{"a", 2.0}, {"deep", {{"b", 20.0}}}, {"name", "x"}}));
}

TEST(Reduce, TakesTheNumberThatWasAskedFor) {
  const Json runs = Json::array({{{"a", 3}}, {{"a", 9}}, {{"a", 2}}});
  const Json largest = reduce(runs, [](const std::vector<double>& values) {
    return *std::max_element(values.begin(), values.end());
  });
  EXPECT_EQ(largest, (Json{{"a", 9.0}}));
}

TEST(NewReport, SaysWhatWasMeasuredAndWhere) {
  const Json report = new_report({{"size", 8}});
  EXPECT_EQ(report["parameters"]["size"], 8);
  EXPECT_FALSE(report["version"].get<std::string>().empty());
  EXPECT_FALSE(report["commit"].get<std::string>().empty());
  const std::regex form(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)");
  EXPECT_TRUE(std::regex_match(report["date"].get<std::string>(), form)) << report["date"];
  for (const char* fact : {"cpu", "cpus_online", "kernel", "memory", "compiler"}) {
    EXPECT_TRUE(report["machine"].contains(fact)) << fact;
  }
  EXPECT_FALSE(machine_line(report).empty());
}

TEST(RunsLine, CallsOneRunNoMedian) {
  EXPECT_EQ(runs_line(1), "one run");
  EXPECT_EQ(runs_line(5), "median of 5");
}

TEST(Distance, IsMixedIfItChangedBetweenTheRuns) {
  EXPECT_EQ(distance_of({46, 149}), "near");
  EXPECT_EQ(distance_of({150, 500}), "far");
  EXPECT_EQ(distance_of({46, 500, 46}), "mixed");
}

TEST(Distance, StandsBesideTheMedianRoundTripOfALine) {
  Json results;
  add_distance(results, {46, 300, 52.4});
  EXPECT_EQ(results["cpus"], "mixed");
  EXPECT_EQ(distance_text(results), "52 mixed");
}

}  // namespace
}  // namespace leat::bench
