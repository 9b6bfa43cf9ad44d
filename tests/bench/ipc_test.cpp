// If this failed, `leat bench ipc` would print wrong percentiles, or figures
// for a method that lost or damaged messages.
#include <gtest/gtest.h>

#include <fstream>

#include "bench/ipc/measure.hpp"
#include "bench/ipc/rows.hpp"
#include "bench/ipc/sweep.hpp"
#include "bench/leat/topics.hpp"

namespace leat::bench::ipc {
namespace {

// ---- Every method -------------------------------------------------------------------------------

struct Case {
  Method method;
  Variant variant;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Method& method : all_methods()) {
    if (method.spinning) cases.push_back({method, Variant::spinning});
    if (method.blocking) cases.push_back({method, Variant::blocking});
  }
  return cases;
}

class EveryMethod : public ::testing::TestWithParam<Case> {
 protected:
  // Measuring checks every byte of every message, and throws if one is wrong.
  void measure(const Load& load) const {
    try {
      const Cost cost = GetParam().method.measure(load, Placement{usable_cpus()});
      EXPECT_GT(cost.elapsed_ns, 0);
      EXPECT_GT(cost.messages_per_second, 0);
      if (load.pattern == Pattern::oneway) return;
      EXPECT_LE(cost.latency.min, cost.latency.p50);
      EXPECT_LE(cost.latency.p50, cost.latency.p99);
      EXPECT_LE(cost.latency.p9999, cost.latency.max);
      EXPECT_FALSE(std::isnan(cost.latency.stddev));
    } catch (const NotSupported& reason) {
      std::printf("not supported: %s\n", reason.what());
      // All methods support the usual sizes, but a container may forbid these two.
      const std::string name = GetParam().method.name;
      EXPECT_TRUE(load.size > 4096 || name == "io_uring" || name == "vm-readv") << reason.what();
    }
  }
  Load load(std::size_t size, Pattern pattern) const {
    Load load{.size = size,
              .count = size > 65'536 ? 20u : 200u,
              .warm_up = 10,
              .pattern = pattern,
              .variant = GetParam().variant,
              .time_limit = std::chrono::seconds{50}};
    if (pattern == Pattern::rate) load.rate = 20'000;
    return load;
  }
};

TEST_P(EveryMethod, AnswersMessagesOfAnySize) {
  for (const std::size_t size : {1u, 7u, 100u, 1000u, 4096u, 65'536u, 1u << 20}) {
    measure(load(size, Pattern::pingpong));
  }
}

TEST_P(EveryMethod, SendsOneWay) {
  for (const std::size_t size : {1u, 100u, 4096u, 16'384u, 65'536u, 1u << 20}) {
    Load oneway = load(size, Pattern::oneway);
    measure(oneway);
    if (!GetParam().method.batches) continue;
    oneway.batch = size > 65'536 ? 4 : 64;
    measure(oneway);
    oneway.batch = 7;  // The last batch is not full.
    measure(oneway);
  }
}

TEST_P(EveryMethod, KeepsToARate) { measure(load(100, Pattern::rate)); }

TEST_P(EveryMethod, NeedsNoWarmUp) {
  Load cold = load(100, Pattern::pingpong);
  cold.warm_up = 0;
  cold.count = 1;
  measure(cold);
}

INSTANTIATE_TEST_SUITE_P(All, EveryMethod, ::testing::ValuesIn(all_cases()),
                         [](const ::testing::TestParamInfo<Case>& one) {
                           std::string name = std::string(one.param.method.name) + "_" +
                                              name_of(one.param.variant);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Methods, AreThoseThatWerePromised) {
  std::vector<std::string> names;
  for (const Method& method : all_methods()) names.push_back(method.name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "boost-mq", "condvar",    "dgram",      "domain",     "eventfd",  "fifo",
                "futex",    "io_uring",   "leat",       "leat-group", "mmap",     "mq-posix",
                "mq-sysv",  "nng",        "pipe",       "sem-posix",  "sem-sysv", "seqpacket",
                "shm",      "signal",     "socketpair", "splice",     "tcp",      "udp",
                "vm-readv", "zeromq-ipc", "zeromq-tcp"}));
}

// ---- Faulty channels are detected ---------------------------------------------------------------

enum class Fault { flips_a_byte, cuts, repeats, never_sends, not_here };

// A channel over a topic, with a fault of the given kind.
template <Fault fault>
class WrongChannel {
 public:
  explicit WrongChannel(const Load&) {
    for (const char* name : {"there", "back"}) topics_.create(name, {.capacity_bytes = 1 << 20});
  }
  class Side {
   public:
    Side(const WrongChannel& channel, End end)
        : to_{open_topic(channel.topics_.directory(), end == End::sender ? "there" : "back")},
          from_{open_topic(channel.topics_.directory(), end == End::sender ? "back" : "there")},
          publisher_{value_of(to_.publisher(), "publish")},
          subscriber_{value_of(from_.subscriber({.from = From::beginning}), "subscribe")},
          is_wrong_{end == End::sender} {
      if (fault == Fault::not_here) throw NotSupported("not on this machine");
    }
    void send(std::span<const std::byte> message) {
      std::vector<std::byte> changed(message.begin(), message.end());
      ++sent_;
      if (is_wrong_ && sent_ == 50) {
        if (fault == Fault::never_sends) return;
        if (fault == Fault::flips_a_byte) changed[changed.size() / 2] ^= std::byte{1};
        if (fault == Fault::cuts) changed.pop_back();
        if (fault == Fault::repeats) changed = last_;
      }
      value_of(publisher_.publish(changed), "publish");
      last_ = changed;
    }
    void flush() {}
    template <class Visit>
    std::size_t receive(std::size_t, const Visit& visit) {
      visit(value_of(subscriber_.receive(), "receive").value);
      return 1;
    }

   private:
    Topic to_;
    Topic from_;
    Publisher publisher_;
    Subscriber subscriber_;
    std::vector<std::byte> last_;
    bool is_wrong_;
    int sent_ = 0;
  };

 private:
  TemporaryTopics topics_;
};

template <Fault fault>
std::string complaint_of(Pattern pattern) {
  const Load load{.size = 100,
                  .count = 100,
                  .warm_up = 10,
                  .pattern = pattern,
                  .time_limit = std::chrono::seconds{fault == Fault::never_sends ? 1 : 30}};
  try {
    measure_channel<WrongChannel<fault>>(load, Placement{usable_cpus()});
  } catch (const NotSupported& reason) {
    return std::string("not supported: ") + reason.what();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

TEST(MeasureChannel, NoticesWhatIsWrong) {
  for (const Pattern pattern : {Pattern::pingpong, Pattern::oneway}) {
    EXPECT_NE(complaint_of<Fault::flips_a_byte>(pattern).find("wrong content"), std::string::npos);
    EXPECT_NE(complaint_of<Fault::cuts>(pattern).find("wrong content"), std::string::npos);
    EXPECT_NE(complaint_of<Fault::repeats>(pattern).find("wrong content"), std::string::npos);
  }
}

TEST(MeasureChannel, EndsWhatHangs) {
  EXPECT_NE(complaint_of<Fault::never_sends>(Pattern::pingpong).find("not finished after 1 s"),
            std::string::npos);
}

TEST(MeasureChannel, KnowsWhyAProcessCouldNot) {
  EXPECT_EQ(complaint_of<Fault::not_here>(Pattern::pingpong), "not supported: not on this machine");
}

// ---- Rows ---------------------------------------------------------------------------------------

Row row_of(const char* method, std::size_t size) {
  for (const Method& one : all_methods()) {
    if (one.name == std::string(method)) {
      return {one, {.size = size, .count = 50, .warm_up = 5, .variant = Variant::blocking}};
    }
  }
  throw Failure("no such method");
}

TEST(Rows, OneThatCannotDoItLeavesTheOthersAlone) {
  std::vector<Row> rows{row_of("mq-sysv", 1 << 20), row_of("pipe", 1 << 20)};
  measure_rows(rows, 2, Placement{}, Progress{});
  EXPECT_EQ(rows[0].note.rfind("not supported: ", 0), 0U) << rows[0].note;
  EXPECT_TRUE(rows[0].runs.empty());
  EXPECT_EQ(rows[1].runs.size(), 2U);
  throw_failures(rows);  // Not a failure.
  const Json results = to_json(rows);
  EXPECT_TRUE(results[0]["median"].is_null());
  EXPECT_FALSE(results[0]["verified"].get<bool>());
  EXPECT_TRUE(results[1]["verified"].get<bool>());
}

TEST(Rows, OneThatFailsIsNamedAtTheEnd) {
  std::vector<Row> rows{row_of("pipe", 100), row_of("pipe", 100)};
  rows[0].load.count = 1'000'000'000;
  rows[0].load.time_limit = std::chrono::seconds{1};
  measure_rows(rows, 1, Placement{}, Progress{});
  EXPECT_TRUE(rows[0].failed);
  EXPECT_EQ(rows[1].runs.size(), 1U);
  try {
    throw_failures(rows);
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find("pipe (blocking) failed: not finished after 1 s"),
              std::string::npos)
        << failure.what();
  }
}

TEST(Rows, MedianIsOfEachFigure) {
  std::vector<Cost> runs(3);
  for (std::size_t i = 0; i < 3; ++i) {
    runs[i].latency.p50 = static_cast<double>(10 * i);
    runs[i].messages_per_second = static_cast<double>(100 - i);
  }
  EXPECT_EQ(median_of(runs).latency.p50, 10);
  EXPECT_EQ(median_of(runs).messages_per_second, 99);
}

TEST(Compatible, HasTheEightLinesOfIpcBench) {
  Row row = row_of("pipe", 4096);
  row.load.count = 1000;
  row.runs = {{.latency = {.min = 0, .max = 25'000, .mean = 1418, .stddev = 1282},
               .elapsed_ns = 1'945'000,
               .messages_per_second = 514'138.8}};
  EXPECT_EQ(compatible(row),
            "\n"
            "============ RESULTS ================\n"
            "Message size:       4096\n"
            "Message count:      1000\n"
            "Total duration:     1.945\tms\n"
            "Average duration:   1.418\tus\n"
            "Minimum duration:   0.000\tus\n"
            "Maximum duration:   25.000\tus\n"
            "Standard deviation: 1.282\tus\n"
            "Message rate:       514138\tmsg/s\n"
            "=====================================\n");
}

// ---- Sweeps -------------------------------------------------------------------------------------

TEST(SweepSizes, StepsOfFourUpToTheLast) {
  using Sizes = std::vector<std::size_t>;
  EXPECT_EQ(sweep_sizes("sizes=1..64KiB", 1 << 20),
            (Sizes{1, 4, 16, 64, 256, 1024, 4096, 16'384, 65'536}));
  EXPECT_EQ(sweep_sizes("sizes=100..1000", 1 << 20), (Sizes{100, 400, 1000}));
  EXPECT_EQ(sweep_sizes("sizes=8..8", 1 << 20), (Sizes{8}));
  EXPECT_EQ(sweep_sizes("sizes=8,1KiB,100", 1 << 20), (Sizes{8, 1024, 100}));
}

TEST(SweepDirectory, KeepsWhatWasMeasured) {
  const TemporaryTopics place;
  const SweepDirectory directory(place.directory() + "/results");
  Json report = new_report({{"size", 8}});
  report["results"] = Json::array({{{"method", "one"}}, {{"method", "two"}}});
  EXPECT_FALSE(directory.has("step", report["parameters"]));
  directory.write("step", report);
  EXPECT_TRUE(directory.has("step", report["parameters"]));
  EXPECT_FALSE(directory.has("step", {{"size", 9}}));
  EXPECT_FALSE(directory.has("other", report["parameters"]));
  std::ifstream file(place.directory() + "/results/step.json");
  EXPECT_EQ(Json::parse(file), report);
}

TEST(SweepSizes, SaysWhatWouldBeRight) {
  for (const char* wrong : {"", "8", "sizes=", "sizes=0", "sizes=1..", "sizes=..4", "sizes=4..1",
                            "sizes=many", "sizes=1,,2", "sizes=-1", "sizes=2MiB", "size=1..4",
                            "sizes=1..99999999999999999999", "sizes=1.5"}) {
    try {
      sweep_sizes(wrong, 1 << 20);
      ADD_FAILURE() << wrong;
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.exit_code(), kExitUsage);
      EXPECT_NE(std::string(failure.what()).find("sizes=1..64KiB"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace leat::bench::ipc
