// `leat sub TOPIC --group NAME`: writes the records that this member of the group gets.
//
// A record is acknowledged after its whole line was written. However this process ends, records that it
// took and did not write go to the other members.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "leat/leat.hpp"
#include "sub.hpp"
#include "tool/did_you_mean.hpp"

namespace leat::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kAtOnce = 64;  // Few, to leave records for other members.
// With --exit: how often to check what others still hold.
constexpr std::chrono::nanoseconds kCheckAgain = 20ms;

// A group outlives its members, also one that a typo has made.
void report_creation(const Topic& topic, const std::string& group) {
  const char* const what = topic.info().durable
                               ? "it keeps its position, also without members,"
                               : "it holds room for what it has not read, also without members,";
  std::vector<std::string> others;
  if (auto names = topic.group_names()) others = std::move(*names);
  std::erase(others, group);
  print_notice(fmt::format("created group '{}' of topic '{}'{}: {} until `leat group delete {} {}`",
                           group, topic.name(), tool::did_you_mean(group, others), what,
                           topic.name(), group));
}

Group open_group(const Topic& topic, const SubArguments& arguments, bool was_missing) {
  if (arguments.no_create) {
    auto group = topic.find_group(*arguments.group);
    if (!group) fail_group(group.error(), topic.name(), *arguments.group);
    return std::move(*group);
  }
  GroupArguments options = arguments.group_options;
  options.from = arguments.from;
  // As without a group: a topic that did not exist at first is read from its beginning.
  if (was_missing && is_end(options.from)) options.from = "beginning";
  Group group = open_or_create_group(topic, *arguments.group, options);
  if (!group.was_created() && !arguments.given_group_options.empty()) {
    print_notice(
        fmt::format("group '{}' of topic '{}' exists already and stays as it is: only the command "
                    "that creates it can set {}",
                    group.name(), topic.name(), arguments.given_group_options));
  }
  if (group.was_created()) report_creation(topic, group.name());
  if (group.was_created() && is_beginning(arguments.from))
    report_where_it_begins(topic, group.info().offsets);
  return group;
}

class GroupReader {
 public:
  GroupReader(const Topic& topic, const Group& group, Member& member, const RecordWriter& writer,
              const StopOnSignal& signals)
      : topic_{topic}, group_{group}, member_{member}, writer_{writer}, output_{signals} {
    member_.on_event([](const Event& event) { report_gap(event, {}); });
  }

  bool is_closed() const noexcept { return output_.is_closed(); }

  // Takes up to `limit` available records, or waits for one, and writes them. Returns how many; 0 if the
  // deadline passed or a stop was requested.
  std::size_t read(std::size_t limit, const Deadline& deadline, const std::stop_token& stop) {
    taken_.clear();
    auto count = member_.receive(taken_, std::min(limit, limit_), deadline, stop);
    if (!count && count.error().code != Errc::timeout && count.error().code != Errc::stopped)
      fail_group(count.error(), topic_.name(), group_.name());
    write();
    return taken_.size();
  }

  // Whether the group has nothing left to do: no record arrived since the last call, and all earlier ones are
  // acknowledged.
  bool is_done() {
    const GroupInfo info = group_.info();
    const bool done = info.lag == 0 && info.in_flight == 0 && info.offsets == offsets_;
    offsets_ = info.offsets;
    return done;
  }

 private:
  void write() {
    ends_.clear();
    std::size_t written = 0;
    for (std::size_t i = 0; i < taken_.size() && !output_.is_closed(); ++i) {
      writer_.append(taken_[i].record, topic_.name(), output_.text());
      ends_.push_back(output_.text().size());
      if (!output_.is_large() && i + 1 < taken_.size()) continue;
      const auto whole =
          std::upper_bound(ends_.begin(), ends_.end(), output_.flush()) - ends_.begin();
      acknowledge(std::span{taken_}.subspan(written, static_cast<std::size_t>(whole)));
      written = i + 1;
      ends_.clear();
    }
  }

  void acknowledge(std::span<const Delivery> written) {
    std::size_t lost = 0;
    for (const Delivery& delivery : written) {
      auto done = member_.acknowledge(delivery);
      if (!done && done.error().code != Errc::lease_lost)
        fail_group(done.error(), topic_.name(), group_.name());
      if (!done) ++lost;
    }
    if (lost != 0) {
      print_notice(fmt::format("{} record{} took longer than --lease: others get {}, too", lost,
                               lost == 1 ? "" : "s", lost == 1 ? "it" : "them"));
    }
  }

  const Topic& topic_;
  const Group& group_;
  Member& member_;
  const RecordWriter& writer_;
  Output output_;
  const std::size_t limit_ = std::min<std::size_t>(kAtOnce, group_.info().in_flight_limit);
  std::vector<Delivery> taken_;
  std::vector<std::size_t> ends_;  // Where the text of each record in the output ends.
  std::vector<std::uint64_t> offsets_;
};

}  // namespace

void read_as_member(const SubArguments& arguments, const RecordWriter& writer,
                    const StopOnSignal& signals) {
  const std::string& name = arguments.topics.front();
  auto topic = find_topic(name, arguments);
  const bool was_missing = !topic;
  RecordTimer timer{arguments.timeout};
  if (was_missing) topic = wait_for_topic(name, timer, signals);
  if (!topic) return;
  const Group group = open_group(*topic, arguments, was_missing);
  auto member = group.join({.name = arguments.member});
  if (!member) fail_group(member.error(), name, group.name());
  GroupReader reader{*topic, group, *member, writer, signals};
  std::uint64_t left = arguments.count.value_or(std::numeric_limits<std::uint64_t>::max());
  while (left > 0 && !reader.is_closed() && !signals.stopped()) {
    const std::size_t limit = left < kAtOnce ? static_cast<std::size_t>(left) : kAtOnce;
    const Deadline deadline = arguments.exit_at_end ? Deadline::immediate() : timer.deadline();
    const std::size_t count = reader.read(limit, deadline, signals.token());
    left -= count;
    if (count != 0) {
      timer.restart();
      continue;
    }
    if (arguments.exit_at_end) {
      if (reader.is_done()) break;
      // An error is left to the next receive().
      (void)member->wait(timer.deadline().at_most_ns(kCheckAgain.count()), signals.token());
    }
    if (timer.has_passed()) timer.fail();
  }
}

}  // namespace leat::cli
