// `leat topic create`.
#include <fmt/format.h>
#include <grp.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/cli.hpp"
#include "cli/data/data_files.hpp"
#include "cli/remote/remote.hpp"
#include "leat/admin.hpp"
#include "room.hpp"
#include "topic_description.hpp"

namespace leat::cli {
namespace {

constexpr std::uint64_t kMinCapacity = TopicLimits::kMinCapacity;
constexpr std::uint64_t kMaxCapacity = TopicLimits::kMaxCapacity;

std::uint64_t whole_pages(std::uint64_t bytes) {
  return (bytes + TopicLimits::kPage - 1) / TopicLimits::kPage * TopicLimits::kPage;
}

struct CreateArguments {
  std::string name;
  std::string policy = "block";
  std::string durable;
  std::optional<std::uint64_t> file_bytes;
  std::chrono::nanoseconds retention{0};
  bool has_capacity = false;
  std::string retain;
  std::string mode = "0600";
  std::uint64_t partitions = 1;
  std::uint64_t participants = TopicOptions{}.participants;
  TopicOptions options;
};

std::uint32_t parse_mode(const std::string& text) {
  std::uint32_t mode = 0;
  bool is_octal = !text.empty() && text.size() <= 5;
  for (const char c : text) {
    is_octal = is_octal && c >= '0' && c <= '7';
    mode = mode * 8 + static_cast<std::uint32_t>(c - '0');
  }
  if (!is_octal || (mode & ~0666U) != 0 || (mode & 0600) != 0600) {
    throw Failure{kExitUsage,
                  fmt::format("--mode: '{}' is not a mode for topics: write for example 0600, 0640 "
                              "or 0660 (participants need to read and write)",
                              text)};
  }
  return mode;
}

// "os", "fsync", "interval:20ms"
void parse_durability(const std::string& text, TopicOptions& options) {
  constexpr std::string_view kInterval = "interval";
  if (text == "os") {
    options.durable = Durability::os;
  } else if (text == "fsync") {
    options.durable = Durability::fsync;
  } else if (text.starts_with(kInterval)) {
    const auto interval = text.size() > kInterval.size() && text[kInterval.size()] == ':'
                              ? parse_duration(text.substr(kInterval.size() + 1))
                              : std::nullopt;
    if (!interval || *interval < TopicLimits::kMinSyncInterval ||
        *interval > TopicLimits::kMaxSyncInterval)
      throw Failure{
          kExitUsage,
          fmt::format("--durable: '{}' does not say how often to sync: write interval:20ms, "
                      "with 1ms to 1h",
                      text)};
    options.durable = Durability::interval;
    options.sync_interval = *interval;
  } else {
    throw Failure{
        kExitUsage,
        fmt::format("--durable: '{}' is not a level: write os, interval:20ms or fsync", text)};
  }
}

// Refuses what a durable topic cannot have.
void settle_durability(CreateArguments& arguments) {
  TopicOptions& options = arguments.options;
  const bool is_durable = !arguments.durable.empty();
  if (options.capacity_bytes == 0 && !arguments.has_capacity)
    options.capacity_bytes =
        is_durable ? TopicOptions::kDefaultWindow : TopicOptions::kDefaultCapacity;
  if (!is_durable) {
    if (arguments.file_bytes)
      throw Failure{kExitUsage, "--file-size means nothing without --durable"};
    if (options.retention_bytes != 0 || arguments.retention.count() != 0)
      throw Failure{kExitUsage,
                    "--retention-bytes and --retention-time mean nothing without --durable"};
    return;
  }
  parse_durability(arguments.durable, options);
  for (const auto& [option, is_given] :
       {std::pair{"--policy overwrite", options.policy == Policy::overwrite},
        std::pair{"--policy grow", options.policy == Policy::grow},
        std::pair{"--retain all", options.retain_all},
        std::pair{"--evict-after", options.evict_after.count() != 0},
        std::pair{"--delete-when-unused", options.delete_when_unused}}) {
    if (is_given)
      throw Failure{kExitUsage, fmt::format("{} and --durable exclude each other: a durable topic "
                                            "keeps everything on disk, and blocks when the disk is "
                                            "behind",
                                            option)};
  }
  options.retention = std::chrono::ceil<std::chrono::milliseconds>(arguments.retention);
  if (arguments.file_bytes) options.file_bytes = *arguments.file_bytes;
  if (options.file_bytes < TopicLimits::kMinFile || options.file_bytes > TopicLimits::kMaxFile)
    throw Failure{kExitUsage,
                  fmt::format("--file-size: {} is not possible, from {} to {} is",
                              size_text(options.file_bytes), size_argument(TopicLimits::kMinFile),
                              size_argument(TopicLimits::kMaxFile))};
}

// Refuses, with an explanation, what the library would call an invalid argument or silently make larger.
void check_sizes(const TopicOptions& options) {
  if (options.capacity_bytes < kMinCapacity || options.capacity_bytes > kMaxCapacity) {
    throw Failure{kExitUsage,
                  fmt::format("--capacity: {} is not possible, from {} to {} is (per partition)",
                              size_text(options.capacity_bytes), size_argument(kMinCapacity),
                              size_argument(kMaxCapacity))};
  }
  if (options.segment_bytes > TopicLimits::kMaxSegment) {
    throw Failure{kExitUsage, fmt::format("--segment-size: {} is too large, at most {} is possible",
                                          size_text(options.segment_bytes),
                                          size_text(TopicLimits::kMaxSegment))};
  }
  if (options.segment_bytes == 0) {
    if (options.capacity_bytes / 8 <= TopicLimits::kMaxSegment) return;
    throw Failure{
        kExitUsage,
        fmt::format("--capacity: an eighth of {} is larger than a segment can be: add "
                    "--segment-size {} or less",
                    size_text(options.capacity_bytes), size_argument(TopicLimits::kMaxSegment))};
  }
  const std::uint64_t segment = sizes_of(options).segment_bytes;
  if (2 * segment > options.capacity_bytes) {
    throw Failure{
        kExitUsage,
        fmt::format(
            "--segment-size: a topic has two segments or more, and two of {} are more than "
            "its capacity of {}: use --capacity {} or more, or --segment-size {} or less",
            size_text(segment), size_text(options.capacity_bytes), size_argument(2 * segment),
            size_argument(options.capacity_bytes / 2 / TopicLimits::kPage * TopicLimits::kPage))};
  }
  const std::uint64_t segments = (options.capacity_bytes + segment - 1) / segment;
  if (segments > TopicLimits::kMaxSegments) {
    const std::uint64_t least = whole_pages(
        (options.capacity_bytes + TopicLimits::kMaxSegments - 1) / TopicLimits::kMaxSegments);
    throw Failure{
        kExitUsage,
        fmt::format("--segment-size: {} segments of {} are too many, at most {} are possible: "
                    "use --segment-size {} or more",
                    segments, size_text(segment), TopicLimits::kMaxSegments, size_argument(least))};
  }
}

void check_growth(const TopicOptions& options) {
  const auto [segment, capacity] = sizes_of(options);
  if (options.policy != Policy::grow) {
    for (const auto& [option, bytes] : {std::pair{"--max-capacity", options.max_capacity_bytes},
                                        {"--grow-below", options.grow_below_bytes}}) {
      if (bytes == 0) continue;
      throw Failure{kExitUsage,
                    fmt::format("{}: only topics with --policy grow have that", option)};
    }
    return;
  }
  if (options.retain_all) {
    throw Failure{kExitUsage,
                  "--retain all and --policy grow exclude each other: use a larger --capacity"};
  }
  const std::uint64_t most = segment * TopicLimits::kMaxSegments;
  if (options.max_capacity_bytes != 0 && options.max_capacity_bytes < capacity) {
    throw Failure{kExitUsage,
                  fmt::format("--max-capacity: {} is less than the {} to begin with "
                              "(--capacity)",
                              size_text(options.max_capacity_bytes), size_text(capacity))};
  }
  if (options.max_capacity_bytes > most) {
    throw Failure{kExitUsage,
                  fmt::format("--max-capacity: with segments of {} at most {} is possible: use a "
                              "larger --segment-size",
                              size_text(segment), size_text(most))};
  }
  const std::uint64_t maximum =
      options.max_capacity_bytes != 0 ? options.max_capacity_bytes : 8 * capacity;
  if (options.grow_below_bytes > maximum) {
    throw Failure{kExitUsage, fmt::format("--grow-below: {} is more than the maximum, {} "
                                          "(--max-capacity)",
                                          size_text(options.grow_below_bytes), size_text(maximum))};
  }
}

// Checks the arguments and translates them to the library's options.
void settle_options(CreateArguments& arguments) {
  check_topic_name(arguments.name);
  TopicOptions& options = arguments.options;
  if (arguments.policy == "fail")
    options.policy = Policy::fail;
  else if (arguments.policy == "overwrite")
    options.policy = Policy::overwrite;
  else if (arguments.policy == "grow")
    options.policy = Policy::grow;
  else if (arguments.policy != "block") {
    throw Failure{
        kExitUsage,
        fmt::format("--policy: '{}' is not one of block, fail, overwrite, grow", arguments.policy)};
  }
  if (!arguments.retain.empty() && arguments.retain != "all") {
    throw Failure{kExitUsage, fmt::format("--retain: '{}' is not 'all', the only thing possible",
                                          arguments.retain)};
  }
  options.retain_all = !arguments.retain.empty();
  if (options.retain_all && options.policy == Policy::overwrite) {
    throw Failure{kExitUsage, "--retain all and --policy overwrite exclude each other"};
  }
  if (options.policy == Policy::overwrite && options.evict_after.count() != 0) {
    throw Failure{kExitUsage,
                  "--policy overwrite and --evict-after exclude each other: where the oldest is "
                  "overwritten, no subscriber blocks"};
  }
  if (options.retain_all && options.evict_after.count() != 0) {
    throw Failure{kExitUsage,
                  "--retain all and --evict-after exclude each other: where nothing is reused, no "
                  "subscriber blocks"};
  }
  options.mode = parse_mode(arguments.mode);
  if (!options.file_group.empty() && ::getgrnam(options.file_group.c_str()) == nullptr) {
    throw Failure{kExitUsage,
                  fmt::format("--group: there is no group '{}'; `getent group` lists them",
                              options.file_group)};
  }
  if (!options.file_group.empty() && (options.mode & 0060) == 0) {
    throw Failure{kExitUsage,
                  fmt::format("--group: --mode {:04o} gives a group no rights: add --mode 0660",
                              options.mode)};
  }
  options.partitions = static_cast<std::uint32_t>(arguments.partitions);
  options.participants = static_cast<std::uint32_t>(arguments.participants);
  settle_durability(arguments);
  check_sizes(options);
  check_growth(options);
}

// Explains why the library did not create the topic. `needed`: bytes.
[[noreturn]] void fail_to_create(const Error& error, const CreateArguments& arguments,
                                 const std::string& directory, std::uint64_t needed) {
  const TopicOptions& options = arguments.options;
  if (error.code == Errc::no_space) {
    const std::string data = options.durable != Durability::none ? data_directory() : directory;
    throw Failure{kExitFull,
                  fmt::format("no space for topic '{}': {}", arguments.name,
                              what_is_missing_in_one(error.system_error, data, directory, needed))};
  }
  if (error.code == Errc::invalid_argument && options.max_capacity_bytes != 0) {
    throw Failure{kExitUsage,
                  fmt::format("--max-capacity: {} in each of {} partitions is more than can be "
                              "mapped with segments of {}",
                              size_text(options.max_capacity_bytes), options.partitions,
                              size_text(sizes_of(options).segment_bytes))};
  }
  if (error.code == Errc::permission && !options.file_group.empty() && may_create_in(directory)) {
    throw Failure{kExitPermission,
                  fmt::format("--group: you may not give files to '{}': it must be one of your "
                              "own groups (`id`), unless you are root",
                              options.file_group)};
  }
  fail(error, arguments.name);
}

void create(CreateArguments& arguments) {
  settle_options(arguments);
  const TopicOptions& options = arguments.options;
  if (options.durable != Durability::none)
    (void)writable_data_directory();
  else
    check_named_data_directory();
  const std::string directory = usable_directory(Missing::is_made);
  if (has_files(arguments.name) || Topic::open(arguments.name))
    fail({Errc::exists, 0}, arguments.name);
  const std::uint64_t needed = options.capacity_bytes * options.partitions;
  check_room(directory, needed);
  auto topic = Topic::create(arguments.name, options);
  if (!topic) fail_to_create(topic.error(), arguments, directory, needed);
  struct stat status {};
  if ((options.mode & 0066) != 0 && ::stat(directory.c_str(), &status) == 0 &&
      (status.st_mode & 0011) == 0) {
    print_notice(
        fmt::format("note: {} lets nobody else in, so that --mode helps nobody: choose a shared "
                    "directory with --dir",
                    directory));
  }
  const TopicInfo info = topic->info();
  fmt::print(
      "created topic '{}': {}{}{}, records up to {} bytes\n", info.name,
      size_text(info.capacity_bytes),
      info.policy == Policy::grow ? fmt::format(", grows to {}", size_text(info.max_capacity_bytes))
                                  : "",
      info.partitions.size() > 1 ? fmt::format(" in each of {} partitions", info.partitions.size())
                                 : "",
      number_text(topic->max_record_size()));
  if (!info.durable) return;
  fmt::print("{} is kept in {}\n", what_is_kept(*info.durable), info.durable->directory);
  note_if_in_memory(info.durable->directory);
}

// What the broker calls a topic of that --durable.
std::string type_at_broker(const std::string& durable) {
  if (durable.empty()) return "queue";
  if (durable == "os") return "file";
  throw Failure{kExitUsage,
                fmt::format("--durable: '{}' is not possible at a broker, only os is", durable)};
}

// Refuses what means nothing without --broker.
void check_local(const CLI::App& command) {
  for (const char* option : {"--user", "--topic-password-file"}) {
    if (command.count(option) != 0)
      throw Failure{kExitUsage, fmt::format("{} means nothing without --broker", option)};
  }
}

void add_durable_options(CLI::App& command, CreateArguments& arguments) {
  command
      .add_option("--durable", arguments.durable,
                  "Also on disk. os: survives the death of all processes; interval:20ms: also the "
                  "machine's, but for that time; fsync: also that, publishers wait for the disk")
      ->type_name("os|interval:TIME|fsync");
  add_size(command, "--file-size", arguments.file_bytes, "Durable: size of a file with records")
      ->default_str("64MiB");
  add_size(command, "--retention-bytes", arguments.options.retention_bytes,
           "Durable: delete the oldest files of a partition as long as the others have so much")
      ->default_str("no limit");
  add_duration(command, "--retention-time", arguments.retention,
               "Durable: delete files that were full for longer than this; by default never");
}

// What happens when it is full, and other matters of room.
void add_room_options(CLI::App& command, CreateArguments& arguments) {
  add_size(
      command, "--segment-size", arguments.options.segment_bytes,
      "Room is reused in pieces of this size, at most half the capacity; a record is at most half "
      "of one")
      ->default_str("capacity/8");
  command
      .add_option(
          "--policy", arguments.policy,
          "When full: publishers wait (block), fail at once (fail), or overwrite what is oldest "
          "(overwrite); or room is added up to --max-capacity, and then they wait (grow)")
      ->type_name("block|fail|overwrite|grow")
      ->default_str("block");
  add_size(command, "--max-capacity", arguments.options.max_capacity_bytes,
           "Policy grow: how large each partition may become; `leat topic set` changes it")
      ->default_str("8 times the capacity");
  add_size(command, "--grow-below", arguments.options.grow_below_bytes,
           "Policy grow: room is added when this much or less is free")
      ->default_str("a segment");
  command
      .add_option("--retain", arguments.retain, "all: never reuse room, so that full means full")
      ->type_name("all");
}

void add_access_options(CLI::App& command, CreateArguments& arguments) {
  command.add_option("--mode", arguments.mode, "Permissions of the files, as for chmod")
      ->type_name("MODE")
      ->default_str("0600");
  command
      .add_option("--group", arguments.options.file_group, "Group of the files, for --mode 0660")
      ->type_name("GROUP");
}

void add_other_options(CLI::App& command, CreateArguments& arguments) {
  add_number(command, "--partitions", arguments.partitions, 1, TopicLimits::kMaxPartitions,
             "Order is kept within a partition")
      ->default_str("1");
  command.add_flag("--single-writer", arguments.options.single_writer,
                   "One publisher at a time; faster");
  command.add_flag("--timestamps", arguments.options.timestamps,
                   "Each record carries the time it was published");
  command.add_flag("--delete-when-unused", arguments.options.delete_when_unused,
                   "Delete the topic when the last process leaves it");
  command.add_flag("--remove-when-unused", arguments.options.delete_when_unused)
      ->group("");  // Its old name.
  add_duration(command, "--revoke-after", arguments.options.revoke_after,
               "Give up claims of publishers that were stopped for this long; by default never");
  add_duration(
      command, "--evict-after", arguments.options.evict_after,
      "Subscribers that block publishers for this long lose records instead; by default never");
  add_number(command, "--participants", arguments.participants, 1, TopicLimits::kMaxParticipants,
             "Publishers and subscribers at a time")
      ->default_str("256");
}

}  // namespace

void add_topic_create(CLI::App& topic) {
  auto arguments = std::make_shared<CreateArguments>();
  CLI::App* command = topic.add_subcommand("create", "Create a topic");
  command->add_option("NAME", arguments->name, "1 to 200 of A-Z a-z 0-9 . _ -")->required();
  CLI::Option* capacity = add_size(*command, "--capacity", arguments->options.capacity_bytes,
                                   "Room for records, per partition; 8KiB or more")
                              ->default_str("8MiB, with --durable 32MiB");
  add_durable_options(*command, *arguments);
  add_room_options(*command, *arguments);
  add_other_options(*command, *arguments);
  add_access_options(*command, *arguments);
  command->footer(
      "Example:\n  leat topic create orders --capacity 64MiB --partitions 4 --timestamps");
  auto broker = add_broker_options(*command);
  auto remote = std::make_shared<RemoteTopic>();
  command->add_option("--user", remote->user, "Who may use the topic")
      ->type_name("NAME")
      ->group(kBrokerGroup);
  command
      ->add_option("--topic-password-file", remote->password_file,
                   "File with the password of that user; else $LEAT_TOPIC_PASSWORD")
      ->type_name("FILE")
      ->group(kBrokerGroup);
  command->callback([=] {
    if (broker->is_given()) {
      check_only(*command, {"--durable", "--user", "--topic-password-file"});
      remote->name = arguments->name;
      remote->type = type_at_broker(arguments->durable);
      return remote_create(*broker, *remote);
    }
    check_local(*command);
    arguments->has_capacity = capacity->count() != 0;
    create(*arguments);
  });
}

}  // namespace leat::cli
