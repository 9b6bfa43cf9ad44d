// The harness of messages in one direction: as fast as possible, at a rate, or for latency at a rate.
//
//     Measured measured = measure_one_way(
//         load, place_on(cpus, 1, 1),
//         [&](std::uint32_t i) { return Sending<Side>(load, i, channel, End::sender); },
//         [&](std::uint32_t) { return InOrder<Side>(load, channel, End::receiver); });
//     double ns = cost_per_message(measured, load).ns;
//
// Sending and InOrder send and verify the messages. Either may be another class: whatever has
// send(count), and receive(count, times) as harness/measure.hpp says.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "measure.hpp"
#include "spin.hpp"

namespace leat::bench {

// Sends numbered payloads through a Transport, which has send(message) and flush() as a channel's side.
template <class Transport>
class Sending {
 public:
  // Sender `index` of load.senders.
  template <class... Arguments>
  Sending(const Load& load, std::uint32_t index, Arguments&&... of_transport)
      : batch_{load.batch},
        batches_{load.batch > 1},
        payload_{load.size, load.verify},
        outgoing_{payload_, Numbering(load.senders).first(index), Numbering(load.senders).step()},
        transport_(std::forward<Arguments>(of_transport)...) {}
  Sending(const Sending&) = delete;
  Sending& operator=(const Sending&) = delete;

  void send(std::uint64_t count) {
    // One loop for both, so that there is one call to be inlined.
    for (std::uint64_t left = count; left != 0;) {
      const std::uint64_t now = batches_ ? std::min<std::uint64_t>(left, batch_) : left;
      for (std::uint64_t i = 0; i < now; ++i) transport_.send(outgoing_.next());
      if (batches_) transport_.flush();
      left -= now;
    }
  }

 private:
  std::uint32_t batch_;
  bool batches_;
  Payload payload_;
  OutgoingPayloads outgoing_;
  Transport transport_;
};

// Verifies that all messages of each sender arrive, in order. A Transport has receive(at_most, look).
template <class Transport>
class InOrder {
 public:
  template <class... Arguments>
  explicit InOrder(const Load& load, Arguments&&... of_transport)
      : payload_{load.size, load.verify},
        numbering_{load.senders},
        transport_(std::forward<Arguments>(of_transport)...) {
    for (std::uint32_t i = 0; i < load.senders; ++i) next_.push_back(numbering_.first(i));
  }

  void receive(std::uint64_t count, RoleTimes& times) {
    take(count, [] {});
    times.end();
  }

  // `on_message()` after each of them was verified.
  template <class OnMessage>
  void take(std::uint64_t count, const OnMessage& on_message) {
    if (next_.size() > 1) {
      take(count, on_message, [&](std::span<const std::byte> message) { check_any(message); });
      return;
    }
    std::uint64_t next = next_[0];  // A copy, which the compiler keeps in a register.
    take(count, on_message, [&](std::span<const std::byte> message) {
      if (message.size() != payload_.size() || !payload_.check(message.data(), next)) [[unlikely]] {
        fail(next);
      }
      ++next;
    });
    next_[0] = next;
  }

 private:
  template <class OnMessage, class Check>
  void take(std::uint64_t count, const OnMessage& on_message, const Check& check) {
    const auto visit = [&](std::span<const std::byte> message) {
      check(message);
      on_message();
    };
    for (std::uint64_t left = count; left != 0;) {
      left -= transport_.receive(static_cast<std::size_t>(left), visit);
    }
  }

  // The next one of whichever sender.
  void check_any(std::span<const std::byte> message) {
    std::uint64_t sequence = 0;
    if (message.size() != payload_.size() || message.size() < sizeof sequence) fail(sequence);
    std::memcpy(&sequence, message.data(), sizeof sequence);
    const std::uint64_t sender = numbering_.sender_of(sequence);
    if (sender >= next_.size() || sequence != next_[sender] ||
        !payload_.check(message.data(), sequence)) {
      fail(sequence);
    }
    next_[sender] += numbering_.step();
  }

  [[noreturn, gnu::noinline, gnu::cold]] static void fail(std::uint64_t sequence) {
    throw Failure("message " + std::to_string(sequence) + " has the wrong content");
  }

  Payload payload_;
  Numbering numbering_;
  std::vector<std::uint64_t> next_;  // Sequence numbers, by sender.
  Transport transport_;
};

// When messages are due that are sent at a rate.
class Schedule {
 public:
  Schedule(std::uint64_t start_ns, std::uint64_t per_second) noexcept
      : start_ns_{start_ns}, interval_ns_{1e9 / static_cast<double>(per_second)} {}

  std::uint64_t due_ns(std::uint64_t index) const noexcept {
    return start_ns_ + static_cast<std::uint64_t>(static_cast<double>(index) * interval_ns_);
  }
  // Spins.
  void await(std::uint64_t index) noexcept {
    const std::uint64_t until_ns = due_ns(index);
    while (now_ns() < until_ns) spin_.once();
  }

 private:
  std::uint64_t start_ns_;
  double interval_ns_;
  Spin spin_;
};

// A sender without room sleeps, and sleeping takes no CPU time: so its CPU time is what sending took,
// and the rest of the time it waited. (On a busy machine, for its CPU, too.)
template <class Sender>
void send_and_time(Sender& sender, std::uint64_t count, RoleTimes& times) {
  times.start();
  sender.send(count);
  times.end();
  const std::uint64_t elapsed_ns = times.ended_ns - times.started_ns;
  times.wait_ns = elapsed_ns > times.cpu_ns ? elapsed_ns - times.cpu_ns : 0;
}

// Sends `rate` messages per second, in groups. The sender spins until a group is due, so here CPU time
// says nothing: instead the clock is read around each group, and the cost of reading it is taken off.
template <class Sender>
void send_and_time_at_rate(Sender& sender, std::uint64_t count, std::uint64_t rate,
                           RoleTimes& times) {
  // A group is sent when its last message is due. Reading the clock around each message would cost
  // more than sending it.
  constexpr std::uint64_t kGroup = 16;
  // A group that took this long has waited, for room or for its CPU; sending one takes about 1 us.
  constexpr std::uint64_t kLongGroupNs = 50'000;
  const std::uint64_t clock_ns = clock_cost_ns();
  times = {};
  times.started_ns = now_ns();
  Schedule schedule(times.started_ns, rate);
  for (std::uint64_t sent = 0; sent < count;) {
    const std::uint64_t group = std::min(count - sent, kGroup);
    schedule.await(sent + group);
    const std::uint64_t before_ns = now_ns();
    sender.send(group);
    const std::uint64_t took_ns = now_ns() - before_ns;
    (took_ns < kLongGroupNs ? times.cpu_ns : times.wait_ns) +=
        took_ns > clock_ns ? took_ns - clock_ns : 0;
    sent += group;
  }
  times.ended_ns = now_ns();
}

// Every receiver gets every message, or as many as its receive() waits for.
template <class MakeSender, class MakeReceiver, class Run = decltype(&run_roles)>
Measured measure_one_way(const Load& load, const RolePlacement& placement,
                         const MakeSender& make_sender, const MakeReceiver& make_receiver,
                         const Run& run = &run_roles) {
  return run_pattern(
      load, placement, make_sender, make_receiver,
      [&](auto& sender, RoleTimes& times) {
        if (load.rate == 0) {
          send_and_time(sender, load.count, times);
        } else {
          send_and_time_at_rate(sender, load.count, load.rate, times);
        }
      },
      [&](auto& receiver, RoleTimes& times) { receiver.receive(load.count * load.senders, times); },
      run);
}

// A receiver that also notes how late each message is.
template <class Transport>
class TimedInOrder : public InOrder<Transport> {
 public:
  template <class... Arguments>
  explicit TimedInOrder(const Load& load, Arguments&&... of_transport)
      : InOrder<Transport>(load, std::forward<Arguments>(of_transport)...),
        rate_{load.rate},
        samples_ns_{empty_samples(load.count)} {}

  // The measured part. `start_ns` is set before the first message is sent.
  void time(const std::atomic<std::uint64_t>& start_ns, RoleTimes& times) {
    std::optional<Schedule> schedule;
    std::size_t index = 0;
    this->take(samples_ns_.size(), [&] {
      const std::uint64_t at_ns = now_ns();
      // acquire; pairs with the release in measure_at_rate().
      if (!schedule) schedule.emplace(start_ns.load(std::memory_order_acquire), rate_);
      const std::uint64_t due_ns = schedule->due_ns(index);
      samples_ns_[index++] = at_ns > due_ns ? at_ns - due_ns : 0;
    });
    times.end();
  }

  Latency latency() { return latency_of(samples_ns_); }

 private:
  std::uint64_t rate_;
  std::vector<std::uint64_t> samples_ns_;
};

// One sender, one receiver. Each message is sent when it is due, or at once if it is late. Its latency
// counts from when it was due, so a slow receiver makes all messages that wait for it late.
template <class Channel>
Measured measure_at_rate(Channel& channel, const Load& load, const Placement& placement) {
  using Side = typename Channel::Side;
  constexpr std::uint64_t kLeadNs = 1'000'000;
  const Shared<std::atomic<std::uint64_t>> start_ns(0u);
  return run_pattern(
      load, place_on(placement.cpus, 1, 1),
      [&](std::uint32_t i) { return Sending<Side>(load, i, channel, End::sender); },
      [&](std::uint32_t) { return TimedInOrder<Side>(load, channel, End::receiver); },
      [&](Sending<Side>& sender, RoleTimes& times) {
        times.started_ns = now_ns() + kLeadNs;
        // release; pairs with the acquire in TimedInOrder::time().
        start_ns->store(times.started_ns, std::memory_order_release);
        Schedule schedule(times.started_ns, load.rate);
        for (std::uint64_t i = 0; i < load.count; ++i) {
          schedule.await(i);
          sender.send(1);
        }
      },
      [&](TimedInOrder<Side>& receiver, RoleTimes& times) { receiver.time(*start_ns, times); });
}

// Per message of all senders. CPU time is summed over the senders, or over the receivers.
struct MessageCost {
  double ns = 0;             // From the first message until the last one has been verified.
  double sender_cpu_ns = 0;  // Without the waiting.
  double sender_wait_ns = 0;
  double receiver_cpu_ns = 0;  // Including spinning.

  double per_second() const noexcept { return ns > 0 ? 1e9 / ns : 0; }
};

inline MessageCost cost_per_message(const Measured& measured, const Load& load) {
  MessageCost cost{.ns = measured.elapsed_ns()};
  for (const RoleTimes& times : measured.senders) {
    cost.sender_cpu_ns += static_cast<double>(times.cpu_ns);
    cost.sender_wait_ns += static_cast<double>(times.wait_ns);
  }
  for (const RoleTimes& times : measured.receivers) {
    cost.receiver_cpu_ns += static_cast<double>(times.cpu_ns);
  }
  const auto messages = static_cast<double>(load.count * load.senders);
  for (double* value :
       {&cost.ns, &cost.sender_cpu_ns, &cost.sender_wait_ns, &cost.receiver_cpu_ns}) {
    *value /= messages;
  }
  return cost;
}

}  // namespace leat::bench
