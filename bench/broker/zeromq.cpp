#include "zeromq.hpp"

#include <fmt/format.h>

#include <cerrno>

#include "bench/failure.hpp"

namespace leat::bench::broker {
namespace {

Failure zeromq_failure(const char* what) {
  return Failure(fmt::format("ZeroMQ cannot {}: {}", what, ::zmq_strerror(::zmq_errno())));
}

}  // namespace

ZeromqSocket::ZeromqSocket(int type)
    : context_{::zmq_ctx_new(), &::zmq_ctx_term},
      socket_{::zmq_socket(context_.get(), type), &::zmq_close} {
  if (!socket_) throw zeromq_failure("make a socket");
  // Nothing is under way at the end; after a failure, closing must not wait.
  const int linger_ms = 0;
  ::zmq_setsockopt(socket_.get(), ZMQ_LINGER, &linger_ms, sizeof linger_ms);
  ::zmq_msg_init(&message_);
}

ZeromqSocket::~ZeromqSocket() { ::zmq_msg_close(&message_); }

void ZeromqSocket::connect(const Endpoint& endpoint) {
  const auto set = [&](int option, const std::string& text) {
    if (::zmq_setsockopt(socket_.get(), option, text.data(), text.size()) != 0)
      throw zeromq_failure("set a user or a password");
  };
  if (!endpoint.user.empty()) {
    set(ZMQ_PLAIN_USERNAME, endpoint.user);
    set(ZMQ_PLAIN_PASSWORD, endpoint.password);
  }
  if (::zmq_connect(socket_.get(), endpoint.uri.c_str()) != 0) throw zeromq_failure("connect");
}

void ZeromqSocket::subscribe(const std::string& prefix) {
  if (::zmq_setsockopt(socket_.get(), ZMQ_SUBSCRIBE, prefix.data(), prefix.size()) != 0)
    throw zeromq_failure("subscribe");
}

std::string ZeromqSocket::bind() {
  if (::zmq_bind(socket_.get(), "tcp://127.0.0.1:*") != 0) throw zeromq_failure("bind");
  char uri[256];
  std::size_t size = sizeof uri;
  if (::zmq_getsockopt(socket_.get(), ZMQ_LAST_ENDPOINT, uri, &size) != 0)
    throw zeromq_failure("tell its address");
  return uri;
}

void ZeromqSocket::send(std::span<const std::byte> message) {
  while (::zmq_send(socket_.get(), message.data(), message.size(), 0) < 0) {
    if (::zmq_errno() != EINTR) throw zeromq_failure("send");
  }
}

std::optional<std::span<const std::byte>> ZeromqSocket::next(std::chrono::milliseconds time) {
  for (;;) {
    if (::zmq_msg_recv(&message_, socket_.get(), ZMQ_DONTWAIT) >= 0) {
      if (::zmq_msg_more(&message_) == 0) break;
      continue;
    }
    if (::zmq_errno() == EINTR) continue;
    if (::zmq_errno() != EAGAIN) throw zeromq_failure("receive");
    zmq_pollitem_t item{.socket = socket_.get(), .fd = 0, .events = ZMQ_POLLIN, .revents = 0};
    if (time.count() == 0 || ::zmq_poll(&item, 1, time.count()) == 0) return std::nullopt;
  }
  return std::span{static_cast<const std::byte*>(::zmq_msg_data(&message_)),
                   ::zmq_msg_size(&message_)};
}

std::unique_ptr<ZeromqSocket> connected_socket(int type, const Endpoint& endpoint) {
  auto socket = std::make_unique<ZeromqSocket>(type);
  socket->connect(endpoint);
  return socket;
}

}  // namespace leat::bench::broker
