#include "stopped.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "bench/harness/clock.hpp"

namespace leat::bench::broker {
namespace {

constexpr char kTopic[] = "measured";
constexpr std::size_t kConsumers = 8;  // The first one is stopped.
constexpr std::size_t kSize = 100;
constexpr std::uint64_t kMostAhead = 4096;
constexpr std::chrono::seconds kPatience{30};
constexpr double kSettleSeconds = 0.3;
constexpr double kLongestBefore = 10;

// What a consumer has got so far. It alone writes; relaxed throughout, as only the numbers matter.
struct alignas(kCacheLine) Progress {
  std::atomic<std::uint64_t> count{0};
  std::atomic<std::uint64_t> last{0};  // Messages are numbered from 1.
  std::atomic<std::uint64_t> lost{0};  // Of a subscriber: numbers that are missing between two.
};
using Board = std::array<Progress, kConsumers>;

[[noreturn]] void consume(const Endpoint& endpoint, bool subscribes, Progress& progress) {
  const auto socket = std::make_unique<ZeromqSocket>(subscribes ? ZMQ_SUB : ZMQ_PULL);
  if (subscribes) socket->subscribe(kTopic);
  socket->connect(endpoint);
  for (std::uint64_t count = 0, last = 0, lost = 0;;) {
    const auto message = socket->next(std::chrono::seconds{1});
    if (!message) continue;
    std::uint64_t number = 0;
    if (message->size() != kSize) throw Failure("a message has the wrong size");
    std::memcpy(&number, message->data(), sizeof number);
    if (subscribes) {  // What one puller did not take comes to another one later.
      if (number <= last) throw Failure("a message is out of order");
      if (count != 0) lost += number - last - 1;
    }
    last = number;
    progress.last.store(last, std::memory_order_relaxed);
    progress.lost.store(lost, std::memory_order_relaxed);
    progress.count.store(++count, std::memory_order_relaxed);
  }
}

bool all_have_some(const Board& board) {
  return std::all_of(board.begin(), board.end(), [](const Progress& each) {
    return each.count.load(std::memory_order_relaxed) != 0;
  });
}

std::uint64_t slowest_of_others(const Board& board) {
  std::uint64_t slowest = UINT64_MAX;
  for (std::size_t i = 1; i < board.size(); ++i)
    slowest = std::min(slowest, board[i].last.load(std::memory_order_relaxed));
  return slowest;
}

[[noreturn]] void produce(const Endpoint& endpoint, bool for_subscribers, const Board& board) {
  const auto socket = connected_socket(ZMQ_PUSH, endpoint);
  std::array<std::byte, kSize> message{};
  std::uint64_t number = 0;
  const auto send = [&] {
    ++number;
    std::memcpy(message.data(), &number, sizeof number);
    socket->send(message);
  };
  while (!all_have_some(board)) {  // Until all are connected.
    send();
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  for (;;) {
    while (for_subscribers && number >= slowest_of_others(board) + kMostAhead)
      std::this_thread::sleep_for(std::chrono::microseconds{20});
    send();
  }
}

// The processes of one measurement, from when all have got something.
class Crew {
 public:
  Crew(const Endpoint& consumers, const Endpoint& producers, bool subscribes,
       const SignalScope& signals)
      : signals_{signals} {
    for (Progress& progress : *board_) {
      children_.push_back(std::make_unique<Child>(
          "consumer", kAnyCpu, [&] { consume(consumers, subscribes, progress); }));
    }
    children_.push_back(std::make_unique<Child>("producer", kAnyCpu,
                                                [&] { produce(producers, subscribes, *board_); }));
    wait_until(signals_, kPatience, "not all consumers get something", [this] {
      check();
      return all_have_some(*board_);
    });
  }

  void wait(double seconds) const {
    wait_for(signals_, seconds, [this] { check(); });
  }
  // Messages per second of the others, in the next seconds; in more, if they get nothing in these.
  double rate(double seconds) const {
    const std::uint64_t before = sum_of_others(&Progress::count);
    const std::uint64_t before_ns = now_ns();
    std::uint64_t got = 0;
    while (got == 0) {
      wait(seconds);
      got = sum_of_others(&Progress::count) - before;
    }
    return static_cast<double>(got) * 1e9 / static_cast<double>(now_ns() - before_ns);
  }
  void stop_one() const { children_.front()->kill(SIGSTOP); }
  std::uint64_t lost() const { return sum_of_others(&Progress::lost); }

 private:
  void check() const {
    for (const auto& child : children_) {
      if (child->has_ended()) child->check_end();
    }
  }
  std::uint64_t sum_of_others(std::atomic<std::uint64_t> Progress::*number) const {
    std::uint64_t sum = 0;
    for (std::size_t i = 1; i < kConsumers; ++i)
      sum += ((*board_)[i].*number).load(std::memory_order_relaxed);
    return sum;
  }

  const SignalScope& signals_;
  Shared<Board> board_;
  std::vector<std::unique_ptr<Child>> children_;  // The consumers, then the producer.
};

}  // namespace

StoppedRates measure_stopped(const Places& places, const StoppedLoad& load,
                             const SignalScope& signals) {
  const bool subscribes = load.role == "sub";
  const ServedBroker broker{places};
  Endpoint consumers;
  Endpoint producers;
  {
    Administration administration{broker};
    administration.create_topic(kTopic, "queue", load.slow);
    consumers = administration.join(kTopic, load.role.c_str(), false);
    producers = administration.join(kTopic, "pub", false);
  }
  const Crew crew{consumers, producers, subscribes, signals};
  crew.wait(kSettleSeconds);
  StoppedRates rates;
  rates.before = crew.rate(std::min(load.seconds, kLongestBefore));
  crew.stop_one();
  rates.stopped = crew.rate(load.seconds);
  rates.lost = crew.lost();
  return rates;
}

}  // namespace leat::bench::broker
