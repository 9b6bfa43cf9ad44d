#include "measure.hpp"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "bench/harness/group.hpp"

namespace leat::bench::broker {
namespace {

constexpr std::size_t kMostAtOnce = 256;
constexpr std::uint32_t kBatch = 256;  // Messages after which a producer that collects them sends.

Load load_of(const RouteLoad& route) {
  const std::uint64_t each = std::max<std::uint64_t>(route.messages / route.producers, 1);
  return {.size = route.size,
          .count = each,
          .warm_up = route.rate == 0 ? usual_warm_up(each) : 10,
          .verify = Verify::ends,
          .pattern = route.rate == 0 ? Pattern::oneway : Pattern::rate,
          .senders = route.producers,
          .receivers = route.consumers,
          .batch = route.rate == 0 ? kBatch : 1,
          .rate = route.rate};
}

class Producer {
 public:
  explicit Producer(Route& route) : end_{route.producer()} {}
  void send(std::span<const std::byte> message) { end_->send(message); }
  void flush() { end_->flush(); }

 private:
  std::unique_ptr<ProducerEnd> end_;
};

class Consumer {
 public:
  Consumer(Route& route, std::uint32_t index) : end_{route.consumer(index)} {}

  // Waits for the first one.
  template <class Visit>
  std::size_t receive(std::size_t at_most, std::chrono::milliseconds time, const Visit& visit) {
    std::size_t count = 0;
    for (auto message = end_->next(time); message; message = end_->next({})) {
      visit(*message);
      if (++count == at_most) break;
    }
    return count;
  }
  // As SharingReceiver's source.
  template <class Visit>
  std::size_t take(const Visit& visit) {
    return receive(kMostAtOnce, std::exchange(may_wait_, false) ? kBackoff : kNoTime, visit);
  }
  void wait() { may_wait_ = true; }  // The next take() does.

 private:
  static constexpr std::chrono::milliseconds kNoTime{0};
  std::unique_ptr<ConsumerEnd> end_;
  bool may_wait_ = false;
};

// A route as the harness's channel.
struct Channel {
  Route& route;

  class Side {
   public:
    Side(const Channel& channel, End end) {
      if (end == End::sender) {
        producer_.emplace(channel.route);
      } else {
        consumer_.emplace(channel.route, 0);
      }
    }
    void send(std::span<const std::byte> message) { producer_->send(message); }
    void flush() { producer_->flush(); }
    template <class Visit>
    std::size_t receive(std::size_t at_most, const Visit& visit) {
      return consumer_->receive(std::min(at_most, kMostAtOnce), std::chrono::seconds{1}, visit);
    }

   private:
    std::optional<Producer> producer_;  // One of both.
    std::optional<Consumer> consumer_;
  };
};

}  // namespace

RouteCost measure_route(Route& route, const RouteLoad& wanted, const std::vector<int>& cpus) {
  const Load load = load_of(wanted);
  const Receipts receipts(load);
  const std::uint64_t before_ns = route.cpu_ns();
  RouteCost cost;
  cost.clients = measure_sharing(
      load, receipts, cpus, [&](std::uint32_t i) { return Sending<Producer>(load, i, route); },
      [&](std::uint32_t i) { return SharingReceiver<Consumer>(load, receipts, i, route, i); });
  const std::uint64_t all = (load.count + load.warm_up) * load.senders;
  cost.middle_cpu_ns =
      static_cast<double>(route.cpu_ns() - before_ns) / static_cast<double>(all);
  return cost;
}

RouteTimes measure_route_times(Route& route, const RouteLoad& wanted,
                               const std::vector<int>& cpus) {
  constexpr std::chrono::milliseconds kPause{100};
  constexpr std::uint64_t kSlowest = 10'000;  // Messages per second that are waited for.
  using Side = Channel::Side;
  Load load = load_of(wanted);
  load.warm_up = 1;  // Shows that all are connected.
  load.time_limit += std::chrono::seconds{load.count / kSlowest};
  const Channel channel{route};
  const Measured measured = run_pattern(
      load, place_on(cpus, 1, 1),
      [&](std::uint32_t i) { return Sending<Side>(load, i, channel, End::sender); },
      [&](std::uint32_t) { return InOrder<Side>(load, channel, End::receiver); },
      [&](Sending<Side>& sender, RoleTimes& times) {
        std::this_thread::sleep_for(kPause);
        times.start();
        sender.send(load.count);
        times.end();
      },
      [&](InOrder<Side>& receiver, RoleTimes& times) {
        receiver.take(1, [] {});
        times.start();
        receiver.receive(load.count - 1, times);
      });
  const RoleTimes& producer = measured.senders.front();
  const RoleTimes& consumer = measured.receivers.front();
  const auto ns_between = [](std::uint64_t from, std::uint64_t to) {
    return static_cast<double>(to - from);
  };
  return {.producer_seconds = ns_between(producer.started_ns, producer.ended_ns) / 1e9,
          .consumer_seconds = ns_between(consumer.started_ns, consumer.ended_ns) / 1e9,
          .first_message_ms = ns_between(producer.started_ns, consumer.started_ns) / 1e6};
}

Latency measure_route_latency(Route& route, const RouteLoad& wanted, const std::vector<int>& cpus) {
  Channel channel{route};
  return measure_at_rate(channel, load_of(wanted), Placement{cpus}).latency;
}

}  // namespace leat::bench::broker
