// What the harness measures, a channel, and what it asks of one, a load.
//
// A Channel connects two processes. It is made before they start, with all that both will inherit, and
// throws NotSupported if it cannot carry the load. Each process then makes its Side of it, the receiver
// first:
//
//     class Channel {
//      public:
//       explicit Channel(const Load& load);
//       class Side {
//        public:
//         Side(Channel& channel, End end);
//         // Sends a message of load.size bytes. With a batch, it may stay here until flush().
//         void send(std::span<const std::byte> message);
//         void flush();
//         // Waits for a message, then passes between 1 and at_most messages to visit(bytes), and
//         // returns how many. The bytes are valid during that call, which may send.
//         template <class Visit> std::size_t receive(std::size_t at_most, const Visit& visit);
//       };
//     };
//
// Each channel is a type rather than a virtual class: the fastest ones take 30 ns for a message.
#pragma once

#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "bench/pattern.hpp"
#include "payload.hpp"

namespace leat::bench {

enum class End { sender, receiver };  // The caller is the sender, the answerer the receiver.

// How round trips are timed.
enum class Passes {
  one,  // The clock is read after each.
  two,  // First all together, for the mean; then again as above, for the percentiles.
};

struct Load {
  std::size_t size = 100;
  std::uint64_t count = 1000;   // Messages of each sender; round trips of each pass.
  std::uint64_t warm_up = 101;  // The same, before the time starts.
  Verify verify = Verify::full;
  Pattern pattern = Pattern::pingpong;
  Variant variant = Variant::blocking;
  Passes passes = Passes::one;  // pingpong
  std::uint32_t senders = 1;    // oneway
  std::uint32_t receivers = 1;  // oneway
  std::uint32_t batch = 1;      // oneway: messages handed over at a time.
  std::uint64_t rate = 0;  // oneway, rate: messages per second and sender; 0: as fast as possible.
  std::chrono::seconds time_limit{120};  // For all of it.
};

// How many messages to send before the time starts, if nothing else says so.
inline std::uint64_t usual_warm_up(std::uint64_t count) { return count / 10 + 1; }

// The sequence numbers of several senders. Sender s numbers its messages s + 2^k, s + 2 * 2^k, …, where
// 2^k is not less than the number of senders: so each message tells who sent it, and none is number 0,
// which untouched memory holds.
class Numbering {
 public:
  explicit Numbering(std::uint32_t senders) noexcept
      : bits_{static_cast<unsigned>(std::bit_width(senders - 1))} {}

  std::uint64_t step() const noexcept { return std::uint64_t{1} << bits_; }
  std::uint64_t first(std::uint64_t sender) const noexcept { return sender + step(); }
  std::uint64_t sender_of(std::uint64_t sequence) const noexcept { return sequence & (step() - 1); }
  // 0 for the sender's first message.
  std::uint64_t index_of(std::uint64_t sequence) const noexcept { return (sequence >> bits_) - 1; }

 private:
  unsigned bits_;
};

}  // namespace leat::bench
