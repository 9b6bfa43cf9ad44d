// A client with raw framing (src/lightq/server/raw_frame.hpp), on a plain socket.
//
//     RawSocket producer{5504, R"({"type": "pub", "token": "…"})", 64 * 1024};
//     producer.send(message);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/failure.hpp"
#include "ends.hpp"
#include "leat/os/fd.hpp"

namespace leat::bench::broker {

// The broker's answer to a hello is not "ok".
class Refused : public Failure {
 public:
  using Failure::Failure;
};

inline constexpr std::size_t kUsualReadBytes = 256 * 1024;

// Belongs to one thread.
class RawSocket final : public ProducerEnd, public ConsumerEnd {
 public:
  // At 127.0.0.1. With a hello, waits for its answer. Messages are collected until there are `buffer_bytes`, and read in
  // pieces of `read_bytes`.
  RawSocket(std::uint16_t port, const std::string& hello, std::size_t buffer_bytes,
            std::size_t read_bytes = kUsualReadBytes);

  void send(std::span<const std::byte> message) override;
  void flush() override;
  std::optional<std::span<const std::byte>> next(std::chrono::milliseconds time) override;
  int fd() const noexcept { return socket_.get(); }

 private:
  // False if nothing came within this time.
  bool receive(std::chrono::milliseconds time);

  detail::Fd socket_;
  std::size_t buffer_bytes_;
  std::string outgoing_;
  std::vector<std::byte> received_;
  std::size_t begin_ = 0;  // of what was not taken, in received_
  std::size_t end_ = 0;
};

}  // namespace leat::bench::broker
