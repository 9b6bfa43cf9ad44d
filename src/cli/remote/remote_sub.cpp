// `leat sub --broker …`: as a subscriber, or with `--group lightq` as a puller that acknowledges.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "leat/record.hpp"
#include "remote.hpp"

namespace leat::cli {
namespace {

class RemoteReader {
 public:
  RemoteReader(lightq::Consumer& consumer, const std::string& topic, const RecordWriter& writer,
               const StopOnSignal& signals)
      : consumer_{consumer}, topic_{topic}, writer_{writer}, output_{signals} {}

  // Writes up to `count` messages as they come; until a stop is requested, or nobody reads the output. False if the
  // timer's deadline ended it.
  bool read(std::uint64_t count, RecordTimer& timer, const std::stop_token& stop) {
    while (count > 0 && !output_.is_closed()) {
      const auto message = or_fail(consumer_.next({timer.deadline(), stop}));
      if (!message) return stop.stop_requested();
      timer.restart();
      Record record;
      record.value = *message;
      writer_.append(record, topic_, output_.text());
      ends_.push_back(output_.text().size());
      --count;
      if (output_.is_large() || count == 0 || !consumer_.has_next()) write();
    }
    return true;
  }

 private:
  // A message is acknowledged after all of it was written.
  void write() {
    const std::size_t written = output_.flush();
    const auto whole = std::upper_bound(ends_.begin(), ends_.end(), written) - ends_.begin();
    written_ += static_cast<std::uint64_t>(whole);
    consumer_.acknowledge(written_);
    ends_.clear();
  }

  lightq::Consumer& consumer_;
  const std::string& topic_;
  const RecordWriter& writer_;
  Output output_;
  std::vector<std::size_t> ends_;  // Where the text of each message in the output ends.
  std::uint64_t written_ = 0;      // Messages.
};

}  // namespace

void remote_read(const BrokerOptions& options, const SubArguments& arguments,
                 const RecordWriter& writer, const StopOnSignal& signals) {
  if (arguments.has_several_topics())
    throw Failure{kExitUsage, "one topic at a time can be read from a broker"};
  if (arguments.group && *arguments.group != kLightqGroup) {
    throw Failure{kExitUsage, fmt::format("--group: a broker has one group for each topic: {}; "
                                          "without --group, every subscriber gets everything",
                                          kLightqGroup)};
  }
  const bool is_consumer = arguments.group.has_value();
  const std::string& topic = arguments.topics.front();
  Remote remote{options, signals.token()};
  const auto role = is_consumer ? lightq::Role::puller : lightq::Role::subscriber;
  const auto joined = or_fail(remote.admin.join(topic, remote.user, role, remote.to_answer()));
  auto consumer =
      or_fail(lightq::Consumer::open(joined, {.acknowledges = is_consumer}, remote.to_connect()));
  RemoteReader reader{consumer, topic, writer, signals};
  RecordTimer timer{arguments.timeout};
  const bool is_done = reader.read(
      arguments.count.value_or(std::numeric_limits<std::uint64_t>::max()), timer, remote.stop);
  // Also after a stop: without it, what was written would be written once more by another puller.
  if (is_consumer) or_fail(consumer.finish({Deadline{std::chrono::seconds{5}}}));
  if (!is_done) timer.fail();
}

}  // namespace leat::cli
