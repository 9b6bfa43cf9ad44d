// `leat backup TOPIC DIRECTORY`: a copy of a durable topic's files, also while it is in use.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <system_error>

#include "cli/cli.hpp"
#include "cli/stop_on_signal.hpp"
#include "cli/topic/room.hpp"
#include "data_files.hpp"
#include "leat/admin.hpp"
#include "leat/os/os.hpp"

namespace leat::cli {
namespace {

struct BackupArguments {
  std::string topic;
  std::string directory;
  bool copies = false;
};

// Everything that was claimed so far, so that the backup has it. Says what keeps it from being there.
void wait_for_disk(const Topic& topic, const std::stop_token& stop) {
  constexpr std::chrono::seconds kPatience{10};
  const Error error = topic.sync(kPatience, stop).error();
  const std::string reason =
      error.system_error != 0 ? fmt::format(" ({})", std::strerror(error.system_error)) : "";
  if (error.code == Errc::io_error)
    print_notice(fmt::format("warning: topic '{}' is read-only{}: the backup has what its disk has",
                             topic.name(), reason));
  if (error.code == Errc::not_durable && !stop.stop_requested())
    print_notice(fmt::format("warning: the backup lacks what the disk did not take within {} s{}",
                             kPatience.count(), reason));
}

struct Target {
  std::string parent;
  std::string name;
};
Target target_of(const std::string& path) {
  std::error_code error;
  std::filesystem::path whole = std::filesystem::absolute(path, error).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  if (error || !whole.has_filename())
    throw Failure{kExitUsage, fmt::format("'{}' is not the name of a new directory", path)};
  return {whole.parent_path(), whole.filename()};
}

[[noreturn]] void fail_to_back_up(Error error, const std::string& topic, const Target& target) {
  const std::string path = target.parent + '/' + target.name;
  switch (error.code) {
    case Errc::exists:
      throw Failure{kExitNotThere, fmt::format("{} exists already: name a new directory", path)};
    case Errc::no_space:
      throw Failure{kExitFull, fmt::format("no space for a backup of topic '{}' in {}, nothing is "
                                           "left of it: {}",
                                           topic, target.parent,
                                           what_is_missing(error.system_error, target.parent))};
    case Errc::permission:
      if (error.system_error == EROFS)
        throw Failure{kExitPermission,
                      fmt::format("cannot make {}: its file system is read-only", path)};
      throw Failure{
          kExitPermission,
          fmt::format("no permission to make {}, or to read a file of topic '{}'", path, topic)};
    case Errc::busy:
      throw Failure{kExitNotThere,
                    fmt::format("the files of topic '{}' are deleted faster than they can be "
                                "copied: try again, or to a directory on their file system",
                                topic)};
    case Errc::deleted: fail(error, topic);
    default:
      throw Failure{exit_code_for(error.code), fmt::format("cannot back up topic '{}' to {}: {}",
                                                           topic, path, describe(error))};
  }
}

void back_up(const BackupArguments& arguments) {
  const std::string& name = arguments.topic;
  check_topic_name(name);
  const Target target = target_of(arguments.directory);
  usable_directory(Missing::fails_if_named);
  const StopOnSignal signals;
  auto topic = Topic::open(name);
  if (!topic) fail(topic.error(), name);
  const TopicInfo info = topic->info();
  if (!info.durable)
    throw Failure{kExitUsage, fmt::format("topic '{}' is not durable: there are no files to back "
                                          "up (leat topic create --durable)",
                                          name)};
  auto parent = os::open_directory_path(target.parent, false, false);
  if (!parent && parent.error() == Errc::not_found)
    throw Failure{kExitNotThere, fmt::format("there is no directory {}", target.parent)};
  if (!parent) fail_to_back_up(parent.error(), name, target);
  if (os::has_name(parent->get(), target.name.c_str()))
    fail_to_back_up({Errc::exists, 0}, name, target);
  DataFiles data{name, info.durable->directory, {}};
  auto files = TopicFiles::open_path(data.path);
  if (!files) fail(files.error(), data);
  data.files = std::move(*files);
  std::error_code error;
  if (std::filesystem::equivalent(data.path, target.parent, error))
    throw Failure{kExitUsage, fmt::format("{} has the files of topic '{}' itself: name another "
                                          "place",
                                          target.parent, name)};
  wait_for_disk(*topic, signals.token());
  (void)manifest_of(data);  // Says what is wrong with it.
  auto copied = data.files.back_up(target.parent + '/' + target.name,
                                   {.copies = arguments.copies, .stop = signals.token()});
  if (!copied && copied.error() == Errc::stopped) throw signals.failure("no backup was made");
  if (!copied) fail_to_back_up(copied.error(), name, target);
  fmt::print("backed up topic '{}' to {}/{}: {}\n", name, target.parent, target.name,
             describe(*copied));
}

}  // namespace

void add_backup_command(CLI::App& app) {
  auto arguments = std::make_shared<BackupArguments>();
  CLI::App* command =
      app.add_subcommand("backup", "Copy the files of a durable topic, also while it is in use");
  command->add_option("TOPIC", arguments->topic, "The topic")->required();
  command
      ->add_option("DIRECTORY", arguments->directory,
                   "Where to; made by this command. `leat restore` makes a topic of it")
      ->required();
  command->add_flag("--copy", arguments->copies,
                    "Copy every file; else full files are hard links on the same file system");
  command->footer("Example:\n  leat backup orders /var/backups/orders");
  command->callback([arguments] { back_up(*arguments); });
}

}  // namespace leat::cli
