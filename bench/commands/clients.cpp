// leat bench clients: what a record costs in each language, in turns with C; and Python beside pyzmq.
//
// Each language has a program (bench/clients/figures.hpp says how it is called), which the neighbour that it is
// compared with precedes in each round. So whatever else the machine does affects both alike. All use one topic, which
// was written to the end before: no figure has fresh pages in it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>

#include "bench/clients/figures.hpp"
#include "bench/clients/peers.hpp"
#include "bench/clients/program.hpp"
#include "bench/leat/topics.hpp"
#include "bench/output/output.hpp"
#include "commands.hpp"
#include "tool/program.hpp"

namespace leat::bench {
namespace {

using namespace clients;

constexpr char kTopic[] = "clients";

struct ClientsArguments {
  std::vector<std::string> languages = {"all"};
  std::size_t size = kWantedSize;
  std::uint64_t records = 1'000'000;
  int runs = 5;
  bool peers = false;
  std::string programs;  // Empty: beside this executable.
  std::uint64_t time_limit_s = 120;
  std::vector<int> cpus;
  JsonOption json;
};

bool wants_all(const ClientsArguments& options) {
  return std::find(options.languages.begin(), options.languages.end(), "all") !=
         options.languages.end();
}

// The languages asked for, in the order of kLanguages.
std::vector<Language> asked_for(const ClientsArguments& options) {
  for (const std::string& name : options.languages) {
    if (name == "all" || language_named(name) != nullptr) continue;
    std::vector<std::string> names;
    for (const Language& language : kLanguages) names.emplace_back(language.name);
    throw Failure(kExitUsage,
                  fmt::format("--language {}: none of all, {}", name, fmt::join(names, ", ")));
  }
  std::vector<Language> languages;
  for (const Language& language : kLanguages) {
    if (wants_all(options) || std::find(options.languages.begin(), options.languages.end(),
                                        language.name) != options.languages.end()) {
      languages.push_back(language);
    }
  }
  return languages;
}

// Measures all languages, each in turn, and remembers who failed.
class Clients {
 public:
  explicit Clients(const ClientsArguments& options) : options_{options} {
    for (const Language& language : asked_for(options)) {
      if (is_built(language.name)) {
        languages_.push_back(language);
        check_built(language.beside);
      } else if (wants_all(options)) {
        not_built_.push_back({{"language", language.name}, {"built_by", language.built_by}});
      } else {
        check_built(language.name);
      }
    }
    if (options.peers) check_built("peers");
  }

  void run(Json& report) {
    const TemporaryTopics topics;
    make_topic(topics);
    directory_ = topics.directory();
    for (int run = 1; run <= options_.runs; ++run) {
      for (const Language& language : languages_) run_language(language, run);
      if (options_.peers && peers_failure_.empty()) run_peers(run);
    }
    progress_.clear();
    report["results"] = Json::array();
    report["failed"] = Json::array();
    for (const Language& language : languages_) {
      if (const auto failure = failures_.find(language.name); failure != failures_.end()) {
        report["failed"].push_back({{"language", language.name}, {"why", failure->second}});
      } else {
        report["results"].push_back(result_of(language, rounds_[language.name], options_.size));
      }
    }
    report["not_built"] = not_built_;
    if (!options_.peers) return;
    if (peers_failure_.empty()) {
      report["peers"] = peers_of(peer_rounds_, options_.size);
    } else {
      report["failed"].push_back({{"language", "peers"}, {"why", peers_failure_}});
    }
  }

 private:
  std::string path_of(const std::string& name) const {
    const std::string folder = options_.programs.empty()
                                   ? tool::directory_of_executable() + "clients/speed"
                                   : options_.programs;
    return folder + "/" + name;
  }

  bool is_built(const char* name) const { return ::access(path_of(name).c_str(), X_OK) == 0; }

  void check_built(const char* name) const {
    if (name == nullptr || is_built(name)) return;
    const Language* const language = language_named(name);
    throw Failure(kExitNotThere,
                  fmt::format("there is no program {}; `{}` in Leat's sources builds it",
                              path_of(name), language ? language->built_by : kBuildsBench));
  }

  // A multiple of whole batches.
  std::uint64_t records() const { return (options_.records + kBatch - 1) / kBatch * kBatch; }

  // Large enough for all records; each page of it has been written once. In small segments: a subscriber that begins
  // within one has to go through it first.
  void make_topic(const TemporaryTopics& topics) const {
    progress_.show("making the topic");
    const std::uint64_t record_bytes = (options_.size + 47) / 16 * 16;  // At most.
    const std::uint64_t segment_bytes = std::max<std::uint64_t>(1 << 20, 4 * kBatch * record_bytes);
    const std::uint64_t capacity_bytes = records() * record_bytes + 4 * segment_bytes;
    topics.create(kTopic, {.capacity_bytes = capacity_bytes, .segment_bytes = segment_bytes});
    Topic topic = open_topic(topics.directory(), kTopic);
    Publisher publisher = value_of(topic.publisher(), "make a publisher");
    const std::vector<std::byte> value(options_.size);
    const std::uint64_t twice = 2 * capacity_bytes / (options_.size + 16) + 1;
    for (std::uint64_t i = 0; i < twice; ++i) (void)value_of(publisher.publish(value), "publish");
  }

  Program program(const std::string& name, std::vector<std::string> arguments) const {
    return {.name = name + " program",
            .path = path_of(name),
            .arguments = std::move(arguments),
            .topic_directory = directory_,
            .cpu = options_.cpus.front(),
            .time_limit = std::chrono::seconds{options_.time_limit_s}};
  }

  std::string output_of_speed(const char* name) const {
    return output_of(signals_, program(name, {kTopic, std::to_string(options_.size),
                                              std::to_string(records())}));
  }

  // Without the neighbour nothing can be compared, so its failure is passed on as the end of all.
  Figures figures_beside(const char* name) const {
    try {
      Figures figures = figures_of(output_of_speed(name));
      if (!figures.view_ns) throw Failure("it read nothing in place");
      return figures;
    } catch (const Failure& failure) {
      if (failure.exit_code() != kExitFailed) throw;
      throw Failure(fmt::format("{}: {}; nothing can be compared with it", name, failure.what()));
    }
  }

  void run_language(const Language& language, int run) {
    if (failures_.contains(language.name)) return;
    progress_.show(fmt::format("run {} of {}: {}", run, options_.runs, language.title));
    Round round;
    if (language.beside != nullptr) round.beside = figures_beside(language.beside);
    try {
      round.own = figures_of(output_of_speed(language.name));
      rounds_[language.name].push_back(std::move(round));
    } catch (const Failure& failure) {
      if (failure.exit_code() != kExitFailed) throw;  // Ctrl-C.
      failures_[language.name] = failure.what();
    }
  }

  void run_peers(int run) {
    const Placement placement{options_.cpus};
    std::array<PeerRun, kPeerWays.size()> round;
    try {
      for (std::size_t i = 0; i < kPeerWays.size(); ++i) {
        progress_.show(fmt::format("run {} of {}: {}", run, options_.runs, kPeerWays[i].title));
        round[i] = peer_run_of(output_of(
            signals_, program("peers", {kPeerWays[i].how, kTopic, std::to_string(options_.size),
                                        std::to_string(records()), std::to_string(placement.cpu(0)),
                                        std::to_string(placement.cpu(1))})));
      }
      peer_rounds_.push_back(std::move(round));
    } catch (const Failure& failure) {
      if (failure.exit_code() != kExitFailed) throw;
      peers_failure_ = failure.what();
    }
  }

  const ClientsArguments& options_;
  const SignalScope signals_;
  const Progress progress_;
  std::string directory_;
  std::vector<Language> languages_;  // Those that are built.
  Json not_built_ = Json::array();
  std::map<std::string, std::vector<Round>> rounds_;
  std::map<std::string, std::string> failures_;  // By language.
  std::vector<std::array<PeerRun, kPeerWays.size()>> peer_rounds_;
  std::string peers_failure_;
};

std::string ns_text(const Json& ns) {
  return ns.is_number() ? fmt::format("{:.1f}", ns.get<double>()) : "";
}

void print_results(const Json& report) {
  fmt::print("{:<8} {:>9} {:>7} {:>7} {:>9}  {:>14} {:>14} {:>14} {:>14}  {}\n", "", "publish",
             "batch", "read", "in place", "times: publish", "batch", "read", "in place", "");
  for (const Json& result : report["results"]) {
    fmt::print("{:<8} {:>9} {:>7} {:>7} {:>9}  {:>14} {:>14} {:>14} {:>14}  {}\n",
               language_named(result["language"])->title, ns_text(result["publish_ns"]),
               ns_text(result["batch_ns"]), ns_text(result["read_ns"]), ns_text(result["view_ns"]),
               ratio_text(result, "publish"), ratio_text(result, "batch"),
               ratio_text(result, "read"), ratio_text(result, "view"),
               result["runtime"].get<std::string>());
  }
  for (const Json& missing : report["not_built"]) {
    fmt::print("{:<8} not built; `{}` in Leat's sources builds it\n",
               language_named(missing["language"])->title, missing["built_by"].get<std::string>());
  }
  for (const Json& failed : report["failed"]) {
    fmt::print("{:<8} failed: {}\n", failed["language"].get<std::string>(),
               failed["why"].get<std::string>());
  }
}

void print_peers(const Json& peers) {
  fmt::print("\nPython between two processes\n{:<22} {:>12} {:>14}\n", "", "records/s",
             "times pyzmq");
  for (const Json& peer : peers) {
    std::string times;
    if (peer.contains("times_pyzmq")) {
      const auto measured = peer["times_pyzmq"].get<double>();
      times = fmt::format("{:.1f}", measured);
      if (peer.contains("target")) {
        const auto wanted = peer["target"].get<double>();
        times += fmt::format(" ({:.0f}){}", wanted, measured < wanted ? "!" : "");
      }
    }
    fmt::print("{:<22} {:>10.2f} M {:>14}  {}\n", peer["title"].get<std::string>(),
               peer["records_per_second"].get<double>() / 1e6, times,
               peer["runtime"].get<std::string>());
  }
}

void print_clients_table(const Json& report) {
  const Json& parameters = report["parameters"];
  fmt::print("{}; {} records of {} B, {}\nNanoseconds for each record.\n\n", machine_line(report),
             parameters["records"].get<std::uint64_t>(), parameters["size"].get<std::size_t>(),
             runs_line(parameters["runs"]));
  print_results(report);
  if (report.contains("peers")) print_peers(report["peers"]);
  fmt::print(
      "\npublish: one by one; batch: 64 in one call; read: up to 64 in one call, each copied into "
      "an\n"
      "object of the language; in place: the same without copies.\n"
      "times: C's times, measured directly before; of C, those of C++. Reading is divided by C's\n"
      "reading in place. In brackets, for 100 B: what is wanted; !: it was missed.\n");
}

void run_clients(ClientsArguments options) {
  options.json.check();
  (void)topic_directory();
  options.cpus = chosen_cpus(options.cpus);
  Clients clients(options);
  Json report = new_report({{"languages", options.languages},
                            {"size", options.size},
                            {"records", (options.records + kBatch - 1) / kBatch * kBatch},
                            {"batch", kBatch},
                            {"runs", options.runs},
                            {"pin", options.cpus},
                            {"peers", options.peers}});
  clients.run(report);
  if (!options.json.takes_stdout()) print_clients_table(report);
  options.json.write(report);
  if (report["failed"].empty()) return;
  std::vector<std::string> failed;
  for (const Json& one : report["failed"]) failed.push_back(one["language"]);
  throw Failure(fmt::format("failed: {}", fmt::join(failed, ", ")));
}

constexpr char kClientsFooter[] =
    "`make clients` in Leat's sources builds the programs of all languages but C and C++. All "
    "publish to "
    "the same topic in memory, which holds all records, then read them; each part runs once "
    "before, "
    "unmeasured. Everything runs on the first CPU of --pin. A language runs directly after the one "
    "that "
    "it is compared with, in each run, and the ratio is the median of those of the runs.\n"
    "--peers: one process sends and one receives, on the first two CPUs; pyzmq by PUSH and PULL "
    "over "
    "ipc://.\n"
    "A program that fails or hangs is named, and the others go on; the exit code is then 1.\n\n"
    "Example:\n  leat bench clients --language python,go --peers --json=clients.json";

}  // namespace

void add_clients(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("clients", "What a record costs in each language");
  auto options = std::make_shared<ClientsArguments>();
  command->add_option("--language", options->languages, "Which of them: c, cpp, python, go, …")
      ->delimiter(',')
      ->option_text("all|NAME,... [all]");
  command->add_option("--size", options->size, "Bytes of a value")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 16))
      ->option_text("BYTES [100]");
  command
      ->add_option("--records", options->records,
                   "Records of each part of a run; rounded up to batches of 64")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000'000}))
      ->option_text("N [1000000]");
  command->add_flag("--peers", options->peers, "Also measure Python beside pyzmq");
  command
      ->add_option("--programs", options->programs,
                   "Where the programs are; by default in clients/speed beside this executable")
      ->option_text("DIR");
  command
      ->add_option("--time-limit", options->time_limit_s,
                   "Seconds that one run of a program may take")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{86'400}))
      ->option_text("SECONDS [120]");
  add_runs_option(*command, options->runs);
  add_pin_option(*command, options->cpus);
  options->json.add_to(*command);
  command->footer(kClientsFooter);
  command->callback([options] { run_clients(*options); });
}

}  // namespace leat::bench
