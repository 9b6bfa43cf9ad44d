// leat bench broker: what a message costs that goes through `leat serve`, beside what it costs without.
//
// In turns with the broker, the same clients with the same payloads and checks are measured with nobody between them, and
// with a process that only copies, which stands in for LightQ.
#include "broker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "bench/broker/measure.hpp"
#include "commands.hpp"

namespace leat::bench {
namespace {

using broker::RouteLoad;

constexpr std::uint64_t kFirstMessageRate = 50;  // Everybody sleeps in between.
constexpr std::uint64_t kUsualRate = 100'000;

struct BrokerArguments {
  std::string framing = "zmq";
  std::string type = "queue";
  std::size_t size = 100;
  std::uint64_t messages = 0;  // 0: as many as take about 0.5 s.
  std::uint32_t producers = 1;
  std::uint32_t consumers = 1;
  std::uint64_t rate = 0;
  int runs = 5;
  std::vector<int> cpus;
  bool lightq_tables = false;
  bool disturbed = false;
  double seconds = 2;
  std::uint32_t idle = 10'000;
  JsonOption json;
};

// One line of a table.
struct BrokerCase {
  std::string framing;  // zmq, socket, or zmq-to-socket.
  std::string type;
  RouteLoad load;
};

std::uint64_t default_messages(const RouteLoad& load) {
  if (load.rate != 0) return std::max<std::uint64_t>(load.rate, 100);
  return 100'000'000 / (load.size + 100);
}

std::string title_of(const BrokerCase& one) {
  const RouteLoad& load = one.load;
  const std::string what = one.framing + ", " + one.type;
  if (load.rate == kFirstMessageRate) return what + ", after a pause";
  if (load.rate != 0) return fmt::format("{}, {} a second", what, load.rate);
  return fmt::format("{}, {} to {}", what, load.producers, load.consumers);
}

// What the project wants of the ratios in results_of(), by their names.
Json target_of(const BrokerCase& one) {
  const RouteLoad& load = one.load;
  Json target = Json::object();
  if (load.rate == kFirstMessageRate) {
    target["p50_times_direct"] = 1.5;
  } else if (load.rate == kUsualRate) {
    target["p50_times_direct"] = 2;
    target["p99_times_direct"] = 1.5;
  } else if (load.rate != 0 || load.producers != 1 || load.consumers != 1) {
    return target;
  } else if (one.type == "file") {
    target["of_queue"] = 0.6;
  } else if (one.framing == "zmq-to-socket") {
    target["of_direct"] = 0.7;
  } else if (one.framing == "socket") {
    if (load.size == 100) target["of_relay"] = 0.45;
    if (load.size == 1024) target["of_relay"] = 0.75;
  } else {
    target["times_stand_in"] = 1.5;
    if (load.size == 100) target["of_direct"] = 0.57;
    if (load.size == 1024) target["of_direct"] = 1;
  }
  return target;
}

std::vector<BrokerCase> all_cases(std::uint64_t messages) {
  std::vector<BrokerCase> cases;
  for (const char* const framing : {"zmq", "zmq-to-socket", "socket"}) {
    for (const std::size_t size : {100u, 1024u}) cases.push_back({framing, "queue", {.size = size}});
  }
  for (const char* const framing : {"zmq", "socket"}) {
    for (const std::size_t size : {100u, 1024u}) cases.push_back({framing, "file", {.size = size}});
  }
  cases.push_back({"zmq", "queue", {.producers = 2, .consumers = 4}});
  for (const std::uint64_t rate : {kUsualRate, kFirstMessageRate})
    cases.push_back({"zmq", "queue", {.rate = rate}});
  for (BrokerCase& one : cases) one.load.messages = messages != 0 ? messages : default_messages(one.load);
  return cases;
}

// --- Measuring -----------------------------------------------------------------------------------

Json measure(broker::Route& route, const RouteLoad& load, const std::vector<int>& cpus) {
  if (load.rate != 0) return to_json(measure_route_latency(route, load, cpus));
  const broker::RouteCost cost = measure_route(route, load, cpus);
  return {{"messages_per_second", cost.clients.per_second()},
          {"ns_per_message", cost.clients.ns},
          {"producer_cpu_ns_per_message", cost.clients.sender_cpu_ns},
          {"consumer_cpu_ns_per_message", cost.clients.receiver_cpu_ns},
          {"middle_cpu_ns_per_message", cost.middle_cpu_ns}};
}

Json measure_served(const BrokerCase& one, const std::string& type, const std::vector<int>& cpus) {
  const BrokerPlaces places;
  const broker::Framing framing{.is_raw_in = one.framing == "socket",
                                .is_raw_out = one.framing != "zmq"};
  broker::ServedTopic served{places.places(), type, framing, one.load.rate != 0};
  return measure(served, one.load, cpus);
}

// Something that is measured as often as the broker, in turns with it. In the JSON: a peer.
struct Contestant {
  std::string name;
  std::function<Json()> measure;
  Json runs = Json::array();
};

std::vector<Contestant> contestants_of(const BrokerCase& one, const std::vector<int>& cpus) {
  std::vector<Contestant> all;
  const auto add = [&](const char* name, const auto& make_route) {
    all.push_back({name, [=] {
                     auto route = make_route();
                     return measure(*route, one.load, cpus);
                   }});
  };
  all.push_back({"broker", [=] { return measure_served(one, one.type, cpus); }});
  if (one.framing != "socket") {
    add("direct", [] { return std::make_unique<broker::Direct>(); });
    add("stand_in", [] { return std::make_unique<broker::StandIn>(); });
  } else if (one.load.producers == 1 && one.load.consumers == 1) {
    add("relay", [at_once = one.load.rate != 0] { return std::make_unique<broker::Relay>(at_once); });
  }
  if (one.type == "file") all.push_back({"queue", [=] { return measure_served(one, "queue", cpus); }});
  return all;
}

Json results_of(const BrokerCase& one, const std::vector<Contestant>& contestants) {
  const Json median = median_of(contestants.front().runs);
  Json results = {{"runs", contestants.front().runs}, {"median", median}};
  for (std::size_t i = 1; i < contestants.size(); ++i) {
    const Contestant& peer = contestants[i];
    const Json peer_median = median_of(peer.runs);
    const auto ratio = [&](const char* what) {
      return median[what].get<double>() / peer_median[what].get<double>();
    };
    results["peers"].push_back({{"name", peer.name}, {"runs", peer.runs}, {"median", peer_median}});
    if (one.load.rate != 0) {
      results["p50_times_" + peer.name] = ratio("p50_ns");
      results["p99_times_" + peer.name] = ratio("p99_ns");
    } else {
      const bool is_floor = peer.name != "stand_in";
      results[(is_floor ? "of_" : "times_") + peer.name] = ratio("messages_per_second");
    }
  }
  if (Json target = target_of(one); !target.empty()) results["target"] = std::move(target);
  return results;
}

Json parameters_of(const BrokerCase& one) {
  return {{"framing", one.framing},
          {"type", one.type},
          {"size", one.load.size},
          {"messages", one.load.messages},
          {"producers", one.load.producers},
          {"consumers", one.load.consumers},
          {"rate", one.load.rate}};
}

// --- Printing ------------------------------------------------------------------------------------

void print_broker_head(const Json& report, int runs) {
  fmt::print("{}; {}\n\n", machine_line(report), runs_line(runs));
  fmt::print("{:<32} {:>5} {:>10} {:>7} {:>10} {:>10}  {}\n", "", "bytes", "broker", "CPU", "floor",
             "stand-in", "ratios (wanted)");
}

std::string figure(const Json& median) {
  return median.contains("p50_ns")
             ? fmt::format("{:.0f} us", median["p50_ns"].get<double>() / 1e3)
             : fmt::format("{:.2f} M/s", median["messages_per_second"].get<double>() / 1e6);
}

// "of direct 0.68 (0.57)".
std::string ratios_text(const Json& results) {
  const Json target = results.value("target", Json::object());
  std::string text;
  for (const auto& [name, value] : results.items()) {
    if (!value.is_number()) continue;
    std::string words = name;
    std::replace(words.begin(), words.end(), '_', ' ');
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {:.2f}", words, value.get<double>());
    if (target.contains(name)) text += fmt::format(" ({})", target[name].get<double>());
  }
  return text;
}

std::string peer_figure(const Json& results, std::initializer_list<std::string_view> names) {
  for (const Json& peer : results.value("peers", Json::array())) {
    if (std::count(names.begin(), names.end(), peer["name"].get<std::string>()) != 0)
      return figure(peer["median"]);
  }
  return "";
}

void print_row(const BrokerCase& one, const Json& results) {
  const Json& median = results["median"];
  const std::string cpu =
      one.load.rate != 0
          ? ""
          : fmt::format("{:.0f} ns", median["middle_cpu_ns_per_message"].get<double>());
  fmt::print("{:<32} {:>5} {:>10} {:>7} {:>10} {:>10}  {}\n", title_of(one), one.load.size,
             figure(median), cpu, peer_figure(results, {"direct", "relay"}),
             peer_figure(results, {"stand_in"}), ratios_text(results));
  std::fflush(stdout);
}

// --- The command ---------------------------------------------------------------------------------

void measure_cases(const BrokerArguments& options, bool has_choice) {
  BrokerCase chosen{options.framing,
                    options.type,
                    {.size = options.size,
                     .messages = options.messages,
                     .producers = options.producers,
                     .consumers = options.consumers,
                     .rate = options.rate}};
  if (options.messages == 0) chosen.load.messages = default_messages(chosen.load);

  Json parameters = {{"runs", options.runs}, {"pin", options.cpus}};
  if (has_choice) parameters.update(parameters_of(chosen));
  Json report = new_report(parameters);
  const bool with_table = !options.json.takes_stdout();
  if (with_table) print_broker_head(report, options.runs);
  const SignalScope signals;
  const Progress progress;
  for (const BrokerCase& one : has_choice ? std::vector<BrokerCase>{chosen} : all_cases(options.messages)) {
    auto contestants = contestants_of(one, options.cpus);
    for (int run = 1; run <= options.runs; ++run) {
      for (Contestant& contestant : contestants) {
        progress.show(fmt::format("{} B, {}, run {} of {}: {}", one.load.size, title_of(one), run,
                                  options.runs, contestant.name));
        contestant.runs.push_back(contestant.measure());
      }
    }
    progress.clear();
    Json results = results_of(one, contestants);
    if (with_table) print_row(one, results);
    if (has_choice) {
      report.update(results);
    } else {
      Json entry = {{"parameters", parameters_of(one)}};
      entry.update(results);
      report["cases"].push_back(std::move(entry));
    }
  }
  options.json.write(report);
}

// What only one of the tables understands.
struct Given {
  Choices one_case;   // Chooses what is measured.
  Choices clients;    // How many messages, and where.
  Choices disturbed;  // Of --disturbed.
};

void check_usage(const BrokerArguments& options, const Given& given) {
  const bool other_table = options.lightq_tables || options.disturbed;
  if (options.lightq_tables && options.disturbed)
    throw Failure(kExitUsage, "--lightq-tables and --disturbed are two tables");
  if (other_table && given.one_case.was_made())
    throw Failure(kExitUsage,
                  "--lightq-tables and --disturbed have their own framings, types, sizes and clients");
  if (options.disturbed && given.clients.was_made())
    throw Failure(kExitUsage, "--messages and --pin are not for --disturbed");
  if (!options.disturbed && given.disturbed.was_made())
    throw Failure(kExitUsage, "--seconds and --idle are for --disturbed");
  if (options.rate != 0 && (options.producers != 1 || options.consumers != 1))
    throw Failure(kExitUsage, "--rate goes with one producer and one consumer");
  if (options.lightq_tables && options.messages == 1)
    throw Failure(kExitUsage, "--lightq-tables needs at least two messages");
}

void run_broker(const BrokerArguments& options, const Given& given) {
  options.json.check();
  check_usage(options, given);
  if (!options.cpus.empty()) (void)chosen_cpus(options.cpus);
  (void)topic_directory();
  if (options.lightq_tables) {
    LightqTables plan{.runs = options.runs, .cpus = options.cpus, .json = options.json};
    if (options.messages != 0) plan.messages = options.messages;
    return run_lightq_tables(plan);
  }
  if (options.disturbed)
    return run_disturbed({options.seconds, options.idle, options.runs, options.json});
  measure_cases(options, given.one_case.was_made());
}

constexpr char kBrokerFooter[] =
    "Broker, producers and consumers are processes of their own, which talk over 127.0.0.1. Each "
    "message is verified, and that exactly one consumer got it. Clients of ZeroMQ use libzmq with "
    "its usual settings; those with raw framing send up to 256 messages at once, unless there is a "
    "rate. CPU: the broker's time per message. floor: for ZeroMQ direct, which is PUSH to PULL with "
    "nobody between; for raw framing a relay, which only copies bytes. stand-in: a process that "
    "copies from a PULL to a PUSH. With a rate, the median from when a message was due until the "
    "consumer had it. Topics of type file are in /var/tmp.\n"
    "Without --framing, --type, --size, --producers, --consumers and --rate: a table of the usual "
    "cases.\n"
    "--lightq-tables: ZeroMQ to ZeroMQ, one producer and one consumer, beside what LightQ published "
    "for 10,000,000 messages on a machine of its own. Seconds of each side are from its first "
    "message to its last. MB are 1,048,576 bytes. first ms: until the consumer has the first "
    "message, after a pause.\n"
    "--disturbed: one of eight pullers or subscribers is stopped (SIGSTOP); 50 producers and 50 "
    "pullers are alone, beside wrong logins, and beside idle connections. Each ratio is of one run. "
    "Latency is from when a message was due until its puller had it. A producer for subscribers "
    "is never more than 4096 messages ahead of the slowest one that is not stopped.\n\n"
    "Example:\n  leat bench broker --size 100 --producers 2 --consumers 4 --json";

// What chooses one case.
void add_case_options(CLI::App& command, BrokerArguments& options, Choices& choice) {
  choice(command.add_option("--framing", options.framing, "How the clients talk to the broker")
             ->check(CLI::IsMember({"zmq", "socket", "zmq-to-socket"})),
         "zmq|socket|zmq-to-socket [zmq]");
  choice(command.add_option("--type", options.type, "Of the topic: in memory, or on disk")
             ->check(CLI::IsMember({"queue", "file"})),
         "queue|file [queue]");
  choice(command.add_option("--size", options.size, "Bytes of a message")
             ->check(CLI::Range(std::size_t{8}, std::size_t{1} << 20)),
         "BYTES [100]");
  choice(command.add_option("--producers", options.producers, "Processes that send")
             ->check(CLI::Range(1u, broker::kMaxClients)),
         "N [1]");
  choice(command.add_option("--consumers", options.consumers, "Processes that share the messages")
             ->check(CLI::Range(1u, broker::kMaxClients)),
         "N [1]");
  choice(command
             .add_option("--rate", options.rate,
                         "Messages per second, to measure how late they are; 0: measure how many "
                         "there are in a second")
             ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{10'000'000})),
         "PER_SECOND [0]");
}

}  // namespace

void add_broker(CLI::App& bench) {
  CLI::App* command =
      bench.add_subcommand("broker", "What a message costs that goes through leat serve");
  auto options = std::make_shared<BrokerArguments>();
  Given given;
  add_case_options(*command, *options, given.one_case);
  given.clients(
      command
          ->add_option("--messages", options->messages,
                       "Messages of one run, by all producers together; by default for about 0.5 s, "
                       "with --lightq-tables 1000000")
          ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000'000})),
      "N");
  add_runs_option(*command, options->runs);
  given.clients(add_pin_option(*command, options->cpus));
  command->add_flag("--lightq-tables", options->lightq_tables,
                    "Measure what LightQ published about itself, and print both");
  command->add_flag("--disturbed", options->disturbed,
                    "Measure what clients notice of a stopped consumer, of many idle ones and of "
                    "wrong logins");
  given.disturbed(
      command->add_option("--seconds", options->seconds, "Seconds that each disturbance lasts")
          ->check(CLI::Range(0.05, 600.0)),
      "SECONDS [2]");
  given.disturbed(command->add_option("--idle", options->idle, "Idle connections")
                      ->check(CLI::Range(1u, 18'000u)),
                  "N [10000]");
  options->json.add_to(*command);
  command->footer(kBrokerFooter);
  command->callback([options, given] { run_broker(*options, given); });
}

}  // namespace leat::bench
