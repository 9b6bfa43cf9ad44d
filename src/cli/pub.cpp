// `leat pub TOPIC [FILE]`: lines of a file or stdin as records, or generated ones.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli.hpp"
#include "leat/leat.hpp"
#include "leat/log/directory.hpp"
#include "leat/os/fd.hpp"
#include "line_reader.hpp"
#include "stop_on_signal.hpp"

namespace leat::cli {
namespace {

struct PubArguments {
  std::string topic;
  std::string file = "-";
  std::optional<std::uint64_t> generate_bytes;
  std::optional<std::uint64_t> count;
  std::optional<std::uint64_t> partition;
  std::string key_separator;
  std::vector<std::string> headers;  // "name=value"; Sender::headers_ points into these
};

std::vector<Header> parse_headers(const std::vector<std::string>& texts) {
  std::vector<Header> headers;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Failure{kExitUsage, fmt::format("--header: '{}' is not name=value", text)};
    }
    const std::string_view view{text};
    headers.push_back({view.substr(0, equals), view.substr(equals + 1)});
  }
  return headers;
}

// "\t" typed in a shell without $'' means a tab.
std::string unescape_separator(const std::string& text) { return text == "\\t" ? "\t" : text; }

detail::Fd open_input(const std::string& file) {
  if (file == "-") return detail::Fd{::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)};
  detail::Fd input{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat status {};
  int error = input ? 0 : errno;
  if (error == 0 && ::fstat(input.get(), &status) == 0 && S_ISDIR(status.st_mode)) error = EISDIR;
  if (error != 0) throw system_failure(fmt::format("cannot read '{}'", file), error);
  return input;
}

Topic open_or_create_topic(const std::string& name, const StopOnSignal& signals) {
  // Again when somebody made or deleted it in between, but not for ever.
  for (const Deadline deadline{std::chrono::seconds{5}};;) {
    auto opened = Topic::open(name);
    if (opened) return std::move(*opened);
    if (opened.error().code != Errc::not_found) fail(opened.error(), name);
    auto created = Topic::create(name);
    if (created) {
      tell(fmt::format("created topic '{}' ({}, policy block)", name,
                       size_text(TopicOptions{}.capacity_bytes)));
      return std::move(*created);
    }
    if (created.error().code == Errc::no_space) {
      check_room(detail::directory_path({}), TopicOptions{}.capacity_bytes);
    }
    if (created.error().code != Errc::exists || deadline.passed()) fail(created.error(), name);
    if (signals.stopped()) throw Failure{kExitFailed, "stopped on request; nothing was sent"};
  }
}

Publisher open_publisher(const Topic& topic, const PubArguments& arguments) {
  PublisherOptions options;
  if (arguments.partition) {
    if (*arguments.partition >= topic.partitions()) {
      throw Failure{kExitUsage,
                    fmt::format("--partition: there is no partition {}: topic '{}' has 0 to {}",
                                *arguments.partition, topic.name(), topic.partitions() - 1)};
    }
    options.partition = static_cast<std::uint32_t>(*arguments.partition);
  }
  auto publisher = topic.publisher(options);
  if (publisher) return std::move(*publisher);
  if (publisher.error().code == Errc::busy) {
    std::string who;
    for (const ParticipantInfo& one : topic.info().participants) {
      if (one.role.ends_with("publisher")) who += fmt::format(" (pid {})", one.pid);
    }
    throw Failure{
        kExitNotThere,
        fmt::format("topic '{}' takes one publisher at a time and has one{}: end it first",
                    topic.name(), who)};
  }
  fail(publisher.error(), topic.name());
}

// Publishes values with the key, headers and partition that the command line asks for.
class Sender {
 public:
  Sender(const Topic& topic, const PubArguments& arguments, const StopOnSignal& signals)
      : topic_{topic},
        headers_{parse_headers(arguments.headers)},
        separator_{unescape_separator(arguments.key_separator)},
        publisher_{open_publisher(topic, arguments)},
        stop_{signals.token()} {
    if (arguments.partition) partition_ = static_cast<std::uint32_t>(*arguments.partition);
  }

  // False if told to stop while it waited for room; the record was not sent then.
  bool send(std::string_view text) {
    while (true) {
      auto offset = is_plain() ? publisher_.publish(Bytes{text}, Deadline::never(), stop_)
                               : publisher_.publish(record_of(text), Deadline::never(), stop_);
      if (offset) [[likely]] {
        ++sent_;
        return true;
      }
      if (offset.error().code == Errc::stopped) return false;
      // This process was stopped for too long; the record was not delivered, and will not be.
      if (offset.error().code == Errc::revoked) continue;
      if (offset.error().code == Errc::too_large) fail_too_large(text.size());
      if (offset.error().code == Errc::full) {
        throw Failure{
            kExitFull,
            fmt::format("topic '{}' is full and does not wait or reuse room (leat topic info "
                        "{}){}",
                        topic_.name(), topic_.name(), what_was_sent())};
      }
      fail(offset.error(), topic_.name(), what_was_sent());
    }
  }

  [[noreturn]] void fail_too_large(std::optional<std::uint64_t> size) const {
    throw Failure{
        kExitUsage,
        fmt::format("record {} is larger than topic '{}' allows: {}{} bytes are possible{}{}",
                    sent_ + 1, topic_.name(), size ? number_text(*size) + " bytes, " : "",
                    number_text(limit()), is_plain() ? "" : " with key and headers",
                    what_was_sent())};
  }

  std::string what_was_sent() const {
    return fmt::format("; {} record{} sent before", number_text(sent_),
                       sent_ == 1 ? " was" : "s were");
  }
  std::uint64_t sent() const noexcept { return sent_; }
  std::size_t limit() const noexcept { return publisher_.max_record_size(); }

 private:
  bool is_plain() const noexcept { return separator_.empty() && headers_.empty(); }

  NewRecord record_of(std::string_view text) const {
    NewRecord record{.headers = headers_, .value = text, .partition = partition_};
    // As kcat: without a separator in it, the line has no key.
    const std::size_t at = separator_.empty() ? std::string_view::npos : text.find(separator_);
    if (at != std::string_view::npos) {
      record.key = Bytes{text.substr(0, at)};
      record.value = text.substr(at + separator_.size());
    }
    return record;
  }

  const Topic& topic_;
  std::vector<Header> headers_;
  std::string separator_;
  std::optional<std::uint32_t> partition_;
  Publisher publisher_;
  std::stop_token stop_;
  std::uint64_t sent_ = 0;
};

// Record i is the number i in decimal, with zeros in front up to the size.
void send_generated(Sender& sender, std::uint64_t size, std::uint64_t count,
                    const StopOnSignal& signals) {
  if (size > sender.limit()) sender.fail_too_large(size);
  std::string text(size, '0');
  while (sender.sent() < count && !signals.stopped()) {
    if (!sender.send(text)) break;
    for (std::size_t digit = text.size(); digit > 0; --digit) {
      if (++text[digit - 1] <= '9') break;
      text[digit - 1] = '0';
    }
  }
  if (sender.sent() < count) {
    throw Failure{kExitFailed, fmt::format("stopped on request; {} of {} records were sent",
                                           number_text(sender.sent()), number_text(count))};
  }
}

void send_lines(Sender& sender, int input, const PubArguments& arguments,
                const StopOnSignal& signals) {
  const std::uint64_t count = arguments.count.value_or(std::numeric_limits<std::uint64_t>::max());
  // The value alone may be as long as a record; key and separator do not lie in the value.
  LineReader lines{input, sender.limit() + arguments.key_separator.size()};
  const auto stopped = [&] { return signals.stopped(); };
  while (sender.sent() < count) {
    const auto line = lines.next(stopped);
    if (!line) break;
    if (!sender.send(*line)) {
      throw Failure{kExitFailed,
                    "stopped on request while the topic was full" + sender.what_was_sent()};
    }
  }
  switch (lines.ended()) {
    case LineReader::Ended::no:
    case LineReader::Ended::at_end: break;
    case LineReader::Ended::stopped:
      if (lines.has_rest()) {
        throw Failure{kExitFailed,
                      "stopped on request in the middle of a line" + sender.what_was_sent()};
      }
      break;
    case LineReader::Ended::line_too_long: sender.fail_too_large(std::nullopt);
    case LineReader::Ended::error: {
      const std::string what = arguments.file == "-" ? "standard input" : arguments.file;
      throw Failure{kExitFailed,
                    fmt::format("cannot read {}: {}{}", what, std::strerror(lines.error_number()),
                                sender.what_was_sent())};
    }
  }
}

void publish(const PubArguments& arguments) {
  check_topic_name(arguments.topic);
  if (arguments.generate_bytes && !arguments.count) {
    throw Failure{kExitUsage, "--generate needs --count N, the number of records"};
  }
  if (arguments.generate_bytes && arguments.file != "-") {
    throw Failure{kExitUsage, "--generate and a FILE exclude each other"};
  }
  if (arguments.generate_bytes && !arguments.key_separator.empty()) {
    throw Failure{kExitUsage, "--generate and --key-separator exclude each other"};
  }
  (void)parse_headers(arguments.headers);  // Before a topic is made.
  const detail::Fd input = open_input(arguments.file);
  usable_directory(Missing::is_made);
  const StopOnSignal signals;
  const Topic topic = open_or_create_topic(arguments.topic, signals);
  Sender sender{topic, arguments, signals};
  if (arguments.generate_bytes)
    send_generated(sender, *arguments.generate_bytes, *arguments.count, signals);
  else
    send_lines(sender, input.get(), arguments, signals);
}

}  // namespace

void add_pub_command(CLI::App& app) {
  auto arguments = std::make_shared<PubArguments>();
  CLI::App* command =
      app.add_subcommand("pub", "Publish lines of stdin or of a file, each as soon as it comes");
  command
      ->add_option("TOPIC", arguments->topic, "The topic; made with the defaults if it is missing")
      ->required();
  command->add_option("FILE", arguments->file, "Where the lines come from; - is stdin")
      ->default_str("-");
  constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
  auto generate = std::make_shared<std::uint64_t>(0);
  add_size(*command, "--generate", *generate,
           "Publish --count numbers of this many digits, instead of lines");
  add_number(*command, "--count", arguments->count, 1, kAny, "Stop after so many records");
  command
      ->add_option("--key-separator", arguments->key_separator,
                   "What stands before it in a line is the key")
      ->type_name("C");
  command->add_option("--header", arguments->headers, "A header for every record; may be repeated")
      ->type_name("NAME=VALUE")
      ->type_size(1)
      ->allow_extra_args(false);
  add_number(*command, "--partition", arguments->partition, 0, detail::Geometry::kMaxPartitions - 1,
             "Into this partition; else by key, else one of the publisher's own");
  command->footer(
      "Example:\n  echo 'user1:hello' | leat pub news --key-separator : --header from=shell\n"
      "  leat pub news --generate 100 --count 1000000");
  command->callback([arguments, generate, command] {
    if (command->count("--generate") != 0) arguments->generate_bytes = *generate;
    if (command->count("--key-separator") != 0 && arguments->key_separator.empty()) {
      throw Failure{kExitUsage, "--key-separator: one character or more is needed"};
    }
    publish(*arguments);
  });
}

}  // namespace leat::cli
