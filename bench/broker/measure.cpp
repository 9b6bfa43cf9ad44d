#include "measure.hpp"

#include "bench/harness/group.hpp"

namespace leat::bench::broker {
namespace {

constexpr std::size_t kMostAtOnce = 256;

Load load_of(const RouteLoad& route) {
  const std::uint64_t each = std::max<std::uint64_t>(route.messages / route.producers, 1);
  return {.size = route.size,
          .count = each,
          .warm_up = route.rate == 0 ? usual_warm_up(each) : 10,
          .verify = Verify::ends,
          .pattern = route.rate == 0 ? Pattern::oneway : Pattern::rate,
          .senders = route.producers,
          .receivers = route.consumers,
          .rate = route.rate};
}

class Producer {
 public:
  explicit Producer(Route& route) { route.open_producer(socket_); }
  void send(std::span<const std::byte> message) { socket_.send(message); }
  void flush() {}

 private:
  ZeromqSocket socket_{ZMQ_PUSH};
};

class Consumer {
 public:
  Consumer(Route& route, std::uint32_t index) { route.open_consumer(socket_, index); }

  template <class Look>
  std::size_t take(const Look& look) {
    return socket_.receive(kMostAtOnce, std::chrono::milliseconds{0}, look);
  }
  // Its messages stay where they are.
  void wait() { (void)socket_.wait(kNap); }

 private:
  ZeromqSocket socket_{ZMQ_PULL};
};

// A route as the harness's channel.
struct Channel {
  Route& route;

  class Side {
   public:
    Side(const Channel& channel, End end)
        : socket_{end == End::sender ? ZMQ_PUSH : ZMQ_PULL} {
      if (end == End::sender) {
        channel.route.open_producer(socket_);
      } else {
        channel.route.open_consumer(socket_, 0);
      }
    }
    void send(std::span<const std::byte> message) { socket_.send(message); }
    void flush() {}
    template <class Look>
    std::size_t receive(std::size_t at_most, const Look& look) {
      return socket_.receive(std::min(at_most, kMostAtOnce), std::chrono::seconds{1}, look);
    }

   private:
    ZeromqSocket socket_;
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

Latency measure_route_latency(Route& route, const RouteLoad& wanted, const std::vector<int>& cpus) {
  Channel channel{route};
  return measure_at_rate(channel, load_of(wanted), Placement{cpus}).latency;
}

}  // namespace leat::bench::broker
