// If this failed, the report page would need network access, leave out measurements, or execute
// scripts from a file of results.
#include "bench/report/report_page.hpp"

#include <gtest/gtest.h>

#include "bench/report/page_parts.hpp"
#include "bench/report/runs.hpp"
#include "bench/sample_report.hpp"

namespace leat::bench {
namespace {

Json unsupported(const std::string& method, const std::string& note) {
  Json result = sample_result(method);
  result["median"] = nullptr;
  result["runs"] = Json::array();
  result["verified"] = false;
  result["note"] = note;
  return result;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ReportPage, NeedsNothingElse) {
  const std::string page = report_page(sample_set({sample_result("pipe"), sample_result("leat")}));
  EXPECT_EQ(page.rfind("<!doctype html>", 0), 0u);
  for (const char* part : {"<script", "http://", "https://", "src=", "@import", "url("}) {
    EXPECT_FALSE(has(page, part)) << part;
  }
  EXPECT_TRUE(has(page, "default-src 'none'"));
  EXPECT_TRUE(has(page, "width=device-width"));
}

TEST(ReportPage, SaysWhatWasMeasuredWhereAndHow) {
  const std::string page = report_page(
      sample_set({sample_result("pipe", 11'200), unsupported("mq-sysv", "msgmax is 8192 bytes")}));
  EXPECT_TRUE(has(page, "<td>pipe</td><td>blocking</td><td>11.2 µs</td>"));
  EXPECT_TRUE(has(page, "msgmax is 8192 bytes"));
  EXPECT_TRUE(has(page, "Example CPU, 2 CPUs, Linux 6.1"));
  EXPECT_TRUE(has(page, "commit 0123456789ab"));
  EXPECT_TRUE(has(page, "<pre>leat bench ipc</pre>"));
  EXPECT_TRUE(has(page, "The machine is virtual (by KVM)"));
  EXPECT_TRUE(has(page, "It has 2 CPUs"));
  EXPECT_TRUE(has(page, "typically lie within 4 % of each other"));  // 0.98 to 1.02
}

TEST(ReportPage, BeginsWithWhenHowAndWhereThenWhichToUse) {
  Json report = sample_report({sample_result("pipe", 11'200)});
  report["date"] = "2026-11-23T02:32:39Z";
  const std::string page = report_page(parse_results(report.dump(), "a.json"));
  std::size_t before = 0;
  for (const char* part :
       {"<h1>", "<dt>Measured</dt><dd>2026-11-23</dd>",
        "<dt>Runs</dt><dd>5 of each; the figures are their medians</dd>",
        "<dt>Machine</dt><dd>Example CPU, 2 CPUs, Linux 6.1; leat 0.1.0, commit 0123456789ab</dd>",
        "<dt>Command</dt><dd><code>leat bench ipc</code></dd>", "Which should I use?</h2>",
        "<strong>pipe</strong><small>blocking</small>", "<svg"}) {
    const std::size_t at = page.find(part, before);
    ASSERT_NE(at, std::string::npos) << part;
    before = at;
  }
  EXPECT_TRUE(has(report_page(sample_set({sample_result("pipe")})), "date not recorded"));
}

TEST(ReportPage, DecidesWithTheFiguresOfTheResults) {
  const std::string page = report_page(sample_set(
      {sample_result("pipe", 1000), sample_result("fifo", 1010), sample_result("leat", 5000)}));
  EXPECT_TRUE(has(
      page,
      "<td class=\"figure\" data-title=\"p50\">1 µs<small>980&nbsp;ns to 1.02&nbsp;µs</small></td>"
      "<td class=\"figure\" data-title=\"p99\">2 µs<small>1.96&nbsp;µs to 2.04&nbsp;µs</small></td>"
      "<td class=\"figure\" data-title=\"CPU per round trip\">2 µs<small>1.96&nbsp;µs to 2.04&nbsp;"
      "µs</small></td><td class=\"tied\" data-title=\"Tied with\">fifo</td>"));
  EXPECT_TRUE(
      has(page,
          "<td class=\"use leat\" data-title=\"Use\"><strong>leat</strong><small>blocking"
          "</small></td><td class=\"figure\" data-title=\"p50\">5 µs<small>4.9&nbsp;µs to 5.1&nbsp;"
          "µs</small></td>"));
  EXPECT_TRUE(has(page,
                  "<strong>pipe (1&nbsp;µs)</strong>, tied with fifo (1.01&nbsp;µs), then leat "
                  "(5&nbsp;µs)."));
}

TEST(ReportPage, CallsOneRunNoMedian) {
  Json once = sample_result("pipe");
  once["runs"] = Json::array({once["median"]});
  const std::string page = report_page(sample_set({once}));
  EXPECT_FALSE(has(page, "is the median of"));
  EXPECT_TRUE(has(page, "one run of each"));
  EXPECT_TRUE(has(page, "Each figure is of one run."));
}

TEST(ReportPage, HasNoPercentileOfTooFewMessages) {
  Json few = sample_result("pipe");
  few["count"] = 1000;  // 200 in each run.
  const std::string page = report_page(sample_set({few}));
  EXPECT_TRUE(has(page, "<td>1.1 µs</td><td>2 µs</td><td>–</td><td>–</td><td>50 µs</td>"));
  EXPECT_TRUE(has(page, "p90 needs 10, p99 100, p99.9 1000 and p99.99 10000"));
  EXPECT_TRUE(has(report_markdown(sample_set({few})), "| 1 µs | 2 µs | – | 2 µs |"));
}

TEST(ReportPage, FoldsLongTables) {
  std::vector<Json> results;
  for (int i = 0; i < 12; ++i) results.push_back(sample_result("m" + std::to_string(i)));
  EXPECT_TRUE(has(report_page(sample_set(results)), "<h3>Round trips</h3>"));
  results.push_back(sample_result("one more"));
  EXPECT_TRUE(has(report_page(sample_set(results)), "<summary>Round trips: 13 rows</summary>"));
}

TEST(ReportPage, EscapesEveryText) {
  const std::string evil = "<script>alert(1)</script>";
  Json good = sample_result(evil);
  good["note"] = evil;
  Json report = sample_report({good, unsupported(evil + "2", evil)});
  report["version"] = report["commit"] = report["command"] = evil;
  for (const char* fact : {"cpu", "kernel", "hypervisor"}) report["machine"][fact] = evil;
  report["machine"][evil] = {{evil, evil}};
  const ResultSet set = parse_results(report.dump(), evil);
  EXPECT_FALSE(has(report_page(set), "<script"));
  EXPECT_TRUE(has(report_page(set), "&lt;script&gt;"));
  EXPECT_FALSE(has(report_markdown(set), "<script"));
}

TEST(ReportPage, CompetesOnlyAmongQueuesBetweenProcesses) {
  Json baseline = sample_result("shm", 80), thread = sample_result("disruptor", 100);
  baseline["baseline"] = true;
  thread["in_process"] = true;
  std::vector<Json> results = {baseline,
                               thread,
                               sample_result("eventfd", 200),  // It passes one slot on.
                               sample_result("pipe", 300),
                               sample_result("fifo", 400),
                               sample_result("tcp", 500),
                               sample_result("leat", 600),
                               sample_result("leat-group", 700)};
  for (Json& result : results) result["variant"] = "spinning";
  EXPECT_TRUE(
      has(report_page(sample_set(results)),
          "Fastest round trip of 100 B, spinning: <strong>pipe (300&nbsp;ns)</strong>, then "
          "fifo (400&nbsp;ns), then tcp (500&nbsp;ns); Leat is number 4: leat (600&nbsp;ns); "
          "the best baseline is shm (80&nbsp;ns); the best within one process is disruptor "
          "(100&nbsp;ns)."));
}

TEST(ReportPage, SaysWithWhomANoisyThirdIsTied) {
  Json noisy = sample_result("tcp", 1090);
  noisy["runs"][0]["p50_ns"] = 1000;
  EXPECT_TRUE(has(report_page(sample_set({sample_result("pipe", 1000), sample_result("fifo", 1080),
                                          noisy, sample_result("leat", 2000)})),
                  "<strong>pipe (1&nbsp;µs)</strong>, then fifo (1.08&nbsp;µs), then tcp "
                  "(1.09&nbsp;µs), which is tied with the first; Leat is number 4"));
}

TEST(ReportPage, SaysHowFarRunsLieApartInBoundsAndInUnits) {
  Json wild = sample_result("leat-group", 624);
  wild["runs"][0]["p50_ns"] = 230;
  wild["runs"][4]["p50_ns"] = 1'455'148;  // It fell behind in one run.
  const std::string page = report_page(sample_set({sample_result("pipe"), wild}));
  EXPECT_TRUE(has(page,
                  "typically lie within 52 % of each other. Those of <span class=\"whole\">"
                  "leat-group,</span> blocking, pingpong, 100 B lie furthest apart, from 230 ns "
                  "to 1.46 ms."));
  EXPECT_TRUE(has(page, "<th>range of p50</th>"));
  EXPECT_TRUE(has(page, "<td>230 ns to 1.46 ms</td>"));
  for (std::size_t at = page.find(" %"); at != page.npos; at = page.find(" %", at + 1)) {
    const std::size_t digits = page.find_last_not_of("0123456789", at - 1) + 1;
    EXPECT_LE(std::stoull("0" + page.substr(digits, at - digits)), 100u);
  }
}

TEST(ReportPage, SaysWhenResultsAreTied) {
  const std::string page = report_page(sample_set({sample_result("pipe"), sample_result("fifo")}));
  std::size_t count = 0;
  for (std::size_t at = page.find(kTieRule); at != page.npos; at = page.find(kTieRule, at + 1))
    ++count;
  EXPECT_EQ(count, 2u);  // Below the table, and among the notes.
}

TEST(ReportPage, KeepsWordsWithAHyphenWhole) {
  EXPECT_EQ(with_whole_words("leat bench --size 100"),
            "leat bench <span class=\"whole\">--size</span> 100");
  EXPECT_EQ(with_whole_words("a-b  <c>"), "<span class=\"whole\">a-b</span>  &lt;c&gt;");
  EXPECT_EQ(with_whole_words(" x- "), " <span class=\"whole\">x-</span> ");
  EXPECT_EQ(with_whole_words(""), "");
  Json report = sample_report({sample_result("pipe")});
  report["command"] = "leat bench ipc --size 100";
  const std::string page = report_page(parse_results(report.dump(), "a.json"));
  const std::string command = "leat bench ipc <span class=\"whole\">--size</span> 100";
  EXPECT_TRUE(has(page, "<code>" + command + "</code>"));
  EXPECT_TRUE(has(page, "<pre>" + command + "</pre>"));
}

TEST(ReportPage, CallsOneRunNoMedianBesideOthers) {
  Json once = sample_result("fifo");
  once["runs"] = Json::array({once["median"]});
  const std::string page = report_page(sample_set({sample_result("pipe"), once}));
  EXPECT_TRUE(has(page, "<dd>1 to 5 of each; the figures are their medians, or the one run</dd>"));
  EXPECT_TRUE(has(page, "Each figure is the median of its runs, or of one run."));
}

TEST(ReportPage, NamesAMethodOnceAmongTheBestOneWay) {
  std::vector<Json> results;
  const auto add = [&](const char* method, const char* variant, double per_second) {
    results.push_back(sample_result(method));
    results.back()["pattern"] = "oneway";
    results.back()["variant"] = variant;
    results.back()["median"] = {{"messages_per_second", per_second}};
    results.back()["runs"] = Json::array();
  };
  add("leat", "spinning", 3e7);
  add("leat", "blocking", 4e7);
  add("pipe", "blocking", 2e6);
  EXPECT_TRUE(has(report_page(sample_set(results)),
                  "Most messages of 100 B one way, one at a time: <strong>leat (40&nbsp;M/s, "
                  "blocking)</strong>, then pipe (2&nbsp;M/s, blocking)."));
}

TEST(ReportPage, ShowsEverySizeAndTheAskedOneFirst) {
  Json small = sample_result("pipe"), large = sample_result("pipe");
  small["size"] = 8;
  large["size"] = 65536;
  const ResultSet set = sample_set({small, sample_result("pipe"), large});
  const std::string page = report_page(set);
  EXPECT_TRUE(has(page, "<h2>Messages of 100 B</h2>"));
  EXPECT_TRUE(has(page, "<summary>8 B</summary>"));
  EXPECT_TRUE(has(page, "<summary>64 KiB</summary>"));
  EXPECT_TRUE(has(report_page(set, 8), "<h2>Messages of 8 B</h2>"));
  EXPECT_TRUE(has(report_page(set, 8), "<summary>100 B</summary>"));
}

TEST(ReportPage, WarnsOfSeveralMachines) {
  ResultSet set = sample_set({sample_result("pipe")});
  EXPECT_FALSE(has(report_page(set), "more than one machine"));
  Json other = sample_report({sample_result("tcp")});
  other["machine"]["cpu"] = "Another CPU";
  merge(set, parse_results(other.dump(), "other.json"));
  const std::string page = report_page(set);
  const std::size_t at = page.find("more than one machine");
  ASSERT_NE(at, std::string::npos);
  EXPECT_LT(at, page.find("Which should I use?"));
}

TEST(ReportPage, SaysNothingOfFilesThatLaterOnesReplaced) {
  Json old = sample_report({sample_result("pipe", 200)});
  old["machine"]["cpu"] = "Another CPU";
  ResultSet set = parse_results(old.dump(), "a.json");
  merge(set, parse_results(sample_report({sample_result("pipe", 100)}).dump(), "b.json"));
  EXPECT_FALSE(has(report_page(set), "Another CPU"));
}

TEST(ReportPage, IsAPageWithoutAnyFigures) {
  const ResultSet set = sample_set({unsupported("splice", "no permission")});
  const std::string page = report_page(set);
  EXPECT_TRUE(has(page, "no permission"));
  EXPECT_TRUE(has(page, "</html>"));
  EXPECT_FALSE(has(page, "<svg"));
}

TEST(ReportMarkdown, HasOneRowForAllPatternsOfAMethod) {
  Json way = sample_result("io_uring", 1), batched = sample_result("io_uring", 1);
  for (Json* result : {&way, &batched}) {
    (*result)["pattern"] = "oneway";
    (*result)["median"] = {{"messages_per_second", 2.5e6}};
    (*result)["runs"] = Json::array();
  }
  batched["batch"] = 64;
  batched["median"]["messages_per_second"] = 3e7;
  EXPECT_EQ(report_markdown(sample_set({sample_result("io_uring", 8860), way, batched,
                                        unsupported("mq-sysv", "too | large")})),
            "| 100 B, round trip | | p50 | p99 | p99.9 | CPU | one way | in batches of 64 |\n"
            "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
            "| io\\_uring | blocking | 8.86 µs | 17.7 µs | 35.4 µs | 17.7 µs | 2.5 M/s | 30 M/s |\n"
            "\nNot measured: mq-sysv (too \\| large).\n");
}

}  // namespace
}  // namespace leat::bench
