// `leat demo`: ShmFifo's job, done by separate processes that verify every record.
//
// Three workloads, each in three phases: one process after the other as ShmFifo was measured; at the
// same time; and to three subscribers. Everything happens in a private directory that is gone after.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/cli.hpp"
#include "cli/topic/room.hpp"
#include "demo_processes.hpp"
#include "demo_report.hpp"
#include "demo_workloads.hpp"
#include "leat/admin.hpp"
#include "leat/os/os.hpp"
#include "tool/private_directory.hpp"

namespace leat::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Phase {
  const char* name;
  std::uint32_t subscribers;
  bool is_sequential;
};
constexpr Phase kPhases[] = {
    {"sequential", 1, true}, {"concurrent", 1, false}, {"broadcast", 3, false}};
constexpr std::uint64_t kConcurrentCapacity = 8 << 20;

double to_ms(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }

// Below the directory for topics, and gone when the demo ends.
tool::PrivateDirectory make_private_directory() {
  const std::string parent = usable_directory(Missing::is_made);
  auto directory = tool::PrivateDirectory::make(parent, tool::kDemoPrefix);
  if (!directory)
    throw system_failure("cannot make a directory in " + parent, directory.error().system_error);
  return std::move(*directory);
}

// Options of a topic that holds all the records at once. A segment that does not take one more
// record ends early, hence the allowance.
TopicOptions holding_all(std::uint64_t records, std::uint64_t record_size) {
  constexpr std::uint64_t kSegment = 1 << 20;
  constexpr std::uint64_t kSegments = 256;
  const std::uint64_t each = room_of_record(record_size);
  const std::uint64_t total = records * each;
  TopicOptions options;
  options.retain_all = true;
  options.segment_bytes = std::max(kSegment, total / kSegments);
  options.segment_bytes = sizes_of(options).segment_bytes;  // Whole pages.
  const std::uint64_t per_segment = options.segment_bytes / each;
  options.capacity_bytes = (records / per_segment + 2) * options.segment_bytes;
  return options;
}

TopicOptions topic_options(const Phase& phase, std::uint64_t records, std::uint64_t record_size) {
  TopicOptions options = phase.is_sequential ? holding_all(records, record_size)
                                             : TopicOptions{.capacity_bytes = kConcurrentCapacity};
  options.single_writer = true;
  options.participants = 8;
  return options;
}

// ---- In the child processes --------------------------------------------------------------------

struct Job {
  std::string directory;
  const Workload* workload = nullptr;
  std::uint64_t records = 0;
};

Topic open_topic(const Job& job) {
  auto topic = Topic::open(job.workload->name, Deadline::immediate(), job.directory);
  if (!topic) fail(topic.error(), job.workload->name);
  return std::move(*topic);
}

void publish_all(const Job& job, WorkerReport& report, const Start& start) {
  constexpr std::uint64_t kReportEvery = 4096;
  const std::int64_t began = os::now_ns();
  const Topic topic = open_topic(job);
  auto publisher = topic.publisher({.exclusive = true});
  if (!publisher) fail(publisher.error(), topic.name());
  std::string buffer;
  report.prepare_ns = os::now_ns() - began;
  start.wait();

  const std::int64_t first = os::now_ns();
  for (std::uint64_t i = 0; i < job.records; ++i) {
    auto offset = publisher->publish(job.workload->make(buffer));
    if (!offset) fail(offset.error(), topic.name());
    if (*offset != i) {
      throw Failure{kExitFailed, fmt::format("record {} was published with offset {}", i, *offset)};
    }
    if (i % kReportEvery == 0) report.done.store(i, std::memory_order_relaxed);
  }
  report.work_ns = os::now_ns() - first;
  report.done.store(job.records, std::memory_order_relaxed);
  report.verified = job.records;
}

// Offsets are dense, so "offset n is the n-th record, with the right content, up to the last one"
// is "once and in order".
void verify_all(const Job& job, WorkerReport& report, const Start& start) {
  constexpr std::size_t kAtOnce = 4096;
  const std::int64_t began = os::now_ns();
  const Topic topic = open_topic(job);
  auto subscriber = topic.subscriber({.from = From::beginning});
  if (!subscriber) fail(subscriber.error(), topic.name());
  std::string problem;
  subscriber->on_event([&problem](const Event& event) {
    problem = fmt::format("{} records from {} on are missing ({})", event.count, event.first,
                          name_of(event.reason));
  });
  report.prepare_ns = os::now_ns() - began;
  start.wait();

  std::uint64_t next = 0;
  std::int64_t first = 0;
  const auto verify = [&](const Record& record) {
    if (next == 0) first = os::now_ns();
    if (record.offset != next) [[unlikely]] {
      problem = fmt::format("offset {} came where {} was expected", record.offset, next);
    } else if (!job.workload->is_right(record.text())) [[unlikely]] {
      problem = fmt::format("record {} has the wrong content", record.offset);
    }
    ++next;
  };
  while (next < job.records) {
    auto count = subscriber->poll(kAtOnce, verify);
    if (!count) fail(count.error(), topic.name());
    if (!problem.empty()) throw Failure{kExitFailed, problem};
    report.done.store(next, std::memory_order_relaxed);
    if (*count == 0) (void)subscriber->wait();
  }
  report.work_ns = os::now_ns() - first;
  report.verified = next;

  auto more = subscriber->poll(1, [](const Record&) {});
  if (!more || *more != 0 || next != job.records)
    throw Failure{kExitFailed, "more records came than were published"};
}

// ---- In the parent -----------------------------------------------------------------------------

class Progress {
 public:
  explicit Progress(std::uint64_t steps) : steps_{steps}, is_on_{::isatty(STDERR_FILENO) != 0} {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void next(std::string what) {
    what_ = std::move(what);
    ++step_;
  }
  // `part`: how much of the current step is done, 0 to 1.
  void show(double part) {
    constexpr std::size_t kWidth = 30;
    if (!is_on_) return;
    const double done =
        (static_cast<double>(step_ - 1) + std::min(part, 1.0)) / static_cast<double>(steps_);
    const auto filled = static_cast<std::size_t>(done * kWidth);
    fmt::print(stderr, "\r\033[K[{}{}] {:3.0f} %  {}", std::string(filled, '#'),
               std::string(kWidth - filled, '-'), done * 100, what_);
    std::fflush(stderr);
  }
  void clear() const {
    if (is_on_) fmt::print(stderr, "\r\033[K");
  }

 private:
  std::string what_;
  std::uint64_t steps_;
  std::uint64_t step_ = 0;
  bool is_on_;
};

class Demo {
 public:
  Demo(std::uint64_t records, std::uint64_t runs)
      : runs_{runs}, progress_{runs * workloads().size() * std::size(kPhases)} {
    report_.records = records;
  }

  void check_memory() const {
    std::uint64_t needed = kConcurrentCapacity;
    for (const Workload& workload : workloads()) {
      needed = std::max(needed, holding_all(report_.records, workload.record_size).capacity_bytes);
    }
    check_room(directory_.path(), needed + needed / 64);
  }

  // Calls `on_phase(phase, title)` after each.
  template <class OnPhase>
  void run_all(OnPhase&& on_phase) {
    for (const Workload& workload : workloads()) {
      std::string title = fmt::format("{}, {} bytes", workload.what, workload.record_size);
      for (const Phase& phase : kPhases) {
        DemoPhase& done = report_.phases.emplace_back(DemoPhase{workload.name, phase.name, {}});
        for (std::uint64_t run = 1; run <= runs_; ++run) {
          progress_.next(
              fmt::format("{}, {}, run {} of {}", workload.name, phase.name, run, runs_));
          done.runs.push_back(run_once(workload, phase));
        }
        progress_.clear();
        on_phase(done, title);
        title.clear();
      }
    }
    report_.verified = true;
  }

  const DemoReport& report() const noexcept { return report_; }

 private:
  DemoRun run_once(const Workload& workload, const Phase& phase) {
    const Job job{directory_.path(), &workload, report_.records};
    TopicOptions options = topic_options(phase, job.records, workload.record_size);
    options.directory = job.directory;
    const std::int64_t began = os::now_ns();
    // The handle is dropped at once: none may be open when children are forked.
    if (auto topic = Topic::create(workload.name, options); !topic) {
      if (topic.error().code == Errc::no_space) check_room(job.directory, options.capacity_bytes);
      fail(topic.error(), workload.name);
    }
    const std::int64_t create_ns = os::now_ns() - began;
    DemoRun run =
        phase.is_sequential ? run_sequential(job) : run_concurrent(job, phase.subscribers);
    run.prepare_ms += to_ms(create_ns);
    if (auto deleted = Topic::delete_topic(workload.name, {.directory = job.directory}); !deleted) {
      fail(deleted.error(), workload.name);
    }
    return run;
  }

  DemoRun run_sequential(const Job& job) {
    const auto publisher = start("publisher", job, publish_all);
    finish({&publisher, 1}, 0, 2);
    const auto subscriber = start("subscriber", job, verify_all);
    finish({&subscriber, 1}, 1, 2);
    report_.published += publisher->report().verified;
    report_.received += subscriber->report().verified;
    return {to_ms(publisher->report().prepare_ns + subscriber->report().prepare_ns),
            to_ms(publisher->report().work_ns), to_ms(subscriber->report().work_ns)};
  }

  DemoRun run_concurrent(const Job& job, std::uint32_t subscribers) {
    std::vector<std::unique_ptr<Worker>> workers;
    workers.push_back(start("publisher", job, publish_all));
    for (std::uint32_t i = 1; i <= subscribers; ++i) {
      workers.push_back(start(subscribers == 1 ? "subscriber" : fmt::format("subscriber {}", i),
                              job, verify_all));
    }
    finish(workers, 0, 1);
    DemoRun run;
    for (const auto& worker : workers) {
      const WorkerReport& report = worker->report();
      run.prepare_ms = std::max(run.prepare_ms, to_ms(report.prepare_ns));
      if (worker == workers.front()) {
        run.publish_ms = to_ms(report.work_ns);
        report_.published += report.verified;
      } else {
        run.subscribe_ms = std::max(run.subscribe_ms, to_ms(report.work_ns));
        report_.received += report.verified;
      }
    }
    return run;
  }

  std::unique_ptr<Worker> start(const std::string& name, const Job& job,
                                void (*work)(const Job&, WorkerReport&, const Start&)) {
    return std::make_unique<Worker>(
        fmt::format("{} of workload {}", name, job.workload->name),
        [&job, work](WorkerReport& report, const Start& go) { work(job, report, go); });
  }

  // Starts them together when all are ready, and waits for their end. For the progress bar this is
  // part `part` of `parts` of a run.
  void finish(Workers workers, int part, int parts) {
    const auto deadline =
        Clock::now() + std::chrono::seconds{60} +
        std::chrono::microseconds{50} * static_cast<std::int64_t>(report_.records);
    wait_until_ready(workers, deadline);
    for (const auto& worker : workers) worker->go();
    wait_until_done(workers, deadline, [&] {
      std::uint64_t least = report_.records;
      for (const auto& worker : workers) {
        least = std::min(least, worker->report().done.load(std::memory_order_relaxed));
      }
      progress_.show((part + static_cast<double>(least) / static_cast<double>(report_.records)) /
                     parts);
    });
  }

  tool::PrivateDirectory directory_ = make_private_directory();
  std::uint64_t runs_;
  Progress progress_;
  DemoReport report_;
};

void demo(std::uint64_t records, std::uint64_t runs, bool json) {
  catch_stop_signals();
  Demo all{records, runs};
  all.check_memory();
  if (!json) print_demo_head(records, runs);
  const auto print_result = [&] {
    if (json)
      fmt::print("{}\n", demo_json(all.report()));
    else
      print_demo_verdict(all.report());
    std::fflush(stdout);
  };
  try {
    all.run_all([&](const DemoPhase& phase, const std::string& title) {
      if (!json) print_demo_phase(phase, title, records);
      std::fflush(stdout);
    });
  } catch (const Failure& failure) {
    if (failure.exit_code() == kExitFull) throw;
    print_result();
    throw Failure{kExitFailed, failure.what()};  // Whatever it was: not verified.
  }
  print_result();
}

}  // namespace

void add_demo_command(CLI::App& app) {
  struct Arguments {
    std::uint64_t records = 1'000'000;
    std::uint64_t runs = 5;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "demo",
      "Send ShmFifo's three workloads between processes, verify every record, and show the times");
  add_number(*command, "--records", arguments->records, 1, 1'000'000'000, "Records per run")
      ->default_str("1000000");
  add_number(*command, "--runs", arguments->runs, 1, 1000, "Runs of each workload and phase")
      ->default_str("5");
  command->add_flag("--json", arguments->json, "For programs");
  command->footer("Example:\n  leat demo --records 100000 --runs 3");
  command->callback([arguments] { demo(arguments->records, arguments->runs, arguments->json); });
}

}  // namespace leat::cli
