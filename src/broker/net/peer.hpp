// Who is at the other end of a connection, and as whom limits count it.
//
//     acceptor.async_accept(end, [&](auto error, Socket socket) {
//       const auto peer = peer_of(end, socket.local_endpoint(ignored));
//       if (!peer) return;                          // Nobody may stand for a client without a name.
//       start(Accepted{std::move(socket), *peer});
//     });
//     limits.take(Origin{*peer}, now);
//
// The peer is what accept() said. To ask the socket later is too late: after a reset, getpeername() fails. No error
// becomes an address here, least of all that of this machine, which is trusted most.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/address.hpp>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace leat::broker {

struct Peer {
  using Address = boost::asio::ip::address;

  // An IPv4 address that came as an IPv6 one is an IPv4 address here, and ::1 is 127.0.0.1. That of a client at the Unix
  // socket is 127.0.0.1 as well.
  Address address;
  std::uint16_t port = 0;
  // The address by which the client reached this machine.
  Address own_address;
  bool is_unix = false;

  // "127.0.0.1:41234", "[2001:db8::1]:41234" or "unix", for logs.
  std::string name() const;
};

// What accept() says of the client, and what the socket says of its own end. None unless both are addresses.
std::optional<Peer> peer_of(const boost::asio::generic::stream_protocol::endpoint& client,
                            const boost::asio::generic::stream_protocol::endpoint& own);

struct Accepted {
  boost::asio::generic::stream_protocol::socket socket;
  Peer peer;
};

// Whether the process at the other end of a TCP connection still has its socket open. When it has closed it, its kernel
// goes on sending what it had taken from it; but it answers with a reset to whatever arrives, and drops the rest.
enum class ClientEnd { open, closed, unknown };
// Asks the kernel (sock_diag(7)), which knows only sockets of this machine and network namespace. `unknown` also after a
// reset.
ClientEnd client_end(int descriptor);

// The addresses among which one client can choose freely are one origin: 127.0.0.0/8 with ::1, and the first 64 bits of an
// IPv6 address. The Unix socket is an origin of its own, so that nobody at a TCP port uses up what its clients have.
class Origin {
 public:
  explicit Origin(const Peer& peer) : Origin{peer.address} {
    if (peer.is_unix) *this = Origin{Kind::unix_socket, 0};
  }
  explicit Origin(const Peer::Address& address);

  friend auto operator<=>(const Origin&, const Origin&) = default;

 private:
  enum class Kind : std::uint8_t { unix_socket, loopback, ipv4, ipv6 };
  Origin(Kind kind, std::uint64_t number) : kind_{kind}, number_{number} {}

  Kind kind_ = Kind::loopback;
  std::uint64_t number_ = 0;
};

}  // namespace leat::broker
