// If this failed, `leat bench clients` would print wrong ratios, take garbage for figures, or hang with a program.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "bench/clients/figures.hpp"
#include "bench/clients/peers.hpp"
#include "bench/clients/program.hpp"

namespace leat::bench::clients {
namespace {

using namespace std::chrono_literals;

constexpr char kPrinted[] =
    R"({"runtime": "Forth 1", "publish_ns": 30, "batch_ns": 12.5, "read_ns": 40, "view_ns": 8})";

template <class Call>
std::string failure_of(Call&& call) {
  try {
    call();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "no failure";
}

std::string replaced(std::string text, const std::string& old, const std::string& by) {
  return text.replace(text.find(old), old.size(), by);
}

TEST(Figures, AreWhatAProgramPrinted) {
  const Figures figures = figures_of(std::string{kPrinted} + "\n");
  EXPECT_EQ(figures.runtime, "Forth 1");
  EXPECT_EQ(figures.publish_ns, 30);
  EXPECT_EQ(figures.batch_ns, 12.5);
  EXPECT_EQ(figures.read_ns, 40);
  EXPECT_EQ(figures.view_ns, 8);
  EXPECT_FALSE(figures_of(replaced(kPrinted, "8}", "null}")).view_ns);
}

TEST(Figures, AreRefusedIfTheyAreNone) {
  const auto refused = [](const std::string& printed) {
    return failure_of([&] { (void)figures_of(printed); });
  };
  EXPECT_EQ(refused(""), "it printed '' and not an object of JSON");
  EXPECT_EQ(refused("hello\n\x1B[31m"), "it printed 'hello  [31m' and not an object of JSON");
  EXPECT_EQ(refused("[1]"), "it printed '[1]' and not an object of JSON");
  EXPECT_NE(refused(std::string{kPrinted} + "\n" + kPrinted).find("not an object"),
            std::string::npos);
  EXPECT_LT(refused(std::string(10'000, 'x')).size(), 150u);
  EXPECT_EQ(refused("{}"), "it printed no runtime: '{}'");
  EXPECT_NE(refused(replaced(kPrinted, "\"Forth 1\"", "1")).find("no runtime"), std::string::npos);
  EXPECT_EQ(refused(replaced(kPrinted, "batch_ns", "patch_ns")),
            "of what it printed, there is no batch_ns");
  for (const char* number : {"0", "-1", "null", "\"30\"", "[30]"}) {
    EXPECT_NE(refused(replaced(kPrinted, "30", number)).find("publish_ns is not a time"),
              std::string::npos)
        << number;
  }
  EXPECT_NE(refused(replaced(kPrinted, "8}", "\"8\"}")).find("view_ns is not a time"),
            std::string::npos);
  EXPECT_NE(refused(replaced(kPrinted, "30", "1e999")), "no failure");
}

TEST(Ratio, ComparesReadingWithReadingInPlace) {
  const Figures c{"C", 20, 10, 16, 8};
  EXPECT_EQ(ratio_to({"own", 40, 15, 32, 12}, c),
            Json({{"publish", 2.0}, {"batch", 1.5}, {"read", 4.0}, {"view", 1.5}}));
  EXPECT_EQ(ratio_to({"own", 40, 15, 32, std::nullopt}, c)["view"], Json());
}

TEST(Result, HasTheMedianOfTheRoundsRatios) {
  // The medians of the times would make 3 of the second round's 2.
  const std::vector<Round> rounds = {
      {{"Forth 1", 30, 10, 40, 8}, Figures{"C", 10, 10, 9, 4}},
      {{"Forth 1", 40, 20, 50, 9}, Figures{"C", 20, 10, 9, 5}},
      {{"Forth 1", 50, 30, 60, std::nullopt}, Figures{"C", 5, 10, 9, 6}},
  };
  const Json result = result_of(*language_named("python"), rounds, 100);
  EXPECT_EQ(result["language"], "python");
  EXPECT_EQ(result["runtime"], "Forth 1");
  EXPECT_EQ(result["publish_ns"], 40);
  EXPECT_EQ(result["batch_ns"], 20);
  EXPECT_EQ(result["read_ns"], 50);
  EXPECT_EQ(result["view_ns"], Json());  // Not in each round.
  EXPECT_EQ(result["ratio"], Json({{"publish", 3}, {"batch", 2}, {"read", 10}, {"view", Json()}}));
  EXPECT_EQ(result["beside"], "c");
  EXPECT_EQ(result["target"], Json({{"publish", 7}, {"batch", 2}, {"read", 7}}));
  EXPECT_EQ(result["runs"].size(), 3u);
  EXPECT_EQ(result["runs"][1]["ratio"]["publish"], 2);
  EXPECT_EQ(result["runs"][1]["beside"]["view_ns"], 5);
}

TEST(Result, SaysWhatIsWantedOnlyOfTheSizeThatItIsWantedFor) {
  const std::vector<Round> rounds = {{{"GCC", 13, 12, 10, 8}, Figures{"C++", 10, 10, 9, 8}}};
  const Json wanted = result_of(*language_named("c"), rounds, 100);
  EXPECT_EQ(ratio_text(wanted, "publish"), "1.30 (1.25)!");
  EXPECT_EQ(ratio_text(wanted, "batch"), "1.20 (1.25)");
  EXPECT_EQ(ratio_text(wanted, "read"), "1.25");
  const Json other = result_of(*language_named("c"), rounds, 1024);
  EXPECT_FALSE(other.contains("target"));
  EXPECT_EQ(ratio_text(other, "publish"), "1.30");
}

TEST(Result, HasNoRatioWithoutANeighbour) {
  const Json result =
      result_of(*language_named("cpp"), {{{"GCC", 13, 12, 10, 8}, std::nullopt}}, 100);
  EXPECT_EQ(result["ratio"]["publish"], Json());
  EXPECT_FALSE(result.contains("target"));
  EXPECT_EQ(ratio_text(result, "publish"), "");
}

TEST(Peers, AreComparedRoundByRound) {
  const auto run = [](double rate) { return PeerRun{"Forth 1", rate}; };
  const Json peers = peers_of({{run(1e6), run(5e6), run(30e6)},
                               {run(2e6), run(8e6), run(20e6)},
                               {run(1e6), run(9e6), run(20e6)}},
                              100);
  ASSERT_EQ(peers.size(), 3u);
  EXPECT_EQ(peers[0]["how"], "pyzmq");
  EXPECT_EQ(peers[0]["records_per_second"], 1e6);
  EXPECT_FALSE(peers[0].contains("times_pyzmq"));
  EXPECT_EQ(peers[1]["times_pyzmq"], 5);
  EXPECT_EQ(peers[1]["target"], 6);
  EXPECT_EQ(peers[2]["times_pyzmq"], 20);
  EXPECT_EQ(peers[2]["target"], 20);
}

TEST(Peers, AreRefusedIfTheyHaveNoRate) {
  EXPECT_EQ(peer_run_of(R"({"runtime": "x", "records_per_second": 5})").records_per_second, 5);
  for (const char* printed : {"", "[]", "{}", R"({"runtime": "x"})", R"({"records_per_second": 5})",
                              R"({"runtime": "x", "records_per_second": 0})"}) {
    EXPECT_NE(failure_of([&] { (void)peer_run_of(printed); }).find("records_per_second"),
              std::string::npos)
        << printed;
  }
}

Program shell(const std::string& script, std::chrono::seconds time_limit = 60s) {
  return {.name = "shell program",
          .path = "/bin/sh",
          .arguments = {"-c", script},
          .topic_directory = "/where/topics/are",
          .time_limit = time_limit};
}

TEST(Program, GivesItsOutput) {
  const SignalScope signals;
  EXPECT_EQ(output_of(signals, shell("echo $LEAT_DIR; echo ignored >&2")), "/where/topics/are\n");
}

TEST(Program, FailsWithItsLastWords) {
  const SignalScope signals;
  const auto failed = [&](const Program& program) {
    return failure_of([&] { (void)output_of(signals, program); });
  };
  EXPECT_EQ(failed(shell("echo first >&2; echo no ink >&2; echo >&2; exit 3")),
            "the shell program failed: exit code 3: no ink");
  EXPECT_EQ(failed(shell("exit 1")), "the shell program failed: exit code 1");
  EXPECT_EQ(failed(shell("kill -9 $$")), "the shell program died: Killed");
  Program missing = shell("");
  missing.path = "/no/such/program";
  EXPECT_EQ(failed(missing),
            "the shell program failed: cannot run /no/such/program: No such file or directory");
}

TEST(Program, ThatHangsIsKilledWithWhatItStarted) {
  const SignalScope signals;
  const std::string file = testing::TempDir() + "/started-" + std::to_string(::getpid());
  const std::string script = "sleep 600 & echo $! > " + file + "; wait";
  EXPECT_EQ(failure_of([&] { (void)output_of(signals, shell(script, 1s)); }),
            "the shell program was not done after 1 s");
  pid_t started = 0;
  std::ifstream{file} >> started;
  std::remove(file.c_str());
  ASSERT_GT(started, 0);
  // It is killed, though whoever adopts it may take a moment to notice.
  const std::string status = "/proc/" + std::to_string(started) + "/cmdline";
  for (int i = 0; i < 500; ++i) {
    std::string words;
    std::getline(std::ifstream{status} >> std::ws, words);
    if (words.empty()) return;  // Gone, or a zombie, which has no command line.
    std::this_thread::sleep_for(10ms);
  }
  FAIL() << "what it started still runs";
}

}  // namespace
}  // namespace leat::bench::clients
