// `leat sub TOPIC…`: writes the records of topics as a subscriber of each.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leat/leat.hpp"
#include "sub.hpp"

namespace leat::cli {

std::optional<Topic> find_topic(const std::string& name, const SubArguments& arguments) {
  auto topic = Topic::open(name);
  if (topic) return std::move(*topic);
  if (topic.error().code != Errc::not_found || arguments.needs_topics()) fail(topic.error(), name);
  check_named_data_directory();
  print_notice(
      fmt::format("waiting for topic '{}', which does not exist yet{}", name, similar_topic(name)));
  return std::nullopt;
}

std::optional<Topic> wait_for_topic(const std::string& name, RecordTimer& timer,
                                    const StopOnSignal& signals) {
  auto topic = Topic::open(name, timer.deadline(), {}, signals.token());
  if (topic) return std::move(*topic);
  if (topic.error().code == Errc::stopped) return std::nullopt;
  if (topic.error().code == Errc::not_found && timer.has_passed()) timer.fail({name});
  fail(topic.error(), name);
}

void report_where_it_begins(const Topic& topic, const std::vector<std::uint64_t>& offsets) {
  constexpr std::size_t kShown = 8;
  const auto is_whole = [](std::uint64_t offset) { return offset == 0; };
  if (std::all_of(offsets.begin(), offsets.end(), is_whole)) return;
  if (topic.policy() == Policy::overwrite) return;  // There it is expected.
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(offsets.size(), kShown); ++i)
    texts.push_back(number_text(offsets[i]));
  const bool has_one_partition = offsets.size() == 1;
  const auto durable = topic.info().durable;
  const char* why =
      !durable ? "older records were overwritten, because no subscriber or group that had still to "
                 "read them was there (`leat topic create --retain all` keeps all)"
      : durable->retention_bytes != 0 || durable->retention.count() != 0
          ? "older records were deleted, as --retention-bytes or --retention-time say"
          : "there are no older records, because numbering went on there after a failure";
  print_notice(fmt::format("topic '{}' begins at offset{} {}{}{}: {}", topic.name(),
                           has_one_partition ? "" : "s", fmt::join(texts, " "),
                           offsets.size() > kShown ? " …" : "",
                           has_one_partition ? "" : " of its partitions", why));
}

void report_gap(const Event& event, const std::string& of_topic) {
  print_notice(
      fmt::format("gap of {} record{} at offset {} ({}partition {}): {}; next is offset {}",
                  event.count, event.count == 1 ? "" : "s", event.first, of_topic, event.partition,
                  name_of(event.reason), event.first + event.count));
}

namespace {

constexpr std::size_t kPollLimit = 1024;
// How often to look for missing topics while reading others.
constexpr std::chrono::nanoseconds kPollForMissing = std::chrono::milliseconds{200};

// --read, if it was given.
std::optional<Stage> stage_wanted(const SubArguments& arguments) {
  if (!arguments.read) return std::nullopt;
  return *arguments.read == "durable" ? Stage::durable : Stage::committed;
}

SubscriberOptions options_for(const Topic& topic, const SubArguments& arguments, bool was_missing) {
  SubscriberOptions options;
  options.from = parse_place("--from", arguments.from);
  // A topic that did not exist at first is read from its beginning. By offset 0, which reports a gap if the
  // first records are gone already; with several partitions an offset is not possible.
  if (was_missing && is_end(arguments.from)) {
    options.from =
        topic.partitions() == 1 || arguments.partition ? From::offset(0) : From::beginning;
  }
  options.gating = !arguments.lossy;
  options.read = stage_wanted(arguments);
  if (topic.policy() == Policy::overwrite && options.gating) {
    print_notice(fmt::format(
        "topic '{}' overwrites what is oldest, so records may be lost (as with --lossy)",
        topic.name()));
    options.gating = false;
  }
  if (arguments.partition) {
    options.partition = partition_of(topic, *arguments.partition);
  } else if (parse_number(arguments.from) && topic.partitions() > 1) {
    throw Failure{
        kExitUsage,
        fmt::format("--from {}: topic '{}' has {} partitions, each with offsets of its own: add "
                    "--partition 0 to {}",
                    arguments.from, topic.name(), topic.partitions(), topic.partitions() - 1)};
  }
  return options;
}

// A topic that is being read.
class Source {
 public:
  Source(Topic topic, const SubArguments& arguments, bool was_missing)
      : topic_{std::move(topic)},
        partition_{arguments.partition},
        stage_{stage_of(topic_, arguments)},
        subscriber_{open(topic_, arguments, was_missing)},
        was_lossy_{subscriber_.is_lossy()} {
    if (is_beginning(arguments.from)) report_beginning();
    if (const auto offset = parse_number(arguments.from)) check_end(*offset, arguments);
    const std::string of_topic = arguments.has_several_topics() ? topic_.name() + ", " : "";
    subscriber_.on_event([of_topic](const Event& event) { report_gap(event, of_topic); });
  }

  Subscriber& subscriber() noexcept { return subscriber_; }

  // Writes up to `limit` available records and returns how many.
  std::size_t poll(std::size_t limit, const RecordWriter& writer, Output& output) {
    auto count = subscriber_.poll(
        limit, [&](const Record& record) { writer.append(record, topic_.name(), output.text()); });
    if (!count) {
      output.flush();
      fail(count.error(), topic_.name());
    }
    if (!was_lossy_ && subscriber_.is_lossy()) {
      was_lossy_ = true;
      print_notice(
          fmt::format("too slow for topic '{}' (--evict-after): records may be lost from here on",
                      topic_.name()));
    }
    return *count;
  }

  // Whether everything claimed so far was read, in all partitions being read. If writing to disk has failed: everything
  // that is on stable storage.
  bool is_at_end() const {
    const TopicInfo info = topic_.info();
    const bool ends_early =
        stage_ == Stage::durable && info.durable && info.durable->state == Errc::read_only;
    for (std::uint32_t i = 0; i < info.partitions.size(); ++i) {
      const std::uint64_t end = ends_early ? info.partitions[i].durable : info.partitions[i].end;
      if (reads(i) && subscriber_.offset(i) < end) return false;
    }
    return true;
  }

 private:
  static Subscriber open(const Topic& topic, const SubArguments& arguments, bool was_missing) {
    auto subscriber = topic.subscriber(options_for(topic, arguments, was_missing));
    if (subscriber) return std::move(*subscriber);
    if (subscriber.error() == Errc::needs_durable)
      throw Failure{kExitUsage,
                    fmt::format("--read durable: topic '{}' is not durable", topic.name())};
    if (subscriber.error() == Errc::needs_timestamps)
      throw Failure{kExitUsage,
                    fmt::format("--from {}: the records of topic '{}' carry no time: it was "
                                "created without --timestamps",
                                arguments.from, topic.name())};
    fail(subscriber.error(), topic.name());
  }

  static Stage stage_of(const Topic& topic, const SubArguments& arguments) {
    const std::optional<DurableInfo> durable = topic.info().durable;
    const bool waits = durable && durable->durability == Durability::fsync;
    return stage_wanted(arguments).value_or(waits ? Stage::durable : Stage::committed);
  }

  bool reads(std::uint32_t partition) const { return !partition_ || *partition_ == partition; }

  void report_beginning() const {
    std::vector<std::uint64_t> offsets;
    for (std::uint32_t i = 0; i < topic_.partitions(); ++i) {
      if (reads(i)) offsets.push_back(subscriber_.offset(i));
    }
    report_where_it_begins(topic_, offsets);
  }

  // A saved offset may be that of an earlier topic of the same name.
  void check_end(std::uint64_t offset, const SubArguments& arguments) const {
    const std::uint64_t end = topic_.end_offset(static_cast<std::uint32_t>(partition_.value_or(0)));
    if (offset <= end) return;
    const std::string ends = fmt::format(
        "{}topic '{}' ends at {}", partition_ ? fmt::format("partition {} of ", *partition_) : "",
        topic_.name(), end);
    if (!arguments.exit_at_end)
      return print_notice(fmt::format("{}; waiting for {}", ends, offset));
    throw Failure{kExitNotThere,
                  fmt::format("{}, before offset {}; if it was deleted and made anew, `leat topic "
                              "info {}` shows another id than before",
                              ends, offset, topic_.name())};
  }

  Topic topic_;
  std::optional<std::uint64_t> partition_;
  Stage stage_;
  Subscriber subscriber_;
  bool was_lossy_;
};

class TopicsReader {
 public:
  TopicsReader(const SubArguments& arguments, const RecordWriter& writer,
               const StopOnSignal& signals)
      : arguments_{arguments},
        writer_{writer},
        signals_{signals},
        output_{signals},
        timer_{arguments.timeout},
        left_{arguments.count.value_or(std::numeric_limits<std::uint64_t>::max())} {
    for (const std::string& name : arguments.topics) {
      if (auto topic = find_topic(name, arguments))
        sources_.emplace_back(std::move(*topic), arguments, false);
      else
        missing_.push_back(name);
    }
  }

  void run() {
    while (left_ > 0 && !output_.is_closed() && !signals_.stopped()) {
      if (poll() != 0) {
        if (output_.is_large()) output_.flush();
        timer_.restart();
        continue;
      }
      output_.flush();
      if (output_.is_closed() || (arguments_.exit_at_end && is_at_end())) break;
      if (timer_.has_passed())
        timer_.fail(sources_.empty() ? missing_ : std::vector<std::string>{});
      wait();
    }
    output_.flush();
  }

 private:
  // A limited number of records of each topic: a busy one must not starve the others.
  std::uint64_t poll() {
    std::uint64_t count = 0;
    for (Source& source : sources_)
      count += source.poll(std::min<std::uint64_t>(left_ - count, kPollLimit), writer_, output_);
    left_ -= count;
    return count;
  }

  bool is_at_end() const {
    return std::all_of(sources_.begin(), sources_.end(),
                       [](const Source& source) { return source.is_at_end(); });
  }

  // Waits until there may be new records, or a missing topic.
  void wait() {
    if (sources_.empty() && missing_.size() == 1) {
      if (auto topic = wait_for_topic(missing_.front(), timer_, signals_))
        sources_.emplace_back(std::move(*topic), arguments_, true);
      missing_.clear();
      return;
    }
    Deadline deadline = timer_.deadline();
    if (!missing_.empty()) deadline = deadline.at_most_ns(kPollForMissing.count());
    if (sources_.empty()) {
      (void)Topic::open(missing_.front(), deadline, {}, signals_.token());
    } else {
      std::vector<Subscriber*> subscribers;
      for (Source& source : sources_) subscribers.push_back(&source.subscriber());
      // An error is left to the next poll().
      (void)wait_any(subscribers, deadline, signals_.token());
    }
    find_missing();
  }

  void find_missing() {
    std::erase_if(missing_, [&](const std::string& name) {
      auto topic = Topic::open(name);
      if (!topic && topic.error().code == Errc::not_found) return false;
      if (!topic) fail(topic.error(), name);
      sources_.emplace_back(std::move(*topic), arguments_, true);
      return true;
    });
  }

  const SubArguments& arguments_;
  const RecordWriter& writer_;
  const StopOnSignal& signals_;
  Output output_;
  RecordTimer timer_;
  std::uint64_t left_;  // How many more records to write.
  std::vector<Source> sources_;
  std::vector<std::string> missing_;
};

}  // namespace

void read_topics(const SubArguments& arguments, const RecordWriter& writer,
                 const StopOnSignal& signals) {
  TopicsReader{arguments, writer, signals}.run();
}

}  // namespace leat::cli
