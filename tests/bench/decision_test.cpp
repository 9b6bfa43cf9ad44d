// If this failed, the report would recommend a method that loses messages, mixes them up or isn't the
// fastest.
#include "bench/report/decision.hpp"

#include <gtest/gtest.h>

#include "bench/ipc/methods.hpp"
#include "bench/report/runs.hpp"
#include "bench/sample_report.hpp"

namespace leat::bench {
namespace {

Json spinning(Json result) {
  result["variant"] = "spinning";
  return result;
}

// A result whose runs have these p50.
Json with_runs(const std::string& method, const std::vector<double>& p50s) {
  Json result = sample_result(method, p50s[p50s.size() / 2]);
  result["runs"] = Json::array();
  for (const double p50 : p50s) result["runs"].push_back(sample_figures(p50));
  return result;
}

struct Needs {
  std::string may_spin = "yes";
  std::string readers = "one";
  std::string survives_kill = "not needed";
  std::string boundaries = "not needed";
};

// What the table says to a program with these needs: there must be exactly one row for it.
const DecisionRow& answer_to(const std::vector<DecisionRow>& table, const Needs& needs) {
  const std::array wanted = {needs.may_spin, needs.readers, needs.survives_kill, needs.boundaries};
  const DecisionRow* found = nullptr;
  for (const DecisionRow& row : table) {
    bool fits = true;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      fits = fits && (row.needs[i].empty() || row.needs[i] == wanted[i]);
    }
    if (!fits) continue;
    EXPECT_EQ(found, nullptr) << "two rows for the same needs";
    found = &row;
  }
  static const DecisionRow none;
  EXPECT_NE(found, nullptr) << "no row for these needs";
  return found != nullptr ? *found : none;
}

std::string best_for(const std::vector<DecisionRow>& table, const Needs& needs) {
  const Measurement* best = answer_to(table, needs).best;
  return best == nullptr ? "nothing"
                         : best->key.method + std::string(", ") + name_of(best->key.variant);
}

// The faster a method is here, the less it can do.
ResultSet sample() {
  return sample_set({spinning(sample_result("pipe", 1000)),
                     spinning(sample_result("boost-mq", 2000)),
                     spinning(sample_result("leat-group", 3000)), sample_result("pipe", 10'000),
                     sample_result("dgram", 20'000), sample_result("boost-mq", 30'000),
                     sample_result("mq-posix", 40'000), sample_result("leat", 50'000)});
}

TEST(DecisionTable, GivesTheFastestMethodThatDoesWhatIsNeeded) {
  const ResultSet set = sample();
  const auto table = decision_table(set, 100);
  EXPECT_EQ(best_for(table, {}), "pipe, spinning");
  EXPECT_EQ(best_for(table, {.boundaries = "needed"}), "boost-mq, spinning");
  EXPECT_EQ(best_for(table, {.survives_kill = "needed"}), "leat-group, spinning");
  EXPECT_EQ(best_for(table, {.may_spin = "no"}), "pipe, blocking");
  EXPECT_EQ(best_for(table, {.may_spin = "no", .boundaries = "needed"}), "dgram, blocking");
  EXPECT_EQ(best_for(table, {.may_spin = "no", .readers = "several, sharing"}),
            "boost-mq, blocking");
  EXPECT_EQ(best_for(table, {.may_spin = "no", .survives_kill = "needed"}), "mq-posix, blocking");
  EXPECT_EQ(best_for(table, {.may_spin = "no", .readers = "several, each gets all"}),
            "leat, blocking");
}

// The members of a group share, so a group is not for readers that want every message.
TEST(DecisionTable, GivesNoSharingMethodWhereEachReaderGetsAll) {
  const ResultSet set =
      sample_set({sample_result("leat-group", 1000), sample_result("leat", 2000)});
  const auto table = decision_table(set, 100);
  EXPECT_EQ(best_for(table, {}), "leat-group, blocking");
  EXPECT_EQ(best_for(table, {.readers = "several, sharing"}), "leat-group, blocking");
  EXPECT_EQ(best_for(table, {.readers = "several, each gets all"}), "leat, blocking");
  EXPECT_TRUE(answer_to(table, {.readers = "several, each gets all"}).tied.empty());
  const ResultSet no_broadcast = sample_set({sample_result("leat-group")});
  EXPECT_EQ(best_for(decision_table(no_broadcast, 100), {.readers = "several, each gets all"}),
            "nothing");
}

TEST(DecisionTable, SaysThatNothingWillDo) {
  const ResultSet set = sample_set({sample_result("pipe")});
  const auto table = decision_table(set, 100);
  EXPECT_EQ(best_for(table, {}), "pipe, blocking");
  EXPECT_EQ(best_for(table, {.boundaries = "needed"}), "nothing");
  EXPECT_EQ(best_for(table, {.readers = "several, sharing", .survives_kill = "needed"}), "nothing");
}

// Every combination of answers has its row; a question without consequences is not asked.
TEST(DecisionTable, AnswersEveryProgramOnce) {
  const ResultSet set = sample();
  const auto table = decision_table(set, 100);
  for (const char* may_spin : {"yes", "no"}) {
    for (const char* readers : {"one", "several, sharing", "several, each gets all"}) {
      for (const char* survives_kill : {"not needed", "needed"}) {
        for (const char* boundaries : {"not needed", "needed"}) {
          answer_to(table, {may_spin, readers, survives_kill, boundaries});
        }
      }
    }
  }
  const ResultSet only_group = sample_set({sample_result("leat-group")});
  const auto rows = decision_table(only_group, 100);
  ASSERT_EQ(rows.size(), 3u) << "only the readers make a difference";
  for (const DecisionRow& row : rows) {
    EXPECT_FALSE(row.needs[1].empty());
    for (const std::size_t other : {0u, 2u, 3u}) EXPECT_EQ(row.needs[other], "");
  }
}

TEST(DecisionTable, ConsidersOnlyQueuesBetweenProcesses) {
  Json thread = sample_result("pipe", 10);
  thread["in_process"] = true;
  const ResultSet set =
      sample_set({thread, spinning(sample_result("shm", 80)), sample_result("futex", 90),
                  sample_result("aeron", 100), sample_result("fifo", 1000)});
  EXPECT_EQ(best_for(decision_table(set, 100), {}), "fifo, blocking");
  const LeftOut left_out = left_out_of_decision(set, 100);
  EXPECT_EQ(left_out.one_slot, (std::vector<std::string>{"futex", "shm"}));
  EXPECT_EQ(left_out.in_process, (std::vector<std::string>{"pipe"}));
  EXPECT_EQ(left_out.unknown, (std::vector<std::string>{"aeron"}));
}

TEST(DecisionTable, IsOfOneSize) {
  Json large = sample_result("pipe", 10);
  large["size"] = 65536;
  const ResultSet set = sample_set({large, sample_result("fifo", 1000)});
  EXPECT_EQ(best_for(decision_table(set, 100), {}), "fifo, blocking");
  EXPECT_EQ(best_for(decision_table(set, 65536), {}), "pipe, blocking");
  EXPECT_TRUE(decision_table(set, 8).empty());
}

TEST(DecisionTable, NamesWhoIsTiedWithTheBest) {
  const ResultSet set =
      sample_set({with_runs("pipe", {90, 100, 104}), with_runs("fifo", {102, 106, 130}),
                  with_runs("dgram", {105, 107, 130})});
  const auto table = decision_table(set, 100);
  const DecisionRow& row = answer_to(table, {});
  EXPECT_EQ(row.best->key.method, "pipe");
  ASSERT_EQ(row.tied.size(), 1u);
  EXPECT_EQ(row.tied[0]->key.method, "fifo");
  // Who can't do what is needed is not tied, either.
  EXPECT_TRUE(answer_to(table, {.boundaries = "needed"}).tied.empty());
}

TEST(Ties, AreCloseMediansWithRangesOfRunsThatOverlap) {
  const ResultSet set = sample_set({with_runs("a", {90, 100, 108}), with_runs("b", {108, 110, 130}),
                                    with_runs("c", {109, 110, 130}), with_runs("d", {92, 111, 130}),
                                    with_runs("once", {100})});
  const auto result = [&](const char* method) -> const Measurement& {
    return *set.find({method, Variant::blocking, Pattern::pingpong, 100, 1, 0});
  };
  const Figure p50 = &Figures::p50_ns;
  EXPECT_TRUE(tied(result("a"), result("b"), p50));
  EXPECT_TRUE(tied(result("b"), result("a"), p50));
  EXPECT_FALSE(tied(result("a"), result("c"), p50)) << "their ranges do not overlap";
  EXPECT_FALSE(tied(result("a"), result("d"), p50)) << "their medians are too far apart";
  EXPECT_FALSE(tied(result("d"), result("a"), p50));
  EXPECT_FALSE(tied(result("a"), result("once"), p50)) << "one run tells nothing about noise";
  EXPECT_FALSE(range_of_runs(result("once"), p50));
  EXPECT_FALSE(range_of_runs(result("a"), &Figures::p9999_ns)) << "no run has it";
  EXPECT_DOUBLE_EQ(*spread_of(result("b")), 22.0 / 130);
  EXPECT_FALSE(spread_of(result("once")));
}

// As measured once: one slow run of five brought the range of the fast method down to the other's.
TEST(Ties, AreNotMadeByOneSlowRun) {
  const auto one_way = [](const std::string& method, const std::vector<double>& per_second) {
    Json result = sample_result(method);
    result["pattern"] = "oneway";
    result["runs"] = Json::array();
    for (const double rate : per_second) result["runs"].push_back({{"messages_per_second", rate}});
    result["median"] = {{"messages_per_second", per_second[per_second.size() / 2]}};
    return result;
  };
  const ResultSet set = sample_set({one_way("leat", {19.9e6, 53e6, 54.2e6, 55e6, 55.5e6}),
                                    one_way("leat-group", {20e6, 24e6, 24.8e6, 25e6, 26.8e6})});
  EXPECT_FALSE(tied(set.results[0], set.results[1], &Figures::messages_per_second));
}

TEST(Facts, AreThoseOfEachMethod) {
  for (const char* stream : {"tcp", "domain", "socketpair", "pipe", "fifo", "io_uring", "splice"}) {
    EXPECT_FALSE(ipc::facts_of(stream)->boundaries) << stream;
  }
  std::vector<std::string> broadcast, shared, surviving, one_slot;
  for (const ipc::Method& method : ipc::all_methods()) {
    if (method.facts.broadcast) broadcast.emplace_back(method.name);
    if (method.facts.shared) shared.emplace_back(method.name);
    if (method.facts.survives_kill) surviving.emplace_back(method.name);
    if (!method.facts.queue) one_slot.emplace_back(method.name);
    EXPECT_FALSE(method.baseline && method.facts.queue) << method.name;
  }
  using Names = std::vector<std::string>;
  EXPECT_EQ(broadcast, (Names{"leat"}));
  EXPECT_EQ(shared, (Names{"mq-sysv", "mq-posix", "boost-mq", "leat-group"}));
  EXPECT_EQ(surviving, (Names{"mq-sysv", "mq-posix", "leat", "leat-group"}));
  EXPECT_EQ(one_slot, (Names{"shm", "mmap", "eventfd", "signal", "futex", "condvar", "sem-posix",
                             "sem-sysv", "vm-readv"}));
  EXPECT_FALSE(ipc::facts_of("aeron"));
}

}  // namespace
}  // namespace leat::bench
