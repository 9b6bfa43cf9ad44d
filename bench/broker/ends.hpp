// What a producer and a consumer of a measurement hold, whatever their framing.
//
//     producer.send(message);                            // waits for room
//     producer.flush();
//     auto message = consumer.next(std::chrono::seconds{1});
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>

namespace leat::bench::broker {

class ProducerEnd {
 public:
  virtual ~ProducerEnd() = default;
  // It may stay here until flush().
  virtual void send(std::span<const std::byte> message) = 0;
  virtual void flush() {}
};

class ConsumerEnd {
 public:
  virtual ~ConsumerEnd() = default;
  // Valid until the next call. None: no message came within this time.
  virtual std::optional<std::span<const std::byte>> next(std::chrono::milliseconds time) = 0;
};

}  // namespace leat::bench::broker
