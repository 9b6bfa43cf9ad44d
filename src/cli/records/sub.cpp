// `leat sub TOPIC…`: writes the records of topics to stdout as they come.
#include "sub.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <limits>
#include <memory>

#include "cli/remote/remote.hpp"
#include "leat/admin.hpp"
#include "record_reader.hpp"
#include "tool/terminal.hpp"

namespace leat::cli {

std::size_t Output::flush() {
  std::size_t done = 0;
  while (done < text_.size() && !closed_) {
    const ssize_t written = ::write(STDOUT_FILENO, text_.data() + done, text_.size() - done);
    if (written >= 0) {
      done += static_cast<std::size_t>(written);
    } else if (errno == EPIPE) {
      closed_ = true;
    } else if (errno == EINTR) {
      closed_ = signals_.stopped();
    } else if (errno == EAGAIN) {
      pollfd entry{STDOUT_FILENO, POLLOUT, 0};
      ::poll(&entry, 1, -1);
      closed_ = signals_.stopped();
    } else {
      throw system_failure("cannot write to standard output", errno);
    }
  }
  text_.clear();
  return done;
}

namespace {

constexpr std::size_t kMaxMemberName = 63;

// A format for the value, followed by what ends a record.
std::string text_format(const SubArguments& arguments) {
  if (arguments.null) return "%s\\0";
  if (!arguments.delimiter) return "%s\\n";
  std::string format = "%s";
  for (const char c : *arguments.delimiter) {
    if (c == '%') format += '%';
    format += c;
  }
  (void)unescape(*arguments.delimiter,
                 "--delimiter");  // Here, so that an error does not name --format.
  return format;
}

}  // namespace

void RecordTimer::fail(const std::vector<std::string>& missing) const {
  const std::string within = "within " + duration_text(timeout_);
  if (missing.empty()) throw Failure{fmt::format("no record came {}", within)};
  throw Failure{kExitNotThere,
                missing.size() == 1
                    ? fmt::format("topic '{}' was not created {}", missing.front(), within)
                    : fmt::format("none of the topics was created {}", within)};
}

RecordWriter::RecordWriter(const SubArguments& arguments)
    : format_{RecordFormat::parse(arguments.format ? *arguments.format : text_format(arguments))},
      json_{arguments.json},
      json_has_topic_{arguments.has_several_topics()},
      length_prefixed_{arguments.length_prefixed} {}

void RecordWriter::append(const Record& record, const std::string& topic, std::string& to) const {
  if (json_) return append_json(record, json_has_topic_ ? topic : std::string_view{}, to);
  if (!length_prefixed_) return format_.append(record, topic, to);
  append_length(record.value.size(), to);
  to += record.text();
}

namespace {

// Refuses options that need a group, or that make no sense with one.
void check_group(const SubArguments& arguments) {
  if (arguments.group) {
    check_name("group", *arguments.group);
    check_group_options(arguments.group_options);
    if (arguments.lossy || arguments.partition) {
      throw Failure{kExitUsage,
                    fmt::format("{} and --group exclude each other: a group {}",
                                arguments.lossy ? "--lossy" : "--partition",
                                arguments.lossy ? "loses nothing" : "takes from all partitions")};
    }
    if (arguments.member.size() > kMaxMemberName) {
      throw Failure{kExitUsage,
                    fmt::format("--member: the name has {} bytes, at most {} are possible",
                                arguments.member.size(), kMaxMemberName)};
    }
    if (tool::without_controls(arguments.member) != arguments.member)
      throw Failure{kExitUsage, "--member: the name has a control character"};
    if (arguments.no_create && !arguments.given_group_options.empty())
      throw Failure{kExitUsage, fmt::format("{}: only for a group that is created, which "
                                            "--no-create excludes",
                                            arguments.given_group_options)};
    return;
  }
  std::string useless = arguments.given_group_options;
  if (!arguments.member.empty()) useless = "--member";
  if (!useless.empty()) {
    throw Failure{kExitUsage, fmt::format("{}: only with --group NAME", useless)};
  }
}

void check(const SubArguments& arguments) {
  for (const std::string& topic : arguments.topics) check_topic_name(topic);
  if (arguments.topics.size() > kMaxWaitAny)
    throw Failure{kExitUsage,
                  fmt::format("{} topics are too many, at most {} can be read at a time",
                              arguments.topics.size(), kMaxWaitAny)};
  (void)parse_place("--from", arguments.from);
  if (arguments.read && *arguments.read != "committed" && *arguments.read != "durable")
    throw Failure{kExitUsage,
                  fmt::format("--read: '{}' is neither committed nor durable", *arguments.read)};
  check_at_most_one(
      {{"--group", arguments.group.has_value()}, {"--read", arguments.read.has_value()}});
  if (arguments.has_several_topics()) {
    const bool has_offset = parse_number(arguments.from).has_value();
    const char* refused = has_offset ? "an OFFSET" : arguments.group ? "--group" : nullptr;
    if (refused != nullptr) {
      throw Failure{kExitUsage, fmt::format("{} goes with one topic, and {} were named", refused,
                                            arguments.topics.size())};
    }
  }
  check_at_most_one({{"--format", arguments.format.has_value()},
                     {"--json", arguments.json},
                     {"--delimiter", arguments.delimiter.has_value()},
                     {"--null", arguments.null},
                     {"--length-prefixed", arguments.length_prefixed}});
  check_group(arguments);
}

void subscribe(const SubArguments& arguments, const BrokerOptions& broker) {
  check(arguments);
  const RecordWriter writer{arguments};
  if (!broker.is_given())
    usable_directory(arguments.needs_topics() ? Missing::fails_if_named : Missing::is_made);
  std::signal(SIGPIPE, SIG_IGN);  // When the reader closes the pipe, this command ends quietly.
  const StopOnSignal signals;
  if (broker.is_given())
    remote_read(broker, arguments, writer, signals);
  else if (arguments.group)
    read_as_member(arguments, writer, signals);
  else
    read_topics(arguments, writer, signals);
}

CLI::Option* add_reading_options(CLI::App& command, SubArguments& arguments) {
  add_words(command, "TOPIC", arguments.topics,
            "The topics; those that are missing are waited for, unless --exit or --no-create is "
            "given")
      ->required();
  CLI::Option* from =
      command
          .add_option(
              "-o,--from", arguments.from,
              "Where to begin: end or latest, beginning or earliest, an offset (waits for it if it "
              "is beyond the end; with --exit that is an error), -10 for the last ten of each "
              "partition, 1h for what is not "
              "older "
              "than an hour, or @TIME: ISO 8601, also as @20240501T120000Z; digits only are "
              "milliseconds since 1970")
          ->type_name("PLACE")
          ->default_str("end");
  add_number(command, "-n,--count", arguments.count, 1, std::numeric_limits<std::uint64_t>::max(),
             "Leave after so many records");
  command.add_flag("-e,--exit", arguments.exit_at_end, "Leave when the end is reached");
  add_duration(
      command, "--timeout", arguments.timeout,
      "Leave, with exit code 1, when no record has come for so long: since the last one, or "
      "since the start");
  command.add_flag("--no-create", arguments.no_create,
                   "A missing topic or group is an error: do not wait for it or create it");
  command.add_flag("--lossy", arguments.lossy,
                   "Never hold up publishers; lose records when too slow");
  command
      .add_option(
          "--read", arguments.read,
          "Durable topics: records as soon as they are committed, or once they are on stable "
          "storage (durable); by default, durable if the topic was made with --durable fsync")
      ->type_name("committed|durable");
  add_number(command, "-p,--partition", arguments.partition, 0, TopicLimits::kMaxPartitions - 1,
             "Only this partition");
  return from;
}

void add_writing_options(CLI::App& command, SubArguments& arguments) {
  command
      .add_option("-f,--format", arguments.format,
                  "%t topic, %p partition, %o offset, %k key, %s or %v value, %T timestamp, %h "
                  "headers, %K %S sizes of key and value, \\n \\t \\r \\0 \\\\ \\x41 %%")
      ->type_name("FMT")
      ->default_str("%s\\n");
  command.add_flag(
      "-J,--json", arguments.json,
      "One JSON object a line, as `leat pub --json` reads it; with \"topic\" if several "
      "were named");
  command
      .add_option("-D,--delimiter", arguments.delimiter,
                  "Write this behind each record, instead of a newline")
      ->type_name("TEXT");
  command.add_flag("-0,--null", arguments.null,
                   "Write a zero byte behind each record, for xargs -0 and pub --null");
  command.add_flag(
      "--length-prefixed", arguments.length_prefixed,
      "Write the length before each record: 4 bytes, the lowest first (little endian)");
}

}  // namespace

void add_sub_command(CLI::App& app) {
  auto arguments = std::make_shared<SubArguments>();
  CLI::App* command = app.add_subcommand("sub", "Write the records of topics as they come");
  CLI::Option* from = add_reading_options(*command, *arguments);
  add_writing_options(*command, *arguments);
  command
      ->add_option("-g,--group", arguments->group,
                   "Share the records with the other members of this group, which is created if it "
                   "is missing, and then stays until `leat group delete`")
      ->type_name("NAME");
  command
      ->add_option("--member", arguments->member,
                   "With --group: a name for this member, which `leat group info` shows")
      ->type_name("NAME");
  // These and --from are used only if this creates the group.
  std::vector<CLI::Option*> of_group = add_group_options(*command, arguments->group_options);
  for (CLI::Option* option : of_group) option->group("Options of a group that is created");
  auto broker = add_broker_options(*command);
  command->footer(
      "Example:\n  leat sub news --from beginning --format '%o %k %s\\n'\n"
      "  leat sub news orders --from -10\n"
      "  leat sub news --from @2024-05-01T12:00:00Z --exit --json\n"
      "  leat sub orders --group workers\n"
      "  leat sub answers --count 1 --timeout 5s");
  command->callback([arguments, from, of_group, broker, command] {
    if (broker->is_given())
      check_only(*command,
                 {"--count", "--timeout", "--delimiter", "--null", "--length-prefixed", "--group"});
    const auto note = [&](const CLI::Option* option) {
      if (option->count() == 0) return;
      std::string& given = arguments->given_group_options;
      given += (given.empty() ? "" : ", ") + option->get_name();
    };
    if (arguments->group) note(from);
    for (const CLI::Option* option : of_group) note(option);
    subscribe(*arguments, *broker);
  });
}

}  // namespace leat::cli
