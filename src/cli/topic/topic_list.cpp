// `leat topic list`, and `leat ls`: one line for each topic, once or every second.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/cli.hpp"
#include "cli/live/live_view.hpp"
#include "cli/live/rate_meter.hpp"
#include "cli/remote/remote.hpp"
#include "cli/table.hpp"
#include "leat/admin.hpp"
#include "tool/json_text.hpp"
#include "tool/terminal.hpp"
#include "topic_description.hpp"

namespace leat::cli {
namespace {

using Json = nlohmann::ordered_json;

bool has_publisher(const TopicRates& entry) {
  const auto& participants = entry.description.info.participants;
  return std::any_of(participants.begin(), participants.end(), is_publisher);
}

// Waits for the rates only where there is somebody to measure.
std::vector<TopicRates> poll_once() {
  RateMeter meter;
  std::vector<TopicRates> entries = measure_rates(meter);
  if (std::any_of(entries.begin(), entries.end(), has_publisher)) {
    std::this_thread::sleep_for(LiveView::kFirstPoll);
    return measure_rates(meter);
  }
  for (TopicRates& entry : entries) {
    if (entry.description.error.code == Errc::ok) entry.records_per_second = 0;
  }
  return entries;
}

Json json_of(const std::vector<TopicRates>& entries) {
  Json all = Json::array();
  for (const TopicRates& entry : entries) {
    Json& one = all.emplace_back(to_json(entry.description));
    if (entry.description.error.code != Errc::ok) continue;
    one["records_per_second"] = nullptr;
    if (entry.records_per_second) one["records_per_second"] = *entry.records_per_second;
  }
  return all;
}

std::string table_of(const std::vector<TopicRates>& entries) {
  Table table{{"NAME", Align::left},      {"POLICY", Align::left},   {"DURABLE", Align::left},
              {"CAPACITY", Align::right}, {"USED", Align::right},    {"DISK", Align::right},
              {"PARTS", Align::right},    {"RECORDS", Align::right}, {"RATE", Align::right},
              {"AGE", Align::right},      {"GROUPS", Align::right},  {"ATTACHED", Align::right}};
  for (const TopicRates& entry : entries) {
    const TopicDescription& description = entry.description;
    if (description.error.code != Errc::ok) {
      table.add({description.name, tool::styled(tool::Style::red, error_text(description.error))});
      continue;
    }
    const TopicInfo& info = description.info;
    const auto& durable = info.durable;
    table.add({description.name, name_of(info.policy), durable ? name_of(durable->durability) : "-",
               size_text(total_capacity(info)), size_text(total_used(info)),
               durable ? size_text(durable->disk_bytes) : "-", number_text(info.partitions.size()),
               number_text(total_records(info)), rate_text(entry.records_per_second),
               age_text(description.created_ms), number_text(description.groups.size()),
               number_text(info.participants.size())});
  }
  return table.text();
}

void list(bool json) {
  const std::vector<TopicRates> entries = poll_once();
  const std::string problem = problem_of_data_variable();
  if (problem.starts_with("cannot"))
    print_notice(fmt::format("durable topics are not shown: {}", problem));
  if (json)
    fmt::print("{}\n", tool::json_text(json_of(entries), 2));
  else if (entries.empty())
    print_notice(fmt::format("no topics in {}", topics_directory()));
  else
    fmt::print("{}", table_of(entries));
}

// JSON: one line every second.
void watch(bool json) {
  RateMeter meter;
  LiveView view{json ? LiveView::Mode::lines : LiveView::Mode::in_place};
  measure_rates(meter);
  if (!view.wait_for(LiveView::kFirstPoll)) return;
  do {
    const std::vector<TopicRates> entries = measure_rates(meter);
    view.show(json ? tool::json_text(json_of(entries)) + "\n" : table_of(entries));
  } while (view.wait());
}

// `name`: of the whole command, for the example.
void add_options(CLI::App& command, const std::string& name) {
  struct Arguments {
    bool json = false;
    bool watch = false;
  };
  auto arguments = std::make_shared<Arguments>();
  command.add_flag("--json", arguments->json, "For programs");
  command.add_flag("-w,--watch", arguments->watch, "Again every second, until Ctrl-C");
  auto broker = add_broker_options(command);
  command.footer(fmt::format(
      "RATE is measured over 0.1 s, or with --watch over the last second. Where no publisher is "
      "attached it is 0, and the command does not wait. USED is the room of the records that can "
      "still be read, DISK that of the files of a durable topic, PARTS the number of partitions, "
      "ATTACHED that of publishers, subscribers and members.\nExample:\n  {0} --json\n  {0} "
      "--watch",
      name));
  command.callback([arguments, broker, &command] {
    if (broker->is_given()) {
      check_only(command, {"--json"});
      return remote_list(*broker, arguments->json);
    }
    if (arguments->watch)
      watch(arguments->json);
    else
      list(arguments->json);
  });
}

}  // namespace

void add_topic_list(CLI::App& topic) {
  add_options(*topic.add_subcommand("list", "All topics of the directory")->alias("ls"),
              "leat topic list");
}

void add_ls_command(CLI::App& app) {
  add_options(*app.add_subcommand("ls", "All topics, as `leat topic list`"), "leat ls");
}

}  // namespace leat::cli
