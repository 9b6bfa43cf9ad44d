#include "log.hpp"

#include <algorithm>

#include "channel.hpp"

namespace leat::bench {
namespace {

std::chrono::seconds time_limit(const LogOptions& options, std::uint64_t records_of_each) {
  constexpr std::uint64_t kSlowestPerSecond = 50'000;
  const std::uint64_t slowest =
      options.rate == 0 ? kSlowestPerSecond : std::min(options.rate, kSlowestPerSecond);
  return std::chrono::seconds{120 + records_of_each / slowest};
}

Load load_of(const LogOptions& options) {
  const std::uint64_t each = (options.records + options.publishers - 1) / options.publishers;
  return {.size = options.size,
          .count = each,
          .warm_up = warm_up_of_log(options.size, options.publishers, options.capacity_bytes),
          .verify = options.verify,
          .pattern = Pattern::oneway,
          .variant = Variant::spinning,
          .senders = options.publishers,
          .receivers = options.subscribers,
          .batch = options.batch,
          .rate = options.rate,
          .time_limit = time_limit(options, each)};
}

class LogBatchSender {
 public:
  LogBatchSender(const std::string& directory, Mode mode)
      : sender_{directory, mode}, batch_{sender_} {}

  void send(Bytes message) { batch_.send(message); }
  void flush() { batch_.flush(); }

 private:
  LogSender sender_;
  TopicBatch batch_;
};

}  // namespace

std::uint64_t warm_up_of_log(std::size_t size, std::uint32_t publishers,
                             std::uint64_t capacity_bytes) {
  const std::uint64_t bytes_at_least = (size + 16) / 16 * 16;
  return 2 * capacity_bytes / bytes_at_least / publishers + 1;
}

MessageCost measure_log(const LogOptions& options, const std::vector<int>& cpus) {
  const TemporaryTopics topics;
  topics.create(kLogTopic, {.capacity_bytes = options.capacity_bytes, .policy = Policy::block});
  const Load load = load_of(options);
  const auto measure = [&](const auto& make_sender) {
    return measure_one_way(
        load, place_on(cpus, load.senders, load.receivers), make_sender,
        [&](std::uint32_t) { return InOrder<LogReceiver>(load, topics.directory()); });
  };
  const auto single = [&](std::uint32_t i) {
    return Sending<LogSender>(load, i, topics.directory(), options.mode);
  };
  const auto batched = [&](std::uint32_t i) {
    return Sending<LogBatchSender>(load, i, topics.directory(), options.mode);
  };
  const Measured measured = options.batch == 1 ? measure(single) : measure(batched);
  MessageCost cost = cost_per_message(measured, load);
  cost.receiver_cpu_ns /= load.receivers;
  return cost;
}

RoundTrip log_round_trip(const Load& load, const Placement& placement) {
  LogChannel<TopicReceiver> channel(
      load, load.variant == Variant::blocking ? WhenEmpty::sleep : WhenEmpty::poll_again);
  return round_trip_of(measure_round_trip(channel, load, placement), load);
}

}  // namespace leat::bench
