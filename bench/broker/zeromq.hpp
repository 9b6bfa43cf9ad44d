// A client of ZeroMQ, as users of LightQ write it: every setting is libzmq's default.
//
//     ZeromqSocket socket{ZMQ_PUSH};
//     socket.connect({.uri = "tcp://127.0.0.1:5501", .user = "user", .password = "secret"});
//     socket.send(message);
#pragma once

#include <zmq.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace leat::bench::broker {

struct Endpoint {
  std::string uri;
  std::string user = {};  // Empty: no login.
  std::string password = {};
};

// With a context of its own. Belongs to one thread.
class ZeromqSocket {
 public:
  explicit ZeromqSocket(int type);
  ~ZeromqSocket();
  ZeromqSocket(const ZeromqSocket&) = delete;
  ZeromqSocket& operator=(const ZeromqSocket&) = delete;

  void connect(const Endpoint& endpoint);
  // At any free port of 127.0.0.1; returns the URI.
  std::string bind();

  // Waits for room.
  void send(std::span<const std::byte> message);
  // Whether a message is there, or came within this time.
  bool wait(std::chrono::milliseconds time);
  // Waits for a message; passes it to look(bytes), then those that are there, up to `at_most`. Returns how many; 0 after
  // `time` without any.
  template <class Look>
  std::size_t receive(std::size_t at_most, std::chrono::milliseconds time, const Look& look) {
    std::size_t count = 0;
    if (!next(time)) return 0;
    do {
      look(std::span{static_cast<const std::byte*>(::zmq_msg_data(&message_)),
                     ::zmq_msg_size(&message_)});
    } while (++count < at_most && next(std::chrono::milliseconds{0}));
    return count;
  }

 private:
  // Receives into message_.
  bool next(std::chrono::milliseconds time);

  std::unique_ptr<void, int (*)(void*)> context_;
  std::unique_ptr<void, int (*)(void*)> socket_;  // Closed before it.
  zmq_msg_t message_;
};

}  // namespace leat::bench::broker
