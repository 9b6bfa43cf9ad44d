// One message in shared memory, in one direction: | sequence number | payload |, on its own cache lines.
//
//     const Slot<SharedMemory> slot(100);          // before the processes start
//     slot.put(message, 1);                        // in one of them
//     slot.await(1, spin); use(slot.payload());    // in the other
//
// The floor of round trips, and the methods of `leat bench ipc` that have no queue.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "bench/harness/payload.hpp"
#include "bench/harness/processes.hpp"
#include "bench/harness/spin.hpp"

namespace leat::bench {

// Memory(size) has data() and prefault().
template <class Memory>
class Slot {
 public:
  explicit Slot(std::size_t size) : size_{size}, memory_{sizeof(std::uint64_t) + size} {
    memory_.prefault();
  }
  const Memory& memory() const noexcept { return memory_; }

  void put(std::span<const std::byte> message, std::uint64_t sequence) const noexcept {
    // The line that the other side polls is written last: each of its polls takes the line away.
    std::byte* const to = memory_.data() + sizeof sequence;
    const std::size_t head = std::min(size_, kCacheLine - sizeof sequence);
    const std::size_t rest = size_ - head;
    if (rest > kLarge) {
      std::memcpy(to + head, message.data() + head, rest);
    } else {
      copy_bytes(to + head, message.data() + head, rest);
    }
    copy_bytes(to, message.data(), head);
    // release; pairs with the acquire in await(), which then sees the payload.
    word().store(sequence, std::memory_order_release);
  }

  // The sequence number alone: an acknowledgement.
  void announce(std::uint64_t sequence) const noexcept {
    word().store(sequence, std::memory_order_release);
  }

  void await(std::uint64_t sequence, Spin& spin) const noexcept {
    while (word().load(std::memory_order_acquire) != sequence) spin.once();
  }

  std::span<const std::byte> payload() const noexcept {
    // Fetch all lines at once rather than one after the other; beyond some, it makes no difference.
    constexpr std::size_t kAhead = 4096;
    const std::size_t end = std::min(sizeof(std::uint64_t) + size_, kAhead);
    for (std::size_t line = kCacheLine; line < end; line += kCacheLine) {
      __builtin_prefetch(memory_.data() + line);
    }
    return {memory_.data() + sizeof(std::uint64_t), size_};
  }

 private:
  static constexpr std::size_t kLarge = 1024;  // Beyond this, libc copies faster.

  std::atomic_ref<std::uint64_t> word() const noexcept {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(memory_.data()));
  }

  std::size_t size_;
  Memory memory_;
};

}  // namespace leat::bench
