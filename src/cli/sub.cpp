// `leat sub TOPIC`: writes the records of a topic to stdout as they come.
#include "sub.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leat/leat.hpp"

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

// Opens the topic, waiting for it. `*waited` says whether it was missing at first.
std::optional<Topic> open_topic(const std::string& name, const StopOnSignal& signals,
                                bool* waited) {
  auto topic = Topic::open(name);
  if (!topic && topic.error().code == Errc::not_found) {
    *waited = true;
    if (::isatty(STDERR_FILENO) != 0) tell(fmt::format("waiting for topic '{}'", name));
    topic = Topic::open(name, Deadline::never(), {}, signals.token());
  }
  if (topic) return std::move(*topic);
  if (topic.error().code == Errc::stopped) return std::nullopt;
  fail(topic.error(), name);
}

Subscriber open_subscriber(const Topic& topic, const SubArguments& arguments, bool waited) {
  SubscriberOptions options;
  options.from = parse_place("--from", arguments.from);
  // Everything in a topic that was not there when we began has come since. By offset, so that what
  // is gone already is reported; several partitions have no common offset.
  if (waited && arguments.from == "end") {
    options.from =
        topic.partitions() == 1 || arguments.partition ? From::offset(0) : From::beginning;
  }
  options.gating = !arguments.lossy;
  if (topic.policy() == Policy::overwrite && options.gating) {
    tell(fmt::format(
        "topic '{}' overwrites what is oldest, so records may be lost (as with --lossy)",
        topic.name()));
    options.gating = false;
  }
  if (arguments.partition) {
    if (*arguments.partition >= topic.partitions()) {
      throw Failure{kExitUsage,
                    fmt::format("--partition: there is no partition {}: topic '{}' has 0 to {}",
                                *arguments.partition, topic.name(), topic.partitions() - 1)};
    }
    options.partition = static_cast<std::uint32_t>(*arguments.partition);
  } else if (parse_number(arguments.from) && topic.partitions() > 1) {
    throw Failure{
        kExitUsage,
        fmt::format("--from {}: topic '{}' has {} partitions, each with offsets of its own: add "
                    "--partition 0 to {}",
                    arguments.from, topic.name(), topic.partitions(), topic.partitions() - 1)};
  }
  auto subscriber = topic.subscriber(options);
  if (subscriber) return std::move(*subscriber);
  if (subscriber.error().code == Errc::not_allowed && arguments.from.starts_with('@')) {
    throw Failure{
        kExitUsage,
        fmt::format("--from {}: the records of topic '{}' carry no time: it was created without "
                    "--timestamps",
                    arguments.from, topic.name())};
  }
  fail(subscriber.error(), topic.name());
}

// Whether everything that is claimed so far was read, in every partition that is.
bool is_at_end(const Topic& topic, const Subscriber& subscriber, const SubArguments& arguments) {
  const TopicInfo info = topic.info();
  for (std::uint32_t i = 0; i < info.partitions.size(); ++i) {
    if (arguments.partition && *arguments.partition != i) continue;
    if (subscriber.offset(i) < info.partitions[i].end) return false;
  }
  return true;
}

void read_records(const Topic& topic, Subscriber& subscriber, const SubArguments& arguments,
                  const RecordWriter& writer, const StopOnSignal& signals) {
  constexpr std::size_t kAtOnce = 1024;
  Output output{signals};
  subscriber.on_event([](const Event& event) {
    tell(fmt::format("gap of {} record{} at offset {} (partition {}): {}", event.count,
                     event.count == 1 ? "" : "s", event.first, event.partition,
                     name_of(event.reason)));
  });
  std::uint64_t left = arguments.count.value_or(std::numeric_limits<std::uint64_t>::max());
  bool was_lossy = subscriber.is_lossy();
  while (left > 0 && !output.is_closed() && !signals.stopped()) {
    const std::size_t limit = left < kAtOnce ? static_cast<std::size_t>(left) : kAtOnce;
    auto count =
        subscriber.poll(limit, [&](const Record& record) { writer.append(record, output.text()); });
    if (!count) {
      output.flush();
      fail(count.error(), topic.name());
    }
    left -= *count;
    if (!was_lossy && subscriber.is_lossy()) {
      was_lossy = true;
      tell(fmt::format("too slow for topic '{}' (--evict-after): records may be lost from here on",
                       topic.name()));
    }
    if (*count != 0) {
      if (output.is_large()) output.flush();
      continue;
    }
    output.flush();
    if (output.is_closed() || (arguments.exit_at_end && is_at_end(topic, subscriber, arguments)))
      break;
    // poll() says what is wrong, if anything is.
    (void)subscriber.wait(Deadline::never(), signals.token());
  }
  output.flush();
}

// What only means something with a group, and what means nothing with one.
void check_group(const SubArguments& arguments) {
  if (arguments.group) {
    check_name("group", *arguments.group);
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
    return;
  }
  std::string useless = arguments.given_group_options;
  if (!arguments.member.empty()) useless = "--member";
  if (!useless.empty()) {
    throw Failure{kExitUsage,
                  fmt::format("{} means nothing without a group: add --group NAME", useless)};
  }
}

void subscribe(const SubArguments& arguments) {
  check_topic_name(arguments.topic);
  (void)parse_place("--from", arguments.from);
  check_group(arguments);
  const RecordWriter writer{arguments};
  usable_directory(Missing::is_made);
  std::signal(SIGPIPE, SIG_IGN);  // A closed pipe is the quiet end of this command.
  const StopOnSignal signals;
  bool waited = false;
  const auto topic = open_topic(arguments.topic, signals, &waited);
  if (!topic) return;
  if (arguments.group) return read_as_member(*topic, arguments, waited, writer, signals);
  Subscriber subscriber = open_subscriber(*topic, arguments, waited);
  read_records(*topic, subscriber, arguments, writer, signals);
}

}  // namespace

void add_sub_command(CLI::App& app) {
  auto arguments = std::make_shared<SubArguments>();
  CLI::App* command = app.add_subcommand("sub", "Write the records of a topic as they come");
  command->add_option("TOPIC", arguments->topic, "The topic; waited for if it is missing")
      ->required();
  CLI::Option* from =
      command
          ->add_option(
              "--from", arguments->from,
              "Where to begin: end, beginning, an offset (waits for it if it is beyond the end), "
              "or @TIME: ISO 8601, also as @20240501T120000Z; digits only are "
              "milliseconds since 1970")
          ->type_name("PLACE")
          ->default_str("end");
  add_number(*command, "--count", arguments->count, 1, std::numeric_limits<std::uint64_t>::max(),
             "Leave after so many records");
  command->add_flag("--exit", arguments->exit_at_end, "Leave when the end is reached");
  command->add_flag("--lossy", arguments->lossy,
                    "Never hold publishers up; lose records when too slow");
  add_number(*command, "--partition", arguments->partition, 0, detail::Geometry::kMaxPartitions - 1,
             "Only this partition");
  CLI::Option* format = command
                            ->add_option("--format", arguments->format,
                                         "%t topic, %p partition, %o offset, %k key, %s value, %T "
                                         "timestamp, %h headers, %K %S sizes of "
                                         "key and value, \\n \\t \\r \\0 \\\\ \\x41 %%")
                            ->type_name("FMT")
                            ->default_str("%s\\n");
  command->add_flag("--json", arguments->json, "One JSON object a line")->excludes(format);
  command
      ->add_option("--group", arguments->group,
                   "Share the records with the other members of this group; made if it is missing")
      ->type_name("NAME");
  command->add_option("--member", arguments->member, "With --group: what to be called, for people")
      ->type_name("NAME");
  // They and --from only count for whoever creates the group.
  std::vector<CLI::Option*> of_group = add_group_options(*command, arguments->group_options);
  for (CLI::Option* option : of_group) option->group("Options of a group that is made");
  command->footer(
      "Example:\n  leat sub news --from beginning --format '%o %k %s\\n'\n"
      "  leat sub news --from @2024-05-01T12:00:00Z --exit --json\n"
      "  leat sub orders --group workers");
  command->callback([arguments, from, of_group] {
    const auto note = [&](const CLI::Option* option) {
      if (option->count() == 0) return;
      std::string& given = arguments->given_group_options;
      given += (given.empty() ? "" : ", ") + option->get_name();
    };
    if (arguments->group) note(from);
    for (const CLI::Option* option : of_group) note(option);
    subscribe(*arguments);
  });
}

}  // namespace leat::cli
