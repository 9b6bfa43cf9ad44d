// What every pattern has in common: senders and receivers in pinned processes of their own, which warm
// up, wait for each other, and are timed. A pattern adds what they do:
//
//     Measured measured = run_pattern(load, place_on(cpus, 1, 1),
//                                     [&](std::uint32_t i) { return Sender(i); },
//                                     [&](std::uint32_t i) { return Receiver(i); }, send, receive);
//
// A sender has send(count), a receiver has receive(count, times): `count` messages of all senders
// together, after which it calls times.end(). Each is made in the process (or thread) that uses it.
// send(sender, times) and receive(receiver, times) are the measured part. A sender or receiver that has
// latency() is asked for it afterwards.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "channel.hpp"
#include "clock.hpp"
#include "processes.hpp"

namespace leat::bench {

inline constexpr std::size_t kMaxRoles = 256;  // Of each: senders, receivers.

// The measured part of one role.
struct RoleTimes {
  std::uint64_t started_ns = 0;
  std::uint64_t ended_ns = 0;
  std::uint64_t cpu_ns = 0;   // Of its thread.
  std::uint64_t wait_ns = 0;  // Of a sender: the rest of its time.
  Usage process;

  void start() noexcept {
    started_ns = now_ns();
    cpu_before_ns = thread_cpu_ns();
  }
  // The last call counts.
  void end() noexcept {
    ended_ns = now_ns();
    cpu_ns = thread_cpu_ns() - cpu_before_ns;
  }

  std::uint64_t cpu_before_ns = 0;
};

struct Measured {
  std::vector<RoleTimes> senders;
  std::vector<RoleTimes> receivers;
  Latency latency;  // None with oneway.

  // From the first message until the last receiver has verified its last one.
  double elapsed_ns() const {
    std::uint64_t started_ns = UINT64_MAX;
    std::uint64_t ended_ns = 0;
    for (const RoleTimes& times : senders) started_ns = std::min(started_ns, times.started_ns);
    for (const RoleTimes& times : receivers) ended_ns = std::max(ended_ns, times.ended_ns);
    return static_cast<double>(ended_ns - started_ns);
  }
};

struct RolePlacement {
  Placement senders;
  Placement receivers;
};

// Senders on the first CPUs, receivers on the rest; if there are too few, several share one.
inline RolePlacement place_on(const std::vector<int>& cpus, std::uint32_t senders,
                              std::uint32_t receivers) {
  if (cpus.size() < 2) return {{cpus}, {cpus}};
  // Senders get the CPUs that receivers do not need, but at least half; and no more than one each.
  const std::size_t left = cpus.size() - std::min<std::size_t>(receivers, cpus.size() - 1);
  const std::size_t split = std::min<std::size_t>(senders, std::max(left, cpus.size() / 2));
  const auto middle = cpus.begin() + static_cast<std::ptrdiff_t>(split);
  return {{{cpus.begin(), middle}}, {{middle, cpus.end()}}};
}

// May sort millions of samples, so it comes after the CPU time was read.
template <class SenderOrReceiver>
void keep_latency(SenderOrReceiver& role, Latency& latency) {
  if constexpr (requires { role.latency(); }) latency = role.latency();
}

// `run` runs the roles: as processes, or run_as_threads within one.
template <class MakeSender, class MakeReceiver, class Send, class Receive,
          class Run = decltype(&run_roles)>
Measured run_pattern(const Load& load, const RolePlacement& placement,
                     const MakeSender& make_sender, const MakeReceiver& make_receiver,
                     const Send& send, const Receive& receive, const Run& run = &run_roles) {
  struct Board {
    std::array<RoleTimes, kMaxRoles> senders, receivers;
    Latency latency;
  };
  if (load.senders > kMaxRoles || load.receivers > kMaxRoles) {
    throw Failure(kExitUsage, "at most " + std::to_string(kMaxRoles) + " of each");
  }
  const Shared<Board> board;
  const bool answers = load.pattern == Pattern::pingpong;

  std::vector<Role> roles;
  for (std::uint32_t i = 0; i < load.receivers; ++i) {
    roles.push_back(
        {answers ? "answerer" : "receiver", placement.receivers.cpu(i), [&, i](Barrier& barrier) {
           auto receiver = make_receiver(i);
           RoleTimes& times = board->receivers[i];
           barrier.meet();
           receiver.receive(load.warm_up * load.senders, times);
           barrier.meet();
           const Usage before = Usage::now();
           times.start();
           receive(receiver, times);
           times.process = Usage::now().since(before);
           keep_latency(receiver, board->latency);
           barrier.meet();
         }});
  }
  for (std::uint32_t i = 0; i < load.senders; ++i) {
    roles.push_back(
        {answers ? "caller" : "sender", placement.senders.cpu(i), [&, i](Barrier& barrier) {
           barrier.meet();  // All receivers are there: each sees the first message.
           auto sender = make_sender(i);
           RoleTimes& times = board->senders[i];
           sender.send(load.warm_up);
           barrier.meet();
           const Usage before = Usage::now();
           times.start();
           send(sender, times);
           times.process = Usage::now().since(before);
           keep_latency(sender, board->latency);
           barrier.meet();  // Nobody closes its end before all are done.
         }});
  }
  run(roles, load.time_limit);
  return {{board->senders.begin(), board->senders.begin() + load.senders},
          {board->receivers.begin(), board->receivers.begin() + load.receivers},
          board->latency};
}

}  // namespace leat::bench
