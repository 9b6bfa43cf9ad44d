// If this failed, `leat bench report` would show numbers from a damaged or unrelated file.
#include "bench/report/result_set.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/failure.hpp"
#include "bench/sample_report.hpp"
#include "unit/testing.hpp"

namespace leat::bench {
namespace {

// The exit code and message of a Failure, such as "5: a.json: …"; empty if there was none.
template <class Call>
std::string failure_of(const Call& call) {
  try {
    call();
    return {};
  } catch (const Failure& failure) {
    return std::to_string(failure.exit_code()) + ": " + failure.what();
  }
}

std::string failure_of_text(const std::string& text) {
  return failure_of([&] { parse_results(text, "a.json"); });
}

// The failure when reading a report with one result in which one value was replaced.
std::string failure_with(const std::string& pointer, const Json& value) {
  Json report = sample_report({sample_result("pipe")});
  report[Json::json_pointer(pointer)] = value;
  return failure_of_text(report.dump());
}

std::string failure_without(const std::string& object, const char* name) {
  Json report = sample_report({sample_result("pipe")});
  report[Json::json_pointer(object)].erase(name);
  return failure_of_text(report.dump());
}

void write(const std::filesystem::path& path, const Json& report) {
  std::ofstream(path) << report.dump();
}

TEST(ResultSet, LeavesOutWhatOnlyPeersHave) {
  Json report = sample_report({sample_result("pipe"), sample_result("aeron")});
  report["results"].push_back(
      {{"method", "aeron"}, {"pattern", "crash"}, {"recovery_ns", nullptr}});
  report["results"].push_back({{"method", "boost-mq"}, {"pattern", "group"}, {"batch", 0}});
  EXPECT_EQ(parse_results(report.dump(), "a.json").results.size(), 2u);
}

TEST(ResultSet, HasWhatTheFileSays) {
  const ResultSet set =
      parse_results(sample_report({sample_result("pipe", 7600)}).dump(), "a.json");
  ASSERT_EQ(set.results.size(), 1u);
  const Measurement& result = set.results[0];
  EXPECT_EQ(result.key, (ResultKey{"pipe", Variant::blocking, Pattern::pingpong, 100, 1, 0}));
  EXPECT_TRUE(result.verified);
  EXPECT_FALSE(result.baseline || result.in_process);
  EXPECT_EQ(result.count, 20000u);
  EXPECT_EQ(result.median->p50_ns, 7600);
  EXPECT_EQ(result.median->p9999_ns, std::nullopt);  // null
  EXPECT_EQ(result.runs.size(), 5u);
  ASSERT_EQ(set.sources.size(), 1u);
  EXPECT_EQ(set.sources[0].file, "a.json");
  EXPECT_EQ(set.sources[0].fact("cpu"), "Example CPU");
  EXPECT_EQ(set.sources[0].fact("caches"), "L1: 32K");
  EXPECT_EQ(set.sources[0].fact("nothing"), "unknown");
  EXPECT_EQ(set.find(result.key), &set.results[0]);
  EXPECT_EQ(set.find({"pipe", Variant::spinning, Pattern::pingpong, 100, 1, 0}), nullptr);
}

TEST(ResultSet, TakesOnlyWhatSpinsForABaseline) {
  Json blocking = sample_result("shm"), spinning = blocking;
  blocking["baseline"] = spinning["baseline"] = true;
  spinning["variant"] = "spinning";
  const ResultSet set = sample_set({blocking, spinning});
  ASSERT_EQ(set.results.size(), 2u);
  for (const Measurement& result : set.results)
    EXPECT_EQ(result.baseline, result.key.variant == Variant::spinning);
}

TEST(ResultSet, KeepsTheReasonWhyThereAreNoFigures) {
  Json result = sample_result("mq-sysv");
  result["median"] = nullptr;
  result["runs"] = Json::array();
  result["note"] = "not supported: kernel.msgmax is 8192 bytes";
  const ResultSet set = parse_results(sample_report({result}).dump(), "a.json");
  EXPECT_FALSE(set.results[0].median);
  EXPECT_EQ(set.results[0].note, "not supported: kernel.msgmax is 8192 bytes");
}

// 200 messages have no p99.9: it would be the slowest of them.
TEST(ResultSet, LeavesOutPercentilesOfTooFewMessages) {
  const auto read = [](std::uint64_t count) {
    Json result = sample_result("pipe");
    result["count"] = count;
    for (Json& run : result["runs"]) run["p9999_ns"] = 9000;
    result["median"]["p9999_ns"] = 9000;
    return parse_results(sample_report({result}).dump(), "a.json").results[0];
  };
  const Measurement few = read(5 * 200);
  EXPECT_TRUE(few.median->p50_ns && few.median->p90_ns && few.median->p99_ns && few.median->max_ns);
  EXPECT_FALSE(few.median->p999_ns || few.median->p9999_ns || few.runs[4].p999_ns);
  EXPECT_FALSE(read(5 * 999).median->p999_ns);
  EXPECT_TRUE(read(5 * 1000).median->p999_ns);
  EXPECT_FALSE(read(5 * 1000).median->p9999_ns);
  EXPECT_TRUE(read(5 * 10'000).median->p9999_ns);
  const Measurement one = read(5);
  EXPECT_TRUE(one.median->p50_ns);
  EXPECT_FALSE(one.median->p90_ns || one.median->p99_ns);
}

TEST(ResultSet, KnowsTheDayIfTheFileSaysIt) {
  Json report = sample_report({sample_result("pipe")});
  EXPECT_EQ(parse_results(report.dump(), "a.json").sources[0].day, "");
  report["date"] = "2026-11-23T02:32:39Z";
  EXPECT_EQ(parse_results(report.dump(), "a.json").sources[0].day, "2026-11-23");
  for (const char* wrong : {"", "2026", "yesterday at noon", "2026/11/23", "<b>"}) {
    report["date"] = wrong;
    EXPECT_EQ(failure_of_text(report.dump()), "5: a.json: date is not like 2026-11-23");
  }
}

TEST(ResultSet, SaysWhatIsWrongAndWhere) {
  const std::string place = "5: a.json: results[0] (pipe, blocking, pingpong, 100 B): ";
  EXPECT_EQ(failure_with("/results/0/median/p50_ns", -5),
            place + "median.p50_ns is -5, not a number from 1e-09 to 1e+18, or 0");
  EXPECT_EQ(failure_with("/results/0/runs/2/p99_ns", "fast"),
            place + "runs[2].p99_ns is 'fast', not a number from 1e-09 to 1e+18, or 0");
  EXPECT_EQ(failure_with("/results/0/median/max_ns", 1e300),
            place + "median.max_ns is 1e+300, not a number from 1e-09 to 1e+18, or 0");
  EXPECT_EQ(failure_with("/results/0/median/p50_ns", 1e-300),
            place + "median.p50_ns is 1e-300, not a number from 1e-09 to 1e+18, or 0");
  EXPECT_EQ(failure_with("/results/0/batch", 2),
            "5: a.json: results[0]: batch is 2; with pingpong it is 1");
  EXPECT_EQ(failure_with("/results/0/rate", 5),
            "5: a.json: results[0]: rate is 5; with pingpong it is 0");
  EXPECT_EQ(failure_with("/results/0/size", 1.5),
            "5: a.json: results[0]: size is 1.5, not a whole number from 1 to 1099511627776");
  EXPECT_EQ(failure_with("/results/0/size", 0),
            "5: a.json: results[0]: size is 0, not a whole number from 1 to 1099511627776");
  EXPECT_EQ(failure_with("/results/0/variant", "sleepy"),
            "5: a.json: results[0]: variant is 'sleepy', not one of spinning, blocking");
  EXPECT_EQ(failure_with("/results/0/pattern", "storm"),
            "5: a.json: results[0]: pattern is 'storm', not one of pingpong, oneway, rate");
  EXPECT_EQ(failure_with("/results/0/baseline", 1), place + "baseline is 1, not true or false");
  EXPECT_EQ(failure_with("/results/0/note", Json::array()), place + "note is a list, not a text");
  EXPECT_EQ(failure_without("/results/0", "method"), "5: a.json: results[0]: method is missing");
  EXPECT_EQ(failure_without("/results/0/median", "p50_ns"),
            place + "median.p50_ns is missing; pingpong has it");
  EXPECT_EQ(failure_without("", "machine"), "5: a.json: machine is missing");
}

TEST(ResultSet, TakesNothingElseForResults) {
  for (const char* text : {"[]", "{}", "1", "null", R"({"cases": []})"}) {
    EXPECT_EQ(failure_of_text(text),
              "5: a.json: not a report of `leat bench ipc` (no list of results)");
  }
  const std::string what_is_right = "; results are what `leat bench ipc --json=FILE` writes";
  EXPECT_EQ(failure_of_text(""), "5: a.json: not JSON (wrong at byte 1)" + what_is_right);
  EXPECT_EQ(failure_of_text(R"({"results": NaN})"),
            "5: a.json: not JSON (wrong at byte 13)" + what_is_right);
  EXPECT_EQ(failure_of_text(R"({"results": 1e999})"),
            "5: a.json: holds a number that is too large");
  EXPECT_EQ(failure_of_text("\xff\xfe"), "5: a.json: not JSON (wrong at byte 1)" + what_is_right);
  EXPECT_EQ(failure_with("/results", 5), "5: a.json: results is not a list of at most 5000");
  EXPECT_EQ(failure_with("/results/0", 5), "5: a.json: results[0]: not an object");
  EXPECT_EQ(failure_with("/machine", 5),
            "5: a.json: machine is not an object of at most 100 facts");
}

TEST(ResultSet, RefusesNamesThatWouldRuinATerminalOrATable) {
  for (const std::string& name : {std::string(), std::string(65, 'x'), std::string("a\nb"),
                                  std::string("a\x1b[2J"), std::string("naïve")}) {
    EXPECT_EQ(failure_with("/results/0/method", name),
              "5: a.json: results[0]: method is not a name of 1 to 64 ASCII characters");
  }
}

TEST(ResultSet, SurvivesDeepNesting) {
  const std::string deep(200'000, '[');
  EXPECT_NE(failure_of_text(deep), "");
  const std::string closed = deep + std::string(200'000, ']');
  EXPECT_NE(failure_of_text("{\"results\": " + closed + "}"), "");
  Json report = sample_report({sample_result("pipe")});
  std::string text = report.dump();
  text.replace(text.find("\"Example CPU\""), 13, closed);
  EXPECT_EQ(failure_of_text(text), "");
}

TEST(ResultSet, ReadsADirectoryAndLetsTheLaterNameWin) {
  const TestDirectory directory;
  write(directory / "b.json", sample_report({sample_result("pipe", 200)}));
  write(directory / "a.json",
        sample_report({sample_result("pipe", 100), sample_result("tcp", 300)}));
  write(directory / "log.json", {{"machine", Json::object()}, {"cases", Json::array()}});
  std::ofstream(directory / "notes.txt") << "not JSON at all";
  const ResultSet set = read_results({directory.path()});
  ASSERT_EQ(set.results.size(), 2u);
  EXPECT_EQ(set.results[0].median->p50_ns, 200);
  EXPECT_EQ(set.sources[set.results[0].source].file, (directory / "b.json").string());
  EXPECT_EQ(set.sources[set.results[1].source].file, (directory / "a.json").string());
  EXPECT_EQ(set.sources.size(), 2u);
  EXPECT_EQ(set.skipped, (std::vector<std::string>{(directory / "log.json").string()}));
  // The order on the command line does not matter.
  EXPECT_EQ(read_results({directory / "b.json", directory / "a.json"}).results[0].median->p50_ns,
            200);
}

TEST(ResultSet, SaysWhatIsNotThere) {
  const TestDirectory directory;
  const std::string missing = directory / "missing";
  EXPECT_EQ(failure_of([&] { read_results({missing}); }),
            "3: " + missing + ": no such file or directory");
  EXPECT_EQ(failure_of([&] { read_results({directory.path()}); }),
            "3: " + directory.path() + ": no *.json in this directory");
  EXPECT_EQ(failure_of([&] { read_results({"/dev/zero"}); }),
            "2: /dev/zero: not a file or directory of results");
  write(directory / "other.json", {{"cases", Json::array()}});
  EXPECT_EQ(failure_of([&] { read_results({directory.path()}); }),
            "3: " + directory.path() + ": no results of `leat bench ipc`");
}

}  // namespace
}  // namespace leat::bench
