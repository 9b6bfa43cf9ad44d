// A `leat-serve` for a measurement, on directories of its own, and its administration.
//
//     const ServedBroker broker{places};
//     Administration administration{broker};
//     administration.create_topic("news", "queue");
//     auto puller = connected_socket(ZMQ_PULL, administration.join("news", "pull", false));
//     auto producer = raw_client(administration.join("news", "pub", true), 64 * 1024);
//
// Start other processes while there is no Administration: libzmq has threads for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/harness/processes.hpp"
#include "raw_socket.hpp"
#include "zeromq.hpp"

namespace leat::bench::broker {

// Directories for a broker, which must be there and empty.
struct Places {
  std::string topics;
  std::string data;
  std::string state() const { return data + "/+broker"; }
  std::string log() const { return data + "/log"; }
};

// Starts the `leat-serve` beside this executable on a free port. Ends it again.
class ServedBroker {
 public:
  struct Memory {
    std::uint64_t own_bytes = 0;     // RssAnon and RssFile.
    std::uint64_t topics_bytes = 0;  // RssShmem: what it has mapped of topics.
  };

  //   NotSupported   there is no leat-serve
  explicit ServedBroker(const Places& places);

  const Child& process() const noexcept { return *child_; }
  Memory memory() const;

 private:
  friend class Administration;

  std::uint16_t port_;
  std::string admin_password_;
  std::unique_ptr<Child> child_;
};

// One connection to a broker's administration. Throws Failure if the broker refuses something.
class Administration {
 public:
  explicit Administration(const ServedBroker& broker);

  // Whether it is there.
  bool answers_soon();
  // Without `slow_subscribers`, the broker's default.
  void create_topic(const std::string& topic, const std::string& type,
                    const std::string& slow_subscribers = {});
  // Where to connect as "pub", "pull" or "sub". With raw framing, its password is the hello.
  Endpoint join(const std::string& topic, const char* role, bool is_raw);
  // Whether the topic's user has this password.
  bool lets_in(const std::string& topic, const std::string& password);

 private:
  nlohmann::json ask(const nlohmann::json& request);
  void send(const std::string& text);
  std::string receive(std::chrono::milliseconds time);

  const ServedBroker& broker_;
  ZeromqSocket socket_{ZMQ_REQ};
  bool has_asked_ = false;
};

// A client at a place that join() gave for raw framing.
std::unique_ptr<RawSocket> raw_client(const Endpoint& endpoint, std::size_t buffer_bytes,
                                      std::size_t read_bytes = kUsualReadBytes);

}  // namespace leat::bench::broker
