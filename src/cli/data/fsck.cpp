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
#include "leat/leat.hpp"
#include "leat/log/directory.hpp"
#include "leat/store/data_lock.hpp"
#include "leat/store/store.hpp"
#include "tool/json_text.hpp"
#include "tool/terminal.hpp"

namespace leat::cli {
namespace {

struct FsckArguments {
  std::string topic;
  bool repair = false;
  bool json = false;
};

detail::StoreReport check(const DataFiles& files) {
  (void)manifest_of(files);  // Says what is wrong with it.
  auto report = detail::check_store(detail::Disk::system(), files.directory.get());
  if (!report) fail(report.error(), files);
  return std::move(*report);
}

// Makes the file that processes lock, if it is missing: a copy may leave out empty files. Does not replace anything
// else: a process may still have the topic open by the file that had the name before.
void make_lock(const DataFiles& files) {
  const int directory = files.directory.get();
  detail::Disk& disk = detail::Disk::system();
  const auto present = disk.open(directory, detail::kDataLock, O_RDONLY, 0);
  if (present.error() == Errc::wrong_format)
    throw Failure{kExitFormat,
                  fmt::format("{}/{} is not a regular file: end the processes that use topic '{}', "
                              "remove it, then run `leat fsck --repair {}` again",
                              files.path, detail::kDataLock, files.topic, files.topic)};
  if (present.error() != Errc::not_found) return;
  const detail::Manifest manifest = manifest_of(files);
  auto made = detail::make_file(disk, directory, detail::kDataLock, 0, manifest.access());
  if (!made) fail(made.error(), files);
  if (auto synced = disk.sync_directory(directory); !synced) fail(synced.error(), files);
}

// Cuts off what was never written whole, and makes damaged copies anew. Needs the topic for itself.
detail::Recovered repair(const DataFiles& files) {
  detail::Disk& disk = detail::Disk::system();
  const int directory = files.directory.get();
  auto lock = detail::open_data_lock(directory);
  if (!lock) fail(lock.error(), files);
  auto alone = lock->try_lock(detail::kAttachLock);
  if (!alone) fail(alone.error(), files);
  if (!*alone)
    throw Failure{kExitNotThere,
                  fmt::format("topic '{}' is open: end the processes that use it, then repair it",
                              files.topic)};
  const detail::Manifest manifest = manifest_of(files);  // As it is now that nobody changes it.
  if (auto stored = detail::store_manifest(disk, directory, manifest); !stored)
    fail(stored.error(), files);
  auto deleted = detail::repair_groups(disk, directory, manifest);
  if (!deleted) fail(deleted.error(), files);
  for (const std::string& name : *deleted)
    print_notice(fmt::format(
        "no file of the group '{}' could be read: it is deleted; create it again, at the "
        "position where it is to go on",
        name));
  // Nobody has it open, so this is how it was closed.
  auto recovered = detail::recover_and_close(disk, directory, manifest);
  if (!recovered) fail(recovered.error(), files);
  return std::move(*recovered);
}

// Makes a topic writable whose memory has what could not be written. False if it was not read-only.
bool repair_in_memory(const DataFiles& files) {
  auto directory = detail::open_directory({}, false);
  if (!directory || !detail::has_name(directory->get(), files.topic.c_str())) return false;
  auto topic = Topic::open(files.topic);
  if (!topic) fail(topic.error(), files.topic);
  const std::optional<DurableInfo> durable = topic->info().durable;
  if (!durable || durable->state != Errc::read_only) return false;
  if (auto repaired = topic->repair(); !repaired) fail_to_sync(repaired.error(), files.topic);
  print_notice(fmt::format("topic '{}' is writable again, and everything in its memory is on disk",
                           files.topic));
  return true;
}

// Whether another process has the topic open.
bool is_open(const DataFiles& files) {
  auto lock = detail::open_data_lock(files.directory.get());
  return lock && detail::byte_is_locked(lock->get(), detail::kAttachLock);
}

nlohmann::ordered_json to_json(const detail::StoreReport& report) {
  using Json = nlohmann::ordered_json;
  Json findings = Json::array();
  for (const detail::StoreFinding& one : report.findings)
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

void print(const detail::StoreReport& report) {
  for (const detail::StoreFinding& one : report.findings) {
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
  const DataFiles files = open_data_files(arguments.topic);
  if (arguments.repair) make_lock(files);
  if (arguments.repair && repair_in_memory(files) && is_open(files)) return;
  if (arguments.repair) {
    const detail::Recovered recovered = repair(files);
    if (recovered.cut_bytes() != 0)
      print_notice(fmt::format(
          "{} ({} records) at the end were never written whole; they are kept in "
          "{}/cut-…",
          size_text(recovered.cut_bytes()), number_text(recovered.cut_records()), files.path));
  }
  const detail::StoreReport report = check(files);
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
