// If this failed, a client whose address cannot be told would count as one of this machine, which may do most.
#include "broker/net/peer.hpp"

#include <gtest/gtest.h>
#include <sys/un.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <optional>
#include <string>

namespace leat::broker {
namespace {

using boost::asio::ip::tcp;
using Endpoint = boost::asio::generic::stream_protocol::endpoint;

Endpoint end(const char* address, std::uint16_t port) {
  return tcp::endpoint{boost::asio::ip::make_address(address), port};
}

TEST(Peer, IsWhatAcceptSaid) {
  const auto peer = peer_of(end("192.0.2.1", 40'000), end("192.0.2.9", 5500));
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->name(), "192.0.2.1:40000");
  EXPECT_EQ(peer->own_address.to_string(), "192.0.2.9");
  EXPECT_FALSE(peer->is_unix);
}

TEST(Peer, HasOneFormOfAnAddress) {
  EXPECT_EQ(peer_of(end("::ffff:192.0.2.1", 1), end("::", 2))->address.to_string(), "192.0.2.1");
  EXPECT_EQ(peer_of(end("::1", 1), end("::1", 2))->address.to_string(), "127.0.0.1");
  EXPECT_EQ(peer_of(end("2001:db8::1", 1), end("::", 2))->name(), "[2001:db8::1]:1");
}

TEST(Peer, IsNobodyWithoutAWholeAddress) {
  const Endpoint own = end("127.0.0.1", 5500);
  EXPECT_FALSE(peer_of(Endpoint{}, own)) << "accept() said nothing";
  EXPECT_FALSE(peer_of(end("127.0.0.1", 0), own)) << "no client has this port";
  Endpoint cut = end("127.0.0.1", 40'000);
  cut.resize(4);
  EXPECT_FALSE(peer_of(cut, own));
  EXPECT_FALSE(peer_of(end("127.0.0.1", 40'000), Endpoint{})) << "the broker's end is unknown";
  const Endpoint named{boost::asio::local::stream_protocol::endpoint{"/tmp/a"}};
  EXPECT_FALSE(peer_of(named, own)) << "a Unix address at a TCP port";
}

TEST(Peer, AtTheUnixSocketIsOfThisMachine) {
  const Endpoint own{boost::asio::local::stream_protocol::endpoint{"/tmp/a"}};
  const auto peer = peer_of(Endpoint{}, own);
  ASSERT_TRUE(peer);
  EXPECT_TRUE(peer->is_unix);
  EXPECT_EQ(peer->name(), "unix");
}

// What the client has sent is more than the kernel at this end takes, so its end stays away.
TEST(Peer, HasClosedItsEndAlthoughNotEverythingHasArrived) {
  for (const char* address : {"127.0.0.1", "::1"}) {
    boost::asio::io_context loop;
    boost::system::error_code error;
    tcp::acceptor acceptor{loop};
    const tcp::endpoint place{boost::asio::ip::make_address(address), 0};
    acceptor.open(place.protocol(), error);
    if (!error) acceptor.bind(place, error);
    if (error) continue;  // A machine without IPv6.
    acceptor.listen();
    std::optional<tcp::socket> client{std::in_place, loop};
    client->connect(acceptor.local_endpoint());
    tcp::socket own = acceptor.accept();
    client->non_blocking(true);
    const std::string text(1 << 20, 'x');
    while (client->write_some(boost::asio::buffer(text), error) != 0) {
    }
    EXPECT_EQ(client_end(own.native_handle()), ClientEnd::open) << address;
    client.reset();
    EXPECT_EQ(client_end(own.native_handle()), ClientEnd::closed) << address;
  }
}

TEST(Peer, IsUnknownIfItIsNoSocketOfThisMachine) {
  boost::asio::io_context loop;
  boost::asio::local::stream_protocol::socket one{loop}, other{loop};
  boost::asio::local::connect_pair(one, other);
  EXPECT_EQ(client_end(one.native_handle()), ClientEnd::unknown);
  EXPECT_EQ(client_end(-1), ClientEnd::unknown);
}

}  // namespace
}  // namespace leat::broker
