// `leat fsck TOPIC`: checks every byte in the files of a durable topic.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/cli.hpp"
#include "data_files.hpp"
#include "leat/admin.hpp"
#include "tool/json_text.hpp"
#include "tool/terminal.hpp"

namespace leat::cli {
namespace {

struct FsckArguments {
  std::string topic;
  bool repair = false;
  bool json = false;
};

CheckReport check(const DataFiles& data) {
  (void)manifest_of(data);  // Says what is wrong with it.
  auto report = data.files.check();
  if (!report) fail(report.error(), data);
  return std::move(*report);
}

// Ends the command with an error of a call that also reads the manifest.
[[noreturn]] void fail_to_change(Error error, const DataFiles& data) {
  (void)manifest_of(data);
  fail(error, data);
}

void make_lock(const DataFiles& data) {
  const auto made = data.files.make_lock();
  if (made) return;
  if (made.error() != Errc::exists) fail_to_change(made.error(), data);
  throw Failure{kExitFormat,
                fmt::format("{}/{} is not a regular file: end the processes that use topic '{}', "
                            "remove it, then run `leat fsck --repair {}` again",
                            data.path, TopicFiles::kLock, data.topic, data.topic)};
}

RepairReport repair(const DataFiles& data) {
  RepairReport report;
  const auto repaired = data.files.repair(report);
  for (const std::string& name : report.deleted_groups)
    print_notice(fmt::format(
        "no file of the group '{}' could be read: it is deleted; create it again, at the "
        "position where it is to go on",
        name));
  if (repaired) return report;
  if (repaired.error() != Errc::busy) fail_to_change(repaired.error(), data);
  throw Failure{
      kExitNotThere,
      fmt::format("topic '{}' is open: end the processes that use it, then repair it", data.topic)};
}

// Makes a topic writable whose memory has what could not be written. False if it was not read-only.
bool repair_in_memory(const std::string& name) {
  if (!has_memory(name)) return false;
  auto topic = Topic::open(name);
  if (!topic) fail(topic.error(), name);
  const std::optional<DurableInfo> durable = topic->info().durable;
  if (!durable || durable->state != Errc::read_only) return false;
  if (auto repaired = topic->repair(); !repaired) fail_to_sync(repaired.error(), name);
  print_notice(
      fmt::format("topic '{}' is writable again, and everything in its memory is on disk", name));
  return true;
}

nlohmann::ordered_json to_json(const CheckReport& report) {
  using Json = nlohmann::ordered_json;
  Json findings = Json::array();
  for (const FileFinding& one : report.findings)
    findings.push_back({{"file", one.file}, {"damage", one.is_damage}, {"text", one.text}});
  return {{"ok", !report.is_damaged()},
          {"closed", report.was_closed},
          {"files", report.files},
          {"bytes", report.bytes},
          {"frames", report.frames},
          {"records", report.records},
          {"damaged_offsets", report.damaged},
          {"lost_offsets", report.lost},
          {"findings", findings}};
}

void print(const CheckReport& report) {
  for (const FileFinding& one : report.findings) {
    const std::string status =
        one.is_damage ? tool::styled(tool::Style::red, "damaged") : fmt::format("{:<7}", "note");
    fmt::print("{}  {}: {}\n", status, one.file, one.text);
  }
  fmt::print("{} in {} file{}, {}", size_text(report.bytes), number_text(report.files),
             report.files == 1 ? "" : "s", number_text(report.records) + " records");
  if (report.lost != 0) fmt::print(", {} offsets skipped", number_text(report.lost));
  if (report.damaged != 0) fmt::print(", {} offsets damaged", number_text(report.damaged));
  fmt::print(": {}\n", report.is_damaged() ? "damaged" : "whole");
}

void fsck(const FsckArguments& arguments) {
  const DataFiles data = open_data_files(arguments.topic);
  if (arguments.repair) make_lock(data);
  if (arguments.repair && repair_in_memory(data.topic) && data.files.is_open()) return;
  if (arguments.repair) {
    const RepairReport repaired = repair(data);
    if (repaired.cut_bytes != 0)
      print_notice(
          fmt::format("{} ({} records) at the end were never written whole; they are kept in "
                      "{}/cut-…",
                      size_text(repaired.cut_bytes), number_text(repaired.cut_records), data.path));
  }
  const CheckReport report = check(data);
  if (arguments.json) {
    fmt::print("{}\n", tool::json_text(to_json(report), 2));
  } else {
    print(report);
  }
  if (!report.is_damaged()) return;
  std::fflush(stdout);
  throw Failure{
      kExitFormat,
      arguments.repair
          ? fmt::format("what is damaged in topic '{}' can't be repaired: readers get a "
                        "gap there; a backup has the records",
                        arguments.topic)
          : fmt::format("topic '{}' is damaged; everything else can be read", arguments.topic)};
}

}  // namespace

void add_fsck_command(CLI::App& app) {
  auto arguments = std::make_shared<FsckArguments>();
  CLI::App* command = app.add_subcommand("fsck", "Check the files of a durable topic");
  command->add_option("TOPIC", arguments->topic, "The topic; best while no process has it open")
      ->required();
  command->add_flag(
      "--repair", arguments->repair,
      "Make a topic writable after a failed write; cut off what was never written whole, "
      "and make damaged copies of the manifest and the checkpoint anew");
  command->add_flag("-J,--json", arguments->json, "Print what was found as JSON");
  command->footer("Example:\n  leat fsck orders\nExits with 5 if something is damaged.");
  command->callback([arguments] { fsck(*arguments); });
}

}  // namespace leat::cli
