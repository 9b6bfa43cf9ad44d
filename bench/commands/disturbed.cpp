// leat bench broker --disturbed: what the others notice of a stopped consumer, of many idle ones, of wrong logins.
#include <fmt/format.h>

#include "bench/broker/crowd.hpp"
#include "bench/broker/stopped.hpp"
#include "broker.hpp"

namespace leat::bench {
namespace {

constexpr double kWantedOfBefore = 0.95;
constexpr double kWantedTimesAlone = 2;
constexpr double kWantedBytes = 300e6;
constexpr double kWantedIdleBytes = 100e6;

// Measures one case as often as the plan says, and keeps it.
template <class Measure>
Json& add_case(Json& report, const Disturbed& plan, Json parameters, Json target,
               const Measure& measure) {
  const Progress progress;
  Json runs = Json::array();
  for (int run = 1; run <= plan.runs; ++run) {
    progress.show(fmt::format("{}, run {} of {}", parameters["disturbance"].get<std::string>(), run,
                              plan.runs));
    runs.push_back(measure());
  }
  Json median = median_of(runs);
  report["cases"].push_back({{"parameters", std::move(parameters)},
                             {"runs", std::move(runs)},
                             {"median", std::move(median)},
                             {"target", std::move(target)}});
  return report["cases"].back();
}

// --- One of eight is stopped ---------------------------------------------------------------------

void measure_stopped_ones(Json& report, const Disturbed& plan, const SignalScope& signals) {
  const bool with_table = !plan.json.takes_stdout();
  if (with_table) {
    fmt::print("Eight consumers at full load, one of them stopped for {} s: what the others get\n",
               plan.seconds);
    fmt::print("{:<26} {:>12} {:>12} {:>14} {:>8}\n", "", "before", "meanwhile",
               fmt::format("ratio ({})", kWantedOfBefore), "lost");
  }
  for (const char* const role : {"pull", "sub"}) {
    for (const char* const slow : {"overtaken", "disconnect"}) {
      const broker::StoppedLoad load{role, slow, plan.seconds};
      const Json& done = add_case(
          report, plan,
          {{"disturbance", "stopped"}, {"consumers", role}, {"slow_subscribers", slow}},
          {{"of_before", kWantedOfBefore}}, [&]() -> Json {
            const BrokerPlaces places;
            const broker::StoppedRates rates = measure_stopped(places.places(), load, signals);
            return {{"before_per_second", rates.before},
                    {"stopped_per_second", rates.stopped},
                    {"of_before", rates.stopped / rates.before},
                    {"lost", rates.lost}};
          });
      if (!with_table) continue;
      const Json& median = done["median"];
      fmt::print("{:<26} {:>8.3f} M/s {:>8.3f} M/s {:>14.2f} {:>8.0f}\n",
                 fmt::format("{}, {}", role, slow), median["before_per_second"].get<double>() / 1e6,
                 median["stopped_per_second"].get<double>() / 1e6,
                 median["of_before"].get<double>(), median["lost"].get<double>());
      std::fflush(stdout);
    }
  }
}

// --- A crowd -------------------------------------------------------------------------------------

Json as_json(const broker::ServedBroker::Memory& memory) {
  return {{"own_bytes", memory.own_bytes}, {"topics_bytes", memory.topics_bytes}};
}

Json measure_crowd_once(const Disturbed& plan, const SignalScope& signals) {
  const BrokerPlaces places;
  const broker::CrowdCost cost =
      measure_crowd(places.places(), {.idle = plan.idle, .seconds = plan.seconds}, signals);
  return {{"alone", to_json(cost.alone)},
          {"beside_wrong_logins", to_json(cost.beside_wrong_logins)},
          {"beside_idle", to_json(cost.beside_idle)},
          {"p99_times_alone_wrong_logins", cost.beside_wrong_logins.p99 / cost.alone.p99},
          {"p99_times_alone_idle", cost.beside_idle.p99 / cost.alone.p99},
          {"wrong_logins_per_second", cost.wrong_logins_per_second},
          {"idle_connections", cost.idle_connections},
          {"idle_memory", as_json(cost.idle_memory)},
          {"memory", as_json(cost.memory)}};
}

void print_crowd(const Json& median, std::uint32_t idle_wanted) {
  const auto number = [&](const char* name) { return median[name].get<double>(); };
  const auto latency = [&](const std::string& title, const char* name) {
    fmt::print("{:<42} {:>8.0f} us {:>8.0f} us", title, median[name]["p50_ns"].get<double>() / 1e3,
               median[name]["p99_ns"].get<double>() / 1e3);
  };
  const auto megabytes = [&](const char* name) {
    return median[name]["own_bytes"].get<double>() / 1e6;
  };
  fmt::print("\n{} producers, {} pullers, together {} messages a second\n", broker::kCrowdPairs,
             broker::kCrowdPairs, broker::kCrowdRate);
  fmt::print("{:<42} {:>11} {:>11} {:>21}\n", "", "median", "p99",
             fmt::format("p99 times alone ({})", kWantedTimesAlone));
  latency("alone", "alone");
  fmt::print("\n");
  latency(fmt::format("beside {:.0f} wrong logins a second", number("wrong_logins_per_second")),
          "beside_wrong_logins");
  fmt::print(" {:>21.2f}\n", number("p99_times_alone_wrong_logins"));
  latency(fmt::format("beside {:.0f} idle connections", number("idle_connections")), "beside_idle");
  fmt::print(" {:>21.2f}\n", number("p99_times_alone_idle"));
  fmt::print(
      "The broker's own memory with the idle ones alone: {:.0f} MB ({:.0f}), with all: {:.0f} MB "
      "({:.0f}).\n",
      megabytes("idle_memory"), kWantedIdleBytes / 1e6, megabytes("memory"), kWantedBytes / 1e6);
  if (number("idle_connections") < idle_wanted)
    fmt::print("The limit of descriptors did not allow {} idle connections.\n", idle_wanted);
}

}  // namespace

void run_disturbed(const Disturbed& plan) {
  Json report = new_report({{"seconds", plan.seconds}, {"idle", plan.idle}, {"runs", plan.runs}});
  report["cases"] = Json::array();
  if (!plan.json.takes_stdout())
    fmt::print("{}; {}\n\n", machine_line(report), runs_line(plan.runs));
  const SignalScope signals;
  measure_stopped_ones(report, plan, signals);
  const Json& crowd = add_case(report, plan,
                               {{"disturbance", "crowd"},
                                {"producers", broker::kCrowdPairs},
                                {"consumers", broker::kCrowdPairs},
                                {"rate", broker::kCrowdRate},
                                {"idle", plan.idle}},
                               {{"p99_times_alone_wrong_logins", kWantedTimesAlone},
                                {"p99_times_alone_idle", kWantedTimesAlone},
                                {"idle_memory", {{"own_bytes", kWantedIdleBytes}}},
                                {"memory", {{"own_bytes", kWantedBytes}}}},
                               [&] { return measure_crowd_once(plan, signals); });
  if (!plan.json.takes_stdout()) print_crowd(crowd["median"], plan.idle);
  plan.json.write(report);
}

}  // namespace leat::bench
