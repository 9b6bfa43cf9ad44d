// The harness of round trips: a message and its answer, the whole payload both ways.
//
//     Measured measured = measure_round_trip(channel, load, placement);
//     RoundTrip trip = round_trip_of(measured, load);
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "measure.hpp"

namespace leat::bench {

template <class Side>
class Caller {
 public:
  template <class... Arguments>
  explicit Caller(const Load& load, Arguments&&... of_side)
      : load_{load},
        side_(std::forward<Arguments>(of_side)...),
        payload_{load.size, load.verify},
        outgoing_{payload_, kFirst},
        question_{outgoing_.next()},
        samples_ns_{empty_samples(load.count)} {}
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  void send(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) call();
  }

  // The measured part.
  void time(RoleTimes& times) {
    const auto one = [this] { call(); };
    Pass pass;
    if (load_.passes == Passes::two) pass = time_all(load_.count, one);
    const Pass with_clock = time_each(samples_ns_, one);
    if (load_.passes == Passes::one) pass = with_clock;
    times.started_ns = pass.started_ns;
    times.ended_ns = pass.ended_ns;
  }

  Latency latency() { return latency_of(samples_ns_); }

 private:
  static constexpr std::uint64_t kFirst = 1;  // Not 0, which untouched memory holds.

  void call() {
    side_.send(question_);
    question_ = outgoing_.next();  // Prepared while the answer is on its way.
    const std::uint64_t sequence = sequence_++;
    side_.receive(1, [&](std::span<const std::byte> answer) {
      if (answer.size() != load_.size || !payload_.check(answer.data(), sequence)) [[unlikely]] {
        throw Failure("answer " + std::to_string(sequence) + " has the wrong content");
      }
    });
  }

  const Load& load_;
  Side side_;
  Payload payload_;
  OutgoingPayloads outgoing_;
  std::span<const std::byte> question_;
  std::uint64_t sequence_ = kFirst;  // Of that question.
  std::vector<std::uint64_t> samples_ns_;
};

// Sends back what it gets; the caller checks it.
template <class Side>
class Answerer {
 public:
  template <class... Arguments>
  explicit Answerer(Arguments&&... of_side) : side_(std::forward<Arguments>(of_side)...) {}

  void receive(std::uint64_t count, RoleTimes& times) {
    for (std::uint64_t i = 0; i < count; ++i) {
      side_.receive(1, [&](std::span<const std::byte> message) { side_.send(message); });
    }
    times.end();
  }

 private:
  Side side_;
};

template <class Channel>
Measured measure_round_trip(Channel& channel, const Load& load, const Placement& placement) {
  using Side = typename Channel::Side;
  const std::uint64_t calls = load.passes == Passes::two ? 2 * load.count : load.count;
  return run_pattern(
      load, place_on(placement.cpus, 1, 1),
      [&](std::uint32_t) { return Caller<Side>(load, channel, End::sender); },
      [&](std::uint32_t) { return Answerer<Side>(channel, End::receiver); },
      [](Caller<Side>& caller, RoleTimes& times) { caller.time(times); },
      [calls](Answerer<Side>& answerer, RoleTimes& times) { answerer.receive(calls, times); });
}

struct RoundTrip {
  double round_trip_ns = 0;  // Total time / count, of the first pass.
  Latency latency;           // Of the pass that reads the clock after each round trip.
};

inline RoundTrip round_trip_of(const Measured& measured, const Load& load) {
  const RoleTimes& caller = measured.senders.front();
  return {Pass{caller.started_ns, caller.ended_ns}.ns_per_call(load.count), measured.latency};
}

// What `leat bench latency` asks of Leat and of the floor.
inline Load round_trips(std::size_t size, std::uint64_t count, Verify verify = Verify::ends) {
  return {.size = size,
          .count = count,
          .warm_up = usual_warm_up(count),
          .verify = verify,
          .variant = Variant::spinning,
          .passes = Passes::two,
          .time_limit = std::chrono::seconds{300}};
}

}  // namespace leat::bench
