// What the parts of `leat sub` share: its options, and the way to stdout.
//
//     Output output{signals};
//     writer.append(record, topic.name(), output.text());
//     const std::size_t written = output.flush();   // less than the text if the reader closed the pipe
//
// sub_topics.cpp reads topics as a subscriber, sub_group.cpp reads one topic as a member of a group.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cli.hpp"
#include "cli/group/group.hpp"
#include "cli/stop_on_signal.hpp"
#include "leat/deadline.hpp"
#include "leat/fwd.hpp"
#include "record_format.hpp"

namespace leat::cli {

struct SubArguments {
  std::vector<std::string> topics;
  std::optional<std::string> group;
  std::string member;
  std::string from = "end";
  std::optional<std::string> format;
  std::optional<std::string> delimiter;
  std::optional<std::uint64_t> count;
  std::optional<std::uint64_t> partition;
  bool null = false;
  bool length_prefixed = false;
  bool json = false;
  bool exit_at_end = false;
  bool no_create = false;
  std::chrono::nanoseconds timeout{0};  // 0: never
  bool lossy = false;
  std::optional<std::string> read;
  GroupArguments group_options;
  std::string given_group_options;  // "--from, --by-key": those that matter only when it is created

  bool has_several_topics() const noexcept { return topics.size() > 1; }
  // Whether a topic that is missing is an error; otherwise it is waited for.
  bool needs_topics() const noexcept { return exit_at_end || no_create; }
};

// --timeout: the deadline for the next record, counted from the last one, or from the first wait.
class RecordTimer {
 public:
  explicit RecordTimer(std::chrono::nanoseconds timeout) noexcept : timeout_{timeout} {}

  void restart() noexcept { deadline_.reset(); }
  const Deadline& deadline() {
    if (!deadline_) deadline_ = timeout_.count() == 0 ? Deadline::never() : Deadline{timeout_};
    return *deadline_;
  }
  bool has_passed() const noexcept { return deadline_ && deadline_->passed(); }
  // Ends the command. `missing`: the topics, if none of them exists yet.
  [[noreturn]] void fail(const std::vector<std::string>& missing = {}) const;

 private:
  std::chrono::nanoseconds timeout_;
  std::optional<Deadline> deadline_;
};

// Writes records as the options say.
class RecordWriter {
 public:
  explicit RecordWriter(const SubArguments& arguments);
  void append(const Record& record, const std::string& topic, std::string& to) const;

 private:
  RecordFormat format_;
  bool json_;
  bool json_has_topic_;
  bool length_prefixed_;
};

// Collects what is to be written to stdout, so that many small records cost one system call.
class Output {
 public:
  explicit Output(const StopOnSignal& signals) : signals_{signals} {}

  std::string& text() noexcept { return text_; }
  bool is_large() const noexcept { return text_.size() >= kFlushAt; }
  // True once the reader has closed the pipe, or a stop was requested while nobody reads.
  bool is_closed() const noexcept { return closed_; }

  // Writes the text and clears it. Returns how many bytes were written: all of them, unless closed.
  std::size_t flush();

 private:
  static constexpr std::size_t kFlushAt = 64 * 1024;

  const StopOnSignal& signals_;
  std::string text_;
  bool closed_ = false;
};

// The topic, if it exists. If not: with --exit or --no-create fails, without prints that it is waited for.
std::optional<Topic> find_topic(const std::string& name, const SubArguments& arguments);
// Waits for it to be created. Nothing if told to stop. Fails at the timer's deadline.
std::optional<Topic> wait_for_topic(const std::string& name, RecordTimer& timer,
                                    const StopOnSignal& signals);

// With --from beginning, if room was reused: says that older records are gone, and why. `offsets`: where it
// begins, for each partition that is read.
void report_where_it_begins(const Topic& topic, const std::vector<std::uint64_t>& offsets);

// Says which offsets are not written, and why. `of_topic`: "NAME, ", or nothing.
void report_gap(const Event& event, const std::string& of_topic);

// Each reads until a stop is requested, or as far as the options say.
void read_topics(const SubArguments& arguments, const RecordWriter& writer,
                 const StopOnSignal& signals);
void read_as_member(const SubArguments& arguments, const RecordWriter& writer,
                    const StopOnSignal& signals);

}  // namespace leat::cli
