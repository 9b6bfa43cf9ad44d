#include <bit>

#include "floor.hpp"

namespace leat::bench {
namespace {

constexpr std::size_t kRingBytes = 8u << 20;
constexpr std::uint64_t kReportsPerLap = 8;
constexpr std::chrono::seconds kTimeLimit{120};

// What lies in shared memory:
//
//   0               kSlotsOffset
//   | read count    | sequence + 1 | payload, rounded to 8 | sequence + 1 | payload … |
//
// A slot's first word is 0 until it is used, then 1 + the sequence of the record that it holds.
class Ring {
 public:
  explicit Ring(std::size_t payload_size)
      : stride_{sizeof(std::uint64_t) + (payload_size + 7) / 8 * 8},
        slots_{std::bit_floor(kRingBytes / stride_)},
        memory_{kSlotsOffset + slots_ * stride_} {}

  std::uint64_t slots() const noexcept { return slots_; }
  void prefault() const { memory_.prefault(); }

  std::byte* slot(std::uint64_t sequence) const noexcept {
    return memory_.data() + kSlotsOffset + (sequence & (slots_ - 1)) * stride_;
  }
  static std::byte* payload(std::byte* slot) noexcept { return slot + sizeof(std::uint64_t); }
  static std::atomic_ref<std::uint64_t> ready(std::byte* slot) noexcept {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(slot));
  }
  std::atomic_ref<std::uint64_t> read_count() const noexcept {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(memory_.data()));
  }

 private:
  static constexpr std::size_t kSlotsOffset = 4096;  // Keeps the read count away from the slots.
  std::size_t stride_;
  std::uint64_t slots_;  // A power of two.
  SharedMemory memory_;
};

class Writer {
 public:
  Writer(const Ring& ring, const Payload& payload)
      : ring_{ring}, payload_{payload}, outgoing_{payload}, limit_{ring.slots()} {}

  template <PayloadSource source>
  void write(std::uint64_t count) {
    for (const std::uint64_t end = next_ + count; next_ < end; ++next_) {
      if (next_ == limit_) wait_for_room();
      std::byte* slot = ring_.slot(next_);
      if constexpr (source == PayloadSource::in_place) {
        payload_.write(Ring::payload(slot), next_);
      } else {
        copy_bytes(Ring::payload(slot), outgoing_.next().data(), payload_.size());
      }
      // release; pairs with the acquire in Reader::read(), which then sees the payload.
      Ring::ready(slot).store(next_ + 1, std::memory_order_release);
    }
  }

 private:
  void wait_for_room() {
    Spin spin;
    // acquire; pairs with the release in Reader::read(): what it has read may be overwritten.
    while (limit_ == next_) {
      limit_ = ring_.read_count().load(std::memory_order_acquire) + ring_.slots();
      if (limit_ == next_) spin.once();
    }
  }

  const Ring& ring_;
  const Payload& payload_;
  OutgoingPayloads outgoing_;
  std::uint64_t next_ = 0;
  std::uint64_t limit_;  // Last seen read count + slots; looked at again only once reached.
};

class Reader {
 public:
  Reader(const Ring& ring, const Payload& payload, std::uint32_t pauses_when_empty)
      : ring_{ring},
        payload_{payload},
        pauses_when_empty_{pauses_when_empty},
        next_report_{ring.slots() / kReportsPerLap} {}

  void read(std::uint64_t count) {
    for (const std::uint64_t end = next_ + count; next_ < end;) {
      std::byte* slot = ring_.slot(next_);
      // acquire; pairs with the release in Writer::write().
      while (Ring::ready(slot).load(std::memory_order_acquire) != next_ + 1) pause();
      if (!payload_.check(Ring::payload(slot), next_)) {
        throw Failure("record " + std::to_string(next_) + " of the ring has the wrong content");
      }
      if (++next_ == next_report_) {
        ring_.read_count().store(next_, std::memory_order_release);
        next_report_ += ring_.slots() / kReportsPerLap;
      }
    }
  }

 private:
  void pause() {
    for (std::uint32_t i = 0; i < pauses_when_empty_; ++i) spin_.once();
  }

  const Ring& ring_;
  const Payload& payload_;
  std::uint32_t pauses_when_empty_;
  std::uint64_t next_ = 0;
  std::uint64_t next_report_;
  Spin spin_;
};

template <PayloadSource source>
double measure_ring(const RingOptions& options, const Placement& placement) {
  const Ring ring(options.size);
  if (ring.slots() < kReportsPerLap) {
    throw Failure(kExitUsage, "the ring takes records of up to 1000000 bytes");
  }
  ring.prefault();
  const std::uint64_t warm_up = ring.slots() * 2;
  const Shared<std::uint64_t> started_ns(0u);
  const Shared<std::uint64_t> ended_ns(0u);

  run_roles({{"writer of the ring", placement.cpu(0),
              [&](Barrier& barrier) {
                ring.prefault();
                const Payload payload(options.size, options.verify);
                Writer writer(ring, payload);
                writer.write<source>(warm_up);
                barrier.meet();
                *started_ns = now_ns();
                writer.write<source>(options.records);
              }},
             {"reader of the ring", placement.cpu(1),
              [&](Barrier& barrier) {
                ring.prefault();
                const Payload payload(options.size, options.verify);
                Reader reader(ring, payload, options.pauses_when_empty);
                reader.read(warm_up);
                barrier.meet();
                reader.read(options.records);
                *ended_ns = now_ns();
              }}},
            kTimeLimit);
  return static_cast<double>(*ended_ns - *started_ns) / static_cast<double>(options.records);
}

}  // namespace

double ring_ns_per_record(const RingOptions& options, const Placement& placement) {
  return options.source == PayloadSource::in_place
             ? measure_ring<PayloadSource::in_place>(options, placement)
             : measure_ring<PayloadSource::copied>(options, placement);
}

}  // namespace leat::bench
