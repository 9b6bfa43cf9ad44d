// A client of ZeroMQ, as users of LightQ write it: every setting is libzmq's default.
//
//     ZeromqSocket socket{ZMQ_PUSH};
//     socket.connect({.uri = "tcp://127.0.0.1:5501", .user = "user", .password = "secret"});
//     socket.send(message);
#pragma once

#include <zmq.h>

#include <memory>
#include <string>

#include "ends.hpp"

namespace leat::bench::broker {

struct Endpoint {
  std::string uri;
  std::string user = {};  // Empty: no login.
  std::string password = {};
};

// With a context of its own. Belongs to one thread.
class ZeromqSocket final : public ProducerEnd, public ConsumerEnd {
 public:
  explicit ZeromqSocket(int type);
  ~ZeromqSocket() override;
  ZeromqSocket(const ZeromqSocket&) = delete;
  ZeromqSocket& operator=(const ZeromqSocket&) = delete;

  void connect(const Endpoint& endpoint);
  // Of a ZMQ_SUB: to all messages whose first part begins with this.
  void subscribe(const std::string& prefix);
  // At any free port of 127.0.0.1; returns the URI.
  std::string bind();

  void send(std::span<const std::byte> message) override;
  // Of a message in several parts, the last one: those before it name the topic.
  std::optional<std::span<const std::byte>> next(std::chrono::milliseconds time) override;

 private:
  std::unique_ptr<void, int (*)(void*)> context_;
  std::unique_ptr<void, int (*)(void*)> socket_;  // Closed before it.
  zmq_msg_t message_;
};

std::unique_ptr<ZeromqSocket> connected_socket(int type, const Endpoint& endpoint);

}  // namespace leat::bench::broker
