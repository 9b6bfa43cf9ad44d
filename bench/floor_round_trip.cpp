#include <algorithm>
#include <vector>

#include "floor.hpp"

namespace leat::bench {
namespace {

constexpr std::chrono::seconds kTimeLimit{120};

// One direction of the exchange, on cache lines of its own: | sequence | payload |.
class Slot {
 public:
  explicit Slot(std::size_t payload_size)
      : size_{payload_size}, memory_{sizeof(std::uint64_t) + payload_size} {}

  // Gets the pages of one side; the receiver's may be read-only from then on.
  void prefault(SlotMapping mapping) const {
    memory_.prefault();
    if (mapping == SlotMapping::read_only) memory_.make_read_only();
  }

  void send(const std::byte* payload, std::uint64_t sequence) const noexcept {
    // The line that the peer watches comes last: each of its looks takes the line away.
    std::byte* const to = memory_.data() + sizeof sequence;
    const std::size_t head = std::min(size_, kCacheLine - sizeof sequence);
    if (size_ > head) copy_bytes(to + head, payload + head, size_ - head);
    copy_bytes(to, payload, head);
    // release; pairs with the acquire in receive(), which then sees the payload.
    word().store(sequence, std::memory_order_release);
  }

  void receive(std::byte* payload, std::uint64_t sequence, Spin& spin) const noexcept {
    while (word().load(std::memory_order_acquire) != sequence) spin.once();
    // All lines at once rather than one after the other.
    for (std::size_t line = kCacheLine; line < sizeof sequence + size_; line += kCacheLine) {
      __builtin_prefetch(memory_.data() + line);
    }
    copy_bytes(payload, memory_.data() + sizeof sequence, size_);
  }

 private:
  std::atomic_ref<std::uint64_t> word() const noexcept {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(memory_.data()));
  }

  std::size_t size_;
  SharedMemory memory_;
};

class Caller {
 public:
  Caller(const Slot& there, const Slot& back, const Payload& payload)
      : there_{there}, back_{back}, payload_{payload}, answer_(payload.size()) {
    for (auto& question : questions_) question.resize(payload.size());
    payload_.write(questions_[1].data(), 1);
  }

  // One question and its answer.
  void call() {
    const std::uint64_t sequence = next_++;
    there_.send(questions_[sequence % 2].data(), sequence);
    payload_.write(questions_[next_ % 2].data(), next_);  // While the answer is on its way.
    back_.receive(answer_.data(), sequence, spin_);
    if (!payload_.check(answer_.data(), sequence)) throw Failure("an answer has the wrong content");
  }

 private:
  const Slot& there_;
  const Slot& back_;
  const Payload& payload_;
  std::vector<std::byte> questions_[2];  // The one to send, and the one after it.
  std::vector<std::byte> answer_;
  std::uint64_t next_ = 1;
  Spin spin_;
};

// Sends back what it gets.
void answer_all(const Slot& there, const Slot& back, std::size_t size, std::uint64_t count) {
  std::vector<std::byte> payload(size);
  Spin spin;
  for (std::uint64_t sequence = 1; sequence <= count; ++sequence) {
    there.receive(payload.data(), sequence, spin);
    back.send(payload.data(), sequence);
  }
}

}  // namespace

double cache_line_round_trip_ns(std::uint64_t count, const Placement& placement) {
  struct alignas(kCacheLine) Line {
    std::atomic<std::uint64_t> word{0};
  };
  const Shared<Line> line;
  const Shared<double> result(0.0);
  const std::uint64_t warm_up = warm_up_calls(count);
  // The caller makes the word odd, the answerer even. relaxed, pairs with nothing: no data but the
  // word itself.
  const auto bounce = [&](std::uint64_t awaited, std::uint64_t times) {
    Spin spin;
    for (std::uint64_t i = 0; i < times; ++i, awaited += 2) {
      while (line->word.load(std::memory_order_relaxed) != awaited) spin.once();
      line->word.store(awaited + 1, std::memory_order_relaxed);
    }
  };
  run_roles({{"caller of the cache line", placement.cpu(0),
              [&](Barrier& barrier) {
                barrier.meet();
                bounce(0, warm_up);
                const std::uint64_t started_ns = now_ns();
                bounce(2 * warm_up, count);
                *result = static_cast<double>(now_ns() - started_ns) / static_cast<double>(count);
              }},
             {"answerer of the cache line", placement.cpu(1),
              [&](Barrier& barrier) {
                barrier.meet();
                bounce(1, warm_up + count);
              }}},
            kTimeLimit);
  return *result;
}

RoundTrip slot_round_trip(const RoundTripOptions& options, const Placement& placement,
                          SlotMapping mapping) {
  const Slot there(options.size);
  const Slot back(options.size);
  there.prefault(SlotMapping::writable);
  back.prefault(SlotMapping::writable);
  const Shared<RoundTrip> result;

  run_roles({{"caller", placement.cpu(0),
              [&](Barrier& barrier) {
                const Payload payload(options.size, options.verify);
                Caller caller(there, back, payload);
                auto samples_ns = empty_samples(options.count);
                there.prefault(SlotMapping::writable);
                back.prefault(mapping);
                barrier.meet();
                *result = time_calls(samples_ns, [&] { caller.call(); });
              }},
             {"answerer", placement.cpu(1),
              [&](Barrier& barrier) {
                there.prefault(mapping);
                back.prefault(SlotMapping::writable);
                barrier.meet();
                answer_all(there, back, options.size, all_calls(options.count));
              }}},
            kTimeLimit);
  return *result;
}

}  // namespace leat::bench
