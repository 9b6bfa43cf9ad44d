// One measurement of one channel: two pinned processes, the whole payload, every byte verified.
//
// A Channel is made before the processes start, with what both will inherit; it throws NotSupported
// if it can't do the load. Each process then makes its Side of it, the receiver first:
//
//     class Channel {
//      public:
//       explicit Channel(const Load& load);
//       class Side {
//        public:
//         Side(Channel& channel, End end);
//         // Sends a message of load.size bytes; with a batch, flush() may be what really sends.
//         void send(std::span<const std::byte> message);
//         void flush();
//         // Waits for a message, then hands over 1 to at_most of those that are there. Returns how
//         // many; look(bytes) may read them during the call only, and may send.
//         template <class Look> std::size_t receive(std::size_t at_most, const Look& look);
//       };
//     };
//
// Each channel is a type rather than a virtual class: the fastest ones take 30 ns a message.
#pragma once

#include <fmt/format.h>
#include <sys/resource.h>

#include <atomic>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "bench/payload.hpp"
#include "bench/round_trip.hpp"
#include "load.hpp"

namespace leat::bench::ipc {

enum class End { sender, receiver };

// Throws what errno says if a call of the system failed.
inline void check(long result, const char* what) {
  if (result < 0) throw system_failure(what);
}

// What a process has used so far, all its threads together.
struct Usage {
  std::uint64_t cpu_ns = 0;
  std::uint64_t switches = 0;

  static Usage now() noexcept {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return {process_cpu_ns(), static_cast<std::uint64_t>(used.ru_nvcsw + used.ru_nivcsw)};
  }
  Usage since(const Usage& before) const noexcept {
    return {cpu_ns - before.cpu_ns, switches - before.switches};
  }
};

// What the processes leave behind.
struct Board {
  std::uint64_t started_ns = 0;
  std::uint64_t ended_ns = 0;
  Usage sender;
  Usage receiver;
  Latency latency;
  std::atomic<std::uint64_t> due_ns{0};  // rate: when the first message is to be sent.
  char not_supported[256] = {};
};

template <class Side>
class Sender {
 public:
  Sender(Side& side, const Load& load)
      : side_{side}, load_{load}, payload_{load.size, Verify::full}, outgoing_{payload_, 1} {
    if (load.pattern == Pattern::pingpong) question_ = outgoing_.next();
  }

  // A message, and its answer.
  void call() {
    side_.send(question_);
    question_ = outgoing_.next();  // While the answer is on its way.
    const std::uint64_t sequence = sent_++;
    side_.receive(1, [&](std::span<const std::byte> answer) {
      if (answer.size() != load_.size || !payload_.check(answer.data(), sequence)) {
        throw Failure(fmt::format("answer {} has the wrong content", sequence));
      }
    });
  }

  void send(std::uint64_t count) {
    for (std::uint64_t left = count; left != 0;) {
      const std::uint64_t now = std::min<std::uint64_t>(left, load_.batch);
      for (std::uint64_t i = 0; i < now; ++i) side_.send(outgoing_.next());
      if (load_.batch > 1) side_.flush();
      left -= now;
    }
  }

  // Each when it is due, or at once if that has passed: what waits for a slow one counts as late.
  void send_at_rate(std::uint64_t count, std::uint64_t first_due_ns) {
    const double interval_ns = 1e9 / static_cast<double>(load_.rate);
    Spin spin;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto due_ns =
          first_due_ns + static_cast<std::uint64_t>(static_cast<double>(i) * interval_ns);
      while (now_ns() < due_ns) spin.once();
      side_.send(outgoing_.next());
    }
  }

 private:
  Side& side_;
  const Load& load_;
  Payload payload_;
  OutgoingPayloads outgoing_;
  std::span<const std::byte> question_;
  std::uint64_t sent_ = 1;  // The sequence of that question.
};

template <class Side>
class Receiver {
 public:
  Receiver(Side& side, const Load& load)
      : side_{side}, load_{load}, payload_{load.size, Verify::full} {}

  // Sends back what it gets; the sender checks it.
  void answer(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      side_.receive(1, [&](std::span<const std::byte> message) { side_.send(message); });
    }
  }

  // `on_message(i)` after each of them was verified.
  template <class OnMessage>
  void receive(std::uint64_t count, const OnMessage& on_message) {
    std::uint64_t i = 0;
    const auto take = [&](std::span<const std::byte> message) {
      if (message.size() != load_.size || !payload_.check(message.data(), next_)) {
        throw Failure(fmt::format("message {} has the wrong content", next_));
      }
      ++next_;
      on_message(i++);
    };
    while (i != count) side_.receive(static_cast<std::size_t>(count - i), take);
  }
  void receive(std::uint64_t count) {
    receive(count, [](std::uint64_t) {});
  }

 private:
  Side& side_;
  const Load& load_;
  Payload payload_;
  std::uint64_t next_ = 1;
};

// Durations to be filled in; not 0, so that every page is touched before the time starts.
inline std::vector<std::uint64_t> samples_for(const Load& load, End end) {
  const Pattern with_samples = end == End::sender ? Pattern::pingpong : Pattern::rate;
  return std::vector<std::uint64_t>(load.pattern == with_samples ? load.count : 0, 1);
}

template <class Channel>
void run_sender(Channel& channel, const Load& load, Board& board, Barrier& barrier) {
  barrier.meet();  // The receiver's side is there.
  typename Channel::Side side(channel, End::sender);
  Sender sender(side, load);
  auto samples_ns = samples_for(load, End::sender);
  if (load.pattern == Pattern::pingpong) {
    for (std::uint64_t i = 0; i < load.warm_up; ++i) sender.call();
  } else {
    sender.send(load.warm_up);
  }
  barrier.meet();
  constexpr std::uint64_t kLeadNs = 1'000'000;
  if (load.pattern == Pattern::rate) {
    // release; pairs with the acquire in run_receiver.
    board.due_ns.store(now_ns() + kLeadNs, std::memory_order_release);
  }
  const Usage before = Usage::now();
  board.started_ns = load.pattern == Pattern::rate ? board.due_ns.load() : now_ns();
  switch (load.pattern) {
    case Pattern::pingpong: {
      std::uint64_t before_ns = board.started_ns;
      for (std::uint64_t& sample_ns : samples_ns) {
        sender.call();
        const std::uint64_t after_ns = now_ns();
        sample_ns = after_ns - before_ns;
        before_ns = after_ns;
      }
      board.ended_ns = before_ns;
      break;
    }
    case Pattern::oneway: sender.send(load.count); break;
    case Pattern::rate: sender.send_at_rate(load.count, board.due_ns); break;
  }
  board.sender = Usage::now().since(before);
  if (load.pattern == Pattern::pingpong) board.latency = latency_of(samples_ns);
  barrier.meet();  // Nobody closes its side before the other one has all.
}

template <class Channel>
void run_receiver(Channel& channel, const Load& load, Board& board, Barrier& barrier) {
  typename Channel::Side side(channel, End::receiver);
  Receiver receiver(side, load);
  auto samples_ns = samples_for(load, End::receiver);
  barrier.meet();
  if (load.pattern == Pattern::pingpong) {
    receiver.answer(load.warm_up);
  } else {
    receiver.receive(load.warm_up);
  }
  barrier.meet();
  const Usage before = Usage::now();
  switch (load.pattern) {
    case Pattern::pingpong: receiver.answer(load.count); break;
    case Pattern::oneway:
      receiver.receive(load.count);
      board.ended_ns = now_ns();
      break;
    case Pattern::rate: {
      const double interval_ns = 1e9 / static_cast<double>(load.rate);
      receiver.receive(load.count, [&](std::uint64_t i) {
        const std::uint64_t at_ns = now_ns();
        const auto due_ns = board.due_ns.load(std::memory_order_acquire) +
                            static_cast<std::uint64_t>(static_cast<double>(i) * interval_ns);
        samples_ns[i] = at_ns > due_ns ? at_ns - due_ns : 0;
      });
      board.ended_ns = now_ns();
      break;
    }
  }
  board.receiver = Usage::now().since(before);
  if (load.pattern == Pattern::rate) board.latency = latency_of(samples_ns);
  barrier.meet();
}

// What a process finds out to be impossible is known to the one that started it.
template <class Run>
void note_not_supported(Board& board, const Run& run) {
  try {
    run();
  } catch (const NotSupported& reason) {
    std::strncpy(board.not_supported, reason.what(), sizeof board.not_supported - 1);
    throw;
  }
}

template <class Channel>
Cost measure_channel(const Load& load, const Placement& placement) {
  Channel channel(load);
  const Shared<Board> board;
  try {
    run_roles({{"receiver", placement.cpu(1),
                [&](Barrier& barrier) {
                  note_not_supported(*board, [&] { run_receiver(channel, load, *board, barrier); });
                }},
               {"sender", placement.cpu(0),
                [&](Barrier& barrier) {
                  note_not_supported(*board, [&] { run_sender(channel, load, *board, barrier); });
                }}},
              load.time_limit);
  } catch (const Failure&) {
    if (board->not_supported[0] != 0) throw NotSupported(board->not_supported);
    throw;
  }
  const auto count = static_cast<double>(load.count);
  const auto elapsed_ns = static_cast<double>(board->ended_ns - board->started_ns);
  // At a rate the time runs from when the first was due (n messages are n - 1 intervals), and the
  // sender keeps it, which is not what sending costs.
  const bool at_rate = load.pattern == Pattern::rate;
  const double timed = at_rate ? std::max(count - 1, 1.0) : count;
  const std::uint64_t switches = (at_rate ? 0 : board->sender.switches) + board->receiver.switches;
  return {.latency = board->latency,
          .elapsed_ns = elapsed_ns,
          .messages_per_second = 1e9 * timed / std::max(elapsed_ns, 1.0),
          .sender_cpu_ns = static_cast<double>(board->sender.cpu_ns) / count,
          .receiver_cpu_ns = static_cast<double>(board->receiver.cpu_ns) / count,
          .context_switches = static_cast<double>(switches) / count};
}

}  // namespace leat::bench::ipc
