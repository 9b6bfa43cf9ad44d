// `leat restore DIRECTORY`: makes a topic of what `leat backup` has made.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "cli/cli.hpp"
#include "cli/stop_on_signal.hpp"
#include "cli/topic/room.hpp"
#include "data_files.hpp"
#include "leat/admin.hpp"

namespace leat::cli {
namespace {

struct RestoreArguments {
  std::string directory;
  std::string name;
};

// Anything may be in it.
DataFiles open_backup(const RestoreArguments& arguments) {
  auto files = TopicFiles::open_path(arguments.directory);
  if (!files && files.error().system_error == ENOTDIR)
    throw Failure{kExitFormat,
                  fmt::format("{} is not a backup, which is a directory", arguments.directory)};
  if (!files && files.error() == Errc::not_found)
    throw Failure{kExitNotThere, fmt::format("there is no directory '{}'", arguments.directory)};
  if (!files)
    throw Failure{exit_code_for(files.error().code),
                  fmt::format("cannot open {}: {}", arguments.directory,
                              std::strerror(files.error().system_error))};
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(arguments.directory, error);
  if (error) throw system_failure("cannot open " + arguments.directory, error.value());
  return {arguments.name.empty() ? path.filename().string() : arguments.name, path.string(),
          std::move(*files)};
}

// " (is …/orders meant?)": several backups are often in one directory.
std::string backup_below(const std::string& path) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator{path, error}) {
    const auto files = TopicFiles::open_path(entry.path().string());
    if (files && files->manifest()) return fmt::format(" (is {} meant?)", entry.path().string());
  }
  return {};
}

// Fails unless a topic can be made of it.
void check_backup(const DataFiles& backup) {
  const auto manifest = backup.files.manifest();
  if (!manifest && manifest.error() == Errc::not_found)
    throw Failure{kExitFormat, fmt::format("{} is not a backup: it has no manifest{}", backup.path,
                                           backup_below(backup.path))};
  if (!manifest && manifest.error() == Errc::corrupt)
    throw Failure{kExitFormat, fmt::format("both copies of the manifest in {} are damaged: nothing "
                                           "can be restored without one",
                                           backup.path)};
  if (!manifest) fail(manifest.error(), backup);
  if (backup.files.is_open())
    throw Failure{kExitNotThere,
                  fmt::format("{} is no backup but a topic that is in use: `leat backup` makes one",
                              backup.path)};
}

// Reads all of it, and says what is damaged.
void report_damage(const DataFiles& backup) {
  constexpr std::size_t kShown = 10;
  auto report = backup.files.check();
  if (!report) fail(report.error(), backup);
  std::size_t damages = 0;
  for (const FileFinding& one : report->findings) {
    if (one.is_damage && ++damages <= kShown)
      print_notice(fmt::format("warning: damaged: {}/{}: {}", backup.path, one.file, one.text));
  }
  if (damages > kShown)
    print_notice(fmt::format("warning: and {} more; `leat fsck` shows them", damages - kShown));
}

[[noreturn]] void fail_to_restore(Error error, const DataFiles& from, const std::string& data) {
  switch (error.code) {
    case Errc::exists:
      throw Failure{kExitNotThere,
                    fmt::format("topic '{}' exists already: delete it, or give another name with "
                                "--name",
                                from.topic)};
    case Errc::no_space:
      throw Failure{kExitFull,
                    fmt::format("no space for topic '{}' in {}, nothing is left of it: {}",
                                from.topic, data, what_is_missing(error.system_error, data))};
    case Errc::permission:
      throw Failure{kExitPermission,
                    fmt::format("no permission to make topic '{}' in {}, to give its files the "
                                "mode and group of the backup, or to read {}",
                                from.topic, data, from.path)};
    default: fail(error, from);
  }
}

void restore(const RestoreArguments& arguments) {
  if (!arguments.name.empty()) check_topic_name(arguments.name);
  const DataFiles from = open_backup(arguments);
  check_backup(from);
  check_topic_name(from.topic);
  const std::string data_path = data_directory();
  if (has_files(from.topic) || has_memory(from.topic))
    fail_to_restore({Errc::exists, 0}, from, data_path);
  report_damage(from);
  (void)writable_data_directory();
  const StopOnSignal signals;
  auto copied = from.files.restore(from.topic, signals.token());
  if (!copied && copied.error() == Errc::stopped) throw signals.failure("nothing was restored");
  if (!copied) fail_to_restore(copied.error(), from, data_path);
  fmt::print("restored topic '{}' from {}: {}\neverything is kept in {}/{}\n", from.topic,
             from.path, describe(*copied), data_path, from.topic);
  note_if_in_memory(data_path);
}

}  // namespace

void add_restore_command(CLI::App& app) {
  auto arguments = std::make_shared<RestoreArguments>();
  CLI::App* command = app.add_subcommand("restore", "Make a topic of what `leat backup` has made");
  command->add_option("DIRECTORY", arguments->directory, "The backup; it stays as it is")
      ->required();
  command
      ->add_option("--name", arguments->name,
                   "Of the topic; else the last part of the directory's path")
      ->type_name("NAME");
  command->footer(
      "Example:\n  leat restore /var/backups/orders\n"
      "  leat restore /var/backups/orders --name orders-before");
  command->callback([arguments] { restore(*arguments); });
}

}  // namespace leat::cli
