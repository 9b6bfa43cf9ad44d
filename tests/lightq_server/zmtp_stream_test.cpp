// If this failed, thousands of producers that wait for a full topic would keep the CPU busy, or libzmq would take the broker for
// dead while they wait.
#include "lightq/server/zmtp/zmtp_stream.hpp"

#include <gtest/gtest.h>

#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <string>

#include "leat/deadline.hpp"

namespace leat::broker::lightq {
namespace {

using namespace std::string_literals;

// Its topic is full.
class WaitingProducer final : public ZmtpStream {
 public:
  explicit WaitingProducer(Accepted accepted)
      : ZmtpStream{std::move(accepted),
                   {.role = zmtp::Role::pull, .allows_null = true},
                   {.allows_null = true,
                    .check = {},
                    .version_of = {},
                    .authorize_address = [](const Address&) { return Principal{}; }}} {}

 private:
  bool on_ready() override { return true; }
  bool on_message(Bytes, bool) override { return false; }
  void on_closed(const std::string&) override {}
};

class SignsOfLife : public ::testing::Test {
 protected:
  struct Connection {
    boost::asio::local::stream_protocol::socket client;
    std::shared_ptr<WaitingProducer> stream;
    std::string received = {};
  };

  Connection connect(const std::string& text) {
    boost::asio::local::stream_protocol::socket client{loop_}, own{loop_};
    boost::asio::local::connect_pair(client, own);
    client.non_blocking(true);
    const auto stream = std::make_shared<WaitingProducer>(Accepted{std::move(own), Peer{}});
    stream->begin();
    boost::asio::write(client, boost::asio::buffer(login() + text));
    return {std::move(client), stream};
  }
  static int count_signs(Connection& connection) {
    char bytes[4096];
    boost::system::error_code error;
    while (const std::size_t count =
               connection.client.read_some(boost::asio::buffer(bytes), error)) {
      connection.received.append(bytes, count);
    }
    int signs = 0;
    for (std::size_t at = 0;
         (at = connection.received.find("\4\5\4PONG"s, at)) != std::string::npos; ++at)
      ++signs;
    return signs;
  }
  void run_until_signs(Connection& connection, int count) {
    for (const Deadline deadline{std::chrono::seconds{20}}; count_signs(connection) < count;) {
      ASSERT_FALSE(deadline.passed());
      loop_.restart();
      loop_.run_for(std::chrono::milliseconds{5});
    }
  }

  // As libzmq of today: ZMTP 3.1.
  static std::string login() {
    std::string text = "\xFF\0\0\0\0\0\0\0\0\x7F\3\1NULL"s;
    text.resize(64, '\0');
    std::string data;
    zmtp::append_property(data, "Socket-Type", Bytes{"PUSH"});
    zmtp::append_command(text, "READY", Bytes{data});
    return text;
  }
  static std::string ping() {
    std::string text;
    zmtp::append_command(text, "PING", Bytes{"\0\0"s});
    return text;
  }

  boost::asio::io_context loop_;
};

TEST_F(SignsOfLife, AreSeldomForProducersThatSendNoPing) {
  const std::string message = "\0\1m"s;
  auto silent = connect(message);
  auto pings = connect(ping() + message);
  run_until_signs(pings, 1 + 6);  // The first one is an answer.
  const int signs = count_signs(silent);
  EXPECT_GE(signs, 1);
  EXPECT_LE(signs, 4);
  run_until_signs(silent, signs + 1);
  silent.stream->close("the end");
  pings.stream->close("the end");
}

// If this failed, a producer that sends what it has and closes would lose the end of it: its kernel answers a sign with a
// reset, and drops what it could not deliver yet.
TEST_F(SignsOfLife, DoNotReachProducersThatMayHaveClosed) {
  const std::string message = "\0\1m"s;
  std::string many;
  for (int i = 0; i < 40 * 1024; ++i) many += message;  // The broker reads 64 KiB at a time.
  auto has_more = connect(many);
  auto pings = connect(ping() + many);
  auto ends = connect(ping() + message);
  ends.client.shutdown(boost::asio::local::stream_protocol::socket::shutdown_send);
  run_until_signs(pings, 1 + 6);  // The first one is an answer.
  EXPECT_EQ(count_signs(has_more), 0);
  EXPECT_EQ(count_signs(ends), 1);  // The answer.
  for (auto* one : {&has_more, &pings, &ends}) one->stream->close("the end");
}

}  // namespace
}  // namespace leat::broker::lightq
