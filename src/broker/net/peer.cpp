#include "peer.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <cstring>

namespace leat::broker {
namespace {

namespace ip = boost::asio::ip;

// An IPv4 address may come as an IPv6 one, and this machine by either of its names.
ip::address one_form(const ip::address& address) {
  if (!address.is_v6()) return address;
  const ip::address_v6 v6 = address.to_v6();
  if (v6.is_loopback()) return ip::address_v4::loopback();
  if (v6.is_v4_mapped()) return ip::make_address_v4(ip::v4_mapped, v6);
  return address;
}

std::optional<ip::tcp::endpoint> ip_end(
    const boost::asio::generic::stream_protocol::endpoint& end) {
  const int family = end.protocol().family();
  const bool is_whole = (family == AF_INET && end.size() == sizeof(sockaddr_in)) ||
                        (family == AF_INET6 && end.size() == sizeof(sockaddr_in6));
  if (!is_whole) return std::nullopt;
  ip::tcp::endpoint found;
  std::memcpy(found.data(), end.data(), end.size());
  found.resize(end.size());
  return found;
}

}  // namespace

std::string Peer::name() const {
  if (is_unix) return "unix";
  const std::string host = address.to_string();
  return fmt::format("{}:{}", address.is_v6() ? "[" + host + "]" : host, port);
}

std::optional<Peer> peer_of(const boost::asio::generic::stream_protocol::endpoint& client,
                            const boost::asio::generic::stream_protocol::endpoint& own) {
  // The client's end of a Unix socket has no name; the broker's end tells which kind of socket it is.
  if (own.protocol().family() == AF_UNIX) {
    const ip::address here = ip::address_v4::loopback();
    return Peer{.address = here, .port = 0, .own_address = here, .is_unix = true};
  }
  const auto from = ip_end(client);
  const auto to = ip_end(own);
  if (!from || !to || from->port() == 0) return std::nullopt;
  return Peer{.address = one_form(from->address()),
              .port = from->port(),
              .own_address = to->address(),
              .is_unix = false};
}

Origin::Origin(const Peer::Address& address) {
  const ip::address one = one_form(address);
  if (one.is_loopback()) return;
  if (one.is_v4()) {
    *this = Origin{Kind::ipv4, one.to_v4().to_uint()};
    return;
  }
  std::uint64_t network = 0;
  const auto bytes = one.to_v6().to_bytes();
  for (std::size_t i = 0; i < 8; ++i) network = network << 8 | bytes[i];
  *this = Origin{Kind::ipv6, network};
}

}  // namespace leat::broker
