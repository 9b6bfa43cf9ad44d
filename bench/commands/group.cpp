// leat bench group: what a record costs that goes to one member of a group, beside other message queues.
//
// Group and queues are measured in turns, each by the same number of processes on the same CPUs with
// the same payloads and checks, so that everything else that the machine does affects all alike. The
// queues are much slower; without --records they carry a tenth of the records.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <optional>

#include "bench/floors/floors.hpp"
#include "bench/ipc/queue_group.hpp"
#include "bench/leat/group.hpp"
#include "bench/output/output.hpp"
#include "bench/statistics.hpp"
#include "commands.hpp"

namespace leat::bench {
namespace {

constexpr std::array<std::size_t, 3> kGroupSizes = {8, 100, 1024};
constexpr std::array<std::uint32_t, 3> kCrowds = {1, 2, 4};  // Publishers, and as many members.
constexpr std::uint32_t kMaxBatch = 1024;  // As many as a member may hold.
// What a group costs the publishers of a topic is measured with one publisher at this rate. A subscriber
// and a member keep up with it even if they share a CPU.
constexpr std::uint64_t kBesideRate = 500'000;
constexpr std::uint64_t kBesideRecords = 100'000;
constexpr std::size_t kBesideSize = 100;

struct GroupArguments {
  std::size_t size = 100;
  std::uint64_t records = 0;  // 0: as many as take about 0.2 s.
  std::uint32_t publishers = 1;
  std::uint32_t members = 1;
  std::string mode = "shared";
  std::string batch = "auto";
  std::string instance = "own";
  std::uint32_t keys = 0;
  bool by_key = false;
  bool peers = false;
  int runs = 5;
  std::vector<int> cpus;
  std::string verify = "ends";
  JsonOption json;
};

std::uint64_t default_records(std::size_t size) { return 400'000'000 / (size + 100); }

// Another queue, measured as often as the group, in turns with it. In the JSON: a peer.
struct QueueRuns {
  QueueKind kind;
  GroupLoad load;
  std::uint64_t depth;
  std::vector<MessageCost> costs;
};

// One line of the table.
struct Plan {
  GroupLoad load;
  bool shared_instance = false;  // Threads that share one CSimpleIPC, in turns with one for each.
};

// All measurements of it.
struct GroupCase {
  Plan plan;
  std::vector<MessageCost> costs;
  std::vector<MessageCost> own_costs;  // With a shared instance: those of own instances.
  std::vector<QueueRuns> peers;
  std::vector<std::string> notes;
  std::vector<double> cache_lines_ns;  // Round trips.
  std::vector<double> floors_ns;
};

std::string title_of(const Plan& plan) {
  const GroupLoad& load = plan.load;
  if (plan.shared_instance) {
    return fmt::format("one CSimpleIPC, {} to {}", load.publishers, load.members);
  }
  std::string title =
      fmt::format("{}, {} to {}", load.mode == Mode::exclusive ? "exclusive" : "shared",
                  load.publishers, load.members);
  if (load.keys != 0) title += fmt::format(", {} keys", load.keys);
  if (load.by_key) title += ", by key";
  if (load.batch != 0) title += fmt::format(", {} at a time", load.batch);
  return title;
}

// The project's goals: how many times the rate of Boost's queue, and records per second; or, with a shared
// instance, at most how many times the cost of own ones.
struct Target {
  double times_boost_mq = 0;
  double records_per_second = 0;
  double ratio_to_own = 0;
};

std::optional<Target> target_of(const Plan& plan) {
  const GroupLoad& load = plan.load;
  if (plan.shared_instance) return Target{.ratio_to_own = 1.3};
  if (load.publishers != load.members || load.keys != 0) return std::nullopt;
  const std::uint32_t crowd = load.members;
  if (load.batch == 1 && ((load.size == 8 && crowd == 1) || (load.size == 100 && crowd == 4))) {
    return Target{.times_boost_mq = 2};
  }
  if (load.batch != 0) return std::nullopt;
  if (load.size == 8 && crowd == 1) return Target{.times_boost_mq = 4, .records_per_second = 20e6};
  if (load.size == 100 && (crowd == 2 || crowd == 4)) return Target{.times_boost_mq = 5};
  return std::nullopt;
}

std::vector<Plan> all_plans(const GroupLoad& common, bool choose_records) {
  std::vector<Plan> plans;
  const auto add = [&](std::size_t size, std::uint32_t crowd, std::uint32_t batch,
                       bool shared_instance = false) {
    GroupLoad load = common;
    load.size = size;
    load.publishers = load.members = crowd;
    load.batch = batch;
    if (choose_records) load.records = default_records(size);
    plans.push_back({load, shared_instance});
  };
  for (const std::size_t size : kGroupSizes) {
    for (const std::uint32_t crowd : kCrowds) add(size, crowd, 0);
  }
  add(8, 1, 1);
  add(100, 4, 1);
  add(8, 1, 1, true);
  add(8, 4, 1, true);
  return plans;
}

// The queues that this machine has, and a note about each that it lacks.
void find_peers(GroupCase& measured, bool choose_records) {
  for (const QueueKind kind : kQueueKinds) {
    try {
      GroupLoad load = measured.plan.load;
      if (choose_records) load.records = std::max<std::uint64_t>(load.records / 10, 1000);
      measured.peers.push_back({kind, load, make_queue(kind, load.size)->depth(), {}});
    } catch (const Failure& failure) {
      measured.notes.push_back(
          fmt::format("{} is not measured: {}", name_of(kind), failure.what()));
    }
  }
}

void measure_in_turns(GroupCase& measured, const GroupArguments& options, const Progress& progress) {
  const GroupLoad& load = measured.plan.load;
  const Placement placement{options.cpus};
  for (int run = 1; run <= options.runs; ++run) {
    const auto show = [&](const char* what) {
      progress.show(fmt::format("{} B, {}, run {} of {}: {}", load.size, title_of(measured.plan),
                                run, options.runs, what));
    };
    show("floor");
    measured.cache_lines_ns.push_back(cache_line_round_trip_ns(kCacheLineTrips, placement));
    measured.floors_ns.push_back(ring_ns_per_record({.size = load.size,
                                                     .records = load.records,
                                                     .verify = load.verify,
                                                     .source = PayloadSource::copied},
                                                    placement));
    if (measured.plan.shared_instance) {
      show("one instance");
      measured.costs.push_back(measure_simple_ipc(Instance::shared, load, options.cpus));
      show("own instances");
      measured.own_costs.push_back(measure_simple_ipc(Instance::own, load, options.cpus));
    } else {
      show("group");
      measured.costs.push_back(measure_group(load, options.cpus));
    }
    for (QueueRuns& peer : measured.peers) {
      show(name_of(peer.kind));
      peer.costs.push_back(measure_queue(peer.kind, peer.load, options.cpus));
    }
  }
}

Json parameters_of(const Plan& plan) {
  const GroupLoad& load = plan.load;
  Json parameters = {{"size", load.size},
                     {"records", load.records},
                     {"publishers", load.publishers},
                     {"members", load.members},
                     {"mode", load.mode == Mode::exclusive ? "exclusive" : "shared"},
                     {"batch", load.batch == 0 ? Json("auto") : Json(load.batch)},
                     {"keys", load.keys},
                     {"by_key", load.by_key},
                     {"instance", plan.shared_instance ? "shared" : "own"},
                     {"verify", load.verify == Verify::full ? "full" : "ends"}};
  if (plan.shared_instance) {
    parameters["blocks"] = kIpcBlocks;
  } else {
    parameters["capacity_bytes"] = kLogCapacityBytes;
  }
  return parameters;
}

// CPU time of all publishers and members.
double cpu_ns(const Json& cost) {
  return cost["publisher_cpu_ns_per_record"].get<double>() +
         cost["member_cpu_ns_per_record"].get<double>();
}

// "times_boost_mq"
std::string times_key(QueueKind kind) {
  std::string key = fmt::format("times_{}", name_of(kind));
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

Json results_of(const GroupCase& measured) {
  Json runs = to_json(measured.costs, "member");
  const Json middle = median_of(runs);
  const double cost_ns = middle["ns_per_record"];
  const double floor_ns = median(measured.floors_ns);
  Json results = {{"runs", std::move(runs)},
                  {"median", middle},
                  {"floor", floor_ns},
                  {"ratio", cost_ns / floor_ns}};
  add_distance(results, measured.cache_lines_ns);
  if (measured.plan.shared_instance) {
    Json own_runs = to_json(measured.own_costs, "member");
    const Json own_middle = median_of(own_runs);
    results["own_instances"] = {{"runs", std::move(own_runs)}, {"median", own_middle}};
    results["ratio_to_own"] = cost_ns / own_middle["ns_per_record"].get<double>();
  }
  if (!measured.peers.empty()) results["peers"] = Json::array();
  for (const QueueRuns& peer : measured.peers) {
    Json peer_runs = to_json(peer.costs, "member");
    const Json peer_middle = median_of(peer_runs);
    results[times_key(peer.kind)] = peer_middle["ns_per_record"].get<double>() / cost_ns;
    results[times_key(peer.kind) + "_cpu"] = cpu_ns(peer_middle) / cpu_ns(middle);
    results["peers"].push_back({{"name", name_of(peer.kind)},
                                {"depth", peer.depth},
                                {"records", peer.load.records},
                                {"runs", std::move(peer_runs)},
                                {"median", peer_middle}});
  }
  if (const auto target = target_of(measured.plan)) {
    const auto add = [&](const char* name, double value) {
      if (value != 0) results["target"][name] = value;
    };
    add("times_boost_mq", target->times_boost_mq);
    add("records_per_second", target->records_per_second);
    add("ratio_to_own", target->ratio_to_own);
  }
  if (!measured.notes.empty()) results["notes"] = measured.notes;
  return results;
}

// What a group costs the publisher of its topic, which has one subscriber either way.
Json measure_beside_subscriber(const GroupArguments& options, const Progress& progress) {
  const GroupLoad load{.size = kBesideSize,
                       .records = options.records != 0 ? options.records : kBesideRecords};
  Json runs = Json::array();
  for (int run = 1; run <= options.runs; ++run) {
    progress.show(fmt::format("a group beside a subscriber, run {} of {}", run, options.runs));
    Json costs;
    costs["without_group"] = publisher_cpu_ns(load, kBesideRate, false, options.cpus);
    costs["with_group"] = publisher_cpu_ns(load, kBesideRate, true, options.cpus);
    runs.push_back({{"publisher_cpu_ns_per_record", std::move(costs)}});
  }
  const Json middle = median_of(runs);
  const Json& costs = middle["publisher_cpu_ns_per_record"];
  return {{"parameters", {{"size", load.size}, {"records", load.records}, {"rate", kBesideRate}}},
          {"runs", std::move(runs)},
          {"median", middle},
          {"ratio", costs["with_group"].get<double>() / costs["without_group"].get<double>()}};
}

void print_group_head(const Json& report, int runs) {
  fmt::print("{}; {}\n", machine_line(report), runs_line(runs));
  fmt::print("Nanoseconds per record; CPU time is of all publishers or all members together.\n\n");
  fmt::print("{:<28} {:>5} {:>8} {:>8} {:>8} {:>8} {:>7} {:>8} {:>6} {:>10} {:>8} {:>6} {:>10}\n",
             "", "bytes", "ns", "M/s", "pub CPU", "mem CPU", "floor", "boost-mq", "times", "target",
             "mq-posix", "times", "line");
}

std::string peer_ns(const Json& results, QueueKind kind) {
  for (const Json& one : results.value("peers", Json::array())) {
    if (one["name"] == name_of(kind)) {
      return fmt::format("{:.0f}", one["median"]["ns_per_record"].get<double>());
    }
  }
  return "";
}

std::string times(const Json& results, QueueKind kind) {
  const std::string key = times_key(kind);
  return results.contains(key) ? fmt::format("{:.1f}", results[key].get<double>()) : "";
}

std::string target_text(const Plan& plan) {
  const auto target = target_of(plan);
  if (!target || target->times_boost_mq == 0) return "";
  std::string text = fmt::format("{:.0f}", target->times_boost_mq);
  if (target->records_per_second != 0) {
    text += fmt::format(", {:.0f} M/s", target->records_per_second / 1e6);
  }
  return text;
}

void print_row(const Plan& plan, const Json& results) {
  const Json& middle = results["median"];
  fmt::print(
      "{:<28} {:>5} {:>8.1f} {:>8.2f} {:>8.1f} {:>8.1f} {:>7.1f} {:>8} {:>6} {:>10} {:>8} {:>6} "
      "{:>10}\n",
      title_of(plan), plan.load.size, middle["ns_per_record"].get<double>(),
      middle["records_per_second"].get<double>() / 1e6,
      middle["publisher_cpu_ns_per_record"].get<double>(),
      middle["member_cpu_ns_per_record"].get<double>(), results["floor"].get<double>(),
      peer_ns(results, QueueKind::boost_mq), times(results, QueueKind::boost_mq), target_text(plan),
      peer_ns(results, QueueKind::mq_posix), times(results, QueueKind::mq_posix),
      distance_text(results));
  if (plan.shared_instance) {
    fmt::print(
        "  with an instance for each thread {:.1f} ns: one for all costs {:.2f} times as much "
        "(target: at most {:.1f})\n",
        results["own_instances"]["median"]["ns_per_record"].get<double>(),
        results["ratio_to_own"].get<double>(), results["target"]["ratio_to_own"].get<double>());
  }
  for (const Json& note : results.value("notes", Json::array())) {
    fmt::print("  {}\n", note.get<std::string>());
  }
  std::fflush(stdout);
}

void print_beside_subscriber(const Json& beside) {
  const Json& costs = beside["median"]["publisher_cpu_ns_per_record"];
  fmt::print(
      "\nA publisher's CPU time per record beside one subscriber: {:.1f} ns; with a group, too: "
      "{:.1f} ns ({:.2f} times)\n",
      costs["without_group"].get<double>(), costs["with_group"].get<double>(),
      beside["ratio"].get<double>());
}

void print_foot(bool with_peers) {
  fmt::print(
      "\nfloor: a bare ring between two processes.\n"
      "{}",
      kDistanceNote);
  if (with_peers) {
    fmt::print(
        "boost-mq, mq-posix: the same by Boost.Interprocess' message_queue and a POSIX message "
        "queue,\none record at a time; times: how often the group's records per second theirs; "
        "target: for boost-mq.\n");
  }
}

// "auto" is 0.
std::uint32_t batch_of(const std::string& text) {
  if (text == "auto") return 0;
  std::uint32_t batch = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, batch);
  if (error != std::errc{} || stop != end || batch < 1 || batch > kMaxBatch) {
    throw Failure(kExitUsage, fmt::format("--batch {}: neither auto nor a number from 1 to {}",
                                          text, kMaxBatch));
  }
  return batch;
}

Plan plan_of(const GroupArguments& options) {
  const bool exclusive = options.mode == "exclusive";
  const bool shared_instance = options.instance == "shared";
  std::uint32_t batch = batch_of(options.batch);
  if (exclusive && options.publishers > 1) {
    throw Failure(kExitUsage,
                  "an exclusive publisher is the only one: --publishers 1 or --mode shared");
  }
  if (shared_instance) {
    if (exclusive || batch > 1 || options.keys != 0 || options.by_key) {
      throw Failure(kExitUsage,
                    "CSimpleIPC reads one block at a time and is never exclusive: --instance "
                    "shared goes without --batch, --mode and --by-key");
    }
    batch = 1;
  }
  return {
      .load = {.size = options.size,
               .records = options.records != 0 ? options.records : default_records(options.size),
               .publishers = options.publishers,
               .members = options.members,
               .mode = exclusive ? Mode::exclusive : Mode::shared,
               .batch = batch,
               .keys = options.by_key && options.keys == 0 ? 8 : options.keys,
               .by_key = options.by_key,
               .verify = options.verify == "full" ? Verify::full : Verify::ends},
      .shared_instance = shared_instance};
}

void run_group(GroupArguments options, bool has_choice) {
  const Plan chosen = plan_of(options);
  options.json.check();
  (void)topic_directory();
  options.cpus = chosen_cpus(options.cpus);
  const bool choose_records = options.records == 0;
  const auto plans =
      has_choice ? std::vector<Plan>{chosen} : all_plans(chosen.load, choose_records);

  Json parameters = {{"runs", options.runs}, {"pin", options.cpus}, {"peers", options.peers}};
  if (has_choice) parameters.update(parameters_of(chosen));
  Json report = new_report(parameters);
  const bool with_table = !options.json.takes_stdout();
  if (with_table) print_group_head(report, options.runs);

  const SignalScope signals;
  const Progress progress;
  for (const Plan& plan : plans) {
    GroupCase measured;
    measured.plan = plan;
    if (options.peers) find_peers(measured, choose_records);
    measure_in_turns(measured, options, progress);
    progress.clear();
    Json results = results_of(measured);
    if (with_table) print_row(plan, results);
    if (has_choice) {
      report.update(results);
    } else {
      Json entry = {{"parameters", parameters_of(plan)}};
      entry.update(results);
      report["cases"].push_back(std::move(entry));
    }
  }
  if (!has_choice) {
    report["group_beside_subscriber"] = measure_beside_subscriber(options, progress);
    progress.clear();
    if (with_table) print_beside_subscriber(report["group_beside_subscriber"]);
  }
  if (with_table) print_foot(options.peers);
  options.json.write(report);
}

constexpr char kGroupFooter[] =
    "Each publisher and member is a process of its own, pinned to a CPU: publishers to the first "
    "ones, members to the rest. The topic holds 8 MiB and blocks when it is full; publishers send "
    "one record at a time. Each record is verified, and that exactly one member received it.\n"
    "The queues of --peers have the same processes and checks, and take one record at a time.\n"
    "Boost's holds 1024 records, the POSIX one as many as /proc/sys/fs/mqueue/msg_max allows.\n"
    "Without --records they carry a tenth of the group's, since they take so much longer.\n"
    "Without --members, --publishers, --size, --batch, --mode, --keys, --by-key and --instance: a "
    "table of the usual cases, and what a group costs the publisher of a topic that has a "
    "subscriber.\n\n"
    "Example:\n  leat bench group --size 100 --publishers 2 --members 2 --peers --pin 0,1 --json";

}  // namespace

void add_group(CLI::App& bench) {
  CLI::App* command =
      bench.add_subcommand("group", "What a record costs that one member of a group gets");
  auto options = std::make_shared<GroupArguments>();
  Choices choice;
  choice(command->add_option("--members", options->members, "Processes that share the records")
             ->check(CLI::Range(1u, kMaxGroupRoles)),
         "N [1]");
  choice(command->add_option("--publishers", options->publishers, "Publishing processes")
             ->check(CLI::Range(1u, kMaxGroupRoles)),
         "N [1]");
  choice(command->add_option("--size", options->size, "Bytes of a record")
             ->check(CLI::Range(kMinGroupSize, kMaxGroupSize)),
         "BYTES [100]");
  command
      ->add_option("--records", options->records,
                   "Records of one run, by all publishers together; by default for about 0.2 s")
      ->check(CLI::Range(std::uint64_t{1}, kMaxGroupRecords))
      ->option_text("N");
  choice(command->add_option("--batch", options->batch,
                             "Records that a member takes at a time; auto: as many as there are"),
         "auto|N [auto]");
  choice(
      command
          ->add_option("--mode", options->mode, "Whether the publisher may be the topic's only one")
          ->check(CLI::IsMember({"exclusive", "shared"})),
      "exclusive|shared [shared]");
  choice(command
             ->add_option("--instance", options->instance,
                          "own: processes with a member each; shared: threads of one process with "
                          "one CSimpleIPC (leat/compat/simple_ipc.hpp), beside one for each")
             ->check(CLI::IsMember({"own", "shared"})),
         "own|shared [own]");
  choice(command
             ->add_option("--keys", options->keys,
                          "Different keys that the records have; 0: none, with --by-key 8")
             ->check(CLI::Range(0u, 100'000'000u)),
         "N [0]");
  choice(command->add_flag(
      "--by-key", options->by_key, "The group gives equal keys to one member at a time, in order"));
  command->add_flag("--peers", options->peers,
                    "Also measure Boost's message_queue and a POSIX message queue, in turns");
  command
      ->add_option("--verify", options->verify,
                   "Check the sequence at both ends of a record, or all its bytes")
      ->check(CLI::IsMember({"ends", "full"}))
      ->option_text("ends|full [ends]");
  add_runs_option(*command, options->runs);
  add_pin_option(*command, options->cpus);
  options->json.add_to(*command);
  command->footer(kGroupFooter);
  command->callback([options, choice] { run_group(*options, choice.was_made()); });
}

}  // namespace leat::bench
