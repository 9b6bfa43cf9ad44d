// leat bench broker --lightq-tables: the tables that LightQ published, beside what its clients get here.
#include <fmt/format.h>

#include <array>

#include "bench/broker/measure.hpp"
#include "broker.hpp"

namespace leat::bench {
namespace {

constexpr char kLightqMachine[] =
    "MacBook Pro 15\" of late 2013, 2.3 GHz i7, 16 GB DDR3-1600, macOS";
constexpr std::uint64_t kLightqMessages = 10'000'000;

// Of LightQ's README; how long the first message took, of its latency tests.
struct Published {
  const char* type;
  std::size_t size;
  double producer_seconds;
  double producer_rate;  // Messages per second.
  double consumer_seconds;
  double consumer_rate;
  double first_message_ms;
};
constexpr std::array<Published, 8> kPublished = {{
    {"queue", 100, 8.46577, 1181227, 8.47781, 1179550, 18},
    {"queue", 256, 9.2752, 1078143, 9.30292, 1074931, 22},
    {"queue", 512, 10.5182, 950734, 10.5296, 949706, 24},
    {"queue", 1024, 19.8285, 504324, 19.8222, 504485, 9},
    {"file", 100, 25.0786, 398746, 25.0945, 398493, 14},
    {"file", 256, 28.3802, 352358, 28.3939, 352188, 7},
    {"file", 512, 31.0832, 321716, 31.0935, 321610, 22},
    {"file", 1024, 37.4027, 267360, 37.4166, 267260, 21},
}};

Json side(double seconds, double per_second, std::size_t size) {
  return {{"seconds", seconds},
          {"messages_per_second", per_second},
          {"mib_per_second", per_second * static_cast<double>(size) / (1 << 20)}};
}

Json published_of(const Published& one) {
  return {{"producer", side(one.producer_seconds, one.producer_rate, one.size)},
          {"consumer", side(one.consumer_seconds, one.consumer_rate, one.size)},
          {"first_message_ms", one.first_message_ms}};
}

Json measure_once(const Published& one, const LightqTables& plan) {
  const BrokerPlaces places;
  broker::ServedTopic served{places.places(), one.type, {}, false};
  const auto times =
      measure_route_times(served, {.size = one.size, .messages = plan.messages}, plan.cpus);
  const auto messages = static_cast<double>(plan.messages);
  return {{"producer", side(times.producer_seconds, messages / times.producer_seconds, one.size)},
          {"consumer", side(times.consumer_seconds, messages / times.consumer_seconds, one.size)},
          {"first_message_ms", times.first_message_ms}};
}

void print_head(const Json& report, const LightqTables& plan) {
  fmt::print("{}; {}; {} messages\n", machine_line(report), runs_line(plan.runs), plan.messages);
  fmt::print("LightQ, as published: {}; {} messages\n\n", kLightqMachine, kLightqMessages);
  fmt::print("{:<14} {:^26}   {:^26}   {:>8}\n", "", "producer", "consumer", "first ms");
  fmt::print("{:<8} {:>5}", "", "bytes");
  for (int i = 0; i < 2; ++i) fmt::print(" {:>8} {:>9} {:>7}  ", "s", "msg/s", "MB/s");
  fmt::print("\n");
}

void print_row(const std::string& title, std::size_t size, const Json& figures) {
  fmt::print("{:<8} {:>5}", title, size);
  for (const char* which : {"producer", "consumer"}) {
    const Json& of = figures[which];
    fmt::print(" {:>8.3f} {:>9.0f} {:>7.1f}  ", of["seconds"].get<double>(),
               of["messages_per_second"].get<double>(), of["mib_per_second"].get<double>());
  }
  fmt::print(" {:>8.2f}\n", figures["first_message_ms"].get<double>());
}

}  // namespace

void run_lightq_tables(const LightqTables& plan) {
  Json report = new_report({{"messages", plan.messages}, {"runs", plan.runs}, {"pin", plan.cpus}});
  report["lightq"] = {{"machine", kLightqMachine}, {"messages", kLightqMessages}};
  const bool with_table = !plan.json.takes_stdout();
  if (with_table) print_head(report, plan);
  const SignalScope signals;
  const Progress progress;
  for (const Published& one : kPublished) {
    Json runs = Json::array();
    for (int run = 1; run <= plan.runs; ++run) {
      progress.show(fmt::format("{}, {} B, run {} of {}", one.type, one.size, run, plan.runs));
      runs.push_back(measure_once(one, plan));
    }
    progress.clear();
    const Json median = median_of(runs);
    const Json published = published_of(one);
    if (with_table) {
      print_row(one.type, one.size, median);
      print_row("  LightQ", one.size, published);
      std::fflush(stdout);
    }
    report["cases"].push_back({{"parameters", {{"type", one.type}, {"size", one.size}}},
                               {"runs", std::move(runs)},
                               {"median", median},
                               {"lightq", published}});
  }
  plan.json.write(report);
}

}  // namespace leat::bench
