// `leat dump TOPIC`: the records in a durable topic's files, whether anybody has it open or not.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <csignal>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/cli.hpp"
#include "cli/records/record_format.hpp"
#include "cli/records/sub.hpp"
#include "cli/stop_on_signal.hpp"
#include "data_files.hpp"
#include "leat/admin.hpp"

namespace leat::cli {
namespace {

struct DumpArguments {
  std::string topic;
  std::optional<std::uint64_t> partition;
  std::uint64_t from = 0;
  std::uint64_t to = std::numeric_limits<std::uint64_t>::max();  // the last offset that is written
  bool hex = false;
  bool json = false;
};

// U+0080 to U+009F, which terminals take as commands, too.
bool is_control(std::string_view text) {
  return text.size() > 1 && text[0] == '\xc2' && static_cast<unsigned char>(text[1]) < 0xa0;
}

// What cannot be printed as it is becomes \n, \t or \xNN, so that each record is one line of UTF-8.
void append_escaped(std::string_view text, std::string& to) {
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text.front());
    std::size_t length = utf8_length(text);
    if (byte == '\\') {
      to += "\\\\";
    } else if (byte == '\n') {
      to += "\\n";
    } else if (byte == '\t') {
      to += "\\t";
    } else if (length == 0 || byte < 0x20 || byte == 0x7f || is_control(text)) {
      to += fmt::format("\\x{:02x}", byte);
      length = 1;
    } else {
      to += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
}

// 16 bytes a line: where, in hexadecimal, and as text.
void append_hex(std::string_view bytes, std::string& to) {
  for (std::size_t at = 0; at < bytes.size(); at += 16) {
    const std::string_view line = bytes.substr(at, 16);
    std::string digits;
    std::string text;
    for (const char c : line) {
      const auto byte = static_cast<unsigned char>(c);
      digits += fmt::format("{:02x} ", byte);
      text += std::isprint(byte) != 0 ? c : '.';
    }
    to += fmt::format("  {:08x}  {:<48} |{}|\n", at, digits, text);
  }
}

void append_record(const Record& record, const DumpArguments& arguments, std::string& to) {
  if (arguments.json) return append_json(record, {}, to);
  to += fmt::format("{} {}", record.partition, record.offset);
  if (record.timestamp_ms >= 0) to += fmt::format(" time={}", record.timestamp_ms);
  if (record.has_key) {
    to += " key=";
    append_escaped(record.key.text(), to);
  }
  for (const Header header : record.headers) {
    to += ' ';
    append_escaped(header.name, to);
    to += '=';
    append_escaped(header.value.text(), to);
  }
  if (arguments.hex) {
    to += fmt::format(" {} bytes\n", record.value.size());
    return append_hex(record.text(), to);
  }
  to += ' ';
  append_escaped(record.text(), to);
  to += '\n';
}

void append_gap(const Event& gap, const DumpArguments& arguments, std::string& to) {
  if (arguments.json) {
    to += nlohmann::ordered_json{{"gap", name_of(gap.reason)},
                                 {"partition", gap.partition},
                                 {"offset", gap.first},
                                 {"count", gap.count}}
              .dump();
    to += '\n';
    return;
  }
  to += fmt::format("{} {} gap of {}: {}\n", gap.partition, gap.first, gap.count,
                    name_of(gap.reason));
}

// Fails if --from lies beyond the end of all these partitions: if none has the offset before it.
void check_begin(const DataFiles& data, FilesReader& reader,
                 const std::vector<std::uint32_t>& partitions, const DumpArguments& arguments) {
  if (arguments.from == 0) return;
  for (const std::uint32_t partition : partitions) {
    if (auto found = reader.seek(partition, arguments.from - 1); !found) fail(found.error(), data);
    FilesEntry entry;
    auto more = reader.next(entry);
    if (!more) fail(more.error(), data);
    if (*more) return;
  }
  const std::string of =
      arguments.partition ? fmt::format("partition {} of ", *arguments.partition) : "";
  throw Failure{kExitNotThere, fmt::format("--from {}: {}topic '{}' ends before that",
                                           arguments.from, of, arguments.topic)};
}

// Writes one partition's records; false if nobody reads the output any more.
bool dump_partition(const DataFiles& data, FilesReader& reader, std::uint32_t partition,
                    const DumpArguments& arguments, Output& output) {
  if (auto found = reader.seek(partition, arguments.from); !found) fail(found.error(), data);
  FilesEntry entry;
  while (!output.is_closed()) {
    auto more = reader.next(entry);
    if (!more) fail(more.error(), data);
    if (!*more || (entry.is_record ? entry.record.offset : entry.gap.first) > arguments.to) break;
    if (entry.is_record) {
      append_record(entry.record, arguments, output.text());
    } else {
      append_gap(entry.gap, arguments, output.text());
    }
    if (output.is_large()) output.flush();
  }
  return !output.is_closed();
}

void dump(const DumpArguments& arguments) {
  check_at_most_one({{"--hex", arguments.hex}, {"--json", arguments.json}});
  if (arguments.to < arguments.from)
    throw Failure{kExitUsage,
                  fmt::format("--to {} is before --from {}", arguments.to, arguments.from)};
  const DataFiles data = open_data_files(arguments.topic);
  const std::uint32_t partitions = manifest_of(data).partitions;
  if (arguments.partition && *arguments.partition >= partitions)
    throw Failure{kExitUsage,
                  fmt::format("--partition: there is no partition {}: topic '{}' has 0 to {}",
                              *arguments.partition, arguments.topic, partitions - 1)};
  auto reader = data.files.reader();
  if (!reader) fail(reader.error(), data);
  std::vector<std::uint32_t> chosen;
  for (std::uint32_t i = 0; i < partitions; ++i) {
    if (!arguments.partition || *arguments.partition == i) chosen.push_back(i);
  }
  check_begin(data, *reader, chosen, arguments);
  std::signal(SIGPIPE, SIG_IGN);
  const StopOnSignal signals;
  Output output{signals};
  for (const std::uint32_t partition : chosen) {
    if (!dump_partition(data, *reader, partition, arguments, output)) break;
  }
  output.flush();
}

}  // namespace

void add_dump_command(CLI::App& app) {
  auto arguments = std::make_shared<DumpArguments>();
  CLI::App* command =
      app.add_subcommand("dump", "Print the records in the files of a durable topic");
  command->add_option("TOPIC", arguments->topic, "The topic; no process needs to have it open")
      ->required();
  add_number(*command, "-p,--partition", arguments->partition, 0, TopicLimits::kMaxPartitions - 1,
             "Only this partition");
  add_number(*command, "--from", arguments->from, 0, std::numeric_limits<std::uint64_t>::max(),
             "First offset of each partition");
  add_number(*command, "--to", arguments->to, 0, std::numeric_limits<std::uint64_t>::max(),
             "Last offset of each partition");
  command->add_flag("-x,--hex", arguments->hex, "Values as bytes in hexadecimal, and as text");
  command->add_flag("-J,--json", arguments->json,
                    "One JSON object a line, as `leat sub --json` writes it; gaps as {\"gap\": …}");
  command->footer("Example:\n  leat dump orders --from 1000 --to 1010\n  leat dump orders --hex");
  command->callback([arguments] { dump(*arguments); });
}

}  // namespace leat::cli
