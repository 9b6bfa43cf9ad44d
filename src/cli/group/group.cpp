// `leat group create | list | info | seek | delete`. What list and info print is in group_list.cpp.
#include "group.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/remote/remote.hpp"
#include "group_list.hpp"
#include "leat/admin.hpp"
#include "tool/did_you_mean.hpp"

namespace leat::cli {

namespace {

OnExpired on_expired_of(const GroupArguments& arguments) {
  const std::string& text = arguments.on_expired;
  if (text == "start") return OnExpired::start;
  if (text == "end") return OnExpired::end;
  if (text == "stop") return OnExpired::stop;
  throw Failure{kExitUsage, fmt::format("--on-expired: '{}' is none of start, end and stop", text)};
}

}  // namespace

std::vector<CLI::Option*> add_group_options(CLI::App& app, GroupArguments& arguments) {
  return {
      app.add_flag("--at-most-once", arguments.at_most_once,
                   "A record that was handed out is done: never delivered again"),
      app.add_flag("--by-key", arguments.by_key,
                   "Records of one key go to one member at a time, in order"),
      add_number(app, "--max-deliveries", arguments.max_deliveries, 1, TopicLimits::kMaxDeliveries,
                 "A record that comes back after this many goes to topic TOPIC.GROUP.dead; by "
                 "default never"),
      add_duration(app, "--lease", arguments.lease,
                   "A member that holds a record for this long loses it; by default never"),
      app.add_option("--on-expired", arguments.on_expired,
                     "Durable topics: where to go on if retention has deleted the group's next "
                     "record: at what is left (start), behind everything (end), or not (stop)")
          ->type_name("start|end|stop")
          ->default_str("start"),
      add_number(app, "--in-flight", arguments.in_flight, 1, 65'536,
                 "Records that one member may hold unacknowledged")
          ->default_str("1024"),
      add_number(app, "--members", arguments.members, 1, 255, "Members at a time")
          ->default_str("64")};
}

void check_group_options(const GroupArguments& arguments) {
  (void)on_expired_of(arguments);
  if (!arguments.at_most_once || arguments.max_deliveries == 0) return;
  throw Failure{
      kExitUsage,
      "--at-most-once and --max-deliveries exclude each other: a record that is delivered at "
      "most once never comes back"};
}

namespace {

// As similar_topic().
std::string similar_group(const std::string& topic_name, const std::string& name) {
  const auto topic = Topic::open(topic_name);
  if (!topic) return {};
  const auto names = topic->group_names();
  return names ? tool::did_you_mean(name, *names) : std::string{};
}

// Ends the command if the topic's owner could not use a group that this process creates, which the library refuses.
void fail_if_owner_is_kept_out(Error error, const std::string& topic) {
  if (error.code != Errc::permission || error.system_error != EACCES) return;
  const auto memory = inspect_memory(topic);
  if (!memory || memory->owner == ::geteuid() || (memory->mode & 0060) != 0) return;
  throw Failure{kExitPermission,
                fmt::format("topic '{}' belongs to another user, who could not use the group: "
                            "create it as that user",
                            topic)};
}

}  // namespace

void fail_group(Error error, const std::string& topic, const std::string& group) {
  std::string sentence;
  switch (error.code) {
    case Errc::not_found:
      sentence =
          fmt::format("topic '{}' has no group '{}'{}; `leat group list {}` shows what there is",
                      topic, group, similar_group(topic, group), topic);
      break;
    case Errc::exists:
      sentence = fmt::format("topic '{}' has a group '{}' already", topic, group);
      break;
    case Errc::too_many:
      sentence = fmt::format(
          "no place for another member in group '{}' of topic '{}': end one, or create the group "
          "with "
          "more --members, or the topic with more --participants",
          group, topic);
      break;
    case Errc::closed:
      sentence = fmt::format("group '{}' of topic '{}' was deleted", group, topic);
      break;
    case Errc::busy:
      sentence = fmt::format(
          "somebody is creating or deleting a group of topic '{}' just now: try again", topic);
      break;
    case Errc::expired:
      sentence = fmt::format(
          "retention has deleted what group '{}' of topic '{}' was to get next, and it was created "
          "with --on-expired stop: move it with `leat group seek {} {} beginning`",
          group, topic, topic, group);
      break;
    // About the topic as a whole.
    case Errc::deleted:
    case Errc::permission:
    case Errc::wrong_format: fail(error, topic);
    case Errc::corrupt:
      if (!has_files(topic)) fail(error, topic);
      sentence = fmt::format(
          "what is saved of group '{}' of topic '{}', or of another one, is damaged: `leat fsck "
          "{}` "
          "shows it, and `leat fsck --repair {}` deletes what cannot be read",
          group, topic, topic, topic);
      break;
    default:
      sentence = fmt::format("group '{}' of topic '{}': {}", group, topic, describe(error));
      break;
  }
  throw Failure{exit_code_for(error.code), sentence};
}

Group open_or_create_group(const Topic& topic, const std::string& name,
                           const GroupArguments& arguments) {
  GroupOptions options;
  options.from = parse_place("--from", arguments.from);
  options.mode = arguments.at_most_once ? GroupMode::at_most_once : GroupMode::at_least_once;
  options.by_key = arguments.by_key;
  options.max_deliveries = static_cast<std::uint32_t>(arguments.max_deliveries);
  options.lease = arguments.lease;
  options.in_flight = static_cast<std::uint32_t>(arguments.in_flight);
  options.members = static_cast<std::uint32_t>(arguments.members);
  options.on_expired = on_expired_of(arguments);
  auto there = topic.find_group(name);
  if (there) return std::move(*there);
  if (there.error() == Errc::corrupt) fail_group(there.error(), topic.name(), name);
  if (topic.partitions() > 1 && parse_number(arguments.from)) {
    throw Failure{
        kExitUsage,
        fmt::format("--from {}: topic '{}' has {} partitions, each with offsets of its own: create "
                    "the group, then `leat group seek {} {} {} --partition N`",
                    arguments.from, topic.name(), topic.partitions(), topic.name(), name,
                    arguments.from)};
  }
  auto group = topic.group(name, options);
  if (group) return std::move(*group);
  if (group.error() == Errc::corrupt) fail_group(group.error(), topic.name(), name);
  if (group.error() == Errc::needs_durable) {
    throw Failure{kExitUsage,
                  fmt::format("--on-expired: topic '{}' is not durable: it keeps what its groups "
                              "have not read",
                              topic.name())};
  }
  if (group.error() == Errc::not_with_overwrite) {
    throw Failure{kExitUsage,
                  fmt::format("topic '{}' overwrites what is oldest, so it can't have groups: they "
                              "need their records to stay",
                              topic.name())};
  }
  if (group.error() == Errc::needs_timestamps) {
    throw Failure{
        kExitUsage,
        fmt::format("--from {}: the records of topic '{}' carry no time: it was created without "
                    "--timestamps",
                    arguments.from, topic.name())};
  }
  const std::uint64_t offset = parse_number(arguments.from).value_or(0);
  if (group.error().code == Errc::invalid_argument && offset > topic.end_offset(0)) {
    throw Failure{kExitUsage,
                  fmt::format("--from {}: topic '{}' has no such offset yet: it ends at {}, and a "
                              "group begins at an offset up to the end",
                              arguments.from, topic.name(), topic.end_offset(0))};
  }
  if (group.error().code == Errc::invalid_argument && options.max_deliveries != 0) {
    throw Failure{kExitUsage,
                  fmt::format("--max-deliveries: the topic of what fails too often would be called "
                              "'{}', which is longer than 200 characters",
                              dead_letter_topic(topic.name(), name))};
  }
  if (group.error().code == Errc::too_many) {
    throw Failure{kExitNotThere,
                  fmt::format("topic '{}' has as many groups as it may have: delete one of `leat "
                              "group list {}`",
                              topic.name(), topic.name())};
  }
  fail_if_owner_is_kept_out(group.error(), topic.name());
  fail_group(group.error(), topic.name(), name);
}

namespace {

struct Arguments {
  std::string topic;
  std::string name;
  std::string place;
  std::optional<std::uint64_t> partition;
  GroupArguments options;
  bool json = false;
  bool force = false;
};

Topic open_topic(const std::string& name) {
  check_topic_name(name);
  usable_directory(Missing::fails_if_named);
  auto topic = Topic::open(name);
  if (!topic) fail(topic.error(), name);
  return std::move(*topic);
}

// The topic of a command that also names a group of it.
Topic open_topic_of_group(const Arguments& arguments) {
  const auto names = Topic::list();
  const auto has = [&](const std::string& name) {
    return names && std::find(names->begin(), names->end(), name) != names->end();
  };
  if (has(arguments.name) && !has(arguments.topic))
    throw Failure{
        kExitNotThere,
        fmt::format("there is no topic '{}': write the topic first, then the group: {} {}",
                    arguments.topic, arguments.name, arguments.topic)};
  return open_topic(arguments.topic);
}

Group find_group(const Topic& topic, const std::string& name) {
  auto group = topic.find_group(name);
  if (!group) fail_group(group.error(), topic.name(), name);
  return std::move(*group);
}

// ---- create ------------------------------------------------------------------------------------

void create(const Arguments& arguments) {
  check_name("group", arguments.name);
  (void)parse_place("--from", arguments.options.from);
  check_group_options(arguments.options);
  const Topic topic = open_topic_of_group(arguments);
  const Group group = open_or_create_group(topic, arguments.name, arguments.options);
  if (!group.was_created()) fail_group({Errc::exists, 0}, arguments.topic, arguments.name);
  fmt::print("created group '{}' of topic '{}', from {}\n", arguments.name, arguments.topic,
             arguments.options.from);
}

// ---- list and info -----------------------------------------------------------------------------

void list(const Arguments& arguments) { list_groups(open_topic(arguments.topic), arguments.json); }

void info(const Arguments& arguments) {
  check_name("group", arguments.name);
  const Topic topic = open_topic_of_group(arguments);
  print_group(arguments.topic, find_group(topic, arguments.name).info(), arguments.json);
}

// ---- seek --------------------------------------------------------------------------------------

void seek(const Arguments& arguments) {
  check_name("group", arguments.name);
  const From place = parse_place("PLACE", arguments.place);
  const Topic topic = open_topic_of_group(arguments);
  const Group group = find_group(topic, arguments.name);
  std::optional<std::uint32_t> partition;
  if (arguments.partition) {
    partition = partition_of(topic, *arguments.partition);
  } else if (topic.partitions() > 1 && parse_number(arguments.place)) {
    throw Failure{kExitUsage,
                  fmt::format("topic '{}' has {} partitions, each with offsets of its own: add "
                              "--partition 0 to {}",
                              topic.name(), topic.partitions(), topic.partitions() - 1)};
  }
  auto moved = group.seek(place, partition);
  if (moved) return;
  if (moved.error() == Errc::needs_timestamps) {
    throw Failure{kExitUsage,
                  fmt::format("{}: the records of topic '{}' carry no time: it was created without "
                              "--timestamps",
                              arguments.place, topic.name())};
  }
  if (moved.error().code == Errc::invalid_argument) {
    throw Failure{
        kExitUsage,
        fmt::format("{}: {}topic '{}' has no such offset yet: it ends at {}, and a group moves to "
                    "an offset up to the end",
                    arguments.place,
                    partition ? fmt::format("partition {} of ", *partition) : std::string{},
                    topic.name(), topic.end_offset(partition.value_or(0)))};
  }
  fail_group(moved.error(), topic.name(), arguments.name);
}

// ---- delete ------------------------------------------------------------------------------------

// "12, 14 (anna)"
std::string members_text(const Topic& topic, const std::string& name) {
  std::string all;
  if (auto group = topic.find_group(name)) {
    for (const MemberInfo& one : group->info().members) {
      if (!all.empty()) all += ", ";
      all +=
          one.name.empty() ? fmt::format("{}", one.pid) : fmt::format("{} ({})", one.pid, one.name);
    }
  }
  return all;
}

void delete_group(const Arguments& arguments) {
  check_name("group", arguments.name);
  const Topic topic = open_topic_of_group(arguments);
  auto deleted = topic.delete_group(arguments.name, arguments.force);
  if (deleted) return;
  const std::string members = members_text(topic, arguments.name);
  if (deleted.error().code != Errc::busy || members.empty())
    fail_group(deleted.error(), arguments.topic, arguments.name);
  throw Failure{kExitNotThere,
                fmt::format("group '{}' of topic '{}' has members, pid {}: end them first, or "
                            "delete it anyway with --force",
                            arguments.name, arguments.topic, members)};
}

// Why only `seek` can: the broker's protocol has nothing else.
constexpr char kNotAtBroker[] =
    "a topic of a broker has one group, lightq, which is always there: with --broker, `leat sub "
    "TOPIC --group lightq` takes part in it, `leat topic info TOPIC` tells how much waits for it, "
    "and `leat group seek TOPIC lightq PLACE` moves it";

CLI::App* add_command(CLI::App& group, const char* name, const char* what, Arguments& arguments) {
  CLI::App* command = group.add_subcommand(name, what);
  command->add_option("TOPIC", arguments.topic, "The topic")->required();
  command->add_option("NAME", arguments.name, "The group")->required();
  return command;
}

}  // namespace

void add_group_command(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* group =
      app.add_subcommand("group", "Create, list, look at, move and delete groups of a topic");
  group->require_subcommand(1);
  group->footer(
      "Members share the records of a topic: `leat sub TOPIC --group NAME` in several terminals.\n"
      "Example:\n  leat group list orders\n  leat group seek orders workers beginning");

  CLI::App* create_command = add_command(*group, "create", "Create a group", *arguments);
  create_command
      ->add_option("--from", arguments->options.from,
                   "Where it begins: end, beginning, an offset, -10, 1h or @TIME, as in `leat sub`")
      ->type_name("PLACE")
      ->default_str("end");
  add_group_options(*create_command, arguments->options);
  create_command->footer(
      "Example:\n  leat group create orders workers --from beginning --max-deliveries 5");
  create_command->callback([arguments] { create(*arguments); });
  refuse_broker(*create_command, kNotAtBroker);

  CLI::App* list_command = group->add_subcommand("list", "All groups of a topic, or of all topics");
  list_command->alias("ls");
  const CLI::Option* const topic = list_command->add_option(
      "TOPIC", arguments->topic, "The topic; all topics if it is left out");
  list_command->add_flag("--json", arguments->json, "For programs");
  list_command->footer("Example:\n  leat group list orders --json\n  leat group list");
  list_command->callback([arguments, topic] {
    if (topic->count() == 0) return list_all_groups(arguments->json);
    list(*arguments);
  });
  refuse_broker(*list_command, kNotAtBroker);

  CLI::App* info_command = add_command(
      *group, "info", "One group: where it is, what is in flight, who is a member", *arguments);
  info_command->add_flag("--json", arguments->json, "For programs");
  info_command->footer("Example:\n  leat group info orders workers --json");
  info_command->callback([arguments] { info(*arguments); });
  refuse_broker(*info_command, kNotAtBroker);

  CLI::App* seek_command = add_command(*group, "seek", "Move a group to another place", *arguments);
  seek_command
      ->add_option("PLACE", arguments->place,
                   "end, beginning, an offset, -10, 1h or @TIME, as in `leat sub` (with --broker: "
                   "one of the "
                   "first three); what members hold stays theirs")
      ->required();
  add_number(*seek_command, "-p,--partition", arguments->partition, 0,
             TopicLimits::kMaxPartitions - 1, "Only in this partition");
  seek_command->footer("Example:\n  leat group seek orders workers @2024-05-01T12:00:00Z");
  auto broker = add_broker_options(*seek_command);
  seek_command->callback([arguments, broker, seek_command] {
    if (!broker->is_given()) return seek(*arguments);
    check_only(*seek_command, {});
    remote_seek(*broker, arguments->topic, arguments->name, arguments->place);
  });

  CLI::App* delete_command =
      add_command(*group, "delete", "Delete a group without members", *arguments);
  delete_command->alias("rm");
  delete_command->add_flag("-f,--force", arguments->force,
                           "Also while it has members; they are told");
  delete_command->footer("Example:\n  leat group delete orders workers");
  delete_command->callback([arguments] { delete_group(*arguments); });
  refuse_broker(*delete_command, kNotAtBroker);
}

}  // namespace leat::cli
