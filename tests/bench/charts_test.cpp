// If this failed, charts of benchmark results would mislead readers: a dot at the wrong place, an error bar of the
// wrong length, a colour that changes its meaning, or labels that cover each other.
#include "bench/report/charts.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <set>

#include "bench/output/units.hpp"
#include "bench/report/plot.hpp"
#include "bench/report/svg.hpp"
#include "bench/sample_report.hpp"

namespace leat::bench {
namespace {

Json with(Json result, const char* name, const Json& value) {
  result[name] = value;
  return result;
}

Json oneway(const std::string& method, std::uint64_t size, std::uint64_t batch, double per_second) {
  Json result = sample_result(method);
  result["pattern"] = "oneway";
  result["size"] = size;
  result["batch"] = batch;
  result["median"] = {{"messages_per_second", per_second}, {"cpu_ns_per_message", 100}};
  result["runs"] = Json::array();
  return result;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// No coordinate in the chart may be "nan" or "inf".
void expect_sound(const Chart& chart) {
  EXPECT_FALSE(std::regex_search(chart.body, std::regex("[\", ]-?(nan|inf)"))) << chart.name;
  EXPECT_GT(chart.height, 50);
  EXPECT_FALSE(chart.title.empty() || chart.caption.empty() || chart.name.empty());
}

TEST(Units, HaveThreeDigits) {
  EXPECT_EQ(time_text(0), "0 ns");
  EXPECT_EQ(time_text(151.4), "151 ns");
  EXPECT_EQ(time_text(999.4), "999 ns");
  EXPECT_EQ(time_text(999.6), "1 µs");
  EXPECT_EQ(time_text(12'345), "12.3 µs");
  EXPECT_EQ(time_text(5e12), "5000 s");
  EXPECT_EQ(rate_text(2.5e6), "2.5 M/s");
  EXPECT_EQ(bytes_rate_text(1e10), "10 GB/s");
  EXPECT_EQ(size_text(1000), "1000 B");
  EXPECT_EQ(size_text(65536), "64 KiB");
  EXPECT_EQ(size_text(1 << 20), "1 MiB");
}

TEST(LogScale, BeginsAndEndsAtOneTwoOrFive) {
  const LogScale scale = LogScale::around(95, 2100, {0, 100});
  EXPECT_DOUBLE_EQ(scale.lowest(), 50);
  EXPECT_DOUBLE_EQ(scale.highest(), 5000);
  EXPECT_DOUBLE_EQ(scale.at(50), 0);
  EXPECT_DOUBLE_EQ(scale.at(5000), 100);
  EXPECT_NEAR(scale.at(500), 50, 1e-9);
}

TEST(LogScale, HasAtLeastTwoTicksWithRoomWhateverItSpans) {
  for (const double lowest : {1e-9, 0.5, 1.0, 3.0, 140.0, 999.9, 1e6, 1e17}) {
    for (const double times : {1.0, 1.01, 3.0, 70.0, 1e9, 1e26}) {
      const LogScale scale = LogScale::around(lowest, lowest * times, {300, 20});
      EXPECT_LE(scale.lowest(), lowest * 1.0001);
      EXPECT_GE(scale.highest(), lowest * times * 0.9999);
      for (const double room : {14.0, 45.0}) {
        const std::vector<double> ticks = scale.ticks(room);
        ASSERT_GE(ticks.size(), 2u) << lowest << " times " << times;
        for (std::size_t i = 1; i < ticks.size(); ++i) {
          EXPECT_GE(scale.at(ticks[i - 1]) - scale.at(ticks[i]), room - 1e-9);
        }
      }
    }
  }
}

TEST(SpreadApart, KeepsDistanceOrderAndBounds) {
  const std::vector<double> wanted = {50, 51, 10, 52, 99, 98, 100, 50};
  const std::vector<double> places = spread_apart(wanted, 10, {0, 100});
  ASSERT_EQ(places.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_GE(places[i], 5 - 1e-9);
    EXPECT_LE(places[i], 95 + 1e-9);
    for (std::size_t j = 0; j < wanted.size(); ++j) {
      if (i != j) {
        EXPECT_GE(std::abs(places[i] - places[j]), 10 - 1e-9);
      }
      if (wanted[i] < wanted[j]) {
        EXPECT_LT(places[i], places[j]);
      }
    }
  }
  EXPECT_EQ(spread_apart({10, 80}, 10, {0, 100}), (std::vector<double>{10, 80}));
  EXPECT_TRUE(spread_apart({}, 10, {0, 100}).empty());
}

TEST(LabelPlacer, CoversNothing) {
  const Box area{0, 0, 200, 200};
  LabelPlacer placer(area);
  const Point points[] = {{100, 100}, {104, 103}, {98, 96}, {150, 20}, {3, 3}};
  for (const Point& point : points) placer.keep_free(point);
  placer.keep_free({150, 20}, {200, 20});
  std::vector<Box> labels;
  for (const Point& point : points) {
    if (const auto label = placer.place(point, 40, 12)) labels.push_back(*label);
  }
  EXPECT_GE(labels.size(), 4u);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    EXPECT_TRUE(area.contains(labels[i]));
    for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(labels[i].overlaps(labels[j]));
    for (const Point& point : points) EXPECT_FALSE(labels[i].overlaps({point.x, point.y, 0, 0}));
  }
  EXPECT_FALSE(LabelPlacer({0, 0, 30, 200}).place({15, 100}, 40, 12));
}

TEST(LatencyDots, AreSortedAndTellSpinningFromBlocking) {
  const auto chart = latency_dots(
      sample_set({sample_result("pipe", 11'000),
                  with(sample_result("leat", 150), "variant", "spinning"),
                  sample_result("leat", 10'900), with(sample_result("shm", 80), "baseline", true)}),
      100);
  ASSERT_TRUE(chart);
  expect_sound(*chart);
  EXPECT_LT(chart->body.find(">shm<"), chart->body.find(">leat<"));
  EXPECT_LT(chart->body.find(">leat<"), chart->body.find(">pipe<"));
  EXPECT_EQ(count_of(chart->body, ">leat<"), 1u);
  EXPECT_EQ(count_of(chart->body, "class=\"filled leat\"><title>"), 1u);
  EXPECT_EQ(count_of(chart->body, "class=\"hollow leat\"><title>"), 1u);
  EXPECT_EQ(count_of(chart->body, "class=\"hollow blue\"><title>"), 1u);
  EXPECT_NE(chart->body.find(">10.9 µs<"), std::string::npos);
}

TEST(LatencyDots, MarkTheSpinningVariantOfABaselineOnly) {
  const auto chart = latency_dots(
      sample_set({with(with(sample_result("futex", 80), "variant", "spinning"), "baseline", true),
                  sample_result("futex", 10'000)}),
      100);
  ASSERT_TRUE(chart);
  EXPECT_NE(chart->body.find(">futex<"), std::string::npos);
  EXPECT_NE(chart->body.find(">80 ns†<"), std::string::npos);
  EXPECT_NE(chart->body.find(">10 µs<"), std::string::npos);
  EXPECT_EQ(count_of(chart->body, "†"), 2u);  // The other one is in the legend.
}

// A bar of "range" between the fastest and the slowest run, and none of a single run.
TEST(LatencyDots, HaveTheRangeOfTheRunsAsErrorBars) {
  Json once = sample_result("fifo", 1000);
  once["runs"] = Json::array({once["median"]});
  const auto chart = latency_dots(sample_set({sample_result("pipe", 1000), once}), 100);
  ASSERT_TRUE(chart);
  EXPECT_EQ(count_of(chart->body, "class=\"range blue\""), 1u);
  EXPECT_EQ(count_of(chart->body, "class=\"range navy\""), 0u);
  EXPECT_NE(chart->body.find("p50 1 µs (980 ns to 1.02 µs)"), std::string::npos);
}

TEST(LatencyCurves, ShowAllOfLeatAndTheBestOfTheOthers) {
  std::vector<Json> results = {sample_result("leat", 5000), sample_result("leat-group", 6000)};
  for (int i = 1; i <= 6; ++i)
    results.push_back(sample_result("other" + std::to_string(i), i * 100));
  const auto chart = latency_curves(sample_set(results), 100);
  ASSERT_TRUE(chart);
  expect_sound(*chart);
  for (const char* name : {">leat<", ">leat-group<", ">other1<", ">other3<"}) {
    EXPECT_EQ(count_of(chart->body, name), 1u) << name;
  }
  EXPECT_EQ(count_of(chart->body, ">other4<"), 0u);
  // p99.99 is missing: five marks on each of five lines, with tooltips.
  EXPECT_EQ(count_of(chart->body, "<title>"), 25u);
}

TEST(LatencyCurves, HaveOneChartForEachRate) {
  Json result = sample_result("pipe");
  result["pattern"] = "rate";
  result["rate"] = 100000;
  const ResultSet set = sample_set({result});
  EXPECT_EQ(rates_of(set, 100), (std::vector<std::uint64_t>{100000}));
  EXPECT_FALSE(latency_curves(set, 100));
  ASSERT_TRUE(latency_curves(set, 100, 100000));
  EXPECT_EQ(latency_curves(set, 100, 100000)->name, "percentiles-100-at-100000");
}

TEST(LatencyCurves, LeaveOutPercentilesThatNobodyHas) {
  Json result = sample_result("pipe");
  result["count"] = 1000;  // 200 in each of 5 runs: enough for p99, not for p99.9.
  const auto chart = latency_curves(sample_set({result}), 100);
  ASSERT_TRUE(chart);
  expect_sound(*chart);
  EXPECT_EQ(count_of(chart->body, ">p99<"), 1u);
  EXPECT_EQ(count_of(chart->body, ">p99.9<"), 0u);
  EXPECT_EQ(count_of(chart->body, "<title>"), 4u);
}

TEST(Throughput, IsLinesForManySizesAndDotsForOne) {
  const ResultSet many = sample_set({oneway("leat", 1, 64, 2e8), oneway("leat", 100, 64, 1e8),
                                     oneway("pipe", 100, 64, 5e7), oneway("leat", 65536, 64, 1e6)});
  const auto lines = throughput(many, 64);
  ASSERT_TRUE(lines);
  expect_sound(*lines);
  EXPECT_EQ(count_of(lines->body, "<polyline"), 2u);
  EXPECT_NE(lines->body.find(">64 KiB<"), std::string::npos);
  EXPECT_FALSE(throughput(many, 1));

  const auto dots =
      throughput(sample_set({oneway("leat", 100, 1, 1e8), oneway("pipe", 100, 1, 2e6)}), 1);
  ASSERT_TRUE(dots);
  expect_sound(*dots);
  EXPECT_EQ(count_of(dots->body, "<polyline"), 0u);
  EXPECT_LT(dots->body.find(">leat<"), dots->body.find(">pipe<"));  // More is better.
}

// All sizes of a usual sweep; where labels have no room side by side, there are rows of them.
TEST(Throughput, HasALabelForEverySize) {
  std::vector<Json> results;
  for (std::uint64_t size = 1; size <= 1 << 16; size *= 4) {
    results.push_back(oneway("leat", size, 1, 1e6));
  }
  const auto chart = throughput(sample_set(results), 1);
  ASSERT_TRUE(chart);
  for (std::uint64_t size = 1; size <= 1 << 16; size *= 4) {
    EXPECT_EQ(count_of(chart->body, ">" + size_text(size) + "<"), 1u) << size;
  }
}

TEST(CpuAgainstLatency, NamesEveryPointHoweverCrowded) {
  std::vector<Json> results;
  for (int i = 0; i < 60; ++i) {
    results.push_back(sample_result("m" + std::to_string(i), 10'000 + i * 10));
  }
  results.push_back(with(sample_result("leat", 150), "variant", "spinning"));
  const auto chart = cpu_against_latency(sample_set(results), 100);
  ASSERT_TRUE(chart);
  expect_sound(*chart);
  for (int i = 0; i < 60; ++i) {
    EXPECT_EQ(count_of(chart->body, ">m" + std::to_string(i) + "<"), 1u) << i;
  }
  EXPECT_EQ(count_of(chart->body, ">leat<"), 1u);
}

TEST(Charts, HaveOneColourForEachMethod) {
  std::vector<Json> results;
  for (const char* method : {"leat", "leat-group", "pipe", "domain", "mine"}) {
    results.push_back(sample_result(method));
    results.push_back(with(sample_result(method, 500), "variant", "spinning"));
    results.push_back(oneway(method, 100, 1, 1e6));
    results.push_back(oneway(method, 8, 1, 1e6));
  }
  const ResultSet set = sample_set(results);
  for (const char* method : {"leat", "leat-group", "pipe", "domain", "mine"}) {
    std::set<std::string> colours;
    for (const Chart& chart : all_charts(set)) {
      const std::regex mark("class=\"(?:filled|hollow) (\\w+)\"><title>" + std::string(method) +
                            ", ");
      for (std::sregex_iterator found(chart.body.begin(), chart.body.end(), mark), end;
           found != end; ++found) {
        colours.insert((*found)[1]);
      }
    }
    EXPECT_EQ(colours, std::set<std::string>{colour_of(method)}) << method;
  }
}

TEST(Charts, LeaveOutWhatALogarithmCannotShow) {
  Json zero = sample_result("zero");
  zero["median"]["p50_ns"] = zero["median"]["cpu_ns_per_message"] = 0;
  EXPECT_FALSE(latency_dots(sample_set({zero}), 100));
  EXPECT_FALSE(cpu_against_latency(sample_set({zero}), 100));
  const ResultSet set = sample_set({zero, sample_result("pipe")});
  for (const Chart& chart : all_charts(set)) {
    expect_sound(chart);
    EXPECT_EQ(chart.body.find("zero"), std::string::npos);
  }
  EXPECT_EQ(all_charts(set).size(), 3u);
}

TEST(Charts, BearTheLargestAndSmallestFigures) {
  const ResultSet set =
      sample_set({sample_result("slow", 1e16), sample_result("fast", 1e-3),
                  oneway("slow", 1, 1, 1e-3), oneway("slow", 1ull << 40, 1, 1e18)});
  for (const Chart& chart : all_charts(set)) expect_sound(chart);
}

TEST(Charts, EscapeNames) {
  const ResultSet set = sample_set({sample_result("<b>&\"'")});
  for (const Chart& chart : all_charts(set)) {
    EXPECT_EQ(svg_file(chart).find("<b>"), std::string::npos);
    EXPECT_NE(chart.body.find("&lt;b&gt;&amp;&quot;&#39;"), std::string::npos);
  }
}

TEST(Charts, AreFilesOfTheirOwn) {
  const auto chart = latency_dots(sample_set({sample_result("pipe")}), 100);
  const std::string file = svg_file(*chart);
  EXPECT_EQ(file.rfind("<svg xmlns=\"http://www.w3.org/2000/svg\"", 0), 0u);
  EXPECT_NE(file.find("prefers-color-scheme:dark"), std::string::npos);
  EXPECT_NE(file.find(chart->body), std::string::npos);
}

TEST(UsualSize, IsAHundredBytesOrWhatMostMethodsDid) {
  EXPECT_EQ(usual_size(sample_set({sample_result("a"), with(sample_result("b"), "size", 8),
                                   with(sample_result("c"), "size", 8)})),
            100u);
  EXPECT_EQ(usual_size(sample_set({with(sample_result("a"), "size", 64),
                                   with(sample_result("b"), "size", 8),
                                   with(sample_result("c"), "size", 8)})),
            8u);
  EXPECT_EQ(usual_size({}), 0u);
}

}  // namespace
}  // namespace leat::bench
