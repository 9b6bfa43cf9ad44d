// leat bench idle: the CPU time of subscribers that wait for a record that does not come.
#include <fmt/format.h>

#include <ctime>
#include <memory>
#include <string>

#include "commands.hpp"
#include "processes.hpp"
#include "report.hpp"
#include "topics.hpp"

namespace leat::bench {
namespace {

constexpr char kTopic[] = "idle";
constexpr std::chrono::seconds kPatience{30};

struct Options {
  std::uint32_t subscribers = 8;
  double seconds = 10;
  int runs = 1;
  std::vector<int> cpus;
  JsonOption json;
};

// CPU time that a process has used, all its threads together.
std::uint64_t cpu_ns_of(const Child& child) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(child.pid(), &clock) != 0 || ::clock_gettime(clock, &time) != 0) {
    throw system_failure("cannot read the CPU time of a subscriber");
  }
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(time.tv_nsec);
}

class Idlers {
 public:
  explicit Idlers(const Options& options) : options_{options} {
    topics_.create(kTopic, {.capacity_bytes = 1u << 20});
    const Placement placement{options.cpus};
    for (std::uint32_t i = 0; i < options.subscribers; ++i) {
      children_.push_back(std::make_unique<Child>("subscriber", placement.cpu(i), [this] {
        const Topic topic = open_topic(topics_.directory(), kTopic);
        Subscriber subscriber = value_of(topic.subscriber(), "open a subscriber");
        waiting_->fetch_add(1);
        (void)value_of(subscriber.receive(), "wait for a record");
      }));
    }
  }

  // CPU time of all subscribers together while they wait.
  std::uint64_t measure(const SignalScope& signals) {
    wait_until(signals, "wait", [&] { return waiting_->load() == options_.subscribers; });
    pause(signals, 0.1);  // They spin for some microseconds before they sleep.
    const std::uint64_t before_ns = cpu_ns();
    pause(signals, options_.seconds);
    const std::uint64_t used_ns = cpu_ns() - before_ns;
    wake(signals);
    return used_ns;
  }

 private:
  std::uint64_t cpu_ns() const {
    std::uint64_t sum_ns = 0;
    for (const auto& child : children_) sum_ns += cpu_ns_of(*child);
    return sum_ns;
  }

  // Proves that they were waiting for a record all the time: one comes, and all get it.
  void wake(const SignalScope& signals) {
    children_.push_back(std::make_unique<Child>("publisher", kAnyCpu, [this] {
      const Topic topic = open_topic(topics_.directory(), kTopic);
      Publisher publisher = value_of(topic.publisher(), "open a publisher");
      (void)value_of(publisher.publish("at last"), "publish");
    }));
    wait_until(signals, "receive the record", [&] {
      std::erase_if(children_, [](const auto& child) { return ended_well(*child); });
      return children_.empty();
    });
  }

  static bool ended_well(Child& child) {
    if (!child.has_ended()) return false;
    if (const std::string sentence = child.failure(); !sentence.empty()) throw Failure(sentence);
    return true;
  }

  void check_children() const {
    for (const auto& child : children_) {
      if (ended_well(*child)) throw Failure("a subscriber ended, though there was no record");
    }
  }

  void pause(const SignalScope& signals, double seconds) const {
    const std::uint64_t until_ns = now_ns() + static_cast<std::uint64_t>(seconds * 1e9);
    for (std::uint64_t now = now_ns(); now < until_ns; now = now_ns()) {
      signals.wait(std::chrono::nanoseconds{until_ns - now});
      check_children();
    }
  }

  template <class Condition>
  static void wait_until(const SignalScope& signals, const char* what, const Condition& is_true) {
    const Deadline deadline{kPatience};
    while (!is_true()) {
      if (deadline.passed()) throw Failure(fmt::format("not all subscribers {} in time", what));
      signals.wait(std::chrono::milliseconds{5});
    }
  }

  const Options& options_;
  TemporaryTopics topics_;
  Shared<std::atomic<std::uint32_t>> waiting_{0u};
  std::vector<std::unique_ptr<Child>> children_;
};

void run_idle(Options options) {
  options.json.check();
  options.cpus = chosen_cpus(options.cpus);
  Json report = new_report({{"subscribers", options.subscribers},
                            {"seconds", options.seconds},
                            {"runs", options.runs},
                            {"pin", options.cpus}});
  report["runs"] = Json::array();
  const SignalScope signals;
  const Progress progress;
  for (int run = 1; run <= options.runs; ++run) {
    progress.show(fmt::format("run {} of {}: {} s", run, options.runs, options.seconds));
    report["runs"].push_back(
        {{"cpu_ms", static_cast<double>(Idlers(options).measure(signals)) / 1e6}});
  }
  progress.clear();
  Json median = median_of(report["runs"]);
  report["median"] = std::move(median);
  if (!options.json.takes_stdout()) {
    fmt::print("{} waiting subscribers used {:.3f} ms of CPU together in {} s\n",
               options.subscribers, report["median"]["cpu_ms"].get<double>(), options.seconds);
  }
  options.json.write(report);
}

}  // namespace

void add_idle(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("idle", "The CPU time of waiting subscribers");
  auto options = std::make_shared<Options>();
  command->add_option("--subscribers", options->subscribers, "Waiting processes")
      ->check(CLI::Range(1u, 200u))
      ->option_text("N [8]");
  command->add_option("--seconds", options->seconds, "How long they wait")
      ->check(CLI::Range(0.01, 86400.0))
      ->option_text("SECONDS [10]");
  add_runs_option(*command, options->runs);
  add_pin_option(*command, options->cpus);
  options->json.add_to(*command);
  command->footer("Example:\n  leat bench idle --subscribers 8 --seconds 10");
  command->callback([options] { run_idle(*options); });
}

}  // namespace leat::bench
