// If this failed, strangers at the limit of connections would stall the broker, or producers that have gone keep out others.
#include "broker/net/connections.hpp"

#include <gtest/gtest.h>

#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <thread>

namespace leat::broker {
namespace {

using LocalSocket = boost::asio::local::stream_protocol::socket;

// Pauses at its first byte, as a producer of a full topic does.
class PausedAtOnce final : public Stream {
 public:
  using Stream::Stream;

 private:
  std::size_t on_bytes(Bytes&) override { return kPause; }
  void on_closed(const std::string&) override {}
};

TEST(Connections, ChecksForThoseThatHaveGoneNowAndThen) {
  boost::asio::io_context loop;
  Connections connections{{.in_all = 1, .per_address = 100}};
  // The client's end; and whether the connection was let in.
  const auto connect = [&] {
    LocalSocket client{loop};
    LocalSocket own{loop};
    boost::asio::local::connect_pair(client, own);
    boost::asio::write(client, boost::asio::buffer("x", 1));
    const auto stream = std::make_shared<PausedAtOnce>(Accepted{std::move(own), Peer{}});
    connections.start(stream, Connections::Kind::data);
    const bool is_in = stream->is_open();
    loop.restart();
    loop.poll();
    return std::pair{std::move(client), is_in};
  };
  auto first = connect();
  EXPECT_TRUE(first.second);
  const auto before = std::chrono::steady_clock::now();
  EXPECT_FALSE(connect().second) << "the first one is there";
  first.first.close();
  const bool is_in = connect().second;
  const bool is_soon = std::chrono::steady_clock::now() - before < std::chrono::milliseconds{100};
  EXPECT_FALSE(is_in && is_soon) << "it was looked for a moment ago";
  std::this_thread::sleep_for(std::chrono::milliseconds{150});
  EXPECT_TRUE(connect().second);
  connections.close_all("the end");
}

}  // namespace
}  // namespace leat::broker
