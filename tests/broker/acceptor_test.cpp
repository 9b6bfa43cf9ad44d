// If this failed, of two brokers at one Unix socket the one would delete the other's, and nobody could reach it.
#include "broker/net/acceptor.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <boost/asio/local/stream_protocol.hpp>
#include <filesystem>
#include <thread>
#include <vector>

#include "support/process.hpp"

namespace leat::broker {
namespace {

using boost::asio::io_context;
using boost::asio::local::stream_protocol;

TEST(Acceptor, OfThoseThatStartAtOnceOneGetsTheSocketThatABrokerLeft) {
  constexpr int kBrokers = 4;
  constexpr int kRounds = LEAT_TEST_SANITIZED ? 50 : 200;
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path() + "/broker.sock";
  for (int round = 0; round < kRounds; ++round) {
    {
      io_context loop;
      const stream_protocol::acceptor left{loop, path};
    }
    std::barrier all{kBrokers};
    std::atomic<int> listening = 0, busy = 0, reached = 0;
    std::vector<std::jthread> brokers;
    for (int i = 0; i < kBrokers; ++i) {
      brokers.emplace_back([&] {
        io_context loop;
        all.arrive_and_wait();
        const auto acceptor = Acceptor::listen_at(loop, path, [&](auto) { ++reached; });
        if (acceptor) ++listening;
        if (!acceptor && acceptor.problem().code == Errc::busy) ++busy;
        all.arrive_and_wait();  // Each has tried.
        if (!acceptor) return;
        stream_protocol::socket client{loop};
        boost::system::error_code error;
        client.connect(path, error);
        loop.run_one_for(std::chrono::seconds{20});
      });
    }
    brokers.clear();
    ASSERT_EQ(listening, 1) << round;
    ASSERT_EQ(busy, kBrokers - 1) << round;
    ASSERT_EQ(reached, 1) << round << ": the socket is not the one that listens";
    std::filesystem::remove(path);
  }
}

}  // namespace
}  // namespace leat::broker
