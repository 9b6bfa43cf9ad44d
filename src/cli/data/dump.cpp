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

#include "cli/cli.hpp"
#include "cli/records/record_format.hpp"
#include "cli/records/sub.hpp"
#include "cli/stop_on_signal.hpp"
#include "data_files.hpp"
#include "leat/store/recovery.hpp"
#include "leat/store/stored_records.hpp"

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

// One partition's records and gaps. If the topic is in use, retention may delete files meanwhile, or let them be used
// again: then the files are listed again, and what they had is a gap `overwritten`.
class PartitionReader {
 public:
  // `known` has the files with that end.
  PartitionReader(const DataFiles& files, const detail::ManifestTopic& topic,
                  std::uint32_t partition, const detail::PartitionEnd& end,
                  const detail::SegmentList& known)
      : files_{files}, topic_{topic}, partition_{partition}, end_{end} {
    if (!known.live.empty()) last_known_ = known.live.back();
  }

  void seek(std::uint64_t offset) {
    list(offset);
    offset_ = std::max(offset, oldest_);
  }

  // False at the end. A record's views are valid until the next call.
  bool next(detail::StoredEntry& entry) {
    bool is_confirmed = false;
    for (int lists = 0;; ++lists) {
      auto more = records_->next(entry);
      if (!more && (more.error() != Errc::not_found || lists == kTries)) fail(more.error(), files_);
      const bool is_damage =
          more && *more && !entry.is_record && entry.gap.reason == GapReason::damaged;
      if (more && (!is_damage || is_confirmed || lists == kTries)) return *more && pass(entry);
      const std::uint64_t oldest = oldest_;
      list(offset_);
      if (oldest_ > offset_) {
        entry.is_record = false;
        entry.gap = {offset_, oldest_ - offset_, GapReason::overwritten, partition_};
        return pass(entry);
      }
      is_confirmed = oldest_ == oldest;  // No file has gone.
    }
  }

 private:
  static constexpr int kTries = 10;  // of listing files while some are being deleted

  void list(std::uint64_t offset) {
    for (int attempt = 1;; ++attempt) {
      auto found = try_to_list(offset);
      if (found) return;
      if (found.error() != Errc::not_found || attempt == kTries) fail(found.error(), files_);
    }
  }

  Result<void> try_to_list(std::uint64_t offset) {
    auto lists = detail::list_segments(files_.directory.get(), topic_.partition_count);
    if (!lists) return lists.error();
    detail::SegmentList& segments = (*lists)[partition_];
    if (segments.live.empty() && last_known_) return Errc::not_found;  // The topic is deleted.
    oldest_ = segments.live.empty() ? 0 : segments.live.front().base_offset;
    has_new_files_ = last_known_ && segments.live.back() != *last_known_;
    detail::StoredFrames frames{detail::Disk::system(), files_.directory.get(), topic_.salt,
                                partition_, std::move(segments)};
    frames.expect_end(end_.frames_end, end_.is_clean ? end_.next_offset : 0);
    records_.emplace(std::move(frames));
    return records_->seek(std::max(offset, oldest_));
  }

  // False for what was published in later files: the end would move on and on.
  bool pass(const detail::StoredEntry& entry) noexcept {
    const std::uint64_t first = entry.is_record ? entry.record.offset : entry.gap.first;
    offset_ = entry.is_record ? first + 1 : first + entry.gap.count;
    return !has_new_files_ || first < end_.frames_end;
  }

  const DataFiles& files_;
  const detail::ManifestTopic& topic_;
  std::uint32_t partition_;
  const detail::PartitionEnd& end_;
  std::optional<detail::SegmentName> last_known_;
  std::optional<detail::StoredRecords> records_;
  std::uint64_t offset_ = 0;  // of the next entry
  std::uint64_t oldest_ = 0;  // Where the oldest listed file begins.
  bool has_new_files_ = false;
};

// Writes one partition's records; false if nobody reads the output any more.
bool dump_partition(PartitionReader reader, const DumpArguments& arguments, Output& output) {
  reader.seek(arguments.from);
  detail::StoredEntry entry;
  while (!output.is_closed() && reader.next(entry)) {
    if ((entry.is_record ? entry.record.offset : entry.gap.first) > arguments.to) break;
    if (entry.is_record) {
      append_record(entry.record, arguments, output.text());
    } else {
      append_gap(entry.gap, arguments, output.text());
    }
    if (output.is_large()) output.flush();
  }
  return !output.is_closed();
}

// Retention may delete files meanwhile.
detail::Recovered find_ends(const DataFiles& files, const detail::Manifest& manifest) {
  constexpr int kTries = 10;
  detail::Disk& disk = detail::Disk::system();
  for (int attempt = 1;; ++attempt) {
    auto checkpoint = detail::CheckpointFile::load(disk, files.directory.get(), manifest);
    if (!checkpoint) fail(checkpoint.error(), files);
    auto ends = detail::find_ends(disk, files.directory.get(), manifest, *checkpoint);
    if (ends) return std::move(*ends);
    if (ends.error() != Errc::not_found || attempt == kTries) fail(ends.error(), files);
  }
}

void dump(const DumpArguments& arguments) {
  check_at_most_one({{"--hex", arguments.hex}, {"--json", arguments.json}});
  if (arguments.to < arguments.from)
    throw Failure{kExitUsage,
                  fmt::format("--to {} is before --from {}", arguments.to, arguments.from)};
  const DataFiles files = open_data_files(arguments.topic);
  const detail::Manifest manifest = manifest_of(files);
  const std::uint32_t partitions = manifest.topic.partition_count;
  if (arguments.partition && *arguments.partition >= partitions)
    throw Failure{kExitUsage,
                  fmt::format("--partition: there is no partition {}: topic '{}' has 0 to {}",
                              *arguments.partition, arguments.topic, partitions - 1)};
  const detail::Recovered ends = find_ends(files, manifest);
  auto lists = detail::list_segments(files.directory.get(), partitions);
  if (!lists) fail(lists.error(), files);
  std::signal(SIGPIPE, SIG_IGN);
  const StopOnSignal signals;
  Output output{signals};
  for (std::uint32_t i = 0; i < partitions; ++i) {
    if (arguments.partition && *arguments.partition != i) continue;
    PartitionReader reader{files, manifest.topic, i, ends.partitions[i], (*lists)[i]};
    if (!dump_partition(std::move(reader), arguments, output)) break;
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
  add_number(*command, "-p,--partition", arguments->partition, 0,
             detail::Geometry::kMaxPartitions - 1, "Only this partition");
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
