// The ways that messages of a measurement go from producers to consumers.
//
//     Direct direct;                                     // libzmq PUSH to PULL, with nobody between
//     StandIn stand_in;                                  // a process that copies from a PULL to a PUSH, as LightQ did
//     ServedTopic served{places, "queue"};               // a topic of leat-serve
//     route.open_consumer(socket, 0);                    // in the consumer's process, with a PULL socket,
//     route.open_producer(socket);                       // then in the producer's, with a PUSH socket
//
// A route is made before the processes that use it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "bench/harness/processes.hpp"
#include "zeromq.hpp"

namespace leat::bench::broker {

inline constexpr std::uint32_t kMaxClients = 64;  // Of each: producers, consumers.

class Route {
 public:
  virtual ~Route() = default;
  virtual void open_consumer(ZeromqSocket& pull, std::uint32_t index) = 0;
  virtual void open_producer(ZeromqSocket& push) = 0;
  // CPU time so far of the process in the middle, if there is one.
  virtual std::uint64_t cpu_ns() const { return 0; }
};

// Each producer is connected to each consumer, and sends to one after the other.
class Direct final : public Route {
 public:
  void open_consumer(ZeromqSocket& pull, std::uint32_t index) override;
  void open_producer(ZeromqSocket& push) override;

 private:
  struct Text {
    char uri[64];
  };
  Shared<std::array<Text, kMaxClients>> consumers_;
};

class StandIn final : public Route {
 public:
  StandIn();
  void open_consumer(ZeromqSocket& pull, std::uint32_t index) override;
  void open_producer(ZeromqSocket& push) override;
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

// Directories for a broker, which must be there and empty.
struct Places {
  std::string topics;
  std::string data;
  std::string state() const { return data + "/+broker"; }
  std::string log() const { return data + "/log"; }
};

// Starts the `leat-serve` beside this executable on a free port, and makes one topic of this type. Ends it again.
class ServedTopic final : public Route {
 public:
  //   NotSupported   there is no leat-serve
  ServedTopic(const Places& places, const std::string& type);
  void open_consumer(ZeromqSocket& pull, std::uint32_t index) override;
  void open_producer(ZeromqSocket& push) override;
  std::uint64_t cpu_ns() const override;

 private:
  std::unique_ptr<Child> child_;
  Endpoint producers_;
  Endpoint consumers_;
};

}  // namespace leat::bench::broker
