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
#include "leat/log/directory.hpp"
#include "leat/log/durable_topic.hpp"
#include "leat/store/backup.hpp"

namespace leat::cli {
namespace {

struct RestoreArguments {
  std::string directory;
  std::string name;
};

// Anything may be in it.
DataFiles open_backup(const RestoreArguments& arguments) {
  auto directory = detail::open_directory_path(arguments.directory, false, false);
  if (!directory && directory.error().system_error == ENOTDIR)
    throw Failure{kExitFormat,
                  fmt::format("{} is not a backup, which is a directory", arguments.directory)};
  if (!directory && directory.error() == Errc::not_found)
    throw Failure{kExitNotThere, fmt::format("there is no directory '{}'", arguments.directory)};
  if (!directory)
    throw Failure{exit_code_for(directory.error().code),
                  fmt::format("cannot open {}: {}", arguments.directory,
                              std::strerror(directory.error().system_error))};
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(arguments.directory, error);
  if (error) throw system_failure("cannot open " + arguments.directory, error.value());
  return {arguments.name.empty() ? path.filename().string() : arguments.name, path.string(),
          std::move(*directory)};
}

detail::Manifest manifest_of_backup(const DataFiles& files) {
  auto manifest = detail::load_manifest(detail::Disk::system(), files.directory.get());
  if (!manifest && manifest.error() == Errc::not_found)
    throw Failure{kExitFormat, fmt::format("{} is not a backup: it has no manifest", files.path)};
  if (!manifest && manifest.error() == Errc::corrupt)
    throw Failure{kExitFormat, fmt::format("both copies of the manifest in {} are damaged: nothing "
                                           "can be restored without one",
                                           files.path)};
  if (!manifest) fail(manifest.error(), files);
  auto lock = detail::open_data_lock(files.directory.get());
  if (lock && detail::byte_is_locked(lock->get(), detail::kAttachLock))
    throw Failure{kExitNotThere,
                  fmt::format("{} is no backup but a topic that is in use: `leat backup` makes one",
                              files.path)};
  return std::move(*manifest);
}

// Reads all of it, and says what is damaged.
void report_damage(const DataFiles& files) {
  constexpr std::size_t kShown = 10;
  auto report = detail::check_store(detail::Disk::system(), files.directory.get());
  if (!report) fail(report.error(), files);
  std::size_t damages = 0;
  for (const detail::StoreFinding& one : report->findings) {
    if (one.is_damage && ++damages <= kShown)
      print_notice(fmt::format("warning: damaged: {}/{}: {}", files.path, one.file, one.text));
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
  const detail::Manifest manifest = manifest_of_backup(from);
  check_topic_name(from.topic);
  const std::string data_path = detail::data_directory_path({});
  auto topics = detail::open_directory({}, false);
  if (detail::has_store({}, from.topic) ||
      (topics && detail::has_name(topics->get(), from.topic.c_str())))
    fail_to_restore({Errc::exists, 0}, from, data_path);
  report_damage(from);
  (void)writable_data_directory();
  auto data = detail::open_data_directory({}, false);
  if (!data) fail_to_restore(data.error(), from, data_path);
  // Copies all of it: the topic goes on in its last file, and recovery may cut others.
  const StopOnSignal signals;
  auto copied = detail::copy_store(detail::Disk::system(), from.directory.get(), manifest,
                                   {.stop = signals.token(), .id = detail::make_topic_id()},
                                   data->get(), from.topic);
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
