#include "peer.hpp"

#include <fmt/format.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <cstring>

#include "leat/os/os.hpp"

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

namespace {

struct Question {
  nlmsghdr header;
  inet_diag_req_v2 request;
};
struct Answer {
  nlmsghdr header;
  inet_diag_msg socket;
};

// Puts one end of the connection, as getsockname() and getpeername() return it, into the place for that end. Returns the
// family.
int put_end(int descriptor, decltype(::getsockname)& which, __be16& port, __be32 (&address)[4]) {
  sockaddr_storage end{};
  socklen_t size = sizeof(end);
  if (which(descriptor, reinterpret_cast<sockaddr*>(&end), &size) != 0) return AF_UNSPEC;
  if (end.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(end);
    port = v4.sin_port;
    std::memcpy(address, &v4.sin_addr, sizeof(v4.sin_addr));
  } else if (end.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(end);
    port = v6.sin6_port;
    std::memcpy(address, &v6.sin6_addr, sizeof(v6.sin6_addr));
  }
  return end.ss_family;
}

}  // namespace

ClientEnd client_end(int descriptor) {
  Question question{};
  question.header = {.nlmsg_len = sizeof(question),
                     .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                     .nlmsg_flags = NLM_F_REQUEST,
                     .nlmsg_seq = 0,
                     .nlmsg_pid = 0};
  inet_diag_sockid& id = question.request.id;
  // Of the client's socket: its own end is our other one.
  const int family = put_end(descriptor, ::getpeername, id.idiag_sport, id.idiag_src);
  if (family != put_end(descriptor, ::getsockname, id.idiag_dport, id.idiag_dst) ||
      (family != AF_INET && family != AF_INET6))
    return ClientEnd::unknown;
  question.request.sdiag_family = static_cast<__u8>(family);
  question.request.sdiag_protocol = IPPROTO_TCP;
  question.request.idiag_states = ~0U;
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  const leat::os::Fd kernel{::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)};
  if (!kernel || ::send(kernel.get(), &question, sizeof(question), 0) < 0)
    return ClientEnd::unknown;
  Answer answer{};
  // It is there at once.
  const ssize_t size = ::recv(kernel.get(), &answer, sizeof(answer), MSG_DONTWAIT);
  if (size != sizeof(answer) || answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY)
    return ClientEnd::unknown;
  return answer.socket.idiag_inode == 0 ? ClientEnd::closed : ClientEnd::open;
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
