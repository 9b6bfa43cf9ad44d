// The ways that messages of a measurement go from producers to consumers.
//
//     Direct direct;                              // libzmq's PUSH to its PULL, with nobody between
//     StandIn stand_in;                           // a process that copies from a PULL to a PUSH, as LightQ did
//     Relay relay;                                // a process that copies bytes from one socket to another
//     ServedTopic served{places, {}};             // a topic of leat-serve
//     auto consumer = route.consumer(0);          // in the consumer's process,
//     auto producer = route.producer();           // then in the producer's
//
// A route is made before the processes that use it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "bench/harness/processes.hpp"
#include "served_broker.hpp"

namespace leat::bench::broker {

inline constexpr std::uint32_t kMaxClients = 64;  // Of each: producers, consumers.

class Route {
 public:
  virtual ~Route() = default;
  virtual std::unique_ptr<ConsumerEnd> consumer(std::uint32_t index) = 0;
  virtual std::unique_ptr<ProducerEnd> producer() = 0;
  // CPU time so far of the process in the middle, if there is one.
  virtual std::uint64_t cpu_ns() const { return 0; }
};

// Each producer is connected to each consumer, and sends to one after the other.
class Direct final : public Route {
 public:
  std::unique_ptr<ConsumerEnd> consumer(std::uint32_t index) override;
  std::unique_ptr<ProducerEnd> producer() override;

 private:
  struct Text {
    char uri[64];
  };
  Shared<std::array<Text, kMaxClients>> consumers_;
};

class StandIn final : public Route {
 public:
  StandIn();
  std::unique_ptr<ConsumerEnd> consumer(std::uint32_t index) override;
  std::unique_ptr<ProducerEnd> producer() override;
  std::uint64_t cpu_ns() const override;

 private:
  struct Board {
    char producers[64];
    char consumers[64];
    std::atomic<bool> is_ready;
  };
  Shared<Board> board_;
  std::unique_ptr<Child> child_;
};

// For one producer and one consumer, with raw framing and no hello. `at_once`: the producer sends each message by itself.
class Relay final : public Route {
 public:
  explicit Relay(bool at_once);
  std::unique_ptr<ConsumerEnd> consumer(std::uint32_t index) override;
  std::unique_ptr<ProducerEnd> producer() override;
  std::uint64_t cpu_ns() const override;

 private:
  bool at_once_;
  std::uint16_t producers_ = 0;  // Ports.
  std::uint16_t consumers_ = 0;
  std::unique_ptr<Child> child_;
};

struct Framing {
  bool is_raw_in = false;
  bool is_raw_out = false;
};

// A broker with one topic of this type.
class ServedTopic final : public Route {
 public:
  //   NotSupported   there is no leat-serve
  ServedTopic(const Places& places, const std::string& type, const Framing& framing, bool at_once);
  std::unique_ptr<ConsumerEnd> consumer(std::uint32_t index) override;
  std::unique_ptr<ProducerEnd> producer() override;
  std::uint64_t cpu_ns() const override;

 private:
  Framing framing_;
  bool at_once_;
  ServedBroker broker_;
  Endpoint producers_;
  Endpoint consumers_;
};

// What a client with raw framing collects before it sends.
inline std::size_t raw_buffer_bytes(bool at_once) { return at_once ? 1 : 64 * 1024; }

std::uint64_t cpu_ns_of(const Child& child);

}  // namespace leat::bench::broker
