// `leat topic delete`, which is also `leat rm`.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/cli.hpp"
#include "cli/remote/remote.hpp"
#include "leat/admin.hpp"
#include "leat/os/os.hpp"

namespace leat::cli {
namespace {

struct DeleteArguments {
  std::vector<std::string> names;
  bool force = false;
};

// "publisher 12, subscriber 14"; empty if nobody has it open in this directory.
std::string who_is_attached(const std::string& name) {
  if (!inspect_memory(name)) return {};
  auto topic = Topic::open(name);
  if (!topic) return "somebody";
  std::string all;
  for (const ParticipantInfo& one : topic->info().participants) {
    if (!all.empty()) all += ", ";
    all += fmt::format("{} {}", one.role, one.pid);
  }
  return all.empty() ? "somebody who is just leaving" : all;
}

// Whether the topic belongs to another user, in a directory where only owners may delete.
bool is_protected_by_sticky_bit(const std::string& directory, const std::string& name) {
  struct stat status {};
  struct stat topic {};
  const std::string path = directory + '/' + name;
  return ::stat(directory.c_str(), &status) == 0 && (status.st_mode & S_ISVTX) != 0 &&
         status.st_uid != ::geteuid() && ::lstat(path.c_str(), &topic) == 0 &&
         !os::may_act_as_owner(AT_FDCWD, path.c_str());
}

// Ends the command if it may not take the topic out of its directory, or if what is not the topic's is in the way.
void fail_if_in_the_way(Error error, const std::string& name) {
  if (error.code == Errc::permission) {
    const std::string sentence = lock_sentence(name);
    if (!sentence.empty()) throw Failure{kExitPermission, sentence};
    for (const std::string& directory : {topics_directory(), data_directory()}) {
      if (!is_protected_by_sticky_bit(directory, name)) continue;
      throw Failure{kExitPermission,
                    fmt::format("topic '{0}' belongs to another user, and in {1} only owners and "
                                "root may delete (its sticky bit: ls -ld {1})",
                                name, directory)};
    }
  }
  if (error.code != Errc::wrong_format || error.system_error != ENOTEMPTY) return;
  const auto memory = inspect_memory(name);
  const std::string path =
      memory && memory->is_durable ? memory->files : data_directory() + '/' + name;
  auto files = os::open_directory_path(path, false, false);
  auto inner = files ? os::find_directory_in(files->get()) : files.error();
  if (!inner || inner->empty()) return;
  throw Failure{kExitFormat,
                fmt::format("topic '{}' was not deleted: the directory {}/{} is in the way, which "
                            "is not the topic's; move it, or remove it if it is yours",
                            name, path, *inner)};
}

void delete_topic(const std::string& name, bool force) {
  auto deleted = Topic::delete_topic(name, {.force = force});
  if (deleted) return;
  fail_if_in_the_way(deleted.error(), name);
  const bool may_force = deleted.error().code == Errc::busy && !force;
  const std::string who = may_force ? who_is_attached(name) : std::string{};
  if (who.empty()) fail(deleted.error(), name);
  throw Failure{kExitNotThere, fmt::format("topic '{}' is in use by {}: end them first, or delete "
                                           "it anyway with --force",
                                           name, who)};
}

// Deletes as many as it can. Prints one line for each of the others; the last of them sets the exit code.
void delete_topics(const DeleteArguments& arguments) {
  for (const std::string& name : arguments.names) check_topic_name(name);
  usable_directory(Missing::fails_if_named);
  std::optional<Failure> failure;
  for (const std::string& name : arguments.names) {
    try {
      delete_topic(name, arguments.force);
    } catch (const Failure& failed) {
      if (failure) print_notice(failure->what());
      failure = failed;
    }
  }
  if (failure) throw Failure{*failure};
}

CLI::App* add_delete(CLI::App& app, const char* name, const char* description) {
  auto arguments = std::make_shared<DeleteArguments>();
  CLI::App* command = app.add_subcommand(name, description);
  add_words(*command, "NAME", arguments->names, "The topics")->required();
  command->add_flag("-f,--force", arguments->force, "Also while in use; whoever uses it is told");
  auto broker = add_broker_options(*command);
  command->callback([arguments, broker, command] {
    if (!broker->is_given()) return delete_topics(*arguments);
    check_only(*command, {});
    remote_delete(*broker, arguments->names);
  });
  return command;
}

}  // namespace

void add_topic_delete(CLI::App& topic) {
  add_delete(topic, "delete", "Delete topics that nobody uses")
      ->alias("rm")
      ->footer("Example:\n  leat topic delete orders news");
}

void add_rm_command(CLI::App& app) {
  add_delete(app, "rm", "Delete topics, as `leat topic delete` does")
      ->footer("Example:\n  leat rm orders news");
}

}  // namespace leat::cli
