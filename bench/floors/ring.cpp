#include <algorithm>
#include <atomic>
#include <bit>

#include "bench/harness/one_way.hpp"
#include "floors.hpp"

namespace leat::bench {
namespace {

constexpr std::size_t kRingBytes = 8u << 20;
constexpr std::uint64_t kReportsPerLap = 8;

// What lies in shared memory:
//
//   0               kSlotsOffset
//   | read count    | index + 1 | payload, rounded up to 8 | index + 1 | payload … |
//
// A slot's first word is 0 until the slot is used, then 1 + the index of the record that it holds.
class Ring {
 public:
  explicit Ring(std::size_t payload_size)
      : payload_size_{payload_size},
        stride_{sizeof(std::uint64_t) + (payload_size + 7) / 8 * 8},
        slots_{std::bit_floor(kRingBytes / stride_)},
        memory_{kSlotsOffset + slots_ * stride_} {}

  std::size_t payload_size() const noexcept { return payload_size_; }
  std::uint64_t slots() const noexcept { return slots_; }
  void prefault() const { memory_.prefault(); }

  std::byte* slot(std::uint64_t index) const noexcept {
    return memory_.data() + kSlotsOffset + (index & (slots_ - 1)) * stride_;
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
  std::size_t payload_size_;
  std::size_t stride_;
  std::uint64_t slots_;  // A power of two.
  SharedMemory memory_;
};

class RingSender {
 public:
  explicit RingSender(const Ring& ring) : ring_{ring}, limit_{ring.slots()} { ring.prefault(); }

  // Writes the next record by write(payload, index).
  template <class Write>
  void put(const Write& write) {
    if (next_ == limit_) wait_for_room();
    std::byte* const slot = ring_.slot(next_);
    write(Ring::payload(slot), next_);
    // release; pairs with the acquire in RingReceiver::receive(), which then sees the payload.
    Ring::ready(slot).store(next_ + 1, std::memory_order_release);
    ++next_;
  }

  void send(std::span<const std::byte> message) {
    put([&](std::byte* payload, std::uint64_t) {
      copy_bytes(payload, message.data(), message.size());
    });
  }
  void flush() {}

 private:
  void wait_for_room() {
    Spin spin;
    const std::uint64_t full = limit_;
    // acquire; pairs with the release in RingReceiver::receive(): what was read may be overwritten.
    while ((limit_ = ring_.read_count().load(std::memory_order_acquire) + ring_.slots()) == full) {
      spin.once();
    }
  }

  const Ring& ring_;
  std::uint64_t next_ = 0;
  std::uint64_t limit_;  // Last seen read count + slots; read again only when reached.
};

// Makes each payload in its slot, instead of copying it there.
class InPlaceSender {
 public:
  InPlaceSender(const Load& load, const Ring& ring)
      : payload_{load.size, load.verify}, ring_{ring} {}

  void send(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      ring_.put([&](std::byte* payload, std::uint64_t index) {
        payload_.write(payload, index + Numbering(1).first(0));
      });
    }
  }

 private:
  Payload payload_;
  RingSender ring_;
};

class RingReceiver {
 public:
  RingReceiver(const Ring& ring, std::uint32_t pauses_when_empty)
      : ring_{ring},
        pauses_when_empty_{pauses_when_empty},
        next_report_{ring.slots() / kReportsPerLap} {
    ring.prefault();
  }

  template <class Visit>
  std::size_t receive(std::size_t at_most, const Visit& visit) {
    std::uint64_t next = next_;  // A copy, which the compiler keeps in a register.
    for (const std::uint64_t end = next + at_most; next != end;) {
      std::byte* const slot = ring_.slot(next);
      // acquire; pairs with the release in RingSender::put().
      while (Ring::ready(slot).load(std::memory_order_acquire) != next + 1) pause();
      visit(std::span<const std::byte>(Ring::payload(slot), ring_.payload_size()));
      if (++next == next_report_) {
        ring_.read_count().store(next, std::memory_order_release);
        next_report_ += ring_.slots() / kReportsPerLap;
      }
    }
    next_ = next;
    return at_most;
  }

 private:
  void pause() {
    for (std::uint32_t i = 0; i < pauses_when_empty_; ++i) spin_.once();
  }

  const Ring& ring_;
  std::uint32_t pauses_when_empty_;
  std::uint64_t next_ = 0;
  std::uint64_t next_report_;
  Spin spin_;
};

}  // namespace

double ring_ns_per_record(const RingOptions& options, const Placement& placement) {
  const Ring ring(options.size);
  if (ring.slots() < kReportsPerLap) {
    throw Failure(kExitUsage, "the ring takes records of up to 1000000 bytes");
  }
  ring.prefault();
  const Load load{.size = options.size,
                  .count = options.records,
                  .warm_up = ring.slots() * 2,
                  .verify = options.verify,
                  .pattern = Pattern::oneway,
                  .variant = Variant::spinning};
  const auto ns_per_record = [&](const auto& make_sender) {
    const auto make_receiver = [&](std::uint32_t) {
      return InOrder<RingReceiver>(load, ring, options.pauses_when_empty);
    };
    return cost_per_message(
               measure_one_way(load, place_on(placement.cpus, 1, 1), make_sender, make_receiver),
               load)
        .ns;
  };
  if (options.source == PayloadSource::in_place) {
    return ns_per_record([&](std::uint32_t) { return InPlaceSender(load, ring); });
  }
  return ns_per_record([&](std::uint32_t i) { return Sending<RingSender>(load, i, ring); });
}

}  // namespace leat::bench
