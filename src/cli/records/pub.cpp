// `leat pub TOPIC [MESSAGE…]`: publishes its arguments, or records from stdin or a file.
#include "pub.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>

#include "cli/remote/remote.hpp"
#include "cli/topic/room.hpp"
#include "leat/admin.hpp"
#include "leat/leat.hpp"
#include "leat/os/event.hpp"
#include "leat/os/fd.hpp"
#include "leat/os/os.hpp"
#include "record_format.hpp"
#include "record_reader.hpp"

namespace leat::cli {
namespace {

os::Fd open_input(const std::string& file) {
  if (file.empty() || file == "-") return os::Fd{::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)};
  os::Fd input{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat status {};
  int error = input ? 0 : errno;
  if (error == 0 && ::fstat(input.get(), &status) == 0 && S_ISDIR(status.st_mode)) error = EISDIR;
  if (error != 0) throw system_failure(fmt::format("cannot read '{}'", file), error);
  return input;
}

Framing framing_of(const PubArguments& arguments) {
  if (arguments.length_prefixed) return {.delimiter = ""};
  if (arguments.null) return {.delimiter = std::string(1, '\0')};
  return {.delimiter = unescape(arguments.delimiter, "--delimiter")};
}

// Refuses what the topic could not do if it is created now, so that an error leaves no new topic behind.
void check_new_topic(const PubArguments& arguments) {
  check_named_data_directory();
  const std::string& name = arguments.topic;
  if (arguments.partition.value_or(0) != 0)
    throw Failure{
        kExitUsage,
        fmt::format("--partition: topic '{0}' does not exist yet, and would have only partition "
                    "0; `leat topic create {0} --partitions N` makes it with more",
                    name)};
  if (arguments.sync)
    throw Failure{
        kExitUsage,
        fmt::format("--sync: topic '{0}' does not exist yet, and would not be durable; `leat "
                    "topic create {0} --durable os` makes one that is",
                    name)};
}

Topic open_or_create_topic(const PubArguments& arguments, const StopOnSignal& signals) {
  const std::string& name = arguments.topic;
  // Tries again if another process creates or deletes it in between, but not for ever.
  for (const Deadline deadline{std::chrono::seconds{5}};;) {
    auto opened = Topic::open(name);
    if (opened) return std::move(*opened);
    if (opened.error().code != Errc::not_found || arguments.no_create) fail(opened.error(), name);
    check_new_topic(arguments);
    check_room(topics_directory(), TopicOptions::kDefaultCapacity);
    auto created = Topic::create(name);
    if (created) {
      print_notice(fmt::format("created topic '{}' ({}, policy block)", name,
                               size_text(TopicOptions::kDefaultCapacity)));
      return std::move(*created);
    }
    if (created.error().code != Errc::exists || deadline.passed()) fail(created.error(), name);
    if (signals.stopped()) throw signals.failure("nothing was published");
  }
}

// Record i is the decimal number i, padded with leading zeros to the size.
void send_generated(Sender& sender, const PubArguments& arguments, const StopOnSignal& signals) {
  const std::uint64_t count = *arguments.count;
  if (*arguments.generate_bytes > sender.limit())
    throw sender.too_large(*arguments.generate_bytes, false);
  std::string text(*arguments.generate_bytes, '0');
  while (sender.sent() < count && !signals.stopped()) {
    if (!sender.send(text)) break;
    for (std::size_t digit = text.size(); digit > 0; --digit) {
      if (++text[digit - 1] <= '9') break;
      text[digit - 1] = '0';
    }
  }
  if (sender.sent() < count) {
    throw signals.failure(fmt::format("{} of {} records were published", number_text(sender.sent()),
                                      number_text(count)));
  }
}

void send_messages(Sender& sender, const PubArguments& arguments, const StopOnSignal& signals) {
  const std::vector<std::string>& messages = arguments.messages;
  const std::uint64_t count = arguments.count.value_or(messages.size());
  while (sender.sent() < count) {
    const std::string& message = messages[sender.sent() % messages.size()];
    if (signals.stopped() || !sender.send(message))
      throw signals.failure(sender.what_was_published());
  }
}

// The longest text that can become a record.
std::size_t longest_input(const Sender& sender, const PubArguments& arguments) {
  // In JSON a byte may take six characters ("\u0001"); the rest is room for names and punctuation.
  if (arguments.json) return 6 * sender.limit() + 4096;
  return sender.limit() + arguments.key_separator.size();
}

void send_input(Sender& sender, int input, const PubArguments& arguments,
                const StopOnSignal& signals) {
  const std::uint64_t count = arguments.count.value_or(std::numeric_limits<std::uint64_t>::max());
  // Without this, a forgotten MESSAGE would look like a command that hangs.
  if (::isatty(input) == 1)
    print_notice(fmt::format("reading {}s from the terminal; Ctrl-D ends", arguments.unit()));
  RecordReader reader{input, longest_input(sender, arguments), framing_of(arguments)};
  while (sender.sent() < count) {
    const auto text = reader.next([&] {
      if (!os::is_readable(input)) sender.settle();
      return signals.stopped();
    });
    if (!text) break;
    if (!sender.send(*text)) {
      throw signals.failure(sender.what_was_published() + ", then the topic was full");
    }
  }
  switch (reader.ended()) {
    case RecordReader::Ended::no:
    case RecordReader::Ended::at_end: break;
    case RecordReader::Ended::stopped:
      throw signals.failure(sender.what_was_published() +
                            (reader.has_rest() ? ", the unfinished one was not" : ""));
    case RecordReader::Ended::too_long:
      throw sender.too_large(reader.long_size(), reader.long_size() >= RecordReader::kMostCounted);
    case RecordReader::Ended::cut:
      throw Failure{kExitUsage, fmt::format("record {} is cut: the input ended inside it{}",
                                            sender.sent() + 1, sender.what_was_sent())};
    case RecordReader::Ended::error: {
      const bool is_stdin = arguments.file.empty() || arguments.file == "-";
      throw Failure{
          kExitFailed,
          fmt::format("cannot read {}: {}{}", is_stdin ? "standard input" : arguments.file,
                      std::strerror(reader.error_number()), sender.what_was_sent())};
    }
  }
}

// Refuses arguments that exclude each other, or have no effect together.
void check(PubArguments& arguments, bool has_delimiter) {
  const Given file{"--file", !arguments.file.empty()};
  const Given generate{"--generate", arguments.generate_bytes.has_value()};
  auto& messages = arguments.messages;
  if (messages.size() > 1 && std::find(messages.begin(), messages.end(), "-") != messages.end())
    throw Failure{kExitUsage, "'-' stands for stdin only if it is the only MESSAGE"};
  const bool is_stdin = messages == std::vector<std::string>{"-"};
  check_at_most_one({{"'-'", is_stdin}, file, generate});
  if (is_stdin) messages.clear();
  const Given message{"MESSAGE", !messages.empty()};
  const Given json{"--json", arguments.json};
  const Given key_separator{"--key-separator", !arguments.key_separator.empty()};
  const Given delimiter{"--delimiter", has_delimiter};
  const Given null{"--null", arguments.null};
  const Given length_prefixed{"--length-prefixed", arguments.length_prefixed};
  check_at_most_one({message, file, generate});
  check_at_most_one({json, delimiter, null, length_prefixed});
  check_at_most_one({json, key_separator});
  for (const Given& other : {delimiter, null, length_prefixed}) check_at_most_one({message, other});
  for (const Given& other : {json, key_separator, delimiter, null, length_prefixed})
    check_at_most_one({generate, other});
  if (arguments.generate_bytes && !arguments.count)
    throw Failure{kExitUsage, "--generate needs --count N, the number of records"};
  if (arguments.generate_bytes == std::uint64_t{0})
    throw Failure{kExitUsage, "--generate: a number needs 1 byte or more"};
}

// Perhaps the file was meant, not its name.
void warn_of_file(const std::string& message) {
  struct stat status {};
  if (::stat(message.c_str(), &status) != 0 || S_ISDIR(status.st_mode)) return;
  print_notice(
      fmt::format("note: '{}' is published as it stands, and is also the name of a file: --file {} "
                  "publishes its lines",
                  message, message));
}

void send(Sender& sender, const PubArguments& arguments, int input, const StopOnSignal& signals) {
  if (arguments.generate_bytes)
    send_generated(sender, arguments, signals);
  else if (arguments.messages.empty())
    send_input(sender, input, arguments, signals);
  else
    send_messages(sender, arguments, signals);
  sender.settle();
}

void publish(const PubArguments& arguments, const BrokerOptions& broker) {
  check_topic_name(arguments.topic);
  (void)parse_headers(arguments.headers);  // Here, so that an error leaves no new topic behind.
  (void)framing_of(arguments);
  const bool has_input = arguments.messages.empty() && !arguments.generate_bytes;
  const os::Fd input = has_input ? open_input(arguments.file) : os::Fd{};
  if (!broker.is_given()) usable_directory(Missing::is_made);
  if (arguments.messages.size() == 1) warn_of_file(arguments.messages.front());
  const StopOnSignal signals;
  if (broker.is_given()) {
    send(*remote_sender(broker, arguments, signals), arguments, input.get(), signals);
    return;
  }
  const Topic topic = open_or_create_topic(arguments, signals);
  TopicSender sender{topic, arguments, signals};
  send(sender, arguments, input.get(), signals);
}

void add_options(CLI::App& command, PubArguments& arguments) {
  constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
  command
      .add_option("TOPIC", arguments.topic,
                  "The topic; created with default options if it does not exist")
      ->required();
  add_words(
      command, "MESSAGE", arguments.messages,
      "Each is published as one record; without any, or with - alone, the lines of stdin are");
  command
      .add_option("-l,--file", arguments.file, "Publish the lines of this file instead; - is stdin")
      ->type_name("FILE");
  command.add_flag("-J,--json", arguments.json,
                   "Each line or MESSAGE is a JSON object as `leat sub --json` writes it; value, "
                   "key and headers count");
  command
      .add_option("-D,--delimiter", arguments.delimiter,
                  "What ends a record, instead of a newline: text, with \\n \\t \\r \\0 \\\\ \\x41")
      ->type_name("TEXT");
  command.add_flag("-0,--null", arguments.null,
                   "A zero byte ends a record, as in find -print0 and sub --null");
  command.add_flag("--length-prefixed", arguments.length_prefixed,
                   "Each record comes after its length: 4 bytes, the lowest first (little endian)");
  command
      .add_option("-K,--key-separator", arguments.key_separator,
                  "The text before this, in a line or MESSAGE, is the record's key")
      ->type_name("C");
  command
      .add_option("-H,--header", arguments.headers, "A header for every record; may be repeated")
      ->type_name("NAME=VALUE")
      ->type_size(1)
      ->allow_extra_args(false);
  add_number(
      command, "-p,--partition", arguments.partition, 0, TopicLimits::kMaxPartitions - 1,
      "Publish into this partition; by default the key decides, without a key the publisher");
  add_number(command, "-n,--count", arguments.count, 1, kAny,
             "Stop after so many records; MESSAGE is repeated until then");
  add_duration(command, "--timeout", arguments.timeout,
               "Fail if a full topic takes nothing, or the disk, for this long; by default never");
  command.add_flag("--no-create", arguments.no_create, "Fail if the topic does not exist");
  command.add_flag(
      "--sync", arguments.sync,
      "Durable topics: wait until everything is on stable storage, as with --durable fsync");
  add_size(command, "--generate", arguments.generate_bytes,
           "Publish --count numbers of this many digits, instead of lines");
}

}  // namespace

void add_pub_command(CLI::App& app) {
  auto arguments = std::make_shared<PubArguments>();
  CLI::App* command = app.add_subcommand(
      "pub", "Publish messages, or lines of stdin or of a file, each as soon as it comes");
  add_options(*command, *arguments);
  auto broker = add_broker_options(*command);
  command->footer(
      "Example:\n  leat pub news hello 'and good morning'\n"
      "  echo 'user1:hello' | leat pub news --key-separator : --header from=shell\n"
      "  leat pub news --file lines.txt\n"
      "  leat sub news --from beginning --exit --json | leat pub copy --json\n"
      "  leat pub news --generate 100 --count 1000000");
  command->callback([arguments, command, broker] {
    for (const char* option : {"--file", "--key-separator", "--delimiter"}) {
      const bool is_given = command->count(option) != 0;
      if (is_given && command->get_option(option)->as<std::string>().empty())
        throw Failure{kExitUsage, fmt::format("{}: one character or more is needed", option)};
    }
    check(*arguments, command->count("--delimiter") != 0);
    if (broker->is_given()) {
      check_only(*command, {"--file", "--delimiter", "--null", "--length-prefixed", "--count",
                            "--generate", "--timeout"});
    }
    publish(*arguments, *broker);
  });
}

}  // namespace leat::cli
