// What `leat sub` has in common with `leat sub --group`: its options, and the way to stdout.
//
//     Output output{signals};
//     writer.append(record, output.text());
//     const std::size_t written = output.flush();   // less than the text if the reader has gone
//
// sub.cpp reads a topic as a subscriber of its own, sub_group.cpp as a member of a group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "cli.hpp"
#include "group.hpp"
#include "leat/fwd.hpp"
#include "record_format.hpp"
#include "stop_on_signal.hpp"

namespace leat::cli {

struct SubArguments {
  std::string topic;
  std::optional<std::string> group;
  std::string member;
  std::string from = "end";
  std::string format = "%s\\n";
  std::optional<std::uint64_t> count;
  std::optional<std::uint64_t> partition;
  bool exit_at_end = false;
  bool lossy = false;
  bool json = false;
  GroupArguments group_options;
  std::string given_group_options;  // "--from, --by-key": what counts only for whoever creates it
};

// Writes records as --format or --json say.
class RecordWriter {
 public:
  explicit RecordWriter(const SubArguments& arguments)
      : format_{RecordFormat::parse(arguments.format, arguments.topic)}, json_{arguments.json} {}
  void append(const Record& record, std::string& to) const {
    if (json_)
      append_json(record, to);
    else
      format_.append(record, to);
  }

 private:
  RecordFormat format_;
  bool json_;
};

// Collects what is to be written to stdout, so that many small records cost one system call.
class Output {
 public:
  explicit Output(const StopOnSignal& signals) : signals_{signals} {}

  std::string& text() noexcept { return text_; }
  bool is_large() const noexcept { return text_.size() >= kFlushAt; }
  // True once whoever read from us has gone, or we are told to stop while nobody reads.
  bool is_closed() const noexcept { return closed_; }

  // Writes the text, and forgets it. Returns how many bytes went out: all of them, unless closed.
  std::size_t flush();

 private:
  static constexpr std::size_t kFlushAt = 64 * 1024;

  const StopOnSignal& signals_;
  std::string text_;
  bool closed_ = false;
};

// Reads as a member of arguments.group until told to stop. `waited`: the topic was missing at first.
void read_as_member(const Topic& topic, const SubArguments& arguments, bool waited,
                    const RecordWriter& writer, const StopOnSignal& signals);

}  // namespace leat::cli
