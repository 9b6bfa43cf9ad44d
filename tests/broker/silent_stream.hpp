// For tests of what the broker sends: a connection that drops what it receives.
#pragma once

#include <boost/asio/io_context.hpp>
#include <string>

#include "broker/net/stream.hpp"

namespace leat::broker {

class SilentStream final : public Stream {
 public:
  // `fd` is the broker's end, a socket of this address family.
  SilentStream(boost::asio::io_context& loop, int family, int fd)
      : Stream{
            Accepted{Socket{loop, boost::asio::generic::stream_protocol{family, 0}, fd},
                     Peer{.address = kHere, .port = 1, .own_address = kHere, .is_unix = false}}} {}

 private:
  inline static const Peer::Address kHere = boost::asio::ip::address_v4::loopback();

  std::size_t on_bytes(Bytes& bytes) override {
    bytes = {};
    return 1;
  }
  void on_closed(const std::string&) override {}
};

}  // namespace leat::broker
