#include "demo_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string_view>

#include "cli/cli.hpp"
#include "tool/terminal.hpp"

namespace leat::cli {
namespace {

constexpr std::size_t kMaxColumns = 10;  // More runs than that are in the mean only.

// Milliseconds for 1,000,000 records, runs 1 to 5, from "One million messages per second", the post that
// came with ShmFifo. Its serialized workload was not published, and its reader could not wait, so there
// is nothing for the other phases.
constexpr char kPublishedMachine[] = "an AMD FX-6100 with 3.3 GHz and 8 GB of DDR3-1600 memory";
constexpr double kPublishedRecords = 1'000'000;
struct Published {
  std::string_view workload;
  double writer_ms[5];
  double reader_ms[5];
};
constexpr Published kPublished[] = {
    {"text", {908, 917, 911, 926, 918}, {591, 585, 593, 584, 589}},
    {"structured", {900, 895, 908, 907, 905}, {585, 588, 601, 599, 597}},
};

const Published* published_for(const DemoPhase& phase) {
  if (phase.phase != "sequential") return nullptr;
  for (const Published& published : kPublished) {
    if (published.workload == phase.workload) return &published;
  }
  return nullptr;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::string rate_over(double records, double ms) {
  return ms > 0 ? fmt::format("{:.2f} M/s", records / ms / 1000) : std::string{"-"};
}

std::size_t columns_for(std::size_t runs) { return std::min(runs, kMaxColumns); }

struct Row {
  std::string_view label;
  std::vector<double> values_ms;
  int digits = 1;
  std::optional<double> records = {};         // For the rate.
  std::optional<double> published_rate = {};  // Records per millisecond, for the ratio.
};

void print_row(const Row& row, std::size_t columns) {
  std::string text = fmt::format("    {:<20}", row.label);
  for (std::size_t i = 0; i < columns; ++i) {
    text += i < row.values_ms.size() ? fmt::format("{:>8.{}f}", row.values_ms[i], row.digits)
                                     : std::string(8, ' ');
  }
  const double mean_ms = mean_of(row.values_ms);
  text += fmt::format("{:>9.1f}", mean_ms);
  if (row.records) text += fmt::format("{:>12}", rate_over(*row.records, mean_ms));
  if (row.published_rate && mean_ms > 0)
    text += fmt::format("{:>7.1f} x", *row.records / mean_ms / *row.published_rate);
  fmt::print("{}\n", text);
}

std::vector<double> column(const std::vector<DemoRun>& runs, double DemoRun::*member) {
  std::vector<double> values;
  for (const DemoRun& run : runs) values.push_back(run.*member);
  return values;
}

double rounded(double ms) { return std::round(ms * 1000) / 1000; }

}  // namespace

void print_demo_head(std::uint64_t records, std::uint64_t runs) {
  fmt::print(
      "{} records a run, between separate processes, every record verified.\n"
      "Milliseconds, and ShmFifo's on {}:\n\n",
      number_text(records), kPublishedMachine);
  std::string head(24, ' ');
  for (std::size_t run = 1; run <= columns_for(runs); ++run)
    head += fmt::format("{:>8}", fmt::format("run {}", run));
  fmt::print("{}{:>9}{:>12}  ShmFifo's\n", head, "mean", "rate");
}

void print_demo_phase(const DemoPhase& phase, const std::string& title, std::uint64_t records) {
  if (!title.empty()) fmt::print("\n{}\n", title);
  fmt::print("  {}\n", phase.phase == "sequential" ? "sequential: publish all, then read all"
                       : phase.phase == "concurrent"
                           ? "concurrent: at the same time, through 8 MiB"
                           : "broadcast: the same, three subscribers get every record each");
  const std::size_t columns = columns_for(phase.runs.size());
  const auto count = static_cast<double>(records);
  Row publisher{"publisher", column(phase.runs, &DemoRun::publish_ms), 1, count};
  Row subscriber{phase.phase == "broadcast" ? "slowest subscriber" : "subscriber",
                 column(phase.runs, &DemoRun::subscribe_ms), 1, count};
  Row writer{"ShmFifo: writer", {}, 0, kPublishedRecords};
  Row reader{"ShmFifo: reader", {}, 0, kPublishedRecords};
  const Published* published = published_for(phase);
  if (published != nullptr) {
    writer.values_ms.assign(std::begin(published->writer_ms), std::end(published->writer_ms));
    reader.values_ms.assign(std::begin(published->reader_ms), std::end(published->reader_ms));
    publisher.published_rate = kPublishedRecords / mean_of(writer.values_ms);
    subscriber.published_rate = kPublishedRecords / mean_of(reader.values_ms);
  }
  print_row({"prepare memory", column(phase.runs, &DemoRun::prepare_ms)}, columns);
  print_row(publisher, columns);
  print_row(subscriber, columns);
  if (published == nullptr) return;
  print_row(writer, columns);
  print_row(reader, columns);
}

void print_demo_verdict(const DemoReport& report) {
  fmt::print(
      "\nShmFifo's figures are its author's: 1,000,000 records, one process after the other, "
      "nothing "
      "verified,\nthe mean of five runs. x: the rate of this machine against that of his.\n\n");
  if (report.verified) {
    fmt::print(
        "{}: every record arrived once, in order, with the right content ({} published, {} "
        "received, each "
        "one checked).\n",
        tool::styled(tool::Style::green, "OK"), number_text(report.published),
        number_text(report.received));
  } else {
    fmt::print(
        "{}: not every record arrived once, in order, with the right content ({} received and "
        "right).\n",
        tool::styled(tool::Style::red, "FAILED"), number_text(report.received));
  }
}

std::string demo_json(const DemoReport& report) {
  using Json = nlohmann::ordered_json;
  Json all = Json::array();
  for (const DemoPhase& phase : report.phases) {
    Json runs = Json::array();
    for (const DemoRun& run : phase.runs) {
      runs.push_back({{"prepare_ms", rounded(run.prepare_ms)},
                      {"publish_ms", rounded(run.publish_ms)},
                      {"subscribe_ms", rounded(run.subscribe_ms)}});
    }
    all.push_back({{"name", phase.workload}, {"phase", phase.phase}, {"runs", runs}});
  }
  return Json{{"records", report.records}, {"verified", report.verified}, {"workloads", all}}.dump(
      2);
}

}  // namespace leat::cli
