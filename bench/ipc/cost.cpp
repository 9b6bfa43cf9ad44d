#include "cost.hpp"

#include <algorithm>

namespace leat::bench::ipc {

Cost cost_of(const Measured& measured, const Load& load) {
  const RoleTimes& sender = measured.senders.front();
  const RoleTimes& receiver = measured.receivers.front();
  const auto count = static_cast<double>(load.count);
  const double elapsed_ns = load.pattern == Pattern::pingpong
                                ? static_cast<double>(sender.ended_ns - sender.started_ns)
                                : measured.elapsed_ns();
  // At a rate the time runs from when the first message was due: n messages are n - 1 intervals. What
  // the sender does is mostly to wait for the next message to be due.
  const bool at_rate = load.pattern == Pattern::rate;
  const double timed = at_rate ? std::max(count - 1, 1.0) : count;
  const std::uint64_t switches =
      (at_rate ? 0 : sender.process.context_switches) + receiver.process.context_switches;
  return {.latency = measured.latency,
          .elapsed_ns = elapsed_ns,
          .messages_per_second = 1e9 * timed / std::max(elapsed_ns, 1.0),
          .sender_cpu_ns = static_cast<double>(sender.process.cpu_ns) / count,
          .receiver_cpu_ns = static_cast<double>(receiver.process.cpu_ns) / count,
          .context_switches = static_cast<double>(switches) / count};
}

}  // namespace leat::bench::ipc
