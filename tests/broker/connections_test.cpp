// If these failed, strangers at the limit of connections would stall the broker, or producers that have gone keep out others.
#include "broker/net/connections.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <thread>
#include <vector>

#include "broker/net/acceptor.hpp"
#include "leat/deadline.hpp"
#include "support/process.hpp"

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

// As topics do that are opened, whatever is left of the limit.
TEST(Connections, AtTheUnixSocketGetInWhenAllDescriptorsAreTaken) {
  if (LEAT_TEST_SANITIZED)
    GTEST_SKIP() << "UBSan itself needs a descriptor to check an object's type";
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path() + "/socket";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit small{128, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &small), 0);
  {
    boost::asio::io_context loop;
    Connections connections{{.in_all = 1000, .per_address = 1000}};
    connections.reserve_for_unix();
    std::vector<std::shared_ptr<Stream>> accepted;
    const auto acceptor = Acceptor::listen_at(
        loop, path,
        [&](Accepted one) {
          accepted.push_back(std::make_shared<PausedAtOnce>(std::move(one)));
          connections.start(accepted.back(), Connections::Kind::commands);
        },
        [&] { return connections.free_reserved(); });
    ASSERT_TRUE(acceptor) << acceptor.problem().sentence;
    std::vector<LocalSocket> clients;
    for (int i = 0; i < 3; ++i)
      clients.emplace_back(loop).open(boost::asio::local::stream_protocol{});
    std::vector<leat::detail::Fd> others;
    const auto take_all = [&] {
      for (int fd = 0; (fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;)
        others.emplace_back(fd);
    };
    for (std::size_t i = 0; i < clients.size(); ++i) {
      take_all();
      clients[i].connect(path);
      for (const Deadline deadline{std::chrono::seconds{20}}; accepted.size() <= i;) {
        ASSERT_FALSE(deadline.passed());
        loop.restart();
        loop.run_for(std::chrono::milliseconds{1});
      }
      EXPECT_TRUE(accepted[i]->is_open()) << i;
      if (i == 0) accepted[i]->close("the place is for the next one");
    }
    connections.close_all("the end");
  }
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace leat::broker
